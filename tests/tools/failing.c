// SPDX-License-Identifier: GPL-2.0
/*
 * failing - do one thing in the kernel, many times, each time with another allocation failing.
 *
 *   failing load NAME TABLE-LINE [--edge N] [--between N]
 *   failing resume NAME DEV DIR [--edge N] [--between N]
 *   failing io DEV
 *   failing message NAME FILE MESSAGE OTHER
 *   failing write FILE VALUE OTHER
 *
 * The nth allocation that the kernel makes for the system call fails, by
 * /proc/self/fail-nth. For load and resume that is so for the first and last --edge (default 100) n that there are and
 * --between (default 20) others: many are those of pools, where one is like the next.
 * load clears what was taken. resume suspends the device before, resumes it once
 * more if the first resume was refused, and then reads DEV here and there; DIR
 * is a directory that the resume makes if it can.
 *
 * io reads and writes 4 KiB and 64 KiB of DEV, which loses its data, at random places;
 * what is read was written just before, and what is written is read twice after it.
 * message and write set something that FILE shows. Before each n OTHER is set, without a
 * failure: what is refused must leave FILE as it is then, and what is taken must
 * make it what it is without a failure.
 *
 * Prints a line for each n: "n errno=E", and for resume "dir=0|1 read=0|1" as well: whether
 * DIR was there and the reads were good; for io "read|write BYTES" and, as for message and write,
 * "wrong=0|1". In the last one no allocation failed. Exit status 0, or 2 if it could not run.
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

/* --- one system call ---------------------------------------------------------- */

/* The system call with its @nth allocation failing. *@error: 0 or what it was. */
static bool fail_one(int nth, int (*call)(void *), void *arg, int *error)
{
	char number[16];
	bool failed;

	snprintf(number, sizeof(number), "%d", nth);
	fail_nth(number);
	*error = call(arg) ? errno : 0;
	failed = !fail_nth(NULL);
	fail_nth("0");
	return failed;
}

struct io {
	int fd;
	bool write;
	size_t bytes;
	off_t at;
	char *data;
};

static int do_io(void *arg)
{
	struct io *io = arg;
	ssize_t n = io->write ? pwrite(io->fd, io->data, io->bytes, io->at) :
				pread(io->fd, io->data, io->bytes, io->at);

	if (n >= 0 && n != (ssize_t)io->bytes)
		errno = EIO;
	return n != (ssize_t)io->bytes;
}

static void io_or_die(struct io *io, bool write)
{
	struct io plain = *io;

	plain.write = write;
	if (do_io(&plain))
		die("%s of %zu bytes at %lld", write ? "write" : "read", io->bytes,
		    (long long)io->at);
}

static bool is_stamped(const struct io *io, uint64_t stamp_of)
{
	return stamp_wrong(io->data, stamp_of, io->bytes) < 0;
}

/* Every request carries stamps of its own, which no other place and time has. */
static bool try_io(struct io *io, int n, uint64_t stamp_of)
{
	bool failed, wrong = false;
	int error;

	stamp(io->data, stamp_of, io->bytes);
	if (!io->write) {
		io_or_die(io, true);
		memset(io->data, 0, io->bytes);
	}
	failed = fail_one(n, do_io, io, &error);
	if (!error && !io->write)
		wrong = !is_stamped(io, stamp_of);
	for (int i = 0; !error && io->write && i < 2; i++) {
		memset(io->data, 0, io->bytes);
		io_or_die(io, false);
		wrong |= !is_stamped(io, stamp_of);
	}
	printf("%d %s %zu errno=%s wrong=%d\n", n, io->write ? "write" : "read", io->bytes,
	       error ? strerrorname_np(error) : "0", wrong);
	return failed;
}

/* Four times each, for what is chosen at random is another leg then. */
static void all_io(const char *path)
{
	static const size_t sizes[] = { 4096, 65536 };
	struct io io = { .fd = open_direct(path, O_RDWR) };
	uint64_t random = 1, blocks = device_bytes(io.fd) / 65536;

	io.data = buffer(65536);
	for (unsigned int i = 0; i < 16; i++) {
		bool more = true;

		io.write = i & 1;
		io.bytes = sizes[i >> 1 & 1];
		for (int n = 1; more; n++) {
			io.at = (off_t)(next_random(&random) % blocks * 65536);
			more = try_io(&io, n, next_random(&random) >> 1);
		}
	}
	free(io.data);
	close(io.fd);
}

struct setting {
	const char *file, *value;	/* of a message FILE only shows what it did */
	bool message;
};

static int do_set(void *arg)
{
	const struct setting *setting = arg;
	struct dm_target_msg *message = (void *)(room + sizeof(struct dm_ioctl));
	struct dm_ioctl *dm = (void *)room;
	int fd, r;

	if (setting->message) {
		dm->version[0] = DM_VERSION_MAJOR;
		dm->data_size = SIZE;
		dm->data_start = sizeof(*dm);
		snprintf(dm->name, sizeof(dm->name), "%s", name);
		snprintf(message->message, SIZE - sizeof(*dm) - sizeof(*message), "%s",
			 setting->value);
		return ioctl(control, DM_TARGET_MSG, dm);
	}
	fd = open(setting->file, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	r = write(fd, setting->value, strlen(setting->value)) < 0 ? errno : 0;
	close(fd);
	errno = r;
	return r;
}

static void show(const char *path, char *text)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, SIZE - 1);

	if (n < 0)
		die("%s", path);
	text[n] = 0;
	close(fd);
}

static void set_or_die(struct setting setting)
{
	memset(room, 0, sizeof(room));
	if (do_set(&setting))
		die("%s", setting.value);
}

static void all_settings(struct setting setting, const char *other)
{
	static char before[SIZE], after[SIZE], is[SIZE];
	bool more = true;

	set_or_die(setting);
	show(setting.file, after);
	for (int n = 1; more; n++) {
		struct setting back = setting;
		int error;

		back.value = other;
		set_or_die(back);
		show(setting.file, before);
		memset(room, 0, sizeof(room));
		more = fail_one(n, do_set, &setting, &error);
		show(setting.file, is);
		printf("%d errno=%s wrong=%d\n", n, error ? strerrorname_np(error) : "0",
		       !!strcmp(is, error ? before : after));
	}
}

/* ------------------------------------------------------------------------------- */

static void all_tables(void)
{
	int nr = all(), step = nr > 2 * edge ? (nr - 2 * edge) / (between + 1) + 1 : 1;

	for (int n = 1; n <= nr; n++)
		if (n <= edge || n > nr - edge || n % step == 0)
			try(n);
	/* How many there are differs a little from time to time. */
	for (int n = nr + 1; try(n); n++)
		;
}

static void usage(void)
{
	fprintf(stderr, "usage: failing load NAME TABLE-LINE | resume NAME DEV DIR | io DEV |\n"
		"       message NAME FILE MESSAGE OTHER | write FILE VALUE OTHER\n");
	exit(2);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	control = open("/dev/mapper/control", O_RDWR);
	if (control < 0)
		die("/dev/mapper/control");
	fail_nth("0");
	if (argc == 3 && !strcmp(what, "io")) {
		all_io(argv[2]);
		return 0;
	}
	if (argc == 5 && !strcmp(what, "write")) {
		all_settings((struct setting){ argv[2], argv[3], false }, argv[4]);
		return 0;
	}
	name = argv[2];
	if (argc == 6 && !strcmp(what, "message")) {
		all_settings((struct setting){ argv[3], argv[4], true }, argv[5]);
		return 0;
	}
	if (argc >= 4 && !strcmp(what, "load")) {
		line = argv[3];
	} else if (argc >= 5 && !strcmp(what, "resume")) {
		dev = argv[3];
		dir = argv[4];
	} else {
		usage();
	}
	for (int i = line ? 4 : 5; i + 1 < argc; i += 2)
		*(!strcmp(argv[i], "--edge") ? &edge : &between) = (int)number(argv[i + 1]);
	all_tables();
	return 0;
}
