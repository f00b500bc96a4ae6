// SPDX-License-Identifier: GPL-2.0
/*
 * The labels of devices: finding, writing and wiping them (labels.h). What they mean is decided by
 * module/core/label.c, for the kernel and here alike.
 *
 * Reads and writes go past the page cache, which another writer of the device does not see.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "hedgetab.h"
#include "labels.h"

#define BLOCK HEDGE_LABEL_SLOT
#define LOCATOR_MAGIC "hedgeptr"
#define LOG_MAGIC 0x4d695272u	/* little endian, at the beginning of dm-dirty-log's disk log */

void uuid_format(const uint8_t *u, char *text)
{
	snprintf(text, UUID_TEXT,
		 "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
		 u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
		 u[15]);
}

bool uuid_scan(const char *text, uint8_t *uuid)
{
	unsigned int byte;
	int n = 0;

	if (!strncmp(text, "HEDGE-", 6))
		text += 6;
	for (size_t i = 0; i < UUID_TEXT - 1;) {
		if (i == 8 || i == 13 || i == 18 || i == 23) {
			if (text[i++] != '-')
				return false;
			continue;
		}
		if (strspn(text + i, "0123456789abcdefABCDEF") < 2 ||
		    sscanf(text + i, "%2x", &byte) != 1)
			return false;
		uuid[n++] = byte;
		i += 2;
	}
	return !text[UUID_TEXT - 1];
}

int uuid_make(uint8_t *uuid)
{
	if (getrandom(uuid, HEDGE_UUID_BYTES, 0) != HEDGE_UUID_BYTES) {
		fail("no random numbers for the UUID: %s", strerror(errno));
		return -1;
	}
	uuid[6] = (uuid[6] & 0x0f) | 0x40;
	uuid[8] = (uuid[8] & 0x3f) | 0x80;
	return 0;
}

uint64_t random_u64(void)
{
	uint64_t value;

	return getrandom(&value, sizeof(value), 0) == sizeof(value) ? value | 1 : 1;
}

/* The UUID of the set in the features of a table; false if it has no labels. */
bool table_label(const struct table *table, uint8_t *uuid)
{
	char *copy = xstrdup(table->features ? table->features : ""), *rest = copy, *word;
	bool found = false;

	while (!found && (word = next_word(&rest)))
		if (!strcmp(word, "label") && (word = next_word(&rest)))
			found = uuid_scan(word, uuid);
	free(copy);
	return found;
}

uint64_t label_data_bytes(uint64_t device_bytes)
{
	device_bytes -= device_bytes % BLOCK;
	return device_bytes > HEDGE_LABEL_BYTES ? device_bytes - HEDGE_LABEL_BYTES : 0;
}

static void *block_alloc(size_t bytes)
{
	void *p = NULL;

	if (posix_memalign(&p, BLOCK, bytes)) {
		fail("out of memory");
		exit(FAILED);
	}
	memset(p, 0, bytes);
	return p;
}

static uint64_t get_le(const uint8_t *from, int bytes)
{
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | from[bytes];
	return value;
}

static void put_le(uint8_t *to, int bytes, uint64_t value)
{
	for (; bytes--; value >>= 8)
		*to++ = value;
}

/* The locator: magic, CRC of the block with zeroes in its place, sector of the label. */
static void locator_encode(uint64_t sector, uint8_t *block)
{
	memset(block, 0, BLOCK);
	memcpy(block, LOCATOR_MAGIC, 8);
	put_le(block + 16, 8, sector);
	put_le(block + 8, 4, hedge_crc32c(block, BLOCK));
}

static bool locator_decode(uint8_t *block, uint64_t *sector)
{
	uint32_t crc = get_le(block + 8, 4);

	if (memcmp(block, LOCATOR_MAGIC, 8))
		return false;
	put_le(block + 8, 4, 0);
	*sector = get_le(block + 16, 8);
	return hedge_crc32c(block, BLOCK) == crc;
}

static bool read_at(int fd, void *buffer, size_t bytes, uint64_t at)
{
	return pread(fd, buffer, bytes, at) == (ssize_t)bytes;
}

/* Where the label of a device is: by the locator at its end, or at the end itself. */
static uint64_t find_sector(int fd, uint64_t bytes, uint8_t *block)
{
	uint64_t end = bytes - bytes % BLOCK, sector;

	if (read_at(fd, block, BLOCK, end - BLOCK) && locator_decode(block, &sector) &&
	    sector % (BLOCK / SECTOR) == 0 && sector * SECTOR + HEDGE_LABEL_BYTES <= end - BLOCK)
		return sector;
	return (end - HEDGE_LABEL_BYTES) / SECTOR;
}

/* A disk log tells its number of regions itself. */
static void find_stamp(int fd, struct labelled *labelled, uint8_t *block)
{
	uint64_t regions;

	if (!read_at(fd, block, BLOCK, 0) || get_le(block, 4) != LOG_MAGIC)
		return;
	regions = get_le(block + 8, 8);
	if (!read_at(fd, block, BLOCK, hedge_stamp_sector(regions) * SECTOR))
		return;
	memcpy(labelled->log_uuid, block + 16, HEDGE_UUID_BYTES);
	labelled->log_stamp = hedge_stamp_decode(block, labelled->log_uuid);
	labelled->log = labelled->log_stamp;
}

/*
 * Finds the label at a place. One that says to be elsewhere is none: a partition at the end of a disk shows at
 * the end of the disk too.
 */
static bool find_label(int fd, uint64_t sector, uint8_t *slots, struct hedge_label_found *found)
{
	if (!read_at(fd, slots, HEDGE_LABEL_BYTES, sector * SECTOR))
		return false;
	hedge_label_find(slots, found);
	if (found->state == HEDGE_LABEL_VALID &&
	    sector != hedge_label_sector(found->label.offset, found->label.length))
		found->state = HEDGE_LABEL_BLANK;
	return true;
}

static int read_labels(int fd, struct labelled *labelled)
{
	uint8_t *slots = block_alloc(HEDGE_LABEL_BYTES);
	struct stat st;
	int r = -1;

	if (!fstat(fd, &st) && S_ISBLK(st.st_mode) && !ioctl(fd, BLKGETSIZE64, &labelled->bytes)) {
		labelled->major = major(st.st_rdev);
		labelled->minor = minor(st.st_rdev);
		r = 0;
	}
	if (!r && labelled->bytes >= HEDGE_LABEL_BYTES + BLOCK) {
		labelled->sector = find_sector(fd, labelled->bytes, slots);
		labelled->found.state = HEDGE_LABEL_UNREADABLE;
		if (!find_label(fd, labelled->sector, slots, &labelled->found))
			r = -1;
		if (labelled->found.state == HEDGE_LABEL_BLANK)
			find_stamp(fd, labelled, slots);
	} else {
		labelled->found.state = HEDGE_LABEL_BLANK;
	}
	free(slots);
	return r;
}

/* Looks at a device, in use or not; a device without a label is no error. */
int label_read(const char *path, struct labelled *labelled, bool quiet)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT | O_NONBLOCK);
	int r = fd < 0 ? -1 : 0;

	*labelled = (struct labelled){ .path = xstrdup(path) };
	if (!r)
		r = read_labels(fd, labelled);
	if (r && !quiet)
		fail("%s: can not be read: %s; give the path of a block device", path,
		     fd < 0 ? strerror(errno) : "no block device, or an error");
	if (fd >= 0)
		close(fd);
	if (r)
		labelled_free(labelled);
	return r;
}

/* The path of a device of which the numbers are known, NULL if there is none. */
static char *number_path(const char *numbers)
{
	char *uevent = xprintf("/sys/dev/block/%s/uevent", numbers), *path = NULL;
	char *text = sysfs_read_file(uevent, NULL), *name = text ? strstr(text, "DEVNAME=") : NULL;

	if (name)
		path = xprintf("/dev/%.*s", (int)strcspn(name + 8, "\n"), name + 8);
	free(uevent);
	free(text);
	return path;
}

int label_read_number(const char *numbers, struct labelled *labelled)
{
	char *path = number_path(numbers);
	int r = path ? label_read(path, labelled, true) : -1;

	free(path);
	return r;
}

void labelled_free(struct labelled *labelled)
{
	free(labelled->path);
	labelled->path = NULL;
}

static int open_writable(const char *path, uint64_t *bytes)
{
	int fd = open(path, O_RDWR | O_EXCL | O_CLOEXEC | O_DIRECT);

	if (fd >= 0 && !ioctl(fd, BLKGETSIZE64, bytes))
		return fd;
	fail("%s: can not be written: %s%s", path, strerror(errno),
	     errno == EBUSY ? "; it is in use: hedgectl list, or lsblk, shows by what" : "");
	if (fd >= 0)
		close(fd);
	return -1;
}

static int write_at(int fd, const char *path, const void *buffer, size_t bytes, uint64_t at)
{
	if (pwrite(fd, buffer, bytes, at) == (ssize_t)bytes)
		return 0;
	fail("%s: can not be written at byte %llu: %s", path, (unsigned long long)at,
	     strerror(errno));
	return -1;
}

static int close_durably(int fd, const char *path, int r)
{
	if (!r && fsync(fd)) {
		fail("%s: can not be written: %s", path, strerror(errno));
		r = -1;
	}
	close(fd);
	return r;
}

/* The same label to both slots: nothing older counts any more. */
int label_write(const char *path, const struct hedge_label *label)
{
	uint64_t at = hedge_label_sector(label->offset, label->length) * SECTOR, bytes, end;
	uint8_t *slots = block_alloc(HEDGE_LABEL_BYTES);
	int fd = open_writable(path, &bytes);
	int r = -1;

	if (fd >= 0) {
		hedge_label_encode(label, slots);
		hedge_label_encode(label, slots + BLOCK);
		r = write_at(fd, path, slots, HEDGE_LABEL_BYTES, at);
		end = bytes - bytes % BLOCK;
		if (!r && end >= at + HEDGE_LABEL_BYTES + BLOCK) {
			locator_encode(at / SECTOR, slots);
			r = write_at(fd, path, slots, BLOCK, end - BLOCK);
		}
		r = close_durably(fd, path, r);
	}
	free(slots);
	return r;
}

/*
 * Zeroes over a label that lies at the end of the device and was hidden by the locator: one of a set that the
 * device was in before.
 */
static int wipe_older(int fd, const char *path, uint64_t end, uint8_t *slots)
{
	uint64_t sector = (end - HEDGE_LABEL_BYTES) / SECTOR;
	struct hedge_label_found found;

	if (!find_label(fd, sector, slots, &found) || found.state != HEDGE_LABEL_VALID)
		return 0;
	memset(slots, 0, HEDGE_LABEL_BYTES);
	return write_at(fd, path, slots, HEDGE_LABEL_BYTES, sector * SECTOR);
}

/* Zeroes over the label and its locator, or over the stamp of a log. */
int label_wipe(const char *path, const struct labelled *labelled)
{
	uint8_t *block = block_alloc(HEDGE_LABEL_BYTES);
	uint64_t bytes, end, sector;
	int fd = open_writable(path, &bytes);
	struct stat st;
	int r = -1;

	if (fd >= 0 && (fstat(fd, &st) || major(st.st_rdev) != labelled->major ||
			minor(st.st_rdev) != labelled->minor)) {
		fail("%s: it is not the device any more that was looked at (%u:%u); try again", path,
		     labelled->major, labelled->minor);
		close(fd);
		fd = -1;
	}
	if (fd >= 0) {
		end = bytes - bytes % BLOCK;
		r = 0;
		if (labelled->log) {
			r = !read_at(fd, block, BLOCK, 0);
			sector = hedge_stamp_sector(get_le(block + 8, 8));
			memset(block, 0, BLOCK);
			r = r ? -1 : write_at(fd, path, block, BLOCK, sector * SECTOR);
		} else {
			if (read_at(fd, block, BLOCK, end - BLOCK) &&
			    locator_decode(block, &sector)) {
				memset(block, 0, BLOCK);
				r = write_at(fd, path, block, BLOCK, end - BLOCK);
			}
			memset(block, 0, BLOCK);
			if (!r)
				r = write_at(fd, path, block, HEDGE_LABEL_BYTES,
					     labelled->sector * SECTOR);
			if (!r)
				r = wipe_older(fd, path, end, block);
		}
		r = close_durably(fd, path, r);
	}
	free(block);
	return r;
}

static bool is_line_of(const struct hedgetab_entry *entry, const uint8_t *set)
{
	uint8_t uuid[HEDGE_UUID_BYTES];

	return entry->source && !strncmp(entry->source, "UUID=", 5) &&
	       uuid_scan(entry->source + 5, uuid) && !memcmp(uuid, set, sizeof(uuid));
}

/* What a set is called in hedgetab, NULL if it has no line there. */
const char *label_hedgetab_name(const struct hedgetab *tab, const uint8_t *set)
{
	for (int i = 0; i < tab->count; i++)
		if (is_line_of(&tab->entries[i], set))
			return tab->entries[i].name;
	return NULL;
}

/* What the next start of the machine waits for, perhaps in vain. */
void label_note_hedgetab(const uint8_t *set)
{
	struct hedgetab tab;

	if (hedgetab_read(&tab))
		return;
	for (int i = 0; i < tab.count; i++) {
		const struct hedgetab_entry *entry = &tab.entries[i];

		if (is_line_of(entry, set))
			note("%s: its set still has a line in %s, and is waited for at boot as long as a leg is missing",
			     entry->name, hedgetab_path());
	}
	hedgetab_free(&tab);
}

/*
 * A device that is in use by a volume: it is opened while that runs, and written to only while
 * it is suspended.
 */
int label_take(const char *numbers, struct taken *taken)
{
	uint64_t bytes = 0;

	*taken = (struct taken){ .fd = -1, .path = number_path(numbers) };
	if (taken->path)
		taken->fd = open(taken->path, O_RDWR | O_CLOEXEC | O_DIRECT);
	if (taken->fd < 0 || ioctl(taken->fd, BLKGETSIZE64, &bytes) || bytes < 4 * BLOCK) {
		fail("%s: can not be opened: %s", taken->path ? taken->path : numbers,
		     strerror(errno));
		return -1;
	}
	taken->end = bytes - bytes % BLOCK - BLOCK;
	taken->slots = block_alloc(HEDGE_LABEL_BYTES);
	taken->last = block_alloc(HEDGE_LABEL_BYTES);
	return 0;
}

/* Where a label, or a stamp, is, and how long. */
static uint64_t place(const struct taken *taken, uint8_t *block, size_t *bytes)
{
	*bytes = taken->now.log ? BLOCK : HEDGE_LABEL_BYTES;
	if (!taken->now.log)
		return taken->now.sector * SECTOR;
	if (!read_at(taken->fd, block, BLOCK, 0))
		return 0;
	return hedge_stamp_sector(get_le(block + 8, 8)) * SECTOR;
}

int label_take_away(struct taken *taken)
{
	uint8_t *block = block_alloc(HEDGE_LABEL_BYTES);
	uint64_t sector, at;
	size_t bytes;
	int r = -1;

	at = place(taken, block, &bytes);
	if (!at || !read_at(taken->fd, taken->slots, bytes, at) ||
	    !read_at(taken->fd, taken->last, HEDGE_LABEL_BYTES, taken->end - BLOCK)) {
		fail("%s: can not be read: %s", taken->path, strerror(errno));
	} else {
		taken->wiped = true;
		memset(block, 0, HEDGE_LABEL_BYTES);
		r = write_at(taken->fd, taken->path, block, bytes, at);
		memcpy(block, taken->last + BLOCK, BLOCK);
		if (!r && !taken->now.log && locator_decode(block, &sector)) {
			memset(block, 0, BLOCK);
			r = write_at(taken->fd, taken->path, block, BLOCK, taken->end);
		}
		if (!r && !taken->now.log)
			r = wipe_older(taken->fd, taken->path, taken->end + BLOCK, block);
		if (!r && fsync(taken->fd)) {
			fail("%s: can not be written: %s", taken->path, strerror(errno));
			r = -1;
		}
	}
	free(block);
	return r;
}

int label_give_back(struct taken *taken)
{
	uint8_t *block;
	uint64_t at;
	size_t bytes;
	int r;

	if (!taken->wiped)
		return 0;
	block = block_alloc(BLOCK);
	at = place(taken, block, &bytes);
	r = at ? write_at(taken->fd, taken->path, taken->slots, bytes, at) : -1;
	if (!r && !taken->now.log)
		r = write_at(taken->fd, taken->path, taken->last, HEDGE_LABEL_BYTES,
			     taken->end - BLOCK);
	if (!r && fsync(taken->fd)) {
		fail("%s: can not be written: %s", taken->path, strerror(errno));
		r = -1;
	}
	free(block);
	return r;
}

void label_taken_free(struct taken *taken)
{
	if (taken->fd >= 0)
		close(taken->fd);
	labelled_free(&taken->now);
	free(taken->path);
	free(taken->slots);
	free(taken->last);
}

/* Makes a log new: without a header, so that the kernel makes one, and with the stamp of its set. */
int stamp_write(const char *path, uint64_t regions, const uint8_t *uuid, uint64_t stamp)
{
	uint8_t *block = block_alloc(BLOCK);
	uint64_t bytes;
	int fd = open_writable(path, &bytes);
	int r = -1;

	if (fd >= 0) {
		r = write_at(fd, path, block, BLOCK, 0);
		hedge_stamp_encode(uuid, stamp, block);
		if (!r)
			r = write_at(fd, path, block, BLOCK, hedge_stamp_sector(regions) * SECTOR);
		r = close_durably(fd, path, r);
	}
	free(block);
	return r;
}

/* A device of device-mapper that is suspended: a read of it would wait until it is resumed. */
static bool is_suspended(const char *name)
{
	char *path = xprintf("/sys/class/block/%s/dm/suspended", name);
	char *text = sysfs_read_file(path, NULL);
	bool suspended = text && text[0] == '1';

	free(text);
	free(path);
	return suspended;
}

/*
 * A path of a multipath device, as multipath has told udev: the leg is what lies on it, perhaps not yet.
 * Started on one path, it would keep that from being made.
 */
static bool is_path(const char *name)
{
	char *dev = xprintf("/sys/class/block/%s/dev", name), *data = NULL, *text = NULL;
	char *numbers = sysfs_read_file(dev, NULL);
	bool found;

	if (numbers) {
		data = xprintf("/run/udev/data/b%.*s", (int)strcspn(numbers, "\n"), numbers);
		text = sysfs_read_file(data, NULL);
	}
	found = text && strstr(text, "\nE:DM_MULTIPATH_DEVICE_PATH=1\n");
	free(text);
	free(data);
	free(numbers);
	free(dev);
	return found;
}

static void scan_device(const char *name, struct labelled_list *list)
{
	char *path = xprintf("/dev/%s", name);
	struct labelled labelled;

	for (char *p = path; (p = strchr(p, '!'));)
		*p = '/';
	if (is_suspended(name))
		note("%s: not looked at: it is suspended", path);
	else if (!is_path(name) && !label_read(path, &labelled, true)) {
		if (labelled.log || labelled.found.state >= HEDGE_LABEL_DAMAGED) {
			list->items = xrealloc(list->items,
					       (list->count + 1) * sizeof(labelled));
			list->items[list->count++] = labelled;
		} else {
			labelled_free(&labelled);
		}
	}
	free(path);
}

int label_scan(struct labelled_list *list)
{
	struct dirent **entries;
	int n = scandir("/sys/class/block", &entries, NULL, alphasort);

	*list = (struct labelled_list){ 0 };
	if (n < 0) {
		fail("can not list the block devices in /sys/class/block: %s", strerror(errno));
		return -1;
	}
	for (int i = 0; i < n; i++) {
		if (entries[i]->d_name[0] != '.')
			scan_device(entries[i]->d_name, list);
		free(entries[i]);
	}
	free(entries);
	return 0;
}

void labelled_list_free(struct labelled_list *list)
{
	for (int i = 0; i < list->count; i++)
		labelled_free(&list->items[i]);
	free(list->items);
	*list = (struct labelled_list){ 0 };
}
