// SPDX-License-Identifier: GPL-2.0
/*
 * load - random direct I/O by several threads, and what came of it in one line.
 *
 *   load fill DEV                     write every sector's stamp (see io.h)
 *   load check DEV                    read all of it back and compare
 *   load read|write|mixed DEV [--threads N] [--bs BYTES] [--count N]
 *        [--seconds S] [--verify] [--seed N] [--together]
 *
 * Each thread does one synchronous request after another; --count is the number
 * for each thread, and without it and --seconds the load goes on until SIGTERM.
 * With --together no thread begins a request before all have ended theirs; it
 * goes with --count.  Writes carry the stamps too, so --verify may be given with all three.
 *
 * A stamp that is written once more hides a write that was lost.  So with LOAD_STATE=FILE in the
 * environment each write of a block (of 4 KiB) carries a version, and FILE knows the newest
 * that was sent and the newest that was acknowledged: what is read must be in between, now
 * and in whatever runs later with that file.  A block is written by one thread only; there may
 * be one program that writes, and others that read meanwhile.  fill begins with version 0, and
 * so does a file that is not there.
 * Prints "reads=N writes=N errors=N errno=E wrong=N max_us=N"; errors are counted and
 * not fatal: the tests decide what they expect.  Exit status 0, 1 if data was
 * wrong, 2 if it could not run.
 */
#include "io.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

#define BLOCK 4096
#define MOST (1 << 20)		/* bytes of a request with versions */

struct options {
	const char *device;
	bool reads, writes, verify, together;
	unsigned int threads;
	size_t bs;
	uint64_t count, seconds, seed;
};

static struct options opt = { .threads = 4, .bs = 4096, .seed = 1 };
/* Of each block. */
struct versions {
	_Atomic uint64_t sent, acknowledged;
};

static struct versions *versions;	/* NULL without LOAD_STATE */
static int fd;
static uint64_t blocks, deadline;
static pthread_barrier_t barrier;
static atomic_bool stop;
static _Atomic uint64_t reads, writes, errors, wrong, max_ns;
static atomic_int first_error;

static void on_signal(int number)
{
	(void)number;
	stop = true;
}

static void note_wrong(int64_t sector)
{
	if (sector >= 0 && wrong++ == 0)
		fprintf(stderr, "sector %lld is wrong\n", (long long)sector);
}

static void note_time(uint64_t ns)
{
	uint64_t old = max_ns;

	while (ns > old && !atomic_compare_exchange_weak(&max_ns, &old, ns))
		;
}

static void map_versions(bool forget)
{
	const char *path = getenv("LOAD_STATE");
	size_t bytes = (device_bytes(fd) + BLOCK - 1) / BLOCK * sizeof(*versions);
	int state;

	if (!path || !*path)
		return;
	state = open(path, O_RDWR | O_CREAT | O_CLOEXEC | (forget ? O_TRUNC : 0), 0600);
	if (state < 0 || ftruncate(state, (off_t)bytes))
		die("%s", path);
	versions = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, state, 0);
	if (versions == MAP_FAILED)
		die("%s", path);
	close(state);
}

static uint64_t acknowledged(uint64_t at)
{
	return versions ? versions[at / BLOCK].acknowledged : 0;
}

static uint64_t sent(uint64_t at)
{
	return versions ? versions[at / BLOCK].sent : 0;
}

static ssize_t write_versions(char *data, uint64_t at)
{
	ssize_t n;

	for (size_t i = 0; i < opt.bs; i += BLOCK) {
		uint64_t version = ++versions[(at + i) / BLOCK].sent;

		stamp_version(data + i, (at + i) / SECTOR, BLOCK, version);
	}
	n = pwrite(fd, data, opt.bs, (off_t)at);
	if (n != (ssize_t)opt.bs)
		return n;
	for (size_t i = 0; i < opt.bs; i += BLOCK) {
		struct versions *v = &versions[(at + i) / BLOCK];

		v->acknowledged = v->sent;
	}
	return n;
}

static ssize_t write_stamps(char *data, uint64_t at)
{
	if (versions)
		return write_versions(data, at);
	stamp(data, at / SECTOR, opt.bs);
	return pwrite(fd, data, opt.bs, (off_t)at);
}

/* What may not be older when it is read. */
static void note_acknowledged(uint64_t at, uint64_t *low)
{
	for (size_t i = 0; versions && i < opt.bs / BLOCK; i++)
		low[i] = acknowledged(at + i * BLOCK);
}

static void verify(const char *data, uint64_t at, const uint64_t *low)
{
	if (!versions)
		note_wrong(stamp_wrong(data, at / SECTOR, opt.bs));
	for (size_t i = 0; versions && i < opt.bs / BLOCK; i++)
		note_wrong(stamp_outside(data + i * BLOCK, at / SECTOR + i * (BLOCK / SECTOR),
					 BLOCK, low[i], sent(at + i * BLOCK)));
}

static void one_request(unsigned int me, char *data, uint64_t *random)
{
	uint64_t block = next_random(random) % blocks, at, low[MOST / BLOCK];
	bool write = opt.writes && (!opt.reads || next_random(random) % 4 == 0);
	uint64_t begin = now_ns();
	ssize_t n;

	if (write && versions)	/* one that is this thread's */
		block = block / opt.threads * opt.threads + me;
	at = block % blocks * opt.bs;
	note_acknowledged(at, low);
	if (write)
		n = write_stamps(data, at);
	else
		n = pread(fd, data, opt.bs, (off_t)at);
	note_time(now_ns() - begin);
	if (write)
		writes++;
	else
		reads++;
	if (n != (ssize_t)opt.bs) {
		int none = 0;

		atomic_compare_exchange_strong(&first_error, &none, n < 0 ? errno : EIO);
		errors++;
	} else if (!write && opt.verify) {
		verify(data, at, low);
	}
}

static void *worker(void *arg)
{
	uint64_t random = mix(opt.seed * 1000 + (uintptr_t)arg);
	char *data = buffer(opt.bs);

	for (uint64_t i = 0; !stop && (!opt.count || i < opt.count); i++) {
		if (opt.together)
			pthread_barrier_wait(&barrier);
		one_request((unsigned int)(uintptr_t)arg, data, &random);
		if (deadline && now_ns() > deadline)
			break;
	}
	free(data);
	return NULL;
}

static void run(void)
{
	pthread_t *thread = calloc(opt.threads, sizeof(*thread));

	if (!thread)
		die("threads");
	blocks = device_bytes(fd) / opt.bs;
	if (versions)	/* the same of them for each thread */
		blocks -= blocks % opt.threads;
	if (!blocks) {
		fprintf(stderr, "%s is smaller than one block for each\n", opt.device);
		exit(2);
	}
	pthread_barrier_init(&barrier, NULL, opt.threads);
	if (opt.seconds)
		deadline = now_ns() + opt.seconds * 1000000000;
	for (uintptr_t i = 0; i < opt.threads; i++)
		if (pthread_create(&thread[i], NULL, worker, (void *)i))
			die("thread");
	for (unsigned int i = 0; i < opt.threads; i++)
		pthread_join(thread[i], NULL);
	free(thread);
}

static void check_chunk(const char *data, uint64_t at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += BLOCK) {
		size_t n = bytes - i < BLOCK ? bytes - i : BLOCK;

		note_wrong(stamp_outside(data + i, (at + i) / SECTOR, n,
					 acknowledged(at + i), sent(at + i)));
	}
}

/* Nobody writes meanwhile. */
static void check(void)
{
	const size_t chunk = 256 << 10;
	uint64_t bytes = device_bytes(fd);
	char *data = buffer(chunk);

	for (uint64_t at = 0; at < bytes; at += chunk) {
		size_t n = bytes - at < chunk ? bytes - at : chunk;
		if (pread(fd, data, n, (off_t)at) != (ssize_t)n)
			die("read at byte %llu", (unsigned long long)at);
		reads++;
		check_chunk(data, at, n);
	}
	free(data);
}

static void parse(int argc, char **argv)
{
	for (int i = 3; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--verify")) {
			opt.verify = true;
			continue;
		}
		if (!strcmp(argv[i], "--together")) {
			opt.together = true;
			continue;
		}
		if (!strcmp(argv[i], "--threads"))
			opt.threads = (unsigned int)number(value);
		else if (!strcmp(argv[i], "--bs"))
			opt.bs = number(value);
		else if (!strcmp(argv[i], "--count"))
			opt.count = number(value);
		else if (!strcmp(argv[i], "--seconds"))
			opt.seconds = number(value);
		else if (!strcmp(argv[i], "--seed"))
			opt.seed = number(value);
		else {
			fprintf(stderr, "%s: unknown option\n", argv[i]);
			exit(2);
		}
		i++;
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[1] : "";
	bool fill = !strcmp(mode, "fill"), look = !strcmp(mode, "check");

	opt.reads = !strcmp(mode, "read") || !strcmp(mode, "mixed");
	opt.writes = !strcmp(mode, "write") || !strcmp(mode, "mixed");
	if (!fill && !look && !opt.reads && !opt.writes) {
		fprintf(stderr, "usage: load fill|check|read|write|mixed DEV [option...]\n");
		return 2;
	}
	parse(argc, argv);
	be_nice();
	if (opt.together && (!opt.count || opt.seconds)) {
		fprintf(stderr, "--together needs --count, and no --seconds\n");
		return 2;
	}
	opt.device = argv[2];
	if (!opt.together) {	/* else some would wait for others for ever */
		signal(SIGTERM, on_signal);
		signal(SIGINT, on_signal);
	}
	fd = open_direct(opt.device, fill || opt.writes ? O_RDWR : O_RDONLY);
	map_versions(fill);
	if (versions && (!opt.bs || opt.bs % BLOCK || opt.bs > MOST)) {
		fprintf(stderr, "LOAD_STATE needs multiples of %d, at most %d\n", BLOCK, MOST);
		return 2;
	}
	if (fill)
		fill_device(fd);
	else if (look)
		check();
	else
		run();
	printf("reads=%llu writes=%llu errors=%llu errno=%s wrong=%llu max_us=%llu\n",
	       (unsigned long long)reads, (unsigned long long)writes,
	       (unsigned long long)errors, first_error ? strerrorname_np(first_error) : "0",
	       (unsigned long long)wrong, (unsigned long long)(max_ns / 1000));
	close(fd);
	return wrong ? 1 : 0;
}
