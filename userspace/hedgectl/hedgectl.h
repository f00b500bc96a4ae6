/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What each file of hedgectl gives to the others, file by file.
 *
 * A command is a cmd_*.c file, whose struct command is in the list of main.c. It reads a
 * volume with dm.c (the ioctls) and sysfs.c (the attributes), and prints for people or, with
 * --json, for programs. status.c, table.c, units.c, attr.c and hist.c only turn text into values
 * and back: they touch no device, so the unit tests run them alone.
 *
 * Functions that return int return 0, or -1 after they have printed what was wrong (through fail()).
 */
#ifndef HEDGECTL_H
#define HEDGECTL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json_object;

#define MIN_LEGS 2
#define MAX_LEGS 8
#define SECTOR 512

enum exit_status { DONE = 0, FAILED = 1, USAGE = 2 };

/* util.c: errors, memory (running out of it ends the program), words */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void messages_keep(bool keep);	/* while there is nothing that could be printed on */
const char *message_kept(void);	/* the last */
void messages_release(void);	/* prints all */
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t size);
char *xstrdup(const char *s);
char *xprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *xvprintf(const char *format, va_list list) __attribute__((format(printf, 1, 0)));
char *next_word(char **rest);

/* args.c: the words of a command line, after the options table of its command */
struct option_def {
	const char *name;	/* long name, without dashes */
	const char *value;	/* what stands for its value in the help, or NULL */
	const char *help;
};

struct args;

struct command {
	const char *name;
	const char *synopsis;	/* of its operands */
	const char *summary;	/* one line */
	const char *details;	/* further lines of --help, or NULL */
	void (*more)(void);	/* prints what follows the options in it, or NULL */
	const struct option_def *options;	/* ends with a NULL name; the common ones are added */
	const char *example;
	int min_operands, max_operands;
	enum exit_status (*run)(const struct args *args);
};

struct args {
	const struct command *command;
	int nr_options;
	struct { const char *name, *value; } *options;	/* in the order given */
	int nr_operands;
	char **operands;
};

enum exit_status args_parse(const struct command *command, int argc, char **argv,
			    struct args *args);
void args_free(struct args *args);
const char *args_get(const struct args *args, const char *name);	/* the last, or NULL */
bool args_has(const struct args *args, const char *name);
int args_target(const struct args *args, int *target);	/* --target; -1 if not given */
void command_help(const struct command *command);
extern const struct option_def no_options[];

/* units.c: sizes and times */
int parse_time_us(const char *text, uint64_t *us);	/* 2ms 500us 1.5s; bare: us */
int parse_size(const char *text, uint64_t *bytes);	/* 512K 1GiB 8s (sectors); bare: bytes */
int parse_number(const char *text, uint64_t *value);	/* decimal digits only */
const char *format_time(uint64_t ns, char *buffer, size_t size);
const char *format_size(uint64_t bytes, char *buffer, size_t size);
char *format_progress(uint64_t done, uint64_t total, double rate);
#define TIME_TEXT 24
#define SIZE_TEXT 24

/* attr.c: the spellings of attributes on the command line */
struct assignment {
	int leg;		/* -1: of the target */
	const char *name;	/* as in sysfs */
	char *value;		/* as written to sysfs */
	char *device;		/* the leg is named by it, and leg is MAX_LEGS until it was looked for; or NULL */
};

int assignment_parse(const char *text, struct assignment *assignment);
void assignment_free(struct assignment *assignment);
const char *attr_expected(int leg, const char *name);	/* its values; NULL: unknown */
void attr_help(void);
bool attr_in_policy(const char *name);
char *attr_current(const char *text);	/* the word in [ ], else the line */

/* kv.c: a sorted set of values, named from hedge<i> on: "policy", "legs/0/weight" */
struct kv_list {
	int count, room;
	struct kv { char *name, *value; bool writable; } *items;
};

void kv_add(struct kv_list *list, const char *name, const char *value, bool writable);
void kv_sort(struct kv_list *list);
const char *kv_get(const struct kv_list *list, const char *name);
bool kv_number(const struct kv_list *list, const char *name, uint64_t *value);
void kv_free(struct kv_list *list);

/* status.c: the status line of a target */
struct status {
	int nr_legs;
	char *devices[MAX_LEGS];
	char health[MAX_LEGS + 1];
	uint64_t in_sync, regions;
	char *log;		/* its own words, without their count: "core", "disk 253:1 A" */
	struct kv_list fields;	/* policy, tau_us, reads ... */
};

int status_parse(const char *line, struct status *status);
void status_free(struct status *status);

/* table.c: the table line of a target */
struct table {
	char *log_type;		/* core, disk */
	char *log_device;	/* of a disk log, or NULL */
	uint64_t region_sectors;
	char *sync;		/* nosync, sync or NULL */
	int nr_legs;
	struct { char *device; uint64_t offset; } legs[MAX_LEGS];
	char *features;		/* the words after their count, or NULL */
	int nr_features;
};

int table_parse(const char *line, struct table *table);
char *table_format(const struct table *table);
void table_add_feature(struct table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void table_free(struct table *table);

/* hist.c: histograms of read copies */
struct bucket { uint64_t from, to, count; };	/* ns */

struct histogram {
	char *name;		/* the size class */
	int count, room;
	struct bucket *buckets;
	uint64_t total;
};

struct histograms {
	int count;
	struct histogram *classes;
};

int histograms_parse(const char *text, struct histograms *histograms);
void histograms_free(struct histograms *histograms);
void histogram_merge(struct histogram *into, const struct histogram *from);
bool histogram_subtract(struct histogram *into, const struct histogram *before);
void histogram_free(struct histogram *histogram);
uint64_t histogram_percentile(const struct histogram *histogram, double percentile);	/* ns */
void histogram_rows(const struct histogram *histogram, struct histogram *rows);	/* 1, 2, 5 */

/* dm.c: the device-mapper ioctls */
struct target {
	int index;		/* among the hedge targets of its device: hedge<index> in sysfs */
	uint64_t start, sectors;
	char *status, *table;	/* the lines */
};

struct volume {
	char *name, *uuid;
	unsigned int major, minor;
	bool suspended;
	int open_count;
	uint64_t sectors;	/* of the whole device */
	int nr_targets;		/* hedge targets only */
	struct target *targets;
};

void dm_begin(void);
int dm_volume_read(const char *name, struct volume *volume);	/* no hedge target: an error */
void volume_free(struct volume *volume);
int dm_volumes_read(struct volume **volumes, int *count);
void volumes_free(struct volume *volumes, int count);
int dm_table_check(const char *name, const char *uuid, uint64_t sectors, const char *table);
int dm_volume_create(const char *name, const char *uuid, uint64_t sectors, const char *table);
int dm_message(const struct volume *volume, int target, const char *message);
int dm_volume_remove(const char *name);
bool dm_name_valid(const char *name);
int dm_name_free(const char *name);

/* cmd_set.c: what /etc/hedgetab has for a volume, each target its own; changes go to the array, or are printed */
int volume_set_saved(const struct volume *volume, struct json_object *array);

/* reload.c: another table for a device that is in use */
struct line {
	char *uuid;
	bool many;		/* there are more targets than this one */
	char *type;
	uint64_t sectors;
	char *table, *status;
};

int line_read(const char *name, struct line *line);
void line_free(struct line *line);
int line_check(const char *name, const struct line *line);	/* whether the kernel would take it */
/*
 * verify() is called while the device is suspended, undo() if the old table is to come back then;
 * both may be NULL.
 */
int line_swap(const char *name, const struct line *old, const struct line *new,
	      int (*verify)(const char *name, void *context), void (*undo)(void *context),
	      void *context);
int line_close(const char *name);	/* suspends it, and resumes it with the table it has */

/* kmsg.c: what device-mapper says in the kernel log while we work */
int kmsg_begin(void);
void kmsg_end(int kmsg);
void kmsg_report(int kmsg);

/* sysfs.c: the attributes of a running target */
char *sysfs_target_dir(const struct volume *volume, int target);
int sysfs_read_tree(const char *dir, struct kv_list *list);
int sysfs_write(const char *dir, const struct assignment *assignment);
char *sysfs_read_file(const char *path, size_t *length);	/* NULL if it can not be read: errno */
char *sysfs_device_attr(unsigned int major, unsigned int minor, const char *attr);
char *sysfs_disk_dir(unsigned int major, unsigned int minor);	/* of the whole disk */

/* device.c: a block device that is to be a leg or a log */
struct device {
	const char *path;
	int fd;			/* held with O_EXCL */
	unsigned int major, minor;
	uint64_t bytes;
	unsigned int block;	/* logical block size */
	char *model, *serial;	/* or NULL */
	char *signature;	/* what libblkid found on it, or NULL */
	char *disk;		/* sysfs directory of the whole disk */
};

int device_open(const char *path, struct device *device);
void device_release(struct device *device);	/* so that the kernel can claim it */
int device_claim(struct device *device);
int device_still(const struct device *device);	/* the path is of no other device by now */
void device_free(struct device *device);
char *device_user(unsigned int major, unsigned int minor);	/* and the remedy; or NULL */
char *device_model(const char *numbers);	/* major:minor */
char *device_serial(const char *numbers);
char *device_describe(const char *numbers);
const char *device_label(unsigned int major, unsigned int minor, char *buffer, size_t size);

/* legs.c: the histograms of several legs */
struct leg_data {
	int target, leg;
	char *device, *label;	/* major:minor or a file; for people */
	uint64_t tau_us;	/* in force, 0: none */
	struct histograms classes;
	struct histogram sum;
};

struct leg_set {
	int count;
	struct leg_data *legs;
};

bool leg_matches(const char *wanted, int leg, const char *device);	/* NULL: any */
bool leg_matches_path(const char *wanted, int leg, const char *path);
int legs_read(const struct volume *volume, int target, const char *wanted, struct leg_set *set);
int legs_read_file(const char *path, struct leg_set *set);
bool legs_since(struct leg_set *now, const struct leg_set *before);
void legs_free(struct leg_set *set);

/* group.c: policies that are chosen for each target by itself */
bool histogram_new_worse(const struct histogram *h);
bool policy_is_group(const char *policy);
char *policy_of_group(const struct volume *volume, int target, const char *policy,
		      const char **why);

/* plot.c: pictures of them */
int plot_width(void);
void plot_text(FILE *file, const struct leg_set *set, uint64_t tau_us, int width);
void plot_script(FILE *file, const struct leg_set *set, uint64_t tau_us, const char *title,
		 const char *terminal, const char *output);
int plot_file(const struct leg_set *set, uint64_t tau_us, const char *title, const char *terminal,
	      const char *output);

/* copy.c: makes legs identical before they are used */
int device_copy(const struct device *from, const struct device *to, uint64_t bytes);

/* json.c */
void json_print(struct json_object *object);	/* and frees it */
void json_add_text(struct json_object *object, const char *key, const char *text);	/* NULL: null */
void json_add_u64(struct json_object *object, const char *key, uint64_t value);
void json_add_real(struct json_object *object, const char *key, double value, int decimals);
void json_add_value(struct json_object *object, const char *key, const char *text);	/* digits: a number */

/* cmd_*.c */
extern const struct command create_command;
extern const struct command list_command;
extern const struct command check_command;
extern const struct command convert_command;
extern const struct command show_command;
extern const struct command set_command;
extern const struct command hist_command;
extern const struct command top_command;
extern const struct command monitor_command;
extern const struct command tune_command;
extern const struct command plan_command;
extern const struct command assemble_command;
extern const struct command examine_command;
extern const struct command remove_command;
extern const struct command close_command;
extern const struct command wipe_command;
extern const struct command fail_command;
extern const struct command reinstate_command;
extern const struct command replace_command;

#endif
