// SPDX-License-Identifier: GPL-2.0
/*
 * hedgectl hist: how long read copies take, from the histograms of the legs: percentiles of each
 * leg and size class, and a picture with the legs side by side and the timeout marked.
 */
#include <inttypes.h>
#include <json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hedgectl.h"

static const struct {
	const char *name, *key;
	double percentile;
} percentiles[] = {
	{ "p50", "p50_ns", 50 },  { "p90", "p90_ns", 90 },	 { "p95", "p95_ns", 95 },
	{ "p99", "p99_ns", 99 },  { "p99.9", "p99_9_ns", 99.9 }, { "p99.99", "p99_99_ns", 99.99 },
	{ "max", "max_ns", 100 },
};

#define NR_PERCENTILES (sizeof(percentiles) / sizeof(percentiles[0]))

struct request {
	const struct args *args;
	const char *wanted;	/* a leg, or NULL */
	int target;
	uint64_t tau_us;	/* to be marked; 0: none */
	struct leg_set set;
};

/* --- text ---------------------------------------------------------------------- */

static void print_percentiles(const char *leg, const struct histogram *histogram, const char *name)
{
	char text[TIME_TEXT];

	printf("%-22.22s %-20s %10" PRIu64, leg, name, histogram->total);
	for (size_t i = 0; i < NR_PERCENTILES; i++) {
		uint64_t ns = histogram_percentile(histogram, percentiles[i].percentile);

		printf(" %8s", histogram->total ? format_time(ns, text, sizeof(text)) : "-");
	}
	printf("\n");
}

static void print_text(const struct request *request)
{
	const struct leg_set *set = &request->set;
	struct histogram sum = { 0 };

	printf("%-22s %-20s %10s", "LEG", "SIZE", "READS");
	for (size_t i = 0; i < NR_PERCENTILES; i++)
		printf(" %8s", percentiles[i].name);
	printf("\n");
	for (int i = 0; i < set->count; i++) {
		const struct leg_data *leg = &set->legs[i];

		for (int j = 0; j < leg->classes.count; j++)
			print_percentiles(leg->label, &leg->classes.classes[j],
					  leg->classes.classes[j].name);
		histogram_merge(&sum, &leg->sum);
	}
	print_percentiles("all", &sum, "all");
	plot_text(stdout, set, request->tau_us, plot_width());
	histogram_free(&sum);
}

/* --- JSON and CSV ---------------------------------------------------------------- */

static struct json_object *class_json(const struct histogram *histogram)
{
	struct json_object *object = json_object_new_object(), *buckets = json_object_new_array();

	json_add_text(object, "size", histogram->name);
	json_add_u64(object, "reads", histogram->total);
	for (size_t i = 0; i < NR_PERCENTILES; i++) {
		uint64_t ns = histogram_percentile(histogram, percentiles[i].percentile);

		json_object_object_add(object, percentiles[i].key,
				       histogram->total ? json_object_new_uint64(ns) : NULL);
	}
	for (int i = 0; i < histogram->count; i++) {
		struct json_object *bucket;

		if (!histogram->buckets[i].count)
			continue;
		bucket = json_object_new_object();
		json_add_u64(bucket, "from_ns", histogram->buckets[i].from);
		json_add_u64(bucket, "to_ns", histogram->buckets[i].to);
		json_add_u64(bucket, "count", histogram->buckets[i].count);
		json_object_array_add(buckets, bucket);
	}
	json_object_object_add(object, "buckets", buckets);
	return object;
}

static void print_json(const struct request *request)
{
	struct json_object *array = json_object_new_array();

	for (int i = 0; i < request->set.count; i++) {
		const struct leg_data *leg = &request->set.legs[i];
		struct json_object *object = json_object_new_object();
		struct json_object *classes = json_object_new_array();

		json_add_u64(object, "target", leg->target);
		json_add_u64(object, "leg", leg->leg);
		json_add_text(object, "device", leg->device);
		json_add_u64(object, "tau_us", request->tau_us);
		for (int j = 0; j < leg->classes.count; j++)
			json_object_array_add(classes, class_json(&leg->classes.classes[j]));
		json_object_object_add(object, "classes", classes);
		json_object_array_add(array, object);
	}
	json_print(array);
}

static void print_csv(const struct request *request)
{
	printf("target,leg,device,size,from_ns,to_ns,count\n");
	for (int i = 0; i < request->set.count; i++) {
		const struct leg_data *leg = &request->set.legs[i];

		for (int j = 0; j < leg->classes.count; j++) {
			const struct histogram *class = &leg->classes.classes[j];

			for (int k = 0; k < class->count; k++)
				printf("%d,%d,\"%s\",\"%s\",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n",
				       leg->target, leg->leg, leg->device, class->name,
				       class->buckets[k].from, class->buckets[k].to,
				       class->buckets[k].count);
		}
	}
}

/* --- the command ------------------------------------------------------------------- */

static int draw(const struct request *request)
{
	const char *svg = args_get(request->args, "svg"), *png = args_get(request->args, "png");
	char *title = xprintf("read copies of %s", request->args->nr_operands ?
						       request->args->operands[0] :
						       "saved histograms");
	int r = 0;

	if (svg)
		r = plot_file(&request->set, request->tau_us, title, "svg size 900,500 dynamic",
			      svg);
	if (png && !r)
		r = plot_file(&request->set, request->tau_us, title, "pngcairo size 900,500", png);
	free(title);
	return r;
}

static int print_all(const struct request *request)
{
	if (args_has(request->args, "svg") || args_has(request->args, "png"))
		return draw(request);
	if (args_has(request->args, "json"))
		print_json(request);
	else if (args_has(request->args, "csv"))
		print_csv(request);
	else
		print_text(request);
	return 0;
}

static int read_volume(struct request *request)
{
	struct volume volume;
	int r;

	if (dm_volume_read(request->args->operands[0], &volume))
		return -1;
	r = legs_read(&volume, request->target, request->wanted, &request->set);
	volume_free(&volume);
	return r;
}

static int read_files(struct request *request)
{
	for (int i = 0; i < request->args->nr_options; i++)
		if (!strcmp(request->args->options[i].name, "file") &&
		    legs_read_file(request->args->options[i].value, &request->set))
			return -1;
	return 0;
}

/* The timeouts of several targets differ: then none is marked. */
static uint64_t common_tau(const struct leg_set *set)
{
	for (int i = 1; i < set->count; i++)
		if (set->legs[i].tau_us != set->legs[0].tau_us)
			return 0;
	return set->count ? set->legs[0].tau_us : 0;
}

static int parse(struct request *request)
{
	const char *tau = args_get(request->args, "tau");
	bool file = args_has(request->args, "file");

	if (file == (request->args->nr_operands > 0)) {
		fail("hist: expected the NAME of a volume%s", file ? ", or --file, not both" :
								     " or --file FILE");
		return -1;
	}
	if (request->args->nr_operands > 1)
		request->wanted = request->args->operands[1];
	if (tau && parse_time_us(tau, &request->tau_us)) {
		fail("--tau %s: expected a time, such as 2ms", tau);
		return -1;
	}
	return args_target(request->args, &request->target);
}

static enum exit_status run(const struct args *args)
{
	struct request request = { .args = args };
	enum exit_status status = USAGE;

	if (!parse(&request)) {
		status = FAILED;
		if (!(args->nr_operands ? read_volume(&request) : read_files(&request))) {
			if (!args_has(args, "tau"))
				request.tau_us = common_tau(&request.set);
			status = print_all(&request) ? FAILED : DONE;
		}
	}
	legs_free(&request.set);
	return status;
}

static const struct option_def options[] = {
	{ "target", "N", "only the hedge target N of the table (all)" },
	{ "file", "FILE", "a saved histogram of a leg instead; may be repeated" },
	{ "tau", "TIME", "mark this timeout, not the one in force" },
	{ "svg", "FILE", "draw an SVG (gnuplot)" },
	{ "png", "FILE", "draw a PNG (gnuplot)" },
	{ "csv", NULL, "print the buckets as CSV" },
	{ NULL, NULL, NULL },
};

const struct command hist_command = {
	.name = "hist",
	.synopsis = "NAME [LEG] | --file FILE... [OPTION]...",
	.summary = "Shows how long the read copies of a volume, or of one leg, took",
	.details =
		"LEG is a number, a path or major:minor. Percentiles are upper bounds, at most 12.5 % too high.\n"
		"The bars are logarithmic. FILE has what /sys/block/dm-N/hedge0/legs/I/histogram had.",
	.options = options,
	.example = "hedgectl hist vol0 1",
	.max_operands = 2,
	.run = run,
};
