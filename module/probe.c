// SPDX-License-Identifier: GPL-2.0
/*
 * Delta-probes: copies that begin with a small one (the knob probe).
 *
 * Each copy that a read sends at arrival first reads only the beginning of it, a
 * probe. The leg whose probe comes back first gets the whole read, in the slot
 * of the probe, so ahead of all that waits for the leg: the two are one copy,
 * started and counted once. Other probes that still wait are cancelled; those
 * that have started are abandoned, and free their slot when they come back.
 *
 *	probing --- back first ----------------> probed: reads the whole
 *	   |  ^                                     |
 *	   |  +--- the whole read has failed: ------+
 *	   |       the next one that comes back
 *	   |       gets it
 *	   +------ another was first, or an error -> ended, without the data
 *
 * Hedges, retries and rescues are whole reads. A read that is no larger than a
 * probe is answered by it: there is nothing to be done here.
 */
#include <linux/ioprio.h>

#include "hedge.h"
#include "trace.h"

/**
 * hedge_probe_init - let a new read begin with probes, if it is large enough
 * @r: the read, which has pages of its own
 * @conf: the settings, with a size of probes
 *
 * Context: any.
 */
void hedge_probe_init(struct hedge_read *r, const struct hedge_conf *conf)
{
	u32 bytes = round_up(conf->probe,
			     bdev_logical_block_size(r->parent->bi_bdev));

	if (r->iter.bi_size <= bytes)
		return;
	r->probe = bytes;
	r->probe_first = conf->knobs.val[HEDGE_PROBE_PRIORITY];
}

/* Priority of probes that go ahead of others. */
#define PROBE_IOPRIO IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, IOPRIO_BE_NORM)

/**
 * hedge_probe_ioprio - the I/O priority of a probe
 * @r: the read
 */
unsigned short hedge_probe_ioprio(const struct hedge_read *r)
{
	return r->probe_first ? PROBE_IOPRIO : r->ioprio;
}

/**
 * hedge_probe_wins - a probe has come back: whether it is the first
 * @c: the probe, which has read without an error
 *
 * If so it stays started, and is the whole read's copy from now on.
 *
 * Context: any. Caller holds the home's lock.
 */
bool hedge_probe_wins(struct hedge_copy *c)
{
	struct hedge_read *r = c->read;

	if (r->done || r->decided)
		return false;
	r->decided = true;
	c->probing = false;
	c->probed = true;
	return true;
}

/* Other probes are not wanted any more, where they still wait. */
static void cancel_probes(struct hedge_read *r)
{
	struct hedge *h = r->hedge;
	const struct hedge_conf *conf = rcu_dereference(h->conf);
	unsigned long flags;

	spin_lock_irqsave(&h->wait_lock, flags);
	spin_lock(&r->shard->lock);
	hedge_order_remove(r);
	if (conf->knobs.val[HEDGE_CANCEL] != HEDGE_CANCEL_NONE)
		hedge_wait_cancel(r);
	spin_unlock(&r->shard->lock);
	spin_unlock_irqrestore(&h->wait_lock, flags);
}

/**
 * hedge_probe_go_on - have the whole read sent to the leg of its probe
 * @c: the copy, whose probe was first
 * @waits: whether something of the read waited then
 *
 * A probe waits from the arrival of its read on, so none is missed.
 *
 * Context: any, inside an RCU read section.
 */
void hedge_probe_go_on(struct hedge_copy *c, bool waits)
{
	struct hedge_read *r = c->read;
	struct hedge *h = r->hedge;
	u64 now = ktime_get_ns();

	hedge_leg_alive(c->leg, now);
	if (waits)
		cancel_probes(r);
	trace_hedge_reissue(r->id, c->leg->index, r->iter.bi_sector,
			    r->iter.bi_size, now - r->arrival_ns);
	hedge_leg_send(c->leg, c);
	/* Others may have waited for what does not wait any more. */
	if (unlikely(READ_ONCE(h->waiting)))
		hedge_wait_dispatch(h);
}
