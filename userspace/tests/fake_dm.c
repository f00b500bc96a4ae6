// SPDX-License-Identifier: GPL-2.0
/*
 * A device-mapper that is a directory, for the commands that change devices: linked into hedgectl
 * in the place of libdevmapper.
 *
 * $FAKE/dm/NAME has what the kernel knows of a device, a file each: uuid, minor, table, inactive,
 * status (of each target), suspended. $FAKE/log gets a line for each task that changes something. For each the program
 * $FAKE/hook, if there is one, is run with the line: its exit status is the errno of the task, 0 if
 * it succeeds. As in the kernel a resume makes the new table live, and then may fail.
 *
 * With -Wl,--wrap, /sys is $FAKE too, and a device that is to be a leg or a log is a directory
 * in it: $FAKE/dev/NAME has its numbers (major:minor), bytes, block, signature, the state of its label,
 * and stamp if it is a log.
 */
#include <dirent.h>
#include <errno.h>
#include <libdevmapper.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "labels.h"

char *__wrap_sysfs_read_file(const char *path, size_t *length);
char *__real_sysfs_read_file(const char *path, size_t *length);
int __wrap_sysfs_read_tree(const char *dir, struct kv_list *list);
int __real_sysfs_read_tree(const char *dir, struct kv_list *list);
char *__wrap_sysfs_device_attr(unsigned int major, unsigned int minor, const char *attr);
int __wrap_device_open(const char *path, struct device *device);
int __wrap_device_claim(struct device *device);
int __wrap_device_still(const struct device *device);
int __wrap_label_read(const char *path, struct labelled *labelled, bool quiet);
int __wrap_label_read_number(const char *numbers, struct labelled *labelled);
int __wrap_label_write(const char *path, const struct hedge_label *label);
int __wrap_label_wipe(const char *path, const struct labelled *labelled);
int __wrap_mlockall(int flags);
int __wrap_munlockall(void);

/* --- files --------------------------------------------------------------------------- */

static char *in(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A path in $FAKE. */
static char *in(const char *format, ...)
{
	va_list list;
	char *rest, *path;

	va_start(list, format);
	rest = xvprintf(format, list);
	va_end(list);
	path = xprintf("%s/%s", getenv("FAKE"), rest);
	free(rest);
	return path;
}

/* Its text without the end of the line, or NULL; frees the path. */
static char *get(char *path)
{
	char *text = __real_sysfs_read_file(path, NULL);

	free(path);
	if (text)
		text[strcspn(text, "\n")] = '\0';
	return text;
}

static void put(char *path, const char *mode, const char *text)
{
	FILE *file = fopen(path, mode);

	if (!file || fprintf(file, "%s\n", text) < 0 || fclose(file))
		abort();
	free(path);
}

/* --- device-mapper ---------------------------------------------------------------------- */

struct dm_task {
	int type;
	char *name, *uuid, *table, *message, *line;
	char *found;		/* the name of the device */
	char *rest, *status;	/* of the table, what was not asked for yet */
	bool no_flush, skip_lockfs;
	_Alignas(struct dm_names) char names[4096];
};

static dm_log_with_errno_fn log_error;

static const char *type_name(int type)
{
	switch (type) {
	case DM_DEVICE_CREATE: return "create";
	case DM_DEVICE_RELOAD: return "load";
	case DM_DEVICE_REMOVE: return "remove";
	case DM_DEVICE_SUSPEND: return "suspend";
	case DM_DEVICE_RESUME: return "resume";
	case DM_DEVICE_CLEAR: return "clear";
	case DM_DEVICE_TARGET_MSG: return "message";
	default: return NULL;
	}
}

void dm_log_with_errno_init(dm_log_with_errno_fn fn) { log_error = fn; }

struct dm_task *dm_task_create(int type)
{
	struct dm_task *task = xcalloc(1, sizeof(*task));

	task->type = type;
	return task;
}

void dm_task_destroy(struct dm_task *task)
{
	free(task->name);
	free(task->uuid);
	free(task->table);
	free(task->message);
	free(task->line);
	free(task->status);
	free(task->found);
	free(task);
}

int dm_task_set_name(struct dm_task *task, const char *name) { task->name = xstrdup(name); return 1; }
int dm_task_set_uuid(struct dm_task *task, const char *uuid) { task->uuid = xstrdup(uuid); return 1; }
int dm_task_set_message(struct dm_task *task, const char *message) { task->message = xstrdup(message); return 1; }
int dm_task_no_flush(struct dm_task *task) { return task->no_flush = true; }
int dm_task_skip_lockfs(struct dm_task *task) { return task->skip_lockfs = true; }
int dm_task_set_sector(struct dm_task *task, uint64_t sector) { (void)sector; return !!task; }
int dm_task_set_major_minor(struct dm_task *task, int major, int minor, int allow)
{
	(void)major;
	(void)minor;
	(void)allow;
	return !task;
}
int dm_task_set_add_node(struct dm_task *task, dm_add_node_t add) { (void)add; return !!task; }
int dm_task_set_cookie(struct dm_task *task, uint32_t *cookie, uint16_t flags) { (void)cookie; (void)flags; return !!task; }
int dm_task_retry_remove(struct dm_task *task) { return !!task; }
void dm_task_update_nodes(void) { }
int dm_udev_wait(uint32_t cookie) { (void)cookie; return 1; }

int dm_task_add_target(struct dm_task *task, uint64_t start, uint64_t size, const char *type, const char *params)
{
	task->table = xprintf("%llu %llu %s %s", (unsigned long long)start, (unsigned long long)size, type, params);
	return 1;
}

/* The name of the device that a task is for, or NULL. */
static char *find(const struct dm_task *task)
{
	struct dirent **entries;
	char *path = in("dm"), *found = NULL;
	int n = scandir(path, &entries, NULL, alphasort);

	free(path);
	for (int i = 0; i < n; i++) {
		const char *name = entries[i]->d_name;
		char *uuid = name[0] == '.' ? NULL : get(in("dm/%s/uuid", name));

		if (uuid && !found &&
		    ((task->name && !strcmp(task->name, name)) || (task->uuid && !strcmp(task->uuid, uuid))))
			found = xstrdup(name);
		free(uuid);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	return found;
}

static int run_hook(const char *line)
{
	char *hook = in("hook");
	int status = 0;
	pid_t pid;

	if (!access(hook, X_OK)) {
		pid = fork();
		if (!pid) {
			execl(hook, hook, line, NULL);
			_exit(1);
		}
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	free(hook);
	return WEXITSTATUS(status);
}

static int change(struct dm_task *task)
{
	const char *name = task->found ? task->found : task->name;
	char *line = xprintf("%s %s%s%s%s%s%s%s", type_name(task->type), name, task->no_flush ? " noflush" : "",
			     task->skip_lockfs ? " nolockfs" : "", task->table ? " " : "",
			     task->table ? task->table : "", task->message ? " " : "",
			     task->message ? task->message : "");
	char *dir = in("dm/%s", name), *table = in("dm/%s/table", name), *inactive = in("dm/%s/inactive", name);
	char *suspended = in("dm/%s/suspended", name), *command;
	bool new = task->type == DM_DEVICE_CREATE;
	int error;

	put(in("log"), "a", line);
	if (task->type == DM_DEVICE_RESUME)
		rename(inactive, table);
	error = !new && !task->found ? ENXIO : run_hook(line);
	if (!error && new && task->found)
		error = EBUSY;
	if (!error && new) {
		if (mkdir(dir, 0755))
			abort();
		put(in("dm/%s/uuid", name), "w", task->uuid);
		put(in("dm/%s/minor", name), "w", "9");
	} else if (!error && task->type == DM_DEVICE_RELOAD) {
		put(xstrdup(inactive), "w", task->table);
	} else if (task->type == DM_DEVICE_CLEAR) {
		unlink(inactive);
	} else if (!error && task->type == DM_DEVICE_SUSPEND) {
		put(xstrdup(suspended), "w", "");
	} else if (!error && task->type == DM_DEVICE_RESUME) {
		unlink(suspended);
	} else if (!error && task->type == DM_DEVICE_REMOVE) {
		command = xprintf("rm -r '%s'", dir);
		error = system(command) ? EIO : 0;
		free(command);
	}
	free(line);
	free(dir);
	free(table);
	free(inactive);
	free(suspended);
	return error;
}

/* The targets of a device, as a query has them, a line each. */
static void look(struct dm_task *task)
{
	char *path = in("dm/%s/table", task->found);

	task->line = __real_sysfs_read_file(path, NULL);
	task->rest = task->line;
	if (task->type == DM_DEVICE_STATUS)
		task->status = get(in("dm/%s/status", task->found));
	free(path);
}

int dm_task_run(struct dm_task *task)
{
	int error = 0;

	task->found = find(task);
	if (type_name(task->type))
		error = change(task);
	else if (task->found)
		look(task);
	if (!error)
		return 1;
	log_error(3, "", 0, error, "device-mapper: %s ioctl on %s failed: %s", type_name(task->type),
		  task->name ? task->name : task->uuid, strerror(error));
	errno = error;
	return 0;
}

int dm_task_get_errno(struct dm_task *task) { (void)task; return errno; }

int dm_task_get_info(struct dm_task *task, struct dm_info *info)
{
	char *minor = task->found ? get(in("dm/%s/minor", task->found)) : NULL;
	char *suspended = task->found ? get(in("dm/%s/suspended", task->found)) : NULL;

	*info = (struct dm_info){ .exists = !!minor, .major = 253, .minor = minor ? atoi(minor) : 0,
				  .suspended = !!suspended };
	free(minor);
	free(suspended);
	return 1;
}

const char *dm_task_get_name(const struct dm_task *task) { return task->found; }

const char *dm_task_get_uuid(const struct dm_task *task)
{
	struct dm_task *t = (struct dm_task *)task;

	free(t->uuid);
	t->uuid = get(in("dm/%s/uuid", task->found));
	return t->uuid;
}

void *dm_get_next_target(struct dm_task *task, void *next, uint64_t *start, uint64_t *length, char **type,
			 char **params)
{
	char *rest = task->rest ? strsep(&task->rest, "\n") : NULL;

	(void)next;
	*type = NULL;
	if (!rest || !*rest)
		return NULL;
	*start = strtoull(strsep(&rest, " "), NULL, 10);
	*length = strtoull(strsep(&rest, " "), NULL, 10);
	*type = strsep(&rest, " ");
	*params = task->status ? task->status : rest;
	return task->rest && *task->rest ? task : NULL;
}

/* All devices; each name begins where the next one can. */
struct dm_names *dm_task_get_names(struct dm_task *task)
{
	struct dm_names *last = NULL, *next = (struct dm_names *)task->names;
	struct dirent **entries;
	char *path = in("dm");
	int n = scandir(path, &entries, NULL, alphasort);

	free(path);
	for (int i = 0; i < n; i++) {
		size_t size = sizeof(*next) + strlen(entries[i]->d_name) + 1;

		if (entries[i]->d_name[0] != '.') {
			next->dev = 1;
			strcpy(next->name, entries[i]->d_name);
			if (last)
				last->next = (char *)next - (char *)last;
			last = next;
			next = (struct dm_names *)((char *)next + (size + 15) / 16 * 16);
		}
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	return (struct dm_names *)task->names;
}

struct dm_versions *dm_task_get_versions(struct dm_task *task)
{
	struct dm_versions *version = (struct dm_versions *)task->names;

	strcpy(version->name, "hedge");
	return version;
}

int __wrap_mlockall(int flags) { (void)flags; return 0; }
int __wrap_munlockall(void) { return 0; }

/* --- /sys and devices -------------------------------------------------------------------- */

static char *faked(const char *path)
{
	return strncmp(path, "/sys/", 5) ? xstrdup(path) : in("%s", path + 5);
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

char *__wrap_sysfs_device_attr(unsigned int major, unsigned int minor, const char *attr)
{
	return get(in("dev/block/%u:%u/%s", major, minor, attr));
}

static char *of_device(const char *path, const char *what)
{
	const char *slash = strrchr(path, '/');

	return get(in("dev/%s/%s", slash ? slash + 1 : path, what));
}

int __wrap_device_open(const char *path, struct device *device)
{
	char *numbers = of_device(path, "numbers"), *bytes = of_device(path, "bytes");
	char *block = of_device(path, "block");

	*device = (struct device){ .path = path, .fd = -1 };
	if (!numbers || !bytes) {
		fail("%s: there is no such device", path);
		free(numbers);
		return -1;
	}
	sscanf(numbers, "%u:%u", &device->major, &device->minor);
	device->bytes = strtoull(bytes, NULL, 10);
	device->block = block ? atoi(block) : 512;
	device->signature = of_device(path, "signature");
	device->serial = of_device(path, "serial");
	free(numbers);
	free(bytes);
	free(block);
	return 0;
}

int __wrap_device_claim(struct device *device)
{
	(void)device;
	return 0;
}

int __wrap_device_still(const struct device *device)
{
	char *numbers = of_device(device->path, "numbers");
	char *before = xprintf("%u:%u", device->major, device->minor);
	int r = numbers && !strcmp(numbers, before) ? 0 : -1;

	if (r)
		fail("%s: it is another device now", device->path);
	free(numbers);
	free(before);
	return r;
}

/* Of a label only whether there is one is kept: its state, and its generation. */
int __wrap_label_read(const char *path, struct labelled *labelled, bool quiet)
{
	char *label = of_device(path, "label"), *stamp = of_device(path, "stamp");
	char *numbers = of_device(path, "numbers");

	(void)quiet;
	*labelled = (struct labelled){ .path = xstrdup(path) };
	labelled->found.state = label ? atoi(label) : HEDGE_LABEL_BLANK;
	if (numbers)
		sscanf(numbers, "%u:%u", &labelled->major, &labelled->minor);
	labelled->log = stamp;
	free(numbers);
	free(label);
	free(stamp);
	return 0;
}

int __wrap_label_read_number(const char *numbers, struct labelled *labelled)
{
	(void)numbers;
	(void)labelled;
	return -1;
}

static int note_label(const char *what, const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	char *line = xprintf("%s %s", what, name), *file = in("dev/%s/label", name), *state;
	int r;

	put(in("log"), "a", line);
	r = run_hook(line) ? -1 : 0;
	unlink(file);
	free(file);
	if (!strcmp(what, "label")) {
		state = xprintf("%d", HEDGE_LABEL_VALID);
		put(in("dev/%s/label", name), "w", state);
		free(state);
	}
	free(line);
	if (r)
		fail("%s: can not be written", path);
	return r;
}

int __wrap_label_write(const char *path, const struct hedge_label *label)
{
	(void)label;
	return note_label("label", path);
}

int __wrap_label_wipe(const char *path, const struct labelled *labelled)
{
	(void)labelled;
	return note_label("wipe", path);
}
