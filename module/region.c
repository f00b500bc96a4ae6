// SPDX-License-Identifier: GPL-2.0
/*
 * The dirty log.
 *
 * The log tells which regions of the legs are in sync, and after a crash which
 * may have been written to. Resynchronisation is not built yet, so a target
 * starts only when the log has every region in sync, and reads may use any leg.
 *
 * A log on disk is kept true in the simplest way that is safe: while the target
 * runs, all regions are marked as dirty, and they are cleared when it is
 * suspended with all legs live and equal. A crash in between leaves the log
 * saying that everything is to be resynchronised. The log is read once: what
 * this target has done since, it knows better.
 */
#include "hedge.h"

static bool log_on_disk(const struct hedge *h)
{
	return !strcmp(h->log->type->name, "disk");
}

/* What a volatile cache of a leg holds is no ground for calling it in sync. */
static int flush_legs(struct hedge *h)
{
	unsigned int i;
	int r;

	for (i = 0; i < h->nr_legs; i++) {
		r = blkdev_issue_flush(h->leg[i].dev->bdev);
		if (r && r != -EOPNOTSUPP)
			return r;
	}
	return 0;
}

/**
 * hedge_region_in_sync - whether the log has every region in sync
 * @h: the target
 *
 * Context: process.
 */
bool hedge_region_in_sync(struct hedge *h)
{
	return h->log->type->get_sync_count(h->log) == h->nr_regions;
}

static int read_log(struct hedge *h)
{
	const char *name = dm_table_device_name(h->ti->table);
	struct dm_dirty_log *log = h->log;
	int r = log->type->resume(log);

	if (r) {
		DMERR("%s: the dirty log cannot be read: error %d", name, r);
		return r;
	}
	if (!hedge_region_in_sync(h)) {
		DMERR("%s: the log has %llu of %llu regions in sync", name,
		      (u64)log->type->get_sync_count(log), (u64)h->nr_regions);
		DMERR("%s: the legs would need a resync, which is not supported",
		      name);
		DMERR("%s: make them equal, and start with a new log and nosync",
		      name);
		return -EINVAL;
	}
	h->log_read = true;
	return 0;
}

/**
 * hedge_region_start - read the log, and mark it for the time of running
 * @h: the target
 *
 * Context: process, before the target gets I/O. May sleep.
 *
 * Return: 0, or a negative error.
 */
int hedge_region_start(struct hedge *h)
{
	const char *name = dm_table_device_name(h->ti->table);
	struct dm_dirty_log *log = h->log;
	region_t region;
	int r;

	r = h->log_read ? 0 : read_log(h);
	if (r || !log_on_disk(h))
		return r;
	for (region = 0; region < h->nr_regions; region++)
		log->type->mark_region(log, region);
	r = log->type->flush(log);
	if (r)
		DMERR("%s: the dirty log cannot be written: error %d", name, r);
	return r;
}

/**
 * hedge_region_stop - clear the log, if the legs are equal
 * @h: the target, which gets no I/O any more
 *
 * Context: process. May sleep.
 */
void hedge_region_stop(struct hedge *h)
{
	const char *name = dm_table_device_name(h->ti->table);
	struct dm_dirty_log *log = h->log;
	region_t region;

	if (!log_on_disk(h))
		return;
	if (h->live != BIT(h->nr_legs) - 1 || h->diverged || flush_legs(h)) {
		DMWARN("%s: the legs may differ: the log stays marked", name);
		return;
	}
	for (region = 0; region < h->nr_regions; region++)
		log->type->clear_region(log, region);
	if (log->type->flush(log))
		DMWARN("%s: the dirty log cannot be written", name);
}
