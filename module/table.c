// SPDX-License-Identifier: GPL-2.0
/*
 * The table line: reading and printing it.
 *
 *	<log_type> <#log_args> <log_arg>... <#legs> {<dev> <offset>}...
 *	[<#features> <feature>...]
 *
 * A word that is wrong is refused with a static text in ti->error that names
 * what was expected, and with the word itself in the kernel log: ti->error is
 * printed after the constructor has returned, so it cannot hold the word.
 */
#include <linux/log2.h>

#include "hedge.h"

#define EXPECTED_LOG \
	"Expected log core <region size> [sync|nosync] or disk <device> <region size> [sync|nosync]"
#define EXPECTED_FEATURE \
	"Expected handle_errors, keep_log, label, force, leg, or the name of an attribute"

/* Tells which word is wrong; ti->error tells what would be right. */
static int refuse(struct hedge *h, const char *word, char *expected)
{
	h->ti->error = expected;
	if (word)
		DMERR("%s: \"%s\" is wrong", dm_table_device_name(h->ti->table),
		      word);
	return -EINVAL;
}

static const char *next_word(struct dm_arg_set *as)
{
	return dm_shift_arg(as);
}

static int next_number(struct dm_arg_set *as, u32 min, u32 max, u32 *value,
		       const char **word)
{
	*word = next_word(as);
	if (!*word)
		return -EINVAL;
	return hedge_parse_u32(*word, min, max, value);
}

static int parse_region_size(struct hedge *h, const char *word)
{
	u32 size;

	if (hedge_parse_u32(word, 2, U32_MAX, &size) || !is_power_of_2(size) ||
	    size > h->ti->len || size < (PAGE_SIZE >> SECTOR_SHIFT))
		return refuse(h, word,
			      "Expected the region size in sectors: a power of two, at least a page and at most the target");
	h->region_size = size;
	return 0;
}

/* The words of a log that concern us: <region size> [sync|nosync]. */
static int parse_log_args(struct hedge *h, unsigned int argc, char **argv)
{
	int r;

	if (argc < 1 || argc > 2)
		return refuse(h, NULL, EXPECTED_LOG);
	r = parse_region_size(h, argv[0]);
	if (r)
		return r;
	if (argc == 2 && strcmp(argv[1], "sync") && strcmp(argv[1], "nosync"))
		return refuse(h, argv[1], "Expected sync or nosync");
	h->nosync = argc == 2 && !strcmp(argv[1], "nosync");
	return 0;
}

/* Whether the feature label follows, behind the log's arguments and the legs. */
static bool will_have_labels(struct hedge *h, const struct dm_arg_set *as,
			     unsigned int log_args)
{
	unsigned int i;

	for (i = log_args + 2 + 2 * h->nr_legs; i < as->argc; i++)
		if (!strcmp(as->argv[i], "label"))
			return true;
	return false;
}

static int parse_log(struct hedge *h, struct dm_arg_set *as)
{
	const char *type = next_word(as), *word;
	unsigned int skip;
	u32 nr;
	int r;

	if (!type)
		return refuse(h, NULL, "Expected a log type: core or disk");
	if (strcmp(type, "core") && strcmp(type, "disk"))
		return refuse(h, type, "Expected a log type: core or disk");
	if (next_number(as, 1, 3, &nr, &word))
		return refuse(h, word,
			      "Expected the number of log arguments: 1 to 3");
	if (as->argc < nr)
		return refuse(h, NULL,
			      "Expected as many log arguments as were announced");
	skip = !strcmp(type, "disk");
	if (nr <= skip)
		return refuse(h, NULL, EXPECTED_LOG);
	r = parse_log_args(h, nr - skip, as->argv + skip);
	if (r)
		return r;
	/* With labels sync and nosync would begin a log anew that is good. */
	h->log = dm_dirty_log_create(type, h->ti, NULL,
				     will_have_labels(h, as, nr) ? skip + 1 : nr,
				     as->argv);
	if (!h->log)
		return refuse(h, as->argv[0],
			      "The dirty log cannot be made: see the kernel log");
	if (skip) {
		r = dm_get_device(h->ti, as->argv[0],
				  dm_table_get_mode(h->ti->table), &h->log_dev);
		if (r) {
			refuse(h, as->argv[0],
			       "The log's device cannot be opened");
			return r;
		}
	}
	dm_consume_args(as, nr);
	h->nr_regions = dm_sector_div_up(h->ti->len, h->region_size);
	return 0;
}

static dev_t own_dev(struct hedge *h)
{
	return disk_devt(dm_disk(dm_table_get_md(h->ti->table)));
}

/* Whether the data of two legs share sectors of one disk. */
static bool legs_overlap(struct hedge *h, const struct hedge_leg *a,
			 const struct hedge_leg *b)
{
	sector_t from_a, from_b;

	if (!b->dev || a->dev->bdev->bd_disk != b->dev->bdev->bd_disk)
		return false;
	from_a = get_start_sect(a->dev->bdev) + a->offset;
	from_b = get_start_sect(b->dev->bdev) + b->offset;
	return from_a < from_b + h->ti->len && from_b < from_a + h->ti->len;
}

static int parse_leg(struct hedge *h, struct dm_arg_set *as, unsigned int index)
{
	struct hedge_leg *leg = &h->leg[index];
	const char *path = next_word(as), *word = next_word(as);
	sector_t size;
	unsigned int i;
	int r;
	u64 offset;
	char dummy;

	if (!path || !word)
		return refuse(h, path,
			      "Expected a device and an offset for each leg");
	if (*word < '0' || *word > '9' ||
	    sscanf(word, "%llu%c", &offset, &dummy) != 1 || offset != (sector_t)offset)
		return refuse(h, word,
			      "Expected the offset of a leg's data in sectors");
	leg->offset = offset;
	if (!strcmp(path, "-")) {
		set_bit(HEDGE_TAKEN_OUT, &leg->health);
		h->live &= ~BIT(index);
		return 0;
	}
	r = dm_get_device(h->ti, path, dm_table_get_mode(h->ti->table),
			  &leg->dev);
	if (r) {
		refuse(h, path, "Expected a block device that can be opened");
		return r;
	}
	if (leg->dev->bdev->bd_dev == own_dev(h))
		return refuse(h, path,
			      "Expected another device: a leg cannot be the device itself");
	/* Device-mapper would find that out too, but only when labels are written. */
	if (bdev_is_zoned(leg->dev->bdev))
		return refuse(h, path,
			      "Expected a leg without zones: writes go anywhere");
	size = bdev_nr_sectors(leg->dev->bdev);
	if (offset > size || size - offset < h->ti->len)
		return refuse(h, path,
			      "Expected a leg at least as large as the target behind its offset");
	for (i = 0; i < index; i++)
		if (legs_overlap(h, leg, &h->leg[i]))
			return refuse(h, path,
				      "Expected legs that do not overlap on one device");
	return 0;
}

/* The words of which each has a feature of its own. Returns 1 if it is none. */
static int parse_flag(struct hedge *h, struct dm_arg_set *as, const char *word)
{
	int r;

	if (!strcmp(word, "handle_errors")) {
		h->handle_errors = true;
	} else if (!strcmp(word, "keep_log")) {
		h->keep_log = true;
	} else if (!strcmp(word, "force")) {
		h->force = true;
	} else if (!strcmp(word, "label")) {
		word = next_word(as) ?: "";
		r = hedge_label_enable(h, word);
		if (r == -EINVAL)
			refuse(h, word,
			       "Expected the UUID of the set after \"label\"");
		return r;
	} else {
		return 1;
	}
	return 0;
}

static int parse_feature(struct hedge *h, struct hedge_conf *conf,
			 struct dm_arg_set *as, bool policy)
{
	const char *word = next_word(as), *attribute, *value;
	int leg = -1, r;
	u32 number;

	r = parse_flag(h, as, word);
	if (r <= 0)
		return r;
	attribute = word;
	if (!strcmp(word, "leg")) {
		if (next_number(as, 0, h->nr_legs - 1, &number, &word))
			return refuse(h, word,
				      "Expected the number of a leg after \"leg\"");
		leg = number;
		attribute = next_word(as);
	}
	value = attribute ? next_word(as) : NULL;
	if (!value)
		return refuse(h, attribute ?: word,
			      "Expected a value after the name of an attribute");
	/* A policy gives values to other knobs, so it has its turn first. */
	if (policy != (leg < 0 && !strcmp(attribute, "policy")))
		return leg < 0 && hedge_knob_find(attribute) < 0 ?
			refuse(h, attribute, EXPECTED_FEATURE) : 0;
	r = hedge_conf_word(h, conf, leg, attribute, value);
	if (r == -ENOENT)
		return refuse(h, attribute, leg < 0 ? EXPECTED_FEATURE :
			      "Expected an attribute of a leg: weight, hedge_weight or timeout_us");
	if (r)
		return refuse(h, value,
			      "Expected another value for the attribute: see the kernel log");
	return 0;
}

static int parse_features(struct hedge *h, struct hedge_conf *conf,
			  struct dm_arg_set *as)
{
	struct dm_arg_set first;
	const char *word;
	u32 nr;
	int r;

	if (!as->argc)
		return 0;
	if (next_number(as, 0, U16_MAX, &nr, &word))
		return refuse(h, word, "Expected the number of feature words");
	if (nr != as->argc)
		return refuse(h, word,
			      "Expected as many feature words as were announced");
	first = *as;
	while (first.argc) {
		r = parse_feature(h, conf, &first, true);
		if (r)
			return r;
	}
	while (as->argc) {
		r = parse_feature(h, conf, as, false);
		if (r)
			return r;
	}
	if (h->keep_log && !h->handle_errors)
		return refuse(h, "keep_log",
			      "Expected handle_errors with keep_log");
	return 0;
}

static int check_log_place(struct hedge *h)
{
	unsigned int i;

	for (i = 0; i < h->nr_legs; i++)
		if (hedge_label_log_overlaps(h, &h->leg[i]))
			return refuse(h, h->log_dev->name,
				      "Expected a dirty log that does not overlap with a leg on one device");
	return 0;
}

static int check_leg_label(struct hedge *h, struct hedge_leg *leg)
{
	int r;

	if (!leg->dev)
		return h->labels ? 0 : refuse(h, "-",
			"Expected a device: a leg can be missing only with labels");
	if (h->labels)
		return hedge_label_has_room(leg) ? 0 : refuse(h, leg->dev->name,
			"Expected room for a label behind the data of each leg: 8 KiB from the next 4 KiB on");
	if (hedge_leg_had_no_label(leg))
		return 0;
	r = hedge_label_present(leg);
	return r <= 0 ? r : refuse(h, leg->dev->name,
		"Expected the feature label: a leg has a label, which hedgectl examine shows");
}

/* What labels need, or that there are none. */
static int check_labels(struct hedge *h)
{
	unsigned int i;
	int r;

	for (i = 0; i < h->nr_legs; i++) {
		r = check_leg_label(h, &h->leg[i]);
		if (r)
			return r;
	}
	if (!h->live)
		return refuse(h, "-", "Expected at least one leg that is there");
	/* Whether a resync is due is for the labels to say. */
	h->nosync &= !h->labels;
	if (!h->labels)
		return h->force ? refuse(h, "force",
					 "Expected the feature label with force") : 0;
	return hedge_label_log_has_room(h) ? 0 : refuse(h, h->log_dev->name,
		"Expected room for a stamp behind the bitmap of the log: 4 KiB from the next 4 KiB on");
}

/**
 * hedge_table_nr_legs - find the number of legs in a table line
 * @ti: the target
 * @argc: number of words
 * @argv: the words
 *
 * Return: the number, or 0 with ti->error set.
 */
unsigned int hedge_table_nr_legs(struct dm_target *ti, unsigned int argc,
				 char **argv)
{
	u32 log_args, legs;

	if (argc < 2 || hedge_parse_u32(argv[1], 0, U16_MAX, &log_args) ||
	    argc < 3 + log_args) {
		ti->error = "Expected <log_type> <#log_args> <log_arg>... <#legs> {<dev> <offset>}";
		return 0;
	}
	if (hedge_parse_u32(argv[2 + log_args], 2, HEDGE_MAX_LEGS, &legs)) {
		DMERR("%s: \"%s\" is wrong", dm_table_device_name(ti->table),
		      argv[2 + log_args]);
		ti->error = "Expected the number of legs: 2 to 8";
		return 0;
	}
	return legs;
}

/**
 * hedge_table_parse - read the table line
 * @h: the target, with nr_legs set
 * @conf: the settings to fill
 * @argc: number of words
 * @argv: the words
 *
 * Context: process. May sleep.
 *
 * Return: 0, or a negative error with ti->error set; what was opened is put by
 * hedge_table_put() in both cases.
 */
int hedge_table_parse(struct hedge *h, struct hedge_conf *conf,
		      unsigned int argc, char **argv)
{
	struct dm_arg_set as = { .argc = argc, .argv = argv };
	unsigned int i;
	int r;

	r = parse_log(h, &as);
	if (r)
		return r;
	next_word(&as);
	for (i = 0; i < h->nr_legs; i++) {
		r = parse_leg(h, &as, i);
		if (r)
			return r;
	}
	return parse_features(h, conf, &as) ?: check_log_place(h) ?:
	       check_labels(h);
}

/**
 * hedge_table_put - close what the table line opened
 * @h: the target
 *
 * Context: process. May sleep.
 */
void hedge_table_put(struct hedge *h)
{
	unsigned int i;

	for (i = 0; i < h->nr_legs; i++)
		if (h->leg[i].dev)
			dm_put_device(h->ti, h->leg[i].dev);
	if (h->log_dev)
		dm_put_device(h->ti, h->log_dev);
	if (h->log)
		dm_dirty_log_destroy(h->log);
}

static unsigned int print_features(struct hedge *h,
				   const struct hedge_conf *conf, char *buf,
				   unsigned int size)
{
	unsigned int k, i, n = 0;
	char value[32];

	if (h->handle_errors)
		n += scnprintf(buf + n, size - n, " handle_errors");
	if (h->keep_log)
		n += scnprintf(buf + n, size - n, " keep_log");
	n += hedge_label_print(h, buf + n, size - n);
	for (k = 0; k < HEDGE_NR_KNOBS; k++) {
		if (!hedge_knob_differs(&conf->knobs, k))
			continue;
		hedge_knob_format(&conf->knobs, k, value, sizeof(value));
		n += scnprintf(buf + n, size - n, " %s %s", hedge_knob_name(k),
			       value);
	}
	for (i = 0; i < h->nr_legs; i++) {
		const struct hedge_leg_conf *leg = &conf->leg[i];

		if (leg->weight != HEDGE_WEIGHT_DEFAULT)
			n += scnprintf(buf + n, size - n, " leg %u weight %u",
				       i, leg->weight);
		if (leg->hedge_weight != HEDGE_WEIGHT_DEFAULT)
			n += scnprintf(buf + n, size - n,
				       " leg %u hedge_weight %u", i,
				       leg->hedge_weight);
		if (leg->timeout_us == HEDGE_TIMEOUT_INHERIT)
			continue;
		hedge_format_timeout(leg->timeout_us, value, sizeof(value));
		n += scnprintf(buf + n, size - n, " leg %u timeout_us %s", i,
			       value);
	}
	return n;
}

static unsigned int count_words(const char *text)
{
	unsigned int n = 0;

	for (; *text; text++)
		n += *text == ' ';
	return n;
}

/**
 * hedge_table_print - print a table line that makes the same target
 * @h: the target
 * @result: where to
 * @maxlen: room in @result
 *
 * Context: process. May sleep.
 *
 * Return: characters written.
 */
unsigned int hedge_table_print(struct hedge *h, char *result,
			       unsigned int maxlen)
{
	char *features = kzalloc(PAGE_SIZE, GFP_NOIO);
	unsigned int sz, i;

	sz = h->log->type->status(h->log, STATUSTYPE_TABLE, result, maxlen);
	DMEMIT("%u", h->nr_legs);
	for (i = 0; i < h->nr_legs; i++)
		DMEMIT(" %s %llu", hedge_leg_name(&h->leg[i]),
		       (unsigned long long)h->leg[i].offset);
	if (!features)
		return sz;
	rcu_read_lock();
	print_features(h, rcu_dereference(h->conf), features, PAGE_SIZE);
	rcu_read_unlock();
	if (*features)
		DMEMIT(" %u%s", count_words(features), features);
	kfree(features);
	return sz;
}
