/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Circular doubly linked lists whose links are inside what they link. A link
 * that is in no list points at itself.
 */
#ifndef HEDGESIM_LIST_H
#define HEDGESIM_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *prev, *next;
};

#define list_entry(link, type, member) \
	((type *)((char *)(link) - offsetof(type, member)))

static inline void list_init(struct list *link)
{
	link->prev = link->next = link;
}

static inline bool list_empty(const struct list *list)
{
	return list->next == list;
}

static inline void list_add_tail(struct list *list, struct list *link)
{
	link->prev = list->prev;
	link->next = list;
	list->prev->next = link;
	list->prev = link;
}

static inline void list_del(struct list *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	list_init(link);
}

#endif
