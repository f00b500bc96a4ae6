// SPDX-License-Identifier: GPL-2.0
/*
 * Another table for a device that is in use: load, suspend, look once more, resume.
 *
 * While the device is suspended we may not wait for anything that is to be written to it, so our
 * memory is locked before, and messages are kept until it runs. Nor may we end: signals that
 * would end us interrupt a suspend that waits for a leg, and nothing else. If anything is wrong
 * then, the new table is dropped and the old one goes on; if the new one cannot be resumed, the
 * old one is loaded again. A volume that is closed is suspended and resumed with the table it has.
 */
#include <errno.h>
#include <libdevmapper.h>
#include <signal.h>
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
	/*
	 * A file system on it needs no freezing: what is in flight ends, the rest waits. Writes
	 * that a target holds back go to the new table; to flush them would be to fail them.
	 */
	if (type == DM_DEVICE_SUSPEND && (!dm_task_skip_lockfs(task) || !dm_task_no_flush(task))) {
		dm_task_destroy(task);
		return false;
	}
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

/* --- signals --------------------------------------------------------------------------- */

static const int deadly[] = { SIGHUP, SIGINT, SIGTERM };

#define NR_DEADLY ((int)(sizeof(deadly) / sizeof(deadly[0])))

struct signals {
	struct sigaction actions[NR_DEADLY];
	sigset_t mask;
};

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
	interrupted = signal;
}

/* Those that would end us are noted, the rest waits; SIGPIPE and SIGTSTP are of the rest. */
static void signals_hold(struct signals *signals)
{
	struct sigaction action = { .sa_handler = interrupt };
	sigset_t rest;

	interrupted = 0;
	sigfillset(&rest);
	for (int i = 0; i < NR_DEADLY; i++) {
		sigdelset(&rest, deadly[i]);
		sigaction(deadly[i], NULL, &signals->actions[i]);
		/* What nohup has ignored stays so. */
		if (signals->actions[i].sa_handler != SIG_IGN)
			sigaction(deadly[i], &action, NULL);
	}
	sigprocmask(SIG_SETMASK, &rest, &signals->mask);
}

static void signals_release(const struct signals *signals)
{
	for (int i = 0; i < NR_DEADLY; i++)
		sigaction(deadly[i], &signals->actions[i], NULL);
	sigprocmask(SIG_SETMASK, &signals->mask, NULL);
}

/* --- the exchange ------------------------------------------------------------------------ */

int line_check(const char *name, const struct line *line)
{
	int kmsg = kmsg_begin();
	bool good = load(name, line);

	simple(DM_DEVICE_CLEAR, name);
	if (good) {
		kmsg_end(kmsg);
		return 0;
	}
	fail("%s: the kernel refused the table, and nothing has changed\n  table: 0 %llu %s %s", name,
	     (unsigned long long)line->sectors, line->type, line->table);
	kmsg_report(kmsg);
	return -1;
}

enum outcome { SWAPPED, REFUSED, NOT_SUSPENDED, BACK, STUCK };

/* The new table is loaded; nothing is printed until this returns. */
static enum outcome exchange(const char *name, const struct line *old,
			     int (*verify)(const char *name, void *context),
			     void (*undo)(void *context), void *context)
{
	if (!simple(DM_DEVICE_SUSPEND, name)) {
		simple(DM_DEVICE_CLEAR, name);
		return NOT_SUSPENDED;
	}
	if (verify && verify(name, context)) {
		if (undo)
			undo(context);
		simple(DM_DEVICE_CLEAR, name);
		return resume(name) ? REFUSED : STUCK;
	}
	if (resume(name))
		return SWAPPED;
	if (undo)
		undo(context);
	return load(name, old) && resume(name) ? BACK : STUCK;
}

static void explain(const char *name, enum outcome outcome)
{
	switch (outcome) {
	case NOT_SUSPENDED:
		fail(interrupted ? "%s: interrupted while it was to be suspended, and nothing has changed" :
				   "%s: can not be suspended, and nothing has changed", name);
		break;
	case BACK:
		fail("%s: the kernel could not use the new table; the old one is back", name);
		break;
	case STUCK:
		fail("%s: the device is suspended, for the kernel could resume it neither with the new table nor with the old one; load a table and resume it: dmsetup reload, dmsetup resume",
		     name);
		break;
	default:
		break;
	}
}

int line_swap(const char *name, const struct line *old, const struct line *new,
	      int (*verify)(const char *name, void *context), void (*undo)(void *context),
	      void *context)
{
	struct signals signals;
	enum outcome outcome;
	int kmsg;

	if (mlockall(MCL_CURRENT | MCL_FUTURE)) {
		fail("%s: can not lock memory: %s; run it as root", name, strerror(errno));
		return -1;
	}
	kmsg = kmsg_begin();
	if (!load(name, new)) {
		munlockall();
		fail("%s: the kernel refused the table, and nothing has changed\n  table: 0 %llu %s %s",
		     name, (unsigned long long)new->sectors, new->type, new->table);
		kmsg_report(kmsg);
		return -1;
	}
	signals_hold(&signals);
	messages_keep(true);
	outcome = exchange(name, old, verify, undo, context);
	munlockall();
	messages_release();
	explain(name, outcome);
	if (outcome == SWAPPED || outcome == REFUSED)
		kmsg_end(kmsg);
	else
		kmsg_report(kmsg);
	signals_release(&signals);
	return outcome == SWAPPED ? 0 : -1;
}

/* Has the target put in order what it leaves on its legs; udev, which may have ended, is not waited for. */
int line_close(const char *name)
{
	struct signals signals;
	bool suspended, resumed;

	if (mlockall(MCL_CURRENT | MCL_FUTURE)) {
		fail("%s: can not lock memory: %s; run it as root", name, strerror(errno));
		return -1;
	}
	signals_hold(&signals);
	suspended = simple(DM_DEVICE_SUSPEND, name);
	resumed = !suspended || simple(DM_DEVICE_RESUME, name);
	munlockall();
	if (!suspended)
		explain(name, NOT_SUSPENDED);
	else if (!resumed)
		fail("%s: it is suspended, for the kernel could not resume it; dmsetup resume %s",
		     name, name);
	signals_release(&signals);
	return suspended && resumed ? 0 : -1;
}
