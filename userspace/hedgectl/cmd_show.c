// SPDX-License-Identifier: GPL-2.0
/*
 * hedgectl show: all about one volume. The status line is always there; the attributes in sysfs say
 * more, and go while the device is suspended. A view holds both, and every value is looked up in
 * sysfs first.
 */
#include <inttypes.h>
#include <json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "metrics.h"

struct view {
	const struct volume *volume;
	const struct target *target;
	struct status status;
	struct table table;
	struct kv_list attrs; /* empty while suspended */
	double sync_rate; /* regions that come into sync a second; 0: none, or not known */
};

#define RATE_TENTHS 20 /* how long the rate of a resync is looked at */

static int view_read(const struct volume *volume, const struct target *target, struct view *view)
{
	char *dir;

	*view = (struct view){ .volume = volume, .target = target };
	if (status_parse(target->status, &view->status))
		return -1;
	if (table_parse(target->table, &view->table)) {
		status_free(&view->status);
		return -1;
	}
	dir = sysfs_target_dir(volume, target->index);
	sysfs_read_tree(dir, &view->attrs);
	free(dir);
	return 0;
}

static void view_free(struct view *view)
{
	status_free(&view->status);
	table_free(&view->table);
	kv_free(&view->attrs);
}

/* A counter of stats/, which the status line has too where it matters. */
static const char *stat(const struct view *view, const char *name)
{
	char *path = xprintf("stats/%s", name);
	const char *value = kv_get(&view->attrs, path);

	free(path);
	return value ? value : kv_get(&view->status.fields, name);
}

static const char *leg_attr(const struct view *view, int leg, const char *name)
{
	char *path = xprintf("legs/%d/%s", leg, name);
	const char *value = kv_get(&view->attrs, path);

	free(path);
	return value;
}

static const char *dash(const char *text)
{
	return text ? text : "-";
}

/* How many extra copies the budget allows so far; false while the attributes are away. */
static bool budget_limit(const struct view *view, uint64_t *limit)
{
	const char *reads = stat(view, "reads");
	uint64_t pct, n;

	if (!reads || parse_number(reads, &n) || !kv_number(&view->attrs, "budget_pct", &pct))
		return false;
	*limit = (uint64_t)((double)pct * (double)n / 100) + 64;
	return true;
}

static bool device_numbers(const char *text, unsigned int *major, unsigned int *minor)
{
	return sscanf(text, "%u:%u", major, minor) == 2;
}

static const char *leg_label(const struct view *view, int leg, char *buffer, size_t size)
{
	unsigned int major, minor;

	if (device_numbers(view->status.devices[leg], &major, &minor))
		return device_label(major, minor, buffer, size);
	snprintf(buffer, size, "%s", view->status.devices[leg]);
	return buffer;
}

/* Text for people */

static void print_policy(const struct view *view)
{
	const char *listed = kv_get(&view->attrs, "policy"),
		   *timeout = kv_get(&view->attrs, "timeout_us");
	char *policy = attr_current(listed ? listed : dash(kv_get(&view->status.fields, "policy")));
	char tau[TIME_TEXT];
	uint64_t us;

	printf("  policy   %s", policy);
	if (kv_number(&view->status.fields, "tau_us", &us))
		printf(", tau %s", us ? format_time(us * 1000, tau, sizeof(tau)) : "off");
	if (timeout)
		printf(" (timeout_us %s)", timeout);
	printf("\n");
	if (listed)
		printf("  presets  %s\n", listed);
	free(policy);
}

/* "done/all" of a running check; false if none runs. Before the first check nothing is done. */
static bool check_progress(const struct view *view, uint64_t *done, uint64_t *all)
{
	const char *text = kv_get(&view->attrs, "check_done");

	return text && sscanf(text, "%" SCNu64 "/%" SCNu64, done, all) == 2 && *done &&
	       *done < *all;
}

static void print_progress(const char *what, uint64_t done, uint64_t all, double rate)
{
	char *text = format_progress(done, all, rate);

	printf("  %-8s %s\n", what, text);
	free(text);
}

static void print_log(const struct view *view)
{
	char region[SIZE_TEXT];
	uint64_t done, all;

	printf("  log      %s, regions of %s, %" PRIu64 " of %" PRIu64 " in sync\n",
	       view->status.log,
	       format_size(view->table.region_sectors * SECTOR, region, sizeof(region)),
	       view->status.in_sync, view->status.regions);
	if (view->status.in_sync < view->status.regions)
		print_progress("resync", view->status.in_sync, view->status.regions,
			       view->sync_rate);
	if (check_progress(view, &done, &all))
		print_progress("check", done, all, 0);
}

static void print_counters(const struct view *view)
{
	static const char *const names[] = { "reads",	"copies",  "extra",	"hedged",
					     "won",	"wasted",  "cancelled", "moved",
					     "rescued", "retried", "unhedged",	NULL };
	uint64_t limit;

	printf("  counts  ");
	for (int i = 0; names[i]; i++)
		if (stat(view, names[i]))
			printf(" %s %s", names[i], stat(view, names[i]));
	printf("\n");
	if (budget_limit(view, &limit))
		printf("  budget   %s %%: %s of at most %" PRIu64 " extra copies started\n",
		       kv_get(&view->attrs, "budget_pct"), dash(stat(view, "extra")), limit);
}

/* Zero is a latency that was not measured yet, or the age of nothing. */
static const char *us_text(const char *text, char *buffer, size_t size)
{
	uint64_t us;

	return text && !parse_number(text, &us) && us ? format_time(us * 1000, buffer, size) : "-";
}

static void print_leg(const struct view *view, int leg)
{
	char label[64], latency[TIME_TEXT], oldest[TIME_TEXT];

	printf("  %3d  %-20s %6c %-8s %8s %8s %6s %8s %10s %6s %6s\n", leg,
	       leg_label(view, leg, label, sizeof(label)), view->status.health[leg],
	       dash(leg_attr(view, leg, "state")),
	       us_text(leg_attr(view, leg, "latency_us"), latency, sizeof(latency)),
	       dash(leg_attr(view, leg, "inflight")), dash(leg_attr(view, leg, "queued")),
	       us_text(leg_attr(view, leg, "oldest_us"), oldest, sizeof(oldest)),
	       dash(leg_attr(view, leg, "reads")), dash(leg_attr(view, leg, "errors")),
	       dash(leg_attr(view, leg, "weight")));
}

static void print_leg_remarks(const struct view *view, int leg)
{
	char *model = device_model(view->status.devices[leg]);
	char *serial = device_serial(view->status.devices[leg]);
	const char *stalled = leg_attr(view, leg, "stalled");

	if (model || serial)
		printf("       %d: %s%s%s\n", leg, model ? model : "",
		       model && serial ? ", serial " :
		       serial	       ? "serial " :
					 "",
		       serial ? serial : "");
	if (stalled && !strcmp(stalled, "1"))
		printf("       %d: stalled: its oldest read is out longer than rescue_us, new reads avoid it\n",
		       leg);
	free(model);
	free(serial);
}

static void print_target(const struct view *view)
{
	char size[SIZE_TEXT];

	if (view->volume->nr_targets > 1)
		printf("target %d: sectors %" PRIu64 " to %" PRIu64 " (%s)\n", view->target->index,
		       view->target->start, view->target->start + view->target->sectors - 1,
		       format_size(view->target->sectors * SECTOR, size, sizeof(size)));
	print_policy(view);
	print_log(view);
	print_counters(view);
	printf("  leg  %-20s %6s %-8s %8s %8s %6s %8s %10s %6s %6s\n", "device", "health", "state",
	       "latency", "inflight", "queued", "oldest", "reads", "errors", "weight");
	for (int i = 0; i < view->status.nr_legs; i++)
		print_leg(view, i);
	for (int i = 0; i < view->status.nr_legs; i++)
		print_leg_remarks(view, i);
}

static void print_volume(const struct volume *volume)
{
	char size[SIZE_TEXT];

	printf("%s: /dev/mapper/%s, dm-%u, %s, %s, %s\n", volume->name, volume->name, volume->minor,
	       format_size(volume->sectors * SECTOR, size, sizeof(size)),
	       volume->suspended ? "suspended" : "running",
	       volume->open_count ? "open" : "not open");
	printf("  uuid     %s\n", volume->uuid[0] ? volume->uuid : "none");
	if (volume->suspended)
		printf("  The attributes are away while it is suspended; this is what the status line says.\n");
}

/* JSON: every key is always there; what is not known now is null. */

static struct json_object *attributes_json(const struct view *view)
{
	struct json_object *object;

	if (!view->attrs.count)
		return NULL;
	object = json_object_new_object();
	for (int i = 0; i < view->attrs.count; i++) {
		const struct kv *kv = &view->attrs.items[i];
		char *current;

		if (strchr(kv->name, '/'))
			continue;
		current = attr_current(kv->value);
		json_add_value(object, kv->name, current);
		free(current);
	}
	return object;
}

static struct json_object *counters_json(const struct view *view)
{
	static const char *const names[] = {
		"reads",    "copies",	       "extra",		  "hedged",	   "won",
		"wasted",   "cancelled",       "moved",		  "rescued",	   "retried",
		"unhedged", "unhedged_budget", "unhedged_memory", "unhedged_sync", "unhedged_large",
		NULL
	};
	struct json_object *object = json_object_new_object();

	for (int i = 0; names[i]; i++)
		json_add_value(object, names[i], stat(view, names[i]));
	return object;
}

static struct json_object *budget_json(const struct view *view)
{
	struct json_object *object = json_object_new_object();
	uint64_t limit;
	bool known = budget_limit(view, &limit);

	json_add_value(object, "pct", kv_get(&view->attrs, "budget_pct"));
	json_add_value(object, "extra", stat(view, "extra"));
	json_object_object_add(object, "limit", known ? json_object_new_uint64(limit) : NULL);
	return object;
}

static struct json_object *log_json(const struct view *view)
{
	struct json_object *object = json_object_new_object();

	json_add_text(object, "type", view->table.log_type);
	json_add_text(object, "device", view->table.log_device);
	json_add_u64(object, "region_bytes", view->table.region_sectors * SECTOR);
	json_add_u64(object, "regions", view->status.regions);
	json_add_u64(object, "in_sync", view->status.in_sync);
	return object;
}

static struct json_object *leg_json(const struct view *view, int leg)
{
	static const char *const attrs[] = { "state",	  "sitting",	  "stalled",
					     "weight",	  "hedge_weight", "timeout_us",
					     "inflight",  "queued",	  "latency_us",
					     "oldest_us", "reads",	  "errors",
					     NULL };
	struct json_object *object = json_object_new_object();
	char *model = device_model(view->status.devices[leg]);
	char *serial = device_serial(view->status.devices[leg]);
	char health[2] = { view->status.health[leg], '\0' };

	json_add_u64(object, "leg", leg);
	json_add_text(object, "device", view->status.devices[leg]);
	json_add_u64(object, "offset_sectors", view->table.legs[leg].offset);
	json_add_text(object, "model", model);
	json_add_text(object, "serial", serial);
	json_add_text(object, "health", health);
	for (int i = 0; attrs[i]; i++)
		json_add_value(object, attrs[i], leg_attr(view, leg, attrs[i]));
	free(model);
	free(serial);
	return object;
}

static struct json_object *target_json(const struct view *view)
{
	struct json_object *object = json_object_new_object(), *legs = json_object_new_array();

	json_add_u64(object, "target", view->target->index);
	json_add_u64(object, "start_sector", view->target->start);
	json_add_u64(object, "bytes", view->target->sectors * SECTOR);
	json_add_value(object, "policy", kv_get(&view->status.fields, "policy"));
	json_add_value(object, "tau_us", kv_get(&view->status.fields, "tau_us"));
	json_object_object_add(object, "log", log_json(view));
	json_object_object_add(object, "attributes", attributes_json(view));
	json_object_object_add(object, "counters", counters_json(view));
	json_object_object_add(object, "budget", budget_json(view));
	for (int i = 0; i < view->status.nr_legs; i++)
		json_object_array_add(legs, leg_json(view, i));
	json_object_object_add(object, "legs", legs);
	return object;
}

static struct json_object *volume_json(const struct volume *volume)
{
	struct json_object *object = json_object_new_object();

	json_add_text(object, "name", volume->name);
	json_add_text(object, "uuid", volume->uuid);
	json_add_u64(object, "major", volume->major);
	json_add_u64(object, "minor", volume->minor);
	json_object_object_add(object, "suspended", json_object_new_boolean(volume->suspended));
	json_object_object_add(object, "open", json_object_new_boolean(volume->open_count));
	json_add_u64(object, "bytes", volume->sectors * SECTOR);
	return object;
}

static uint64_t in_sync_now(const struct volume *volume, int target)
{
	struct volume again;
	struct status status;
	uint64_t in_sync = 0;

	if (dm_volume_read(volume->name, &again))
		return 0;
	if (target < again.nr_targets && !status_parse(again.targets[target].status, &status)) {
		in_sync = status.in_sync;
		status_free(&status);
	}
	volume_free(&again);
	return in_sync;
}

/* Only for people: whoever reads JSON reads it twice and knows when. */
static void measure_resync(const struct volume *volume, struct view *view)
{
	for (int tenths = 0; tenths < RATE_TENTHS; tenths += 5) {
		uint64_t now;

		nanosleep(&(struct timespec){ .tv_nsec = 500000000 }, NULL);
		now = in_sync_now(volume, view->target->index);
		if (now > view->status.in_sync)
			view->sync_rate = (double)(now - view->status.in_sync) /
					  ((double)(tenths + 5) / 10);
	}
}

static int show_targets(const struct volume *volume, struct json_object *array)
{
	struct view view;

	for (int i = 0; i < volume->nr_targets; i++) {
		if (view_read(volume, &volume->targets[i], &view))
			return -1;
		if (!array && !volume->suspended && view.status.in_sync < view.status.regions)
			measure_resync(volume, &view);
		if (array)
			json_object_array_add(array, target_json(&view));
		else
			print_target(&view);
		view_free(&view);
	}
	return 0;
}

/* Of all volumes, or of those that are named. */
static enum exit_status run_metrics(const struct args *args)
{
	struct samples samples;
	int r = samples_read((const char *const *)args->operands, args->nr_operands, 0, &samples);

	metrics_print(stdout, &samples);
	samples_free(&samples);
	return r ? FAILED : DONE;
}

/* Without --openmetrics it is about one volume. */
static int check_operands(const struct args *args)
{
	if (args_has(args, "json") && args_has(args, "openmetrics"))
		fail("show: --json or --openmetrics, not both");
	else if (!args_has(args, "openmetrics") && !args->nr_operands)
		fail("show: the NAME of a volume is missing");
	else if (!args_has(args, "openmetrics") && args->nr_operands > 1)
		fail("show: unexpected operand \"%s\"", args->operands[1]);
	else
		return 0;
	return -1;
}

static enum exit_status run(const struct args *args)
{
	struct json_object *object, *array;
	struct volume volume;
	int r;

	if (check_operands(args))
		return USAGE;
	if (args_has(args, "openmetrics"))
		return run_metrics(args);
	if (dm_volume_read(args->operands[0], &volume))
		return FAILED;
	if (args_has(args, "json")) {
		object = volume_json(&volume);
		array = json_object_new_array();
		json_object_object_add(object, "targets", array);
		r = show_targets(&volume, array);
		json_print(object);
	} else {
		print_volume(&volume);
		r = show_targets(&volume, NULL);
	}
	volume_free(&volume);
	return r ? FAILED : DONE;
}

static const struct option_def options[] = {
	{ "openmetrics", NULL, "print text for Prometheus, of all volumes or those named" },
	{ NULL, NULL, NULL },
};

const struct command show_command = {
	.name = "show",
	.synopsis = "NAME [--json] | --openmetrics [NAME]...",
	.summary = "Shows policy, timeout, counters, budget and legs of a volume",
	.details = "While the volume is suspended it shows what the status line has. While it is resynced it looks for\n"
		"two seconds how fast that goes.",
	.options = options,
	.example = "hedgectl show vol0",
	.max_operands = 1000,
	.run = run,
};
