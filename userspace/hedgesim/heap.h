/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The calendar of completions: a heap of degree four, ordered by time.
 *
 * Who adds an item gets a ticket for it, with which it can be taken out again: a
 * copy that is killed never completes. The heap moves times and tickets and
 * notes where each ticket is; it never touches the items, which with many
 * servers are not in the processor's cache.
 */
#ifndef HEDGESIM_HEAP_H
#define HEDGESIM_HEAP_H

#include <stdint.h>
#include <stdlib.h>

struct heap_slot {
	double time;
	uint32_t ticket;
};

/**
 * struct heap - a heap
 * @slot: the heap itself
 * @position: of each ticket that is out, in @slot
 * @item: of each ticket that is out
 * @spare: the tickets that are not, from @nr on
 * @nr: how many items there are
 */
struct heap {
	struct heap_slot *slot;
	uint32_t *position, *spare;
	void **item;
	uint32_t nr;
};

/**
 * heap_init - make an empty heap
 * @heap: the heap
 * @room: the most items that it will hold
 */
static inline void heap_init(struct heap *heap, size_t room)
{
	size_t i;

	heap->slot = calloc(room, sizeof(*heap->slot));
	heap->position = calloc(room, sizeof(*heap->position));
	heap->spare = calloc(room, sizeof(*heap->spare));
	heap->item = calloc(room, sizeof(*heap->item));
	if (!heap->slot || !heap->position || !heap->spare || !heap->item)
		abort();
	heap->nr = 0;
	for (i = 0; i < room; i++)
		heap->spare[i] = i;
}

/**
 * heap_free - give back what a heap holds
 * @heap: the heap
 */
static inline void heap_free(struct heap *heap)
{
	free(heap->slot);
	free(heap->position);
	free(heap->spare);
	free(heap->item);
}

static inline void heap_set(struct heap *heap, uint32_t at, struct heap_slot slot)
{
	heap->slot[at] = slot;
	heap->position[slot.ticket] = at;
}

/* Puts a slot where it belongs, at or above a position that is free. */
static inline void heap_up(struct heap *heap, uint32_t at, struct heap_slot slot)
{
	while (at) {
		uint32_t parent = (at - 1) / 4;

		if (heap->slot[parent].time <= slot.time)
			break;
		heap_set(heap, at, heap->slot[parent]);
		at = parent;
	}
	heap_set(heap, at, slot);
}

/* The same, at or below. */
static inline void heap_down(struct heap *heap, uint32_t at, struct heap_slot slot)
{
	for (;;) {
		uint32_t child = 4 * at + 1, end = child + 4, least = child;

		if (child >= heap->nr)
			break;
		if (end > heap->nr)
			end = heap->nr;
		while (++child < end)
			if (heap->slot[child].time < heap->slot[least].time)
				least = child;
		if (heap->slot[least].time >= slot.time)
			break;
		heap_set(heap, at, heap->slot[least]);
		at = least;
	}
	heap_set(heap, at, slot);
}

/**
 * heap_add - add an item
 * @heap: the heap, which is not full
 * @time: its time
 * @item: the item
 *
 * Return: its ticket.
 */
static inline uint32_t heap_add(struct heap *heap, double time, void *item)
{
	uint32_t ticket = heap->spare[heap->nr];

	heap->item[ticket] = item;
	heap_up(heap, heap->nr++, (struct heap_slot) { time, ticket });
	return ticket;
}

/**
 * heap_remove - take an item out
 * @heap: the heap
 * @ticket: its ticket
 */
static inline void heap_remove(struct heap *heap, uint32_t ticket)
{
	uint32_t at = heap->position[ticket];
	struct heap_slot last = heap->slot[--heap->nr];

	heap->spare[heap->nr] = ticket;
	if (last.ticket == ticket)
		return;
	if (at && heap->slot[(at - 1) / 4].time > last.time)
		heap_up(heap, at, last);
	else
		heap_down(heap, at, last);
}

/**
 * heap_first - the item with the least time
 * @heap: the heap, which is not empty
 */
static inline void *heap_first(const struct heap *heap)
{
	return heap->item[heap->slot[0].ticket];
}

#endif
