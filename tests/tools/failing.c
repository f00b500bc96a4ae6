// SPDX-License-Identifier: GPL-2.0
/*
 * failing - load or resume a device-mapper table with one allocation failing.
 *
 *   failing load NAME N TABLE-LINE
 *   failing resume NAME N
 *
 * The Nth allocation that the kernel makes for the ioctl fails, by
 * /proc/self/fail-nth. A test counts N up from 1 until nothing has failed any
 * more, and has then tried every one.
 *
 * Prints "failed=0|1 errno=E": whether an allocation was failed, and what the
 * ioctl said. Exit status 0, or 2 if it could not run.
 */
#include "io.h"

#include <linux/dm-ioctl.h>
#include <stddef.h>

#define SIZE 8192

static long long fail_nth(const char *set)
{
	int fd = open("/proc/self/fail-nth", set ? O_WRONLY : O_RDONLY);
	char left[32] = "";

	if (fd < 0)
		die("/proc/self/fail-nth");
	if (set ? write(fd, set, strlen(set)) < 0 : read(fd, left, sizeof(left) - 1) < 0)
		die("/proc/self/fail-nth");
	close(fd);
	return atoll(left);
}

/* TABLE-LINE is "<start> <length> <target> <parameters>". */
static void put_table(struct dm_ioctl *dm, const char *line)
{
	struct dm_target_spec *spec = (void *)((char *)dm + sizeof(*dm));
	unsigned long long start, length;
	int at = 0;

	if (sscanf(line, "%llu %llu %15s %n", &start, &length, spec->target_type, &at) < 3 ||
	    !at || strlen(line + at) >= SIZE - sizeof(*dm) - sizeof(*spec)) {
		fprintf(stderr, "not a table line: %s\n", line);
		exit(2);
	}
	spec->sector_start = start;
	spec->length = length;
	strcpy((char *)(spec + 1), line + at);
	spec->next = (uint32_t)(sizeof(*spec) + ((strlen(line + at) + 8) & ~7UL));
	dm->target_count = 1;
}

int main(int argc, char **argv)
{
	static _Alignas(8) char room[SIZE];
	struct dm_ioctl *dm = (void *)room;
	bool load = argc == 5 && !strcmp(argv[1], "load");
	int fd, failure;

	if (!load && !(argc == 4 && !strcmp(argv[1], "resume"))) {
		fprintf(stderr, "usage: failing load NAME N TABLE-LINE | resume NAME N\n");
		return 2;
	}
	fd = open("/dev/mapper/control", O_RDWR);
	if (fd < 0)
		die("/dev/mapper/control");
	dm->version[0] = DM_VERSION_MAJOR;
	dm->data_size = SIZE;
	dm->data_start = sizeof(*dm);
	snprintf(dm->name, sizeof(dm->name), "%s", argv[2]);
	if (load)
		put_table(dm, argv[4]);
	fail_nth(argv[3]);
	failure = ioctl(fd, load ? DM_TABLE_LOAD : DM_DEV_SUSPEND, dm) ? errno : 0;
	printf("failed=%d errno=%s\n", !fail_nth(NULL),
	       failure ? strerrorname_np(failure) : "0");
	return 0;
}
