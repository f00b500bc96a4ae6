// SPDX-License-Identifier: GPL-2.0
/* stall.h: when a copy that is out proves its leg stalled. */
#include "stall.h"
#include "tap.h"

static void due(void)
{
	CHECK(hedge_stall_due(1000, 0, 100) == 1100, "nothing completed ever");
	CHECK(hedge_stall_due(1000, 500, 100) == 1100, "completed before");
	CHECK(hedge_stall_due(1000, 1050, 100) == 1150, "completed meanwhile");
	CHECK(hedge_stall_due(0, 0, 100000000ULL * HEDGE_NS_PER_US) ==
	      100 * HEDGE_NS_PER_S, "the longest rescue_us");
}

/*
 * A leg with a random history: it is stalled at a moment exactly if its oldest
 * copy has been out for the time and nothing completed in that time.
 */
static void random_histories(void)
{
	unsigned int i;

	for (i = 0; i < 1000000; i++) {
		u64 started = below(1000), done = below(1000);
		u64 now = below(2000), rescue = 1 + below(500);
		bool out_long = started + rescue <= now;
		bool quiet = done + rescue <= now;

		CHECK((now >= hedge_stall_due(started, done, rescue)) ==
		      (out_long && quiet),
		      "started %llu done %llu now %llu rescue %llu",
		      (unsigned long long)started, (unsigned long long)done,
		      (unsigned long long)now, (unsigned long long)rescue);
	}
}

static const struct tap_test tests[] = {
	{ "stall: when it is due", due },
	{ "stall: random histories", random_histories },
};

int main(void)
{
	return tap_run(tests, ARRAY_SIZE(tests));
}
