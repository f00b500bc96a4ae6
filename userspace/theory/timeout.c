// SPDX-License-Identifier: GPL-2.0
/*
 * The work that a timeout makes, L(tau), and the timeout that makes the least.
 *
 * Given the size X = x the work is x times a function of t = tau / x alone,
 *
 *	E[min(S, t)] + P(S > t) E[S],
 *
 * so L is an integral over the law of the size, done by adaptive quadrature over
 * the probability of a larger one, cut where a service law with steps makes the
 * integrand jump. The probability of a smaller one would be 1, and the size
 * infinite, before the largest sizes that count are reached.
 *
 * L need not be convex, and jumps where S X has atoms. Its least value is looked
 * for on a fine geometric grid and at each atom or bound of a bucket, and then
 * refined by Brent's method between the neighbours of the best point.
 */
#include <math.h>
#include <stdlib.h>

#include <gsl/gsl_errno.h>
#include <gsl/gsl_integration.h>
#include <gsl/gsl_min.h>

#include "timeout.h"

#define GRID		2000
#define INTERVALS	1000
#define PRECISION	1e-9
#define MAX_CUTS	8
#define RARE		1e-200

struct question {
	const struct law *service, *size;
	double tau;
};

static double work(const struct law *service, double t)
{
	return law_mean_min(service, t) + law_tail(service, t) * service->mean;
}

static double integrand(double tail, void *context)
{
	const struct question *q = context;
	double x = law_quantile_of_tail(q->size, tail);

	return x > 0 ? x * work(q->service, q->tau / x) : 0;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/*
 * The probabilities between which the integrand is smooth: 0, 1, where tau / X
 * is the least or the largest service, which all atoms are too, and where the
 * size has an atom itself.
 */
static size_t cuts(const struct question *q, double *cut)
{
	const double bound[] = { law_quantile(q->service, 0), law_quantile(q->service, 1) };
	double at[2];
	size_t n = 0, i, nr;

	cut[n++] = 0;
	for (i = 0; i < 2; i++)
		if (bound[i] > 0 && isfinite(bound[i]))
			cut[n++] = law_tail(q->size, q->tau / bound[i]);
	nr = law_atoms(q->size, at);
	for (i = 0; i < nr; i++)
		cut[n++] = law_tail(q->size, nextafter(at[i], 0));
	cut[n++] = 1;
	qsort(cut, n, sizeof(*cut), ascending);
	return n;
}

/**
 * timeout_load - L(tau), the work of a job with a timeout
 * @service: law of S
 * @size: law of X, "det:1" if all jobs are the same
 * @tau: the timeout in the unit of the laws; infinite for none
 *
 * Return: the work relative to that without a timeout; NaN if its mean is
 * infinite.
 */
double timeout_load(const struct law *service, const struct law *size, double tau)
{
	struct question q = { service, size, tau };
	gsl_function function = { integrand, &q };
	gsl_integration_workspace *room;
	double cut[MAX_CUTS], part, error, sum = 0;
	size_t i, n;

	if (!isfinite(service->mean) || !isfinite(size->mean))
		return NAN;
	if (isinf(tau))
		return 1;
	if (size->kind == LAW_DET)
		return work(service, tau / size->a) / service->mean;
	gsl_set_error_handler_off();
	room = gsl_integration_workspace_alloc(INTERVALS);
	n = cuts(&q, cut);
	for (i = 0; i + 1 < n; i++) {
		/* Sizes that rare weigh nothing, and between them there is no room to divide. */
		if (cut[i + 1] <= cut[i] || cut[i + 1] < RARE)
			continue;
		gsl_integration_qags(&function, cut[i], cut[i + 1], 0, PRECISION,
				     INTERVALS, room, &part, &error);
		sum += part;
	}
	gsl_integration_workspace_free(room);
	return sum / (service->mean * size->mean);
}

static double load_at(double tau, void *context)
{
	const struct question *q = context;

	return timeout_load(q->service, q->size, tau);
}

/* Brent's method inside (low, high), which hold a least value near *tau. */
static void refine(struct question *q, double low, double high, double *tau, double *load)
{
	gsl_function function = { load_at, q };
	gsl_min_fminimizer *minimizer;
	double x, least;
	int i;

	gsl_set_error_handler_off();
	minimizer = gsl_min_fminimizer_alloc(gsl_min_fminimizer_brent);
	if (gsl_min_fminimizer_set(minimizer, &function, *tau, low, high) == GSL_SUCCESS) {
		for (i = 0; i < 200; i++) {
			if (gsl_min_fminimizer_iterate(minimizer))
				break;
			low = gsl_min_fminimizer_x_lower(minimizer);
			high = gsl_min_fminimizer_x_upper(minimizer);
			if (high - low < 1e-9 * high)
				break;
		}
		x = gsl_min_fminimizer_x_minimum(minimizer);
		least = load_at(x, q);
		/* Flat to rounding: the point of the grid is as good. */
		if (least < *load - 1e-12) {
			*tau = x;
			*load = least;
		}
	}
	gsl_min_fminimizer_free(minimizer);
}

/* Timeouts to try: a grid over all of the law, atoms, bounds of buckets. */
static size_t candidates(const struct question *q, double **points)
{
	double at_s[2], at_x[2], low, high, *tau;
	size_t n = 0, i, j, k, nr_s, nr_x;

	low = law_quantile(q->service, 1e-6) * law_quantile(q->size, 1e-6);
	high = law_quantile(q->service, 1 - 1e-9) * law_quantile(q->size, 1 - 1e-9);
	low = fmax(low, high * 1e-12);
	tau = malloc((GRID + 6 + q->service->nr) * sizeof(*tau));
	if (!tau)
		abort();
	for (k = 0; k < GRID; k++)
		tau[n++] = low * pow(high / low, (double)k / (GRID - 1));
	nr_s = law_atoms(q->service, at_s);
	nr_x = law_atoms(q->size, at_x);
	for (i = 0; i < nr_s; i++)
		for (j = 0; j < nr_x; j++)
			tau[n++] = at_s[i] * at_x[j];
	if (q->service->kind == LAW_FILE && q->size->kind == LAW_DET)
		for (k = 0; k < q->service->nr; k++)
			tau[n++] = q->service->bucket[k].high * q->size->a;
	qsort(tau, n, sizeof(*tau), ascending);
	*points = tau;
	return n;
}

/**
 * timeout_best - the timeout that makes the least work
 * @service: law of S
 * @size: law of X
 * @load: where L of that timeout is put
 *
 * Return: the timeout; infinite, with L = 1, if no timeout makes less work than
 * none does (within 1e-6).
 */
double timeout_best(const struct law *service, const struct law *size, double *load)
{
	struct question q = { service, size, 0 };
	double *tau, best, least;
	size_t i, n, at = 0;

	*load = 1;
	if (!isfinite(service->mean) || !isfinite(size->mean))
		return INFINITY;
	n = candidates(&q, &tau);
	least = INFINITY;
	for (i = 0; i < n; i++) {
		double l = timeout_load(service, size, tau[i]);

		if (l < least) {
			least = l;
			at = i;
		}
	}
	best = tau[at];
	if (at > 0 && at < n - 1 && tau[at - 1] < best && best < tau[at + 1])
		refine(&q, tau[at - 1], tau[at + 1], &best, &least);
	free(tau);
	if (least > 1 - 1e-6)
		return INFINITY;
	*load = least;
	return best;
}

/* Below 1 by more than rounding: of an exponential law L is 1 everywhere. */
static bool gains(const struct question *q, double tau)
{
	return timeout_load(q->service, q->size, tau) < 1 - 1e-8;
}

/* The timeout between two at which it begins, or ceases, to gain. */
static double border(const struct question *q, double low, double high, bool gain_low)
{
	int i;

	for (i = 0; i < 60 && high - low > 1e-12 * high; i++) {
		double middle = low + (high - low) / 2;

		if (gains(q, middle) == gain_low)
			low = middle;
		else
			high = middle;
	}
	return high;
}

/**
 * timeout_gains - the timeouts that make less work than none
 * @service: law of S
 * @size: law of X
 * @set: where the set {tau: L(tau) < 1} is put, as intervals [low, high); freed
 * by the caller
 *
 * The last bound may be infinite. Intervals that are narrower than the grid on
 * which they are looked for may be missed.
 *
 * Return: how many intervals there are.
 */
size_t timeout_gains(const struct law *service, const struct law *size,
		     struct timeout_interval **set)
{
	struct question q = { service, size, 0 };
	struct timeout_interval *found;
	bool inside = false;
	size_t i, n, nr = 0;
	double *tau;

	*set = NULL;
	if (!isfinite(service->mean) || !isfinite(size->mean))
		return 0;
	n = candidates(&q, &tau);
	found = malloc((n / 2 + 1) * sizeof(*found));
	if (!found)
		abort();
	for (i = 0; i < n; i++) {
		double before = i ? tau[i - 1] : tau[0] / 2, at;

		if (gains(&q, tau[i]) == inside)
			continue;
		/* If it gains before the first one, it does from 0 on. */
		at = gains(&q, before) == inside ? border(&q, before, tau[i], inside) : 0;
		if (inside)
			found[nr++].high = at;
		else
			found[nr].low = at;
		inside = !inside;
	}
	if (inside)
		found[nr++].high = INFINITY;
	free(tau);
	*set = found;
	return nr;
}

/**
 * timeout_max_load - the largest load at which some timeout is stable
 * @service: law of S
 * @size: law of X
 *
 * Return: 1 / L(tau*), per server; 1 if no timeout helps.
 */
double timeout_max_load(const struct law *service, const struct law *size)
{
	double load;

	timeout_best(service, size, &load);
	return 1 / load;
}
