/* SPDX-License-Identifier: GPL-2.0 */
/*
 * labels.c: the labels of devices, as module/core/label.h has them.
 *
 * A label lies behind the data, which is as long on all legs. So that it can be found on a device
 * that is longer than that, such a device has a block at its end that tells where: the locator.
 * The kernel does not know of it.
 */
#ifndef HEDGECTL_LABELS_H
#define HEDGECTL_LABELS_H

#include "hedgectl.h"
#include "label.h"

struct hedgetab;

#define UUID_TEXT 37	/* with the zero at its end */

/* What is on a device. */
struct labelled {
	char *path;
	unsigned int major, minor;
	uint64_t bytes;
	uint64_t sector;	/* where the label is, or would be by the locator */
	struct hedge_label_found found;
	bool log;		/* no leg, but a log with a stamp */
	uint8_t log_uuid[HEDGE_UUID_BYTES];
	uint64_t log_stamp;
};

void uuid_format(const uint8_t *uuid, char *text);
bool uuid_scan(const char *text, uint8_t *uuid);
int uuid_make(uint8_t *uuid);
uint64_t random_u64(void);
bool table_label(const struct table *table, uint8_t *uuid);

uint64_t label_data_bytes(uint64_t device_bytes);	/* the most that leaves room for a label */
int label_read(const char *path, struct labelled *labelled, bool quiet);
int label_read_number(const char *numbers, struct labelled *labelled);	/* major:minor; quiet */
int label_write(const char *path, const struct hedge_label *label);	/* both slots */
int label_wipe(const char *path, const struct labelled *labelled);
void label_note_hedgetab(const uint8_t *uuid);	/* of a set whose labels are gone */
const char *label_hedgetab_name(const struct hedgetab *tab, const uint8_t *uuid);
int stamp_write(const char *path, uint64_t regions, const uint8_t *uuid, uint64_t stamp);
void labelled_free(struct labelled *labelled);

/* The label of a leg whose volume is suspended, or a log's stamp, while it is taken away. */
struct taken {
	char *path;
	int fd;
	struct labelled now;
	uint64_t end;		/* byte at which the last block of the device begins */
	uint8_t *slots, *last;	/* what was there, and in the last two blocks */
	bool wiped;
};

int label_take(const char *numbers, struct taken *taken);	/* opens it: major:minor */
int label_take_away(struct taken *taken);	/* reads what there is, and zeroes it */
int label_give_back(struct taken *taken);
void label_taken_free(struct taken *taken);

/* All block devices that may be legs or logs. */
struct labelled_list {
	int count;
	struct labelled *items;
};

int label_scan(struct labelled_list *list);
void labelled_list_free(struct labelled_list *list);

#endif
