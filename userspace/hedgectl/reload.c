// SPDX-License-Identifier: GPL-2.0
/*
 * Another table for a device that is in use: load, suspend, look once more, resume.
 *
 * While the device is suspended we may not wait for memory that is to be written to it, so all
 * of ours is locked before. If anything is wrong then, the new table is dropped and the old one
 * goes on; if the new one cannot be resumed, the old one is loaded again.
 */
#include <errno.h>
#include <libdevmapper.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hedgectl.h"

static struct dm_task *task_new(int type, const char *name)
{
	struct dm_task *task = dm_task_create(type);

	if (task && dm_task_set_name(task, name))
		return task;
	if (task)
		dm_task_destroy(task);
	return NULL;
}

static bool task_end(struct dm_task *task)
{
	bool good = dm_task_run(task);

	dm_task_destroy(task);
	return good;
}

static bool load(const char *name, const struct line *line)
{
	struct dm_task *task = task_new(DM_DEVICE_RELOAD, name);

	if (!task)
		return false;
	if (!dm_task_add_target(task, 0, line->sectors, line->type, line->table)) {
		dm_task_destroy(task);
		return false;
	}
	return task_end(task);
}

static bool simple(int type, const char *name)
{
	struct dm_task *task = task_new(type, name);

	if (!task)
		return false;
	/* A file system on it needs no freezing: what is in flight ends, the rest waits. */
	if (type == DM_DEVICE_SUSPEND)
		dm_task_skip_lockfs(task);
	return task_end(task);
}

static bool resume(const char *name)
{
	struct dm_task *task = task_new(DM_DEVICE_RESUME, name);
	uint32_t cookie = 0;
	bool good;

	if (!task)
		return false;
	good = dm_task_set_cookie(task, &cookie, 0) && dm_task_run(task);
	dm_task_destroy(task);
	dm_udev_wait(cookie);
	return good;
}

/* Reads the only target of a device. */
int line_read(const char *name, struct line *line)
{
	static const int types[] = { DM_DEVICE_TABLE, DM_DEVICE_STATUS };

	*line = (struct line){ 0 };
	for (int i = 0; i < 2; i++) {
		struct dm_task *task = task_new(types[i], name);
		uint64_t start, sectors;
		char *type, *params;
		struct dm_info info;
		bool good;

		good = task && dm_task_no_flush(task) && dm_task_run(task) &&
		       dm_task_get_info(task, &info) && info.exists;
		if (good && dm_get_next_target(task, NULL, &start, &sectors, &type, &params))
			line->many = true;
		good = good && type;
		if (good && !i) {
			line->uuid = xstrdup(dm_task_get_uuid(task));
			line->type = xstrdup(type);
			line->sectors = sectors;
			line->table = xstrdup(params);
		} else if (good) {
			line->status = xstrdup(params);
		}
		if (task)
			dm_task_destroy(task);
		if (good)
			continue;
		fail(geteuid() ? "%s: can not be read; run it as root" :
				 "%s: there is no such device, or it has no table; dmsetup ls shows those there are",
		     name);
		line_free(line);
		return -1;
	}
	return 0;
}

void line_free(struct line *line)
{
	free(line->uuid);
	free(line->type);
	free(line->table);
	free(line->status);
	*line = (struct line){ 0 };
}

/* The new table is live and cannot be resumed: the old one comes back. */
static int go_back(const char *name, const struct line *old, int kmsg)
{
	kmsg_report(kmsg);
	if (load(name, old) && resume(name))
		fail("%s: the kernel could not use the new table; the old one is back", name);
	else
		fail("%s: the kernel could not use the new table, and the device is suspended; load a table and resume it: dmsetup reload, dmsetup resume",
		     name);
	return -1;
}

int line_swap(const char *name, const struct line *old, const struct line *new,
	      int (*verify)(const char *name, void *context), void (*undo)(void *context),
	      void *context)
{
	int kmsg = kmsg_begin();

	if (mlockall(MCL_CURRENT | MCL_FUTURE)) {
		fail("%s: can not lock memory: %s; run it as root", name, strerror(errno));
		kmsg_end(kmsg);
		return -1;
	}
	if (!load(name, new)) {
		fail("%s: the kernel refused the table, and nothing has changed\n  table: 0 %llu %s %s",
		     name, (unsigned long long)new->sectors, new->type, new->table);
		kmsg_report(kmsg);
		return -1;
	}
	if (!simple(DM_DEVICE_SUSPEND, name)) {
		simple(DM_DEVICE_CLEAR, name);
		fail("%s: can not be suspended, and nothing has changed", name);
		kmsg_report(kmsg);
		return -1;
	}
	if (verify(name, context)) {
		undo(context);
		simple(DM_DEVICE_CLEAR, name);
		resume(name);
		kmsg_end(kmsg);
		return -1;
	}
	if (!resume(name)) {
		undo(context);
		return go_back(name, old, kmsg);
	}
	kmsg_end(kmsg);
	munlockall();
	return 0;
}
