/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The log-linear histogram of latencies.
 *
 * Eight linear buckets for each power of two, so that no bucket is wider than
 * 12.5 % of its lower bound, from 1024 ns to beyond 100 s. Bucket 0 takes all
 * that is shorter, the last bucket all that is longer.
 */
#ifndef HEDGE_CORE_HISTOGRAM_H
#define HEDGE_CORE_HISTOGRAM_H

#include "types.h"

#define HEDGE_HIST_SUB_BITS	3
#define HEDGE_HIST_MIN_SHIFT	10	/* 1024 ns */
#define HEDGE_HIST_OCTAVES	27	/* 1024 ns << 27 = 137 s */
#define HEDGE_HIST_BUCKETS	(1 + (HEDGE_HIST_OCTAVES << HEDGE_HIST_SUB_BITS))

/* Reads of different sizes have different latencies: a class for each. */
enum hedge_size_class {
	HEDGE_SIZE_16K,
	HEDGE_SIZE_64K,
	HEDGE_SIZE_LARGE,
	HEDGE_NR_SIZES,
};

/**
 * hedge_size_class - the class in which a read of a size is counted
 * @bytes: size of the read in bytes
 */
static inline enum hedge_size_class hedge_size_class(u32 bytes)
{
	if (bytes <= 16384)
		return HEDGE_SIZE_16K;
	return bytes <= 65536 ? HEDGE_SIZE_64K : HEDGE_SIZE_LARGE;
}

/**
 * hedge_hist_bucket - the bucket of a latency
 * @ns: latency in nanoseconds
 *
 * Return: index in [0, HEDGE_HIST_BUCKETS).
 */
static inline unsigned int hedge_hist_bucket(u64 ns)
{
	unsigned int msb, bucket;

	if (ns < (1ULL << HEDGE_HIST_MIN_SHIFT))
		return 0;
	msb = 63 - __builtin_clzll(ns);
	bucket = 1 + ((msb - HEDGE_HIST_MIN_SHIFT) << HEDGE_HIST_SUB_BITS) +
		 ((ns >> (msb - HEDGE_HIST_SUB_BITS)) &
		  ((1 << HEDGE_HIST_SUB_BITS) - 1));
	return bucket < HEDGE_HIST_BUCKETS ? bucket : HEDGE_HIST_BUCKETS - 1;
}

/**
 * hedge_hist_lower - the lower bound of a bucket
 * @bucket: index in [0, HEDGE_HIST_BUCKETS]; the last gives the end of all
 *
 * Return: the least latency in nanoseconds that is counted in @bucket.
 */
static inline u64 hedge_hist_lower(unsigned int bucket)
{
	unsigned int octave, sub;

	if (!bucket)
		return 0;
	octave = (bucket - 1) >> HEDGE_HIST_SUB_BITS;
	sub = (bucket - 1) & ((1 << HEDGE_HIST_SUB_BITS) - 1);
	return ((8ULL + sub) << (HEDGE_HIST_MIN_SHIFT - HEDGE_HIST_SUB_BITS))
		<< octave;
}

#endif
