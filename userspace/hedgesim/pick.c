// SPDX-License-Identifier: GPL-2.0
/*
 * Choosing servers: see pick.h.
 *
 * The set of idle servers is a permutation of all servers whose first part is in
 * the set. To draw distinct ones at random, each is swapped to the front after it
 * was drawn, so a draw costs the same however many are wanted. A few of all servers
 * are drawn by drawing again what came twice, which touches no memory.
 *
 * A server of weight 0 is the last resort: its key has a bit above all others.
 */
#include "memory.h"
#include "pick.h"

#define NEVER		(~0ULL)		/* key of a server that may not be chosen */
#define LAST_RESORT	(1ULL << 63)
#define FEW		16		/* to be drawn again if drawn twice */
#define MANY	4096	/* servers that do not fit into the processor's cache */

static bool contains(const u32 *list, u32 nr, u32 server)
{
	while (nr--)
		if (list[nr] == server)
			return true;
	return false;
}

static u32 weight_of(const struct pick *pick, bool hedge, u32 server)
{
	const struct routing *route = &pick->route[hedge];

	return route->weight ? route->weight[server] : HEDGE_WEIGHT_DEFAULT;
}

/* The key of a server by one of the routing vectors. */
static u64 key_of(const struct pick *pick, bool hedge, u32 server)
{
	enum hedge_balance balance = pick->knobs->val[HEDGE_BALANCE];
	struct hedge_leg_view view;

	if (!pick->route[hedge].weight)
		return hedge_leg_key(balance, &pick->server[server].view);
	view = pick->server[server].view;
	view.weight = weight_of(pick, hedge, server);
	return hedge_leg_key(balance, &view) | (view.weight ? 0 : LAST_RESORT);
}

/* --- sets -------------------------------------------------------------------- */

static void set_init(struct set *set, u32 nr)
{
	u32 i;

	set->item = memory_get(nr * sizeof(*set->item));
	set->position = memory_get(nr * sizeof(*set->position));
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

/* --- random choices ------------------------------------------------------------ */

static void routing_init(struct routing *route, const u32 *weight, u32 nr)
{
	u32 i;

	route->weight = weight;
	if (!weight)
		return;
	route->sum = memory_get(nr * sizeof(*route->sum));
	for (i = 0; i < nr; i++) {
		route->sum[i] = (i ? route->sum[i - 1] : 0) + weight[i];
		route->most = max(route->most, weight[i]);
	}
}

/* A server by its weight, by bisection. */
static u32 draw_weighted(const struct routing *route, u32 nr, u64 *random)
{
	u64 ticket = (u64)hedge_random(random) << 32 | hedge_random(random);
	u32 low = 0, high = nr - 1;

	ticket = (unsigned __int128)ticket * route->sum[nr - 1] >> 64;
	while (low < high) {
		u32 middle = (low + high) / 2;

		if (route->sum[middle] > ticket)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/*
 * The next server that will be drawn is fetched, and of one that has come nearer,
 * and is there by now, the end of its queue.
 */
static void draw_ahead(struct pick *pick)
{
	u32 server = hedge_random_below(&pick->ahead, pick->nr);
	u32 at = pick->drawn++;

	__builtin_prefetch(&pick->server[server], 1);
	pick->to_come[at % PICK_AHEAD] = server;
	server = pick->to_come[(at - PICK_AHEAD / 2) % PICK_AHEAD];
	__builtin_prefetch(pick->server[server].queue.prev, 1);
}

/*
 * A random server. So many as do not fit into the processor's cache are fetched
 * some draws before they are drawn: a second generator is that much ahead. Other
 * draws let the first catch up, so now and then it starts anew.
 */
static u32 draw_any(struct pick *pick)
{
	u32 draws = 1;

	if (pick->nr > MANY) {
		if (!pick->ahead_left) {
			pick->ahead = pick->random;
			pick->ahead_left = 8 * PICK_AHEAD;
			draws = PICK_AHEAD;
		}
		pick->ahead_left--;
		while (draws--)
			draw_ahead(pick);
	}
	return hedge_random_below(&pick->random, pick->nr);
}

/* From all servers; what cannot be had by drawing again is taken from a set. */
static bool draw_again(struct pick *pick, const struct wish *wish, u32 *chosen)
{
	const struct routing *route = &pick->route[wish->hedge];
	u32 n = 0, tries = 0, server;

	if (wish->wanted + wish->nr_except > FEW || wish->wanted + wish->nr_except > pick->nr / 4)
		return false;
	if (route->weight && !route->most)
		route = &(const struct routing) { 0 };
	while (n < wish->wanted) {
		if (++tries > 64 * FEW)
			return false;
		server = route->weight ? draw_weighted(route, pick->nr, &pick->random) :
					 draw_any(pick);
		if (!contains(wish->except, wish->nr_except, server) && !contains(chosen, n, server))
			chosen[n++] = server;
	}
	return true;
}

/*
 * From a set. With weights a server is kept with a probability in proportion to
 * its weight; if hardly any has one, whoever is there serves.
 */
static u32 draw_from(struct pick *pick, struct set *set, const struct wish *wish, u32 *chosen)
{
	const struct routing *route = &pick->route[wish->hedge];
	u32 i = 0, n = 0, tries = 0;

	while (i < set->nr && n < wish->wanted) {
		u32 at = i + hedge_random_below(&pick->random, set->nr - i), server = set->item[at];

		if (route->weight && route->most && ++tries < 64 * FEW &&
		    hedge_random_below(&pick->random, route->most) >= route->weight[server])
			continue;
		set_swap(set, i++, at);
		if (!contains(wish->except, wish->nr_except, server))
			chosen[n++] = server;
	}
	return n;
}

static u32 draw(struct pick *pick, const struct wish *wish, u32 *chosen)
{
	if (wish->idle)
		return draw_from(pick, &pick->idle, wish, chosen);
	if (draw_again(pick, wish, chosen))
		return wish->wanted;
	return draw_from(pick, &pick->all, wish, chosen);
}

/* --- trees -------------------------------------------------------------------- */

static u64 least_of(const u64 *key)
{
	u64 least = key[0];
	int i;

	for (i = 1; i < 8; i++)
		least = min(key[i], least);
	return least;
}

/* Looks at a block anew: which of its servers have the least key. */
static struct tree_node node_of_block(struct tree *tree, u32 block)
{
	const u64 *key = &tree->key[block * PICK_BLOCK], *least = &tree->least[block * 8];
	struct tree_node node = { least_of(least), 0 };
	u64 tied = 0;
	u32 i, j;

	for (i = 0; i < 8; i++) {
		if (least[i] != node.key)
			continue;
		for (j = 8 * i; j < 8 * i + 8; j++)
			tied |= (u64)(key[j] == node.key) << j;
	}
	tree->tied[block] = tied;
	node.ties = __builtin_popcountll(tied);
	return node;
}

static struct tree_node node_of_nodes(const struct tree_node *child)
{
	struct tree_node node = child[0];
	int i;

	for (i = 1; i < 8; i++) {
		if (child[i].key < node.key)
			node = child[i];
		else if (child[i].key == node.key)
			node.ties += child[i].ties;
	}
	return node;
}

static void tree_init(struct tree *tree, u32 nr)
{
	u32 i, width = (nr + PICK_BLOCK - 1) / PICK_BLOCK, below = 0;

	tree->key = memory_get((size_t)width * PICK_BLOCK * sizeof(*tree->key));
	tree->least = memory_get((size_t)width * 8 * sizeof(*tree->least));
	tree->tied = memory_get(width * sizeof(*tree->tied));
	for (i = 0; i < width * PICK_BLOCK; i++)
		tree->key[i] = tree->least[i / 8] = NEVER;
	for (;;) {
		/* A whole number of groups of eight, or the root. */
		u32 nodes = width, room = nodes > 1 ? (nodes + 7) & ~7U : 1;
		struct tree_node *node = memory_get(room * sizeof(*node));

		tree->node[tree->levels] = node;
		for (i = 0; i < room; i++)
			node[i] = (struct tree_node) { NEVER, 8 };
		for (i = 0; i < nodes; i++)
			node[i] = below ? node_of_nodes(&tree->node[tree->levels - 1][i * 8]) :
					  node_of_block(tree, i);
		tree->levels++;
		if (room == 1)
			break;
		below = room;
		width = room / 8;
	}
}

static void tree_free(struct tree *tree)
{
	free(tree->key);
	free(tree->least);
	free(tree->tied);
	while (tree->levels)
		free(tree->node[--tree->levels]);
}

/*
 * What a node becomes when one of those below it changes. Returns false if it must
 * look at all of them: the only one that had the least key has it no more.
 */
static bool node_follows(struct tree_node *node, struct tree_node before, struct tree_node after)
{
	if (after.key < node->key) {
		*node = after;
		return true;
	}
	if (before.key == node->key)
		node->ties -= before.ties;
	if (after.key == node->key)
		node->ties += after.ties;
	return node->ties;
}

/* The same of a block when the key of one of its servers changes. */
static void block_follows(struct tree *tree, u32 server, u64 key)
{
	u32 block = server / PICK_BLOCK;
	u64 *least = &tree->least[server / 8], before = tree->key[server];
	u64 *tied = &tree->tied[block], bit = 1ULL << server % PICK_BLOCK;
	struct tree_node *node = &tree->node[0][block];

	tree->key[server] = key;
	if (key < *least)
		*least = key;
	else if (before == *least)
		*least = least_of(&tree->key[server & ~7U]);
	if (key < node->key) {
		*node = (struct tree_node) { key, 1 };
		*tied = bit;
	} else if (key == node->key) {
		node->ties++;
		*tied |= bit;
	} else if (before == node->key) {
		*tied &= ~bit;
		if (!--node->ties)
			*node = node_of_block(tree, block);
	}
}

static void tree_set(struct tree *tree, u32 server, u64 key)
{
	struct tree_node *at = &tree->node[0][server / PICK_BLOCK], was = *at;
	u32 i = server / PICK_BLOCK;
	unsigned int l;

	if (tree->key[server] == key)
		return;
	block_follows(tree, server, key);
	for (l = 1; l < tree->levels && (at->key != was.key || at->ties != was.ties); l++) {
		struct tree_node before = was, after = *at;

		i /= 8;
		at = &tree->node[l][i];
		was = *at;
		if (!node_follows(at, before, after))
			*at = node_of_nodes(&tree->node[l - 1][i * 8]);
	}
}

/* One of the servers with the least key, each with the same probability. */
static u32 tree_best(const struct tree *tree, u64 *random)
{
	unsigned int l = tree->levels - 1;
	struct tree_node root = tree->node[l][0];
	u32 i = 0, ticket = root.ties > 1 ? hedge_random_below(random, root.ties) : 0;
	u64 tied;

	while (l--) {
		for (i *= 8; ; i++) {
			const struct tree_node *child = &tree->node[l][i];

			if (child->key != root.key)
				continue;
			if (ticket < child->ties)
				break;
			ticket -= child->ties;
		}
	}
	for (tied = tree->tied[i]; ticket; ticket--)
		tied &= tied - 1;
	return i * PICK_BLOCK + __builtin_ctzll(tied);
}

static u64 tree_least(const struct tree *tree)
{
	return tree->node[tree->levels - 1][0].key;
}

static u32 tree_choose(struct pick *pick, const struct wish *wish, u32 *chosen)
{
	bool hedge = wish->hedge && pick->best[1].levels + pick->best_idle[1].levels;
	struct tree *tree = wish->idle ? &pick->best_idle[hedge] : &pick->best[hedge];
	u32 i, n = 0;

	for (i = 0; i < wish->nr_except; i++)
		tree_set(tree, wish->except[i], NEVER);
	while (n < wish->wanted) {
		u64 least = tree_least(tree);

		/* A last resort is good for a first copy only. */
		if (least == NEVER || (n && least & LAST_RESORT))
			break;
		chosen[n] = tree_best(tree, &pick->random);
		/* With many servers this comes late, but all at once. */
		__builtin_prefetch(&pick->server[chosen[n]], 1);
		__builtin_prefetch(&tree->key[chosen[n]], 1);
		__builtin_prefetch(&tree->least[chosen[n] / 8], 1);
		if (n + 1 < wish->wanted)
			tree_set(tree, chosen[n], NEVER);
		n++;
	}
	/* The last one was not taken out of the tree. */
	for (i = 0; i + 1 < wish->wanted && i < n; i++)
		pick_update(pick, chosen[i]);
	for (i = 0; i < wish->nr_except; i++)
		pick_update(pick, wish->except[i]);
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
 * @weight: the routing vector, NULL for equal weights
 * @hedge_weight: that of hedges, NULL for equal weights
 * @seed: for the random choices
 */
void pick_init(struct pick *pick, const struct hedge_knobs *knobs, u32 depth, u32 use,
	       const u32 *weight, const u32 *hedge_weight, u64 seed)
{
	bool tree = knobs->nr_legs > HEDGE_MAX_LEGS && !knobs->val[HEDGE_CHOICES];
	u32 i, v;

	*pick = (struct pick) { .knobs = knobs, .nr = knobs->nr_legs, .use = use };
	pick->random = seed ? seed : 1;
	pick->server = memory_get(pick->nr * sizeof(*pick->server));
	for (i = 0; i < PICK_GROUPS; i++)
		pick->depth[i] = depth;
	set_init(&pick->all, pick->nr);
	set_init(&pick->idle, pick->nr);
	routing_init(&pick->route[0], weight, pick->nr);
	routing_init(&pick->route[1], hedge_weight, pick->nr);
	for (v = 0; v < 2 && tree && measures(pick); v++) {
		if (v && !weight && !hedge_weight)
			break;
		if (use & PICK_ALL)
			tree_init(&pick->best[v], pick->nr);
		if (use & PICK_IDLE)
			tree_init(&pick->best_idle[v], pick->nr);
	}
	for (i = 0; i < pick->nr; i++) {
		pick->server[i].view.weight = weight_of(pick, false, i);
		list_init(&pick->server[i].queue);
		list_init(&pick->server[i].handed);
		pick_update(pick, i);
	}
}

/**
 * pick_free - give back what a view holds
 * @pick: the view
 */
void pick_free(struct pick *pick)
{
	u32 v;

	free(pick->server);
	free(pick->all.item);
	free(pick->all.position);
	free(pick->idle.item);
	free(pick->idle.position);
	for (v = 0; v < 2; v++) {
		free(pick->route[v].sum);
		tree_free(&pick->best[v]);
		tree_free(&pick->best_idle[v]);
	}
}

/**
 * pick_update - a server has changed
 * @pick: the view
 * @server: whose view the caller has changed
 */
void pick_update(struct pick *pick, u32 server)
{
	bool idle = pick_is_idle(pick, server);
	u32 v;

	if (pick->use & PICK_IDLE)
		set_change(&pick->idle, server, idle);
	for (v = 0; v < 2; v++) {
		if (pick->best[v].levels)
			tree_set(&pick->best[v], server, key_of(pick, v, server));
		if (pick->best_idle[v].levels)
			tree_set(&pick->best_idle[v], server,
				 idle ? key_of(pick, v, server) : NEVER);
	}
}

/**
 * pick_set_depth - say when some of the servers are idle
 * @pick: the view
 * @group: which: those that are @group modulo PICK_GROUPS
 * @depth: copies in flight below which they are
 */
void pick_set_depth(struct pick *pick, u32 group, u32 depth)
{
	u32 i;

	if (pick->depth[group] == depth)
		return;
	pick->depth[group] = depth;
	for (i = group; i < pick->nr; i += PICK_GROUPS)
		pick_update(pick, i);
}

/* Few servers: the module's own choice. */
static u32 choose_leg(struct pick *pick, const struct wish *wish, u32 *chosen)
{
	struct hedge_view view = {
		.nr_legs = wish->among ? wish->nr_among : pick->nr,
		.random = &pick->random, .turn = &pick->turn,
	};
	u8 legs[HEDGE_MAX_LEGS];
	u32 i, n, among = 0;

	for (i = 0; i < view.nr_legs; i++) {
		u32 server = wish->among ? wish->among[i] : i;

		view.leg[i] = pick->server[server].view;
		view.leg[i].weight = weight_of(pick, wish->hedge, server);
		if (pick->sitting && pick->sitting & (1U << server))
			view.sitting |= 1U << i;
		if ((!wish->idle || pick_is_idle(pick, server)) &&
		    !contains(wish->except, wish->nr_except, server))
			among |= 1U << i;
		view.usable |= 1U << i;
	}
	/* Who sits serves if no other could, not if no other is idle. */
	if (wish->idle && !wish->hedge && view.usable & ~view.sitting)
		among &= ~view.sitting;
	n = hedge_choose(pick->knobs, &view, among, wish->wanted, legs);
	for (i = 0; i < n; i++)
		chosen[i] = wish->among ? wish->among[legs[i]] : legs[i];
	return n;
}

/* Moves the best of those drawn to the front, of equal ones any. */
static u32 choose_drawn(struct pick *pick, bool hedge, u32 *drawn, u32 nr, u32 wanted)
{
	u32 i, n;

	wanted = min(wanted, nr);
	/* They were drawn in random order: the first is as good as any. */
	for (n = 0; measures(pick) && n < wanted; n++) {
		u32 best = n, swapped;

		for (i = n + 1; i < nr; i++)
			if (key_of(pick, hedge, drawn[i]) < key_of(pick, hedge, drawn[best]))
				best = i;
		swapped = drawn[n];
		drawn[n] = drawn[best];
		drawn[best] = swapped;
	}
	return wanted;
}

static u32 choose_in_turn(struct pick *pick, const struct wish *wish, u32 *chosen)
{
	u32 i, n = 0, from = pick->turn;

	for (i = 0; i < pick->nr && n < wish->wanted; i++) {
		u32 server = (from + i) % pick->nr;

		if ((wish->idle && !pick_is_idle(pick, server)) ||
		    !weight_of(pick, wish->hedge, server) ||
		    contains(wish->except, wish->nr_except, server))
			continue;
		chosen[n++] = server;
		pick->turn = server + 1;
	}
	return n;
}

/**
 * pick_choose - choose servers for the copies of a job
 * @pick: the view
 * @wish: what is wanted
 * @chosen: where they are put, the best first; room for the larger of what is
 * wanted and the knob "choices"
 *
 * Return: how many were chosen, fewer than wanted if there are no more.
 */
u32 pick_choose(struct pick *pick, const struct wish *wish, u32 *chosen)
{
	u32 choices = pick->knobs->val[HEDGE_CHOICES];

	if (wish->among || pick->nr <= HEDGE_MAX_LEGS)
		return choose_leg(pick, wish, chosen);
	if (choices) {
		struct wish more = *wish;

		more.wanted = max(choices, wish->wanted);
		return choose_drawn(pick, wish->hedge, chosen, draw(pick, &more, chosen),
				    wish->wanted);
	}
	switch (pick->knobs->val[HEDGE_BALANCE]) {
	case HEDGE_BALANCE_RANDOM:
		return draw(pick, wish, chosen);
	case HEDGE_BALANCE_ROUND_ROBIN:
		return choose_in_turn(pick, wish, chosen);
	default:
		return tree_choose(pick, wish, chosen);
	}
}
