// SPDX-License-Identifier: GPL-2.0
/*
 * policy.[ch]: which leg. First random views of the legs, checked against the
 * rules said in another way; then each way to choose on its own.
 */
#include "policy.h"
#include "tap.h"

#define STEPS 1000000

static struct hedge_knobs knobs;
static struct hedge_view view;
static u32 turn;

/* Legs that are alike: empty, 200 us, weight 100. */
static void alike(unsigned int nr_legs, enum hedge_balance balance)
{
	unsigned int i;

	hedge_knobs_init(&knobs, nr_legs);
	knobs.val[HEDGE_BALANCE] = balance;
	memset(&view, 0, sizeof(view));
	turn = 0;
	view.nr_legs = nr_legs;
	view.usable = (1U << nr_legs) - 1;
	view.random = &rng;
	view.turn = &turn;
	for (i = 0; i < nr_legs; i++) {
		view.leg[i].service_us = 200;
		view.leg[i].weight = HEDGE_WEIGHT_DEFAULT;
	}
}

static void random_view(void)
{
	unsigned int i;

	alike(2 + below(7), below(5));
	knobs.val[HEDGE_CHOICES] = below(view.nr_legs + 1);
	view.usable = below(1U << view.nr_legs);
	view.avoid = below(3) ? 0 : below(1U << view.nr_legs);
	view.sitting = below(3) ? 0 : below(1U << view.nr_legs);
	turn = hedge_random(&rng);
	for (i = 0; i < view.nr_legs; i++) {
		view.leg[i].inflight = below(4);
		view.leg[i].queued = below(3);
		view.leg[i].service_us = below(5) * 100;
		view.leg[i].weight = below(4) ? below(1001) : 0;
		view.leg[i].work = below(4) * 100;
	}
}

/* How far a leg is from being wanted: 0 wanted, then the order of section 6. */
static unsigned int rank(unsigned int leg)
{
	return (view.avoid & (1U << leg) ? 4 : 0) +
	       (view.leg[leg].weight ? 0 : 2) + !!(view.sitting & (1U << leg));
}

/* The legs of the best rank there is. */
static u32 best_ranked(u32 among)
{
	unsigned int i, best = 8;
	u32 mask = 0;

	for (i = 0; i < view.nr_legs; i++) {
		if (!(among & view.usable & (1U << i)))
			continue;
		if (rank(i) < best) {
			best = rank(i);
			mask = 0;
		}
		if (rank(i) == best)
			mask |= 1U << i;
	}
	return mask;
}

static void random_views(void)
{
	unsigned int step, i;

	for (step = 0; step < STEPS; step++) {
		u8 chosen[HEDGE_MAX_LEGS];
		u32 among, mask, seen = 0, n, copies;

		random_view();
		among = below(3) ? ~0U : below(1U << view.nr_legs);
		copies = 1 + below(view.nr_legs);
		mask = best_ranked(among);
		CHECK(hedge_preferred(&view, among) == mask, "step %u: %x %x",
		      step, hedge_preferred(&view, among), mask);
		n = hedge_choose(&knobs, &view, among, copies, chosen);
		CHECK(n == min(copies, hweight32(mask)), "step %u: %u", step,
		      n);
		for (i = 0; i < n; i++) {
			CHECK(mask & (1U << chosen[i]), "step %u: leg %u", step,
			      chosen[i]);
			CHECK(!(seen & (1U << chosen[i])), "step %u: leg %u",
			      step, chosen[i]);
			seen |= 1U << chosen[i];
		}
	}
}

/* With d copies the d least keys of the whole, in order. */
static void best_in_order(void)
{
	unsigned int step, i;

	for (step = 0; step < STEPS; step++) {
		static const enum hedge_balance measuring[] = {
			HEDGE_BALANCE_LATENCY, HEDGE_BALANCE_JSQ,
			HEDGE_BALANCE_LLW,
		};
		enum hedge_balance balance = measuring[below(3)];
		u8 chosen[HEDGE_MAX_LEGS];
		u64 last = 0;
		u32 n, left;

		random_view();
		knobs.val[HEDGE_BALANCE] = balance;
		knobs.val[HEDGE_CHOICES] = 0;
		left = best_ranked(~0U);
		n = hedge_choose(&knobs, &view, ~0U, 1 + below(view.nr_legs),
				 chosen);
		for (i = 0; i < n; i++) {
			u64 key = hedge_leg_key(balance, &view.leg[chosen[i]]);

			CHECK(key >= last, "step %u: copy %u", step, i);
			last = key;
			left &= ~(1U << chosen[i]);
		}
		for (; left; left &= left - 1) {
			i = __builtin_ctz(left);
			CHECK(hedge_leg_key(balance, &view.leg[i]) >= last,
			      "step %u: leg %u is better", step, i);
		}
	}
}

static unsigned int choose_one(void)
{
	u8 chosen = HEDGE_NO_LEG;

	hedge_choose(&knobs, &view, ~0U, 1, &chosen);
	return chosen;
}

/*
 * Counts of STEPS choices against shares. 40 is exceeded with 7 degrees of
 * freedom once in 800,000 times, with fewer more rarely.
 */
static void check_shares(const char *what, const double *share)
{
	unsigned int i, seen[HEDGE_MAX_LEGS + 1] = { 0 };
	double chi2 = 0;

	for (i = 0; i < STEPS; i++)
		seen[choose_one()]++;
	CHECK(!seen[HEDGE_NO_LEG], "%s: no leg", what);
	for (i = 0; i < view.nr_legs; i++) {
		double expected = STEPS * share[i];

		if (expected)
			chi2 += (seen[i] - expected) * (seen[i] - expected) /
				expected;
		else
			CHECK(!seen[i], "%s: leg %u", what, i);
	}
	CHECK(chi2 < 40, "%s: chi-square %g", what, chi2);
}

static void random_by_weight(void)
{
	static const u32 weights[] = { 1, 100, 0, 1000, 500, 250, 99, 50 };
	double share[HEDGE_MAX_LEGS], total = 2000;
	unsigned int i;

	alike(8, HEDGE_BALANCE_RANDOM);
	for (i = 0; i < 8; i++) {
		view.leg[i].weight = weights[i];
		share[i] = weights[i] / total;
	}
	check_shares("eight weights", share);

	for (i = 0; i < 8; i++) {
		view.leg[i].weight = 0;
		share[i] = 1.0 / 8;
	}
	check_shares("all weights 0", share);

	/* A leg that must not be used leaves its share to the others. */
	for (i = 0; i < 8; i++) {
		view.leg[i].weight = 100;
		share[i] = i == 3 ? 0 : 1.0 / 7;
	}
	view.usable &= ~(1U << 3);
	check_shares("one not usable", share);
}

static void ties_at_random(void)
{
	static const double all[] = { .2, .2, .2, .2, .2 };
	static const double some[] = { 0, 1. / 3, 1. / 3, 0, 1. / 3 };

	alike(5, HEDGE_BALANCE_LATENCY);
	check_shares("latency, all", all);
	view.leg[0].inflight = 1;
	view.leg[3].queued = 1;
	check_shares("latency, some", some);
	knobs.val[HEDGE_BALANCE] = HEDGE_BALANCE_JSQ;
	check_shares("jsq, some", some);
	/* A longer service time is nothing to jsq. */
	view.leg[1].service_us = 2000;
	check_shares("jsq, one slow", some);
}

/* From the one that is wanted down to the one that is not usable. */
static void last_resorts(void)
{
	static const unsigned int order[] = { 2, 5, 0, 3, 1 };
	enum hedge_balance balance;
	unsigned int i;

	for (balance = 0; balance <= HEDGE_BALANCE_LLW; balance++) {
		alike(6, balance);
		view.usable &= ~(1U << 4);
		view.sitting = 1U << 5;
		view.leg[0].weight = 0;
		view.avoid = 1U << 1 | 1U << 3;
		view.leg[1].weight = 0;
		view.leg[2].inflight = 1000;
		view.leg[2].work = 1000;
		for (i = 0; i < ARRAY_SIZE(order); i++) {
			u8 chosen[6];
			u32 n = hedge_choose(&knobs, &view, ~0U, 6, chosen);

			CHECK(n == 1 && chosen[0] == order[i],
			      "balance %u: %u legs, first %u", balance, n,
			      chosen[0]);
			view.usable &= ~(1U << order[i]);
		}
		CHECK(choose_one() == HEDGE_NO_LEG, "balance %u", balance);
	}
}

/* Of two random legs the better: leg i wins if the other is among the worse. */
static void power_of_two(void)
{
	double share[HEDGE_MAX_LEGS];
	unsigned int i;

	alike(8, HEDGE_BALANCE_JSQ);
	knobs.val[HEDGE_CHOICES] = 2;
	for (i = 0; i < 8; i++) {
		view.leg[i].inflight = i;
		share[i] = (7 - i) / 28.0;
	}
	check_shares("jsq of two", share);
	knobs.val[HEDGE_CHOICES] = 1;
	for (i = 0; i < 8; i++)
		share[i] = 1.0 / 8;
	check_shares("jsq of one", share);
	knobs.val[HEDGE_CHOICES] = 8;
	for (i = 0; i < 8; i++)
		share[i] = !i;
	check_shares("jsq of all", share);
}

/* More copies than choices: as many are drawn as are needed. */
static void choices_below_copies(void)
{
	u8 chosen[HEDGE_MAX_LEGS];

	alike(8, HEDGE_BALANCE_JSQ);
	knobs.val[HEDGE_CHOICES] = 2;
	CHECK(hedge_choose(&knobs, &view, ~0U, 5, chosen) == 5, "5 of 2");
}

static void round_robin(void)
{
	unsigned int i;

	alike(3, HEDGE_BALANCE_ROUND_ROBIN);
	for (i = 0; i < 3000; i++) {
		unsigned int leg = choose_one();

		CHECK(leg == i % 3, "turn %u: leg %u", i, leg);
	}
	view.usable = 5;
	for (i = 0; i < 3000; i++) {
		unsigned int leg = choose_one();

		CHECK(leg == (i % 2 ? 2 : 0), "turn %u: leg %u", i, leg);
	}
}

/* Each leg gets as many copies, however many a read has. */
static void round_robin_copies(void)
{
	unsigned int legs, copies, i;

	for (legs = 2; legs <= HEDGE_MAX_LEGS; legs++)
		for (copies = 1; copies <= legs; copies++) {
			unsigned int reads[HEDGE_MAX_LEGS] = { 0 };
			u8 chosen[HEDGE_MAX_LEGS];
			u32 n;

			alike(legs, HEDGE_BALANCE_ROUND_ROBIN);
			for (i = 0; i < 1000 * legs; i++) {
				n = hedge_choose(&knobs, &view, ~0U, copies,
						 chosen);
				while (n--)
					reads[chosen[n]]++;
			}
			for (i = 0; i < legs; i++)
				CHECK(reads[i] == 1000 * copies,
				      "%u legs, %u copies: leg %u has %u",
				      legs, copies, i, reads[i]);
		}
}

static u64 latency_key(u32 inflight, u32 queued, u32 service_us, u32 weight)
{
	struct hedge_leg_view leg = { inflight, queued, service_us, weight, 7 };

	return hedge_leg_key(HEDGE_BALANCE_LATENCY, &leg);
}

static void keys(void)
{
	struct hedge_leg_view leg = { 3, 4, 200, 1, 5000 };

	CHECK(latency_key(0, 0, 200, 100) == 200, "empty");
	CHECK(latency_key(3, 4, 200, 100) == 1600, "seven there");
	CHECK(latency_key(3, 4, 200, 200) == 800, "double weight");
	CHECK(latency_key(3, 4, 200, 50) == 3200, "half weight");
	CHECK(latency_key(3, 4, 0, 100) == 8, "no estimate yet");
	CHECK(hedge_leg_key(HEDGE_BALANCE_JSQ, &leg) == 7, "jsq");
	CHECK(hedge_leg_key(HEDGE_BALANCE_LLW, &leg) == 5000, "llw");
}

/* Most copies, longest service time, least weight: exact, so no overflow. */
static void key_extremes(void)
{
	CHECK(latency_key(16383, 0, HEDGE_TIMEOUT_MAX_US, 1) ==
	      16384ULL * HEDGE_TIMEOUT_MAX_US * 100, "service time of 100 s");
	CHECK(latency_key(16383, 0, ~0U, 1) == 16384ULL * ~0U * 100,
	      "longest number");
	CHECK(latency_key(8000, 8383, 1, 100) == 16384, "in flight and queued");
	CHECK(latency_key(1 << 20, 1 << 20, 1, 100) == 16384, "more are alike");
}

static u32 logarithmic(u32 bits)
{
	return hedge_random(&rng) >> (32 - bits + below(bits));
}

static void keys_are_monotone(void)
{
	unsigned int i;

	for (i = 0; i < STEPS; i++) {
		u32 inflight = logarithmic(14), queued = logarithmic(14);
		u32 service = logarithmic(24), more = logarithmic(14);
		u32 weight = 1 + below(HEDGE_WEIGHT_MAX);
		u32 heavier = weight + below(HEDGE_WEIGHT_MAX + 1 - weight);
		u64 key = latency_key(inflight, queued, service, weight);

		CHECK(latency_key(inflight + more, queued, service, weight) >=
		      key, "step %u: in flight", i);
		CHECK(latency_key(inflight, queued + more, service, weight) >=
		      key, "step %u: queued", i);
		CHECK(latency_key(inflight, queued, service + more, weight) >=
		      key, "step %u: service", i);
		CHECK(latency_key(inflight, queued, service, heavier) <= key,
		      "step %u: weight", i);
	}
}

static void keep_idle(void)
{
	unsigned int i, seen[8] = { 0 };

	for (i = 0; i < STEPS; i++) {
		u32 chosen = 1 + below(255), idle = below(256);
		u32 kept = hedge_keep_idle(chosen, idle, &rng);

		if (chosen & idle)
			CHECK(kept == (chosen & idle), "%x of %x: %x", idle,
			      chosen, kept);
		else
			CHECK(kept && !(kept & (kept - 1)) && (kept & chosen),
			      "%x of %x: %x", idle, chosen, kept);
	}
	for (i = 0; i < 30000; i++)
		seen[__builtin_ctz(hedge_keep_idle(0x92, 0x6d, &rng))]++;
	/* Six standard deviations. */
	for (i = 0; i < 8; i++)
		if (0x92 & (1U << i))
			CHECK(seen[i] > 9500 && seen[i] < 10500, "leg %u: %u",
			      i, seen[i]);
}

static const struct tap_test tests[] = {
	{ "policy: random views: usable, distinct, wanted legs", random_views },
	{ "policy: the best legs in order", best_in_order },
	{ "policy: random by weight", random_by_weight },
	{ "policy: ties at random", ties_at_random },
	{ "policy: order of the last resorts", last_resorts },
	{ "policy: better one of two random legs", power_of_two },
	{ "policy: more copies than choices", choices_below_copies },
	{ "policy: round robin", round_robin },
	{ "policy: round robin of several copies", round_robin_copies },
	{ "policy: keys", keys },
	{ "policy: keys at extremes", key_extremes },
	{ "policy: keys are monotone", keys_are_monotone },
	{ "policy: keep idle legs", keep_idle },
};

int main(void)
{
	return tap_run(tests, ARRAY_SIZE(tests));
}
