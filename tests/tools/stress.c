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
 * where zeroing and discarding are versions that read as zeros. After a discard, and
 * until the next write, any older version is legal as well, since what a discard
 * leaves is not defined. A change that failed raises the upper bound alone.
 * Words are checked one by one, and carry a hash of version, block and seed, so that
 * what belongs to another block, or was never written, is known as such. A sector
 * torn within a word is legal only while a write of it was in flight.
 *
 * At the end each block is read twice more with nothing in flight. On SIGTERM the
 * end comes at once. --read-from reads another device than the one that is
 * written: with a leg that lacks what was written the run must fail.
 *
 * Prints one line every ten seconds to stderr, and at the end "reads=N writes=N zeroed=N
 * discards=N flushes=N again=N overlapped=N stale=N invented=N errors=N"; exit status
 * 1 unless stale, invented and (without --allow-errors 1) errors are 0.
 */
#include "io.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
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
static bool allow_errors;
static int write_fd, read_fd;
static atomic_bool stop;
static _Atomic uint64_t reads, writes, zeroed, discards, flushes, again, overlapped;
static _Atomic uint64_t stale, invented, errors;

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
			if (low == high && invented++ < 10)
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

/* A read that would have to wait is tried again without the flag. */
static bool read_sectors(void *data, uint64_t sector, unsigned int n, int flags)
{
	struct iovec v = { data, (size_t)n * SECTOR };
	ssize_t got = preadv2(read_fd, &v, 1, (off_t)sector * SECTOR, flags);

	if (got < 0 && (errno == EAGAIN || errno == EOPNOTSUPP) && flags) {
		again++;
		got = preadv2(read_fd, &v, 1, (off_t)sector * SECTOR, 0);
	}
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
	got = pwritev2(write_fd, &v, 1, (off_t)at * BLOCK, flags);
	if (got < 0 && (errno == EAGAIN || errno == EOPNOTSUPP) && flags) {
		again++;
		got = pwritev2(write_fd, &v, 1, (off_t)at * BLOCK, 0);
	}
	return got == (ssize_t)v.iov_len;
}

static bool clear_blocks(uint64_t at, unsigned int n, bool discard)
{
	uint64_t range[2] = { at * BLOCK, (uint64_t)n * BLOCK };

	for (unsigned int i = 0; i < n; i++) {
		block[at + i].zero = ++block[at + i].high;
		if (discard)
			block[at + i].low = 0;
	}
	return !ioctl(write_fd, discard ? BLKDISCARD : BLKZEROOUT, range);
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
		if (clear_blocks(at, n, false)) {
			acknowledge(at, n);
			zeroed++;
		} else {
			failed("zeroing", at, n);
		}
	} else if (clear_blocks(at, n, true)) {
		discards++;
	} else if (errno != EOPNOTSUPP) {
		failed("discard", at, n);
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

static void *work(void *arg)
{
	uint64_t random = mix(seed ^ (uintptr_t)arg << 32);
	uint64_t *data = buffer((MOST + 1) * BLOCK);

	while (!stop && now_ns() < deadline)
		one(&random, data);
	free(data);
	return NULL;
}

static void report(FILE *to)
{
	fprintf(to, "reads=%llu writes=%llu zeroed=%llu discards=%llu flushes=%llu again=%llu overlapped=%llu stale=%llu invented=%llu errors=%llu\n",
		(unsigned long long)reads, (unsigned long long)writes,
		(unsigned long long)zeroed, (unsigned long long)discards,
		(unsigned long long)flushes, (unsigned long long)again,
		(unsigned long long)overlapped, (unsigned long long)stale,
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
	run();
	verify();
	report(stdout);
	return stale || invented || (errors && !allow_errors);
}
