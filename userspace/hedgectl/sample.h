/* SPDX-License-Identifier: GPL-2.0 */
/* sample.c: what a target was at one moment. top and monitor compare samples, and
 * metrics prints them. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include "hedgectl.h"

struct sample_leg {
	char *label;			/* for people */
	uint64_t sectors;		/* read from its device so far */
	struct histograms classes;	/* of each size */
	struct histogram copies;	/* of all sizes */
};

struct sample {
	char *name, *uuid;
	int target;
	uint64_t ns;			/* when, on a clock of the caller */
	bool suspended;
	uint64_t sectors;		/* read from the volume so far */
	struct status status;
	struct kv_list attrs;		/* empty while suspended */
	struct sample_leg legs[MAX_LEGS];
};

struct samples {
	int count;
	struct sample *items;
};

int sample_read(const struct volume *volume, const struct target *target, const char *root,
		uint64_t ns, struct sample *sample);
void sample_free(struct sample *sample);
bool sample_follows(const struct sample *before, const struct sample *now);
bool sample_number(const struct sample *sample, const char *name, uint64_t *value);
bool sample_leg_number(const struct sample *sample, int leg, const char *name, uint64_t *value);
bool sample_leg_is(const struct sample *sample, int leg, const char *state);
uint64_t sample_rise(const struct sample *before, const struct sample *now, const char *name);
uint64_t sample_bytes(const struct sample *before, const struct sample *now, int leg);
void sample_copies(const struct sample *before, const struct sample *now, int leg,
		   struct histogram *copies);
int samples_read(const char *const *names, int count, uint64_t ns, struct samples *samples);
void samples_free(struct samples *samples);
const struct sample *samples_before(const struct samples *samples, const struct sample *now);

#endif
