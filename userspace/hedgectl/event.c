// SPDX-License-Identifier: GPL-2.0
/*
 * What happened between two samples of a target, in events:
 *
 *   leg-out	  a write or a flush failed, or it was taken out: it is not written any more
 *   leg-error	  a read or a resync of the leg failed; it stays
 *   leg-back	  it has everything again
 *   leg-stalled  it answers nothing; leg-answers: it does again
 *   leg-sitting  it is slower than its peers and gets no reads for a while; leg-returns: it does again
 *   mismatches	  a check found regions in which legs differ
 *   writes-held  writes wait for the table to be reloaded; writes-go-on: they do not any more
 *   log-failed	  the dirty log on disk can not be written; log-back: it can again
 *
 * volume-gone, that a volume is not there any more, is cmd_monitor.c's to find out.
 *
 * Without an earlier sample all is taken to have been well, so that what is wrong at the start is
 * reported too.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "event.h"

struct state {
	bool out, error, syncing, stalled, sitting;
};

static bool in_mask(const struct sample *sample, const char *name, int leg)
{
	const char *text = kv_get(&sample->status.fields, name);

	return text && strtoul(text, NULL, 16) & 1ul << leg;
}

static struct state leg_state(const struct sample *sample, int leg)
{
	char health = sample->status.health[leg], *path = xprintf("legs/%d/state", leg);
	const char *text = kv_get(&sample->attrs, path);
	struct state state = {
		.out = health == 'D' || health == 'F' || (text && !strcmp(text, "failed")),
		.error = health == 'R' || health == 'S',
		.syncing = text && !strcmp(text, "resync"),
		.stalled = in_mask(sample, "stalled", leg),
		.sitting = in_mask(sample, "sitting", leg),
	};

	free(path);
	return state;
}

static uint64_t number(const struct sample *sample, const char *name)
{
	uint64_t value = 0;

	if (sample)
		sample_number(sample, name, &value);
	return value;
}

/* The dirty log on disk: "disk 253:1 A", with D or F in the end after an error. */
static bool log_failed(const struct sample *sample)
{
	const char *log = sample ? sample->status.log : NULL;
	size_t n = log ? strlen(log) : 0;

	return n > 2 && !strncmp(log, "disk ", 5) && log[n - 2] == ' ' && log[n - 1] != 'A';
}

struct reporter {
	const struct sample *now;
	event_fn *report;
	void *context;
};

static void __attribute__((format(printf, 4, 5)))
report(const struct reporter *reporter, const char *name, int leg, const char *format, ...)
{
	struct event event = { .name = name, .sample = reporter->now, .leg = leg };
	va_list list;
	char *text;

	va_start(list, format);
	text = xvprintf(format, list);
	va_end(list);
	event.message = text;
	reporter->report(&event, reporter->context);
	free(text);
}

static void compare_leg(const struct reporter *r, const struct sample *before, int leg)
{
	struct state old = before ? leg_state(before, leg) : (struct state){ 0 };
	struct state new = leg_state(r->now, leg);
	const char *label = r->now->legs[leg].label;

	if (new.out && !old.out)
		report(r, "leg-out", leg,
		       "%s: leg %d, %s, is out: it is not written any more, and the data has one copy less",
		       r->now->name, leg, label);
	if (new.error && !old.error)
		report(r, "leg-error", leg, "%s: leg %d, %s, had an error", r->now->name, leg, label);
	if ((old.out || old.syncing) && !new.out && !new.syncing)
		report(r, "leg-back", leg, "%s: leg %d, %s, has all data again", r->now->name, leg,
		       label);
	if (new.stalled != old.stalled)
		report(r, new.stalled ? "leg-stalled" : "leg-answers", leg,
		       new.stalled ? "%s: leg %d, %s, is stalled: it answers nothing, and is avoided" :
				     "%s: leg %d, %s, answers again",
		       r->now->name, leg, label);
	if (new.sitting != old.sitting)
		report(r, new.sitting ? "leg-sitting" : "leg-returns", leg,
		       new.sitting ?
			       "%s: leg %d, %s, sits out: it is slower than its peers, and gets no reads for a while" :
			       "%s: leg %d, %s, gets reads again",
		       r->now->name, leg, label);
}

void events_between(const struct sample *before, const struct sample *now, event_fn *fn,
		    void *context)
{
	struct reporter r = { now, fn, context };
	uint64_t old = number(before, "mismatches"), new = number(now, "mismatches");
	bool held = number(now, "held"), was_held = number(before, "held");

	for (int i = 0; i < now->status.nr_legs; i++)
		compare_leg(&r, before, i);
	if (new > old)
		report(&r, "mismatches", -1,
		       "%s: a check found %" PRIu64 " blocks in which the legs differ", now->name,
		       new - old);
	if (held && !was_held)
		report(&r, "writes-held", -1,
		       "%s: %" PRIu64 " writes are held since one failed on a leg; the table must be reloaded",
		       now->name, number(now, "held"));
	if (log_failed(now) && !log_failed(before))
		report(&r, "log-failed", -1,
		       "%s: its dirty log on disk can not be written: the kernel log tells why",
		       now->name);
	if (log_failed(before) && !log_failed(now))
		report(&r, "log-back", -1, "%s: its dirty log on disk is written again", now->name);
	if (was_held && !held)
		report(&r, "writes-go-on", -1, "%s: no writes are held any more", now->name);
}
