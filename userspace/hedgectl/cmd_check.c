// SPDX-License-Identifier: GPL-2.0
/*
 * hedgectl check: has the kernel compare the legs, and waits for the end of it.
 *
 * The kernel compares what it can: a leg that is out, lacks regions or can not be read is passed
 * over, and a region of which fewer than two legs are left counts as compared. So the legs are
 * looked at before and after, and which of them was not compared throughout is said.
 */
#include <inttypes.h>
#include <json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hedgectl.h"

#define TURN_US 200000
#define FIRST_SECONDS 60	/* that the first region may take after a resume */

static const struct option_def options[] = {
	{ "repair", "LEG", "write this leg (a device or a number) over the others where they differ" },
	{ "force", NULL, "with --repair: do not ask" },
	{ "target", "N", "of a device with several hedge targets: which, from 0" },
	{ NULL, NULL, NULL },
};

struct check {
	const char *name;
	struct volume volume;
	int target;
	char *dir;
	uint64_t done, all, mismatches;
	struct status status;
	bool whole[MAX_LEGS];	/* each leg: compared throughout, as far as is known */
	int source;		/* the leg that is written over the others, or -1 */
	char *disk;		/* which that is, for people */
};

/* NULL if it can not be read, as while the volume is suspended. */
static char *attribute(const struct check *check, const char *name)
{
	char *path = xprintf("%s/%s", check->dir, name);
	char *text = sysfs_read_file(path, NULL);

	free(path);
	return text;
}

/* Quietly fails while there are no attributes. */
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

/* Which legs have everything, and could be read and written so far. */
static int look_at_legs(struct check *check)
{
	struct volume now;
	struct status status;

	if (dm_volume_read(check->name, &now))
		return -1;
	if (check->target >= now.nr_targets ||
	    status_parse(now.targets[check->target].status, &status)) {
		volume_free(&now);
		return -1;
	}
	for (int i = 0; i < check->status.nr_legs; i++) {
		char *name = xprintf("legs/%d/state", i), *state = attribute(check, name);

		if (!state || strncmp(state, "in_sync", 7) || i >= status.nr_legs ||
		    status.health[i] != 'A')
			check->whole[i] = false;
		free(state);
		free(name);
	}
	status_free(&status);
	volume_free(&now);
	return 0;
}

static int legs_compared(const struct check *check)
{
	int count = 0;

	for (int i = 0; i < check->status.nr_legs; i++)
		count += check->whole[i];
	return count;
}

static int find_leg(const struct check *check, const char *wanted)
{
	for (int i = 0; i < check->status.nr_legs; i++)
		if (leg_matches(wanted, i, check->status.devices[i]))
			return i;
	fail("--repair %s: it is no leg of %s; give the device of one or a number from 0 to %d",
	     wanted, check->name, check->status.nr_legs - 1);
	return -1;
}

/* Which disk is written over the others is said before, and asked. */
static int confirm(const struct check *check, const struct args *args)
{
	char answer[16] = "";

	if (!args_has(args, "json"))
		printf("%s: where legs differ, leg %d (%s) is written over the others\n", check->name,
		       check->source, check->disk);
	fflush(stdout);
	if (args_has(args, "force"))
		return 0;
	if (!isatty(STDIN_FILENO)) {
		fail("%s: leg %d (%s) would be written over the others, and there is no terminal to ask on; give --force if that is intended",
		     check->name, check->source, check->disk);
		return -1;
	}
	fprintf(stderr, "Write leg %d (%s) over the others where they differ? Type \"yes\": ",
		check->source, check->disk);
	if (fgets(answer, sizeof(answer), stdin) && !strcmp(answer, "yes\n"))
		return 0;
	fail("%s: not checked, nothing was written", check->name);
	return -1;
}

static int begin(struct check *check)
{
	char *message = check->source < 0 ? xstrdup("check") :
					    xprintf("check repair %d", check->source);
	int r = dm_message(&check->volume, check->target, message);

	free(message);
	return r;
}

/* A check that the kernel has stopped for a suspend goes on after it. */
static int wait_while_suspended(const struct check *check)
{
	struct volume now;
	bool suspended;
	char *done;

	if (dm_volume_read(check->name, &now))
		return -1;
	suspended = now.suspended;
	volume_free(&now);
	if (suspended)
		return 0;
	/* It may have been resumed just now. */
	usleep(TURN_US);
	done = attribute(check, "check_done");
	free(done);
	if (done)
		return 0;
	fail("%s: can not read how far the check is; its table was changed, or the device is gone",
	     check->name);
	return -1;
}

/* The attributes come with a resume, and go with a suspend. */
static ino_t attributes_inode(const struct check *check)
{
	struct stat st;

	return stat(check->dir, &st) ? 0 : st.st_ino;
}

static int fail_dropped(const struct check *check)
{
	fail("%s: the check was dropped: the table was reloaded, or another check began; try again",
	     check->name);
	return -1;
}

static int wait_for_end(struct check *check)
{
	bool tty = isatty(STDERR_FILENO);
	uint64_t before = check->mismatches, done = 0, all = check->all;
	ino_t inode = attributes_inode(check);
	int idle = 0;

	do {
		usleep(TURN_US);
		if (look(check)) {
			if (wait_while_suspended(check))
				return -1;
			check->done = done;
			continue;
		}
		/* A new table knows nothing of the check. */
		if (check->done < done || check->all != all)
			return fail_dropped(check);
		/* Nor does one that came before the first region was done. */
		idle = check->done || attributes_inode(check) == inode ? 0 : idle + 1;
		if (idle > FIRST_SECONDS * 1000000 / TURN_US)
			return fail_dropped(check);
		done = check->done;
		if (tty)
			fprintf(stderr, "\r%s: %" PRIu64 " of %" PRIu64 " regions compared ", check->name,
				check->done, check->all);
	} while (check->done < check->all);
	if (tty)
		fprintf(stderr, "\r%*s\r", 70, "");
	check->mismatches -= before < check->mismatches ? before : check->mismatches;
	return 0;
}

/* What differed was rewritten, unless a leg could not be read or written on the way. */
static bool repaired(const struct check *check)
{
	return check->source >= 0 && check->mismatches &&
	       legs_compared(check) == check->status.nr_legs;
}

static void report_json(const struct check *check)
{
	struct json_object *object = json_object_new_object(), *left = json_object_new_array();

	json_add_text(object, "name", check->name);
	json_add_u64(object, "target", check->target);
	json_add_u64(object, "regions", check->all);
	json_add_u64(object, "mismatches", check->mismatches);
	json_object_object_add(object, "repaired", json_object_new_boolean(repaired(check)));
	for (int i = 0; i < check->status.nr_legs; i++)
		if (!check->whole[i])
			json_object_array_add(left, json_object_new_int(i));
	json_object_object_add(object, "not_compared", left);
	json_print(object);
}

static void report(const struct check *check)
{
	const char *end = repaired(check)		       ? ", and were rewritten" :
			  check->source < 0 || !check->mismatches ? "" :
						  ", and not all of them may be rewritten";

	if (legs_compared(check) < 2)
		printf("%s: nothing was compared throughout\n", check->name);
	else
		printf("%s: %" PRIu64 " regions compared, %" PRIu64 " blocks of 4 KiB differed%s\n",
		       check->name, check->all, check->mismatches, end);
	for (int i = 0; i < check->status.nr_legs; i++) {
		char *disk;

		if (check->whole[i])
			continue;
		disk = device_describe(check->status.devices[i]);
		printf("%s: leg %d (%s) was not compared throughout: it was out, lacked something or had an error\n",
		       check->name, i, disk);
		free(disk);
	}
}

/* The volume is read, and its target found. */
static int check_legs(struct check *check, const struct args *args)
{
	const char *repair = args_get(args, "repair");

	if (status_parse(check->volume.targets[check->target].status, &check->status))
		return -1;
	check->dir = sysfs_target_dir(&check->volume, check->target);
	for (int i = 0; i < check->status.nr_legs; i++)
		check->whole[i] = true;
	if (repair) {
		check->source = find_leg(check, repair);
		if (check->source < 0)
			return -1;
		check->disk = device_describe(check->status.devices[check->source]);
	}
	if (look(check)) {
		fail("%s: can not read its attributes; is it suspended? dmsetup resume %s",
		     check->name, check->name);
		return -1;
	}
	if (look_at_legs(check) || (repair && confirm(check, args)) || begin(check) ||
	    wait_for_end(check) || look_at_legs(check))
		return -1;
	if (args_has(args, "json"))
		report_json(check);
	else
		report(check);
	return 0;
}

static enum exit_status run(const struct args *args)
{
	struct check check = { .name = args->operands[0], .source = -1 };
	bool good;

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
	/* Legs that differ, and still do, are not what was hoped for, nor are legs not compared. */
	good = !check_legs(&check, args) && (!check.mismatches || repaired(&check)) &&
	       legs_compared(&check) == check.status.nr_legs;
	status_free(&check.status);
	free(check.disk);
	free(check.dir);
	volume_free(&check.volume);
	return good ? DONE : FAILED;
}

const struct command check_command = {
	.name = "check",
	.synopsis = "NAME [OPTION]...",
	.summary = "Compares the legs of a volume, while it is in use",
	.details = "Blocks that were never written, or were discarded, may differ rightly. The exit status is 1\n"
		   "if blocks differ or a leg was not compared. With --repair it asks first; without a terminal\n"
		   "it needs --force. How fast it goes is the module parameter resync_throttle.",
	.options = options,
	.example = "hedgectl check vol0 --repair /dev/sdb",
	.min_operands = 1,
	.max_operands = 1,
	.run = run,
};
