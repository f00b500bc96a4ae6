// SPDX-License-Identifier: GPL-2.0
/*
 * What goes to all legs: writes, flushes, discards, write-zeroes.
 *
 * The clones for all legs lie in the parent's per-bio data, which outlives them
 * as the parent ends last. So a write allocates nothing of its own and cannot
 * want for memory half way. The parent is ended when all legs have answered.
 *
 * A write that worked on some legs and not on others takes the legs where it
 * failed out before it is acknowledged, whatever the error was: the legs differ
 * now. One that failed everywhere is an error, and the legs may differ too. A
 * discard that failed leaves nothing behind that anybody may rely on, so it
 * takes no leg out.
 *
 * With handle_errors and without keep_log, writes that a leg lacks are held until
 * the table is reloaded, as dm-mirror does.
 */
#include "hedge.h"

/**
 * struct hedge_write - a write; a struct bio for each leg follows it
 * @hedge: the target
 * @parent: the bio to end
 * @pending: clones that have not ended
 * @sent: bit for each leg that it goes to
 * @failed: bit for each leg on which it failed
 * @status: one of the errors
 */
struct hedge_write {
	struct hedge *hedge;
	struct bio *parent;
	atomic_t pending;
	unsigned long sent;
	unsigned long failed;
	blk_status_t status;
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

static void end_write(struct bio *bio, blk_status_t status)
{
	bio->bi_status = status;
	bio_endio(bio);
}

static blk_status_t held_status(struct hedge *h)
{
	return dm_noflush_suspending(h->ti) ? BLK_STS_DM_REQUEUE :
					      BLK_STS_IOERR;
}

/* Holds a write until the table is reloaded; ends it if that is under way. */
static void hold(struct hedge *h, struct bio *bio)
{
	unsigned long flags;
	bool suspending;

	spin_lock_irqsave(&h->wait_lock, flags);
	suspending = h->suspending;
	if (!suspending) {
		bio_list_add(&h->held, bio);
		h->nr_held++;
	}
	spin_unlock_irqrestore(&h->wait_lock, flags);
	if (suspending)
		end_write(bio, held_status(h));
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
	h->nr_held = 0;
	spin_unlock_irq(&h->wait_lock);
	while ((bio = bio_list_pop(&held)))
		end_write(bio, held_status(h));
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

/* Whether a write that failed somewhere may have left the legs different. */
static bool diverges(const struct hedge_write *w)
{
	switch (bio_op(w->parent)) {
	case REQ_OP_DISCARD:
	case REQ_OP_SECURE_ERASE:
		return false;
	case REQ_OP_WRITE_ZEROES:
		return w->status != BLK_STS_NOTSUPP || w->failed != w->sent;
	default:
		return true;
	}
}

/* All legs have answered, and not all with success. Takes the parent. */
static void write_failed(struct hedge_write *w)
{
	struct bio *parent = w->parent;
	struct hedge *h = w->hedge;
	bool flush = !parent->bi_iter.bi_size;
	unsigned int i;

	if (!diverges(w)) {
		end_write(parent, w->status);
		return;
	}
	/* A leg that cannot write zeroes is not a leg that has failed. */
	if (w->failed == w->sent || w->status == BLK_STS_NOTSUPP) {
		WRITE_ONCE(h->diverged, true);
		end_write(parent, w->status);
		return;
	}
	for_each_set_bit(i, &w->failed, h->nr_legs)
		hedge_leg_out(&h->leg[i], flush ? HEDGE_FLUSH_FAILED :
						  HEDGE_WRITE_FAILED);
	/* Another write may have taken out the legs on which this one worked. */
	if (!(w->sent & ~w->failed & READ_ONCE(h->live))) {
		WRITE_ONCE(h->diverged, true);
		end_write(parent, w->status);
	} else if (holds(h)) {
		hold(h, parent);
	} else {
		end_write(parent, BLK_STS_OK);
	}
}

static void clone_endio(struct bio *clone)
{
	struct hedge_write *w = clone->bi_private;
	blk_status_t status = clone->bi_status;

	rcu_read_lock();
	if (unlikely(status)) {
		set_bit(clone - write_clone(w, 0), &w->failed);
		WRITE_ONCE(w->status, status);
	}
	if (atomic_dec_and_test(&w->pending)) {
		if (likely(!w->failed))
			end_write(w->parent, BLK_STS_OK);
		else
			write_failed(w);
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

/**
 * hedge_write_map - take a write, flush, discard or write-zeroes
 * @h: the target
 * @bio: device-mapper's clone
 *
 * Context: process. Sleeps only for a tag of a leg, and not at all with
 * REQ_NOWAIT: then the workers of the legs submit.
 *
 * Return: DM_MAPIO_SUBMITTED.
 */
int hedge_write_map(struct hedge *h, struct bio *bio)
{
	struct hedge_write *w = dm_per_bio_data(bio, h->ti->per_io_data_size);
	unsigned long sent;
	unsigned int i;

	if (unlikely(holds(h))) {
		hold(h, bio);
		return DM_MAPIO_SUBMITTED;
	}
	w->hedge = h;
	w->parent = bio;
	w->sent = READ_ONCE(h->live);
	w->failed = 0;
	w->status = BLK_STS_OK;
	if (unlikely(clone_all(w, bio))) {
		/* Only encryption or integrity data would need memory. */
		end_write(bio, BLK_STS_RESOURCE);
		return DM_MAPIO_SUBMITTED;
	}
	if (!(bio->bi_opf & REQ_NOWAIT)) {
		submit_all(w, bio);
		return DM_MAPIO_SUBMITTED;
	}
	sent = w->sent;
	for_each_set_bit(i, &sent, h->nr_legs)
		hedge_leg_send_bio(&h->leg[i], write_clone(w, i));
	return DM_MAPIO_SUBMITTED;
}
