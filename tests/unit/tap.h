/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The little that the unit tests share: a test is a function that CHECKs, and
 * tap_run() runs a table of them and prints TAP.
 *
 * Random numbers come from one generator that starts at SEED for each test (the
 * environment's, else 1), so that a failure can be seen again; a failed CHECK
 * prints the seed. Loops call CHECK a million times: a test reports its first
 * failures only.
 */
#ifndef TESTS_UNIT_TAP_H
#define TESTS_UNIT_TAP_H

#include <stdio.h>
#include <stdlib.h>

#include "types.h"

struct tap_test {
	const char *name;
	void (*run)(void);
};

static unsigned long long tap_failures;
static u64 rng;

static inline u64 tap_seed(void)
{
	const char *seed = getenv("SEED");

	return seed && strtoull(seed, NULL, 0) ? strtoull(seed, NULL, 0) : 1;
}

/* A random number below a bound. */
static inline u32 below(u32 bound)
{
	return hedge_random_below(&rng, bound);
}

/* A random number in [0, 1). */
static inline double uniform(void)
{
	return hedge_random(&rng) / 4294967296.0;
}

#define CHECK(cond, ...)						\
do {									\
	if (!(cond) && tap_failures++ < 5) {				\
		printf("# %s:%d: %s (SEED=%llu): ", __FILE__, __LINE__,	\
		       #cond, (unsigned long long)tap_seed());		\
		printf(__VA_ARGS__);					\
		printf("\n");						\
	}								\
} while (0)

static inline int tap_run(const struct tap_test *tests, unsigned int nr)
{
	unsigned int i, failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("1..%u\n", nr);
	for (i = 0; i < nr; i++) {
		tap_failures = 0;
		rng = tap_seed();
		tests[i].run();
		failed += !!tap_failures;
		printf("%sok %u - %s\n", tap_failures ? "not " : "", i + 1,
		       tests[i].name);
	}
	return failed != 0;
}

#endif
