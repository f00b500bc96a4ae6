// SPDX-License-Identifier: GPL-2.0
/*
 * hedgectl list: the devices that have a hedge target, one line a target. All of it comes from the
 * status line, which is there while a device is suspended too.
 */
#include <json.h>
#include <stdio.h>
#include <stdlib.h>

#include "hedgectl.h"

static const char *field(const struct status *status, const char *name)
{
	const char *text = kv_get(&status->fields, name);

	return text ? text : "-";
}

static const char *tau_text(const struct status *status, char *buffer, size_t size)
{
	uint64_t us;

	if (!kv_number(&status->fields, "tau_us", &us))
		return "-";
	return us ? format_time(us * 1000, buffer, size) : "off";
}

static void print_target(const struct volume *volume, const struct target *target,
			 const struct status *status)
{
	char size[SIZE_TEXT], tau[TIME_TEXT];

	printf("%-20s dm-%-5u %-9s %10s %4d %-9s %-12s %8s\n", volume->name, volume->minor,
	       volume->suspended ? "suspended" : "running",
	       format_size(target->sectors * SECTOR, size, sizeof(size)), status->nr_legs,
	       status->health, field(status, "policy"), tau_text(status, tau, sizeof(tau)));
}

static struct json_object *target_json(const struct volume *volume, const struct target *target,
				       const struct status *status)
{
	struct json_object *object = json_object_new_object();

	json_add_text(object, "name", volume->name);
	json_add_text(object, "uuid", volume->uuid);
	json_add_u64(object, "major", volume->major);
	json_add_u64(object, "minor", volume->minor);
	json_object_object_add(object, "suspended", json_object_new_boolean(volume->suspended));
	json_add_u64(object, "target", target->index);
	json_add_u64(object, "bytes", target->sectors * SECTOR);
	json_add_u64(object, "legs", status->nr_legs);
	json_add_text(object, "health", status->health);
	json_add_value(object, "policy", kv_get(&status->fields, "policy"));
	json_add_value(object, "tau_us", kv_get(&status->fields, "tau_us"));
	return object;
}

/* One target, to the array or to stdout. */
static int list_target(const struct volume *volume, const struct target *target,
		       struct json_object *array)
{
	struct status status;

	if (status_parse(target->status, &status))
		return -1;
	if (array)
		json_object_array_add(array, target_json(volume, target, &status));
	else
		print_target(volume, target, &status);
	status_free(&status);
	return 0;
}

static enum exit_status run(const struct args *args)
{
	struct json_object *array = args_has(args, "json") ? json_object_new_array() : NULL;
	struct volume *volumes;
	int count, r;

	r = dm_volumes_read(&volumes, &count);
	if (!array && count)
		printf("%-20s %-8s %-9s %10s %4s %-9s %-12s %8s\n", "NAME", "DEVICE", "STATE",
		       "SIZE", "LEGS", "HEALTH", "POLICY", "TAU");
	else if (!array && !r)
		fprintf(stderr, "no device has a hedge target\n");
	for (int i = 0; i < count; i++)
		for (int j = 0; j < volumes[i].nr_targets; j++)
			r |= list_target(&volumes[i], &volumes[i].targets[j], array);
	if (array)
		json_print(array);
	volumes_free(volumes, count);
	return r ? FAILED : DONE;
}

const struct command list_command = {
	.name = "list",
	.synopsis = "[--json]",
	.summary = "Lists the devices that have a hedge target",
	.details =
		"HEALTH has a letter for each leg: A alive, D write failed, S sync failed, R read failed,\n"
		"F flush failed, U unknown.",
	.options = no_options,
	.example = "hedgectl list",
	.max_operands = 0,
	.run = run,
};
