// SPDX-License-Identifier: GPL-2.0
/*
 * knobs.[ch]: names, ranges and words of every knob, what a preset sets and
 * suggests, and that a table line of what differs makes the same settings.
 */
#include "knobs.h"
#include "tap.h"

/* Every knob with three legs: its default and what it takes and refuses. */
static const struct {
	const char *name, *initial;
	const char *good[24], *bad[12];
} spec[HEDGE_NR_KNOBS] = {
	{ "policy", "fcfs-lpr",
	  { "fcfs-nr", "fcfs-nir", "fcfs-r", "edd-lpr", "edd-nr", "edd-nir",
	    "edd-r", "fut-lpr", "fut-nr", "fut-nir", "fut-r", "rnd", "jsq",
	    "pod", "llw", "slb", "slb-arrival", "coc", "cos", "riq", "probe",
	    "fcfs-lpr" },
	  { "custom", "[rnd]", "fcfs", "fcfs-gr", "0" } },
	{ "copies", "1", { "1", "2", "3" }, { "0", "4" } },
	{ "copies_to", "any", { "idle", "any" }, { "all" } },
	{ "cancel", "complete", { "start", "none", "complete" }, { "off" } },
	{ "timeout_us", "auto", { "off", "auto", "1", "2000", "100000000" },
	  { "0", "100000001", "inherit", "4294967295", "4294967294" } },
	{ "timeout_from", "start", { "arrival", "start" }, { "end" } },
	{ "max_hedges", "2", { "0", "1", "2" }, { "3" } },
	{ "hedge_to", "idle", { "any", "idle" }, { "all" } },
	{ "balance", "latency", { "jsq", "llw", "random", "round-robin", "latency" },
	  { "fastest" } },
	{ "choices", "0", { "0", "3" }, { "4" } },
	{ "queue", "shared", { "legs", "shared" }, { "leg" } },
	{ "order", "fcfs", { "edd", "fut", "fcfs" }, { "due" } },
	{ "replicate", "lpr", { "nr", "nir", "r", "lpr" }, { "n" } },
	{ "probe", "off", { "on", "off" }, { "1", "yes" } },
	{ "queue_depth", "0", { "0", "1", "4096" }, { "4097" } },
	{ "budget_pct", "10", { "0", "200" }, { "201" } },
	{ "task_kb", "0", { "0", "4", "1024" }, { "1025" } },
	{ "hedge_depth", "0", { "0", "4096" }, { "4097" } },
	{ "rescue_us", "100000", { "0", "1", "100000000" }, { "100000001" } },
	{ "max_copy_kb", "256", { "0", "1024" }, { "1025" } },
	{ "bounce_mb", "32", { "1", "16384" }, { "0", "16385" } },
	{ "probe_kb", "4", { "1", "1024" }, { "0", "1025" } },
	{ "probe_priority", "0", { "0", "1" }, { "2" } },
	{ "due_us_rt", "1000", { "0", "100000000" }, { "100000001" } },
	{ "due_us_be", "10000", { "0", "100000000" }, { "100000001" } },
	{ "due_us_idle", "100000", { "0", "100000000" }, { "100000001" } },
	{ "sitout_pct", "300", { "0", "100000" }, { "100001" } },
	{ "sitout_s", "60", { "0", "3600" }, { "3601" } },
};

/* Refused by every knob. */
static const char * const never[] = {
	"", " ", "1 ", " 1", "-1", "+1", "0x1", "1.5", "1e3", "1us", "ANY",
	"Start", "one", "4294967296", "4294967297", "18446744073709551616",
	"18446744073709551617", "99999999999999999999999999999999", "an",
	"anyy", "start ", "\n", "off\n",
};

static void set(struct hedge_knobs *k, const char *name, const char *word)
{
	int knob = hedge_knob_find(name);

	CHECK(knob >= 0, "%s", name);
	CHECK(knob >= 0 && !hedge_knob_set(k, knob, word), "%s %s", name, word);
}

static const char *get(const struct hedge_knobs *k, unsigned int knob)
{
	static char buf[32];

	hedge_knob_format(k, knob, buf, sizeof(buf));
	return buf;
}

/* Whether settings differ from a copy made before, in any knob but @except. */
static void check_same(const struct hedge_knobs *k,
		       const struct hedge_knobs *before, u32 except)
{
	unsigned int i;

	for (i = 0; i < HEDGE_NR_KNOBS; i++)
		if (!(except & (1U << i)))
			CHECK(k->val[i] == before->val[i], "%s: %u, was %u",
			      hedge_knob_name(i), k->val[i], before->val[i]);
}

static void names(void)
{
	unsigned int k;

	for (k = 0; k < HEDGE_NR_KNOBS; k++) {
		CHECK(hedge_knob_find(spec[k].name) == (int)k, "%s",
		      spec[k].name);
		CHECK(!strcmp(hedge_knob_name(k), spec[k].name), "%s",
		      spec[k].name);
	}
	CHECK(hedge_knob_find("") == -ENOENT, "empty");
	CHECK(hedge_knob_find("copie") == -ENOENT, "copie");
	CHECK(hedge_knob_find("copiess") == -ENOENT, "copiess");
	CHECK(hedge_knob_find("Copies") == -ENOENT, "Copies");
}

static void defaults(void)
{
	struct hedge_knobs knobs;
	unsigned int k;

	hedge_knobs_init(&knobs, 3);
	for (k = 0; k < HEDGE_NR_KNOBS; k++) {
		CHECK(!strcmp(get(&knobs, k), spec[k].initial), "%s: %s",
		      spec[k].name, get(&knobs, k));
		CHECK(!hedge_knob_differs(&knobs, k), "%s", spec[k].name);
	}
}

static void good_words(void)
{
	struct hedge_knobs knobs, before;
	unsigned int k, i;

	for (k = 1; k < HEDGE_NR_KNOBS; k++) {
		hedge_knobs_init(&knobs, 3);
		before = knobs;
		for (i = 0; spec[k].good[i]; i++) {
			set(&knobs, spec[k].name, spec[k].good[i]);
			CHECK(!strcmp(get(&knobs, k), spec[k].good[i]),
			      "%s %s: %s", spec[k].name, spec[k].good[i],
			      get(&knobs, k));
			CHECK(hedge_knob_differs(&knobs, k) ==
			      !!strcmp(spec[k].good[i], spec[k].initial),
			      "%s %s", spec[k].name, spec[k].good[i]);
		}
		/* Only copies takes another knob along. */
		check_same(&knobs, &before, 1U << k |
			   (k == HEDGE_COPIES ? 1U << HEDGE_BUDGET_PCT : 0));
	}
	for (i = 0; spec[HEDGE_POLICY].good[i]; i++) {
		set(&knobs, "policy", spec[HEDGE_POLICY].good[i]);
		CHECK(!strcmp(hedge_policy_name(&knobs),
			      spec[HEDGE_POLICY].good[i]), "%s: %s",
		      spec[HEDGE_POLICY].good[i], hedge_policy_name(&knobs));
	}
}

static void check_refused(unsigned int knob, const char *word)
{
	struct hedge_knobs knobs, before;

	hedge_knobs_init(&knobs, 3);
	before = knobs;
	CHECK(hedge_knob_set(&knobs, knob, word) == -EINVAL, "%s '%s'",
	      hedge_knob_name(knob), word);
	CHECK(!memcmp(&knobs, &before, sizeof(knobs)), "%s '%s'",
	      hedge_knob_name(knob), word);
}

static void bad_words(void)
{
	unsigned int k, i;

	for (k = 0; k < HEDGE_NR_KNOBS; k++) {
		for (i = 0; spec[k].bad[i]; i++)
			check_refused(k, spec[k].bad[i]);
		for (i = 0; i < ARRAY_SIZE(never); i++)
			check_refused(k, never[i]);
	}
}

/* Ranges that follow the number of legs, for every number. */
static void ranges_follow_legs(void)
{
	struct hedge_knobs knobs;
	unsigned int legs;
	char word[16];

	for (legs = 2; legs <= HEDGE_MAX_LEGS; legs++) {
		static const struct {
			enum hedge_knob knob;
			int factor, less;
		} ends[] = {
			{ HEDGE_COPIES, 1, 0 },
			{ HEDGE_MAX_HEDGES, 1, 1 },
			{ HEDGE_CHOICES, 1, 0 },
			{ HEDGE_BUDGET_PCT, 100, 1 },
		};
		unsigned int i;

		hedge_knobs_init(&knobs, legs);
		CHECK(knobs.val[HEDGE_MAX_HEDGES] == legs - 1, "%u", legs);
		for (i = 0; i < ARRAY_SIZE(ends); i++) {
			u32 end = ends[i].factor * (legs - ends[i].less);

			snprintf(word, sizeof(word), "%u", end + 1);
			CHECK(hedge_knob_set(&knobs, ends[i].knob, word) ==
			      -EINVAL, "%s %s", hedge_knob_name(ends[i].knob),
			      word);
			snprintf(word, sizeof(word), "%u", end);
			CHECK(!hedge_knob_set(&knobs, ends[i].knob, word),
			      "%s %s", hedge_knob_name(ends[i].knob), word);
		}
	}
}

/* The table of presets of the design, in words. */
static void presets(void)
{
	static const struct {
		const char *policy, *words[18];
	} want[] = {
		{ "fcfs-lpr", { "1", "any", "complete", "auto", "start", "4",
		  "idle", "latency", "0", "shared", "fcfs", "lpr", "off", "0",
		  "10", "0" } },
		{ "fcfs-nr", { "1", "any", "complete", "off", "start", "4",
		  "idle", "latency", "0", "shared", "fcfs", "nr", "off", "0",
		  "10", "0" } },
		{ "fcfs-nir", { "1", "any", "complete", "off", "start", "4",
		  "idle", "latency", "0", "shared", "fcfs", "nir", "off", "1",
		  "400", "0" } },
		{ "fcfs-r", { "1", "any", "complete", "off", "start", "4",
		  "idle", "latency", "0", "shared", "fcfs", "r", "off", "1",
		  "400", "0" } },
		{ "edd-lpr", { "1", "any", "complete", "auto", "start", "4",
		  "idle", "latency", "0", "shared", "edd", "lpr", "off", "1",
		  "10", "0" } },
		{ "edd-nr", { "1", "any", "complete", "off", "start", "4",
		  "idle", "latency", "0", "shared", "edd", "nr", "off", "1",
		  "10", "0" } },
		{ "edd-nir", { "1", "any", "complete", "off", "start", "4",
		  "idle", "latency", "0", "shared", "edd", "nir", "off", "1",
		  "400", "0" } },
		{ "edd-r", { "1", "any", "complete", "off", "start", "4",
		  "idle", "latency", "0", "shared", "edd", "r", "off", "1",
		  "400", "0" } },
		{ "fut-lpr", { "1", "any", "complete", "auto", "start", "4",
		  "idle", "latency", "0", "shared", "fut", "lpr", "off", "1",
		  "10", "64" } },
		{ "fut-nr", { "1", "any", "complete", "off", "start", "4",
		  "idle", "latency", "0", "shared", "fut", "nr", "off", "1",
		  "10", "64" } },
		{ "fut-nir", { "1", "any", "complete", "off", "start", "4",
		  "idle", "latency", "0", "shared", "fut", "nir", "off", "1",
		  "400", "64" } },
		{ "fut-r", { "1", "any", "complete", "off", "start", "4",
		  "idle", "latency", "0", "shared", "fut", "r", "off", "1",
		  "400", "64" } },
		{ "rnd", { "1", "any", "complete", "off", "start", "4",
		  "idle", "random", "0", "legs", "fcfs", "lpr", "off", "0",
		  "10", "0" } },
		{ "jsq", { "1", "any", "complete", "off", "start", "4",
		  "idle", "jsq", "0", "legs", "fcfs", "lpr", "off", "0", "10",
		  "0" } },
		{ "pod", { "1", "any", "complete", "off", "start", "4",
		  "idle", "jsq", "2", "legs", "fcfs", "lpr", "off", "0", "10",
		  "0" } },
		{ "llw", { "1", "any", "complete", "off", "start", "4",
		  "idle", "llw", "0", "legs", "fcfs", "lpr", "off", "0", "10",
		  "0" } },
		{ "slb", { "1", "any", "complete", "auto", "start", "1",
		  "any", "random", "0", "legs", "fcfs", "lpr", "off", "0", "10",
		  "0" } },
		{ "slb-arrival", { "1", "any", "complete", "auto", "arrival",
		  "1", "any", "random", "0", "legs", "fcfs", "lpr", "off", "0",
		  "10", "0" } },
		{ "coc", { "2", "any", "complete", "off", "start", "4",
		  "idle", "random", "0", "legs", "fcfs", "lpr", "off", "0",
		  "100", "0" } },
		{ "cos", { "2", "any", "start", "off", "start", "4", "idle",
		  "random", "0", "legs", "fcfs", "lpr", "off", "1", "100", "0" }
		  },
		{ "riq", { "2", "idle", "complete", "off", "start", "4",
		  "idle", "random", "0", "legs", "fcfs", "lpr", "off", "1",
		  "100", "0" } },
		{ "probe", { "2", "any", "complete", "off", "start", "4",
		  "idle", "random", "0", "legs", "fcfs", "lpr", "on", "1",
		  "400", "0" } },
	};
	unsigned int from, to, k;

	/* Whatever the preset before was. */
	for (from = 0; from < ARRAY_SIZE(want); from++)
		for (to = 0; to < ARRAY_SIZE(want); to++) {
			struct hedge_knobs knobs;

			hedge_knobs_init(&knobs, 5);
			set(&knobs, "policy", want[from].policy);
			set(&knobs, "policy", want[to].policy);
			for (k = 0; want[to].words[k]; k++)
				CHECK(!strcmp(get(&knobs, HEDGE_COPIES + k),
					      want[to].words[k]),
				      "%s: %s %s", want[to].policy,
				      hedge_knob_name(HEDGE_COPIES + k),
				      get(&knobs, HEDGE_COPIES + k));
			CHECK(hedge_knob_differs(&knobs, HEDGE_POLICY) == !!to,
			      "%s", want[to].policy);
			for (k = 1; k < HEDGE_NR_KNOBS; k++)
				CHECK(!hedge_knob_differs(&knobs, k), "%s: %s",
				      want[to].policy, hedge_knob_name(k));
		}
}

/* A preset overrules what makes it up, and no more. */
static void written_stays(void)
{
	struct hedge_knobs knobs, before;
	unsigned int k;

	hedge_knobs_init(&knobs, 4);
	for (k = HEDGE_QUEUE_DEPTH; k < HEDGE_NR_KNOBS; k++)
		set(&knobs, hedge_knob_name(k),
		    k == HEDGE_PROBE_PRIORITY ? "1" : "7");
	before = knobs;
	set(&knobs, "policy", "fut-r");
	check_same(&knobs, &before, (1U << HEDGE_QUEUE_DEPTH) - 1);
	set(&knobs, "policy", "cos");
	check_same(&knobs, &before, (1U << HEDGE_QUEUE_DEPTH) - 1);
	set(&knobs, "copies", "4");
	set(&knobs, "policy", "rnd");
	check_same(&knobs, &before, (1U << HEDGE_QUEUE_DEPTH) - 1);
	CHECK(knobs.val[HEDGE_COPIES] == 1, "copies %u",
	      knobs.val[HEDGE_COPIES]);

	/* Written with the very value it had is written, too. */
	hedge_knobs_init(&knobs, 4);
	set(&knobs, "budget_pct", "10");
	set(&knobs, "queue_depth", "0");
	set(&knobs, "policy", "cos");
	CHECK(knobs.val[HEDGE_BUDGET_PCT] == 10, "%u",
	      knobs.val[HEDGE_BUDGET_PCT]);
	CHECK(knobs.val[HEDGE_QUEUE_DEPTH] == 0, "%u",
	      knobs.val[HEDGE_QUEUE_DEPTH]);
}

static void budget_follows_copies(void)
{
	struct hedge_knobs knobs;

	hedge_knobs_init(&knobs, 4);
	set(&knobs, "copies", "3");
	CHECK(knobs.val[HEDGE_BUDGET_PCT] == 200, "copies 3");
	set(&knobs, "copies", "1");
	CHECK(knobs.val[HEDGE_BUDGET_PCT] == 10, "copies 1");
	set(&knobs, "policy", "coc");
	set(&knobs, "copies", "4");
	CHECK(knobs.val[HEDGE_BUDGET_PCT] == 300, "coc of 4");
	/* Where copies are not what makes the extra ones, it stays. */
	set(&knobs, "policy", "fut-nir");
	set(&knobs, "copies", "2");
	CHECK(knobs.val[HEDGE_BUDGET_PCT] == 300, "fut-nir, copies 2");
	set(&knobs, "policy", "coc");
	set(&knobs, "budget_pct", "50");
	set(&knobs, "copies", "2");
	CHECK(knobs.val[HEDGE_BUDGET_PCT] == 50, "written");
	CHECK(hedge_knob_differs(&knobs, HEDGE_BUDGET_PCT), "differs");
}

#define SHARED_PRESETS "fcfs-lpr fcfs-nr fcfs-nir fcfs-r edd-lpr edd-nr " \
	"edd-nir edd-r fut-lpr fut-nr fut-nir fut-r "

/* Custom once a knob that makes up the policy differs, and back. */
static void custom_policies(void)
{
	static const struct {
		const char *name, *word;
		bool custom;
	} steps[] = {
		{ "copies", "2", true }, { "copies", "1", false },
		{ "copies_to", "idle", true }, { "copies_to", "any", false },
		{ "cancel", "none", true }, { "cancel", "complete", false },
		{ "timeout_us", "2000", false }, { "timeout_us", "off", true },
		{ "timeout_us", "auto", false },
		{ "timeout_from", "arrival", true },
		{ "timeout_from", "start", false },
		{ "max_hedges", "0", true }, { "max_hedges", "1", false },
		{ "hedge_to", "idle", true }, { "hedge_to", "any", false },
		{ "balance", "jsq", true }, { "balance", "random", false },
		{ "choices", "2", true }, { "choices", "0", false },
		{ "queue", "shared", true }, { "queue", "legs", false },
		{ "replicate", "nr", true }, { "replicate", "lpr", false },
		{ "order", "fut", true }, { "order", "fcfs", false },
		{ "probe", "on", true }, { "probe", "off", false },
		{ "task_kb", "64", false }, { "probe_kb", "8", false },
		{ "due_us_be", "8", false }, { "sitout_s", "0", false },
		{ "queue_depth", "8", false }, { "budget_pct", "100", false },
		{ "hedge_depth", "8", false }, { "rescue_us", "0", false },
		{ "max_copy_kb", "8", false }, { "bounce_mb", "8", false },
	};
	struct hedge_knobs knobs;
	unsigned int i;
	char list[256];

	hedge_knobs_init(&knobs, 3);
	set(&knobs, "policy", "slb");
	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		set(&knobs, steps[i].name, steps[i].word);
		CHECK(!strcmp(hedge_policy_name(&knobs),
			      steps[i].custom ? "custom" : "slb"),
		      "%s %s: %s", steps[i].name, steps[i].word,
		      hedge_policy_name(&knobs));
		hedge_knob_list(&knobs, HEDGE_POLICY, list, sizeof(list));
		CHECK(!strcmp(list, steps[i].custom ?
			      SHARED_PRESETS "rnd jsq pod llw slb slb-arrival coc cos riq probe [custom]" :
			      SHARED_PRESETS "rnd jsq pod llw [slb] slb-arrival coc cos riq probe"),
		      "%s %s: %s", steps[i].name, steps[i].word, list);
	}
	/* A preset without a timeout that gets one is another policy. */
	set(&knobs, "policy", "rnd");
	set(&knobs, "timeout_us", "2000");
	CHECK(!strcmp(hedge_policy_name(&knobs), "custom"), "rnd, timeout");
}

static void timeouts(void)
{
	static const char * const good[] = { "off", "inherit", "1", "100000000" };
	static const char * const bad[] = { "auto", "", "0", "100000001", "on",
					    "4294967295", "4294967294" };
	char buf[16];
	unsigned int i;
	u32 value;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		CHECK(!hedge_parse_timeout(good[i], true, &value), "%s",
		      good[i]);
		hedge_format_timeout(value, buf, sizeof(buf));
		CHECK(!strcmp(buf, good[i]), "%s: %s", good[i], buf);
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		value = 77;
		CHECK(hedge_parse_timeout(bad[i], true, &value) == -EINVAL,
		      "%s", bad[i]);
		CHECK(value == 77, "%s: %u", bad[i], value);
	}
}

static void numbers(void)
{
	char word[32];
	unsigned int i;
	u32 n;

	CHECK(!hedge_parse_u32("4294967295", 0, ~0U, &n) && n == ~0U, "most");
	CHECK(hedge_parse_u32("4294967296", 0, ~0U, &n) == -EINVAL, "more");
	CHECK(!hedge_parse_u32("0", 0, 0, &n) && n == 0, "only 0");
	CHECK(!hedge_parse_u32("0007", 0, 7, &n) && n == 7, "leading zeros");
	for (i = 0; i < 1000000; i++) {
		u32 lo = hedge_random(&rng) >> below(32);
		u32 hi = hedge_random(&rng) >> below(32);
		u64 x = ((u64)hedge_random(&rng) << 32 |
			 hedge_random(&rng)) >> below(64);

		snprintf(word, sizeof(word), "%llu", (unsigned long long)x);
		n = 77;
		if (x >= lo && x <= hi)
			CHECK(!hedge_parse_u32(word, lo, hi, &n) && n == x,
			      "%s in [%u, %u]: %u", word, lo, hi, n);
		else
			CHECK(hedge_parse_u32(word, lo, hi, &n) == -EINVAL &&
			      n == 77, "%s in [%u, %u]", word, lo, hi);
	}
}

/* What a knob expects names every good word and the ends of its range. */
static void expectations(void)
{
	struct hedge_knobs knobs;
	char buf[256], small[9];
	unsigned int k, i;

	hedge_knobs_init(&knobs, 3);
	for (k = 0; k < HEDGE_NR_KNOBS; k++) {
		int n = hedge_knob_expects(&knobs, k, buf, sizeof(buf));
		bool numbers = spec[k].good[0][0] <= '9';

		CHECK(n == (int)strlen(buf), "%s", spec[k].name);
		for (i = 0; spec[k].good[i] && !(numbers && i); i++)
			CHECK(strstr(buf, spec[k].good[i]) ||
			      !strcmp(spec[k].good[i], "2000"), "%s %s: %s",
			      spec[k].name, spec[k].good[i], buf);
		for (i = 0; spec[k].good[i]; i++)
			;
		CHECK(strstr(buf, spec[k].good[i - 1]), "%s: %s", spec[k].name,
		      buf);
		/* Room for eight characters: cut, and nothing beyond. */
		n = hedge_knob_expects(&knobs, k, small, sizeof(small));
		CHECK(n < (int)sizeof(small) && !strncmp(small, buf, n),
		      "%s: %d", spec[k].name, n);
		n = hedge_knob_list(&knobs, k, small, sizeof(small));
		CHECK(n < (int)sizeof(small) && n == (int)strlen(small),
		      "%s: %d", spec[k].name, n);
	}
}

/* A word that a knob takes, or one that it does not. */
static const char *random_word(unsigned int k)
{
	static char number[16];
	unsigned int n = 0;

	if (!below(10))
		return never[below(ARRAY_SIZE(never))];
	if (spec[k].good[0][0] <= '9' || (k == HEDGE_TIMEOUT_US && below(2))) {
		snprintf(number, sizeof(number), "%u", below(below(2) ? 9 : 900));
		return number;
	}
	while (spec[k].good[n])
		n++;
	return spec[k].good[below(n)];
}

/*
 * Sequences of settings; after each a new volume is made from the words that
 * the table line would have, as module/table.c prints it.
 */
static void round_trip(void)
{
	unsigned int step, k;
	struct hedge_knobs knobs;

	hedge_knobs_init(&knobs, 2);
	for (step = 0; step < 300000; step++) {
		struct hedge_knobs again, before = knobs;

		if (!below(20))
			hedge_knobs_init(&knobs, 2 + below(7));
		k = below(4) ? below(HEDGE_NR_KNOBS) : HEDGE_POLICY;
		before = knobs;
		if (hedge_knob_set(&knobs, k, random_word(k)))
			CHECK(!memcmp(&knobs, &before, sizeof(knobs)),
			      "step %u: an error changed something", step);

		hedge_knobs_init(&again, knobs.nr_legs);
		for (k = 0; k < HEDGE_NR_KNOBS; k++)
			if (hedge_knob_differs(&knobs, k))
				CHECK(!hedge_knob_set(&again, k, get(&knobs, k)),
				      "step %u: %s %s", step,
				      hedge_knob_name(k), get(&knobs, k));
		for (k = 0; k < HEDGE_NR_KNOBS; k++)
			CHECK(again.val[k] == knobs.val[k],
			      "step %u: %s %u, was %u", step,
			      hedge_knob_name(k), again.val[k], knobs.val[k]);
		CHECK(hedge_policy_name(&again) == hedge_policy_name(&knobs) ||
		      !strcmp(hedge_policy_name(&again),
			      hedge_policy_name(&knobs)), "step %u", step);
	}
}

static const struct tap_test tests[] = {
	{ "knobs: names", names },
	{ "knobs: defaults", defaults },
	{ "knobs: good words", good_words },
	{ "knobs: bad words change nothing", bad_words },
	{ "knobs: ranges follow the number of legs", ranges_follow_legs },
	{ "knobs: presets", presets },
	{ "knobs: what the user has written stays", written_stays },
	{ "knobs: the budget follows copies until written",
	  budget_follows_copies },
	{ "knobs: custom policies", custom_policies },
	{ "knobs: timeouts of legs", timeouts },
	{ "knobs: numbers", numbers },
	{ "knobs: what is expected", expectations },
	{ "knobs: a table line makes the same knobs", round_trip },
};

int main(void)
{
	return tap_run(tests, ARRAY_SIZE(tests));
}
