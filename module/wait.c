// SPDX-License-Identifier: GPL-2.0
/*
 * What waits: copies for a slot of their leg, reads in the shared queue, and
 * overdue reads for an idle leg or for the budget; and what is done about reads
 * whose time has come.
 *
 *	leg->queue	copies that wait for a slot of that leg
 *	hedge->tasks	reads of the shared queue, which any leg may take
 *	hedge->overdue	started reads that are to get another copy: those whose
 *			timeout has passed, or all of them (replicate nir and r)
 *
 * The last two are ordered sets, see order.c. All three change under
 * hedge->wait_lock and the lock of the read's home, so that holding either is
 * enough to look. hedge->waiting says how many there are: while it is zero nobody
 * takes wait_lock but arrivals where legs have slots.
 *
 * hedge_wait_dispatch() starts whatever can start. It is called whenever
 * something changes that may let a read go on: a copy ended, a read arrived
 * (which fills the budget), a leg stalled or answered again, a setting changed.
 * A completion frees its slot before it looks at hedge->waiting, and whoever
 * makes a read wait counts it in before looking at the slots again, each with a
 * full barrier between, so none is forgotten.
 *
 * What starts here is handed to the worker of its leg: the caller may be a timer
 * or a completion, which must not submit.
 */
#include "hedge.h"
#include "core/stall.h"
#include "trace.h"

/**
 * hedge_wait_count - count what waits
 * @h: the target
 * @n: how much more, or less
 *
 * Context: any. Caller holds hedge->wait_lock.
 */
void hedge_wait_count(struct hedge *h, int n)
{
	WRITE_ONCE(h->waiting, h->waiting + n);
	/* Pairs with the barrier in leg_answered(). */
	smp_mb();
}

/**
 * hedge_wait_enqueue - let a copy wait for a slot of its leg
 * @c: the copy
 * @leg: the leg
 * @conf: the settings
 *
 * Copies without which the read would hang wait at the head, and probes that go
 * ahead of others.
 *
 * Context: any. Caller holds hedge->wait_lock and the home's lock.
 */
void hedge_wait_enqueue(struct hedge_copy *c, struct hedge_leg *leg,
			const struct hedge_conf *conf)
{
	struct hedge_read *r = c->read;

	c->leg = leg;
	c->state = HEDGE_COPY_QUEUED;
	c->next = r->queued;
	r->queued = c;
	r->on |= BIT(leg->index);
	if (c->kind == HEDGE_RESCUE || (r->starts && !r->out) ||
	    (c->probing && r->probe_first))
		list_add(&c->list, &leg->queue);
	else
		list_add_tail(&c->list, &leg->queue);
	WRITE_ONCE(leg->queued, leg->queued + 1);
	hedge_leg_add_work(c, conf);
	hedge_wait_count(r->hedge, 1);
}

static void dequeue(struct hedge_copy *c)
{
	struct hedge_read *r = c->read;
	struct hedge_copy **p = &r->queued;

	while (*p != c)
		p = &(*p)->next;
	*p = c->next;
	list_del(&c->list);
	WRITE_ONCE(c->leg->queued, c->leg->queued - 1);
	if (c->work_us)
		hedge_leg_drop_work(c, 0);
	hedge_wait_count(r->hedge, -1);
	r->on &= ~BIT(c->leg->index);
}

/**
 * hedge_wait_place - start a copy in the worker of its leg, or queue it
 * @c: the copy
 * @leg: the leg
 * @conf: the settings
 * @now: the time in nanoseconds
 *
 * Context: any. Caller holds hedge->wait_lock and the home's lock.
 *
 * Return: false if the budget does not allow it; the copy is as it was.
 */
bool hedge_wait_place(struct hedge_copy *c, struct hedge_leg *leg,
		      const struct hedge_conf *conf, u64 now)
{
	if (!hedge_leg_has_slot(conf, leg)) {
		hedge_wait_enqueue(c, leg, conf);
		if (!hedge_leg_has_slot(conf, leg))
			return true;
		/* It came free just now, and nobody else may know. */
		dequeue(c);
	}
	if (!hedge_copy_start(c, leg, conf, now))
		return false;
	hedge_leg_send(leg, c);
	return true;
}

/**
 * hedge_wait_at_once - a read has started, and may get another copy at once
 * @r: the read
 * @conf: the settings, with at_once
 *
 * Context: any. Caller holds hedge->wait_lock and the home's lock.
 */
void hedge_wait_at_once(struct hedge_read *r, const struct hedge_conf *conf)
{
	if (!r->direct && !r->done && r->usable & ~r->on &&
	    r->hedges < conf->knobs.val[HEDGE_MAX_HEDGES])
		hedge_order_add_late(r, conf);
}

/**
 * hedge_wait_clock - start the clock of a read that waits for a slot
 * @r: the read, which has a queued copy and no other
 * @conf: the settings
 *
 * Context: any. Caller holds hedge->wait_lock and the home's lock.
 */
void hedge_wait_clock(struct hedge_read *r, const struct hedge_conf *conf)
{
	u64 tau = hedge_tau(conf, r, r->queued->leg);

	if (!tau || conf->knobs.val[HEDGE_TIMEOUT_FROM] != HEDGE_FROM_ARRIVAL ||
	    !conf->knobs.val[HEDGE_MAX_HEDGES])
		return;
	r->tau_at = r->arrival_ns + tau;
	hedge_clock_set(r);
}

/**
 * hedge_wait_starved - count a read for which the budget had no copy, once
 * @r: the read
 *
 * Context: any. Caller holds the home's lock.
 */
void hedge_wait_starved(struct hedge_read *r)
{
	if (!r->starved)
		hedge_count(r->hedge, HEDGE_UNHEDGED_BUDGET);
	r->starved = true;
}

/**
 * hedge_wait_cancel - remove the copies of a read that are still queued
 * @r: the read, to which the caller has another reference
 *
 * Context: any. Caller holds hedge->wait_lock and the home's lock.
 */
void hedge_wait_cancel(struct hedge_read *r)
{
	struct hedge_copy *c;

	while ((c = r->queued)) {
		dequeue(c);
		c->state = HEDGE_COPY_CANCELLED;
		hedge_count(r->hedge, HEDGE_CANCELLED);
		trace_hedge_cancel(r->id, c->leg->index, r->iter.bi_sector,
				   r->iter.bi_size,
				   ktime_get_ns() - r->arrival_ns);
		hedge_copy_discard(c);
	}
}

/**
 * hedge_wait_forget - a read is done: nothing of it waits any longer
 * @r: the read, to which the caller has a reference
 *
 * With "cancel none" its queued copies stay, and are started in their turn.
 *
 * Context: any, inside an RCU read section.
 */
void hedge_wait_forget(struct hedge_read *r)
{
	struct hedge *h = r->hedge;
	const struct hedge_conf *conf = rcu_dereference(h->conf);
	unsigned long flags;

	spin_lock_irqsave(&h->wait_lock, flags);
	spin_lock(&r->shard->lock);
	hedge_order_remove(r);
	hedge_order_remove_late(r);
	if (conf->knobs.val[HEDGE_CANCEL] != HEDGE_CANCEL_NONE)
		hedge_wait_cancel(r);
	spin_unlock(&r->shard->lock);
	spin_unlock_irqrestore(&h->wait_lock, flags);
}

/*
 * Starts a copy that was queued, or queues it again if its leg has no slot. Its
 * start cancels the others if that is the policy. Caller has another reference.
 */
static bool place_again(struct hedge_copy *c, struct hedge_leg *leg,
			const struct hedge_conf *conf, u64 now)
{
	if (!hedge_wait_place(c, leg, conf, now))
		return false;
	if (conf->knobs.val[HEDGE_CANCEL] == HEDGE_CANCEL_START &&
	    c->state == HEDGE_COPY_STARTED)
		hedge_wait_cancel(c->read);
	return true;
}

/* Moves a queued copy to another leg. */
static bool move(struct hedge_copy *c, struct hedge_leg *leg,
		 const struct hedge_conf *conf, u64 now)
{
	struct hedge *h = c->read->hedge;

	dequeue(c);
	c->state = HEDGE_COPY_STARTED;
	hedge_count(h, HEDGE_MOVED);
	trace_hedge_reissue(c->read->id, leg->index, c->read->iter.bi_sector,
			    c->read->iter.bi_size, now - c->read->arrival_ns);
	return place_again(c, leg, conf, now);
}

/*
 * Drops a copy that had been queued and may not start for want of budget. A
 * hedge becomes an overdue read again. Caller holds another reference.
 */
static void drop_unpaid(struct hedge_copy *c, const struct hedge_conf *conf)
{
	struct hedge_read *r = c->read;

	c->state = HEDGE_COPY_CANCELLED;
	hedge_wait_starved(r);
	if (c->kind == HEDGE_HEDGE && !r->done) {
		r->hedges--;
		hedge_order_add_late(r, conf);
	}
	hedge_copy_discard(c);
}

/*
 * Legs that may serve a read that has waited: since it arrived some may have gone
 * out, others have become full. Caller holds the home's lock.
 */
static u32 usable_now(struct hedge_read *r)
{
	r->usable = hedge_sync_usable(r->hedge, r->iter.bi_sector);
	return r->usable;
}

/* Legs that serve new copies only as a last resort. */
static u32 shunned(const struct hedge *h)
{
	return (READ_ONCE(h->stalled) | ~READ_ONCE(h->live)) &
	       (BIT(h->nr_legs) - 1);
}

/* Moves what waits for a leg that is not to serve to legs that are. */
static void evacuate(struct hedge_leg *leg, const struct hedge_conf *conf,
		     u64 now)
{
	struct hedge *h = leg->hedge;
	u32 others = ~(shunned(h) | (u32)h->sitting);
	struct hedge_copy *c, *next;

	list_for_each_entry_safe(c, next, &leg->queue, list) {
		struct hedge_read *r = c->read;
		struct hedge_leg *to;
		u32 among;

		spin_lock(&r->shard->lock);
		among = usable_now(r) & ~r->on & others;
		if (among && !r->done) {
			r->refs++;
			to = hedge_choose_leg(h, conf, r->shard, among, false);
			if (!move(c, to, conf, now))
				drop_unpaid(c, conf);
			r->refs--;
		}
		spin_unlock(&r->shard->lock);
	}
}

/*
 * A read that had to wait has started: a leg that is stalled or sits out is sent
 * its duplicate if that is due, as where reads start when they arrive.
 */
static void probe_shunned(struct hedge_read *r, const struct hedge_conf *conf,
			  u64 now)
{
	struct hedge *h = r->hedge;
	unsigned long legs = (h->stalled | h->sitting) & r->usable & ~r->on;
	struct hedge_copy *c;
	unsigned int i;

	if (likely(!legs) || r->direct || r->done)
		return;
	for_each_set_bit(i, &legs, h->nr_legs) {
		if (!hedge_leg_probe_due(&h->leg[i], conf, now))
			continue;
		c = hedge_copy_new(r, HEDGE_RESCUE);
		if (c && !hedge_wait_place(c, &h->leg[i], conf, now))
			hedge_copy_discard(c);
	}
}

/*
 * Starts the first copy that waits for a leg, which has a slot. A direct read
 * needs no reference: it starts in any case, and may then be gone.
 */
static void serve_first(struct hedge_leg *leg, const struct hedge_conf *conf,
			u64 now)
{
	struct hedge_copy *c = list_first_entry(&leg->queue, struct hedge_copy,
						list);
	struct hedge_read *r = c->read;
	bool direct = r->direct;

	spin_lock(&r->shard->lock);
	if (!direct)
		r->refs++;
	if (r->done && conf->knobs.val[HEDGE_CANCEL] != HEDGE_CANCEL_NONE) {
		hedge_wait_cancel(r);
	} else {
		dequeue(c);
		if (!place_again(c, leg, conf, now)) {
			drop_unpaid(c, conf);
		} else {
			probe_shunned(r, conf, now);
			if (conf->at_once)
				hedge_wait_at_once(r, conf);
		}
	}
	spin_unlock(&r->shard->lock);
	if (!direct)
		hedge_read_put(r);
}

/* Starts a read of the shared queue on one of some legs with free slots. */
static void start_task(struct hedge_read *r, u32 among,
		       const struct hedge_conf *conf, u64 now)
{
	struct hedge_leg *leg = hedge_choose_leg(r->hedge, conf, r->shard,
						 among, false);
	struct hedge_copy *c = hedge_copy_new(r, HEDGE_ARRIVAL);

	if (!c || r->starts + 1 >= r->wanted ||
	    conf->knobs.val[HEDGE_CANCEL] == HEDGE_CANCEL_START)
		hedge_order_remove(r);
	if (!c)
		return;
	if (!hedge_wait_place(c, leg, conf, now)) {
		hedge_wait_starved(r);
		hedge_order_remove(r);
		hedge_copy_discard(c);
		return;
	}
	probe_shunned(r, conf, now);
	if (conf->at_once)
		hedge_wait_at_once(r, conf);
}

/*
 * Whether no read of the shared queue has anything to expect, which is most often
 * so when no leg is free. Reads differ in the legs that they may take only where
 * some lack regions, or where some have started and want one more.
 */
static bool no_task_starts(struct hedge *h, const struct hedge_conf *conf)
{
	return !READ_ONCE(h->partial) && conf->knobs.val[HEDGE_COPIES] == 1 &&
	       !hedge_free_legs(h, conf, READ_ONCE(h->live));
}

/*
 * Starts the first read of the shared queue that can use a free slot. Returns
 * whether there was one. What has started and wants more copies, while all other
 * legs are there as a last resort only, has got what it can get.
 */
static bool serve_task(struct hedge *h, const struct hedge_conf *conf, u64 now)
{
	struct hedge_read *r, *next;
	u32 among;

	if (no_task_starts(h, conf))
		return false;
	for (r = hedge_order_first(h); r; r = next) {
		struct hedge_shard *shard = r->shard;
		bool starts;

		next = hedge_order_next(r);
		spin_lock(&shard->lock);
		among = hedge_serving_legs(h, conf, usable_now(r), false) &
			~r->on;
		if (!among && r->starts)
			hedge_order_remove(r);
		among &= hedge_free_legs(h, conf, r->usable);
		starts = !r->done && among;
		if (starts)
			start_task(r, among, conf, now);
		/* A direct read may be gone after this. */
		spin_unlock(&shard->lock);
		if (starts)
			return true;
	}
	return false;
}

enum hedge_result {
	HEDGED,		/* a hedge was sent, or queued */
	NO_LEG,		/* no leg may take it at this moment */
	NO_TOKEN,	/* the budget does not allow it at this moment */
	NEVER,		/* it cannot be hedged any more */
};

/* Under "arrival" a copy still queued at the timeout goes to the hedge's leg. */
static bool moves(const struct hedge_read *r, const struct hedge_conf *conf)
{
	return r->queued && r->queued->kind == HEDGE_ARRIVAL &&
	       conf->knobs.val[HEDGE_TIMEOUT_FROM] == HEDGE_FROM_ARRIVAL &&
	       conf->knobs.val[HEDGE_CANCEL] != HEDGE_CANCEL_NONE;
}

/* The next hedge of a read whose queued copy has been moved is due after that. */
static void moved_clock(struct hedge_read *r, const struct hedge_leg *leg,
			const struct hedge_conf *conf, u64 now)
{
	u64 tau = hedge_tau(conf, r, leg);

	r->tau_at = tau && r->hedges < conf->knobs.val[HEDGE_MAX_HEDGES] ?
		    now + tau : 0;
	hedge_clock_set(r);
}

/* Sends a hedge of an overdue read. Caller holds the home's lock. */
static enum hedge_result hedge(struct hedge_read *r,
			       const struct hedge_conf *conf, u64 now)
{
	struct hedge *h = r->hedge;
	u32 among = usable_now(r) & ~r->on;
	struct hedge_leg *leg;
	struct hedge_copy *c;

	if (!among || r->hedges >= conf->knobs.val[HEDGE_MAX_HEDGES] ||
	    conf->knobs.val[HEDGE_REPLICATE] == HEDGE_NR)
		return NEVER;
	among = hedge_serving_legs(h, conf, among, true) & ~h->stalled;
	if (conf->knobs.val[HEDGE_HEDGE_TO] == HEDGE_IDLE)
		among = hedge_idle_legs(h, conf, among);
	if (!among)
		return NO_LEG;
	if (!moves(r, conf) && !hedge_budget_pays_now(r->shard)) {
		hedge_wait_starved(r);
		return NO_TOKEN;
	}
	leg = hedge_choose_leg(h, conf, r->shard, among, true);
	r->hedges++;
	if (moves(r, conf)) {
		c = r->queued;
		if (move(c, leg, conf, now))
			moved_clock(r, leg, conf, now);
		else
			drop_unpaid(c, conf);
		return HEDGED;
	}
	c = hedge_copy_new(r, HEDGE_HEDGE);
	if (!c)
		return NEVER;
	trace_hedge_reissue(r->id, leg->index, r->iter.bi_sector,
			    r->iter.bi_size, now - r->arrival_ns);
	if (hedge_wait_place(c, leg, conf, now))
		return HEDGED;
	r->hedges--;
	hedge_copy_discard(c);
	hedge_wait_starved(r);
	return NO_TOKEN;
}

/*
 * Whether a leg that is free is to take another copy of a started read, before
 * what else there is. @waiting is the first read of the shared queue if a leg
 * could take it.
 */
static bool is_next(struct hedge_read *r, const struct hedge_conf *conf,
		    const struct hedge_read *waiting)
{
	struct hedge *h = r->hedge;

	return hedge_next_task(&conf->knobs,
			       waiting ? &waiting->task.rank : NULL,
			       &r->late.rank, h->waiting > h->nr_overdue) ==
	       HEDGE_NEXT_STARTED;
}

/*
 * Hedges started reads in their order, as far as legs and budget allow. A read
 * that may get still more copies keeps a place, perhaps another one, and what
 * comes first then is looked at again.
 */
static void serve_overdue(struct hedge *h, const struct hedge_conf *conf,
			  const struct hedge_read *waiting, u64 now)
{
	u32 ready = READ_ONCE(h->live) & ~h->stalled;
	struct hedge_read *r, *next;

	for (r = hedge_order_first_late(h); r; r = next) {
		enum hedge_result result = NO_LEG;

		if (!ready || !is_next(r, conf, waiting) ||
		    (conf->knobs.val[HEDGE_HEDGE_TO] == HEDGE_IDLE &&
		     !hedge_idle_legs(h, conf, ready)))
			return;
		next = hedge_order_next_late(r);
		spin_lock(&r->shard->lock);
		/* Nothing out: it failed, and is on its way to another leg. */
		if (!r->done && (r->out || r->queued))
			result = hedge(r, conf, now);
		if (result == HEDGED || result == NEVER)
			hedge_order_remove_late(r);
		if (result == HEDGED && conf->at_once) {
			hedge_wait_at_once(r, conf);
			next = hedge_order_first_late(h);
		}
		spin_unlock(&r->shard->lock);
		if (result == NO_TOKEN)
			return;
	}
}

/* Under "nr" overdue reads wait for nothing, also those from settings before. */
static void drop_overdue(struct hedge *h)
{
	struct hedge_read *r;

	while ((r = hedge_order_first_late(h))) {
		spin_lock(&r->shard->lock);
		hedge_order_remove_late(r);
		spin_unlock(&r->shard->lock);
	}
}

/*
 * Starts what waits in the shared queue and, where that is their turn, other
 * copies of started reads.
 */
static void serve_in_order(struct hedge *h, const struct hedge_conf *conf,
			   u64 now)
{
	bool joins = conf->knobs.val[HEDGE_REPLICATE] == HEDGE_R;

	if (conf->knobs.val[HEDGE_REPLICATE] == HEDGE_NR)
		drop_overdue(h);
	do {
		if (joins && h->nr_overdue)
			serve_overdue(h, conf, hedge_order_first(h), now);
	} while (h->nr_tasks && serve_task(h, conf, now));
	if (h->nr_overdue)
		serve_overdue(h, conf, NULL, now);
}

static void dispatch_locked(struct hedge *h, const struct hedge_conf *conf,
			    u64 now)
{
	struct hedge_leg *leg;
	u32 shun = shunned(h) | (u32)h->sitting;

	for (leg = h->leg; leg < h->leg + h->nr_legs; leg++)
		if (shun & BIT(leg->index))
			evacuate(leg, conf, now);
	for (leg = h->leg; leg < h->leg + h->nr_legs; leg++)
		while (!list_empty(&leg->queue) && hedge_leg_has_slot(conf, leg))
			serve_first(leg, conf, now);
	serve_in_order(h, conf, now);
}

/**
 * hedge_wait_dispatch - start whatever can start
 * @h: the target
 *
 * Context: any.
 */
void hedge_wait_dispatch(struct hedge *h)
{
	unsigned long flags;

	rcu_read_lock();
	spin_lock_irqsave(&h->wait_lock, flags);
	dispatch_locked(h, rcu_dereference(h->conf), ktime_get_ns());
	spin_unlock_irqrestore(&h->wait_lock, flags);
	rcu_read_unlock();
}

/*
 * Sends a read whose copies are all on stalled legs to one that is not, whatever
 * budget and idleness say. Caller holds the home's lock. Returns whether there
 * were a leg and memory for it.
 */
static bool rescue(struct hedge_read *r, const struct hedge_conf *conf, u64 now)
{
	struct hedge *h = r->hedge;
	u32 among = usable_now(r) & ~r->on & ~shunned(h);
	struct hedge_leg *leg;
	struct hedge_copy *c;

	if (!among)
		return false;
	c = hedge_copy_new(r, HEDGE_RESCUE);
	if (!c)
		return false;
	leg = hedge_choose_leg(h, conf, r->shard, among, true);
	trace_hedge_reissue(r->id, leg->index, r->iter.bi_sector,
			    r->iter.bi_size, now - r->arrival_ns);
	return hedge_wait_place(c, leg, conf, now);
}

/* When the legs of a read are to be looked at next. Caller holds its lock. */
static u64 next_look(struct hedge_read *r, const struct hedge_conf *conf,
		     u64 now)
{
	u64 next = 0;
	u32 left;

	if (!conf->rescue_ns || !r->out)
		return 0;
	for (left = r->out; left; left &= left - 1) {
		struct hedge_leg *leg = &r->hedge->leg[__ffs(left)];
		struct hedge_copy *oldest =
			list_first_entry(&r->shard->out[leg->index],
					 struct hedge_copy, out);

		next = max(next, hedge_stall_due(oldest->started_ns,
						 READ_ONCE(leg->last_done_ns),
						 conf->rescue_ns));
	}
	/*
	 * Due already: the legs are all stalled, and there was no leg or no
	 * memory for a rescue. Not too soon again: this is an interrupt.
	 */
	if (next <= now)
		next = now + conf->rescue_ns;
	return max(next, now + NSEC_PER_MSEC);
}

/**
 * hedge_wait_due - the time of a read has come
 * @r: the read, taken out of the clock with a reference, which ends here
 * @now: the time in nanoseconds
 *
 * Context: hard interrupt, inside an RCU read section.
 *
 * Return: whether it is to get another copy: hedge_wait_dispatch() is due, once for
 * all that are.
 */
bool hedge_wait_due(struct hedge_read *r, u64 now)
{
	struct hedge *h = r->hedge;
	const struct hedge_conf *conf = rcu_dereference(h->conf);
	unsigned long flags;
	bool stuck, overdue;

	spin_lock_irqsave(&h->wait_lock, flags);
	spin_lock(&r->shard->lock);
	stuck = !r->done && r->out && !r->queued && !(r->out & ~h->stalled);
	overdue = !r->done && r->tau_at && r->tau_at <= now;
	/* Whatever comes of it, this deadline is over. */
	if (overdue)
		r->tau_at = 0;
	if (stuck && rescue(r, conf, now))
		overdue = false;
	if (overdue) {
		trace_hedge_timeout(r->id, r->out ? __ffs(r->out) : 0,
				    r->iter.bi_sector, r->iter.bi_size,
				    now - r->arrival_ns);
		hedge_order_add_late(r, conf);
	}
	if (r->rescue_at && r->rescue_at <= now)
		r->rescue_at = next_look(r, conf, now);
	hedge_clock_set(r);
	spin_unlock(&r->shard->lock);
	spin_unlock_irqrestore(&h->wait_lock, flags);
	hedge_read_put(r);
	return overdue;
}
