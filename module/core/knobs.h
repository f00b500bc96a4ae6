/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The knobs of a hedged volume and the presets that name settings of them.
 *
 * Every knob is a number; a knob of words holds the index of its word. A preset
 * (the knob "policy") gives values to the knobs that make up a policy and,
 * unless the user has set them, to those that a policy only suggests. All names
 * and ranges stand in one table, from which the table line, sysfs, messages and
 * the simulator's options are read and written.
 */
#ifndef HEDGE_CORE_KNOBS_H
#define HEDGE_CORE_KNOBS_H

#include "types.h"

enum hedge_knob {
	HEDGE_POLICY,
	/* What makes up a policy: every preset sets all of these. */
	HEDGE_COPIES,
	HEDGE_COPIES_TO,
	HEDGE_CANCEL,
	HEDGE_TIMEOUT_US,
	HEDGE_TIMEOUT_FROM,
	HEDGE_MAX_HEDGES,
	HEDGE_HEDGE_TO,
	HEDGE_BALANCE,
	HEDGE_CHOICES,
	HEDGE_QUEUE,
	HEDGE_ORDER,
	HEDGE_REPLICATE,
	HEDGE_PROBE,
	/* What a preset suggests until the user has set it. */
	HEDGE_QUEUE_DEPTH,
	HEDGE_BUDGET_PCT,
	HEDGE_TASK_KB,
	/* What no preset touches. */
	HEDGE_HEDGE_DEPTH,
	HEDGE_RESCUE_US,
	HEDGE_MAX_COPY_KB,
	HEDGE_BOUNCE_MB,
	HEDGE_PROBE_KB,
	HEDGE_PROBE_PRIORITY,
	HEDGE_DUE_US_RT,
	HEDGE_DUE_US_BE,
	HEDGE_DUE_US_IDLE,
	HEDGE_SITOUT_PCT,
	HEDGE_SITOUT_S,
	HEDGE_NR_KNOBS,
};

/* The first and last knob of the three groups above. */
#define HEDGE_POLICY_FIRST	HEDGE_COPIES
#define HEDGE_POLICY_LAST	HEDGE_PROBE
#define HEDGE_SUGGESTED_FIRST	HEDGE_QUEUE_DEPTH
#define HEDGE_SUGGESTED_LAST	HEDGE_TASK_KB
#define HEDGE_OTHERS_FIRST	HEDGE_HEDGE_DEPTH

enum { HEDGE_ANY, HEDGE_IDLE };

enum { HEDGE_CANCEL_COMPLETE, HEDGE_CANCEL_START, HEDGE_CANCEL_NONE };

enum { HEDGE_FROM_START, HEDGE_FROM_ARRIVAL };

enum hedge_balance {
	HEDGE_BALANCE_LATENCY,
	HEDGE_BALANCE_JSQ,
	HEDGE_BALANCE_RANDOM,
	HEDGE_BALANCE_ROUND_ROBIN,
	HEDGE_BALANCE_LLW,
};

enum { HEDGE_QUEUE_SHARED, HEDGE_QUEUE_LEGS };

enum { HEDGE_FCFS, HEDGE_EDD, HEDGE_FUT };

enum { HEDGE_LPR, HEDGE_NR, HEDGE_NIR, HEDGE_R };

enum { HEDGE_OFF, HEDGE_ON };

/* Values of timeout_us beside microseconds. */
#define HEDGE_TIMEOUT_OFF	0U
#define HEDGE_TIMEOUT_AUTO	(~0U)
/* And of a leg's own timeout_us. */
#define HEDGE_TIMEOUT_INHERIT	(~0U - 1)
#define HEDGE_TIMEOUT_MAX_US	100000000U

#define HEDGE_WEIGHT_MAX	1000U
#define HEDGE_WEIGHT_DEFAULT	100U

/**
 * struct hedge_knobs - the settings of one volume
 * @val: value of each knob
 * @written: bit for each knob that the user has set
 * @nr_legs: number of legs, which bounds some of the values
 */
struct hedge_knobs {
	u32 val[HEDGE_NR_KNOBS];
	u32 written;
	u32 nr_legs;
};

void hedge_knobs_init(struct hedge_knobs *knobs, unsigned int nr_legs);
int hedge_knob_find(const char *name);
const char *hedge_knob_name(enum hedge_knob knob);
int hedge_knob_set(struct hedge_knobs *knobs, enum hedge_knob knob,
		   const char *word);
int hedge_knob_expects(const struct hedge_knobs *knobs, enum hedge_knob knob,
		       char *buf, size_t size);
int hedge_knob_format(const struct hedge_knobs *knobs, enum hedge_knob knob,
		      char *buf, size_t size);
int hedge_knob_list(const struct hedge_knobs *knobs, enum hedge_knob knob,
		    char *buf, size_t size);
bool hedge_knob_differs(const struct hedge_knobs *knobs, enum hedge_knob knob);
const char *hedge_policy_name(const struct hedge_knobs *knobs);
int hedge_parse_u32(const char *word, u32 min, u32 max, u32 *value);
int hedge_parse_timeout(const char *word, bool of_leg, u32 *value);
int hedge_format_timeout(u32 value, char *buf, size_t size);

#endif
