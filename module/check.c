// SPDX-License-Identifier: GPL-2.0
/*
 * The check: comparing the legs, on request, while the volume is in use.
 *
 * A work item reads region after region, a piece at a time, from all legs that
 * have it. Where they differ a write may just have been on its way to one of
 * them, so the region is closed through recovery (recover.c), and what still
 * differs when nothing is pending in it is a mismatch. It is counted by blocks and
 * logged, and if a leg was named it is written over the others. When a leg hangs and is
 * taken out the region is opened without waiting for it, and no more comes of it.
 *
 * Stopped by suspend between two regions, it goes on after resume. It waits as
 * resync_throttle says.
 */
#include <linux/delay.h>
#include <linux/dm-io.h>

#include "hedge.h"

#define PIECE		(64 << 10)	/* what is read at a time */
#define BLOCK		4096		/* what is counted */
#define LOGGED		16		/* mismatches that are logged */

static int leg_io(struct hedge *h, unsigned int leg, enum req_op op,
		  void *data, sector_t sector, sector_t count)
{
	struct dm_io_region where = {
		.bdev = h->leg[leg].dev->bdev,
		.sector = h->leg[leg].offset + sector,
		.count = count,
	};
	struct dm_io_request req = {
		.bi_opf = op,
		.mem.type = DM_IO_KMEM,
		.mem.ptr.addr = data,
		.client = h->check.io,
	};

	return hedge_dm_io(&req, 1, &where, NULL);
}

/* Reads a piece from some legs. Those that cannot be read are left out. */
static unsigned long read_piece(struct hedge *h, unsigned long legs,
				sector_t sector, sector_t count, bool closed)
{
	unsigned long got = 0;
	unsigned int i;

	for_each_set_bit(i, &legs, h->nr_legs) {
		if (closed && !hedge_recover_use(h, i, false))
			continue;
		if (leg_io(h, i, REQ_OP_READ, h->check.buf[i], sector, count))
			hedge_leg_health(&h->leg[i], HEDGE_READ_FAILED);
		else
			got |= BIT(i);
	}
	return got;
}

static bool differ(struct hedge *h, unsigned long legs, size_t from,
		   size_t bytes)
{
	char *first = h->check.buf[__ffs(legs)];
	unsigned int i;

	for_each_set_bit(i, &legs, h->nr_legs)
		if (memcmp(first + from, h->check.buf[i] + from, bytes))
			return true;
	return false;
}

static void count_mismatches(struct hedge *h, unsigned long legs,
			     sector_t sector, size_t bytes)
{
	struct hedge_check *check = &h->check;
	size_t at;

	for (at = 0; at < bytes; at += BLOCK) {
		if (!differ(h, legs, at, min_t(size_t, BLOCK, bytes - at)))
			continue;
		hedge_count(h, HEDGE_MISMATCHES);
		if (check->mismatches++ < LOGGED)
			DMWARN("%s: the legs differ at sector %llu",
			       dm_table_device_name(h->ti->table),
			       (u64)(sector + (at >> SECTOR_SHIFT)));
	}
}

/*
 * Writes a piece, of which so many blocks differ, of the leg that is right over the
 * others. Returns who failed. That leg may have gone out, or not have been read.
 */
static unsigned long rewrite(struct hedge *h, unsigned long legs,
			     sector_t sector, sector_t count,
			     unsigned long differing)
{
	int source = h->check.source;
	unsigned long failed = 0;
	bool all = true;
	unsigned int i;

	if (source < 0 || !(legs & BIT(source)))
		return 0;
	for_each_set_bit(i, &legs, h->nr_legs) {
		if (i == source)
			continue;
		if (!hedge_recover_use(h, i, true)) {
			all = false;
		} else if (leg_io(h, i, REQ_OP_WRITE, h->check.buf[source],
				  sector, count)) {
			hedge_recover_unwritten(h, i);
			failed |= BIT(i);
		}
	}
	/* Then what was read there may have been older than what others held. */
	if (READ_ONCE(h->unflushed) & BIT(source))
		WRITE_ONCE(h->untold, true);
	else if (all && !failed)
		h->check.rewritten += differing;
	hedge_sync_rewritten(&h->leg[source], legs & ~BIT(source));
	return failed;
}

/*
 * Compares a region. With @closed what differs is a mismatch; that ends when the region
 * was opened meanwhile.
 */
static bool region_differs(struct hedge *h, region_t region, bool closed)
{
	sector_t sector = (sector_t)region << h->region_shift;
	sector_t end = min_t(sector_t, sector + h->region_size, h->ti->len);
	unsigned long before, failed = 0;
	bool differs = false;

	for (; sector < end; sector += PIECE >> SECTOR_SHIFT) {
		sector_t count = min_t(sector_t, PIECE >> SECTOR_SHIFT,
				       end - sector);
		unsigned long legs = hedge_sync_usable(h, h->ti->begin +
							  sector);

		legs = read_piece(h, legs & ~failed, sector, count, closed);
		if (closed && hedge_recover_left(h))
			break;
		/* Who has failed a flush may have lost writes, and is about to go out. */
		legs &= ~READ_ONCE(h->unflushed);
		if (hweight_long(legs) < 2 ||
		    !differ(h, legs, 0, count << SECTOR_SHIFT))
			continue;
		differs = true;
		if (!closed)
			return true;
		before = h->check.mismatches;
		count_mismatches(h, legs, sector, count << SECTOR_SHIFT);
		failed |= rewrite(h, legs, sector, count,
				  h->check.mismatches - before);
	}
	return differs;
}

static void compare(struct hedge *h, region_t region)
{
	if (!region_differs(h, region, false))
		return;
	reinit_completion(&h->check.closed);
	hedge_recover_borrow(h, region);
	wait_for_completion(&h->check.closed);
	if (!h->check.is_closed) {
		DMWARN("%s: region %llu cannot be compared: it cannot be marked in the dirty log",
		       dm_table_device_name(h->ti->table), (u64)region);
		return;
	}
	region_differs(h, region, true);
	if (hedge_recover_left(h))
		DMWARN("%s: region %llu was not compared to its end: a leg went out",
		       dm_table_device_name(h->ti->table), (u64)region);
	hedge_recover_return(h);
}

/**
 * hedge_check_closed - the region that was asked for is closed and drained
 * @h: the target
 * @closed: whether it is; else it could not be marked in the log
 *
 * Context: the region worker.
 */
void hedge_check_closed(struct hedge *h, bool closed)
{
	h->check.is_closed = closed;
	complete(&h->check.closed);
}

static bool may_go_on(struct hedge_check *check)
{
	bool stopped;

	spin_lock_irq(&check->lock);
	stopped = check->stopped;
	spin_unlock_irq(&check->lock);
	return !stopped;
}

static void free_buffers(void **buf)
{
	unsigned int i;

	for (i = 0; i < HEDGE_MAX_LEGS; i++) {
		kfree(buf[i]);
		buf[i] = NULL;
	}
}

static bool get_buffers(void **buf, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		buf[i] = kmalloc(PIECE, GFP_NOIO);
		if (!buf[i]) {
			free_buffers(buf);
			return false;
		}
	}
	return true;
}

static void through(struct hedge *h)
{
	struct hedge_check *check = &h->check;

	if (check->source < 0)
		DMINFO("%s: check: %lu blocks differed",
		       dm_table_device_name(h->ti->table), check->mismatches);
	else
		DMINFO("%s: check: %lu blocks differed, %lu were rewritten",
		       dm_table_device_name(h->ti->table), check->mismatches,
		       check->rewritten);
	free_buffers(check->buf);
	spin_lock_irq(&check->lock);
	check->running = false;
	spin_unlock_irq(&check->lock);
	dm_table_event(h->ti->table);
}

/* Leaves to others the share of time that resync_throttle leaves. */
static void throttle(u64 began)
{
	u64 took = ktime_get_ns() - began;
	unsigned int share = hedge_recover_throttle();
	unsigned long us;

	if (share == 100)
		return;
	us = min_t(u64, div_u64(took * (100 - share), share * NSEC_PER_USEC),
		   USEC_PER_SEC);
	usleep_range(us, us + 1000);
}

static void check_work(struct work_struct *work)
{
	struct hedge *h = container_of(work, struct hedge, check.work);
	unsigned int noio = memalloc_noio_save();
	struct hedge_check *check = &h->check;
	u64 began;

	while (may_go_on(check) && check->next < h->nr_regions) {
		began = ktime_get_ns();
		compare(h, check->next);
		WRITE_ONCE(check->next, check->next + 1);
		throttle(began);
	}
	if (check->next == h->nr_regions)
		through(h);
	memalloc_noio_restore(noio);
}

/**
 * hedge_check_begin - begin to compare the legs
 * @h: the target
 * @source: leg to copy from where they differ, or -1
 *
 * Context: process, while the target runs. May sleep, but not for I/O.
 *
 * Return: 0, -EBUSY if a check is running, -EINVAL if @source lacks something,
 * -ENOMEM.
 */
int hedge_check_begin(struct hedge *h, int source)
{
	const char *name = dm_table_device_name(h->ti->table);
	void *buf[HEDGE_MAX_LEGS] = { };
	struct hedge_check *check = &h->check;
	bool running;

	if (source >= 0 && !(READ_ONCE(h->live) & ~READ_ONCE(h->partial) &
			     BIT(source))) {
		DMERR("%s: leg %d does not hold everything", name, source);
		return -EINVAL;
	}
	if (!get_buffers(buf, h->nr_legs))
		return -ENOMEM;
	/* All at once: who finds it running may start the work. */
	spin_lock_irq(&check->lock);
	running = check->running || check->stopped;
	if (!running) {
		check->running = true;
		memcpy(check->buf, buf, sizeof(buf));
		check->source = source;
		WRITE_ONCE(check->next, 0);
		check->mismatches = 0;
		check->rewritten = 0;
		queue_work(h->wq, &check->work);
	}
	spin_unlock_irq(&check->lock);
	if (running) {
		free_buffers(buf);
		DMERR("%s: a check is running already", name);
		return -EBUSY;
	}
	return 0;
}

/**
 * hedge_check_resume - let a check go on that was stopped
 * @h: the target, which is running
 *
 * Context: process.
 */
void hedge_check_resume(struct hedge *h)
{
	struct hedge_check *check = &h->check;
	bool running;

	spin_lock_irq(&check->lock);
	check->stopped = false;
	running = check->running;
	spin_unlock_irq(&check->lock);
	if (running)
		queue_work(h->wq, &check->work);
}

/**
 * hedge_check_stop - stop a check behind the region at hand
 * @h: the target, whose recovery still runs
 *
 * Context: process. Sleeps for that region.
 */
void hedge_check_stop(struct hedge *h)
{
	spin_lock_irq(&h->check.lock);
	h->check.stopped = true;
	spin_unlock_irq(&h->check.lock);
	flush_work(&h->check.work);
}

/**
 * hedge_check_init - make what a check needs
 * @h: the target
 *
 * Context: process. May sleep.
 *
 * Return: 0, or a negative error; hedge_check_exit() is due in both cases.
 */
int hedge_check_init(struct hedge *h)
{
	struct dm_io_client *io;

	INIT_WORK(&h->check.work, check_work);
	spin_lock_init(&h->check.lock);
	init_completion(&h->check.closed);
	h->check.stopped = true;
	io = dm_io_client_create();
	if (IS_ERR(io))
		return PTR_ERR(io);
	h->check.io = io;
	return 0;
}

/**
 * hedge_check_exit - undo hedge_check_init()
 * @h: the target
 *
 * Context: process. May sleep.
 */
void hedge_check_exit(struct hedge *h)
{
	free_buffers(h->check.buf);
	if (h->check.io)
		dm_io_client_destroy(h->check.io);
}
