// SPDX-License-Identifier: GPL-2.0
/*
 * vectors - direct reads and writes with unusual vectors, checked against memory.
 *
 *   vectors DEV [--threads N] [--count N] [--max-bs BYTES] [--span BYTES] [--corrupt]
 *
 * Each thread owns every threads-th stretch of the first --span bytes and keeps
 * in memory what they hold.  Its requests begin at any sector and go through
 * preadv() and pwritev() with up to 16 pieces, each a multiple of 512 bytes
 * that begins anywhere on a 512-byte boundary: pieces straddle pages, and
 * a copy's data must be scattered over all of them.  Space between the pieces
 * holds a guard that must not change.
 *
 * --corrupt flips one bit of the memory, to show that the comparison can fail.
 *
 * Prints "reads=N writes=N wrong=N guard=N errors=N"; exit status 1 unless the
 * last three are 0.
 */
#include "io.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>

#define MOST_PIECES 16
#define GUARD 0x6b

struct vector_thread {
	pthread_t thread;
	unsigned int index;
	uint64_t random, begin, bytes;	/* what it owns of the device */
	char *shadow, *arena;
	size_t arena_bytes;
	struct iovec piece[MOST_PIECES];
	int pieces;
};

static unsigned int threads = 4;
static uint64_t count = 500, span;
static size_t max_bs = 256 << 10;
static bool corrupt;
static int fd;
static _Atomic uint64_t reads, writes, wrong, guard, errors;

/* Cuts @bytes into pieces that lie in the arena with gaps between them. */
static void cut(struct vector_thread *v, size_t bytes)
{
	char *at = v->arena;

	v->pieces = 0;
	while (bytes) {
		size_t left = bytes / SECTOR, n = left;

		if (v->pieces < MOST_PIECES - 1)
			n = 1 + next_random(&v->random) % (left < 24 ? left : 24);
		at += SECTOR * (1 + next_random(&v->random) % 7);
		v->piece[v->pieces++] = (struct iovec){ at, n * SECTOR };
		at += n * SECTOR;
		bytes -= n * SECTOR;
	}
}

static void copy_pieces(struct vector_thread *v, char *flat, bool out)
{
	for (int i = 0; i < v->pieces; i++) {
		if (out)
			memcpy(v->piece[i].iov_base, flat, v->piece[i].iov_len);
		else if (memcmp(v->piece[i].iov_base, flat, v->piece[i].iov_len) &&
			 wrong++ == 0)
			fprintf(stderr, "piece %d of %d is wrong\n", i, v->pieces);
		flat += v->piece[i].iov_len;
	}
}

static void check_guard(struct vector_thread *v)
{
	char *at = v->arena;

	for (int i = 0; i <= v->pieces; i++) {
		char *end = i < v->pieces ? v->piece[i].iov_base :
					    v->arena + v->arena_bytes;

		for (; at < end; at++)
			if (*at != GUARD) {
				if (guard++ == 0)
					fprintf(stderr, "written outside of the pieces\n");
				break;
			}
		if (i < v->pieces)
			at = end + v->piece[i].iov_len;
	}
}

static void one_request(struct vector_thread *v)
{
	size_t bytes = (1 + next_random(&v->random) % (max_bs / SECTOR)) * SECTOR;
	uint64_t at = next_random(&v->random) % ((v->bytes - bytes) / SECTOR + 1) * SECTOR;
	bool write = next_random(&v->random) % 3 == 0;
	ssize_t n;

	memset(v->arena, GUARD, v->arena_bytes);
	cut(v, bytes);
	if (write) {
		for (size_t i = 0; i < bytes; i += 8) {
			uint64_t word = next_random(&v->random);

			memcpy(v->shadow + at + i, &word, 8);
		}
		copy_pieces(v, v->shadow + at, true);
		n = pwritev(fd, v->piece, v->pieces, (off_t)(v->begin + at));
		writes++;
	} else {
		n = preadv(fd, v->piece, v->pieces, (off_t)(v->begin + at));
		reads++;
	}
	if (n != (ssize_t)bytes) {
		if (errors++ == 0)
			fprintf(stderr, "%s of %zu bytes gave %zd\n",
				write ? "write" : "read", bytes, n);
		return;
	}
	if (!write)
		copy_pieces(v, v->shadow + at, false);
	check_guard(v);
}

static void *worker(void *arg)
{
	struct vector_thread *v = arg;

	for (uint64_t i = 0; i < count; i++)
		one_request(v);
	return NULL;
}

static void start(struct vector_thread *v, unsigned int index)
{
	v->index = index;
	v->random = mix(index + 99);
	v->bytes = span / threads / SECTOR * SECTOR;
	v->begin = index * v->bytes;
	v->shadow = buffer(v->bytes);
	v->arena_bytes = max_bs + (MOST_PIECES + 1) * 8 * SECTOR;
	v->arena = buffer(v->arena_bytes);
	for (uint64_t i = 0; i < v->bytes; i += 8) {
		uint64_t word = next_random(&v->random);

		memcpy(v->shadow + i, &word, 8);
	}
	if (pwrite(fd, v->shadow, v->bytes, (off_t)v->begin) != (ssize_t)v->bytes)
		die("first write");
	if (corrupt)
		v->shadow[v->bytes / 2] ^= 1;
	if (pthread_create(&v->thread, NULL, worker, v))
		die("thread");
}

static void parse(int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--corrupt")) {
			corrupt = true;
			continue;
		}
		if (!strcmp(argv[i], "--threads"))
			threads = (unsigned int)number(value);
		else if (!strcmp(argv[i], "--count"))
			count = number(value);
		else if (!strcmp(argv[i], "--max-bs"))
			max_bs = number(value);
		else if (!strcmp(argv[i], "--span"))
			span = number(value);
		else {
			fprintf(stderr, "%s: unknown option\n", argv[i]);
			exit(2);
		}
		i++;
	}
}

int main(int argc, char **argv)
{
	struct vector_thread *v;

	if (argc < 2) {
		fprintf(stderr, "usage: vectors DEV [option...]\n");
		return 2;
	}
	parse(argc, argv);
	fd = open_direct(argv[1], O_RDWR);
	if (!span)
		span = device_bytes(fd);
	v = calloc(threads, sizeof(*v));
	if (!v || !threads || span / threads < 2 * max_bs) {
		fprintf(stderr, "each thread needs room for two requests\n");
		return 2;
	}
	for (unsigned int i = 0; i < threads; i++)
		start(&v[i], i);
	for (unsigned int i = 0; i < threads; i++) {
		pthread_join(v[i].thread, NULL);
		free(v[i].shadow);
		free(v[i].arena);
	}
	free(v);
	printf("reads=%llu writes=%llu wrong=%llu guard=%llu errors=%llu\n",
	       (unsigned long long)reads, (unsigned long long)writes,
	       (unsigned long long)wrong, (unsigned long long)guard,
	       (unsigned long long)errors);
	return wrong || guard || errors;
}
