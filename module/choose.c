// SPDX-License-Identifier: GPL-2.0
/*
 * Showing the legs to the decision code, and the budget.
 *
 * core/policy.c chooses among a view of the legs; here the view is filled from
 * what the legs are doing at this moment. Nothing is locked for that: a number
 * that is a moment old makes a choice a little worse, never wrong.
 *
 * The budget is kept in two places. Credit gathers in the shard of the CPU on
 * which reads arrive and moves to the target's bucket in lumps of a few copies,
 * so that reads do not all write to one variable. Extra copies are paid from
 * the shard if it can, else from the bucket.
 */
#include "hedge.h"
#include "core/budget.h"

static void view_leg(struct hedge_leg_view *view, const struct hedge_leg *leg)
{
	view->inflight = atomic_read(&leg->inflight);
	view->queued = READ_ONCE(leg->queued);
	view->service_us = READ_ONCE(leg->service_us);
}

/* Work left is looked at by "llw" only, and only then kept. */
static void view_work(struct hedge_view *view, const struct hedge *h)
{
	unsigned int i;

	for (i = 0; i < h->nr_legs; i++)
		view->leg[i].work = max_t(s64, 0,
					  atomic64_read(&h->leg[i].work_us));
}

static u32 weight(const struct hedge_conf *conf, unsigned int leg, bool hedge)
{
	return hedge ? conf->leg[leg].hedge_weight : conf->leg[leg].weight;
}

/*
 * What hedge_choose() answers when one copy is wanted, legs of equal weight are
 * chosen by latency and none of them is to be avoided. That is most reads, which
 * are spared the view.
 */
static struct hedge_leg *choose_plain(struct hedge *h,
				      struct hedge_shard *shard, u32 among)
{
	unsigned int ties = 1;
	u64 best_key = U64_MAX;
	struct hedge_leg *best = NULL;

	for (; among; among &= among - 1) {
		struct hedge_leg *leg = &h->leg[__ffs(among)];
		u64 present = atomic_read(&leg->inflight) +
			      READ_ONCE(leg->queued);
		u64 key = (present + 1) * max(READ_ONCE(leg->service_us), 1U);

		if (key > best_key)
			continue;
		ties = key < best_key ? 1 : ties + 1;
		if (ties == 1 || !hedge_random_below(&shard->random, ties))
			best = leg;
		best_key = key;
	}
	return best;
}

/*
 * Chooses among a view of the legs. Neither this nor the next is inlined: what they
 * have on the stack would be cleared and guarded for plain reads, too.
 */
static noinline_for_stack unsigned int
choose_viewed(struct hedge *h, const struct hedge_conf *conf,
	      struct hedge_shard *shard, u32 among, unsigned int copies,
	      bool hedge, u8 *chosen)
{
	struct hedge_view view;
	unsigned int i;

	view.nr_legs = h->nr_legs;
	view.usable = among;
	view.avoid = READ_ONCE(h->stalled);
	view.sitting = READ_ONCE(h->sitting);
	view.random = &shard->random;
	view.turn = &shard->turn;
	for (i = 0; i < h->nr_legs; i++) {
		view_leg(&view.leg[i], &h->leg[i]);
		view.leg[i].weight = weight(conf, i, hedge);
	}
	if (conf->knobs.val[HEDGE_BALANCE] == HEDGE_BALANCE_LLW)
		view_work(&view, h);
	return hedge_choose(&conf->knobs, &view, among, copies, chosen);
}

static noinline_for_stack struct hedge_leg *
choose_one_viewed(struct hedge *h, const struct hedge_conf *conf,
		  struct hedge_shard *shard, u32 among, bool hedge)
{
	u8 chosen = 0;

	choose_viewed(h, conf, shard, among, 1, hedge, &chosen);
	return &h->leg[chosen];
}

/**
 * hedge_choose_leg - choose the leg for one copy of a read
 * @h: the target
 * @conf: the settings
 * @shard: the read's home, for its generator and turn
 * @among: bit for each leg that may be taken, at least one
 * @hedge: whether it is for a hedge, which has weights of its own
 *
 * Context: any. Caller holds @shard->lock.
 *
 * Return: the leg.
 */
struct hedge_leg *hedge_choose_leg(struct hedge *h,
				   const struct hedge_conf *conf,
				   struct hedge_shard *shard, u32 among,
				   bool hedge)
{
	if (conf->plain && !hedge &&
	    !(READ_ONCE(h->stalled) | READ_ONCE(h->sitting)))
		return choose_plain(h, shard, among);
	return choose_one_viewed(h, conf, shard, among, hedge);
}

/**
 * hedge_choose_legs - choose legs for the copies of a new read
 * @h: the target
 * @conf: the settings
 * @shard: the read's home, for its generator and turn
 * @among: bit for each leg that may be taken, at least one
 * @copies: how many are wanted, at least 1
 * @chosen: where the legs are put, the best first
 *
 * Context: any. Caller holds @shard->lock.
 *
 * Return: how many legs were chosen.
 */
unsigned int hedge_choose_legs(struct hedge *h, const struct hedge_conf *conf,
			       struct hedge_shard *shard, u32 among,
			       unsigned int copies, u8 *chosen)
{
	if (copies > 1)
		return choose_viewed(h, conf, shard, among, copies, false,
				     chosen);
	chosen[0] = hedge_choose_leg(h, conf, shard, among, false)->index;
	return 1;
}

/**
 * hedge_leg_probe_due - whether a leg of last resort is to be tried once more
 * @leg: the leg, which is stalled or sits out
 * @conf: the settings
 * @now: the time in nanoseconds
 *
 * Context: any.
 *
 * Return: true once a second, while it has a slot: the caller is to send it a
 * duplicate of a read that is elsewhere.
 */
bool hedge_leg_probe_due(struct hedge_leg *leg, const struct hedge_conf *conf,
			 u64 now)
{
	u64 probed = READ_ONCE(leg->probed_ns);

	/* Another CPU's read may have come later, and been first. */
	if ((s64)(now - probed) < NSEC_PER_SEC || !hedge_leg_has_slot(conf, leg))
		return false;
	return cmpxchg64(&leg->probed_ns, probed, now) == probed;
}

/**
 * hedge_idle_legs - which legs are idle
 * @h: the target
 * @conf: the settings
 * @among: bit for each leg that is asked about
 *
 * With slots a leg is idle while one is free. Without, while fewer copies than
 * hedge_depth are in flight: a leg could take any number, but the reads that it
 * has would pay for it.
 *
 * Context: any.
 *
 * Return: bit for each idle leg.
 */
u32 hedge_idle_legs(struct hedge *h, const struct hedge_conf *conf, u32 among)
{
	u32 slots = conf->knobs.val[HEDGE_QUEUE_DEPTH];
	u32 depth = slots ?: conf->knobs.val[HEDGE_HEDGE_DEPTH];
	u32 idle = 0, left;

	for (left = among; left; left &= left - 1) {
		struct hedge_leg *leg = &h->leg[__ffs(left)];

		if (atomic_read(&leg->inflight) <
		    (depth ?: READ_ONCE(leg->auto_depth)))
			idle |= BIT(leg->index);
	}
	return idle;
}

/**
 * hedge_unused_legs - which legs are idle, for copies at arrival
 * @h: the target
 * @conf: the settings
 * @among: bit for each leg that is asked about
 *
 * Without slots this means legs with nothing in flight.
 *
 * Context: any.
 *
 * Return: bit for each of them.
 */
u32 hedge_unused_legs(struct hedge *h, const struct hedge_conf *conf, u32 among)
{
	u32 unused = 0, left;

	if (conf->knobs.val[HEDGE_QUEUE_DEPTH])
		return hedge_idle_legs(h, conf, among);
	for (left = among; left; left &= left - 1)
		if (!atomic_read(&h->leg[__ffs(left)].inflight))
			unused |= BIT(__ffs(left));
	return unused;
}

/**
 * hedge_serving_legs - which legs are to serve, of some
 * @h: the target
 * @conf: the settings
 * @among: bit for each leg that may be taken
 * @hedge: whether for a hedge, which has weights of its own
 *
 * Context: any.
 *
 * Return: those that are no last resort, or if there are none, the best of the
 * others; empty only if @among is.
 */
u32 hedge_serving_legs(struct hedge *h, const struct hedge_conf *conf,
		       u32 among, bool hedge)
{
	struct hedge_view view;
	unsigned int i;

	view.usable = among;
	view.avoid = READ_ONCE(h->stalled);
	view.sitting = READ_ONCE(h->sitting);
	for (i = 0; i < h->nr_legs; i++)
		view.leg[i].weight = weight(conf, i, hedge);
	return hedge_preferred(&view, among);
}

/**
 * hedge_free_legs - which legs may start a copy of a new read now
 * @h: the target
 * @conf: the settings
 * @among: bit for each leg that may be taken
 *
 * A free slot of a leg of last resort is none while others could serve.
 *
 * Context: any. To be exact, caller holds hedge->wait_lock.
 *
 * Return: bit for each of them.
 */
u32 hedge_free_legs(struct hedge *h, const struct hedge_conf *conf, u32 among)
{
	u32 free = 0, left;

	for (left = hedge_serving_legs(h, conf, among, false); left;
	     left &= left - 1)
		if (hedge_leg_has_slot(conf, &h->leg[__ffs(left)]))
			free |= BIT(__ffs(left));
	return free;
}

/* Lumps of two copies: most reads then touch their own shard only. */
#define CREDIT_LUMP (2 * HEDGE_COPY_COST)

/* Moves the credit of a CPU to the target's bucket. Caller holds @shard->lock. */
static void to_bucket(struct hedge_shard *shard)
{
	atomic_t *bucket = &shard->hedge->bucket;
	int level = atomic_read(bucket);

	while (!atomic_try_cmpxchg(bucket, &level,
				   hedge_budget_credit(level, shard->credit)))
		;
	shard->credit = 0;
}

/**
 * hedge_budget_gather - leave no more in the budget than the bucket holds
 * @h: the target
 *
 * So that counters that start anew never show more extra copies than allowed.
 *
 * Context: process.
 */
void hedge_budget_gather(struct hedge *h)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct hedge_shard *shard = per_cpu_ptr(h->shards, cpu);

		spin_lock_irq(&shard->lock);
		to_bucket(shard);
		spin_unlock_irq(&shard->lock);
	}
}

/**
 * hedge_budget_earn - a read that could be copied has arrived
 * @shard: its home
 * @conf: the settings
 *
 * Context: any. Caller holds @shard->lock.
 */
void hedge_budget_earn(struct hedge_shard *shard, const struct hedge_conf *conf)
{
	shard->credit += conf->knobs.val[HEDGE_BUDGET_PCT];
	if (shard->credit < CREDIT_LUMP + conf->knobs.val[HEDGE_BUDGET_PCT])
		return;
	to_bucket(shard);
}

/**
 * hedge_budget_empty - start the budget anew
 * @h: the target
 *
 * Context: process.
 */
void hedge_budget_empty(struct hedge *h)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct hedge_shard *shard = per_cpu_ptr(h->shards, cpu);

		spin_lock_irq(&shard->lock);
		shard->credit = 0;
		spin_unlock_irq(&shard->lock);
	}
	atomic_set(&h->bucket, 0);
}

/**
 * hedge_budget_pays_now - whether an extra copy could be paid for
 * @shard: the home of its read
 *
 * Context: any. Caller holds @shard->lock.
 */
bool hedge_budget_pays_now(const struct hedge_shard *shard)
{
	return hedge_budget_pays(shard->credit) ||
	       hedge_budget_pays(atomic_read(&shard->hedge->bucket));
}

/**
 * hedge_budget_pay - pay for an extra copy
 * @shard: the home of its read
 *
 * Context: any. Caller holds @shard->lock.
 *
 * Return: whether there was enough in the budget.
 */
bool hedge_budget_pay(struct hedge_shard *shard)
{
	atomic_t *bucket = &shard->hedge->bucket;
	int level;

	if (hedge_budget_pays(shard->credit)) {
		shard->credit -= HEDGE_COPY_COST;
		return true;
	}
	level = atomic_read(bucket);
	do {
		if (!hedge_budget_pays(level))
			return false;
	} while (!atomic_try_cmpxchg(bucket, &level, level - HEDGE_COPY_COST));
	return true;
}
