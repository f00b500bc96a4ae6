// SPDX-License-Identifier: GPL-2.0
/*
 * Legs: their workers, what is measured of them, stalls and health.
 *
 * Each leg has a worker of its own that hands copies and writes to the device:
 * a device that is out of tags puts its submitter to sleep, and the worker is
 * the only one who may be. Its workqueue has a rescuer, so that it works on when
 * memory is short.
 *
 * A leg is stalled when copies of reads are out on it and none came back for
 * rescue_us (core/stall.h). It counts as stalled until it answers anything. The
 * bit is set under hedge->wait_lock, then the last answer is looked at again:
 * an answer writes its time before it looks at the bit, so one of the two sees
 * the other.
 *
 * Which legs are out, and which regions they miss: sync.c.
 */
#include "hedge.h"
#include "core/stall.h"
#define CREATE_TRACE_POINTS
#include "trace.h"

static void leg_work(struct work_struct *work)
{
	struct hedge_leg *leg = container_of(work, struct hedge_leg, work);
	struct hedge_copy *c;
	bool write = false;
	struct bio *bio;

	/* By turns: where reads keep coming back for want of a tag there is always one. */
	for (;; write = !bio) {
		spin_lock_irq(&leg->todo_lock);
		bio = write ? bio_list_pop(&leg->writes) : NULL;
		c = bio ? NULL : list_first_entry_or_null(&leg->todo,
							  struct hedge_copy, list);
		if (c)
			list_del(&c->list);
		else if (!bio)
			bio = bio_list_pop(&leg->writes);
		spin_unlock_irq(&leg->todo_lock);
		if (c)
			hedge_copy_submit(c);
		else if (bio)
			submit_bio_noacct(bio);
		else
			return;
	}
}

/**
 * hedge_leg_send - have a started copy handed to its device by the worker
 * @leg: the leg
 * @c: the copy
 *
 * Context: any.
 */
void hedge_leg_send(struct hedge_leg *leg, struct hedge_copy *c)
{
	unsigned long flags;

	spin_lock_irqsave(&leg->todo_lock, flags);
	list_add_tail(&c->list, &leg->todo);
	spin_unlock_irqrestore(&leg->todo_lock, flags);
	queue_work(leg->wq, &leg->work);
}

/**
 * hedge_leg_send_bio - have a write handed to its device by the worker
 * @leg: the leg
 * @bio: the write, aimed at it
 *
 * Context: any.
 */
void hedge_leg_send_bio(struct hedge_leg *leg, struct bio *bio)
{
	unsigned long flags;

	spin_lock_irqsave(&leg->todo_lock, flags);
	bio_list_add(&leg->writes, bio);
	spin_unlock_irqrestore(&leg->todo_lock, flags);
	queue_work(leg->wq, &leg->work);
}

/**
 * hedge_leg_changed - tell userspace, from a worker, that a leg has changed
 * @leg: the leg
 *
 * Context: any.
 */
void hedge_leg_changed(struct hedge_leg *leg)
{
	struct hedge *h = leg->hedge;

	trace_hedge_leg_state(disk_devt(dm_disk(dm_table_get_md(h->ti->table))),
			      leg->index, !!(READ_ONCE(h->live) &
					     BIT(leg->index)),
			      !!(READ_ONCE(h->stalled) & BIT(leg->index)),
			      !!(READ_ONCE(h->sitting) & BIT(leg->index)),
			      READ_ONCE(leg->health));
	set_bit(leg->index, &h->changed);
	queue_work(h->wq, &h->event);
}

/**
 * hedge_leg_event - tell userspace which legs have changed
 * @work: of the target
 *
 * Context: process. May sleep, but not for I/O.
 */
void hedge_leg_event(struct work_struct *work)
{
	struct hedge *h = container_of(work, struct hedge, event);
	struct gendisk *disk = dm_disk(dm_table_get_md(h->ti->table));
	unsigned int noio = memalloc_noio_save();
	unsigned int i;

	for (i = 0; i < h->nr_legs; i++) {
		struct hedge_leg *leg = &h->leg[i];
		char number[32], device[32], state[64], *envp[4];

		if (!test_and_clear_bit(i, &h->changed))
			continue;
		snprintf(number, sizeof(number), "DM_HEDGE_LEG=%u", i);
		snprintf(device, sizeof(device), "DM_HEDGE_DEVICE=%s",
			 hedge_leg_name(leg));
		snprintf(state, sizeof(state), "DM_HEDGE_STATE=%c%s%s",
			 hedge_leg_health_char(leg),
			 READ_ONCE(h->stalled) & BIT(i) ? " stalled" : "",
			 READ_ONCE(h->sitting) & BIT(i) ? " sitting" : "");
		envp[0] = number;
		envp[1] = device;
		envp[2] = state;
		envp[3] = NULL;
		kobject_uevent_env(&disk_to_dev(disk)->kobj, KOBJ_CHANGE, envp);
	}
	dm_table_event(h->ti->table);
	memalloc_noio_restore(noio);
}

static void leg_stall(struct hedge_leg *leg, u64 rescue_ns, u64 now)
{
	struct hedge *h = leg->hedge;
	unsigned long flags;
	bool stalled;

	spin_lock_irqsave(&h->wait_lock, flags);
	stalled = !(h->stalled & BIT(leg->index));
	if (stalled) {
		WRITE_ONCE(h->stalled, h->stalled | BIT(leg->index));
		/* Pairs with the barrier in leg_answered(). */
		smp_mb();
		if (READ_ONCE(leg->last_done_ns) + rescue_ns > now ||
		    !atomic_read(&leg->inflight)) {
			WRITE_ONCE(h->stalled, h->stalled & ~BIT(leg->index));
			stalled = false;
		}
	}
	if (stalled)
		WRITE_ONCE(leg->probed_ns, now);
	spin_unlock_irqrestore(&h->wait_lock, flags);
	if (!stalled)
		return;
	hedge_leg_changed(leg);
	if (READ_ONCE(h->waiting))
		hedge_wait_dispatch(h);
}

/**
 * hedge_leg_check_stalled - see whether legs have stalled
 * @shard: where copies are out on them
 * @legs: bit for each leg
 * @now: the time in nanoseconds
 *
 * Context: any, inside an RCU read section.
 */
void hedge_leg_check_stalled(struct hedge_shard *shard, u32 legs, u64 now)
{
	struct hedge *h = shard->hedge;
	u64 rescue_ns = rcu_dereference(h->conf)->rescue_ns;
	unsigned long flags;

	if (!rescue_ns)
		return;
	for (; legs; legs &= legs - 1) {
		struct hedge_leg *leg = &h->leg[__ffs(legs)];
		struct hedge_copy *oldest;
		u64 due = U64_MAX;

		spin_lock_irqsave(&shard->lock, flags);
		oldest = list_first_entry_or_null(&shard->out[leg->index],
						  struct hedge_copy, out);
		if (oldest)
			due = hedge_stall_due(oldest->started_ns,
					      READ_ONCE(leg->last_done_ns),
					      rescue_ns);
		spin_unlock_irqrestore(&shard->lock, flags);
		if (due <= now)
			leg_stall(leg, rescue_ns, now);
	}
}

/**
 * hedge_leg_unstall - a leg that was stalled has answered
 * @leg: the leg
 *
 * Context: any.
 */
void hedge_leg_unstall(struct hedge_leg *leg)
{
	struct hedge *h = leg->hedge;
	unsigned long flags;
	bool was;

	spin_lock_irqsave(&h->wait_lock, flags);
	was = h->stalled & BIT(leg->index);
	WRITE_ONCE(h->stalled, h->stalled & ~BIT(leg->index));
	spin_unlock_irqrestore(&h->wait_lock, flags);
	if (was)
		hedge_leg_changed(leg);
}

/**
 * hedge_leg_alive - a leg has answered a probe, and keeps its slot
 * @leg: the leg
 * @now: the time in nanoseconds
 *
 * Context: any.
 */
void hedge_leg_alive(struct hedge_leg *leg, u64 now)
{
	WRITE_ONCE(leg->last_done_ns, now);
	/* Pairs with the barrier in leg_stall(). */
	smp_mb();
	if (unlikely(READ_ONCE(leg->hedge->stalled) & BIT(leg->index)))
		hedge_leg_unstall(leg);
}

/**
 * hedge_leg_add_work - count a copy into the work left on its leg
 * @c: the copy, which is about to start or to wait there
 * @conf: the settings
 *
 * Does nothing but under "balance llw". What was counted stays with the copy,
 * so that as much is taken off whatever the settings are by then.
 *
 * Context: any. Caller holds the home's lock.
 */
void hedge_leg_add_work(struct hedge_copy *c, const struct hedge_conf *conf)
{
	struct hedge_leg *leg = c->leg;
	u32 bytes = c->read->iter.bi_size;

	if (conf->knobs.val[HEDGE_BALANCE] != HEDGE_BALANCE_LLW)
		return;
	c->work_us = hedge_service_work(READ_ONCE(leg->class_us
						  [hedge_size_class(bytes)]),
					READ_ONCE(leg->service_us));
	atomic64_add(c->work_us, &leg->work_us);
}

/**
 * hedge_leg_drop_work - a copy that was counted has ended, or goes elsewhere
 * @c: the copy, with work_us not 0
 * @ns: how long it took in nanoseconds, 0 if it was not served
 *
 * Context: any. A copy that is queued: caller holds the home's lock.
 */
void hedge_leg_drop_work(struct hedge_copy *c, u64 ns)
{
	struct hedge_leg *leg = c->leg;
	u32 *class_us = &leg->class_us[hedge_size_class(c->read->iter.bi_size)];

	atomic64_sub(c->work_us, &leg->work_us);
	c->work_us = 0;
	if (ns)
		WRITE_ONCE(*class_us,
			   hedge_service_update(READ_ONCE(*class_us), ns));
}

/**
 * hedge_leg_sit - set which legs sit out
 * @h: the target
 * @sitting: bit for each of them
 *
 * Context: process. Caller holds tick_mutex.
 */
void hedge_leg_sit(struct hedge *h, unsigned long sitting)
{
	unsigned long changed;
	unsigned int i;

	spin_lock_irq(&h->wait_lock);
	changed = h->sitting ^ sitting;
	WRITE_ONCE(h->sitting, sitting);
	spin_unlock_irq(&h->wait_lock);
	for_each_set_bit(i, &changed, h->nr_legs)
		hedge_leg_changed(&h->leg[i]);
	if (changed && READ_ONCE(h->waiting))
		hedge_wait_dispatch(h);
}

/**
 * hedge_leg_health - note what has failed on a leg
 * @leg: the leg
 * @why: what
 *
 * Context: any.
 */
void hedge_leg_health(struct hedge_leg *leg, enum hedge_health why)
{
	if (!test_and_set_bit(why, &leg->health))
		hedge_leg_changed(leg);
}

/**
 * hedge_leg_health_char - the letter of a leg in the status
 * @leg: the leg
 *
 * Return: as dm-mirror has them.
 */
char hedge_leg_health_char(const struct hedge_leg *leg)
{
	unsigned long health = READ_ONCE(leg->health);

	if (health & BIT(HEDGE_WRITE_FAILED))
		return 'D';
	if (health & BIT(HEDGE_FLUSH_FAILED))
		return 'F';
	if (health & BIT(HEDGE_SYNC_FAILED))
		return 'S';
	if (health & BIT(HEDGE_READ_FAILED))
		return 'R';
	return health ? 'U' : 'A';
}

/**
 * hedge_leg_state - the state of a leg as a word
 * @leg: the leg
 */
const char *hedge_leg_state(const struct hedge_leg *leg)
{
	if (!(READ_ONCE(leg->hedge->live) & BIT(leg->index)))
		return "failed";
	return READ_ONCE(leg->hedge->partial) & BIT(leg->index) ? "resync" :
								  "in_sync";
}

/**
 * hedge_leg_oldest - how long the oldest copy has been out
 * @leg: the leg
 * @now: the time in nanoseconds
 *
 * Context: any.
 *
 * Return: its age in nanoseconds, 0 if none is out.
 */
u64 hedge_leg_oldest(struct hedge_leg *leg, u64 now)
{
	u64 started = now;
	unsigned long flags;
	int cpu;

	for_each_possible_cpu(cpu) {
		struct hedge_shard *shard = per_cpu_ptr(leg->hedge->shards,
							cpu);
		struct hedge_copy *c;

		spin_lock_irqsave(&shard->lock, flags);
		c = list_first_entry_or_null(&shard->out[leg->index],
					     struct hedge_copy, out);
		if (c)
			started = min(started, c->started_ns);
		spin_unlock_irqrestore(&shard->lock, flags);
	}
	return now - started;
}

/* All targets, so that a new table finds the one that it replaces. */
static LIST_HEAD(targets);
static DEFINE_MUTEX(targets_mutex);

/**
 * hedge_leg_targets_lock - keep all targets that can be found
 *
 * Context: process. May sleep. Nothing that may wait for a device is done until
 * hedge_leg_targets_unlock().
 */
void hedge_leg_targets_lock(void)
{
	mutex_lock(&targets_mutex);
}

/**
 * hedge_leg_targets_unlock - let targets go again
 */
void hedge_leg_targets_unlock(void)
{
	mutex_unlock(&targets_mutex);
}

/**
 * hedge_leg_predecessor - the target of the old table that a new one replaces
 * @h: the new table's target, which gets no I/O yet
 *
 * The old table is suspended, and is destroyed only when the new one runs; but one
 * before it may be about to be destroyed.
 *
 * Context: process, in preresume. Caller holds hedge_leg_targets_lock().
 *
 * Return: the target, NULL if there is none that has a leg of this one and knows
 * what its legs hold.
 */
struct hedge *hedge_leg_predecessor(struct hedge *h)
{
	struct mapped_device *md = dm_table_get_md(h->ti->table);
	struct hedge *old;

	lockdep_assert_held(&targets_mutex);
	/* The newest first. */
	list_for_each_entry(old, &targets, targets)
		if (old != h && dm_table_get_md(old->ti->table) == md &&
		    old->known &&
		    hedge_sync_shares_leg(h, old))
			return old;
	return NULL;
}

static bool labels_clash(const struct hedge *a, const struct hedge *b)
{
	unsigned int i, j;

	/* Each writes the whole of what it believes to be its own. */
	if (a != b && hedge_label_logs_overlap(a, b))
		return true;
	for (i = 0; i < a->nr_legs; i++)
		if (hedge_label_stamp_overlaps(b, &a->leg[i]))
			return true;
	for (j = 0; j < b->nr_legs; j++)
		if (hedge_label_stamp_overlaps(a, &b->leg[j]))
			return true;
	for (i = 0; i < a->nr_legs; i++)
		for (j = 0; j < b->nr_legs; j++)
			if (hedge_label_overlaps(&a->leg[i], &b->leg[j]) ||
			    hedge_label_overlaps(&b->leg[j], &a->leg[i]))
				return true;
	return false;
}

static bool same_device(const struct hedge *a, const struct hedge *b)
{
	return dm_table_get_md(a->ti->table) == dm_table_get_md(b->ti->table);
}

/*
 * Whether a label of a target lies where a leg is, of any target. The table that this one is to
 * replace does not count.
 */
static bool clashes(struct hedge *h)
{
	bool clash = labels_clash(h, h);
	struct hedge *other;

	lockdep_assert_held(&targets_mutex);
	list_for_each_entry(other, &targets, targets)
		if (other->ti->table == h->ti->table || !same_device(other, h))
			clash |= labels_clash(h, other);
	return clash;
}

/**
 * hedge_leg_had_no_label - whether a leg is known to have no label
 * @leg: the leg
 *
 * It is if a table of the same device uses it without. It may be stuck, and must
 * not be read then just because the table is changed.
 *
 * Context: process. May sleep.
 */
bool hedge_leg_had_no_label(const struct hedge_leg *leg)
{
	const struct hedge *h = leg->hedge;
	bool known = false;
	struct hedge *old;
	unsigned int i;

	mutex_lock(&targets_mutex);
	list_for_each_entry(old, &targets, targets) {
		if (old->labels || old->ti->len != h->ti->len ||
		    !same_device(old, h))
			continue;
		for (i = 0; i < old->nr_legs; i++)
			known |= old->leg[i].offset == leg->offset &&
				 old->leg[i].dev->bdev->bd_dev ==
				 leg->dev->bdev->bd_dev;
	}
	mutex_unlock(&targets_mutex);
	return known;
}

/**
 * hedge_leg_register - let later tables find this target
 * @h: the target
 *
 * Of two that are constructed at once the one that comes second sees the other.
 *
 * Context: process. May sleep.
 *
 * Return: false if it has labels, and one of them lies where a leg or a log is.
 */
bool hedge_leg_register(struct hedge *h)
{
	bool may;

	mutex_lock(&targets_mutex);
	may = !h->labels || !clashes(h);
	if (may)
		list_add(&h->targets, &targets);
	mutex_unlock(&targets_mutex);
	return may;
}

/**
 * hedge_leg_unregister - let no table find this target any more
 * @h: the target
 *
 * Context: process. May sleep.
 */
void hedge_leg_unregister(struct hedge *h)
{
	mutex_lock(&targets_mutex);
	list_del(&h->targets);
	mutex_unlock(&targets_mutex);
}

/**
 * hedge_leg_init - make what a leg needs to run
 * @h: the target
 * @index: number of the leg, whose device is open
 *
 * Context: process. May sleep.
 *
 * Return: 0 or -ENOMEM; hedge_leg_exit() is due in both cases.
 */
int hedge_leg_init(struct hedge *h, unsigned int index)
{
	struct hedge_leg *leg = &h->leg[index];

	leg->hedge = h;
	leg->index = index;
	leg->nowait = leg->dev && bdev_nowait(leg->dev->bdev);
	leg->auto_depth = 1;
	spin_lock_init(&leg->todo_lock);
	INIT_LIST_HEAD(&leg->todo);
	bio_list_init(&leg->writes);
	INIT_LIST_HEAD(&leg->queue);
	INIT_WORK(&leg->work, leg_work);
	leg->wq = alloc_workqueue("dm_hedge/%s-%u",
				  WQ_MEM_RECLAIM | WQ_HIGHPRI | WQ_UNBOUND, 1,
				  dm_table_device_name(h->ti->table), index);
	leg->stats = alloc_percpu(struct hedge_leg_stats);
	leg->stats_base = kzalloc(sizeof(*leg->stats_base), GFP_KERNEL);
	leg->seen = kzalloc(sizeof(*leg->seen), GFP_KERNEL);
	leg->tau = kcalloc(HEDGE_NR_SIZES, sizeof(*leg->tau), GFP_KERNEL);
	leg->io = kzalloc(sizeof(*leg->io), GFP_KERNEL);
	return leg->wq && leg->stats && leg->stats_base && leg->seen &&
	       leg->tau && leg->io ? 0 : -ENOMEM;
}

/**
 * hedge_leg_exit - undo hedge_leg_init()
 * @leg: the leg, which has no copies any more
 *
 * Context: process. May sleep.
 */
void hedge_leg_exit(struct hedge_leg *leg)
{
	if (leg->wq)
		destroy_workqueue(leg->wq);
	free_percpu(leg->stats);
	kfree(leg->stats_base);
	kfree(leg->seen);
	kfree(leg->tau);
	kfree(leg->io);
}
