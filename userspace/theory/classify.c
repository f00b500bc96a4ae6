// SPDX-License-Identifier: GPL-2.0
/*
 * Classes of laws, and the hazard-rate order. See classify.h.
 *
 * Both are statements about all times, checked on a grid. The grid has a fixed
 * number of quantiles, and the points on either side of each step.
 *
 * Of a measured law only so much is believed as its samples can tell. Inside a
 * bucket its hazard is taken as constant (elsewhere its density is), so that
 * buckets do not make an exponential law look like something else.
 */
#include <math.h>
#include <stdlib.h>

#include "classify.h"

#define POINTS		160
#define ORDER_POINTS	60	/* so few that sorting them allocates nothing */
#define ROUNDING	1e-9
/* Of a measured law: events below which a tail says nothing, and errors allowed. */
#define MIN_EXPECTED	10
#define ERRORS		3

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* --- classes ----------------------------------------------------------------- */

/* P(X > x) with a constant hazard inside each bucket. */
static double smooth_tail(const struct law *law, double x)
{
	const struct law_bucket *b;
	double above;

	if (law->kind != LAW_FILE)
		return law_tail(law, x);
	b = law_bucket_of(law, x);
	if (!b)
		return 0;
	above = b->tail + b->mass;
	if (x <= b->low || b->tail <= 0)
		return law_tail(law, x);
	return above * pow(b->tail / above, (x - b->low) / (b->high - b->low));
}

/* Times at which the definition is tried. */
static size_t times(const struct law *law, double *t)
{
	double at[2];
	size_t n = 0, i, nr;

	if (law->kind == LAW_FILE) {
		/* Bounds of buckets; of many only some. */
		size_t stride = law->nr / (POINTS / 2) + 1;

		t[n++] = law->bucket[0].low / 2;
		for (i = 0; i < law->nr; i += stride) {
			t[n++] = law->bucket[i].low;
			t[n++] = law->bucket[i].high;
		}
		return n;
	}
	for (i = 0; i < POINTS / 2; i++)
		t[n++] = law_quantile(law, (i + 0.5) / (POINTS / 2));
	/* Far into the tail: the quantiles of 1 - 10^-1 to 1 - 10^-9. */
	for (i = 0; i < POINTS / 4; i++)
		t[n++] = law_quantile(law, -expm1(-(1 + 8.0 * i / (POINTS / 4)) * M_LN10));
	nr = law_atoms(law, at);
	for (i = 0; i < nr; i++) {
		t[n++] = at[i];
		t[n++] = nextafter(at[i], 0);
		t[n++] = at[i] / 2;
	}
	return n;
}

/**
 * law_classify - tell the class of a law
 * @law: the law
 *
 * A measured law gets a class unless its samples contradict it.
 */
enum law_class law_classify(const struct law *law)
{
	enum law_class class = LAW_MEMORYLESS;
	double t[POINTS + 8];
	size_t i, j, n = times(law, t);

	for (i = 0; i < n; i++) {
		for (j = i; j < n; j++) {
			double product = smooth_tail(law, t[i]) * smooth_tail(law, t[j]);
			double joint = smooth_tail(law, t[i] + t[j]);
			double slack = ROUNDING * product;

			if (law->samples) {
				if (product * law->samples < MIN_EXPECTED)
					continue;
				slack = ERRORS * (sqrt(joint / law->samples) +
						  product * (1 / sqrt(law->samples * smooth_tail(law, t[i])) +
							     1 / sqrt(law->samples * smooth_tail(law, t[j]))));
			}
			if (joint > product + slack)
				class &= ~LAW_NBU;
			if (joint < product - slack)
				class &= ~LAW_NWU;
		}
	}
	return class;
}

/**
 * law_class_name - a class in words
 * @class: the class
 */
const char *law_class_name(enum law_class class)
{
	switch (class) {
	case LAW_NBU:
		return "new-better-than-used";
	case LAW_NWU:
		return "new-worse-than-used";
	case LAW_MEMORYLESS:
		return "memoryless";
	default:
		return "neither";
	}
}

/* --- the hazard-rate order ----------------------------------------------------- */

/**
 * law_residual_below - whether what is left is smaller in hazard-rate order
 * @law: law of the time that something takes
 * @scale: by which that time is multiplied
 * @elapsed: how long it has taken by now
 * @other: law of another time
 *
 * R, what is left given that something is, is below O if P(O > u) / P(R > u)
 * never falls, that is, if R has the higher hazard rate everywhere.
 *
 * Return: true if it is.
 */
bool law_residual_below(const struct law *law, double scale, double elapsed,
			const struct law *other)
{
	double left = law_tail(law, elapsed / scale), at[2], u[2 * ORDER_POINTS + 4];
	double ratio, last = 0;
	size_t i, n = 0, nr;

	if (left <= 0)
		return true;
	for (i = 0; i < ORDER_POINTS; i++) {
		double p = (i + 0.5) / ORDER_POINTS;

		u[n++] = law_quantile(other, p);
		u[n++] = scale * law_quantile(law, 1 - left * (1 - p)) - elapsed;
	}
	nr = law_atoms(other, at);
	for (i = 0; i < nr; i++) {
		u[n++] = at[i];
		u[n++] = nextafter(at[i], 0);
	}
	qsort(u, n, sizeof(*u), ascending);
	for (i = 0; i < n; i++) {
		double rest;

		if (u[i] < 0)
			continue;
		rest = law_tail(law, (elapsed + u[i]) / scale) / left;
		if (rest <= 0)
			return true;	/* R has ended; O may go on. */
		ratio = law_tail(other, u[i]) / rest;
		if (ratio < last * (1 - 1e-9))
			return false;
		last = ratio;
	}
	return true;
}
