// SPDX-License-Identifier: GPL-2.0
/*
 * Learning the timeout: the rule "load".
 *
 * Let X be the latency of a copy. A read that is sent again at the timeout t
 * loads the legs with E[min(X,t)] up to there, and with E[X] from there on if
 * it comes to that:
 *
 *	L(t) = E[min(X,t)] + P(X > t) E[X]
 *
 * The timeout is the t with the least L(t), among the upper bounds of the
 * buckets: what is counted in a bucket is shorter than that, so P(X > t) is
 * exact, and a copy that takes just as long as the timeout has finished. Within
 * a bucket the mean of its bounds stands for X. Without a timeout L is E[X];
 * less than 2 % below it is no gain, and more likely noise.
 *
 * X is the mean of all legs, each with the same weight however many reads it
 * had: alone, a slow leg would find its latencies normal. Only a leg with fewer
 * than HEDGE_TAU_MIN_SAMPLES samples counts for less, in proportion.
 *
 * Units: a time is in 64 ns, half the width of the narrowest bucket, so that
 * bounds and midpoints of buckets are whole; it is at most 2^31. The mass of a
 * bucket is its share of a leg times 2^28; all buckets of 8 legs have at most
 * 2^31. The two terms of L are then at most 2^62 each.
 */
#include "tau.h"

#define UNIT_SHIFT	6	/* 64 ns */
#define MASS_SHIFT	28
#define SCALE_SHIFT	32	/* MASS_SHIFT + SCALE_SHIFT < 64 */
#define MIN_TOTAL	(HEDGE_TAU_MIN_SAMPLES * HEDGE_TAU_SAMPLE)

/* 2^-0.1 in 1/65536: called once a second, half is left after 10 s. */
#define DECAY_SHIFT	16
#define DECAY		61147ULL

static u64 total(const struct hedge_tau_hist *hist)
{
	unsigned int i;
	u64 sum = 0;

	for (i = 0; i < HEDGE_HIST_BUCKETS; i++)
		sum += hist->count[i];
	return sum;
}

/**
 * hedge_tau_decay - let a histogram fade by a second
 * @hist: the histogram
 *
 * Half is left after 10 calls, but never fewer than HEDGE_TAU_MIN_SAMPLES
 * samples: a quiet leg keeps what is known of it.
 */
void hedge_tau_decay(struct hedge_tau_hist *hist)
{
	unsigned int i;

	if ((total(hist) * DECAY) >> DECAY_SHIFT < MIN_TOTAL)
		return;
	for (i = 0; i < HEDGE_HIST_BUCKETS; i++)
		hist->count[i] = (hist->count[i] * DECAY) >> DECAY_SHIFT;
}

/* What a bucket weighs in the mean of the legs. */
static u64 mass(const struct hedge_tau_hist *const legs[], const u64 *scale,
		unsigned int nr, unsigned int bucket)
{
	unsigned int i;
	u64 sum = 0;

	for (i = 0; i < nr; i++)
		sum += (legs[i]->count[bucket] * scale[i]) >> SCALE_SHIFT;
	return sum;
}

static u64 upper_bound(unsigned int bucket)
{
	return hedge_hist_lower(bucket + 1) >> UNIT_SHIFT;
}

static u64 midpoint(unsigned int bucket)
{
	return (hedge_hist_lower(bucket) + hedge_hist_lower(bucket + 1)) >>
	       (UNIT_SHIFT + 1);
}

/**
 * hedge_tau_learn - the timeout that costs the legs the least work
 * @legs: a histogram of one size class for each usable leg
 * @nr: number of legs, at most HEDGE_MAX_LEGS
 *
 * Of equal timeouts the longest is taken.
 *
 * Return: the timeout in nanoseconds, 0 if there should be none or if there are
 * fewer than HEDGE_TAU_MIN_SAMPLES samples.
 */
u64 hedge_tau_learn(const struct hedge_tau_hist *const legs[], unsigned int nr)
{
	u64 scale[HEDGE_MAX_LEGS];
	u64 samples = 0, all = 0, sum = 0, below = 0;
	u64 tail, mean, rest, load, least;
	unsigned int i, best = 0;

	for (i = 0; i < nr; i++) {
		u64 has = total(legs[i]);

		samples += has;
		scale[i] = div64_u64(1ULL << (MASS_SHIFT + SCALE_SHIFT),
				     max(has, MIN_TOTAL));
	}
	if (samples < MIN_TOTAL)
		return 0;

	for (i = 0; i < HEDGE_HIST_BUCKETS; i++) {
		all += mass(legs, scale, nr, i);
		sum += mass(legs, scale, nr, i) * midpoint(i);
	}
	/* The mean in two parts: one would lose too much of a short one. */
	mean = div64_u64(sum, all);
	rest = sum - mean * all;

	tail = all;
	least = sum;
	for (i = 0; i < HEDGE_HIST_BUCKETS; i++) {
		tail -= mass(legs, scale, nr, i);
		below += mass(legs, scale, nr, i) * midpoint(i);
		load = below + tail * (upper_bound(i) + mean) +
		       div64_u64(tail * rest, all);
		if (load <= least) {
			least = load;
			best = i;
		}
	}
	if (least > sum - div64_u64(sum, 50))
		return 0;
	return hedge_hist_lower(best + 1);
}
