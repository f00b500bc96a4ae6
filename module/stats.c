// SPDX-License-Identifier: GPL-2.0
/*
 * Counters and histograms, and what is learnt from them once a second.
 *
 * Everything is counted per CPU, and only ever counted up, so that counting is
 * one instruction and needs no lock. Resetting keeps the sums of that moment and
 * subtracts them from then on.
 */
#include "hedge.h"

const char * const hedge_counter_names[HEDGE_NR_COUNTERS] = {
	[HEDGE_READS]		= "reads",
	[HEDGE_COPIES_STARTED]	= "copies",
	[HEDGE_EXTRA]		= "extra",
	[HEDGE_HEDGED]		= "hedged",
	[HEDGE_WON]		= "won",
	[HEDGE_WASTED]		= "wasted",
	[HEDGE_CANCELLED]	= "cancelled",
	[HEDGE_MOVED]		= "moved",
	[HEDGE_RESCUED]		= "rescued",
	[HEDGE_UNHEDGED_BUDGET]	= "unhedged_budget",
	[HEDGE_UNHEDGED_MEMORY]	= "unhedged_memory",
	[HEDGE_UNHEDGED_SYNC]	= "unhedged_sync",
	[HEDGE_UNHEDGED_LARGE]	= "unhedged_large",
	[HEDGE_RETRIED]		= "retried",
	[HEDGE_REPAIRED]	= "repaired",
	[HEDGE_MISMATCHES]	= "mismatches",
};

static unsigned long counter_raw(struct hedge *h, enum hedge_counter counter)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(h->shards, cpu)->counters[counter]);
	return sum;
}

/**
 * hedge_counter_sum - what was counted since the last reset
 * @h: the target
 * @counter: which
 *
 * Context: process. May sleep, but not for I/O.
 */
unsigned long hedge_counter_sum(struct hedge *h, enum hedge_counter counter)
{
	unsigned long sum;

	mutex_lock(&h->tick_mutex);
	sum = counter_raw(h, counter) - h->counters_base[counter];
	mutex_unlock(&h->tick_mutex);
	return sum;
}

/* The statistics are an array of numbers as long as they are summed up. */
#define NR_STATS(field) \
	(sizeof_field(struct hedge_leg_stats, field) / sizeof(unsigned long))

static void stats_raw(const struct hedge_leg *leg, struct hedge_leg_stats *sum)
{
	unsigned int i;
	int cpu;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu) {
		const struct hedge_leg_stats *s = per_cpu_ptr(leg->stats, cpu);
		const unsigned long *from = s->hist[0];
		unsigned long *to = sum->hist[0];

		sum->reads += READ_ONCE(s->reads);
		sum->errors += READ_ONCE(s->errors);
		for (i = 0; i < NR_STATS(hist); i++)
			to[i] += READ_ONCE(from[i]);
		for (i = 0; i < HEDGE_DEPTHS; i++) {
			sum->depth[i].count += READ_ONCE(s->depth[i].count);
			sum->depth[i].sum_us += READ_ONCE(s->depth[i].sum_us);
		}
	}
}

/**
 * hedge_leg_stats_sum - what was counted of a leg since the last reset
 * @leg: the leg
 * @sum: where it is put; @depth is since the start
 *
 * Context: process. May sleep, but not for I/O.
 */
void hedge_leg_stats_sum(const struct hedge_leg *leg,
			 struct hedge_leg_stats *sum)
{
	const unsigned long *base = leg->stats_base->hist[0];
	unsigned long *to = sum->hist[0];
	unsigned int i;

	mutex_lock(&leg->hedge->tick_mutex);
	stats_raw(leg, sum);
	sum->reads -= leg->stats_base->reads;
	sum->errors -= leg->stats_base->errors;
	for (i = 0; i < NR_STATS(hist); i++)
		to[i] -= base[i];
	mutex_unlock(&leg->hedge->tick_mutex);
}

/**
 * hedge_leg_reads - read copies started on a leg since the last reset
 * @leg: the leg
 *
 * Context: process. May sleep, but not for I/O.
 */
unsigned long hedge_leg_reads(const struct hedge_leg *leg)
{
	unsigned long sum = 0;
	int cpu;

	mutex_lock(&leg->hedge->tick_mutex);
	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(leg->stats, cpu)->reads);
	sum -= leg->stats_base->reads;
	mutex_unlock(&leg->hedge->tick_mutex);
	return sum;
}

/**
 * hedge_leg_errors - read copies that failed on a leg since the last reset
 * @leg: the leg
 *
 * Context: process. May sleep, but not for I/O.
 */
unsigned long hedge_leg_errors(const struct hedge_leg *leg)
{
	unsigned long sum = 0;
	int cpu;

	mutex_lock(&leg->hedge->tick_mutex);
	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(leg->stats, cpu)->errors);
	sum -= leg->stats_base->errors;
	mutex_unlock(&leg->hedge->tick_mutex);
	return sum;
}

/**
 * hedge_stats_reset - start all counters and histograms anew
 * @h: the target
 *
 * Context: process.
 */
void hedge_stats_reset(struct hedge *h)
{
	unsigned int i;

	mutex_lock(&h->tick_mutex);
	hedge_budget_gather(h);
	for (i = 0; i < HEDGE_NR_COUNTERS; i++)
		h->counters_base[i] = counter_raw(h, i);
	for (i = 0; i < h->nr_legs; i++)
		stats_raw(&h->leg[i], h->leg[i].stats_base);
	mutex_unlock(&h->tick_mutex);
}

/**
 * hedge_hist_print - write the histogram of a leg as text
 * @sum: the leg's counts
 * @buf: where to
 * @size: room in @buf; HEDGE_HIST_TEXT_MAX is enough
 *
 * Return: bytes written.
 */
size_t hedge_hist_print(const struct hedge_leg_stats *sum, char *buf,
			size_t size)
{
	static const char * const headings[HEDGE_NR_SIZES] = {
		[HEDGE_SIZE_16K] = "# reads up to 16 KiB",
		[HEDGE_SIZE_64K] = "# reads up to 64 KiB",
		[HEDGE_SIZE_LARGE] = "# larger reads",
	};
	unsigned int class, i;
	size_t n = 0;

	for (class = 0; class < HEDGE_NR_SIZES; class++) {
		n += scnprintf(buf + n, size - n, "%s\n", headings[class]);
		for (i = 0; i < HEDGE_HIST_BUCKETS; i++)
			if (sum->hist[class][i])
				n += scnprintf(buf + n, size - n, "%llu %lu\n",
					       hedge_hist_lower(i),
					       sum->hist[class][i]);
	}
	return n;
}

/*
 * How many copies a leg serves at a time, from what came since the last tick.
 * Older samples fade by a sixteenth a second.
 */
static void tick_depth(struct hedge_leg *leg, const struct hedge_leg_stats *sum)
{
	unsigned int i;

	for (i = 0; i < HEDGE_DEPTHS; i++) {
		struct hedge_depth_sample *d = &leg->depth[i];

		/* A few samples must not fade into none that took no time. */
		if (d->count >= 16) {
			d->count -= d->count / 16;
			d->sum_us -= d->sum_us / 16;
		}
		d->count += sum->depth[i].count - leg->seen->depth[i].count;
		d->sum_us += sum->depth[i].sum_us - leg->seen->depth[i].sum_us;
	}
	WRITE_ONCE(leg->auto_depth, hedge_depth_learn(leg->depth));
}

/* Adds what came since the last tick to the fading histograms. */
static void tick_hist(struct hedge_leg *leg, const struct hedge_leg_stats *sum)
{
	unsigned int size, i;

	for (size = 0; size < HEDGE_NR_SIZES; size++) {
		for (i = 0; i < HEDGE_HIST_BUCKETS; i++)
			hedge_tau_add(&leg->tau[size], i, sum->hist[size][i] -
						leg->seen->hist[size][i]);
		hedge_tau_decay(&leg->tau[size]);
	}
}

/* Takes in the latencies of the last second for the question who sits out. */
static void tick_latency(struct hedge_leg *leg,
			 const struct hedge_leg_stats *sum)
{
	u64 count = 0, sum_us = 0;
	unsigned int i;

	for (i = 0; i < HEDGE_DEPTHS; i++) {
		count += sum->depth[i].count - leg->seen->depth[i].count;
		sum_us += sum->depth[i].sum_us - leg->seen->depth[i].sum_us;
	}
	hedge_sitout_add(&leg->hedge->sitout, leg->index, count, sum_us);
}

/* Decides who sits out, among the legs that users want to be read. */
static void tick_sitout(struct hedge *h)
{
	const struct hedge_conf *conf;
	u32 able = READ_ONCE(h->live) & ~READ_ONCE(h->stalled);
	u32 pct, seconds;
	unsigned int i;

	rcu_read_lock();
	conf = rcu_dereference(h->conf);
	pct = conf->knobs.val[HEDGE_SITOUT_PCT];
	seconds = conf->knobs.val[HEDGE_SITOUT_S];
	for (i = 0; i < h->nr_legs; i++)
		if (!conf->leg[i].weight)
			able &= ~BIT(i);
	rcu_read_unlock();
	hedge_leg_sit(h, hedge_sitout_tick(&h->sitout, pct, seconds, able));
}

/* Learns the timeout of each size class from the legs that serve. */
static void tick_tau(struct hedge *h)
{
	const struct hedge_tau_hist *legs[HEDGE_MAX_LEGS];
	unsigned long live = READ_ONCE(h->live);
	u64 auto_ns[HEDGE_NR_SIZES];
	unsigned int size, i, nr;

	for (size = 0; size < HEDGE_NR_SIZES; size++) {
		nr = 0;
		for_each_set_bit(i, &live, h->nr_legs)
			legs[nr++] = &h->leg[i].tau[size];
		auto_ns[size] = hedge_tau_learn(legs, nr);
	}
	hedge_conf_learnt(h, auto_ns);
}

static u32 best_service(struct hedge *h)
{
	u32 best = HEDGE_SERVICE_MAX_US;
	unsigned int i;

	for (i = 0; i < h->nr_legs; i++)
		if (READ_ONCE(h->leg[i].service_us))
			best = min(best, READ_ONCE(h->leg[i].service_us));
	return best;
}

static void tick_leg(struct hedge_leg *leg, u32 best, u64 now)
{
	struct hedge_leg_stats *sum = kmalloc(sizeof(*sum), GFP_NOIO);

	if (!sum)
		return;
	stats_raw(leg, sum);
	tick_depth(leg, sum);
	tick_hist(leg, sum);
	tick_latency(leg, sum);
	swap(leg->seen, sum);
	kfree(sum);
	if (now - READ_ONCE(leg->last_done_ns) > NSEC_PER_SEC)
		WRITE_ONCE(leg->service_us,
			   hedge_service_forget(READ_ONCE(leg->service_us),
						best));
}

/**
 * hedge_tick - the evaluation that is made once a second
 * @h: the target
 *
 * Context: process. May sleep, but not for I/O.
 */
void hedge_tick(struct hedge *h)
{
	u64 now = ktime_get_ns();
	unsigned int i;
	u32 best;

	mutex_lock(&h->tick_mutex);
	best = best_service(h);
	for (i = 0; i < h->nr_legs; i++)
		tick_leg(&h->leg[i], best, now);
	tick_tau(h);
	tick_sitout(h);
	mutex_unlock(&h->tick_mutex);
}

/**
 * hedge_tick_work - hedge_tick() from the workqueue, and again in a second
 * @work: of the target
 */
void hedge_tick_work(struct work_struct *work)
{
	struct hedge *h = container_of(to_delayed_work(work), struct hedge,
				       tick);

	hedge_tick(h);
	queue_delayed_work(h->wq, &h->tick, HZ);
}
