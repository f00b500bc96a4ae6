// SPDX-License-Identifier: GPL-2.0
/*
 * hedgectl close: has the labels of a volume that can not be stopped, as the root file system is on it,
 * say that it was left in order. The kernel writes so when the volume is suspended; resumed, it may be
 * read, and the next write, if there is one, opens the labels again.
 *
 * It is the last thing that happens to a volume: systemd-shutdown calls it (hedge.shutdown) when
 * what could be unmounted is.
 */
#include <json.h>
#include <stdio.h>

#include "hedgectl.h"

static int close_volume(const struct volume *volume, struct json_object *array)
{
	struct json_object *object;

	if (volume->suspended)
		note("%s: it is suspended, which has closed it", volume->name);
	else if (line_close(volume->name))
		return -1;
	if (!array) {
		printf("%s: closed, until it is written to\n", volume->name);
		return 0;
	}
	object = json_object_new_object();
	json_add_text(object, "name", volume->name);
	json_add_text(object, "uuid", volume->uuid);
	json_object_object_add(object, "closed", json_object_new_boolean(true));
	json_object_array_add(array, object);
	return 0;
}

static int close_all(struct json_object *array)
{
	struct volume *volumes;
	int count, r = dm_volumes_read(&volumes, &count);

	for (int i = 0; i < count; i++)
		r |= close_volume(&volumes[i], array);
	volumes_free(volumes, count);
	return r;
}

static int close_one(const char *name, struct json_object *array)
{
	struct volume volume;
	int r = dm_volume_read(name, &volume);

	if (r)
		return -1;
	r = close_volume(&volume, array);
	volume_free(&volume);
	return r;
}

static enum exit_status run(const struct args *args)
{
	struct json_object *array;
	bool all = args_has(args, "all");
	int r;

	if (all == (args->nr_operands == 1)) {
		fail("close: expected the name of a volume, or --all");
		return USAGE;
	}
	array = args_has(args, "json") ? json_object_new_array() : NULL;
	r = all ? close_all(array) : close_one(args->operands[0], array);
	if (array)
		json_print(array);
	return r ? FAILED : DONE;
}

static const struct option_def options[] = {
	{ "all", NULL, "all volumes" },
	{ NULL, NULL, NULL },
};

const struct command close_command = {
	.name = "close",
	.synopsis = "NAME|--all",
	.summary = "Marks a volume that goes on as left in order, until the next write",
	.details =
		"For a root file system, at shutdown, when it is mounted for reading only: a volume that is\n"
		"not closed is taken for one that crashed. It is suspended for a moment; what is in flight\n"
		"ends first.",
	.options = options,
	.example = "hedgectl close --all",
	.max_operands = 1,
	.run = run,
};
