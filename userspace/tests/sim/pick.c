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

#define SERVERS		150	/* more than a block, and not a whole number of them */
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
	return hedge_leg_key(pick->knobs->val[HEDGE_BALANCE], &pick->server[server].view);
}

/* Whether no allowed server that was left out is better than one that was taken. */
static bool right(const struct pick *pick, bool idle, const u32 *except, u32 nr_except,
		  u32 wanted, const u32 *chosen, u32 nr, bool best)
{
	u32 i, j, allowed = 0;

	for (i = 0; i < pick->nr; i++) {
		bool may = !contains(except, nr_except, i) &&
			   (!idle || pick_is_idle(pick, i));

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
	pick_init(&pick, knobs, 2, PICK_ALL | PICK_IDLE, NULL, NULL, 1);
	for (step = 0; step < STEPS; step++) {
		u32 server = hedge_random_below(&random, SERVERS);
		u32 nr_except = hedge_random_below(&random, 4);
		u32 wanted = 1 + hedge_random_below(&random, 4), i, nr;
		bool idle = hedge_random(&random) & 1;

		pick.server[server].view.inflight = hedge_random_below(&random, 4);
		pick.server[server].view.queued = hedge_random_below(&random, 3);
		pick.server[server].view.service_us = hedge_random_below(&random, 5);
		pick.server[server].view.work = hedge_random_below(&random, 5);
		pick_update(&pick, server);
		for (i = 0; i < nr_except; i++)
			except[i] = (server + 7 * i) % SERVERS;
		nr = pick_choose(&pick, &(struct wish) { .idle = idle, .except = except,
				 .nr_except = nr_except, .wanted = wanted }, chosen);
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
	pick_init(&pick, knobs, 1, PICK_ALL, NULL, NULL, 1);
	for (i = 0; i < SERVERS; i++) {
		pick.server[i].view.queued = i % 3 ? 1 : 0;
		pick_update(&pick, i);
		equal += all || !(i % 3);
	}
	for (i = 0; i < DRAWS; i++) {
		pick_choose(&pick, &(struct wish) { .wanted = 1 }, chosen);
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

/* Servers are drawn by their weights, of all and of the idle ones. */
static void test_weights(struct hedge_knobs *knobs, bool idle)
{
	u32 weight[SERVERS], hits[SERVERS] = { 0 }, chosen[SERVERS], i, sum = 0, kinds = 0;
	double squares = 0;
	struct pick pick;

	for (i = 0; i < SERVERS; i++) {
		weight[i] = 100 * (i % 4);
		sum += idle && i % 2 ? 0 : weight[i];
	}
	hedge_knob_set(knobs, HEDGE_BALANCE, "random");
	hedge_knob_set(knobs, HEDGE_CHOICES, "0");
	pick_init(&pick, knobs, 1, PICK_ALL | PICK_IDLE, NULL, weight, 1);
	for (i = 0; i < SERVERS; i++) {
		pick.server[i].view.inflight = i % 2;
		pick_update(&pick, i);
	}
	for (i = 0; i < DRAWS; i++) {
		pick_choose(&pick, &(struct wish) { .idle = idle, .hedge = true, .wanted = 1 }, chosen);
		hits[chosen[0]]++;
	}
	for (i = 0; i < SERVERS; i++) {
		double expected = idle && i % 2 ? 0 : (double)DRAWS * weight[i] / sum;

		if (!expected) {
			squares += 1e6 * hits[i];
			continue;
		}
		squares += (hits[i] - expected) * (hits[i] - expected) / expected;
		kinds++;
	}
	pick_free(&pick);
	check(squares < kinds + 5 * sqrt(2.0 * kinds), "random", idle ? "weights of idle servers" : "weights");
}

/* A weight of 0 is the last resort, and good for a first copy only. */
static void test_last_resort(struct hedge_knobs *knobs, const char *balance)
{
	u32 weight[SERVERS] = { [3] = 100, [7] = 100 }, chosen[SERVERS], nr;
	struct pick pick;

	hedge_knob_set(knobs, HEDGE_BALANCE, balance);
	hedge_knob_set(knobs, HEDGE_CHOICES, "0");
	pick_init(&pick, knobs, 1, PICK_ALL, weight, NULL, 1);
	nr = pick_choose(&pick, &(struct wish) { .wanted = 4 }, chosen);
	check(nr == 2 && chosen[0] + chosen[1] == 10, balance, "weight 0 is avoided");
	nr = pick_choose(&pick, &(struct wish) { .wanted = 1, .nr_except = 2,
			 .except = (u32 []) { 3, 7 } }, chosen);
	check(nr == 1 && chosen[0] != 3 && chosen[0] != 7, balance, "weight 0 serves if nothing else is left");
	pick_free(&pick);
}

/* Where a job may go to some servers only, it goes to the best of those. */
static void test_among(struct hedge_knobs *knobs)
{
	u32 among[] = { 20, 4, 11 }, chosen[SERVERS], nr;
	struct pick pick;

	hedge_knob_set(knobs, HEDGE_BALANCE, "jsq");
	pick_init(&pick, knobs, 1, PICK_ALL, NULL, NULL, 1);
	pick.server[4].view.queued = 1;
	pick.server[20].view.queued = 2;
	nr = pick_choose(&pick, &(struct wish) { .wanted = 2, .among = among, .nr_among = 3 }, chosen);
	check(nr == 2 && chosen[0] == 11 && chosen[1] == 4, "jsq", "the best of some");
	pick_free(&pick);
}

int main(void)
{
	static const char * const balances[] = { "latency", "jsq", "llw", "random", "round-robin" };
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
	test_weights(&knobs, false);
	test_weights(&knobs, true);
	test_last_resort(&knobs, "jsq");
	test_last_resort(&knobs, "latency");
	test_among(&knobs);
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
