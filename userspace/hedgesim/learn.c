// SPDX-License-Identifier: GPL-2.0
/*
 * Learning as the module does: see learn.h.
 */
#include <math.h>

#include "learn.h"

/**
 * learn_copy - take in the latency of a copy
 * @learn: what is learnt
 * @server: where it was
 * @latency: from being handed to the server to its end, in units of the laws;
 * of a copy that was killed what it would have been
 * @depth: copies in flight there when it was handed over, itself included
 */
void learn_copy(struct learn *learn, u32 server, double latency, u32 depth)
{
	u32 leg = server % HEDGE_MAX_LEGS;
	u64 ns = latency * learn->scale;

	if (learn->tau)
		learn->count[leg][hedge_hist_bucket(ns)]++;
	if (learn->depth) {
		struct hedge_depth_sample *sample = &learn->samples[leg][hedge_depth_index(depth)];

		sample->count++;
		sample->sum_us += ns / HEDGE_NS_PER_US;
	}
	if (learn->sit)
		hedge_sitout_add(&learn->sitout, leg, 1, ns / HEDGE_NS_PER_US);
}

static void learn_timeout(struct learn *learn, u32 legs)
{
	const struct hedge_tau_hist *usable[HEDGE_MAX_LEGS];
	u32 leg, bucket;
	u64 ns;

	for (leg = 0; leg < legs; leg++) {
		for (bucket = 0; bucket < HEDGE_HIST_BUCKETS; bucket++) {
			if (!learn->count[leg][bucket])
				continue;
			hedge_tau_add(&learn->hist[leg], bucket, learn->count[leg][bucket]);
			learn->count[leg][bucket] = 0;
		}
		hedge_tau_decay(&learn->hist[leg]);
		usable[leg] = &learn->hist[leg];
	}
	ns = hedge_tau_learn(usable, legs);
	learn->timeout = ns ? ns / learn->scale : INFINITY;
}

/* Older samples fade by a sixteenth a second. */
static void learn_depth(struct learn *learn, u32 leg)
{
	u32 i;

	pick_set_depth(learn->pick, leg, hedge_depth_learn(learn->samples[leg]));
	for (i = 0; i < HEDGE_DEPTHS; i++) {
		struct hedge_depth_sample *sample = &learn->samples[leg][i];

		if (sample->count < 16)
			continue;
		sample->count -= sample->count / 16;
		sample->sum_us -= sample->sum_us / 16;
	}
}

static void forget(struct learn *learn, u32 legs, double now)
{
	struct server *server = learn->pick->server;
	u32 leg, best = HEDGE_SERVICE_MAX_US;

	for (leg = 0; leg < legs; leg++)
		if (server[leg].view.service_us)
			best = min(best, server[leg].view.service_us);
	for (leg = 0; leg < legs; leg++) {
		u32 *service_us = &server[leg].view.service_us;

		if ((now - learn->last[leg]) * learn->scale > HEDGE_NS_PER_S)
			*service_us = hedge_service_forget(*service_us, best);
	}
}

/**
 * learn_tick - the evaluation once a second
 * @learn: what is learnt
 * @now: the time
 */
void learn_tick(struct learn *learn, double now)
{
	const u32 *val = learn->pick->knobs->val;
	u32 leg, legs = min(learn->pick->nr, (u32)HEDGE_MAX_LEGS);

	if (learn->tau)
		learn_timeout(learn, legs);
	if (learn->depth)
		for (leg = 0; leg < legs; leg++)
			learn_depth(learn, leg);
	if (learn->forget)
		forget(learn, legs, now);
	if (learn->sit)
		learn->pick->sitting = hedge_sitout_tick(&learn->sitout, val[HEDGE_SITOUT_PCT],
							 val[HEDGE_SITOUT_S], (1U << legs) - 1);
}
