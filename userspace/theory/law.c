// SPDX-License-Identifier: GPL-2.0
/*
 * Laws: reading them, their functions in closed form, and sampling.
 *
 * Everything else follows from three functions of each law: the tail P(X > x),
 * the density, and the limited mean E[min(X, t)], the integral of the tail up to
 * t. Samples are drawn by inversion of the tail, or as what the law is made of.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_roots.h>
#include <gsl/gsl_sf_gamma.h>

#include "histogram.h"
#include "law.h"

#define MAX_STAGES 1000	/* of an Erlang law: each is a logarithm a sample */

static const struct {
	const char *name, *parameters;
	int min, max;		/* how many parameters */
} laws[] = {
	[LAW_DET]	= { "det", "m", 1, 1 },
	[LAW_EXP]	= { "exp", "m", 1, 1 },
	[LAW_ERLANG]	= { "erlang", "k,m", 2, 2 },
	[LAW_HYPEREXP]	= { "hyperexp", "p1,m1,m2", 3, 3 },
	[LAW_BIMODAL]	= { "bimodal", "a,b,p", 3, 3 },
	[LAW_PARETO]	= { "pareto", "alpha,xm[,max]", 2, 3 },
	[LAW_LOMAX]	= { "lomax", "a,m", 2, 2 },
	[LAW_WEIBULL]	= { "weibull", "k,s", 2, 2 },
	[LAW_UNIFORM]	= { "uniform", "a,b", 2, 2 },
	[LAW_SHIFTEXP]	= { "shiftexp", "d,m", 2, 2 },
	[LAW_BERNOULLI]	= { "bernoulli", "p,v", 2, 2 },
	[LAW_FILE]	= { "file", "HISTOGRAM", 1, 1 },
};

#define NR_LAWS (sizeof(laws) / sizeof(laws[0]))

/* --- the truncated Pareto law --------------------------------------------- */

/* P(X <= max) of the law before it is cut at max. */
static double pareto_kept(const struct law *law)
{
	return -expm1(law->a * log(law->b / law->c));
}

/* The integral of x^n times the density from xm to t, without the cut. */
static double pareto_partial(const struct law *law, double n, double t)
{
	double alpha = law->a, xm = law->b;

	if (alpha == n)
		return alpha * pow(xm, alpha) * log(t / xm);
	if (isinf(t))
		return alpha > n ? alpha * pow(xm, n) / (alpha - n) : INFINITY;
	return alpha * pow(xm, alpha) / (alpha - n) *
	       (pow(xm, n - alpha) - pow(t, n - alpha));
}

/* --- measured laws ----------------------------------------------------------- */

static int compare_buckets(const void *a, const void *b)
{
	const struct law_bucket *x = a, *y = b;

	return (x->low > y->low) - (x->low < y->low);
}

/* Sorts the buckets, merges those of the size classes, makes counts masses. */
static void normalise(struct law *law)
{
	double total = 0, tail = 1;
	size_t i, n = 0;

	qsort(law->bucket, law->nr, sizeof(*law->bucket), compare_buckets);
	for (i = 0; i < law->nr; i++) {
		total += law->bucket[i].mass;
		if (n && law->bucket[n - 1].low == law->bucket[i].low)
			law->bucket[n - 1].mass += law->bucket[i].mass;
		else
			law->bucket[n++] = law->bucket[i];
	}
	law->nr = n;
	law->samples = total;
	for (i = 0; i < n; i++) {
		law->bucket[i].mass /= total;
		tail -= law->bucket[i].mass;
		law->bucket[i].tail = i == n - 1 ? 0 : fmax(tail, 0);
	}
}

static int read_histogram(struct law *law, const char *path, char *error, size_t size)
{
	FILE *file = fopen(path, "re");
	unsigned long long ns, count;
	char *line = NULL;
	size_t room = 0;

	if (!file) {
		snprintf(error, size, "%s: %s", path, strerror(errno));
		return -1;
	}
	while (getline(&line, &room, file) >= 0) {
		struct law_bucket *grown;
		unsigned int bucket;

		/* Anything else is the heading of a size class. */
		if (sscanf(line, "%llu %llu", &ns, &count) != 2 || !count)
			continue;
		grown = realloc(law->bucket, (law->nr + 1) * sizeof(*grown));
		if (!grown)
			abort();
		law->bucket = grown;
		bucket = hedge_hist_bucket(ns);
		law->bucket[law->nr++] = (struct law_bucket) {
			.low = hedge_hist_lower(bucket) / 1e3,
			.high = hedge_hist_lower(bucket + 1) / 1e3,
			.mass = count,
		};
	}
	free(line);
	fclose(file);
	if (!law->nr) {
		snprintf(error, size, "%s: expected lines '<lower bound in ns> <count>'", path);
		return -1;
	}
	normalise(law);
	return 0;
}

/**
 * law_bucket_of - the bucket of a time
 * @law: a measured law
 * @x: the time
 *
 * Return: the first bucket that ends above @x, or NULL.
 */
const struct law_bucket *law_bucket_of(const struct law *law, double x)
{
	size_t low = 0, high = law->nr;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (law->bucket[middle].high > x)
			high = middle;
		else
			low = middle + 1;
	}
	return low < law->nr ? &law->bucket[low] : NULL;
}

static double bucket_tail(const struct law_bucket *b, double x)
{
	if (x <= b->low)
		return b->tail + b->mass;
	return b->tail + b->mass * (b->high - x) / (b->high - b->low);
}

static double file_mean_min(const struct law *law, double t)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < law->nr; i++) {
		const struct law_bucket *b = &law->bucket[i];

		if (t >= b->high)
			sum += b->mass * (b->low + b->high) / 2;
		else if (t <= b->low)
			sum += b->mass * t;
		else
			sum += b->mass * ((t - b->low) * (t + b->low) / 2 +
					  (b->high - t) * t) / (b->high - b->low);
	}
	return sum;
}

static double file_quantile(const struct law *law, double p)
{
	size_t i;

	for (i = 0; i < law->nr - 1; i++)
		if (1 - law->bucket[i].tail >= p)
			break;
	return law->bucket[i].high - (p >= 1 ? 0 : (1 - p - law->bucket[i].tail)) /
	       law->bucket[i].mass * (law->bucket[i].high - law->bucket[i].low);
}

/* --- moments and reading ------------------------------------------------------ */

static void set_moments(struct law *law)
{
	double a = law->a, b = law->b, c = law->c, kept, scale;
	size_t i;

	switch (law->kind) {
	case LAW_DET:
		law->mean = a;
		law->second = a * a;
		break;
	case LAW_EXP:
		law->mean = a;
		law->second = 2 * a * a;
		break;
	case LAW_ERLANG:
		law->mean = b;
		law->second = b * b * (1 + 1 / a);
		break;
	case LAW_HYPEREXP:
		law->mean = a * b + (1 - a) * c;
		law->second = 2 * (a * b * b + (1 - a) * c * c);
		break;
	case LAW_BIMODAL:
		law->mean = c * a + (1 - c) * b;
		law->second = c * a * a + (1 - c) * b * b;
		break;
	case LAW_PARETO:
		kept = pareto_kept(law);
		law->mean = pareto_partial(law, 1, c) / kept;
		law->second = pareto_partial(law, 2, c) / kept;
		break;
	case LAW_LOMAX:
		scale = b * (a - 1);
		law->mean = b;
		law->second = a > 2 ? 2 * scale * scale / ((a - 1) * (a - 2)) : INFINITY;
		break;
	case LAW_WEIBULL:
		law->mean = b * gsl_sf_gamma(1 + 1 / a);
		law->second = b * b * gsl_sf_gamma(1 + 2 / a);
		break;
	case LAW_UNIFORM:
		law->mean = (a + b) / 2;
		law->second = (a * a + a * b + b * b) / 3;
		break;
	case LAW_SHIFTEXP:
		law->mean = a + b;
		law->second = (a + b) * (a + b) + b * b;
		break;
	case LAW_BERNOULLI:
		law->mean = a * b;
		law->second = a * b * b;
		break;
	case LAW_FILE:
		for (i = 0; i < law->nr; i++) {
			double low = law->bucket[i].low, high = law->bucket[i].high;

			law->mean += law->bucket[i].mass * (low + high) / 2;
			law->second += law->bucket[i].mass *
				       (low * low + low * high + high * high) / 3;
		}
		break;
	}
}

static bool probability(double p)
{
	return p >= 0 && p <= 1;
}

/* What is wrong with a law's parameters, or NULL. */
static const char *wrong(const struct law *law)
{
	double a = law->a, b = law->b, c = law->c;

	switch (law->kind) {
	case LAW_DET:
		return a >= 0 ? NULL : "m not negative";
	case LAW_EXP:
		return a > 0 ? NULL : "m above 0";
	case LAW_ERLANG:
		return a >= 1 && a <= MAX_STAGES && a == floor(a) && b > 0 ?
		       NULL : "k a whole number from 1 to 1000, m above 0";
	case LAW_HYPEREXP:
		return probability(a) && b > 0 && c > 0 ?
		       NULL : "p1 from 0 to 1, m1 and m2 above 0";
	case LAW_BIMODAL:
		return a >= 0 && b > a && probability(c) ?
		       NULL : "a below b, p from 0 to 1";
	case LAW_PARETO:
		return a > 0 && b > 0 && c > b ?
		       NULL : "alpha and xm above 0, max above xm";
	case LAW_LOMAX:
		return a > 1 && b > 0 ? NULL : "a above 1, m above 0";
	case LAW_WEIBULL:
		return a >= 0.05 && a <= 100 && b > 0 ?
		       NULL : "k from 0.05 to 100, s above 0";
	case LAW_UNIFORM:
		return a >= 0 && b > a ? NULL : "a below b";
	case LAW_SHIFTEXP:
		return a >= 0 && b > 0 ? NULL : "d not negative, m above 0";
	case LAW_BERNOULLI:
		return a > 0 && a <= 1 && b > 0 ?
		       NULL : "p above 0 and at most 1, v above 0";
	default:
		return NULL;
	}
}

static int read_numbers(const char *text, double *number, int most)
{
	int n = 0;

	for (;;) {
		char *end;

		if (n == most)
			return -1;
		number[n] = strtod(text, &end);
		if (end == text || !isfinite(number[n]))
			return -1;
		n++;
		if (!*end)
			return n;
		if (*end != ',')
			return -1;
		text = end + 1;
	}
}

static int list_laws(const char *text, char *error, size_t size)
{
	size_t i, n;

	n = snprintf(error, size, "law '%s': expected one of", text);
	for (i = 0; i < NR_LAWS && n < size; i++)
		n += snprintf(error + n, size - n, " %s:%s", laws[i].name, laws[i].parameters);
	return -1;
}

/**
 * law_from_buckets - a measured law
 * @law: to be set up; give it back with law_free()
 * @bucket: allocated buckets, which the law takes over; @mass is a weight of any
 * scale, and buckets of the same bounds add up
 * @nr: how many, at least 1
 */
void law_from_buckets(struct law *law, struct law_bucket *bucket, size_t nr)
{
	*law = (struct law) { .kind = LAW_FILE, .bucket = bucket, .nr = nr };
	normalise(law);
	set_moments(law);
}

/**
 * law_parse - read a law
 * @law: the law to fill; freed with law_free(), on error too
 * @text: as it is written, see law.h
 * @error: where an error is put that names the word and what was expected
 * @size: room in @error
 *
 * Return: 0, or -1 with @error filled.
 */
int law_parse(struct law *law, const char *text, char *error, size_t size)
{
	double number[3] = { 0, 0, INFINITY };
	const char *colon = strchr(text, ':');
	const char *expected;
	size_t i;
	int n;

	*law = (struct law) { 0 };
	for (i = 0; i < NR_LAWS; i++)
		if (colon && strlen(laws[i].name) == (size_t)(colon - text) &&
		    !strncmp(laws[i].name, text, colon - text))
			break;
	if (i == NR_LAWS)
		return list_laws(text, error, size);
	law->kind = i;
	if (law->kind == LAW_FILE) {
		if (read_histogram(law, colon + 1, error, size))
			return -1;
		set_moments(law);
		return 0;
	}
	n = read_numbers(colon + 1, number, laws[i].max);
	if (n < laws[i].min) {
		snprintf(error, size, "law '%s': expected %s:%s, with numbers",
			 text, laws[i].name, laws[i].parameters);
		return -1;
	}
	law->a = number[0];
	law->b = number[1];
	law->c = number[2];
	expected = wrong(law);
	if (expected) {
		snprintf(error, size, "law '%s': expected %s:%s with %s",
			 text, laws[i].name, laws[i].parameters, expected);
		return -1;
	}
	set_moments(law);
	return 0;
}

/**
 * law_free - give back what a law holds
 * @law: the law
 */
void law_free(struct law *law)
{
	free(law->bucket);
	law->bucket = NULL;
	law->nr = 0;
}

/* --- functions ------------------------------------------------------------------ */

/**
 * law_has_density - whether a law has no probability in single points
 * @law: the law
 */
bool law_has_density(const struct law *law)
{
	return law->kind != LAW_DET && law->kind != LAW_BIMODAL && law->kind != LAW_BERNOULLI;
}

/**
 * law_atoms - the single times that have a probability
 * @law: the law
 * @at: where they are put, ascending; room for 2
 *
 * Time 0 counts as none.
 *
 * Return: how many there are.
 */
size_t law_atoms(const struct law *law, double *at)
{
	switch (law->kind) {
	case LAW_DET:
		at[0] = law->a;
		return 1;
	case LAW_BIMODAL:
		at[0] = law->a;
		at[1] = law->b;
		return 2;
	case LAW_BERNOULLI:
		at[0] = law->b;
		return 1;
	default:
		return 0;
	}
}

/**
 * law_tail - P(X > x)
 * @law: the law
 * @x: a time
 *
 * Exact in the far tail too, where 1 - law_cdf() has lost all digits.
 */
double law_tail(const struct law *law, double x)
{
	double a = law->a, b = law->b, c = law->c;
	const struct law_bucket *bucket;

	if (x < 0)
		return 1;
	switch (law->kind) {
	case LAW_DET:
		return x < a;
	case LAW_EXP:
		return exp(-x / a);
	case LAW_ERLANG:
		return gsl_cdf_gamma_Q(x, a, b / a);
	case LAW_HYPEREXP:
		return a * exp(-x / b) + (1 - a) * exp(-x / c);
	case LAW_BIMODAL:
		return x < a ? 1 : x < b ? 1 - c : 0;
	case LAW_PARETO:
		if (x <= b)
			return 1;
		if (x >= c)
			return 0;
		return (pow(b / x, a) - pow(b / c, a)) / pareto_kept(law);
	case LAW_LOMAX:
		return pow(1 + x / (b * (a - 1)), -a);
	case LAW_WEIBULL:
		return exp(-pow(x / b, a));
	case LAW_UNIFORM:
		return x < a ? 1 : x < b ? (b - x) / (b - a) : 0;
	case LAW_SHIFTEXP:
		return x < a ? 1 : exp(-(x - a) / b);
	case LAW_BERNOULLI:
		return x < b ? a : 0;
	case LAW_FILE:
		bucket = law_bucket_of(law, x);
		return bucket ? bucket_tail(bucket, x) : 0;
	}
	return NAN;
}

/**
 * law_cdf - F(x) = P(X <= x)
 * @law: the law
 * @x: a time
 */
double law_cdf(const struct law *law, double x)
{
	return 1 - law_tail(law, x);
}

/**
 * law_density - f(x), per unit of time
 * @law: the law
 * @x: a time
 *
 * Return: the density; NaN for laws without one.
 */
double law_density(const struct law *law, double x)
{
	double a = law->a, b = law->b, c = law->c, scale;
	const struct law_bucket *bucket;

	if (!law_has_density(law))
		return NAN;
	if (x < 0)
		return 0;
	switch (law->kind) {
	case LAW_EXP:
		return exp(-x / a) / a;
	case LAW_ERLANG:
		return gsl_ran_gamma_pdf(x, a, b / a);
	case LAW_HYPEREXP:
		return a / b * exp(-x / b) + (1 - a) / c * exp(-x / c);
	case LAW_PARETO:
		return x < b || x > c ? 0 : a / x * pow(b / x, a) / pareto_kept(law);
	case LAW_LOMAX:
		scale = b * (a - 1);
		return a / scale * pow(1 + x / scale, -a - 1);
	case LAW_WEIBULL:
		return a / b * pow(x / b, a - 1) * exp(-pow(x / b, a));
	case LAW_UNIFORM:
		return x < a || x >= b ? 0 : 1 / (b - a);
	case LAW_SHIFTEXP:
		return x < a ? 0 : exp(-(x - a) / b) / b;
	default:
		bucket = law_bucket_of(law, x);
		return bucket && x >= bucket->low ?
		       bucket->mass / (bucket->high - bucket->low) : 0;
	}
}

/**
 * law_hazard - h(x) = f(x) / P(X > x), per unit of time
 * @law: the law
 * @x: a time
 *
 * Return: the hazard rate; NaN for laws without a density, infinite where
 * nothing is left.
 */
double law_hazard(const struct law *law, double x)
{
	double tail = law_tail(law, x);

	if (!law_has_density(law))
		return NAN;
	return tail > 0 ? law_density(law, x) / tail : INFINITY;
}

struct target {
	const struct law *law;
	double log_tail;
};

static double miss(double x, void *context)
{
	const struct target *target = context;

	return log(law_tail(target->law, x)) - target->log_tail;
}

/* The x with P(X > x) = tail by Brent's method, for laws without a formula. */
static double invert(const struct law *law, double tail)
{
	struct target target = { law, log(tail) };
	gsl_function function = { miss, &target };
	gsl_root_fsolver *solver;
	double high = law->mean;
	int i;

	while (law_tail(law, high) > tail)
		high *= 2;
	solver = gsl_root_fsolver_alloc(gsl_root_fsolver_brent);
	gsl_root_fsolver_set(solver, &function, 0, high);
	for (i = 0; i < 200; i++) {
		gsl_root_fsolver_iterate(solver);
		if (gsl_root_test_interval(gsl_root_fsolver_x_lower(solver),
					   gsl_root_fsolver_x_upper(solver),
					   0, 1e-13) == GSL_SUCCESS)
			break;
	}
	high = gsl_root_fsolver_root(solver);
	gsl_root_fsolver_free(solver);
	return high;
}

/**
 * law_quantile_of_tail - the least x with P(X > x) <= tail
 * @law: the law
 * @tail: a probability
 *
 * Exact for the smallest of tails too, where 1 - tail has lost all digits.
 */
double law_quantile_of_tail(const struct law *law, double tail)
{
	double a = law->a, b = law->b, c = law->c;

	switch (law->kind) {
	case LAW_DET:
		return a;
	case LAW_EXP:
		return -a * log(tail);
	case LAW_ERLANG:
		return gsl_cdf_gamma_Qinv(tail, a, b / a);
	case LAW_HYPEREXP:
		return tail >= 1 ? 0 : tail > 0 ? invert(law, tail) : INFINITY;
	case LAW_BIMODAL:
		return tail >= 1 - c ? a : b;
	case LAW_PARETO:
		return b * pow(tail * pareto_kept(law) + pow(b / c, a), -1 / a);
	case LAW_LOMAX:
		return b * (a - 1) * (pow(tail, -1 / a) - 1);
	case LAW_WEIBULL:
		return b * pow(-log(tail), 1 / a);
	case LAW_UNIFORM:
		return b - tail * (b - a);
	case LAW_SHIFTEXP:
		return a - b * log(tail);
	case LAW_BERNOULLI:
		return tail >= a ? 0 : b;
	case LAW_FILE:
		return file_quantile(law, 1 - tail);
	}
	return NAN;
}

/**
 * law_quantile - the least x with F(x) >= p
 * @law: the law
 * @p: a probability
 */
double law_quantile(const struct law *law, double p)
{
	/* 1 - (1 - p) may be a hair above p: an atom must stay on its side. */
	if (law->kind == LAW_BIMODAL)
		return p <= law->c ? law->a : law->b;
	if (law->kind == LAW_BERNOULLI)
		return p <= 1 - law->a ? 0 : law->b;
	return law_quantile_of_tail(law, 1 - p);
}

/**
 * law_sample - draw from a law
 * @law: the law
 * @rng: generator of the random numbers
 */
double law_sample(const struct law *law, struct rng *rng)
{
	double u = rng_uniform(rng), product;
	int i;

	switch (law->kind) {
	case LAW_ERLANG:
		product = u;
		for (i = 1, u = 0; i < law->a; i++) {
			/* Taken out before it underflows. */
			if (product < 1e-200) {
				u += log(product);
				product = 1;
			}
			product *= rng_uniform(rng);
		}
		return -(u + log(product)) * law->b / law->a;
	case LAW_HYPEREXP:
		return -(u < law->a ? law->b : law->c) * log(rng_uniform(rng));
	case LAW_BIMODAL:
		return u < law->c ? law->a : law->b;
	case LAW_BERNOULLI:
		return u < law->a ? law->b : 0;
	default:
		return law_quantile_of_tail(law, u);
	}
}

/**
 * law_mean_min - E[min(X, t)], the integral of P(X > x) from 0 to t
 * @law: the law
 * @t: a time, may be infinite
 */
double law_mean_min(const struct law *law, double t)
{
	double a = law->a, b = law->b, c = law->c, scale;

	if (t <= 0)
		return 0;
	if (isinf(t))
		return law->mean;
	switch (law->kind) {
	case LAW_DET:
		return fmin(a, t);
	case LAW_EXP:
		return -a * expm1(-t / a);
	case LAW_ERLANG:
		return b * gsl_cdf_gamma_P(t, a + 1, b / a) + t * law_tail(law, t);
	case LAW_HYPEREXP:
		return -a * b * expm1(-t / b) - (1 - a) * c * expm1(-t / c);
	case LAW_BIMODAL:
		return c * fmin(a, t) + (1 - c) * fmin(b, t);
	case LAW_PARETO:
		if (t <= b)
			return t;
		return pareto_partial(law, 1, fmin(t, c)) / pareto_kept(law) + t * law_tail(law, t);
	case LAW_LOMAX:
		scale = b * (a - 1);
		return -b * expm1((1 - a) * log1p(t / scale));
	case LAW_WEIBULL:
		return law->mean * gsl_sf_gamma_inc_P(1 / a, pow(t / b, a));
	case LAW_UNIFORM:
		if (t <= a)
			return t;
		return t >= b ? law->mean :
		       a + ((b - a) * (b - a) - (b - t) * (b - t)) / (2 * (b - a));
	case LAW_SHIFTEXP:
		return t <= a ? t : a - b * expm1(-(t - a) / b);
	case LAW_BERNOULLI:
		return a * fmin(b, t);
	case LAW_FILE:
		return file_mean_min(law, t);
	}
	return NAN;
}

/**
 * law_residual - the mean residual life E[X - t | X > t]
 * @law: the law
 * @t: a time
 *
 * Return: the mean; NaN where nothing is left.
 */
double law_residual(const struct law *law, double t)
{
	return (law->mean - law_mean_min(law, t)) / law_tail(law, t);
}
