// SPDX-License-Identifier: GPL-2.0
/*
 * failing - load or resume a device-mapper table with one allocation failing.
 *
 *   failing load NAME TABLE-LINE [--edge N] [--between N]
 *   failing resume NAME DEV DIR [--edge N] [--between N]
 *
 * The nth allocation that the kernel makes for the ioctl fails, by
 * /proc/self/fail-nth, for the first and last --edge (default 100) n that there are and
 * --between (default 20) others: many are those of pools, where one is like the next.
 * load clears what was taken. resume suspends the device before, resumes it once
 * more if the first resume was refused, and then reads DEV here and there; DIR
 * is a directory that the resume makes if it can.
 *
 * Prints a line for each n: "n errno=E", and for resume "dir=0|1 read=0|1" as well: whether
 * DIR was there and the reads were good. In the last one no allocation failed. Exit
 * status 0, or 2 if it could not run.
 */
#include "io.h"

#include <linux/dm-ioctl.h>
#include <stddef.h>

#define SIZE 8192

static int control, edge = 100, between = 20;
static const char *name, *line, *dev, *dir;	/* line: else it is a resume */
static _Alignas(8) char room[SIZE];

/*
 * Sets the count, or returns what is left of it. The file stays open: to open it
 * takes an allocation.
 */
static long long fail_nth(const char *set)
{
	static int fd = -1;
	char left[32] = "";

	if (fd < 0)
		fd = open("/proc/self/fail-nth", O_RDWR | O_CLOEXEC);
	if (fd < 0 || (set ? pwrite(fd, set, strlen(set), 0) :
			     pread(fd, left, sizeof(left) - 1, 0)) < 0)
		die("/proc/self/fail-nth");
	return atoll(left);
}

/* TABLE-LINE is "<start> <length> <target> <parameters>". */
static void put_table(struct dm_ioctl *dm)
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
static int dm(unsigned long what, uint32_t flags, int nth, bool *failed)
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
	if (what == DM_TABLE_LOAD)
		put_table(dm);
	if (!nth)
		return ioctl(control, what, dm) ? errno : 0;
	snprintf(number, sizeof(number), "%d", nth);
	fail_nth(number);
	error = ioctl(control, what, dm) ? errno : 0;
	*failed = !fail_nth(NULL);
	fail_nth("0");
	return error;
}

static bool reads(void)
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

/* Returns whether an allocation has failed. */
static bool try(int n)
{
	bool failed = false;
	int error;

	if (line) {
		error = dm(DM_TABLE_LOAD, 0, n, &failed);
		printf("%d errno=%s\n", n, error ? strerrorname_np(error) : "0");
		if (failed)
			dm(DM_TABLE_CLEAR, 0, 0, NULL);
		return failed;
	}
	error = dm(DM_DEV_SUSPEND, DM_SUSPEND_FLAG, 0, NULL);
	if (error) {
		errno = error;
		die("suspend");
	}
	error = dm(DM_DEV_SUSPEND, 0, n, &failed);
	printf("%d errno=%s", n, error ? strerrorname_np(error) : "0");
	if (error)
		dm(DM_DEV_SUSPEND, 0, 0, NULL);
	printf(" dir=%d read=%d\n", !access(dir, F_OK), reads());
	return failed;
}

/* How many allocations there are: the first n that fails nothing, less one. */
static int all(void)
{
	int low = 0, high = 64;

	while (try(high)) {
		low = high;
		high *= 2;
	}
	while (high - low > 1) {
		int n = low + (high - low) / 2;

		if (try(n))
			low = n;
		else
			high = n;
	}
	return low;
}

int main(int argc, char **argv)
{
	int nr, step;

	if (argc >= 4 && !strcmp(argv[1], "load")) {
		line = argv[3];
	} else if (argc >= 5 && !strcmp(argv[1], "resume")) {
		dev = argv[3];
		dir = argv[4];
	} else {
		fprintf(stderr, "usage: failing load NAME TABLE-LINE | resume NAME DEV DIR\n");
		return 2;
	}
	name = argv[2];
	for (int i = line ? 4 : 5; i + 1 < argc; i += 2)
		*(!strcmp(argv[i], "--edge") ? &edge : &between) = (int)number(argv[i + 1]);
	control = open("/dev/mapper/control", O_RDWR);
	if (control < 0)
		die("/dev/mapper/control");
	fail_nth("0");
	nr = all();
	step = nr > 2 * edge ? (nr - 2 * edge) / (between + 1) + 1 : 1;
	for (int n = 1; n <= nr; n++)
		if (n <= edge || n > nr - edge || n % step == 0)
			try(n);
	/* How many there are differs a little from time to time. */
	for (int n = nr + 1; try(n); n++)
		;
	return 0;
}
