/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which task: what a leg with a free slot takes next.
 *
 * A task is a read, or the part of one that is served by itself (task_kb).
 * Tasks that no leg has started yet wait in the shared queue, in the order of
 * the knob "order". Tasks that have started, and may get another copy, are the
 * candidates of the knob "replicate":
 *
 *	lpr	those that are overdue, the oldest first
 *	nr	none
 *	nir	all, those with the fewest copies first, then the oldest
 *	r	all, in the order of the shared queue
 *
 * The caller keeps both sets in whatever index it likes, by the ranks given
 * here: the least first. hedge_next_task() then decides between the first of
 * either set. Ranks change only when a copy of the task (nir) or any task of
 * the same read (fut) starts.
 */
#ifndef HEDGE_CORE_TASK_H
#define HEDGE_CORE_TASK_H

#include "knobs.h"

/**
 * struct hedge_task_view - a task as the choice sees it
 * @arrival_ns: when its read arrived
 * @due_ns: when its read is due, see hedge_due_us()
 * @unassigned: tasks of its read that no leg has started
 * @copies: copies of the task that have started and not ended
 */
struct hedge_task_view {
	u64 arrival_ns;
	u64 due_ns;
	u32 unassigned;
	u32 copies;
};

/**
 * struct hedge_rank - where a task stands; the least is the first
 * @key: what the knobs say
 * @arrival_ns: ties go to the read that arrived first
 */
struct hedge_rank {
	u64 key;
	u64 arrival_ns;
};

/**
 * hedge_rank_before - whether a task stands before another
 * @a: rank of the one
 * @b: rank of the other
 */
static inline bool hedge_rank_before(const struct hedge_rank *a,
				     const struct hedge_rank *b)
{
	if (a->key != b->key)
		return a->key < b->key;
	return a->arrival_ns < b->arrival_ns;
}

/**
 * hedge_at_once - whether a task may get another copy as soon as it has started
 * @knobs: the settings
 *
 * Otherwise it may when it is overdue, if at all.
 */
static inline bool hedge_at_once(const struct hedge_knobs *knobs)
{
	return knobs->val[HEDGE_REPLICATE] == HEDGE_NIR ||
	       knobs->val[HEDGE_REPLICATE] == HEDGE_R;
}

/* Classes of I/O priority that have a due time of their own. */
enum hedge_due { HEDGE_DUE_RT, HEDGE_DUE_BE, HEDGE_DUE_IDLE };

/**
 * hedge_due_us - how long after its arrival a read is due
 * @knobs: the settings
 * @class: class of the read; one without any counts as HEDGE_DUE_BE
 */
static inline u32 hedge_due_us(const struct hedge_knobs *knobs,
			       enum hedge_due class)
{
	return knobs->val[HEDGE_DUE_US_RT + class];
}

/* What a leg takes next. */
enum hedge_next {
	HEDGE_NEXT_NONE,
	HEDGE_NEXT_WAITING,	/* the first task of the shared queue */
	HEDGE_NEXT_STARTED,	/* another copy of a started one */
};

struct hedge_rank hedge_rank_waiting(const struct hedge_knobs *knobs,
				     const struct hedge_task_view *task);
struct hedge_rank hedge_rank_started(const struct hedge_knobs *knobs,
				     const struct hedge_task_view *task);
enum hedge_next hedge_next_task(const struct hedge_knobs *knobs,
				const struct hedge_rank *waiting,
				const struct hedge_rank *started, bool waits);

#endif
