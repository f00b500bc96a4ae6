// SPDX-License-Identifier: GPL-2.0
/* histogram.h: buckets that are narrow, in order and without a gap. */
#include "histogram.h"
#include "tap.h"

#define LAST (HEDGE_HIST_BUCKETS - 1)

/* Bounds are told apart by what hedge_hist_bucket() does on either side. */
static void bounds_match_buckets(void)
{
	unsigned int b;

	for (b = 0; b < HEDGE_HIST_BUCKETS; b++) {
		u64 lower = hedge_hist_lower(b), end = hedge_hist_lower(b + 1);

		CHECK(end > lower, "bucket %u", b);
		CHECK(hedge_hist_bucket(lower) == b, "bucket %u", b);
		CHECK(hedge_hist_bucket(end - 1) == b, "bucket %u", b);
		if (b)
			CHECK(hedge_hist_bucket(lower - 1) == b - 1,
			      "bucket %u", b);
	}
}

/* From 1024 ns to beyond 100 s; what is below 1024 ns is one bucket. */
static void buckets_are_narrow(void)
{
	unsigned int b;

	for (b = 1; b < HEDGE_HIST_BUCKETS; b++) {
		u64 lower = hedge_hist_lower(b);
		u64 width = hedge_hist_lower(b + 1) - lower;

		CHECK(8 * width <= lower, "bucket %u: %llu at %llu", b,
		      (unsigned long long)width, (unsigned long long)lower);
	}
	CHECK(hedge_hist_lower(1) == 1024, "first bound");
	CHECK(hedge_hist_lower(HEDGE_HIST_BUCKETS) > 100 * HEDGE_NS_PER_S,
	      "last bound");
}

static void extremes(void)
{
	CHECK(hedge_hist_bucket(0) == 0, "0");
	CHECK(hedge_hist_bucket(1000) == 0, "1 us");
	CHECK(hedge_hist_bucket(1023) == 0, "1023");
	CHECK(hedge_hist_bucket(1024) == 1, "1024");
	CHECK(hedge_hist_bucket(1151) == 1, "1151");
	CHECK(hedge_hist_bucket(1152) == 2, "1152");
	CHECK(hedge_hist_bucket(100 * HEDGE_NS_PER_S) < LAST, "100 s");
	CHECK(hedge_hist_bucket((1ULL << 37) - 1) == LAST, "just below 137 s");
	CHECK(hedge_hist_bucket(1ULL << 37) == LAST, "137 s");
	CHECK(hedge_hist_bucket(~0ULL) == LAST, "for ever");
	CHECK(hedge_hist_lower(0) == 0, "lower bound of the first");
}

static void random_latencies(void)
{
	unsigned int i;

	for (i = 0; i < 1000000; i++) {
		u64 a = ((u64)hedge_random(&rng) << 32 | hedge_random(&rng)) >>
			below(64);
		u64 b = a + ((u64)hedge_random(&rng) >> below(32));
		unsigned int bucket = hedge_hist_bucket(a);

		CHECK(bucket < HEDGE_HIST_BUCKETS, "%llu",
		      (unsigned long long)a);
		CHECK(hedge_hist_lower(bucket) <= a, "%llu",
		      (unsigned long long)a);
		CHECK(bucket == LAST || a < hedge_hist_lower(bucket + 1), "%llu",
		      (unsigned long long)a);
		if (b >= a)
			CHECK(hedge_hist_bucket(b) >= bucket, "%llu %llu",
			      (unsigned long long)a, (unsigned long long)b);
	}
}

static void size_classes(void)
{
	CHECK(hedge_size_class(512) == HEDGE_SIZE_16K, "512");
	CHECK(hedge_size_class(16384) == HEDGE_SIZE_16K, "16384");
	CHECK(hedge_size_class(16896) == HEDGE_SIZE_64K, "16896");
	CHECK(hedge_size_class(65536) == HEDGE_SIZE_64K, "65536");
	CHECK(hedge_size_class(66048) == HEDGE_SIZE_LARGE, "66048");
	CHECK(hedge_size_class(~0U) == HEDGE_SIZE_LARGE, "largest");
}

static const struct tap_test tests[] = {
	{ "histogram: bounds and buckets are each other's inverse",
	  bounds_match_buckets },
	{ "histogram: no bucket is wider than 12.5 %", buckets_are_narrow },
	{ "histogram: extremes", extremes },
	{ "histogram: random latencies fall in their bucket, in order",
	  random_latencies },
	{ "histogram: size classes", size_classes },
};

int main(void)
{
	return tap_run(tests, ARRAY_SIZE(tests));
}
