// SPDX-License-Identifier: GPL-2.0
/*
 * hedgectl convert: from dm-mirror to hedge and back, while the device is in use.
 *
 * Both have the same table but for one word, the same logs and the same format of the log on a
 * disk. What is to be seen to is which leg is right where the legs may differ: both take the
 * first of the table to be, so the first must be a leg that holds everything. A leg that is out
 * could not be told from the others afterwards, so with one nothing is converted.
 *
 * A mirror would not keep labels true. They are removed while the device is suspended: then they
 * call the set closed, and all legs hold everything. If the mirror can not be resumed after all,
 * they are put back before the old table is. Should the system stop in between, some legs have
 * their label and the others none: nothing starts by itself, and all hold the same data.
 */
#include <inttypes.h>
#include <json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "labels.h"

static const struct option_def options[] = {
	{ "dry-run", NULL, "print the table that it would get, and change nothing" },
	{ NULL, NULL, NULL },
};

/* Device-mapper UUIDs of those who manage the table themselves. */
static const char *const foreign[] = { "LVM-", "CRYPT-", "mpath-", "DMRAID-", "STRATIS-", NULL };

struct conversion {
	const char *name;
	struct line old, new;
	struct table table;	/* of the new line */
	bool to_hedge;
	bool nosync;		/* the new table says that all is in sync */
	bool labels;		/* that are to be removed */
	uint8_t uuid[HEDGE_UUID_BYTES];
	int nr_taken;
	struct taken taken[MAX_LEGS + 1];	/* the legs, and the log on disk */
};

static bool has_feature(const struct table *table, const char *feature)
{
	char *copy = xstrdup(table->features ? table->features : ""), *rest = copy, *word;
	bool found = false;

	while (!found && (word = next_word(&rest)))
		found = !strcmp(word, feature);
	free(copy);
	return found;
}

static int check_uuid(const struct conversion *c)
{
	for (int i = 0; foreign[i]; i++) {
		if (strncmp(c->old.uuid, foreign[i], strlen(foreign[i])))
			continue;
		fail("%s: its UUID %s says that another program manages its table; convert it with that",
		     c->name, c->old.uuid);
		return -1;
	}
	return 0;
}

static int check_type(struct conversion *c)
{
	if (c->old.many) {
		fail("%s: it has several targets; only a device with one can be converted",
		     c->name);
		return -1;
	}
	c->to_hedge = !strcmp(c->old.type, "mirror");
	if (c->to_hedge || !strcmp(c->old.type, "hedge"))
		return 0;
	fail("%s: its target is \"%s\"; mirror and hedge can be converted", c->name, c->old.type);
	return -1;
}

/* What must be so before, and still when the device is suspended. */
static int check_status(const struct conversion *c, const char *line)
{
	struct status status;
	int r = 0;

	if (status_parse(line, &status))
		return -1;
	for (int i = 0; !r && i < status.nr_legs; i++) {
		if (status.health[i] == 'A')
			continue;
		fail("%s: leg %d (%s) is not healthy (%c); a table of another target could not know what it lacks",
		     c->name, i, status.devices[i], status.health[i]);
		r = -1;
	}
	if (!r && (c->nosync || c->labels) && status.in_sync != status.regions) {
		fail("%s: not all is in sync (%" PRIu64 " of %" PRIu64 " regions); try again when it is",
		     c->name, status.in_sync, status.regions);
		r = -1;
	}
	status_free(&status);
	return r;
}

static bool all_in_sync(const char *line)
{
	struct status status;
	bool r;

	if (status_parse(line, &status))
		return false;
	r = status.in_sync == status.regions;
	status_free(&status);
	return r;
}

/* The first leg that holds everything: both targets copy from the first of the table. */
static int find_default(const struct conversion *c)
{
	struct kv_list attributes = { 0 };
	struct volume volume;
	int leg = 0;
	char *dir;

	if (c->to_hedge)
		return 0;
	if (dm_volume_read(c->name, &volume))
		return -1;
	dir = sysfs_target_dir(&volume, 0);
	if (!dir || sysfs_read_tree(dir, &attributes)) {
		leg = -1;
	} else {
		for (leg = 0; leg < c->table.nr_legs; leg++) {
			char *key = xprintf("legs/%d/state", leg);
			const char *state = kv_get(&attributes, key);

			free(key);
			if (state && !strcmp(state, "in_sync"))
				break;
		}
	}
	if (leg == c->table.nr_legs) {
		fail("%s: no leg is in sync", c->name);
		leg = -1;
	}
	kv_free(&attributes);
	free(dir);
	volume_free(&volume);
	return leg;
}

static int order_legs(struct conversion *c)
{
	int leg = find_default(c);

	if (leg < 0)
		return -1;
	for (; leg > 0; leg--) {
		char *device = c->table.legs[leg].device;
		uint64_t offset = c->table.legs[leg].offset;

		c->table.legs[leg] = c->table.legs[leg - 1];
		c->table.legs[leg - 1].device = device;
		c->table.legs[leg - 1].offset = offset;
	}
	return 0;
}

/* mirror knows these two features, and hedge knows them by the same names. */
static void keep_features(struct table *table)
{
	bool errors = has_feature(table, "handle_errors"), keep = has_feature(table, "keep_log");

	free(table->features);
	table->features = NULL;
	table->nr_features = 0;
	if (errors)
		table_add_feature(table, "handle_errors");
	if (keep)
		table_add_feature(table, "keep_log");
}

/*
 * A disk log goes on as it is. With one in memory, or after a mirror that did not tell of errors,
 * nothing says what is in sync but the status.
 */
static void set_sync(struct conversion *c)
{
	bool blind = c->to_hedge && !has_feature(&c->table, "handle_errors");

	free(c->table.sync);
	c->table.sync = NULL;
	if (blind)
		c->table.sync = xstrdup("sync");
	else if (!c->table.log_device && all_in_sync(c->old.status))
		c->table.sync = xstrdup("nosync");
	c->nosync = c->table.sync && !strcmp(c->table.sync, "nosync");
}

static int plan(struct conversion *c)
{
	if (line_read(c->name, &c->old) || check_type(c) || check_uuid(c) ||
	    table_parse(c->old.table, &c->table))
		return -1;
	c->labels = table_label(&c->table, c->uuid);
	if (check_status(c, c->old.status) || order_legs(c))
		return -1;
	set_sync(c);
	keep_features(&c->table);
	c->new.type = xstrdup(c->to_hedge ? "hedge" : "mirror");
	c->new.sectors = c->old.sectors;
	c->new.table = table_format(&c->table);
	return 0;
}

/* Opens all that has a label or a stamp, while memory may still be waited for. */
static int open_labels(struct conversion *c)
{
	for (int i = 0; i <= c->table.nr_legs; i++) {
		const char *device = i < c->table.nr_legs ? c->table.legs[i].device :
							    c->table.log_device;

		if (device && label_take(device, &c->taken[c->nr_taken++]))
			return -1;
	}
	return 0;
}

/* Postsuspend has written them: the set is closed, and no leg lacks anything. */
static int check_label(const struct conversion *c, const struct taken *taken)
{
	const struct hedge_label *label = &taken->now.found.label;

	if (taken->now.log && !memcmp(taken->now.log_uuid, c->uuid, sizeof(c->uuid)))
		return 0;
	if (taken->now.found.state == HEDGE_LABEL_VALID && !label->open &&
	    label->in == (1U << label->nr_legs) - 1 &&
	    !memcmp(label->uuid, c->uuid, sizeof(c->uuid)))
		return 0;
	fail("%s: %s has no label, or stamp, that says that all is well; nothing is removed",
	     c->name, taken->path);
	return -1;
}

static int remove_labels(struct conversion *c)
{
	for (int i = 0; i < c->nr_taken; i++)
		if (label_read(c->taken[i].path, &c->taken[i].now, false) ||
		    check_label(c, &c->taken[i]))
			return -1;
	for (int i = 0; i < c->nr_taken; i++)
		if (label_take_away(&c->taken[i]))
			return -1;
	return 0;
}

static void restore_labels(void *context)
{
	struct conversion *c = context;

	/* Backwards: one device may have been taken twice, as a leg and as the log. */
	for (int i = c->nr_taken; i--;)
		label_give_back(&c->taken[i]);
}

static int verify(const char *name, void *context)
{
	struct conversion *c = context;
	struct line now;
	int r;

	if (line_read(name, &now))
		return -1;
	r = check_status(c, now.status);
	line_free(&now);
	return r ? r : remove_labels(c);
}

static void report(const struct conversion *c, bool json, bool done)
{
	struct json_object *object;

	if (json) {
		object = json_object_new_object();
		json_add_text(object, "name", c->name);
		json_add_text(object, "from", c->old.type);
		json_add_text(object, "to", c->new.type);
		json_add_u64(object, "start", 0);
		json_add_u64(object, "sectors", c->new.sectors);
		json_add_text(object, "table", c->new.table);
		json_object_object_add(object, "labels_removed",
				       json_object_new_boolean(done && c->labels));
		json_object_object_add(object, "converted", json_object_new_boolean(done));
		json_print(object);
		return;
	}
	printf("0 %" PRIu64 " %s %s\n", c->new.sectors, c->new.type, c->new.table);
	if (c->labels)
		note("%s: its labels %s removed, as a mirror does not keep them true: hedgectl assemble %s not find the legs any more, keep the table line",
		     c->name, done ? "were" : "would be", done ? "does" : "would");
	if (c->table.sync && !strcmp(c->table.sync, "sync"))
		note("%s: the mirror had no handle_errors, so nothing tells whether its legs are equal: all is copied from the first",
		     c->name);
	else if (!c->table.sync && !c->table.log_device)
		note("%s: not all was in sync and the log is in memory: all is copied from the first leg",
		     c->name);
}

static enum exit_status run(const struct args *args)
{
	struct conversion c = { .name = args->operands[0] };
	bool dry = args_has(args, "dry-run");
	int r;

	if (!strncmp(c.name, "/dev/mapper/", 12))
		c.name += 12;
	r = plan(&c);
	if (!r && !dry && c.labels)
		r = open_labels(&c);
	if (!r && !dry)
		r = line_swap(c.name, &c.old, &c.new, verify, restore_labels, &c);
	if (!r)
		report(&c, args_has(args, "json"), !dry);
	if (!r && !dry && c.labels)
		label_note_hedgetab(c.uuid);
	for (int i = 0; i < c.nr_taken; i++)
		label_taken_free(&c.taken[i]);
	line_free(&c.old);
	line_free(&c.new);
	table_free(&c.table);
	return r ? FAILED : DONE;
}

const struct command convert_command = {
	.name = "convert",
	.synopsis = "NAME",
	.summary = "Turns a mirror into a hedged volume, or back, while it is in use",
	.details = "The data, the log and the device stay; only the table is replaced, which takes a moment\n"
		   "in which I/O waits. A leg that is out has to be reinstated or replaced first. From a\n"
		   "volume with labels these are removed when it becomes a mirror.\n",
	.options = options,
	.example = "hedgectl convert vol0",
	.min_operands = 1,
	.max_operands = 1,
	.run = run,
};
