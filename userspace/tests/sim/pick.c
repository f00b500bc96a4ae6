// SPDX-License-Identifier: GPL-2.0
/*
 * Unit test of the simulator's choice among servers: whatever happens to the
 * servers, what the index gives is what looking at all of them would give, and
 * ties go to each with the same probability. Prints TAP and ends with "N passed,
 * N failed".
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "pick.h"

#define SERVERS		29
#define STEPS		20000
#define DRAWS		60000

static int passed, failed;

static void check(bool good, const char *policy, const char *what)
{
	printf("%sok %d - %s: %s\n", good ? "" : "not ", passed + failed + 1, policy, what);
	if (good)
		passed++;
	else
		failed++;
}

static bool contains(const u32 *list, u32 nr, u32 server)
{
	while (nr--)
		if (list[nr] == server)
			return true;
	return false;
}

static u64 key(const struct pick *pick, u32 server)
{
	return hedge_leg_key(pick->knobs->val[HEDGE_BALANCE], &pick->leg[server]);
}

/* Whether no allowed server that was left out is better than one that was taken. */
static bool right(const struct pick *pick, bool idle, const u32 *except, u32 nr_except,
		  u32 wanted, const u32 *chosen, u32 nr, bool best)
{
	u32 i, j, allowed = 0;

	for (i = 0; i < pick->nr; i++) {
		bool may = !contains(except, nr_except, i) &&
			   (!idle || pick->leg[i].inflight < pick->depth);

		allowed += may;
		if (!may && contains(chosen, nr, i))
			return false;
		for (j = 0; best && may && !contains(chosen, nr, i) && j < nr; j++)
			if (key(pick, i) < key(pick, chosen[j]))
				return false;
	}
	for (i = 0; i < nr; i++)
		if (contains(chosen, i, chosen[i]))
			return false;
	return nr == min(allowed, wanted);
}

static void test_choices(struct hedge_knobs *knobs, const char *balance, const char *choices)
{
	bool good = true, best = balance[0] == 'l' || balance[0] == 'j';
	u32 chosen[SERVERS], except[3], step;
	u64 random = 1;
	struct pick pick;

	hedge_knob_set(knobs, HEDGE_BALANCE, balance);
	hedge_knob_set(knobs, HEDGE_CHOICES, choices);
	pick_init(&pick, knobs, 2, PICK_ALL | PICK_IDLE, 1);
	for (step = 0; step < STEPS; step++) {
		u32 server = hedge_random_below(&random, SERVERS);
		u32 nr_except = hedge_random_below(&random, 4);
		u32 wanted = 1 + hedge_random_below(&random, 4), i, nr;
		bool idle = hedge_random(&random) & 1;

		pick.leg[server].inflight = hedge_random_below(&random, 4);
		pick.leg[server].queued = hedge_random_below(&random, 3);
		pick.leg[server].service_us = hedge_random_below(&random, 5);
		pick_update(&pick, server);
		for (i = 0; i < nr_except; i++)
			except[i] = (server + 7 * i) % SERVERS;
		nr = pick_choose(&pick, idle, except, nr_except, wanted, chosen);
		good &= right(&pick, idle, except, nr_except, wanted, chosen, nr,
			      best && knobs->val[HEDGE_CHOICES] == 0);
	}
	pick_free(&pick);
	check(good, balance, choices[0] == '0' ? "as looking at all" : "among those drawn");
}

/* Every third server has the least key: each must be taken equally often. */
static void test_ties(struct hedge_knobs *knobs, const char *balance, const char *choices)
{
	u32 hits[SERVERS] = { 0 }, chosen[SERVERS], i, equal = 0;
	double squares = 0, expected;
	bool all = balance[0] == 'r';
	struct pick pick;

	hedge_knob_set(knobs, HEDGE_BALANCE, balance);
	hedge_knob_set(knobs, HEDGE_CHOICES, choices);
	pick_init(&pick, knobs, 1, PICK_ALL, 1);
	for (i = 0; i < SERVERS; i++) {
		pick.leg[i].queued = i % 3 ? 1 : 0;
		pick_update(&pick, i);
		equal += all || !(i % 3);
	}
	for (i = 0; i < DRAWS; i++) {
		pick_choose(&pick, false, NULL, 0, 1, chosen);
		hits[chosen[0]]++;
	}
	expected = (double)DRAWS / equal;
	for (i = 0; i < SERVERS; i++)
		if (all || !(i % 3))
			squares += (hits[i] - expected) * (hits[i] - expected) / expected;
	pick_free(&pick);
	/* Chi-square: equal - 1 on average, and hardly ever five deviations more. */
	check(squares < equal + 5 * sqrt(2.0 * equal), balance, "ties go to each alike");
}

int main(void)
{
	static const char * const balances[] = { "latency", "jsq", "random", "round-robin" };
	struct hedge_knobs knobs;
	size_t i;

	hedge_knobs_init(&knobs, SERVERS);
	for (i = 0; i < ARRAY_SIZE(balances); i++) {
		test_choices(&knobs, balances[i], "0");
		test_choices(&knobs, balances[i], "5");
	}
	test_ties(&knobs, "jsq", "0");
	test_ties(&knobs, "latency", "0");
	test_ties(&knobs, "random", "0");
	test_ties(&knobs, "jsq", "29");
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
