/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is learnt of a leg beside its histogram: its smoothed service time, and
 * how many copies it serves at a time before they slow each other down.
 */
#ifndef HEDGE_CORE_SERVICE_H
#define HEDGE_CORE_SERVICE_H

#include "types.h"

/*
 * A sample counts for one eighth, but for no more than four times the estimate:
 * one stall of 100 times the usual must not turn reads away from a leg, yet a
 * leg that has become slow is believed after a few samples in a row.
 */
#define HEDGE_SERVICE_SHIFT	3
#define HEDGE_SERVICE_MAX_US	0xffffffU	/* 16 s: keys stay within 64 bits */

/**
 * hedge_service_update - take a sample into a smoothed service time
 * @service_us: the estimate so far in microseconds, 0 if there is none
 * @sample_ns: latency of a copy from start to completion in nanoseconds
 *
 * Return: the new estimate in microseconds, at least 1.
 */
static inline u32 hedge_service_update(u32 service_us, u64 sample_ns)
{
	/* 1000 is near enough to 1024 for an estimate that only ranks legs. */
	u64 sample = max(sample_ns >> 10, (u64)1);
	u64 next;

	sample = min_t(u64, sample, HEDGE_SERVICE_MAX_US);
	if (!service_us)
		return sample;
	sample = min(sample, 4 * (u64)service_us);
	/* Rounded away from the estimate, else small steps never arrive. */
	if (sample >= service_us)
		next = service_us + ((sample - service_us +
				      (1 << HEDGE_SERVICE_SHIFT) - 1) >>
				     HEDGE_SERVICE_SHIFT);
	else
		next = service_us - ((service_us - sample +
				      (1 << HEDGE_SERVICE_SHIFT) - 1) >>
				     HEDGE_SERVICE_SHIFT);
	return min_t(u64, next, HEDGE_SERVICE_MAX_US);
}

/**
 * hedge_service_forget - let the estimate of a leg that gets no reads fade
 * @service_us: its estimate in microseconds
 * @best_us: the least estimate among the legs in microseconds
 *
 * Called once a second for a leg that completed nothing in that second. A leg
 * that once looked slow would never be tried again otherwise.
 *
 * Return: the estimate halfway to the best.
 */
static inline u32 hedge_service_forget(u32 service_us, u32 best_us)
{
	return service_us > best_us ? best_us + (service_us - best_us) / 2 :
				      service_us;
}

/**
 * hedge_service_work - how long a copy is expected to take on a leg
 * @class_us: the leg's smoothed service time of copies of this size, 0 if none
 *            was measured
 * @service_us: the same of all its copies
 *
 * Return: microseconds, at least 1.
 */
static inline u32 hedge_service_work(u32 class_us, u32 service_us)
{
	return max(class_us ? class_us : service_us, 1U);
}

/* Copies in flight are counted in powers of two: 1, 2, 3-4, 5-8, ... */
#define HEDGE_DEPTHS	13	/* to 4096 */

/**
 * struct hedge_depth_sample - latencies of copies that started at one depth
 * @count: how many
 * @sum_us: their sum in microseconds
 */
struct hedge_depth_sample {
	u64 count;
	u64 sum_us;
};

/**
 * hedge_depth_index - the power of two that a copy's start counts for
 * @inflight: copies in flight, this one included; at least 1
 *
 * Return: the least i with 2^i >= @inflight, below HEDGE_DEPTHS.
 */
static inline unsigned int hedge_depth_index(u32 inflight)
{
	unsigned int i = inflight > 1 ? 32 - __builtin_clz(inflight - 1) : 0;

	return i < HEDGE_DEPTHS ? i : HEDGE_DEPTHS - 1;
}

u32 hedge_depth_learn(const struct hedge_depth_sample *samples);

#endif
