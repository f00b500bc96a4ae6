// SPDX-License-Identifier: GPL-2.0
/*
 * A block device that is to be a leg or a log: opened exclusively, so that what is mounted or in
 * use otherwise is refused, and looked at: size, model, what is written on it. The claims of all
 * devices are held together until the table is loaded, which also shows that one is a part of
 * another.
 */
#include <blkid.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "hedgectl.h"

/* Where a device is mounted, or NULL. */
static char *find_mount(unsigned int major, unsigned int minor)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	unsigned int line_major, line_minor;
	char line[8192], where[4096];
	char *found = NULL;

	while (file && !found && fgets(line, sizeof(line), file))
		if (sscanf(line, "%*u %*u %u:%u %*s %4095s", &line_major, &line_minor, where) ==
			    3 &&
		    line_major == major && line_minor == minor)
			found = xstrdup(where);
	if (file)
		fclose(file);
	return found;
}

/* The device that is built on this one (dm-0, md0), or NULL. */
static char *find_holder(unsigned int major, unsigned int minor)
{
	char *path = xprintf("/sys/dev/block/%u:%u/holders", major, minor);
	DIR *dir = opendir(path);
	struct dirent *entry;
	char *found = NULL;

	free(path);
	while (dir && !found && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			found = xstrdup(entry->d_name);
	if (dir)
		closedir(dir);
	return found;
}

/* Who uses a device, and what to do about it, or NULL. */
char *device_user(unsigned int major, unsigned int minor)
{
	char *mount = find_mount(major, minor);
	char *holder = mount ? NULL : find_holder(major, minor);
	char *text = NULL;

	if (mount)
		text = xprintf("it is mounted on %s; unmount it first", mount);
	else if (holder)
		text = xprintf("it is in use by %s; remove that first", holder);
	free(mount);
	free(holder);
	return text;
}

static void fail_busy(const struct device *device)
{
	char *user = device_user(device->major, device->minor);

	if (user)
		fail("%s: %s", device->path, user);
	else
		fail("%s: it is in use (mounted, swap, part of another device, or its disk or partition was given too); free it first",
		     device->path);
	free(user);
}

static bool is_device(const struct stat *st, const struct device *device)
{
	return S_ISBLK(st->st_mode) && major(st->st_rdev) == device->major &&
	       minor(st->st_rdev) == device->minor;
}

static int fail_other(const struct device *device)
{
	fail("%s: it is not the device any more that was looked at (%u:%u): its name went to another one; try again",
	     device->path, device->major, device->minor);
	return -1;
}

/* Whether the path still leads to the device that was opened: names may change meanwhile. */
int device_still(const struct device *device)
{
	struct stat st;

	return !stat(device->path, &st) && is_device(&st, device) ? 0 : fail_other(device);
}

int device_claim(struct device *device)
{
	struct stat st;

	device->fd = open(device->path, O_RDONLY | O_EXCL | O_CLOEXEC);
	if (device->fd >= 0) {
		if (!fstat(device->fd, &st) && is_device(&st, device))
			return 0;
		device_release(device);
		return fail_other(device);
	}
	if (errno == EBUSY)
		fail_busy(device);
	else
		fail("%s: can not be opened: %s", device->path, strerror(errno));
	return -1;
}

static int open_exclusive(struct device *device)
{
	struct stat st;
	int read_only = 0;

	if (stat(device->path, &st)) {
		fail("%s: %s; give the path of a block device", device->path, strerror(errno));
		return -1;
	}
	if (!S_ISBLK(st.st_mode)) {
		fail("%s: not a block device; a file can be used through losetup(8)", device->path);
		return -1;
	}
	device->major = major(st.st_rdev);
	device->minor = minor(st.st_rdev);
	if (device_claim(device))
		return -1;
	if (!ioctl(device->fd, BLKROGET, &read_only) && read_only) {
		fail("%s: it is read-only; blockdev --setrw may change that", device->path);
		return -1;
	}
	return 0;
}

static int read_geometry(struct device *device)
{
	int block;

	if (ioctl(device->fd, BLKGETSIZE64, &device->bytes) ||
	    ioctl(device->fd, BLKSSZGET, &block)) {
		fail("%s: can not read its size: %s", device->path, strerror(errno));
		return -1;
	}
	device->block = block;
	if (device->bytes >= device->block)
		return 0;
	fail("%s: it is empty (%llu bytes); give a device with room for data", device->path,
	     (unsigned long long)device->bytes);
	return -1;
}

/* NVMe, virtio; SCSI disks have a name of their own in its place. */
static const char *const serials[] = { "device/serial", "serial", "wwid", "device/wwid", NULL };

/* What disks of each kind call it: SCSI and NVMe, virtio; a device-mapper device has its name. */
static char *first_attr(unsigned int major, unsigned int minor, const char *const *names)
{
	char *value = NULL;

	for (; *names && !value; names++)
		value = sysfs_device_attr(major, minor, *names);
	return value;
}

static void read_identity(struct device *device)
{
	static const char *const models[] = { "device/model", "dm/name", "loop/backing_file",
					      NULL };

	device->model = first_attr(device->major, device->minor, models);
	device->serial = first_attr(device->major, device->minor, serials);
	device->disk = sysfs_disk_dir(device->major, device->minor);
}

static char *probe_result(blkid_probe probe)
{
	const char *type;

	switch (blkid_do_safeprobe(probe)) {
	case 0:
		if (!blkid_probe_lookup_value(probe, "TYPE", &type, NULL))
			return xstrdup(type);
		if (!blkid_probe_lookup_value(probe, "PTTYPE", &type, NULL))
			return xprintf("a partition table (%s)", type);
		return NULL;
	case -2:
		return xstrdup("signatures of several kinds");
	case 1:
		return NULL;
	default:
		return xstrdup("what can not be read");
	}
}

static int read_signature(struct device *device)
{
	blkid_probe probe = blkid_new_probe();

	if (!probe || blkid_probe_set_device(probe, device->fd, 0, 0)) {
		fail("%s: can not be searched for signatures", device->path);
		blkid_free_probe(probe);
		return -1;
	}
	blkid_probe_enable_superblocks(probe, 1);
	blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE);
	blkid_probe_enable_partitions(probe, 1);
	device->signature = probe_result(probe);
	blkid_free_probe(probe);
	return 0;
}

int device_open(const char *path, struct device *device)
{
	*device = (struct device){ .path = path, .fd = -1 };
	if (open_exclusive(device) || read_geometry(device) || read_signature(device)) {
		device_free(device);
		return -1;
	}
	read_identity(device);
	return 0;
}

void device_release(struct device *device)
{
	if (device->fd >= 0)
		close(device->fd);
	device->fd = -1;
}

void device_free(struct device *device)
{
	device_release(device);
	free(device->model);
	free(device->serial);
	free(device->signature);
	free(device->disk);
	*device = (struct device){ .fd = -1 };
}

/* What a disk calls itself, of a leg as the status line has it: major:minor, or "-". NULL: nothing. */
char *device_model(const char *numbers)
{
	unsigned int major, minor;

	if (sscanf(numbers, "%u:%u", &major, &minor) != 2)
		return NULL;
	return sysfs_device_attr(major, minor, "device/model");
}

char *device_serial(const char *numbers)
{
	unsigned int major, minor;

	if (sscanf(numbers, "%u:%u", &major, &minor) != 2)
		return NULL;
	return first_attr(major, minor, serials);
}

/* A device as a person knows it: "vdb", "dm-3 (lag0)", else its numbers. */
const char *device_label(unsigned int major, unsigned int minor, char *buffer, size_t size)
{
	char *link = xprintf("/sys/dev/block/%u:%u", major, minor);
	char *dir = realpath(link, NULL);
	char *name = sysfs_device_attr(major, minor, "dm/name");

	if (!dir)
		snprintf(buffer, size, "%u:%u", major, minor);
	else
		snprintf(buffer, size, name ? "%s (%s)" : "%s", strrchr(dir, '/') + 1, name);
	free(name);
	free(dir);
	free(link);
	return buffer;
}

/* A leg for people, as the status line has it: its name, model and serial number. */
char *device_describe(const char *numbers)
{
	char *model = device_model(numbers), *serial = device_serial(numbers), *text;
	char label[128];
	unsigned int major, minor;

	if (sscanf(numbers, "%u:%u", &major, &minor) == 2)
		device_label(major, minor, label, sizeof(label));
	else
		snprintf(label, sizeof(label), "%s", strcmp(numbers, "-") ? numbers : "missing");
	text = xprintf("%s%s%s%s%s", label, model ? ", " : "", model ? model : "",
		       serial ? ", serial " : "", serial ? serial : "");
	free(model);
	free(serial);
	return text;
}
