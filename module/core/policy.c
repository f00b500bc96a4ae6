// SPDX-License-Identifier: GPL-2.0
/*
 * Choosing legs.
 *
 * For the ways that measure, each leg gets a key and the least key wins, ties
 * at random. A routing weight divides the key (jsq: is not looked at beyond
 * zero), or is the probability with which "random" takes the leg. The legs of
 * several copies are the best ones in order, all distinct.
 */
#include "policy.h"

/* Keeps the product of the three factors of a key within 64 bits. */
#define MAX_PRESENT	16383U

static unsigned int first_leg(u32 mask)
{
	return __builtin_ctz(mask);
}

/**
 * hedge_leg_key - how good a leg is: less is better
 * @balance: the way to choose; one of those that measure
 * @leg: the leg
 *
 * latency: the expected finish, (in flight + queued + 1) times the service time
 * over the weight. jsq: how many are there. llw: how long they will take.
 */
u64 hedge_leg_key(enum hedge_balance balance, const struct hedge_leg_view *leg)
{
	u64 present = min(leg->inflight + leg->queued, MAX_PRESENT);
	u64 cost;

	if (balance == HEDGE_BALANCE_LLW)
		return leg->work;
	if (balance != HEDGE_BALANCE_LATENCY)
		return present;
	cost = (present + 1) * max(leg->service_us, 1U);
	if (leg->weight == HEDGE_WEIGHT_DEFAULT || !leg->weight)
		return cost;
	return div64_u64(cost * HEDGE_WEIGHT_DEFAULT, leg->weight);
}

/**
 * hedge_preferred - leave out the legs that serve only as a last resort
 * @view: the legs
 * @among: bit for each leg that may be taken
 *
 * A leg that is stalled is the last that is taken; before it one of weight 0,
 * which the user asked to avoid; before that one that sits out.
 *
 * Return: the legs of @among to choose from; empty only if @among holds no
 * usable leg.
 */
u32 hedge_preferred(const struct hedge_view *view, u32 among)
{
	u32 usable = among & view->usable, left;
	u32 weighty = 0;
	unsigned int i;

	for (left = usable; left; left &= left - 1) {
		i = first_leg(left);
		if (view->leg[i].weight)
			weighty |= 1U << i;
	}
	if (usable & ~view->avoid)
		usable &= ~view->avoid;
	if (usable & weighty)
		usable &= weighty;
	if (usable & ~view->sitting)
		usable &= ~view->sitting;
	return usable;
}

static unsigned int nth_leg(u32 mask, u32 n)
{
	while (n--)
		mask &= mask - 1;
	return first_leg(mask);
}

/* A leg with a probability in proportion to its weight. */
static unsigned int pick_random(const struct hedge_view *view, u32 mask)
{
	u32 total = 0, left, ticket;

	for (left = mask; left; left &= left - 1)
		total += view->leg[first_leg(left)].weight;
	if (!total)
		return nth_leg(mask, hedge_random_below(view->random,
							hweight32(mask)));
	ticket = hedge_random_below(view->random, total);
	for (left = mask; left; left &= left - 1) {
		u32 weight = view->leg[first_leg(left)].weight;

		if (ticket < weight)
			break;
		ticket -= weight;
	}
	return first_leg(left);
}

/* The next leg after the last turn's; a turn passes over legs not in @mask. */
static unsigned int pick_round_robin(const struct hedge_view *view, u32 mask)
{
	u32 turn = *view->turn % view->nr_legs;
	u32 later = mask & ~((1U << turn) - 1);
	unsigned int leg = first_leg(later ? later : mask);

	*view->turn = leg + 1;
	return leg;
}

/* The leg with the least key; of equal ones each with the same probability. */
static unsigned int pick_least(enum hedge_balance balance,
			       const struct hedge_view *view, u32 mask)
{
	unsigned int best = first_leg(mask), ties = 1;
	u64 best_key = hedge_leg_key(balance, &view->leg[best]);

	for (mask &= mask - 1; mask; mask &= mask - 1) {
		unsigned int i = first_leg(mask);
		u64 key = hedge_leg_key(balance, &view->leg[i]);

		if (key > best_key)
			continue;
		ties = key < best_key ? 1 : ties + 1;
		if (ties == 1 || !hedge_random_below(view->random, ties))
			best = i;
		best_key = key;
	}
	return best;
}

/* Power of d choices: d random ones of the legs. */
static u32 draw(const struct hedge_view *view, u32 mask, u32 d)
{
	u32 drawn = 0;

	if (!d || d >= hweight32(mask))
		return mask;
	while (hweight32(drawn) < d)
		drawn |= 1U << nth_leg(mask & ~drawn,
				       hedge_random_below(view->random,
							  hweight32(mask & ~drawn)));
	return drawn;
}

static unsigned int pick(enum hedge_balance balance,
			 const struct hedge_view *view, u32 mask)
{
	if (!(mask & (mask - 1)))
		return first_leg(mask);
	switch (balance) {
	case HEDGE_BALANCE_RANDOM:
		return pick_random(view, mask);
	case HEDGE_BALANCE_ROUND_ROBIN:
		return pick_round_robin(view, mask);
	default:
		return pick_least(balance, view, mask);
	}
}

/**
 * hedge_choose - choose the legs of the copies of a read
 * @knobs: the settings
 * @view: the legs
 * @among: bit for each leg that may be taken
 * @copies: how many legs are wanted, at least 1
 * @chosen: where the legs are put, the best first
 *
 * Fewer legs than wanted are given when fewer may be taken: legs that are to be
 * avoided are taken only for a first copy that has no other.
 *
 * Return: how many legs were chosen; 0 if @among holds no usable leg.
 */
u32 hedge_choose(const struct hedge_knobs *knobs, const struct hedge_view *view,
		 u32 among, unsigned int copies, u8 *chosen)
{
	u32 choices = knobs->val[HEDGE_CHOICES];
	u32 mask = hedge_preferred(view, among);
	unsigned int n = 0;

	if (choices)
		mask = draw(view, mask, max(choices, copies));
	while (mask && n < copies) {
		chosen[n] = pick(knobs->val[HEDGE_BALANCE], view, mask);
		mask &= ~(1U << chosen[n++]);
	}
	return n;
}

/**
 * hedge_keep_idle - of the chosen legs keep those that are idle
 * @chosen: bit for each chosen leg, at least one
 * @idle: bit for each idle leg
 * @random: state of the caller's generator
 *
 * Return: the idle ones; if none is, one of @chosen at random.
 */
u32 hedge_keep_idle(u32 chosen, u32 idle, u64 *random)
{
	if (chosen & idle)
		return chosen & idle;
	return 1U << nth_leg(chosen,
			     hedge_random_below(random, hweight32(chosen)));
}
