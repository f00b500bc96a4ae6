// SPDX-License-Identifier: GPL-2.0
/*
 * sitout.[ch]: who sits out, for how long, and who never does. Legs are given
 * a mean latency each and enough reads a second, unless a test says otherwise.
 */
#include "sitout.h"
#include "tap.h"

#define PCT 300
#define S 60

static struct hedge_sitout sit;
static unsigned int nr_legs;
static u64 mean_us[HEDGE_MAX_LEGS];
static u32 able, sitting;

static void start(unsigned int legs)
{
	unsigned int i;

	memset(&sit, 0, sizeof(sit));
	nr_legs = legs;
	able = (1U << legs) - 1;
	sitting = 0;
	for (i = 0; i < legs; i++)
		mean_us[i] = 200;
}

/* One second in which every leg that serves had @reads reads. */
static void second(u64 reads)
{
	unsigned int i;

	for (i = 0; i < nr_legs; i++)
		if (!(sitting & (1U << i)))
			hedge_sitout_add(&sit, i, reads, reads * mean_us[i]);
	sitting = hedge_sitout_tick(&sit, PCT, S, able);
}

static void seconds(unsigned int n)
{
	while (n--)
		second(100);
}

/* Seconds until a leg sits (or not), at most @most. */
static unsigned int until(unsigned int leg, bool sits, unsigned int most)
{
	unsigned int n;

	for (n = 0; n < most; n++) {
		if (!!(sitting & (1U << leg)) == sits)
			return n;
		second(100);
	}
	return n;
}

static void one_of_three(void)
{
	start(3);
	seconds(100);
	CHECK(!sitting, "all alike: %x", sitting);
	mean_us[1] = 601;
	seconds(2);
	CHECK(!sitting, "slow twice: %x", sitting);
	second(100);
	CHECK(sitting == 2, "slow three times: %x", sitting);
	/* It has become fast: it returns after its time. */
	mean_us[1] = 200;
	CHECK(until(1, false, 1000) == S, "returns");
	seconds(1000);
	CHECK(!sitting, "stays: %x", sitting);
}

static void not_in_a_row(void)
{
	unsigned int i;

	start(3);
	for (i = 0; i < 1000; i++) {
		mean_us[1] = i % 3 == 2 ? 200 : 10000;
		second(100);
		CHECK(!sitting, "second %u", i);
	}
	mean_us[1] = 600;	/* just 300 % */
	seconds(1000);
	CHECK(!sitting, "not above the limit");
}

/* Slow whenever it serves: each time twice as long, up to an hour. */
static void doubling(void)
{
	unsigned int want = S, i;

	start(2);
	mean_us[0] = 20000;
	for (i = 0; i < 10; i++) {
		CHECK(until(0, true, 1000) == HEDGE_SITOUT_SLOW, "time %u", i);
		CHECK(until(0, false, 10000) == want, "time %u: %u", i, want);
		want = min(2 * want, 3600U);
	}
	CHECK(want == 3600, "%u", want);
	/* Ten good minutes, less a second: not enough. */
	mean_us[0] = 200;
	seconds(HEDGE_SITOUT_GOOD - 1);
	mean_us[0] = 20000;
	until(0, true, 10);
	CHECK(until(0, false, 10000) == 3600, "not forgiven yet");
	mean_us[0] = 200;
	seconds(HEDGE_SITOUT_GOOD);
	mean_us[0] = 20000;
	until(0, true, 10);
	CHECK(until(0, false, 10000) == S, "forgiven");
}

static void all_slow(void)
{
	unsigned int i;

	start(4);
	seconds(10);
	for (i = 0; i < 4; i++)
		mean_us[i] = 50000 + 1000 * i;
	seconds(1000);
	CHECK(!sitting, "%x", sitting);
}

static void last_never(void)
{
	start(2);
	mean_us[0] = 2000;
	seconds(3);
	CHECK(sitting == 1, "the slow one of two: %x", sitting);
	mean_us[1] = 100000;
	seconds(30);
	CHECK(sitting == 1, "the last one never: %x", sitting);
	/* The only leg there is. */
	start(2);
	able = 2;
	mean_us[1] = 100000;
	seconds(100);
	CHECK(!sitting, "alone: %x", sitting);
}

/* The one that stood in goes out: who sits must serve. */
static void peers_gone(void)
{
	start(3);
	mean_us[1] = 5000;
	seconds(3);
	CHECK(sitting == 2, "%x", sitting);
	able = 2;
	second(100);
	CHECK(!sitting, "called back: %x", sitting);
	seconds(100);
	CHECK(!sitting, "alone: %x", sitting);
	able = 7;
	CHECK(until(1, true, 10) == HEDGE_SITOUT_SLOW, "sits again");
	CHECK(until(1, false, 1000) == 2 * S, "longer");
	able = 0;
	second(100);
	CHECK(!(sitting & able), "no leg at all: %x", sitting);
}

/* Fewer reads than tell a mean: evaluated when there are enough. */
static void few_reads(void)
{
	unsigned int n = 0;

	start(2);
	mean_us[0] = 20000;
	while (!sitting && n < 1000) {
		second(HEDGE_SITOUT_READS / 4);
		n++;
	}
	CHECK(n == 4 * HEDGE_SITOUT_SLOW, "after %u", n);
	start(2);
	mean_us[0] = 20000;
	for (n = 0; n < 1000; n++)
		second(0);
	CHECK(!sitting, "no reads: %x", sitting);
}

static void off(void)
{
	start(2);
	mean_us[0] = 20000;
	seconds(3);
	CHECK(sitting == 1, "%x", sitting);
	sitting = hedge_sitout_tick(&sit, 0, S, able);
	CHECK(!sitting, "sitout_pct 0: %x", sitting);
	CHECK(!hedge_sitout_tick(&sit, PCT, S, able), "forgotten");
	seconds(3);
	CHECK(sitting == 1, "%x", sitting);
	CHECK(!hedge_sitout_tick(&sit, PCT, 0, able), "sitout_s 0");
}

/* Whatever happens, one of the legs that can be read serves. */
static void random_walk(void)
{
	unsigned int step, i, gone = 0;

	start(2);
	for (step = 0; step < 2000000; step++) {
		u32 pct = below(1000) ? PCT : below(1000), was = sitting;

		if (!below(10000))
			start(1 + below(8));
		i = below(nr_legs);
		if (!below(20))
			mean_us[i] = below(4) ? 200 : 1ULL << below(40);
		if (!below(100))
			able = below(1U << nr_legs);
		for (i = 0; i < nr_legs; i++)
			if (below(3)) {
				u64 n = below(60);

				hedge_sitout_add(&sit, i, n, n * mean_us[i]);
			}
		sitting = hedge_sitout_tick(&sit, pct, 1 + below(100), able);
		CHECK(!able || able & ~sitting, "step %u: all of %x sit", step,
		      able);
		CHECK(!(sitting >> nr_legs), "step %u: %x", step, sitting);
		for (i = 0; i < nr_legs; i++)
			CHECK(sit.leg[i].left_s <= HEDGE_SITOUT_MAX_S,
			      "step %u: %u s", step, sit.leg[i].left_s);
		gone += hweight32(sitting & ~was);
	}
	CHECK(gone > 1000, "only %u ever went", gone);
}

static const struct tap_test tests[] = {
	{ "sitout: one slow leg of three goes and returns", one_of_three },
	{ "sitout: only three times in a row, and above the limit",
	  not_in_a_row },
	{ "sitout: twice as long each time, up to an hour", doubling },
	{ "sitout: all slow: none goes", all_slow },
	{ "sitout: the last one never", last_never },
	{ "sitout: called back when the others are gone", peers_gone },
	{ "sitout: few reads", few_reads },
	{ "sitout: off", off },
	{ "sitout: random: one always serves", random_walk },
};

int main(void)
{
	return tap_run(tests, ARRAY_SIZE(tests));
}
