// SPDX-License-Identifier: GPL-2.0
/*
 * hedgectl assemble: finds the legs of a set by their labels, in any order, and starts it.
 *
 * The labels are judged here by the function that the kernel has, so that what it would refuse is
 * explained before. The kernel judges again when it starts the set: it may know better by then.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <json.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hedgetab.h"
#include "labels.h"

struct request {
	const struct args *args;
	const char *name;
	bool has_uuid;
	uint8_t uuid[HEDGE_UUID_BYTES];
	bool given;		/* devices were named */
	bool force, dry_run, json;
	struct labelled_list list;
};

/* A set, its legs by number. */
struct set {
	struct request *request;
	uint8_t uuid[HEDGE_UUID_BYTES];
	char uuid_text[UUID_TEXT];
	const struct hedge_label *newest;
	struct labelled *legs[MAX_LEGS];
	char *log, *log_number;	/* path and major:minor of a disk log, or NULL */
	bool given_up[MAX_LEGS];	/* its label is to be written over */
	struct hedge_label_table table;
	struct hedge_label_found found[MAX_LEGS];
	struct hedge_label_verdict verdict;
};

static bool is_leg(const struct labelled *item)
{
	return item->found.state == HEDGE_LABEL_VALID;
}

static bool has_holder(const struct labelled *item)
{
	char *path = xprintf("/sys/dev/block/%u:%u/holders", item->major, item->minor);
	DIR *dir = opendir(path);
	struct dirent *entry;
	bool found = false;

	while (dir && !found && (entry = readdir(dir)))
		found = entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	free(path);
	return found;
}

static bool same_round(const struct hedge_label *a, const struct hedge_label *b)
{
	return a->round.generation == b->round.generation && a->round.session == b->round.session;
}

/* Puts a device into its place. The same leg may show twice, as a device and as what lies on it. */
static int add_leg(struct set *set, struct labelled *item)
{
	const struct hedge_label *label = &item->found.label;
	struct labelled **place = &set->legs[label->leg];

	if (!*place || (has_holder(*place) && same_round(label, &(*place)->found.label))) {
		*place = item;
	} else if (!has_holder(item) || !same_round(label, &(*place)->found.label)) {
		fail("%s and %s are both leg %u of the set %s: one must be a copy of the other; name the devices to use, or wipe the one that is not (hedgectl examine shows both)",
		     (*place)->path, item->path, label->leg, set->uuid_text);
		return -1;
	}
	if (!set->newest || label->round.generation > set->newest->round.generation)
		set->newest = label;
	return 0;
}

static bool is_of_set(const struct set *set, const struct labelled *item)
{
	return is_leg(item) && !memcmp(item->found.label.uuid, set->uuid, sizeof(set->uuid));
}

/* Whether a leg of another number agrees with the label of a leg: then that one did not go on alone. */
static bool has_witness(const struct set *set, const struct hedge_label *label)
{
	for (int i = 0; i < set->request->list.count; i++) {
		const struct labelled *item = &set->request->list.items[i];

		if (is_of_set(set, item) && item->found.label.leg != label->leg &&
		    same_round(&item->found.label, label))
			return true;
	}
	return false;
}

/* The newest label of a leg that holds everything itself, or NULL. */
static const struct hedge_label *newest_whole(const struct set *set)
{
	const struct hedge_label *newest = NULL;

	for (int i = 0; i < set->request->list.count; i++) {
		const struct hedge_label *label = &set->request->list.items[i].found.label;

		if (is_of_set(set, &set->request->list.items[i]) && label->in >> label->leg & 1 &&
		    label->round.generation &&
		    (!newest || label->round.generation > newest->round.generation))
			newest = label;
	}
	return newest;
}

/* Whether a leg went on without one that a newer label calls in. */
static bool went_on(const struct hedge_label *old, const struct hedge_label *newer)
{
	return newer->in & ~(1u << old->leg) & ~old->in;
}

/*
 * Whether the newest label goes on without the data of a leg, and has a leg of that number copied to. It is the
 * device whose label the kernel has written over for that: it calls legs in, a new one does not.
 */
static bool is_copied_anew(const struct set *set, const struct hedge_label *old)
{
	const struct hedge_label *newest = newest_whole(set);

	return newest && newest->partial >> old->leg & 1 &&
	       old->round.generation < newest->round.generation && !went_on(old, newest);
}

/* Whether the first device has taken the place of the second, which has the same number. */
static bool takes_place(const struct set *set, const struct hedge_label *by,
			const struct hedge_label *old)
{
	if (!by->round.generation && !old->round.generation)
		return by->in && !old->in;
	if (!old->round.generation)
		return !old->in || !is_copied_anew(set, by);
	if (!by->round.generation)
		return by->in && is_copied_anew(set, old);
	return by->round.generation > old->round.generation && !went_on(old, by) &&
	       has_witness(set, by) && !has_witness(set, old);
}

/*
 * The device that has taken the place of this one in the set, or NULL: a leg that was replaced keeps its
 * label. The newer one must be vouched for by another leg, and the older one must not have gone on without
 * legs that are in, nor be vouched for itself, as a leg of a whole set that was copied is: else nobody but a
 * person can tell which to use. What has no data of the set yet counts only while it is being copied to.
 */
static const struct labelled *successor(const struct set *set, const struct labelled *old)
{
	for (int i = 0; i < set->request->list.count; i++) {
		const struct labelled *item = &set->request->list.items[i];

		if (is_of_set(set, item) && item->found.label.leg == old->found.label.leg &&
		    takes_place(set, &item->found.label, &old->found.label))
			return item;
	}
	return NULL;
}

static int collect(struct set *set)
{
	for (int i = 0; i < set->request->list.count; i++) {
		struct labelled *item = &set->request->list.items[i];
		const struct labelled *by;

		if (!is_of_set(set, item))
			continue;
		by = successor(set, item);
		if (by) {
			note(item->found.label.round.generation ?
				     "%s: not used: %s has taken its place as leg %u; hedgectl wipe %s, if it is not needed any more" :
				     "%s: not used: it has no data of the set yet, and %s is leg %u; hedgectl wipe %s, or name the devices to use",
			     item->path, by->path, item->found.label.leg, item->path);
			continue;
		}
		if (add_leg(set, item))
			return -1;
	}
	return 0;
}

/* The leg that --prefer names; -1 if none of this set. */
static int preferred(const struct set *set)
{
	const char *prefer = args_get(set->request->args, "prefer");

	for (int i = 0; prefer && i < MAX_LEGS; i++) {
		char numbers[32];

		if (!set->legs[i])
			continue;
		snprintf(numbers, sizeof(numbers), "%u:%u", set->legs[i]->major,
			 set->legs[i]->minor);
		if (leg_matches(prefer, i, numbers))
			return i;
	}
	return -1;
}

/*
 * Has all legs follow the preferred one: what differs from it is to be copied over. Their labels are
 * changed here only, so that nothing is lost if the set is refused later.
 */
static int apply_preference(struct set *set)
{
	int prefer = preferred(set);
	const struct hedge_label *by;

	if (!args_has(set->request->args, "prefer"))
		return 0;
	if (prefer < 0) {
		fail("--prefer %s: it is no leg of the set %s that was found",
		     args_get(set->request->args, "prefer"), set->uuid_text);
		return -1;
	}
	by = &set->legs[prefer]->found.label;
	if (!by->round.generation || !(by->in >> by->leg & 1)) {
		fail("--prefer %s: this leg does not hold all data itself (hedgectl examine %s); prefer another",
		     set->legs[prefer]->path, set->legs[prefer]->path);
		return -1;
	}
	for (int i = 0; i < MAX_LEGS; i++) {
		struct labelled *leg = set->legs[i];

		if (!leg || same_round(&leg->found.label, by))
			continue;
		set->given_up[i] = true;
		leg->found.label.round.generation = 0;
		leg->found.label.in = 0;
		leg->found.label.partial = 0;
	}
	set->newest = by;
	return 0;
}

/* Once nothing else can refuse the set but the kernel when it starts it. */
static int give_up(const struct set *set)
{
	for (int i = 0; i < MAX_LEGS; i++) {
		const struct labelled *leg = set->legs[i];

		if (!set->given_up[i])
			continue;
		note("%s: its data is given up for that of %s", leg->path,
		     set->legs[preferred(set)]->path);
		if (!set->request->dry_run && label_write(leg->path, &leg->found.label))
			return -1;
	}
	return 0;
}

/* Whether a device lies on the one whose directory in sysfs this is, at any depth: dm-multipath, say. */
static bool lies_on(const char *dir, const struct labelled *upper)
{
	char *holders = xprintf("%s/holders", dir);
	DIR *stream = opendir(holders);
	struct dirent *entry;
	unsigned int major, minor;
	bool found = false;

	while (stream && !found && (entry = readdir(stream))) {
		char *holder = xprintf("%s/%s", holders, entry->d_name);
		char *file = xprintf("%s/dev", holder);
		char *dev = entry->d_name[0] == '.' ? NULL : sysfs_read_file(file, NULL);

		if (dev)
			found = (sscanf(dev, "%u:%u", &major, &minor) == 2 && major == upper->major &&
				 minor == upper->minor) ||
				lies_on(holder, upper);
		free(dev);
		free(file);
		free(holder);
	}
	if (stream)
		closedir(stream);
	free(holders);
	return found;
}

static bool is_log_of(const struct set *set, const struct labelled *item)
{
	return item->log && item->log_stamp == set->newest->log_stamp &&
	       !memcmp(item->log_uuid, set->uuid, sizeof(set->uuid));
}

/* Whether the log that this device has shows on another one too, which lies on it. */
static bool shows_above(const struct set *set, const struct labelled_list *list,
			const struct labelled *item)
{
	char *dir = xprintf("/sys/dev/block/%u:%u", item->major, item->minor);
	bool found = false;

	for (int i = 0; i < list->count && !found; i++)
		found = is_log_of(set, &list->items[i]) && lies_on(dir, &list->items[i]);
	free(dir);
	return found;
}

/* The log with the stamp of the set, if it is on a device of the list; two of them are an error. */
static int look_for_log(struct set *set, const struct labelled_list *list)
{
	const struct labelled *log = NULL;

	for (int i = 0; i < list->count; i++) {
		const struct labelled *item = &list->items[i];

		if (!is_log_of(set, item) || shows_above(set, list, item))
			continue;
		if (log && (log->major != item->major || log->minor != item->minor)) {
			fail("%s and %s both have the log of the set %s: one must be a copy of the other; name the right one with --log disk:DEV, or wipe the other",
			     log->path, item->path, set->uuid_text);
			return -1;
		}
		log = item;
	}
	if (log)
		set->log = xstrdup(log->path);
	return 0;
}

/* The log that was named, or that has the stamp of the set. */
static int find_log(struct set *set)
{
	const char *log = args_get(set->request->args, "log");
	struct labelled_list all = { 0 };
	int r;

	if (log && !strcmp(log, "core"))
		return 0;
	if (log) {
		set->log = xstrdup(log + 5);
		return 0;
	}
	if (!set->newest->log_stamp)
		return 0;
	r = look_for_log(set, &set->request->list);
	if (!r && !set->log && set->request->given && !label_scan(&all))
		r = look_for_log(set, &all);
	labelled_list_free(&all);
	if (!r && !set->log) {
		fail("%s: the disk log of this set (stamp %016" PRIx64
		     ") is on no device that is there; name it with --log disk:DEV, or give --log core: then all legs are copied from one",
		     set->uuid_text, set->newest->log_stamp);
		r = -1;
	}
	return r;
}

static int check_log(struct set *set)
{
	struct labelled log;

	if (!set->log)
		return 0;
	if (label_read(set->log, &log, false))
		return -1;
	if (log.log && !memcmp(log.log_uuid, set->uuid, sizeof(set->uuid)))
		set->table.log_stamp = log.log_stamp;
	if (log.found.state >= HEDGE_LABEL_DAMAGED ||
	    (log.log && memcmp(log.log_uuid, set->uuid, sizeof(set->uuid)))) {
		fail("%s: it is a leg or the log of another set (hedgectl examine %s); name another log",
		     set->log, set->log);
		labelled_free(&log);
		return -1;
	}
	if (set->table.log_stamp != set->newest->log_stamp || !set->table.log_stamp)
		note("%s: it is not the log that belongs to these legs: all are copied from one",
		     set->log);
	set->table.disk_log = true;
	set->log_number = xprintf("%u:%u", log.major, log.minor);
	labelled_free(&log);
	return 0;
}

static const char *leg_text(const struct set *set, unsigned int leg, char *text, size_t size)
{
	snprintf(text, size, "leg %u (%s)", leg,
		 leg < MAX_LEGS && set->legs[leg] ? set->legs[leg]->path : "missing");
	return text;
}

static void explain_fault(const struct set *set)
{
	const struct hedge_label_verdict *v = &set->verdict;
	char leg[PATH_MAX], other[PATH_MAX];

	leg_text(set, v->leg, leg, sizeof(leg));
	leg_text(set, v->other, other, sizeof(other));
	switch (v->fault) {
	case HEDGE_FAULT_SPLIT:
		fail("%s: %s and %s went on without each other: a split brain. Keep the data of one and lose what was written to the other: --prefer %s --force, or --prefer %s --force",
		     set->uuid_text, leg, other, set->legs[v->leg]->path,
		     set->legs[v->other]->path);
		break;
	case HEDGE_FAULT_ALONE:
		fail("%s: %s is not there, and may have gone on alone: what was written to it since would be lost. Connect it, or start without it: --force",
		     set->uuid_text, leg);
		break;
	case HEDGE_FAULT_EMPTY:
		fail("%s: none of the legs that are there holds all the data; connect one that does (hedgectl examine shows which are in)",
		     set->uuid_text);
		break;
	default:
		fail("%s: %s %s", set->uuid_text, v->leg < HEDGE_NO_LEG ? leg : "",
		     hedge_label_fault_text(v->fault));
	}
}

static int judge(struct set *set)
{
	const struct hedge_label *newest = set->newest;

	memcpy(set->table.uuid, set->uuid, sizeof(set->uuid));
	set->table.length = newest->length;
	set->table.nr_legs = newest->nr_legs;
	set->table.region_size = newest->region_size;
	set->table.force = set->request->force;
	for (int i = 0; i < newest->nr_legs; i++) {
		set->found[i].state = HEDGE_LABEL_MISSING;
		if (!set->legs[i])
			continue;
		set->found[i] = set->legs[i]->found;
		set->table.offset[i] = set->legs[i]->found.label.offset;
	}
	hedge_label_judge(&set->table, set->found, &set->verdict);
	if (!set->verdict.fault)
		return 0;
	explain_fault(set);
	return -1;
}

static void find_leg(const struct set *set, struct assignment *a)
{
	for (int i = 0; a->device && i < MAX_LEGS; i++)
		if (set->legs[i] && leg_matches_path(a->device, i, set->legs[i]->path))
			a->leg = i;
}

static int add_features(const struct set *set, struct table *table)
{
	const struct args *args = set->request->args;
	const char *policy = args_get(args, "policy");
	struct assignment a;

	table_add_feature(table, "label %s", set->uuid_text);
	if (set->request->force)
		table_add_feature(table, "force");
	if (policy)
		table_add_feature(table, "policy %s", policy);
	for (int i = 0; i < args->nr_options; i++) {
		if (strcmp(args->options[i].name, "set"))
			continue;
		if (assignment_parse(args->options[i].value, &a))
			return -1;
		find_leg(set, &a);
		if (a.leg == MAX_LEGS) {
			fail("--set %s: it is no leg of the set, or not there",
			     args->options[i].value);
			assignment_free(&a);
			return -1;
		}
		if (a.leg < 0)
			table_add_feature(table, "%s %s", a.name, a.value);
		else
			table_add_feature(table, "leg %d %s %s", a.leg, a.name, a.value);
		assignment_free(&a);
	}
	return 0;
}

static int build_table(const struct set *set, struct table *table)
{
	*table = (struct table){ .nr_legs = set->newest->nr_legs,
				 .region_sectors = set->newest->region_size };
	table->log_type = xstrdup(set->log ? "disk" : "core");
	if (set->log)
		table->log_device = xstrdup(set->log_number);
	for (int i = 0; i < table->nr_legs; i++) {
		const struct labelled *leg = set->legs[i];

		table->legs[i].device = leg ? xprintf("%u:%u", leg->major, leg->minor) :
					      xstrdup("-");
		table->legs[i].offset = leg ? leg->found.label.offset : 0;
	}
	return add_features(set, table);
}

static const char *leg_state(const struct set *set, int leg)
{
	const struct hedge_label_verdict *v = &set->verdict;

	if (!set->legs[leg])
		return "missing: when it is there, stop the volume and assemble it anew; or hedgectl replace";
	if (v->in >> leg & 1)
		return v->equal && v->sync != HEDGE_SYNC_NONE ? "in" :
		       (unsigned int)leg == v->default_leg ? "in, others are compared with it" : "in";
	if (v->partial >> leg & 1)
		return "being brought up to date";
	return v->told >> leg & 1 ? "out: hedgectl reinstate copies what it misses" :
				    "out: hedgectl reinstate copies all of it";
}

static void report(const struct set *set, const char *name, const char *line)
{
	struct json_object *object, *legs;

	if (!set->request->json) {
		for (int i = 0; i < set->newest->nr_legs; i++)
			printf("leg %d: %s, %s\n", i, set->legs[i] ? set->legs[i]->path : "-",
			       leg_state(set, i));
		if (set->request->dry_run)
			printf("dry run, nothing was changed; the table would be\n%s\n", line);
		else
			printf("%s: started, in /dev/mapper/%s\n", name, name);
		return;
	}
	object = json_object_new_object();
	legs = json_object_new_array();
	json_add_text(object, "name", name);
	json_add_text(object, "uuid", set->uuid_text);
	json_object_object_add(object, "started", json_object_new_boolean(!set->request->dry_run));
	json_add_text(object, "table", line);
	for (int i = 0; i < set->newest->nr_legs; i++) {
		struct json_object *leg = json_object_new_object();

		json_add_u64(leg, "leg", i);
		json_add_text(leg, "path", set->legs[i] ? set->legs[i]->path : NULL);
		json_add_text(leg, "state", !set->legs[i] ? "missing" :
			      set->verdict.in >> i & 1 ? "in" :
			      set->verdict.partial >> i & 1 ? "partial" : "out");
		json_object_array_add(legs, leg);
	}
	json_object_object_add(object, "legs", legs);
	json_print(object);
}

/* As it is called at boot, else as it was created. NULL after an error. */
static char *choose_name(const struct set *set)
{
	struct hedgetab tab;
	const char *line;
	char *name;

	if (set->request->name)
		return xstrdup(set->request->name);
	if (hedgetab_read(&tab)) {
		fail("%s: what it is called is not known; give a name before its UUID",
		     set->uuid_text);
		return NULL;
	}
	line = label_hedgetab_name(&tab, set->uuid);
	name = line ? xstrdup(line) : NULL;
	hedgetab_free(&tab);
	if (name)
		return name;
	if (*set->newest->name && dm_name_valid(set->newest->name))
		return xstrdup(set->newest->name);
	return xprintf("hedge-%.8s", set->uuid_text);
}

/* What is set at boot, unless the command says what to start with. */
static int apply_saved(const struct request *request, const char *name)
{
	const struct hedgetab_entry *entry;
	struct json_object *changes;
	struct volume volume;
	struct hedgetab tab;
	int r;

	if (args_has(request->args, "policy") || args_has(request->args, "set"))
		return 0;
	if (hedgetab_read(&tab))
		return -1;
	entry = hedgetab_find(&tab, name);
	r = entry && entry->nr_settings ? dm_volume_read(name, &volume) : 1;
	hedgetab_free(&tab);
	if (r)
		return r < 0 ? -1 : 0;
	changes = request->json ? json_object_new_array() : NULL;
	r = volume_set_saved(&volume, changes);
	json_object_put(changes);
	volume_free(&volume);
	return r;
}

static int start(struct set *set)
{
	char *uuid, *name = choose_name(set);
	struct table table;
	char *params, *line;
	int r;

	if (!name)
		return -1;
	uuid = xprintf("HEDGE-%s", set->uuid_text);
	r = build_table(set, &table);
	params = r ? NULL : table_format(&table);
	line = r ? NULL : xprintf("0 %" PRIu64 " hedge %s", set->newest->length, params);
	if (!r)
		r = dm_name_free(name);
	if (!r && args_has(set->request->args, "prefer"))
		r = dm_table_check(name, uuid, set->newest->length, params) || give_up(set) ? -1 : 0;
	if (!r && !set->request->dry_run)
		r = dm_volume_create(name, uuid, set->newest->length, params);
	if (!r)
		report(set, name, line);
	if (!r && !set->request->dry_run)
		r = apply_saved(set->request, name);
	free(line);
	free(params);
	table_free(&table);
	free(name);
	free(uuid);
	return r;
}

/* With --no-degraded: as long as a leg may still appear, the set is not started without it. */
static int check_complete(const struct set *set)
{
	for (int i = 0; args_has(set->request->args, "no-degraded") && i < set->newest->nr_legs; i++) {
		if (set->legs[i])
			continue;
		fail("%s: leg %d is missing; connect it, or start without it: leave out --no-degraded",
		     set->uuid_text, i);
		return -1;
	}
	return 0;
}

static int assemble_set(struct request *request, const uint8_t *uuid)
{
	struct set set = { .request = request };
	int r;

	memcpy(set.uuid, uuid, sizeof(set.uuid));
	uuid_format(uuid, set.uuid_text);
	if (collect(&set))
		return -1;
	if (!set.newest) {
		fail("%s: no device that is there has a label of this set; hedgectl examine DEV shows labels",
		     set.uuid_text);
		return -1;
	}
	r = check_complete(&set) || apply_preference(&set) || find_log(&set) || check_log(&set) || judge(&set) ||
	    start(&set);
	free(set.log);
	free(set.log_number);
	return r ? -1 : 0;
}

/* The sets that run already, by the UUIDs of their devices. */
static bool is_running(const uint8_t *uuid, const struct volume *volumes, int count)
{
	uint8_t other[HEDGE_UUID_BYTES];

	for (int i = 0; i < count; i++)
		if (volumes[i].uuid && uuid_scan(volumes[i].uuid, other) &&
		    !memcmp(uuid, other, sizeof(other)))
			return true;
	return false;
}

/* A table that changes while it is read is an error, which does not last. */
static int read_volumes(struct volume **volumes, int *count)
{
	for (int tries = 3; dm_volumes_read(volumes, count); tries--) {
		volumes_free(*volumes, *count);
		if (tries == 1)
			return -1;
		nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	}
	return 0;
}

/* All sets in the list, each once. */
static int assemble_all(struct request *request)
{
	const struct labelled_list *list = &request->list;
	struct volume *volumes;
	int count, r = 0, started = 0;

	if (read_volumes(&volumes, &count))
		return -1;
	for (int i = 0; i < list->count; i++) {
		const uint8_t *uuid = list->items[i].found.label.uuid;
		bool seen = !is_leg(&list->items[i]);

		for (int j = 0; j < i && !seen; j++)
			seen = is_leg(&list->items[j]) &&
			       !memcmp(uuid, list->items[j].found.label.uuid, HEDGE_UUID_BYTES);
		if (seen || is_running(uuid, volumes, count))
			continue;
		started++;
		r |= assemble_set(request, uuid);
	}
	volumes_free(volumes, count);
	if (!started && !request->json)
		printf("no set was found that does not run already\n");
	return r;
}

static int read_devices(struct request *request)
{
	const struct args *args = request->args;

	if (!request->given)
		return label_scan(&request->list);
	for (int i = 0; i < args->nr_operands; i++) {
		struct labelled item;

		if (args->operands[i][0] != '/')
			continue;
		if (label_read(args->operands[i], &item, false))
			return -1;
		request->list.items = xrealloc(request->list.items,
					       (request->list.count + 1) * sizeof(item));
		request->list.items[request->list.count++] = item;
		if (!item.log && !is_leg(&item)) {
			fail("%s: it has no label of a set that can be read (hedgectl examine %s says more)",
			     item.path, item.path);
			return -1;
		}
	}
	return 0;
}

/* Devices that were named must all be of one set. */
static int find_uuid(struct request *request)
{
	const struct labelled *first = NULL;
	char uuid[UUID_TEXT], other[UUID_TEXT];

	for (int i = 0; i < request->list.count; i++) {
		const struct labelled *item = &request->list.items[i];

		if (!is_leg(item))
			continue;
		if (request->has_uuid &&
		    memcmp(request->uuid, item->found.label.uuid, sizeof(request->uuid))) {
			uuid_format(request->uuid, uuid);
			uuid_format(item->found.label.uuid, other);
			fail("%s: it is a leg of another set, %s; the set to start is %s%s%s",
			     item->path, other, uuid, first ? " by " : "", first ? first->path : "");
			return -1;
		}
		if (!first)
			first = item;
		request->has_uuid = true;
		memcpy(request->uuid, item->found.label.uuid, sizeof(request->uuid));
	}
	if (request->has_uuid)
		return 0;
	fail("no leg among the devices; name at least one");
	return -1;
}

/* A name alone: the set is that of its line in hedgetab. */
static int find_saved(struct request *request)
{
	const struct hedgetab_entry *entry;
	struct hedgetab tab;

	if (hedgetab_read(&tab))
		return -1;
	entry = hedgetab_find(&tab, request->name);
	request->has_uuid = entry && !strncmp(entry->source, "UUID=", 5) &&
			    uuid_scan(entry->source + 5, request->uuid);
	if (!request->has_uuid)
		fail("%s: %s has no UUID for it; name the UUID of its set, or its devices, or look for all sets with --scan",
		     request->name, hedgetab_path());
	hedgetab_free(&tab);
	return request->has_uuid ? 0 : -1;
}

static int parse_operands(struct request *request)
{
	const struct args *args = request->args;
	const char *log = args_get(args, "log");
	uint8_t uuid[HEDGE_UUID_BYTES];

	for (int i = 0; i < args->nr_operands; i++) {
		const char *word = args->operands[i];

		if (word[0] == '/') {
			request->given = true;
		} else if (uuid_scan(word, uuid)) {
			if (request->has_uuid) {
				fail("\"%s\": one set is started at a time: name one UUID, or start all with --scan",
				     word);
				return -1;
			}
			memcpy(request->uuid, uuid, sizeof(uuid));
			request->has_uuid = true;
		} else if (i == 0 && dm_name_valid(word)) {
			request->name = word;
		} else {
			fail("\"%s\": expected the UUID of a set, or the path of a device%s", word,
			     i ? "" : ", or a name for the volume first");
			return -1;
		}
	}
	if (args_has(args, "scan") && (request->given || request->has_uuid)) {
		fail("--scan looks for all sets: name no UUID and no device with it");
		return -1;
	}
	if (!args_has(args, "scan") && !args->nr_operands) {
		fail("name the UUID of a set, or its devices, or a volume of %s, or look for all with --scan",
		     hedgetab_path());
		return -1;
	}
	if (args_has(args, "scan") && request->name) {
		fail("\"%s\": --scan starts all sets, each with its own name; leave this out, or name a UUID or devices",
		     request->name);
		return -1;
	}
	if (log && strcmp(log, "core") && (strncmp(log, "disk:", 5) || !log[5])) {
		fail("--log %s: expected core (in memory) or disk:DEV", log);
		return -1;
	}
	if (args_has(args, "prefer") && !args_has(args, "force")) {
		fail("--prefer gives up what was written to other legs: it needs --force too");
		return -1;
	}
	return 0;
}

static enum exit_status run(const struct args *args)
{
	struct request request = { .args = args };
	int r;

	request.force = args_has(args, "force");
	request.dry_run = args_has(args, "dry-run");
	request.json = args_has(args, "json");
	if (parse_operands(&request))
		return USAGE;
	if (request.name && !request.given && !request.has_uuid && find_saved(&request))
		return FAILED;
	r = read_devices(&request);
	if (!r && request.given)
		r = find_uuid(&request);
	if (!r)
		r = args_has(args, "scan") ? assemble_all(&request) :
					     assemble_set(&request, request.uuid);
	labelled_list_free(&request.list);
	return r ? FAILED : DONE;
}

static const struct option_def options[] = {
	{ "scan", NULL, "start all sets that are found" },
	{ "force", NULL, "start without legs that may have gone on alone" },
	{ "no-degraded", NULL, "only start with all legs" },
	{ "prefer", "DEV", "in a split brain, keep the data of this leg" },
	{ "log", "core|disk:DEV", "another log than the one that is found" },
	{ "policy", "P", "the preset to start with (fcfs-lpr)" },
	{ "set", "ATTR=VALUE", "an attribute to start with; may be repeated" },
	{ "dry-run", NULL, "say what would be done, change nothing" },
	{ NULL, NULL, NULL },
};

const struct command assemble_command = {
	.name = "assemble",
	.synopsis = "NAME | [NAME] UUID|DEV... | --scan [OPTION]...",
	.summary = "Starts a set of legs that have labels",
	.details =
		"The legs are found by their labels, and may be named in any order. A leg that lacks\n"
		"writes is out, and reinstate brings it back. One that is missing is out too, until it\n"
		"is there and the volume was stopped and assembled anew, or replace puts another in its\n"
		"place. What may lose data is refused: a leg that may have gone on alone and is not\n"
		"there (--force), or legs that went on without each other (--prefer DEV --force). The\n"
		"log on disk is found by its stamp. Without NAME the volume is called as in /etc/hedgetab,\n"
		"or as it was created; NAME alone is that of a line there. Without --policy and --set it\n"
		"is set as /etc/hedgetab says.",
	.options = options,
	.example = "hedgectl assemble vol0 /dev/nvme1n1 /dev/nvme0n1",
	.min_operands = 0,
	.max_operands = INT_MAX,
	.run = run,
};
