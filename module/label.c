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
 * the rest is waited for no longer than PATIENCE. What is late counts as unreadable. It
 * counts in hedge->label_reads until it ends: the target is not destroyed before, but
 * it may be suspended.
 *
 * All of it works without memory: a buffer for the label that is written, and one for
 * that of each leg, are made in the constructor. The bios of writes are on the stack of
 * who waits for them.
 */
#include <linux/random.h>
#include <linux/uuid.h>

#include "hedge.h"
#include "core/label.h"

#define LABEL_SECTORS	(HEDGE_LABEL_BYTES >> SECTOR_SHIFT)
#define SLOT_SECTORS	(HEDGE_LABEL_SLOT >> SECTOR_SHIFT)
#define PATIENCE	(5 * HZ)

/**
 * struct label_read - the reading of a leg's label
 * @hedge: the target
 * @ended: completed when the device has answered
 * @out: handed to the device, and nobody has seen the answer yet
 * @slots: what was read
 * @bvec: of @bio
 * @bio: reads it
 */
struct label_read {
	struct hedge *hedge;
	struct completion ended;
	bool out;
	void *slots;
	struct bio_vec bvec;
	struct bio bio;
};

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
 * @slots: room for a label that is written
 * @read: of each leg
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
	void *slots;
	struct label_read *read[HEDGE_MAX_LEGS];
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

static int write_durably(struct block_device *bdev, sector_t sector,
			 void *data)
{
	return transfer(bdev, REQ_OP_WRITE | REQ_PREFLUSH | REQ_FUA, sector,
			data, HEDGE_LABEL_SLOT);
}

static void label_read_endio(struct bio *bio)
{
	struct label_read *read = bio->bi_private;
	struct hedge *h = read->hedge;

	rcu_read_lock();
	bio_uninit(bio);
	complete(&read->ended);
	/* The target may go with the last one, but not before this section ends. */
	if (atomic_dec_and_test(&h->label_reads))
		wake_up(&h->drained);
	rcu_read_unlock();
}

/* Begins to read the label of a leg, unless that was begun and has not ended. */
static void begin_read(struct hedge_leg *leg)
{
	struct hedge *h = leg->hedge;
	struct label_read *read = h->labels->read[leg->index];
	struct bio *bio = &read->bio;

	if (!leg->dev || (read->out && !try_wait_for_completion(&read->ended)))
		return;
	reinit_completion(&read->ended);
	read->out = true;
	bio_init(bio, leg->dev->bdev, &read->bvec, 1,
		 REQ_OP_READ | REQ_SYNC | REQ_META);
	bio->bi_iter.bi_sector = label_sector(leg);
	bio->bi_private = read;
	bio->bi_end_io = label_read_endio;
	__bio_add_page(bio, virt_to_page(read->slots), HEDGE_LABEL_BYTES,
		       offset_in_page(read->slots));
	atomic_inc(&h->label_reads);
	hedge_leg_send_bio(leg, bio);
}

/*
 * Waits so many jiffies for what begin_read() has begun. Returns false if that has not
 * ended; then the label counts as unreadable.
 */
static bool end_read(struct hedge_leg *leg, unsigned long patience,
		     struct hedge_label_found *found)
{
	struct label_read *read = leg->hedge->labels->read[leg->index];

	memset(found, 0, sizeof(*found));
	found->state = HEDGE_LABEL_MISSING;
	if (!leg->dev)
		return true;
	found->state = HEDGE_LABEL_UNREADABLE;
	if (!wait_for_completion_io_timeout(&read->ended, patience))
		return false;
	read->out = false;
	if (!read->bio.bi_status)
		hedge_label_find(read->slots, found);
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
	hedge_label_encode(label, l->slots);
	r = write_durably(leg->dev->bdev,
			  label_sector(leg) + slot * SLOT_SECTORS, l->slots);
	if (r) {
		DMERR_LIMIT("%s: the label of leg %u (%s) cannot be written: error %d",
			    name(leg->hedge), leg->index, leg->dev->name, r);
		return r;
	}
	found->state = HEDGE_LABEL_VALID;
	found->slot = slot;
	found->label = *label;
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
		     hedge_stamp_sector(h->nr_regions), l->slots,
		     HEDGE_LABEL_SLOT))
		return 0;
	return hedge_stamp_decode(l->slots, l->uuid);
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
	hedge_stamp_encode(l->uuid, stamp, l->slots);
	if (write_durably(h->log_dev->bdev, hedge_stamp_sector(h->nr_regions),
			  l->slots)) {
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
		if (nobody)
			return -EIO;
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

/**
 * hedge_label_look_again - find out whether a leg that was out is still the same
 * @leg: the leg
 *
 * Context: the region worker. May sleep, but not for a leg that hangs.
 *
 * Return: 1, 0 if it may hold anything, -EINVAL if it belongs to others, or -EIO if
 * it does not answer.
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
	if (as_left(l, leg->index, &found)) {
		l->found[leg->index] = found;
		return 1;
	}
	if (found.state == HEDGE_LABEL_UNKNOWN ||
	    (found.state == HEDGE_LABEL_VALID &&
	     !is_own(l, l->verdict.number[leg->index], &found)))
		return -EINVAL;
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

/*
 * Legs that were taken over from an old table, which may have been a while ago: this
 * table was resumed in vain, and somebody else may have used the legs since then.
 * Returns those that are not in and not as they were.
 */
static unsigned long strange(struct hedge *h,
			     const struct hedge_label_round *were)
{
	struct hedge_labels *l = h->labels;
	unsigned long legs = full_legs(h) & ~l->verdict.in;
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
	struct hedge_label_round were[HEDGE_MAX_LEGS];
	struct hedge_labels *l = h->labels;
	unsigned long late;
	unsigned int noio, i;

	if (!l)
		return 0;
	for (i = 0; i < h->nr_legs; i++)
		were[i] = l->found[i].label.round;
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
	if (l->verdict.fault) {
		report_fault(h);
		return -EINVAL;
	}
	/* Else what is known comes from the old table that goes only now. */
	if (h->known) {
		hedge_sync_distrust(h, strange(h, were));
		if (!full_legs(h)) {
			DMERR("%s: others used the legs meanwhile: load the table anew",
			      name(h));
			return -EINVAL;
		}
	}
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
	struct label_read *read;
	unsigned int i;

	l = kzalloc(sizeof(*l), GFP_KERNEL);
	if (!l)
		return -ENOMEM;
	h->labels = l;
	l->slots = get_slots();
	if (!l->slots)
		return -ENOMEM;
	for (i = 0; i < h->nr_legs; i++) {
		read = kzalloc(sizeof(*read), GFP_KERNEL);
		if (!read)
			return -ENOMEM;
		l->read[i] = read;
		read->hedge = h;
		init_completion(&read->ended);
		read->slots = get_slots();
		if (!read->slots)
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
	for (i = 0; i < h->nr_legs && h->labels->read[i]; i++) {
		put_slots(h->labels->read[i]->slots);
		kfree(h->labels->read[i]);
	}
	put_slots(h->labels->slots);
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
	size_t bytes;
	sector_t length;

	if (!log_on_disk(h) || !leg->dev)
		return false;
	/* A header of 1 KiB, and a bit for each region. */
	bytes = 1024 + BITS_TO_LONGS(h->nr_regions) * sizeof(long);
	length = round_up(bytes, bdev_logical_block_size(h->log_dev->bdev)) >>
		 SECTOR_SHIFT;
	if (overlap(h->log_dev->bdev, 0, length, leg->dev->bdev, leg->offset,
		    h->ti->len))
		return true;
	return h->labels && overlap(h->log_dev->bdev, 0, length,
				    leg->dev->bdev, label_sector(leg),
				    LABEL_SECTORS);
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
