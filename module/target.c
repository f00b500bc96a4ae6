// SPDX-License-Identifier: GPL-2.0
/*
 * dm-hedge: the device-mapper target.
 *
 * The constructor opens legs and log; a target gets I/O between preresume and
 * postsuspend. Between presuspend and postsuspend the reads in flight go on, with
 * timers, hedges and queues, and device-mapper waits for them. Then postsuspend
 * waits for the copies that their reads have left behind, and stops what runs
 * by itself: the tick and the events. The destructor may run without any of
 * that, for a table that was never resumed.
 */
#include <linux/module.h>

#include "hedge.h"

static void hedge_free(struct hedge *h)
{
	unsigned int i;

	/* Its last callback kicks the region worker. */
	hedge_recover_exit(h);
	hedge_check_exit(h);
	/* Completions and timers end inside RCU read sections. */
	if (h->shards)
		hedge_clock_stop(h);
	synchronize_rcu();
	/* It uses the legs, also in a run that comes late. */
	if (h->region_wq)
		destroy_workqueue(h->region_wq);
	for (i = 0; i < h->nr_legs; i++)
		hedge_leg_exit(&h->leg[i]);
	if (h->wq)
		destroy_workqueue(h->wq);
	if (h->shards)
		hedge_bounce_drain(h);
	free_percpu(h->shards);
	hedge_sync_exit(h);
	hedge_region_exit(h);
	hedge_label_exit(h);
	hedge_table_put(h);
	kfree(rcu_dereference_protected(h->conf, true));
	kfree(h);
}

static struct hedge *hedge_alloc(struct dm_target *ti, unsigned int nr_legs)
{
	struct hedge *h = kzalloc(struct_size(h, leg, nr_legs), GFP_KERNEL);
	unsigned int i;

	if (!h)
		return NULL;
	h->ti = ti;
	h->read_only = !(dm_table_get_mode(ti->table) & BLK_OPEN_WRITE);
	h->nr_legs = nr_legs;
	h->live = BIT(nr_legs) - 1;
	mutex_init(&h->conf_mutex);
	mutex_init(&h->tick_mutex);
	init_waitqueue_head(&h->drained);
	spin_lock_init(&h->wait_lock);
	spin_lock_init(&h->region_lock);
	h->tasks = RB_ROOT_CACHED;
	h->overdue = RB_ROOT_CACHED;
	INIT_LIST_HEAD(&h->visible);
	bio_list_init(&h->held);
	bio_list_init(&h->deferred);
	bio_list_init(&h->blocked);
	bio_list_init(&h->ended);
	INIT_DELAYED_WORK(&h->tick, hedge_tick_work);
	INIT_WORK(&h->event, hedge_leg_event);
	for (i = 0; i < nr_legs; i++)
		h->leg[i].hedge = h;
	return h;
}

static int shards_alloc(struct hedge *h)
{
	unsigned int i;
	int cpu;

	h->shards = alloc_percpu(struct hedge_shard);
	if (!h->shards)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		struct hedge_shard *shard = per_cpu_ptr(h->shards, cpu);

		shard->hedge = h;
		spin_lock_init(&shard->lock);
		shard->next_id = (u64)cpu << 48;
		shard->random = get_random_u64() | 1;
		for (i = 0; i < HEDGE_MAX_LEGS; i++)
			INIT_LIST_HEAD(&shard->out[i]);
		hedge_clock_init(shard);
	}
	return 0;
}

static int hedge_start(struct hedge *h)
{
	unsigned int i;
	int r;

	r = shards_alloc(h) ?: hedge_region_init(h) ?: hedge_sync_init(h) ?:
	    hedge_recover_init(h) ?: hedge_check_init(h);
	for (i = 0; i < h->nr_legs && !r; i++)
		r = hedge_leg_init(h, i);
	if (r)
		return r;
	h->region_wq = alloc_workqueue("dm_hedge/%s-w",
				       WQ_MEM_RECLAIM | WQ_UNBOUND, 1,
				       dm_table_device_name(h->ti->table));
	h->wq = alloc_workqueue("dm_hedge/%s", WQ_MEM_RECLAIM | WQ_UNBOUND, 0,
				dm_table_device_name(h->ti->table));
	return h->region_wq && h->wq ? 0 : -ENOMEM;
}

static int hedge_ctr(struct dm_target *ti, unsigned int argc, char **argv)
{
	unsigned int nr_legs = hedge_table_nr_legs(ti, argc, argv);
	struct hedge_conf *conf;
	struct hedge *h;
	int r;

	if (!nr_legs)
		return -EINVAL;
	ti->error = "Out of memory";
	h = hedge_alloc(ti, nr_legs);
	if (!h)
		return -ENOMEM;
	conf = hedge_conf_alloc(NULL, nr_legs);
	if (!conf) {
		r = -ENOMEM;
		goto bad;
	}
	r = hedge_table_parse(h, conf, argc, argv);
	if (r) {
		kfree(conf);
		goto bad;
	}
	hedge_conf_publish(h, conf);
	ti->error = "Out of memory";
	r = hedge_start(h);
	if (r)
		goto bad;
	r = dm_set_target_max_io_len(ti, h->region_size);
	if (r)
		goto bad;

	ti->private = h;
	ti->per_io_data_size = max(sizeof(struct hedge_parent),
				   hedge_write_size(nr_legs));
	ti->num_flush_bios = 1;
	ti->num_discard_bios = 1;
	ti->num_secure_erase_bios = 1;
	ti->num_write_zeroes_bios = 1;
	if (!hedge_leg_register(h)) {
		ti->error =
			"Expected labels and a stamp that overlap with no leg or other log";
		r = -EINVAL;
		goto bad;
	}
	return 0;

bad:
	hedge_free(h);
	return r;
}

/* Copies that lost their race may still be with their devices. */
static void drain(struct hedge *h)
{
	wait_event(h->drained, !atomic_read(&h->abandoned));
}

static void hedge_dtr(struct dm_target *ti)
{
	struct hedge *h = ti->private;

	/* First: nobody may find it while it waits. */
	hedge_leg_unregister(h);
	drain(h);
	wait_event_idle(h->drained, !atomic_read(&h->leg_ios));
	hedge_free(h);
}

static int hedge_map(struct dm_target *ti, struct bio *bio)
{
	struct hedge *h = ti->private;

	if (bio_op(bio) == REQ_OP_READ)
		return hedge_read_map(h, bio);
	return hedge_write_map(h, bio);
}

static int hedge_end_io(struct dm_target *ti, struct bio *bio,
			blk_status_t *error)
{
	if (bio_op(bio) == REQ_OP_READ)
		return hedge_read_direct_end(ti->private, bio, error);
	return DM_ENDIO_DONE;
}

static void hedge_presuspend(struct dm_target *ti)
{
	hedge_write_release(ti->private);
	hedge_check_stop(ti->private);
	hedge_recover_stop(ti->private);
}

static void hedge_presuspend_undo(struct dm_target *ti)
{
	hedge_write_unrelease(ti->private);
	hedge_recover_start(ti->private);
	hedge_check_resume(ti->private);
}

static void hedge_postsuspend(struct dm_target *ti)
{
	struct hedge *h = ti->private;

	drain(h);
	hedge_sysfs_remove(h);
	cancel_delayed_work_sync(&h->tick);
	cancel_work_sync(&h->event);
	hedge_region_stop(h);
}

static int hedge_preresume(struct dm_target *ti)
{
	return hedge_region_start(ti->private);
}

static void hedge_resume(struct dm_target *ti)
{
	struct hedge *h = ti->private;

	WRITE_ONCE(h->ran, true);
	hedge_write_unrelease(h);
	hedge_sysfs_add(h);
	queue_delayed_work(h->wq, &h->tick, HZ);
	queue_delayed_work(h->wq, &h->sweep, 0);
	hedge_recover_start(h);
	hedge_check_resume(h);
}

static int hedge_iterate_devices(struct dm_target *ti,
				 iterate_devices_callout_fn fn, void *data)
{
	struct hedge *h = ti->private;
	unsigned int i;
	int r = 0;

	for (i = 0; i < h->nr_legs && !r; i++)
		if (h->leg[i].dev)
			r = fn(ti, h->leg[i].dev, h->leg[i].offset, ti->len,
			       data);
	return r;
}

/*
 * What legs can do beyond plain I/O, and what of it the volume offers. Device-mapper
 * asks the legs that are there, and all must be able to.
 *
 * REQ_NOWAIT: offered; see hedge_read_map() and hedge_write_map().
 *
 * Atomic writes: offered, with the least limits of the legs. Each leg gets the write in
 *	one piece, so after a crash it has all of it or nothing. The legs may differ in
 *	that, but the region was marked in the log before, and until it is resynced only
 *	the default leg is read there, which has all or nothing of it. Device-mapper
 *	fails, and does not split, one that crosses a region.
 *
 * Discards, secure erase, write-zeroes: offered, unless one leg cannot.
 *
 * Zones: refused by the constructor. Writes of several submitters, resync and labels do
 *	not go to a zone's write pointer, and the place of a zone append differs between
 *	the legs.
 *
 * DAX: not offered. A store by the processor would reach one leg, and no log.
 *
 * Integrity data: not offered. A copy of a read goes to pages of its own, which have no
 *	room for the caller's, and it names sectors of the volume, not of a leg. The block
 *	layer makes and verifies it for each leg by itself.
 *
 * Inline encryption: not offered. What a leg holds would depend on a key that resync,
 *	repair and check do not have, and copies of reads carry no key. blk-crypto does it
 *	in software above the volume.
 */
static struct target_type hedge_target = {
	.name = "hedge",
	.version = { 1, 0, 0 },
	.features = DM_TARGET_NOWAIT | DM_TARGET_ATOMIC_WRITES,
	.module = THIS_MODULE,
	.ctr = hedge_ctr,
	.dtr = hedge_dtr,
	.map = hedge_map,
	.end_io = hedge_end_io,
	.presuspend = hedge_presuspend,
	.presuspend_undo = hedge_presuspend_undo,
	.postsuspend = hedge_postsuspend,
	.preresume = hedge_preresume,
	.resume = hedge_resume,
	.status = hedge_status,
	.message = hedge_message,
	.iterate_devices = hedge_iterate_devices,
};

static int __init hedge_init(void)
{
	int r = hedge_bounce_init();

	if (r)
		return r;
	r = dm_register_target(&hedge_target);
	if (r)
		hedge_bounce_exit();
	return r;
}

static void __exit hedge_exit(void)
{
	dm_unregister_target(&hedge_target);
	hedge_bounce_exit();
}

module_init(hedge_init);
module_exit(hedge_exit);

MODULE_DESCRIPTION("device-mapper hedged mirror target");
MODULE_AUTHOR("dm-hedge developers");
MODULE_LICENSE("GPL");
