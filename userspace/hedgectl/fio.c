// SPDX-License-Identifier: GPL-2.0
/*
 * The latencies of reads that fio measured, as a law in microseconds. Two kinds of file: the log of
 * --write_hist_log,
 *
 *   <msec>, <direction>, <block size>, <count of bin 0>, <count of bin 1>, ...
 *
 * a line for each interval, and the output of --output-format=json+, whose clat_ns has the bins. Bins
 * are log-linear, 64 to an octave from 64 ns on; a log with a coarseness c has 2^c bins in one.
 */
#include <ctype.h>
#include <json.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"

#define BITS 6
#define PER_OCTAVE (1u << BITS)
#define BINS (29 * PER_OCTAVE)
#define READ 0 /* the direction */

struct bins {
	struct law_bucket *buckets;
	size_t nr;
};

/* Where bin i begins, in ns. */
static double bin_low(unsigned int i)
{
	unsigned int shift;

	if (i < 2 * PER_OCTAVE)
		return i;
	shift = (i >> BITS) - 1;
	return (double)((uint64_t)(PER_OCTAVE + i % PER_OCTAVE) << shift);
}

/* The law of an arbitrary bin may begin at 0; its end is above it. */
static void add_bin(struct bins *bins, double low_ns, double high_ns, double count)
{
	bins->buckets = xrealloc(bins->buckets, (bins->nr + 1) * sizeof(*bins->buckets));
	bins->buckets[bins->nr++] =
		(struct law_bucket){ .low = low_ns / 1e3, .high = high_ns / 1e3, .mass = count };
}

/* --- the log ------------------------------------------------------------------------- */

static bool next_number(char **rest, uint64_t *value)
{
	char *word = strsep(rest, ",");

	if (!word)
		return false;
	while (*word == ' ')
		word++;
	word[strcspn(word, " \r")] = '\0';
	return !parse_number(word, value);
}

/* Adds the counts of a line to sum; returns how many it has, or -1. */
static int add_line(char *line, double *sum)
{
	uint64_t direction, count;
	int n = 0;

	if (!next_number(&line, &count) || !next_number(&line, &direction) ||
	    !next_number(&line, &count))
		return -1;
	while (line && n < (int)BINS) {
		if (!next_number(&line, &count))
			return -1;
		if (direction == READ)
			sum[n] += (double)count;
		n++;
	}
	return line || !n || BINS % n ? -1 : n;
}

static int read_log(char *text, struct bins *bins)
{
	double *sum = xcalloc(BINS, sizeof(*sum));
	int columns = 0, r = 0;
	char *line;

	while (!r && (line = strsep(&text, "\n"))) {
		int n = *line ? add_line(line, sum) : columns;

		if (n < 0 || (columns && n != columns))
			r = -1;
		columns = n;
	}
	for (int i = 0; !r && i < columns; i++)
		if (sum[i] > 0)
			add_bin(bins, bin_low(i * (BINS / columns)),
				bin_low((i + 1) * (BINS / columns)), sum[i]);
	free(sum);
	return r;
}

/* --- JSON ------------------------------------------------------------------------------ */

/* A bin is named by a value inside it. */
static bool add_json_bin(struct bins *bins, const char *name, double count)
{
	uint64_t ns, width = 1;

	if (parse_number(name, &ns) || !(count >= 0))
		return false;
	while (ns / width >= 2 * PER_OCTAVE)
		width *= 2;
	if (count > 0)
		add_bin(bins, (double)(ns / width * width), (double)(ns / width * width + width),
			count);
	return true;
}

static int read_json(const char *text, struct bins *bins)
{
	struct json_object *root = json_tokener_parse(text), *jobs, *o;
	int r = 0;

	if (!json_object_object_get_ex(root, "jobs", &jobs) ||
	    !json_object_is_type(jobs, json_type_array))
		r = -1;
	for (size_t i = 0; !r && i < json_object_array_length(jobs); i++) {
		o = json_object_array_get_idx(jobs, i);
		if (!json_object_object_get_ex(o, "read", &o) ||
		    !json_object_object_get_ex(o, "clat_ns", &o) ||
		    !json_object_object_get_ex(o, "bins", &o) ||
		    !json_object_is_type(o, json_type_object))
			continue;
		json_object_object_foreach(o, key, value)
			if (!add_json_bin(bins, key, json_object_get_double(value)))
				r = -1;
	}
	json_object_put(root);
	return r;
}

/* Of all reads in the text; it is not kept. */
int fio_parse(const char *text, struct law *law)
{
	struct bins bins = { 0 };
	char *copy = xstrdup(text), *begin = copy + strspn(copy, " \n\r\t");
	int r = *begin == '{' ? read_json(begin, &bins) : read_log(begin, &bins);

	free(copy);
	if (!r && bins.nr) {
		law_from_buckets(law, bins.buckets, bins.nr);
		return 0;
	}
	free(bins.buckets);
	return -1;
}
