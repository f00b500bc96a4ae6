// SPDX-License-Identifier: GPL-2.0
/*
 * Which legs hold which writes.
 *
 *	          a write, a flush, a repair or a
 *	          copy failed, or "fail"              all copied, and flushed
 *	   full ---------------------------> out        +-----> full
 *	     |                                | reinstate |
 *	     |  a write failed everywhere     v           |
 *	     +-----------------------------> partial -----+
 *
 * A full leg holds every acknowledged write; there is always one. A partial leg is
 * live too, but misses the regions that have a bit in leg->missed: it is neither
 * read nor written there until recovery has copied them. A leg that is out is
 * neither read nor written at all; what it misses begins with all regions that
 * are not clean, and grows with each region that is opened. As no region is
 * cleaned while a leg is out, a write to an open region adds nothing.
 *
 * At the start the log tells which regions are in sync. In the others the default
 * leg is taken to be right, and all others miss them. A table that replaces one of
 * the same device takes over what that one knew instead: which legs were out or
 * partial and what they missed. A leg that is new in it misses everything.
 *
 * All of this changes in the region worker only (and before the target gets I/O).
 * Map and completions read hedge->live, hedge->partial and the bitmaps without a
 * lock. A leg's bit in missed is cleared only while its region is closed and no
 * write is pending there, so a write that counts in its region sees it fixed. It
 * is set before the leg becomes partial, so who sees that sees the bit.
 *
 * hedge->vouched are the legs that are on record as full. A write that one of them
 * lacks is acknowledged only by the worker, after hedge_sync_record().
 */
#include "hedge.h"

static unsigned long full_legs(const struct hedge *h)
{
	return h->live & ~h->partial;
}

static void choose_default(struct hedge *h)
{
	unsigned long full = full_legs(h);

	if (!(full & BIT(h->default_leg)))
		WRITE_ONCE(h->default_leg, __ffs(full));
}

static void leg_misses(struct hedge_leg *leg, region_t region)
{
	leg->hedge->whole &= ~BIT(leg->index);
	if (!test_and_set_bit(region, leg->missed))
		WRITE_ONCE(leg->nr_missed, leg->nr_missed + 1);
}

static bool missed_by_any(struct hedge *h, region_t region)
{
	unsigned int i;

	for (i = 0; i < h->nr_legs; i++)
		if (test_bit(region, h->leg[i].missed))
			return true;
	return false;
}

/**
 * hedge_sync_missed_live - whether a leg that is not out misses a region
 * @h: the target
 * @region: the region
 *
 * Context: the region worker, or before the target gets I/O.
 */
bool hedge_sync_missed_live(struct hedge *h, region_t region)
{
	unsigned long live = h->live;
	unsigned int i;

	for_each_set_bit(i, &live, h->nr_legs)
		if (test_bit(region, h->leg[i].missed))
			return true;
	return false;
}

/* Has the log count a region as in sync if no leg misses it. */
static void tell_log(struct hedge *h, region_t region)
{
	struct dm_dirty_log_type *type = h->log->type;
	bool was = type->in_sync(h->log, region, 1) == 1;
	bool is = !missed_by_any(h, region);

	/* It would count a region twice that was in sync already. */
	if (was != is)
		type->set_region_sync(h->log, region, is);
}

/**
 * hedge_sync_usable_in - legs that may serve a read while some are partial
 * @h: the target
 * @sector: where it begins, as map got it
 * @usable: the live legs
 * @partial: which of them are partial
 *
 * Context: any.
 *
 * Return: bit for each leg; never empty.
 */
u32 hedge_sync_usable_in(struct hedge *h, sector_t sector, unsigned long usable,
			 unsigned long partial)
{
	region_t region;
	unsigned int i;

	/* Pairs with the barrier in hedge_sync_diverged(). */
	smp_rmb();
	region = dm_target_offset(h->ti, sector) >> h->region_shift;
	for_each_set_bit(i, &partial, h->nr_legs)
		if (test_bit(region, h->leg[i].missed))
			usable &= ~BIT(i);
	/* The bits of a region may have changed since. */
	return usable ?: BIT(READ_ONCE(h->default_leg));
}

/**
 * hedge_sync_targets - legs that a write goes to
 * @h: the target
 * @first: its first region, in which it counts
 * @nr: how many; 0 for a flush
 *
 * A write of many regions goes to partial legs as well: it does no harm in those
 * that they miss.
 *
 * Context: any.
 *
 * Return: bit for each leg.
 */
u32 hedge_sync_targets(struct hedge *h, region_t first, region_t nr)
{
	unsigned long partial, targets = hedge_live_and_partial(h, &partial);
	unsigned int i;

	if (likely(!partial) || nr != 1)
		return targets;
	/* Pairs with the barrier in hedge_sync_diverged(). */
	smp_rmb();
	for_each_set_bit(i, &partial, h->nr_legs)
		if (test_bit(first, h->leg[i].missed))
			targets &= ~BIT(i);
	return targets ?: BIT(READ_ONCE(h->default_leg));
}

/*
 * What was copied from a leg that has dropped its cache since may be older than what others
 * hold: it is copied again, and who had everything and was rewritten from it goes out too.
 */
static void doubt_copies(struct hedge_leg *leg)
{
	struct hedge *h = leg->hedge;
	unsigned long partial = h->partial, rewritten = xchg(&leg->rewritten, 0);
	region_t region;
	unsigned int i;

	for_each_set_bit(i, &partial, h->nr_legs) {
		for_each_set_bit(region, h->open, h->nr_regions) {
			leg_misses(&h->leg[i], region);
			tell_log(h, region);
			cond_resched();
		}
	}
	if (partial)
		hedge_recover_again(h);
	for_each_set_bit(i, &rewritten, h->nr_legs)
		/* There is no other: who wrote that is told with a flush. */
		if (!hedge_sync_out(&h->leg[i], HEDGE_SYNC_FAILED))
			WRITE_ONCE(h->untold, true);
}

/**
 * hedge_sync_out - take a leg out: it lacks a write that others have
 * @leg: the leg
 * @why: what has failed on it
 *
 * When this returns no new read or write goes to the leg. What it lacks may be
 * acknowledged only after hedge_sync_record().
 *
 * Context: the region worker.
 *
 * Return: false if no other leg holds everything; then it stays.
 */
bool hedge_sync_out(struct hedge_leg *leg, enum hedge_health why)
{
	struct hedge *h = leg->hedge;
	region_t region;
	bool lost;

	hedge_leg_health(leg, why);
	if (!(h->live & BIT(leg->index)))
		return true;
	if (!(full_legs(h) & ~BIT(leg->index)))
		return false;
	spin_lock_irq(&h->wait_lock);
	WRITE_ONCE(h->live, h->live & ~BIT(leg->index));
	spin_unlock_irq(&h->wait_lock);
	/* Who sees it live sees it partial: hedge_live_and_partial(). */
	smp_wmb();
	WRITE_ONCE(h->partial, h->partial & ~BIT(leg->index));
	choose_default(h);
	/* It had to be while this one was in. */
	h->flushed = false;
	lost = test_and_clear_bit(leg->index, &h->unflushed) ||
	       why == HEDGE_FLUSH_FAILED;
	if (lost && leg->index == h->recover.source)
		h->recover.stale = true;
	/* It lacks all that is not clean anyhow. What is still out may fail after it is back. */
	leg->io->left = hedge_leg_io_late(leg);
	for_each_set_bit(region, h->open, h->nr_regions) {
		leg_misses(leg, region);
		tell_log(h, region);
		cond_resched();
	}
	DMERR("%s: leg %u (%s) is out", dm_table_device_name(h->ti->table),
	      leg->index, leg->dev->name);
	hedge_leg_changed(leg);
	if (lost)
		doubt_copies(leg);
	if (READ_ONCE(h->waiting))
		hedge_wait_dispatch(h);
	return true;
}

/**
 * hedge_sync_rewritten - a leg that has everything was rewritten from another one
 * @source: that one
 * @legs: bit for each leg that was
 *
 * A flush that is out now may tell later that the source had dropped its cache.
 *
 * Context: process.
 */
void hedge_sync_rewritten(struct hedge_leg *source, unsigned long legs)
{
	unsigned int i;

	if (!hedge_write_flushes_out(source->hedge))
		return;
	for_each_set_bit(i, &legs, HEDGE_MAX_LEGS)
		set_bit(i, &source->rewritten);
}

/**
 * hedge_sync_judged - forget who was rewritten if no flush is out that may tell of it
 * @h: the target
 *
 * Context: the region worker.
 */
void hedge_sync_judged(struct hedge *h)
{
	unsigned int i;

	/* One that has failed counts as out until its leg is: in this order. */
	if (hedge_write_flushes_out(h) || READ_ONCE(h->unflushed))
		return;
	for (i = 0; i < h->nr_legs; i++)
		WRITE_ONCE(h->leg[i].rewritten, 0);
}

/**
 * hedge_sync_opened - a region that was not open is going to be written to
 * @h: the target
 * @region: the region
 *
 * Context: the region worker.
 */
void hedge_sync_opened(struct hedge *h, region_t region)
{
	unsigned long out = ~h->live & (BIT(h->nr_legs) - 1);
	unsigned int i;

	if (likely(!out))
		return;
	for_each_set_bit(i, &out, h->nr_legs)
		leg_misses(&h->leg[i], region);
	tell_log(h, region);
}

/**
 * hedge_sync_diverged - the legs may differ, and no write says which is right
 * @h: the target
 * @first: the first region
 * @nr: how many
 *
 * The default leg is taken to be right. When this returns no new read goes to
 * another leg there.
 *
 * Context: the region worker.
 */
void hedge_sync_diverged(struct hedge *h, region_t first, region_t nr)
{
	region_t region;
	unsigned int i;

	for (region = first; region < first + nr; region++) {
		for (i = 0; i < h->nr_legs; i++)
			if (i != h->default_leg)
				leg_misses(&h->leg[i], region);
		tell_log(h, region);
		cond_resched();
	}
	/* Pairs with the barrier in hedge_sync_usable_in(). */
	smp_wmb();
	WRITE_ONCE(h->partial, h->live & ~BIT(h->default_leg));
	hedge_recover_again(h);
}

/**
 * hedge_sync_unflushed - a flush has failed on all legs
 * @h: the target
 *
 * Each may have lost other writes of those that it had in its cache.
 *
 * Context: the region worker.
 */
void hedge_sync_unflushed(struct hedge *h)
{
	region_t region;

	for_each_set_bit(region, h->open, h->nr_regions)
		hedge_sync_diverged(h, region, 1);
	/* What is being copied may be there no more, or has gone with a cache. */
	h->recover.stale = true;
	h->flushed = false;
	WRITE_ONCE(h->losses, h->losses + 1);
	/* Pairs with the barrier in flush_holds(). */
	smp_wmb();
	WRITE_ONCE(h->unflushed, 0);
}

/**
 * hedge_sync_record - put on record which legs hold every write
 * @h: the target
 *
 * A leg that has become full is vouched for before it is on record, and one that
 * is not any more until after, so that there is no moment at which a write that
 * it lacks is acknowledged against the record.
 *
 * Context: the region worker. May sleep.
 *
 * Return: 0, or a negative error: then nothing may be acknowledged that a leg on
 * record lacks.
 */
int hedge_sync_record(struct hedge *h)
{
	int r;

	if (likely(h->vouched == full_legs(h) && !hedge_label_due(h)))
		return 0;
	WRITE_ONCE(h->vouched, h->vouched | full_legs(h));
	r = hedge_label_record(h);
	if (r)
		return r;
	WRITE_ONCE(h->vouched, full_legs(h));
	return 0;
}

/**
 * hedge_sync_complete - let partial legs that miss nothing any more become full
 * @h: the target
 *
 * As with a region that is cleaned, flushes end first that were out when they were flushed:
 * one that fails may have dropped what was copied.
 *
 * Context: the region worker. May sleep.
 */
void hedge_sync_complete(struct hedge *h)
{
	unsigned long whole = 0;
	unsigned int i;

	for_each_set_bit(i, &h->partial, h->nr_legs)
		if (!h->leg[i].nr_missed)
			whole |= BIT(i);
	/* Not at once after a flush that failed, or a bad leg is copied for ever. */
	if (!whole || h->lost || !hedge_write_flushes_ended(h))
		return;
	if (whole & ~h->whole) {
		if (hedge_region_flush_legs(h))
			return;
		h->whole = whole & h->live;
		hedge_write_flushes_mark(h);
		/* Again with the next sweep. */
		if (!hedge_write_flushes_ended(h))
			return;
	}
	/* After a flush that failed another may succeed, and mean nothing. */
	if (READ_ONCE(h->unflushed) & h->live)
		return;
	WRITE_ONCE(h->partial, h->partial & ~whole);
	if (hedge_sync_record(h)) {
		/* Again with the next sweep, if others are there to say so. */
		WRITE_ONCE(h->partial, h->partial | (whole & h->live));
		return;
	}
	whole &= h->live;
	for_each_set_bit(i, &whole, h->nr_legs) {
		DMINFO("%s: leg %u (%s) is in sync",
		       dm_table_device_name(h->ti->table), i,
		       h->leg[i].dev->name);
		hedge_leg_changed(&h->leg[i]);
	}
	if (READ_ONCE(h->waiting))
		hedge_wait_dispatch(h);
}

/**
 * hedge_sync_copied - a region was copied to legs that missed it
 * @h: the target
 * @region: the region, which is closed
 * @legs: bit for each of these legs
 *
 * Context: the region worker. May sleep.
 */
void hedge_sync_copied(struct hedge *h, region_t region, unsigned long legs)
{
	unsigned int i;

	for_each_set_bit(i, &legs, h->nr_legs)
		if (test_and_clear_bit(region, h->leg[i].missed))
			WRITE_ONCE(h->leg[i].nr_missed,
				   h->leg[i].nr_missed - 1);
	tell_log(h, region);
	hedge_sync_complete(h);
}

/* Whether a request makes sense after those that the worker has yet to do. */
static int check_request(struct hedge *h, unsigned int leg, bool fail)
{
	const char *name = dm_table_device_name(h->ti->table);
	unsigned long live = (READ_ONCE(h->live) & ~h->to_fail) |
			     h->to_reinstate;

	if (h->recover.stopped) {
		DMERR("%s: the device is being suspended", name);
		return -EBUSY;
	}
	if (fail && !(live & BIT(leg))) {
		DMERR("%s: leg %u is out already", name, leg);
		return -EINVAL;
	}
	if (fail && !(READ_ONCE(h->live) & ~READ_ONCE(h->partial) &
		      ~h->to_fail & ~BIT(leg))) {
		DMERR("%s: leg %u is the only one that holds everything", name,
		      leg);
		return -EINVAL;
	}
	if (!h->leg[leg].dev) {
		DMERR("%s: leg %u is missing", name, leg);
		return -EINVAL;
	}
	if (!fail && live & BIT(leg)) {
		DMERR("%s: leg %u is not out", name, leg);
		return -EINVAL;
	}
	if (!fail && h->read_only) {
		DMERR("%s: leg %u cannot be copied to: the device is read-only",
		      name, leg);
		return -EROFS;
	}
	return 0;
}

/**
 * hedge_sync_request - ask for a leg to be taken out, or to come back
 * @h: the target
 * @leg: the leg
 * @fail: which of both
 *
 * Context: process. The region worker does it.
 *
 * Return: 0, -EINVAL or -EROFS if that cannot be, -EBUSY while the target is
 * suspended.
 */
int hedge_sync_request(struct hedge *h, unsigned int leg, bool fail)
{
	int r;

	/* The worker is woken under the lock too: postsuspend waits for it. */
	spin_lock_irq(&h->region_lock);
	r = check_request(h, leg, fail);
	if (!r && fail) {
		WRITE_ONCE(h->to_fail, h->to_fail | BIT(leg));
		WRITE_ONCE(h->to_reinstate, h->to_reinstate & ~BIT(leg));
		/* The worker may be waiting for that very leg. */
		wake_up(&h->drained);
	} else if (!r) {
		/* A "fail" that has not been done yet is withdrawn. */
		WRITE_ONCE(h->to_fail, h->to_fail & ~BIT(leg));
		WRITE_ONCE(h->to_reinstate, h->to_reinstate | BIT(leg));
	}
	if (!r)
		hedge_region_kick(h);
	spin_unlock_irq(&h->region_lock);
	return r;
}

static void misses_all(struct hedge_leg *leg)
{
	struct hedge *h = leg->hedge;
	region_t region;

	for (region = 0; region < h->nr_regions; region++) {
		leg_misses(leg, region);
		tell_log(h, region);
		cond_resched();
	}
}

/**
 * hedge_sync_distrust - legs are not what the old table has left
 * @h: the target, which has taken over from an old one
 * @legs: bit for each of these legs
 *
 * Context: process, before the target gets I/O and before the log is read. May
 * sleep.
 */
void hedge_sync_distrust(struct hedge *h, unsigned long legs)
{
	region_t region;
	unsigned int i;

	h->live &= ~legs;
	h->partial &= h->live;
	for_each_set_bit(i, &legs, h->nr_legs) {
		for (region = 0; region < h->nr_regions; region++) {
			leg_misses(&h->leg[i], region);
			cond_resched();
		}
	}
	if (full_legs(h))
		choose_default(h);
}

/**
 * hedge_sync_forget - go by labels again
 * @h: the target, which has taken over from an old one and whose legs others have
 *     written to since
 *
 * Context: process, before the target gets I/O and before the log is read. May
 * sleep.
 */
void hedge_sync_forget(struct hedge *h)
{
	unsigned int i;

	h->known = false;
	h->live = 0;
	h->partial = 0;
	for (i = 0; i < h->nr_legs; i++) {
		if (h->leg[i].dev)
			h->live |= BIT(i);
		bitmap_zero(h->leg[i].missed, h->nr_regions);
		h->leg[i].nr_missed = 0;
	}
	bitmap_zero(h->open, h->nr_regions);
	memset(h->region, 0, array_size(h->nr_regions, sizeof(*h->region)));
}

/* What is in flight to it drains as its regions are closed to be copied. */
static void reinstate(struct hedge_leg *leg)
{
	struct hedge *h = leg->hedge;
	int same;

	if (h->live & BIT(leg->index))
		return;
	same = hedge_label_look_again(leg);
	if (!same)
		misses_all(leg);
	/* From now on it holds a mixture. */
	if (same < 0 || hedge_label_spoil_leg(leg)) {
		DMERR("%s: leg %u (%s) does not come back",
		      dm_table_device_name(h->ti->table), leg->index,
		      leg->dev->name);
		hedge_leg_health(leg, HEDGE_SYNC_FAILED);
		return;
	}
	WRITE_ONCE(leg->health, 0);
	h->whole &= ~BIT(leg->index);
	clear_bit(leg->index, &h->unflushed);
	WRITE_ONCE(h->partial, h->partial | BIT(leg->index));
	/* Who sees it live sees it partial, or that it was: hedge_live_and_partial(). */
	smp_wmb();
	WRITE_ONCE(h->returns, h->returns + 1);
	/* Who sees it live sees that it came back. */
	smp_wmb();
	spin_lock_irq(&h->wait_lock);
	WRITE_ONCE(h->live, h->live | BIT(leg->index));
	spin_unlock_irq(&h->wait_lock);
	DMINFO("%s: leg %u (%s) is back, and misses %llu regions",
	       dm_table_device_name(h->ti->table), leg->index, leg->dev->name,
	       (unsigned long long)leg->nr_missed);
	hedge_leg_changed(leg);
	hedge_recover_again(h);
	hedge_sync_complete(h);
	if (h->live == BIT(h->nr_legs) - 1)
		hedge_write_unhold(h);
}

/* Only now: check_request() counts on what is not done yet. */
static void done(struct hedge *h, unsigned long *requests, unsigned int leg)
{
	spin_lock_irq(&h->region_lock);
	WRITE_ONCE(*requests, *requests & ~BIT(leg));
	spin_unlock_irq(&h->region_lock);
}

/**
 * hedge_sync_requests - do what hedge_sync_request() was asked for
 * @h: the target
 *
 * Context: the region worker.
 */
void hedge_sync_requests(struct hedge *h)
{
	unsigned int i;

	for (i = 0; i < h->nr_legs; i++) {
		if (READ_ONCE(h->to_fail) & BIT(i)) {
			hedge_sync_out(&h->leg[i], HEDGE_TAKEN_OUT);
			done(h, &h->to_fail, i);
		}
		/* Else when that has ended: it might write to what is in sync by then. */
		if (READ_ONCE(h->to_reinstate) & BIT(i) &&
		    !hedge_recover_is_late(h, i)) {
			reinstate(&h->leg[i]);
			done(h, &h->to_reinstate, i);
		}
	}
}

/**
 * hedge_sync_init - make the bitmaps
 * @h: the target
 *
 * Context: process. May sleep.
 *
 * Return: 0 or -ENOMEM; hedge_sync_exit() is due in both cases.
 */
int hedge_sync_init(struct hedge *h)
{
	unsigned int i;

	for (i = 0; i < h->nr_legs; i++) {
		h->leg[i].missed = kvcalloc(BITS_TO_LONGS(h->nr_regions),
					    sizeof(long), GFP_KERNEL);
		if (!h->leg[i].missed)
			return -ENOMEM;
	}
	return 0;
}

/**
 * hedge_sync_exit - undo hedge_sync_init()
 * @h: the target
 *
 * Context: process. May sleep.
 */
void hedge_sync_exit(struct hedge *h)
{
	unsigned int i;

	for (i = 0; i < h->nr_legs; i++)
		kvfree(h->leg[i].missed);
}

/* The leg of the old table that is this one, or NULL. */
static const struct hedge_leg *same_leg(const struct hedge *old,
					const struct hedge_leg *leg)
{
	unsigned int i;

	for (i = 0; i < old->nr_legs && leg->dev; i++)
		if (old->leg[i].dev &&
		    old->leg[i].dev->bdev->bd_dev == leg->dev->bdev->bd_dev &&
		    old->leg[i].offset == leg->offset)
			return &old->leg[i];
	return NULL;
}

/**
 * hedge_sync_shares_leg - whether a target has a leg of another
 * @h: the one
 * @old: the other
 */
bool hedge_sync_shares_leg(const struct hedge *h, const struct hedge *old)
{
	unsigned int i;

	for (i = 0; i < h->nr_legs; i++)
		if (same_leg(old, &h->leg[i]))
			return true;
	return false;
}

/* Whether a bitmap of the old table has a bit in a region of the new one. */
static bool old_bit(const struct hedge *h, const struct hedge *old,
		    const unsigned long *bits, region_t region)
{
	sector_t from = (sector_t)region << h->region_shift;
	sector_t to = from + h->region_size - 1;
	region_t first = from >> old->region_shift;
	region_t last = min_t(region_t, to >> old->region_shift,
			      old->nr_regions - 1);

	return first <= last && find_next_bit(bits, last + 1, first) <= last;
}

/* Whether a part of a region was not in the old table, which was shorter. */
static bool beyond(const struct hedge *h, const struct hedge *old,
		   region_t region)
{
	return (((sector_t)region + 1) << h->region_shift) > old->ti->len &&
	       old->ti->len < h->ti->len;
}

/*
 * What the legs of the new table were in the old one: @was, live, partial.
 * Returns whether any of them was in it.
 */
static bool inherit_legs(struct hedge *h, const struct hedge *old,
			 const struct hedge_leg **was)
{
	unsigned long known = 0;
	unsigned int i;

	for (i = 0; i < h->nr_legs; i++) {
		was[i] = same_leg(old, &h->leg[i]);
		if (was[i])
			known |= BIT(i);
	}
	for (i = 0; i < h->nr_legs && known; i++) {
		/* Another disk may be behind the same device by now. */
		if (was[i] && !hedge_label_is_same(&h->leg[i], was[i]))
			was[i] = NULL;
		if (!was[i]) {
			h->partial |= h->live & BIT(i);
			continue;
		}
		h->leg[i].health = READ_ONCE(was[i]->health);
		if (!(old->live & BIT(was[i]->index)))
			h->live &= ~BIT(i);
		else if (old->partial & BIT(was[i]->index))
			h->partial |= BIT(i);
	}
	h->partial &= h->live;
	return known;
}

static void inherit_default(struct hedge *h, const struct hedge *old,
			    const struct hedge_leg **was)
{
	unsigned int i;

	choose_default(h);
	for (i = 0; i < h->nr_legs; i++)
		if (was[i] && was[i]->index == old->default_leg &&
		    full_legs(h) & BIT(i))
			h->default_leg = i;
}

static void inherit_region(struct hedge *h, const struct hedge *old,
			   const struct hedge_leg **was, region_t region)
{
	bool resync = beyond(h, old, region) && !h->nosync;
	unsigned int i;

	for (i = 0; i < h->nr_legs; i++)
		if (!was[i] || old_bit(h, old, was[i]->missed, region) ||
		    (resync && i != h->default_leg))
			leg_misses(&h->leg[i], region);
	/* Its legs were not flushed since it was written to. */
	if (old_bit(h, old, old->open, region))
		__set_bit(region, h->open);
}

static void inherit(struct hedge *h, const struct hedge *old)
{
	const struct hedge_leg *was[HEDGE_MAX_LEGS];
	region_t region;
	unsigned int i;

	if (!inherit_legs(h, old, was))
		return;
	h->known = true;
	if (full_legs(h))
		inherit_default(h, old, was);
	for (region = 0; region < h->nr_regions; region++) {
		inherit_region(h, old, was, region);
		cond_resched();
	}
	/* In regions that are new only the default leg is right. */
	for (i = 0; i < h->nr_legs; i++)
		if (h->live & BIT(i) && h->leg[i].nr_missed)
			h->partial |= BIT(i);
}

/*
 * An old table that was resumed in vain had no I/O, and may have lacked legs that the
 * table before it had; that one has left all that it knew on labels and in the log.
 */
static bool labels_know_more(const struct hedge *h, const struct hedge *old)
{
	return h->labels && old->labels && !READ_ONCE(old->ran);
}

/**
 * hedge_sync_inherit - take over what the old table of the device knew
 * @h: the target
 *
 * This comes before anything that may fail: if this table is not resumed after
 * all, the next one takes over from it, as the old one is gone by then.
 *
 * Context: process, before the target gets I/O. May sleep.
 *
 * Return: 0, or -EINVAL if no leg of the new table has all writes.
 */
int hedge_sync_inherit(struct hedge *h)
{
	struct hedge *old;

	hedge_leg_targets_lock();
	old = hedge_leg_predecessor(h);
	if (!h->known && old && !labels_know_more(h, old))
		inherit(h, old);
	/* Whoever wrote what was lost flushes it here. */
	if (old && READ_ONCE(old->untold))
		WRITE_ONCE(h->untold, true);
	hedge_leg_targets_unlock();
	if (full_legs(h))
		return 0;
	DMERR("%s: no leg of the new table holds all that was written to the old one",
	      dm_table_device_name(h->ti->table));
	return -EINVAL;
}

/*
 * Whether a leg that is not full misses a region: the log tells if it was kept since
 * the leg was last full, else it misses all.
 */
static bool misses_by_log(struct hedge *h, unsigned int leg, region_t region)
{
	struct dm_dirty_log_type *type = h->log->type;

	return !(hedge_label_told(h) & BIT(leg)) ||
	       type->in_sync(h->log, region, 1) != 1 ||
	       type->is_clean(h->log, region) != 1;
}

/*
 * As labels and log have it. Legs that were full when the set was closed are equal,
 * though the log has regions marked for the sake of others.
 */
static void start_labelled(struct hedge *h, region_t region)
{
	bool same = h->log->type->in_sync(h->log, region, 1) == 1 ||
		    hedge_label_equal(h);
	unsigned long full = full_legs(h);
	unsigned int i;

	for (i = 0; i < h->nr_legs; i++)
		if (full & BIT(i) ? !same && i != h->default_leg :
				    misses_by_log(h, i, region))
			leg_misses(&h->leg[i], region);
	tell_log(h, region);
}

static void partial_by_label(struct hedge *h)
{
	unsigned int i;

	for (i = 0; i < h->nr_legs; i++)
		if (h->live & BIT(i) && h->leg[i].nr_missed)
			h->partial |= BIT(i);
	hedge_recover_again(h);
}

/**
 * hedge_sync_start - make what the log and we know of the legs one
 * @h: the target, whose log was read
 *
 * What was taken over from an old table is newer than the log, which tells the
 * rest. But if this table was resumed in vain, somebody else may have used the legs
 * with this log since then: labels tell, and without them only the log.
 *
 * Context: process, before the target gets I/O. May sleep.
 */
void hedge_sync_start(struct hedge *h)
{
	/* What was taken over is in the log since the last time. */
	bool again = h->vouched;
	region_t region;

	choose_default(h);
	for (region = 0; region < h->nr_regions; region++) {
		if (!h->known && h->labels)
			start_labelled(h, region);
		else if ((!h->known || (again && !h->labels)) &&
			 h->log->type->in_sync(h->log, region, 1) != 1)
			hedge_sync_diverged(h, region, 1);
		else
			tell_log(h, region);
		cond_resched();
	}
	if (!h->known && h->labels)
		partial_by_label(h);
	h->known = true;
	h->vouched = full_legs(h);
}
