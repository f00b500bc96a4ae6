// SPDX-License-Identifier: GPL-2.0
/*
 * A device-mapper, a /sys and block devices that are a directory, for hedgectl top, monitor and assemble:
 * linked into hedgectl with -Wl,--wrap, this stands before the functions that read them.
 *
 * $FAKE/volumes/NAME has the minor number and the status line of a volume; a volume comes and goes
 * with its file; while there is a $FAKE/changing they can not be read, once. $FAKE/dev/diskN is the block device 7:N. What would be created is written to
 * $FAKE/created, unless there is a $FAKE/refuse; $FAKE/appears has the line that its file in volumes gets
 * then. $FAKE/run is /run. The rest of $FAKE is what /sys would have.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "hedgectl.h"

int __wrap_dm_volume_read(const char *name, struct volume *volume);
int __wrap_dm_volumes_read(struct volume **volumes, int *count);
char *__wrap_sysfs_read_file(const char *path, size_t *length);
int __wrap_sysfs_read_tree(const char *dir, struct kv_list *list);
int __wrap_sysfs_write(const char *dir, const struct assignment *assignment);
int __real_sysfs_write(const char *dir, const struct assignment *assignment);
int __wrap_dm_name_free(const char *name);
int __wrap_dm_table_check(const char *name, const char *uuid, uint64_t sectors, const char *table);
int __wrap_dm_volume_create(const char *name, const char *uuid, uint64_t sectors, const char *table);
char *__wrap_device_model(const char *numbers);
int __wrap_open(const char *path, int flags, ...);
int __wrap_fstat(int fd, struct stat *st);
int __wrap_ioctl(int fd, unsigned long request, void *argument);
DIR *__wrap_opendir(const char *path);
int __wrap_scandir(const char *path, struct dirent ***entries, int (*filter)(const struct dirent *),
		   int (*compare)(const struct dirent **, const struct dirent **));
int __real_open(const char *path, int flags, ...);
int __real_fstat(int fd, struct stat *st);
int __real_ioctl(int fd, unsigned long request, void *argument);
DIR *__real_opendir(const char *path);
int __real_scandir(const char *path, struct dirent ***entries, int (*filter)(const struct dirent *),
		   int (*compare)(const struct dirent **, const struct dirent **));
char *__real_sysfs_read_file(const char *path, size_t *length);
int __real_sysfs_read_tree(const char *dir, struct kv_list *list);

int __wrap_dm_volume_read(const char *name, struct volume *volume)
{
	char *path = xprintf("%s/volumes/%s", getenv("FAKE"), name);
	char *text = __real_sysfs_read_file(path, NULL);
	char *space = text ? strchr(text, ' ') : NULL;

	free(path);
	if (!space) {
		free(text);
		fail("%s: there is no such device; hedgectl list shows those there are", name);
		return -1;
	}
	*volume = (struct volume){
		.name = xstrdup(name), .uuid = xstrdup(name), .major = 253,
		.minor = (unsigned int)atoi(text), .sectors = 2048, .nr_targets = 1,
	};
	volume->targets = xcalloc(1, sizeof(*volume->targets));
	volume->targets[0].status = xstrdup(space + 1);
	volume->targets[0].table = xstrdup("");
	free(text);
	return 0;
}

int __wrap_dm_volumes_read(struct volume **volumes, int *count)
{
	char *path = xprintf("%s/volumes", getenv("FAKE"));
	struct dirent **entries;
	int n = scandir(path, &entries, NULL, alphasort);

	*volumes = xcalloc(n > 0 ? n : 1, sizeof(**volumes));
	*count = 0;
	for (int i = 0; i < n; i++) {
		if (entries[i]->d_name[0] != '.' &&
		    !__wrap_dm_volume_read(entries[i]->d_name, &(*volumes)[*count]))
			(*count)++;
		free(entries[i]);
	}
	free(path);
	if (n >= 0)
		free(entries);
	path = xprintf("%s/changing", getenv("FAKE"));
	n = unlink(path);
	free(path);
	return n ? 0 : -1;
}

static char *faked(const char *path)
{
	if (!strncmp(path, "/run/", 5))
		return xprintf("%s/%s", getenv("FAKE"), path);
	return strncmp(path, "/sys/", 5) ? xstrdup(path) : xprintf("%s/%s", getenv("FAKE"), path + 5);
}

char *__wrap_sysfs_read_file(const char *path, size_t *length)
{
	char *other = faked(path), *text = __real_sysfs_read_file(other, length);

	free(other);
	return text;
}

int __wrap_sysfs_read_tree(const char *dir, struct kv_list *list)
{
	char *other = faked(dir);
	int r = __real_sysfs_read_tree(other, list);

	free(other);
	return r;
}

int __wrap_sysfs_write(const char *dir, const struct assignment *assignment)
{
	char *other = faked(dir);
	int r = __real_sysfs_write(other, assignment);

	free(other);
	return r;
}

DIR *__wrap_opendir(const char *path)
{
	char *other = faked(path);
	DIR *dir = __real_opendir(other);

	free(other);
	return dir;
}

int __wrap_scandir(const char *path, struct dirent ***entries, int (*filter)(const struct dirent *),
		   int (*compare)(const struct dirent **, const struct dirent **))
{
	char *other = faked(path);
	int n = __real_scandir(other, entries, filter, compare);

	free(other);
	return n;
}

/* --- block devices ---------------------------------------------------------------- */

int __wrap_open(const char *path, int flags, ...)
{
	char *other = xprintf("%s/%s", getenv("FAKE"), path);
	int fd;

	if (!strncmp(path, "/dev/", 5) && !access(other, F_OK))
		fd = __real_open(other, flags & ~(O_DIRECT | O_EXCL));
	else
		fd = __real_open(path, flags, 0666);
	free(other);
	return fd;
}

/* The number of a disk that is a file, or -1. */
static int disk_number(int fd)
{
	char *link = xprintf("/proc/self/fd/%d", fd), *dir = xprintf("%s/dev/disk", getenv("FAKE"));
	char path[PATH_MAX];
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	int number = -1;

	path[n > 0 ? n : 0] = '\0';
	if (!strncmp(path, dir, strlen(dir)))
		number = atoi(path + strlen(dir));
	free(dir);
	free(link);
	return number;
}

int __wrap_fstat(int fd, struct stat *st)
{
	int r = __real_fstat(fd, st), number = disk_number(fd);

	if (!r && number >= 0) {
		st->st_mode = S_IFBLK | 0600;
		st->st_rdev = makedev(7, number);
	}
	return r;
}

int __wrap_ioctl(int fd, unsigned long request, void *argument)
{
	struct stat st;

	if (request != BLKGETSIZE64 || disk_number(fd) < 0)
		return __real_ioctl(fd, request, argument);
	if (__real_fstat(fd, &st))
		return -1;
	*(uint64_t *)argument = st.st_size;
	return 0;
}

char *__wrap_device_model(const char *numbers)
{
	return xprintf("model of %s", numbers);
}

/* --- making volumes ------------------------------------------------------------------ */

int __wrap_dm_name_free(const char *name)
{
	char *path = xprintf("%s/volumes/%s", getenv("FAKE"), name);
	int r = access(path, F_OK) ? 0 : -1;

	if (r)
		fail("%s: there is a device of this name already", name);
	free(path);
	return r;
}

int __wrap_dm_table_check(const char *name, const char *uuid, uint64_t sectors, const char *table)
{
	char *path = xprintf("%s/refuse", getenv("FAKE"));
	int r = access(path, F_OK) ? 0 : -1;

	(void)uuid;
	if (r)
		fail("%s: the kernel refused the table\n  table: 0 %llu hedge %s", name,
		     (unsigned long long)sectors, table);
	free(path);
	return r;
}

int __wrap_dm_volume_create(const char *name, const char *uuid, uint64_t sectors, const char *table)
{
	char *path = xprintf("%s/created", getenv("FAKE"));
	char *line = xprintf("%s/appears", getenv("FAKE")), *volume = xprintf("%s/volumes/%s", getenv("FAKE"), name);
	int r = __wrap_dm_table_check(name, uuid, sectors, table);
	FILE *file = r ? NULL : fopen(path, "a");

	if (!r)
		rename(line, volume);
	free(line);
	free(volume);
	free(path);
	if (!file)
		return -1;
	fprintf(file, "%s %s 0 %llu hedge %s\n", name, uuid, (unsigned long long)sectors, table);
	return fclose(file);
}
