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
#include <time.h>
#include <unistd.h>

#include "labels.h"

#define BACK_SECONDS 5	/* in which the kernel brings a leg back, or does not */
#define TURN_US 200000
#define AWAY_TURNS 25	/* that a running volume may lack the leg, after a resume */

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

static int find_leg(struct leg_request *request)
{
	const char *wanted = request->args->operands[1];

	for (int i = 0; i < request->table.nr_legs; i++) {
		if (!leg_matches(wanted, i, request->table.legs[i].device))
			continue;
		request->leg = i;
		request->disk = device_describe(request->table.legs[i].device);
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

/* An attribute of the leg, NULL while suspended. */
static char *leg_attribute(const struct leg_request *request, const char *name)
{
	char *dir = sysfs_target_dir(&request->volume, request->target->index);
	char *path = xprintf("%s/legs/%d/%s", dir, request->leg, name);
	char *text = sysfs_read_file(path, NULL);

	if (text)
		text[strcspn(text, "\n")] = '\0';
	free(path);
	free(dir);
	return text;
}

/* in_sync, resync or failed */
static char *leg_state(const struct leg_request *request)
{
	return leg_attribute(request, "state");
}

static bool is_out(const struct leg_request *request)
{
	char *state = leg_state(request);
	bool out = state && !strcmp(state, "failed");

	free(state);
	return out;
}

static bool is_back(const struct leg_request *request)
{
	char *state = leg_state(request);
	bool back = state && strcmp(state, "failed");

	free(state);
	return back;
}

/*
 * The kernel takes the message and then looks at the leg and its label: what it thinks of them
 * shows in the state of the leg, and why in the kernel log.
 */
static int bring_back(const struct leg_request *request)
{
	int kmsg = kmsg_begin();

	if (send_message(request, "reinstate")) {
		kmsg_end(kmsg);
		return -1;
	}
	for (int i = 0; i < BACK_SECONDS * 20; i++) {
		if (is_back(request)) {
			kmsg_end(kmsg);
			return 0;
		}
		usleep(50000);
	}
	fail("%s: leg %d has not come back within %d s: the kernel refused it, or it does not answer",
	     request->volume.name, request->leg, BACK_SECONDS);
	kmsg_report(kmsg);
	return -1;
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* What a copy had to do when it was first looked at. */
struct copy {
	double began;
	uint64_t missed;
	bool known;
};

/* For a terminal. */
static void show_copy(const struct leg_request *request, struct copy *copy)
{
	char *missed = leg_attribute(request, "missed"), *bar, *line;
	uint64_t left, all = request->status.regions;
	double now = seconds_now(), rate = 0;

	if (missed && !parse_number(missed, &left) && left <= all) {
		if (!copy->known)
			*copy = (struct copy){ now, left, true };
		if (left < copy->missed && now > copy->began)
			rate = (double)(copy->missed - left) / (now - copy->began);
		bar = format_progress(all - left, all, rate);
		line = xprintf("%s: leg %d %s", request->volume.name, request->leg, bar);
		fprintf(stderr, "\r%-79s", line);
		free(line);
		free(bar);
	}
	free(missed);
}

/* A volume has no attributes while it is suspended, and none of a leg that a reload removed. */
static int wait_away(const struct leg_request *request, int *turns)
{
	struct volume now;

	if (dm_volume_read(request->volume.name, &now))
		return -1;
	*turns = now.suspended ? 0 : *turns + 1;
	volume_free(&now);
	if (*turns < AWAY_TURNS)
		return 0;
	fail("%s: can not read how far leg %d is; its table was changed", request->volume.name,
	     request->leg);
	return -1;
}

/* Until the leg has everything. */
static int wait_copied(const struct leg_request *request)
{
	bool tty = isatty(STDERR_FILENO), done = false;
	struct copy copy = { 0 };
	int away = 0, r = 0;

	while (!r && !done) {
		char *state = leg_state(request);

		if (!state) {
			r = wait_away(request, &away);
		} else if (!strcmp(state, "failed")) {
			fail("%s: leg %d went out again while it was copied to; the kernel log tells why",
			     request->volume.name, request->leg);
			r = -1;
		} else {
			away = 0;
			done = !strcmp(state, "in_sync");
		}
		free(state);
		if (r || done)
			break;
		if (tty)
			show_copy(request, &copy);
		usleep(TURN_US);
	}
	if (tty)
		fprintf(stderr, "\r%79s\r", "");
	return r;
}

/* Which disk it is, before anything happens to it. */
static void announce(const struct leg_request *request)
{
	if (request->json)
		return;
	printf("%s: leg %d is %s\n", request->volume.name, request->leg, request->disk);
	fflush(stdout);
}

static void report(const struct leg_request *request, const char *done)
{
	struct json_object *object;

	if (!request->json) {
		printf("%s: leg %d %s\n", request->volume.name, request->leg, done);
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

/* The end of reinstate and replace: what was begun, and, with --wait, its end. */
static int report_copy(const struct leg_request *request, const char *begun)
{
	bool wait = args_has(request->args, "wait");

	if (!wait || !request->json)
		report(request, begun);
	fflush(stdout);
	if (!wait)
		return 0;
	if (wait_copied(request))
		return -1;
	report(request, "has all data");
	return 0;
}

static int take_out(const struct leg_request *request)
{
	return send_message(request, "fail");
}

static enum exit_status run_fail(const struct args *args)
{
	struct leg_request request;
	enum exit_status status = request_read(args, &request);
	int r;

	if (status != DONE)
		return status;
	announce(&request);
	r = take_out(&request);
	if (!r)
		report(&request, "is taken out");
	request_free(&request);
	return r ? FAILED : DONE;
}

static enum exit_status run_reinstate(const struct args *args)
{
	struct leg_request request;
	enum exit_status status = request_read(args, &request);
	int r;

	if (status != DONE)
		return status;
	announce(&request);
	r = bring_back(&request) ||
	    report_copy(&request, "comes back: what it misses is copied to it");
	request_free(&request);
	return r ? FAILED : DONE;
}

static const struct option_def fail_options[] = {
	{ "target", "N", "of a device with several hedge targets" },
	{ NULL, NULL, NULL },
};

static const struct option_def reinstate_options[] = {
	{ "wait", NULL, "until it has all data; on a terminal with progress" },
	{ "target", "N", "of a device with several hedge targets" },
	{ NULL, NULL, NULL },
};

const struct command fail_command = {
	.name = "fail",
	.synopsis = "NAME LEG",
	.summary = "Takes a leg out: it is neither read nor written any more",
	.details = "LEG is a number or a device. The last leg that holds everything is refused.",
	.options = fail_options,
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
	.options = reinstate_options,
	.example = "hedgectl reinstate vol0 1 --wait",
	.min_operands = 2,
	.max_operands = 2,
	.run = run_reinstate,
};

/* --- replace --------------------------------------------------------------------- */

/* Larger blocks than those of the volume could not be written in part. */
static int check_block(const struct leg_request *request, const struct device *device)
{
	char *text = sysfs_device_attr(request->volume.major, request->volume.minor,
				       "queue/logical_block_size");
	uint64_t block;
	int r = 0;

	if (text && !parse_number(text, &block) && device->block > block) {
		fail("%s: it has blocks of %u bytes, and %s has blocks of %" PRIu64 ", which can not change while it is in use; give a device with blocks of at most %" PRIu64,
		     device->path, device->block, request->volume.name, block, block);
		r = -1;
	}
	free(text);
	return r;
}

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
	if (check_block(request, device))
		return -1;
	if (device->signature && !force) {
		fail("%s: it holds %s, which would be overwritten; --force if that is intended",
		     device->path, device->signature);
		return -1;
	}
	if (labelled->log && !force) {
		uuid_format(labelled->log_uuid, uuid);
		fail("%s: it is the log of the set %s, which would be overwritten; --force if that is intended",
		     device->path, uuid);
		return -1;
	}
	if (labelled->found.state >= HEDGE_LABEL_DAMAGED &&
	    labelled->found.state != HEDGE_LABEL_VALID && !force) {
		fail("%s: it has a label that can not be read (%s; hedgectl examine %s), and its data would be overwritten; --force if that is intended",
		     device->path,
		     labelled->found.state == HEDGE_LABEL_UNKNOWN ? "of another version" : "damaged",
		     device->path);
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

/* Nothing of the volume is on it: without this it could be taken for a leg. */
static void wipe_new(const struct device *device)
{
	struct labelled labelled;

	if (label_read(device->path, &labelled, false))
		return;
	if (labelled.found.state == HEDGE_LABEL_VALID && labelled.major == device->major &&
	    labelled.minor == device->minor)
		label_wipe(device->path, &labelled);
	labelled_free(&labelled);
}

/*
 * First the kernel is asked whether it would take the table, then the leg is taken out, so that
 * the labels of the others do not wait for it.
 */
static int exchange(const struct leg_request *request, struct device *device,
		    const struct line *old, const struct line *new)
{
	uint8_t uuid[HEDGE_UUID_BYTES];
	bool label = table_label(&request->table, uuid);
	int r;

	device_release(device);
	if (line_check(request->volume.name, new) || device_claim(device))
		return -1;
	device_release(device);
	if (!is_out(request) && take_out(request))
		return -1;
	r = label ? device_still(device) || label_new(request, device->path, uuid) : 0;
	if (!r)
		r = line_swap(request->volume.name, old, new, NULL, NULL, NULL);
	if (r) {
		if (label)
			wipe_new(device);
		note("%s: leg %d was taken out, and is still out; hedgectl reinstate %s %d brings it back",
		     request->volume.name, request->leg, request->volume.name, request->leg);
		return -1;
	}
	return label ? bring_back(request) : 0;
}

static int replace(struct leg_request *request, struct device *device)
{
	struct line old, new = { .sectors = request->target->sectors };
	int r;

	if (line_read(request->volume.name, &old))
		return -1;
	if (strcmp(old.table, request->target->table)) {
		fail("%s: its table changed while it was read; try again", request->volume.name);
		line_free(&old);
		return -1;
	}
	free(request->table.legs[request->leg].device);
	request->table.legs[request->leg].device =
		xprintf("%u:%u", device->major, device->minor);
	request->table.legs[request->leg].offset = 0;
	new.type = xstrdup(old.type);
	new.table = table_format(&request->table);
	r = exchange(request, device, &old, &new);
	line_free(&old);
	line_free(&new);
	return r;
}

/* Everything that can be known before something is changed. */
static int check_replace(const struct leg_request *request, const struct device *device)
{
	uint8_t uuid[HEDGE_UUID_BYTES];
	struct labelled labelled;
	int r;

	if (request->volume.sectors != request->target->sectors) {
		fail("%s: it is made of several targets; replace can not change such a table",
		     request->volume.name);
		return -1;
	}
	if (request->volume.suspended) {
		fail("%s: it is suspended; resume it first: dmsetup resume %s", request->volume.name,
		     request->volume.name);
		return -1;
	}
	if (label_read(device->path, &labelled, false))
		return -1;
	r = check_new(request, device, &labelled, table_label(&request->table, uuid));
	labelled_free(&labelled);
	return r;
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
		r = check_replace(&request, &device);
		if (!r && !request.json) {
			printf("%s: leg %d (%s) is replaced by %s%s%s%s%s\n", request.volume.name,
			       request.leg, request.disk, device.path, device.model ? ", " : "",
			       device.model ? device.model : "", device.serial ? ", serial " : "",
			       device.serial ? device.serial : "");
			fflush(stdout);
		}
		r = r ? r : replace(&request, &device);
		device_free(&device);
	}
	if (!r) {
		free(request.disk);
		request.disk = xstrdup(args->operands[2]);
		r = report_copy(&request, "takes its place: all of the data is copied to it");
	}
	request_free(&request);
	return r ? FAILED : DONE;
}

static const struct option_def replace_options[] = {
	{ "force", NULL, "accept a device that holds data" },
	{ "wait", NULL, "until it has all data; on a terminal with progress" },
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
