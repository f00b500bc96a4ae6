// SPDX-License-Identifier: GPL-2.0
/*
 * stress - many threads read, write, flush, discard and zero a device, and know
 * of each block what a read may return.
 *
 *   stress DEV [--threads N] [--blocks N] [--seconds S] [--seed N]
 *          [--allow-errors 0|1] [--read-from DEV]
 *
 * The oracle: blocks of 4 KiB, each changed by one thread at a time (its owner),
 * whose versions only grow. A read of any sectors, at any time, may return of a block
 *
 *	every version from the newest that was acknowledged before the read was sent
 *	to the newest that had been sent when the read returned,
 *
 * where zeroing and discarding are versions that read as zeros. A discard is never
 * acknowledged: what it leaves is not defined, but on the disks of tests that is what the
 * block held before, or zeros. A change that failed raises the upper bound alone.
 * Words are checked one by one, and carry a hash of version, block and seed, so that
 * what belongs to another block, or was never written, is known as such. A word
 * may be torn while writes of it are in flight, or after one that failed: then
 * each of its bytes must be that of a legal version.
 *
 * Threads have I/O priorities of different classes. A device that refuses the first
 * discard gets no other. What ends in ENOMEM is done again: the kernel needs memory
 * for direct I/O before any device sees it.
 *
 * At the end each block is read twice more with nothing in flight, and what a
 * discard was the last to change is written, so that legs can be compared: a discard
 * that failed, which is no error here, leaves them different. On SIGTERM the end
 * comes at once. --read-from reads another device than the one that is
 * written: with a leg that lacks what was written the run must fail.
 *
 * Prints one line every ten seconds to stderr, and at the end "reads=N writes=N zeroed=N
 * unmapped=N discards=N refused=N flushes=N again=N no_memory=N overlapped=N torn=N stale=N
 * invented=N errors=N", where unmapped are those zeroed by a command of the device,
 * refused are discards that failed, and torn are words that were rightly so; exit
 * status 1 unless stale, invented and (without --allow-errors 1) errors are 0.
 */
#include "io.h"

#include <linux/ioprio.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define BLOCK 4096
#define SECTORS (BLOCK / SECTOR)
#define MOST 64			/* blocks of one request */

struct block {
	_Atomic uint32_t low;	/* acknowledged: what a read sent now must see */
	_Atomic uint32_t high;	/* sent */
	_Atomic uint32_t zero;	/* the newest version that reads as zeros */
	atomic_bool owned;
};

static struct block *block;
static uint64_t blocks, seconds = 10, seed = 1, begun, deadline;
static unsigned int threads = 24;
static bool allow_errors, discards_refused;
static int write_fd, read_fd;
static atomic_bool stop;
static _Atomic uint64_t reads, writes, zeroed, unmapped, discards, refused, flushes;
static _Atomic uint64_t again, overlapped, no_memory, torn, stale, invented, errors;

static uint64_t encode(uint64_t at, uint32_t version)
{
	return version | mix(mix(seed ^ at << 20) ^ version) << 32;
}

/* Owns the blocks, if nobody does. */
static bool own(uint64_t at, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (atomic_exchange(&block[at + i].owned, true)) {
			while (i--)
				block[at + i].owned = false;
			return false;
		}
	return true;
}

static void disown(uint64_t at, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		block[at + i].owned = false;
}

static void complain(const char *what, uint64_t at, uint64_t word, uint32_t low,
		     uint32_t high)
{
	fprintf(stderr, "stress: %s: block %llu reads %016llx, may be %u to %u, last zero %u\n",
		what, (unsigned long long)at, (unsigned long long)word, low, high,
		block[at].zero);
}

static void failed(const char *what, uint64_t at, unsigned int n)
{
	int error = errno;

	if (errors++ < 10 && !allow_errors)
		fprintf(stderr, "stress: %s of block %llu + %u: %s\n", what,
			(unsigned long long)at, n, strerror(error));
}

/* Whether each byte of a word is that of a version from @low to @high. */
static bool is_torn(uint64_t word, uint64_t at, uint32_t low, uint32_t high)
{
	uint64_t good = 0;

	for (uint64_t version = low; version <= high; version++) {
		uint64_t differs = word ^ encode(at, (uint32_t)version);

		for (unsigned int i = 0; i < 64; i += 8)
			if (!(differs >> i & 0xff))
				good |= 0xffULL << i;
	}
	for (unsigned int i = 0; i < 64; i += 8)
		if (block[at].zero >= low && !(word >> i & 0xff))
			good |= 0xffULL << i;
	return !~good;
}

/* The words of @n sectors of a block, read after version @low was acknowledged. */
static void check_block(const uint64_t *word, unsigned int n, uint64_t at, uint32_t low)
{
	uint32_t high = block[at].high;

	for (unsigned int i = 0; i < n * WORDS; i++) {
		uint32_t version = (uint32_t)word[i];

		if (!word[i]) {
			if (block[at].zero < low && stale++ < 10)
				complain("stale zeros", at, word[i], low, high);
		} else if (encode(at, version) != word[i]) {
			if (low < high && is_torn(word[i], at, low, high))
				torn++;
			else if (invented++ < 10)
				complain("invented", at, word[i], low, high);
		} else if (version < low) {
			if (stale++ < 10)
				complain("stale", at, word[i], low, high);
		} else if (version > high) {
			if (invented++ < 10)
				complain("from the future", at, word[i], low, high);
		}
	}
	if (low != high)
		overlapped++;
}

/* What would have to wait is tried again without the flag. */
static bool try_again(int *flags)
{
	if (errno == ENOMEM) {
		no_memory++;
		return true;
	}
	if (!*flags || (errno != EAGAIN && errno != EOPNOTSUPP))
		return false;
	again++;
	*flags = 0;
	return true;
}

static bool read_sectors(void *data, uint64_t sector, unsigned int n, int flags)
{
	struct iovec v = { data, (size_t)n * SECTOR };
	ssize_t got;

	do
		got = preadv2(read_fd, &v, 1, (off_t)sector * SECTOR, flags);
	while (got < 0 && try_again(&flags));
	return got == (ssize_t)v.iov_len;
}

static void check_read(uint64_t *data, uint64_t sector, unsigned int n, int flags)
{
	uint64_t first = sector / SECTORS, last = (sector + n - 1) / SECTORS;
	uint32_t low[MOST + 1];

	for (uint64_t at = first; at <= last; at++)
		low[at - first] = block[at].low;
	if (!read_sectors(data, sector, n, flags)) {
		failed("read", first, (unsigned int)(last - first + 1));
		return;
	}
	for (uint64_t at = first; at <= last; at++) {
		uint64_t from = at * SECTORS > sector ? at * SECTORS : sector;
		uint64_t to = (at + 1) * SECTORS < sector + n ? (at + 1) * SECTORS : sector + n;

		check_block(data + (from - sector) * WORDS, (unsigned int)(to - from), at,
			    low[at - first]);
	}
	reads++;
}

static bool write_blocks(uint64_t *data, uint64_t at, unsigned int n, int flags)
{
	struct iovec v = { data, (size_t)n * BLOCK };
	ssize_t got;

	for (unsigned int i = 0; i < n; i++) {
		uint32_t version = block[at + i].high + 1;

		for (unsigned int j = 0; j < BLOCK / 8; j++)
			data[i * (BLOCK / 8) + j] = encode(at + i, version);
		block[at + i].high = version;
	}
	do
		got = pwritev2(write_fd, &v, 1, (off_t)at * BLOCK, flags);
	while (got < 0 && try_again(&flags));
	return got == (ssize_t)v.iov_len;
}

enum clear { DISCARD, ZERO, UNMAP };

static int clear(uint64_t *range, enum clear how)
{
	if (how == UNMAP)
		return fallocate(write_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				 (off_t)range[0], (off_t)range[1]);
	return ioctl(write_fd, how == DISCARD ? BLKDISCARD : BLKZEROOUT, range);
}

/* The kernel zeroes by writes where a device has no command for it, but unmaps by none. */
static bool clear_blocks(uint64_t at, unsigned int n, enum clear how)
{
	uint64_t range[2] = { at * BLOCK, (uint64_t)n * BLOCK };
	int error, flags = 0;

	for (unsigned int i = 0; i < n; i++)
		block[at + i].zero = ++block[at + i].high;
	do
		error = clear(range, how);
	while (error && try_again(&flags));
	if (error && how == UNMAP && errno == EOPNOTSUPP)
		return clear_blocks(at, n, ZERO);
	unmapped += !error && how == UNMAP;
	return !error;
}

/* What was sent last to blocks that are owned has been acknowledged. */
static void acknowledge(uint64_t at, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		block[at + i].low = block[at + i].high;
}

static void change(uint64_t *data, uint64_t at, unsigned int n, uint64_t kind, int flags)
{
	if (!own(at, n))
		return;
	if (kind < 92) {
		if (write_blocks(data, at, n, flags)) {
			acknowledge(at, n);
			writes++;
		} else {
			failed("write", at, n);
		}
	} else if (kind < 96) {
		if (clear_blocks(at, n, kind < 94 ? ZERO : UNMAP)) {
			acknowledge(at, n);
			zeroed++;
		} else {
			failed("zeroing", at, n);
		}
	} else if (discards_refused) {
		/* nothing */
	} else if (clear_blocks(at, n, DISCARD)) {
		discards++;
	} else {
		refused++;
	}
	disown(at, n);
}

static uint64_t pick(uint64_t *random, unsigned int n)
{
	uint64_t r = next_random(random), room = blocks - n + 1;

	/* Half of all goes to few blocks, so that requests meet. */
	if (r & 1 && room > 64)
		room = 64;
	return (r >> 1) % room;
}

static unsigned int how_many(uint64_t *random)
{
	uint64_t r = next_random(random);
	unsigned int n = r & 7 ? 1 + (r >> 3) % 4 : 1 + (r >> 3) % MOST;

	return n < blocks ? n : (unsigned int)blocks;
}

static void one(uint64_t *random, uint64_t *data)
{
	uint64_t kind = next_random(random) % 200, r = next_random(random);
	unsigned int n = how_many(random);
	uint64_t at = pick(random, n);

	if (kind < 100) {
		uint64_t sector = at * SECTORS + (r & 1 ? r / 2 % SECTORS : 0);
		unsigned int count = n * SECTORS - (unsigned int)(sector - at * SECTORS);

		if (r & 16)
			count = 1 + (unsigned int)(r / 32 % count);
		check_read(data, sector, count,
			   r >> 40 & 7 ? 0 : r >> 43 & 1 ? RWF_NOWAIT : RWF_HIPRI);
	} else if (kind < 199) {
		change(data, at, n, kind - 100,
		       r & 7 ? 0 : r & 8 ? RWF_DSYNC : r & 16 ? RWF_NOWAIT : RWF_SYNC);
	} else if (fdatasync(write_fd)) {
		failed("flush", 0, 0);
	} else {
		flushes++;
	}
}

/* The classes in turn: none, real time, best effort, idle. */
static void set_priority(uintptr_t thread)
{
	int class = (int)(thread % 4);

	if (class && syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0,
			     IOPRIO_PRIO_VALUE(class, 4)))
		die("I/O priority");
}

static void *work(void *arg)
{
	uint64_t random = mix(seed ^ (uintptr_t)arg << 32);
	uint64_t *data = buffer((MOST + 1) * BLOCK);

	/* Where allocations are to fail, the pages of this are not to be among them. */
	memset(data, 0, (MOST + 1) * BLOCK);
	set_priority((uintptr_t)arg);
	while (!stop && now_ns() < deadline)
		one(&random, data);
	free(data);
	return NULL;
}

static void report(FILE *to)
{
	fprintf(to, "reads=%llu writes=%llu zeroed=%llu unmapped=%llu discards=%llu refused=%llu flushes=%llu again=%llu no_memory=%llu overlapped=%llu torn=%llu stale=%llu invented=%llu errors=%llu\n",
		(unsigned long long)reads, (unsigned long long)writes,
		(unsigned long long)zeroed, (unsigned long long)unmapped,
		(unsigned long long)discards, (unsigned long long)refused,
		(unsigned long long)flushes, (unsigned long long)again,
		(unsigned long long)no_memory, (unsigned long long)overlapped,
		(unsigned long long)torn, (unsigned long long)stale,
		(unsigned long long)invented, (unsigned long long)errors);
}

static void *progress(void *arg)
{
	(void)arg;
	for (unsigned int i = 1; !stop; i++) {
		sleep(1);
		if (i % 10)
			continue;
		fprintf(stderr, "stress: %llu s: ",
			(unsigned long long)((now_ns() - begun) / 1000000000));
		report(stderr);
	}
	return NULL;
}

static void on_signal(int signal)
{
	(void)signal;
	stop = true;
}

static void parse(int argc, char **argv)
{
	for (int i = 2; i < argc; i += 2) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--threads"))
			threads = (unsigned int)number(value);
		else if (!strcmp(argv[i], "--blocks"))
			blocks = number(value);
		else if (!strcmp(argv[i], "--seconds"))
			seconds = number(value);
		else if (!strcmp(argv[i], "--seed"))
			seed = number(value);
		else if (!strcmp(argv[i], "--allow-errors"))
			allow_errors = number(value);
		else if (!strcmp(argv[i], "--read-from"))
			read_fd = open_direct(value, O_RDONLY);
		else {
			fprintf(stderr, "%s: unknown option\n", argv[i]);
			exit(2);
		}
	}
	if (!threads) {
		fprintf(stderr, "--threads is to be at least 1\n");
		exit(2);
	}
}

/* Every block holds version 1 before anything else is done. */
static void fill(void)
{
	uint64_t *data = buffer(MOST * BLOCK);

	for (uint64_t at = 0; at < blocks; at += MOST) {
		unsigned int n = blocks - at < MOST ? (unsigned int)(blocks - at) : MOST;

		if (!write_blocks(data, at, n, 0))
			die("first write of block %llu", (unsigned long long)at);
		acknowledge(at, n);
	}
	free(data);
}

/* Only what nobody else changes: before the threads begin. */
static void try_discard(void)
{
	if (clear_blocks(0, 1, DISCARD)) {
		discards++;
		return;
	}
	discards_refused = errno == EOPNOTSUPP;
	refused++;
}

static void run(void)
{
	pthread_t *thread = calloc(threads + 1, sizeof(*thread));

	if (!thread)
		die("threads");
	begun = now_ns();
	deadline = begun + seconds * 1000000000;
	pthread_create(&thread[threads], NULL, progress, NULL);
	for (uintptr_t i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, work, (void *)(i + 1)))
			die("thread");
	for (unsigned int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	stop = true;
	pthread_join(thread[threads], NULL);
	free(thread);
}

static void verify(void)
{
	uint64_t *data = buffer((MOST + 1) * BLOCK);

	for (unsigned int round = 0; round < 2; round++)
		for (uint64_t at = 0; at < blocks; at += MOST) {
			uint64_t n = blocks - at < MOST ? blocks - at : MOST;

			check_read(data, at * SECTORS, (unsigned int)n * SECTORS, 0);
		}
	free(data);
}

/* What a discard was the last to change may rightly differ on legs until then. */
static void write_discarded(void)
{
	uint64_t *data = buffer(BLOCK);

	for (uint64_t at = 0; at < blocks; at++) {
		if (block[at].low == block[at].high || block[at].zero != block[at].high)
			continue;
		if (write_blocks(data, at, 1, 0))
			acknowledge(at, 1);
		else
			failed("write", at, 1);
	}
	free(data);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };

	if (argc < 2) {
		fprintf(stderr, "usage: stress DEV [option...]\n");
		return 2;
	}
	parse(argc, argv);
	be_nice();
	write_fd = open_direct(argv[1], O_RDWR);
	if (!read_fd)
		read_fd = open_direct(argv[1], O_RDONLY);
	if (!blocks || blocks > device_bytes(write_fd) / BLOCK)
		blocks = device_bytes(write_fd) / BLOCK;
	block = calloc(blocks, sizeof(*block));
	if (!blocks || !block)
		die("%llu blocks", (unsigned long long)blocks);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	fill();
	try_discard();
	run();
	verify();
	write_discarded();
	report(stdout);
	return stale || invented || (errors && !allow_errors);
}
