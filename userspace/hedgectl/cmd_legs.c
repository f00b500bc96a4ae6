// SPDX-License-Identifier: GPL-2.0
/*
 * hedgectl fail, reinstate and replace: takes a leg out, brings it back, puts another device in its
 * place. A leg is named by its number or its device; which disk that is, is said before anything
 * happens to it.
 */
#include <inttypes.h>
#include <json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "labels.h"

struct leg_request {
	const struct args *args;
	struct volume volume;
	struct target *target;
	struct table table;
	struct status status;
	int leg;
	char *disk;	/* for people: device, model, serial */
	bool json;
};

static void request_free(struct leg_request *request)
{
	table_free(&request->table);
	status_free(&request->status);
	volume_free(&request->volume);
	free(request->disk);
}

/* DONE if the device has the target that is meant. */
static enum exit_status find_target(struct leg_request *request)
{
	int target;

	if (args_target(request->args, &target))
		return USAGE;
	if (target < 0 && request->volume.nr_targets > 1) {
		fail("%s: it has %d hedge targets; say which with --target", request->volume.name,
		     request->volume.nr_targets);
		return USAGE;
	}
	target = target < 0 ? 0 : target;
	if (target >= request->volume.nr_targets) {
		fail("--target %d: %s has no such hedge target; the last is %d", target,
		     request->volume.name, request->volume.nr_targets - 1);
		return USAGE;
	}
	request->target = &request->volume.targets[target];
	return DONE;
}

/* A leg for people: its name, model and serial number. */
static char *describe(const char *device)
{
	char *model = device_model(device), *serial = device_serial(device), *text;
	char label[128];
	unsigned int major, minor;

	if (sscanf(device, "%u:%u", &major, &minor) == 2)
		device_label(major, minor, label, sizeof(label));
	else
		snprintf(label, sizeof(label), "%s", strcmp(device, "-") ? device : "missing");
	text = xprintf("%s%s%s%s%s", label, model ? ", " : "", model ? model : "",
		       serial ? ", serial " : "", serial ? serial : "");
	free(model);
	free(serial);
	return text;
}

static int find_leg(struct leg_request *request)
{
	const char *wanted = request->args->operands[1];

	for (int i = 0; i < request->table.nr_legs; i++) {
		if (!leg_matches(wanted, i, request->table.legs[i].device))
			continue;
		request->leg = i;
		request->disk = describe(request->table.legs[i].device);
		return 0;
	}
	fail("%s: it has no leg %s; legs are 0 to %d, or named by their devices (hedgectl show %s)",
	     request->volume.name, wanted, request->table.nr_legs - 1, request->volume.name);
	return -1;
}

static enum exit_status request_read(const struct args *args, struct leg_request *request)
{
	enum exit_status status;

	*request = (struct leg_request){ .args = args, .json = args_has(args, "json") };
	if (dm_volume_read(args->operands[0], &request->volume))
		return FAILED;
	status = find_target(request);
	if (status == DONE &&
	    (table_parse(request->target->table, &request->table) ||
	     status_parse(request->target->status, &request->status) || find_leg(request)))
		status = FAILED;
	if (status != DONE)
		request_free(request);
	return status;
}

static int send_message(const struct leg_request *request, const char *word)
{
	char *message = xprintf("%s %d", word, request->leg);
	int r = dm_message(&request->volume, request->target->index, message);

	free(message);
	return r;
}

static void report(const struct leg_request *request, const char *done)
{
	struct json_object *object;

	if (!request->json) {
		printf("%s: leg %d (%s) %s\n", request->volume.name, request->leg, request->disk,
		       done);
		return;
	}
	object = json_object_new_object();
	json_add_text(object, "name", request->volume.name);
	json_add_u64(object, "target", request->target->index);
	json_add_u64(object, "leg", request->leg);
	json_add_text(object, "device", request->table.legs[request->leg].device);
	json_add_text(object, "disk", request->disk);
	json_add_text(object, "done", done);
	json_print(object);
}

static enum exit_status run_message(const struct args *args, const char *word, const char *done)
{
	struct leg_request request;
	enum exit_status status = request_read(args, &request);
	int r;

	if (status != DONE)
		return status;
	r = send_message(&request, word);
	if (!r)
		report(&request, done);
	request_free(&request);
	return r ? FAILED : DONE;
}

static enum exit_status run_fail(const struct args *args)
{
	return run_message(args, "fail", "is taken out");
}

static enum exit_status run_reinstate(const struct args *args)
{
	return run_message(args, "reinstate", "comes back: what it misses is copied to it");
}

static const struct option_def message_options[] = {
	{ "target", "N", "of a device with several hedge targets" },
	{ NULL, NULL, NULL },
};

const struct command fail_command = {
	.name = "fail",
	.synopsis = "NAME LEG",
	.summary = "Takes a leg out: it is neither read nor written any more",
	.details = "LEG is a number or a device. The last leg that holds everything is refused.",
	.options = message_options,
	.example = "hedgectl fail vol0 /dev/nvme1n1",
	.min_operands = 2,
	.max_operands = 2,
	.run = run_fail,
};

const struct command reinstate_command = {
	.name = "reinstate",
	.synopsis = "NAME LEG",
	.summary = "Brings a leg back that was out, and copies to it what it misses",
	.details = "LEG is a number or a device. hedgectl show tells how far the copy is.",
	.options = message_options,
	.example = "hedgectl reinstate vol0 1",
	.min_operands = 2,
	.max_operands = 2,
	.run = run_reinstate,
};

/* --- replace --------------------------------------------------------------------- */

static int check_new(const struct leg_request *request, const struct device *device,
		     const struct labelled *labelled, bool label)
{
	uint64_t need = request->target->sectors * SECTOR;
	bool force = args_has(request->args, "force");
	char uuid[UUID_TEXT];

	if (label)
		need = hedge_label_sector(0, request->target->sectors) * SECTOR + HEDGE_LABEL_BYTES;
	if (device->bytes < need) {
		fail("%s: it has %" PRIu64 " bytes, a leg of %s needs %" PRIu64, device->path,
		     device->bytes, request->volume.name, need);
		return -1;
	}
	if (device->signature && !force) {
		fail("%s: it holds %s, which would be overwritten; --force if that is intended",
		     device->path, device->signature);
		return -1;
	}
	if (labelled->found.state == HEDGE_LABEL_VALID && !force) {
		uuid_format(labelled->found.label.uuid, uuid);
		fail("%s: it is a leg of the set %s, whose data on it would be overwritten; --force if that is intended",
		     device->path, uuid);
		return -1;
	}
	return 0;
}

/* A label that says: a leg of this set, without any data yet. */
static int label_new(const struct leg_request *request, const char *path, const uint8_t *uuid)
{
	struct hedge_label label = {
		.length = request->target->sectors,
		.region_size = request->table.region_sectors,
		.nr_legs = request->table.nr_legs,
	};
	bool taken[MAX_LEGS] = { false };
	struct labelled other;

	memcpy(label.uuid, uuid, sizeof(label.uuid));
	/* The number in the set that no other leg has: tables may list legs in any order. */
	for (int i = 0; i < request->table.nr_legs; i++) {
		if (i == request->leg || label_read_number(request->table.legs[i].device, &other))
			continue;
		if (other.found.state == HEDGE_LABEL_VALID)
			taken[other.found.label.leg] = true;
		labelled_free(&other);
	}
	label.leg = request->leg;
	if (taken[label.leg])
		for (label.leg = 0; taken[label.leg]; label.leg++)
			;
	return label_write(path, &label);
}

static bool is_out(const struct leg_request *request)
{
	char *dir = sysfs_target_dir(&request->volume, request->target->index);
	char *path = xprintf("%s/legs/%d/state", dir ? dir : "", request->leg);
	char *state = sysfs_read_file(path, NULL);
	bool out = state && !strncmp(state, "failed", 6);

	free(state);
	free(path);
	free(dir);
	return out;
}

static int exchange(struct leg_request *request, const struct device *device)
{
	char *params;
	int r;

	free(request->table.legs[request->leg].device);
	request->table.legs[request->leg].device =
		xprintf("%u:%u", device->major, device->minor);
	request->table.legs[request->leg].offset = 0;
	params = table_format(&request->table);
	r = dm_volume_reload(request->volume.name, request->target->sectors, params);
	free(params);
	return r;
}

static int replace(struct leg_request *request, struct device *device)
{
	uint8_t uuid[HEDGE_UUID_BYTES];
	bool label = table_label(&request->table, uuid);
	struct labelled labelled;
	int r;

	if (request->volume.sectors != request->target->sectors) {
		fail("%s: it is made of several targets; replace can not change such a table",
		     request->volume.name);
		return -1;
	}
	if (label_read(device->path, &labelled, false))
		return -1;
	r = check_new(request, device, &labelled, label);
	labelled_free(&labelled);
	if (r)
		return r;
	/* First out, so that the labels of the others do not wait for it. */
	if (!is_out(request) && send_message(request, "fail"))
		return -1;
	device_release(device);
	if (label && label_new(request, device->path, uuid))
		return -1;
	if (exchange(request, device))
		return -1;
	return label ? send_message(request, "reinstate") : 0;
}

static enum exit_status run_replace(const struct args *args)
{
	struct leg_request request;
	enum exit_status status = request_read(args, &request);
	struct device device;
	int r = -1;

	if (status != DONE)
		return status;
	if (!device_open(args->operands[2], &device)) {
		if (!request.json)
			printf("%s: leg %d (%s) is replaced by %s%s%s%s%s\n", request.volume.name,
			       request.leg, request.disk, device.path, device.model ? ", " : "",
			       device.model ? device.model : "", device.serial ? ", serial " : "",
			       device.serial ? device.serial : "");
		r = replace(&request, &device);
		device_free(&device);
	}
	if (!r) {
		free(request.disk);
		request.disk = xstrdup(args->operands[2]);
		report(&request, "takes its place: all of the data is copied to it");
	}
	request_free(&request);
	return r ? FAILED : DONE;
}

static const struct option_def replace_options[] = {
	{ "force", NULL, "accept a device that holds data" },
	{ "target", "N", "of a device with several hedge targets" },
	{ NULL, NULL, NULL },
};

const struct command replace_command = {
	.name = "replace",
	.synopsis = "NAME LEG NEWDEV",
	.summary = "Puts another device in the place of a leg, while the volume runs",
	.details =
		"LEG is a number or a device. It is taken out first if it is not out yet, and all of\n"
		"the data is copied to NEWDEV from the other legs.",
	.options = replace_options,
	.example = "hedgectl replace vol0 1 /dev/nvme2n1",
	.min_operands = 3,
	.max_operands = 3,
	.run = run_replace,
};
