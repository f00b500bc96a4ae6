/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Labels: what each leg says about the set of legs that it belongs to.
 *
 * A label lies right behind the data of its leg, at the next 4 KiB: two slots of
 * 4 KiB, of which the one that does not hold the newest label is written next,
 * so that a torn write leaves the older label. All numbers are little endian:
 *
 *	  0  magic "dm-hedge"		 64  region size in sectors, 32 bits
 *	  8  version, 32 bits		 68  number of this leg, 8 bits
 *	 12  CRC32C of the slot		 69  number of legs, 8 bits
 *	 16  UUID of the set		 70  default leg, 8 bits
 *	 32  generation, 64 bits	 71  legs that are in, 8 bits
 *	 40  session, 64 bits		 72  flags: 1 open
 *					 73  legs that are partial, 8 bits
 *	 48  length in sectors		 80  stamp of the log, 64 bits
 *	 56  offset in sectors		 88  name, 64 bytes, ends with a zero
 *	152  for each of 8 legs: generation and session of the last round that is
 *	     known to be on it, then of the last that was sent to it
 *
 * and zeroes up to the end of the slot. The CRC is of all 4 KiB with zeroes in
 * its own place.
 *
 * A leg is *in* if it holds every acknowledged write. A leg that is not may be
 * *partial*: in use, but still being brought up to date; else it is *out*.
 *
 * A *round* writes the same label, but for the leg's own number and offset, to
 * all legs that are in, with a generation one above the last. Its order matters
 * to the judgement: the default leg, then the other legs that were in the round
 * before, then those that come back, and these only if the round is on a leg that
 * was in. A leg on which the write fails is out, and the next round says so before
 * anything that it lacks is acknowledged. So
 *
 * - a leg that carries the newest label has every acknowledged write;
 * - a leg with an older label lacks writes, or a crash came between: nobody
 *   knows, so it is not in. If it carries just the label that the newest one knows
 *   of, or tried to write last, a log that was kept ever since tells the regions
 *   that it misses;
 * - a leg with a label that the newest one cannot know of went on by itself.
 *
 * Before a leg that was out is copied to, its label is written over with one that
 * does not call it in: until it is in again it holds a mixture.
 *
 * The numbers of legs here are their numbers in the set. Their positions in a
 * table may be others.
 */
#ifndef HEDGE_CORE_LABEL_H
#define HEDGE_CORE_LABEL_H

#include "types.h"

#define HEDGE_LABEL_SLOT	4096U		/* bytes */
#define HEDGE_LABEL_SLOTS	2U
#define HEDGE_LABEL_BYTES	(HEDGE_LABEL_SLOT * HEDGE_LABEL_SLOTS)
#define HEDGE_LABEL_VERSION	1U
#define HEDGE_LABEL_NAME	64U
#define HEDGE_UUID_BYTES	16U

/**
 * struct hedge_label_round - one writing of labels
 * @generation: one more than that of the round before; 0: none
 * @session: random, drawn for each time that the set runs
 *
 * Sets that went on without each other have rounds of the same generation, but
 * not of the same session.
 */
struct hedge_label_round {
	u64 generation;
	u64 session;
};

/**
 * struct hedge_label - a label
 * @uuid: of the set
 * @round: in which it was written; generation 0: on a leg that has no data yet
 * @length: of the data in sectors
 * @offset: of the data on this leg in sectors
 * @log_stamp: the stamp of the disk log that goes with the set, 0 if none
 * @known: for each leg, the last round that is known to be on it
 * @sent: for each leg, the last round that was sent to it
 * @region_size: of the log in sectors
 * @leg: number of this leg
 * @nr_legs: how many legs the set has
 * @default_leg: number of the leg from which the others are resynced
 * @in: bit for the number of each leg that is in
 * @partial: the same for partial legs
 * @open: the set was running, or has crashed
 * @name: what the set is called, for people; ends with a zero
 */
struct hedge_label {
	u8 uuid[HEDGE_UUID_BYTES];
	struct hedge_label_round round;
	u64 length;
	u64 offset;
	u64 log_stamp;
	struct hedge_label_round known[HEDGE_MAX_LEGS];
	struct hedge_label_round sent[HEDGE_MAX_LEGS];
	u32 region_size;
	u8 leg;
	u8 nr_legs;
	u8 default_leg;
	u8 in;
	u8 partial;
	bool open;
	char name[HEDGE_LABEL_NAME];
};

/* What is found where the label of a leg should be. */
enum hedge_label_state {
	HEDGE_LABEL_MISSING,	/* the table has no device for this leg */
	HEDGE_LABEL_UNREADABLE,	/* the device cannot be read */
	HEDGE_LABEL_BLANK,	/* no label */
	HEDGE_LABEL_DAMAGED,	/* a label, but no slot of it is whole */
	HEDGE_LABEL_UNKNOWN,	/* of a version that is not known here */
	HEDGE_LABEL_VALID,
};

/**
 * struct hedge_label_found - what was found on a leg of the table
 * @state: the kind of it
 * @slot: where @label is, if it is valid
 * @label: the newest label
 */
struct hedge_label_found {
	enum hedge_label_state state;
	unsigned int slot;
	struct hedge_label label;
};

/* Why a set is refused. */
enum hedge_label_fault {
	HEDGE_FAULT_OK,
	HEDGE_FAULT_NONE,	/* no leg has a label */
	HEDGE_FAULT_FOREIGN,	/* @leg belongs to another set */
	HEDGE_FAULT_VERSION,	/* @leg has a label that is not known here */
	HEDGE_FAULT_SHAPE,	/* @leg has another number of legs or length */
	HEDGE_FAULT_PLACE,	/* the data of @leg is at another offset */
	HEDGE_FAULT_TWICE,	/* @leg and @other are the same leg */
	HEDGE_FAULT_SPLIT,	/* @leg and @other went on without each other */
	HEDGE_FAULT_EMPTY,	/* no leg has all the data */
	HEDGE_FAULT_ALONE,	/* @leg is not there and may have gone on alone */
};

/* Which regions of the legs that are in are in sync. */
enum hedge_label_sync {
	HEDGE_SYNC_NONE,	/* none: a full resync from the default leg */
	HEDGE_SYNC_ALL,		/* all: the set was closed */
	HEDGE_SYNC_LOG,		/* those which the disk log says */
};

/**
 * struct hedge_label_table - the table for which labels are judged
 * @uuid: of the set
 * @length: of the target in sectors
 * @offset: of each leg in sectors
 * @nr_legs: number of legs
 * @region_size: of the log in sectors
 * @disk_log: whether the log is on disk
 * @log_stamp: which stamp its device has, 0 if none or of another set
 * @force: start without legs that may have gone on alone
 */
struct hedge_label_table {
	u8 uuid[HEDGE_UUID_BYTES];
	u64 length;
	u64 offset[HEDGE_MAX_LEGS];
	unsigned int nr_legs;
	u32 region_size;
	bool disk_log;
	u64 log_stamp;
	bool force;
};

/**
 * struct hedge_label_verdict - what labels say; legs are positions in the table
 * @fault: why the set is refused, or HEDGE_FAULT_OK
 * @leg: the leg that @fault is about, HEDGE_NO_LEG if none
 * @other: the second one, likewise
 * @number: the number in the set of the leg at each position
 * @in: bit for each leg that is in
 * @partial: the same for partial legs
 * @told: bit for each leg that is not in, but of which the log tells the regions
 *        that it misses; any other may miss all
 * @default_leg: the leg from which others are resynced
 * @newest: the leg whose label was believed
 * @sync: which regions are in sync on the legs that are in
 * @equal: the legs that are in hold the same data, whatever the log says
 * @label: what the set is like now; leg and offset mean nothing in it
 *
 * All but @fault, @leg and @other is valid only if @fault is HEDGE_FAULT_OK.
 */
struct hedge_label_verdict {
	enum hedge_label_fault fault;
	unsigned int leg;
	unsigned int other;
	u8 number[HEDGE_MAX_LEGS];
	u32 in;
	u32 partial;
	u32 told;
	unsigned int default_leg;
	unsigned int newest;
	enum hedge_label_sync sync;
	bool equal;
	struct hedge_label label;
};

/**
 * hedge_label_sector - where the label of a leg is
 * @offset: of the leg's data in sectors
 * @length: of the data in sectors
 *
 * Return: sectors from the begin of the device.
 */
static inline u64 hedge_label_sector(u64 offset, u64 length)
{
	return (offset + length + 7) & ~7ULL;
}

/**
 * hedge_stamp_sector - where the stamp of a disk log is
 * @nr_regions: of the log
 *
 * The log itself has a header of 1 KiB, and then a bit for each region, in words
 * of 64 bits.
 *
 * Return: sectors from the begin of the log's device.
 */
static inline u64 hedge_stamp_sector(u64 nr_regions)
{
	u64 bytes = 1024 + ((nr_regions + 63) / 64) * 8;

	return ((bytes + HEDGE_LABEL_SLOT - 1) / HEDGE_LABEL_SLOT) *
	       (HEDGE_LABEL_SLOT / 512);
}

u32 hedge_crc32c(const void *data, size_t bytes);

void hedge_label_encode(const struct hedge_label *label, void *slot);
enum hedge_label_state hedge_label_decode(const void *slot,
					  struct hedge_label *label);
void hedge_label_find(const void *slots, struct hedge_label_found *found);
void hedge_label_advance(struct hedge_label *label, u32 in, u64 session);

/**
 * hedge_label_confirm - note that a round is on a leg
 * @label: of the round
 * @leg: number of the leg
 */
static inline void hedge_label_confirm(struct hedge_label *label,
				       unsigned int leg)
{
	label->known[leg] = label->round;
}

void hedge_label_spoil(const struct hedge_label *own,
		       const struct hedge_label *set,
		       struct hedge_label *label);
void hedge_label_judge(const struct hedge_label_table *table,
		       const struct hedge_label_found *found,
		       struct hedge_label_verdict *verdict);
const char *hedge_label_fault_text(enum hedge_label_fault fault);

void hedge_stamp_encode(const u8 *uuid, u64 stamp, void *block);
u64 hedge_stamp_decode(const void *block, const u8 *uuid);

#endif
