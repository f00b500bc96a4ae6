/* SPDX-License-Identifier: GPL-2.0 */
/* event.c: what monitor reports. */
#ifndef EVENT_H
#define EVENT_H

#include "sample.h"

struct event {
	const char *name;	/* leg-out, leg-back ... */
	const struct sample *sample;
	int leg;		/* -1: of the volume */
	const char *message;	/* a sentence */
};

typedef void event_fn(const struct event *event, void *context);

void events_between(const struct sample *before, const struct sample *now, event_fn *report,
		    void *context);

#endif
