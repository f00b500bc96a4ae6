/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The simulation of a hedged volume: what is asked, and what comes out.
 */
#ifndef HEDGESIM_SIM_H
#define HEDGESIM_SIM_H

#include "knobs.h"
#include "law.h"
#include "stats.h"

/**
 * struct sim_config - what to simulate
 * @knobs: the settings of the volume, of as many legs as there are servers;
 * timeout_us only says whether there is a timeout
 * @service: law of the service time S, drawn for each copy
 * @size: law of the size X, drawn for each job; a copy takes S X
 * @load: arrival rate times E[S] E[X], for each slot
 * @tau: the timeout, in the unit of the laws
 * @slots: copies that a server serves at a time
 * @jobs: how many are counted, the first fifth of which is warm-up
 * @seed: of all random numbers
 * @kill: whether copies that have started can be killed
 * @reroute_any: whether a killed copy may go to the server that had it
 * @budget: whether the knob budget_pct limits extra copies
 */
struct sim_config {
	struct hedge_knobs knobs;
	struct law service, size;
	double load, tau;
	u32 slots;
	u64 jobs, seed;
	bool kill, reroute_any, budget;
};

/**
 * struct sim_result - what came out
 * @stats: response times of the jobs after the warm-up
 * @utilisation: share of the slots that were busy
 * @copies_per_job: copies handed to a server
 * @messages_per_job: copies sent, cancelled or killed, and completed
 * @events: arrivals, completions and timeouts, warm-up included
 * @stable: whether the number of jobs settled
 */
struct sim_result {
	struct stats stats;
	double utilisation, copies_per_job, messages_per_job;
	u64 events;
	bool stable;
};

void sim_run(const struct sim_config *config, struct sim_result *result);

#endif
