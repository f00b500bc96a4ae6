// SPDX-License-Identifier: GPL-2.0
/*
 * Reads in order: the shared queue, and the started reads that are to get
 * another copy as soon as it is possible.
 *
 * Both are trees by the rank that core/task.c gives; who came first comes first
 * among equals. A rank is taken down when a read gets its place, and anew when
 * what it depends on has changed: copies that have started (nir), tasks of the
 * same read that have (fut), or the settings.
 *
 * Both sets change under hedge->wait_lock and the lock of the read's home, so
 * that holding either is enough to look. All functions here want both, unless
 * they say otherwise.
 */
#include <linux/ioprio.h>

#include "hedge.h"

static struct hedge_place *to_place(const struct rb_node *node)
{
	return rb_entry(node, struct hedge_place, node);
}

static bool before(struct rb_node *a, const struct rb_node *b)
{
	return hedge_rank_before(&to_place(a)->rank, &to_place(b)->rank);
}

static struct hedge_read *task_at(const struct rb_node *node)
{
	return node ? container_of(to_place(node), struct hedge_read, task) :
		      NULL;
}

static struct hedge_read *late_at(const struct rb_node *node)
{
	return node ? container_of(to_place(node), struct hedge_read, late) :
		      NULL;
}

/**
 * hedge_order_first - the first read of the shared queue
 * @h: the target
 *
 * Context: any. Caller holds hedge->wait_lock.
 *
 * Return: the read, or NULL.
 */
struct hedge_read *hedge_order_first(const struct hedge *h)
{
	return task_at(rb_first_cached(&h->tasks));
}

/**
 * hedge_order_next - the next read of the shared queue
 * @r: the read before
 *
 * Context: any. Caller holds hedge->wait_lock.
 *
 * Return: the read, or NULL.
 */
struct hedge_read *hedge_order_next(const struct hedge_read *r)
{
	return task_at(rb_next(&r->task.node));
}

/**
 * hedge_order_first_late - the first read that is to get another copy
 * @h: the target
 *
 * Context: any. Caller holds hedge->wait_lock.
 *
 * Return: the read, or NULL.
 */
struct hedge_read *hedge_order_first_late(const struct hedge *h)
{
	return late_at(rb_first_cached(&h->overdue));
}

/**
 * hedge_order_next_late - the next read that is to get another copy
 * @r: the read before
 *
 * Context: any. Caller holds hedge->wait_lock.
 *
 * Return: the read, or NULL.
 */
struct hedge_read *hedge_order_next_late(const struct hedge_read *r)
{
	return late_at(rb_next(&r->late.node));
}

static enum hedge_due due_class(const struct hedge_read *r)
{
	switch (IOPRIO_PRIO_CLASS(r->ioprio)) {
	case IOPRIO_CLASS_RT:
		return HEDGE_DUE_RT;
	case IOPRIO_CLASS_IDLE:
		return HEDGE_DUE_IDLE;
	default:
		return HEDGE_DUE_BE;
	}
}

static struct hedge_task_view view_task(const struct hedge_read *r,
					const struct hedge_conf *conf)
{
	return (struct hedge_task_view) {
		.arrival_ns = r->arrival_ns,
		.due_ns = r->arrival_ns + NSEC_PER_USEC *
			  (u64)hedge_due_us(&conf->knobs, due_class(r)),
		.unassigned = r->job ? r->job->unassigned : !r->starts,
		.copies = hweight8(READ_ONCE(r->out)),
	};
}

static void place_task(struct hedge_read *r, const struct hedge_conf *conf)
{
	struct hedge_task_view view = view_task(r, conf);

	r->task.rank = hedge_rank_waiting(&conf->knobs, &view);
	rb_add_cached(&r->task.node, &r->hedge->tasks, before);
}

static void place_late(struct hedge_read *r, const struct hedge_conf *conf)
{
	struct hedge_task_view view = view_task(r, conf);

	r->late.rank = hedge_rank_started(&conf->knobs, &view);
	rb_add_cached(&r->late.node, &r->hedge->overdue, before);
}

/**
 * hedge_order_add - put a read into the shared queue
 * @r: the read
 * @conf: the settings
 *
 * Context: any. Caller holds hedge->wait_lock and the home's lock.
 */
void hedge_order_add(struct hedge_read *r, const struct hedge_conf *conf)
{
	struct hedge *h = r->hedge;

	place_task(r, conf);
	h->nr_tasks++;
	hedge_wait_count(h, 1);
}

/**
 * hedge_order_remove - take a read out of the shared queue, if it is there
 * @r: the read
 *
 * Context: any. Caller holds hedge->wait_lock and the home's lock.
 */
void hedge_order_remove(struct hedge_read *r)
{
	struct hedge *h = r->hedge;

	if (!hedge_placed(&r->task))
		return;
	rb_erase_cached(&r->task.node, &h->tasks);
	RB_CLEAR_NODE(&r->task.node);
	h->nr_tasks--;
	hedge_wait_count(h, -1);
}

/**
 * hedge_order_add_late - a read is to get another copy when it is possible
 * @r: the read; if it is among them already, its rank is taken anew
 * @conf: the settings
 *
 * Context: any. Caller holds hedge->wait_lock and the home's lock.
 */
void hedge_order_add_late(struct hedge_read *r, const struct hedge_conf *conf)
{
	struct hedge *h = r->hedge;

	if (hedge_placed(&r->late)) {
		rb_erase_cached(&r->late.node, &h->overdue);
		place_late(r, conf);
		return;
	}
	place_late(r, conf);
	h->nr_overdue++;
	hedge_wait_count(h, 1);
}

/**
 * hedge_order_remove_late - a read is not to get another copy, for now
 * @r: the read
 *
 * Context: any. Caller holds hedge->wait_lock and the home's lock.
 */
void hedge_order_remove_late(struct hedge_read *r)
{
	struct hedge *h = r->hedge;

	if (!hedge_placed(&r->late))
		return;
	rb_erase_cached(&r->late.node, &h->overdue);
	RB_CLEAR_NODE(&r->late.node);
	h->nr_overdue--;
	hedge_wait_count(h, -1);
}

/**
 * hedge_order_rekey - a task of a read has started: those of the others change
 * @job: what they are tasks of
 * @conf: the settings
 *
 * Context: any. Caller holds hedge->wait_lock and the home's lock.
 */
void hedge_order_rekey(struct hedge_job *job, const struct hedge_conf *conf)
{
	struct hedge_read *r;

	list_for_each_entry(r, &job->tasks, of_job) {
		if (hedge_placed(&r->task)) {
			rb_erase_cached(&r->task.node, &r->hedge->tasks);
			place_task(r, conf);
		}
		if (hedge_placed(&r->late)) {
			rb_erase_cached(&r->late.node, &r->hedge->overdue);
			place_late(r, conf);
		}
	}
}

/**
 * hedge_order_rebuild - put all that waits in the order of new settings
 * @h: the target
 * @conf: the settings, which are in force: nobody uses the old ones any more
 *
 * Ranks of different orders do not compare: what waits would be passed by for
 * ever by what comes later.
 *
 * Context: process.
 */
void hedge_order_rebuild(struct hedge *h, const struct hedge_conf *conf)
{
	struct rb_root_cached tasks, overdue;
	struct hedge_read *r;

	spin_lock_irq(&h->wait_lock);
	tasks = h->tasks;
	overdue = h->overdue;
	h->tasks = RB_ROOT_CACHED;
	h->overdue = RB_ROOT_CACHED;
	while ((r = task_at(rb_first_cached(&tasks)))) {
		rb_erase_cached(&r->task.node, &tasks);
		spin_lock(&r->shard->lock);
		place_task(r, conf);
		spin_unlock(&r->shard->lock);
	}
	while ((r = late_at(rb_first_cached(&overdue)))) {
		rb_erase_cached(&r->late.node, &overdue);
		spin_lock(&r->shard->lock);
		place_late(r, conf);
		spin_unlock(&r->shard->lock);
	}
	spin_unlock_irq(&h->wait_lock);
}
