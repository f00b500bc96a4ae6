// SPDX-License-Identifier: GPL-2.0
/*
 * Messages: set, fail, reinstate, check, histogram, reset, tick.
 *
 * They run under the SRCU lock of the live table, for which suspend waits. So
 * they only start work, and never wait for I/O.
 */
#include "hedge.h"

static int wrong(struct hedge *h, const char *word, const char *expected)
{
	DMERR("%s: message \"%s\": expected %s",
	      dm_table_device_name(h->ti->table), word, expected);
	return -EINVAL;
}

static int parse_leg(struct hedge *h, const char *word, int *leg)
{
	u32 number;

	if (hedge_parse_u32(word, 0, h->nr_legs - 1, &number)) {
		DMERR("%s: \"%s\" is no leg, expected 0 to %u",
		      dm_table_device_name(h->ti->table), word,
		      h->nr_legs - 1);
		return -EINVAL;
	}
	*leg = number;
	return 0;
}

static int message_set(struct hedge *h, unsigned int argc, char **argv)
{
	int leg = -1, r;

	if (argc == 5 && !strcmp(argv[1], "leg")) {
		r = parse_leg(h, argv[2], &leg);
		if (r)
			return r;
	} else if (argc != 3) {
		return wrong(h, argv[0],
			     "set <attribute> <value>, or set leg <i> <attribute> <value>");
	}
	r = hedge_conf_set(h, leg, argv[argc - 2], argv[argc - 1]);
	return r == -ENOENT ? -EINVAL : r;
}

static int refuse_suspended(struct hedge *h, const char *word)
{
	if (!dm_suspended(h->ti))
		return 0;
	DMERR("%s: message \"%s\": the device is suspended",
	      dm_table_device_name(h->ti->table), word);
	return -EBUSY;
}

/* check, check repair <leg>: a work item does it. */
static int message_check(struct hedge *h, unsigned int argc, char **argv)
{
	int leg = -1, r = 0;

	if (argc == 3 && !strcmp(argv[1], "repair"))
		r = parse_leg(h, argv[2], &leg);
	else if (argc != 1)
		return wrong(h, argv[0], "check, or check repair <leg>");
	r = r ?: refuse_suspended(h, argv[0]);
	return r ?: hedge_check_begin(h, leg);
}

/* fail <leg>, reinstate <leg>: the region worker does it. */
static int message_leg(struct hedge *h, unsigned int argc, char **argv)
{
	int leg = 0, r;

	if (argc != 2)
		return wrong(h, argv[0], "fail <leg>, or reinstate <leg>");
	r = parse_leg(h, argv[1], &leg) ?: refuse_suspended(h, argv[0]);
	return r ?: hedge_sync_request(h, leg, !strcmp(argv[0], "fail"));
}

/* The histogram of one leg, or of all together. */
static int message_histogram(struct hedge *h, unsigned int argc, char **argv,
			     char *result, unsigned int maxlen)
{
	struct hedge_leg_stats *sum, *all;
	unsigned int i, j;
	int leg = -1, r;
	size_t n;

	if (argc > 2)
		return wrong(h, argv[0], "histogram [<leg>]");
	r = argc == 2 ? parse_leg(h, argv[1], &leg) : 0;
	if (r)
		return r;
	sum = kzalloc(2 * sizeof(*sum), GFP_NOIO);
	if (!sum)
		return -ENOMEM;
	all = sum + 1;
	for (i = 0; i < h->nr_legs; i++) {
		if (leg >= 0 && i != leg)
			continue;
		hedge_leg_stats_sum(&h->leg[i], sum);
		for (j = 0; j < HEDGE_NR_SIZES * HEDGE_HIST_BUCKETS; j++)
			(&all->hist[0][0])[j] += (&sum->hist[0][0])[j];
	}
	n = hedge_hist_print(all, result, maxlen);
	kfree(sum);
	/* Device-mapper asks again with more room when it seems to be full. */
	return n ? 1 : 0;
}

/**
 * hedge_message - take a message
 * @ti: the target
 * @argc: number of words
 * @argv: the words
 * @result: where an answer is put
 * @maxlen: room in @result
 *
 * Context: process. May sleep, but not for I/O.
 *
 * Return: 1 if there is an answer, 0, or a negative error.
 */
int hedge_message(struct dm_target *ti, unsigned int argc, char **argv,
		  char *result, unsigned int maxlen)
{
	struct hedge *h = ti->private;

	if (!strcmp(argv[0], "set"))
		return message_set(h, argc, argv);
	if (!strcmp(argv[0], "histogram"))
		return message_histogram(h, argc, argv, result, maxlen);
	if (!strcmp(argv[0], "fail") || !strcmp(argv[0], "reinstate"))
		return message_leg(h, argc, argv);
	if (!strcmp(argv[0], "check"))
		return message_check(h, argc, argv);
	if (argc != 1)
		return wrong(h, argv[0],
			     "set, fail, reinstate, check, histogram, reset or tick");
	if (!strcmp(argv[0], "reset"))
		hedge_stats_reset(h);
	else if (!strcmp(argv[0], "tick"))
		hedge_tick(h);
	else
		return wrong(h, argv[0],
			     "set, fail, reinstate, check, histogram, reset or tick");
	return 0;
}
