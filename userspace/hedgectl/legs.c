// SPDX-License-Identifier: GPL-2.0
/*
 * The histograms of legs, for the commands that look at several at a time: of a running volume, all
 * its legs or one, or saved in files, one a leg. Each leg keeps its size classes and their sum.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "hedgectl.h"

static struct leg_data *leg_add(struct leg_set *set, int target, int leg, const char *device,
				const char *label)
{
	struct leg_data *data;

	set->legs = xrealloc(set->legs, (set->count + 1) * sizeof(*set->legs));
	data = &set->legs[set->count++];
	*data = (struct leg_data){
		.target = target, .leg = leg, .device = xstrdup(device), .label = xstrdup(label),
	};
	return data;
}

/* Takes what text says; -1 if it is no histogram. */
static int take_text(struct leg_data *data, const char *text)
{
	if (histograms_parse(text, &data->classes))
		return -1;
	for (int i = 0; i < data->classes.count; i++)
		histogram_merge(&data->sum, &data->classes.classes[i]);
	return 0;
}

static int read_leg(const struct volume *volume, struct leg_data *data)
{
	char *dir = sysfs_target_dir(volume, data->target);
	char *path = xprintf("%s/legs/%d/histogram", dir, data->leg);
	char *text = sysfs_read_file(path, NULL);
	int r = -1;

	if (text)
		r = take_text(data, text);
	else if (volume->suspended)
		fail("%s: it is suspended, and has histograms only while it runs: dmsetup resume %s",
		     volume->name, volume->name);
	else
		fail("%s: can not read %s", volume->name, path);
	free(text);
	free(path);
	free(dir);
	return r;
}

/* major:minor of a path, or NULL. */
static char *numbers_of(const char *path)
{
	struct stat st;

	if (stat(path, &st) || !S_ISBLK(st.st_mode))
		return NULL;
	return xprintf("%u:%u", major(st.st_rdev), minor(st.st_rdev));
}

/* A leg is named by its number, its path or its major:minor. */
bool leg_matches(const char *wanted, int leg, const char *device)
{
	uint64_t number;
	char *numbers;
	bool same;

	if (!wanted || !strcmp(wanted, device))
		return true;
	if (!parse_number(wanted, &number))
		return number == (uint64_t)leg;
	numbers = numbers_of(wanted);
	same = numbers && !strcmp(numbers, device);
	free(numbers);
	return same;
}

/* The same, of a leg whose path is known. */
bool leg_matches_path(const char *wanted, int leg, const char *path)
{
	char *numbers;
	bool same;

	if (!strcmp(wanted, path))
		return true;
	numbers = numbers_of(path);
	same = numbers && leg_matches(wanted, leg, numbers);
	free(numbers);
	return same;
}

static int read_target(const struct volume *volume, const struct target *target,
		       const char *wanted, struct leg_set *set)
{
	struct status status;
	uint64_t tau = 0;
	int r = 0;

	if (status_parse(target->status, &status))
		return -1;
	kv_number(&status.fields, "tau_us", &tau);
	for (int i = 0; i < status.nr_legs && !r; i++) {
		struct leg_data *data;
		char label[64], *numbered;
		unsigned int major, minor;

		if (!leg_matches(wanted, i, status.devices[i]))
			continue;
		snprintf(label, sizeof(label), "%s", status.devices[i]);
		if (sscanf(status.devices[i], "%u:%u", &major, &minor) == 2)
			device_label(major, minor, label, sizeof(label));
		numbered = xprintf("%d %s", i, label);
		data = leg_add(set, target->index, i, status.devices[i], numbered);
		free(numbered);
		data->tau_us = tau;
		r = read_leg(volume, data);
	}
	status_free(&status);
	return r;
}

/* Of all targets (target -1) and legs (wanted NULL), or of one. None is an error. */
int legs_read(const struct volume *volume, int target, const char *wanted, struct leg_set *set)
{
	if (target >= volume->nr_targets) {
		fail("%s: it has no hedge target %d; the last is %d", volume->name, target,
		     volume->nr_targets - 1);
		return -1;
	}
	for (int i = 0; i < volume->nr_targets; i++)
		if ((target < 0 || target == i) &&
		    read_target(volume, &volume->targets[i], wanted, set))
			return -1;
	if (set->count)
		return 0;
	fail("%s: it has no leg %s; hedgectl show %s lists its legs", volume->name, wanted,
	     volume->name);
	return -1;
}

/* A file has what the attribute "histogram" of a leg had; it is the next leg of the set. */
int legs_read_file(const char *path, struct leg_set *set)
{
	const char *slash = strrchr(path, '/');
	char *text = sysfs_read_file(path, NULL), *label;
	struct leg_data *data;

	if (!text) {
		fail("%s: can not be read; expected a file with a histogram of a leg (%s)", path,
		     "/sys/block/dm-N/hedge0/legs/I/histogram");
		return -1;
	}
	label = xprintf("%d %s", set->count, slash ? slash + 1 : path);
	data = leg_add(set, 0, set->count, path, label);
	free(label);
	if (take_text(data, text) || !data->sum.count) {
		fail("%s: it holds no histogram of a leg", path);
		free(text);
		return -1;
	}
	free(text);
	return 0;
}

/* What was counted since before, which has the same legs; false if the counters began anew. */
bool legs_since(struct leg_set *now, const struct leg_set *before)
{
	if (now->count != before->count)
		return false;
	for (int i = 0; i < now->count; i++) {
		if (strcmp(now->legs[i].device, before->legs[i].device))
			return false;
		if (!histogram_subtract(&now->legs[i].sum, &before->legs[i].sum) ||
		    now->legs[i].classes.count != before->legs[i].classes.count)
			return false;
		for (int j = 0; j < now->legs[i].classes.count; j++)
			if (!histogram_subtract(&now->legs[i].classes.classes[j],
						&before->legs[i].classes.classes[j]))
				return false;
	}
	return true;
}

void legs_free(struct leg_set *set)
{
	for (int i = 0; i < set->count; i++) {
		free(set->legs[i].device);
		free(set->legs[i].label);
		histogram_free(&set->legs[i].sum);
		histograms_free(&set->legs[i].classes);
	}
	free(set->legs);
	*set = (struct leg_set){ 0 };
}
