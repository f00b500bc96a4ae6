// SPDX-License-Identifier: GPL-2.0
/*
 * Copies with a bio and pages of their own.
 *
 * A started bio cannot be called back, so whatever may outlive its read must
 * not read into the caller's pages. One object holds all that a copy needs: the
 * read (if it is the first), the copy, the bio, its one segment and one piece
 * of contiguous pages, so that a copy costs one allocation. Distribution kernels
 * clear every page that is allocated, which would cost as much as the read's
 * copying; so objects go back to a free list of the CPU on which they were last
 * used, pages and all, by the order of their pages.
 *
 * Nothing here waits for memory. Without it a read is not hedged, which is
 * always right. bounce_mb bounds what is in use and in free lists together.
 */
#include "hedge.h"

#define BOUNCE_GFP (GFP_NOWAIT | __GFP_NOWARN | __GFP_NORETRY | \
		    __GFP_NOMEMALLOC)

static struct kmem_cache *bounce_cache;

static void bounce_free(struct hedge *h, struct hedge_bounce *b)
{
	atomic_long_sub(PAGE_SIZE << b->order, &h->bounce_bytes);
	free_pages((unsigned long)b->data, b->order);
	kmem_cache_free(bounce_cache, b);
}

/* Empties the free lists of one CPU; nobody else may be using them. */
static void free_lists_drain(struct hedge *h, struct hedge_shard *shard)
{
	struct hedge_bounce *b, *all = NULL;
	unsigned long flags;
	unsigned int order;

	local_irq_save(flags);
	for (order = 0; order <= HEDGE_MAX_ORDER; order++) {
		while ((b = shard->free[order])) {
			shard->free[order] = b->next;
			b->next = all;
			all = b;
		}
	}
	shard->free_bytes = 0;
	local_irq_restore(flags);

	while ((b = all)) {
		all = b->next;
		bounce_free(h, b);
	}
}

/* Takes @bytes of what bounce_mb allows. */
static bool charge(struct hedge *h, long bytes)
{
	long limit = READ_ONCE(h->bounce_limit);

	return atomic_long_add_return(bytes, &h->bounce_bytes) <= limit;
}

static struct hedge_bounce *bounce_alloc(struct hedge *h, unsigned int order)
{
	struct hedge_bounce *b;

	if (!charge(h, PAGE_SIZE << order))
		goto out_charge;
	b = kmem_cache_alloc(bounce_cache, BOUNCE_GFP);
	if (!b)
		goto out_charge;
	b->data = (void *)__get_free_pages(BOUNCE_GFP | __GFP_COMP, order);
	if (!b->data)
		goto out_free;
	b->order = order;
	bvec_set_page(&b->bvec, virt_to_page(b->data), PAGE_SIZE << order, 0);
	bio_init(&b->bio, NULL, &b->bvec, 1, 0);
	return b;

out_free:
	kmem_cache_free(bounce_cache, b);
out_charge:
	atomic_long_sub(PAGE_SIZE << order, &h->bounce_bytes);
	return NULL;
}

/* Takes a bounce from the free list of this CPU. */
static struct hedge_bounce *free_list_pop(struct hedge *h, unsigned int order)
{
	struct hedge_shard *shard;
	struct hedge_bounce *b;
	unsigned long flags;

	local_irq_save(flags);
	shard = this_cpu_ptr(h->shards);
	b = shard->free[order];
	if (b) {
		shard->free[order] = b->next;
		shard->free_bytes -= PAGE_SIZE << order;
	}
	local_irq_restore(flags);
	return b;
}

/* Puts a bounce into the free list of this CPU, if there is room. */
static bool free_list_push(struct hedge *h, struct hedge_bounce *b)
{
	unsigned int bytes = PAGE_SIZE << b->order;
	struct hedge_shard *shard;
	unsigned long flags;
	bool room;

	local_irq_save(flags);
	shard = this_cpu_ptr(h->shards);
	room = shard->free_bytes + bytes <= READ_ONCE(h->free_max);
	if (room) {
		b->next = shard->free[b->order];
		shard->free[b->order] = b;
		shard->free_bytes += bytes;
	}
	local_irq_restore(flags);
	return room;
}

/**
 * hedge_bounce_get - get a copy with pages of its own
 * @h: the target
 * @bytes: how much it is to hold, at most max_copy_kb
 *
 * Its bio holds nothing, and is initialised when it is aimed at a leg. Its segment
 * has the pages.
 *
 * Context: any; never sleeps.
 *
 * Return: the copy, or NULL if there is no memory for it.
 */
struct hedge_bounce *hedge_bounce_get(struct hedge *h, unsigned int bytes)
{
	unsigned int order = bytes > PAGE_SIZE ? get_order(bytes) : 0;
	struct hedge_bounce *b = free_list_pop(h, order);

	if (!b)
		b = bounce_alloc(h, order);
	return b;
}

/**
 * hedge_bounce_put - give a copy back
 * @h: the target
 * @b: the copy, which nothing refers to any more
 *
 * Context: any.
 */
void hedge_bounce_put(struct hedge *h, struct hedge_bounce *b)
{
	bio_uninit(&b->bio);
	if (!free_list_push(h, b))
		bounce_free(h, b);
}

/**
 * hedge_bounce_limit - set how much memory bounces may take
 * @h: the target
 * @bytes: in use and in free lists together
 *
 * Half of it may lie in free lists, so that no CPU starves the others.
 *
 * Context: any.
 */
void hedge_bounce_limit(struct hedge *h, long bytes)
{
	WRITE_ONCE(h->bounce_limit, bytes);
	WRITE_ONCE(h->free_max, min_t(long, bytes / (2 * num_possible_cpus()),
				      2 * 1024 * 1024));
}

/**
 * hedge_bounce_drain - give all free lists back to the system
 * @h: the target, which has no reads any more
 *
 * Context: process.
 */
void hedge_bounce_drain(struct hedge *h)
{
	int cpu;

	for_each_possible_cpu(cpu)
		free_lists_drain(h, per_cpu_ptr(h->shards, cpu));
}

/**
 * hedge_bounce_init - make what all targets share
 *
 * Return: 0 or -ENOMEM.
 */
int hedge_bounce_init(void)
{
	bounce_cache = KMEM_CACHE(hedge_bounce, 0);
	return bounce_cache ? 0 : -ENOMEM;
}

/**
 * hedge_bounce_exit - free what all targets share
 */
void hedge_bounce_exit(void)
{
	kmem_cache_destroy(bounce_cache);
}
