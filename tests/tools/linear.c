// SPDX-License-Identifier: GPL-2.0
/*
 * linear - does a read that begins after a write was acknowledged see it?
 *
 *   linear DEV [--first SECTOR] [--sectors N] [--writers N] [--readers N]
 *          [--seconds S] [--ops N] [--read-from DEV]
 *
 * Few sectors, many overlapping requests.  Each sector has one writer, whose
 * values only grow, so the newest value acknowledged before a read was sent is
 * a lower bound of what the read may return, and the newest value sent when it
 * has returned an upper bound.  Values between the two are legal in any order:
 * while a write is in flight a read may return either version.  A sector's
 * words are checked one by one, since nothing promises that a sector is written
 * at one instant.  Not even a word is (memory may be copied byte by byte), so each
 * word carries a hash of its value: one that does not fit is torn, which is
 * legal only if a write was in flight.
 *
 * --ops ends the run after that many reads in all, --seconds after that time,
 * whichever is first.  --read-from reads another device than the one that is
 * written: with a leg that misses the writes the check must fail.
 *
 * Prints "reads=N writes=N stale=N invented=N errors=N overlapped=N", where
 * overlapped counts the sectors that were read while being written; exit status
 * 1 unless stale, invented and errors are 0.
 */
#include "io.h"

#include <pthread.h>
#include <stdatomic.h>

#define MAX_SECTORS 1024
#define MOST 8			/* sectors of one request */

static _Atomic uint64_t sent[MAX_SECTORS], acknowledged[MAX_SECTORS];
static unsigned int sectors = 32, writers = 2, readers = 6;
static uint64_t first_sector, seconds = 5, ops = UINT64_MAX, deadline;
static int write_fd, read_fd;
static atomic_bool stop;
static _Atomic uint64_t reads, writes, stale, invented, errors, overlapped;

static bool finished(void)
{
	if (now_ns() > deadline || reads >= ops)
		stop = true;
	return stop;
}

/* A run of sectors within [first, first + room). */
static unsigned int pick(uint64_t *random, unsigned int first, unsigned int room,
			 unsigned int *count)
{
	unsigned int most = room < MOST ? room : MOST;

	*count = 1 + (unsigned int)(next_random(random) % most);
	return first + (unsigned int)(next_random(random) % (room - *count + 1));
}

static off_t byte_of(unsigned int sector)
{
	return (off_t)(first_sector + sector) * SECTOR;
}

static bool write_run(uint64_t *data, unsigned int at, unsigned int n, uint64_t value)
{
	for (unsigned int i = 0; i < n * WORDS; i++)
		data[i] = encode_version(value);
	for (unsigned int i = 0; i < n; i++)
		sent[at + i] = value;
	if (pwrite(write_fd, data, n * SECTOR, byte_of(at)) != (ssize_t)n * SECTOR) {
		errors++;
		return false;
	}
	for (unsigned int i = 0; i < n; i++)
		acknowledged[at + i] = value;
	writes++;
	return true;
}

static void *writer(void *arg)
{
	unsigned int me = (unsigned int)(uintptr_t)arg;
	unsigned int first = me * sectors / writers;
	unsigned int room = (me + 1) * sectors / writers - first;
	uint64_t random = mix(me + 1), value = 1, *data = buffer(MOST * SECTOR);

	while (!finished()) {
		unsigned int n, at = pick(&random, first, room, &n);

		if (!write_run(data, at, n, ++value))
			break;
	}
	free(data);
	return NULL;
}

static void check_sector(const uint64_t *word, unsigned int sector, uint64_t low)
{
	uint64_t high = sent[sector];

	for (unsigned int i = 0; i < WORDS; i++) {
		int64_t decoded = decode_version(word[i]);
		uint64_t value = decoded < 0 ? 0 : (uint64_t)decoded;

		if (!value && high != low)
			continue;	/* torn by a write in flight */
		if (value < low && stale++ == 0)
			fprintf(stderr, "sector %u: read %llu after %llu was acknowledged\n",
				sector, (unsigned long long)value,
				(unsigned long long)low);
		if (value > high && invented++ == 0)
			fprintf(stderr, "sector %u: read %llu, newest write is %llu\n",
				sector, (unsigned long long)value,
				(unsigned long long)high);
	}
	if (high != low)
		overlapped++;
}

static void *reader(void *arg)
{
	uint64_t random = mix((uintptr_t)arg + 1000), *data = buffer(MOST * SECTOR);
	uint64_t low[MOST];

	while (!finished()) {
		unsigned int n, at = pick(&random, 0, sectors, &n);

		for (unsigned int i = 0; i < n; i++)
			low[i] = acknowledged[at + i];
		if (pread(read_fd, data, n * SECTOR, byte_of(at)) != (ssize_t)n * SECTOR) {
			errors++;
			break;
		}
		for (unsigned int i = 0; i < n; i++)
			check_sector(data + i * WORDS, at + i, low[i]);
		reads++;
	}
	free(data);
	return NULL;
}

static void parse(int argc, char **argv)
{
	for (int i = 2; i < argc; i += 2) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--sectors"))
			sectors = (unsigned int)number(value);
		else if (!strcmp(argv[i], "--first"))
			first_sector = number(value);
		else if (!strcmp(argv[i], "--writers"))
			writers = (unsigned int)number(value);
		else if (!strcmp(argv[i], "--readers"))
			readers = (unsigned int)number(value);
		else if (!strcmp(argv[i], "--seconds"))
			seconds = number(value);
		else if (!strcmp(argv[i], "--ops"))
			ops = number(value);
		else if (!strcmp(argv[i], "--read-from"))
			read_fd = open_direct(value, O_RDONLY);
		else {
			fprintf(stderr, "%s: unknown option\n", argv[i]);
			exit(2);
		}
	}
	if (!writers || !readers || sectors < writers || sectors > MAX_SECTORS) {
		fprintf(stderr, "need 1 to %d sectors and one for each writer\n",
			MAX_SECTORS);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	unsigned int all;
	uint64_t *data;
	pthread_t *thread;

	if (argc < 2) {
		fprintf(stderr, "usage: linear DEV [option...]\n");
		return 2;
	}
	parse(argc, argv);
	be_nice();
	write_fd = open_direct(argv[1], O_RDWR);
	if (!read_fd)
		read_fd = open_direct(argv[1], O_RDONLY);
	data = buffer(MOST * SECTOR);
	for (unsigned int i = 0; i < sectors; i++)
		if (!write_run(data, i, 1, 1))
			die("first write of sector %u", i);
	free(data);
	all = writers + readers;
	thread = calloc(all, sizeof(*thread));
	if (!thread)
		die("threads");
	deadline = now_ns() + seconds * 1000000000;
	for (unsigned int i = 0; i < all; i++) {
		uintptr_t arg = i < writers ? i : i - writers;

		if (pthread_create(&thread[i], NULL, i < writers ? writer : reader,
				   (void *)arg))
			die("thread");
	}
	for (unsigned int i = 0; i < all; i++)
		pthread_join(thread[i], NULL);
	free(thread);
	printf("reads=%llu writes=%llu stale=%llu invented=%llu errors=%llu overlapped=%llu\n",
	       (unsigned long long)reads, (unsigned long long)writes,
	       (unsigned long long)stale, (unsigned long long)invented,
	       (unsigned long long)errors, (unsigned long long)overlapped);
	return stale || invented || errors;
}
