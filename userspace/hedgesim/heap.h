/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The calendar of completions: a heap of degree four, ordered by time. An item
 * holds its own position, so that a copy that is killed can be taken out. Times
 * stand beside the pointers: a step touches no item that it does not move.
 */
#ifndef HEDGESIM_HEAP_H
#define HEDGESIM_HEAP_H

#include <stdint.h>

struct heap_item {
	uint32_t position;
};

struct heap_slot {
	double time;
	struct heap_item *item;
};

struct heap {
	struct heap_slot *slot;
	uint32_t nr;
};

static inline void heap_set(struct heap *heap, uint32_t at, struct heap_slot slot)
{
	heap->slot[at] = slot;
	slot.item->position = at;
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
 * @heap: the heap; the caller has made room
 * @time: its time
 * @item: the item
 */
static inline void heap_add(struct heap *heap, double time, struct heap_item *item)
{
	heap_up(heap, heap->nr++, (struct heap_slot) { time, item });
}

/**
 * heap_remove - take an item out
 * @heap: the heap
 * @item: the item
 */
static inline void heap_remove(struct heap *heap, struct heap_item *item)
{
	uint32_t at = item->position;
	struct heap_slot last = heap->slot[--heap->nr];

	if (last.item == item)
		return;
	if (at && heap->slot[(at - 1) / 4].time > last.time)
		heap_up(heap, at, last);
	else
		heap_down(heap, at, last);
}

#endif
