// SPDX-License-Identifier: GPL-2.0
/*
 * The table of knobs and presets, and reading and writing their values.
 *
 * A knob differs from its default if the preset that was chosen last would not
 * give the value it has; the table line prints just those. The name of a policy
 * holds as long as every knob that makes it up has the preset's value, where a
 * timeout counts only as there or not: a preset says that there is one, and
 * learning or the user say how long it is.
 */
#include "knobs.h"

static const char * const any_idle[] = { "any", "idle", NULL };
static const char * const cancels[] = { "complete", "start", "none", NULL };
static const char * const clocks[] = { "start", "arrival", NULL };
static const char * const balances[] = { "latency", "jsq", "random",
					 "round-robin", "llw", NULL };
static const char * const queues[] = { "shared", "legs", NULL };
static const char * const orders[] = { "fcfs", "edd", "fut", NULL };
static const char * const replicates[] = { "lpr", "nr", "nir", "r", NULL };
static const char * const off_on[] = { "off", "on", NULL };

#define NR_LEGS		(~0U)		/* a range that ends at the number of legs */
#define NR_LEGS_LESS_1	(~0U - 1)	/* one less */
#define PCT_OF_LEGS	(~0U - 2)	/* 100 times one less */

static const struct {
	const char *name;
	const char * const *words;	/* of a knob of words */
	u32 min, max;			/* of a knob of numbers */
	u32 initial;			/* of a knob that no preset sets */
} knob_table[HEDGE_NR_KNOBS] = {
	[HEDGE_POLICY]		= { .name = "policy" },
	[HEDGE_COPIES]		= { .name = "copies", .min = 1, .max = NR_LEGS },
	[HEDGE_COPIES_TO]	= { .name = "copies_to", .words = any_idle },
	[HEDGE_CANCEL]		= { .name = "cancel", .words = cancels },
	[HEDGE_TIMEOUT_US]	= { .name = "timeout_us" },
	[HEDGE_TIMEOUT_FROM]	= { .name = "timeout_from", .words = clocks },
	[HEDGE_MAX_HEDGES]	= { .name = "max_hedges", .max = NR_LEGS_LESS_1 },
	[HEDGE_HEDGE_TO]	= { .name = "hedge_to", .words = any_idle },
	[HEDGE_BALANCE]		= { .name = "balance", .words = balances },
	[HEDGE_CHOICES]		= { .name = "choices", .max = NR_LEGS },
	[HEDGE_QUEUE]		= { .name = "queue", .words = queues },
	[HEDGE_ORDER]		= { .name = "order", .words = orders },
	[HEDGE_REPLICATE]	= { .name = "replicate", .words = replicates },
	[HEDGE_PROBE]		= { .name = "probe", .words = off_on },
	[HEDGE_QUEUE_DEPTH]	= { .name = "queue_depth", .max = 4096 },
	[HEDGE_BUDGET_PCT]	= { .name = "budget_pct", .max = PCT_OF_LEGS },
	[HEDGE_TASK_KB]		= { .name = "task_kb", .max = 1024 },
	[HEDGE_HEDGE_DEPTH]	= { .name = "hedge_depth", .max = 4096 },
	[HEDGE_RESCUE_US]	= { .name = "rescue_us", .max = 100000000,
				    .initial = 100000 },
	[HEDGE_MAX_COPY_KB]	= { .name = "max_copy_kb", .max = 1024,
				    .initial = 256 },
	[HEDGE_BOUNCE_MB]	= { .name = "bounce_mb", .min = 1, .max = 16384,
				    .initial = 32 },
	[HEDGE_PROBE_KB]	= { .name = "probe_kb", .min = 1, .max = 1024,
				    .initial = 4 },
	[HEDGE_PROBE_PRIORITY]	= { .name = "probe_priority", .max = 1 },
	[HEDGE_DUE_US_RT]	= { .name = "due_us_rt", .max = 100000000,
				    .initial = 1000 },
	[HEDGE_DUE_US_BE]	= { .name = "due_us_be", .max = 100000000,
				    .initial = 10000 },
	[HEDGE_DUE_US_IDLE]	= { .name = "due_us_idle", .max = 100000000,
				    .initial = 100000 },
	[HEDGE_SITOUT_PCT]	= { .name = "sitout_pct", .max = 100000,
				    .initial = 300 },
	[HEDGE_SITOUT_S]	= { .name = "sitout_s", .max = 3600,
				    .initial = 60 },
};

#define MAX_HEDGES NR_LEGS_LESS_1
#define BUDGET_OF_COPIES 0		/* 10, or 100 for each copy but one */

/*
 * One line for each preset. What is 0 is the first word of its knob, or no
 * timeout. The last three are suggestions: queue_depth, budget_pct, task_kb.
 */
static const struct preset {
	const char *name;
	u32 copies, copies_to, cancel;
	u32 timeout, from, max_hedges, hedge_to;
	u32 balance, choices, queue, order, replicate, probe;
	u32 depth, budget, task_kb;
} presets[] = {
/* The shared queue: a leg with a free slot takes the next read. */
#define SHARED(_name, _order, _replicate, ...) \
	{ .name = _name, .copies = 1, .max_hedges = MAX_HEDGES, \
	  .hedge_to = HEDGE_IDLE, .balance = HEDGE_BALANCE_LATENCY, \
	  .queue = HEDGE_QUEUE_SHARED, .order = _order, \
	  .replicate = _replicate, __VA_ARGS__ }
	SHARED("fcfs-lpr", HEDGE_FCFS, HEDGE_LPR,
	       .timeout = HEDGE_TIMEOUT_AUTO),
	SHARED("fcfs-nr", HEDGE_FCFS, HEDGE_NR),
	SHARED("fcfs-nir", HEDGE_FCFS, HEDGE_NIR, .depth = 1,
	       .budget = PCT_OF_LEGS),
	SHARED("fcfs-r", HEDGE_FCFS, HEDGE_R, .depth = 1,
	       .budget = PCT_OF_LEGS),
	SHARED("edd-lpr", HEDGE_EDD, HEDGE_LPR, .depth = 1,
	       .timeout = HEDGE_TIMEOUT_AUTO),
	SHARED("edd-nr", HEDGE_EDD, HEDGE_NR, .depth = 1),
	SHARED("edd-nir", HEDGE_EDD, HEDGE_NIR, .depth = 1,
	       .budget = PCT_OF_LEGS),
	SHARED("edd-r", HEDGE_EDD, HEDGE_R, .depth = 1,
	       .budget = PCT_OF_LEGS),
	SHARED("fut-lpr", HEDGE_FUT, HEDGE_LPR, .depth = 1, .task_kb = 64,
	       .timeout = HEDGE_TIMEOUT_AUTO),
	SHARED("fut-nr", HEDGE_FUT, HEDGE_NR, .depth = 1, .task_kb = 64),
	SHARED("fut-nir", HEDGE_FUT, HEDGE_NIR, .depth = 1, .task_kb = 64,
	       .budget = PCT_OF_LEGS),
	SHARED("fut-r", HEDGE_FUT, HEDGE_R, .depth = 1, .task_kb = 64,
	       .budget = PCT_OF_LEGS),
#undef SHARED
/* A queue for each leg, which is chosen at arrival. */
#define LEGS(_name, _copies, _balance, ...) \
	{ .name = _name, .copies = _copies, .max_hedges = MAX_HEDGES, \
	  .hedge_to = HEDGE_IDLE, .balance = _balance, \
	  .queue = HEDGE_QUEUE_LEGS, __VA_ARGS__ }
	LEGS("rnd", 1, HEDGE_BALANCE_RANDOM),
	LEGS("jsq", 1, HEDGE_BALANCE_JSQ),
	LEGS("pod", 1, HEDGE_BALANCE_JSQ, .choices = 2),
	LEGS("llw", 1, HEDGE_BALANCE_LLW),
	{ .name = "slb", .copies = 1, .timeout = HEDGE_TIMEOUT_AUTO,
	  .max_hedges = 1, .hedge_to = HEDGE_ANY,
	  .balance = HEDGE_BALANCE_RANDOM, .queue = HEDGE_QUEUE_LEGS },
	{ .name = "slb-arrival", .copies = 1, .timeout = HEDGE_TIMEOUT_AUTO,
	  .from = HEDGE_FROM_ARRIVAL, .max_hedges = 1, .hedge_to = HEDGE_ANY,
	  .balance = HEDGE_BALANCE_RANDOM, .queue = HEDGE_QUEUE_LEGS },
	LEGS("coc", 2, HEDGE_BALANCE_RANDOM),
	LEGS("cos", 2, HEDGE_BALANCE_RANDOM, .cancel = HEDGE_CANCEL_START,
	     .depth = 1),
	LEGS("riq", 2, HEDGE_BALANCE_RANDOM, .copies_to = HEDGE_IDLE,
	     .depth = 1),
	LEGS("probe", 2, HEDGE_BALANCE_RANDOM, .probe = HEDGE_ON, .depth = 1,
	     .budget = PCT_OF_LEGS),
#undef LEGS
};

static u32 bound(const struct hedge_knobs *knobs, u32 limit)
{
	switch (limit) {
	case NR_LEGS:
		return knobs->nr_legs;
	case NR_LEGS_LESS_1:
		return knobs->nr_legs - 1;
	case PCT_OF_LEGS:
		return 100 * (knobs->nr_legs - 1);
	default:
		return limit;
	}
}

static u32 suggested_budget(const struct hedge_knobs *knobs)
{
	const struct preset *p = &presets[knobs->val[HEDGE_POLICY]];
	u32 copies = knobs->val[HEDGE_COPIES];

	if (p->budget != BUDGET_OF_COPIES)
		return bound(knobs, p->budget);
	return copies > 1 ? 100 * (copies - 1) : 10;
}

/* The value that a knob has unless somebody says otherwise. */
static u32 default_value(const struct hedge_knobs *knobs, enum hedge_knob knob)
{
	const struct preset *p = &presets[knobs->val[HEDGE_POLICY]];

	switch (knob) {
	case HEDGE_POLICY:
		return 0;
	case HEDGE_COPIES:
		return p->copies;
	case HEDGE_COPIES_TO:
		return p->copies_to;
	case HEDGE_CANCEL:
		return p->cancel;
	case HEDGE_TIMEOUT_US:
		return p->timeout;
	case HEDGE_TIMEOUT_FROM:
		return p->from;
	case HEDGE_MAX_HEDGES:
		return bound(knobs, p->max_hedges);
	case HEDGE_HEDGE_TO:
		return p->hedge_to;
	case HEDGE_BALANCE:
		return p->balance;
	case HEDGE_CHOICES:
		return p->choices;
	case HEDGE_QUEUE:
		return p->queue;
	case HEDGE_ORDER:
		return p->order;
	case HEDGE_REPLICATE:
		return p->replicate;
	case HEDGE_PROBE:
		return p->probe;
	case HEDGE_QUEUE_DEPTH:
		return p->depth;
	case HEDGE_BUDGET_PCT:
		return suggested_budget(knobs);
	case HEDGE_TASK_KB:
		return p->task_kb;
	default:
		return knob_table[knob].initial;
	}
}

static bool is_written(const struct hedge_knobs *knobs, enum hedge_knob knob)
{
	return knobs->written & (1U << knob);
}

static void apply_suggestions(struct hedge_knobs *knobs)
{
	unsigned int k;

	for (k = HEDGE_SUGGESTED_FIRST; k <= HEDGE_SUGGESTED_LAST; k++)
		if (!is_written(knobs, k))
			knobs->val[k] = default_value(knobs, k);
}

static void apply_preset(struct hedge_knobs *knobs, u32 preset)
{
	unsigned int k;

	knobs->val[HEDGE_POLICY] = preset;
	for (k = HEDGE_POLICY_FIRST; k <= HEDGE_POLICY_LAST; k++) {
		knobs->val[k] = default_value(knobs, k);
		knobs->written &= ~(1U << k);
	}
	apply_suggestions(knobs);
}

/**
 * hedge_knobs_init - give every knob its default
 * @knobs: the settings to fill
 * @nr_legs: number of legs, 2 to HEDGE_MAX_LEGS
 */
void hedge_knobs_init(struct hedge_knobs *knobs, unsigned int nr_legs)
{
	unsigned int k;

	memset(knobs, 0, sizeof(*knobs));
	knobs->nr_legs = nr_legs;
	apply_preset(knobs, 0);
	for (k = HEDGE_OTHERS_FIRST; k < HEDGE_NR_KNOBS; k++)
		knobs->val[k] = default_value(knobs, k);
}

/**
 * hedge_knob_find - look a knob up by its name
 * @name: the attribute's name
 *
 * Return: the knob, or -ENOENT.
 */
int hedge_knob_find(const char *name)
{
	unsigned int k;

	for (k = 0; k < HEDGE_NR_KNOBS; k++)
		if (!strcmp(knob_table[k].name, name))
			return k;
	return -ENOENT;
}

/**
 * hedge_knob_name - the name of a knob
 * @knob: which
 */
const char *hedge_knob_name(enum hedge_knob knob)
{
	return knob_table[knob].name;
}

/**
 * hedge_parse_u32 - read a decimal number
 * @word: digits and nothing else
 * @min: least value
 * @max: largest value
 * @value: where the number is put
 *
 * Return: 0, or -EINVAL with @value untouched.
 */
int hedge_parse_u32(const char *word, u32 min, u32 max, u32 *value)
{
	u64 n = 0;
	const char *c;

	if (!*word)
		return -EINVAL;
	for (c = word; *c; c++) {
		if (*c < '0' || *c > '9')
			return -EINVAL;
		n = n * 10 + (*c - '0');
		if (n > max)
			return -EINVAL;
	}
	if (n < min)
		return -EINVAL;
	*value = n;
	return 0;
}

/**
 * hedge_parse_timeout - read a timeout
 * @word: microseconds, or "off", or "auto" ("inherit" for a leg's own)
 * @of_leg: whether it is a leg's own timeout
 * @value: where it is put
 *
 * Return: 0, or -EINVAL with @value untouched.
 */
int hedge_parse_timeout(const char *word, bool of_leg, u32 *value)
{
	if (!strcmp(word, "off"))
		*value = HEDGE_TIMEOUT_OFF;
	else if (!of_leg && !strcmp(word, "auto"))
		*value = HEDGE_TIMEOUT_AUTO;
	else if (of_leg && !strcmp(word, "inherit"))
		*value = HEDGE_TIMEOUT_INHERIT;
	else
		return hedge_parse_u32(word, 1, HEDGE_TIMEOUT_MAX_US, value);
	return 0;
}

/**
 * hedge_format_timeout - write a timeout as it is read
 * @value: the timeout
 * @buf: where to
 * @size: room in @buf
 *
 * Return: characters written.
 */
int hedge_format_timeout(u32 value, char *buf, size_t size)
{
	switch (value) {
	case HEDGE_TIMEOUT_OFF:
		return scnprintf(buf, size, "off");
	case HEDGE_TIMEOUT_AUTO:
		return scnprintf(buf, size, "auto");
	case HEDGE_TIMEOUT_INHERIT:
		return scnprintf(buf, size, "inherit");
	default:
		return scnprintf(buf, size, "%u", value);
	}
}

static int find_word(const char * const *words, const char *word, u32 *value)
{
	u32 i;

	for (i = 0; words[i]; i++) {
		if (!strcmp(words[i], word)) {
			*value = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int find_preset(const char *word, u32 *value)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(presets); i++) {
		if (!strcmp(presets[i].name, word)) {
			*value = i;
			return 0;
		}
	}
	return -EINVAL;
}

/**
 * hedge_knob_set - set a knob from a word
 * @knobs: the settings; untouched on error
 * @knob: which
 * @word: the value
 *
 * Setting the policy gives all knobs that make it up the preset's values.
 *
 * Return: 0, or -EINVAL (hedge_knob_expects() tells what would be right).
 */
int hedge_knob_set(struct hedge_knobs *knobs, enum hedge_knob knob,
		   const char *word)
{
	u32 value = 0;
	int r;

	if (knob == HEDGE_POLICY)
		r = find_preset(word, &value);
	else if (knob == HEDGE_TIMEOUT_US)
		r = hedge_parse_timeout(word, false, &value);
	else if (knob_table[knob].words)
		r = find_word(knob_table[knob].words, word, &value);
	else
		r = hedge_parse_u32(word, knob_table[knob].min,
				    bound(knobs, knob_table[knob].max), &value);
	if (r)
		return r;

	if (knob == HEDGE_POLICY) {
		apply_preset(knobs, value);
		return 0;
	}
	knobs->val[knob] = value;
	knobs->written |= 1U << knob;
	apply_suggestions(knobs);
	return 0;
}

static int list_presets(char *buf, size_t size, int current, const char *sep)
{
	unsigned int i, n = 0;

	for (i = 0; i < ARRAY_SIZE(presets); i++)
		n += scnprintf(buf + n, size - n,
			       (int)i == current ? "%s[%s]" : "%s%s",
			       i ? sep : "", presets[i].name);
	return n;
}

static int list_words(const char * const *words, char *buf, size_t size,
		      int current, const char *sep)
{
	unsigned int i, n = 0;

	for (i = 0; words[i]; i++)
		n += scnprintf(buf + n, size - n,
			       (int)i == current ? "%s[%s]" : "%s%s",
			       i ? sep : "", words[i]);
	return n;
}

/**
 * hedge_knob_expects - say what values a knob takes
 * @knobs: the settings
 * @knob: which
 * @buf: where to
 * @size: room in @buf
 *
 * Return: characters written.
 */
int hedge_knob_expects(const struct hedge_knobs *knobs, enum hedge_knob knob,
		       char *buf, size_t size)
{
	if (knob == HEDGE_POLICY)
		return list_presets(buf, size, -1, ", ");
	if (knob == HEDGE_TIMEOUT_US)
		return scnprintf(buf, size, "auto, off, or 1 to %u",
				 HEDGE_TIMEOUT_MAX_US);
	if (knob_table[knob].words)
		return list_words(knob_table[knob].words, buf, size, -1, ", ");
	return scnprintf(buf, size, "%u to %u", knob_table[knob].min,
			 bound(knobs, knob_table[knob].max));
}

/**
 * hedge_knob_format - write a knob's value as a word
 * @knobs: the settings
 * @knob: which
 * @buf: where to
 * @size: room in @buf
 *
 * For the policy this is the preset that was chosen last, whose values the
 * other words then correct.
 *
 * Return: characters written.
 */
int hedge_knob_format(const struct hedge_knobs *knobs, enum hedge_knob knob,
		      char *buf, size_t size)
{
	u32 value = knobs->val[knob];

	if (knob == HEDGE_POLICY)
		return scnprintf(buf, size, "%s", presets[value].name);
	if (knob == HEDGE_TIMEOUT_US)
		return hedge_format_timeout(value, buf, size);
	if (knob_table[knob].words)
		return scnprintf(buf, size, "%s", knob_table[knob].words[value]);
	return scnprintf(buf, size, "%u", value);
}

static bool is_preset(const struct hedge_knobs *knobs)
{
	unsigned int k;

	for (k = HEDGE_POLICY_FIRST; k <= HEDGE_POLICY_LAST; k++) {
		u32 has = knobs->val[k], wants = default_value(knobs, k);

		if (k == HEDGE_TIMEOUT_US) {
			has = has != HEDGE_TIMEOUT_OFF;
			wants = wants != HEDGE_TIMEOUT_OFF;
		}
		if (has != wants)
			return false;
	}
	return true;
}

/**
 * hedge_policy_name - the name of the policy that is in force
 * @knobs: the settings
 *
 * Return: the preset's name, or "custom" once a knob differs from it.
 */
const char *hedge_policy_name(const struct hedge_knobs *knobs)
{
	if (!is_preset(knobs))
		return "custom";
	return presets[knobs->val[HEDGE_POLICY]].name;
}

/**
 * hedge_knob_list - write what reading a knob's attribute shows
 * @knobs: the settings
 * @knob: which
 * @buf: where to
 * @size: room in @buf
 *
 * For the policy all presets, the one in force in brackets; the value of any
 * other knob.
 *
 * Return: characters written.
 */
int hedge_knob_list(const struct hedge_knobs *knobs, enum hedge_knob knob,
		    char *buf, size_t size)
{
	int n;

	if (knob != HEDGE_POLICY)
		return hedge_knob_format(knobs, knob, buf, size);
	if (is_preset(knobs))
		return list_presets(buf, size, knobs->val[HEDGE_POLICY], " ");
	n = list_presets(buf, size, -1, " ");
	return n + scnprintf(buf + n, size - n, " [custom]");
}

/**
 * hedge_knob_differs - whether a table line must name a knob
 * @knobs: the settings
 * @knob: which
 *
 * Return: true if a line without it would make another device.
 */
bool hedge_knob_differs(const struct hedge_knobs *knobs, enum hedge_knob knob)
{
	return knobs->val[knob] != default_value(knobs, knob);
}
