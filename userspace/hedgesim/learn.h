/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the module learns while it runs, learnt by the module's own code: the
 * timeout, how deep a server can be loaded, who sits out, and that a server which
 * once looked slow may have become better.
 *
 * The module evaluates once a second, and its histograms reach from a
 * microsecond to a hundred seconds. Here a usual service is LEARN_SERVICE_NS
 * long, whatever the unit of the laws is, unless the caller says how long that is.
 *
 * The module learns of up to HEDGE_MAX_LEGS legs. Of more servers each
 * HEDGE_MAX_LEGS-th is taken for the same leg.
 */
#ifndef HEDGESIM_LEARN_H
#define HEDGESIM_LEARN_H

#include "pick.h"
#include "service.h"
#include "sitout.h"
#include "tau.h"

#define LEARN_SERVICE_NS 1e7

/**
 * struct learn - what is learnt
 * @pick: the servers
 * @tau: whether a timeout is learnt
 * @depth: whether a depth is learnt
 * @sit: whether servers sit out
 * @forget: whether the service time of a server that is not used fades
 * @scale: nanoseconds in a unit of the laws
 * @timeout: the timeout in units of the laws, infinite if there is none
 * @last: when a copy completed last at each server
 * @count: of each leg: copies that completed since the last evaluation
 * @hist: of each leg: the histogram that fades
 * @samples: of each leg: latencies by depth
 * @sitout: who sits out
 */
struct learn {
	struct pick *pick;
	bool tau, depth, sit, forget;
	double scale, timeout;
	double last[HEDGE_MAX_LEGS];
	u32 count[HEDGE_MAX_LEGS][HEDGE_HIST_BUCKETS];
	struct hedge_tau_hist hist[HEDGE_MAX_LEGS];
	struct hedge_depth_sample samples[HEDGE_MAX_LEGS][HEDGE_DEPTHS];
	struct hedge_sitout sitout;
};

void learn_copy(struct learn *learn, u32 server, double latency, u32 depth);
void learn_tick(struct learn *learn, double now);

#endif
