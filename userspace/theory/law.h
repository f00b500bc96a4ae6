/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Laws of service times and sizes.
 *
 * A law is written as a word: its name, and after a colon its parameters. All
 * parameters that are times are in one unit, which the user chooses, and m is
 * always a mean.
 *
 *	det:m			always m
 *	exp:m			exponential
 *	erlang:k,m		sum of k exponentials, the mean of the sum is m
 *	hyperexp:p1,m1,m2	exponential of mean m1 with probability p1, else m2
 *	bimodal:a,b,p		a with probability p, else b
 *	pareto:alpha,xm[,max]	P(X > x) = (xm/x)^alpha, given that X <= max
 *	lomax:a,m		P(X > x) = (1 + x/(m(a-1)))^-a
 *	weibull:k,s		P(X > x) = exp(-(x/s)^k)
 *	uniform:a,b		between a and b
 *	shiftexp:d,m		d plus an exponential of mean m
 *	bernoulli:p,v		v with probability p, else 0
 *	file:HISTOGRAM		as measured: lines "<lower bound in ns> <count>",
 *				as the attribute "histogram" shows; in microseconds
 */
#ifndef THEORY_LAW_H
#define THEORY_LAW_H

#include <stdbool.h>
#include <stddef.h>

#include "rng.h"

enum law_kind {
	LAW_DET, LAW_EXP, LAW_ERLANG, LAW_HYPEREXP, LAW_BIMODAL, LAW_PARETO,
	LAW_LOMAX, LAW_WEIBULL, LAW_UNIFORM, LAW_SHIFTEXP, LAW_BERNOULLI,
	LAW_FILE,
};

/**
 * struct law_bucket - a bucket of a measured law, in which it is uniform
 * @low: lower bound
 * @high: upper bound
 * @mass: probability of the bucket
 * @tail: probability of all buckets above
 */
struct law_bucket {
	double low, high, mass, tail;
};

/**
 * struct law - a law of non-negative random times
 * @kind: which
 * @a: first parameter, as it is written
 * @b: second parameter
 * @c: third parameter
 * @mean: E[X], may be infinite
 * @second: E[X^2], may be infinite
 * @bucket: of a measured law: its buckets, ascending
 * @nr: how many
 * @samples: of a measured law: how many samples, 0 of any other
 */
struct law {
	enum law_kind kind;
	double a, b, c;
	double mean, second;
	struct law_bucket *bucket;
	size_t nr;
	double samples;
};

int law_parse(struct law *law, const char *text, char *error, size_t size);
void law_from_buckets(struct law *law, struct law_bucket *bucket, size_t nr);
void law_free(struct law *law);
double law_sample(const struct law *law, struct rng *rng);
double law_tail(const struct law *law, double x);
double law_cdf(const struct law *law, double x);
double law_density(const struct law *law, double x);
double law_hazard(const struct law *law, double x);
double law_quantile(const struct law *law, double p);
double law_quantile_of_tail(const struct law *law, double tail);
double law_mean_min(const struct law *law, double t);
double law_residual(const struct law *law, double t);
bool law_has_density(const struct law *law);
size_t law_atoms(const struct law *law, double *at);
const struct law_bucket *law_bucket_of(const struct law *law, double x);

#endif
