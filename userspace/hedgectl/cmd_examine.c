// SPDX-License-Identifier: GPL-2.0
/*
 * hedgectl examine: shows the label of a leg, or the stamp of a log, and hedgectl wipe: removes it.
 */
#include <inttypes.h>
#include <json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "labels.h"

/* "0 2" of a mask of legs. */
static const char *leg_numbers(unsigned int legs, char *text, size_t size)
{
	size_t n = 0;

	snprintf(text, size, "none");
	for (int i = 0; i < MAX_LEGS; i++)
		if (legs >> i & 1)
			n += snprintf(text + n, size - n, "%s%d", n ? " " : "", i);
	return text;
}

static unsigned int out_legs(const struct hedge_label *label)
{
	return ((1u << label->nr_legs) - 1) & ~(label->in | label->partial);
}

static const char *own_state(const struct hedge_label *label)
{
	if (!label->round.generation)
		return "has no data of the set yet";
	if (label->in >> label->leg & 1)
		return "held every acknowledged write when this was written";
	return "was being brought up to date: holds a mixture";
}

static void print_label(const struct labelled *leg)
{
	const struct hedge_label *label = &leg->found.label;
	char uuid[UUID_TEXT], size[SIZE_TEXT], legs[32];

	uuid_format(label->uuid, uuid);
	printf("%s: leg %u of %u of the set %s%s%s%s\n", leg->path, label->leg, label->nr_legs, uuid,
	       *label->name ? " (" : "", label->name, *label->name ? ")" : "");
	printf("  %s\n", own_state(label));
	printf("  %s, generation %" PRIu64 ", session %016" PRIx64 ", slot %u at sector %" PRIu64 "\n",
	       label->open ? "open: in use, or it has crashed" : "closed", label->round.generation,
	       label->round.session, leg->found.slot, leg->sector);
	printf("  legs that are in: %s", leg_numbers(label->in, legs, sizeof(legs)));
	printf(", partial: %s", leg_numbers(label->partial, legs, sizeof(legs)));
	printf(", out: %s, default: %u\n", leg_numbers(out_legs(label), legs, sizeof(legs)),
	       label->default_leg);
	for (int i = 0; i < label->nr_legs; i++)
		if (!(label->in >> i & 1))
			printf("  leg %d was last known with generation %" PRIu64
			       ", and last sent %" PRIu64 "\n",
			       i, label->known[i].generation, label->sent[i].generation);
	printf("  data: %s at sector %" PRIu64 ", regions of %s\n",
	       format_size(label->length * SECTOR, size, sizeof(size)), label->offset,
	       format_size((uint64_t)label->region_size * SECTOR, legs, sizeof(legs)));
	if (label->log_stamp)
		printf("  log: a disk log with the stamp %016" PRIx64 "\n", label->log_stamp);
	else
		printf("  log: none on disk\n");
}

static void add_mask(struct json_object *object, const char *key, unsigned int legs)
{
	struct json_object *array = json_object_new_array();

	for (int i = 0; i < MAX_LEGS; i++)
		if (legs >> i & 1)
			json_object_array_add(array, json_object_new_int(i));
	json_object_object_add(object, key, array);
}

static void add_hex(struct json_object *object, const char *key, uint64_t value)
{
	char text[17];

	snprintf(text, sizeof(text), "%016" PRIx64, value);
	json_add_text(object, key, value ? text : NULL);
}

static void json_label(const struct labelled *leg)
{
	struct json_object *object = json_object_new_object(), *known = json_object_new_array();
	const struct hedge_label *label = &leg->found.label;
	char uuid[UUID_TEXT];

	uuid_format(label->uuid, uuid);
	json_add_text(object, "path", leg->path);
	json_add_text(object, "kind", "leg");
	json_add_text(object, "uuid", uuid);
	json_add_text(object, "name", *label->name ? label->name : NULL);
	json_add_u64(object, "leg", label->leg);
	json_add_u64(object, "legs", label->nr_legs);
	json_add_u64(object, "generation", label->round.generation);
	add_hex(object, "session", label->round.session);
	json_object_object_add(object, "open", json_object_new_boolean(label->open));
	add_mask(object, "in", label->in);
	add_mask(object, "partial", label->partial);
	add_mask(object, "out", out_legs(label));
	json_add_u64(object, "default_leg", label->default_leg);
	for (int i = 0; i < label->nr_legs; i++)
		json_object_array_add(known, json_object_new_int64(label->known[i].generation));
	json_object_object_add(object, "known_generations", known);
	json_add_u64(object, "bytes", label->length * SECTOR);
	json_add_u64(object, "offset_sectors", label->offset);
	json_add_u64(object, "region_bytes", (uint64_t)label->region_size * SECTOR);
	add_hex(object, "log_stamp", label->log_stamp);
	json_add_u64(object, "label_sector", leg->sector);
	json_add_u64(object, "slot", leg->found.slot);
	json_print(object);
}

static void show_log(const struct labelled *log, bool json)
{
	char uuid[UUID_TEXT];

	uuid_format(log->log_uuid, uuid);
	if (json) {
		struct json_object *object = json_object_new_object();

		json_add_text(object, "path", log->path);
		json_add_text(object, "kind", "log");
		json_add_text(object, "uuid", uuid);
		add_hex(object, "log_stamp", log->log_stamp);
		json_print(object);
	} else {
		printf("%s: the log of the set %s, with the stamp %016" PRIx64 "\n", log->path, uuid,
		       log->log_stamp);
	}
}

static int check_found(const struct labelled *labelled)
{
	if (labelled->log)
		return 0;
	switch (labelled->found.state) {
	case HEDGE_LABEL_VALID:
		return 0;
	case HEDGE_LABEL_DAMAGED:
		fail("%s: there is a label at sector %" PRIu64
		     ", but it is damaged in both of its slots; the other legs of its set can be assembled without it",
		     labelled->path, labelled->sector);
		return -1;
	case HEDGE_LABEL_UNKNOWN:
		fail("%s: there is a label that this hedgectl does not know; use the version that made it",
		     labelled->path);
		return -1;
	default:
		fail("%s: there is no label at its end (sector %" PRIu64
		     "), and it is no log of a set either",
		     labelled->path, labelled->sector);
		return -1;
	}
}

/* With --any: a label of which nothing is known but that it is one. */
static void show_unread(const struct labelled *labelled, bool json)
{
	bool damaged = labelled->found.state == HEDGE_LABEL_DAMAGED;
	struct json_object *object;

	if (!json) {
		printf("%s: a label at sector %" PRIu64 " that %s\n", labelled->path, labelled->sector,
		       damaged ? "is damaged" : "this hedgectl does not know");
		return;
	}
	object = json_object_new_object();
	json_add_text(object, "path", labelled->path);
	json_add_text(object, "kind", damaged ? "damaged" : "unknown");
	json_add_u64(object, "label_sector", labelled->sector);
	json_print(object);
}

static enum exit_status examine(const struct args *args)
{
	enum exit_status status = FAILED;
	struct labelled labelled;
	bool json = args_has(args, "json");

	if (label_read(args->operands[0], &labelled, false))
		return FAILED;
	if (args_has(args, "any") && (labelled.found.state == HEDGE_LABEL_DAMAGED ||
				      labelled.found.state == HEDGE_LABEL_UNKNOWN)) {
		show_unread(&labelled, json);
		status = DONE;
	} else if (!check_found(&labelled)) {
		if (labelled.log)
			show_log(&labelled, json);
		else if (json)
			json_label(&labelled);
		else
			print_label(&labelled);
		status = DONE;
	}
	labelled_free(&labelled);
	return status;
}

static const struct option_def examine_options[] = {
	{ "any", NULL, "a label that can not be read counts too" },
	{ NULL, NULL, NULL },
};

const struct command examine_command = {
	.name = "examine",
	.synopsis = "[--any] DEV",
	.summary = "Shows the label of a leg, or the stamp of a log",
	.details = "It only reads, and may be used while the volume runs.",
	.options = examine_options,
	.example = "hedgectl examine /dev/nvme0n1",
	.min_operands = 1,
	.max_operands = 1,
	.run = examine,
};

/* Which disk it is, before anything is written to it. */
static void show_disk(const struct labelled *labelled)
{
	char *number = xprintf("%u:%u", labelled->major, labelled->minor);
	char *model = device_model(number), *serial = device_serial(number);

	if (model || serial) {
		printf("%s: %s%s%s\n", labelled->path, model ? model : "a disk",
		       serial ? ", serial " : "", serial ? serial : "");
		fflush(stdout);
	}
	free(serial);
	free(model);
	free(number);
}

static enum exit_status wipe(const struct args *args)
{
	const char *path = args->operands[0];
	enum exit_status status = FAILED;
	struct labelled labelled;
	char uuid[UUID_TEXT];

	if (label_read(path, &labelled, false))
		return FAILED;
	if (!labelled.log && labelled.found.state < HEDGE_LABEL_DAMAGED) {
		check_found(&labelled);
		labelled_free(&labelled);
		return FAILED;
	}
	if (!args_has(args, "json"))
		show_disk(&labelled);
	if (!label_wipe(path, &labelled)) {
		if (args_has(args, "json")) {
			struct json_object *object = json_object_new_object();

			json_add_text(object, "path", path);
			json_add_text(object, "wiped", labelled.log ? "stamp" : "label");
			json_print(object);
		} else if (labelled.log) {
			printf("%s: the stamp is gone; the set will not believe this log any more\n", path);
		} else if (labelled.found.state == HEDGE_LABEL_VALID) {
			uuid_format(labelled.found.label.uuid, uuid);
			printf("%s: the label is gone; it was leg %u of the set %s. The data is left as it is.\n",
			       path, labelled.found.label.leg, uuid);
		} else {
			printf("%s: the label is gone. The data is left as it is.\n", path);
		}
		if (!labelled.log && labelled.found.state == HEDGE_LABEL_VALID)
			label_note_hedgetab(labelled.found.label.uuid);
		status = DONE;
	}
	labelled_free(&labelled);
	return status;
}

const struct command wipe_command = {
	.name = "wipe",
	.synopsis = "DEV",
	.summary = "Removes the label of a leg, or the stamp of a log",
	.details = "The data is left as it is. A device that is in use is refused.",
	.options = no_options,
	.example = "hedgectl wipe /dev/nvme1n1",
	.min_operands = 1,
	.max_operands = 1,
	.run = wipe,
};
