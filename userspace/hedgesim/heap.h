/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A heap of things that know where in it they are, so that they can be taken out
 * or change their rank. Each has a place for that, a number that is 0 while it is
 * in no heap; what it is is found from the address of that number.
 */
#ifndef HEDGESIM_HEAP_H
#define HEDGESIM_HEAP_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "task.h"

#define heap_entry(place, type, member) \
	((type *)((char *)(place) - offsetof(type, member)))

struct heap_slot {
	struct hedge_rank rank;
	uint32_t *place;
};

/**
 * struct heap - a heap, empty if all zero
 * @slot: the heap; the children of i are 2i and 2i + 1, slot 0 is not used
 * @nr: how many there are
 * @room: how many fit
 */
struct heap {
	struct heap_slot *slot;
	uint32_t nr, room;
};

/**
 * heap_time - the rank of a time
 * @time: a time that is not negative
 */
static inline struct hedge_rank heap_time(double time)
{
	struct hedge_rank rank = { 0 };

	/* The bits of positive floating point numbers are in their order. */
	memcpy(&rank.key, &time, sizeof(rank.key));
	return rank;
}

static inline void heap_settle(struct heap *heap, uint32_t at, struct heap_slot slot)
{
	heap->slot[at] = slot;
	*slot.place = at;
}

/* Puts something where it belongs, at, above or below a slot that is free. */
static inline void heap_sift(struct heap *heap, uint32_t at, struct heap_slot slot)
{
	while (at > 1 && hedge_rank_before(&slot.rank, &heap->slot[at / 2].rank)) {
		heap_settle(heap, at, heap->slot[at / 2]);
		at /= 2;
	}
	for (;;) {
		uint32_t child = 2 * at;

		if (child > heap->nr)
			break;
		if (child < heap->nr && hedge_rank_before(&heap->slot[child + 1].rank,
							  &heap->slot[child].rank))
			child++;
		if (!hedge_rank_before(&heap->slot[child].rank, &slot.rank))
			break;
		heap_settle(heap, at, heap->slot[child]);
		at = child;
	}
	heap_settle(heap, at, slot);
}

/**
 * heap_set - add something, or change its rank
 * @heap: the heap
 * @place: its place
 * @rank: its rank
 */
static inline void heap_set(struct heap *heap, uint32_t *place, struct hedge_rank rank)
{
	uint32_t at = *place;

	if (!at) {
		at = ++heap->nr;
		if (at >= heap->room) {
			heap->room = heap->room ? 2 * heap->room : 64;
			heap->slot = realloc(heap->slot, heap->room * sizeof(*heap->slot));
			if (!heap->slot)
				abort();
		}
	}
	heap_sift(heap, at, (struct heap_slot) { rank, place });
}

/**
 * heap_remove - take something out if it is in
 * @heap: the heap
 * @place: its place
 */
static inline void heap_remove(struct heap *heap, uint32_t *place)
{
	uint32_t at = *place;
	struct heap_slot last;

	if (!at)
		return;
	*place = 0;
	last = heap->slot[heap->nr--];
	if (last.place != place)
		heap_sift(heap, at, last);
}

/**
 * heap_first - the place of what has the least rank
 * @heap: the heap, which is not empty
 */
static inline uint32_t *heap_first(const struct heap *heap)
{
	return heap->slot[1].place;
}

/**
 * heap_least - the least rank
 * @heap: the heap, which is not empty
 */
static inline const struct hedge_rank *heap_least(const struct heap *heap)
{
	return &heap->slot[1].rank;
}

#endif
