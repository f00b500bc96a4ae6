// SPDX-License-Identifier: GPL-2.0
/*
 * Choosing servers: see pick.h.
 *
 * A set is a permutation of all servers whose first part is in the set. To draw
 * distinct ones at random, each is swapped to the front after it was drawn, so a
 * draw costs the same however many are wanted.
 */
#include <stdlib.h>

#include "pick.h"

#define NEVER (~0ULL)	/* key of a server that may not be chosen */

static void *allocate(size_t nr, size_t size)
{
	void *p = calloc(nr, size);

	if (!p)
		abort();
	return p;
}

static bool contains(const u32 *list, u32 nr, u32 server)
{
	while (nr--)
		if (list[nr] == server)
			return true;
	return false;
}

/* --- sets -------------------------------------------------------------------- */

static void set_init(struct set *set, u32 nr)
{
	u32 i;

	set->item = allocate(nr, sizeof(*set->item));
	set->position = allocate(nr, sizeof(*set->position));
	for (i = 0; i < nr; i++)
		set->item[i] = set->position[i] = i;
	set->nr = nr;
}

static void set_swap(struct set *set, u32 i, u32 j)
{
	u32 a = set->item[i], b = set->item[j];

	set->item[i] = b;
	set->item[j] = a;
	set->position[b] = i;
	set->position[a] = j;
}

static void set_change(struct set *set, u32 server, bool in)
{
	if (in && set->position[server] >= set->nr)
		set_swap(set, set->position[server], set->nr++);
	else if (!in && set->position[server] < set->nr)
		set_swap(set, set->position[server], --set->nr);
}

static u32 set_draw(struct set *set, u64 *random, const u32 *except, u32 nr_except, u32 wanted,
		    u32 *chosen)
{
	u32 i, n = 0;

	/* One of all: nothing has to be kept apart. */
	if (wanted == 1 && !nr_except && set->nr) {
		*chosen = set->item[hedge_random_below(random, set->nr)];
		return 1;
	}
	for (i = 0; i < set->nr && n < wanted; i++) {
		set_swap(set, i, i + hedge_random_below(random, set->nr - i));
		if (!contains(except, nr_except, set->item[i]))
			chosen[n++] = set->item[i];
	}
	return n;
}

/* --- trees -------------------------------------------------------------------- */

static void tree_init(struct tree *tree, u32 nr)
{
	u32 i;

	for (tree->leaves = 1; tree->leaves < nr; tree->leaves *= 2)
		;
	tree->key = allocate(2 * (size_t)tree->leaves, sizeof(*tree->key));
	tree->ties = allocate(2 * (size_t)tree->leaves, sizeof(*tree->ties));
	for (i = 0; i < 2 * tree->leaves; i++) {
		tree->key[i] = NEVER;
		tree->ties[i] = 1;
	}
}

static void tree_set(struct tree *tree, u32 server, u64 key)
{
	u32 node = tree->leaves + server;

	if (tree->key[node] == key)
		return;
	tree->key[node] = key;
	while (node /= 2) {
		u64 left = tree->key[2 * node], right = tree->key[2 * node + 1];
		u64 least = min(left, right);
		u32 ties = (left == least ? tree->ties[2 * node] : 0) +
			   (right == least ? tree->ties[2 * node + 1] : 0);

		if (tree->key[node] == least && tree->ties[node] == ties)
			break;
		tree->key[node] = least;
		tree->ties[node] = ties;
	}
}

/* One of the servers with the least key, each with the same probability. */
static u32 tree_best(const struct tree *tree, u64 *random)
{
	u32 node = 1, ticket = 0;

	if (tree->ties[1] > 1)
		ticket = hedge_random_below(random, tree->ties[1]);
	while (node < tree->leaves) {
		u32 left = 2 * node;
		u32 ties = tree->key[left] == tree->key[1] ? tree->ties[left] : 0;

		if (ticket < ties) {
			node = left;
		} else {
			ticket -= ties;
			node = left + 1;
		}
	}
	return node - tree->leaves;
}

static u32 tree_choose(struct tree *tree, u64 *random, const u32 *except, u32 nr_except,
		       u32 wanted, const struct pick *pick, u32 *chosen)
{
	/* What a tree holds of the servers that are left out, to be put back. */
	u64 *kept = nr_except ? allocate(nr_except, sizeof(*kept)) : NULL;
	u32 i, n = 0;

	for (i = 0; i < nr_except; i++) {
		kept[i] = tree->key[tree->leaves + except[i]];
		tree_set(tree, except[i], NEVER);
	}
	while (n < wanted && tree->key[1] != NEVER) {
		chosen[n] = tree_best(tree, random);
		if (n + 1 < wanted)
			tree_set(tree, chosen[n], NEVER);
		n++;
	}
	for (i = 0; i < n; i++)
		tree_set(tree, chosen[i], hedge_leg_key(pick->knobs->val[HEDGE_BALANCE],
							&pick->leg[chosen[i]]));
	for (i = 0; i < nr_except; i++)
		tree_set(tree, except[i], kept[i]);
	free(kept);
	return n;
}

/* --- the choice ------------------------------------------------------------------ */

static bool measures(const struct pick *pick)
{
	return pick->knobs->val[HEDGE_BALANCE] != HEDGE_BALANCE_RANDOM &&
	       pick->knobs->val[HEDGE_BALANCE] != HEDGE_BALANCE_ROUND_ROBIN;
}

/**
 * pick_init - make the view of the servers, all of them idle
 * @pick: the view
 * @knobs: the settings, which do not change; their nr_legs is that of servers
 * @depth: copies in flight below which a server is idle
 * @use: what will be chosen from: PICK_ALL, PICK_IDLE
 * @seed: for the random choices
 */
void pick_init(struct pick *pick, const struct hedge_knobs *knobs, u32 depth, u32 use, u64 seed)
{
	u32 i;

	*pick = (struct pick) { .knobs = knobs, .nr = knobs->nr_legs, .depth = depth, .use = use };
	pick->random = seed ? seed : 1;
	pick->leg = allocate(pick->nr, sizeof(*pick->leg));
	set_init(&pick->all, pick->nr);
	set_init(&pick->idle, pick->nr);
	if (pick->nr > HEDGE_MAX_LEGS && measures(pick) && !knobs->val[HEDGE_CHOICES]) {
		if (use & PICK_ALL)
			tree_init(&pick->best, pick->nr);
		if (use & PICK_IDLE)
			tree_init(&pick->best_idle, pick->nr);
	}
	for (i = 0; i < pick->nr; i++) {
		pick->leg[i].weight = HEDGE_WEIGHT_DEFAULT;
		pick_update(pick, i);
	}
}

/**
 * pick_free - give back what a view holds
 * @pick: the view
 */
void pick_free(struct pick *pick)
{
	free(pick->leg);
	free(pick->all.item);
	free(pick->all.position);
	free(pick->idle.item);
	free(pick->idle.position);
	free(pick->best.key);
	free(pick->best.ties);
	free(pick->best_idle.key);
	free(pick->best_idle.ties);
}

/**
 * pick_update - a server has changed
 * @pick: the view
 * @server: whose pick->leg[] the caller has changed
 */
void pick_update(struct pick *pick, u32 server)
{
	const struct hedge_leg_view *leg = &pick->leg[server];
	bool idle = leg->inflight < pick->depth;
	u64 key;

	if (pick->use & PICK_IDLE)
		set_change(&pick->idle, server, idle);
	if (!pick->best.leaves && !pick->best_idle.leaves)
		return;
	key = hedge_leg_key(pick->knobs->val[HEDGE_BALANCE], leg);
	if (pick->best.leaves)
		tree_set(&pick->best, server, key);
	if (pick->best_idle.leaves)
		tree_set(&pick->best_idle, server, idle ? key : NEVER);
}

/* Few servers: the module's own choice. */
static u32 choose_leg(struct pick *pick, bool idle, const u32 *except, u32 nr_except, u32 wanted,
		      u32 *chosen)
{
	struct hedge_view view = {
		.nr_legs = pick->nr, .random = &pick->random, .turn = &pick->turn,
	};
	u8 legs[HEDGE_MAX_LEGS];
	u32 i, n, among = 0;

	for (i = 0; i < pick->nr; i++) {
		view.leg[i] = pick->leg[i];
		if (!idle || pick->leg[i].inflight < pick->depth)
			among |= 1U << i;
	}
	for (i = 0; i < nr_except; i++)
		among &= ~(1U << except[i]);
	view.usable = among;
	n = hedge_choose(pick->knobs, &view, among, wanted, legs);
	for (i = 0; i < n; i++)
		chosen[i] = legs[i];
	return n;
}

/* Moves the best of those drawn to the front, of equal ones any. */
static u32 choose_drawn(struct pick *pick, u32 *drawn, u32 nr, u32 wanted)
{
	u32 balance = pick->knobs->val[HEDGE_BALANCE];
	u32 i, n;

	wanted = min(wanted, nr);
	/* They were drawn in random order: the first is as good as any. */
	for (n = 0; measures(pick) && n < wanted; n++) {
		u32 best = n, swapped;

		for (i = n + 1; i < nr; i++)
			if (hedge_leg_key(balance, &pick->leg[drawn[i]]) <
			    hedge_leg_key(balance, &pick->leg[drawn[best]]))
				best = i;
		swapped = drawn[n];
		drawn[n] = drawn[best];
		drawn[best] = swapped;
	}
	return wanted;
}

static u32 choose_in_turn(struct pick *pick, bool idle, const u32 *except, u32 nr_except,
			  u32 wanted, u32 *chosen)
{
	u32 i, n = 0, from = pick->turn;

	for (i = 0; i < pick->nr && n < wanted; i++) {
		u32 server = (from + i) % pick->nr;

		if ((idle && pick->leg[server].inflight >= pick->depth) ||
		    contains(except, nr_except, server))
			continue;
		chosen[n++] = server;
		pick->turn = server + 1;
	}
	return n;
}

/**
 * pick_choose - choose servers for the copies of a job
 * @pick: the view
 * @idle: whether only idle servers may be taken
 * @except: servers that may not be taken
 * @nr_except: how many
 * @wanted: how many servers are wanted, at least 1
 * @chosen: where they are put, the best first; room for the larger of @wanted
 * and the knob "choices"
 *
 * Return: how many were chosen, fewer than wanted if there are no more.
 */
u32 pick_choose(struct pick *pick, bool idle, const u32 *except, u32 nr_except, u32 wanted,
		u32 *chosen)
{
	struct set *set = idle ? &pick->idle : &pick->all;
	u32 choices = pick->knobs->val[HEDGE_CHOICES];

	if (pick->nr <= HEDGE_MAX_LEGS)
		return choose_leg(pick, idle, except, nr_except, wanted, chosen);
	if (choices) {
		u32 nr = set_draw(set, &pick->random, except, nr_except, max(choices, wanted),
				  chosen);

		return choose_drawn(pick, chosen, nr, wanted);
	}
	switch (pick->knobs->val[HEDGE_BALANCE]) {
	case HEDGE_BALANCE_RANDOM:
		return set_draw(set, &pick->random, except, nr_except, wanted, chosen);
	case HEDGE_BALANCE_ROUND_ROBIN:
		return choose_in_turn(pick, idle, except, nr_except, wanted, chosen);
	default:
		return tree_choose(idle ? &pick->best_idle : &pick->best, &pick->random, except,
				   nr_except, wanted, pick, chosen);
	}
}
