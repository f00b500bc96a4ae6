// SPDX-License-Identifier: GPL-2.0
/*
 * The device-mapper ioctls, through libdevmapper. A volume is read in two of them: its status and
 * its table.
 *
 * A device is made in steps, create, load and resume, so that on an error no other device is taken
 * back than the one that was made here. udev is waited for through the cookie, or, without udev
 * (DM_DISABLE_UDEV), the library makes the node.
 */
#include <ctype.h>
#include <errno.h>
#include <libdevmapper.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "hedgectl.h"

static char first_error[256];

/*
 * The library would print its errors itself; the first of a call, which says most, is kept to be
 * part of ours. Its level 3 and below are errors.
 */
static void __attribute__((format(printf, 5, 6)))
keep_error(int level, const char *file, int line, int error, const char *format, ...)
{
	va_list list;

	(void)file;
	(void)line;
	(void)error;
	if ((level & 7) > 3 || first_error[0])
		return;
	va_start(list, format);
	vsnprintf(first_error, sizeof(first_error), format, list);
	va_end(list);
}

void dm_begin(void)
{
	dm_log_with_errno_init(keep_error);
}

static void fail_dm(const char *what, const char *name)
{
	const char *remedy = geteuid() ? "run it as root" :
					 "if device-mapper is not there: modprobe dm-mod";

	fail("%s%s%s: %s; %s", name ? name : "", name ? ": " : "", what,
	     first_error[0] ? first_error : "no reason given", remedy);
}

/* A name, or any path of the device: a path that is not in /dev/mapper is looked up by its number.
 */
static int set_device(struct dm_task *task, const char *name)
{
	struct stat st;

	if (!strncmp(name, "/dev/mapper/", 12))
		return dm_task_set_name(task, name + 12);
	if (name[0] != '/')
		return dm_task_set_name(task, name);
	if (stat(name, &st))
		return 0;
	return dm_task_set_major_minor(task, major(st.st_rdev), minor(st.st_rdev), 0);
}

/*
 * A task that has run, for the caller to destroy; NULL after an error. A missing device is none:
 * see dm_task_get_info.
 */
static struct dm_task *query(int type, const char *name)
{
	struct dm_task *task;

	first_error[0] = '\0';
	task = dm_task_create(type);
	if (task && (!name || set_device(task, name)) && dm_task_no_flush(task) &&
	    dm_task_run(task))
		return task;
	if (task)
		dm_task_destroy(task);
	return NULL;
}

bool dm_name_valid(const char *name)
{
	size_t n = strlen(name);

	if (!n || n > 127 || name[0] == '-' || name[0] == '.')
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr("#+-.:=@_", *name))
			return false;
	return true;
}

int dm_name_free(const char *name)
{
	struct dm_task *task = query(DM_DEVICE_INFO, name);
	struct dm_info info;
	int r = -1;

	if (!task || !dm_task_get_info(task, &info))
		fail_dm("can not ask device-mapper for it", name);
	else if (info.exists)
		fail("%s: there is a device of this name (%u:%u) already; choose another name",
		     name, info.major, info.minor);
	else
		r = 0;
	if (task)
		dm_task_destroy(task);
	return r;
}

static void add_target(struct volume *volume, uint64_t start, uint64_t sectors, const char *status)
{
	struct target *target;

	volume->targets = xrealloc(volume->targets, (volume->nr_targets + 1) * sizeof(*target));
	target = &volume->targets[volume->nr_targets];
	*target = (struct target){ volume->nr_targets++, start, sectors, xstrdup(status), NULL };
}

static void set_table(struct volume *volume, uint64_t start, const char *table)
{
	for (int i = 0; i < volume->nr_targets; i++)
		if (volume->targets[i].start == start && !volume->targets[i].table)
			volume->targets[i].table = xstrdup(table);
}

static void read_targets(struct dm_task *task, struct volume *volume, bool table)
{
	uint64_t start, sectors;
	char *type, *params;
	void *next = NULL;

	do {
		next = dm_get_next_target(task, next, &start, &sectors, &type, &params);
		if (!table && start + sectors > volume->sectors)
			volume->sectors = start + sectors;
		if (!type || strcmp(type, "hedge"))
			continue;
		if (table)
			set_table(volume, start, params);
		else
			add_target(volume, start, sectors, params);
	} while (next);
}

static void read_status(struct dm_task *task, const struct dm_info *info, struct volume *volume)
{
	volume->name = xstrdup(dm_task_get_name(task));
	volume->uuid = xstrdup(dm_task_get_uuid(task));
	volume->major = info->major;
	volume->minor = info->minor;
	volume->suspended = info->suspended;
	volume->open_count = info->open_count;
	read_targets(task, volume, false);
}

/* Reads a device of any kind; quietly leaves volume empty if there is none. */
static int read_device(const char *name, struct volume *volume)
{
	struct dm_task *status = query(DM_DEVICE_STATUS, name), *table = NULL;
	struct dm_info info;
	int r = -1;

	*volume = (struct volume){ 0 };
	if (!status || !dm_task_get_info(status, &info)) {
		fail_dm("can not read its status", name);
	} else if (!info.exists) {
		r = 0;
	} else {
		read_status(status, &info, volume);
		table = volume->nr_targets ? query(DM_DEVICE_TABLE, name) : NULL;
		if (table)
			read_targets(table, volume, true);
		r = 0;
	}
	/* A table that was swapped between the two calls shows as a target without its line. */
	for (int i = 0; !r && i < volume->nr_targets; i++)
		if (!volume->targets[i].table)
			r = -1;
	if (r && volume->nr_targets)
		fail("%s: its table changed while it was read; try again", name);
	if (status)
		dm_task_destroy(status);
	if (table)
		dm_task_destroy(table);
	if (r)
		volume_free(volume);
	return r;
}

int dm_volume_read(const char *name, struct volume *volume)
{
	struct stat st;

	*volume = (struct volume){ 0 };
	if (name[0] == '/' && strncmp(name, "/dev/mapper/", 12) &&
	    (stat(name, &st) || !S_ISBLK(st.st_mode))) {
		fail("%s: no block device; give the name of a volume or the path of its device",
		     name);
		return -1;
	}
	if (read_device(name, volume))
		return -1;
	if (volume->nr_targets)
		return 0;
	if (volume->name)
		fail("%s: this device has no hedge target; hedgectl list shows those that do",
		     name);
	else
		fail("%s: there is no such device; hedgectl list shows those there are", name);
	volume_free(volume);
	return -1;
}

void volume_free(struct volume *volume)
{
	for (int i = 0; i < volume->nr_targets; i++) {
		free(volume->targets[i].status);
		free(volume->targets[i].table);
	}
	free(volume->targets);
	free(volume->name);
	free(volume->uuid);
	*volume = (struct volume){ 0 };
}

/*
 * Adds a device to the list if it has a hedge target. One that went away since it was listed is no
 * error.
 */
static int add_volume(const char *name, struct volume **volumes, int *count)
{
	struct volume volume;

	if (read_device(name, &volume))
		return -1;
	if (!volume.nr_targets) {
		volume_free(&volume);
		return 0;
	}
	*volumes = xrealloc(*volumes, (*count + 1) * sizeof(volume));
	(*volumes)[(*count)++] = volume;
	return 0;
}

int dm_volumes_read(struct volume **volumes, int *count)
{
	struct dm_task *task = query(DM_DEVICE_LIST, NULL);
	struct dm_names *names = task ? dm_task_get_names(task) : NULL;
	int r = 0;

	*volumes = NULL;
	*count = 0;
	if (!names) {
		fail_dm("can not list the devices", NULL);
		if (task)
			dm_task_destroy(task);
		return -1;
	}
	while (names->dev) {
		r |= add_volume(names->name, volumes, count);
		if (!names->next)
			break;
		names = (struct dm_names *)((char *)names + names->next);
	}
	dm_task_destroy(task);
	return r;
}

void volumes_free(struct volume *volumes, int count)
{
	for (int i = 0; i < count; i++)
		volume_free(&volumes[i]);
	free(volumes);
}

static bool target_registered(void)
{
	struct dm_task *task = query(DM_DEVICE_LIST_VERSIONS, NULL);
	struct dm_versions *version = task ? dm_task_get_versions(task) : NULL;
	bool found = false;

	while (version && !(found = !strcmp(version->name, "hedge")) && version->next)
		version = (struct dm_versions *)((char *)version + version->next);
	if (task)
		dm_task_destroy(task);
	return found;
}

/* Runs a task that changes a device, and waits for udev where it has to do with it. */
static bool change(int type, const char *name, const char *uuid, uint64_t sectors,
		   const char *table)
{
	bool udev = type == DM_DEVICE_REMOVE || type == DM_DEVICE_RESUME;
	struct dm_task *task = dm_task_create(type);
	uint32_t cookie = 0;
	bool good = task;

	good = good && (!name || dm_task_set_name(task, name)) &&
	       (!uuid || dm_task_set_uuid(task, uuid));
	good = good && (!table || dm_task_add_target(task, 0, sectors, "hedge", table));
	good = good && dm_task_set_add_node(task, DM_ADD_NODE_ON_RESUME);
	good = good && (!udev || dm_task_set_cookie(task, &cookie, 0));
	if (good) {
		good = dm_task_run(task);
		if (udev)
			dm_udev_wait(cookie);
		dm_task_update_nodes();
	}
	if (task)
		dm_task_destroy(task);
	return good;
}

/* Stops a device; one that udev looks into just now is tried again. */
int dm_volume_remove(const char *name)
{
	struct dm_task *task = dm_task_create(DM_DEVICE_REMOVE);
	uint32_t cookie = 0;
	bool good = task;

	first_error[0] = '\0';
	good = good && dm_task_set_name(task, name) && dm_task_retry_remove(task) &&
	       dm_task_set_cookie(task, &cookie, 0);
	if (good) {
		good = dm_task_run(task);
		dm_udev_wait(cookie);
		dm_task_update_nodes();
	}
	if (task)
		dm_task_destroy(task);
	if (!good)
		fail("%s: can not be removed: %s", name,
		     first_error[0] ? first_error : "no reason given");
	return good ? 0 : -1;
}

static void fail_table(const char *name, uint64_t sectors, const char *table, const char *reason,
		       int kmsg)
{
	if (!target_registered())
		fail("%s: the kernel has no target \"hedge\"; install the module dm-hedge for this kernel and load it: modprobe dm-hedge",
		     name);
	else
		fail("%s: the kernel refused the table (%s), and no device is left\n  table: 0 %llu hedge %s",
		     name, reason, (unsigned long long)sectors, table);
	kmsg_report(kmsg);
}

/* The name of the device that has a UUID; NULL if there is none. */
static char *name_of_uuid(const char *uuid)
{
	struct dm_task *task = dm_task_create(DM_DEVICE_INFO);
	struct dm_info info;
	char *name = NULL;

	if (task && dm_task_set_uuid(task, uuid) && dm_task_run(task) &&
	    dm_task_get_info(task, &info) && info.exists)
		name = xstrdup(dm_task_get_name(task));
	if (task)
		dm_task_destroy(task);
	return name;
}

/* Makes a device without a table. One of this name or UUID may be in use: it is left alone. */
static int make_device(const char *name, const char *uuid)
{
	char *other = name_of_uuid(uuid);

	first_error[0] = '\0';
	if (other)
		fail("%s: %s runs already, as %s", name, uuid, other);
	else if (!change(DM_DEVICE_CREATE, name, uuid, 0, NULL))
		fail("%s: the device can not be made: %s", name,
		     first_error[0] ? first_error : "no reason given");
	else
		return 0;
	free(other);
	return -1;
}

/* Asks the kernel whether it would take a table: loads it into a device that never becomes live. */
int dm_table_check(const char *name, const char *uuid, uint64_t sectors, const char *table)
{
	char reason[sizeof(first_error)];
	int kmsg;
	bool good;

	if (make_device(name, uuid))
		return -1;
	kmsg = kmsg_begin();
	good = change(DM_DEVICE_RELOAD, name, NULL, sectors, table);
	memcpy(reason, first_error, sizeof(reason));
	change(DM_DEVICE_REMOVE, NULL, uuid, 0, NULL);
	if (!good)
		fail_table(name, sectors, table, reason, kmsg);
	else
		kmsg_end(kmsg);
	return good ? 0 : -1;
}

int dm_volume_create(const char *name, const char *uuid, uint64_t sectors, const char *table)
{
	char reason[sizeof(first_error)];
	int kmsg;

	if (make_device(name, uuid))
		return -1;
	kmsg = kmsg_begin();
	if (change(DM_DEVICE_RELOAD, name, NULL, sectors, table) &&
	    change(DM_DEVICE_RESUME, name, NULL, 0, NULL)) {
		kmsg_end(kmsg);
		return 0;
	}
	memcpy(reason, first_error, sizeof(reason));
	change(DM_DEVICE_REMOVE, NULL, uuid, 0, NULL);
	fail_table(name, sectors, table, reason, kmsg);
	return -1;
}

/* Sends a message to a target; what the kernel says of it is told. */
int dm_message(const struct volume *volume, int target, const char *message)
{
	struct dm_task *task = dm_task_create(DM_DEVICE_TARGET_MSG);
	int kmsg = kmsg_begin();
	bool good;

	first_error[0] = '\0';
	good = task && dm_task_set_name(task, volume->name) &&
	       dm_task_set_sector(task, volume->targets[target].start) &&
	       dm_task_set_message(task, message) && dm_task_run(task);
	if (task)
		dm_task_destroy(task);
	if (good) {
		kmsg_end(kmsg);
		return 0;
	}
	fail("%s: the kernel refused \"%s\": %s", volume->name, message,
	     first_error[0] ? first_error : "no reason given");
	kmsg_report(kmsg);
	return -1;
}
