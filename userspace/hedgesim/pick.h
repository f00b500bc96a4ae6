/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Choosing servers as the module chooses legs.
 *
 * With as many servers as a volume may have legs, the module's own
 * hedge_choose() is called. With more, the same keys (hedge_leg_key()) are kept
 * in a tournament tree, so that the best server is found in O(log N), and random
 * servers are drawn directly.
 */
#ifndef HEDGESIM_PICK_H
#define HEDGESIM_PICK_H

#include "policy.h"

/* What choices are made from, so that no index is kept for nothing. */
#define PICK_ALL	1U
#define PICK_IDLE	2U

/**
 * struct tree - a tournament: the least key and how many servers have it
 * @key: of each node; the leaves are the second half
 * @ties: servers below a node that have its key
 * @leaves: a power of two
 */
struct tree {
	u64 *key;
	u32 *ties;
	u32 leaves;
};

/**
 * struct set - some of the servers, in any order
 * @item: the servers
 * @position: of each server in @item; beyond @nr if it is not in the set
 * @nr: how many are in the set
 */
struct set {
	u32 *item, *position;
	u32 nr;
};

/**
 * struct pick - the servers as the choice sees them
 * @knobs: the settings
 * @leg: each server
 * @nr: how many there are
 * @depth: copies in flight below which a server is idle
 * @use: what is chosen from
 * @random: state of the generator
 * @turn: for round-robin
 * @all: every server
 * @idle: every idle server, if it is needed
 * @best: tree of all servers, if it is needed
 * @best_idle: tree of the idle servers, if it is needed
 */
struct pick {
	const struct hedge_knobs *knobs;
	struct hedge_leg_view *leg;
	u32 nr, depth, use;
	u64 random;
	u32 turn;
	struct set all, idle;
	struct tree best, best_idle;
};

void pick_init(struct pick *pick, const struct hedge_knobs *knobs, u32 depth, u32 use, u64 seed);
void pick_free(struct pick *pick);
void pick_update(struct pick *pick, u32 server);
u32 pick_choose(struct pick *pick, bool idle, const u32 *except, u32 nr_except, u32 wanted,
		u32 *chosen);

#endif
