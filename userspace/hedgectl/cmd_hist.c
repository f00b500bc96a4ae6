// SPDX-License-Identifier: GPL-2.0
/*
 * hedgectl hist: how long read copies take, from the histograms of the legs: percentiles of each
 * leg and size class, and for people a bar chart of all that was asked for. The bars are
 * logarithmic, for the tail that matters is a thousandth of the height of the rest.
 */
#include <inttypes.h>
#include <json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

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

/* What all targets and legs of one call add to. */
struct output {
	struct json_object *array; /* NULL: text */
	struct histogram sum;
};

static int read_leg(const struct volume *volume, int target, int leg, struct histograms *histograms)
{
	char *dir = sysfs_target_dir(volume, target),
	     *path = xprintf("%s/legs/%d/histogram", dir, leg);
	char *text = sysfs_read_file(path, NULL);
	int r = -1;

	if (text)
		r = histograms_parse(text, histograms);
	else if (volume->suspended)
		fail("%s: it is suspended, and has histograms only while it runs: dmsetup resume %s",
		     volume->name, volume->name);
	else
		fail("%s: can not read %s", volume->name, path);
	free(text);
	free(path);
	free(dir);
	return r;
}

static void print_heading(void)
{
	printf("%-22s %-20s %10s", "LEG", "SIZE", "READS");
	for (size_t i = 0; i < NR_PERCENTILES; i++)
		printf(" %8s", percentiles[i].name);
	printf("\n");
}

static void print_percentiles(const char *leg, const struct histogram *histogram)
{
	char text[TIME_TEXT];

	printf("%-22s %-20s %10" PRIu64, leg, histogram->name, histogram->total);
	for (size_t i = 0; i < NR_PERCENTILES; i++) {
		uint64_t ns = histogram_percentile(histogram, percentiles[i].percentile);

		printf(" %8s", histogram->total ? format_time(ns, text, sizeof(text)) : "-");
	}
	printf("\n");
}

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

static void add_json(int target, int leg, const char *device, const struct histograms *histograms,
		     struct json_object *array)
{
	struct json_object *object = json_object_new_object(), *classes = json_object_new_array();

	json_add_u64(object, "target", target);
	json_add_u64(object, "leg", leg);
	json_add_text(object, "device", device);
	for (int i = 0; i < histograms->count; i++)
		json_object_array_add(classes, class_json(&histograms->classes[i]));
	json_object_object_add(object, "classes", classes);
	json_object_array_add(array, object);
}

static void print_leg(int leg, const char *device, const struct histograms *histograms,
		      struct output *output)
{
	char label[64], *text;
	unsigned int major, minor;

	if (sscanf(device, "%u:%u", &major, &minor) == 2)
		device = device_label(major, minor, label, sizeof(label));
	text = xprintf("%d %s", leg, device);
	for (int i = 0; i < histograms->count; i++) {
		print_percentiles(text, &histograms->classes[i]);
		histogram_merge(&output->sum, &histograms->classes[i]);
	}
	free(text);
}

static int hist_leg(const struct volume *volume, int target, int leg, const char *device,
		    struct output *output)
{
	struct histograms histograms;

	if (read_leg(volume, target, leg, &histograms))
		return -1;
	if (output->array)
		add_json(target, leg, device, &histograms, output->array);
	else
		print_leg(leg, device, &histograms, output);
	histograms_free(&histograms);
	return 0;
}

/* A leg is named by its number, its path or its major:minor. */
static bool leg_matches(const char *wanted, int leg, const char *device)
{
	struct stat st;
	uint64_t number;
	char *numbers;
	bool same;

	if (!wanted || !strcmp(wanted, device))
		return true;
	if (!parse_number(wanted, &number))
		return number == (uint64_t)leg;
	if (stat(wanted, &st) || !S_ISBLK(st.st_mode))
		return false;
	numbers = xprintf("%u:%u", major(st.st_rdev), minor(st.st_rdev));
	same = !strcmp(numbers, device);
	free(numbers);
	return same;
}

/* Returns how many legs matched, or -1. */
static int hist_target(const struct volume *volume, const struct target *target, const char *wanted,
		       struct output *output)
{
	struct status status;
	int matched = 0;

	if (status_parse(target->status, &status))
		return -1;
	for (int i = 0; i < status.nr_legs && matched >= 0; i++) {
		if (!leg_matches(wanted, i, status.devices[i]))
			continue;
		if (hist_leg(volume, target->index, i, status.devices[i], output))
			matched = -1;
		else
			matched++;
	}
	status_free(&status);
	return matched;
}

static int bar_width(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_col < 70)
		return 30;
	return size.ws_col - 50;
}

static void print_bar(uint64_t count, uint64_t most, int width)
{
	int n = count ? 1 + (int)((width - 1) * log((double)count) / log((double)most + 1)) : 0;

	while (n--)
		putchar('#');
	putchar('\n');
}

static void print_chart(const struct histogram *sum)
{
	char from[TIME_TEXT], to[TIME_TEXT];
	struct histogram rows;
	uint64_t most = 1, seen = 0;

	histogram_rows(sum, &rows);
	for (int i = 0; i < rows.count; i++)
		if (rows.buckets[i].count > most)
			most = rows.buckets[i].count;
	if (rows.count)
		printf("\n%8s   %-8s %10s %9s  (logarithmic)\n", "FROM", "TO", "READS", "UP TO");
	for (int i = 0; i < rows.count; i++) {
		const struct bucket *row = &rows.buckets[i];

		seen += row->count;
		printf("%8s - %-8s %10" PRIu64 " %8.4f%%  ",
		       format_time(row->from, from, sizeof(from)),
		       format_time(row->to, to, sizeof(to)), row->count,
		       100.0 * (double)seen / (double)rows.total);
		print_bar(row->count, most, bar_width());
	}
	histogram_free(&rows);
}

/* The legs of the targets, then the sum of all of them. */
static int hist_volume(const struct volume *volume, const char *leg, int target,
		       struct output *output)
{
	int matched = 0, r;

	if (target >= volume->nr_targets) {
		fail("%s: it has no hedge target %d; the last is %d", volume->name, target,
		     volume->nr_targets - 1);
		return -1;
	}
	if (!output->array)
		print_heading();
	for (int i = 0; i < volume->nr_targets; i++) {
		if (target >= 0 && target != i)
			continue;
		r = hist_target(volume, &volume->targets[i], leg, output);
		if (r < 0)
			return -1;
		matched += r;
	}
	if (matched)
		return 0;
	fail("%s: it has no leg %s; hedgectl show %s lists its legs", volume->name, leg,
	     volume->name);
	return -1;
}

static enum exit_status run(const struct args *args)
{
	struct output output = { .sum.name = xstrdup("all") };
	enum exit_status status = USAGE;
	struct volume volume;
	int target;

	if (!args_target(args, &target)) {
		status = FAILED;
		output.array = args_has(args, "json") ? json_object_new_array() : NULL;
		if (!dm_volume_read(args->operands[0], &volume)) {
			if (!hist_volume(&volume, args->nr_operands > 1 ? args->operands[1] : NULL,
					 target, &output))
				status = DONE;
			volume_free(&volume);
		}
	}
	if (status == DONE && output.array) {
		json_print(output.array);
	} else if (status == DONE) {
		print_percentiles("all", &output.sum);
		print_chart(&output.sum);
	}
	histogram_free(&output.sum);
	return status;
}

static const struct option_def options[] = {
	{ "target", "N", "only the hedge target N of the table (all)" },
	{ NULL, NULL, NULL },
};

const struct command hist_command = {
	.name = "hist",
	.synopsis = "NAME [LEG] [--target N] [--json]",
	.summary = "Shows how long the read copies of a volume, or of one leg, took",
	.details =
		"LEG is a number, a path or major:minor. Percentiles are upper bounds, at most 12.5 % too high.",
	.options = options,
	.example = "hedgectl hist vol0 1",
	.min_operands = 1,
	.max_operands = 2,
	.run = run,
};
