// SPDX-License-Identifier: GPL-2.0
/*
 * A device-mapper and a /sys that are a directory, for hedgectl top: linked into hedgectl with
 * -Wl,--wrap, this stands before the functions that read them.
 *
 * $FAKE/volumes/NAME has the minor number and the status line of a volume; a volume comes and goes
 * with its file. The rest of $FAKE is what /sys would have.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hedgectl.h"

int __wrap_dm_volume_read(const char *name, struct volume *volume);
int __wrap_dm_volumes_read(struct volume **volumes, int *count);
char *__wrap_sysfs_read_file(const char *path, size_t *length);
int __wrap_sysfs_read_tree(const char *dir, struct kv_list *list);
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
	return 0;
}

static char *faked(const char *path)
{
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
