// SPDX-License-Identifier: GPL-2.0
/*
 * hedgectl create: makes a hedged volume of 2 to 8 legs.
 *
 * In order: the words are checked, then the devices, claimed exclusively and looked at, then the
 * user is told (with
 * --from asked) what happens to the data; only then something is written. The table line is the
 * whole truth about the new device; the kernel has the last word on it, which a dry run asks for
 * too.
 *
 * A read may go to any leg, so all legs must hold the same data. Who vouches for that is the user's
 * choice (enum origin): the user (--nosync), or a copy (--from). With labels they say which leg has
 * the data, and the kernel copies while the volume is in use already. Without (--no-label) the copy
 * is made here first, or an existing disk log tells what is the same.
 */
#include <errno.h>
#include <inttypes.h>
#include <json.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "labels.h"

#define DEFAULT_REGION (512 * 1024)
#define LOG_HEADER 1024 /* of dm-dirty-log's disk log: its bitmap follows */
#define LOG_MAGIC 0x4d695272u /* little endian, at its beginning */

enum origin { NOSYNC, COPY, LOG };

struct request {
	const struct args *args;
	const char *name;
	char uuid[64];
	uint8_t uuid_bytes[HEDGE_UUID_BYTES];
	bool force, dry_run, json, label;
	enum origin origin;
	const char *log_path; /* of a disk log, or NULL */
	uint64_t region; /* bytes */
	int nr_legs;
	struct device legs[MAX_LEGS], log;
	int from; /* the leg that is copied, with COPY */
	uint64_t bytes; /* of the volume */
	struct table table;
};

static int parse_log(struct request *request)
{
	const char *log = args_get(request->args, "log");

	if (!log || !strcmp(log, "core"))
		return 0;
	if (!strncmp(log, "disk:", 5) && log[5]) {
		request->log_path = log + 5;
		return 0;
	}
	fail("--log %s: expected core (in memory) or disk:DEV", log);
	return -1;
}

static int parse_region(struct request *request)
{
	const char *text = args_get(request->args, "region-size");

	uint64_t page = sysconf(_SC_PAGESIZE);

	request->region = DEFAULT_REGION;
	if (text &&
	    (parse_size(text, &request->region) || request->region < page ||
	     request->region & (request->region - 1) || request->region / SECTOR > UINT32_MAX)) {
		fail("--region-size %s: expected a power of two of at least %" PRIu64
		     "K, such as 512K",
		     text, page / 1024);
		return -1;
	}
	return 0;
}

static int find_leg(const struct request *request, struct assignment *a)
{
	for (int i = 0; a->device && i < request->nr_legs; i++)
		if (leg_matches_path(a->device, i, request->args->operands[i + 1]))
			a->leg = i;
	return a->leg < request->nr_legs ? 0 : -1;
}

static int parse_features(struct request *request)
{
	const char *policy = args_get(request->args, "policy");
	struct assignment a;

	if (policy) {
		if (!*policy || strpbrk(policy, " \t\n")) {
			fail("--policy \"%s\": expected the name of a policy", policy);
			return -1;
		}
		table_add_feature(&request->table, "policy %s", policy);
	}
	for (int i = 0; i < request->args->nr_options; i++) {
		if (strcmp(request->args->options[i].name, "set"))
			continue;
		if (assignment_parse(request->args->options[i].value, &a))
			return -1;
		if (find_leg(request, &a)) {
			fail("--set %s: there is no such leg; legs are numbered 0 to %d, or named by their devices",
			     request->args->options[i].value, request->nr_legs - 1);
			assignment_free(&a);
			return -1;
		}
		if (a.leg < 0)
			table_add_feature(&request->table, "%s %s", a.name, a.value);
		else
			table_add_feature(&request->table, "leg %d %s %s", a.leg, a.name, a.value);
		assignment_free(&a);
	}
	return 0;
}

static int parse_origin(struct request *request)
{
	bool nosync = args_has(request->args, "nosync"), from = args_has(request->args, "from");

	if (nosync && from) {
		fail("--nosync says that the legs are identical, --from makes them so: give one of them");
		return -1;
	}
	request->origin = nosync ? NOSYNC : from || request->label ? COPY : LOG;
	if (request->origin != LOG || request->log_path)
		return 0;
	fail("%s: reads may go to any leg, so all legs must hold the same data; without labels say how that comes\n"
	     "  --nosync    if the legs are identical already, or if nothing on them matters\n"
	     "  --from DEV  to copy the leg DEV over the others first, which takes as long as the copy takes",
	     request->name);
	return -1;
}

static int parse_request(const struct args *args, struct request *request)
{
	request->args = args;
	request->name = args->operands[0];
	request->nr_legs = args->nr_operands - 1;
	request->force = args_has(args, "force");
	request->dry_run = args_has(args, "dry-run");
	request->json = args_has(args, "json");
	request->label = !args_has(args, "no-label");
	if (!dm_name_valid(request->name)) {
		fail("\"%s\": not a name for a device; expected letters, digits and #+-.:=@_, at most 127",
		     request->name);
		return -1;
	}
	if (request->nr_legs < MIN_LEGS || request->nr_legs > MAX_LEGS) {
		fail("%s: %d leg%s given; a volume has %d to %d", request->name, request->nr_legs,
		     request->nr_legs == 1 ? "" : "s", MIN_LEGS, MAX_LEGS);
		return -1;
	}
	return parse_log(request) || parse_region(request) || parse_origin(request) ||
			       parse_features(request) ?
		       -1 :
		       0;
}

static bool same_device(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && S_ISBLK(x.st_mode) && S_ISBLK(y.st_mode) &&
	       x.st_rdev == y.st_rdev;
}

/* Before anything is opened: a device that is given twice would show as busy. */
static int check_duplicates(const struct request *request)
{
	char **paths = request->args->operands + 1;

	for (int i = 0; i < request->nr_legs; i++) {
		for (int j = 0; j < i; j++) {
			if (same_device(paths[i], paths[j])) {
				fail("%s and %s are one device; each leg must be another one",
				     paths[j], paths[i]);
				return -1;
			}
		}
		if (request->log_path && same_device(paths[i], request->log_path)) {
			fail("%s is a leg and the log; the log needs a device of its own",
			     request->log_path);
			return -1;
		}
	}
	return 0;
}

static int find_from(struct request *request)
{
	const char *from = args_get(request->args, "from");

	/* With labels the first leg is the source if no other is named. */
	request->from = 0;
	if (!from)
		return 0;
	for (; request->from < request->nr_legs; request->from++)
		if (same_device(from, request->args->operands[1 + request->from]))
			return 0;
	fail("--from %s: it is none of the legs; list it among them too", from);
	return -1;
}

static int refuse_signature(const struct request *request, const struct device *device,
			    const char *consequence)
{
	if (!device->signature || request->force)
		return 0;
	fail("%s: it holds %s, %s; --force if that is intended, or wipefs(8) if it is old",
	     device->path, device->signature, consequence);
	return -1;
}

/* A leg or a log of another set is to be wiped by hand, or by force. */
static int refuse_label(const struct request *request, const char *path)
{
	struct labelled labelled;
	char uuid[UUID_TEXT];
	int r = 0;

	if (label_read(path, &labelled, false))
		return -1;
	uuid_format(labelled.log ? labelled.log_uuid : labelled.found.label.uuid, uuid);
	if (labelled.log || labelled.found.state >= HEDGE_LABEL_DAMAGED) {
		r = request->force && request->label ? 0 : -1;
		if (r && !labelled.log && labelled.found.state != HEDGE_LABEL_VALID)
			fail("%s: it has a label that can not be read (%s; hedgectl examine %s); hedgectl wipe %s%s",
			     path,
			     labelled.found.state == HEDGE_LABEL_UNKNOWN ? "of another version" :
									   "damaged",
			     path, path, request->label ? " frees it, or --force" : " frees it");
		else if (r)
			fail("%s: it is a %s of the set %s; hedgectl wipe %s%s", path,
			     labelled.log ? "log" : "leg", uuid, path,
			     request->label ? " frees it, or --force" : " frees it");
	}
	labelled_free(&labelled);
	return r;
}

/* A mirror's log that is there already is no signature to libblkid; with LOG it must be there. */
static int check_log(struct request *request)
{
	uint64_t regions = (request->bytes + request->region - 1) / request->region;
	uint64_t need = request->label ? hedge_stamp_sector(regions) * SECTOR + HEDGE_LABEL_SLOT :
					 LOG_HEADER + (regions + 63) / 64 * 8;
	unsigned char magic[4] = { 0 };
	bool found;

	if (device_open(request->log_path, &request->log) ||
	    refuse_label(request, request->log_path))
		return -1;
	if (request->log.bytes < need) {
		fail("%s: the log needs %" PRIu64 " bytes, this device has %" PRIu64
		     "; use a larger device or --region-size",
		     request->log_path, need, request->log.bytes);
		return -1;
	}
	found = pread(request->log.fd, magic, 4, 0) == 4 &&
		(magic[0] | magic[1] << 8 | magic[2] << 16 | (unsigned int)magic[3] << 24) ==
			LOG_MAGIC;
	if (request->origin == LOG && !found) {
		fail("%s: there is no log on it that could tell which regions are in sync; give --nosync or --from too (hedgectl create --help)",
		     request->log_path);
		return -1;
	}
	if (request->origin != LOG && found && !request->force) {
		fail("%s: it holds the log of a mirror, which would be lost; --force if that is intended",
		     request->log_path);
		return -1;
	}
	return refuse_signature(request, &request->log, "which the log would overwrite");
}

/* The volume is as long as the smallest leg, in whole blocks of the leg with the largest ones. */
static void choose_length(struct request *request)
{
	unsigned int block = SECTOR;

	request->bytes = UINT64_MAX;
	for (int i = 0; i < request->nr_legs; i++) {
		if (request->legs[i].bytes < request->bytes)
			request->bytes = request->legs[i].bytes;
		if (request->legs[i].block > block)
			block = request->legs[i].block;
	}
	if (request->label)
		request->bytes = label_data_bytes(request->bytes);
	request->bytes -= request->bytes % block;
}

static int open_legs(struct request *request)
{
	for (int i = 0; i < request->nr_legs; i++) {
		const char *path = request->args->operands[1 + i];

		if (device_open(path, &request->legs[i]) || refuse_label(request, path))
			return -1;
	}
	return 0;
}

/* What a leg may hold at most if there is to be a label behind it. */
static uint64_t usable_bytes(const struct request *request, const struct device *device)
{
	return request->label ? label_data_bytes(device->bytes) : device->bytes;
}

/*
 * A leg whose data is to be kept, and is longer than the volume. Something of it is sure to be lost
 * if it has a signature, as what that belongs to ends where the device ends; or if it was named to
 * be kept and is longer than the others.
 */
static int refuse_cut(const struct request *request, const struct device *device)
{
	bool longer = usable_bytes(request, device) > request->bytes;

	if (request->force || device->bytes == request->bytes)
		return 0;
	if (!device->signature && !(longer && args_has(request->args, "from")))
		return 0;
	fail("%s: %s%s, and the volume has the first %" PRIu64 " of its %" PRIu64
	     " bytes: from byte %" PRIu64 " on data would be lost%s. Shrink what is on it to %" PRIu64
	     " bytes first and give --force, %s",
	     device->path, device->signature ? "it holds " : "its data is to be kept",
	     device->signature ? device->signature : "", request->bytes, device->bytes,
	     request->bytes, request->label ? ", and the label written over it" : "", request->bytes,
	     longer ? "or give other legs that are as long" : "or give --no-label");
	return -1;
}

static int check_signatures(const struct request *request)
{
	static const char *const consequences[] = {
		[NOSYNC] = "which stays as it is on this leg, whatever the other legs hold",
		[COPY] = "which the copy would overwrite",
		[LOG] = "which stays as it is",
	};

	for (int i = 0; i < request->nr_legs; i++) {
		const struct device *leg = &request->legs[i];
		bool kept = request->origin != COPY || i == request->from;

		if (kept && refuse_cut(request, leg))
			return -1;
		if (request->origin == COPY && kept)
			continue;
		if (refuse_signature(request, leg, consequences[request->origin]))
			return -1;
	}
	return 0;
}

static int check_devices(struct request *request)
{
	if (check_duplicates(request) || (request->origin == COPY && find_from(request)) ||
	    open_legs(request))
		return -1;
	choose_length(request);
	if (!request->bytes) {
		fail("%s: the smallest leg has no room for data and a label of 8 KiB", request->name);
		return -1;
	}
	if (check_signatures(request))
		return -1;
	if (request->region > request->bytes) {
		char region[SIZE_TEXT], size[SIZE_TEXT];

		fail("%s: a region of %s is larger than the volume (%s); give a smaller --region-size",
		     request->name, format_size(request->region, region, sizeof(region)),
		     format_size(request->bytes, size, sizeof(size)));
		return -1;
	}
	return request->log_path ? check_log(request) : 0;
}

static char *device_number(const struct device *device)
{
	return xprintf("%u:%u", device->major, device->minor);
}

static void build_table(struct request *request)
{
	struct table *table = &request->table;

	table->log_type = xstrdup(request->log_path ? "disk" : "core");
	if (request->log_path)
		table->log_device = device_number(&request->log);
	table->region_sectors = request->region / SECTOR;
	if (request->origin != LOG && !request->label)
		table->sync = xstrdup("nosync");
	if (request->label)
		table_add_feature(table, "label %s", request->uuid + strlen("HEDGE-"));
	table->nr_legs = request->nr_legs;
	for (int i = 0; i < request->nr_legs; i++)
		table->legs[i].device = device_number(&request->legs[i]);
}

static int make_uuid(struct request *request)
{
	memcpy(request->uuid, "HEDGE-", 6);
	if (uuid_make(request->uuid_bytes))
		return -1;
	uuid_format(request->uuid_bytes, request->uuid + 6);
	return 0;
}

static void print_leg(const struct request *request, int i)
{
	const struct device *leg = &request->legs[i];
	char size[SIZE_TEXT];

	printf("leg %d: %s (%u:%u), %s%s%s%s%s%s%s\n", i, leg->path, leg->major, leg->minor,
	       format_size(leg->bytes, size, sizeof(size)), leg->model ? ", " : "",
	       leg->model ? leg->model : "", leg->serial ? ", serial " : "",
	       leg->serial ? leg->serial : "", leg->signature ? ", holds " : "",
	       leg->signature ? leg->signature : "");
}

/* What is odd about the legs but no reason to refuse them. */
static void note_oddities(const struct request *request)
{
	const struct device *legs = request->legs;
	char size[SIZE_TEXT];

	for (int i = 0; i < request->nr_legs; i++) {
		if (usable_bytes(request, &legs[i]) > request->bytes)
			note("%s: only the first %s (%" PRIu64
			     " bytes) are used, the size of the smallest leg",
			     legs[i].path, format_size(request->bytes, size, sizeof(size)),
			     request->bytes);
		for (int j = 0; j < i; j++)
			if (legs[i].disk && legs[j].disk && !strcmp(legs[i].disk, legs[j].disk))
				note("%s and %s are on one disk: a failure or a stall of it hits both",
				     legs[j].path, legs[i].path);
	}
}

/* What is lost of a leg whose data is kept: nothing, or what is behind the volume. */
static void explain_cut(const struct request *request, FILE *out)
{
	for (int i = 0; i < request->nr_legs; i++) {
		const struct device *leg = &request->legs[i];

		if (leg->bytes == request->bytes || (request->origin == COPY && i != request->from))
			continue;
		fprintf(out, "Of %s the first %" PRIu64 " bytes are kept, and %s.\n", leg->path, request->bytes,
			request->label ? "the label is written behind them, over what is there" :
					 "what is behind them is no part of the volume");
	}
}

/* Programs that read JSON show their users what is on stderr. */
static void explain_origin(const struct request *request)
{
	FILE *out = request->json ? stderr : stdout;

	switch (request->origin) {
	case NOSYNC:
		fprintf(out, "--nosync: the data of every leg is kept as it is and taken to be identical; nothing is compared. Where\n"
			     "legs differ, a read may return the data of any of them, until that place is written.\n");
		break;
	case COPY:
		fprintf(out, "%s is copied over all other legs, whose data is lost.\n",
			request->legs[request->from].path);
		if (request->label)
			fprintf(out, "The volume can be used meanwhile; hedgectl show %s tells how far it is.\n",
				request->name);
		break;
	case LOG:
		fprintf(out, "The log on %s tells which regions are in sync. If some are not, as after a crash, the kernel refuses\n"
			     "the volume: then make the legs identical with --from DEV --force.\n",
			request->log_path);
		break;
	}
	explain_cut(request, out);
	if (!request->log_path && request->label)
		fprintf(out, "Log core: which regions were being written is known in memory only. After a crash all legs are copied\n"
			     "from one; a log on disk (--log disk:DEV) makes that short.\n");
	else if (!request->log_path)
		fprintf(out, "Log core: which regions were being written is known in memory only. After a crash the legs may differ\n"
			     "there: compare or copy them before you create the volume again with --nosync.\n");
}

static int confirm_copy(const struct request *request)
{
	const struct device *from = &request->legs[request->from];
	char answer[16] = "";

	if (request->force)
		return 0;
	if (!isatty(STDIN_FILENO)) {
		fail("%s: %s would be copied over the other legs, and there is no terminal to ask on; give --force if that is intended, or --nosync if the legs are identical",
		     request->name, from->path);
		return -1;
	}
	fflush(stdout);
	if (from->bytes > request->bytes)
		fprintf(stderr, "Copy the first %" PRIu64 " of %" PRIu64 " bytes of %s over all other legs? Their data will be lost, and what is behind that on %s. Type \"yes\": ",
			request->bytes, from->bytes, from->path, from->path);
	else
		fprintf(stderr, "Copy %s over all other legs? Their data will be lost. Type \"yes\": ",
			from->path);
	if (fgets(answer, sizeof(answer), stdin) && !strcmp(answer, "yes\n"))
		return 0;
	fail("%s: not created, nothing was written", request->name);
	return -1;
}

static int copy_legs(const struct request *request)
{
	for (int i = 0; i < request->nr_legs; i++)
		if (i != request->from &&
		    device_copy(&request->legs[request->from], &request->legs[i], request->bytes))
			return -1;
	return 0;
}

static void print_json(const struct request *request, const char *line)
{
	struct json_object *object = json_object_new_object(), *legs = json_object_new_array();

	json_add_text(object, "name", request->name);
	json_add_text(object, "uuid", request->uuid);
	json_object_object_add(object, "created", json_object_new_boolean(!request->dry_run));
	json_add_u64(object, "bytes", request->bytes);
	json_add_text(object, "table", line);
	for (int i = 0; i < request->nr_legs; i++) {
		const struct device *device = &request->legs[i];
		struct json_object *leg = json_object_new_object();
		char *number = device_number(device);

		json_add_text(leg, "path", device->path);
		json_add_text(leg, "device", number);
		json_add_u64(leg, "bytes", device->bytes);
		json_add_text(leg, "model", device->model);
		json_add_text(leg, "serial", device->serial);
		json_add_text(leg, "signature", device->signature);
		json_object_array_add(legs, leg);
		free(number);
	}
	json_object_object_add(object, "legs", legs);
	json_print(object);
}

static void print_result(const struct request *request, const char *line)
{
	char size[SIZE_TEXT];

	if (request->json)
		print_json(request, line);
	else if (request->dry_run)
		printf("dry run, nothing was changed; the table would be\n%s\n", line);
	else
		printf("%s: created, %s in /dev/mapper/%s\n", request->name,
		       format_size(request->bytes, size, sizeof(size)), request->name);
}

static void release_all(struct request *request)
{
	for (int i = 0; i < request->nr_legs; i++)
		device_release(&request->legs[i]);
	device_release(&request->log);
}

/* The kernel is asked before a copy that may take hours, not after it. */
static int check_table(struct request *request, const char *params)
{
	release_all(request);
	if (dm_table_check(request->name, request->uuid, request->bytes / SECTOR, params))
		return -1;
	for (int i = 0; i < request->nr_legs; i++)
		if (device_claim(&request->legs[i]))
			return -1;
	return request->log_path ? device_claim(&request->log) : 0;
}

/* What the kernel would write next: all legs are in, or one is and the others are copied to. */
static void init_label(const struct request *request, struct hedge_label *label)
{
	unsigned int all = (1u << request->nr_legs) - 1;

	*label = (struct hedge_label){
		.round = { .generation = 1, .session = random_u64() },
		.length = request->bytes / SECTOR,
		.log_stamp = request->log_path ? random_u64() : 0,
		.region_size = request->region / SECTOR,
		.nr_legs = request->nr_legs,
		.in = all,
	};
	memcpy(label->uuid, request->uuid_bytes, sizeof(label->uuid));
	if (request->origin == COPY) {
		label->in = 1u << request->from;
		label->partial = all & ~label->in;
		label->default_leg = request->from;
	}
	for (int i = 0; i < request->nr_legs; i++) {
		label->known[i] = label->round;
		label->sent[i] = label->round;
	}
	if (strlen(request->name) < sizeof(label->name))
		strcpy(label->name, request->name);
}

static void wipe_labels(const struct request *request, int count)
{
	struct labelled labelled;

	for (int i = 0; i < count; i++) {
		if (label_read(request->legs[i].path, &labelled, true))
			continue;
		if (labelled.major == request->legs[i].major && labelled.minor == request->legs[i].minor)
			label_wipe(request->legs[i].path, &labelled);
		labelled_free(&labelled);
	}
}

static int write_labels(const struct request *request)
{
	uint64_t regions = (request->bytes + request->region - 1) / request->region;
	struct hedge_label label;

	/* It may be long since they were looked at: the user was asked. */
	for (int i = 0; i < request->nr_legs; i++)
		if (device_still(&request->legs[i]))
			return -1;
	if (request->log_path && device_still(&request->log))
		return -1;
	init_label(request, &label);
	if (request->log_path &&
	    stamp_write(request->log_path, regions, request->uuid_bytes, label.log_stamp))
		return -1;
	for (int i = 0; i < request->nr_legs; i++) {
		label.leg = i;
		if (label_write(request->legs[i].path, &label)) {
			wipe_labels(request, i);
			return -1;
		}
	}
	return 0;
}

/* Everything was checked and said; now it happens. */
static int make_volume(struct request *request, const char *params)
{
	uint64_t sectors = request->bytes / SECTOR;

	if ((request->dry_run || request->label || request->origin == COPY) &&
	    check_table(request, params))
		return -1;
	if (request->dry_run)
		return 0;
	if (request->origin == COPY && confirm_copy(request))
		return -1;
	if (request->origin == COPY && !request->label && copy_legs(request))
		return -1;
	release_all(request);
	if (!request->label)
		return dm_volume_create(request->name, request->uuid, sectors, params);
	if (write_labels(request))
		return -1;
	if (!dm_volume_create(request->name, request->uuid, sectors, params))
		return 0;
	wipe_labels(request, request->nr_legs);
	return -1;
}

static enum exit_status create(struct request *request)
{
	enum exit_status status = FAILED;
	char *params, *line;

	if (check_devices(request) || dm_name_free(request->name) ||
	    make_uuid(request))
		return FAILED;
	build_table(request);
	params = table_format(&request->table);
	line = xprintf("0 %" PRIu64 " hedge %s", request->bytes / SECTOR, params);
	for (int i = 0; i < request->nr_legs && !request->json; i++)
		print_leg(request, i);
	note_oddities(request);
	explain_origin(request);
	if (!make_volume(request, params)) {
		print_result(request, line);
		if (request->label && !request->dry_run)
			note("%s: it is not assembled at boot until it is saved: hedgectl set %s --save",
			     request->name, request->name);
		status = DONE;
	}
	free(params);
	free(line);
	return status;
}

static enum exit_status run(const struct args *args)
{
	struct request request = { .log.fd = -1 };
	enum exit_status status = USAGE;

	for (int i = 0; i < MAX_LEGS; i++)
		request.legs[i].fd = -1;
	if (!parse_request(args, &request))
		status = create(&request);
	for (int i = 0; i < MAX_LEGS; i++)
		device_free(&request.legs[i]);
	device_free(&request.log);
	table_free(&request.table);
	return status;
}

static const struct option_def options[] = {
	{ "log", "core|disk:DEV", "where the dirty log is kept (core: in memory)" },
	{ "region-size", "SIZE", "of the dirty log, a power of two (512K)" },
	{ "policy", "P", "the preset to start with (fcfs-lpr)" },
	{ "set", "ATTR=VALUE", "an attribute to start with; may be repeated" },
	{ "nosync", NULL, "the legs are identical already; copy nothing" },
	{ "from", "DEV", "copy the leg DEV over the others (with labels: the first leg)" },
	{ "no-label", NULL, "write nothing but data on the legs" },
	{ "force", NULL, "do not ask, and accept legs that hold data" },
	{ "dry-run", NULL, "check everything, ask the kernel too, change nothing" },
	{ NULL, NULL, NULL },
};

const struct command create_command = {
	.name = "create",
	.synopsis = "NAME [--nosync|--from DEV] [OPTION]... DEV DEV...",
	.summary = "Makes the volume NAME of 2 to 8 legs, as large as the smallest of them",
	.details =
		"Each leg gets a label behind its data, by which hedgectl assemble finds it again and\n"
		"the kernel knows which legs hold everything.\n"
		"A read may go to any leg, so all legs must hold the same data:\n"
		"  --from DEV  has the leg DEV copied over the others, whose data is lost, while the\n"
		"              volume can be used. So it is with the first leg if nothing is said. It\n"
		"              asks first; without a terminal it needs --force.\n"
		"  --nosync    takes your word for it. Nothing is copied and nothing is compared;\n"
		"              where legs differ, reads return the data of any of them until that\n"
		"              place is written.\n"
		"With --no-label one of both must be said, or a log on disk must hold a mirror's log\n"
		"already; --from copies before the volume is there.\n"
		"A leg that is mounted or in use is refused, and without --force one that holds a\n"
		"file system, a partition table or the like. With DEV of --from, or without --nosync the\n"
		"first leg, it is refused if it reaches beyond the volume, which is 8 KiB shorter than the\n"
		"smallest leg: shrink it first, or give --no-label.",
	.options = options,
	.example =
		"hedgectl create vol0 --from /dev/nvme0n1 --set tau=2ms /dev/nvme0n1 /dev/nvme1n1",
	.min_operands = 2,
	.max_operands = INT_MAX,
	.run = run,
};
