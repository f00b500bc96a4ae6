/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The trace of a run, as the programs that judge crashes read it.
 *
 * ftrace, with its clock "counter", puts one order on all that happened: when
 * a bio was handed to a disk (block_bio_queue), when the disk had answered
 * (block_bio_complete, which comes before anybody is told), and what the
 * workload said in trace_marker. A crash point is a number N: the events 1..N
 * have happened, the others have not.
 */
#ifndef TESTS_TOOLS_TRACE_H
#define TESTS_TOOLS_TRACE_H

#include "io.h"

enum event_type { EVENT_QUEUE, EVENT_COMPLETE, EVENT_MARK };

/**
 * struct event - one line of the trace
 * @type: what it is
 * @preflush: the disk is to flush its cache first
 * @fua: the data is to be durable when the disk answers
 * @discard: no data, but a discard
 * @write: a write or a discard; neither with a flush alone, nor with a read
 * @failed: the answer is an error
 * @dev: major << 20 | minor
 * @sector: where
 * @nr: how many sectors
 * @text: what the workload said, if it is a mark
 */
struct event {
	enum event_type type;
	bool preflush, fua, discard, write, failed;
	uint32_t dev;
	uint64_t sector;
	uint32_t nr;
	const char *text;
};

struct trace {
	struct event *event;	/* number N is event[N - 1] */
	size_t nr;
	char *text;		/* the whole file */
};

__attribute__((noreturn, format(printf, 1, 2)))
static inline void give_up(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(2);
}

static inline char *read_text(const char *path)
{
	size_t room = 1 << 20, used = 0;
	char *text = malloc(room);
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die("%s", path);
	while (text && (n = read(fd, text + used, room - used - 1)) > 0) {
		used += (size_t)n;
		if (used + 1 == room)
			text = realloc(text, room *= 2);
	}
	if (!text || n < 0)
		die("%s", path);
	close(fd);
	text[used] = '\0';
	return text;
}

/* An operation like FWFS: a flush first, a write, with FUA, synchronous. */
static inline void parse_operation(struct event *e, const char *word)
{
	e->preflush = word[0] == 'F';
	if (e->preflush)
		word++;
	e->discard = word[0] == 'D';
	e->write = e->discard || word[0] == 'W';
	for (word++; word[-1] > ' ' && *word > ' '; word++)
		e->fua |= *word == 'F';
}

/* "254,3 WS 128 + 8 [name]"; the last is the error if it is a completion. */
static inline bool parse_bio(struct event *e, const char *text)
{
	unsigned long long major, minor;
	char *at;

	major = strtoull(text, &at, 10);
	if (*at++ != ',')
		return false;
	minor = strtoull(at, &at, 10);
	if (*at++ != ' ')
		return false;
	e->dev = (uint32_t)(major << 20 | minor);
	parse_operation(e, at);
	at = strchr(at, ' ');
	if (!at)
		return false;
	e->sector = strtoull(at, &at, 10);
	if (strncmp(at, " + ", 3))
		return false;
	e->nr = (uint32_t)strtoul(at + 3, &at, 10);
	at = strchr(at, '[');
	e->failed = e->type == EVENT_COMPLETE && at && atoi(at + 1);
	e->write = e->write && e->nr;
	return true;
}

/* The text behind the name of the event, if it is this one. */
static inline const char *behind(const char *line, const char *name)
{
	size_t n = strlen(name);

	return strncmp(line, name, n) ? NULL : line + n;
}

/* "  comm-123     [001] .....     45: block_bio_queue: 254,3 WS 128 + 8 [comm]" */
static inline bool parse_event(struct event *e, const char *line)
{
	const char *name, *text;

	line = strchr(line, ']');
	line = line ? strchr(line, ':') : NULL;
	if (!line)
		return false;
	name = line + 2;
	memset(e, 0, sizeof(*e));
	if ((text = behind(name, "tracing_mark_write: "))) {
		e->type = EVENT_MARK;
		e->text = text;
		return true;
	}
	if ((text = behind(name, "block_bio_queue: ")))
		e->type = EVENT_QUEUE;
	else if ((text = behind(name, "block_bio_complete: ")))
		e->type = EVENT_COMPLETE;
	return text && parse_bio(e, text);
}

/* The file is what /sys/kernel/tracing/trace gave. It stays in memory. */
static inline void read_trace(struct trace *trace, const char *path)
{
	char *text = read_text(path), *line = text, *end;
	unsigned long long have, written;
	size_t room = 0;
	char *at = strstr(text, "entries-in-buffer/entries-written: ");

	if (!at || sscanf(at, "entries-in-buffer/entries-written: %llu/%llu",
			  &have, &written) != 2)
		give_up("%s: is no trace", path);
	if (have != written)
		give_up("%s: %llu events of %llu were lost: make the buffer larger",
			path, written - have, written);
	trace->text = text;
	trace->event = NULL;
	trace->nr = 0;
	for (; *line; line = end + 1) {
		end = strchr(line, '\n');
		if (!end)
			break;
		*end = '\0';
		if (*line == '#')
			continue;
		if (trace->nr == room) {
			room = room ? room * 2 : 4096;
			trace->event = realloc(trace->event, room * sizeof(struct event));
			if (!trace->event)
				die("memory for the trace");
		}
		if (parse_event(&trace->event[trace->nr], line))
			trace->nr++;
	}
}

#endif
