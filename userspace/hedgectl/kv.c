// SPDX-License-Identifier: GPL-2.0
/*
 * A sorted set of attribute values: a snapshot of what sysfs or the status line said. Two snapshots
 * of one target have the same names in the same order, so their difference is found by walking
 * both.
 */
#include <stdlib.h>
#include <string.h>

#include "hedgectl.h"

void kv_add(struct kv_list *list, const char *name, const char *value, bool writable)
{
	if (list->count == list->room) {
		list->room = list->room ? 2 * list->room : 64;
		list->items = xrealloc(list->items, list->room * sizeof(*list->items));
	}
	list->items[list->count++] = (struct kv){ xstrdup(name), xstrdup(value), writable };
}

/* By name, with numbers in order: legs/2 before legs/10. */
static int compare(const void *a, const void *b)
{
	return strverscmp(((const struct kv *)a)->name, ((const struct kv *)b)->name);
}

void kv_sort(struct kv_list *list)
{
	if (list->count)
		qsort(list->items, list->count, sizeof(*list->items), compare);
}

const char *kv_get(const struct kv_list *list, const char *name)
{
	const struct kv key = { .name = (char *)name };
	const struct kv *found;

	if (!list->count)
		return NULL;
	found = bsearch(&key, list->items, list->count, sizeof(key), compare);
	return found ? found->value : NULL;
}

bool kv_number(const struct kv_list *list, const char *name, uint64_t *value)
{
	const char *text = kv_get(list, name);

	return text && !parse_number(text, value);
}

void kv_free(struct kv_list *list)
{
	for (int i = 0; i < list->count; i++) {
		free(list->items[i].name);
		free(list->items[i].value);
	}
	free(list->items);
	*list = (struct kv_list){ 0 };
}
