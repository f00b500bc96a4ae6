/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Choosing servers as the module chooses legs.
 *
 * With as many servers as a volume may have legs, the module's own
 * hedge_choose() is called. With more, the same keys (hedge_leg_key()) are kept
 * in a tournament tree, so that the best server is found in O(log N), and random
 * servers are drawn directly. Where a job may go to a few servers only, these are
 * shown to hedge_choose().
 */
#ifndef HEDGESIM_PICK_H
#define HEDGESIM_PICK_H

#include "list.h"
#include "policy.h"

/* What choices are made from, so that no index is kept for nothing. */
#define PICK_ALL	1U
#define PICK_IDLE	2U

#define PICK_BLOCK	64	/* servers below a node of the lowest level */
#define PICK_LEVELS	7	/* of nodes of degree eight */
#define PICK_GROUPS	HEDGE_MAX_LEGS
#define PICK_AHEAD	16	/* draws between the fetching of a server and its use */

/* A node of a tree: the least key below it, and how many servers have it. */
struct tree_node {
	u64 key;
	u32 ties;
};

/**
 * struct tree - a tournament: nodes of degree eight over blocks of servers
 * @key: of each server
 * @least: of each eight servers the least key
 * @tied: of each block a bit for each server that has the least key
 * @node: levels of nodes, the first one with a node for each block, the last with one
 * @levels: how many; 0 if the tree is not used
 *
 * With many servers the keys do not fit into the processor's cache. The choice
 * looks at @tied and @node only, which do.
 */
struct tree {
	u64 *key, *least, *tied;
	struct tree_node *node[PICK_LEVELS];
	unsigned int levels;
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
 * struct server - all that changes with each copy: one cache line
 * @view: what the choice sees; its weight is that of the routing vector
 * @queue: copies that wait in our queue
 * @handed: copies that wait at the server
 * @busy: slots that are busy
 * @ready: whether a slot came free in the event at hand
 */
struct server {
	struct hedge_leg_view view;
	struct list queue, handed;
	u32 busy;
	bool ready;
} __attribute__((aligned(64)));

/**
 * struct routing - a vector of weights, and how to draw by it
 * @weight: of each server; NULL if they are all the same
 * @sum: of each server and all before it
 * @most: the largest weight
 */
struct routing {
	const u32 *weight;
	u64 *sum;
	u32 most;
};

/**
 * struct pick - the servers as the choice sees them
 * @knobs: the settings
 * @server: each server
 * @nr: how many there are
 * @depth: copies in flight below which a server is idle; server i has that of
 * i modulo PICK_GROUPS
 * @use: what is chosen from
 * @sitting: bit for each server that sits out; only of up to HEDGE_MAX_LEGS
 * @random: state of the generator
 * @ahead: the same, some draws later
 * @ahead_left: draws until that is set anew
 * @drawn: draws that it has made
 * @to_come: the last of them, in a ring
 * @turn: for round-robin
 * @all: every server
 * @idle: every idle server, if it is needed
 * @route: the routing vectors, of first copies and of hedges
 * @best: trees of all servers by either vector, if they are needed
 * @best_idle: trees of the idle servers, if they are needed
 */
struct pick {
	const struct hedge_knobs *knobs;
	struct server *server;
	u32 nr, depth[PICK_GROUPS], use, sitting;
	u64 random, ahead;
	u32 ahead_left, turn, drawn, to_come[PICK_AHEAD];
	struct set all, idle;
	struct routing route[2];
	struct tree best[2], best_idle[2];
};

/**
 * struct wish - what servers are wanted
 * @idle: only idle ones
 * @hedge: for a hedge: by the second routing vector
 * @except: servers that may not be taken
 * @nr_except: how many
 * @among: the only servers that may be taken, NULL if all may
 * @nr_among: how many, at most HEDGE_MAX_LEGS
 * @wanted: how many servers are wanted, at least 1
 */
struct wish {
	bool idle, hedge;
	const u32 *except;
	u32 nr_except;
	const u32 *among;
	u32 nr_among;
	u32 wanted;
};

void pick_init(struct pick *pick, const struct hedge_knobs *knobs, u32 depth, u32 use,
	       const u32 *weight, const u32 *hedge_weight, u64 seed);
void pick_free(struct pick *pick);
void pick_update(struct pick *pick, u32 server);
void pick_set_depth(struct pick *pick, u32 group, u32 depth);
u32 pick_choose(struct pick *pick, const struct wish *wish, u32 *chosen);

/**
 * pick_is_idle - whether a server is idle
 * @pick: the view
 * @server: the server
 */
static inline bool pick_is_idle(const struct pick *pick, u32 server)
{
	return pick->server[server].view.inflight < pick->depth[server % PICK_GROUPS];
}

#endif
