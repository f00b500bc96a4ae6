// SPDX-License-Identifier: GPL-2.0
/*
 * The status line of a hedge target:
 *
 *   <#legs> <dev>... <in_sync>/<regions> 1 <health> <#log words> <log word>... <#words> <name>
 * <value>...
 *
 * The names after the log are kept as they come: a newer module may add some, and an older tool
 * shows what it knows.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hedgectl.h"

static bool count_word(char **rest, uint64_t most, uint64_t *value)
{
	char *w = next_word(rest);

	return w && !parse_number(w, value) && *value <= most;
}

static bool parse_legs(char **rest, struct status *status)
{
	uint64_t n;
	char *w;

	if (!count_word(rest, MAX_LEGS, &n))
		return false;
	for (status->nr_legs = 0; status->nr_legs < (int)n; status->nr_legs++) {
		w = next_word(rest);
		if (!w)
			return false;
		status->devices[status->nr_legs] = xstrdup(w);
	}
	return true;
}

static bool parse_sync(char **rest, struct status *status)
{
	char *w = next_word(rest), *slash = w ? strchr(w, '/') : NULL;

	if (!slash)
		return false;
	*slash = '\0';
	return !parse_number(w, &status->in_sync) && !parse_number(slash + 1, &status->regions);
}

static bool parse_health(char **rest, struct status *status)
{
	uint64_t n;
	char *w;

	if (!count_word(rest, 1, &n) || n != 1)
		return false;
	w = next_word(rest);
	if (!w || strlen(w) != (size_t)status->nr_legs)
		return false;
	strcpy(status->health, w);
	return true;
}

static bool parse_log(char **rest, struct status *status)
{
	uint64_t n;
	char *w, *longer;

	if (!count_word(rest, 16, &n) || !n)
		return false;
	while (n--) {
		w = next_word(rest);
		if (!w)
			return false;
		longer = xprintf("%s%s%s", status->log ? status->log : "", status->log ? " " : "",
				 w);
		free(status->log);
		status->log = longer;
	}
	return true;
}

static bool parse_fields(char **rest, struct status *status)
{
	uint64_t n;
	char *name, *value;

	/* A mirror has none. */
	if (!*rest || !(*rest)[strspn(*rest, " \n")])
		return true;
	if (!count_word(rest, 1000, &n) || n % 2)
		return false;
	for (; n; n -= 2) {
		name = next_word(rest);
		value = next_word(rest);
		if (!value)
			return false;
		kv_add(&status->fields, name, value, false);
	}
	kv_sort(&status->fields);
	return true;
}

int status_parse(const char *line, struct status *status)
{
	char *copy = xstrdup(line), *rest = copy;
	bool good;

	*status = (struct status){ 0 };
	good = parse_legs(&rest, status) && parse_sync(&rest, status) &&
	       parse_health(&rest, status) && parse_log(&rest, status) &&
	       parse_fields(&rest, status);
	free(copy);
	if (good)
		return 0;
	status_free(status);
	fail("can not read the status line \"%s\": the module and hedgectl are of different versions",
	     line);
	return -1;
}

void status_free(struct status *status)
{
	for (int i = 0; i < MAX_LEGS; i++)
		free(status->devices[i]);
	free(status->log);
	kv_free(&status->fields);
	*status = (struct status){ 0 };
}
