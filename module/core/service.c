// SPDX-License-Identifier: GPL-2.0
/*
 * How deep a leg can be loaded before its copies slow each other down.
 */
#include "service.h"

/* A mean of fewer samples says nothing. */
#define MIN_SAMPLES 100

/**
 * hedge_depth_learn - the largest power of two at which a leg is still fast
 * @samples: HEDGE_DEPTHS entries, latencies by copies in flight at the start
 *
 * That is, at which the mean latency is within 25 % of the least that was
 * measured at any depth. Depths that were never seen are passed over: a leg is
 * not believed to stand more than it has shown.
 *
 * Return: copies in flight below which the leg counts as idle, at least 1.
 */
u32 hedge_depth_learn(const struct hedge_depth_sample *samples)
{
	u64 mean, least = ~0ULL;
	unsigned int i, deepest = 0;

	for (i = 0; i < HEDGE_DEPTHS; i++) {
		if (samples[i].count < MIN_SAMPLES)
			continue;
		mean = div64_u64(samples[i].sum_us << 4, samples[i].count);
		least = min(least, mean);
	}
	for (i = 0; i < HEDGE_DEPTHS; i++) {
		if (samples[i].count < MIN_SAMPLES)
			continue;
		mean = div64_u64(samples[i].sum_us << 4, samples[i].count);
		if (mean <= least + least / 4)
			deepest = i;
	}
	return 1U << deepest;
}
