// SPDX-License-Identifier: GPL-2.0
/*
 * I/O of our own to the legs: labels and flushes.
 *
 * A leg that hangs must not hold up the region worker, which is to take it out when
 * its administrator says so. Each leg has therefore room for one I/O, which the leg's
 * worker submits and which its waiter may leave behind: a read when patience is at an
 * end, a write or a flush when the leg is to be taken out and can be. What was left
 * behind belongs to the leg until it ends; the next write or flush there waits for it
 * first, and fails if it did: the leg may be in still, when others went out meanwhile.
 *
 * All functions but the completion are called by one at a time: the region worker, or
 * who runs while it is idle (preresume, postsuspend). hedge->leg_ios counts what is out:
 * the destructor waits for all of it, postsuspend for writes, as a label must not
 * change under the next table.
 *
 * Nothing is allocated. Waiting is idle: no hung task when it is the device that hangs.
 */
#include "hedge.h"

static void leg_io_endio(struct bio *bio)
{
	struct hedge_leg *leg = bio->bi_private;
	struct hedge *h = leg->hedge;

	/* The target may go with the last one, but not before this section ends. */
	rcu_read_lock();
	/*
	 * Before users may rely on flushes of theirs that come after it. Labels are
	 * written after a flush: what failed may have been that.
	 */
	if (op_is_write(bio_op(bio)) && bio->bi_status &&
	    bio->bi_status != BLK_STS_NOTSUPP)
		set_bit(leg->index, &h->unflushed);
	bio_uninit(bio);
	/* Pairs with the acquire in hedge_leg_io_late(). */
	smp_store_release(&leg->io->ended, true);
	atomic_dec(&h->leg_ios);
	wake_up(&h->drained);
	rcu_read_unlock();
}

/**
 * hedge_leg_io_late - whether an I/O of ours is out on a leg
 * @leg: the leg
 *
 * Context: see above.
 */
bool hedge_leg_io_late(struct hedge_leg *leg)
{
	struct hedge_leg_io *io = leg->io;

	/* Pairs with the release in leg_io_endio(). */
	if (io->out && smp_load_acquire(&io->ended))
		io->out = false;
	return io->out;
}

/**
 * hedge_leg_io_start - hand an I/O of ours to the worker of a leg
 * @leg: the leg, which has none out
 * @opf: what to do
 * @sector: where on its device
 * @data: what to write, or room for what is read: the I/O's until that has ended
 * @bytes: its size; 0 for a flush
 *
 * Context: see above. Does not wait for the device.
 */
void hedge_leg_io_start(struct hedge_leg *leg, blk_opf_t opf, sector_t sector,
			void *data, unsigned int bytes)
{
	struct hedge_leg_io *io = leg->io;
	struct bio *bio = &io->bio;

	io->out = true;
	io->ended = false;
	io->left = false;
	bio_init(bio, leg->dev->bdev, &io->bvec, 1, opf | REQ_SYNC | REQ_META);
	bio->bi_iter.bi_sector = sector;
	bio->bi_private = leg;
	bio->bi_end_io = leg_io_endio;
	if (bytes)
		__bio_add_page(bio, virt_to_page(data), bytes,
			       offset_in_page(data));
	atomic_inc(&leg->hedge->leg_ios);
	hedge_leg_send_bio(leg, bio);
}

/**
 * hedge_leg_io_wait - wait for the I/O that is out
 * @leg: the leg
 * @patience: how long, in jiffies
 *
 * Context: see above. Sleeps.
 *
 * Return: whether it has ended; else it is left behind.
 */
bool hedge_leg_io_wait(struct hedge_leg *leg, unsigned long patience)
{
	wait_event_idle_timeout(leg->hedge->drained, !hedge_leg_io_late(leg),
				patience);
	return !hedge_leg_io_late(leg);
}

/* One that must stay after all, as the last that holds everything, is waited for. */
static bool is_to_go(const struct hedge_leg *leg)
{
	const struct hedge *h = leg->hedge;

	return READ_ONCE(h->to_fail) & BIT(leg->index) &&
	       h->live & ~h->partial & ~BIT(leg->index);
}

static bool wait_unless_failed(struct hedge_leg *leg)
{
	wait_event_idle(leg->hedge->drained,
			!hedge_leg_io_late(leg) || is_to_go(leg));
	return !hedge_leg_io_late(leg);
}

/**
 * hedge_leg_io_claim - wait until a write or a flush can be started
 * @leg: the leg
 *
 * Context: see above. Sleeps while one that was left behind is out.
 *
 * Return: 0, what the device says of that one, or -ECANCELED if the leg is to be taken
 * out and that one is still out.
 */
int hedge_leg_io_claim(struct hedge_leg *leg)
{
	struct hedge_leg_io *io = leg->io;

	if (!wait_unless_failed(leg))
		return -ECANCELED;
	if (!io->left)
		return 0;
	/* It is told once. */
	io->left = false;
	return blk_status_to_errno(io->bio.bi_status);
}

/**
 * hedge_leg_io_end - wait for a write or a flush that was started
 * @leg: the leg
 *
 * Context: see above. Sleeps.
 *
 * Return: what the device says, or -ECANCELED if the leg is to be taken out and the
 * device has not answered: it may or may not do what it was told.
 */
int hedge_leg_io_end(struct hedge_leg *leg)
{
	if (!wait_unless_failed(leg)) {
		leg->io->left = true;
		return -ECANCELED;
	}
	return blk_status_to_errno(leg->io->bio.bi_status);
}

/**
 * hedge_leg_io_settle - wait for writes that were left behind
 * @h: the target
 *
 * Context: postsuspend. Sleeps.
 */
void hedge_leg_io_settle(struct hedge *h)
{
	unsigned int i;

	for (i = 0; i < h->nr_legs; i++) {
		struct bio *bio = &h->leg[i].io->bio;

		/* A flush has no data. */
		if (op_is_write(bio_op(bio)) && bio->bi_vcnt)
			hedge_leg_io_wait(&h->leg[i], MAX_SCHEDULE_TIMEOUT);
	}
}
