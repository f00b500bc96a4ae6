/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a law says of redundancy before anything is simulated.
 *
 * A law is new-better-than-used if what has run for a while is, in every
 * quantile, nearer to its end than something new,
 *
 *	P(X > s + t) <= P(X > s) P(X > t)	for all s, t,
 *
 * and new-worse-than-used with >= instead. The literature on redundant requests
 * calls the same laws light-everywhere and heavy-everywhere. A second copy of
 * what has started wastes work under the first, and saves work under the second.
 */
#ifndef THEORY_CLASSIFY_H
#define THEORY_CLASSIFY_H

#include "law.h"

/**
 * enum law_class - how a copy that has run compares with a new one
 * @LAW_NEITHER: it depends on how long it has run
 * @LAW_NBU: new-better-than-used, light-everywhere
 * @LAW_NWU: new-worse-than-used, heavy-everywhere
 * @LAW_MEMORYLESS: both: exponential
 */
enum law_class {
	LAW_NEITHER = 0,
	LAW_NBU = 1,
	LAW_NWU = 2,
	LAW_MEMORYLESS = LAW_NBU | LAW_NWU,
};

enum law_class law_classify(const struct law *law);
const char *law_class_name(enum law_class class);
bool law_residual_below(const struct law *law, double scale, double elapsed,
			const struct law *other);

#endif
