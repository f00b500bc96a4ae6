// SPDX-License-Identifier: GPL-2.0
/*
 * The settings of a target while it runs.
 *
 * All settings stand in one struct hedge_conf that is never changed once it is
 * published: who sets something makes a copy, changes that and puts it in place,
 * and the old one is freed after an RCU grace period. So a read sees all settings
 * as of one moment, and reading them costs nothing.
 */
#include "hedge.h"

/* The timeout in force for a size class on a leg. */
static u64 tau_ns(const struct hedge_conf *conf, unsigned int size,
		  unsigned int leg)
{
	u32 timeout = conf->leg[leg].timeout_us;

	/* The others hedge never, or need no timeout. */
	if (conf->knobs.val[HEDGE_REPLICATE] != HEDGE_LPR)
		return 0;
	if (timeout == HEDGE_TIMEOUT_INHERIT)
		timeout = conf->knobs.val[HEDGE_TIMEOUT_US];
	if (timeout == HEDGE_TIMEOUT_AUTO)
		return conf->auto_ns[size];
	return (u64)timeout * NSEC_PER_USEC;
}

/* Computes what is derived from what the user has set. */
static void conf_derive(struct hedge *h, struct hedge_conf *conf)
{
	unsigned int size, i;
	bool timed = false, even = true;

	for (size = 0; size < HEDGE_NR_SIZES; size++) {
		for (i = 0; i < h->nr_legs; i++) {
			conf->tau_ns[size][i] = tau_ns(conf, size, i);
			timed |= conf->tau_ns[size][i];
		}
	}
	conf->rescue_ns = (u64)conf->knobs.val[HEDGE_RESCUE_US] * NSEC_PER_USEC;
	conf->max_copy = conf->knobs.val[HEDGE_MAX_COPY_KB] << 10;
	conf->task = conf->knobs.val[HEDGE_TASK_KB] << 10;
	if (conf->task > conf->max_copy)
		conf->task = 0;
	conf->probe = conf->knobs.val[HEDGE_PROBE] == HEDGE_ON ?
		      conf->knobs.val[HEDGE_PROBE_KB] << 10 : 0;
	conf->at_once = hedge_at_once(&conf->knobs) &&
			conf->knobs.val[HEDGE_MAX_HEDGES];
	conf->waits = conf->knobs.val[HEDGE_QUEUE_DEPTH] || conf->at_once;
	conf->speculative = conf->knobs.val[HEDGE_COPIES] > 1 || timed ||
			    conf->at_once || conf->probe || conf->rescue_ns;
	conf->alone = !conf->speculative && !conf->waits && !conf->task &&
		      conf->knobs.val[HEDGE_BALANCE] != HEDGE_BALANCE_LLW;
	conf->single = conf->knobs.val[HEDGE_COPIES] == 1 && !conf->waits;
	for (i = 0; i < h->nr_legs; i++)
		even &= conf->leg[i].weight == HEDGE_WEIGHT_DEFAULT;
	conf->plain = even && !conf->knobs.val[HEDGE_CHOICES] &&
		      conf->knobs.val[HEDGE_BALANCE] == HEDGE_BALANCE_LATENCY;
}

/**
 * hedge_conf_alloc - make settings
 * @from: settings to copy, or NULL for the defaults
 * @nr_legs: number of legs
 *
 * Context: process. May sleep, but not for I/O.
 *
 * Return: the settings, or NULL.
 */
struct hedge_conf *hedge_conf_alloc(const struct hedge_conf *from,
				    unsigned int nr_legs)
{
	struct hedge_conf *conf = kzalloc(sizeof(*conf), GFP_NOIO);
	unsigned int i;

	if (!conf)
		return NULL;
	if (from) {
		*conf = *from;
		return conf;
	}
	hedge_knobs_init(&conf->knobs, nr_legs);
	for (i = 0; i < nr_legs; i++) {
		conf->leg[i].weight = HEDGE_WEIGHT_DEFAULT;
		conf->leg[i].hedge_weight = HEDGE_WEIGHT_DEFAULT;
		conf->leg[i].timeout_us = HEDGE_TIMEOUT_INHERIT;
	}
	return conf;
}

static bool differs(const struct hedge_conf *a, const struct hedge_conf *b,
		    enum hedge_knob knob)
{
	return a->knobs.val[knob] != b->knobs.val[knob];
}

/**
 * hedge_conf_publish - put settings in force
 * @h: the target
 * @conf: the settings, which are the target's from now on
 *
 * Context: process. Caller holds conf_mutex, or is the constructor.
 */
void hedge_conf_publish(struct hedge *h, struct hedge_conf *conf)
{
	struct hedge_conf *old = rcu_dereference_protected(h->conf, true);
	bool budget, rescue, order;

	conf_derive(h, conf);
	hedge_bounce_limit(h, min_t(u64, LONG_MAX,
				    (u64)conf->knobs.val[HEDGE_BOUNCE_MB] << 20));
	rcu_assign_pointer(h->conf, conf);
	if (!old)
		return;
	budget = differs(old, conf, HEDGE_BUDGET_PCT);
	order = differs(old, conf, HEDGE_ORDER) ||
		differs(old, conf, HEDGE_REPLICATE);
	rescue = conf->rescue_ns && conf->rescue_ns != old->rescue_ns;
	if (budget || rescue || order)
		synchronize_rcu();	/* nobody works by the old settings */
	/*
	 * The bound on extra copies is as of the last change of the budget: what
	 * was earned before is void.
	 */
	if (budget)
		hedge_budget_empty(h);
	if (rescue)
		hedge_clock_rescue(h, conf->rescue_ns);
	/* What waits stands where the old settings have put it. */
	if (order)
		hedge_order_rebuild(h, conf);
	kfree_rcu(old, rcu);
}

static int leg_word(struct hedge_leg_conf *leg, const char *attribute,
		    const char *value, const char **expected)
{
	*expected = "0 to 1000";
	if (!strcmp(attribute, "weight"))
		return hedge_parse_u32(value, 0, HEDGE_WEIGHT_MAX,
				       &leg->weight);
	if (!strcmp(attribute, "hedge_weight"))
		return hedge_parse_u32(value, 0, HEDGE_WEIGHT_MAX,
				       &leg->hedge_weight);
	*expected = "inherit, off, or 1 to 100000000";
	if (!strcmp(attribute, "timeout_us"))
		return hedge_parse_timeout(value, true, &leg->timeout_us);
	*expected = "weight, hedge_weight or timeout_us";
	return -ENOENT;
}

/**
 * hedge_conf_word - set an attribute in settings that are not published yet
 * @h: the target, for messages
 * @conf: the settings
 * @leg: number of the leg, or -1 for an attribute of the target
 * @attribute: the attribute's name
 * @value: its value
 *
 * What is wrong, and what would be right, is told in the kernel log.
 *
 * Context: process.
 *
 * Return: 0, -ENOENT if there is no such attribute, -EINVAL for a wrong value.
 */
int hedge_conf_word(struct hedge *h, struct hedge_conf *conf, int leg,
		    const char *attribute, const char *value)
{
	const char *name = dm_table_device_name(h->ti->table);
	const char *expected;
	char words[256];
	int knob, r;

	if (leg >= 0) {
		r = leg_word(&conf->leg[leg], attribute, value, &expected);
		if (r == -ENOENT)
			DMERR("%s: leg %d has no attribute \"%s\", expected %s",
			      name, leg, attribute, expected);
		else if (r)
			DMERR("%s: leg %d: %s is \"%s\", expected %s", name,
			      leg, attribute, value, expected);
		return r;
	}
	knob = hedge_knob_find(attribute);
	if (knob < 0) {
		DMERR("%s: there is no attribute \"%s\"", name, attribute);
		return knob;
	}
	r = hedge_knob_set(&conf->knobs, knob, value);
	if (r) {
		hedge_knob_expects(&conf->knobs, knob, words, sizeof(words));
		DMERR("%s: %s is \"%s\", expected %s", name, attribute, value,
		      words);
	}
	return r;
}

/**
 * hedge_conf_learnt - put learnt timeouts in force
 * @h: the target
 * @auto_ns: the timeout of each size class in nanoseconds, 0 for none
 *
 * Context: process. May sleep, but not for I/O.
 */
void hedge_conf_learnt(struct hedge *h, const u64 *auto_ns)
{
	const struct hedge_conf *old;
	struct hedge_conf *conf;

	mutex_lock(&h->conf_mutex);
	old = rcu_dereference_protected(h->conf, true);
	if (memcmp(old->auto_ns, auto_ns, sizeof(old->auto_ns))) {
		conf = hedge_conf_alloc(old, h->nr_legs);
		if (conf) {
			memcpy(conf->auto_ns, auto_ns, sizeof(conf->auto_ns));
			hedge_conf_publish(h, conf);
		}
	}
	mutex_unlock(&h->conf_mutex);
}

/**
 * hedge_conf_set - set an attribute of a running target
 * @h: the target
 * @leg: number of the leg, or -1 for an attribute of the target
 * @attribute: the attribute's name
 * @value: its value
 *
 * Context: process. May sleep, but not for I/O.
 *
 * Return: 0, or a negative error; nothing has changed then.
 */
int hedge_conf_set(struct hedge *h, int leg, const char *attribute,
		   const char *value)
{
	struct hedge_conf *conf;
	int r;

	mutex_lock(&h->conf_mutex);
	conf = hedge_conf_alloc(rcu_dereference_protected(h->conf, true),
				h->nr_legs);
	r = conf ? hedge_conf_word(h, conf, leg, attribute, value) : -ENOMEM;
	if (r)
		kfree(conf);
	else
		hedge_conf_publish(h, conf);
	mutex_unlock(&h->conf_mutex);
	/* What could not go on under the old settings may under the new. */
	if (!r)
		hedge_wait_dispatch(h);
	return r;
}
