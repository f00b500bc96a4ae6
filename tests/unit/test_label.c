// SPDX-License-Identifier: GPL-2.0
/*
 * label.[ch]: labels on disk, and the judgement over them.
 *
 * Cases that have a name are built by hand with the helpers below. The rest is
 * found by histories(): a model of legs that fail, crash, go missing, come back and
 * are put back to an older state plays what the module does to labels, and knows
 * what each leg holds.
 */
#include "tap.h"
#include "label.h"

#define NR 3

static const u8 uuid[HEDGE_UUID_BYTES] = "sixteen letters";

static struct hedge_label_table table_of(unsigned int nr)
{
	struct hedge_label_table table = {
		.length = 1000,
		.nr_legs = nr,
		.region_size = 64,
		.disk_log = true,
		.log_stamp = 7,
	};

	memcpy(table.uuid, uuid, sizeof(uuid));
	return table;
}

static struct hedge_label label_of(unsigned int nr, unsigned int leg, u32 in,
				   u64 generation)
{
	struct hedge_label label = {
		.round = { generation, 1 },
		.length = 1000,
		.log_stamp = 7,
		.region_size = 64,
		.leg = leg,
		.nr_legs = nr,
		.in = in,
		.name = "vol0",
	};
	unsigned int i;

	memcpy(label.uuid, uuid, sizeof(uuid));
	for (i = 0; i < nr; i++) {
		label.known[i] = label.round;
		label.sent[i] = label.round;
	}
	return label;
}

/* A set of NR legs that was closed at generation 10. */
static void make_set(struct hedge_label_table *table,
		     struct hedge_label_found *found)
{
	unsigned int i;

	*table = table_of(NR);
	for (i = 0; i < NR; i++) {
		found[i].state = HEDGE_LABEL_VALID;
		found[i].label = label_of(NR, i, 7, 10);
	}
}

static void judge(const struct hedge_label_table *table,
		  const struct hedge_label_found *found,
		  struct hedge_label_verdict *v)
{
	memset(v, 0xaa, sizeof(*v));
	hedge_label_judge(table, found, v);
}

/* The next round goes to the legs @in only. */
static void advance(struct hedge_label_found *found, u32 in, u64 session)
{
	struct hedge_label label;
	unsigned int i, from = 0;

	for (i = 0; i < NR; i++)
		if (found[i].state == HEDGE_LABEL_VALID && in >> i & 1 &&
		    found[i].label.round.generation >=
		    found[from].label.round.generation)
			from = i;
	label = found[from].label;
	for (i = 0; i < NR; i++)
		if (label.in >> i & 1)
			hedge_label_confirm(&label, i);
	hedge_label_advance(&label, in, session);
	for (i = 0; i < NR; i++) {
		if (!(in >> i & 1))
			continue;
		label.leg = i;
		found[i].state = HEDGE_LABEL_VALID;
		found[i].label = label;
	}
}

static void crc(void)
{
	char zeroes[32] = "";

	CHECK(hedge_crc32c("123456789", 9) == 0xe3069283, "%x",
	      hedge_crc32c("123456789", 9));
	CHECK(hedge_crc32c(zeroes, 32) == 0x8a9136aa, "%x",
	      hedge_crc32c(zeroes, 32));
}

static void on_disk(void)
{
	struct hedge_label label = label_of(3, 2, 5, 0x0102030405060708), back;
	static const u8 numbers[] = { 8, 7, 6, 5, 4, 3, 2, 1 };
	u8 slot[HEDGE_LABEL_SLOT];
	unsigned int i;

	label.round.session = 0x1122334455667788;
	label.offset = 99;
	label.default_leg = 1;
	label.open = true;
	label.partial = 2;
	label.known[1].generation = 77;
	label.known[1].session = 78;
	label.sent[1].generation = 79;
	label.sent[1].session = 80;
	memset(slot, 0xff, sizeof(slot));
	hedge_label_encode(&label, slot);
	CHECK(!memcmp(slot, "dm-hedge\1\0\0\0", 12), "magic and version");
	CHECK(!memcmp(slot + 16, uuid, 16), "UUID");
	CHECK(!memcmp(slot + 32, numbers, 8), "generation");
	CHECK(slot[40] == 0x88 && slot[47] == 0x11, "session");
	CHECK(slot[48] == 0xe8 && slot[49] == 3, "length");
	CHECK(slot[56] == 99 && slot[64] == 64, "offset, region size");
	CHECK(slot[68] == 2 && slot[69] == 3 && slot[70] == 1 && slot[71] == 5,
	      "legs");
	CHECK(slot[72] == 1 && slot[73] == 2, "open, partial");
	CHECK(slot[80] == 7 && !strcmp((char *)slot + 88, "vol0"), "stamp");
	CHECK(slot[184] == 77 && slot[192] == 78 && slot[200] == 79 &&
	      slot[208] == 80, "rounds");
	memset(&back, 0, sizeof(back));
	CHECK(hedge_label_decode(slot, &back) == HEDGE_LABEL_VALID, "decode");
	CHECK(!memcmp(&label, &back, sizeof(label)), "what came back differs");

	for (i = 0; i < HEDGE_LABEL_SLOT; i++) {
		enum hedge_label_state state;

		slot[i] ^= 1 << i % 8;
		state = hedge_label_decode(slot, &back);
		CHECK(state == (i < 8 ? HEDGE_LABEL_BLANK :
					HEDGE_LABEL_DAMAGED),
		      "byte %u: %d", i, state);
		slot[i] ^= 1 << i % 8;
	}
}

/* With a CRC that is right: from a later version, or from nowhere. */
static void not_known(void)
{
	static const struct { unsigned int at; u8 value; } wrong[] = {
		{ 8, 2 }, { 39, 128 }, { 68, 3 }, { 69, 1 }, { 69, 9 }, { 70, 3 }, { 71, 8 },
		{ 72, 2 }, { 73, 8 }, { 73, 4 }, { 74, 1 }, { 79, 1 },
		{ 151, 1 }, { 408, 1 }, { 4095, 1 },
	};
	struct hedge_label label = label_of(3, 2, 5, 1);
	struct hedge_label_found found;
	u8 slots[HEDGE_LABEL_BYTES];
	unsigned int i;
	u32 sum;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		memset(slots, 0, sizeof(slots));
		hedge_label_encode(&label, slots);
		slots[wrong[i].at] = wrong[i].value;
		memset(slots + 12, 0, 4);
		sum = hedge_crc32c(slots, HEDGE_LABEL_SLOT);
		slots[12] = sum;
		slots[13] = sum >> 8;
		slots[14] = sum >> 16;
		slots[15] = sum >> 24;
		CHECK(hedge_label_decode(slots, &label) == HEDGE_LABEL_UNKNOWN,
		      "byte %u", wrong[i].at);
		hedge_label_encode(&label, slots + HEDGE_LABEL_SLOT);
		hedge_label_find(slots, &found);
		CHECK(found.state == HEDGE_LABEL_UNKNOWN, "byte %u, slot 0",
		      wrong[i].at);
		memcpy(slots + HEDGE_LABEL_SLOT, slots, HEDGE_LABEL_SLOT);
		hedge_label_encode(&label, slots);
		hedge_label_find(slots, &found);
		CHECK(found.state == HEDGE_LABEL_UNKNOWN, "byte %u, slot 1",
		      wrong[i].at);
	}
}

static void two_slots(void)
{
	struct hedge_label older = label_of(3, 0, 7, 4);
	struct hedge_label newer = label_of(3, 0, 7, 5);
	u8 slots[HEDGE_LABEL_BYTES] = { 0 };
	u8 *second = slots + HEDGE_LABEL_SLOT;
	struct hedge_label_found found;

	hedge_label_find(slots, &found);
	CHECK(found.state == HEDGE_LABEL_BLANK, "zeroes: %d", found.state);
	hedge_label_encode(&older, slots);
	hedge_label_find(slots, &found);
	CHECK(found.state == HEDGE_LABEL_VALID && !found.slot, "first alone");
	hedge_label_encode(&newer, second);
	hedge_label_find(slots, &found);
	CHECK(found.slot == 1 && found.label.round.generation == 5, "second newer");
	hedge_label_encode(&newer, slots);
	hedge_label_encode(&older, second);
	hedge_label_find(slots, &found);
	CHECK(!found.slot && found.label.round.generation == 5, "first newer");

	/* The newer one is torn. */
	memset(slots + 64, 0, HEDGE_LABEL_SLOT - 64);
	hedge_label_find(slots, &found);
	CHECK(found.state == HEDGE_LABEL_VALID && found.slot == 1 &&
	      found.label.round.generation == 4, "torn");
	second[4000] = 1;
	hedge_label_find(slots, &found);
	CHECK(found.state == HEDGE_LABEL_DAMAGED, "both torn");
	memset(slots, 0, HEDGE_LABEL_SLOT);
	hedge_label_find(slots, &found);
	CHECK(found.state == HEDGE_LABEL_DAMAGED, "blank and torn");
}

/* Any bytes at all, and labels with some bytes changed. */
static void random_bytes(void)
{
	u8 slots[HEDGE_LABEL_BYTES];
	unsigned int i, k;

	for (i = 0; i < 500; i++) {
		struct hedge_label label = label_of(3, 1, 7, 9);
		struct hedge_label_found found;

		for (k = 0; k < sizeof(slots); k++)
			slots[k] = below(256);
		if (below(2))
			hedge_label_encode(&label, slots);
		if (below(2))
			hedge_label_encode(&label, slots + HEDGE_LABEL_SLOT);
		for (k = below(4); k; k--)
			slots[below(sizeof(slots))] = below(256);
		memcpy(slots, "dm-hedge\1", below(10));
		hedge_label_find(slots, &found);
		if (found.state == HEDGE_LABEL_VALID)
			CHECK(!memcmp(&found.label, &label, sizeof(label)),
			      "history %u", i);
	}
}

static void stamps(void)
{
	static const u8 another[HEDGE_UUID_BYTES] = "another set";
	u8 block[HEDGE_LABEL_SLOT];
	unsigned int i;

	hedge_stamp_encode(uuid, 0x1234567890abcdef, block);
	CHECK(hedge_stamp_decode(block, uuid) == 0x1234567890abcdef, "stamp");
	CHECK(!hedge_stamp_decode(block, another), "of another set");
	for (i = 0; i < sizeof(block); i++) {
		block[i] ^= 4;
		CHECK(!hedge_stamp_decode(block, uuid), "byte %u", i);
		block[i] ^= 4;
	}
	CHECK(hedge_stamp_sector(1) == 8, "one region");
	CHECK(hedge_stamp_sector(3072 * 8) == 8, "a full first block");
	CHECK(hedge_stamp_sector(3072 * 8 + 1) == 16, "one region more");
	CHECK(hedge_label_sector(0, 1000) == 1000, "whole pages");
	CHECK(hedge_label_sector(1, 1000) == 1008, "rounded up");
}

static void closed_set(void)
{
	struct hedge_label_found found[NR];
	struct hedge_label_table table;
	struct hedge_label_verdict v;

	make_set(&table, found);
	judge(&table, found, &v);
	CHECK(v.fault == HEDGE_FAULT_OK && v.in == 7 && !v.told && v.equal,
	      "fault %d in %x", v.fault, v.in);
	CHECK(v.sync == HEDGE_SYNC_LOG && !v.default_leg, "sync %d", v.sync);
	CHECK(v.label.round.generation == 10 && v.label.in == 7, "label");
	table.disk_log = false;
	judge(&table, found, &v);
	CHECK(v.sync == HEDGE_SYNC_ALL, "core log, closed: %d", v.sync);
}

static void crashed_set(void)
{
	struct hedge_label_found found[NR];
	struct hedge_label_table table;
	struct hedge_label_verdict v;
	unsigned int i;

	make_set(&table, found);
	for (i = 0; i < NR; i++)
		found[i].label.open = true;
	judge(&table, found, &v);
	CHECK(v.fault == HEDGE_FAULT_OK && v.in == 7 && !v.equal,
	      "fault %d in %x", v.fault, v.in);
	CHECK(v.sync == HEDGE_SYNC_LOG, "disk log");
	table.disk_log = false;
	judge(&table, found, &v);
	CHECK(v.sync == HEDGE_SYNC_NONE, "core log: a full resync");
}

static void any_order(void)
{
	struct hedge_label_found found[NR], in_order[NR];
	struct hedge_label_table table;
	struct hedge_label_verdict v;
	unsigned int i;

	make_set(&table, in_order);
	for (i = 0; i < NR; i++)
		in_order[i].label.default_leg = 1;
	for (i = 0; i < NR; i++)
		found[i] = in_order[(i + 1) % NR];
	judge(&table, found, &v);
	CHECK(v.fault == HEDGE_FAULT_OK && v.in == 7, "fault %d", v.fault);
	CHECK(v.number[0] == 1 && v.number[1] == 2 && v.number[2] == 0,
	      "numbers %u %u %u", v.number[0], v.number[1], v.number[2]);
	CHECK(v.default_leg == 0 && v.label.default_leg == 1, "default %u",
	      v.default_leg);

	/* A leg without a label takes the place that is left. */
	found[0].state = HEDGE_LABEL_BLANK;
	found[1].label.in = 5;
	found[2].label.in = 5;
	judge(&table, found, &v);
	CHECK(v.fault == HEDGE_FAULT_OK && v.in == 6 && v.number[0] == 1,
	      "fault %d in %x", v.fault, v.in);
}

static void refused(void)
{
	struct hedge_label_found found[NR];
	struct hedge_label_table table;
	struct hedge_label_verdict v;
	unsigned int i;

#define REFUSED(what, a, b)						\
do {									\
	judge(&table, found, &v);					\
	CHECK(v.fault == (what) && v.leg == (a) && v.other == (b),	\
	      "%d %u %u", v.fault, v.leg, v.other);			\
	CHECK(strcmp(hedge_label_fault_text(v.fault), "unknown fault"),	\
	      "no text");						\
} while (0)

	make_set(&table, found);
	table.force = true;
	found[1].label.uuid[3]++;
	REFUSED(HEDGE_FAULT_FOREIGN, 1, HEDGE_NO_LEG);
	make_set(&table, found);
	found[2].state = HEDGE_LABEL_UNKNOWN;
	REFUSED(HEDGE_FAULT_VERSION, 2, HEDGE_NO_LEG);
	make_set(&table, found);
	found[1].label.nr_legs = 4;
	REFUSED(HEDGE_FAULT_SHAPE, 1, HEDGE_NO_LEG);
	make_set(&table, found);
	found[0].label.length = 1008;
	REFUSED(HEDGE_FAULT_SHAPE, 0, HEDGE_NO_LEG);
	make_set(&table, found);
	table.offset[1] = 8;
	REFUSED(HEDGE_FAULT_PLACE, 1, HEDGE_NO_LEG);
	make_set(&table, found);
	found[2].label.leg = 0;
	REFUSED(HEDGE_FAULT_TWICE, 0, 2);
	make_set(&table, found);
	for (i = 0; i < NR; i++)
		found[i].state = HEDGE_LABEL_BLANK + i % 2;
	REFUSED(HEDGE_FAULT_NONE, HEDGE_NO_LEG, HEDGE_NO_LEG);
	make_set(&table, found);
	found[1].state = HEDGE_LABEL_MISSING;
	found[2].state = HEDGE_LABEL_MISSING;
	found[0].label.round.generation = 0;
	REFUSED(HEDGE_FAULT_EMPTY, HEDGE_NO_LEG, HEDGE_NO_LEG);
}

static void missing_leg(void)
{
	static const enum hedge_label_state ways[] = {
		HEDGE_LABEL_MISSING, HEDGE_LABEL_UNREADABLE,
		HEDGE_LABEL_BLANK, HEDGE_LABEL_DAMAGED,
	};
	struct hedge_label_found found[NR];
	struct hedge_label_table table;
	struct hedge_label_verdict v;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		make_set(&table, found);
		found[0].state = ways[i];
		REFUSED(HEDGE_FAULT_ALONE, 0, HEDGE_NO_LEG);
		table.force = true;
		judge(&table, found, &v);
		CHECK(v.fault == HEDGE_FAULT_OK && v.in == 6 &&
		      v.default_leg == 1, "in %x", v.in);
		CHECK(v.label.in == 6 && v.label.sent[0].generation == 10,
		      "out at %llu",
		      (unsigned long long)v.label.sent[0].generation);
		/* The newest label calls it out: nothing is risked. */
		make_set(&table, found);
		advance(found, 6, 1);
		found[0].state = ways[i];
		judge(&table, found, &v);
		CHECK(v.fault == HEDGE_FAULT_OK && v.in == 6, "%d", v.fault);
		/* It was replaced: what is there has nothing yet. */
		found[0].state = HEDGE_LABEL_VALID;
		found[0].label.round.generation = 0;
		judge(&table, found, &v);
		CHECK(v.fault == HEDGE_FAULT_OK && v.in == 6 && !v.told, "%d",
		      v.fault);
	}
}

static void stale_leg(void)
{
	struct hedge_label_found found[NR], old;
	struct hedge_label_table table;
	struct hedge_label_verdict v;

	make_set(&table, found);
	advance(found, 7, 2);
	old = found[1];
	advance(found, 5, 2);
	judge(&table, found, &v);
	CHECK(v.fault == HEDGE_FAULT_OK && v.in == 5 && v.told == 2,
	      "in %x told %x", v.in, v.told);
	advance(found, 5, 3);
	judge(&table, found, &v);
	CHECK(v.in == 5 && v.told == 2, "a later session: told %x", v.told);

	/* Another log, or one in memory, tells nothing of it. */
	table.log_stamp = 8;
	judge(&table, found, &v);
	CHECK(v.in == 5 && !v.told && v.sync == HEDGE_SYNC_NONE, "told %x",
	      v.told);
	table.disk_log = false;
	judge(&table, found, &v);
	CHECK(v.in == 5 && !v.told && v.sync == HEDGE_SYNC_ALL, "told %x",
	      v.told);
	table = table_of(NR);

	/* An older state of it than that in which it went out. */
	found[1].label.round.generation--;
	judge(&table, found, &v);
	CHECK(v.fault == HEDGE_FAULT_OK && v.in == 5 && !v.told, "told %x",
	      v.told);
	/* The same generation, from another session. */
	found[1] = old;
	found[1].label.round.session = 99;
	REFUSED(HEDGE_FAULT_SPLIT, 0, 1);

	/* Behind, and called in: a crash came in the middle of a round. */
	make_set(&table, found);
	old = found[2];
	advance(found, 7, 2);
	found[2] = old;
	judge(&table, found, &v);
	CHECK(v.fault == HEDGE_FAULT_OK && v.in == 3 && !v.told, "in %x", v.in);
	CHECK(v.label.known[2].generation == 11, "recorded as %llu",
	      (unsigned long long)v.label.known[2].generation);
}

static void split_brain(void)
{
	struct hedge_label_found found[NR], other;
	struct hedge_label_table table;
	struct hedge_label_verdict v;

	/* Each went on alone, one for longer. */
	make_set(&table, found);
	other = found[1];
	advance(found, 1, 2);
	advance(found, 1, 2);
	found[2].label = found[0].label;
	found[2].label.leg = 2;
	found[2].state = HEDGE_LABEL_MISSING;
	hedge_label_advance(&other.label, 2, 3);
	found[1] = other;
	table.force = true;
	REFUSED(HEDGE_FAULT_SPLIT, 0, 1);
	/* Both for just as long. */
	hedge_label_advance(&found[1].label, 2, 3);
	REFUSED(HEDGE_FAULT_SPLIT, 0, 1);

	/* Two against one. */
	make_set(&table, found);
	other = found[2];
	advance(found, 3, 2);
	hedge_label_advance(&other.label, 4, 3);
	hedge_label_advance(&other.label, 4, 3);
	found[2] = other;
	judge(&table, found, &v);
	CHECK(v.fault == HEDGE_FAULT_SPLIT && v.other == 2, "%d %u %u",
	      v.fault, v.leg, v.other);

	/* An old state of a leg went on, and never knew that it was out. */
	make_set(&table, found);
	other = found[2];
	advance(found, 7, 2);
	advance(found, 7, 3);
	hedge_label_advance(&other.label, 4, 4);
	found[2] = other;
	REFUSED(HEDGE_FAULT_SPLIT, 0, 2);
}

/* Labels that call each other out without a split brain. */
static void one_after_the_other(void)
{
	struct hedge_label_found found[NR];
	struct hedge_label_table table;
	struct hedge_label_verdict v;

	make_set(&table, found);
	advance(found, 5, 2);	/* 1 goes out */
	advance(found, 1, 2);	/* then 2 */
	judge(&table, found, &v);
	CHECK(v.fault == HEDGE_FAULT_OK && v.in == 1 && v.told == 6,
	      "fault %d in %x told %x", v.fault, v.in, v.told);
	advance(found, 3, 2);	/* 1 comes back; 2 still calls it out */
	judge(&table, found, &v);
	CHECK(v.fault == HEDGE_FAULT_OK && v.in == 3 && v.told == 4,
	      "fault %d in %x told %x", v.fault, v.in, v.told);

	/* The one that went on alone is missing. */
	make_set(&table, found);
	advance(found, 5, 2);
	advance(found, 1, 2);
	found[0].state = HEDGE_LABEL_MISSING;
	REFUSED(HEDGE_FAULT_ALONE, 0, HEDGE_NO_LEG);
}

/* A leg that is out and is being copied to. */
static void mixture(void)
{
	struct hedge_label older = label_of(NR, 1, 7, 10), set, spoilt;
	struct hedge_label_found found[NR], one;
	u8 slots[HEDGE_LABEL_BYTES];
	struct hedge_label_table table;
	struct hedge_label_verdict v;
	unsigned int order;

	set = label_of(NR, 0, 5, 13);
	set.known[1] = older.round;
	hedge_label_spoil(&older, &set, &spoilt);
	spoilt.leg = 1;
	for (order = 0; order < 2; order++) {
		hedge_label_encode(&older, slots + order * HEDGE_LABEL_SLOT);
		hedge_label_encode(&spoilt,
				   slots + !order * HEDGE_LABEL_SLOT);
		hedge_label_find(slots, &one);
		CHECK(one.slot == !order && one.label.in == 5,
		      "the one that it had is believed");
	}

	make_set(&table, found);
	advance(found, 5, 2);
	hedge_label_spoil(&found[1].label, &found[0].label, &spoilt);
	spoilt.leg = 1;
	found[1].label = spoilt;
	judge(&table, found, &v);
	CHECK(v.fault == HEDGE_FAULT_OK && v.in == 5 && v.told == 2,
	      "fault %d in %x told %x", v.fault, v.in, v.told);
	/* A crash in the round that brings it in. */
	one = found[1];
	advance(found, 7, 2);
	found[1] = one;
	judge(&table, found, &v);
	CHECK(v.fault == HEDGE_FAULT_OK && v.in == 5, "fault %d in %x",
	      v.fault, v.in);
	/* It is the only one there. */
	found[0].state = HEDGE_LABEL_MISSING;
	found[2].state = HEDGE_LABEL_MISSING;
	table.force = true;
	REFUSED(HEDGE_FAULT_EMPTY, HEDGE_NO_LEG, HEDGE_NO_LEG);

	/* It knows that others than those there went on. */
	make_set(&table, found);
	advance(found, 3, 2);
	advance(found, 1, 2);
	hedge_label_spoil(&found[1].label, &found[0].label, &spoilt);
	spoilt.leg = 1;
	found[1].label = spoilt;
	found[2].label.in = 6;
	found[0].state = HEDGE_LABEL_MISSING;
	REFUSED(HEDGE_FAULT_ALONE, 0, HEDGE_NO_LEG);

	/* What has replaced a leg, when a crash came as it was brought in. */
	make_set(&table, found);
	advance(found, 5, 2);
	hedge_label_spoil(NULL, &found[0].label, &spoilt);
	spoilt.leg = 1;
	CHECK(!spoilt.round.generation, "it has data");
	advance(found, 7, 2);
	found[1].label = spoilt;
	judge(&table, found, &v);
	CHECK(v.fault == HEDGE_FAULT_OK && v.in == 5 && !v.told, "fault %d",
	      v.fault);
	/* It was replaced behind the set's back. */
	found[1].label.in = 0;
	REFUSED(HEDGE_FAULT_ALONE, 1, HEDGE_NO_LEG);

	/* Two were replaced, and copied to by the third: one has the newest round too. */
	make_set(&table, found);
	advance(found, 4, 2);
	hedge_label_spoil(NULL, &found[2].label, &spoilt);
	spoilt.leg = 1;
	advance(found, 7, 2);
	found[1].label = spoilt;
	judge(&table, found, &v);
	CHECK(v.fault == HEDGE_FAULT_OK && v.in == 5, "fault %d", v.fault);
}

static void wrong_log(void)
{
	struct hedge_label_found found[NR];
	struct hedge_label_table table;
	struct hedge_label_verdict v;
	unsigned int i;

	make_set(&table, found);
	table.log_stamp = 8;
	judge(&table, found, &v);
	CHECK(v.fault == HEDGE_FAULT_OK && v.in == 7 &&
	      v.sync == HEDGE_SYNC_NONE, "another set's");
	table.log_stamp = 0;
	for (i = 0; i < NR; i++)
		found[i].label.log_stamp = 0;
	judge(&table, found, &v);
	CHECK(v.sync == HEDGE_SYNC_NONE, "no stamp");
	make_set(&table, found);
	table.region_size = 128;
	judge(&table, found, &v);
	CHECK(v.sync == HEDGE_SYNC_NONE, "other regions");
}

/* Only the default leg has all writes; others are being brought up to date. */
static void resync(void)
{
	struct hedge_label_found found[NR];
	struct hedge_label_table table;
	struct hedge_label_verdict v;
	unsigned int i;

	/* As a set is made. */
	make_set(&table, found);
	for (i = 0; i < NR; i++) {
		found[i].label.in = 2;
		found[i].label.partial = 5;
		found[i].label.default_leg = 1;
	}
	judge(&table, found, &v);
	CHECK(v.fault == HEDGE_FAULT_OK && v.default_leg == 1 && v.in == 2 &&
	      v.partial == 5, "in %x partial %x", v.in, v.partial);
	CHECK(v.sync == HEDGE_SYNC_LOG && v.told == 5, "told %x", v.told);
	table.disk_log = false;
	judge(&table, found, &v);
	CHECK(v.sync == HEDGE_SYNC_ALL && !v.told && v.partial == 5,
	      "without a log to tell they miss all: told %x", v.told);
	table.disk_log = true;
	/* One of them is missing: it is out. */
	found[0].state = HEDGE_LABEL_MISSING;
	judge(&table, found, &v);
	CHECK(v.fault == HEDGE_FAULT_OK && v.in == 2 && v.partial == 4 &&
	      v.label.partial == 4, "partial %x", v.partial);
	/* What has replaced one is copied whole. */
	found[2].label.round.generation = 0;
	judge(&table, found, &v);
	CHECK(v.fault == HEDGE_FAULT_OK && v.partial == 4 && !v.told,
	      "partial %x told %x", v.partial, v.told);
	/* Without the default leg there is nothing. */
	table.force = true;
	found[1].state = HEDGE_LABEL_MISSING;
	REFUSED(HEDGE_FAULT_EMPTY, HEDGE_NO_LEG, HEDGE_NO_LEG);

	/* A crash: the others did not miss anything before. */
	make_set(&table, found);
	advance(found, 2, 2);
	found[1].label.partial = 5;
	judge(&table, found, &v);
	CHECK(v.fault == HEDGE_FAULT_OK && v.in == 2 && v.partial == 5 &&
	      v.told == 5, "partial %x told %x", v.partial, v.told);
	found[1].state = HEDGE_LABEL_MISSING;
	REFUSED(HEDGE_FAULT_ALONE, 1, HEDGE_NO_LEG);
}

/*
 * Histories. Each write is a bit, and so is the region that it goes to.
 */
struct leg {
	struct hedge_label_found disk;
	u64 has;
	u64 stands;	/* acknowledged while it was in */
};

struct world {
	unsigned int nr;
	struct leg leg[4];
	struct leg backup[4];
	bool forked;		/* there is more than one history */
	u64 log;		/* regions that are not clean */
	u64 acked;
	u64 given_up;		/* the user forced a start without them */
	unsigned int writes;
	u64 session;
};

/* A set that runs. @live: legs that are in. */
struct run {
	struct world *w;
	struct hedge_label label;
	u32 live, partial, there;
	bool crashed;
};

enum { P_FAIL = 12, P_CRASH = 25 };

static bool one_in(unsigned int n)
{
	return !below(n);
}

/* Returns whether the leg has it, and knows. */
static bool write_label(struct run *run, unsigned int leg)
{
	bool fails = one_in(P_FAIL);

	if (fails && one_in(2))
		return false;
	run->label.leg = leg;
	run->w->leg[leg].disk.state = HEDGE_LABEL_VALID;
	run->w->leg[leg].disk.label = run->label;
	if (fails)
		return false;
	hedge_label_confirm(&run->label, leg);
	return true;
}

/* Legs that lack writes go out, but never all. Returns whether they could. */
static bool take_out(struct run *run, u32 legs)
{
	run->partial &= ~legs;
	if (!(run->live & ~legs))
		return false;
	run->live &= ~legs;
	if (legs >> run->label.default_leg & 1)
		run->label.default_leg = __builtin_ctz(run->live);
	return true;
}

/* One round. Returns the legs on which it failed; crashes if it must not go on. */
static u32 one_round(struct run *run, u32 was_in)
{
	unsigned int pass, i, d = run->label.default_leg;
	u32 failed = 0;

	hedge_label_advance(&run->label, run->live, run->w->session);
	run->label.partial = run->partial;
	for (pass = 0; pass < 3; pass++) {
		for (i = 0; i < run->w->nr; i++) {
			unsigned int mine = i == d ? 0 : was_in >> i & 1 ? 1 : 2;

			if (mine != pass || !(run->live >> i & 1))
				continue;
			if (one_in(P_CRASH * 2)) {
				run->crashed = true;
				return 0;
			}
			if (!write_label(run, i))
				failed |= 1U << i;
		}
		/* Nobody who was in knows of those who come back. */
		if (pass == 1 && !(was_in & run->live & ~failed)) {
			run->crashed = true;
			return 0;
		}
	}
	return failed;
}

static void spoil(struct run *run, unsigned int leg)
{
	struct hedge_label *own = &run->w->leg[leg].disk.label, spoilt;

	hedge_label_spoil(own, &run->label, &spoilt);
	spoilt.leg = leg;
	*own = spoilt;
	run->w->leg[leg].stands = 0;
}

/* Partial legs are written to only when their labels do not call them in. */
static void spoil_partial(struct run *run)
{
	unsigned int i;

	for (i = 0; i < run->w->nr && !run->crashed; i++) {
		if (!(run->partial >> i & 1))
			continue;
		run->crashed = one_in(P_CRASH * 2);
		if (!run->crashed)
			spoil(run, i);
	}
}

/* Rounds until one is on all legs that are in. */
static bool rounds(struct run *run, u32 was_in)
{
	for (;;) {
		u32 failed = one_round(run, was_in);

		if (run->crashed)
			return false;
		if (!failed) {
			spoil_partial(run);
			return !run->crashed;
		}
		if (!take_out(run, failed)) {
			run->crashed = true;
			return false;
		}
	}
}

static void one_write(struct run *run)
{
	struct world *w = run->w;
	u64 bit = 1ULL << w->writes;
	u32 failed = 0, was_in = run->live, to = run->live;
	unsigned int i;

	if (w->writes == 63)
		return;
	w->writes++;
	w->log |= bit;
	/* Partial legs are written to in regions that they do not miss. */
	if (one_in(2))
		to |= run->partial;
	for (i = 0; i < w->nr; i++) {
		if (!(to >> i & 1))
			continue;
		if (one_in(P_CRASH * 4)) {
			run->crashed = true;
			return;
		}
		if (one_in(P_FAIL * 2))
			failed |= 1U << i;
		if (!(failed >> i & 1) || one_in(2))
			w->leg[i].has |= bit;
	}
	if (!(run->live & ~failed)) {
		/* It failed everywhere: the default leg is taken to be right. */
		run->partial |= run->live & ~(1U << run->label.default_leg);
		run->live = 1U << run->label.default_leg;
		rounds(run, was_in);
		return;
	}
	if (failed) {
		take_out(run, failed);
		if (!rounds(run, was_in))
			return;
	}
	w->acked |= bit;
	for (i = 0; i < w->nr; i++)
		if (run->live >> i & 1)
			w->leg[i].stands |= bit;
}

static void finish_resync(struct run *run)
{
	struct world *w = run->w;
	u32 was_in = run->live;
	unsigned int i;

	for (i = 0; i < w->nr; i++)
		if (run->partial >> i & 1)
			w->leg[i].has = w->leg[run->label.default_leg].has;
	run->live |= run->partial;
	run->partial = 0;
	if (!rounds(run, was_in))
		return;
	for (i = 0; i < w->nr; i++)
		if (run->live >> i & 1)
			w->leg[i].stands = w->leg[i].has;
}

/* Some of what partial legs miss is copied. */
static void copy_some(struct run *run)
{
	struct world *w = run->w;
	unsigned int i;

	for (i = 0; i < w->nr; i++)
		if (run->partial >> i & 1)
			w->leg[i].has ^= (w->leg[i].has ^
				w->leg[run->label.default_leg].has) &
				((u64)hedge_random(&rng) << 32 |
				 hedge_random(&rng));
}

static void reinstate(struct run *run)
{
	struct world *w = run->w;
	unsigned int i = below(w->nr);

	if ((run->live | run->partial) >> i & 1 || !(run->there >> i & 1))
		return;
	spoil(run, i);
	run->partial |= 1U << i;
	if (one_in(2))
		rounds(run, run->live);
}

static void clean(struct run *run)
{
	if (run->live == (1U << run->w->nr) - 1)
		run->w->log = 0;
}

static void session(struct run *run)
{
	struct world *w = run->w;
	unsigned int steps = below(8);

	w->session++;
	run->label.open = true;
	if (!rounds(run, run->live))
		return;
	while (steps-- && !run->crashed) {
		switch (below(6)) {
		case 0:
			reinstate(run);
			break;
		case 1:
			finish_resync(run);
			break;
		case 2:
			copy_some(run);
			break;
		case 3:
			clean(run);
			break;
		default:
			one_write(run);
		}
		if (one_in(P_CRASH))
			run->crashed = true;
	}
	if (run->crashed)
		return;
	clean(run);
	run->label.open = false;
	rounds(run, run->live);
}

/* What must be true of a set that was not refused. */
static void check_start(const struct world *w, const struct run *run,
			const struct hedge_label_verdict *v, bool forced,
			unsigned int history)
{
	const struct leg *from = &w->leg[run->label.default_leg];
	u64 wanted = w->acked & ~w->given_up;
	unsigned int i;

	CHECK(v->in >> v->default_leg & 1, "history %u: no default leg",
	      history);
	/* What stands on a leg that is there is not lost. */
	for (i = 0; i < w->nr; i++)
		if (run->there >> i & 1 &&
		    w->leg[i].disk.label.round.generation &&
		    w->leg[i].disk.label.in >> i & 1)
			CHECK(!(wanted & w->leg[i].stands & ~from->has),
			      "history %u: leg %u has writes that are lost",
			      history, i);
	if (!forced && !w->forked)
		CHECK(!(wanted & ~from->has), "history %u: writes are lost",
		      history);
	for (i = 0; i < w->nr; i++) {
		const struct leg *leg = &w->leg[v->number[i]];
		u64 differ = leg->has ^ from->has;

		if (v->told >> i & 1)
			CHECK(!(differ & ~w->log),
			      "history %u: the log does not tell all", history);
		if (!(v->in >> i & 1))
			continue;
		if (!forced && !w->forked)
			CHECK(!(wanted & from->has & ~leg->has),
			      "history %u: a leg that is in lacks writes",
			      history);
		if (v->equal)
			CHECK(!differ, "history %u: legs differ", history);
		if (v->sync == HEDGE_SYNC_LOG)
			CHECK(!(differ & ~w->log),
			      "history %u: the log lacks regions", history);
	}
}

/* Makes the other legs follow one; the user knows what is lost. */
static void prefer(struct world *w, unsigned int leg)
{
	const struct hedge_label *by = &w->leg[leg].disk.label;
	unsigned int i;

	for (i = 0; i < w->nr; i++) {
		struct hedge_label *label = &w->leg[i].disk.label;

		if (label->round.generation != by->round.generation ||
		    label->round.session != by->round.session)
			label->round.generation = 0;
	}
	w->given_up |= w->acked & ~w->leg[leg].has;
}

/* Starts with some legs, in any order. False if it was refused. */
static bool start(struct world *w, struct run *run, unsigned int history,
		  unsigned int *refusals)
{
	struct hedge_label_table table = table_of(w->nr);
	struct hedge_label_found found[4];
	struct hedge_label_verdict v;
	unsigned int i, order[4];

	memset(run, 0, sizeof(*run));
	run->w = w;
	for (i = 0; i < w->nr; i++) {
		unsigned int k = below(i + 1);

		order[i] = order[k];
		order[k] = i;
	}
	for (i = 0; i < w->nr; i++) {
		found[i].state = HEDGE_LABEL_MISSING;
		if (one_in(4))
			continue;
		found[i] = w->leg[order[i]].disk;
		run->there |= 1U << order[i];
	}
	judge(&table, found, &v);
	if (v.fault == HEDGE_FAULT_SPLIT) {
		refusals[0]++;
		i = order[one_in(2) ? v.leg : v.other];
		if (w->leg[i].disk.label.in >> i & 1)
			prefer(w, i);
		return false;
	}
	if (v.fault == HEDGE_FAULT_ALONE) {
		refusals[1]++;
		table.force = true;
		if (one_in(2))
			judge(&table, found, &v);
	}
	if (v.fault)
		return false;
	run->label = v.label;
	check_start(w, run, &v, table.force, history);
	if (table.force) {
		w->given_up |= w->acked & ~w->leg[v.label.default_leg].has;
		w->forked = true;
	}
	for (i = 0; i < w->nr; i++) {
		run->live |= (v.in >> i & 1) << v.number[i];
		run->partial |= (v.partial >> i & 1) << v.number[i];
	}
	/* The others of those that are in are brought up to date. */
	if (!v.equal || v.sync == HEDGE_SYNC_NONE) {
		run->partial |= run->live & ~(1U << v.label.default_leg);
		run->live = 1U << v.label.default_leg;
	}
	return true;
}

static void play(unsigned int history, unsigned int *refusals)
{
	struct world w = { .nr = 2 + below(3) };
	bool backups = one_in(3);	/* one leg is put back, once */
	unsigned int i, k;

	for (i = 0; i < w.nr; i++) {
		w.leg[i].disk.state = HEDGE_LABEL_VALID;
		w.leg[i].disk.label = label_of(w.nr, i, (1U << w.nr) - 1, 1);
		w.backup[i] = w.leg[i];
	}
	for (k = 0; k < 16; k++) {
		struct run run;

		if (start(&w, &run, history, refusals))
			session(&run);
		i = below(w.nr);
		if (backups && one_in(4))
			w.backup[i] = w.leg[i];
		if (backups && one_in(8)) {
			backups = false;
			w.leg[i] = w.backup[i];
			w.forked = true;
		}
	}
}

static void histories(void)
{
	unsigned int i, refusals[2] = { 0, 0 };

	for (i = 0; i < 100000; i++)
		play(i, refusals);
	CHECK(refusals[0] > 1000 && refusals[1] > 1000, "%u %u", refusals[0],
	      refusals[1]);
}

int main(void)
{
	static const struct tap_test tests[] = {
		{ "CRC32C", crc },
		{ "the form on disk", on_disk },
		{ "labels that are not known", not_known },
		{ "two slots, and torn ones", two_slots },
		{ "random bytes", random_bytes },
		{ "stamps and places", stamps },
		{ "a closed set", closed_set },
		{ "a set that crashed", crashed_set },
		{ "legs in any order", any_order },
		{ "sets that are refused", refused },
		{ "missing, unreadable and replaced legs", missing_leg },
		{ "stale legs", stale_leg },
		{ "split brains", split_brain },
		{ "two legs out, one after the other", one_after_the_other },
		{ "a leg that is being copied to", mixture },
		{ "a log that is not this set's", wrong_log },
		{ "a resync that was not finished", resync },
		{ "random histories", histories },
	};

	return tap_run(tests, ARRAY_SIZE(tests));
}
