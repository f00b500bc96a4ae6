// SPDX-License-Identifier: GPL-2.0
/*
 * What goes to all legs: writes, flushes, discards, write-zeroes.
 *
 * The clones for all legs lie in the parent's per-bio data, which outlives them
 * as the parent ends last. So a write allocates nothing of its own and cannot
 * want for memory half way. The parent is ended when all legs have answered.
 *
 * A write counts as pending in each region that it touches (region.c) from before
 * it chooses its legs until it ends or is held. If its one region is open it is
 * sent from map; else the region worker opens its regions and sends it.
 *
 * It is acknowledged at once if it worked everywhere and went to all legs that are
 * on record as full. All other ends are the region worker's to decide. A write that
 * worked on some legs and not on others takes the legs where it failed out, whatever
 * the error was: the legs differ now; that is put on record, then the write is
 * acknowledged. One that worked on no full leg is an error, and its regions (for a
 * flush, all that are not clean) are to be resynced from the default leg. A discard
 * that failed leaves nothing behind that anybody may rely on, so it takes no leg
 * out.
 *
 * A flush means that what was written before is durable. A device that fails one may
 * drop what it had in its cache, and do well with the next: so a flush that was out
 * together with one that failed waits for what comes of that, or is an error too. Nor is
 * a region called clean while one is out that may have dropped what was in it. A write
 * with FUA is all this too where a leg has a cache but no such thing: there a flush
 * follows it.
 *
 * With handle_errors and without keep_log, writes that a leg lacks are held until
 * the table is reloaded, as dm-mirror does, or the leg comes back.
 */
#include "hedge.h"

/**
 * struct hedge_write - a write; a struct bio for each leg follows it
 * @hedge: the target
 * @parent: the bio to end
 * @css: cgroup that a deferred one is charged to, with a reference, else NULL
 * @first: its first region
 * @nr: how many regions it touches, 0 for a flush
 * @pending: clones that have not ended
 * @sent: bit for each leg that it goes to
 * @flushes: bit for each of these on which it is a flush, or a flush follows it
 * @epoch: which of hedge->flushes it counts in, if it is that on any
 * @failed: bit for each leg on which it failed
 * @lost: bit for each of these that may have dropped its cache in that
 * @refused: bit for each of these that cannot do such a thing
 * @status: one of the errors
 * @losses: hedge->losses when it was sent
 */
struct hedge_write {
	struct hedge *hedge;
	struct bio *parent;
	struct cgroup_subsys_state *css;
	region_t first;
	region_t nr;
	atomic_t pending;
	unsigned long sent;
	unsigned long flushes;
	unsigned int epoch;
	unsigned long failed;
	unsigned long lost;
	unsigned long refused;
	blk_status_t status;
	unsigned int losses;
};

static struct bio *write_clone(struct hedge_write *w, unsigned int leg)
{
	return (struct bio *)(w + 1) + leg;
}

/**
 * hedge_write_size - size of a write's per-bio data
 * @nr_legs: number of legs
 */
size_t hedge_write_size(unsigned int nr_legs)
{
	return sizeof(struct hedge_write) + nr_legs * sizeof(struct bio);
}

static struct hedge_write *write_of(struct hedge *h, struct bio *bio)
{
	return dm_per_bio_data(bio, h->ti->per_io_data_size);
}

static void end_write(struct hedge_write *w, blk_status_t status)
{
	struct bio *parent = w->parent;

	hedge_css_put(w->css);
	parent->bi_status = status;
	bio_endio(parent);
}

static blk_status_t held_status(struct hedge *h)
{
	return dm_noflush_suspending(h->ti) ? BLK_STS_DM_REQUEUE :
					      BLK_STS_IOERR;
}

/*
 * Holds a write until the table is reloaded; ends it if that is under way. By the
 * region worker alone: when the last leg comes back it sends what is held.
 */
static void hold(struct hedge *h, struct bio *bio)
{
	unsigned long flags;
	bool suspending;

	spin_lock_irqsave(&h->wait_lock, flags);
	suspending = h->suspending;
	if (!suspending) {
		bio_list_add(&h->held, bio);
		WRITE_ONCE(h->nr_held, h->nr_held + 1);
	}
	spin_unlock_irqrestore(&h->wait_lock, flags);
	if (suspending)
		end_write(write_of(h, bio), held_status(h));
}

/**
 * hedge_write_release - end the writes that are held, and hold no more
 * @h: the target, which is being suspended
 *
 * Context: process.
 */
void hedge_write_release(struct hedge *h)
{
	struct bio_list held;
	struct bio *bio;

	spin_lock_irq(&h->wait_lock);
	h->suspending = true;
	held = h->held;
	bio_list_init(&h->held);
	WRITE_ONCE(h->nr_held, 0);
	spin_unlock_irq(&h->wait_lock);
	while ((bio = bio_list_pop(&held)))
		end_write(write_of(h, bio), held_status(h));
}

/**
 * hedge_write_unhold - send the writes that are held
 * @h: the target, of which no leg is out any more
 *
 * Those that some legs have already are sent to all again: they were not
 * acknowledged.
 *
 * Context: process.
 */
void hedge_write_unhold(struct hedge *h)
{
	struct bio_list held;
	struct bio *bio;

	spin_lock_irq(&h->wait_lock);
	held = h->held;
	bio_list_init(&h->held);
	WRITE_ONCE(h->nr_held, 0);
	spin_unlock_irq(&h->wait_lock);
	while ((bio = bio_list_pop(&held)))
		hedge_region_defer(h, bio);
}

/**
 * hedge_write_unrelease - hold writes again where that is due
 * @h: the target, which is running again
 *
 * Context: process.
 */
void hedge_write_unrelease(struct hedge *h)
{
	spin_lock_irq(&h->wait_lock);
	h->suspending = false;
	spin_unlock_irq(&h->wait_lock);
}

static bool holds(const struct hedge *h)
{
	return h->handle_errors && !h->keep_log &&
	       READ_ONCE(h->live) != BIT(h->nr_legs) - 1;
}

/* Whether a discard failed: nobody may rely on what it left behind. */
static bool is_discard(const struct bio *bio)
{
	return bio_op(bio) == REQ_OP_DISCARD ||
	       bio_op(bio) == REQ_OP_SECURE_ERASE;
}

static void put_regions(struct hedge_write *w)
{
	region_t region;

	for (region = w->first; region < w->first + w->nr; region++)
		hedge_region_put(w->hedge, region);
}

static void finish(struct hedge_write *w, blk_status_t status)
{
	/* Before the end, which may be that of the target. */
	put_regions(w);
	end_write(w, status);
}

static bool lacks_out_leg(const struct hedge_write *w)
{
	const struct hedge *h = w->hedge;

	return ~h->live & (BIT(h->nr_legs) - 1) & ~(w->sent & ~w->failed);
}

/*
 * Takes out the legs on which a write failed. Returns false if the write must be
 * an error: no leg on which it worked holds everything else.
 */
static bool legs_out(struct hedge_write *w)
{
	struct hedge *h = w->hedge;
	bool flush = !w->nr;
	unsigned int i;

	if (!(w->sent & ~w->failed & h->live & ~h->partial))
		return false;
	for_each_set_bit(i, &w->failed, h->nr_legs)
		hedge_sync_out(&h->leg[i], flush ? HEDGE_FLUSH_FAILED :
						   HEDGE_WRITE_FAILED);
	return true;
}

/* Whether all legs have lost what they had in their caches since a flush began. */
static bool lost_meanwhile(const struct hedge_write *w)
{
	return w->losses != READ_ONCE(w->hedge->losses);
}

/**
 * hedge_write_ended - decide how a write ends
 * @h: the target
 * @bio: the write, of which all clones have ended; gone when this returns, or
 *       held
 *
 * Context: the region worker. May sleep.
 */
void hedge_write_ended(struct hedge *h, struct bio *bio)
{
	struct hedge_write *w = write_of(h, bio);

	if (w->failed && is_discard(bio)) {
		finish(w, w->status);
		return;
	}
	if (w->refused && bio_op(bio) == REQ_OP_WRITE_ZEROES) {
		/*
		 * A leg that cannot write zeroes is not a leg that has failed. Nor
		 * are the legs to be copied again each time.
		 */
		WRITE_ONCE(h->no_zeroes, true);
		if (w->refused != w->sent)
			hedge_sync_diverged(h, w->first, w->nr);
		hedge_sync_record(h);
		finish(w, w->status);
		return;
	}
	if (w->failed && !legs_out(w)) {
		if (w->nr)
			hedge_sync_diverged(h, w->first, w->nr);
		if (w->lost)
			hedge_sync_unflushed(h);
		hedge_sync_record(h);
		finish(w, w->status);
		return;
	}
	/* Not to be acknowledged while labels call a leg in that lacks it. */
	if (hedge_sync_record(h)) {
		finish(w, BLK_STS_IOERR);
		return;
	}
	/* A flush of ours has failed, and what it lost was acknowledged. */
	if ((!w->nr && xchg(&h->untold, false)) ||
	    (w->flushes && lost_meanwhile(w))) {
		finish(w, BLK_STS_IOERR);
		return;
	}
	if (holds(h) && lacks_out_leg(w)) {
		put_regions(w);
		hold(h, bio);
		return;
	}
	finish(w, BLK_STS_OK);
}

/* Legs that have dropped their caches in a flush, which has no end yet. */
static unsigned long unflushed(const struct hedge_write *w)
{
	return READ_ONCE(w->hedge->unflushed) & w->flushes;
}

/* Whether a flush that worked on all legs means that nothing was lost before. */
static bool flush_holds(const struct hedge_write *w)
{
	if ((!w->nr && READ_ONCE(w->hedge->untold)) || unflushed(w))
		return false;
	/*
	 * A flush that failed is forgotten only when its leg has gone out, of which
	 * there must be a record first, or with hedge->losses. Pairs with the barriers
	 * in hedge_sync_out() and hedge_sync_unflushed().
	 */
	smp_rmb();
	return !(w->sent & ~READ_ONCE(w->hedge->live)) && !lost_meanwhile(w);
}

/* A write that no leg lacks, of those that are on record as full, just ends. */
static bool ends_well(const struct hedge_write *w)
{
	return !w->failed && !(READ_ONCE(w->hedge->vouched) & ~w->sent) &&
	       w->nr <= 1 && (likely(!w->flushes) || flush_holds(w)) &&
	       likely(!holds(w->hedge));
}

/* Some drivers learn by an error that a device cannot write zeroes. */
static bool is_refused(const struct bio *clone, blk_status_t status)
{
	return status == BLK_STS_NOTSUPP ||
	       (status == BLK_STS_TARGET &&
		bio_op(clone) == REQ_OP_WRITE_ZEROES &&
		!bdev_write_zeroes_sectors(clone->bi_bdev));
}

/* Whether it may be the flush that has failed; of a write with FUA, not its data. */
static bool is_lost_cache(const struct hedge_write *w, unsigned int leg,
			  blk_status_t status)
{
	return w->flushes & BIT(leg) &&
	       (!w->nr || (status != BLK_STS_NOTSUPP && status != BLK_STS_NOSPC));
}

static void note_failure(struct hedge_write *w, const struct bio *clone,
			 blk_status_t status)
{
	unsigned int leg = clone - write_clone(w, 0);

	set_bit(leg, &w->failed);
	if (is_refused(clone, status)) {
		set_bit(leg, &w->refused);
		status = BLK_STS_NOTSUPP;
	}
	/* What a leg cannot do is told before what it failed to do. */
	if (READ_ONCE(w->status) != BLK_STS_NOTSUPP)
		WRITE_ONCE(w->status, status);
	/* Before the sweep may rely on a flush of its own: before end_flush(). */
	if (is_lost_cache(w, leg, status)) {
		set_bit(leg, &w->lost);
		set_bit(leg, &w->hedge->unflushed);
	}
}

/* A flush after one that failed may succeed, and mean nothing. */
static void share_failure(struct hedge_write *w)
{
	unsigned long legs = unflushed(w);

	w->failed |= legs;
	w->lost |= legs;
	if (legs && !w->status)
		w->status = BLK_STS_IOERR;
}

/*
 * Flushes that are out count in one of two numbers, so that who waits for those that were
 * out at some time need not wait for what came later.
 */
static void begin_flush(struct hedge_write *w)
{
	struct hedge *h = w->hedge;
	unsigned long flags;

	spin_lock_irqsave(&h->region_lock, flags);
	w->epoch = h->flush_epoch;
	h->flushes[w->epoch]++;
	spin_unlock_irqrestore(&h->region_lock, flags);
}

static void end_flush(struct hedge_write *w)
{
	struct hedge *h = w->hedge;
	unsigned long flags;

	spin_lock_irqsave(&h->region_lock, flags);
	h->flushes[w->epoch]--;
	spin_unlock_irqrestore(&h->region_lock, flags);
}

/**
 * hedge_write_flushes_mark - begin a new count of the flushes that are out
 * @h: the target, of which hedge_write_flushes_ended() is true
 *
 * Context: the region worker.
 */
void hedge_write_flushes_mark(struct hedge *h)
{
	spin_lock_irq(&h->region_lock);
	h->flush_epoch = !h->flush_epoch;
	spin_unlock_irq(&h->region_lock);
}

/**
 * hedge_write_flushes_ended - whether all flushes have ended that were out at the last mark
 * @h: the target
 *
 * If one of them has failed, and its leg has not gone out since, that is in
 * hedge->unflushed.
 *
 * Context: the region worker.
 */
bool hedge_write_flushes_ended(struct hedge *h)
{
	bool ended;

	spin_lock_irq(&h->region_lock);
	ended = !h->flushes[!h->flush_epoch];
	spin_unlock_irq(&h->region_lock);
	return ended;
}

/**
 * hedge_write_flushes_out - whether a flush is out
 * @h: the target
 *
 * Context: process.
 */
bool hedge_write_flushes_out(struct hedge *h)
{
	bool out;

	spin_lock_irq(&h->region_lock);
	out = h->flushes[0] || h->flushes[1];
	spin_unlock_irq(&h->region_lock);
	return out;
}

static void clone_endio(struct bio *clone)
{
	struct hedge_write *w = clone->bi_private;
	blk_status_t status = clone->bi_status;

	rcu_read_lock();
	if (unlikely(status))
		note_failure(w, clone, status);
	if (atomic_dec_and_test(&w->pending)) {
		if (unlikely(w->flushes))
			end_flush(w);
		if (likely(ends_well(w))) {
			finish(w, BLK_STS_OK);
		} else {
			share_failure(w);
			hedge_region_end(w->hedge, w->parent);
		}
	}
	rcu_read_unlock();
}

/* Makes the clone for one leg. */
static int clone_init(struct hedge_write *w, struct bio *bio,
		      struct hedge_leg *leg)
{
	struct bio *clone = write_clone(w, leg->index);

	if (bio_init_clone(leg->dev->bdev, clone, bio, GFP_NOWAIT))
		return -ENOMEM;
	/* Else it is made by who is charged. */
	if (w->css)
		bio_associate_blkg_from_css(clone, w->css);
	/* A leg may have taken it when another cannot: it has to wait then. */
	clone->bi_opf &= ~(REQ_NOWAIT | REQ_RAHEAD | REQ_POLLED);
	clone->bi_iter.bi_sector = leg->offset +
		dm_target_offset(w->hedge->ti, bio->bi_iter.bi_sector);
	clone->bi_private = w;
	clone->bi_end_io = clone_endio;
	return 0;
}

static int clone_all(struct hedge_write *w, struct bio *bio)
{
	unsigned long made = 0;
	unsigned int i;

	for_each_set_bit(i, &w->sent, HEDGE_MAX_LEGS) {
		if (clone_init(w, bio, &w->hedge->leg[i]))
			goto undo;
		made |= BIT(i);
	}
	atomic_set(&w->pending, hweight_long(made));
	return 0;

undo:
	for_each_set_bit(i, &made, HEDGE_MAX_LEGS)
		bio_uninit(write_clone(w, i));
	return -ENOMEM;
}

/*
 * Submits all clones, with the cgroup of the bio that device-mapper got itself.
 * The last clone may end the write, and with it @w and @bio.
 */
static void submit_all(struct hedge_write *w, struct bio *bio)
{
	unsigned long sent = w->sent;
	unsigned int i;

	for_each_set_bit(i, &sent, HEDGE_MAX_LEGS)
		dm_submit_bio_remap(bio, write_clone(w, i));
}

/*
 * Where a flush may follow a write with FUA: what is made of other devices passes it on,
 * and says that it can do so whatever they make of it.
 */
static unsigned long fua_flushes(const struct hedge_write *w)
{
	unsigned long legs = 0;
	unsigned int i;

	for_each_set_bit(i, &w->sent, HEDGE_MAX_LEGS) {
		struct block_device *bdev = w->hedge->leg[i].dev->bdev;

		if (bdev_write_cache(bdev) &&
		    (!bdev_fua(bdev) || !queue_is_mq(bdev_get_queue(bdev))))
			legs |= BIT(i);
	}
	return legs;
}

static unsigned long flushes(const struct hedge_write *w, const struct bio *bio)
{
	if (!w->nr)
		return w->sent;
	if (unlikely(bio->bi_opf & REQ_FUA) && bio_op(bio) == REQ_OP_WRITE)
		return fua_flushes(w);
	return 0;
}

/* Makes the clones. Returns false, and has ended the write, if that cannot be. */
static bool prepare(struct hedge *h, struct bio *bio)
{
	struct hedge_write *w = write_of(h, bio);

	w->sent = hedge_sync_targets(h, w->first, w->nr);
	w->failed = 0;
	w->lost = 0;
	w->refused = 0;
	w->status = BLK_STS_OK;
	w->losses = READ_ONCE(h->losses);
	w->flushes = flushes(w, bio);
	if (likely(!clone_all(w, bio))) {
		if (unlikely(w->flushes))
			begin_flush(w);
		return true;
	}
	/* Only encryption or integrity data would need memory. */
	finish(w, BLK_STS_RESOURCE);
	return false;
}

static void send_by_workers(struct hedge *h, struct hedge_write *w)
{
	unsigned long sent = w->sent;
	unsigned int i;

	for_each_set_bit(i, &sent, h->nr_legs)
		hedge_leg_send_bio(&h->leg[i], write_clone(w, i));
}

/**
 * hedge_write_send - send a deferred write, whose regions are open now
 * @h: the target
 * @bio: the write, counted in its regions
 *
 * The workers of the legs submit it, as a leg may be out of tags.
 *
 * Context: process.
 */
void hedge_write_send(struct hedge *h, struct bio *bio)
{
	struct hedge_write *w = write_of(h, bio);

	if (unlikely(holds(h))) {
		put_regions(w);
		hold(h, bio);
		return;
	}
	if (prepare(h, bio))
		send_by_workers(h, w);
}

/**
 * hedge_write_log_failed - deal with a write that the log could not note
 * @h: the target, with handle_errors
 * @bio: the write, not counted in its regions
 *
 * Context: process.
 */
void hedge_write_log_failed(struct hedge *h, struct bio *bio)
{
	if (h->keep_log)
		end_write(write_of(h, bio), BLK_STS_IOERR);
	else
		hold(h, bio);
}

/**
 * hedge_write_refuse - end a write with an error before it is sent
 * @h: the target
 * @bio: the write, not counted in its regions
 *
 * Context: process.
 */
void hedge_write_refuse(struct hedge *h, struct bio *bio)
{
	end_write(write_of(h, bio), BLK_STS_IOERR);
}

/**
 * hedge_write_regions - the regions of a write
 * @h: the target
 * @bio: the write
 * @first: where the first is put
 * @nr: where their number is put
 */
void hedge_write_regions(struct hedge *h, struct bio *bio, region_t *first,
			 region_t *nr)
{
	struct hedge_write *w = write_of(h, bio);

	*first = w->first;
	*nr = w->nr;
}

static void init(struct hedge *h, struct hedge_write *w, struct bio *bio)
{
	sector_t from = dm_target_offset(h->ti, bio->bi_iter.bi_sector);
	unsigned int sectors = bio_sectors(bio);

	w->hedge = h;
	w->parent = bio;
	w->css = NULL;
	w->first = from >> h->region_shift;
	w->nr = 0;
	if (sectors)
		w->nr = ((from + sectors - 1) >> h->region_shift) - w->first +
			1;
}

/* Lets the region worker send a write, for the cgroup that it came from. */
static void defer(struct hedge *h, struct hedge_write *w)
{
	rcu_read_lock();
	w->css = hedge_css_get(w->parent);
	rcu_read_unlock();
	hedge_region_defer(h, w->parent);
}

/**
 * hedge_write_map - take a write, flush, discard or write-zeroes
 * @h: the target
 * @bio: device-mapper's clone
 *
 * Context: process. Sleeps only for a tag of a leg, and not at all with
 * REQ_NOWAIT: then the workers of the legs submit, and a write whose region is
 * not open ends in BLK_STS_AGAIN; the region is opened for when it comes again.
 *
 * Return: DM_MAPIO_SUBMITTED.
 */
int hedge_write_map(struct hedge *h, struct bio *bio)
{
	struct hedge_write *w = write_of(h, bio);
	bool nowait = bio->bi_opf & REQ_NOWAIT;

	init(h, w, bio);
	if (bio_op(bio) == REQ_OP_WRITE_ZEROES && READ_ONCE(h->no_zeroes)) {
		/* Then the caller writes them itself. */
		end_write(w, BLK_STS_NOTSUPP);
	} else if (unlikely(holds(h))) {
		/* Only who has a leg come back may hold: else it is forgotten. */
		defer(h, w);
	} else if (w->nr && (w->nr > 1 || !hedge_region_get(h, w->first))) {
		if (nowait) {
			hedge_region_want(h, w->first);
			end_write(w, BLK_STS_AGAIN);
		} else {
			defer(h, w);
		}
	} else if (prepare(h, bio)) {
		if (nowait)
			send_by_workers(h, w);
		else
			submit_all(w, bio);
	}
	return DM_MAPIO_SUBMITTED;
}
