/* SPDX-License-Identifier: GPL-2.0 */
/* page.c: the lines of top. */
#ifndef PAGE_H
#define PAGE_H

#include "sample.h"

enum style { STYLE_PLAIN, STYLE_BOLD, STYLE_HEADING };

struct page {
	int count;
	struct {
		enum style style;
		char *text;
	} *lines;
};

void page_target(struct page *page, const struct sample *before, const struct sample *now,
		 int width);
void page_free(struct page *page);

#endif
