/* SPDX-License-Identifier: GPL-2.0 */
/* hedgetab.c: the file /etc/hedgetab, or the one that $HEDGETAB names. */
#ifndef HEDGETAB_H
#define HEDGETAB_H

#include "hedgectl.h"

struct setting {
	int target;	/* -1: of all */
	struct assignment a;
};

struct hedgetab_entry {
	char *comment;	/* then it is nothing else */
	char *name, *source;
	bool netdev;	/* its legs need the network */
	int nr_settings;
	struct setting *settings;
};

struct hedgetab {
	int count;
	struct hedgetab_entry *entries;
};

const char *hedgetab_path(void);
int hedgetab_parse(const char *text, struct hedgetab *tab);
int hedgetab_read(struct hedgetab *tab);
void hedgetab_free(struct hedgetab *tab);
struct hedgetab_entry *hedgetab_find(struct hedgetab *tab, const char *name);
struct hedgetab_entry *hedgetab_add(struct hedgetab *tab, const char *name, const char *source);
void hedgetab_set(struct hedgetab_entry *entry, int target, const struct assignment *a);
char *hedgetab_format(const struct hedgetab *tab);
int hedgetab_lock(void);	/* a descriptor; closing it unlocks */
int hedgetab_write(const struct hedgetab *tab, int lock);

#endif
