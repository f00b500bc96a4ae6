// SPDX-License-Identifier: GPL-2.0
/*
 * What a target was at one moment: its status line, attributes, the histograms of its legs, and what
 * the kernel counts of the disks. Two samples of one target, and the time between them, give rates.
 * Everything is read below a root, "/sys" or a directory in which the same files were recorded.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample.h"

/* Sectors read, the third word of a disk's statistics; 0 if there are none. */
static uint64_t sectors_read(const char *root, const char *device)
{
	char *path = xprintf("%s/dev/block/%s/stat", root, device);
	char *text = sysfs_read_file(path, NULL);
	uint64_t sectors = 0;

	if (text)
		sscanf(text, "%*u %*u %" SCNu64, &sectors);
	free(text);
	free(path);
	return sectors;
}

static void read_leg(const char *root, const char *dir, int leg, const char *device,
		     struct sample_leg *out)
{
	char *path = xprintf("%s/legs/%d/histogram", dir, leg), *text = sysfs_read_file(path, NULL);
	unsigned int major, minor;
	char label[64];

	snprintf(label, sizeof(label), "%s", device);
	if (sscanf(device, "%u:%u", &major, &minor) == 2)
		device_label(major, minor, label, sizeof(label));
	out->label = xstrdup(label);
	out->sectors = sectors_read(root, device);
	if (text && !histograms_parse(text, &out->classes))
		for (int i = 0; i < out->classes.count; i++)
			histogram_merge(&out->copies, &out->classes.classes[i]);
	free(text);
	free(path);
}

int sample_read(const struct volume *volume, const struct target *target, const char *root,
		uint64_t ns, struct sample *sample)
{
	char *dir = xprintf("%s/block/dm-%u/hedge%d", root, volume->minor, target->index);
	char *device = xprintf("%u:%u", volume->major, volume->minor);

	*sample = (struct sample){ .ns = ns, .target = target->index };
	if (status_parse(target->status, &sample->status)) {
		free(dir);
		free(device);
		return -1;
	}
	sample->name = xstrdup(volume->name);
	sample->uuid = xstrdup(volume->uuid);
	sample->suspended = volume->suspended;
	sample->sectors = sectors_read(root, device);
	sysfs_read_tree(dir, &sample->attrs);
	for (int i = 0; i < sample->status.nr_legs; i++)
		read_leg(root, dir, i, sample->status.devices[i], &sample->legs[i]);
	free(dir);
	free(device);
	return 0;
}

void sample_free(struct sample *sample)
{
	for (int i = 0; i < MAX_LEGS; i++) {
		free(sample->legs[i].label);
		histogram_free(&sample->legs[i].copies);
		histograms_free(&sample->legs[i].classes);
	}
	status_free(&sample->status);
	kv_free(&sample->attrs);
	free(sample->name);
	free(sample->uuid);
	*sample = (struct sample){ 0 };
}

/* Of the same target, with the same legs. */
bool sample_follows(const struct sample *before, const struct sample *now)
{
	bool same = before->name && before->target == now->target && now->ns > before->ns &&
		    !strcmp(before->name, now->name) && !strcmp(before->uuid, now->uuid) &&
		    before->status.nr_legs == now->status.nr_legs;

	for (int i = 0; same && i < now->status.nr_legs; i++)
		same = !strcmp(before->status.devices[i], now->status.devices[i]);
	return same;
}

/* An attribute or counter, from sysfs or, while that is away, the status line; false: not known. */
bool sample_number(const struct sample *sample, const char *name, uint64_t *value)
{
	char *path = xprintf("stats/%s", name);
	bool known = kv_number(&sample->attrs, path, value) ||
		     kv_number(&sample->attrs, name, value) ||
		     kv_number(&sample->status.fields, name, value);

	free(path);
	return known;
}

bool sample_leg_number(const struct sample *sample, int leg, const char *name, uint64_t *value)
{
	char *path = xprintf("legs/%d/%s", leg, name);
	bool known = kv_number(&sample->attrs, path, value);

	free(path);
	return known;
}

/* Whether its attribute "state" is this; false while that is not known. */
bool sample_leg_is(const struct sample *sample, int leg, const char *state)
{
	char *path = xprintf("legs/%d/state", leg);
	const char *text = kv_get(&sample->attrs, path);

	free(path);
	return text && !strcmp(text, state);
}

/* What a counter rose by; all of it if the counters began anew in between. */
uint64_t sample_rise(const struct sample *before, const struct sample *now, const char *name)
{
	uint64_t from = 0, to = 0;

	sample_number(before, name, &from);
	sample_number(now, name, &to);
	return to >= from ? to - from : to;
}

/* The copies of a leg that completed in between; for the caller to free. */
void sample_copies(const struct sample *before, const struct sample *now, int leg,
		   struct histogram *copies)
{
	*copies = (struct histogram){ 0 };
	histogram_merge(copies, &now->legs[leg].copies);
	if (histogram_subtract(copies, &before->legs[leg].copies))
		return;
	histogram_free(copies);
	histogram_merge(copies, &now->legs[leg].copies);
}

/* Bytes read between two samples from a leg, or with leg -1 from the volume; a device that went away read none. */
uint64_t sample_bytes(const struct sample *before, const struct sample *now, int leg)
{
	uint64_t from = leg < 0 ? before->sectors : before->legs[leg].sectors;
	uint64_t to = leg < 0 ? now->sectors : now->legs[leg].sectors;

	return to > from ? (to - from) * SECTOR : 0;
}

void samples_free(struct samples *samples)
{
	for (int i = 0; i < samples->count; i++)
		sample_free(&samples->items[i]);
	free(samples->items);
	*samples = (struct samples){ 0 };
}

static int add_volume(const struct volume *volume, uint64_t ns, struct samples *samples)
{
	int r = 0;

	for (int i = 0; i < volume->nr_targets; i++) {
		samples->items =
			xrealloc(samples->items, (samples->count + 1) * sizeof(*samples->items));
		if (sample_read(volume, &volume->targets[i], "/sys", ns,
				&samples->items[samples->count]))
			r = -1;
		else
			samples->count++;
	}
	return r;
}

/* Of the volumes that are named, or of all if none is; after an error of those that could be read. */
int samples_read(const char *const *names, int count, uint64_t ns, struct samples *samples)
{
	struct volume *volumes, volume;
	int r = 0;

	*samples = (struct samples){ 0 };
	for (int i = 0; i < count; i++) {
		if (dm_volume_read(names[i], &volume)) {
			r = -1;
			continue;
		}
		r |= add_volume(&volume, ns, samples);
		volume_free(&volume);
	}
	if (count)
		return r;
	r = dm_volumes_read(&volumes, &count);
	for (int i = 0; i < count; i++)
		r |= add_volume(&volumes[i], ns, samples);
	volumes_free(volumes, count);
	return r;
}

/* The earlier sample of the same target, or NULL. */
const struct sample *samples_before(const struct samples *samples, const struct sample *now)
{
	for (int i = 0; i < samples->count; i++)
		if (sample_follows(&samples->items[i], now))
			return &samples->items[i];
	return NULL;
}
