// SPDX-License-Identifier: GPL-2.0
/*
 * Response times: batch means and quantiles. See stats.h.
 *
 * Response times of neighbouring jobs are correlated, so their variance says
 * little of how well the mean is known. The means of a few long batches are
 * nearly independent: their variance gives the interval, by Student's law.
 */
#include <math.h>
#include <string.h>

#include <gsl/gsl_cdf.h>

#include "stats.h"

#define MIN_EXPONENT (-40)

/* The bits of a double are its logarithm, nearly: buckets are cut from them. */
static uint64_t bits_of(double x)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits >> (52 - STATS_SUB_BITS);
}

static unsigned int bucket_of(double x)
{
	uint64_t first = bits_of(ldexp(1, MIN_EXPONENT)), bits = bits_of(x);

	if (bits < first)
		return 0;
	return bits - first < STATS_BUCKETS ? bits - first : STATS_BUCKETS - 1;
}

static double lower_bound(unsigned int bucket)
{
	unsigned int sub = bucket & ((1 << STATS_SUB_BITS) - 1);

	return ldexp(1 + ldexp(sub, -STATS_SUB_BITS),
		     MIN_EXPONENT + (int)(bucket >> STATS_SUB_BITS));
}

/**
 * stats_init - begin
 * @stats: what is kept
 * @unit: a usual response time, which the buckets are centred on
 * @jobs: how many will be added; their numbers run from 0
 */
void stats_init(struct stats *stats, double unit, uint64_t jobs)
{
	memset(stats, 0, sizeof(*stats));
	stats->unit = unit;
	stats->least = INFINITY;
	stats->per_batch = (jobs + STATS_BATCHES - 1) / STATS_BATCHES;
}

/**
 * stats_add - take a response time
 * @stats: what is kept
 * @batch: of the job, by arrival: its number over stats->per_batch
 * @response: its response time
 * @started: how long after its arrival all its tasks had started
 */
void stats_add(struct stats *stats, unsigned int batch, double response, double started)
{
	stats->started += started;
	stats->sum[batch] += response;
	stats->count[batch]++;
	stats->bucket[bucket_of(response / stats->unit)]++;
	if (response < stats->least)
		stats->least = response;
	if (response > stats->most)
		stats->most = response;
	stats->nr++;
}

/**
 * stats_mean - mean of the response times
 * @stats: what was kept
 */
double stats_mean(const struct stats *stats)
{
	double sum = 0;
	unsigned int i;

	for (i = 0; i < STATS_BATCHES; i++)
		sum += stats->sum[i];
	return sum / stats->nr;
}

/**
 * stats_ci95 - half the width of the 95 % confidence interval of the mean
 * @stats: what was kept
 */
double stats_ci95(const struct stats *stats)
{
	double mean = stats_mean(stats), squares = 0;
	unsigned int i, n = 0;

	for (i = 0; i < STATS_BATCHES; i++) {
		double d;

		if (!stats->count[i])
			continue;
		d = stats->sum[i] / stats->count[i] - mean;
		squares += d * d;
		n++;
	}
	if (n < 2)
		return INFINITY;
	return gsl_cdf_tdist_Pinv(0.975, n - 1) * sqrt(squares / (n - 1) / n);
}

/**
 * stats_quantile - a quantile of the response times
 * @stats: what was kept
 * @p: the probability
 *
 * Interpolated inside a bucket; nothing is given outside of what was seen.
 */
double stats_quantile(const struct stats *stats, double p)
{
	double wanted = p * stats->nr, below = 0;
	unsigned int i;

	for (i = 0; i < STATS_BUCKETS - 1; i++) {
		if (stats->bucket[i] && below + stats->bucket[i] >= wanted)
			break;
		below += stats->bucket[i];
	}
	wanted = (wanted - below) / stats->bucket[i];
	wanted = lower_bound(i) + wanted * (lower_bound(i + 1) - lower_bound(i));
	return fmin(fmax(wanted * stats->unit, stats->least), stats->most);
}
