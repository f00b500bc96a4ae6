// SPDX-License-Identifier: GPL-2.0
/*
 * Regions: which of them may be written to, and the region worker.
 *
 * The dirty log must say that a region is dirty, on its disk, before the first
 * write to it reaches any leg. Each region has one atomic word, with a state and
 * the number of writes that are pending in it:
 *
 *	CLEAN	the log has it clean: nothing may be written
 *	MARKED	the log has it dirty, but writes still go by the worker
 *	OPEN	the log has it dirty: writes are sent from map
 *	CLOSED	it is being recovered, repaired or compared: writes wait
 *
 *	          first write: mark, flush the log
 *	   CLEAN ----------------------------------> OPEN <---+
 *	     ^                                       |  |     | reopen
 *	     |  flush the legs, clear     idle, or   |  |     |
 *	     +---------------- MARKED <--------------+  +-> CLOSED
 *	                       |    suspended                 ^  close
 *	                       +----------------------------- +
 *
 * Map takes a region with one atomic operation if it is OPEN. Any other write is
 * deferred to the worker, which marks all regions of a batch, flushes the log
 * once, and opens them. So a second write that finds its region on the way to
 * OPEN waits for the same flush. What is not CLEAN has its bit in hedge->open.
 *
 * The worker is one work item, never run twice at a time, and only it calls the
 * log, takes legs out or lets them in, and changes a state; map and completions
 * only count pending writes of an OPEN region. So nothing of this needs a lock,
 * but for the lists by which others hand things to it (hedge->region_lock).
 *
 * A region is cleaned when it has been idle from one sweep to the next, and only
 * while no leg is out and none misses it: the bitmap of what a leg misses begins
 * with all regions that are not clean (sync.c). All legs are flushed before: what
 * a volatile cache holds is no ground for calling a region clean. And if flushes of users
 * were out then, they end first: one that fails may have dropped what was in a cache
 * before ours came, which then was no flush of that.
 */
#include <linux/vmalloc.h>

#include "hedge.h"

#define REGION_PENDING	0x00ffffff
#define REGION_RECENT	0x01000000	/* written to since the last sweep */
#define REGION_STATE	0x30000000
#define REGION_CLEAN	0x00000000
#define REGION_MARKED	0x10000000
#define REGION_OPEN	0x20000000
#define REGION_CLOSED	0x30000000

#define SWEEP_SECONDS	5

static unsigned int region_state(struct hedge *h, region_t region)
{
	return atomic_read(&h->region[region]) & REGION_STATE;
}

/* Changes the state and leaves the count; the worker only. */
static void region_set_state(struct hedge *h, region_t region,
			     unsigned int state)
{
	int old = atomic_read(&h->region[region]);

	while (!atomic_try_cmpxchg(&h->region[region], &old,
				   (old & ~REGION_STATE) | state))
		;
}

/**
 * hedge_region_kick - have the region worker look at what there is to do
 * @h: the target
 *
 * Context: any.
 */
void hedge_region_kick(struct hedge *h)
{
	queue_work(h->region_wq, &h->region_work);
}

/**
 * hedge_region_get - count a write into an open region
 * @h: the target
 * @region: the region
 *
 * Orders what the caller reads of the legs after the count.
 *
 * Context: any.
 *
 * Return: false if the region is not open.
 */
bool hedge_region_get(struct hedge *h, region_t region)
{
	int old = atomic_read(&h->region[region]);

	do {
		if ((old & REGION_STATE) != REGION_OPEN)
			return false;
	} while (!atomic_try_cmpxchg(&h->region[region], &old,
				     (old | REGION_RECENT) + 1));
	return true;
}

/**
 * hedge_region_put - a write of a region has ended
 * @h: the target
 * @region: the region
 *
 * Context: any.
 */
void hedge_region_put(struct hedge *h, region_t region)
{
	int word = atomic_dec_return(&h->region[region]);

	if (unlikely((word & (REGION_STATE | REGION_PENDING)) == REGION_CLOSED))
		hedge_region_kick(h);
}

static void hand_over(struct hedge *h, struct bio_list *list, struct bio *bio)
{
	unsigned long flags;

	spin_lock_irqsave(&h->region_lock, flags);
	bio_list_add(list, bio);
	/* Under the lock: a kick that came later could come after the last run. */
	hedge_region_kick(h);
	spin_unlock_irqrestore(&h->region_lock, flags);
}

/**
 * hedge_region_defer - let the worker open the regions of a write and send it
 * @h: the target
 * @bio: the write, device-mapper's clone
 *
 * Context: any.
 */
void hedge_region_defer(struct hedge *h, struct bio *bio)
{
	hand_over(h, &h->deferred, bio);
}

/**
 * hedge_region_end - let the worker decide how a write ends
 * @h: the target
 * @bio: the write, of which all clones have ended
 *
 * Context: any.
 */
void hedge_region_end(struct hedge *h, struct bio *bio)
{
	hand_over(h, &h->ended, bio);
}

static struct bio_list take(struct hedge *h, struct bio_list *list)
{
	struct bio_list taken;

	spin_lock_irq(&h->region_lock);
	taken = *list;
	bio_list_init(list);
	spin_unlock_irq(&h->region_lock);
	return taken;
}

static int flush_log(struct hedge *h)
{
	int r = h->log->type->flush(h->log);

	if (r && !h->log_failed)
		DMERR("%s: the dirty log cannot be written: error %d",
		      dm_table_device_name(h->ti->table), r);
	h->log_failed = r;
	return r;
}

/**
 * hedge_region_lost - a flush of ours has failed on the last leg that holds everything
 * @h: the target
 *
 * It may have lost what was acknowledged: all others are copied from it again, and the
 * next flush by the user fails.
 *
 * Context: the region worker, or process while there is no I/O.
 */
void hedge_region_lost(struct hedge *h)
{
	h->lost = true;
	WRITE_ONCE(h->untold, true);
	hedge_sync_unflushed(h);
}

/* What follows from the end of a flush of ours. Returns whether it was a failure. */
static int flushed(struct hedge_leg *leg, int r, bool *stays)
{
	if (!r || r == -EOPNOTSUPP)
		return 0;
	/* A leg that is to go is left to hedge_sync_requests(). */
	if (r != -ECANCELED && !hedge_sync_out(leg, HEDGE_FLUSH_FAILED))
		*stays = true;
	return r;
}

/**
 * hedge_region_flush_legs - make durable what was written to the live legs
 * @h: the target
 *
 * A leg that cannot be flushed goes out, unless it is the last that holds everything;
 * one that hangs until it is taken out is not waited for any longer.
 *
 * Context: the region worker. May sleep.
 *
 * Return: 0, or a negative error if a leg could not be flushed.
 */
int hedge_region_flush_legs(struct hedge *h)
{
	unsigned long live = h->live, begun = 0;
	bool stays = false;
	unsigned int i;
	int error = 0;

	for_each_set_bit(i, &live, h->nr_legs) {
		error = flushed(&h->leg[i], hedge_leg_io_claim(&h->leg[i]),
				&stays);
		if (error)
			break;
		hedge_leg_io_start(&h->leg[i], REQ_OP_WRITE | REQ_PREFLUSH, 0,
				   NULL, 0);
		begun |= BIT(i);
	}
	for_each_set_bit(i, &begun, h->nr_legs)
		error = flushed(&h->leg[i], hedge_leg_io_end(&h->leg[i]),
				&stays) ?: error;
	if (stays)
		hedge_region_lost(h);
	return error;
}

/*
 * What a flush or a label write that was left behind has come to. Recovery would wait for
 * that if it has failed on all legs that hold everything: they are no source then.
 */
static void end_left(struct hedge *h)
{
	unsigned long live = h->live;
	bool stays = false;
	unsigned int i;

	for_each_set_bit(i, &live, h->nr_legs)
		if (!hedge_leg_io_late(&h->leg[i]))
			flushed(&h->leg[i], hedge_leg_io_claim(&h->leg[i]),
				&stays);
	if (stays)
		hedge_region_lost(h);
}

static void mark(struct hedge *h, region_t region)
{
	h->log->type->mark_region(h->log, region);
	__set_bit(region, h->open);
}

static bool in_sync(struct hedge *h, region_t region)
{
	return h->log->type->in_sync(h->log, region, 1) == 1;
}

/* Takes idle regions from map's hands. Returns whether there were some. */
static bool sweep_idle(struct hedge *h, bool all)
{
	bool found = false;
	region_t region;

	for_each_set_bit(region, h->open, h->nr_regions) {
		atomic_t *word = &h->region[region];
		int old = atomic_read(word);

		cond_resched();
		if ((old & REGION_STATE) == REGION_CLOSED ||
		    !in_sync(h, region))
			continue;
		if (!all && old & REGION_RECENT) {
			atomic_andnot(REGION_RECENT, word);
			continue;
		}
		if ((old & REGION_STATE) != REGION_OPEN)
			found = true;
		else if (!(old & REGION_PENDING) &&
			 atomic_cmpxchg(word, old, REGION_MARKED) == old)
			found = true;
	}
	return found;
}

/* Cleans what was idle when the legs were flushed, and is still. */
static void clean_flushed(struct hedge *h)
{
	region_t region;

	if (!h->flushed)
		return;
	h->flushed = false;
	/* After a flush that failed another may succeed, and mean nothing. */
	if (READ_ONCE(h->unflushed))
		return;
	for_each_set_bit(region, h->open, h->nr_regions) {
		unsigned int state = region_state(h, region);

		cond_resched();
		if (state == REGION_OPEN || state == REGION_CLOSED ||
		    !in_sync(h, region))
			continue;
		h->log->type->clear_region(h->log, region);
		atomic_set(&h->region[region], REGION_CLEAN);
		__clear_bit(region, h->open);
	}
	flush_log(h);
}

/*
 * Cleans what nobody has written to since the last sweep, or @all there is, of which no
 * flush is out then.
 */
static void sweep(struct hedge *h, bool all)
{
	if (h->read_only || h->live != BIT(h->nr_legs) - 1)
		return;
	/* A flush would wait for a leg that hangs, and with it all that we do. */
	if (READ_ONCE(h->stalled))
		return;
	/* Those that were out when the legs were flushed last. */
	if (!hedge_write_flushes_ended(h))
		return;
	clean_flushed(h);
	if (!sweep_idle(h, all) || hedge_region_flush_legs(h))
		return;
	h->flushed = true;
	hedge_write_flushes_mark(h);
	if (hedge_write_flushes_ended(h))
		clean_flushed(h);
}

static bool any_closed(struct hedge *h, region_t first, region_t nr)
{
	region_t region;

	for (region = first; region < first + nr; region++)
		if (region_state(h, region) == REGION_CLOSED)
			return true;
	return false;
}

/* Marks what is clean. Returns whether something was. */
static bool mark_clean(struct hedge *h, region_t first, region_t nr)
{
	bool marked = false;
	region_t region;

	for (region = first; region < first + nr; region++) {
		if (region_state(h, region) != REGION_CLEAN)
			continue;
		mark(h, region);
		marked = true;
	}
	return marked;
}

/* Opens a region that is marked on the log's disk, and counts a write into it. */
static void open_and_get(struct hedge *h, region_t region)
{
	if (region_state(h, region) == REGION_OPEN) {
		atomic_inc(&h->region[region]);
		atomic_or(REGION_RECENT, &h->region[region]);
		return;
	}
	hedge_sync_opened(h, region);
	atomic_set(&h->region[region], REGION_OPEN | REGION_RECENT | 1);
}

/**
 * hedge_region_want - have a region opened, though no write waits for it
 * @h: the target
 * @region: the region
 *
 * For a write that may not wait: it ends, and finds the region open when it is
 * made again. One such region is remembered.
 *
 * Context: any.
 */
void hedge_region_want(struct hedge *h, region_t region)
{
	WRITE_ONCE(h->wanted, region + 1);
	hedge_region_kick(h);
}

static void open_wanted(struct hedge *h)
{
	unsigned long wanted = xchg(&h->wanted, 0);
	region_t region = wanted - 1;

	if (!wanted || region_state(h, region) == REGION_OPEN ||
	    region_state(h, region) == REGION_CLOSED)
		return;
	if (mark_clean(h, region, 1) && flush_log(h))
		return;
	hedge_sync_opened(h, region);
	hedge_label_open(h);
	if (hedge_sync_record(h))
		return;
	atomic_set(&h->region[region], REGION_OPEN | REGION_RECENT);
}

/* Opens the regions of deferred writes with one flush of the log. */
static void open_deferred(struct hedge *h)
{
	struct bio_list deferred = take(h, &h->deferred);
	struct bio_list ready = BIO_EMPTY_LIST;
	bool marked = false, no_label;
	region_t first, nr, region;
	struct bio *bio;
	int r = 0;

	while ((bio = bio_list_pop(&deferred))) {
		hedge_write_regions(h, bio, &first, &nr);
		if (any_closed(h, first, nr)) {
			bio_list_add(&h->blocked, bio);
			continue;
		}
		marked |= mark_clean(h, first, nr);
		bio_list_add(&ready, bio);
	}
	if (bio_list_empty(&ready))
		return;
	if (marked)
		r = flush_log(h);
	hedge_label_open(h);
	no_label = hedge_sync_record(h);
	while ((bio = bio_list_pop(&ready))) {
		if (no_label) {
			hedge_write_refuse(h, bio);
			continue;
		}
		/* Without handle_errors writes go on, as dm-mirror has it. */
		if (r && h->handle_errors) {
			hedge_write_log_failed(h, bio);
			continue;
		}
		hedge_write_regions(h, bio, &first, &nr);
		for (region = first; region < first + nr; region++)
			open_and_get(h, region);
		hedge_write_send(h, bio);
	}
}

/**
 * hedge_region_close - keep writes out of a region
 * @h: the target
 * @region: the region
 *
 * The log has it dirty afterwards. Writes that are pending go on.
 *
 * Context: the region worker. May sleep.
 *
 * Return: 0, or a negative error if the log could not be written.
 */
int hedge_region_close(struct hedge *h, region_t region)
{
	int r;

	if (region_state(h, region) == REGION_CLEAN) {
		mark(h, region);
		r = flush_log(h);
		if (r)
			return r;
		hedge_sync_opened(h, region);
	}
	hedge_label_open(h);
	r = hedge_sync_record(h);
	if (r)
		return r;
	region_set_state(h, region, REGION_CLOSED);
	return 0;
}

/**
 * hedge_region_drained - whether no write is pending in a closed region
 * @h: the target
 * @region: the region
 *
 * Context: any.
 */
bool hedge_region_drained(struct hedge *h, region_t region)
{
	return !(atomic_read(&h->region[region]) & REGION_PENDING);
}

/**
 * hedge_region_reopen - let writes into a closed region again
 * @h: the target
 * @region: the region
 *
 * Context: the region worker.
 */
void hedge_region_reopen(struct hedge *h, region_t region)
{
	region_set_state(h, region, REGION_OPEN);
	spin_lock_irq(&h->region_lock);
	bio_list_merge(&h->deferred, &h->blocked);
	bio_list_init(&h->blocked);
	spin_unlock_irq(&h->region_lock);
}

/*
 * Cleans what can be cleaned, as there are no writes any more, and calls the set
 * closed. What cannot is marked, so that its first write goes by the worker again.
 */
static void close_all(struct hedge *h)
{
	region_t region;

	sweep(h, true);
	/* What becomes MARKED here has not been flushed. */
	h->flushed = false;
	hedge_sync_record(h);
	for_each_set_bit(region, h->open, h->nr_regions) {
		cond_resched();
		if (region_state(h, region) == REGION_OPEN)
			region_set_state(h, region, REGION_MARKED);
	}
	if (h->log->type->postsuspend && h->log->type->postsuspend(h->log))
		DMWARN("%s: the dirty log cannot be written",
		       dm_table_device_name(h->ti->table));
	hedge_label_write(h, false);
}

static void region_work(struct work_struct *work)
{
	struct hedge *h = container_of(work, struct hedge, region_work);
	unsigned int noio = memalloc_noio_save();
	struct bio_list ended;
	struct bio *bio;

	do {
		hedge_sync_requests(h);
		ended = take(h, &h->ended);
		while ((bio = bio_list_pop(&ended)))
			hedge_write_ended(h, bio);
		hedge_sync_record(h);
		if (xchg(&h->sweep_due, false)) {
			h->lost = false;
			hedge_sync_judged(h);
			end_left(h);
			/* First, as both wait for flushes that are out when they begin to. */
			hedge_sync_complete(h);
			sweep(h, false);
			hedge_recover_again(h);
		}
		open_wanted(h);
		open_deferred(h);
	} while (hedge_recover_step(h));
	if (xchg(&h->close_due, false))
		close_all(h);
	memalloc_noio_restore(noio);
}

static void sweep_work(struct work_struct *work)
{
	struct hedge *h = container_of(to_delayed_work(work), struct hedge,
				       sweep);

	WRITE_ONCE(h->sweep_due, true);
	hedge_region_kick(h);
	queue_delayed_work(h->wq, &h->sweep, SWEEP_SECONDS * HZ);
}

/**
 * hedge_region_init - make the table of regions
 * @h: the target, with its log
 *
 * Context: process. May sleep.
 *
 * Return: 0 or -ENOMEM; hedge_region_exit() is due in both cases.
 */
int hedge_region_init(struct hedge *h)
{
	INIT_WORK(&h->region_work, region_work);
	INIT_DELAYED_WORK(&h->sweep, sweep_work);
	h->region_shift = ilog2(h->region_size);
	h->region = vcalloc(h->nr_regions, sizeof(*h->region));
	h->open = kvcalloc(BITS_TO_LONGS(h->nr_regions), sizeof(long),
			   GFP_KERNEL);
	return h->region && h->open ? 0 : -ENOMEM;
}

/**
 * hedge_region_exit - undo hedge_region_init()
 * @h: the target
 *
 * Context: process. May sleep.
 */
void hedge_region_exit(struct hedge *h)
{
	kvfree(h->region);
	kvfree(h->open);
}

/*
 * Takes over from the log, and from the old table, what is dirty. What only legs
 * miss that are out and have labels stays clean in a log that was believed: it has
 * to tell what was written since they went out, and the labels tell whether it can.
 * One that was not gets a new stamp, and then has to tell all that they miss.
 */
static void regions_load(struct hedge *h)
{
	region_t region;

	hedge_sync_start(h);
	for (region = 0; region < h->nr_regions; region++) {
		cond_resched();
		if (h->log->type->is_clean(h->log, region) == 1 &&
		    !test_bit(region, h->open) &&
		    (in_sync(h, region) ||
		     (hedge_label_log_counts(h) &&
		      !hedge_sync_missed_live(h, region))))
			continue;
		mark(h, region);
		hedge_sync_opened(h, region);
		atomic_set(&h->region[region], REGION_MARKED);
	}
}

/**
 * hedge_region_start - find out which regions are dirty
 * @h: the target
 *
 * The log is read until the target has run: what it has done since, it knows better.
 * If another target of the table cannot be resumed this one is not, and somebody else may
 * use its legs before it is tried again.
 *
 * Context: process, before the target gets I/O. May sleep.
 *
 * Return: 0, or a negative error.
 */
int hedge_region_start(struct hedge *h)
{
	const char *name = dm_table_device_name(h->ti->table);
	int r, refused;

	if (h->ran)
		return 0;
	refused = hedge_label_load(h);
	r = hedge_sync_inherit(h) ?: refused;
	if (r)
		return r;
	r = h->log->type->resume(h->log);
	if (r) {
		DMERR("%s: the dirty log cannot be used: error %d", name, r);
		return r;
	}
	hedge_label_fix_log(h);
	regions_load(h);
	r = h->log->type->flush(h->log);
	if (r) {
		DMERR("%s: the dirty log cannot be written: error %d", name, r);
		return r;
	}
	hedge_label_settle(h);
	return 0;
}

/**
 * hedge_region_stop - clean what can be cleaned
 * @h: the target, which gets no I/O any more
 *
 * Context: process. May sleep.
 */
void hedge_region_stop(struct hedge *h)
{
	cancel_delayed_work_sync(&h->sweep);
	/* By the worker: it may be on its way for something else still. */
	WRITE_ONCE(h->close_due, true);
	hedge_region_kick(h);
	flush_work(&h->region_work);
	hedge_leg_io_settle(h);
	if (!bitmap_empty(h->open, h->nr_regions))
		DMWARN("%s: the legs may differ: the log stays marked",
		       dm_table_device_name(h->ti->table));
}
