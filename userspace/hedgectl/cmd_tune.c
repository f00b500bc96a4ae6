// SPDX-License-Identifier: GPL-2.0
/*
 * hedgectl tune: chooses the timeout of a volume from the latencies of its legs.
 *
 * A reading is what the histograms counted since the reading before. It is used only when it holds
 * RULE_MIN_SAMPLES copies; with fewer, the next one goes on from where it began. A single run sets
 * what one reading says. --watch goes on for ever and follows only readings that agree (rules.c), so
 * that a disturbance of a minute, or a wish that moves to and fro, changes nothing.
 */
#include <errno.h>
#include <inttypes.h>
#include <json.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hedgectl.h"
#include "rules.h"

#define SECONDS 30
#define INTERVAL 60 /* of --watch */
#define MAX_SECONDS 86400

struct request {
	const struct args *args;
	struct rule rule;
	int target;
	uint64_t seconds;
	double budget;		/* of --file */
	bool watch, dry_run, json;
};

/* What a target is now. */
struct setting {
	char *timeout;		/* as written: auto, off, microseconds */
	double tau, budget;	/* tau in force, infinite: none; a share of the reads */
};

/* A reading of one target and what the rule makes of it. */
struct advice {
	const char *name;	/* of the volume or the files */
	int target, legs;	/* legs that had enough copies */
	uint64_t samples;
	struct pool pool;
	struct setting setting;
	double tau;		/* infinite: none */
	bool act;		/* it is to be set */
	const char *why_not;	/* or NULL */
};

static const struct {
	const char *name, *key;
	double p;
} quantiles[] = {
	{ "p50", "p50_us", 0.5 },
	{ "p99", "p99_us", 0.99 },
	{ "p99.9", "p99_9_us", 0.999 },
};

#define NR_QUANTILES (sizeof(quantiles) / sizeof(quantiles[0]))

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

/* --- what is said ------------------------------------------------------------------ */

static const char *us_text(double us, char *buffer)
{
	if (isinf(us))
		return "off";
	return format_time((uint64_t)llround(us * 1000), buffer, TIME_TEXT);
}

/* A percentile beyond which there are fewer than ten copies says nothing. */
static bool known(const struct advice *advice, double p)
{
	return (double)advice->samples * (1 - p) >= 10;
}

static void print_quantiles(const struct advice *advice, const char *what, double tau)
{
	char text[TIME_TEXT];

	printf("  %-20s %7.2f %%", what,
	       100 * rules_hedged(&advice->pool, tau, advice->setting.budget));
	for (size_t i = 0; i < NR_QUANTILES; i++) {
		double us = rules_quantile(&advice->pool, tau, advice->setting.budget, quantiles[i].p);

		printf(" %8s", known(advice, quantiles[i].p) ? us_text(us, text) : "-");
	}
	printf("\n");
}

static void explain_rule(const struct rule *rule, const struct advice *advice)
{
	double load = rules_load(&advice->pool, advice->tau);
	char text[TIME_TEXT];

	switch (rule->kind) {
	case RULE_LOAD:
		printf("  rule load: the timeout with which the legs work least, and none that saves less than 2 %%\n");
		break;
	case RULE_PERCENTILE:
		printf("  rule percentile: the latency that %g %% of the copies do not exceed\n",
		       rule->percentile);
		break;
	case RULE_KNEE:
		printf("  rule knee: where the distribution of the latencies bends, between its least and p97\n");
		break;
	case RULE_QUANTILE:
		printf("  rule quantile: the least p%g of the reads that %g %% of extra copies can buy\n",
		       rule->percentile, 100 * advice->setting.budget);
		break;
	}
	if (isinf(advice->tau))
		printf("  no timeout: a copy that has run for long ends as soon as a new one would\n");
	else
		printf("  timeout %s: the legs do %.1f %% of the work that they do without one\n",
		       us_text(advice->tau, text), 100 * load);
	if (load > 1)
		printf("  That is more work. The rule load has none of this; see what it says.\n");
}

static void print_advice(const struct rule *rule, const struct advice *advice)
{
	char text[TIME_TEXT];

	printf("%s", advice->name);
	if (advice->target)
		printf(", target %d", advice->target);
	printf(": %" PRIu64 " read copies", advice->samples);
	if (advice->legs)
		printf(", %d %s with enough of them, each counting alike", advice->legs,
		       advice->legs == 1 ? "leg" : "legs");
	printf("\n");
	if (advice->legs) {
		explain_rule(rule, advice);
		printf("  %-20s %9s", "expected", "hedged");
		for (size_t i = 0; i < NR_QUANTILES; i++)
			printf(" %8s", quantiles[i].name);
		printf("\n");
		print_quantiles(advice, "without a timeout", INFINITY);
		if (!isinf(advice->setting.tau)) {
			char *now = xprintf("now, %s", us_text(advice->setting.tau, text));

			print_quantiles(advice, now, advice->setting.tau);
			free(now);
		}
		if (!isinf(advice->tau)) {
			char *then = xprintf("with %s", us_text(advice->tau, text));

			print_quantiles(advice, then, advice->tau);
			free(then);
		}
	}
	if (advice->why_not)
		printf("  not set: %s\n", advice->why_not);
}

static struct json_object *quantiles_json(const struct advice *advice, double tau)
{
	struct json_object *object = json_object_new_object();
	double budget = advice->setting.budget;

	json_add_real(object, "tau_us", tau, 0);
	json_add_real(object, "hedged", rules_hedged(&advice->pool, tau, budget), 6);
	json_add_real(object, "load", rules_load(&advice->pool, tau), 6);
	for (size_t i = 0; i < NR_QUANTILES; i++)
		json_add_real(object, quantiles[i].key,
			      known(advice, quantiles[i].p) ?
				      rules_quantile(&advice->pool, tau, budget, quantiles[i].p) :
				      INFINITY,
			      3);
	return object;
}

static struct json_object *advice_json(const struct rule *rule, const struct advice *advice)
{
	struct json_object *object = json_object_new_object();

	json_add_text(object, "name", advice->name);
	json_add_u64(object, "target", advice->target);
	json_add_text(object, "rule", rule_name(rule));
	json_add_u64(object, "samples", advice->samples);
	json_add_u64(object, "legs", advice->legs);
	json_add_value(object, "timeout_us", advice->setting.timeout);
	json_object_object_add(object, "set", json_object_new_boolean(advice->act));
	json_add_text(object, "why_not", advice->why_not);
	json_object_object_add(object, "without",
			       advice->legs ? quantiles_json(advice, INFINITY) : NULL);
	json_object_object_add(object, "now",
			       advice->legs ? quantiles_json(advice, advice->setting.tau) : NULL);
	json_object_object_add(object, "with",
			       advice->legs ? quantiles_json(advice, advice->tau) : NULL);
	return object;
}

/* --- one reading ------------------------------------------------------------------------ */

static uint64_t count_samples(const struct leg_set *set, int target)
{
	uint64_t sum = 0;

	for (int i = 0; i < set->count; i++)
		if (set->legs[i].target == target)
			sum += set->legs[i].sum.total;
	return sum;
}

/* What the rule makes of a reading; without enough samples there is no law and no timeout. */
static void advise(const struct rule *rule, const struct leg_set *set, struct advice *advice)
{
	advice->samples = count_samples(set, advice->target);
	advice->tau = INFINITY;
	if (advice->samples >= RULE_MIN_SAMPLES)
		advice->legs = rules_pool(set, advice->target, &advice->pool);
	if (advice->legs)
		advice->tau = rules_tau(rule, &advice->pool, advice->setting.budget);
	else
		advice->why_not = "too few copies to tell: at least 500, and 100 of a leg";
}

static int read_setting(const struct volume *volume, int target, struct setting *setting)
{
	char *dir = sysfs_target_dir(volume, target);
	struct kv_list attrs;
	uint64_t tau, pct;
	int r = -1;

	if (!sysfs_read_tree(dir, &attrs) && kv_get(&attrs, "timeout_us") &&
	    kv_number(&attrs, "tau_us", &tau) && kv_number(&attrs, "budget_pct", &pct)) {
		setting->timeout = xstrdup(kv_get(&attrs, "timeout_us"));
		setting->tau = tau ? (double)tau : INFINITY;
		setting->budget = (double)pct / 100;
		r = 0;
	} else {
		fail("%s: its attributes can not be read; is it suspended?", volume->name);
	}
	kv_free(&attrs);
	free(dir);
	return r;
}

static int set_timeout(const struct volume *volume, const struct advice *advice)
{
	char *dir = sysfs_target_dir(volume, advice->target);
	struct assignment a = { .leg = -1, .name = "timeout_us" };
	int r;

	a.value = isinf(advice->tau) ? xstrdup("off") : xprintf("%.0f", advice->tau);
	r = sysfs_write(dir, &a);
	if (r)
		fail("%s: the kernel refused timeout_us=%s: %s", volume->name, a.value,
		     strerror(errno));
	assignment_free(&a);
	free(dir);
	return r;
}

static bool same_timeout(const struct advice *advice)
{
	char *wanted = isinf(advice->tau) ? xstrdup("off") : xprintf("%.0f", advice->tau);
	bool same = advice->setting.timeout && !strcmp(wanted, advice->setting.timeout);

	free(wanted);
	return same;
}

/* votes is NULL for a single run. */
static void decide(const struct request *request, struct rule_votes *votes, struct advice *advice)
{
	if (advice->why_not)
		return;
	if (votes && !rules_vote(votes, advice->tau, advice->setting.tau))
		advice->why_not = "the timeout in force is near enough, or it was not so for three readings in a row";
	else if (same_timeout(advice))
		advice->why_not = "it is so already";
	else if (request->dry_run)
		advice->why_not = "this is a dry run";
	advice->act = !advice->why_not;
}

static int finish_target(const struct request *request, const struct volume *volume,
			 struct advice *advice, struct json_object *array)
{
	char text[TIME_TEXT];
	int r = advice->act ? set_timeout(volume, advice) : 0;

	if (r) {
		advice->act = false;
		advice->why_not = "the kernel refused it";
	}
	if (array)
		json_object_array_add(array, advice_json(&request->rule, advice));
	else
		print_advice(&request->rule, advice);
	if (advice->act && !array)
		printf("  set: timeout_us %s -> %s\n", advice->setting.timeout,
		       us_text(advice->tau, text));
	pool_free(&advice->pool);
	free(advice->setting.timeout);
	return r;
}

/* --- readings of a volume ------------------------------------------------------------------- */

static uint64_t seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

static int read_legs(const char *name, int target, struct leg_set *set)
{
	struct volume volume;
	int r;

	*set = (struct leg_set){ 0 };
	if (dm_volume_read(name, &volume))
		return -1;
	r = legs_read(&volume, target, NULL, set);
	volume_free(&volume);
	return r;
}

/* Waits, for a terminal with a count of the seconds; ends early when told to stop. */
static void wait_seconds(const struct request *request)
{
	uint64_t began = seconds_now(), passed;
	bool show = isatty(STDERR_FILENO) && !request->watch;

	while (!stopped && (passed = seconds_now() - began) < request->seconds) {
		if (show)
			fprintf(stderr, "\rreading %" PRIu64 " of %" PRIu64 " s", passed,
				request->seconds);
		nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
	}
	if (show)
		fprintf(stderr, "\r%40s\r", "");
}

/* What the readings of a watch have wanted so far, of each target. */
struct ballot {
	int count;
	struct rule_votes *votes;
};

/* A reload may give a volume more targets. */
static void ballot_fit(struct ballot *ballot, int count)
{
	if (!ballot || ballot->count >= count)
		return;
	ballot->votes = xrealloc(ballot->votes, count * sizeof(*ballot->votes));
	memset(ballot->votes + ballot->count, 0,
	       (count - ballot->count) * sizeof(*ballot->votes));
	ballot->count = count;
}

/* All targets of a reading: now is what was counted in it. */
static int use_reading(const struct request *request, const struct leg_set *now,
		       struct ballot *ballot)
{
	struct json_object *array = request->json ? json_object_new_array() : NULL;
	struct volume volume;
	int r = 0;

	if (dm_volume_read(request->args->operands[0], &volume))
		return -1;
	ballot_fit(ballot, volume.nr_targets);
	for (int i = 0; i < volume.nr_targets && !r; i++) {
		struct advice advice = { .name = volume.name, .target = i };

		if (request->target >= 0 && request->target != i)
			continue;
		r = read_setting(&volume, i, &advice.setting);
		if (r)
			break;
		advise(&request->rule, now, &advice);
		decide(request, ballot ? &ballot->votes[i] : NULL, &advice);
		r = finish_target(request, &volume, &advice, array);
	}
	if (array)
		json_print(array);
	fflush(stdout);
	volume_free(&volume);
	return r;
}

static int tune_once(const struct request *request)
{
	struct leg_set before = { 0 }, now = { 0 };
	const char *name = request->args->operands[0];
	int r = -1;

	if (request->seconds && read_legs(name, request->target, &before))
		goto out;
	if (request->seconds)
		wait_seconds(request);
	if (stopped || read_legs(name, request->target, &now))
		goto out;
	if (request->seconds && !legs_since(&now, &before)) {
		fail("%s: its counters were reset, or its legs changed, meanwhile; try again", name);
		goto out;
	}
	r = use_reading(request, &now, NULL);
out:
	legs_free(&before);
	legs_free(&now);
	return r;
}

static bool enough(const struct leg_set *set)
{
	uint64_t sum = 0;

	for (int i = 0; i < set->count; i++)
		sum += set->legs[i].sum.total;
	return sum >= RULE_MIN_SAMPLES;
}

/* One turn of --watch: before becomes what the next reading counts from. */
static int watch_turn(const struct request *request, struct leg_set *before,
		      struct ballot *ballot)
{
	struct leg_set now, counted;
	const char *name = request->args->operands[0];
	int r = 0;

	if (read_legs(name, request->target, &counted)) {
		legs_free(&counted);
		return -1;
	}
	if (read_legs(name, request->target, &now)) {
		legs_free(&counted);
		legs_free(&now);
		return -1;
	}
	if (!legs_since(&counted, before)) {
		/* They began anew: so does the reading. */
	} else if (!enough(&counted)) {
		legs_free(&counted);
		legs_free(&now);
		return 0;
	} else {
		r = use_reading(request, &counted, ballot);
	}
	legs_free(&counted);
	legs_free(before);
	*before = now;
	return r;
}

/* A volume that is suspended for a while is waited for; one that is gone ends the watch. */
static bool is_suspended(const char *name)
{
	struct volume volume;
	bool suspended;

	if (dm_volume_read(name, &volume))
		return false;
	suspended = volume.suspended;
	volume_free(&volume);
	return suspended;
}

static int tune_watch(const struct request *request)
{
	struct ballot ballot = { 0 };
	struct leg_set before;
	const char *name = request->args->operands[0];
	int r;

	r = read_legs(name, request->target, &before);
	while (!r && !stopped) {
		wait_seconds(request);
		if (stopped || is_suspended(name))
			continue;
		r = watch_turn(request, &before, &ballot);
	}
	legs_free(&before);
	free(ballot.votes);
	return r;
}

/* Saved histograms: nothing is in force, and nothing can be set. */
static int tune_files(const struct request *request)
{
	struct json_object *array = request->json ? json_object_new_array() : NULL;
	struct advice advice = {
		.name = "saved histograms",
		.setting = { .tau = INFINITY, .budget = request->budget },
	};
	struct leg_set set = { 0 };
	int r = 0;

	for (int i = 0; i < request->args->nr_options && !r; i++)
		if (!strcmp(request->args->options[i].name, "file"))
			r = legs_read_file(request->args->options[i].value, &set);
	if (!r) {
		advise(&request->rule, &set, &advice);
		decide(request, NULL, &advice);
		r = finish_target(request, NULL, &advice, array);
	}
	if (array && !r)
		json_print(array);
	else
		json_object_put(array);
	legs_free(&set);
	return r;
}

/* --- the command ---------------------------------------------------------------------------------- */

static int parse_numbers(struct request *request)
{
	const char *seconds = args_get(request->args, "seconds");
	const char *budget = args_get(request->args, "budget");
	uint64_t pct = 10;

	request->seconds = request->watch ? INTERVAL : SECONDS;
	if (seconds && (parse_number(seconds, &request->seconds) ||
			request->seconds > MAX_SECONDS || (request->watch && !request->seconds))) {
		fail("--seconds %s: expected a number up to %d%s", seconds, MAX_SECONDS,
		     request->watch ? ", and not 0 with --watch" :
				      "; 0 takes all that was counted so far");
		return -1;
	}
	if (budget && (parse_number(budget, &pct) || pct > 700)) {
		fail("--budget %s: expected per cent of the reads, 0 to 700", budget);
		return -1;
	}
	request->budget = (double)pct / 100;
	return 0;
}

static int parse(struct request *request)
{
	const struct args *args = request->args;
	const char *rule = args_get(args, "rule");
	bool file = args_has(args, "file");

	request->watch = args_has(args, "watch");
	request->json = args_has(args, "json");
	request->dry_run = args_has(args, "dry-run") || file;
	if (file == (args->nr_operands > 0) || (file && request->watch)) {
		fail("tune: expected the NAME of a volume%s",
		     file ? ", or --file FILE, which can not be watched" : " or --file FILE");
		return -1;
	}
	if (args_has(args, "budget") && !file) {
		fail("tune: --budget is for --file; a volume has its own: hedgectl set NAME budget_pct=N");
		return -1;
	}
	if (rule_parse(rule ? rule : "load", &request->rule))
		return -1;
	return parse_numbers(request) || args_target(args, &request->target) ? -1 : 0;
}

static enum exit_status run(const struct args *args)
{
	struct request request = { .args = args };
	struct sigaction action = { .sa_handler = stop };
	int r;

	if (parse(&request))
		return USAGE;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	if (!args->nr_operands)
		r = tune_files(&request);
	else
		r = request.watch ? tune_watch(&request) : tune_once(&request);
	return r ? FAILED : DONE;
}

static const struct option_def options[] = {
	{ "rule", "RULE", "load, percentile[:P], knee or quantile[:P] (load)" },
	{ "seconds", "N", "how long to read (30; with --watch each reading, 60)" },
	{ "watch", NULL, "go on reading, and follow only what lasts" },
	{ "dry-run", NULL, "say it and set nothing" },
	{ "target", "N", "only the hedge target N of the table (all)" },
	{ "file", "FILE", "a saved histogram of a leg instead; may be repeated" },
	{ "budget", "PCT", "with --file: extra copies, per cent of the reads (10)" },
	{ NULL, NULL, NULL },
};

const struct command tune_command = {
	.name = "tune",
	.synopsis = "NAME | --file FILE... [OPTION]...",
	.summary = "Chooses and sets the timeout of a volume from what its reads take",
	.details =
		"It reads the histograms for a while, says what it saw, which timeout the rule chooses and what\n"
		"to expect of it, and sets it. Rules:\n"
		"  load          the timeout with which the legs work least; the module's rule for \"auto\"\n"
		"  percentile:P  a percentile of the latencies (95)\n"
		"  knee          where their distribution bends\n"
		"  quantile:P    the least P-th percentile of reads that the budget can buy (99)\n"
		"With fewer than 500 copies nothing is set. With --watch a timeout is set when three readings in\n"
		"a row want one that is more than 25 % away from that in force, on the same side.",
	.options = options,
	.example = "hedgectl tune vol0 --rule quantile:99.9 --dry-run",
	.max_operands = 1,
	.run = run,
};
