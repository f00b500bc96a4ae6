/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dm-hedge: what the files of the module give to each other.
 *
 * A read that may be copied is a struct hedge_read with pages of its own; each
 * sending of it to a leg is a struct hedge_copy. The home of a read is the
 * struct hedge_shard of the CPU on which it arrived: its lock covers the state
 * of the read and of all its copies, and the clock that they wait on. So reads
 * of different CPUs share no lock. What does not fit into a leg's slots, and
 * reads that are overdue but may not be hedged yet, wait in lists of the target
 * under hedge->wait_lock, which is not touched while nobody waits.
 *
 * Lock order: hedge->wait_lock, then shard->lock, then leg->todo_lock. All are
 * taken with interrupts off. RCU protects hedge->conf, and every completion
 * runs inside an RCU read section, for which the destructor waits.
 */
#ifndef DM_HEDGE_H
#define DM_HEDGE_H

#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/completion.h>
#include <linux/device-mapper.h>
#include <linux/dm-dirty-log.h>
#include <linux/dm-io.h>
#include <linux/dm-kcopyd.h>
#include <linux/hrtimer.h>
#include <linux/kobject.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/rbtree.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/timerqueue.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "core/histogram.h"
#include "core/knobs.h"
#include "core/policy.h"
#include "core/service.h"
#include "core/sitout.h"
#include "core/task.h"
#include "core/tau.h"

#define DM_MSG_PREFIX "hedge"

struct hedge;
struct hedge_labels;
struct hedge_read;

/* Counters of a target, one set a CPU; the names are in stats.c. */
enum hedge_counter {
	HEDGE_READS,
	HEDGE_COPIES_STARTED,
	HEDGE_EXTRA,
	HEDGE_HEDGED,
	HEDGE_WON,
	HEDGE_WASTED,
	HEDGE_CANCELLED,
	HEDGE_MOVED,
	HEDGE_RESCUED,
	HEDGE_UNHEDGED_BUDGET,
	HEDGE_UNHEDGED_MEMORY,
	HEDGE_UNHEDGED_SYNC,
	HEDGE_UNHEDGED_LARGE,
	HEDGE_RETRIED,
	HEDGE_REPAIRED,
	HEDGE_MISMATCHES,
	HEDGE_NR_COUNTERS,
};

/**
 * struct hedge_leg_stats - what one CPU counted of one leg
 * @reads: read copies started
 * @errors: read copies that failed
 * @hist: latencies of read copies from start to completion
 * @depth: latencies by the copies in flight at the start
 */
struct hedge_leg_stats {
	unsigned long reads;
	unsigned long errors;
	unsigned long hist[HEDGE_NR_SIZES][HEDGE_HIST_BUCKETS];
	struct hedge_depth_sample depth[HEDGE_DEPTHS];
};

/* Why a leg is not healthy; the first that applies names it in the status. */
enum hedge_health {
	HEDGE_WRITE_FAILED,
	HEDGE_FLUSH_FAILED,
	HEDGE_SYNC_FAILED,
	HEDGE_READ_FAILED,
	HEDGE_TAKEN_OUT,
};

/**
 * struct hedge_leg_io - the one I/O of our own that a leg may have out (leg_io.c)
 * @out: handed to the leg's worker, and not seen to have ended
 * @ended: the device has answered
 * @left: a write or a flush that was left behind, and whose end was not told yet
 * @bvec: of @bio
 * @bio: the I/O
 */
struct hedge_leg_io {
	bool out;
	bool ended;
	bool left;
	struct bio_vec bvec;
	struct bio bio;
};

/**
 * struct hedge_leg - a replica
 * @hedge: the target
 * @index: position in the table
 * @dev: the device, NULL if it is missing
 * @offset: where the data begins on it, in sectors
 * @nowait: whether its driver takes REQ_NOWAIT
 * @health: bit for each enum hedge_health that happened
 * @missed: bit for each region in which it lacks writes (set by the region
 *          worker only, and by preresume)
 * @nr_missed: how many
 * @rewritten: bit for each leg that was rewritten from this one while flushes were out that
 *             may tell that this one had dropped its cache
 * @stats: per CPU
 * @stats_base: sums at the last reset, which are subtracted
 * @seen: sums of @stats at the last tick (tick only)
 * @depth: fading sums of @stats->depth (tick only)
 * @tau: fading sums of @stats->hist, by size class (tick only)
 * @wq: where @work runs; of its own, as it may block for want of tags
 * @work: submits what is in @todo
 * @todo_lock: protects @todo and @writes
 * @todo: started copies that a sleeping context must hand to the device
 * @writes: writes of the same kind
 * @queue: copies that wait for a slot, under hedge->wait_lock
 * @queued: how many
 * @inflight: read copies started and not completed
 * @service_us: smoothed service time
 * @class_us: the same by size class, measured under "balance llw" only
 * @work_us: what its copies, in flight and queued, are expected to take; those
 *           that were placed under "balance llw" only
 * @last_done_ns: when a read copy last completed
 * @auto_depth: copies below which the leg counts as idle, as learnt
 * @probed_ns: when a leg that is stalled or sits out was last given the
 *             duplicate of a read
 * @kobj: legs/<i>
 * @has_kobj: while @kobj is there
 * @released: completed when @kobj has been released
 * @io: I/O of our own
 */
struct hedge_leg {
	struct hedge *hedge;
	unsigned int index;
	struct dm_dev *dev;
	sector_t offset;
	bool nowait;
	unsigned long health;
	unsigned long *missed;
	region_t nr_missed;
	unsigned long rewritten;

	struct hedge_leg_stats __percpu *stats;
	struct hedge_leg_stats *stats_base;
	struct hedge_leg_stats *seen;
	struct hedge_depth_sample depth[HEDGE_DEPTHS];
	struct hedge_tau_hist *tau;

	struct workqueue_struct *wq;
	struct work_struct work;
	spinlock_t todo_lock;		/* covers todo and writes */
	struct list_head todo;
	struct bio_list writes;

	struct list_head queue;
	unsigned int queued;

	/* Written for every copy; the rest is not. */
	atomic_t inflight ____cacheline_aligned_in_smp;
	u32 service_us;
	u64 last_done_ns;
	u32 class_us[HEDGE_NR_SIZES];
	atomic64_t work_us;

	u32 auto_depth ____cacheline_aligned_in_smp;
	u64 probed_ns;

	struct kobject kobj;
	bool has_kobj;
	struct completion released;

	struct hedge_leg_io *io;
};

/* What a copy is for. */
enum hedge_kind {
	HEDGE_ARRIVAL,		/* sent when the read arrived */
	HEDGE_HEDGE,		/* sent because the read is overdue */
	HEDGE_RESCUE,		/* sent because all others are on stalled legs */
};

enum hedge_copy_state {
	HEDGE_COPY_NEW,
	HEDGE_COPY_QUEUED,	/* waits for a slot of its leg: can be cancelled */
	HEDGE_COPY_STARTED,	/* its device's, or on the way there */
	HEDGE_COPY_CANCELLED,	/* was queued, and will not be sent */
};

/**
 * struct hedge_copy - one sending of a read to one leg
 * @read: the read; each copy holds a reference to it
 * @leg: where to
 * @kind: what for
 * @state: changed under the shard's lock, and to and from QUEUED under
 *         hedge->wait_lock as well
 * @nowait: whether it was submitted with a REQ_NOWAIT of our own
 * @probing: reads the probe, not yet the whole (probe.c)
 * @probed: was a probe, and has got the whole read for that
 * @depth: index of the copies in flight at its start
 * @work_us: its part of leg->work_us
 * @started_ns: when it was handed to the device
 * @out: in shard->out of its leg while started, oldest first
 * @list: in leg->queue (QUEUED) or leg->todo (STARTED)
 * @next: in read->queued (QUEUED) or struct hedge_sends (STARTED)
 */
struct hedge_copy {
	struct hedge_read *read;
	struct hedge_leg *leg;
	u8 kind;
	u8 state;
	bool nowait;
	bool probing;
	bool probed;
	u8 depth;
	u32 work_us;
	u64 started_ns;
	struct list_head out;
	struct list_head list;
	struct hedge_copy *next;
};

/**
 * struct hedge_place - the place of a read in an ordered set (order.c)
 * @node: in the tree; empty while it is not in the set
 * @rank: the least comes first
 */
struct hedge_place {
	struct rb_node node;
	struct hedge_rank rank;
};

static inline bool hedge_placed(const struct hedge_place *place)
{
	return !RB_EMPTY_NODE(&place->node);
}

/**
 * struct hedge_job - a read that was cut into tasks (task.c)
 * @left: tasks that are not done; the last one ends the parent
 * @status: the error of one that failed, if any did
 * @unassigned: tasks that no leg has started, under the lock of their home
 * @tasks: those that are not done, likewise and under hedge->wait_lock
 *
 * It lies in the per-bio data of the parent, which lives until the last of its
 * tasks is done.
 */
struct hedge_job {
	atomic_t left;
	blk_status_t status;
	u32 unassigned;
	struct list_head tasks;
};

/**
 * struct hedge_read - a read, or a task of one
 * @hedge: the target
 * @shard: its home, whose lock covers all that follows
 * @parent: the bio to end; not touched by others once @done is set
 * @job: what it is a task of, NULL for a whole read; as @parent
 * @of_job: in @job->tasks
 * @id: ties the tracepoints of one read
 * @arrival_ns: when it arrived
 * @tau_at: when it becomes overdue, 0 if it does not
 * @rescue_at: when its legs are looked at next, 0 if never
 * @clock: in shard->clock at the earlier of both
 * @task: in hedge->tasks while it waits for a leg; changed under
 *        hedge->wait_lock as well
 * @late: in hedge->overdue while it could get another copy; likewise
 * @queued: its copies that wait for a slot; likewise
 * @iter: the parent's iterator as it arrived, or the part that is this task's
 * @css: cgroup that the parent is charged to, with a reference; NULL for a direct read that
 *       was sent from map
 * @opf: operation and flags of its copies
 * @ioprio: their priority
 * @usable: legs that may serve it, as of when it was last looked at
 * @on: legs that have, had or wait for a copy of it
 * @out: legs that have a started one
 * @failed: legs on which it failed
 * @unreadable: those of them on which it was not for want of a tag
 * @refs: copies, and who else works on it
 * @starts: copies started so far
 * @wanted: copies that are to be sent at arrival
 * @hedges: hedges sent so far
 * @probe: size of a probe in bytes; 0 if its copies do not begin with one
 * @probe_first: probes go ahead of others
 * @decided: a probe has won, and its leg has the whole read
 * @direct: reads straight into the parent's pages: has just one copy ever and
 *          lives in the parent's per-bio data
 * @alone: a direct read that began where reads get no other copies and do not
 *         wait: see read.c for what of this it has
 * @nowait: the parent must not wait
 * @done: the parent was, or is being, ended
 * @abandoned: counted in hedge->abandoned
 * @starved: counted in unhedged_budget
 * @first: its first copy
 */
struct hedge_read {
	struct hedge *hedge;
	struct hedge_shard *shard;
	struct bio *parent;
	struct hedge_job *job;
	struct list_head of_job;
	u64 id;
	u64 arrival_ns;
	u64 tau_at;
	u64 rescue_at;
	struct timerqueue_node clock;
	struct hedge_place task;
	struct hedge_place late;
	struct hedge_copy *queued;
	struct bvec_iter iter;
	struct cgroup_subsys_state *css;
	blk_opf_t opf;
	unsigned short ioprio;
	u8 usable;
	u8 on;
	u8 out;
	u8 failed;
	u8 unreadable;
	u8 refs;
	u8 starts;
	u8 wanted;
	u8 hedges;
	u32 probe;
	bool probe_first;
	bool decided;
	bool direct;
	bool alone;
	bool nowait;
	bool done;
	bool abandoned;
	bool starved;
	struct hedge_copy first;
};

/**
 * struct hedge_parent - per-bio data of a read
 * @job: what its tasks share, if it was cut
 * @read: the read, if it is direct
 */
struct hedge_parent {
	struct hedge_job job;
	struct hedge_read read;
};

/**
 * struct hedge_bounce - a copy with a bio and pages of its own
 * @read: the read, if this is its first copy; else only @read.first is used
 * @next: in the shard's free list, or the next task of a read that is cut
 * @order: of the pages
 * @data: the pages, physically contiguous
 * @bvec: the one segment of @bio
 * @bio: what is handed to the leg
 */
struct hedge_bounce {
	struct hedge_read read;
	struct hedge_bounce *next;
	unsigned int order;
	void *data;
	struct bio_vec bvec;
	struct bio bio;
};

#define HEDGE_MAX_ORDER (20 - PAGE_SHIFT)	/* max_copy_kb goes up to 1 MiB */

/**
 * struct hedge_shard - the reads that arrived on one CPU
 * @hedge: the target
 * @lock: covers @clock, @out, @armed_ns and the reads
 * @clock: deadlines of the reads, earliest first
 * @timer: fires at @armed_ns
 * @armed_ns: when @timer fires, KTIME_MAX if it is not armed
 * @next_id: number of the next read
 * @out: started copies by leg, oldest first
 * @random: state of this CPU's generator (races only spoil randomness)
 * @turn: whose turn it is in round-robin (likewise)
 * @credit: hundredths of a copy not yet in hedge->bucket (@lock)
 * @free: bounces to use again, by order (this CPU only, interrupts off)
 * @free_bytes: memory in them
 * @counters: what was counted on this CPU
 */
struct hedge_shard {
	struct hedge *hedge;
	spinlock_t lock;		/* covers clock, out and the reads */
	struct timerqueue_head clock;
	struct hrtimer timer;
	ktime_t armed_ns;
	u64 next_id;
	struct list_head out[HEDGE_MAX_LEGS];
	u64 random;
	u32 turn;
	u32 credit;
	struct hedge_bounce *free[HEDGE_MAX_ORDER + 1];
	unsigned int free_bytes;
	unsigned long counters[HEDGE_NR_COUNTERS];
};

/**
 * struct hedge_leg_conf - settings of one leg
 * @weight: routing weight
 * @hedge_weight: the same for hedges
 * @timeout_us: its own timeout, or HEDGE_TIMEOUT_INHERIT
 */
struct hedge_leg_conf {
	u32 weight;
	u32 hedge_weight;
	u32 timeout_us;
};

/**
 * struct hedge_conf - all settings at one time; never changed once published
 * @rcu: frees it after its last reader
 * @knobs: what the user set
 * @leg: the same for each leg
 * @auto_ns: the learnt timeout of each size class, 0 if none
 * @tau_ns: the timeout in force for a size class on a leg, 0 if none
 * @rescue_ns: rescue_us
 * @max_copy: max_copy_kb in bytes
 * @task: task_kb in bytes; 0 if reads are not cut
 * @probe: probe_kb in bytes; 0 if there are no probes
 * @speculative: whether a read can ever get more than one copy
 * @at_once: whether a read may get another copy as soon as it has started
 * @waits: whether arrivals need hedge->wait_lock: legs have slots, or @at_once
 * @alone: whether reads get no other copies, do not wait and are not cut
 * @single: whether a read is just sent to one leg at arrival
 * @plain: whether the leg of one copy is just that with the least latency key
 */
struct hedge_conf {
	struct rcu_head rcu;
	struct hedge_knobs knobs;
	struct hedge_leg_conf leg[HEDGE_MAX_LEGS];
	u64 auto_ns[HEDGE_NR_SIZES];
	u64 tau_ns[HEDGE_NR_SIZES][HEDGE_MAX_LEGS];
	u64 rescue_ns;
	u32 max_copy;
	u32 task;
	u32 probe;
	bool speculative;
	bool at_once;
	bool waits;
	bool alone;
	bool single;
	bool plain;
};

/* What the recovery is doing: recover.c. */
enum hedge_recover_state {
	HEDGE_RECOVER_IDLE,
	HEDGE_RECOVER_DRAINING,	/* its region is closed; writes in it go on */
	HEDGE_RECOVER_COPYING,	/* kcopyd is at work, or the check */
	HEDGE_RECOVER_COPIED,	/* it has ended */
	HEDGE_RECOVER_LATE,	/* they still are, but the region was opened */
};

/**
 * struct hedge_recover - the one region that is being worked on
 * @state: changed by the region worker, but for COPYING to COPIED and LATE to IDLE
 *	   (h->region_lock)
 * @region: the closed region
 * @sector: first sector to copy, from the start of the target
 * @count: how many
 * @source: leg to copy from; of @borrowed the one that is in use (h->region_lock)
 * @dests: bit for each leg to copy to; of @borrowed the same leg if it is written to
 * @repair: part of a region is rewritten on legs that could not read it
 * @unread: bit for each of these legs
 * @borrowed: the check works on it
 * @wanted: region that the check wants, or -1 (h->region_lock)
 * @dest: which leg each of kcopyd's destinations is
 * @read_error: the source could not be read
 * @write_error: bit for each of kcopyd's destinations that failed; of @borrowed, each leg
 * @next: where to look for the next region
 * @failed: a region could not be copied in this round
 * @stale: a flush of the source has failed since the copy began: what was read may be
 *         older than what others hold
 * @kcopyd: the client
 * @stopped: nothing new is to be begun (h->region_lock)
 * @idle: woken when @state becomes IDLE
 * @repairs: blocks to rewrite (h->region_lock)
 * @nr_repairs: how many
 */
struct hedge_recover {
	enum hedge_recover_state state;
	region_t region;
	sector_t sector;
	sector_t count;
	unsigned int source;
	unsigned long dests;
	bool repair;
	unsigned long unread;
	bool borrowed;
	u8 dest[HEDGE_MAX_LEGS];
	bool read_error;
	unsigned long write_error;
	region_t next;
	bool failed;
	bool stale;
	struct dm_kcopyd_client *kcopyd;
	bool stopped;
	wait_queue_head_t idle;
	struct list_head repairs;
	unsigned int nr_repairs;
	s64 wanted;
};

/**
 * struct hedge_check - comparing the legs
 * @work: compares
 * @lock: covers @running and @stopped
 * @running: it was asked for, and is not through
 * @stopped: the target is suspended, or is being
 * @source: leg that is right, or -1
 * @next: region to compare next
 * @mismatches: blocks that differed
 * @rewritten: those of them that were rewritten wherever they were compared
 * @closed: completed when the region is closed and drained, or cannot be
 * @is_closed: which of both
 * @io: dm-io's client
 * @buf: a piece of each leg
 */
struct hedge_check {
	struct work_struct work;
	spinlock_t lock;		/* covers running and stopped */
	bool running;
	bool stopped;
	int source;
	region_t next;
	unsigned long mismatches;
	unsigned long rewritten;
	struct completion closed;
	bool is_closed;
	struct dm_io_client *io;
	void *buf[HEDGE_MAX_LEGS];
};

/**
 * struct hedge - a target
 * @ti: the device-mapper target
 * @log: the dirty log
 * @log_dev: its device, NULL if it is in memory
 * @labels: of the legs, NULL if they have none (label.c)
 * @region_size: of the log, in sectors
 * @nr_regions: of the log
 * @region_shift: its logarithm
 * @region: a word for each region: region.c
 * @open: bit for each region that is not clean (region worker only)
 * @nosync: the log's argument: whatever it says, all is in sync
 * @known: what the legs hold is known, for a later table too
 * @lost: a flush has failed on the last full leg since the last sweep
 * @untold: that happened, and no flush by the user has failed for it yet (an int
 *          for xchg(), as @sweep_due and @close_due)
 * @losses: how often all legs may have lost what they had in their caches (region worker)
 * @flushed: all legs have been flushed since the last regions became MARKED, and none has
 *           failed in that or gone out (region worker)
 * @whole: bit for each partial leg that lacked nothing when all legs had been flushed, and
 *         does not since (region worker)
 * @no_zeroes: a leg has refused to write zeroes
 * @ran: whether it was ever resumed, and all targets of its table with it
 * @log_failed: the log could not be written
 * @handle_errors: the feature of that name
 * @keep_log: likewise
 * @force: likewise, until the labels say what it has decided
 * @read_only: the table is: nothing is written but what the log writes itself
 * @nr_legs: how many legs
 * @live: bit for each leg that is not out (changed by the region worker, under
 *        @wait_lock)
 * @partial: bit for each live leg that misses regions (region worker)
 * @returns: how often a leg has become live and partial (region worker)
 * @vouched: bit for each leg that is on record as holding every write: none that
 *           lacks one of them is acknowledged (region worker)
 * @default_leg: the live leg, not partial, that regions are copied from
 * @unflushed: bit for each leg that failed a flush which has not ended yet
 * @stalled: bit for each stalled leg (changed under @wait_lock)
 * @sitting: bit for each leg that sits out (likewise)
 * @conf: the settings in force
 * @conf_mutex: serialises changes of @conf
 * @shards: per CPU
 * @counters_base: sums at the last reset, which are subtracted
 * @bucket: hundredths of a copy in the budget
 * @bounce_bytes: memory of all bounces, in use and free
 * @bounce_limit: the most that it may be
 * @free_max: the most that the free lists of one CPU may hold
 * @abandoned: reads that ended while copies of them are still out
 * @leg_ios: I/O of our own to legs that is out (leg_io.c)
 * @drained: woken when @abandoned becomes zero, and for each of @leg_ios that ends
 * @wait_lock: covers what waits (@tasks, @overdue, leg->queue, @held) and
 *             changes of @live, @stalled and @sitting
 * @tasks: reads that wait for a leg: the shared queue, by rank
 * @overdue: started reads that are to get another copy when it is possible, by
 *           rank: those that are overdue, or all where that is at once
 * @nr_tasks: length of @tasks
 * @nr_overdue: length of @overdue
 * @waiting: how many wait in all; read without the lock
 * @held: writes that wait for the table to be reloaded
 * @nr_held: how many
 * @suspending: no write is held any more
 * @region_lock: covers @deferred, @ended, @to_fail, @to_reinstate, @flushes
 * @flushes: flushes by users that are out: from before and since the last mark
 * @flush_epoch: which of them are since (changed by the region worker)
 * @deferred: writes that wait for their regions to be opened
 * @wanted: region plus one that is to be opened though no write waits for
 *          it, 0 if none
 * @blocked: writes that wait for a closed region (region worker only)
 * @ended: writes whose end is not a matter of course
 * @to_fail: bit for each leg that is to be taken out
 * @to_reinstate: bit for each leg that is to come back
 * @sweep_due: idle regions are to be cleaned
 * @close_due: all regions are to be cleaned
 * @region_work: the region worker
 * @sweep: sets @sweep_due
 * @recover: the region that is being worked on
 * @check: the check
 * @region_wq: for @region_work alone: writes wait for it, so it must not wait for
 *             a worker with what needs memory, or itself waits for it
 * @wq: for @tick, @event, @sweep and @check
 * @tick: once a second
 * @tick_mutex: serialises evaluations
 * @sitout: who sits out, and why (tick only)
 * @event: tells userspace that a leg changed
 * @changed: what @event has to tell: bit for each leg
 * @targets: in the list of all targets
 * @visible: in the list of targets that are in sysfs
 * @kobj: hedgeN
 * @released: completed when @kobj has been released
 * @legs_kobj: hedgeN/legs
 * @leg: the legs
 */
struct hedge {
	struct dm_target *ti;
	struct dm_dirty_log *log;
	struct dm_dev *log_dev;
	struct hedge_labels *labels;
	sector_t region_size;
	region_t nr_regions;
	unsigned int region_shift;
	atomic_t *region;
	unsigned long *open;
	bool nosync;
	bool known;
	bool ran;
	bool lost;
	int untold;
	unsigned int losses;
	bool flushed;
	unsigned long whole;
	bool no_zeroes;
	bool log_failed;
	bool handle_errors;
	bool keep_log;
	bool force;
	bool read_only;

	unsigned int nr_legs;
	unsigned long live;
	unsigned long partial;
	unsigned int returns;
	unsigned long vouched;
	unsigned int default_leg;
	unsigned long unflushed;
	unsigned long stalled;
	unsigned long sitting;

	struct hedge_conf __rcu *conf;
	struct mutex conf_mutex;	/* serialises changes of conf */

	struct hedge_shard __percpu *shards;
	unsigned long counters_base[HEDGE_NR_COUNTERS];
	atomic_t bucket;
	atomic_long_t bounce_bytes;
	long bounce_limit;
	unsigned int free_max;

	atomic_t abandoned;
	atomic_t leg_ios;
	wait_queue_head_t drained;

	spinlock_t wait_lock;		/* covers tasks, overdue, leg->queue */
	struct rb_root_cached tasks;
	struct rb_root_cached overdue;
	unsigned int nr_tasks;
	unsigned int nr_overdue;
	unsigned int waiting;

	struct bio_list held;
	unsigned int nr_held;
	bool suspending;

	spinlock_t region_lock;		/* covers deferred, ended, requests, flushes */
	unsigned int flushes[2];
	unsigned int flush_epoch;
	struct bio_list deferred;
	unsigned long wanted;
	struct bio_list blocked;
	struct bio_list ended;
	unsigned long to_fail;
	unsigned long to_reinstate;
	int sweep_due;
	int close_due;
	struct work_struct region_work;
	struct delayed_work sweep;
	struct hedge_recover recover;
	struct hedge_check check;

	struct workqueue_struct *region_wq;
	struct workqueue_struct *wq;
	struct delayed_work tick;
	struct mutex tick_mutex;	/* serialises evaluations */
	struct hedge_sitout sitout;
	struct work_struct event;
	unsigned long changed;

	struct list_head targets;
	struct list_head visible;
	struct kobject kobj;
	struct completion released;
	struct kobject *legs_kobj;

	struct hedge_leg leg[];
};

/**
 * hedge_count - count an event on this CPU
 * @h: the target
 * @counter: which
 */
static inline void hedge_count(struct hedge *h, enum hedge_counter counter)
{
	this_cpu_inc(h->shards->counters[counter]);
}

/**
 * hedge_tau - the timeout of a read on a leg
 * @conf: the settings
 * @r: the read
 * @leg: the leg
 *
 * Return: nanoseconds, 0 if there is none.
 */
static inline u64 hedge_tau(const struct hedge_conf *conf,
			    const struct hedge_read *r,
			    const struct hedge_leg *leg)
{
	return conf->tau_ns[hedge_size_class(r->iter.bi_size)][leg->index];
}

/**
 * hedge_is_first_task - whether a read is the first that its parent was cut to
 * @r: the read
 *
 * Context: map, where the parent is there whatever has become of the read.
 */
static inline bool hedge_is_first_task(const struct hedge_read *r)
{
	return !r->job || r->iter.bi_sector == r->parent->bi_iter.bi_sector;
}

/**
 * hedge_leg_has_slot - whether a leg may start a copy now
 * @conf: the settings
 * @leg: the leg
 *
 * Context: any. To be exact, caller holds hedge->wait_lock.
 */
static inline bool hedge_leg_has_slot(const struct hedge_conf *conf,
				      const struct hedge_leg *leg)
{
	u32 slots = conf->knobs.val[HEDGE_QUEUE_DEPTH];

	return !slots || atomic_read(&leg->inflight) < slots;
}

/* What to call a leg, which may be missing, in messages and in the status. */
static inline const char *hedge_leg_name(const struct hedge_leg *leg)
{
	return leg->dev ? leg->dev->name : "-";
}

/* table.c: the table line. */
unsigned int hedge_table_nr_legs(struct dm_target *ti, unsigned int argc,
				 char **argv);
int hedge_table_parse(struct hedge *h, struct hedge_conf *conf,
		      unsigned int argc, char **argv);
void hedge_table_put(struct hedge *h);
unsigned int hedge_table_print(struct hedge *h, char *result,
			       unsigned int maxlen);

/* conf.c: the settings. */
struct hedge_conf *hedge_conf_alloc(const struct hedge_conf *from,
				    unsigned int nr_legs);
void hedge_conf_publish(struct hedge *h, struct hedge_conf *conf);
int hedge_conf_word(struct hedge *h, struct hedge_conf *conf, int leg,
		    const char *attribute, const char *value);
void hedge_conf_learnt(struct hedge *h, const u64 *auto_ns);
int hedge_conf_set(struct hedge *h, int leg, const char *attribute,
		   const char *value);

/**
 * struct hedge_sends - copies that are to be handed to their legs, outside of all
 *                      locks
 * @first: the first, linked by @next in the order in which they were started
 * @last: where the next one is put
 */
struct hedge_sends {
	struct hedge_copy *first;
	struct hedge_copy **last;
};

static inline void hedge_sends_init(struct hedge_sends *sends)
{
	sends->first = NULL;
	sends->last = &sends->first;
}

/* read.c: the life of a read. */
void hedge_read_init(struct hedge *h, struct hedge_read *r, struct bio *bio,
		     u32 usable, u64 now);
void hedge_read_submit(struct hedge_sends *sends);
bool hedge_read_arrive(struct hedge_read *r, const struct hedge_conf *conf,
		       bool copyable, struct hedge_sends *sends);
int hedge_read_map(struct hedge *h, struct bio *bio);
void hedge_copy_endio(struct bio *bio);
int hedge_read_direct_end(struct hedge *h, struct bio *bio,
			  blk_status_t *error);

/* copy.c: sending one copy, and what is left when it ends. */
struct hedge_copy *hedge_copy_new(struct hedge_read *r, enum hedge_kind kind);
void hedge_copy_discard(struct hedge_copy *c);
bool hedge_copy_start(struct hedge_copy *c, struct hedge_leg *leg,
		      const struct hedge_conf *conf, u64 now);
void hedge_copy_aim(struct hedge_copy *c);
void hedge_copy_submit_new(struct hedge_copy *c);
void hedge_copy_submit(struct hedge_copy *c);
u64 hedge_copy_ended(struct hedge_copy *c, blk_status_t status);
const char *hedge_copy_data(struct hedge_copy *c);
void hedge_copy_free(struct hedge_copy *c);
void hedge_copy_put(struct hedge_copy *c);
void hedge_read_put(struct hedge_read *r);

/* choose.c: which leg, and whether the budget allows it. */
struct hedge_leg *hedge_choose_leg(struct hedge *h,
				   const struct hedge_conf *conf,
				   struct hedge_shard *shard, u32 among,
				   bool hedge);
unsigned int hedge_choose_legs(struct hedge *h, const struct hedge_conf *conf,
			       struct hedge_shard *shard, u32 among,
			       unsigned int copies, u8 *chosen);
bool hedge_leg_probe_due(struct hedge_leg *leg, const struct hedge_conf *conf,
			 u64 now);
u32 hedge_unused_legs(struct hedge *h, const struct hedge_conf *conf,
		      u32 among);
u32 hedge_serving_legs(struct hedge *h, const struct hedge_conf *conf,
		       u32 among, bool hedge);
u32 hedge_free_legs(struct hedge *h, const struct hedge_conf *conf, u32 among);
u32 hedge_idle_legs(struct hedge *h, const struct hedge_conf *conf, u32 among);
void hedge_budget_empty(struct hedge *h);
void hedge_budget_gather(struct hedge *h);
void hedge_budget_earn(struct hedge_shard *shard,
		       const struct hedge_conf *conf);
bool hedge_budget_pays_now(const struct hedge_shard *shard);
bool hedge_budget_pay(struct hedge_shard *shard);

/* order.c: the shared queue and the overdue reads, in order. */
struct hedge_read *hedge_order_first(const struct hedge *h);
struct hedge_read *hedge_order_next(const struct hedge_read *r);
struct hedge_read *hedge_order_first_late(const struct hedge *h);
struct hedge_read *hedge_order_next_late(const struct hedge_read *r);
void hedge_order_add(struct hedge_read *r, const struct hedge_conf *conf);
void hedge_order_remove(struct hedge_read *r);
void hedge_order_add_late(struct hedge_read *r, const struct hedge_conf *conf);
void hedge_order_remove_late(struct hedge_read *r);
void hedge_order_rekey(struct hedge_job *job, const struct hedge_conf *conf);
void hedge_order_rebuild(struct hedge *h, const struct hedge_conf *conf);

/* wait.c: slots, queues, overdue reads, rescues. */
bool hedge_wait_place(struct hedge_copy *c, struct hedge_leg *leg,
		      const struct hedge_conf *conf, u64 now);
void hedge_wait_enqueue(struct hedge_copy *c, struct hedge_leg *leg,
			const struct hedge_conf *conf);
void hedge_wait_count(struct hedge *h, int n);
void hedge_wait_at_once(struct hedge_read *r, const struct hedge_conf *conf);
void hedge_wait_clock(struct hedge_read *r, const struct hedge_conf *conf);
void hedge_wait_starved(struct hedge_read *r);
void hedge_wait_cancel(struct hedge_read *r);
void hedge_wait_forget(struct hedge_read *r);
bool hedge_wait_due(struct hedge_read *r, u64 now);
void hedge_wait_dispatch(struct hedge *h);

/* task.c: reads that are cut into tasks. */
struct hedge_bounce *hedge_task_cut(struct hedge *h,
				    const struct hedge_conf *conf,
				    struct bio *bio, u64 now);
void hedge_task_send(struct hedge *h, struct hedge_bounce *tasks);
bool hedge_task_done(struct hedge_job *job, blk_status_t *status);

/* probe.c: copies that begin with a small one. */
void hedge_probe_init(struct hedge_read *r, const struct hedge_conf *conf);
unsigned short hedge_probe_ioprio(const struct hedge_read *r);
bool hedge_probe_wins(struct hedge_copy *c);
void hedge_probe_go_on(struct hedge_copy *c, bool waits);

/* bounce.c: copies with pages of their own. */
struct hedge_bounce *hedge_bounce_get(struct hedge *h, unsigned int bytes);
void hedge_bounce_put(struct hedge *h, struct hedge_bounce *b);
void hedge_bounce_limit(struct hedge *h, long bytes);
void hedge_bounce_drain(struct hedge *h);
int hedge_bounce_init(void);
void hedge_bounce_exit(void);

/* deadline.c: the clock. */
void hedge_clock_init(struct hedge_shard *shard);
void hedge_clock_set(struct hedge_read *r);
void hedge_clock_cancel(struct hedge_read *r);
void hedge_clock_rescue(struct hedge *h, u64 rescue_ns);
void hedge_clock_stop(struct hedge *h);

/* leg_io.c: I/O of our own to the legs. */
bool hedge_leg_io_late(struct hedge_leg *leg);
void hedge_leg_io_start(struct hedge_leg *leg, blk_opf_t opf, sector_t sector,
			void *data, unsigned int bytes);
bool hedge_leg_io_wait(struct hedge_leg *leg, unsigned long patience);
int hedge_leg_io_claim(struct hedge_leg *leg);
int hedge_leg_io_end(struct hedge_leg *leg);
void hedge_leg_io_settle(struct hedge *h);

/* leg.c: legs, their workers, stalls. */
int hedge_leg_init(struct hedge *h, unsigned int index);
void hedge_leg_exit(struct hedge_leg *leg);
void hedge_leg_send(struct hedge_leg *leg, struct hedge_copy *c);
void hedge_leg_send_bio(struct hedge_leg *leg, struct bio *bio);
void hedge_leg_check_stalled(struct hedge_shard *shard, u32 legs, u64 now);
void hedge_leg_alive(struct hedge_leg *leg, u64 now);
void hedge_leg_unstall(struct hedge_leg *leg);
void hedge_leg_targets_lock(void);
void hedge_leg_targets_unlock(void);
struct hedge *hedge_leg_predecessor(struct hedge *h);
void hedge_leg_add_work(struct hedge_copy *c, const struct hedge_conf *conf);
void hedge_leg_drop_work(struct hedge_copy *c, u64 ns);
void hedge_leg_sit(struct hedge *h, unsigned long sitting);
bool hedge_leg_register(struct hedge *h);
void hedge_leg_unregister(struct hedge *h);
bool hedge_leg_had_no_label(const struct hedge_leg *leg);
void hedge_leg_changed(struct hedge_leg *leg);
void hedge_leg_health(struct hedge_leg *leg, enum hedge_health why);
const char *hedge_leg_state(const struct hedge_leg *leg);
char hedge_leg_health_char(const struct hedge_leg *leg);
u64 hedge_leg_oldest(struct hedge_leg *leg, u64 now);
void hedge_leg_event(struct work_struct *work);

/* write.c: what goes to all legs. */
size_t hedge_write_size(unsigned int nr_legs);
int hedge_write_map(struct hedge *h, struct bio *bio);
void hedge_write_regions(struct hedge *h, struct bio *bio, region_t *first,
			 region_t *nr);
void hedge_write_send(struct hedge *h, struct bio *bio);
void hedge_write_ended(struct hedge *h, struct bio *bio);
void hedge_write_log_failed(struct hedge *h, struct bio *bio);
void hedge_write_refuse(struct hedge *h, struct bio *bio);
void hedge_write_release(struct hedge *h);
void hedge_write_unhold(struct hedge *h);
void hedge_write_flushes_mark(struct hedge *h);
bool hedge_write_flushes_ended(struct hedge *h);
bool hedge_write_flushes_out(struct hedge *h);
void hedge_write_unrelease(struct hedge *h);

/* region.c: which regions may be written to; the region worker. */
int hedge_region_init(struct hedge *h);
void hedge_region_exit(struct hedge *h);
int hedge_region_start(struct hedge *h);
void hedge_region_stop(struct hedge *h);
bool hedge_region_get(struct hedge *h, region_t region);
void hedge_region_put(struct hedge *h, region_t region);
void hedge_region_want(struct hedge *h, region_t region);
void hedge_region_defer(struct hedge *h, struct bio *bio);
void hedge_region_end(struct hedge *h, struct bio *bio);
void hedge_region_kick(struct hedge *h);
int hedge_region_close(struct hedge *h, region_t region);
bool hedge_region_drained(struct hedge *h, region_t region);
void hedge_region_reopen(struct hedge *h, region_t region);
void hedge_region_lost(struct hedge *h);
int hedge_region_flush_legs(struct hedge *h);

/* sync.c: which legs hold which writes. */
int hedge_sync_init(struct hedge *h);
void hedge_sync_distrust(struct hedge *h, unsigned long legs);
void hedge_sync_forget(struct hedge *h);
void hedge_sync_exit(struct hedge *h);
int hedge_sync_inherit(struct hedge *h);
bool hedge_sync_shares_leg(const struct hedge *h, const struct hedge *old);
void hedge_sync_start(struct hedge *h);
u32 hedge_sync_usable_in(struct hedge *h, sector_t sector, unsigned long usable,
			 unsigned long partial);
u32 hedge_sync_targets(struct hedge *h, region_t first, region_t nr);
bool hedge_sync_out(struct hedge_leg *leg, enum hedge_health why);
void hedge_sync_opened(struct hedge *h, region_t region);
bool hedge_sync_missed_live(struct hedge *h, region_t region);
void hedge_sync_diverged(struct hedge *h, region_t first, region_t nr);
void hedge_sync_unflushed(struct hedge *h);
void hedge_sync_rewritten(struct hedge_leg *source, unsigned long legs);
void hedge_sync_judged(struct hedge *h);
void hedge_sync_copied(struct hedge *h, region_t region, unsigned long legs);
void hedge_sync_complete(struct hedge *h);
int hedge_sync_record(struct hedge *h);
int hedge_sync_request(struct hedge *h, unsigned int leg, bool fail);
void hedge_sync_requests(struct hedge *h);

/*
 * The live legs and which of them are partial, as they were at one moment: a leg
 * that is on its way out of both, or into both, must not be taken for a full one.
 */
static inline unsigned long hedge_live_and_partial(const struct hedge *h,
						   unsigned long *partial)
{
	unsigned long live;
	unsigned int returns;

	do {
		returns = READ_ONCE(h->returns);
		/* A leg may come back and go out again in between: reinstate(). */
		smp_rmb();
		*partial = READ_ONCE(h->partial);
		/* Pairs with the barrier in hedge_sync_out(). */
		smp_rmb();
		live = READ_ONCE(h->live);
		/* Pairs with those in reinstate() and hedge_sync_diverged(). */
		smp_rmb();
	} while (unlikely(*partial != READ_ONCE(h->partial) ||
			  returns != READ_ONCE(h->returns)));
	return live;
}

/**
 * hedge_sync_usable - legs that may serve a read
 * @h: the target
 * @sector: where it begins, as map got it
 *
 * While no leg is partial no region is looked up. A leg that has failed a flush may have
 * lost what was acknowledged, and is not read unless there is no other.
 *
 * Context: any.
 *
 * Return: bit for each leg; never empty.
 */
static inline u32 hedge_sync_usable(struct hedge *h, sector_t sector)
{
	unsigned long partial, usable = hedge_live_and_partial(h, &partial);
	unsigned long lost = READ_ONCE(h->unflushed);

	if (unlikely(partial))
		usable = hedge_sync_usable_in(h, sector, usable, partial);
	if (unlikely(lost))
		return usable & ~lost ?: usable;
	return usable;
}

/* label.c: what each leg says about the set that it belongs to. */
int hedge_label_enable(struct hedge *h, const char *uuid);
void hedge_label_exit(struct hedge *h);
unsigned int hedge_label_print(const struct hedge *h, char *buf,
			       unsigned int size);
bool hedge_label_overlaps(const struct hedge_leg *label,
			  const struct hedge_leg *leg);
bool hedge_label_logs_overlap(const struct hedge *a, const struct hedge *b);
bool hedge_label_stamp_overlaps(const struct hedge *h,
				const struct hedge_leg *leg);
bool hedge_label_log_overlaps(const struct hedge *h,
			      const struct hedge_leg *leg);
bool hedge_label_has_room(const struct hedge_leg *leg);
bool hedge_label_log_has_room(const struct hedge *h);
int hedge_label_present(struct hedge_leg *leg);
int hedge_label_load(struct hedge *h);
bool hedge_label_is_same(const struct hedge_leg *leg,
			 const struct hedge_leg *old);
int hedge_label_look_again(struct hedge_leg *leg);
void hedge_label_settle(struct hedge *h);
void hedge_label_fix_log(struct hedge *h);
bool hedge_label_log_counts(const struct hedge *h);
bool hedge_label_equal(const struct hedge *h);
unsigned long hedge_label_told(const struct hedge *h);
bool hedge_label_due(const struct hedge *h);
void hedge_label_open(struct hedge *h);
int hedge_label_record(struct hedge *h);
int hedge_label_write(struct hedge *h, bool open);
int hedge_label_spoil_leg(struct hedge_leg *leg);

/* recover.c: copying what legs miss; rewriting what they cannot read. */
int hedge_recover_init(struct hedge *h);
void hedge_recover_exit(struct hedge *h);
void hedge_recover_start(struct hedge *h);
void hedge_recover_stop(struct hedge *h);
bool hedge_recover_step(struct hedge *h);
bool hedge_recover_is_late(struct hedge *h, unsigned int leg);
void hedge_recover_again(struct hedge *h);
void hedge_recover_repair(struct hedge_read *r);
void hedge_recover_borrow(struct hedge *h, region_t region);
bool hedge_recover_use(struct hedge *h, unsigned int leg, bool write);
bool hedge_recover_left(struct hedge *h);
void hedge_recover_unwritten(struct hedge *h, unsigned int leg);
void hedge_recover_return(struct hedge *h);
unsigned int hedge_recover_throttle(void);

/* check.c: comparing the legs. */
int hedge_check_init(struct hedge *h);
void hedge_check_exit(struct hedge *h);
int hedge_check_begin(struct hedge *h, int source);
void hedge_check_stop(struct hedge *h);
void hedge_check_resume(struct hedge *h);
void hedge_check_closed(struct hedge *h, bool closed);

/* stats.c: counters, histograms and what is learnt from them. */
extern const char * const hedge_counter_names[HEDGE_NR_COUNTERS];
unsigned long hedge_counter_sum(struct hedge *h, enum hedge_counter counter);
unsigned long hedge_leg_reads(const struct hedge_leg *leg);
unsigned long hedge_leg_errors(const struct hedge_leg *leg);
void hedge_leg_stats_sum(const struct hedge_leg *leg,
			 struct hedge_leg_stats *sum);
void hedge_stats_reset(struct hedge *h);
/* Three headings, and a line for each bucket. */
#define HEDGE_HIST_TEXT_MAX (HEDGE_NR_SIZES * (32 + HEDGE_HIST_BUCKETS * 34))
size_t hedge_hist_print(const struct hedge_leg_stats *sum, char *buf,
			size_t size);
void hedge_tick(struct hedge *h);
void hedge_tick_work(struct work_struct *work);

/* status.c */
void hedge_status(struct dm_target *ti, status_type_t type, unsigned int flags,
		  char *result, unsigned int maxlen);
u64 hedge_tau_us(struct hedge *h);

/* sysfs.c */
void hedge_sysfs_add(struct hedge *h);
void hedge_sysfs_remove(struct hedge *h);

/* message.c */
int hedge_message(struct dm_target *ti, unsigned int argc, char **argv,
		  char *result, unsigned int maxlen);

#endif
