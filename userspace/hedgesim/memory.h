/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory that is there or ends the program, and pools of equal objects.
 */
#ifndef HEDGESIM_MEMORY_H
#define HEDGESIM_MEMORY_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MEMORY_LINE	64		/* a cache line */
#define MEMORY_HUGE	(2UL << 20)	/* a huge page */
#define POOL_CHUNK	1024		/* objects that are allocated together */

/**
 * memory_get - allocate
 * @size: bytes
 *
 * What is larger than a huge page asks for huge pages: with many servers each
 * step touches other pages, and the processor remembers few of them.
 *
 * Return: zeroed memory that begins with a cache line; given back with free().
 */
static inline void *memory_get(size_t size)
{
	size_t align = size >= MEMORY_HUGE ? MEMORY_HUGE : MEMORY_LINE;
	size_t whole = (size + align - 1) & ~(align - 1);
	void *p = aligned_alloc(align, whole ? whole : align);

	if (!p)
		abort();
	if (align == MEMORY_HUGE)
		madvise(p, whole, MADV_HUGEPAGE);
	memset(p, 0, size);
	return p;
}

/**
 * struct pool - objects of one size, given back to a free list
 * @chunk: where they are
 * @free: the first that is free, and begins with a pointer to the next
 * @size: of an object
 * @nr: how many chunks there are
 */
struct pool {
	void **chunk, *free;
	size_t size, nr;
};

static inline void pool_grow(struct pool *pool)
{
	/* Ever larger chunks, so that large pools get huge pages. */
	size_t i, objects = (size_t)POOL_CHUNK << (pool->nr < 8 ? pool->nr : 8);
	char *chunk = memory_get(objects * pool->size);

	pool->chunk = realloc(pool->chunk, (pool->nr + 1) * sizeof(*pool->chunk));
	if (!pool->chunk)
		abort();
	pool->chunk[pool->nr++] = chunk;
	for (i = objects; i--; ) {
		*(void **)(chunk + i * pool->size) = pool->free;
		pool->free = chunk + i * pool->size;
	}
}

/**
 * pool_get - take an object, whatever it contains
 * @pool: the pool
 */
static inline void *pool_get(struct pool *pool)
{
	void *object;

	if (!pool->free)
		pool_grow(pool);
	object = pool->free;
	pool->free = *(void **)object;
	return object;
}

/**
 * pool_put - give an object back
 * @pool: the pool
 * @object: the object
 */
static inline void pool_put(struct pool *pool, void *object)
{
	*(void **)object = pool->free;
	pool->free = object;
}

/**
 * pool_free - give back all objects of a pool
 * @pool: the pool
 */
static inline void pool_free(struct pool *pool)
{
	while (pool->nr)
		free(pool->chunk[--pool->nr]);
	free(pool->chunk);
}

#endif
