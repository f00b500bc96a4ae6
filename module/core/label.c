// SPDX-License-Identifier: GPL-2.0
/*
 * Labels: their form on disk, and the judgement over those of a set.
 *
 * hedge_label_judge() is the one place that decides which legs may be used. It
 * is pure: the module calls it before a target runs, hedgectl calls it before
 * it makes a table, and the unit tests call it with every history that they can
 * think of.
 */
#include "label.h"

#define LABEL_MAGIC	"dm-hedge"
#define STAMP_MAGIC	"hedgelog"

#define FLAG_OPEN	1

/* Where the fields are: see label.h. */
enum {
	AT_MAGIC = 0,
	AT_VERSION = 8,
	AT_CRC = 12,
	AT_UUID = 16,
	AT_GENERATION = 32,
	AT_LENGTH = 48,
	AT_OFFSET = 56,
	AT_REGION_SIZE = 64,
	AT_LEG = 68,
	AT_NR_LEGS = 69,
	AT_DEFAULT = 70,
	AT_IN = 71,
	AT_FLAGS = 72,
	AT_PARTIAL = 73,
	AT_ZEROES = 74,
	AT_STAMP = 80,
	AT_NAME = 88,
	AT_ROUNDS = 152,
	AT_END = AT_ROUNDS + 32 * HEDGE_MAX_LEGS,
};

static void put(u8 *to, unsigned int bytes, u64 value)
{
	for (; bytes; bytes--, value >>= 8)
		*to++ = value;
}

static u64 get(const u8 *from, unsigned int bytes)
{
	u64 value = 0;

	while (bytes--)
		value = value << 8 | from[bytes];
	return value;
}

static void put_round(u8 *to, const struct hedge_label_round *round)
{
	put(to, 8, round->generation);
	put(to + 8, 8, round->session);
}

static void get_round(const u8 *from, struct hedge_label_round *round)
{
	round->generation = get(from, 8);
	round->session = get(from + 8, 8);
}

static u32 crc_update(u32 crc, const u8 *data, size_t bytes)
{
	unsigned int bit;

	while (bytes--) {
		crc ^= *data++;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return crc;
}

/**
 * hedge_crc32c - CRC32C of some bytes
 * @data: the bytes
 * @bytes: how many
 *
 * Bit by bit: labels are few and small.
 */
u32 hedge_crc32c(const void *data, size_t bytes)
{
	return ~crc_update(~0U, data, bytes);
}

/* Of a slot, with zeroes where the CRC itself is. */
static u32 slot_crc(const u8 *slot)
{
	static const u8 zeroes[4];
	u32 crc = crc_update(~0U, slot, AT_CRC);

	crc = crc_update(crc, zeroes, sizeof(zeroes));
	return ~crc_update(crc, slot + AT_CRC + 4,
			   HEDGE_LABEL_SLOT - AT_CRC - 4);
}

/**
 * hedge_label_encode - write a label as it is on disk
 * @label: the label
 * @slot: where to: HEDGE_LABEL_SLOT bytes
 */
void hedge_label_encode(const struct hedge_label *label, void *slot)
{
	u8 *to = slot;
	unsigned int i;

	memset(to, 0, HEDGE_LABEL_SLOT);
	memcpy(to + AT_MAGIC, LABEL_MAGIC, 8);
	put(to + AT_VERSION, 4, HEDGE_LABEL_VERSION);
	memcpy(to + AT_UUID, label->uuid, HEDGE_UUID_BYTES);
	put_round(to + AT_GENERATION, &label->round);
	put(to + AT_LENGTH, 8, label->length);
	put(to + AT_OFFSET, 8, label->offset);
	put(to + AT_REGION_SIZE, 4, label->region_size);
	to[AT_LEG] = label->leg;
	to[AT_NR_LEGS] = label->nr_legs;
	to[AT_DEFAULT] = label->default_leg;
	to[AT_IN] = label->in;
	to[AT_FLAGS] = label->open ? FLAG_OPEN : 0;
	to[AT_PARTIAL] = label->partial;
	for (i = 0; i < HEDGE_MAX_LEGS; i++) {
		put_round(to + AT_ROUNDS + 32 * i, &label->known[i]);
		put_round(to + AT_ROUNDS + 32 * i + 16, &label->sent[i]);
	}
	put(to + AT_STAMP, 8, label->log_stamp);
	memcpy(to + AT_NAME, label->name, HEDGE_LABEL_NAME);
	to[AT_NAME + HEDGE_LABEL_NAME - 1] = 0;
	put(to + AT_CRC, 4, slot_crc(to));
}

/* Whether the numbers of a label with a good CRC make sense. */
static bool plausible(const u8 *from)
{
	unsigned int nr = from[AT_NR_LEGS], i;

	/* No set lives to see a generation that the next could not exceed. */
	if (nr < 2 || nr > HEDGE_MAX_LEGS || from[AT_LEG] >= nr ||
	    get(from + AT_GENERATION, 8) >> 63 ||
	    from[AT_DEFAULT] >= nr || from[AT_IN] >> nr ||
	    from[AT_PARTIAL] >> nr || from[AT_IN] & from[AT_PARTIAL] ||
	    from[AT_FLAGS] & ~FLAG_OPEN ||
	    from[AT_NAME + HEDGE_LABEL_NAME - 1])
		return false;
	for (i = AT_ZEROES; i < AT_STAMP; i++)
		if (from[i])
			return false;
	for (i = AT_END; i < HEDGE_LABEL_SLOT; i++)
		if (from[i])
			return false;
	return true;
}

/**
 * hedge_label_decode - read a label as it is on disk
 * @slot: HEDGE_LABEL_SLOT bytes, of any content
 * @label: where to
 *
 * Return: HEDGE_LABEL_VALID, or with @label untouched HEDGE_LABEL_BLANK, _DAMAGED
 * or _UNKNOWN.
 */
enum hedge_label_state hedge_label_decode(const void *slot,
					  struct hedge_label *label)
{
	const u8 *from = slot;
	unsigned int i;

	if (memcmp(from + AT_MAGIC, LABEL_MAGIC, 8))
		return HEDGE_LABEL_BLANK;
	if (get(from + AT_CRC, 4) != slot_crc(from))
		return HEDGE_LABEL_DAMAGED;
	if (get(from + AT_VERSION, 4) != HEDGE_LABEL_VERSION ||
	    !plausible(from))
		return HEDGE_LABEL_UNKNOWN;

	memcpy(label->uuid, from + AT_UUID, HEDGE_UUID_BYTES);
	get_round(from + AT_GENERATION, &label->round);
	label->length = get(from + AT_LENGTH, 8);
	label->offset = get(from + AT_OFFSET, 8);
	label->region_size = get(from + AT_REGION_SIZE, 4);
	label->leg = from[AT_LEG];
	label->nr_legs = from[AT_NR_LEGS];
	label->default_leg = from[AT_DEFAULT];
	label->in = from[AT_IN];
	label->open = from[AT_FLAGS] & FLAG_OPEN;
	label->partial = from[AT_PARTIAL];
	for (i = 0; i < HEDGE_MAX_LEGS; i++) {
		get_round(from + AT_ROUNDS + 32 * i, &label->known[i]);
		get_round(from + AT_ROUNDS + 32 * i + 16, &label->sent[i]);
	}
	label->log_stamp = get(from + AT_STAMP, 8);
	memcpy(label->name, from + AT_NAME, HEDGE_LABEL_NAME);
	return HEDGE_LABEL_VALID;
}

static bool calls_in(const struct hedge_label *label, unsigned int number)
{
	return label->in >> number & 1;
}

/* Of two labels of one leg; one that the leg is not in is written over another. */
static bool is_newer(const struct hedge_label *a, const struct hedge_label *b)
{
	if (a->round.generation != b->round.generation)
		return a->round.generation > b->round.generation;
	return calls_in(b, b->leg);
}

/**
 * hedge_label_find - find the newest label in both slots
 * @slots: HEDGE_LABEL_BYTES bytes, of any content
 * @found: what was found
 *
 * A slot that this version does not know may be newer than the other, so the
 * label is unknown as a whole.
 */
void hedge_label_find(const void *slots, struct hedge_label_found *found)
{
	struct hedge_label label;
	unsigned int slot;

	found->state = HEDGE_LABEL_BLANK;
	found->slot = 0;
	for (slot = 0; slot < HEDGE_LABEL_SLOTS; slot++) {
		const u8 *from = (const u8 *)slots + slot * HEDGE_LABEL_SLOT;
		enum hedge_label_state state = hedge_label_decode(from, &label);

		if (state == HEDGE_LABEL_VALID &&
		    (found->state < HEDGE_LABEL_UNKNOWN ||
		     (found->state == HEDGE_LABEL_VALID &&
		      is_newer(&label, &found->label)))) {
			found->label = label;
			found->slot = slot;
			found->state = state;
		} else if (state == HEDGE_LABEL_UNKNOWN) {
			found->state = state;
		} else if (found->state == HEDGE_LABEL_BLANK) {
			found->state = state;
		}
	}
}

static bool same_round(const struct hedge_label_round *a,
		       const struct hedge_label_round *b)
{
	return a->generation == b->generation && a->session == b->session;
}

/**
 * hedge_label_advance - make the label of the next round
 * @label: that of the last round, which may have failed on some legs
 * @in: bit for the number of each leg that it is sent to
 * @session: the session that writes it
 *
 * The legs that it reaches are to be noted with hedge_label_confirm(). The other
 * fields are the caller's to set.
 */
void hedge_label_advance(struct hedge_label *label, u32 in, u64 session)
{
	unsigned int i;

	label->in = in;
	label->partial &= ~in;
	label->round.generation++;
	label->round.session = session;
	for (i = 0; i < label->nr_legs; i++)
		if (calls_in(label, i))
			label->sent[i] = label->round;
}

/* Whether a leg that is not in is as the newest label has left it. */
static bool is_expected(const struct hedge_label *newest,
			const struct hedge_label *label)
{
	return same_round(&label->round, &newest->known[label->leg]) ||
	       same_round(&label->round, &newest->sent[label->leg]);
}

/**
 * hedge_label_spoil - make the label of a leg that is being copied to
 * @own: the label that the leg has, or NULL if it has none of the set
 * @set: what the set is like; the leg is not in
 * @label: where to; the leg's number and offset are the caller's to set
 *
 * While a leg is brought up to date it holds a mixture. Before that begins it
 * gets this label, which does not call itself in, in place of the one that it had.
 * Its round stays if the set knows it, so that the log tells of it as before.
 */
void hedge_label_spoil(const struct hedge_label *own,
		       const struct hedge_label *set, struct hedge_label *label)
{
	struct hedge_label_round none = { 0, 0 };

	*label = *set;
	label->round = own && is_expected(set, own) ? own->round : none;
}

static void refuse(struct hedge_label_verdict *verdict,
		   enum hedge_label_fault fault, unsigned int leg,
		   unsigned int other)
{
	verdict->fault = fault;
	verdict->leg = leg;
	verdict->other = other;
}

/* Whether the labels belong to the table at all. */
static bool check_labels(const struct hedge_label_table *table,
			 const struct hedge_label_found *found,
			 struct hedge_label_verdict *verdict)
{
	unsigned int i, j;
	u32 valid = 0;

	for (i = 0; i < table->nr_legs; i++) {
		const struct hedge_label *label = &found[i].label;

		if (found[i].state == HEDGE_LABEL_UNKNOWN) {
			refuse(verdict, HEDGE_FAULT_VERSION, i, HEDGE_NO_LEG);
			return false;
		}
		if (found[i].state != HEDGE_LABEL_VALID)
			continue;
		valid |= 1U << i;
		if (memcmp(label->uuid, table->uuid, HEDGE_UUID_BYTES)) {
			refuse(verdict, HEDGE_FAULT_FOREIGN, i, HEDGE_NO_LEG);
			return false;
		}
		if (label->nr_legs != table->nr_legs ||
		    label->length != table->length) {
			refuse(verdict, HEDGE_FAULT_SHAPE, i, HEDGE_NO_LEG);
			return false;
		}
		if (label->offset != table->offset[i]) {
			refuse(verdict, HEDGE_FAULT_PLACE, i, HEDGE_NO_LEG);
			return false;
		}
		for (j = 0; j < i; j++) {
			if (!(valid >> j & 1) ||
			    found[j].label.leg != label->leg)
				continue;
			refuse(verdict, HEDGE_FAULT_TWICE, j, i);
			return false;
		}
	}
	if (!valid)
		refuse(verdict, HEDGE_FAULT_NONE, HEDGE_NO_LEG, HEDGE_NO_LEG);
	return valid;
}

/* Each position gets a number: its label's, else one that no label has. */
static void assign_numbers(const struct hedge_label_table *table,
			   const struct hedge_label_found *found,
			   struct hedge_label_verdict *verdict)
{
	u32 taken = 0;
	unsigned int i, number;

	for (i = 0; i < table->nr_legs; i++)
		if (found[i].state == HEDGE_LABEL_VALID)
			taken |= 1U << found[i].label.leg;
	for (i = 0; i < table->nr_legs; i++) {
		if (found[i].state == HEDGE_LABEL_VALID) {
			verdict->number[i] = found[i].label.leg;
			continue;
		}
		number = i;
		if (taken >> number & 1)
			for (number = 0; taken >> number & 1; number++)
				;
		taken |= 1U << number;
		verdict->number[i] = number;
	}
}

static unsigned int position(const struct hedge_label_table *table,
			     const struct hedge_label_verdict *verdict,
			     unsigned int number)
{
	unsigned int i;

	for (i = 0; i < table->nr_legs; i++)
		if (verdict->number[i] == number)
			return i;
	return HEDGE_NO_LEG;
}

/* Whether a leg has, or had, data of the set. */
static bool has_data(const struct hedge_label_found *found)
{
	return found->state == HEDGE_LABEL_VALID &&
	       found->label.round.generation;
}

/* Whether a leg had all acknowledged writes when its label was written. */
static bool whole(const struct hedge_label_found *found)
{
	return has_data(found) && calls_in(&found->label, found->label.leg);
}

static unsigned int find_newest(const struct hedge_label_table *table,
				const struct hedge_label_found *found)
{
	unsigned int i, newest = HEDGE_NO_LEG;

	for (i = 0; i < table->nr_legs; i++)
		if (whole(&found[i]) &&
		    (newest == HEDGE_NO_LEG ||
		     found[i].label.round.generation >
		     found[newest].label.round.generation))
			newest = i;
	return newest;
}

/*
 * Whether a leg went on without the newest one, or that without the leg.
 *
 * Two rounds with the same generation are one round, or from two histories. The
 * newest label knows the last rounds of a leg that it calls out: a later one on
 * that leg is from another history. So is any other if it calls the newest leg
 * out: if it was just old, it would be a copy from the time when that leg was out
 * for once, which is no better. And as legs that were in get a round before one
 * that comes back, an older label never calls out a leg whose newer label calls
 * the older one's in.
 */
static bool went_alone(const struct hedge_label *newest,
		       const struct hedge_label *label)
{
	if (label->round.generation == newest->round.generation)
		return !same_round(&label->round, &newest->round);
	if (!calls_in(newest, label->leg)) {
		if (is_expected(newest, label))
			return false;
		if (label->round.generation >=
		    newest->sent[label->leg].generation)
			return true;
	}
	return !calls_in(label, newest->leg);
}

static bool find_split(const struct hedge_label_table *table,
		       const struct hedge_label_found *found,
		       struct hedge_label_verdict *verdict)
{
	unsigned int i, newest = verdict->newest;

	for (i = 0; i < table->nr_legs; i++) {
		if (i == newest || !whole(&found[i]) ||
		    !went_alone(&found[newest].label, &found[i].label))
			continue;
		refuse(verdict, HEDGE_FAULT_SPLIT, min(i, newest),
		       max(i, newest));
		return true;
	}
	return false;
}

/* Which legs are in, and of the others which the log can tell about. */
static void sort_legs(const struct hedge_label_table *table,
		      const struct hedge_label_found *found,
		      struct hedge_label_verdict *verdict)
{
	const struct hedge_label *newest = &found[verdict->newest].label;
	unsigned int i;

	for (i = 0; i < table->nr_legs; i++) {
		const struct hedge_label *label = &found[i].label;

		if (found[i].state == HEDGE_LABEL_VALID &&
		    newest->partial >> label->leg & 1)
			verdict->partial |= 1U << i;
		if (!has_data(&found[i]))
			continue;
		if (!calls_in(newest, label->leg)) {
			if (verdict->sync == HEDGE_SYNC_LOG &&
			    is_expected(newest, label))
				verdict->told |= 1U << i;
		} else if (whole(&found[i]) &&
			   same_round(&label->round, &newest->round)) {
			verdict->in |= 1U << i;
		}
	}
}

/* Whether a label calls a leg in that has the newest round. */
static bool calls_newest_in(const struct hedge_label_table *table,
			    const struct hedge_label_found *found,
			    const struct hedge_label_verdict *verdict,
			    const struct hedge_label *label)
{
	const struct hedge_label *newest = &found[verdict->newest].label;
	unsigned int i;

	for (i = 0; i < table->nr_legs; i++)
		if (whole(&found[i]) &&
		    same_round(&found[i].label.round, &newest->round) &&
		    calls_in(label, found[i].label.leg))
			return true;
	return false;
}

/*
 * A leg that the newest label calls in, and that is not there: it may have gone on
 * alone. What has replaced it counts if it has been copied to by a leg that has the
 * newest round.
 */
static unsigned int find_absent(const struct hedge_label_table *table,
				const struct hedge_label_found *found,
				const struct hedge_label_verdict *verdict)
{
	const struct hedge_label *newest = &found[verdict->newest].label;
	unsigned int i;

	for (i = 0; i < table->nr_legs; i++)
		if (calls_in(newest, verdict->number[i]) &&
		    !has_data(&found[i]) &&
		    !(found[i].state == HEDGE_LABEL_VALID &&
		      calls_newest_in(table, found, verdict, &found[i].label)))
			return i;
	return HEDGE_NO_LEG;
}

/*
 * A leg that was being copied to tells of those that did it: if the newest label
 * is not one of theirs, they went on after it and are not there.
 */
static unsigned int find_witness(const struct hedge_label_table *table,
				 const struct hedge_label_found *found,
				 const struct hedge_label_verdict *verdict)
{
	const struct hedge_label *newest = &found[verdict->newest].label;
	unsigned int i, k;

	for (i = 0; i < table->nr_legs; i++) {
		const struct hedge_label *label = &found[i].label;

		if (!has_data(&found[i]) || whole(&found[i]) ||
		    is_expected(newest, label) ||
		    calls_newest_in(table, found, verdict, label))
			continue;
		for (k = 0; k < table->nr_legs; k++)
			if (calls_in(label, verdict->number[k]))
				return k;
	}
	return HEDGE_NO_LEG;
}

static enum hedge_label_sync find_sync(const struct hedge_label_table *table,
				       const struct hedge_label *newest)
{
	if (!table->disk_log)
		return newest->open ? HEDGE_SYNC_NONE : HEDGE_SYNC_ALL;
	return newest->log_stamp && newest->log_stamp == table->log_stamp &&
	       newest->region_size == table->region_size ? HEDGE_SYNC_LOG :
							    HEDGE_SYNC_NONE;
}

/* The default leg that the label names, if it is in, else the first that is. */
static unsigned int find_default(const struct hedge_label_table *table,
				 const struct hedge_label_verdict *verdict)
{
	unsigned int leg = position(table, verdict, verdict->label.default_leg);

	if (!(verdict->in >> leg & 1))
		for (leg = 0; !(verdict->in >> leg & 1); leg++)
			;
	return leg;
}

/*
 * What the set is like now: the newest label without the legs that are not as it
 * says. They may have got the round or not; one that is found without it later
 * lacks writes of which the log does not tell.
 */
static void make_label(const struct hedge_label_table *table,
		       const struct hedge_label_found *found,
		       struct hedge_label_verdict *verdict)
{
	struct hedge_label *label = &verdict->label;
	u32 in = 0, partial = 0;
	unsigned int i;

	for (i = 0; i < table->nr_legs; i++) {
		in |= (verdict->in >> i & 1) << verdict->number[i];
		partial |= (verdict->partial >> i & 1) << verdict->number[i];
	}
	for (i = 0; i < label->nr_legs; i++)
		if (calls_in(label, i))
			hedge_label_confirm(label, i);
	label->in = in;
	label->partial = partial;
	label->default_leg = verdict->number[verdict->default_leg];
	/* No leg that is there may look newer than the next round. */
	for (i = 0; i < table->nr_legs; i++)
		if (found[i].state == HEDGE_LABEL_VALID)
			label->round.generation =
				max(label->round.generation,
				    found[i].label.round.generation);
}

/**
 * hedge_label_judge - decide which legs of a set may be used
 * @table: the table
 * @found: what was found on each leg of the table, by position
 * @verdict: the decision
 */
void hedge_label_judge(const struct hedge_label_table *table,
		       const struct hedge_label_found *found,
		       struct hedge_label_verdict *verdict)
{
	const struct hedge_label *newest;
	unsigned int absent;

	memset(verdict, 0, sizeof(*verdict));
	verdict->leg = HEDGE_NO_LEG;
	verdict->other = HEDGE_NO_LEG;
	if (!check_labels(table, found, verdict))
		return;
	assign_numbers(table, found, verdict);
	verdict->newest = find_newest(table, found);
	if (verdict->newest == HEDGE_NO_LEG) {
		refuse(verdict, HEDGE_FAULT_EMPTY, HEDGE_NO_LEG, HEDGE_NO_LEG);
		return;
	}
	if (find_split(table, found, verdict))
		return;
	absent = find_absent(table, found, verdict);
	if (absent == HEDGE_NO_LEG)
		absent = find_witness(table, found, verdict);
	if (absent != HEDGE_NO_LEG && !table->force) {
		refuse(verdict, HEDGE_FAULT_ALONE, absent, HEDGE_NO_LEG);
		return;
	}
	newest = &found[verdict->newest].label;
	verdict->label = *newest;
	verdict->sync = find_sync(table, newest);
	verdict->equal = !newest->open;
	sort_legs(table, found, verdict);
	verdict->default_leg = find_default(table, verdict);
	make_label(table, found, verdict);
}

/**
 * hedge_label_fault_text - say why a set is refused
 * @fault: why
 *
 * Return: text that goes on after the name of the leg or legs concerned.
 */
const char *hedge_label_fault_text(enum hedge_label_fault fault)
{
	switch (fault) {
	case HEDGE_FAULT_OK:
		return "nothing is wrong";
	case HEDGE_FAULT_NONE:
		return "no leg has a valid label: make the set with hedgectl create";
	case HEDGE_FAULT_FOREIGN:
		return "is a leg of another set";
	case HEDGE_FAULT_VERSION:
		return "has a label of a version that is not known here";
	case HEDGE_FAULT_SHAPE:
		return "is of a set with another number of legs or another length";
	case HEDGE_FAULT_PLACE:
		return "has its data at another offset";
	case HEDGE_FAULT_TWICE:
		return "are the same leg of the set";
	case HEDGE_FAULT_SPLIT:
		return "went on without each other: a split brain";
	case HEDGE_FAULT_EMPTY:
		return "no leg has all the data";
	case HEDGE_FAULT_ALONE:
		return "is not there, and may have gone on alone: the feature force is needed";
	}
	return "unknown fault";
}

/**
 * hedge_stamp_encode - write the stamp of a disk log as it is on disk
 * @uuid: of the set
 * @stamp: the stamp
 * @block: where to: HEDGE_LABEL_SLOT bytes
 */
void hedge_stamp_encode(const u8 *uuid, u64 stamp, void *block)
{
	u8 *to = block;

	memset(to, 0, HEDGE_LABEL_SLOT);
	memcpy(to + AT_MAGIC, STAMP_MAGIC, 8);
	put(to + AT_VERSION, 4, HEDGE_LABEL_VERSION);
	memcpy(to + AT_UUID, uuid, HEDGE_UUID_BYTES);
	put(to + AT_GENERATION, 8, stamp);
	put(to + AT_CRC, 4, slot_crc(to));
}

/**
 * hedge_stamp_decode - read the stamp of a disk log
 * @block: HEDGE_LABEL_SLOT bytes, of any content
 * @uuid: of the set
 *
 * Return: the stamp, 0 if there is none for this set.
 */
u64 hedge_stamp_decode(const void *block, const u8 *uuid)
{
	const u8 *from = block;

	if (memcmp(from + AT_MAGIC, STAMP_MAGIC, 8) ||
	    get(from + AT_CRC, 4) != slot_crc(from) ||
	    get(from + AT_VERSION, 4) != HEDGE_LABEL_VERSION ||
	    memcmp(from + AT_UUID, uuid, HEDGE_UUID_BYTES))
		return 0;
	return get(from + AT_GENERATION, 8);
}
