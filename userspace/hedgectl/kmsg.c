// SPDX-License-Identifier: GPL-2.0
/*
 * Device-mapper returns EINVAL and puts the reason into the kernel log. kmsg_begin() remembers the
 * end of the log, and kmsg_report() prints what device-mapper added since; kmsg_end() only forgets.
 * The number that they pass around may be -1: the log can not be read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hedgectl.h"

int kmsg_begin(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		lseek(fd, 0, SEEK_END);
	return fd;
}

/*
 * A record is "<numbers>;<text>\n" and what follows it; one read gives one record. EPIPE: some were
 * overwritten.
 */
static bool report_record(char *record)
{
	char *text = strchr(record, ';');

	if (!text || strncmp(text + 1, "device-mapper: ", 15))
		return false;
	text[1 + strcspn(text + 1, "\n")] = '\0';
	fprintf(stderr, "  kernel: %s\n", text + 1);
	return true;
}

void kmsg_end(int fd)
{
	if (fd >= 0)
		close(fd);
}

void kmsg_report(int fd)
{
	char record[8192];
	bool any = false;
	ssize_t n;

	if (fd >= 0) {
		while ((n = read(fd, record, sizeof(record) - 1)) > 0 ||
		       (n < 0 && errno == EPIPE)) {
			record[n > 0 ? n : 0] = '\0';
			any |= report_record(record);
		}
		kmsg_end(fd);
	}
	if (!any)
		fprintf(stderr, "  the kernel log (dmesg) has the details\n");
}
