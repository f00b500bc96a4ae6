// SPDX-License-Identifier: GPL-2.0
/*
 * The calendar of completions: see calendar.h.
 */
#include "calendar.h"

/* --- the heap ------------------------------------------------------------------ */

static void near_put(struct calendar *calendar, struct calendar_entry entry)
{
	struct calendar_entry *near;
	u32 at = calendar->nr++;

	if (at == calendar->room) {
		calendar->room = calendar->room ? 2 * calendar->room : 128;
		calendar->near = realloc(calendar->near, calendar->room * sizeof(*calendar->near));
		if (!calendar->near)
			abort();
	}
	near = calendar->near;
	while (at && near[(at - 1) / 4].time > entry.time) {
		near[at] = near[(at - 1) / 4];
		at = (at - 1) / 4;
	}
	near[at] = entry;
}

/**
 * calendar_pop - take the first entry out
 * @calendar: the calendar, whose first entry was looked at
 */
void calendar_pop(struct calendar *calendar)
{
	struct calendar_entry *near = calendar->near, last = near[--calendar->nr];
	u32 at = 0, nr = calendar->nr;

	for (;;) {
		u32 child = 4 * at + 1, end = child + 4, least = child;

		if (child >= nr)
			break;
		if (end > nr)
			end = nr;
		while (++child < end)
			if (near[child].time < near[least].time)
				least = child;
		if (near[least].time >= last.time)
			break;
		near[at] = near[least];
		at = least;
	}
	near[at] = last;
}

/* --- the lists ------------------------------------------------------------------- */

static void list_put(struct calendar *calendar, struct calendar_block **list,
		     struct calendar_entry entry)
{
	struct calendar_block *block = *list;

	if (!block || block->nr == CALENDAR_PER_BLOCK) {
		block = pool_get(&calendar->blocks);
		block->next = *list;
		block->nr = 0;
		*list = block;
	}
	block->entry[block->nr++] = entry;
	calendar->lists++;
}

/* Puts all entries of a list where they belong by now. */
static void list_spread(struct calendar *calendar, struct calendar_block **list)
{
	struct calendar_block *block = *list, *next;
	u32 i;

	*list = NULL;
	for (; block; block = next) {
		next = block->next;
		calendar->lists -= block->nr;
		for (i = 0; i < block->nr; i++)
			calendar_put(calendar, block->entry[i]);
		pool_put(&calendar->blocks, block);
	}
}

/**
 * calendar_put - put an entry where it belongs
 * @calendar: the calendar
 * @entry: the entry
 */
void calendar_put(struct calendar *calendar, struct calendar_entry entry)
{
	u64 bucket = entry.time * calendar->rate;
	u64 year = bucket / CALENDAR_FINE, this_year = calendar->now / CALENDAR_FINE;

	if (bucket < calendar->now)
		near_put(calendar, entry);
	else if (year == this_year)
		list_put(calendar, &calendar->fine[bucket % CALENDAR_FINE], entry);
	else if (year - this_year < CALENDAR_COARSE)
		list_put(calendar, &calendar->coarse[year % CALENDAR_COARSE], entry);
	else
		list_put(calendar, &calendar->beyond, entry);
}

/* The first copy is at the beginning of its job. */
static void fetch(const struct copy *copy)
{
	const char *line = (const char *)copy;

	__builtin_prefetch(line, 1);
	__builtin_prefetch(line + MEMORY_LINE, 1);
	__builtin_prefetch(line + 2 * MEMORY_LINE, 1);
}

/* Where the choice keeps the key of a server. */
static void fetch_key(const struct pick *pick, u32 server)
{
	const struct tree *tree = pick->best[0].levels ? &pick->best[0] : &pick->best_idle[0];

	if (!tree->levels)
		return;
	__builtin_prefetch(&tree->key[server], 1);
	__builtin_prefetch(&tree->least[server / 8], 1);
}

/* Brings into the cache what the entries of a bucket will need. */
static void look_ahead(const struct calendar_block *block, const struct pick *pick)
{
	u32 i;

	for (; block; block = block->next) {
		for (i = 0; i < block->nr; i++) {
			__builtin_prefetch(&pick->server[block->entry[i].server], 1);
			fetch_key(pick, block->entry[i].server);
			if (block->entry[i].copy)
				fetch(block->entry[i].copy);
		}
	}
}

/* The servers are there by now: and what will be served next. */
static void look_closer(const struct calendar_block *block, const struct pick *pick)
{
	u32 i;

	for (; block; block = block->next) {
		for (i = 0; i < block->nr; i++) {
			const struct server *at = &pick->server[block->entry[i].server];

			if (at->queue.next != &at->queue)
				fetch(list_entry(at->queue.next, struct copy, list));
			else if (at->handed.next != &at->handed)
				fetch(list_entry(at->handed.next, struct copy, list));
		}
	}
}

/* So is that: and what comes after it, whose link changes when it is served. */
static void look_beyond(const struct calendar_block *block, const struct pick *pick)
{
	u32 i;

	for (; block; block = block->next) {
		for (i = 0; i < block->nr; i++) {
			const struct server *at = &pick->server[block->entry[i].server];

			__builtin_prefetch(at->queue.next->next, 1);
		}
	}
}

/**
 * calendar_advance - skip what is void, and go on to the next bucket with entries
 * @calendar: the calendar
 * @pick: the servers
 *
 * Return: the first entry, or NULL if there is none.
 */
struct calendar_entry *calendar_advance(struct calendar *calendar, const struct pick *pick)
{
	for (;;) {
		while (calendar->nr) {
			const struct calendar_entry *first = calendar->near;

			if (!first->copy || first->copy->end == first->time)
				return calendar->near;
			calendar_pop(calendar);
		}
		if (!calendar->lists)
			return NULL;
		calendar->now++;
		list_spread(calendar, &calendar->fine[(calendar->now - 1) % CALENDAR_FINE]);
		if (calendar->now % CALENDAR_FINE == 0) {
			u64 year = calendar->now / CALENDAR_FINE;

			list_spread(calendar, &calendar->coarse[year % CALENDAR_COARSE]);
			if (year % (CALENDAR_COARSE / 2) == 0)
				list_spread(calendar, &calendar->beyond);
		}
		look_beyond(calendar->fine[calendar->now % CALENDAR_FINE], pick);
		look_closer(calendar->fine[(calendar->now + 1) % CALENDAR_FINE], pick);
		look_ahead(calendar->fine[(calendar->now + 2) % CALENDAR_FINE], pick);
	}
}

/**
 * calendar_init - make an empty calendar
 * @calendar: the calendar
 * @slots: of all servers
 * @service: how long a usual service takes
 */
void calendar_init(struct calendar *calendar, size_t slots, double service)
{
	memset(calendar, 0, sizeof(*calendar));
	calendar->blocks.size = sizeof(struct calendar_block);
	calendar->now = 1;
	if (slots > CALENDAR_FEW)
		calendar->rate = slots / service / CALENDAR_PER_BUCKET;
}

/**
 * calendar_free - give back what a calendar holds
 * @calendar: the calendar
 */
void calendar_free(struct calendar *calendar)
{
	free(calendar->near);
	pool_free(&calendar->blocks);
}
