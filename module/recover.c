// SPDX-License-Identifier: GPL-2.0
/*
 * Recovery: copying to partial legs what they miss, and rewriting what a leg could
 * not read.
 *
 * One region is worked on at a time. It is closed, which marks it in the log; when
 * no write is pending in it kcopyd copies from a leg that has it; then it is opened
 * again, and the writes that waited go on:
 *
 *	IDLE --close--> DRAINING --no write pending--> COPYING --> COPIED --> IDLE
 *	                                                  |                    ^
 *	                                                  +-------> LATE ------+
 *
 * The region worker takes each of these steps; kcopyd's callback only notes the
 * result and wakes it. When a leg is taken out that the copy may wait for, the region is
 * opened without it: what kcopyd writes there later does no harm, as the legs that it
 * writes to miss the region, or are out. None of them changes that until the copy has
 * ended: no other is begun, and no such leg comes back.
 *
 * The check borrows a closed region, and says before each I/O which leg it is for. The
 * region is opened in the same way when that leg is taken out, and then no other I/O
 * of the check is let in.
 *
 * Rewrites of blocks that could not be read come first. They are copied in the same
 * way, from a leg on which the read worked, and so under a closed region: no write can
 * come between.
 *
 * A region whose source cannot be read is left out, and tried again some seconds
 * later. A leg that cannot be written to goes out.
 *
 * It stops in presuspend: device-mapper does not know of kcopyd's I/O.
 */
#include <linux/module.h>

#include "hedge.h"

#define MAX_REPAIRS 64

#define THROTTLE_TEXT "A percentage of time allocated for resync and check"
DECLARE_DM_KCOPYD_THROTTLE_WITH_MODULE_PARM(resync_throttle, THROTTLE_TEXT);

/**
 * struct repair - a block that could not be read on some legs
 * @list: in recover->repairs
 * @sector: where it is, from the start of the target
 * @count: its size in sectors
 * @legs: bit for each of these legs
 */
struct repair {
	struct list_head list;
	sector_t sector;
	sector_t count;
	unsigned long legs;
};

/*
 * The worker may set to it at once. It cannot come to rest before it was kicked: rest()
 * takes the lock, and a kick that came later could come after its last run.
 */
static void tell_copied(struct hedge *h)
{
	struct hedge_recover *rec = &h->recover;
	unsigned long flags;

	spin_lock_irqsave(&h->region_lock, flags);
	if (rec->state == HEDGE_RECOVER_LATE) {
		/* Pairs with the acquire in hedge_recover_is_late(). */
		smp_store_release(&rec->state, HEDGE_RECOVER_IDLE);
		wake_up(&rec->idle);
	} else {
		/* After what the worker then reads, which it does without the lock. */
		smp_store_release(&rec->state, HEDGE_RECOVER_COPIED);
	}
	hedge_region_kick(h);
	spin_unlock_irqrestore(&h->region_lock, flags);
}

static void copied(int read_error, unsigned long write_error, void *context)
{
	struct hedge *h = context;

	h->recover.read_error = read_error;
	h->recover.write_error = write_error;
	tell_copied(h);
}

static void copy(struct hedge *h)
{
	struct hedge_recover *rec = &h->recover;
	struct dm_io_region from, to[HEDGE_MAX_LEGS];
	struct hedge_leg *leg = &h->leg[rec->source];
	unsigned int i, nr = 0;

	from.bdev = leg->dev->bdev;
	from.sector = leg->offset + rec->sector;
	from.count = rec->count;
	for_each_set_bit(i, &rec->dests, h->nr_legs) {
		leg = &h->leg[i];
		to[nr].bdev = leg->dev->bdev;
		to[nr].sector = leg->offset + rec->sector;
		to[nr].count = rec->count;
		rec->dest[nr++] = i;
	}
	rec->stale = false;
	WRITE_ONCE(rec->state, HEDGE_RECOVER_COPYING);
	dm_kcopyd_copy(rec->kcopyd, &from, nr, to, 0, copied, h);
}

/* Legs that may be read in a region. */
static unsigned long good_legs(struct hedge *h, region_t region)
{
	unsigned long good = h->live;
	unsigned int i;

	for_each_set_bit(i, &h->partial, h->nr_legs)
		if (test_bit(region, h->leg[i].missed))
			good &= ~BIT(i);
	return good;
}

static struct repair *next_repair(struct hedge *h)
{
	struct hedge_recover *rec = &h->recover;
	struct repair *repair;

	spin_lock_irq(&h->region_lock);
	repair = list_first_entry_or_null(&rec->repairs, struct repair, list);
	if (repair) {
		list_del(&repair->list);
		WRITE_ONCE(rec->nr_repairs, rec->nr_repairs - 1);
	}
	spin_unlock_irq(&h->region_lock);
	return repair;
}

/*
 * Chooses whence and whither to copy. Returns false if there is nothing to copy.
 * The region is drained: a leg that failed a write to it is out by now, and must
 * neither be the source nor count as a leg that has everything.
 */
static bool aim(struct hedge *h)
{
	struct hedge_recover *rec = &h->recover;
	unsigned long good = good_legs(h, rec->region);
	/* Who has failed a flush, which may still be out elsewhere, may have lost writes. */
	unsigned long source = good & ~rec->unread & ~READ_ONCE(h->unflushed);

	rec->dests = rec->repair ? good & rec->unread : h->live & ~good;
	/* Again with the next sweep. */
	if (!source)
		rec->failed = true;
	if (!source || !rec->dests)
		return false;
	rec->source = source & BIT(h->default_leg) ? h->default_leg :
						     __ffs(source);
	return true;
}

static bool pick_repair(struct hedge *h)
{
	struct hedge_recover *rec = &h->recover;
	struct repair *repair;

	while ((repair = next_repair(h))) {
		rec->repair = true;
		rec->sector = repair->sector;
		rec->count = repair->count;
		rec->region = repair->sector >> h->region_shift;
		rec->unread = repair->legs;
		kfree(repair);
		if (aim(h))
			return true;
	}
	return false;
}

/* The next region that a partial leg misses, or nr_regions. */
static region_t next_missed(struct hedge *h, region_t from)
{
	region_t next = h->nr_regions;
	unsigned int i;

	for_each_set_bit(i, &h->partial, h->nr_legs)
		next = min_t(region_t, next,
			     find_next_bit(h->leg[i].missed, h->nr_regions,
					   from));
	return next;
}

static bool pick_missed(struct hedge *h)
{
	struct hedge_recover *rec = &h->recover;
	region_t region;

	/* After a flush that failed on all legs that have everything its end decides. */
	if (!h->partial || !(h->live & ~h->partial & ~READ_ONCE(h->unflushed)))
		return false;
	region = next_missed(h, rec->next);
	if (region >= h->nr_regions && !rec->failed)
		region = next_missed(h, 0);
	if (region >= h->nr_regions)
		return false;
	rec->repair = false;
	rec->region = region;
	rec->sector = (sector_t)region << h->region_shift;
	rec->count = min_t(sector_t, h->region_size,
			   h->ti->len - rec->sector);
	rec->unread = 0;
	rec->next = region + 1;
	return true;
}

/* The region that the check wants for itself. */
static bool pick_borrowed(struct hedge *h)
{
	struct hedge_recover *rec = &h->recover;
	s64 wanted;

	spin_lock_irq(&h->region_lock);
	wanted = rec->wanted;
	rec->wanted = -1;
	spin_unlock_irq(&h->region_lock);
	rec->borrowed = wanted >= 0;
	if (rec->borrowed)
		rec->region = wanted;
	return rec->borrowed;
}

static void drop_repairs(struct hedge *h)
{
	struct repair *repair;

	while ((repair = next_repair(h)))
		kfree(repair);
}

/* Begins with the next block or region. Returns false if there is none. */
static bool begin(struct hedge *h)
{
	struct hedge_recover *rec = &h->recover;
	bool stopped;

	spin_lock_irq(&h->region_lock);
	stopped = rec->stopped;
	if (!stopped)
		WRITE_ONCE(rec->state, HEDGE_RECOVER_DRAINING);
	spin_unlock_irq(&h->region_lock);
	if (stopped)
		return false;
	/* Then the legs were not opened to be written to. */
	if (h->read_only) {
		drop_repairs(h);
		if (pick_borrowed(h))
			hedge_check_closed(h, false);
		return false;
	}
	if (pick_borrowed(h) || pick_repair(h) || pick_missed(h)) {
		if (!hedge_region_close(h, rec->region))
			return true;
		rec->failed = true;
		/* Without a log to mark it in nothing may be rewritten. */
		if (rec->borrowed)
			hedge_check_closed(h, false);
	}
	return false;
}

static void rest(struct hedge *h)
{
	spin_lock_irq(&h->region_lock);
	WRITE_ONCE(h->recover.state, HEDGE_RECOVER_IDLE);
	spin_unlock_irq(&h->region_lock);
	wake_up(&h->recover.idle);
}

/* Legs that the copy could not be written to go out. */
static void take_out(struct hedge *h, unsigned long legs)
{
	unsigned int i;

	for_each_set_bit(i, &legs, h->nr_legs)
		hedge_sync_out(&h->leg[i], HEDGE_SYNC_FAILED);
}

/* Legs that had everything were rewritten with what may be old. */
static void lose(struct hedge *h, unsigned long legs)
{
	take_out(h, legs);
	/* There is no other: who wrote that is told with the next flush. */
	if (h->live & legs)
		WRITE_ONCE(h->untold, true);
}

/* The legs that kcopyd could not write to. */
static unsigned long failed_dests(struct hedge_recover *rec)
{
	unsigned long legs = 0;
	unsigned int i;

	for_each_set_bit(i, &rec->write_error, hweight_long(rec->dests))
		legs |= BIT(rec->dest[i]);
	return legs;
}

static void reopen(struct hedge *h)
{
	hedge_sync_record(h);
	hedge_region_reopen(h, h->recover.region);
	rest(h);
}

/*
 * Whether the copy need not be waited for: a leg went out for which it may wait, and all
 * that it writes to are out or miss the region. What is rewritten on legs that have the
 * region must not come after a write by the user.
 */
static bool may_leave(struct hedge *h)
{
	const struct hedge_recover *rec = &h->recover;
	unsigned long legs = rec->dests | BIT(rec->source);

	return legs & ~h->live && !(rec->dests & good_legs(h, rec->region));
}

/*
 * Opens the region of a copy that hangs, or of a check. Returns false if it need be waited
 * for, or has just ended.
 */
static bool leave(struct hedge *h)
{
	struct hedge_recover *rec = &h->recover;
	bool out;

	/* The check says under the lock which leg is next: hedge_recover_use(). */
	spin_lock_irq(&h->region_lock);
	out = rec->state == HEDGE_RECOVER_COPYING && may_leave(h);
	if (out)
		WRITE_ONCE(rec->state, HEDGE_RECOVER_LATE);
	spin_unlock_irq(&h->region_lock);
	if (!out)
		return false;
	/* It writes nothing more, but for what hangs in a leg that is out. */
	if (rec->borrowed)
		take_out(h, READ_ONCE(rec->write_error));
	hedge_sync_record(h);
	hedge_region_reopen(h, rec->region);
	return true;
}

/**
 * hedge_recover_is_late - whether a copy may still write to a leg, or has not been judged
 * @h: the target
 * @leg: the leg, which is out
 *
 * One that was not left behind yet would count as made to a leg that has come back, which
 * may have lost a part of it when it went out.
 *
 * Context: the region worker, which is woken when that has ended.
 */
bool hedge_recover_is_late(struct hedge *h, unsigned int leg)
{
	struct hedge_recover *rec = &h->recover;
	bool late;

	/* The check may change what it writes to. */
	spin_lock_irq(&h->region_lock);
	late = rec->state != HEDGE_RECOVER_IDLE &&
	       rec->state != HEDGE_RECOVER_DRAINING && rec->dests & BIT(leg);
	spin_unlock_irq(&h->region_lock);
	return late;
}

/* Returns false if the copy is made once more, from another leg. */
static bool finish(struct hedge *h)
{
	struct hedge_recover *rec = &h->recover;

	if (rec->borrowed) {
		take_out(h, rec->write_error);
	} else if (rec->read_error) {
		/* Of a region that is copied in pieces kcopyd may tell both. */
		if (rec->write_error)
			take_out(h, failed_dests(rec));
		hedge_leg_health(&h->leg[rec->source], HEDGE_READ_FAILED);
		/* Another leg may have it. */
		rec->unread |= BIT(rec->source);
		if (!rec->repair && aim(h)) {
			copy(h);
			return false;
		}
		rec->failed = true;
		DMERR_LIMIT("%s: sector %llu of leg %u cannot be read for recovery",
			    dm_table_device_name(h->ti->table),
			    (unsigned long long)rec->sector, rec->source);
	} else if (rec->stale || READ_ONCE(h->unflushed) & BIT(rec->source)) {
		take_out(h, failed_dests(rec));
		/* What was read may be older than what others hold. */
		if (rec->repair)
			lose(h, rec->dests);
		rec->failed = true;
	} else if (rec->write_error) {
		take_out(h, failed_dests(rec));
	} else if (rec->repair) {
		hedge_count(h, HEDGE_REPAIRED);
		hedge_sync_rewritten(&h->leg[rec->source], rec->dests);
	} else if (good_legs(h, rec->region) & BIT(rec->source)) {
		/* A leg that went out meanwhile misses what comes from now on. */
		hedge_sync_copied(h, rec->region, rec->dests & h->live);
	}
	reopen(h);
	return true;
}

/**
 * hedge_recover_step - go on with recovery as far as it goes
 * @h: the target
 *
 * Context: the region worker. May sleep.
 *
 * Return: true if a region was opened again, for which writes may wait.
 */
bool hedge_recover_step(struct hedge *h)
{
	struct hedge_recover *rec = &h->recover;

	/* Pairs with the release by kcopyd's callback and by the check. */
	switch (smp_load_acquire(&rec->state)) {
	case HEDGE_RECOVER_COPIED:
		return finish(h);
	case HEDGE_RECOVER_COPYING:
		return leave(h);
	case HEDGE_RECOVER_LATE:
		return false;
	case HEDGE_RECOVER_IDLE:
		if (!begin(h)) {
			rest(h);
			return false;
		}
		fallthrough;
	case HEDGE_RECOVER_DRAINING:
		if (!hedge_region_drained(h, rec->region))
			return false;
		if (rec->borrowed) {
			rec->dests = 0;
			rec->source = h->default_leg;
			rec->write_error = 0;
			WRITE_ONCE(rec->state, HEDGE_RECOVER_COPYING);
			hedge_check_closed(h, true);
			return false;
		}
		if (!aim(h)) {
			reopen(h);
			return true;
		}
		copy(h);
		return false;
	}
	return false;
}

/**
 * hedge_recover_again - look at all regions again
 * @h: the target
 *
 * Context: the region worker, or before the target gets I/O.
 */
void hedge_recover_again(struct hedge *h)
{
	h->recover.next = 0;
	h->recover.failed = false;
}

/**
 * hedge_recover_repair - rewrite what a read found unreadable on some legs
 * @r: the read, which got its data from another leg in the end
 *
 * Without memory for a note of it nothing is done: the next read tries again.
 *
 * Context: any. The read's parent has not ended.
 */
void hedge_recover_repair(struct hedge_read *r)
{
	struct hedge *h = r->hedge;
	struct hedge_recover *rec = &h->recover;
	struct repair *repair;
	unsigned long flags;

	if (r->opf & REQ_RAHEAD || READ_ONCE(rec->nr_repairs) >= MAX_REPAIRS)
		return;
	repair = kmalloc(sizeof(*repair), GFP_NOWAIT | __GFP_NOWARN);
	if (!repair)
		return;
	repair->sector = dm_target_offset(h->ti, r->iter.bi_sector);
	repair->count = r->iter.bi_size >> SECTOR_SHIFT;
	repair->legs = r->unreadable;
	spin_lock_irqsave(&h->region_lock, flags);
	if (rec->stopped) {
		kfree(repair);
	} else {
		list_add_tail(&repair->list, &rec->repairs);
		WRITE_ONCE(rec->nr_repairs, rec->nr_repairs + 1);
	}
	spin_unlock_irqrestore(&h->region_lock, flags);
	hedge_region_kick(h);
}

/**
 * hedge_recover_borrow - have a region closed and drained, for the check
 * @h: the target
 * @region: the region
 *
 * hedge_check_closed() tells when that is so; if it could be done,
 * hedge_recover_return() is due.
 *
 * Context: process.
 */
void hedge_recover_borrow(struct hedge *h, region_t region)
{
	spin_lock_irq(&h->region_lock);
	h->recover.wanted = region;
	spin_unlock_irq(&h->region_lock);
	hedge_region_kick(h);
}

/**
 * hedge_recover_use - begin an I/O of the check in the borrowed region
 * @h: the target
 * @leg: the leg, to which the check has nothing else out
 * @write: whether it is a write
 *
 * Context: process.
 *
 * Return: false if the leg is out, or hedge_recover_left(): then it must not be done.
 */
bool hedge_recover_use(struct hedge *h, unsigned int leg, bool write)
{
	struct hedge_recover *rec = &h->recover;
	bool may;

	spin_lock_irq(&h->region_lock);
	/* A leg that goes out after this is seen in leave() to be in use. */
	may = rec->state == HEDGE_RECOVER_COPYING &&
	      READ_ONCE(h->live) & BIT(leg);
	if (may) {
		rec->source = leg;
		rec->dests = write ? BIT(leg) : 0;
	}
	spin_unlock_irq(&h->region_lock);
	return may;
}

/**
 * hedge_recover_left - whether the borrowed region was opened without waiting
 * @h: the target
 *
 * What was read by then, and not before, is of a closed region.
 *
 * Context: process.
 */
bool hedge_recover_left(struct hedge *h)
{
	bool left;

	spin_lock_irq(&h->region_lock);
	left = h->recover.state == HEDGE_RECOVER_LATE;
	spin_unlock_irq(&h->region_lock);
	return left;
}

/**
 * hedge_recover_unwritten - a write of the check in the borrowed region has failed
 * @h: the target
 * @leg: the leg, which goes out when the region is opened
 *
 * Context: process.
 */
void hedge_recover_unwritten(struct hedge *h, unsigned int leg)
{
	struct hedge_recover *rec = &h->recover;

	WRITE_ONCE(rec->write_error, rec->write_error | BIT(leg));
}

/**
 * hedge_recover_return - let the borrowed region be opened again
 * @h: the target
 *
 * Context: process.
 */
void hedge_recover_return(struct hedge *h)
{
	tell_copied(h);
}

/**
 * hedge_recover_throttle - the share of time that resync and check may take
 *
 * Return: per cent, 1 to 100.
 */
unsigned int hedge_recover_throttle(void)
{
	return clamp(READ_ONCE(dm_kcopyd_throttle.throttle), 1U, 100U);
}

/**
 * hedge_recover_start - let recovery go on
 * @h: the target, which is running
 *
 * Context: process.
 */
void hedge_recover_start(struct hedge *h)
{
	spin_lock_irq(&h->region_lock);
	h->recover.stopped = false;
	spin_unlock_irq(&h->region_lock);
	hedge_region_kick(h);
}

/**
 * hedge_recover_stop - finish the region at hand, and begin no other
 * @h: the target
 *
 * Context: process. Sleeps for the writes of that region and for its copy.
 */
void hedge_recover_stop(struct hedge *h)
{
	spin_lock_irq(&h->region_lock);
	h->recover.stopped = true;
	spin_unlock_irq(&h->region_lock);
	wait_event(h->recover.idle,
		   READ_ONCE(h->recover.state) == HEDGE_RECOVER_IDLE);
	drop_repairs(h);
}

/**
 * hedge_recover_init - make what recovery needs
 * @h: the target
 *
 * Context: process. May sleep.
 *
 * Return: 0, or a negative error; hedge_recover_exit() is due in both cases.
 */
int hedge_recover_init(struct hedge *h)
{
	struct dm_kcopyd_client *kcopyd;

	init_waitqueue_head(&h->recover.idle);
	INIT_LIST_HEAD(&h->recover.repairs);
	h->recover.stopped = true;
	h->recover.wanted = -1;
	kcopyd = dm_kcopyd_client_create(&dm_kcopyd_throttle);
	if (IS_ERR(kcopyd))
		return PTR_ERR(kcopyd);
	h->recover.kcopyd = kcopyd;
	return 0;
}

/**
 * hedge_recover_exit - undo hedge_recover_init()
 * @h: the target, whose region worker is still there
 *
 * Waits for kcopyd's last callback, which wakes the worker.
 *
 * Context: process. May sleep.
 */
void hedge_recover_exit(struct hedge *h)
{
	if (h->recover.kcopyd)
		dm_kcopyd_client_destroy(h->recover.kcopyd);
}
