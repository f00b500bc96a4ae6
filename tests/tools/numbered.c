// SPDX-License-Identifier: GPL-2.0
/*
 * numbered - numbers what it writes, and tells after a crash what is lost.
 *
 *   numbered fill DEV                  version 0 everywhere
 *   numbered write DEV MARKS [--threads N] [--count N] [--seconds S]
 *            [--pause MS] [--window MS] [--flush PERCENT] [--fua PERCENT] [--seed N]
 *            [--bytes N]
 *   numbered check DEV TRACE POINT|- [--volatile] [--bytes N]
 *   numbered same DEV DEV... [--bytes N]
 *   numbered files DIR MARKS --count N [--seed N]
 *   numbered checkfiles DIR TRACE POINT
 *
 * Every sector holds its own number, the version that wrote it, and words that
 * follow from both. The device is cut into stripes of 64 sectors. A thread
 * writes random runs of sectors within its own stripes, one write at a time, and
 * numbers the writes of each stripe from 1. In MARKS, the trace_marker of ftrace,
 * it says before each write what it is, and after it that it was acknowledged;
 * the same for each flush. So the trace (see trace.h) knows for each crash point
 * what had been promised.
 *
 * check reads the device and finds in each sector either the newest version that
 * was promised before the crash point, or a later one that was written there: the
 * write may have been in flight, or in a cache. Promised is what was acknowledged;
 * with --volatile only what was acknowledged with FUA, or before a flush that was
 * acknowledged too.
 * It prints "sectors=N promised=N newer=N lost=N foreign=N": promised and newer
 * count sectors with such versions, lost those with an older one, foreign those
 * with anything else.
 *
 * With - for POINT, points are read from standard input, one a line.
 *
 * With --window the threads write to a quarter of the device at a time, and go to
 * the next after that long, so that regions become idle and are written again.
 *
 * same compares devices sector by sector. With --bytes only so much of each device is
 * compared, written or checked.
 *
 * files makes small files, each with one or more sectors of such content, syncs
 * them one by one, renames some and removes some; checkfiles finds each that was
 * synced by the crash point, unless its removal had begun. Prints "files=N
 * synced=N lost=N".
 *
 * Exit status 0, 1 if something is lost, foreign or different, 2 if it could not run.
 */
#include "trace.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>

#define STRIPE 64		/* sectors */
#define MOST 32			/* sectors of one write */
#define FILE_SECTORS 8		/* the most that a file has */

struct options {
	unsigned int threads, flush, fua;
	uint64_t count, seconds, pause_ms, window_ms, seed, bytes;
	bool cached;
};

static struct options opt = { .threads = 4, .flush = 4, .fua = 4, .seed = 1 };
static int fd, marks;
static uint64_t stripes, deadline, started;
static struct trace trace;
static uint32_t *versions;	/* of each stripe, its owner's */
static _Atomic uint64_t flushes, errors, written;

__attribute__((format(printf, 1, 2)))
static void mark(const char *format, ...)
{
	char text[128];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (write(marks, text, (size_t)n) != n)
		die("a mark of %d bytes", n);
}

static uint64_t used_bytes(int device)
{
	return opt.bytes ? opt.bytes : device_bytes(device);
}

/* --- the content of a sector --------------------------------------------- */

#define MAGIC 0x6e756d6265726564ULL

static void content(void *data, uint64_t sector, uint64_t version)
{
	uint64_t *word = data, key = mix(mix(sector) ^ version);

	word[0] = MAGIC;
	word[1] = sector;
	word[2] = version;
	for (unsigned int i = 3; i < WORDS; i++)
		word[i] = key + i;
}

/* The version that a sector holds, or -1 if it is not one of ours or torn. */
static int64_t version_of(const void *data, uint64_t sector)
{
	const uint64_t *word = data;
	uint64_t key = mix(mix(sector) ^ word[2]);

	if (word[0] != MAGIC || word[1] != sector || word[2] > UINT32_MAX)
		return -1;
	for (unsigned int i = 3; i < WORDS; i++)
		if (word[i] != key + i)
			return -1;
	return (int64_t)word[2];
}

static void contents(char *data, uint64_t sector, uint64_t nr, uint64_t version)
{
	for (uint64_t i = 0; i < nr; i++)
		content(data + i * SECTOR, sector + i, version);
}

/* --- writing ------------------------------------------------------------- */

static void fill(const char *path)
{
	uint64_t bytes;
	char *data = buffer(STRIPE * SECTOR);

	fd = open(path, O_WRONLY | O_CLOEXEC);	/* it may be a file in memory */
	if (fd < 0)
		die("%s", path);
	bytes = device_bytes(fd);
	for (uint64_t at = 0; at < bytes; at += STRIPE * SECTOR) {
		size_t n = bytes - at < STRIPE * SECTOR ? bytes - at : STRIPE * SECTOR;

		contents(data, at / SECTOR, n / SECTOR, 0);
		if (pwrite(fd, data, n, (off_t)at) != (ssize_t)n)
			die("%s: byte %llu", path, (unsigned long long)at);
	}
	if (fsync(fd) < 0)
		die("%s", path);
	free(data);
}

static void flush(void)
{
	unsigned long long id = ++flushes;

	mark("flush %llu", id);
	if (fsync(fd) < 0)
		errors++;
	else
		mark("flushed %llu", id);
}

/* A stripe of this thread, within the quarter of the device that is in turn. */
static uint64_t pick_stripe(unsigned int me, uint64_t *random)
{
	uint64_t first = 0, room = stripes / opt.threads;

	if (opt.window_ms) {
		uint64_t turn = (now_ns() - started) / 1000000 / opt.window_ms % 4;

		first = turn * room / 4;
		room = (turn + 1) * room / 4 - first;
	}
	return me + opt.threads * (first + next_random(random) % room);
}

static void write_run(unsigned int me, char *data, uint64_t *random)
{
	uint64_t stripe = pick_stripe(me, random);
	uint32_t nr = 1 + (uint32_t)(next_random(random) % MOST);
	uint32_t first = (uint32_t)(next_random(random) % (STRIPE - nr + 1));
	bool fua = next_random(random) % 100 < opt.fua;
	uint32_t version = ++versions[stripe];
	struct iovec iov = { data, nr * SECTOR };
	off_t at = (off_t)((stripe * STRIPE + first) * SECTOR);

	contents(data, stripe * STRIPE + first, nr, version);
	mark("write %llu %u %u %u", (unsigned long long)stripe, first, nr, version);
	if (pwritev2(fd, &iov, 1, at, fua ? RWF_DSYNC : 0) != nr * SECTOR) {
		errors++;
		return;
	}
	mark("%s %llu %u", fua ? "durable" : "written", (unsigned long long)stripe, version);
	written++;
}

static void *writer(void *arg)
{
	unsigned int me = (unsigned int)(uintptr_t)arg;
	uint64_t random = mix(opt.seed * 1000 + me);
	char *data = buffer(MOST * SECTOR);

	for (uint64_t i = 0; i < opt.count && now_ns() < deadline; i++) {
		if (next_random(&random) % 100 < opt.flush)
			flush();
		else
			write_run(me, data, &random);
		if (opt.pause_ms)
			usleep((useconds_t)(next_random(&random) % (2000 * opt.pause_ms)));
	}
	free(data);
	return NULL;
}

static int write_all(const char *path)
{
	pthread_t *thread = calloc(opt.threads, sizeof(*thread));

	fd = open_direct(path, O_RDWR);
	stripes = used_bytes(fd) / SECTOR / STRIPE;
	versions = calloc(stripes, sizeof(*versions));
	if (!thread || !versions)
		die("memory");
	if (stripes < 4 * opt.threads)
		give_up("%s: too small for %u threads", path, opt.threads);
	started = now_ns();
	deadline = opt.seconds ? started + opt.seconds * 1000000000 : UINT64_MAX;
	if (!opt.count)
		opt.count = UINT64_MAX;
	for (unsigned int i = 0; i < opt.threads; i++)
		if (pthread_create(&thread[i], NULL, writer, (void *)(uintptr_t)i))
			die("thread");
	for (unsigned int i = 0; i < opt.threads; i++)
		pthread_join(thread[i], NULL);
	free(thread);
	free(versions);
	printf("written=%llu flushes=%llu errors=%llu\n", (unsigned long long)written,
	       (unsigned long long)flushes, (unsigned long long)errors);
	return errors != 0;
}

/* --- what was promised --------------------------------------------------- */

/* One write; acknowledged and durable are event numbers, 0 if it never was. */
struct promise {
	uint64_t stripe;
	uint32_t first, nr, version;
	size_t acknowledged;
	bool durable;
	struct promise *older;		/* of the same stripe */
};

static struct promise *promise;
static struct promise **newest;		/* of each stripe */
static size_t nr_promises, oldest_open;
static uint64_t nr_newest;

static struct promise *newest_of(uint64_t stripe)
{
	return stripe < nr_newest ? newest[stripe] : NULL;
}

static void add_promise(struct promise *p)
{
	while (p->stripe >= nr_newest) {
		uint64_t more = nr_newest ? nr_newest * 2 : 64;

		newest = realloc(newest, more * sizeof(*newest));
		if (!newest)
			die("memory");
		memset(newest + nr_newest, 0, (more - nr_newest) * sizeof(*newest));
		nr_newest = more;
	}
	p->older = newest[p->stripe];
	newest[p->stripe] = p;
	nr_promises++;
}

static struct promise *find_promise(uint64_t stripe, uint32_t version)
{
	for (struct promise *p = newest_of(stripe); p; p = p->older)
		if (p->version == version)
			return p;
	give_up("version %u of stripe %llu is acknowledged and was not written",
		version, (unsigned long long)stripe);
}

static void flushed(size_t since)
{
	while (oldest_open < nr_promises && promise[oldest_open].durable)
		oldest_open++;
	for (size_t i = oldest_open; i < nr_promises; i++)
		if (promise[i].acknowledged && promise[i].acknowledged < since)
			promise[i].durable = true;
}

static void read_promises(size_t point)
{
	size_t *begun;			/* flushes, by id */

	if (!point || point > trace.nr)
		give_up("crash point %zu is not between 1 and %zu", point, trace.nr);
	begun = calloc(point + 1, sizeof(*begun));
	promise = calloc(point + 1, sizeof(*promise));
	if (!begun || !promise)
		die("memory");
	nr_promises = oldest_open = nr_newest = 0;
	for (size_t i = 0; i < point; i++) {
		struct promise *p = &promise[nr_promises];
		unsigned long long stripe;
		uint32_t version;
		size_t id;
		const char *text = trace.event[i].text;

		if (trace.event[i].type != EVENT_MARK)
			continue;
		if (sscanf(text, "write %llu %u %u %u", &stripe, &p->first, &p->nr,
			   &p->version) == 4) {
			p->stripe = stripe;
			add_promise(p);
		} else if (sscanf(text, "written %llu %u", &stripe, &version) == 2) {
			p = find_promise(stripe, version);
			p->acknowledged = i + 1;
			p->durable = !opt.cached;
		} else if (sscanf(text, "durable %llu %u", &stripe, &version) == 2) {
			find_promise(stripe, version)->durable = true;
		} else if (sscanf(text, "flush %zu", &id) == 1 && id <= point) {
			begun[id] = i + 1;
		} else if (sscanf(text, "flushed %zu", &id) == 1 && id <= point) {
			flushed(begun[id]);
		}
	}
	free(begun);
}

/* --- judging ------------------------------------------------------------- */

static bool was_written(uint64_t sector, int64_t version)
{
	if (!version)
		return true;
	for (struct promise *p = newest_of(sector / STRIPE); p; p = p->older)
		if (p->version == version)
			return sector % STRIPE >= p->first &&
			       sector % STRIPE < p->first + p->nr;
	return false;
}

/* For each sector the newest version that was promised. */
static uint32_t *promised_versions(uint64_t sectors)
{
	uint32_t *promised = calloc(sectors + 1, sizeof(*promised));

	if (!promised)
		die("memory");
	for (size_t i = 0; i < nr_promises; i++) {
		const struct promise *p = &promise[i];
		uint64_t first = p->stripe * STRIPE + p->first;

		if (!p->durable)
			continue;
		if (first + p->nr > sectors)
			give_up("there is no sector %llu",
				(unsigned long long)first + p->nr - 1);
		for (uint64_t s = first; s < first + p->nr; s++)
			if (promised[s] < p->version)
				promised[s] = p->version;
	}
	return promised;
}

struct findings { uint64_t kept, newer, lost, foreign; };

static void judge(struct findings *found, const char *data, uint64_t sector,
		  uint32_t promised)
{
	int64_t version = version_of(data, sector);

	if (version < 0 || !was_written(sector, version))
		found->foreign++;
	else if (version < promised)
		found->lost++;
	else if (version > promised)
		found->newer++;
	else
		found->kept += promised > 0;
	if (found->lost + found->foreign == 1)
		fprintf(stderr, "sector %llu: has version %lld, promised was %u\n",
			(unsigned long long)sector, (long long)version, promised);
}

static bool check_at(const char *path, size_t point)
{
	struct findings found = { 0 };
	uint64_t sectors;
	uint32_t *promised;
	char *data;

	read_promises(point);
	fd = open_direct(path, O_RDONLY);
	sectors = used_bytes(fd) / SECTOR;
	promised = promised_versions(sectors);
	data = buffer(sectors * SECTOR);
	if (pread(fd, data, sectors * SECTOR, 0) != (ssize_t)(sectors * SECTOR))
		die("%s", path);
	for (uint64_t s = 0; s < sectors; s++)
		judge(&found, data + s * SECTOR, s, promised[s]);
	close(fd);
	free(data);
	free(promised);
	free(promise);
	free(newest);
	newest = NULL;
	printf("sectors=%llu promised=%llu newer=%llu lost=%llu foreign=%llu\n",
	       (unsigned long long)sectors, (unsigned long long)found.kept,
	       (unsigned long long)found.newer, (unsigned long long)found.lost,
	       (unsigned long long)found.foreign);
	fflush(stdout);
	return !found.lost && !found.foreign;
}

static int check(const char *path, const char *trace_path, const char *point)
{
	bool good = true;
	char line[64];

	read_trace(&trace, trace_path);
	if (strcmp(point, "-"))
		return !check_at(path, number(point));
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		good &= check_at(path, number(line));
	}
	return !good;
}

static char *read_device(const char *path, uint64_t bytes)
{
	int device = open_direct(path, O_RDONLY);
	char *data = buffer(bytes);

	if (pread(device, data, bytes, 0) != (ssize_t)bytes)
		die("%s: %llu bytes", path, (unsigned long long)bytes);
	close(device);
	return data;
}

static int same(char **path, unsigned int nr)
{
	uint64_t different = 0, bytes;
	char *first;

	fd = open_direct(path[0], O_RDONLY);
	bytes = used_bytes(fd);
	first = read_device(path[0], bytes);
	for (unsigned int i = 1; i < nr; i++) {
		char *other = read_device(path[i], bytes);

		for (uint64_t at = 0; at < bytes; at += SECTOR)
			if (memcmp(first + at, other + at, SECTOR) && different++ < 5)
				fprintf(stderr, "sector %llu differs on %s and %s\n",
					(unsigned long long)(at / SECTOR), path[0],
					path[i]);
		free(other);
	}
	free(first);
	printf("sectors=%llu different=%llu\n", (unsigned long long)(bytes / SECTOR),
	       (unsigned long long)different);
	return different != 0;
}

/* --- files --------------------------------------------------------------- */

static uint32_t file_sectors(uint64_t id)
{
	return 1 + (uint32_t)(mix(id) % FILE_SECTORS);
}

static void file_name(char *name, const char *dir, uint64_t id, bool renamed)
{
	snprintf(name, 256, "%s/%s%llu", dir, renamed ? "renamed" : "file",
		 (unsigned long long)id);
}

static void must(int result, const char *name)
{
	if (result < 0)
		die("%s", name);
}

static void sync_dir(const char *dir)
{
	int d = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	must(d, dir);
	must(fsync(d), dir);
	close(d);
}

/* Writes and syncs a file; every third is renamed, every fourth removes an older. */
static void make_file(const char *dir, uint64_t id, char *data)
{
	size_t bytes = file_sectors(id) * SECTOR;
	char name[256], other[256];
	int f;

	file_name(name, dir, id, false);
	f = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	must(f, name);
	contents(data, 0, file_sectors(id), id);
	if (write(f, data, bytes) != (ssize_t)bytes)
		die("%s", name);
	must(fsync(f), name);
	close(f);
	if (id % 3 == 0) {
		file_name(other, dir, id, true);
		must(rename(name, other), name);
		sync_dir(dir);
	}
	mark("synced %llu", (unsigned long long)id);
	if (id % 4 == 0 && id > 8) {
		id -= 7;
		file_name(name, dir, id, id % 3 == 0);
		mark("removes %llu", (unsigned long long)id);
		must(unlink(name), name);
	}
}

static int make_files(const char *dir)
{
	char *data = buffer(FILE_SECTORS * SECTOR);

	for (uint64_t id = 1; id <= opt.count; id++)
		make_file(dir, id, data);
	free(data);
	printf("files=%llu\n", (unsigned long long)opt.count);
	return 0;
}

static bool file_is_there(const char *dir, uint64_t id)
{
	char name[256], data[FILE_SECTORS * SECTOR];
	size_t bytes = file_sectors(id) * SECTOR;
	bool good;
	int f;

	file_name(name, dir, id, id % 3 == 0);
	f = open(name, O_RDONLY | O_CLOEXEC);
	if (f < 0) {
		fprintf(stderr, "%s: %s\n", name, strerror(errno));
		return false;
	}
	good = read(f, data, bytes) == (ssize_t)bytes;
	for (uint32_t i = 0; good && i < file_sectors(id); i++)
		good = version_of(data + i * SECTOR, i) == (int64_t)id;
	if (!good)
		fprintf(stderr, "%s: has not what was written\n", name);
	close(f);
	return good;
}

static int check_files(const char *dir, const char *trace_path, const char *text)
{
	uint64_t synced = 0, lost = 0, nr = 0;
	size_t point = number(text);
	bool *expected;

	read_trace(&trace, trace_path);
	expected = calloc(trace.nr + 1, sizeof(*expected));
	if (!expected)
		die("memory");
	for (size_t i = 0; i < point && i < trace.nr; i++) {
		unsigned long long id;

		if (trace.event[i].type != EVENT_MARK)
			continue;
		if (sscanf(trace.event[i].text, "synced %llu", &id) == 1 && id <= trace.nr) {
			expected[id] = true;
			nr = id;
		} else if (sscanf(trace.event[i].text, "removes %llu", &id) == 1 &&
			   id <= trace.nr) {
			expected[id] = false;
		}
	}
	for (uint64_t id = 1; id <= nr; id++) {
		synced += expected[id];
		lost += expected[id] && !file_is_there(dir, id);
	}
	free(expected);
	printf("files=%llu synced=%llu lost=%llu\n", (unsigned long long)nr,
	       (unsigned long long)synced, (unsigned long long)lost);
	return lost != 0;
}

/* --- the command line ---------------------------------------------------- */

static bool option(const char *name, const char *value)
{
	static const struct {
		const char *name;
		uint64_t *wide;
		unsigned int *narrow;
	} all[] = {
		{ "--threads", NULL, &opt.threads },
		{ "--flush", NULL, &opt.flush },
		{ "--fua", NULL, &opt.fua },
		{ "--count", &opt.count, NULL },
		{ "--seconds", &opt.seconds, NULL },
		{ "--pause", &opt.pause_ms, NULL },
		{ "--window", &opt.window_ms, NULL },
		{ "--seed", &opt.seed, NULL },
		{ "--bytes", &opt.bytes, NULL },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		if (strcmp(name, all[i].name))
			continue;
		if (all[i].wide)
			*all[i].wide = number(value);
		else
			*all[i].narrow = (unsigned int)number(value);
		return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	char *word[8] = { NULL };
	unsigned int nr = 0;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--volatile"))
			opt.cached = true;
		else if ((argv[i][0] != '-' || !argv[i][1]) && nr < 8)
			word[nr++] = argv[i];
		else if (i + 1 < argc && option(argv[i], argv[i + 1]))
			i++;
		else
			give_up("%s: unknown option, or no value", argv[i]);
	}
	if (!opt.threads)
		give_up("--threads is at least 1");
	if (nr == 2 && !strcmp(word[0], "fill")) {
		fill(word[1]);
		return 0;
	}
	if (nr == 4 && !strcmp(word[0], "check"))
		return check(word[1], word[2], word[3]);
	if (nr == 4 && !strcmp(word[0], "checkfiles"))
		return check_files(word[1], word[2], word[3]);
	if (nr > 2 && !strcmp(word[0], "same"))
		return same(word + 1, nr - 1);
	if (nr == 3 && (!strcmp(word[0], "write") || !strcmp(word[0], "files"))) {
		marks = open(word[2], O_WRONLY | O_CLOEXEC);
		if (marks < 0)
			die("%s", word[2]);
		return word[0][0] == 'w' ? write_all(word[1]) : make_files(word[1]);
	}
	give_up("usage: numbered fill DEV | write DEV MARKS [OPTION...] |\n"
		"       check DEV TRACE POINT|- [--volatile] [--bytes N] | same DEV DEV... [--bytes N] |\n"
		"       files DIR MARKS --count N | checkfiles DIR TRACE POINT");
}
