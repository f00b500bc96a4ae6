// SPDX-License-Identifier: GPL-2.0
/*
 * The table line of a hedge target, read and written:
 *
 *   <log_type> <#log_args> <log_arg>... <#legs> {<dev> <offset>}... [<#features> <feature>...]
 *
 * The log is "core" with <region size> [sync|nosync], or "disk" with the device of the log before
 * these.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hedgectl.h"

static bool number_word(char **rest, uint64_t *value)
{
	char *w = next_word(rest);

	return w && !parse_number(w, value);
}

static bool parse_log(char **rest, struct table *table)
{
	char *w = next_word(rest);
	uint64_t n, own;
	bool disk;

	if (!w || (strcmp(w, "core") && strcmp(w, "disk")))
		return false;
	table->log_type = xstrdup(w);
	disk = !strcmp(w, "disk");
	own = disk ? 2 : 1;
	if (!number_word(rest, &n) || n < own || n > own + 1)
		return false;
	if (disk) {
		w = next_word(rest);
		if (!w)
			return false;
		table->log_device = xstrdup(w);
	}
	if (!number_word(rest, &table->region_sectors))
		return false;
	if (n == own)
		return true;
	w = next_word(rest);
	if (!w)
		return false;
	table->sync = xstrdup(w);
	return true;
}

static bool parse_legs(char **rest, struct table *table)
{
	uint64_t n;
	char *w;

	if (!number_word(rest, &n) || n > MAX_LEGS)
		return false;
	for (int i = 0; i < (int)n; i++) {
		w = next_word(rest);
		if (!w)
			return false;
		table->legs[i].device = xstrdup(w);
		table->nr_legs = i + 1;
		if (!number_word(rest, &table->legs[i].offset))
			return false;
	}
	return true;
}

static bool parse_features(char **rest, struct table *table)
{
	char *w = next_word(rest);
	uint64_t n;

	if (!w)
		return true;
	if (parse_number(w, &n) || n > 1000)
		return false;
	while (n--) {
		w = next_word(rest);
		if (!w)
			return false;
		table_add_feature(table, "%s", w);
	}
	return true;
}

int table_parse(const char *line, struct table *table)
{
	char *copy = xstrdup(line), *rest = copy;
	bool good;

	*table = (struct table){ 0 };
	good = parse_log(&rest, table) && parse_legs(&rest, table) && parse_features(&rest, table);
	free(copy);
	if (good)
		return 0;
	table_free(table);
	fail("can not read the table line \"%s\": the module and hedgectl are of different versions",
	     line);
	return -1;
}

void table_add_feature(struct table *table, const char *format, ...)
{
	char *words, *longer;
	va_list list;

	va_start(list, format);
	words = xvprintf(format, list);
	va_end(list);
	longer = xprintf("%s%s%s", table->features ? table->features : "",
			 table->features ? " " : "", words);
	table->nr_features++;
	for (const char *p = words; (p = strchr(p, ' ')); p++)
		table->nr_features++;
	free(words);
	free(table->features);
	table->features = longer;
}

/* Appends to a string that is made longer as needed. */
static void append(char **line, char *part)
{
	char *longer = xprintf("%s%s", *line, part);

	free(*line);
	free(part);
	*line = longer;
}

char *table_format(const struct table *table)
{
	int nr_log = 1 + !!table->log_device + !!table->sync;
	char *line = xprintf("%s %d ", table->log_type, nr_log);

	if (table->log_device)
		append(&line, xprintf("%s ", table->log_device));
	append(&line, xprintf("%" PRIu64, table->region_sectors));
	if (table->sync)
		append(&line, xprintf(" %s", table->sync));
	append(&line, xprintf(" %d", table->nr_legs));
	for (int i = 0; i < table->nr_legs; i++)
		append(&line,
		       xprintf(" %s %" PRIu64, table->legs[i].device, table->legs[i].offset));
	if (table->features)
		append(&line, xprintf(" %d %s", table->nr_features, table->features));
	return line;
}

void table_free(struct table *table)
{
	free(table->log_type);
	free(table->log_device);
	free(table->sync);
	for (int i = 0; i < MAX_LEGS; i++)
		free(table->legs[i].device);
	free(table->features);
	*table = (struct table){ 0 };
}
