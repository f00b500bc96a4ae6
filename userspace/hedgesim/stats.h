/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is kept of the response times: their mean by batches, which gives its
 * confidence interval, and a log-linear histogram for the quantiles. The memory
 * does not grow with the number of jobs.
 */
#ifndef HEDGESIM_STATS_H
#define HEDGESIM_STATS_H

#include <stdint.h>

#define STATS_BATCHES	32U
#define STATS_SUB_BITS	7	/* 128 buckets an octave: 0.8 % wide */
#define STATS_OCTAVES	80	/* 2^-40 to 2^40 units */
#define STATS_BUCKETS	(STATS_OCTAVES << STATS_SUB_BITS)

struct stats {
	double unit, least, most, started;
	uint64_t nr, per_batch;
	double sum[STATS_BATCHES];
	uint64_t count[STATS_BATCHES];
	uint64_t bucket[STATS_BUCKETS];
};

void stats_init(struct stats *stats, double unit, uint64_t jobs);
void stats_add(struct stats *stats, unsigned int batch, double response, double started);
double stats_mean(const struct stats *stats);
double stats_ci95(const struct stats *stats);
double stats_quantile(const struct stats *stats, double p);

#endif
