/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The calendar of completions.
 *
 * Entries move through up to four places, each nearer to the present:
 *
 *	beyond	in no order
 *	coarse	lists, each for a year of FINE buckets
 *	fine	lists, each for a bucket of about PER_BUCKET entries, of this year
 *	near	a heap, of what is before the first bucket that is still a list
 *
 * So all but the heap is written and read in rows, whatever the number of servers,
 * and some buckets before its entries are due it is known which copies and servers
 * will be needed: they are brought into the processor's cache, and then what these
 * point at. With few servers everything is in the heap.
 *
 * A copy knows the time of its completion. An entry with another time is void: who
 * takes a copy out, or gives it another time, leaves the old entry where it is.
 * Copies must stay readable for that after they were given back.
 */
#ifndef HEDGESIM_CALENDAR_H
#define HEDGESIM_CALENDAR_H

#include <math.h>

#include "job.h"
#include "memory.h"
#include "pick.h"

#define CALENDAR_FINE		256U
#define CALENDAR_COARSE		4096U
#define CALENDAR_PER_BUCKET	16
#define CALENDAR_PER_BLOCK	10
#define CALENDAR_FEW		64	/* so many servers: all in the heap */

/**
 * struct calendar_entry - what completes
 * @time: when
 * @copy: the copy, or NULL if it is the removal of one
 * @server: where
 */
struct calendar_entry {
	double time;
	struct copy *copy;
	u32 server;
};

/* A part of a list of entries. */
struct calendar_block {
	struct calendar_block *next;
	u32 nr;
	struct calendar_entry entry[CALENDAR_PER_BLOCK];
};

/**
 * struct calendar - the calendar
 * @near: the heap, of degree four
 * @nr: entries in it
 * @room: how many fit
 * @lists: entries that are not in it
 * @rate: buckets in a unit of time, 0 to have all in the heap
 * @now: the first bucket that is still a list
 * @fine: buckets of the year of @now
 * @coarse: years, of which that one is the first
 * @beyond: what is later
 * @blocks: memory of the lists
 */
struct calendar {
	struct calendar_entry *near;
	u32 nr, room;
	u64 lists;
	double rate;
	u64 now;
	struct calendar_block *fine[CALENDAR_FINE], *coarse[CALENDAR_COARSE], *beyond;
	struct pool blocks;
};

void calendar_init(struct calendar *calendar, size_t slots, double service);
void calendar_free(struct calendar *calendar);
void calendar_put(struct calendar *calendar, struct calendar_entry entry);
void calendar_pop(struct calendar *calendar);
struct calendar_entry *calendar_advance(struct calendar *calendar, const struct pick *pick);

/**
 * calendar_add - add a completion, or give one another time
 * @calendar: the calendar
 * @time: when
 * @copy: of what; where is known from it
 */
static inline void calendar_add(struct calendar *calendar, double time, struct copy *copy)
{
	copy->end = time;
	calendar_put(calendar, (struct calendar_entry) { time, copy, copy->server });
}

/**
 * calendar_remove - take a completion out
 * @copy: of what
 */
static inline void calendar_remove(struct copy *copy)
{
	copy->end = -INFINITY;
}

/**
 * calendar_first - the next completion
 * @calendar: the calendar
 * @pick: the servers
 *
 * Return: it, or NULL if the calendar is empty; taken out by calendar_pop().
 */
static inline struct calendar_entry *calendar_first(struct calendar *calendar,
						    const struct pick *pick)
{
	struct calendar_entry *first = calendar->near;

	if (calendar->nr && (!first->copy || first->copy->end == first->time))
		return first;
	return calendar_advance(calendar, pick);
}

#endif
