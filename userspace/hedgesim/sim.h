/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The simulation of a hedged volume: what is asked, and what comes out.
 */
#ifndef HEDGESIM_SIM_H
#define HEDGESIM_SIM_H

#include "knobs.h"
#include "law.h"
#include "stats.h"

#define SIM_MAX_TASKS 10000	/* of a job */

/* Where a timeout comes from. */
enum sim_timeout {
	SIM_NO_TIMEOUT,
	SIM_FIXED_TIMEOUT,	/* tau, or taus */
	SIM_LEARNT_TIMEOUT,	/* as the module learns it */
};

/**
 * struct sim_config - what to simulate
 * @knobs: the settings of the volume, of as many legs as there are servers;
 * timeout_us is not looked at
 * @service: law of the service time S, drawn for each copy
 * @size: law of the size X, drawn for each job; a copy takes S X
 * @tasks: law of the number of tasks of a job, rounded up, at least 1; or NULL
 * @due: law of the time from arrival to due time; NULL for the knob due_us_be
 * @removal: law of the time to remove a copy that has started; NULL for none
 * @load: arrival rate times E[S] E[X] and what a job needs, for each slot
 * @unit: nanoseconds in the unit of the laws, for what is evaluated once a
 * second; 0: a usual service takes LEARN_SERVICE_NS
 * @timeout: where the timeout comes from
 * @tau: a fixed timeout, in the unit of the laws
 * @taus: a fixed timeout of each server, infinite for none; NULL if all have @tau
 * @speeds: by which each server divides a service time; NULL if all are 1
 * @types: of each type of jobs its speed at each server; NULL for one type
 * @shares: the probabilities of the types, summed up
 * @nr_types: how many types there are
 * @routing: weights of the servers for first copies; NULL if all are the same
 * @rerouting: the same for hedges
 * @arrivals: times of arrivals, which repeat; NULL for Poisson arrivals
 * @nr_arrivals: how many, the last of which is the period
 * @eligible: how many random servers can serve a job; 0 for all
 * @need: copies of a task that have to complete
 * @probe: size of a probe
 * @probe_tail: a probed job goes to the end of the queue
 * @slots: copies that a server serves at a time
 * @jobs: how many are counted, the first fifth of which is warm-up
 * @seed: of all random numbers
 * @kill: whether copies that have started can be killed
 * @resume: what takes the place of a killed copy goes on where that was
 * @reroute_any: whether a killed copy may go to the server that had it
 * @known_work: llw knows the service times of the copies, instead of a mean
 * @budget: whether the knob budget_pct limits extra copies
 * @sitout: whether slow servers sit out
 */
struct sim_config {
	struct hedge_knobs knobs;
	struct law service, size;
	const struct law *tasks, *due, *removal;
	double load, unit;
	enum sim_timeout timeout;
	double tau, *taus;
	double *speeds, **types, *shares;
	u32 nr_types, *routing, *rerouting;
	double *arrivals;
	u64 nr_arrivals;
	u32 eligible, need;
	double probe;
	bool probe_tail;
	u32 slots;
	u64 jobs, seed;
	bool kill, resume, reroute_any, known_work, budget, sitout;
};

/**
 * struct sim_result - what came out
 * @stats: response times of the jobs after the warm-up
 * @tau: the timeout at the end, infinite if there was none
 * @utilisation: share of the slots that were busy
 * @copies_per_job: copies handed to a server
 * @messages_per_job: copies sent, cancelled or killed, and completed
 * @events: arrivals, completions and timeouts, warm-up included
 * @stable: whether the number of jobs settled
 */
struct sim_result {
	struct stats stats;
	double tau, utilisation, copies_per_job, messages_per_job;
	u64 events;
	bool stable;
};

double sim_mean_tasks(const struct sim_config *config);
void sim_run(const struct sim_config *config, struct sim_result *result);

#endif
