// SPDX-License-Identifier: GPL-2.0
/*
 * Histograms of read copies, as the attribute gives them: under a heading for each size class,
 * lines of
 * "<lower bound in ns> <count>". The buckets are log-linear, eight to an octave, so a bucket ends
 * an eighth of its octave above its beginning: the text needs no upper bounds. All that is below
 * 1024 ns is in the bucket 0.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hedgectl.h"

#define MOST (UINT64_MAX / 4)	/* neither a bound nor the sum of counts comes near it */

static uint64_t bucket_end(uint64_t from)
{
	if (from < 1024)
		return 1024;
	return from + (1ull << (63 - __builtin_clzll(from) - 3));
}

static void bucket_add(struct histogram *histogram, struct bucket bucket)
{
	if (histogram->count == histogram->room) {
		histogram->room = histogram->room ? 2 * histogram->room : 64;
		histogram->buckets =
			xrealloc(histogram->buckets, histogram->room * sizeof(*histogram->buckets));
	}
	histogram->buckets[histogram->count++] = bucket;
	histogram->total += bucket.count;
}

static struct histogram *class_add(struct histograms *histograms, const char *name)
{
	size_t length = strcspn(name, "\n:");

	while (*name == '#' || *name == ' ') {
		name++;
		length--;
	}
	histograms->classes = xrealloc(histograms->classes,
				       (histograms->count + 1) * sizeof(*histograms->classes));
	histograms->classes[histograms->count] =
		(struct histogram){ .name = xprintf("%.*s", (int)length, name) };
	return &histograms->classes[histograms->count++];
}

static bool parse_bucket(char *line, struct bucket *bucket)
{
	char *from = next_word(&line), *count = next_word(&line);

	if (!from || !count || next_word(&line) || parse_number(from, &bucket->from) ||
	    parse_number(count, &bucket->count) || bucket->from > MOST)
		return false;
	bucket->to = bucket_end(bucket->from);
	return true;
}

int histograms_parse(const char *text, struct histograms *histograms)
{
	char *copy = xstrdup(text), *rest = copy, *line;
	struct histogram *current = NULL;
	struct bucket bucket;
	bool good = true;

	*histograms = (struct histograms){ 0 };
	while (good && (line = strsep(&rest, "\n"))) {
		if (!*line)
			continue;
		if (!isdigit((unsigned char)*line)) {
			current = class_add(histograms, line);
			continue;
		}
		good = current && parse_bucket(line, &bucket) &&
		       (!current->count || bucket.from > current->buckets[current->count - 1].from) &&
		       bucket.count <= MOST - current->total;
		if (good)
			bucket_add(current, bucket);
	}
	free(copy);
	if (good)
		return 0;
	histograms_free(histograms);
	fail("can not read a histogram: the module and hedgectl are of different versions");
	return -1;
}

void histogram_free(struct histogram *histogram)
{
	free(histogram->name);
	free(histogram->buckets);
	*histogram = (struct histogram){ 0 };
}

void histograms_free(struct histograms *histograms)
{
	for (int i = 0; i < histograms->count; i++)
		histogram_free(&histograms->classes[i]);
	free(histograms->classes);
	*histograms = (struct histograms){ 0 };
}

/* Both are in ascending order; so is the sum. */
void histogram_merge(struct histogram *into, const struct histogram *from)
{
	struct histogram sum = { .name = into->name };
	int i = 0, j = 0;

	while (i < into->count || j < from->count) {
		struct bucket bucket;

		if (j == from->count ||
		    (i < into->count && into->buckets[i].from < from->buckets[j].from)) {
			bucket = into->buckets[i++];
		} else if (i == into->count || from->buckets[j].from < into->buckets[i].from) {
			bucket = from->buckets[j++];
		} else {
			bucket = into->buckets[i++];
			bucket.count += from->buckets[j++].count;
		}
		bucket_add(&sum, bucket);
	}
	free(into->buckets);
	*into = sum;
}

/* Takes away what an earlier reading had; false, and into is of no use, if that is not a part. */
bool histogram_subtract(struct histogram *into, const struct histogram *before)
{
	int i = 0;

	for (int j = 0; j < before->count; j++) {
		const struct bucket *b = &before->buckets[j];

		if (!b->count)
			continue;
		while (i < into->count && into->buckets[i].from < b->from)
			i++;
		if (i == into->count || into->buckets[i].from != b->from ||
		    into->buckets[i].count < b->count)
			return false;
		into->buckets[i].count -= b->count;
		into->total -= b->count;
	}
	return true;
}

/* The end of the bucket that holds it: an upper bound, at most an eighth too high. */
uint64_t histogram_percentile(const struct histogram *histogram, double percentile)
{
	double rank = ceil((double)histogram->total * percentile / 100);
	uint64_t seen = 0;

	for (int i = 0; i < histogram->count; i++) {
		seen += histogram->buckets[i].count;
		if (histogram->buckets[i].count && (double)seen >= rank)
			return histogram->buckets[i].to;
	}
	return 0;
}

/* The end of the step of 1, 2, 5, 10, ... that begins at from. */
static uint64_t step_after(uint64_t from)
{
	uint64_t ten = 1;

	while (from / ten >= 10)
		ten *= 10;
	return from / ten == 2 ? 5 * ten : from / ten * 2 * ten;
}

/*
 * The steps from the first to the last that have something in them; a bucket counts where it
 * begins.
 */
void histogram_rows(const struct histogram *histogram, struct histogram *rows)
{
	struct bucket row = { .from = 0, .to = 1000 };

	*rows = (struct histogram){ 0 };
	for (int i = 0; i < histogram->count; i++) {
		const struct bucket *bucket = &histogram->buckets[i];

		if (!bucket->count)
			continue;
		while (bucket->from >= row.to) {
			if (rows->count || row.count)
				bucket_add(rows, row);
			row = (struct bucket){ .from = row.to, .to = step_after(row.to) };
		}
		row.count += bucket->count;
	}
	if (row.count)
		bucket_add(rows, row);
}
