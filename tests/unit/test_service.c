// SPDX-License-Identifier: GPL-2.0
/* service.[ch]: the smoothed service time, and how deep a leg can be loaded. */
#include "service.h"
#include "tap.h"

/* The estimate counts in 1024 ns. */
#define US 1024ULL

static u32 feed(u32 service, u64 sample_ns, unsigned int times)
{
	while (times--)
		service = hedge_service_update(service, sample_ns);
	return service;
}

static void first_sample(void)
{
	CHECK(hedge_service_update(0, 200 * US) == 200, "200 us");
	CHECK(hedge_service_update(0, 0) == 1, "0");
	CHECK(hedge_service_update(0, 1023) == 1, "1023 ns");
	CHECK(hedge_service_update(0, ~0ULL) == HEDGE_SERVICE_MAX_US, "longest");
}

static void smoothing(void)
{
	CHECK(hedge_service_update(800, 800 * US) == 800, "same");
	CHECK(hedge_service_update(800, 1600 * US) == 900, "an eighth up");
	CHECK(hedge_service_update(800, 400 * US) == 750, "an eighth down");
	CHECK(hedge_service_update(800, 801 * US) == 801, "least step up");
	CHECK(hedge_service_update(800, 799 * US) == 799, "least step down");
}

/* A stall of 100 times the usual moves the estimate by 3/8, not by 12. */
static void winsorising(void)
{
	CHECK(hedge_service_update(200, 20000 * US) == 275, "100 times");
	CHECK(hedge_service_update(200, 800 * US) == 275, "4 times");
	CHECK(hedge_service_update(200, 792 * US) == 274, "less than 4 times");
	CHECK(hedge_service_update(200, ~0ULL) == 275, "longest");
}

static void converges(void)
{
	static const u32 levels[] = { 1, 2, 7, 200, 20000, 1000000,
				      HEDGE_SERVICE_MAX_US };
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(levels); i++)
		for (j = 0; j < ARRAY_SIZE(levels); j++)
			CHECK(feed(levels[i], levels[j] * US, 200) == levels[j],
			      "from %u to %u", levels[i], levels[j]);
	/* A leg that became ten times slower is believed after few samples. */
	CHECK(feed(200, 2000 * US, 12) > 1000, "12 samples up");
	CHECK(feed(2000, 200 * US, 12) < 600, "12 samples down");
}

/* Stays between the estimate and the sample, at least 1. */
static void random_samples(void)
{
	u32 service = 0;
	unsigned int i;

	for (i = 0; i < 1000000; i++) {
		u64 ns = ((u64)hedge_random(&rng) << 32 | hedge_random(&rng)) >>
			 below(64);
		u64 us = max(ns >> 10, (u64)1);
		u32 next = hedge_service_update(service, ns);

		CHECK(next >= 1 && next <= HEDGE_SERVICE_MAX_US, "%u", next);
		if (service && us >= service)
			CHECK(next >= service && next <= us &&
			      next <= service + (3 * (u64)service + 7) / 8,
			      "%u, then %u after %llu", service, next,
			      (unsigned long long)us);
		if (service && us < service)
			CHECK(next < service && next >= us,
			      "%u, then %u after %llu", service, next,
			      (unsigned long long)us);
		service = below(100) ? next : 0;
	}
}

static void forgetting(void)
{
	u32 service = HEDGE_SERVICE_MAX_US;
	unsigned int i;

	CHECK(hedge_service_forget(2000, 200) == 1100, "half way");
	CHECK(hedge_service_forget(200, 200) == 200, "the best itself");
	CHECK(hedge_service_forget(100, 200) == 100, "better than the best");
	CHECK(hedge_service_forget(0, 200) == 0, "no estimate stays none");
	for (i = 0; i < 24; i++)
		service = hedge_service_forget(service, 1);
	CHECK(service == 1, "24 seconds after 16 s: %u", service);
}

static void depth_index(void)
{
	unsigned int i;

	for (i = 0; i < HEDGE_DEPTHS; i++) {
		CHECK(hedge_depth_index(1U << i) == i, "%u", 1U << i);
		if (i > 1)
			CHECK(hedge_depth_index((1U << (i - 1)) + 1) == i, "%u",
			      (1U << (i - 1)) + 1);
	}
	CHECK(hedge_depth_index(4097) == HEDGE_DEPTHS - 1, "4097");
	CHECK(hedge_depth_index(~0U) == HEDGE_DEPTHS - 1, "most");
}

static void fill(struct hedge_depth_sample *samples, unsigned int from,
		 unsigned int to, u64 count, u64 mean_us)
{
	unsigned int i;

	for (i = from; i <= to; i++)
		samples[i] = (struct hedge_depth_sample){ count,
							  count * mean_us };
}

static void depth_learning(void)
{
	struct hedge_depth_sample s[HEDGE_DEPTHS] = { 0 };

	CHECK(hedge_depth_learn(s) == 1, "nothing measured");

	fill(s, 0, 12, 1000, 200);
	CHECK(hedge_depth_learn(s) == 4096, "flat to the end");

	fill(s, 4, 12, 1000, 400);
	CHECK(hedge_depth_learn(s) == 8, "rising after 8");

	fill(s, 4, 4, 1000, 250);
	CHECK(hedge_depth_learn(s) == 16, "25 %% more");
	fill(s, 4, 4, 1000, 251);
	CHECK(hedge_depth_learn(s) == 8, "over 25 %% more");

	/* The least is the least at any depth, not that of the lowest. */
	fill(s, 0, 1, 1000, 300);
	CHECK(hedge_depth_learn(s) == 8, "slow when lightly loaded");
	fill(s, 2, 12, 1000, 400);
	CHECK(hedge_depth_learn(s) == 2, "rising after 2");
}

static void depth_few_samples(void)
{
	struct hedge_depth_sample s[HEDGE_DEPTHS] = { 0 };

	fill(s, 0, 12, 99, 200);
	CHECK(hedge_depth_learn(s) == 1, "99 samples everywhere");
	fill(s, 0, 2, 1000, 200);
	CHECK(hedge_depth_learn(s) == 4, "99 samples beyond 4");
	fill(s, 5, 5, 100, 200);
	CHECK(hedge_depth_learn(s) == 32, "a gap in what was measured");
	/* Few samples of a short time do not set the least. */
	fill(s, 12, 12, 99, 1);
	CHECK(hedge_depth_learn(s) == 32, "99 short samples at 4096");
	/* A day of a million reads a second does not overflow. */
	fill(s, 0, 12, 86400ULL * 1000000, 1000000);
	CHECK(hedge_depth_learn(s) == 4096, "many samples");
}

static const struct tap_test tests[] = {
	{ "service: the first sample", first_sample },
	{ "service: an eighth of each sample", smoothing },
	{ "service: a stall counts as four times the usual", winsorising },
	{ "service: arrives at a constant sample, up and down", converges },
	{ "service: random samples", random_samples },
	{ "service: forgetting", forgetting },
	{ "service: index of a depth", depth_index },
	{ "service: depth is learnt", depth_learning },
	{ "service: depth from few samples", depth_few_samples },
};

int main(void)
{
	return tap_run(tests, ARRAY_SIZE(tests));
}
