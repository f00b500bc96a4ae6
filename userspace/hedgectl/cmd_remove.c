// SPDX-License-Identifier: GPL-2.0
/*
 * hedgectl remove: stops a volume. Its legs keep their data and their labels, by which it can be
 * assembled again. Copies of reads that a slow leg still has are waited for, as long as that takes.
 */
#include <json.h>
#include <stdio.h>
#include <stdlib.h>

#include "hedgetab.h"

/* What the next start of the machine does, which may not be what was meant. */
static void note_hedgetab(const char *name)
{
	struct hedgetab tab;
	struct hedgetab_entry *entry;

	if (hedgetab_read(&tab))
		return;
	entry = hedgetab_find(&tab, name);
	if (entry)
		note("%s: it still has a line in %s", name, hedgetab_path());
	hedgetab_free(&tab);
}

/* The kernel refuses it as well, but can not tell who has it. */
static int check_unused(const struct volume *volume)
{
	char *user = device_user(volume->major, volume->minor);

	if (user)
		fail("%s: %s", volume->name, user);
	else if (volume->open_count)
		fail("%s: a program has it open (fuser -v /dev/mapper/%s tells which); end that first",
		     volume->name, volume->name);
	else
		return 0;
	free(user);
	return -1;
}

static void report(const struct volume *volume, bool json)
{
	struct json_object *object;

	if (!json) {
		printf("%s: stopped; its legs are left as they are\n", volume->name);
		return;
	}
	object = json_object_new_object();
	json_add_text(object, "name", volume->name);
	json_add_text(object, "uuid", volume->uuid);
	json_object_object_add(object, "removed", json_object_new_boolean(true));
	json_print(object);
}

static enum exit_status run(const struct args *args)
{
	struct volume volume;
	int r;

	if (dm_volume_read(args->operands[0], &volume))
		return FAILED;
	r = check_unused(&volume);
	if (!r)
		r = dm_volume_remove(volume.name);
	if (!r) {
		report(&volume, args_has(args, "json"));
		note_hedgetab(volume.name);
	}
	volume_free(&volume);
	return r ? FAILED : DONE;
}

const struct command remove_command = {
	.name = "remove",
	.synopsis = "NAME",
	.summary = "Stops a volume; its legs keep their data and labels",
	.details = "A volume that is mounted or in use is refused. It waits for reads that a slow leg still has.",
	.options = no_options,
	.example = "hedgectl remove vol0",
	.min_operands = 1,
	.max_operands = 1,
	.run = run,
};
