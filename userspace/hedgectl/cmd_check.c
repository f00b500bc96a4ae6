// SPDX-License-Identifier: GPL-2.0
/*
 * hedgectl check: has the kernel compare the legs, and waits for the end of it.
 */
#include <inttypes.h>
#include <json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hedgectl.h"

static const struct option_def options[] = {
	{ "repair", "LEG", "write this leg (a device or a number) over the others where they differ" },
	{ "target", "N", "of a device with several hedge targets: which, from 0" },
	{ NULL, NULL, NULL },
};

struct check {
	const char *name;
	struct volume volume;
	int target;
	char *dir;
	uint64_t done, all, mismatches;
};

static char *attribute(const struct check *check, const char *name)
{
	char *path = xprintf("%s/%s", check->dir, name);
	char *text = sysfs_read_file(path, NULL);

	free(path);
	if (!text)
		fail("%s: can not read %s; is the device suspended or gone?", check->name, name);
	return text;
}

static int look(struct check *check)
{
	char *done = attribute(check, "check_done");
	char *mismatches = done ? attribute(check, "stats/mismatches") : NULL;
	int r = -1;

	if (mismatches &&
	    sscanf(done, "%" SCNu64 "/%" SCNu64, &check->done, &check->all) == 2 &&
	    sscanf(mismatches, "%" SCNu64, &check->mismatches) == 1)
		r = 0;
	free(done);
	free(mismatches);
	return r;
}

static int find_leg(const struct check *check, const char *wanted)
{
	struct status status;
	int leg = -1;

	if (status_parse(check->volume.targets[check->target].status, &status))
		return -1;
	for (int i = 0; i < status.nr_legs; i++)
		if (leg_matches(wanted, i, status.devices[i]))
			leg = i;
	if (leg < 0)
		fail("--repair %s: it is no leg of %s; give the device of one or a number from 0 to %d",
		     wanted, check->name, status.nr_legs - 1);
	status_free(&status);
	return leg;
}

static int begin(struct check *check, const char *repair)
{
	char *message = NULL;
	int leg, r;

	if (repair) {
		leg = find_leg(check, repair);
		if (leg < 0)
			return -1;
		message = xprintf("check repair %d", leg);
	}
	r = dm_message(&check->volume, check->target, message ? message : "check");
	free(message);
	return r;
}

static int wait_for_end(struct check *check)
{
	bool tty = isatty(STDERR_FILENO);
	uint64_t before = check->mismatches;

	do {
		usleep(200000);
		if (look(check))
			return -1;
		if (tty)
			fprintf(stderr, "\r%s: %" PRIu64 " of %" PRIu64 " regions compared ", check->name,
				check->done, check->all);
	} while (check->done < check->all);
	if (tty)
		fprintf(stderr, "\r%*s\r", 70, "");
	check->mismatches -= before < check->mismatches ? before : check->mismatches;
	return 0;
}

static void report(const struct check *check, bool json, bool repaired)
{
	struct json_object *object;

	if (json) {
		object = json_object_new_object();
		json_add_text(object, "name", check->name);
		json_add_u64(object, "target", check->target);
		json_add_u64(object, "regions", check->all);
		json_add_u64(object, "mismatches", check->mismatches);
		json_object_object_add(object, "repaired",
				       json_object_new_boolean(repaired && check->mismatches));
		json_print(object);
		return;
	}
	printf("%s: %" PRIu64 " regions compared, %" PRIu64 " blocks of 4 KiB differed%s\n", check->name,
	       check->all, check->mismatches,
	       repaired && check->mismatches ? ", and were rewritten" : "");
}

static enum exit_status run(const struct args *args)
{
	const char *repair = args_get(args, "repair");
	struct check check = { .name = args->operands[0] };
	int r;

	if (args_target(args, &check.target))
		return USAGE;
	if (check.target < 0)
		check.target = 0;
	if (dm_volume_read(check.name, &check.volume))
		return FAILED;
	if (check.target >= check.volume.nr_targets) {
		fail("--target %d: %s has %d", check.target, check.name, check.volume.nr_targets);
		volume_free(&check.volume);
		return USAGE;
	}
	check.dir = sysfs_target_dir(&check.volume, check.target);
	r = check.dir && !look(&check) && !begin(&check, repair) && !wait_for_end(&check) ? 0 : -1;
	if (!r)
		report(&check, args_has(args, "json"), repair);
	free(check.dir);
	volume_free(&check.volume);
	/* Legs that differ, and still do, are not what was hoped for. */
	return r || (check.mismatches && !repair) ? FAILED : DONE;
}

const struct command check_command = {
	.name = "check",
	.synopsis = "NAME [OPTION]...",
	.summary = "Compares the legs of a volume, while it is in use",
	.details = "Blocks that were never written, or were discarded, may differ rightly. The exit status is 1\n"
		   "if blocks differ. How fast it goes is the module parameter resync_throttle.",
	.options = options,
	.example = "hedgectl check vol0 --repair /dev/sdb",
	.min_operands = 1,
	.max_operands = 1,
	.run = run,
};
