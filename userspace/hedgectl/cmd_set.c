// SPDX-License-Identifier: GPL-2.0
/*
 * hedgectl set: changes attributes of a running volume through sysfs.
 *
 * One attribute may change others (a preset does), so all are read before and after, and every
 * difference is printed. All assignments are checked before the first is written; if the kernel
 * refuses one, those before it stay. --save writes what was set to /etc/hedgetab, or, without any, the
 * volume alone, and --saved sets what is there.
 */
#include <errno.h>
#include <json.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hedgetab.h"

struct assignments {
	int count;
	struct assignment *items;
};

static int parse_all(const struct args *args, struct assignments *list)
{
	list->items = xcalloc(args->nr_operands, sizeof(*list->items));
	for (int i = 1; i < args->nr_operands; i++)
		if (assignment_parse(args->operands[i], &list->items[list->count++]))
			return -1;
	return 0;
}

static void free_all(struct assignments *list)
{
	for (int i = 0; i < list->count; i++)
		assignment_free(&list->items[i]);
	free(list->items);
}

static char *assignment_path(const struct assignment *a)
{
	return a->leg < 0 ? xstrdup(a->name) : xprintf("legs/%d/%s", a->leg, a->name);
}

/* Everything that is set must be there: nothing is written when one of them is not. */
static int check_present(const char *name, const struct assignments *list,
			 const struct kv_list *before)
{
	for (int i = 0; i < list->count; i++) {
		char *path = assignment_path(&list->items[i]);
		bool found = kv_get(before, path);

		free(path);
		if (found)
			continue;
		if (list->items[i].leg < 0)
			fail("%s: this module has no attribute %s", name, list->items[i].name);
		else
			fail("%s: there is no leg %d with an attribute %s; hedgectl show %s lists the legs",
			     name, list->items[i].leg, list->items[i].name, name);
		return -1;
	}
	return 0;
}

/* Puts the policy of a target in the place of one that is chosen for each. */
static int resolve_groups(const struct volume *volume, int target, struct assignments *list,
			  bool json)
{
	for (int i = 0; i < list->count; i++) {
		struct assignment *a = &list->items[i];
		const char *why;
		char *policy;

		if (a->leg >= 0 || strcmp(a->name, "policy") || !policy_is_group(a->value))
			continue;
		policy = policy_of_group(volume, target, a->value, &why);
		if (!policy)
			return -1;
		if (!json)
			printf("target %d: %s for %s: %s\n", target, policy, a->value, why);
		a->value = policy;
	}
	return 0;
}

/* Finds the leg that is named by its device; -1 if the target has none such. */
static int find_leg(const struct volume *volume, int target, struct assignment *a)
{
	struct status status;

	if (!a->device)
		return 0;
	if (status_parse(volume->targets[target].status, &status))
		return -1;
	for (int i = 0; i < status.nr_legs; i++)
		if (leg_matches(a->device, i, status.devices[i]))
			a->leg = i;
	status_free(&status);
	return a->leg < MAX_LEGS ? 0 : -1;
}

/* Each device that is named must be a leg of a target that is meant: of others it sets nothing. */
static int check_devices(const struct volume *volume, int target, const struct assignments *list)
{
	for (int i = 0; i < list->count; i++) {
		struct assignment a = list->items[i];
		bool found = !a.device;

		for (int j = 0; !found && j < volume->nr_targets; j++)
			found = (target < 0 || target == j) && !find_leg(volume, j, &a);
		if (found)
			continue;
		fail("%s: it has no leg %s; hedgectl show %s lists its legs", volume->name,
		     a.device, volume->name);
		return -1;
	}
	return 0;
}

/* Those of one target, with the numbers of its legs; the items are those of the list. */
static struct assignments of_target(const struct volume *volume, int target,
				    const struct assignments *list)
{
	struct assignments own = { .items = xcalloc(list->count, sizeof(*own.items)) };

	for (int i = 0; i < list->count; i++) {
		struct assignment a = list->items[i];

		if (!find_leg(volume, target, &a))
			own.items[own.count++] = a;
	}
	return own;
}

/* A copy, whose values may be replaced. */
static struct assignments copy_of(const struct assignments *list)
{
	struct assignments copy = { .count = list->count };

	copy.items = xcalloc(list->count, sizeof(*copy.items));
	memcpy(copy.items, list->items, list->count * sizeof(*copy.items));
	return copy;
}

/* Frees the copy, and the values that are not those of the original. */
static void free_copy(struct assignments *copy, const struct assignments *list)
{
	for (int i = 0; i < copy->count; i++)
		if (copy->items[i].value != list->items[i].value)
			free(copy->items[i].value);
	free(copy->items);
}

static int write_all(const char *name, const char *dir, const struct assignments *list)
{
	for (int i = 0; i < list->count; i++) {
		const struct assignment *a = &list->items[i];
		int kmsg = kmsg_begin();

		if (!sysfs_write(dir, a)) {
			kmsg_end(kmsg);
			continue;
		}
		fail("%s: the kernel refused %s=%s (%s); expected %s%s", name, a->name, a->value,
		     strerror(errno), attr_expected(a->leg, a->name),
		     i ? "; what stands before it in the command is set" : "");
		kmsg_report(kmsg);
		return -1;
	}
	return 0;
}

static void print_change(int target, const struct kv *old, const char *new,
			 struct json_object *array)
{
	char *from = attr_current(old->value), *to = attr_current(new);

	if (!strcmp(from, to)) {
		/* not changed */
	} else if (array) {
		struct json_object *change = json_object_new_object();

		json_add_u64(change, "target", target);
		json_add_text(change, "attribute", old->name);
		json_add_value(change, "from", from);
		json_add_value(change, "to", to);
		json_object_array_add(array, change);
	} else {
		printf("%s: %s -> %s\n", old->name, from, to);
	}
	free(from);
	free(to);
}

/* What can be set, and tau in force, which follows from it; not what moves by itself. */
static void print_changes(int target, const struct kv_list *before, const struct kv_list *after,
			  struct json_object *array)
{
	for (int i = 0; i < before->count; i++) {
		const struct kv *old = &before->items[i];
		const char *new = kv_get(after, old->name);

		if (new && (old->writable || !strcmp(old->name, "tau_us")))
			print_change(target, old, new, array);
	}
}

static int set_target(const struct volume *volume, int target, const struct assignments *list,
		      struct json_object *array)
{
	char *dir = sysfs_target_dir(volume, target);
	struct kv_list before, after;
	struct assignments own;
	int r;

	if (sysfs_read_tree(dir, &before)) {
		if (volume->suspended)
			fail("%s: it is suspended, and can be set only while it runs: dmsetup resume %s",
			     volume->name, volume->name);
		else
			fail("%s: there are no attributes in %s; is /sys mounted?", volume->name,
			     dir);
		free(dir);
		return -1;
	}
	own = copy_of(list);
	r = check_present(volume->name, list, &before);
	if (!r)
		r = resolve_groups(volume, target, &own, array);
	if (!r) {
		r = write_all(volume->name, dir, &own);
		sysfs_read_tree(dir, &after);
		print_changes(target, &before, &after, array);
		kv_free(&after);
	}
	free_copy(&own, list);
	kv_free(&before);
	free(dir);
	return r;
}

/* Who assembles the volume again: its labels if it has any. */
static char *volume_source(const struct volume *volume)
{
	for (int i = 0; i < volume->nr_targets; i++) {
		const char *label = strstr(volume->targets[i].table, " label ");

		if (label)
			return xprintf("UUID=%.*s", (int)strcspn(label + 7, " "), label + 7);
	}
	return xstrdup("none");
}

/* Legs are saved by their numbers: names of devices change. */
static void save_named(struct hedgetab_entry *entry, const struct volume *volume, int target,
		       const struct assignment *a)
{
	for (int i = 0; i < volume->nr_targets; i++) {
		struct assignment found = *a;

		if ((target < 0 || target == i) && !find_leg(volume, i, &found))
			hedgetab_set(entry, volume->nr_targets > 1 ? i : target, &found);
	}
}

static int save(const struct volume *volume, int target, const struct assignments *list)
{
	struct hedgetab tab;
	int lock = hedgetab_lock(), r = -1;
	char *source;

	if (lock >= 0 && !hedgetab_read(&tab)) {
		struct hedgetab_entry *entry;

		source = volume_source(volume);
		entry = hedgetab_add(&tab, volume->name, source);
		for (int i = 0; i < list->count; i++)
			if (list->items[i].device)
				save_named(entry, volume, target, &list->items[i]);
			else
				hedgetab_set(entry, target, &list->items[i]);
		r = hedgetab_write(&tab, lock);
		free(source);
		hedgetab_free(&tab);
	}
	if (lock >= 0)
		close(lock);
	return r;
}

int volume_set_saved(const struct volume *volume, struct json_object *array)
{
	struct hedgetab tab;
	const struct hedgetab_entry *entry;
	int r = 0;

	if (hedgetab_read(&tab))
		return -1;
	entry = hedgetab_find(&tab, volume->name);
	for (int i = 0; entry && !r && i < volume->nr_targets; i++) {
		struct assignments list = { 0 };

		list.items = xcalloc(entry->nr_settings, sizeof(*list.items));
		for (int j = 0; j < entry->nr_settings; j++)
			if (entry->settings[j].target < 0 || entry->settings[j].target == i)
				list.items[list.count++] = entry->settings[j].a;
		r = set_target(volume, i, &list, array);
		free(list.items);
	}
	hedgetab_free(&tab);
	return r;
}

/* Which legs are meant, each once, so that a mistake is seen. */
static int print_legs(const struct volume *volume, int target, const struct assignments *list)
{
	unsigned int named = 0;
	struct status status;

	for (int i = 0; i < list->count; i++)
		if (list->items[i].leg >= 0)
			named |= 1u << list->items[i].leg;
	if (!named)
		return 0;
	if (status_parse(volume->targets[target].status, &status))
		return -1;
	for (int i = 0; i < status.nr_legs; i++) {
		char *disk;

		if (!(named >> i & 1))
			continue;
		disk = device_describe(status.devices[i]);
		printf("leg %d is %s\n", i, disk);
		free(disk);
	}
	status_free(&status);
	return 0;
}

static int set_volume(const struct args *args, const struct volume *volume,
		      const struct assignments *list, int target, struct json_object *array)
{
	int r = 0;

	if (args_has(args, "saved"))
		return volume_set_saved(volume, array);
	if (target >= volume->nr_targets) {
		fail("%s: it has no hedge target %d; the last is %d", volume->name, target,
		     volume->nr_targets - 1);
		return -1;
	}
	if (check_devices(volume, target, list))
		return -1;
	for (int i = 0; !r && i < volume->nr_targets; i++) {
		struct assignments own;

		if (target >= 0 && target != i)
			continue;
		own = of_target(volume, i, list);
		if (!array)
			r = print_legs(volume, i, &own);
		if (!r)
			r = set_target(volume, i, &own, array);
		free(own.items);
	}
	if (!r && args_has(args, "save"))
		r = save(volume, target, list);
	return r;
}

static enum exit_status set(const struct args *args, const struct assignments *list, int target)
{
	struct json_object *array = args_has(args, "json") ? json_object_new_array() : NULL;
	struct volume volume;
	int r;

	if (dm_volume_read(args->operands[0], &volume)) {
		json_object_put(array);
		return FAILED;
	}
	r = set_volume(args, &volume, list, target, array);
	if (array)
		json_print(array);
	volume_free(&volume);
	return r ? FAILED : DONE;
}

static int check_operands(const struct args *args)
{
	bool saved = args_has(args, "saved"), save = args_has(args, "save");

	if (saved && (args->nr_operands > 1 || save || args_has(args, "target")))
		fail("set: --saved takes all from %s, so nothing else can be given",
		     hedgetab_path());
	else if (args->nr_operands == 1 && !saved && !save)
		fail("set: expected ATTR=VALUE, such as tau=2ms, or --saved, which takes it from %s",
		     hedgetab_path());
	else if (args->nr_operands == 1 && args_has(args, "target"))
		fail("set: expected ATTR=VALUE, such as tau=2ms, for --target");
	else
		return 0;
	return -1;
}

static enum exit_status run(const struct args *args)
{
	struct assignments list = { 0 };
	enum exit_status status = USAGE;
	int target;

	if (!check_operands(args) && !args_target(args, &target) && !parse_all(args, &list))
		status = set(args, &list, target);
	free_all(&list);
	return status;
}

static const struct option_def options[] = {
	{ "target", "N", "only the hedge target N of the table (all)" },
	{ "save", NULL, "write it to /etc/hedgetab too; alone: only the volume" },
	{ "saved", NULL, "set what /etc/hedgetab has for the volume" },
	{ NULL, NULL, NULL },
};

const struct command set_command = {
	.name = "set",
	.synopsis = "NAME [--target N] [--save] [leg:LEG.]ATTR=VALUE... | NAME --save|--saved",
	.summary = "Sets attributes of a running volume and prints all that changed",
	.details =
		"Times may be given in s, ms or us (tau=2ms; tau is timeout_us), sizes in K, M or G.\n"
		"leg:1. before an attribute names that of leg 1, leg:/dev/sdb. that of the leg /dev/sdb.\n"
		"A policy changes other attributes too.\n"
		"policy=fcfs-gr (edd-gr) chooses for each hedge target of the table: fcfs-r (edd-r) if its\n"
		"latencies are new-worse-than-used, else fcfs-lpr (edd-lpr).\n"
		"--save writes what is set to /etc/hedgetab, by which the volume is assembled at boot and\n"
		"set. Without ATTR=VALUE it writes that the volume is to be assembled.",
	.options = options,
	.more = attr_help,
	.example = "hedgectl set vol0 policy=slb tau=2ms leg:1.weight=50",
	.min_operands = 1,
	.max_operands = INT_MAX,
	.run = run,
};
