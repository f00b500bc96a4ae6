// SPDX-License-Identifier: GPL-2.0
/* budget.h: a bucket that never pays more than reads have earned. */
#include "budget.h"
#include "tap.h"

#define STEPS 1000000

static void edges(void)
{
	CHECK(!hedge_budget_pays(0), "empty");
	CHECK(!hedge_budget_pays(99), "99");
	CHECK(hedge_budget_pays(100), "100");
	CHECK(hedge_budget_credit(0, 10) == 10, "10");
	CHECK(hedge_budget_credit(6399, 1) == 6400, "6399 + 1");
	CHECK(hedge_budget_credit(6400, 1) == 6400, "cap");
	CHECK(hedge_budget_credit(6390, 700) == 6400, "beyond the cap");
}

/*
 * Bursts of reads and bursts of wishes for copies, with the budget of each
 * number of legs. With a wish for each read all that was earned is paid.
 */
static void never_more_than_earned(void)
{
	u64 reads = 0, extra = 0;
	u32 pct = 10, level = 0;
	unsigned int i;
	bool wishes = false;

	for (i = 0; i < STEPS; i++) {
		if (!below(10000)) {
			pct = below(701);
			level = 0;
			reads = 0;
			extra = 0;
		}
		if (!below(50))
			wishes = !wishes;
		if (below(2)) {
			reads++;
			level = hedge_budget_credit(level, pct);
		} else if (wishes && hedge_budget_pays(level)) {
			extra++;
			level -= HEDGE_COPY_COST;
		}
		CHECK(level <= HEDGE_BUDGET_CAP, "step %u: level %u", i, level);
		CHECK(100 * extra <= pct * reads,
		      "step %u: %llu extra of %llu reads at %u %%", i,
		      (unsigned long long)extra, (unsigned long long)reads,
		      pct);
	}
}

static void all_that_is_earned_can_be_paid(void)
{
	u32 pct, level, reads, extra;

	for (pct = 0; pct <= 100; pct++) {
		level = 0;
		extra = 0;
		for (reads = 1; reads <= 1000; reads++) {
			level = hedge_budget_credit(level, pct);
			if (hedge_budget_pays(level)) {
				level -= HEDGE_COPY_COST;
				extra++;
			}
		}
		CHECK(extra == pct * 1000 / 100, "%u extra at %u %%", extra,
		      pct);
	}
}

/* After the longest quiet, 64 copies can be paid and no more. */
static void cap(void)
{
	u32 level = 0, extra = 0;
	unsigned int i;

	for (i = 0; i < STEPS; i++)
		level = hedge_budget_credit(level, 10);
	for (; hedge_budget_pays(level); level -= HEDGE_COPY_COST)
		extra++;
	CHECK(extra == 64, "%u", extra);
}

static const struct tap_test tests[] = {
	{ "budget: edges", edges },
	{ "budget: extra copies never exceed what reads earned",
	  never_more_than_earned },
	{ "budget: all that is earned can be paid",
	  all_that_is_earned_can_be_paid },
	{ "budget: the bucket holds 64 copies", cap },
};

int main(void)
{
	return tap_run(tests, ARRAY_SIZE(tests));
}
