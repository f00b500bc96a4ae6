// SPDX-License-Identifier: GPL-2.0
/*
 * Rules that choose a timeout from measured latencies, and what a timeout gives.
 *
 *	load		the timeout with which the legs work least: the module's rule
 *	percentile:P	the latency that P % of the copies do not exceed
 *	knee		where the distribution function bends: the x that maximises F(x) less x, with x
 *			scaled from the least latency to p97
 *	quantile:P	the timeout with the least P-th percentile of a read
 *
 * A read whose copy takes X and whose hedge, sent at tau with probability q, takes as long as any
 * copy, is answered by t with probability
 *
 *	G(t) = F(t) + q (1 - F(t)) F(t - tau),
 *
 * where q is 1 unless the budget allows fewer hedges than P(X > tau). It takes copies as independent
 * and legs as alike, and hedges as sent at once; a busy volume sends them later.
 *
 * A read and its hedge are of one size, so F is that of a size class, and what is expected is the sum
 * over the classes, weighed by how many copies each has. Legs count alike, however many reads each
 * got: a slow leg that is avoided would else seem rare.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hedgectl.h"
#include "rules.h"
#include "timeout.h"

#define WORTH 0.98	/* a timeout must save more than 2 %, in the module too */
#define DEFAULT_PERCENTILE 95
#define DEFAULT_QUANTILE 99

static const struct {
	const char *name;
	double percentile;	/* where none is given; 0: the rule takes none */
} rules[] = {
	[RULE_LOAD] = { "load", 0 },
	[RULE_PERCENTILE] = { "percentile", DEFAULT_PERCENTILE },
	[RULE_KNEE] = { "knee", 0 },
	[RULE_QUANTILE] = { "quantile", DEFAULT_QUANTILE },
};

#define NR_RULES (sizeof(rules) / sizeof(rules[0]))

int rule_parse(const char *text, struct rule *rule)
{
	size_t length = strcspn(text, ":");
	char *end;

	for (size_t i = 0; i < NR_RULES; i++) {
		if (strlen(rules[i].name) != length || strncmp(rules[i].name, text, length))
			continue;
		*rule = (struct rule){ (enum rule_kind)i, rules[i].percentile };
		if (!text[length])
			return 0;
		rule->percentile = strtod(text + length + 1, &end);
		if (rules[i].percentile && end > text + length + 1 && !*end &&
		    rule->percentile > 0 && rule->percentile < 100)
			return 0;
		break;
	}
	fail("--rule %s: expected load, percentile[:P], knee or quantile[:P], P above 0 and below 100",
	     text);
	return -1;
}

const char *rule_name(const struct rule *rule)
{
	return rules[rule->kind].name;
}

static const struct law one = { .kind = LAW_DET, .a = 1, .mean = 1, .second = 1 };

/* One size class: the equal-weight mean of the legs that have RULE_LEG_SAMPLES in it; NULL: none has. */
static struct law_bucket *pool_class(const struct leg_set *set, int target, int class, size_t *nr,
				     uint64_t *samples, unsigned int *legs)
{
	struct law_bucket *buckets = NULL;

	*nr = 0;
	*samples = 0;
	for (int i = 0; i < set->count; i++) {
		const struct leg_data *leg = &set->legs[i];
		const struct histogram *h;

		if (leg->target != target || class >= leg->classes.count)
			continue;
		h = &leg->classes.classes[class];
		if (h->total < RULE_LEG_SAMPLES)
			continue;
		*legs |= 1u << i;
		*samples += h->total;
		buckets = xrealloc(buckets, (*nr + h->count) * sizeof(*buckets));
		for (int j = 0; j < h->count; j++)
			if (h->buckets[j].count)
				buckets[(*nr)++] = (struct law_bucket){
					.low = (double)h->buckets[j].from / 1e3,
					.high = (double)h->buckets[j].to / 1e3,
					.mass = (double)h->buckets[j].count / (double)h->total,
				};
	}
	return buckets;
}

/* Returns how many legs have enough copies; if none has, the pool is empty. */
int rules_pool(const struct leg_set *set, int target, struct pool *pool)
{
	unsigned int legs = 0;
	double total = 0;

	*pool = (struct pool){ 0 };
	for (int class = 0; class < RULE_CLASSES; class++) {
		struct law_bucket *buckets;
		uint64_t samples;
		size_t nr;

		buckets = pool_class(set, target, class, &nr, &samples, &legs);
		if (!buckets)
			continue;
		law_from_buckets(&pool->law[pool->nr], buckets, nr);
		pool->weight[pool->nr++] = (double)samples;
		total += (double)samples;
	}
	for (int i = 0; i < pool->nr; i++)
		pool->weight[i] /= total;
	return __builtin_popcount(legs);
}

void pool_free(struct pool *pool)
{
	for (int i = 0; i < pool->nr; i++)
		law_free(&pool->law[i]);
	*pool = (struct pool){ 0 };
}

static double pool_tail(const struct pool *pool, double t)
{
	double sum = 0;

	for (int i = 0; i < pool->nr; i++)
		sum += pool->weight[i] * law_tail(&pool->law[i], t);
	return sum;
}

/* The share of the reads that are hedged, of those that are overdue at tau. */
static double hedge_chance(const struct pool *pool, double tau, double budget)
{
	double overdue = pool_tail(pool, tau);

	return overdue > budget ? budget / overdue : 1;
}

/* Of the answers to a read; tau is infinite without a timeout. */
double rules_quantile(const struct pool *pool, double tau, double budget, double p)
{
	double low = 0, high = 0, q = hedge_chance(pool, tau, budget);

	for (int i = 0; i < pool->nr; i++)
		high = fmax(high, law_quantile(&pool->law[i], 1));
	for (int step = 0; step < 60; step++) {
		double t = (low + high) / 2, sum = 0;

		for (int i = 0; i < pool->nr; i++) {
			double f = law_cdf(&pool->law[i], t);

			if (t > tau)
				f += q * (1 - f) * law_cdf(&pool->law[i], t - tau);
			sum += pool->weight[i] * f;
		}
		if (sum < p)
			low = t;
		else
			high = t;
	}
	return high;
}

double rules_hedged(const struct pool *pool, double tau, double budget)
{
	return fmin(pool_tail(pool, tau), budget);
}

/* The work of the legs, relative to that without a timeout. */
double rules_load(const struct pool *pool, double tau)
{
	double with = 0, without = 0;

	for (int i = 0; i < pool->nr; i++) {
		double mean = pool->weight[i] * pool->law[i].mean;

		with += mean * timeout_load(&pool->law[i], &one, tau);
		without += mean;
	}
	return with / without;
}

/* Every bound of a bucket, which is where the work and F change their slope, as candidates. */
static size_t candidates(const struct pool *pool, double **tau)
{
	size_t nr = 0;

	*tau = NULL;
	for (int i = 0; i < pool->nr; i++) {
		*tau = xrealloc(*tau, (nr + pool->law[i].nr) * sizeof(**tau));
		for (size_t j = 0; j < pool->law[i].nr; j++)
			(*tau)[nr++] = pool->law[i].bucket[j].high;
	}
	return nr;
}

static double work_at(const struct pool *pool, double tau, double budget, double p)
{
	(void)budget;
	(void)p;
	return rules_load(pool, tau);
}

/* F(x) less x, x scaled from p0 to p97; to be least, so with the sign changed. */
static double knee_at(const struct pool *pool, double tau, double budget, double p)
{
	double p0 = rules_quantile(pool, INFINITY, 1, 0);
	double p97 = rules_quantile(pool, INFINITY, 1, 0.97);

	(void)budget;
	(void)p;
	if (p97 <= p0 || tau >= p97)
		return INFINITY;
	return (tau - p0) / (p97 - p0) - (1 - pool_tail(pool, tau));
}

/* The candidate with the least cost; ties go to the largest, which hedges least. */
static double least(const struct pool *pool, double budget, double p, double bound,
		    double (*cost)(const struct pool *, double, double, double))
{
	double *tau, best = INFINITY;
	size_t nr = candidates(pool, &tau);

	for (size_t i = 0; i < nr; i++) {
		double value = cost(pool, tau[i], budget, p);

		if (value < bound - 1e-9 * fabs(bound) ||
		    (value <= bound && !isinf(best) && tau[i] > best)) {
			bound = value;
			best = tau[i];
		}
	}
	free(tau);
	return best;
}

/* In microseconds, whole and at least 1; infinite: no timeout is better than any. */
double rules_tau(const struct rule *rule, const struct pool *pool, double budget)
{
	double p = rule->percentile / 100, tau;

	switch (rule->kind) {
	case RULE_LOAD:
		tau = least(pool, budget, p, WORTH, work_at);
		break;
	case RULE_PERCENTILE:
		tau = rules_quantile(pool, INFINITY, budget, p);
		break;
	case RULE_KNEE:
		tau = least(pool, budget, p, 0, knee_at);
		break;
	default:
		tau = least(pool, budget, p, WORTH * rules_quantile(pool, INFINITY, budget, p),
			    rules_quantile);
		break;
	}
	return isinf(tau) ? tau : fmax(1, ceil(tau - 1e-6));
}

/*
 * Whether a reading that wants another timeout than the one in force is to be followed. Only when
 * RULE_VOTES readings in a row want one that is more than RULE_BAND away on the same side; a timeout
 * that appears or goes counts as being away.
 */
bool rules_vote(struct rule_votes *votes, double wanted, double current)
{
	int side = 0;

	if (isinf(wanted) || isinf(current))
		side = isinf(wanted) - isinf(current);
	else if (wanted > current * RULE_BAND)
		side = 1;
	else if (wanted * RULE_BAND < current)
		side = -1;
	votes->count = !side ? 0 : side == votes->side ? votes->count + 1 : 1;
	votes->side = side;
	if (votes->count < RULE_VOTES)
		return false;
	*votes = (struct rule_votes){ 0 };
	return true;
}
