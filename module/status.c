// SPDX-License-Identifier: GPL-2.0
/*
 * Status: the fields of dm-mirror first, for whoever reads those, then ours.
 */
#include "hedge.h"

static unsigned long unhedged(struct hedge *h)
{
	return hedge_counter_sum(h, HEDGE_UNHEDGED_BUDGET) +
	       hedge_counter_sum(h, HEDGE_UNHEDGED_MEMORY) +
	       hedge_counter_sum(h, HEDGE_UNHEDGED_SYNC) +
	       hedge_counter_sum(h, HEDGE_UNHEDGED_LARGE);
}

/* The leg whose oldest copy has been out longest, and how long in ns. */
static u64 oldest(struct hedge *h, unsigned int *leg)
{
	u64 now = ktime_get_ns(), age, most = 0;
	unsigned int i;

	*leg = 0;
	for (i = 0; i < h->nr_legs; i++) {
		age = hedge_leg_oldest(&h->leg[i], now);
		if (age > most) {
			most = age;
			*leg = i;
		}
	}
	return most;
}

/**
 * hedge_tau_us - the timeout in force
 * @h: the target
 *
 * Context: any.
 *
 * Return: the timeout of legs without one of their own, in microseconds; 0 if
 * there is none. A learnt timeout is that of the smallest reads that have one.
 */
u64 hedge_tau_us(struct hedge *h)
{
	const struct hedge_conf *conf;
	unsigned int size;
	u64 tau = 0;

	rcu_read_lock();
	conf = rcu_dereference(h->conf);
	if (conf->knobs.val[HEDGE_REPLICATE] != HEDGE_LPR)
		tau = 0;
	else if (conf->knobs.val[HEDGE_TIMEOUT_US] != HEDGE_TIMEOUT_AUTO)
		tau = conf->knobs.val[HEDGE_TIMEOUT_US];
	else
		for (size = 0; size < HEDGE_NR_SIZES && !tau; size++)
			tau = div_u64(conf->auto_ns[size], NSEC_PER_USEC);
	rcu_read_unlock();
	return tau;
}

static unsigned int status_info(struct hedge *h, char *result,
				unsigned int maxlen)
{
	struct dm_dirty_log *log = h->log;
	char health[HEDGE_MAX_LEGS + 1];
	unsigned int sz = 0, i, leg;
	const char *policy;
	u64 age;

	DMEMIT("%u ", h->nr_legs);
	for (i = 0; i < h->nr_legs; i++) {
		DMEMIT("%s ", hedge_leg_name(&h->leg[i]));
		health[i] = hedge_leg_health_char(&h->leg[i]);
	}
	health[i] = '\0';
	DMEMIT("%llu/%llu 1 %s ",
	       (unsigned long long)log->type->get_sync_count(log),
	       (unsigned long long)h->nr_regions, health);
	sz += log->type->status(log, STATUSTYPE_INFO, result + sz, maxlen - sz);

	rcu_read_lock();
	policy = hedge_policy_name(&rcu_dereference(h->conf)->knobs);
	rcu_read_unlock();
	age = oldest(h, &leg);
	DMEMIT(" 30 policy %s tau_us %llu", policy, hedge_tau_us(h));
	DMEMIT(" reads %lu extra %lu hedged %lu won %lu wasted %lu",
	       hedge_counter_sum(h, HEDGE_READS),
	       hedge_counter_sum(h, HEDGE_EXTRA),
	       hedge_counter_sum(h, HEDGE_HEDGED),
	       hedge_counter_sum(h, HEDGE_WON),
	       hedge_counter_sum(h, HEDGE_WASTED));
	DMEMIT(" cancelled %lu rescued %lu unhedged %lu",
	       hedge_counter_sum(h, HEDGE_CANCELLED),
	       hedge_counter_sum(h, HEDGE_RESCUED), unhedged(h));
	DMEMIT(" sitting %lx stalled %lx held %u oldest_us %llu oldest_leg %u",
	       READ_ONCE(h->sitting), READ_ONCE(h->stalled), READ_ONCE(h->nr_held),
	       div_u64(age, NSEC_PER_USEC), leg);
	return sz;
}

/* What an attestation of the system is to know of the target. */
static unsigned int status_ima(struct hedge *h, char *result,
			       unsigned int maxlen)
{
	unsigned int sz = 0, i;

	DMEMIT_TARGET_NAME_VERSION(h->ti->type);
	DMEMIT(",nr_mirrors=%u", h->nr_legs);
	for (i = 0; i < h->nr_legs; i++)
		DMEMIT(",mirror_device_%u=%s,mirror_device_%u_status=%c",
		       i, hedge_leg_name(&h->leg[i]), i,
		       hedge_leg_health_char(&h->leg[i]));
	DMEMIT(",handle_errors=%c,keep_log=%c", h->handle_errors ? 'y' : 'n',
	       h->keep_log ? 'y' : 'n');
	DMEMIT(",log_type_status=");
	sz += h->log->type->status(h->log, STATUSTYPE_IMA, result + sz,
				   maxlen - sz);
	DMEMIT(";");
	return sz;
}

/**
 * hedge_status - answer a request for status
 * @ti: the target
 * @type: what is asked for
 * @flags: not used
 * @result: where to
 * @maxlen: room in @result
 *
 * Context: process. May sleep.
 */
void hedge_status(struct dm_target *ti, status_type_t type, unsigned int flags,
		  char *result, unsigned int maxlen)
{
	switch (type) {
	case STATUSTYPE_INFO:
		status_info(ti->private, result, maxlen);
		break;
	case STATUSTYPE_TABLE:
		hedge_table_print(ti->private, result, maxlen);
		break;
	case STATUSTYPE_IMA:
		status_ima(ti->private, result, maxlen);
		break;
	}
}
