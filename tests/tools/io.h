/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the test programs share: opening a device for direct I/O, a random
 * number generator, and stamps.
 *
 * A stamp is the content that a sector has when nothing but fill_device()
 * wrote to it: 64 words made from its own sector number.  A read that returns
 * the wrong sector, a part of one, or memory that nobody filled is seen at
 * once, without a second copy of the device to compare with.
 */
#ifndef TESTS_TOOLS_IO_H
#define TESTS_TOOLS_IO_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SECTOR 512
#define WORDS (SECTOR / 8)

__attribute__((noreturn, format(printf, 1, 2)))
static inline void die(const char *format, ...)
{
	int error = errno;
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, ": %s\n", strerror(error));
	exit(2);
}

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* How often this thread has given up its processor to wait for something. */
static inline long times_slept(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

/* Whoever makes the load leaves the processors to the script that watches. */
static inline void be_nice(void)
{
	errno = 0;
	if (nice(19) == -1 && errno)
		die("nice");
}

/* splitmix64: any seed is good, and it serves as a hash of one number too. */
static inline uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

static inline uint64_t next_random(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15;
	return mix(*state);
}

static inline int open_direct(const char *path, int flags)
{
	int fd = open(path, flags | O_DIRECT | O_CLOEXEC);

	if (fd < 0)
		die("%s", path);
	return fd;
}

static inline uint64_t device_bytes(int fd)
{
	uint64_t bytes = 0;
	struct stat st;

	if (fstat(fd, &st) < 0)
		die("fstat");
	if (!S_ISBLK(st.st_mode))
		return (uint64_t)st.st_size;
	if (ioctl(fd, BLKGETSIZE64, &bytes) < 0)
		die("BLKGETSIZE64");
	return bytes;
}

static inline void *buffer(size_t bytes)
{
	void *p = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);

	if (!p)
		die("%zu bytes", bytes);
	return p;
}

/*
 * A version (below 2^32) in a word, with its hash, as not even a word need be written at
 * one instant; and the reverse, -1 if it is torn. Version 0 leaves a stamp as it is.
 */
static inline uint64_t encode_version(uint64_t version)
{
	return version ? version | mix(version) << 32 : 0;
}

static inline int64_t decode_version(uint64_t word)
{
	uint64_t version = word & UINT32_MAX;

	return encode_version(version) == word ? (int64_t)version : -1;
}

static inline void stamp_version(void *data, uint64_t sector, size_t bytes, uint64_t version)
{
	uint64_t *word = data, code = encode_version(version);

	for (size_t i = 0; i < bytes / SECTOR; i++)
		for (size_t j = 0; j < WORDS; j++)
			*word++ = (mix(sector + i) + j) ^ code;
}

static inline void stamp(void *data, uint64_t sector, size_t bytes)
{
	stamp_version(data, sector, bytes, 0);
}

/*
 * The first sector of the read that does not carry its stamp, of a version from @low to @high,
 * or -1. If they differ a write is in flight, or has failed, and words may be torn.
 */
static inline int64_t stamp_outside(const void *data, uint64_t sector, size_t bytes,
				    uint64_t low, uint64_t high)
{
	const uint64_t *word = data;

	for (size_t i = 0; i < bytes / SECTOR; i++) {
		for (size_t j = 0; j < WORDS; j++) {
			int64_t version = decode_version(*word++ ^ (mix(sector + i) + j));

			if (version < 0 ? low == high :
			    (uint64_t)version < low || (uint64_t)version > high)
				return (int64_t)(sector + i);
		}
	}
	return -1;
}

static inline int64_t stamp_wrong(const void *data, uint64_t sector, size_t bytes)
{
	return stamp_outside(data, sector, bytes, 0, 0);
}

static inline void fill_device(int fd)
{
	const size_t chunk = 256 << 10;
	uint64_t bytes = device_bytes(fd);
	char *data = buffer(chunk);

	for (uint64_t at = 0; at < bytes; at += chunk) {
		size_t n = bytes - at < chunk ? bytes - at : chunk;

		stamp(data, at / SECTOR, n);
		if (pwrite(fd, data, n, (off_t)at) != (ssize_t)n)
			die("write at byte %llu", (unsigned long long)at);
	}
	free(data);
}

static inline uint64_t number(const char *text)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(text, &end, 0);
	switch (*end) {
	case 'm':
		n <<= 10;
		/* fall through */
	case 'k':
		n <<= 10;
		end++;
	}
	if (errno || end == text || *end) {
		fprintf(stderr, "'%s' is not a number\n", text);
		exit(2);
	}
	return n;
}

#endif
