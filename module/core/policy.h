/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which leg: the choice among legs for a read, a hedge or a rescue.
 *
 * The caller describes the legs as they are at this moment in a small view, and
 * these functions choose. They hold no state, take no lock and allocate
 * nothing, so that the module, the simulator and the unit tests can all call
 * them. A new way to choose is a new key in policy.c.
 */
#ifndef HEDGE_CORE_POLICY_H
#define HEDGE_CORE_POLICY_H

#include "knobs.h"

/**
 * struct hedge_leg_view - a leg as the choice sees it
 * @inflight: read copies that its device has
 * @queued: copies that wait for it in our queue
 * @service_us: smoothed service time of a copy in microseconds
 * @weight: routing weight of the vector in force, 0 to HEDGE_WEIGHT_MAX
 * @work: time that its copies, in flight and queued, will take; any unit. Only
 *        looked at by "llw"
 */
struct hedge_leg_view {
	u32 inflight;
	u32 queued;
	u32 service_us;
	u32 weight;
	u64 work;
};

/**
 * struct hedge_view - the legs as the choice sees them
 * @leg: each leg
 * @nr_legs: how many there are
 * @usable: bit for each leg that may be read at all
 * @avoid: bit for each leg that serves only when nothing else is left: those
 *         that are stalled
 * @sitting: bit for each leg that sits out
 * @random: state of the caller's generator
 * @turn: the caller's turn, for round-robin
 */
struct hedge_view {
	struct hedge_leg_view leg[HEDGE_MAX_LEGS];
	unsigned int nr_legs;
	u32 usable;
	u32 avoid;
	u32 sitting;
	u64 *random;
	u32 *turn;
};

u64 hedge_leg_key(enum hedge_balance balance, const struct hedge_leg_view *leg);
u32 hedge_choose(const struct hedge_knobs *knobs, const struct hedge_view *view,
		 u32 among, unsigned int copies, u8 *chosen);
u32 hedge_preferred(const struct hedge_view *view, u32 among);
u32 hedge_keep_idle(u32 chosen, u32 idle, u64 *random);

#endif
