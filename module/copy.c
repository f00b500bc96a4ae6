// SPDX-License-Identifier: GPL-2.0
/*
 * One copy of a read: how it starts, how it is handed to its leg, and what is
 * left of it.
 *
 * Starting a copy is bookkeeping under the lock of the read's home: from then on
 * the copy counts as in flight and its clock runs. Handing it to the device
 * comes after, outside of all locks, in the context of the read's submitter or
 * in the worker of the leg. Copies of our own are submitted with REQ_NOWAIT where
 * the leg takes that: one that comes back for want of a tag goes to the worker
 * of its leg, which may wait.
 *
 * Every copy holds a reference to its read. The first copy lies inside the read,
 * the others are bounces of their own. The last reference frees the read.
 */
#include "hedge.h"
#include "trace.h"

static struct hedge_bounce *copy_bounce(struct hedge_copy *c)
{
	return container_of(c, struct hedge_bounce, read.first);
}

/**
 * hedge_copy_data - what a copy has read
 * @c: the copy, not a direct one
 */
const char *hedge_copy_data(struct hedge_copy *c)
{
	return copy_bounce(c)->data;
}

/**
 * hedge_copy_new - make a copy of a read
 * @r: the read
 * @kind: what for
 *
 * Context: any. Caller holds the shard's lock.
 *
 * Return: the copy, not sent to any leg yet; NULL if there is no memory for it.
 */
struct hedge_copy *hedge_copy_new(struct hedge_read *r, enum hedge_kind kind)
{
	struct hedge_bounce *b;
	struct hedge_copy *c;

	if (r->first.state == HEDGE_COPY_NEW) {
		r->first.kind = kind;
		r->first.probing = r->probe && kind == HEDGE_ARRIVAL;
		return &r->first;
	}
	b = hedge_bounce_get(r->hedge, r->iter.bi_size);
	if (!b) {
		hedge_count(r->hedge, HEDGE_UNHEDGED_MEMORY);
		return NULL;
	}
	c = &b->read.first;
	c->read = r;
	c->kind = kind;
	c->state = HEDGE_COPY_NEW;
	c->nowait = false;
	c->probing = r->probe && kind == HEDGE_ARRIVAL;
	c->probed = false;
	c->work_us = 0;
	r->refs++;
	return c;
}

/**
 * hedge_copy_discard - drop a copy that was never started
 * @c: the copy; not the only reference to its read
 *
 * Context: any. Caller holds the shard's lock.
 */
void hedge_copy_discard(struct hedge_copy *c)
{
	struct hedge_read *r = c->read;

	r->refs--;
	if (c != &r->first)
		hedge_bounce_put(r->hedge, copy_bounce(c));
}

/* Counts a start; an extra copy must be paid for first. */
static bool copy_afford(struct hedge_copy *c)
{
	struct hedge_read *r = c->read;
	struct hedge *h = r->hedge;

	if (!r->starts)
		return true;
	if (c->kind == HEDGE_RESCUE) {
		hedge_count(h, HEDGE_RESCUED);
	} else if (r->out || r->done) {
		if (!hedge_budget_pay(r->shard))
			return false;
		hedge_count(h, HEDGE_EXTRA);
	} else {
		hedge_count(h, HEDGE_RETRIED);
	}
	return true;
}

/* Sets the clock of a read that has one more copy out. */
static void copy_clock(struct hedge_copy *c, const struct hedge_conf *conf)
{
	struct hedge_read *r = c->read;
	u64 tau = hedge_tau(conf, r, c->leg);
	bool first = r->starts == 1 && c->kind != HEDGE_HEDGE;
	u64 from = c->started_ns;

	if (conf->rescue_ns)
		r->rescue_at = c->started_ns + conf->rescue_ns;
	if (r->direct || r->done) {
		r->tau_at = 0;
	} else if (first && r->hedges) {
		/* It was moved, and its clock has run since: hedge(). */
	} else if (first || c->kind == HEDGE_HEDGE || hweight8(r->out) == 1) {
		if (first && conf->knobs.val[HEDGE_TIMEOUT_FROM] ==
				     HEDGE_FROM_ARRIVAL)
			from = r->arrival_ns;
		r->tau_at = tau && r->hedges < conf->knobs.val[HEDGE_MAX_HEDGES] ?
			    from + tau : 0;
	}
	hedge_clock_set(r);
}

/*
 * One more task of a read has started. Where this changes the order in which
 * its others wait, the caller has hedge->wait_lock.
 */
static void job_assigned(struct hedge_job *job, const struct hedge_conf *conf)
{
	job->unassigned--;
	if (conf->waits && conf->knobs.val[HEDGE_ORDER] == HEDGE_FUT)
		hedge_order_rekey(job, conf);
}

/**
 * hedge_copy_start - count a copy as handed to a leg
 * @c: the copy
 * @leg: the leg, which has a slot for it
 * @conf: the settings
 * @now: the time in nanoseconds
 *
 * The caller must then submit it, or send it to the leg's worker.
 *
 * Context: any. Caller holds the shard's lock; where legs have slots, and for a
 * copy that was queued, hedge->wait_lock too.
 *
 * Return: false if it would be an extra copy and the budget has none; nothing
 * has changed then.
 */
bool hedge_copy_start(struct hedge_copy *c, struct hedge_leg *leg,
		      const struct hedge_conf *conf, u64 now)
{
	struct hedge_read *r = c->read;
	struct hedge *h = r->hedge;

	if (!copy_afford(c))
		return false;
	if (c->kind == HEDGE_HEDGE)
		hedge_count(h, HEDGE_HEDGED);
	c->leg = leg;
	c->state = HEDGE_COPY_STARTED;
	c->started_ns = now;
	if (conf->knobs.val[HEDGE_BALANCE] == HEDGE_BALANCE_LLW)
		hedge_leg_add_work(c, conf);
	c->depth = hedge_depth_index(atomic_inc_return(&leg->inflight));
	if (!r->starts && r->job)
		job_assigned(r->job, conf);
	r->starts++;
	r->on |= BIT(leg->index);
	r->out |= BIT(leg->index);
	list_add_tail(&c->out, &r->shard->out[leg->index]);
	hedge_count(h, HEDGE_COPIES_STARTED);
	this_cpu_inc(leg->stats->reads);
	copy_clock(c, conf);
	trace_hedge_start(r->id, leg->index, r->iter.bi_sector, r->iter.bi_size,
			  now - r->arrival_ns, c->kind);
	return true;
}

static sector_t leg_sector(const struct hedge_read *r,
			   const struct hedge_leg *leg)
{
	return leg->offset + dm_target_offset(r->hedge->ti, r->iter.bi_sector);
}

/*
 * Points the parent's own bio at a leg; it may have been to another before. If
 * it was merged into a request there, it still points at the next bio of that.
 */
static void aim_direct(struct hedge_read *r, const struct hedge_leg *leg)
{
	struct bio *bio = r->parent;

	bio->bi_next = NULL;
	bio_set_dev(bio, leg->dev->bdev);
	bio->bi_iter = r->iter;
	bio->bi_iter.bi_sector = leg_sector(r, leg);
	bio->bi_status = BLK_STS_OK;
	atomic_set(&bio->__bi_remaining, 1);
}

/*
 * Prepares the bio of a started copy, which may have been to another leg before.
 * Without a device bio_init() leaves the cgroup alone: it is that of the worker.
 * A bio loses its cgroup when it ends, and the parent may be gone, so the read
 * keeps its cgroup.
 */
static void copy_aim(struct hedge_copy *c, bool nowait)
{
	struct hedge_bounce *b = copy_bounce(c);
	struct hedge_read *r = c->read;
	struct bio *bio = &b->bio;
	u32 bytes = c->probing ? r->probe : r->iter.bi_size;

	nowait = nowait && c->leg->nowait;
	c->nowait = nowait && !r->nowait;
	bio_init(bio, NULL, &b->bvec, 1, r->opf | (nowait ? REQ_NOWAIT : 0));
	bio->bi_bdev = c->leg->dev->bdev;
	bio->bi_ioprio = c->probing ? hedge_probe_ioprio(r) : r->ioprio;
	bio->bi_iter.bi_sector = leg_sector(r, c->leg);
	bio->bi_iter.bi_size = bytes;
	bio->bi_vcnt = 1;
	bio->bi_private = c;
	bio->bi_end_io = hedge_copy_endio;
	b->bvec.bv_len = bytes;
}

/**
 * hedge_copy_aim - prepare a copy that is to be submitted from map
 * @c: the copy, just started
 *
 * Copies of our own come back rather than wait for a tag.
 *
 * Context: process.
 */
void hedge_copy_aim(struct hedge_copy *c)
{
	if (c->read->direct)
		aim_direct(c->read, c->leg);
	else
		copy_aim(c, true);
}

/**
 * hedge_copy_submit_new - hand a copy to its device, from map
 * @c: the copy, not a direct one; it may have ended when this returns
 *
 * Context: process. May sleep where the leg does not take REQ_NOWAIT.
 */
void hedge_copy_submit_new(struct hedge_copy *c)
{
	struct bio *bio = &copy_bounce(c)->bio;
	struct hedge_read *r = c->read;

	if (c == &r->first && hedge_is_first_task(r)) {
		if (!HEDGE_DM_CHARGES)
			bio_associate_blkg_from_css(bio, r->css);
		/* Device-mapper keeps the parent until map has returned. */
		dm_submit_bio_remap(r->parent, bio);
		return;
	}
	bio_associate_blkg_from_css(bio, r->css);
	submit_bio_noacct(bio);
}

/*
 * A read that was sent from map, and failed, still has all that device-mapper
 * knows of it. One that waited is accounted for by map, perhaps at this moment,
 * so it must not be accounted for here.
 */
static void submit_direct(struct hedge_read *r)
{
	if (!r->css) {
		dm_submit_bio_remap(r->parent, NULL);
		return;
	}
	bio_associate_blkg_from_css(r->parent, r->css);
	submit_bio_noacct(r->parent);
}

/**
 * hedge_copy_submit - hand a started copy to its device, from a worker
 * @c: the copy; it may have ended when this returns
 *
 * Context: process. May sleep.
 */
void hedge_copy_submit(struct hedge_copy *c)
{
	struct hedge_read *r = c->read;
	struct bio *bio;

	if (r->direct) {
		aim_direct(r, c->leg);
		submit_direct(r);
		return;
	}
	bio = &copy_bounce(c)->bio;
	bio_uninit(bio);
	copy_aim(c, false);
	bio_associate_blkg_from_css(bio, r->css);
	submit_bio_noacct(bio);
}

/* A read copy has come back from a leg. */
static void leg_answered(struct hedge_leg *leg, u64 now)
{
	WRITE_ONCE(leg->last_done_ns, now);
	atomic_dec(&leg->inflight);
	/*
	 * Pairs with the barriers in leg_stall() and hedge_wait_count(): the
	 * caller looks at hedge->waiting next.
	 */
	smp_mb__after_atomic();
	if (unlikely(READ_ONCE(leg->hedge->stalled) & BIT(leg->index)))
		hedge_leg_unstall(leg);
}

/*
 * Records the latency of a read copy. The smoothed service time is written
 * without a lock: a sample that is lost in a race does not matter.
 */
static void leg_took(struct hedge_leg *leg, unsigned int depth,
		     unsigned int bytes, u64 ns)
{
	struct hedge_leg_stats __percpu *stats = leg->stats;
	enum hedge_size_class size = hedge_size_class(bytes);

	this_cpu_inc(stats->hist[size][hedge_hist_bucket(ns)]);
	this_cpu_inc(stats->depth[depth].count);
	this_cpu_add(stats->depth[depth].sum_us, ns >> 10);
	WRITE_ONCE(leg->service_us,
		   hedge_service_update(READ_ONCE(leg->service_us), ns));
}

/**
 * hedge_copy_ended - count the end of a copy on its leg
 * @c: the copy
 * @status: how it ended
 *
 * Losers count too: what they took is part of what the leg is like.
 *
 * Context: any.
 *
 * Return: the time in nanoseconds.
 */
u64 hedge_copy_ended(struct hedge_copy *c, blk_status_t status)
{
	struct hedge_leg *leg = c->leg;
	u64 now = ktime_get_ns();

	leg_answered(leg, now);
	if (c->work_us)
		hedge_leg_drop_work(c, status ? 0 : now - c->started_ns);
	if (!status)
		leg_took(leg, c->depth, c->probing ? c->read->probe :
				c->read->iter.bi_size,
			 now - c->started_ns);
	return now;
}

static void read_free(struct hedge_read *r)
{
	struct hedge *h = r->hedge;
	bool abandoned = r->abandoned;

	hedge_css_put(r->css);
	hedge_bounce_put(h, container_of(r, struct hedge_bounce, read));
	/* Last: who waits for this frees the target, after an RCU grace period. */
	if (abandoned && atomic_dec_and_test(&h->abandoned))
		wake_up(&h->drained);
}

/**
 * hedge_copy_free - free a copy that holds the only reference to its read
 * @c: the copy, which has ended; nobody else can find the read
 *
 * Context: any, inside an RCU read section.
 */
void hedge_copy_free(struct hedge_copy *c)
{
	struct hedge_read *r = c->read;

	if (c != &r->first)
		hedge_bounce_put(r->hedge, copy_bounce(c));
	read_free(r);
}

/**
 * hedge_read_put - give a reference to a read back
 * @r: the read, not a direct one
 *
 * Context: any, inside an RCU read section.
 */
void hedge_read_put(struct hedge_read *r)
{
	struct hedge_shard *shard = r->shard;
	unsigned long flags;
	bool last;

	spin_lock_irqsave(&shard->lock, flags);
	last = !--r->refs;
	if (last)
		hedge_clock_cancel(r);
	spin_unlock_irqrestore(&shard->lock, flags);
	if (last)
		read_free(r);
}

/**
 * hedge_copy_put - free a copy that has ended, and with the last its read
 * @c: the copy
 *
 * Context: any, inside an RCU read section.
 */
void hedge_copy_put(struct hedge_copy *c)
{
	struct hedge_read *r = c->read;

	if (c != &r->first)
		hedge_bounce_put(r->hedge, copy_bounce(c));
	hedge_read_put(r);
}
