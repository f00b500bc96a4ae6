// SPDX-License-Identifier: GPL-2.0
/*
 * The life of a read.
 *
 * Arrival: legs are chosen, and for each a copy is started, or queued where the
 * leg has no slot. A read that can ever get more than one copy reads into
 * bounces; any other is the parent's bio itself, sent to one leg ("direct").
 *
 * Completion: the first copy that answers without an error wins. Under the lock
 * of its home the read is marked done; after that nobody else touches the
 * parent. The winner's data is copied to the parent, the read's state is given
 * back, and only then is the parent ended: once it is, the target may be
 * suspended and destroyed. Copies that are still out are abandoned. They keep
 * the read's state, but not the parent, and the target waits for them in
 * postsuspend (hedge->abandoned).
 *
 * Errors: a copy that fails while others are out or queued just ends. The last
 * one is sent to a leg that has not failed yet, and the parent gets the error
 * when there is none. An error that is the caller's own ends the read at once.
 *
 * While nobody waits for a slot or a hedge, all of this takes one lock, the
 * home's, once at arrival and once at completion. Whether something of a read
 * still waits when it is won is seen under that lock: nothing can begin to wait
 * for a read that is done.
 */
#include "hedge.h"
#include "trace.h"

/* What a copy inherits of its parent's flags. */
#define COPY_FLAGS (REQ_SYNC | REQ_META | REQ_PRIO | REQ_RAHEAD | REQ_IDLE | \
		    REQ_BACKGROUND | REQ_FAILFAST_MASK | REQ_NOMERGE)

/**
 * hedge_read_init - make a read that was sent to no leg yet
 * @h: the target
 * @r: the read
 * @bio: its parent
 * @usable: bit for each leg that may serve it
 * @now: the time in nanoseconds
 *
 * Context: any.
 */
void hedge_read_init(struct hedge *h, struct hedge_read *r, struct bio *bio,
		     u32 usable, u64 now)
{
	r->hedge = h;
	r->shard = raw_cpu_ptr(h->shards);
	r->parent = bio;
	r->job = NULL;
	r->arrival_ns = now;
	r->tau_at = 0;
	r->rescue_at = 0;
	timerqueue_init(&r->clock);
	RB_CLEAR_NODE(&r->task.node);
	RB_CLEAR_NODE(&r->late.node);
	r->queued = NULL;
	r->iter = bio->bi_iter;
	r->css = NULL;
	r->opf = REQ_OP_READ | (bio->bi_opf & COPY_FLAGS);
	r->ioprio = bio->bi_ioprio;
	r->usable = usable;
	r->on = 0;
	r->out = 0;
	r->failed = 0;
	r->unreadable = 0;
	r->refs = 1;
	r->starts = 0;
	r->wanted = 1;
	r->hedges = 0;
	r->probe = 0;
	r->decided = false;
	r->direct = false;
	r->alone = false;
	r->nowait = bio->bi_opf & REQ_NOWAIT;
	r->done = false;
	r->abandoned = false;
	r->starved = false;
	r->first.read = r;
	r->first.kind = HEDGE_ARRIVAL;
	r->first.state = HEDGE_COPY_NEW;
	r->first.nowait = false;
	r->first.probing = false;
	r->first.probed = false;
	r->first.work_us = 0;
}

/*
 * A read's state: with pages of its own if it may get more than one copy, else
 * in its parent.
 */
static struct hedge_read *read_new(struct hedge *h,
				   const struct hedge_conf *conf,
				   struct bio *bio, u64 now, bool *copyable)
{
	unsigned int bytes = bio->bi_iter.bi_size;
	struct hedge_parent *parent = dm_per_bio_data(bio, sizeof(*parent));
	struct hedge_read *in_parent = &parent->read;
	u32 usable = hedge_sync_usable(h, bio->bi_iter.bi_sector);
	struct hedge_bounce *b;

	*copyable = false;
	if (unlikely(!(usable & (usable - 1)))) {
		/* Only one leg has the region, or only one is left. */
		if (READ_ONCE(h->partial))
			hedge_count(h, HEDGE_UNHEDGED_SYNC);
	} else if (conf->speculative) {
		if (bytes > conf->max_copy) {
			hedge_count(h, HEDGE_UNHEDGED_LARGE);
		} else {
			*copyable = true;
			b = hedge_bounce_get(h, bytes);
			if (b) {
				hedge_read_init(h, &b->read, bio, usable, now);
				b->read.css = hedge_css_get(bio);
				if (unlikely(conf->probe))
					hedge_probe_init(&b->read, conf);
				/* For hedge_read_direct_end(). */
				in_parent->direct = false;
				return &b->read;
			}
			hedge_count(h, HEDGE_UNHEDGED_MEMORY);
		}
	}
	hedge_read_init(h, in_parent, bio, usable, now);
	in_parent->direct = true;
	return in_parent;
}

static void send_add(struct hedge_sends *send, struct hedge_copy *c)
{
	c->next = NULL;
	*send->last = c;
	send->last = &c->next;
}

/*
 * Starts or queues a copy of a read on a leg. What is started is added to @send.
 * Caller holds the home's lock and, where legs have slots, hedge->wait_lock.
 */
static void arrive_on(struct hedge_read *r, struct hedge_leg *leg,
		      const struct hedge_conf *conf, enum hedge_kind kind,
		      struct hedge_sends *send)
{
	struct hedge_copy *c = hedge_copy_new(r, kind);

	if (!c)
		return;
	if (!hedge_leg_has_slot(conf, leg)) {
		hedge_wait_enqueue(c, leg, conf);
		return;
	}
	if (!hedge_copy_start(c, leg, conf, r->arrival_ns)) {
		hedge_wait_starved(r);
		hedge_copy_discard(c);
		return;
	}
	hedge_copy_aim(c);
	send_add(send, c);
}

/*
 * Once a second a leg that is stalled or sits out gets the duplicate of a read
 * that goes elsewhere: its answer is how it is known what the leg is like.
 */
static void probe_shunned(struct hedge_read *r, const struct hedge_conf *conf,
			  unsigned long shunned, struct hedge_sends *send)
{
	struct hedge *h = r->hedge;
	unsigned int i;

	for_each_set_bit(i, &shunned, h->nr_legs)
		if (hedge_leg_probe_due(&h->leg[i], conf, r->arrival_ns))
			arrive_on(r, &h->leg[i], conf, HEDGE_RESCUE, send);
}

/* Of the legs chosen for a read's copies keeps those that are idle. */
static unsigned int keep_idle(struct hedge_read *r,
			      const struct hedge_conf *conf, u8 *chosen,
			      unsigned int nr)
{
	unsigned int i, kept = 0;
	u32 mask = 0;

	for (i = 0; i < nr; i++)
		mask |= BIT(chosen[i]);
	mask = hedge_keep_idle(mask, hedge_unused_legs(r->hedge, conf, mask),
			       &r->shard->random);
	for (i = 0; i < nr; i++)
		if (mask & BIT(chosen[i]))
			chosen[kept++] = chosen[i];
	return kept;
}

/*
 * Sends a new read on its way. Caller holds the home's lock and, where legs have
 * slots, hedge->wait_lock. Not inlined: most reads are single, and need no array.
 */
static noinline_for_stack void arrive(struct hedge_read *r,
				      const struct hedge_conf *conf,
				      struct hedge_sends *send)
{
	struct hedge *h = r->hedge;
	bool shared = conf->knobs.val[HEDGE_QUEUE_DEPTH] &&
		      conf->knobs.val[HEDGE_QUEUE] == HEDGE_QUEUE_SHARED;
	bool joins = conf->knobs.val[HEDGE_REPLICATE] == HEDGE_R;
	bool once = conf->knobs.val[HEDGE_CANCEL] == HEDGE_CANCEL_START;
	unsigned long shunned = (READ_ONCE(h->stalled) |
				 READ_ONCE(h->sitting)) & r->usable;
	unsigned int i, nr;
	u32 among = r->usable;
	u8 chosen[HEDGE_MAX_LEGS];

	if (!r->direct)
		r->wanted = min_t(u32, conf->knobs.val[HEDGE_COPIES],
				  hweight32(r->usable));
	if (shared) {
		/*
		 * Who came before is served before; under "r" also with another
		 * copy of what has started.
		 */
		if (h->nr_tasks || (joins && h->nr_overdue))
			among = 0;
		else
			among = hedge_free_legs(h, conf, among);
		r->wanted = min_t(u32, r->wanted, hweight32
				  (hedge_serving_legs(h, conf, r->usable, false)));
	}
	nr = among ? hedge_choose_legs(h, conf, r->shard, among, r->wanted,
				       chosen) : 0;
	if (r->wanted > 1 && conf->knobs.val[HEDGE_COPIES_TO] == HEDGE_IDLE) {
		if (nr > 1)
			nr = keep_idle(r, conf, chosen, nr);
		r->wanted = max(nr, 1U);
	}
	/* A start cancels what was queued before, and what is still to come. */
	for (i = 0; i < nr && !(once && r->starts); i++)
		arrive_on(r, &h->leg[chosen[i]], conf, HEDGE_ARRIVAL, send);
	/*
	 * A copy is queued although its leg was free if a read under settings
	 * without slots has just taken the slot; that copy needs no leg any more.
	 */
	if (once && r->starts)
		hedge_wait_cancel(r);
	else if (shared && r->starts < r->wanted && !r->queued)
		hedge_order_add(r, conf);
	if (shunned && !r->direct && send->first)
		probe_shunned(r, conf, shunned & ~r->on, send);
	if (conf->at_once && r->starts)
		hedge_wait_at_once(r, conf);
	if (!r->starts && r->queued && !r->direct)
		hedge_wait_clock(r, conf);
}

/*
 * The same for a read that gets just one copy at arrival, where no leg has slots
 * and none that may serve it is to be avoided: it need not wait, nor is a leg to
 * be probed with it.
 */
static void arrive_single(struct hedge_read *r, const struct hedge_conf *conf,
			  struct hedge_sends *send)
{
	struct hedge_leg *leg = hedge_choose_leg(r->hedge, conf, r->shard,
						 r->usable, false);
	struct hedge_copy *c = &r->first;

	c->probing = r->probe;
	hedge_copy_start(c, leg, conf, r->arrival_ns);
	hedge_copy_aim(c);
	send_add(send, c);
}

/*
 * Numbers a new read, lets it fill the budget and sends it on its way. Caller
 * holds the home's lock and, where conf->waits, hedge->wait_lock. Returns whether
 * the parent itself is the one copy, and map is to hand it on.
 */
static bool arrive_home(struct hedge_read *r, const struct hedge_conf *conf,
			bool copyable, struct hedge_sends *send)
{
	struct hedge *h = r->hedge;

	r->id = r->shard->next_id++;
	if (copyable)
		hedge_budget_earn(r->shard, conf);
	trace_hedge_read(r->id, r->iter.bi_sector, r->iter.bi_size,
			 r->arrival_ns, r->direct);
	if (conf->single && !((READ_ONCE(h->stalled) | READ_ONCE(h->sitting)) &
			      r->usable))
		arrive_single(r, conf, send);
	else
		arrive(r, conf, send);
	if (likely(!r->direct))
		return false;
	/* A direct read that waits may be gone once the lock is released. */
	if (!send->first)
		r->css = hedge_css_get(r->parent);
	return send->first;
}

/*
 * A read that just goes to a leg. While it is out it is like any direct read for
 * status and for the clock, should rescue_us be switched on; the rest of its
 * state is filled in only if it fails.
 */
static void alone_start(struct hedge *h, const struct hedge_conf *conf,
			struct bio *bio, u64 now)
{
	struct hedge_read *r = dm_per_bio_data(bio, sizeof(*r));
	struct hedge_shard *shard = raw_cpu_ptr(h->shards);
	struct hedge_copy *c = &r->first;
	struct hedge_leg *leg;

	r->hedge = h;
	r->shard = shard;
	r->arrival_ns = now;
	r->tau_at = 0;
	r->rescue_at = 0;
	timerqueue_init(&r->clock);
	r->iter = bio->bi_iter;
	r->usable = hedge_sync_usable(h, bio->bi_iter.bi_sector);
	r->direct = true;
	r->alone = true;
	c->read = r;
	c->started_ns = now;
	c->probing = false;
	c->work_us = 0;

	spin_lock_irq(&shard->lock);
	r->id = shard->next_id++;
	leg = hedge_choose_leg(h, conf, shard, r->usable, false);
	c->leg = leg;
	r->out = BIT(leg->index);
	list_add_tail(&c->out, &shard->out[leg->index]);
	spin_unlock_irq(&shard->lock);

	c->depth = hedge_depth_index(atomic_inc_return(&leg->inflight));
	hedge_count(h, HEDGE_COPIES_STARTED);
	this_cpu_inc(leg->stats->reads);
	trace_hedge_read(r->id, r->iter.bi_sector, r->iter.bi_size, now, true);
	trace_hedge_start(r->id, leg->index, r->iter.bi_sector, r->iter.bi_size,
			  0, HEDGE_ARRIVAL);
	/* A fresh clone: it has no flags of another device to be cleared. */
	if (HEDGE_DM_CHARGES)
		bio->bi_bdev = leg->dev->bdev;
	else
		bio_set_dev(bio, leg->dev->bdev);
	bio->bi_iter.bi_sector = leg->offset +
				 dm_target_offset(h->ti, bio->bi_iter.bi_sector);
}

/*
 * A read that was alone has failed: makes it the ordinary direct read that it
 * would have been, for the other legs to be tried. Caller holds the home's lock.
 */
static void alone_failed(struct hedge *h, struct hedge_read *r, struct bio *bio)
{
	struct hedge_shard *shard = r->shard;
	struct bvec_iter iter = r->iter;
	u8 out = r->out;

	hedge_clock_cancel(r);
	hedge_read_init(h, r, bio, r->usable, r->arrival_ns);
	r->shard = shard;
	r->iter = iter;
	r->out = out;
	r->on = out;
	r->starts = 1;
	r->direct = true;
	r->first.state = HEDGE_COPY_STARTED;
}

/*
 * The end of a read that was alone; false if it goes on as a direct one. Until
 * this has returned device-mapper holds the target.
 */
static bool alone_end(struct hedge *h, struct hedge_read *r, struct bio *bio,
		      blk_status_t status)
{
	struct hedge_shard *shard = r->shard;
	unsigned long flags;

	spin_lock_irqsave(&shard->lock, flags);
	if (likely(!status)) {
		list_del(&r->first.out);
		hedge_clock_cancel(r);
	} else {
		alone_failed(h, r, bio);
	}
	spin_unlock_irqrestore(&shard->lock, flags);
	if (unlikely(status))
		return false;
	hedge_copy_ended(&r->first, status);
	if (unlikely(READ_ONCE(h->waiting)))
		hedge_wait_dispatch(h);
	return true;
}

/**
 * hedge_read_arrive - choose legs for a new read, and start or queue its copies
 * @r: the read
 * @conf: the settings
 * @copyable: whether it fills the budget
 * @sends: where the copies are put that the caller has to submit
 *
 * After this the read may be gone, but for what is to be submitted.
 *
 * Context: process, in map, inside an RCU read section; interrupts are on.
 *
 * Return: whether the parent itself is the one copy, and map is to hand it on.
 */
bool hedge_read_arrive(struct hedge_read *r, const struct hedge_conf *conf,
		       bool copyable, struct hedge_sends *sends)
{
	struct hedge_shard *shard = r->shard;
	struct hedge *h = r->hedge;
	bool remapped;

	if (likely(!conf->waits)) {
		spin_lock_irq(&shard->lock);
		remapped = arrive_home(r, conf, copyable, sends);
		spin_unlock_irq(&shard->lock);
		return remapped;
	}
	spin_lock_irq(&h->wait_lock);
	spin_lock(&shard->lock);
	remapped = arrive_home(r, conf, copyable, sends);
	spin_unlock(&shard->lock);
	spin_unlock_irq(&h->wait_lock);
	return remapped;
}

/**
 * hedge_read_submit - hand copies to their legs
 * @sends: the copies, just started, of one read
 *
 * Context: process, in map. Sleeps only where a leg does not take REQ_NOWAIT.
 */
void hedge_read_submit(struct hedge_sends *sends)
{
	struct hedge_copy *c, *next;

	for (c = sends->first; c; c = next) {
		next = c->next;
		hedge_copy_submit_new(c);
	}
}

/**
 * hedge_read_map - take a read
 * @h: the target
 * @bio: the read, device-mapper's clone
 *
 * Context: process. Sleeps only where a leg that does not take REQ_NOWAIT, or a
 * read that has just one copy, makes its submitter wait.
 *
 * Return: DM_MAPIO_REMAPPED for a direct read, else DM_MAPIO_SUBMITTED.
 */
int hedge_read_map(struct hedge *h, struct bio *bio)
{
	struct hedge_bounce *tasks = NULL;
	const struct hedge_conf *conf;
	struct hedge_sends sends;
	bool copyable, remapped = false;
	struct hedge_read *r;
	u64 now = ktime_get_ns();

	rcu_read_lock();
	conf = rcu_dereference(h->conf);
	if (unlikely(conf->task && bio->bi_iter.bi_size > conf->task))
		tasks = hedge_task_cut(h, conf, bio, now);
	hedge_sends_init(&sends);
	if (likely(!tasks)) {
		hedge_count(h, HEDGE_READS);
		if (conf->alone && !READ_ONCE(h->partial)) {
			alone_start(h, conf, bio, now);
			rcu_read_unlock();
			return DM_MAPIO_REMAPPED;
		}
		r = read_new(h, conf, bio, now, &copyable);
		remapped = hedge_read_arrive(r, conf, copyable, &sends);
	}
	rcu_read_unlock();

	if (unlikely(tasks))
		hedge_task_send(h, tasks);
	else if (!remapped)
		hedge_read_submit(&sends);
	if (unlikely(READ_ONCE(h->waiting)))
		hedge_wait_dispatch(h);
	return remapped ? DM_MAPIO_REMAPPED : DM_MAPIO_SUBMITTED;
}

/* Errors that say something of the request and nothing of the leg. */
static bool is_callers(blk_status_t status)
{
	return status == BLK_STS_NOTSUPP || status == HEDGE_STS_INVAL;
}

static void copy_data(struct hedge_read *r, const char *data)
{
	struct bvec_iter iter;
	struct bio_vec bv;

	__bio_for_each_segment(bv, r->parent, iter, r->iter) {
		memcpy_to_bvec(&bv, data);
		data += bv.bv_len;
	}
}

enum outcome {
	WON,		/* the parent is to be ended with the copy's status */
	LOST,		/* the copy ends, and that is all */
	RETRY,		/* the copy is to be sent to another leg */
	GOES_ON,	/* it was a probe, and its leg gets the whole read */
};

/* Who else knows of a read that is done. */
enum rest {
	ALONE,		/* nobody */
	OTHERS,		/* other copies, or who works on it at this moment */
	WAITING,	/* perhaps these; and something of it waits */
};

/* Whether something of a read waits. Caller holds the home's lock. */
static bool waits(const struct hedge_read *r)
{
	return r->queued || hedge_placed(&r->late) || hedge_placed(&r->task);
}

/*
 * Takes the parent out of a read. Caller holds the home's lock, and a copy of
 * it. Returns who is left.
 *
 * What is not seen to wait here never will: a copy is queued, and a read put
 * into an ordered set, under this lock too, and only while the read is not done.
 * Under "cancel none" a copy that is queued already may be queued again later.
 */
static enum rest mark_done(struct hedge_read *r)
{
	r->done = true;
	if (r->job)
		list_del(&r->of_job);
	r->tau_at = 0;
	if (!r->out)
		hedge_clock_cancel(r);
	else	/* It stays in the clock: a witness against its losers' legs. */
		hedge_clock_set(r);
	if (r->refs > 1 && !r->direct) {
		r->abandoned = true;
		atomic_inc(&r->hedge->abandoned);
	}
	if (waits(r))
		return WAITING;
	return r->refs == 1 ? ALONE : OTHERS;
}

/*
 * Judges a copy that has ended. Caller holds the home's lock. On WON the parent
 * is the caller's; @rest tells whether the read is too. On GOES_ON it tells
 * whether something waits.
 */
static enum outcome judge(struct hedge_copy *c, blk_status_t status,
			  enum rest *rest)
{
	struct hedge_read *r = c->read;

	if (c->probing && !status && hedge_probe_wins(c)) {
		*rest = waits(r) ? WAITING : OTHERS;
		return GOES_ON;
	}
	list_del(&c->out);
	r->out &= ~BIT(c->leg->index);
	if (r->done)
		return LOST;
	if (c->probing && !status) {
		/* Its leg may serve the read once more, should it be hedged. */
		r->on &= ~BIT(c->leg->index);
		return LOST;
	}
	if (c->probed)
		r->decided = false;
	if (status && !is_callers(status)) {
		r->failed |= BIT(c->leg->index);
		/* Want of a tag says nothing of what is there. */
		if (status != BLK_STS_AGAIN)
			r->unreadable |= BIT(c->leg->index);
		if (r->out || r->queued)
			return LOST;
		if (!(status == BLK_STS_AGAIN && r->nowait))
			return RETRY;
	}
	*rest = mark_done(r);
	return WON;
}

/*
 * Sends a copy that failed to a leg that has not. Caller holds no lock. Where
 * another copy has been started meanwhile (from the shared queue) this one has
 * just lost. On WON the parent is the caller's, and @rest tells of the read.
 */
static enum outcome retry(struct hedge_copy *c, enum rest *rest)
{
	struct hedge_read *r = c->read;
	struct hedge *h = r->hedge;
	const struct hedge_conf *conf = rcu_dereference(h->conf);
	enum outcome outcome = RETRY;
	u64 now = ktime_get_ns();
	struct hedge_leg *leg;
	unsigned long flags;
	u32 among;

	spin_lock_irqsave(&h->wait_lock, flags);
	spin_lock(&r->shard->lock);
	/* A leg may have gone out or become full since the read arrived. */
	r->usable = hedge_sync_usable(h, r->iter.bi_sector);
	among = r->usable & ~r->failed;
	if (r->done || r->out || r->queued) {
		outcome = LOST;
	} else if (among) {
		leg = hedge_choose_leg(h, conf, r->shard, among, false);
		trace_hedge_reissue(r->id, leg->index, r->iter.bi_sector,
				    r->iter.bi_size, now - r->arrival_ns);
		/* It is no hedge any more, and with none out needs no budget. */
		c->kind = HEDGE_ARRIVAL;
		c->probing = false;
		c->probed = false;
		hedge_wait_place(c, leg, conf, now);
	} else {
		*rest = mark_done(r);
		outcome = WON;
	}
	spin_unlock(&r->shard->lock);
	spin_unlock_irqrestore(&h->wait_lock, flags);
	return outcome;
}

/*
 * Ends the parent of a read that was won, and of which nothing waits any longer.
 * Everything of the read that is not still in use elsewhere is given back first:
 * the parent's end may be the end of the target.
 */
static void win(struct hedge_copy *c, blk_status_t status, enum rest rest,
		u64 now)
{
	struct hedge_read *r = c->read;
	struct bio *parent = r->parent;
	struct hedge_job *job = r->job;

	if (c != &r->first)
		hedge_count(r->hedge, HEDGE_WON);
	trace_hedge_win(r->id, c->leg->index, r->iter.bi_sector,
			r->iter.bi_size, now - r->arrival_ns);
	if (!status)
		copy_data(r, hedge_copy_data(c));
	if (unlikely(r->unreadable) && !status)
		hedge_recover_repair(r);
	if (rest == ALONE)
		hedge_copy_free(c);
	else
		hedge_copy_put(c);
	if (job && !hedge_task_done(job, &status))
		return;
	parent->bi_status = status;
	bio_endio(parent);
}

static void lose(struct hedge_copy *c, u64 now)
{
	struct hedge_read *r = c->read;

	hedge_count(r->hedge, HEDGE_WASTED);
	trace_hedge_lose(r->id, c->leg->index, r->iter.bi_sector,
			 r->iter.bi_size, now - c->started_ns);
	hedge_copy_put(c);
}

static void note_error(struct hedge_copy *c, blk_status_t status)
{
	if (!status || is_callers(status) || status == BLK_STS_AGAIN ||
	    c->read->opf & REQ_RAHEAD)
		return;
	this_cpu_inc(c->leg->stats->errors);
	hedge_leg_health(c->leg, HEDGE_READ_FAILED);
}

/**
 * hedge_copy_endio - a bounce's bio has ended
 * @bio: the bio
 *
 * Context: any.
 */
void hedge_copy_endio(struct bio *bio)
{
	struct hedge_copy *c = bio->bi_private;
	struct hedge_read *r = c->read;
	struct hedge *h = r->hedge;
	blk_status_t status = bio->bi_status;
	enum outcome outcome;
	enum rest rest = ALONE;
	unsigned long flags;
	u64 now;

	rcu_read_lock();
	if (unlikely(status == BLK_STS_AGAIN && c->nowait)) {
		/* Out of tags: the leg's worker may wait, nobody else. */
		c->nowait = false;
		hedge_leg_send(c->leg, c);
		goto out;
	}
	spin_lock_irqsave(&r->shard->lock, flags);
	outcome = judge(c, status, &rest);
	spin_unlock_irqrestore(&r->shard->lock, flags);
	if (unlikely(outcome == GOES_ON)) {
		hedge_probe_go_on(c, rest == WAITING);
		goto out;
	}
	now = hedge_copy_ended(c, status);
	note_error(c, status);
	/* First: some reads are hedged only while nothing else waits. */
	if (outcome == WON && rest == WAITING)
		hedge_wait_forget(r);
	if (unlikely(READ_ONCE(h->waiting)))
		hedge_wait_dispatch(h);
	if (outcome == RETRY) {
		outcome = retry(c, &rest);
		if (outcome == WON && rest == WAITING)
			hedge_wait_forget(r);
	}
	if (outcome == RETRY)
		goto out;
	if (outcome == WON)
		win(c, status, rest, now);
	else
		lose(c, now);
out:
	rcu_read_unlock();
}

/**
 * hedge_read_direct_end - the parent's bio has come back from a leg
 * @h: the target
 * @bio: device-mapper's clone
 * @error: its status
 *
 * Called for all reads; those that went through bounces have been dealt with.
 *
 * Context: any.
 *
 * Return: DM_ENDIO_DONE, or DM_ENDIO_INCOMPLETE if it goes to another leg.
 */
int hedge_read_direct_end(struct hedge *h, struct bio *bio, blk_status_t *error)
{
	struct hedge_parent *parent = dm_per_bio_data(bio, sizeof(*parent));
	struct hedge_read *r = &parent->read;
	struct hedge_copy *c = &r->first;
	int end = DM_ENDIO_DONE;
	enum outcome outcome;
	unsigned long flags;
	enum rest rest;

	if (!r->direct || (r->alone && alone_end(h, r, bio, *error)))
		return DM_ENDIO_DONE;
	rcu_read_lock();
	hedge_copy_ended(c, *error);
	note_error(c, *error);
	spin_lock_irqsave(&r->shard->lock, flags);
	hedge_clock_cancel(r);
	outcome = judge(c, *error, &rest);
	spin_unlock_irqrestore(&r->shard->lock, flags);
	if (unlikely(READ_ONCE(h->waiting)))
		hedge_wait_dispatch(h);
	if (outcome == RETRY && retry(c, &rest) == RETRY) {
		end = DM_ENDIO_INCOMPLETE;
	} else {
		if (unlikely(r->unreadable) && !*error)
			hedge_recover_repair(r);
		hedge_css_put(r->css);
	}
	rcu_read_unlock();
	return end;
}
