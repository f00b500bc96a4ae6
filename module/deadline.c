// SPDX-License-Identifier: GPL-2.0
/*
 * The clock: one high-resolution timer a CPU over an ordered queue of deadlines.
 *
 * A read stands in its shard's queue at the next time at which something is to
 * be decided about it: it becomes overdue, or its legs are to be looked at for
 * a stall. The timer is armed for the earliest deadline, and is left armed when
 * that read ends in time: when it fires it finds nothing due and is armed for
 * what is then the earliest. So there is at most one interrupt for each timeout
 * and CPU, however many reads end in time, and the read path programs no timer
 * but for the first read. The queue is a tree because timeouts differ by leg
 * and change while reads wait.
 *
 * A timer whose CPU goes away is moved to another by the kernel; it finds its
 * shard by container_of and cares not where it runs.
 */
#include "hedge.h"
#include "trace.h"

static void clock_arm(struct hedge_shard *shard, ktime_t expires)
{
	if (expires >= shard->armed_ns)
		return;
	shard->armed_ns = expires;
	hrtimer_start(&shard->timer, expires, HRTIMER_MODE_ABS_PINNED);
}

/**
 * hedge_clock_set - put a read into the queue at its next deadline
 * @r: the read; tau_at and rescue_at tell the deadlines, 0 for none
 *
 * Context: any. Caller holds the shard's lock.
 */
void hedge_clock_set(struct hedge_read *r)
{
	struct hedge_shard *shard = r->shard;
	u64 at = r->tau_at;

	if (!at || (r->rescue_at && r->rescue_at < at))
		at = r->rescue_at;
	if (timerqueue_node_queued(&r->clock)) {
		if (r->clock.expires == at)
			return;
		timerqueue_del(&shard->clock, &r->clock);
	}
	if (!at)
		return;
	r->clock.expires = at;
	timerqueue_add(&shard->clock, &r->clock);
	clock_arm(shard, at);
}

/**
 * hedge_clock_cancel - take a read out of the queue
 * @r: the read
 *
 * The timer stays armed.
 *
 * Context: any. Caller holds the shard's lock.
 */
void hedge_clock_cancel(struct hedge_read *r)
{
	if (timerqueue_node_queued(&r->clock))
		timerqueue_del(&r->shard->clock, &r->clock);
}

/**
 * hedge_clock_rescue - look at all reads that are out under a new rescue_us
 * @h: the target
 * @rescue_ns: the same in nanoseconds, not 0
 *
 * What starts later comes into the queue by itself. A look that is too early,
 * for a read that has several copies out, only sets the next one.
 *
 * Context: process, after an RCU grace period since the setting was changed.
 */
void hedge_clock_rescue(struct hedge *h, u64 rescue_ns)
{
	struct hedge_shard *shard;
	struct hedge_copy *c;
	unsigned int i;
	int cpu;

	for_each_possible_cpu(cpu) {
		shard = per_cpu_ptr(h->shards, cpu);
		spin_lock_irq(&shard->lock);
		for (i = 0; i < h->nr_legs; i++) {
			list_for_each_entry(c, &shard->out[i], out) {
				c->read->rescue_at = c->started_ns + rescue_ns;
				hedge_clock_set(c->read);
			}
		}
		spin_unlock_irq(&shard->lock);
	}
}

/*
 * Takes the next read that is due out of the queue, with a reference, so that
 * it can be worked on without the shard's lock: what is decided about it takes
 * hedge->wait_lock, which comes first. Of the reads that may be hedged, that is:
 * the others live in their parent's bio, where a reference would not keep them.
 * They only bear witness against their leg, so they are put back, and their
 * legs added to @legs.
 */
static struct hedge_read *next_due(struct hedge_shard *shard, u64 now,
				   u32 *legs)
{
	struct timerqueue_node *node;

	while ((node = timerqueue_getnext(&shard->clock)) &&
	       node->expires <= now) {
		struct hedge_read *r = container_of(node, struct hedge_read,
						    clock);

		timerqueue_del(&shard->clock, node);
		*legs |= r->out;
		if (!r->direct) {
			r->refs++;
			return r;
		}
		r->rescue_at += max(now - r->arrival_ns, NSEC_PER_MSEC);
		hedge_clock_set(r);
	}
	return NULL;
}

static enum hrtimer_restart clock_fires(struct hrtimer *timer)
{
	struct hedge_shard *shard = container_of(timer, struct hedge_shard,
						 timer);
	u64 now = ktime_get_ns();
	struct timerqueue_node *node;
	struct hedge_read *r;
	unsigned long flags;
	bool overdue = false;
	u32 legs = 0;

	rcu_read_lock();
	spin_lock_irqsave(&shard->lock, flags);
	shard->armed_ns = KTIME_MAX;
	do {
		r = next_due(shard, now, &legs);
		spin_unlock_irqrestore(&shard->lock, flags);
		if (legs)
			hedge_leg_check_stalled(shard, legs, now);
		legs = 0;
		if (r)
			overdue |= hedge_wait_due(r, now);
		spin_lock_irqsave(&shard->lock, flags);
	} while (r);
	node = timerqueue_getnext(&shard->clock);
	if (node)
		clock_arm(shard, node->expires);
	spin_unlock_irqrestore(&shard->lock, flags);
	/* Once, however many are overdue: each time it looks at all that wait. */
	if (overdue)
		hedge_wait_dispatch(shard->hedge);
	rcu_read_unlock();
	return HRTIMER_NORESTART;
}

/**
 * hedge_clock_init - make the clock of a shard
 * @shard: the shard
 *
 * Context: process, before the target gets reads.
 */
void hedge_clock_init(struct hedge_shard *shard)
{
	timerqueue_init_head(&shard->clock);
	hedge_hrtimer_setup(&shard->timer, clock_fires, CLOCK_MONOTONIC,
			    HRTIMER_MODE_ABS_PINNED);
	shard->armed_ns = KTIME_MAX;
}

/**
 * hedge_clock_stop - end all clocks of a target
 * @h: the target, which has no reads any more
 *
 * Context: process. May sleep.
 */
void hedge_clock_stop(struct hedge *h)
{
	int cpu;

	for_each_possible_cpu(cpu)
		hrtimer_cancel(&per_cpu_ptr(h->shards, cpu)->timer);
}
