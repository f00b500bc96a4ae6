// SPDX-License-Identifier: GPL-2.0
/*
 * The evaluation of who sits out, once a second.
 */
#include "sitout.h"

#define MEAN_SHIFT 4		/* hedge_sitout_leg.mean is in 1/16 us */

static u32 sitting(const struct hedge_sitout *s)
{
	unsigned int i;
	u32 mask = 0;

	for (i = 0; i < HEDGE_MAX_LEGS; i++)
		if (s->leg[i].left_s)
			mask |= 1U << i;
	return mask;
}

/* Lets a leg serve again. It is judged by what it does from now on. */
static void call_back(struct hedge_sitout_leg *leg)
{
	leg->left_s = 0;
	leg->count = 0;
	leg->sum_us = 0;
	leg->mean = 0;
}

/* Lets the time of those that sit pass. */
static void pass_second(struct hedge_sitout *s)
{
	struct hedge_sitout_leg *leg;

	for (leg = s->leg; leg < s->leg + HEDGE_MAX_LEGS; leg++)
		if (leg->left_s && !--leg->left_s)
			call_back(leg);
}

/* Returns which legs have a new mean: only those are judged. */
static u32 take_means(struct hedge_sitout *s, u32 serving)
{
	unsigned int i;
	u32 fresh = 0;

	for (i = 0; i < HEDGE_MAX_LEGS; i++) {
		struct hedge_sitout_leg *leg = &s->leg[i];

		if (!(serving & (1U << i)) || leg->count < HEDGE_SITOUT_READS)
			continue;
		leg->mean = max_t(u64, div64_u64(leg->sum_us << MEAN_SHIFT,
						 leg->count), 1);
		leg->count = 0;
		leg->sum_us = 0;
		fresh |= 1U << i;
	}
	return fresh;
}

/* The median of the means of some legs, of an even number the mean of two. */
static u64 median(const struct hedge_sitout *s, u32 legs)
{
	u64 sorted[HEDGE_MAX_LEGS];
	unsigned int i, j, n = 0;

	for (i = 0; i < HEDGE_MAX_LEGS; i++) {
		u64 mean = s->leg[i].mean;

		if (!(legs & (1U << i)) || !mean)
			continue;
		for (j = n++; j && sorted[j - 1] > mean; j--)
			sorted[j] = sorted[j - 1];
		sorted[j] = mean;
	}
	if (!n)
		return 0;
	return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

static bool is_slow(const struct hedge_sitout *s, unsigned int leg, u32 serving,
		    u32 pct)
{
	u64 peers = median(s, serving & ~(1U << leg));

	return peers && s->leg[leg].mean * 100 > peers * pct;
}

/* Sends a leg to sit. */
static void sit(struct hedge_sitout_leg *leg, u32 seconds)
{
	leg->for_s = leg->for_s ? 2 * leg->for_s : seconds;
	leg->for_s = min_t(u32, leg->for_s, HEDGE_SITOUT_MAX_S);
	leg->left_s = leg->for_s;
	leg->slow = 0;
	leg->good_s = 0;
}

/*
 * Judges the legs with a new mean, all against the same set of peers; then of
 * those that have been slow long enough the slowest go, but never the last.
 */
static void judge(struct hedge_sitout *s, u32 pct, u32 seconds, u32 serving,
		  u32 fresh)
{
	unsigned int i, slowest;
	u32 slow = 0, ripe = 0;

	for (i = 0; i < HEDGE_MAX_LEGS; i++)
		if (fresh & (1U << i) && is_slow(s, i, serving, pct))
			slow |= 1U << i;
	for (i = 0; i < HEDGE_MAX_LEGS; i++) {
		struct hedge_sitout_leg *leg = &s->leg[i];

		if (slow & (1U << i)) {
			leg->good_s = 0;
			if (++leg->slow >= HEDGE_SITOUT_SLOW)
				ripe |= 1U << i;
		} else if (fresh & (1U << i)) {
			leg->slow = 0;
		}
	}
	while (ripe && serving & (serving - 1)) {
		slowest = HEDGE_NO_LEG;
		for (i = 0; i < HEDGE_MAX_LEGS; i++)
			if (ripe & (1U << i) &&
			    (slowest == HEDGE_NO_LEG ||
			     s->leg[i].mean > s->leg[slowest].mean))
				slowest = i;
		ripe &= ~(1U << slowest);
		serving &= ~(1U << slowest);
		sit(&s->leg[slowest], seconds);
	}
}

/**
 * hedge_sitout_tick - evaluate the legs, once a second
 * @s: the state, all zero at the start
 * @pct: a leg above this per cent of the median of its peers is slow; 0: off
 * @seconds: how long it sits the first time; 0: off
 * @able: bit for each leg that can be read and is not stalled
 *
 * Return: bit for each leg that sits out; never all of @able.
 */
u32 hedge_sitout_tick(struct hedge_sitout *s, u32 pct, u32 seconds, u32 able)
{
	u32 sat = sitting(s), serving;
	unsigned int i;

	if (!pct || !seconds) {
		memset(s, 0, sizeof(*s));
		return 0;
	}
	pass_second(s);
	/* If all those that stood in for them are gone, they must serve. */
	if (!(able & ~sitting(s)))
		for (i = 0; i < HEDGE_MAX_LEGS; i++)
			if (able & (1U << i))
				call_back(&s->leg[i]);

	serving = able & ~sitting(s);
	judge(s, pct, seconds, serving, take_means(s, serving));
	for (i = 0; i < HEDGE_MAX_LEGS; i++)
		if (serving & ~sat & (1U << i) && !s->leg[i].left_s &&
		    ++s->leg[i].good_s >= HEDGE_SITOUT_GOOD)
			s->leg[i].for_s = 0;
	return sitting(s);
}
