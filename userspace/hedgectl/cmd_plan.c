// SPDX-License-Identifier: GPL-2.0
/*
 * hedgectl plan: what each policy would give on a number of legs at a load, before anything is made.
 *
 * The law of the read copies comes from a volume, saved histograms, fio or a formula. All copies are
 * taken as drawn from it independently, all legs as alike. How many reads a leg serves at a time
 * decides as much as the law, and is seldom known: without --slots both worlds are shown, legs that
 * serve one and legs that serve many.
 */
#include <json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plan.h"
#include "rules.h"
#include "timeout.h"

#define DEFAULT_LOAD 0.3
#define DEFAULT_JOBS 200000
#define MANY 16
#define MAX_SLOTS 4096
#define MAX_ROWS 32

struct request {
	const struct args *args;
	struct law law;
	char *source;		/* for people */
	char *name;		/* of the volume, or what stands for it */
	int legs;
	double load;
	uint64_t slots, jobs;	/* slots 0: both worlds */
};

/* --- the law ------------------------------------------------------------------------ */

/* The size class with the most copies: a size is no luck, so classes are not mixed. */
static int law_of_legs(const struct leg_set *set, const char *what, struct request *request)
{
	struct pool pool;
	int best = 0;

	if (!set->count || !rules_pool(set, set->legs[0].target, &pool)) {
		fail("%s: too few copies to plan with: at least %d of a leg in a size class", what,
		     RULE_LEG_SAMPLES);
		return -1;
	}
	for (int i = 1; i < pool.nr; i++)
		if (pool.weight[i] > pool.weight[best])
			best = i;
	request->law = pool.law[best];
	pool.law[best] = (struct law){ .kind = LAW_DET };
	request->source = xprintf("%s, the size class with the most of its copies (%.0f %%)", what,
				  100 * pool.weight[best]);
	pool_free(&pool);
	return 0;
}

static int law_of_volume(const char *name, struct request *request)
{
	struct leg_set set = { 0 };
	struct volume volume;
	int r;

	if (dm_volume_read(name, &volume))
		return -1;
	r = legs_read(&volume, 0, NULL, &set);
	if (!r)
		r = law_of_legs(&set, name, request);
	if (!r && !args_has(request->args, "legs"))
		request->legs = set.count;
	free(request->name);
	request->name = xstrdup(volume.name);
	legs_free(&set);
	volume_free(&volume);
	return r;
}

static int law_of_files(struct request *request)
{
	struct leg_set set = { 0 };
	int r = 0;

	for (int i = 0; i < request->args->nr_options && !r; i++)
		if (!strcmp(request->args->options[i].name, "hist"))
			r = legs_read_file(request->args->options[i].value, &set);
	if (!r)
		r = law_of_legs(&set, "saved histograms", request);
	legs_free(&set);
	return r;
}

static int law_of_fio(const char *path, struct request *request)
{
	char *text = sysfs_read_file(path, NULL);
	int r = -1;

	if (!text)
		fail("%s: can not be read", path);
	else if (fio_parse(text, &request->law))
		fail("%s: it has no reads; expected a log of fio --write_hist_log, or the output of fio --output-format=json+",
		     path);
	else
		r = 0;
	if (!r)
		request->source = xprintf("%s", path);
	free(text);
	return r;
}

static int law_of_text(const char *text, struct request *request)
{
	char error[600];

	if (law_parse(&request->law, text, error, sizeof(error))) {
		fail("--law: %s", error);
		return -1;
	}
	request->source = xprintf("%s, in microseconds", text);
	return 0;
}

static int get_law(struct request *request)
{
	const struct args *args = request->args;
	int r;

	if (args_has(args, "device"))
		r = law_of_volume(args_get(args, "device"), request);
	else if (args_has(args, "hist"))
		r = law_of_files(request);
	else if (args_has(args, "fio"))
		r = law_of_fio(args_get(args, "fio"), request);
	else
		r = law_of_text(args_get(args, "law"), request);
	if (!r && !(isfinite(request->law.mean) && request->law.mean > 0)) {
		fail("plan: the mean of the law must be finite and above 0");
		r = -1;
	}
	return r;
}

/* --- what is said ----------------------------------------------------------------------- */

static const char *us_text(double us, char *buffer)
{
	if (isinf(us))
		return "-";
	return format_time((uint64_t)llround(us * 1000), buffer, TIME_TEXT);
}

static void explain_law(const struct request *request)
{
	static const struct law one = { .kind = LAW_DET, .a = 1, .mean = 1, .second = 1 };
	char mean[TIME_TEXT], p50[TIME_TEXT], p99[TIME_TEXT], p999[TIME_TEXT], tau[TIME_TEXT];
	double least, best = timeout_best(&request->law, &one, &least);

	printf("latencies of %s:\n  mean %s, p50 %s, p99 %s, p99.9 %s\n", request->source,
	       us_text(request->law.mean, mean), us_text(law_quantile(&request->law, 0.5), p50),
	       us_text(law_quantile(&request->law, 0.99), p99),
	       us_text(law_quantile(&request->law, 0.999), p999));
	if (isinf(best) || least > 0.98)
		printf("The law does not favour redundancy: no timeout saves the legs work, and extra copies\n"
		       "pay only where legs are idle.\n");
	else
		printf("The law favours redundancy: with a timeout of %s the legs do %.1f %% of the work.\n",
		       us_text(best, tau), 100 * least);
}

static void print_row(const struct plan_row *row, bool best)
{
	char mean[TIME_TEXT], p50[TIME_TEXT], p99[TIME_TEXT], p999[TIME_TEXT], tau[TIME_TEXT];

	printf("%c %-12s", best ? '*' : ' ', row->policy);
	if (row->stable)
		printf(" %8s %8s %8s %8s %8s %7.1f %%", us_text(row->tau, tau),
		       us_text(row->mean, mean), us_text(row->p50, p50), us_text(row->p99, p99),
		       us_text(row->p999, p999), 100 * row->extra);
	else
		printf(" %8s %s", us_text(row->tau, tau), "not stable: reads pile up                 ");
	printf("  %4.2f\n", row->max_load);
}

static char *command_of(const struct request *request, const struct plan_row *row,
			unsigned int slots)
{
	return xprintf("hedgectl set %s policy=%s queue_depth=%u%s", request->name, row->policy,
		       slots, isinf(row->tau) ? "" : " tau=auto");
}

static void print_rows(const struct request *request, unsigned int slots,
		       const struct plan_row *rows, size_t nr)
{
	int best = plan_recommend(rows, nr, request->load);
	char *command;

	printf("\n%d legs that serve %u read%s at a time, load %.2f\n", request->legs, slots,
	       slots == 1 ? "" : "s", request->load);
	printf("  %-12s %8s %8s %8s %8s %8s %9s  %s\n", "POLICY", "TAU", "MEAN", "P50", "P99",
	       "P99.9", "EXTRA", "LOAD<");
	for (size_t i = 0; i < nr; i++)
		print_row(&rows[i], (int)i == best);
	if (best < 0) {
		printf("No policy is stable at this load: give it more legs.\n");
		return;
	}
	command = command_of(request, &rows[best], slots);
	printf("* %s\n", command);
	free(command);
}

static struct json_object *rows_json(const struct request *request, unsigned int slots,
				     const struct plan_row *rows, size_t nr)
{
	struct json_object *object = json_object_new_object(), *array = json_object_new_array();
	int best = plan_recommend(rows, nr, request->load);
	char *command = best < 0 ? NULL : command_of(request, &rows[best], slots);

	json_add_u64(object, "slots", slots);
	for (size_t i = 0; i < nr; i++) {
		const struct plan_row *row = &rows[i];
		struct json_object *o = json_object_new_object();

		json_add_text(o, "policy", row->policy);
		json_add_real(o, "tau_us", row->tau, 3);
		json_object_object_add(o, "stable", json_object_new_boolean(row->stable));
		json_add_real(o, "mean_us", row->stable ? row->mean : INFINITY, 3);
		json_add_real(o, "p50_us", row->stable ? row->p50 : INFINITY, 3);
		json_add_real(o, "p99_us", row->stable ? row->p99 : INFINITY, 3);
		json_add_real(o, "p99_9_us", row->stable ? row->p999 : INFINITY, 3);
		json_add_real(o, "extra", row->stable ? row->extra : INFINITY, 5);
		json_add_real(o, "max_load", row->max_load, 3);
		json_object_array_add(array, o);
	}
	json_object_object_add(object, "policies", array);
	json_add_text(object, "recommended", best < 0 ? NULL : rows[best].policy);
	json_add_text(object, "command", command);
	free(command);
	return object;
}

static void simulate(const struct request *request, unsigned int slots, struct json_object *array)
{
	struct plan_config config = {
		.law = &request->law, .legs = request->legs, .slots = slots,
		.load = request->load, .jobs = request->jobs,
	};
	struct plan_row rows[MAX_ROWS];
	size_t nr = plan_policies();

	for (size_t i = 0; i < nr; i++) {
		if (isatty(STDERR_FILENO))
			fprintf(stderr, "\rsimulating %zu of %zu", i + 1, nr);
		plan_simulate(&config, i, rows);
	}
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r%40s\r", "");
	if (array)
		json_object_array_add(array, rows_json(request, slots, rows, nr));
	else
		print_rows(request, slots, rows, nr);
}

static void plan(const struct request *request)
{
	static const struct law one = { .kind = LAW_DET, .a = 1, .mean = 1, .second = 1 };
	struct json_object *object = NULL, *array = NULL;
	double least, tau;

	if (args_has(request->args, "json")) {
		object = json_object_new_object();
		array = json_object_new_array();
		tau = timeout_best(&request->law, &one, &least);
		json_add_text(object, "source", request->source);
		json_add_u64(object, "legs", request->legs);
		json_add_real(object, "load", request->load, 3);
		json_add_real(object, "mean_us", request->law.mean, 3);
		json_add_real(object, "best_tau_us", tau, 3);
		json_add_real(object, "best_work", least, 6);
		json_object_object_add(object, "favours_redundancy",
				       json_object_new_boolean(least <= 0.98));
		json_object_object_add(object, "plans", array);
	} else {
		explain_law(request);
	}
	if (request->slots) {
		simulate(request, (unsigned int)request->slots, array);
	} else {
		simulate(request, 1, array);
		simulate(request, MANY, array);
	}
	if (object)
		json_print(object);
	else if (!request->slots)
		printf("\nWhich of the two: --slots, the number of reads in flight at which the latency of a leg\nbegins to rise.\n");
}

/* --- the command ---------------------------------------------------------------------------- */

static int parse_numbers(struct request *request)
{
	const char *legs = args_get(request->args, "legs"), *load = args_get(request->args, "load");
	const char *slots = args_get(request->args, "slots"), *jobs = args_get(request->args, "jobs");
	uint64_t n = 2;
	char *end = NULL;

	if (legs && (parse_number(legs, &n) || n < MIN_LEGS || n > MAX_LEGS)) {
		fail("--legs %s: expected %d to %d", legs, MIN_LEGS, MAX_LEGS);
		return -1;
	}
	request->legs = (int)n;
	request->load = load ? strtod(load, &end) : DEFAULT_LOAD;
	if (load && (end == load || *end || !(request->load >= 0.01 && request->load <= 1))) {
		fail("--load %s: expected 0.01 to 1, the share of their time that legs would serve reads without hedging",
		     load);
		return -1;
	}
	if (slots && (parse_number(slots, &request->slots) || !request->slots ||
		      request->slots > MAX_SLOTS)) {
		fail("--slots %s: expected 1 to %d", slots, MAX_SLOTS);
		return -1;
	}
	request->jobs = DEFAULT_JOBS;
	if (jobs && (parse_number(jobs, &request->jobs) || request->jobs < 10000 ||
		     request->jobs > 100000000)) {
		fail("--jobs %s: expected 10000 to 100000000", jobs);
		return -1;
	}
	return 0;
}

static int parse(struct request *request)
{
	int sources = args_has(request->args, "device") + args_has(request->args, "hist") +
		      args_has(request->args, "fio") + args_has(request->args, "law");

	if (sources != 1) {
		fail("plan: expected one of --device NAME, --hist FILE, --fio FILE and --law LAW");
		return -1;
	}
	return parse_numbers(request);
}

static enum exit_status run(const struct args *args)
{
	struct request request = { .args = args };
	enum exit_status status = FAILED;

	if (parse(&request))
		return USAGE;
	request.name = xstrdup("NAME");
	if (!get_law(&request)) {
		plan(&request);
		status = DONE;
	}
	law_free(&request.law);
	free(request.source);
	free(request.name);
	return status;
}

static const struct option_def options[] = {
	{ "device", "NAME", "the latencies that the legs of a volume have had" },
	{ "hist", "FILE", "a saved histogram of a leg; may be repeated" },
	{ "fio", "FILE", "a log of fio --write_hist_log, or its json+ output" },
	{ "law", "LAW", "a law, as in hedgesim(1), in microseconds" },
	{ "legs", "N", "2 to 8 (2, or those of the volume)" },
	{ "load", "RHO", "how busy reads keep the legs without hedging, to 1 (0.3)" },
	{ "slots", "C", "reads that a leg serves at a time (1, then 16)" },
	{ "jobs", "J", "how many reads to simulate for each policy (200000)" },
	{ NULL, NULL, NULL },
};

const struct command plan_command = {
	.name = "plan",
	.synopsis = "--device NAME | --hist FILE... | --fio FILE | --law LAW [OPTION]...",
	.summary = "Simulates what each policy would give on legs of such latencies",
	.details =
		"For each policy: the timeout, mean and percentiles of the reads, extra copies, and the largest\n"
		"load that is stable. Legs are taken as alike and independent, reads as of one size and class. It says whether the law favours\n"
		"redundancy at all, and recommends, of the policies whose p99.9 is at most twice the least, that\n"
		"with the fewest extra copies, and if these are alike with the least mean.",
	.options = options,
	.example = "hedgectl plan --law bimodal:100,20000,0.99 --legs 4 --load 0.4 --slots 16",
	.max_operands = 0,
	.run = run,
};
