// SPDX-License-Identifier: GPL-2.0
/*
 * dm-lag: a straggler. Reads of one device are served as a queue whose
 * service times follow a law of your choice, at hrtimer resolution.
 *
 *	<start> <length> lag <dev> <offset> <servers> <seed>
 *
 * A bio goes through these states:
 *
 *	queued      until it is the first of the queue and one of the <servers>
 *	   |        slots is free: first come, first served
 *	in service  its slot's hrtimer runs for the service time
 *	   |
 *	ready       a worker sends it to the device, or ends it with an error;
 *	   |        timers and completions may not submit, as that may sleep
 *	in device   until the device has answered; then the slot is free
 *
 * The device is meant to be memory, so that its time, the timer's and the
 * worker's are overhead and not service. They add to the response time of
 * their own bio but delay no other: the next service in a slot is reckoned
 * from the moment when the one before was due, or from the arrival of the bio
 * if that is later. The queue is then that of theory, however slow the
 * processor.
 *
 * Without a law, and with nothing waiting, bios go straight to the device and
 * <servers> is no limit. Other bios than reads always do so, until "writes 1".
 *
 * Messages:
 *
 *	law begin | law add <p> <ns> [<p> <ns>]... | law end
 *		The quantiles of the law: with probability <p> (in 1e-9) the
 *		service time is at most <ns>, linear in between. <p> starts
 *		at 0, ends at 1000000000 and never falls. Two pairs with the
 *		same <ns> are an atom, two with the same <p> a jump. <ns> may
 *		fall, so a mixture is its laws one after the other.
 *	law off		no delay
 *	stuck 0|1	1: no service begins, nothing that is in service or
 *			ready goes on. 0: everything goes on.
 *	error 0|1	1: an I/O error ends what is served
 *	error notsupp	what is served ends in BLK_STS_NOTSUPP, an error that is
 *			the caller's and not the device's
 *	writes 0|1	1: everything is queued, hit by stuck and by error
 *	seed <n>	restarts the random numbers
 *
 * Status: <served> <in flight> <queued> <busy ns> <stuck>, where served counts
 * the bios that ended, in flight those in a slot or gone straight to the
 * device, and busy ns is the sum of the service times of those that ended.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/device-mapper.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "compat.h"

#define DM_MSG_PREFIX "lag"

#define LAG_MAX_SERVERS	1024
#define LAG_MAX_KNOTS	8192
#define LAG_ONE		1000000000U	/* probability 1 */
#define LAG_MAX_NS	(3600ULL * NSEC_PER_SEC)

struct lag_knot {
	u32 p;			/* in 1 / LAG_ONE */
	u64 ns;
};

struct lag_law {
	unsigned int nr;
	struct lag_knot knot[LAG_MAX_KNOTS];
};

/* One server: what it serves, since when it is free. */
struct lag_slot {
	struct list_head free;	/* in lag->free unless taken */
	struct hrtimer timer;
	struct lag *lag;
	struct bio *bio;
	u64 service_ns;
	u64 due_ns;		/* end of its last service */
};

struct lag {
	struct dm_dev *dev;
	sector_t start;
	unsigned int servers;
	u64 seed;

	struct workqueue_struct *wq;
	struct work_struct work;

	struct mutex draft_lock;	/* protects draft */
	struct lag_law *draft;		/* between law begin and law end */

	spinlock_t lock;		/* protects everything below */
	struct lag_law *law;		/* NULL: no delay */
	u64 random;			/* state of the generator */
	u64 released_ns;		/* when it was last stuck */
	bool stuck;
	blk_status_t error;		/* what is served ends in it */
	bool writes;
	struct bio_list queue;
	struct bio_list ready;
	struct list_head free;
	u64 served;
	u64 busy_ns;
	unsigned int queued;
	unsigned int in_flight;
	struct lag_slot slot[];
};

/* Per bio. Only those that are counted are served, the rest pass by. */
struct lag_io {
	struct lag_slot *slot;	/* NULL: gone straight to the device */
	u64 arrived_ns;
	bool counted;
};

static struct lag_io *lag_io(struct bio *bio)
{
	return dm_per_bio_data(bio, sizeof(struct lag_io));
}

/* The generator is splitmix64: one addition, then a mix of its bits. */
static u32 lag_random(struct lag *lag)
{
	u64 z = lag->random += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (z ^ (z >> 31)) >> 32;
}

/*
 * The inverse of the law's distribution function at a random place. The place
 * has 32 fractional bits below 1 / LAG_ONE, so the rarest step is smooth too.
 */
static u64 lag_draw(struct lag *lag)
{
	const struct lag_law *law = lag->law;
	unsigned int low = 0, high, mid;
	const struct lag_knot *a, *b;
	u64 at, fraction;

	if (!law)
		return 0;

	/* the last knot at or below the place, which is below 1 */
	at = (u64)lag_random(lag) * LAG_ONE;
	high = law->nr - 1;
	while (high - low > 1) {
		mid = (low + high) / 2;
		if ((u64)law->knot[mid].p << 32 <= at)
			low = mid;
		else
			high = mid;
	}

	a = &law->knot[low];
	b = a + 1;
	fraction = div64_u64(at - ((u64)a->p << 32), b->p - a->p);
	if (b->ns >= a->ns)
		return a->ns + mul_u64_u64_shr(b->ns - a->ns, fraction, 32);
	return a->ns - mul_u64_u64_shr(a->ns - b->ns, fraction, 32);
}

/* A service has ended: the worker does the rest. */
static void lag_ready(struct lag *lag, struct bio *bio)
{
	bio_list_add(&lag->ready, bio);
	queue_work(lag->wq, &lag->work);
}

static enum hrtimer_restart lag_timer(struct hrtimer *timer)
{
	struct lag_slot *slot = container_of(timer, struct lag_slot, timer);
	struct lag *lag = slot->lag;
	unsigned long flags;

	spin_lock_irqsave(&lag->lock, flags);
	lag_ready(lag, slot->bio);
	spin_unlock_irqrestore(&lag->lock, flags);

	return HRTIMER_NORESTART;
}

static void lag_begin_service(struct lag *lag, struct lag_slot *slot,
			      struct bio *bio, u64 now)
{
	struct lag_io *io = lag_io(bio);
	u64 begin = max3(io->arrived_ns, slot->due_ns, lag->released_ns);

	io->slot = slot;
	slot->bio = bio;
	slot->service_ns = lag_draw(lag);
	slot->due_ns = begin + slot->service_ns;

	if (slot->due_ns <= now)
		lag_ready(lag, bio);
	else
		hrtimer_start(&slot->timer, ns_to_ktime(slot->due_ns),
			      HRTIMER_MODE_ABS);
}

/* Begins the services for which there is a bio and a slot. */
static void lag_serve(struct lag *lag)
{
	u64 now = ktime_get_ns();
	struct lag_slot *slot;

	while (!lag->stuck && lag->queued && !list_empty(&lag->free)) {
		slot = list_first_entry(&lag->free, struct lag_slot, free);
		list_del(&slot->free);
		lag->queued--;
		lag->in_flight++;
		lag_begin_service(lag, slot, bio_list_pop(&lag->queue), now);
	}
}

static void lag_work(struct work_struct *work)
{
	struct lag *lag = container_of(work, struct lag, work);
	struct bio_list ready;
	blk_status_t error;
	struct bio *bio;

	bio_list_init(&ready);
	spin_lock_irq(&lag->lock);
	if (!lag->stuck) {
		bio_list_merge(&ready, &lag->ready);
		bio_list_init(&lag->ready);
	}
	error = lag->error;
	spin_unlock_irq(&lag->lock);

	while ((bio = bio_list_pop(&ready))) {
		if (error) {
			bio->bi_status = error;
			bio_endio(bio);
		} else {
			dm_submit_bio_remap(bio, NULL);
		}
	}
}

static int lag_map(struct dm_target *ti, struct bio *bio)
{
	struct lag *lag = ti->private;
	struct lag_io *io = lag_io(bio);
	int r = DM_MAPIO_SUBMITTED;
	unsigned long flags;

	bio_set_dev(bio, lag->dev->bdev);
	bio->bi_iter.bi_sector = lag->start +
				 dm_target_offset(ti, bio->bi_iter.bi_sector);

	io->slot = NULL;
	io->counted = bio_op(bio) == REQ_OP_READ || READ_ONCE(lag->writes);
	if (!io->counted)
		return DM_MAPIO_REMAPPED;

	spin_lock_irqsave(&lag->lock, flags);
	if (!lag->law && !lag->stuck && !lag->error && !lag->queued) {
		lag->in_flight++;
		r = DM_MAPIO_REMAPPED;
	} else {
		/* nobody polls while it waits, and the worker may sleep */
		bio->bi_opf &= ~(REQ_POLLED | REQ_NOWAIT);
		io->arrived_ns = ktime_get_ns();
		bio_list_add(&lag->queue, bio);
		lag->queued++;
		lag_serve(lag);
	}
	spin_unlock_irqrestore(&lag->lock, flags);

	return r;
}

static int lag_end_io(struct dm_target *ti, struct bio *bio,
		      blk_status_t *error)
{
	struct lag *lag = ti->private;
	struct lag_io *io = lag_io(bio);
	unsigned long flags;

	if (!io->counted)
		return DM_ENDIO_DONE;

	spin_lock_irqsave(&lag->lock, flags);
	lag->served++;
	lag->in_flight--;
	if (io->slot) {
		lag->busy_ns += io->slot->service_ns;
		io->slot->bio = NULL;
		list_add(&io->slot->free, &lag->free);
		lag_serve(lag);
	}
	spin_unlock_irqrestore(&lag->lock, flags);

	return DM_ENDIO_DONE;
}

static void lag_set_law(struct lag *lag, struct lag_law *law)
{
	struct lag_law *old;

	spin_lock_irq(&lag->lock);
	old = lag->law;
	lag->law = law;
	spin_unlock_irq(&lag->lock);

	kvfree(old);
}

static int lag_law_begin(struct lag *lag)
{
	struct lag_law *law;

	law = kvmalloc(sizeof(*law), GFP_NOIO);
	if (!law)
		return -ENOMEM;

	law->nr = 0;
	kvfree(lag->draft);
	lag->draft = law;
	return 0;
}

static int lag_law_add(struct lag_law *law, unsigned int argc, char **argv)
{
	struct lag_knot *knot;

	if (!law || !argc || argc % 2)
		return -EINVAL;

	for (; argc; argc -= 2, argv += 2) {
		if (law->nr == LAG_MAX_KNOTS)
			return -ENOSPC;
		knot = &law->knot[law->nr];
		if (kstrtou32(argv[0], 10, &knot->p) || knot->p > LAG_ONE ||
		    kstrtou64(argv[1], 10, &knot->ns) || knot->ns > LAG_MAX_NS)
			return -EINVAL;
		if (law->nr ? knot->p < knot[-1].p : knot->p != 0)
			return -EINVAL;
		law->nr++;
	}
	return 0;
}

static int lag_law_end(struct lag *lag)
{
	struct lag_law *law = lag->draft;

	if (!law || law->nr < 2 || law->knot[law->nr - 1].p != LAG_ONE)
		return -EINVAL;

	lag->draft = NULL;
	lag_set_law(lag, law);
	return 0;
}

static int lag_message_law(struct lag *lag, unsigned int argc, char **argv)
{
	int r = -EINVAL;

	mutex_lock(&lag->draft_lock);
	if (argc > 1 && !strcmp(argv[0], "add")) {
		r = lag_law_add(lag->draft, argc - 1, argv + 1);
	} else if (argc == 1 && !strcmp(argv[0], "begin")) {
		r = lag_law_begin(lag);
	} else if (argc == 1 && !strcmp(argv[0], "end")) {
		r = lag_law_end(lag);
	} else if (argc == 1 && !strcmp(argv[0], "off")) {
		lag_set_law(lag, NULL);
		r = 0;
	}
	mutex_unlock(&lag->draft_lock);

	return r;
}

static void lag_set_stuck(struct lag *lag, bool stuck)
{
	spin_lock_irq(&lag->lock);
	if (lag->stuck && !stuck) {
		lag->released_ns = ktime_get_ns();
		queue_work(lag->wq, &lag->work);
	}
	lag->stuck = stuck;
	lag_serve(lag);
	spin_unlock_irq(&lag->lock);
}

static void lag_set_error(struct lag *lag, blk_status_t error)
{
	spin_lock_irq(&lag->lock);
	lag->error = error;
	spin_unlock_irq(&lag->lock);
}

static void lag_set_writes(struct lag *lag, bool writes)
{
	spin_lock_irq(&lag->lock);
	lag->writes = writes;
	spin_unlock_irq(&lag->lock);
}

static void lag_set_seed(struct lag *lag, u64 seed)
{
	spin_lock_irq(&lag->lock);
	lag->random = seed;
	spin_unlock_irq(&lag->lock);
}

static int lag_message(struct dm_target *ti, unsigned int argc, char **argv,
		       char *result, unsigned int maxlen)
{
	struct lag *lag = ti->private;
	u64 value;

	if (argc >= 2 && !strcmp(argv[0], "law"))
		return lag_message_law(lag, argc - 1, argv + 1);

	if (argc == 2 && !strcmp(argv[0], "error") &&
	    !strcmp(argv[1], "notsupp")) {
		lag_set_error(lag, BLK_STS_NOTSUPP);
		return 0;
	}

	if (argc != 2 || kstrtou64(argv[1], 10, &value))
		return -EINVAL;

	if (!strcmp(argv[0], "seed")) {
		lag_set_seed(lag, value);
		return 0;
	}

	if (value > 1)
		return -EINVAL;

	if (!strcmp(argv[0], "stuck"))
		lag_set_stuck(lag, value);
	else if (!strcmp(argv[0], "error"))
		lag_set_error(lag, value ? BLK_STS_IOERR : BLK_STS_OK);
	else if (!strcmp(argv[0], "writes"))
		lag_set_writes(lag, value);
	else
		return -EINVAL;
	return 0;
}

static void lag_status(struct dm_target *ti, status_type_t type,
		       unsigned int status_flags, char *result,
		       unsigned int maxlen)
{
	struct lag *lag = ti->private;
	unsigned int sz = 0;

	switch (type) {
	case STATUSTYPE_INFO:
		spin_lock_irq(&lag->lock);
		DMEMIT("%llu %u %u %llu %d", lag->served, lag->in_flight,
		       lag->queued, lag->busy_ns, lag->stuck);
		spin_unlock_irq(&lag->lock);
		break;
	case STATUSTYPE_TABLE:
		DMEMIT("%s %llu %u %llu", lag->dev->name,
		       (unsigned long long)lag->start, lag->servers, lag->seed);
		break;
	case STATUSTYPE_IMA:
		*result = '\0';
		break;
	}
}

static int lag_iterate_devices(struct dm_target *ti,
			       iterate_devices_callout_fn fn, void *data)
{
	struct lag *lag = ti->private;

	return fn(ti, lag->dev, lag->start, ti->len, data);
}

static struct lag *lag_alloc(unsigned int servers, u64 seed)
{
	struct lag_slot *slot;
	struct lag *lag;

	lag = kvzalloc(struct_size(lag, slot, servers), GFP_KERNEL);
	if (!lag)
		return NULL;

	lag->wq = alloc_workqueue("dm_lag", WQ_MEM_RECLAIM | WQ_HIGHPRI |
				  WQ_UNBOUND, 0);
	if (!lag->wq) {
		kvfree(lag);
		return NULL;
	}

	lag->servers = servers;
	lag->seed = seed;
	lag->random = seed;
	mutex_init(&lag->draft_lock);
	spin_lock_init(&lag->lock);
	INIT_WORK(&lag->work, lag_work);
	INIT_LIST_HEAD(&lag->free);
	for (slot = lag->slot; slot < lag->slot + servers; slot++) {
		slot->lag = lag;
		list_add_tail(&slot->free, &lag->free);
		hrtimer_setup(&slot->timer, lag_timer, CLOCK_MONOTONIC,
			      HRTIMER_MODE_ABS);
	}
	return lag;
}

/* No bio is left, but the timer or worker that saw the last may still run. */
static void lag_free(struct lag *lag)
{
	unsigned int i;

	for (i = 0; i < lag->servers; i++)
		hrtimer_cancel(&lag->slot[i].timer);
	destroy_workqueue(lag->wq);
	kvfree(lag->draft);
	kvfree(lag->law);
	kvfree(lag);
}

static int lag_ctr(struct dm_target *ti, unsigned int argc, char **argv)
{
	unsigned int servers;
	struct lag *lag;
	sector_t start;
	u64 seed;
	int r;

	if (argc != 4) {
		ti->error = "Expected <dev> <offset> <servers> <seed>";
		return -EINVAL;
	}
	if (kstrtou64(argv[1], 10, &start)) {
		ti->error = "Invalid offset: expected a number of sectors";
		return -EINVAL;
	}
	if (kstrtouint(argv[2], 10, &servers) || !servers ||
	    servers > LAG_MAX_SERVERS) {
		ti->error = "Invalid servers: expected 1 to 1024";
		return -EINVAL;
	}
	if (kstrtou64(argv[3], 10, &seed)) {
		ti->error = "Invalid seed: expected a 64 bit number";
		return -EINVAL;
	}

	lag = lag_alloc(servers, seed);
	if (!lag) {
		ti->error = "Cannot allocate context";
		return -ENOMEM;
	}
	lag->start = start;

	r = dm_get_device(ti, argv[0], dm_table_get_mode(ti->table), &lag->dev);
	if (r) {
		ti->error = "Device lookup failed";
		lag_free(lag);
		return r;
	}

	ti->private = lag;
	ti->num_flush_bios = 1;
	ti->num_discard_bios = 1;
	ti->num_secure_erase_bios = 1;
	ti->num_write_zeroes_bios = 1;
	ti->per_io_data_size = sizeof(struct lag_io);
	ti->accounts_remapped_io = true;
	return 0;
}

static void lag_dtr(struct dm_target *ti)
{
	struct lag *lag = ti->private;

	dm_put_device(ti, lag->dev);
	lag_free(lag);
}

static struct target_type lag_target = {
	.name = "lag",
	.version = {1, 0, 0},
	.features = DM_TARGET_NOWAIT,
	.module = THIS_MODULE,
	.ctr = lag_ctr,
	.dtr = lag_dtr,
	.map = lag_map,
	.end_io = lag_end_io,
	.message = lag_message,
	.status = lag_status,
	.iterate_devices = lag_iterate_devices,
};

static int __init lag_init(void)
{
	return dm_register_target(&lag_target);
}

static void __exit lag_exit(void)
{
	dm_unregister_target(&lag_target);
}

module_init(lag_init);
module_exit(lag_exit);

MODULE_DESCRIPTION("device-mapper target that serves reads as a queue, slowly");
MODULE_LICENSE("GPL");
