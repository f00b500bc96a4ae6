// SPDX-License-Identifier: GPL-2.0
/*
 * Ranks of tasks, and the decision between one that waits and one that has
 * started.
 */
#include "task.h"

/**
 * hedge_rank_waiting - where a task stands in the shared queue
 * @knobs: the settings
 * @task: the task
 *
 * Return: its rank: by arrival (fcfs), by due time (edd), or by the number of
 * tasks of its read that no leg has started (fut).
 */
struct hedge_rank hedge_rank_waiting(const struct hedge_knobs *knobs,
				     const struct hedge_task_view *task)
{
	struct hedge_rank rank = { .arrival_ns = task->arrival_ns };

	if (knobs->val[HEDGE_ORDER] == HEDGE_EDD)
		rank.key = task->due_ns;
	else if (knobs->val[HEDGE_ORDER] == HEDGE_FUT)
		rank.key = task->unassigned;
	return rank;
}

/**
 * hedge_rank_started - where a task stands among those that may get a copy
 * @knobs: the settings
 * @task: the task
 *
 * Return: its rank: the oldest first (lpr), the fewest copies first (nir), or
 * as in the shared queue (r).
 */
struct hedge_rank hedge_rank_started(const struct hedge_knobs *knobs,
				     const struct hedge_task_view *task)
{
	struct hedge_rank rank = { .arrival_ns = task->arrival_ns };

	if (knobs->val[HEDGE_REPLICATE] == HEDGE_R)
		return hedge_rank_waiting(knobs, task);
	if (knobs->val[HEDGE_REPLICATE] == HEDGE_NIR)
		rank.key = task->copies;
	return rank;
}

/**
 * hedge_next_task - what a leg with a free slot takes
 * @knobs: the settings
 * @waiting: the first task of the shared queue that the leg may take, or NULL
 * @started: the first started task that the leg may take, or NULL; NULL if the
 *           budget has no copy for it
 * @waits: whether anything waits at all, be it for this leg or not
 *
 * Under "r" the first of both is taken. Otherwise a task gets another copy only
 * while nothing waits, unless hedges go to any leg.
 *
 * Return: which of them the leg takes.
 */
enum hedge_next hedge_next_task(const struct hedge_knobs *knobs,
				const struct hedge_rank *waiting,
				const struct hedge_rank *started, bool waits)
{
	bool first = knobs->val[HEDGE_REPLICATE] == HEDGE_R;

	if (knobs->val[HEDGE_REPLICATE] == HEDGE_NR)
		started = NULL;
	if (started && first && waiting)
		return hedge_rank_before(waiting, started) ?
			HEDGE_NEXT_WAITING : HEDGE_NEXT_STARTED;
	if (waiting)
		return HEDGE_NEXT_WAITING;
	if (started && (first || !waits ||
			knobs->val[HEDGE_HEDGE_TO] == HEDGE_ANY))
		return HEDGE_NEXT_STARTED;
	return HEDGE_NEXT_NONE;
}
