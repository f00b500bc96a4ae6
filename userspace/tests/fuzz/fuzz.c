// SPDX-License-Identifier: GPL-2.0
/*
 * Gives text of any kind to the parsers of hedgectl, one of them in each program: -DTARGET=table makes
 * one of fuzz_table. Parsers must neither touch memory that is not theirs nor leak, and what they
 * accept and write again must be read as the same.
 *
 * With clang this is a fuzzer (libFuzzer gives it the inputs). With -DCORPUS it is a plain program
 * that takes each file of a directory, for the corpus that is kept.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hedgectl.h"
#include "hedgetab.h"
#include "law.h"
#include "plan.h"

/* What must hold whatever the input is. */
#define must(condition)                                                                       \
	do {                                                                                  \
		if (!(condition)) {                                                           \
			fprintf(stderr, "does not hold: %s\n", #condition);                   \
			abort();                                                              \
		}                                                                             \
	} while (0)

/* The line of a table or a status has no line end in it. */
static void fuzz_table(const char *text)
{
	struct table table, again;
	char *line, *second;

	if (table_parse(text, &table))
		return;
	line = table_format(&table);
	must(!table_parse(line, &again));
	second = table_format(&again);
	must(!strcmp(line, second));
	must(table.nr_legs == again.nr_legs && table.nr_features == again.nr_features);
	free(line);
	free(second);
	table_free(&table);
	table_free(&again);
}

static void fuzz_status(const char *text)
{
	struct status status;
	uint64_t value;

	if (status_parse(text, &status))
		return;
	must((int)strlen(status.health) == status.nr_legs && status.nr_legs <= MAX_LEGS);
	kv_number(&status.fields, "reads", &value);
	for (int i = 0; i < status.fields.count; i++)
		must(kv_get(&status.fields, status.fields.items[i].name));
	status_free(&status);
}

static void check_histogram(const struct histogram *h)
{
	struct histogram sum = { 0 }, rows;
	uint64_t total = 0;

	for (int i = 0; i < h->count; i++) {
		must(h->buckets[i].to > h->buckets[i].from);
		must(!i || h->buckets[i].from > h->buckets[i - 1].from);
		total += h->buckets[i].count;
	}
	must(total == h->total);
	must(histogram_percentile(h, 50) <= histogram_percentile(h, 100));
	histogram_merge(&sum, h);
	must(sum.total == h->total && histogram_subtract(&sum, h) && !sum.total);
	histogram_rows(h, &rows);
	must(rows.total == h->total);
	histogram_new_worse(h);
	free(rows.buckets);
	free(sum.buckets);
}

static void fuzz_histogram(const char *text)
{
	struct histograms histograms;

	if (histograms_parse(text, &histograms))
		return;
	for (int i = 0; i < histograms.count; i++)
		check_histogram(&histograms.classes[i]);
	histograms_free(&histograms);
}

static void fuzz_hedgetab(const char *text)
{
	struct hedgetab tab, again;
	char *file, *second;

	if (hedgetab_parse(text, &tab))
		return;
	file = hedgetab_format(&tab);
	must(!hedgetab_parse(file, &again));
	second = hedgetab_format(&again);
	must(!strcmp(file, second));
	free(file);
	free(second);
	hedgetab_free(&tab);
	hedgetab_free(&again);
}

/* Sizes, times, numbers, and settings of attributes, in which they are. */
static void fuzz_units(const char *text)
{
	struct assignment assignment;
	char buffer[64], *progress;
	uint64_t a, b;

	if (!parse_time_us(text, &a)) {
		format_time(a, buffer, sizeof(buffer));
		must(strlen(buffer) < TIME_TEXT);
	}
	if (!parse_size(text, &a)) {
		format_size(a, buffer, sizeof(buffer));
		must(strlen(buffer) < SIZE_TEXT);
	}
	if (!parse_number(text, &a)) {
		must(!parse_size(text, &b) && a == b);
		progress = format_progress(a / 2, a, 1.5);
		free(progress);
	}
	if (!assignment_parse(text, &assignment)) {
		must(assignment.name && assignment.value);
		assignment_free(&assignment);
	}
}

static void fuzz_fio(const char *text)
{
	struct law law;

	if (fio_parse(text, &law))
		return;
	must(!(law.mean < 0));
	law_free(&law);
}

#define PASTE(a, b) a##b
#define FUZZ(target) PASTE(fuzz_, target)

/* The parsers say what is wrong with each input; nobody reads that. */
static void one(const char *data, size_t size)
{
	char *text = xcalloc(1, size + 1);

	memcpy(text, data, size);
	messages_keep(true);
	FUZZ(TARGET)(text);
	free(text);
	(void)fuzz_table;
	(void)fuzz_status;
	(void)fuzz_histogram;
	(void)fuzz_hedgetab;
	(void)fuzz_units;
	(void)fuzz_fio;
}

#ifdef CORPUS

int main(int argc, char **argv)
{
	DIR *dir = opendir(argc == 2 ? argv[1] : ".");
	struct dirent *entry;
	int count = 0;

	while (dir && (entry = readdir(dir))) {
		char *path = xprintf("%s/%s", argv[1], entry->d_name), *text;
		size_t size;

		text = entry->d_name[0] == '.' ? NULL : sysfs_read_file(path, &size);
		if (text) {
			/* In the output if it ends here. */
			fprintf(stderr, "%s\n", path);
			one(text, size);
			count++;
		}
		free(text);
		free(path);
	}
	if (dir)
		closedir(dir);
	printf("%d inputs\n", count);
	return !count;
}

#else

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	one((const char *)data, size);
	return 0;
}

#endif
