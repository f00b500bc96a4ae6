// SPDX-License-Identifier: GPL-2.0
/*
 * Errors, memory and words. Every error goes through fail(), so that all of them look the same and
 * all go to stderr; note() is for what a person should know although the command goes on. A tool
 * this short-lived has no better answer to a lack of memory than to end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hedgectl.h"

static char kept[4096];
static bool keeping;

/* From now on messages are kept, a line each, and not printed. */
void messages_keep(bool keep)
{
	keeping = keep;
	kept[0] = '\0';
}

const char *message_kept(void)
{
	const char *line = strrchr(kept, '\n');

	return line ? line + 1 : kept;
}

/* Prints what was kept. */
void messages_release(void)
{
	char *rest = kept, *line;

	keeping = false;
	while ((line = strsep(&rest, "\n")))
		if (*line)
			fail("%s", line);
	kept[0] = '\0';
}

static void keep_message(const char *format, va_list list)
{
	size_t used = strlen(kept), room = sizeof(kept) - used;

	if (used && room > 1) {
		kept[used++] = '\n';
		kept[used] = '\0';
		room--;
	}
	vsnprintf(kept + used, room, format, list);
}

static void say(const char *kind, const char *format, va_list list)
{
	if (keeping) {
		keep_message(format, list);
		return;
	}
	fflush(stdout);
	fprintf(stderr, "hedgectl: %s", kind);
	vfprintf(stderr, format, list);
	fputc('\n', stderr);
}

void fail(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	say("", format, list);
	va_end(list);
}

void note(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	say("note: ", format, list);
	va_end(list);
}

static void *or_die(void *p)
{
	if (!p) {
		fail("out of memory");
		exit(FAILED);
	}
	return p;
}

void *xcalloc(size_t n, size_t size)
{
	return or_die(calloc(n ? n : 1, size));
}

void *xrealloc(void *p, size_t size)
{
	return or_die(realloc(p, size));
}

char *xstrdup(const char *s)
{
	return or_die(strdup(s));
}

char *xvprintf(const char *format, va_list list)
{
	char *s;

	return or_die(vasprintf(&s, format, list) < 0 ? NULL : s);
}

char *xprintf(const char *format, ...)
{
	va_list list;
	char *s;

	va_start(list, format);
	s = xvprintf(format, list);
	va_end(list);
	return s;
}

/* The next word of a line, or NULL at its end. */
char *next_word(char **rest)
{
	char *word;

	while ((word = strsep(rest, " \n")))
		if (*word)
			return word;
	return NULL;
}
