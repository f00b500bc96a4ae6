/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sitting out: a leg that is slow for good leaves the set of those that are
 * read, for a while.
 *
 * Once a second each leg that serves is evaluated: its mean latency since the
 * last evaluation, against the median of its peers'. The peers are the other
 * legs that serve, so that legs which are all slow find themselves normal. A leg
 * that was slow in HEDGE_SITOUT_SLOW evaluations in a row sits out for sitout_s,
 * then is tried again. Each further time takes twice as long, up to an hour;
 * after HEDGE_SITOUT_GOOD seconds in which it served and was not slow it begins
 * at sitout_s again.
 *
 *	         slow three times in a row
 *	serves ------------------------------> sits
 *	       <------------------------------
 *	        its time is over, or no other leg serves
 *
 * A leg with few reads is evaluated when it has had enough of them, be that
 * several seconds later.
 */
#ifndef HEDGE_CORE_SITOUT_H
#define HEDGE_CORE_SITOUT_H

#include "types.h"

#define HEDGE_SITOUT_SLOW	3
#define HEDGE_SITOUT_GOOD	600
#define HEDGE_SITOUT_MAX_S	3600
/* The mean of fewer reads says too little. */
#define HEDGE_SITOUT_READS	16

/**
 * struct hedge_sitout_leg - what is known of one leg
 * @count: reads since it was last evaluated
 * @sum_us: sum of their latencies in microseconds
 * @mean: mean latency at the last evaluation, in 1/16 us; 0 if there was none
 * @slow: evaluations in a row at which it was slow
 * @for_s: how long it sat the last time, in seconds; 0 if it is in good standing
 * @left_s: how long it still has to sit, 0 while it serves
 * @good_s: how long it has served since without being slow
 */
struct hedge_sitout_leg {
	u64 count;
	u64 sum_us;
	u64 mean;
	u32 slow;
	u32 for_s;
	u32 left_s;
	u32 good_s;
};

/**
 * struct hedge_sitout - what is known of all
 * @leg: each of them
 */
struct hedge_sitout {
	struct hedge_sitout_leg leg[HEDGE_MAX_LEGS];
};

/**
 * hedge_sitout_add - take in the latencies of a leg's reads
 * @s: the state
 * @leg: the leg
 * @count: how many reads ended
 * @sum_us: sum of their latencies in microseconds
 */
static inline void hedge_sitout_add(struct hedge_sitout *s, unsigned int leg,
				    u64 count, u64 sum_us)
{
	s->leg[leg].count += count;
	s->leg[leg].sum_us += sum_us;
}

u32 hedge_sitout_tick(struct hedge_sitout *s, u32 pct, u32 seconds, u32 able);

#endif
