// SPDX-License-Identifier: GPL-2.0
/*
 * What each policy would give on legs of a law: the engine of hedgesim, with the module's own
 * decisions, run once at the load that is asked for, and several times shorter to find the load at
 * which it stops being stable. A copy that has started can not be killed, as on a device. The presets
 * are as they are, but for queue_depth, which is as many reads as a leg serves at a time: what would
 * only wait in the device waits in our queue, where it can still go elsewhere. All reads are of one
 * size and one class, no larger than a probe or a task: so it makes no difference in what order they
 * are served.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plan.h"
#include "sim.h"
#include "timeout.h"

#define SEED 1
#define SHORT 10	/* the runs for the largest load have this part of the jobs */
#define STEP 0.04	/* how exactly it is found */
#define WORTH 0.98	/* a timeout that saves less than 2 % is none, as in the module */
#define MARGIN 0.05	/* between the load and the largest, of what is recommended */
#define FACTOR 2	/* a p99.9 that is not more than this above the least is good enough */
#define ALIKE 0.95	/* a mean must be this much less to be better than that of an earlier policy */
#define FEW 0.01	/* a difference in extra copies that does not matter */

/* Each preset, and the one before it that is the same for such reads. */
static const struct {
	const char *name, *same_as;
} policies[] = {
	{ "fcfs-lpr", NULL }, { "fcfs-nr", NULL }, { "fcfs-nir", NULL }, { "fcfs-r", NULL },
	{ "edd-lpr", "fcfs-lpr" }, { "edd-nr", "fcfs-nr" }, { "edd-nir", "fcfs-nir" },
	{ "edd-r", "fcfs-r" }, { "fut-lpr", "fcfs-lpr" }, { "fut-nr", "fcfs-nr" },
	{ "fut-nir", "fcfs-nir" }, { "fut-r", "fcfs-r" },
	{ "rnd", NULL }, { "jsq", NULL }, { "pod", NULL }, { "llw", NULL },
	{ "slb", NULL }, { "slb-arrival", NULL },
	{ "coc", NULL }, { "cos", NULL }, { "riq", NULL }, { "probe", NULL },
};

size_t plan_policies(void)
{
	return sizeof(policies) / sizeof(policies[0]);
}

/* The words are ours, so none of them is wrong. */
static void set(struct hedge_knobs *knobs, const char *name, const char *word)
{
	hedge_knob_set(knobs, hedge_knob_find(name), word);
}

static void configure(const struct plan_config *config, const char *policy, double load,
		      uint64_t jobs, struct sim_config *sim)
{
	static const struct law one = { .kind = LAW_DET, .a = 1, .mean = 1, .second = 1 };
	char slots[16];
	double least;

	*sim = (struct sim_config){
		.service = *config->law, .size = one, .load = load, .slots = config->slots,
		.jobs = jobs, .seed = SEED, .budget = true, .tau = INFINITY, .need = 1,
		.probe = 1,
	};
	snprintf(slots, sizeof(slots), "%u", config->slots);
	hedge_knobs_init(&sim->knobs, config->legs);
	set(&sim->knobs, "queue_depth", slots);
	set(&sim->knobs, "policy", policy);
	if (sim->knobs.val[HEDGE_TIMEOUT_US] == HEDGE_TIMEOUT_OFF)
		return;
	sim->tau = timeout_best(config->law, &one, &least);
	if (least > WORTH)
		sim->tau = INFINITY;
	else
		sim->timeout = SIM_FIXED_TIMEOUT;
}

static bool stable_at(const struct plan_config *config, const char *policy, double load)
{
	static struct sim_result result;
	struct sim_config sim;

	configure(config, policy, load, config->jobs / SHORT, &sim);
	sim_run(&sim, &result);
	return result.stable;
}

/* By halving between 0 and 1. A short run can not tell a load just below 1 from 1. */
static double largest_load(const struct plan_config *config, const char *policy)
{
	double low = 0, high = 1;

	while (high - low > STEP) {
		double load = (low + high) / 2;

		if (stable_at(config, policy, load))
			low = load;
		else
			high = load;
	}
	return high < 1 ? low : 1;
}

static bool copy_row(const char *same_as, size_t policy, struct plan_row *rows)
{
	for (size_t i = 0; same_as && i < policy; i++)
		if (!strcmp(rows[i].policy, same_as)) {
			rows[policy] = rows[i];
			return true;
		}
	return false;
}

/* Fills the row of a policy; those before it are there already. */
void plan_simulate(const struct plan_config *config, size_t policy, struct plan_row *rows)
{
	struct plan_row *row = &rows[policy];
	const char *name = policies[policy].name;
	static struct sim_result result;
	struct sim_config sim;

	if (copy_row(policies[policy].same_as, policy, rows)) {
		row->policy = name;
		return;
	}
	configure(config, name, config->load, config->jobs, &sim);
	sim_run(&sim, &result);
	*row = (struct plan_row){
		.policy = name,
		.tau = sim.tau,
		.stable = result.stable,
		.mean = stats_mean(&result.stats),
		.p50 = stats_quantile(&result.stats, 0.5),
		.p99 = stats_quantile(&result.stats, 0.99),
		.p999 = stats_quantile(&result.stats, 0.999),
		.extra = fmax(0, result.copies_per_job - 1),
		.max_load = largest_load(config, name),
	};
	if (row->stable)
		row->max_load = fmax(row->max_load, config->load);
}

/* Of those that have load to spare, or, if none has, of all that are stable. */
static bool eligible(const struct plan_row *row, double load, double spare)
{
	return row->stable && row->max_load >= load + spare;
}

static int pick(const struct plan_row *rows, size_t nr, double load, double spare)
{
	double least = INFINITY, extra = INFINITY;
	int best = -1;

	for (size_t i = 0; i < nr; i++)
		if (eligible(&rows[i], load, spare))
			least = fmin(least, rows[i].p999);
	for (size_t i = 0; i < nr; i++)
		if (eligible(&rows[i], load, spare) && rows[i].p999 <= FACTOR * least)
			extra = fmin(extra, rows[i].extra);
	for (size_t i = 0; i < nr; i++)
		if (eligible(&rows[i], load, spare) && rows[i].p999 <= FACTOR * least &&
		    rows[i].extra <= extra + FEW &&
		    (best < 0 || rows[i].mean < rows[best].mean * ALIKE))
			best = (int)i;
	return best;
}

/*
 * Of those whose p99.9 is at most twice the least, those with the fewest extra copies, and of these
 * the one with the least mean. -1: none is stable.
 */
int plan_recommend(const struct plan_row *rows, size_t nr, double load)
{
	int best = pick(rows, nr, load, MARGIN);

	return best < 0 ? pick(rows, nr, load, 0) : best;
}
