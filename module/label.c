// SPDX-License-Identifier: GPL-2.0
/*
 * Labels: reading them before a target runs, and keeping them true while it does.
 *
 * What a label says, and what follows from those that are found, is in
 * core/label.h. Here is only when they are read and written.
 *
 * They are read in preresume, when the table that was there before is suspended and
 * writes nothing any more. They are written by the region worker (and in
 * postsuspend, when it is idle), with FUA and after a flush of the leg:
 *
 *	open	before the first write of a session reaches any leg, and before
 *		recovery writes anything
 *	in	before a write is acknowledged that a leg lacks which is on record
 *		as full; and after a flush of all legs when a leg becomes full
 *	stamp	dropped when the log cannot be written, before a write is sent that
 *		it does not cover; put back when it can
 *	closed	in postsuspend, when all writes have ended
 *
 * A disk log's device carries a stamp behind the bitmap. The log is believed only
 * if the labels have the same. It gets a new one after its content was made right,
 * and before labels say so.
 *
 * A leg that is out may hang, and must not hold up the others: all labels are read at
 * once, by the workers of the legs, and when those that have answered vouch for the set
 * the rest is waited for no longer than PATIENCE. What is late counts as unreadable, and
 * is left behind (leg_io.c). So is a label that is being written to a leg that hangs,
 * when that is to be taken out: it may then have that label or the one before.
 *
 * All of it works without memory: a buffer for the stamp, and one for the label of each
 * leg, are made in the constructor.
 */
#include <linux/random.h>
#include <linux/uuid.h>

#include "hedge.h"
#include "core/label.h"

#define LABEL_SECTORS	(HEDGE_LABEL_BYTES >> SECTOR_SHIFT)
#define SLOT_SECTORS	(HEDGE_LABEL_SLOT >> SECTOR_SHIFT)
#define PATIENCE	(5 * HZ)

/**
 * struct hedge_labels - the labels of a target
 * @uuid: of the set
 * @set: the label of the last round; leg and offset mean nothing in it
 * @session: drawn when they were read
 * @carried: bit for each leg that is sure to have the last complete round
 * @incomplete: the last round is not on all legs that are in
 * @open: whether the set is to be called open
 * @log_stamp: what the log's device carries, 0 if the log was not believed
 * @unstamped: the log's device cannot be given a stamp
 * @verdict: what was found when they were read
 * @found: the label that each leg has now
 * @seen: the rounds that legs had when it was settled what they hold
 * @stamp: room for the log's stamp
 * @slots: room for the label of each leg, as it is read or written
 */
struct hedge_labels {
	u8 uuid[HEDGE_UUID_BYTES];
	struct hedge_label set;
	u64 session;
	unsigned long carried;
	bool incomplete;
	bool open;
	u64 log_stamp;
	bool unstamped;
	struct hedge_label_verdict verdict;
	struct hedge_label_found found[HEDGE_MAX_LEGS];
	struct hedge_label_round seen[HEDGE_MAX_LEGS];
	void *stamp;
	void *slots[HEDGE_MAX_LEGS];
};

static const char *name(const struct hedge *h)
{
	return dm_table_device_name(h->ti->table);
}

static sector_t label_sector(const struct hedge_leg *leg)
{
	return hedge_label_sector(leg->offset, leg->hedge->ti->len);
}

static int transfer(struct block_device *bdev, blk_opf_t opf, sector_t sector,
		    void *data, unsigned int bytes)
{
	struct bio_vec bvec;
	struct bio bio;
	int r;

	bio_init(&bio, bdev, &bvec, 1, opf | REQ_SYNC | REQ_META);
	bio.bi_iter.bi_sector = sector;
	__bio_add_page(&bio, virt_to_page(data), bytes, offset_in_page(data));
	r = submit_bio_wait(&bio);
	bio_uninit(&bio);
	return r;
}

static void start_read(struct hedge_leg *leg)
{
	hedge_leg_io_start(leg, REQ_OP_READ, label_sector(leg),
			   leg->hedge->labels->slots[leg->index],
			   HEDGE_LABEL_BYTES);
}

/* Begins to read the label of a leg, unless something that was left behind is out. */
static void begin_read(struct hedge_leg *leg)
{
	if (leg->dev && !hedge_leg_io_late(leg))
		start_read(leg);
}

/*
 * Waits so many jiffies for the label of a leg. Returns false if it did not come; then
 * it counts as unreadable. A flush that was left behind goes first.
 */
static bool end_read(struct hedge_leg *leg, unsigned long patience,
		     struct hedge_label_found *found)
{
	memset(found, 0, sizeof(*found));
	found->state = HEDGE_LABEL_MISSING;
	if (!leg->dev)
		return true;
	found->state = HEDGE_LABEL_UNREADABLE;
	if (!hedge_leg_io_wait(leg, patience))
		return false;
	if (bio_op(&leg->io->bio) != REQ_OP_READ) {
		start_read(leg);
		if (!hedge_leg_io_wait(leg, patience))
			return false;
	}
	if (!leg->io->bio.bi_status)
		hedge_label_find(leg->hedge->labels->slots[leg->index],
				 found);
	return true;
}

/* Writes a label of a leg into the slot that does not hold the newest one. */
static int write_label(struct hedge_leg *leg, struct hedge_label *label)
{
	struct hedge_labels *l = leg->hedge->labels;
	struct hedge_label_found *found = &l->found[leg->index];
	unsigned int slot = 0;
	int r;

	if (found->state == HEDGE_LABEL_VALID)
		slot = !found->slot;
	label->leg = l->verdict.number[leg->index];
	label->offset = leg->offset;
	/* What was left behind has its buffer still. */
	r = hedge_leg_io_claim(leg);
	if (!r) {
		hedge_label_encode(label, l->slots[leg->index]);
		hedge_leg_io_start(leg, REQ_OP_WRITE | REQ_PREFLUSH | REQ_FUA,
				   label_sector(leg) + slot * SLOT_SECTORS,
				   l->slots[leg->index], HEDGE_LABEL_SLOT);
		r = hedge_leg_io_end(leg);
	}
	if (r) {
		if (r == -ECANCELED)
			return r;
		DMERR_LIMIT("%s: the label of leg %u (%s) cannot be written: error %d",
			    name(leg->hedge), leg->index, leg->dev->name, r);
		return r;
	}
	found->state = HEDGE_LABEL_VALID;
	found->slot = slot;
	found->label = *label;
	l->seen[leg->index] = label->round;
	return 0;
}

static bool log_on_disk(const struct hedge *h)
{
	return h->log_dev;
}

static u64 read_stamp(struct hedge *h)
{
	struct hedge_labels *l = h->labels;

	if (!log_on_disk(h) ||
	    transfer(h->log_dev->bdev, REQ_OP_READ,
		     hedge_stamp_sector(h->nr_regions), l->stamp,
		     HEDGE_LABEL_SLOT))
		return 0;
	return hedge_stamp_decode(l->stamp, l->uuid);
}

/*
 * The stamp that labels are to have. The log is true: it was flushed when the
 * target began, or by whoever found that it can be written again.
 */
static u64 wanted_stamp(struct hedge *h)
{
	struct hedge_labels *l = h->labels;
	u64 stamp;

	if (!log_on_disk(h) || h->log_failed || l->unstamped)
		return 0;
	if (l->log_stamp)
		return l->log_stamp;
	stamp = get_random_u64() | 1;
	hedge_stamp_encode(l->uuid, stamp, l->stamp);
	if (transfer(h->log_dev->bdev, REQ_OP_WRITE | REQ_PREFLUSH | REQ_FUA,
		     hedge_stamp_sector(h->nr_regions), l->stamp,
		     HEDGE_LABEL_SLOT)) {
		DMERR_LIMIT("%s: the log's stamp cannot be written: the log will not be believed",
			    name(h));
		l->unstamped = true;
		return 0;
	}
	l->log_stamp = stamp;
	return stamp;
}

/* Positions in the table to numbers in the set. */
static u32 numbers(const struct hedge *h, unsigned long legs)
{
	u32 n = 0;
	unsigned int i;

	for_each_set_bit(i, &legs, HEDGE_MAX_LEGS)
		n |= BIT(h->labels->verdict.number[i]);
	return n;
}

static unsigned long full_legs(const struct hedge *h)
{
	return h->live & ~h->partial;
}

static bool calls_itself_in(const struct hedge_label_found *found)
{
	return found->state == HEDGE_LABEL_VALID &&
	       found->label.in & BIT(found->label.leg);
}

/* Partial legs whose labels still say that they hold everything. */
static unsigned long unspoilt(const struct hedge *h)
{
	unsigned long partial = h->live & h->partial, legs = 0;
	unsigned int i;

	for_each_set_bit(i, &partial, HEDGE_MAX_LEGS)
		if (calls_itself_in(&h->labels->found[i]))
			legs |= BIT(i);
	return legs;
}

/* Whether labels and log are not as one as they could be. */
static bool stamp_due(const struct hedge *h)
{
	const struct hedge_labels *l = h->labels;
	bool stamped = log_on_disk(h) && !h->log_failed && !l->unstamped;

	return stamped ? !l->log_stamp || l->set.log_stamp != l->log_stamp :
			 l->set.log_stamp;
}

/**
 * hedge_label_due - whether labels do not say what is
 * @h: the target; those of a table that is read-only stay as they are
 *
 * Context: the region worker.
 */
bool hedge_label_due(const struct hedge *h)
{
	const struct hedge_labels *l = h->labels;

	if (!l || h->read_only)
		return false;
	return l->incomplete || l->set.open != l->open ||
	       l->set.in != numbers(h, full_legs(h)) ||
	       l->set.partial != numbers(h, h->live & h->partial) ||
	       (l->open && (l->set.round.session != l->session ||
			    stamp_due(h) || unspoilt(h)));
}

/* Writes a round to some legs. Returns those on which it failed. */
static unsigned long write_round(struct hedge *h, unsigned long legs)
{
	struct hedge_labels *l = h->labels;
	unsigned long failed = 0;
	unsigned int i;

	for_each_set_bit(i, &legs, HEDGE_MAX_LEGS) {
		if (write_label(&h->leg[i], &l->set))
			failed |= BIT(i);
		else
			hedge_label_confirm(&l->set, l->verdict.number[i]);
	}
	return failed;
}

/*
 * One round, in the order that core/label.h asks for. Returns the legs on which
 * it failed. With @nobody set, none of those that were in got it, so those that
 * come back did not either.
 */
static unsigned long one_round(struct hedge *h, bool *nobody)
{
	struct hedge_labels *l = h->labels;
	unsigned long in = full_legs(h), old = in & l->carried, failed;
	unsigned long first = old & BIT(h->default_leg);

	hedge_label_advance(&l->set, numbers(h, in), l->session);
	l->set.partial = numbers(h, h->live & h->partial);
	l->set.default_leg = l->verdict.number[h->default_leg];
	l->set.open = l->open;
	l->incomplete = true;
	failed = write_round(h, first);
	failed |= write_round(h, old & ~first);
	*nobody = !(old & ~failed);
	if (!*nobody)
		failed |= write_round(h, in & ~old);
	return failed;
}

/* Rounds until one is on all full legs; the others go out. */
static int write_rounds(struct hedge *h)
{
	struct hedge_labels *l = h->labels;
	unsigned long failed;
	unsigned int i;
	bool nobody;

	l->set.log_stamp = wanted_stamp(h);
	/* Which the bits of that log are for. */
	l->set.region_size = h->region_size;
	for (;;) {
		failed = one_round(h, &nobody);
		if (nobody) {
			/* It may have been the flush before it. */
			if (failed)
				hedge_region_lost(h);
			return -EIO;
		}
		if (!failed)
			break;
		for_each_set_bit(i, &failed, HEDGE_MAX_LEGS)
			hedge_sync_out(&h->leg[i], HEDGE_WRITE_FAILED);
	}
	l->carried = full_legs(h);
	l->incomplete = false;
	return 0;
}

/**
 * hedge_label_spoil_leg - have the label of a leg say that it lacks writes
 * @leg: the leg, which is or becomes partial
 *
 * Context: the region worker. May sleep.
 *
 * Return: 0, or a negative error.
 */
int hedge_label_spoil_leg(struct hedge_leg *leg)
{
	struct hedge_labels *l = leg->hedge->labels;
	struct hedge_label_found *found;
	struct hedge_label label;
	bool valid, older;
	int r;

	if (!l)
		return 0;
	found = &l->found[leg->index];
	valid = found->state == HEDGE_LABEL_VALID;
	hedge_label_spoil(valid ? &found->label : NULL, &l->set, &label);
	older = !valid ||
		label.round.generation < found->label.round.generation;
	r = write_label(leg, &label);
	/* It counts only when newer ones are gone, also those that were not read. */
	if (!r && older)
		r = write_label(leg, &label);
	return r;
}

/**
 * hedge_label_write - make labels say what is
 * @h: the target
 * @open: whether the set may be written to
 *
 * Does nothing if they do. Full legs to which they cannot be written go out, but
 * for the last.
 *
 * Context: the region worker, or process while there is no I/O. May sleep.
 *
 * Return: 0, or a negative error if they could not be written to any leg that was
 * on record as full: then nothing that a leg lacks may be acknowledged.
 */
int hedge_label_write(struct hedge *h, bool open)
{
	struct hedge_labels *l = h->labels;
	unsigned int noio, i;
	unsigned long legs;
	int r = 0;

	if (!l)
		return 0;
	l->open = open;
	noio = memalloc_noio_save();
	while (!r && hedge_label_due(h)) {
		r = write_rounds(h);
		legs = l->open && !r ? unspoilt(h) : 0;
		for_each_set_bit(i, &legs, HEDGE_MAX_LEGS)
			if (hedge_label_spoil_leg(&h->leg[i]))
				hedge_sync_out(&h->leg[i], HEDGE_SYNC_FAILED);
	}
	memalloc_noio_restore(noio);
	return r;
}

/**
 * hedge_label_open - have the next hedge_sync_record() call the set open
 * @h: the target
 *
 * Context: the region worker.
 */
void hedge_label_open(struct hedge *h)
{
	if (h->labels)
		h->labels->open = true;
}

/**
 * hedge_label_record - make labels say what is, open or not as they are to be
 * @h: the target
 *
 * Context: the region worker. May sleep.
 *
 * Return: as hedge_label_write().
 */
int hedge_label_record(struct hedge *h)
{
	return h->labels ? hedge_label_write(h, h->labels->open) : 0;
}

static bool is_round(const struct hedge_label *label,
		     const struct hedge_label_round *round)
{
	return label->round.generation == round->generation &&
	       label->round.session == round->session;
}

static bool is_own(const struct hedge_labels *l, unsigned int number,
		   const struct hedge_label_found *found)
{
	return found->state == HEDGE_LABEL_VALID &&
	       found->label.leg == number &&
	       !memcmp(found->label.uuid, l->uuid, HEDGE_UUID_BYTES);
}

/* Whether a leg has the label that we left on it, or last tried to. */
static bool as_left(const struct hedge_labels *l, unsigned int leg,
		    const struct hedge_label_found *found)
{
	const struct hedge_label_found *was = &l->found[leg];
	bool valid = was->state == HEDGE_LABEL_VALID;
	unsigned int number = valid ? was->label.leg : l->verdict.number[leg];

	if (!is_own(l, number, found))
		return false;
	if (valid && is_round(&found->label, &was->label.round))
		return true;
	return found->label.round.generation &&
	       (is_round(&found->label, &l->set.known[number]) ||
		is_round(&found->label, &l->set.sent[number]));
}

/**
 * hedge_label_is_same - whether a leg is as an old table has left it
 * @leg: the leg
 * @old: the same device and offset in the old table
 *
 * What cannot be read now is looked at when the leg comes back.
 *
 * Context: process, in preresume, after hedge_label_load().
 */
bool hedge_label_is_same(const struct hedge_leg *leg,
			 const struct hedge_leg *old)
{
	const struct hedge_labels *l = leg->hedge->labels;
	const struct hedge_label_found *found;

	if (!l || !old->hedge->labels)
		return true;
	found = &l->found[leg->index];
	return found->state == HEDGE_LABEL_UNREADABLE ||
	       as_left(old->hedge->labels, old->index, found);
}

/* Whether a leg had data of its own after it went out here. */
static bool went_alone(const struct hedge_labels *l,
		       const struct hedge_label_found *found)
{
	return calls_itself_in(found) &&
	       found->label.round.generation >=
		       l->set.sent[found->label.leg].generation;
}

/*
 * Legs whose labels were not read got the numbers that were left. Now that the label of
 * one of them was, it changes numbers with the one that got its own; both are out.
 */
static void learn_number(struct hedge_leg *leg,
			 const struct hedge_label_found *found)
{
	struct hedge_labels *l = leg->hedge->labels;
	u8 *number = l->verdict.number;
	unsigned int i;

	if (found->state != HEDGE_LABEL_VALID ||
	    l->found[leg->index].state == HEDGE_LABEL_VALID ||
	    memcmp(found->label.uuid, l->uuid, HEDGE_UUID_BYTES))
		return;
	for (i = 0; i < leg->hedge->nr_legs; i++)
		if (number[i] == found->label.leg &&
		    l->found[i].state != HEDGE_LABEL_VALID)
			swap(number[i], number[leg->index]);
}

/* Whether a leg that has no label has the number that was left for another one. */
static bool number_is_guess(const struct hedge_leg *leg)
{
	const struct hedge_labels *l = leg->hedge->labels;
	bool in_order = true, only = true;
	unsigned int i;

	for (i = 0; i < leg->hedge->nr_legs; i++) {
		if (l->found[i].state == HEDGE_LABEL_VALID)
			in_order &= l->verdict.number[i] == i;
		else if (i != leg->index)
			only = false;
	}
	return !in_order && !only;
}

/**
 * hedge_label_look_again - find out whether a leg that was out is still the same
 * @leg: the leg
 *
 * Context: the region worker. May sleep, but not for a leg that hangs.
 *
 * Return: 1, 0 if it may hold anything, -EINVAL if it belongs to others, has data that
 * the set lacks, or cannot be told from another leg, or -EIO if it does not answer.
 */
int hedge_label_look_again(struct hedge_leg *leg)
{
	struct hedge_labels *l = leg->hedge->labels;
	struct hedge_label_found found;

	if (!l)
		return 1;
	begin_read(leg);
	if (!end_read(leg, PATIENCE, &found)) {
		DMERR("%s: leg %u (%s) does not answer", name(leg->hedge),
		      leg->index, leg->dev->name);
		return -EIO;
	}
	learn_number(leg, &found);
	if (as_left(l, leg->index, &found)) {
		l->found[leg->index] = found;
		return 1;
	}
	if (found.state == HEDGE_LABEL_UNKNOWN ||
	    (found.state == HEDGE_LABEL_VALID &&
	     !is_own(l, l->verdict.number[leg->index], &found)))
		return -EINVAL;
	if (went_alone(l, &found)) {
		DMERR("%s: leg %u (%s) went on alone: to give that up, stop the volume and wipe it",
		      name(leg->hedge), leg->index, leg->dev->name);
		return -EINVAL;
	}
	if (found.state != HEDGE_LABEL_VALID && number_is_guess(leg)) {
		DMERR("%s: the number of leg %u (%s) cannot be told: list the legs in order",
		      name(leg->hedge), leg->index, leg->dev->name);
		return -EINVAL;
	}
	l->found[leg->index] = found;
	return 0;
}

static void report_fault(struct hedge *h)
{
	const struct hedge_label_verdict *v = &h->labels->verdict;
	const char *text = hedge_label_fault_text(v->fault);
	const char *leg = NULL, *other = NULL;

	if (v->leg != HEDGE_NO_LEG)
		leg = hedge_leg_name(&h->leg[v->leg]);
	if (v->other != HEDGE_NO_LEG)
		other = hedge_leg_name(&h->leg[v->other]);
	if (other)
		DMERR("%s: legs %u (%s) and %u (%s) %s", name(h), v->leg, leg,
		      v->other, other, text);
	else if (leg)
		DMERR("%s: leg %u (%s) %s", name(h), v->leg, leg, text);
	else
		DMERR("%s: %s", name(h), text);
	if (v->fault == HEDGE_FAULT_SPLIT)
		DMERR("%s: hedgectl assemble --prefer DEV --force keeps one's data",
		      name(h));
}

static const char *why_out(const struct hedge_label_found *found)
{
	switch (found->state) {
	case HEDGE_LABEL_MISSING:
		return "it is missing";
	case HEDGE_LABEL_UNREADABLE:
		return "its label cannot be read";
	case HEDGE_LABEL_BLANK:
		return "it has no label";
	case HEDGE_LABEL_DAMAGED:
		return "its label is damaged";
	default:
		return "it lacks writes that others have";
	}
}

static void note_seen(struct hedge_labels *l)
{
	unsigned int i;

	for (i = 0; i < HEDGE_MAX_LEGS; i++)
		l->seen[i] = l->found[i].label.round;
}

/*
 * What was taken over from an old table may be from a while ago: this table was resumed
 * in vain, and somebody else may have used the legs since then. Returns whether a leg
 * that is in was written to.
 */
static bool others_went_on(const struct hedge *h)
{
	const struct hedge_labels *l = h->labels;
	const struct hedge_label_round *were = l->seen;
	unsigned int i;

	for (i = 0; i < h->nr_legs; i++)
		if (l->verdict.in & BIT(i) && were[i].generation &&
		    !is_round(&l->found[i].label, &were[i]))
			return true;
	return false;
}

/* Legs that are not in and not as they were. */
static unsigned long strange(struct hedge *h)
{
	struct hedge_labels *l = h->labels;
	const struct hedge_label_round *were = l->seen;
	unsigned long legs = h->live & ~(l->verdict.in | l->verdict.partial);
	unsigned int i;

	for (i = 0; i < h->nr_legs; i++) {
		const struct hedge_label_found *found = &l->found[i];

		if (l->verdict.in & BIT(i)) {
			/* It was written to, and we do not know what. */
			if (!is_round(&found->label, &were[i]))
				legs |= ~l->verdict.in;
		} else if (found->state != HEDGE_LABEL_UNREADABLE &&
			   found->state != HEDGE_LABEL_MISSING &&
			   (found->state != HEDGE_LABEL_VALID ||
			    !is_round(&found->label, &were[i]))) {
			legs |= BIT(i);
		}
	}
	return legs & (BIT(h->nr_legs) - 1);
}

static void take_over(struct hedge *h)
{
	struct hedge_labels *l = h->labels;
	const struct hedge_label_verdict *v = &l->verdict;
	unsigned int i;

	/* What was taken over from an old table is more than labels tell. */
	if (!h->known) {
		h->live = v->in | v->partial;
		h->partial = v->partial;
		h->default_leg = v->default_leg;
	}
	for (i = 0; i < h->nr_legs; i++) {
		if (h->live & BIT(i)) {
			clear_bit(HEDGE_TAKEN_OUT, &h->leg[i].health);
			continue;
		}
		set_bit(HEDGE_TAKEN_OUT, &h->leg[i].health);
		DMWARN("%s: leg %u (%s) is out: %s", name(h), i,
		       hedge_leg_name(&h->leg[i]), why_out(&l->found[i]));
	}
	if (v->sync == HEDGE_SYNC_NONE)
		DMWARN("%s: %s: all legs are resynced from leg %u (%s)",
		       name(h), log_on_disk(h) ?
		       "the log does not belong to the legs" :
		       "the legs were in use and the log was lost",
		       h->default_leg, hedge_leg_name(&h->leg[h->default_leg]));
	l->set = v->label;
	l->carried = v->in;
	l->open = l->set.open;
	/* A log that is not believed gets a stamp that no label has had. */
	if (v->sync != HEDGE_SYNC_LOG)
		l->log_stamp = 0;
}

/*
 * Reads all labels. Returns those legs that have not answered in time; with @late, legs
 * of which that was said before, it waits for them.
 */
static unsigned long read_labels(struct hedge *h, unsigned long late)
{
	struct hedge_labels *l = h->labels;
	unsigned long until = jiffies + PATIENCE, left, missed = 0;
	unsigned int i;

	for (i = 0; i < h->nr_legs && !late; i++)
		begin_read(&h->leg[i]);
	for (i = 0; i < h->nr_legs; i++) {
		left = time_before(jiffies, until) ? until - jiffies : 0;
		if (late)
			left = MAX_SCHEDULE_TIMEOUT;
		if (late && !(late & BIT(i)))
			continue;
		if (!end_read(&h->leg[i], left, &l->found[i]))
			missed |= BIT(i);
	}
	return missed;
}

static void judge(struct hedge *h)
{
	struct hedge_labels *l = h->labels;
	struct hedge_label_table table = {
		.length = h->ti->len,
		.nr_legs = h->nr_legs,
		.region_size = h->region_size,
		.disk_log = log_on_disk(h),
		.log_stamp = l->log_stamp,
		.force = h->force,
	};
	unsigned int i;

	memcpy(table.uuid, l->uuid, sizeof(table.uuid));
	for (i = 0; i < h->nr_legs; i++)
		table.offset[i] = h->leg[i].offset;
	hedge_label_judge(&table, l->found, &l->verdict);
}

/**
 * hedge_label_load - read the labels, and find out which legs may be used
 * @h: the target
 *
 * Sets which legs are live and partial, and the default leg.
 *
 * Context: process, in preresume, before the log is read. May sleep.
 *
 * Return: 0, or -EINVAL with the reason in the kernel log.
 */
int hedge_label_load(struct hedge *h)
{
	struct hedge_labels *l = h->labels;
	unsigned long late;
	unsigned int noio;

	if (!l)
		return 0;
	noio = memalloc_noio_save();
	late = read_labels(h, 0);
	l->log_stamp = read_stamp(h);
	judge(h);
	/*
	 * It may be one that the set cannot do without. Force is for legs that are
	 * not there: one that is, and late, may have what the others lack.
	 */
	if (late && (l->verdict.fault || h->force)) {
		read_labels(h, late);
		judge(h);
	}
	memalloc_noio_restore(noio);
	/* What an old table knows is taken over even if the set is refused. */
	if (!h->known)
		note_seen(l);
	if (l->verdict.fault) {
		report_fault(h);
		return -EINVAL;
	}
	if (h->known && others_went_on(h)) {
		hedge_sync_forget(h);
		/* Nor is it known whether it was this log that they used. */
		l->log_stamp = 0;
		judge(h);
	}
	/* Else what is known comes from the old table that goes only now. */
	if (h->known) {
		hedge_sync_distrust(h, strange(h));
		if (!full_legs(h)) {
			DMERR("%s: others used the legs meanwhile: load the table anew",
			      name(h));
			return -EINVAL;
		}
	}
	note_seen(l);
	l->session = get_random_u64();
	take_over(h);
	return 0;
}

/**
 * hedge_label_settle - put on the labels what the feature force has decided
 * @h: the target, whose log is right
 *
 * Then the table line needs it no more, and a later table that repeats the line does
 * not force anything else.
 *
 * Context: process, in preresume. May sleep.
 */
void hedge_label_settle(struct hedge *h)
{
	struct hedge_labels *l = h->labels;

	if (!h->force || h->read_only)
		return;
	l->incomplete = true;
	if (!hedge_label_write(h, l->open))
		WRITE_ONCE(h->force, false);
}

/**
 * hedge_label_fix_log - have the log say what labels know better
 * @h: the target, whose log was read
 *
 * Context: process, in preresume.
 */
void hedge_label_fix_log(struct hedge *h)
{
	struct dm_dirty_log_type *type = h->log->type;
	region_t region;
	bool synced;

	if (!h->labels || h->labels->verdict.sync == HEDGE_SYNC_LOG)
		return;
	synced = h->labels->verdict.sync == HEDGE_SYNC_ALL;
	/* It would count a region twice that was in sync already. */
	for (region = 0; region < h->nr_regions; region++) {
		if ((type->in_sync(h->log, region, 1) == 1) != synced)
			type->set_region_sync(h->log, region, synced);
		cond_resched();
	}
}

/**
 * hedge_label_log_counts - whether what legs miss that are out may stay clean
 * @h: the target, whose labels were read
 *
 * A disk log that was not believed may lack regions that were written to since a
 * leg went out whose label it will tell about, once it has a new stamp.
 */
bool hedge_label_log_counts(const struct hedge *h)
{
	return h->labels && (!log_on_disk(h) ||
			     h->labels->verdict.sync == HEDGE_SYNC_LOG);
}

/**
 * hedge_label_equal - whether full legs hold the same, whatever the log says
 * @h: the target, whose labels were read
 */
bool hedge_label_equal(const struct hedge *h)
{
	return h->labels && h->labels->verdict.equal &&
	       h->labels->verdict.sync != HEDGE_SYNC_NONE;
}

/**
 * hedge_label_told - legs whose missed regions the log tells
 * @h: the target, whose labels were read
 *
 * Return: bit for each leg that is not full and that misses only regions that are
 * not clean in the log; others may miss all.
 */
unsigned long hedge_label_told(const struct hedge *h)
{
	return h->labels ? h->labels->verdict.told : 0;
}

static void *get_slots(void)
{
	return (void *)__get_free_pages(GFP_KERNEL,
					get_order(HEDGE_LABEL_BYTES));
}

static void put_slots(void *slots)
{
	free_pages((unsigned long)slots, get_order(HEDGE_LABEL_BYTES));
}

static int labels_alloc(struct hedge *h)
{
	struct hedge_labels *l;
	unsigned int i;

	l = kzalloc(sizeof(*l), GFP_KERNEL);
	if (!l)
		return -ENOMEM;
	h->labels = l;
	l->stamp = get_slots();
	if (!l->stamp)
		return -ENOMEM;
	for (i = 0; i < h->nr_legs; i++) {
		l->slots[i] = get_slots();
		if (!l->slots[i])
			return -ENOMEM;
	}
	return 0;
}

/**
 * hedge_label_enable - have a target use labels
 * @h: the target
 * @uuid: of the set, as text
 *
 * Context: process. May sleep.
 *
 * Return: 0, -EINVAL if the UUID is none, or -ENOMEM.
 */
int hedge_label_enable(struct hedge *h, const char *uuid)
{
	uuid_t parsed;

	if (uuid_parse(uuid, &parsed) || strlen(uuid) != UUID_STRING_LEN)
		return -EINVAL;
	if (!h->labels && labels_alloc(h))
		return -ENOMEM;
	export_uuid(h->labels->uuid, &parsed);
	return 0;
}

/**
 * hedge_label_exit - undo hedge_label_enable()
 * @h: the target
 *
 * Context: process. May sleep.
 */
void hedge_label_exit(struct hedge *h)
{
	unsigned int i;

	if (!h->labels)
		return;
	for (i = 0; i < h->nr_legs; i++)
		put_slots(h->labels->slots[i]);
	put_slots(h->labels->stamp);
	kfree(h->labels);
}

/**
 * hedge_label_print - the words of the table line
 * @h: the target
 * @buf: where to
 * @size: room there
 *
 * Return: characters written.
 */
unsigned int hedge_label_print(const struct hedge *h, char *buf,
			       unsigned int size)
{
	if (!h->labels)
		return 0;
	return scnprintf(buf, size, " label %pUb%s", h->labels->uuid,
			 READ_ONCE(h->force) ? " force" : "");
}

static bool overlap(const struct block_device *a, sector_t from_a,
		    sector_t length_a, const struct block_device *b,
		    sector_t from_b, sector_t length_b)
{
	if (a->bd_disk != b->bd_disk)
		return false;
	from_a += get_start_sect((struct block_device *)a);
	from_b += get_start_sect((struct block_device *)b);
	return from_a < from_b + length_b && from_b < from_a + length_a;
}

/**
 * hedge_label_overlaps - whether the label of one leg lies where another leg is
 * @label: the leg with the label
 * @leg: the other leg, of this or of another target
 *
 * Return: false also if the leg has no label or is missing.
 */
bool hedge_label_overlaps(const struct hedge_leg *label,
			  const struct hedge_leg *leg)
{
	sector_t length = leg->hedge->ti->len;

	if (!label->hedge->labels || !label->dev || !leg->dev || label == leg)
		return false;
	if (overlap(label->dev->bdev, label_sector(label), LABEL_SECTORS,
		    leg->dev->bdev, leg->offset, length))
		return true;
	return leg->hedge->labels &&
	       overlap(label->dev->bdev, label_sector(label), LABEL_SECTORS,
		       leg->dev->bdev, label_sector(leg), LABEL_SECTORS);
}

/**
 * hedge_label_stamp_overlaps - whether the stamp of a log lies where a leg is
 * @h: the target with the log
 * @leg: the leg, of this or of another target
 *
 * Return: false also if the log is not on disk, or has no stamp.
 */
bool hedge_label_stamp_overlaps(const struct hedge *h,
				const struct hedge_leg *leg)
{
	sector_t stamp = hedge_stamp_sector(h->nr_regions);

	if (!h->labels || !log_on_disk(h) || !leg->dev)
		return false;
	if (overlap(h->log_dev->bdev, stamp, SLOT_SECTORS, leg->dev->bdev,
		    leg->offset, leg->hedge->ti->len))
		return true;
	return leg->hedge->labels &&
	       overlap(h->log_dev->bdev, stamp, SLOT_SECTORS, leg->dev->bdev,
		       label_sector(leg), LABEL_SECTORS);
}

static sector_t log_bits_sectors(const struct hedge *h)
{
	/* A header of 1 KiB, and a bit for each region. */
	size_t bytes = 1024 + BITS_TO_LONGS(h->nr_regions) * sizeof(long);

	return round_up(bytes, bdev_logical_block_size(h->log_dev->bdev)) >>
	       SECTOR_SHIFT;
}

/**
 * hedge_label_log_overlaps - whether the log lies where a leg is
 * @h: the target with the log
 * @leg: a leg of it
 *
 * Return: false also if the log is not on disk, or the leg is missing.
 */
bool hedge_label_log_overlaps(const struct hedge *h,
			      const struct hedge_leg *leg)
{
	sector_t length;

	if (!log_on_disk(h) || !leg->dev)
		return false;
	length = log_bits_sectors(h);
	if (overlap(h->log_dev->bdev, 0, length, leg->dev->bdev, leg->offset,
		    h->ti->len))
		return true;
	return h->labels && overlap(h->log_dev->bdev, 0, length,
				    leg->dev->bdev, label_sector(leg),
				    LABEL_SECTORS);
}

/* How much of its device a dirty log takes, in sectors, with the stamp if it has one. */
static sector_t log_sectors(const struct hedge *h)
{
	if (h->labels)
		return hedge_stamp_sector(h->nr_regions) + SLOT_SECTORS;
	return log_bits_sectors(h);
}

/**
 * hedge_label_logs_overlap - whether two targets have their logs in one place
 * @a: a target
 * @b: another one
 */
bool hedge_label_logs_overlap(const struct hedge *a, const struct hedge *b)
{
	return log_on_disk(a) && log_on_disk(b) &&
	       overlap(a->log_dev->bdev, 0, log_sectors(a), b->log_dev->bdev, 0,
		       log_sectors(b));
}

/**
 * hedge_label_has_room - whether a leg has room for a label
 * @leg: the leg
 */
bool hedge_label_has_room(const struct hedge_leg *leg)
{
	return label_sector(leg) + LABEL_SECTORS <=
	       bdev_nr_sectors(leg->dev->bdev) &&
	       bdev_logical_block_size(leg->dev->bdev) <= HEDGE_LABEL_SLOT;
}

/**
 * hedge_label_log_has_room - whether the device of a disk log has room for a stamp
 * @h: the target
 */
bool hedge_label_log_has_room(const struct hedge *h)
{
	return !log_on_disk(h) ||
	       (hedge_stamp_sector(h->nr_regions) + SLOT_SECTORS <=
		bdev_nr_sectors(h->log_dev->bdev) &&
		bdev_logical_block_size(h->log_dev->bdev) <= HEDGE_LABEL_SLOT);
}

/**
 * hedge_label_present - whether a leg of a target without labels has one
 * @leg: the leg
 *
 * One that cannot be read is none.
 *
 * Context: process. May sleep.
 *
 * Return: 1, 0, or -ENOMEM.
 */
int hedge_label_present(struct hedge_leg *leg)
{
	struct hedge_label_found *found;
	void *slots;
	int r = -ENOMEM;

	if (!hedge_label_has_room(leg))
		return 0;
	found = kzalloc(sizeof(*found), GFP_KERNEL);
	slots = get_slots();
	if (found && slots) {
		if (!transfer(leg->dev->bdev, REQ_OP_READ, label_sector(leg),
			      slots, HEDGE_LABEL_BYTES))
			hedge_label_find(slots, found);
		r = found->state >= HEDGE_LABEL_DAMAGED;
	}
	put_slots(slots);
	kfree(found);
	return r;
}
