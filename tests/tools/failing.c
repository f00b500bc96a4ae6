// SPDX-License-Identifier: GPL-2.0
/*
 * failing - load or resume a device-mapper table with one allocation failing.
 *
 *   failing load NAME TABLE-LINE
 *   failing resume NAME DEV DIR
 *
 * For N = 1, 2, ... the Nth allocation that the kernel makes for the ioctl fails, by
 * /proc/self/fail-nth, until nothing has failed any more: then every one was
 * tried. load clears what was taken. resume suspends the device before, resumes it once
 * more if the first resume was refused, and then reads DEV here and there; DIR
 * is a directory that the resume makes if it can.
 *
 * Prints a line for each N: "N errno=E", and for resume "dir=0|1 read=0|1" as well: whether
 * DIR was there and the reads were good. The last line is for the N that failed
 * nothing. Exit status 0, or 2 if it could not run.
 */
#include "io.h"

#include <linux/dm-ioctl.h>
#include <stddef.h>

#define SIZE 8192
#define MOST 5000

static int control;
static _Alignas(8) char room[SIZE];

/* Returns what is left of the count. */
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

/* The ioctl with its @nth allocation failing, 0 = none. *@failed: whether one did. */
static int dm(unsigned long what, const char *name, uint32_t flags, const char *line, int nth,
	      bool *failed)
{
	struct dm_ioctl *dm = (void *)room;
	char number[16];
	int error;

	memset(room, 0, sizeof(room));
	dm->version[0] = DM_VERSION_MAJOR;
	dm->data_size = SIZE;
	dm->data_start = sizeof(*dm);
	dm->flags = flags;
	snprintf(dm->name, sizeof(dm->name), "%s", name);
	if (line)
		put_table(dm, line);
	if (!nth)
		return ioctl(control, what, dm) ? errno : 0;
	snprintf(number, sizeof(number), "%d", nth);
	fail_nth(number);
	error = ioctl(control, what, dm) ? errno : 0;
	*failed = !fail_nth(NULL);
	fail_nth("0");
	return error;
}

static bool reads(const char *dev)
{
	int fd = open_direct(dev, O_RDONLY);
	uint64_t random = 1, blocks = device_bytes(fd) / 4096;
	char *data = buffer(4096);
	bool good = true;

	for (int i = 0; i < 8; i++) {
		off_t at = (off_t)(next_random(&random) % blocks * 4096);

		good = good && pread(fd, data, 4096, at) == 4096;
	}
	free(data);
	close(fd);
	return good;
}

static void tell(int n, int error)
{
	printf("%d errno=%s", n, error ? strerrorname_np(error) : "0");
}

static void all_loads(const char *name, const char *line)
{
	bool failed = true;

	for (int n = 1; failed && n < MOST; n++) {
		tell(n, dm(DM_TABLE_LOAD, name, 0, line, n, &failed));
		printf("\n");
		if (failed)
			dm(DM_TABLE_CLEAR, name, 0, NULL, 0, NULL);
	}
}

static void all_resumes(const char *name, const char *dev, const char *dir)
{
	bool failed = true;

	for (int n = 1; failed && n < MOST; n++) {
		int error = dm(DM_DEV_SUSPEND, name, DM_SUSPEND_FLAG, NULL, 0, NULL);

		if (error) {
			errno = error;
			die("suspend");
		}
		error = dm(DM_DEV_SUSPEND, name, 0, NULL, n, &failed);
		tell(n, error);
		if (error)
			dm(DM_DEV_SUSPEND, name, 0, NULL, 0, NULL);
		printf(" dir=%d read=%d\n", !access(dir, F_OK), reads(dev));
	}
}

int main(int argc, char **argv)
{
	control = open("/dev/mapper/control", O_RDWR);
	if (control < 0)
		die("/dev/mapper/control");
	if (argc == 4 && !strcmp(argv[1], "load")) {
		all_loads(argv[2], argv[3]);
	} else if (argc == 5 && !strcmp(argv[1], "resume")) {
		all_resumes(argv[2], argv[3], argv[4]);
	} else {
		fprintf(stderr, "usage: failing load NAME TABLE-LINE | resume NAME DEV DIR\n");
		return 2;
	}
	return 0;
}
