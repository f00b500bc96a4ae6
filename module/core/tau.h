/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Learning the timeout from histograms of latencies.
 *
 * For each leg and size class the caller keeps a histogram that fades: once a
 * second it adds what was counted in that second with hedge_tau_add() and then
 * calls hedge_tau_decay(). hedge_tau_learn() turns the histograms of one size
 * class into a timeout.
 */
#ifndef HEDGE_CORE_TAU_H
#define HEDGE_CORE_TAU_H

#include "histogram.h"

/* Fewer samples do not tell a timeout, and do not fade. */
#define HEDGE_TAU_MIN_SAMPLES	500ULL
/* A sample counts this much: rare long latencies must fade, not be cut off. */
#define HEDGE_TAU_SAMPLE	1024ULL

/**
 * struct hedge_tau_hist - a fading histogram
 * @count: for each bucket, samples in units of 1/HEDGE_TAU_SAMPLE; their sum
 * stays below 2^48, that is 2^34 samples a second for ever
 */
struct hedge_tau_hist {
	u64 count[HEDGE_HIST_BUCKETS];
};

/**
 * hedge_tau_add - count samples
 * @hist: the histogram
 * @bucket: their bucket, see hedge_hist_bucket()
 * @samples: how many
 */
static inline void hedge_tau_add(struct hedge_tau_hist *hist,
				 unsigned int bucket, u64 samples)
{
	hist->count[bucket] += samples * HEDGE_TAU_SAMPLE;
}

void hedge_tau_decay(struct hedge_tau_hist *hist);
u64 hedge_tau_learn(const struct hedge_tau_hist *const legs[], unsigned int nr);

#endif
