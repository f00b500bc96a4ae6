// SPDX-License-Identifier: GPL-2.0
/*
 * Attributes in sysfs: those of a hedge target, one value a file, and what the kernel tells of a
 * disk. A target has its directory only while its device is not suspended.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hedgectl.h"

/* Reads to the end: a histogram is longer than a page. */
char *sysfs_read_file(const char *path, size_t *length)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t room = 4096, used = 0;
	char *text;
	ssize_t n;

	if (fd < 0)
		return NULL;
	text = xcalloc(1, room);
	while ((n = read(fd, text + used, room - used - 1)) > 0) {
		used += n;
		if (room - used < 2)
			text = xrealloc(text, room *= 2);
	}
	close(fd);
	if (n < 0) {
		free(text);
		return NULL;
	}
	text[used] = '\0';
	if (length)
		*length = used;
	return text;
}

/* One line without its end; NULL if there is none or it is empty. */
static char *read_line(const char *path)
{
	char *text = sysfs_read_file(path, NULL);
	size_t n;

	if (!text)
		return NULL;
	n = strcspn(text, "\n");
	while (n && text[n - 1] == ' ')
		n--;
	text[n] = '\0';
	if (n)
		return text;
	free(text);
	return NULL;
}

char *sysfs_target_dir(const struct volume *volume, int target)
{
	return xprintf("/sys/block/dm-%u/hedge%d", volume->minor, target);
}

static void read_attr(const char *path, const char *name, mode_t mode, struct kv_list *list)
{
	char *line = read_line(path);

	if (line)
		kv_add(list, name, line, mode & 0222);
	free(line);
}

static void read_dir(const char *dir, const char *prefix, struct kv_list *list)
{
	DIR *stream = opendir(dir);
	struct dirent *entry;
	struct stat st;

	if (!stream)
		return;
	while ((entry = readdir(stream))) {
		char *path = xprintf("%s/%s", dir, entry->d_name);
		char *name = xprintf("%s%s", prefix, entry->d_name);

		if (entry->d_name[0] == '.' || lstat(path, &st)) {
			/* not an attribute */
		} else if (S_ISDIR(st.st_mode)) {
			char *longer = xprintf("%s/", name);

			read_dir(path, longer, list);
			free(longer);
		} else if (S_ISREG(st.st_mode) && strcmp(entry->d_name, "histogram")) {
			read_attr(path, name, st.st_mode, list);
		}
		free(path);
		free(name);
	}
	closedir(stream);
}

/*
 * An empty list and -1 if the target has no attributes now; says nothing, the caller knows what
 * else there is.
 */
int sysfs_read_tree(const char *dir, struct kv_list *list)
{
	*list = (struct kv_list){ 0 };
	read_dir(dir, "", list);
	kv_sort(list);
	return list->count ? 0 : -1;
}

int sysfs_write(const char *dir, const struct assignment *assignment)
{
	size_t length = strlen(assignment->value);
	char *path;
	int fd, error = 0;

	if (assignment->leg < 0)
		path = xprintf("%s/%s", dir, assignment->name);
	else
		path = xprintf("%s/legs/%d/%s", dir, assignment->leg, assignment->name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, assignment->value, length) != (ssize_t)length)
		error = errno;
	if (fd >= 0)
		close(fd);
	free(path);
	errno = error;
	return error ? -1 : 0;
}

/* The whole disk of a partition, else the device itself. */
char *sysfs_disk_dir(unsigned int major, unsigned int minor)
{
	char *link = xprintf("/sys/dev/block/%u:%u", major, minor);
	char *dir = realpath(link, NULL), *partition;

	free(link);
	if (!dir)
		return NULL;
	partition = xprintf("%s/partition", dir);
	if (!access(partition, F_OK))
		*strrchr(dir, '/') = '\0';
	free(partition);
	return dir;
}

char *sysfs_device_attr(unsigned int major, unsigned int minor, const char *attr)
{
	char *dir = sysfs_disk_dir(major, minor), *path, *line;

	if (!dir)
		return NULL;
	path = xprintf("%s/%s", dir, attr);
	line = read_line(path);
	free(path);
	free(dir);
	return line;
}
