// SPDX-License-Identifier: GPL-2.0
/*
 * Reads that are cut into tasks (the knob task_kb).
 *
 * Each task is a struct hedge_read of its own, with pages of its own and a part
 * of the parent: it waits, is hedged, retried and rescued as any read, and counts
 * as one. What they share is a struct hedge_job in the per-bio data of the
 * parent. The last task that is done ends the parent, with the error of one that
 * failed if any did. All tasks of a read have one home, whose lock covers the
 * job, too.
 *
 * The tasks are made before the first of them is sent, all or none: without
 * memory for all the read is served as a whole. They are then sent one after the
 * other from map, which keeps the parent alive.
 *
 * A read is not cut while only one leg may serve it, nor if its tasks would be
 * larger than what may be copied: their pages are bounces.
 */
#include "hedge.h"

/* Gives tasks back that were never sent. */
static void drop_tasks(struct hedge *h, struct hedge_bounce *b)
{
	struct hedge_bounce *next;

	for (; b; b = next) {
		next = b->next;
		hedge_css_put(b->read.css);
		hedge_bounce_put(h, b);
	}
}

/**
 * hedge_task_cut - cut a read into tasks
 * @h: the target
 * @conf: the settings, with a size of tasks
 * @bio: the read, device-mapper's clone
 * @now: the time in nanoseconds
 *
 * Context: process, inside an RCU read section.
 *
 * Return: the tasks, linked by @next, for hedge_task_send(); NULL if the read is
 * not cut.
 */
struct hedge_bounce *hedge_task_cut(struct hedge *h,
				    const struct hedge_conf *conf,
				    struct bio *bio, u64 now)
{
	struct hedge_parent *parent = dm_per_bio_data(bio, sizeof(*parent));
	u32 size = round_up(conf->task, bdev_logical_block_size(bio->bi_bdev));
	struct hedge_bounce *first = NULL, **last = &first, *b;
	struct hedge_job *job = &parent->job;
	u32 usable = hedge_sync_usable(h, bio->bi_iter.bi_sector);
	struct bvec_iter iter = bio->bi_iter;

	if (iter.bi_size <= size || !(usable & (usable - 1)))
		return NULL;
	job->status = BLK_STS_OK;
	job->unassigned = 0;
	INIT_LIST_HEAD(&job->tasks);
	while (iter.bi_size) {
		u32 bytes = min(iter.bi_size, size);

		b = hedge_bounce_get(h, bytes);
		if (!b) {
			drop_tasks(h, first);
			hedge_count(h, HEDGE_UNHEDGED_MEMORY);
			return NULL;
		}
		b->next = NULL;
		*last = b;
		last = &b->next;
		hedge_read_init(h, &b->read, bio, usable, now);
		b->read.shard = first->read.shard;
		b->read.iter = iter;
		b->read.iter.bi_size = bytes;
		b->read.css = hedge_css_get(bio);
		b->read.job = job;
		if (conf->probe)
			hedge_probe_init(&b->read, conf);
		list_add_tail(&b->read.of_job, &job->tasks);
		job->unassigned++;
		bio_advance_iter(bio, &iter, bytes);
	}
	atomic_set(&job->left, job->unassigned);
	/* For hedge_read_direct_end(). */
	parent->read.direct = false;
	return first;
}

/**
 * hedge_task_send - send the tasks of a read on their way
 * @h: the target
 * @tasks: what hedge_task_cut() has given
 *
 * Context: process, in map. Sleeps only where a leg that does not take
 * REQ_NOWAIT makes its submitter wait.
 */
void hedge_task_send(struct hedge *h, struct hedge_bounce *tasks)
{
	struct hedge_bounce *next;

	for (; tasks; tasks = next) {
		struct hedge_sends sends;

		hedge_sends_init(&sends);
		next = tasks->next;
		hedge_count(h, HEDGE_READS);
		rcu_read_lock();
		hedge_read_arrive(&tasks->read, rcu_dereference(h->conf), true,
				  &sends);
		rcu_read_unlock();
		hedge_read_submit(&sends);
	}
}

/**
 * hedge_task_done - a task is done
 * @job: what it is a task of
 * @status: the task's status; the read's, if it was the last
 *
 * Context: any.
 *
 * Return: whether it was the last one: the parent is to be ended.
 */
bool hedge_task_done(struct hedge_job *job, blk_status_t *status)
{
	if (*status)
		WRITE_ONCE(job->status, *status);
	if (!atomic_dec_and_test(&job->left))
		return false;
	*status = READ_ONCE(job->status);
	return true;
}
