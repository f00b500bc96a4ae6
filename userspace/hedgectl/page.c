// SPDX-License-Identifier: GPL-2.0
/*
 * The lines of top: what changed between two samples of a target, for a width of 80 columns or more.
 * The screen and --batch print the same lines.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"

#define NARROW 80
#define DEVICE 12	/* columns of a device's name where the screen is narrow */
#define MAX_DEVICE 40

struct rates {
	char reads[16], mb[16], p50[TIME_TEXT], p99[TIME_TEXT], p999[TIME_TEXT];
};

static void __attribute__((format(printf, 3, 4)))
add(struct page *page, enum style style, const char *format, ...)
{
	va_list list;
	char *text;
	size_t n;

	va_start(list, format);
	text = xvprintf(format, list);
	va_end(list);
	for (n = strlen(text); n && text[n - 1] == ' '; n--)
		text[n - 1] = '\0';
	page->lines = xrealloc(page->lines, (page->count + 1) * sizeof(*page->lines));
	page->lines[page->count].style = style;
	page->lines[page->count++].text = text;
}

void page_free(struct page *page)
{
	for (int i = 0; i < page->count; i++)
		free(page->lines[i].text);
	free(page->lines);
	*page = (struct page){ 0 };
}

/* Four digits are enough: 0.12 12.3 1234 123k. */
static void number(double value, char *text, size_t size)
{
	if (value >= 1e6)
		snprintf(text, size, "%.0fk", value / 1e3);
	else
		snprintf(text, size, value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value);
}

static void percentile(const struct histogram *copies, double p, char *text)
{
	if (copies->total)
		format_time(histogram_percentile(copies, p), text, TIME_TEXT);
	else
		strcpy(text, "-");
}

static void rates(const struct histogram *copies, double bytes, double seconds, struct rates *r)
{
	number((double)copies->total / seconds, r->reads, sizeof(r->reads));
	number(bytes / seconds / 1e6, r->mb, sizeof(r->mb));
	percentile(copies, 50, r->p50);
	percentile(copies, 99, r->p99);
	percentile(copies, 99.9, r->p999);
}

static double seconds_between(const struct sample *before, const struct sample *now)
{
	return (double)(now->ns - before->ns) / 1e9;
}

/* Per cent of the reads of the interval; "-" if there was none. */
static const char *share(double part, double whole, char *text, size_t size)
{
	if (whole > 0)
		snprintf(text, size, "%.1f %%", 100 * part / whole);
	else
		snprintf(text, size, "-");
	return text;
}

static void add_volume(struct page *page, const struct sample *before, const struct sample *now)
{
	const char *policy = kv_get(&now->status.fields, "policy");
	char tau[TIME_TEXT], hedged[16], won[16], extra[16], reads[16], mb[16], target[16] = "";
	double seconds = seconds_between(before, now);
	double n = (double)sample_rise(before, now, "reads");
	double h = (double)sample_rise(before, now, "hedged");
	uint64_t tau_us = 0, budget = 0;

	sample_number(now, "tau_us", &tau_us);
	if (now->target)
		snprintf(target, sizeof(target), " (%d)", now->target);
	number(n / seconds, reads, sizeof(reads));
	number((double)sample_bytes(before, now, -1) / seconds / 1e6, mb, sizeof(mb));
	add(page, STYLE_BOLD, "%s%s  %s  tau %s  %s reads/s  %s MB/s%s", now->name, target,
	    policy ? policy : "-", tau_us ? format_time(tau_us * 1000, tau, sizeof(tau)) : "off",
	    reads, mb, now->suspended ? "  suspended" : "");
	if (!sample_number(now, "budget_pct", &budget))
		return;
	add(page, STYLE_PLAIN,
	    "    hedged %s, of these won %s; extra copies %s of %" PRIu64 " %%; unhedged %" PRIu64,
	    share(h, n, hedged, sizeof(hedged)),
	    share((double)sample_rise(before, now, "won"), h, won, sizeof(won)),
	    share((double)sample_rise(before, now, "extra"), n, extra, sizeof(extra)), budget,
	    sample_rise(before, now, "unhedged"));
}

static const char *count_text(const struct sample *now, int leg, const char *name, char *text,
			      size_t size)
{
	uint64_t value;

	if (!sample_leg_number(now, leg, name, &value))
		return "-";
	snprintf(text, size, "%" PRIu64, value);
	return text;
}

/* What a person should notice of a leg, or NULL. */
static const char *leg_remark(const struct sample *now, int leg)
{
	char *path = xprintf("legs/%d/state", leg);
	const char *state = kv_get(&now->attrs, path);
	uint64_t sitting = 0, stalled = 0;
	char health = now->status.health[leg];

	free(path);
	sample_leg_number(now, leg, "sitting", &sitting);
	sample_leg_number(now, leg, "stalled", &stalled);
	if (health != 'A' && health != 'U')
		return health == 'D' ? "out: a write failed" :
		       health == 'F' ? "out: a flush failed" :
		       health == 'S' ? "a resync failed" :
				       "a read failed";
	if (state && !strcmp(state, "failed"))
		return "out";
	if (stalled)
		return "stalled: it completes nothing, new reads avoid it";
	if (sitting)
		return "sitting out: slower than its peers, it gets no reads for a while";
	if (state && !strcmp(state, "resync"))
		return "not in sync yet";
	return NULL;
}

static void add_leg(struct page *page, const struct sample *before, const struct sample *now,
		    int leg, int device)
{
	const char *remark = leg_remark(now, leg);
	char inflight[24], queued[24], oldest[TIME_TEXT] = "-";
	struct histogram copies;
	struct rates r;
	uint64_t us;

	sample_copies(before, now, leg, &copies);
	rates(&copies, (double)sample_bytes(before, now, leg), seconds_between(before, now), &r);
	histogram_free(&copies);
	if (sample_leg_number(now, leg, "oldest_us", &us) && us)
		format_time(us * 1000, oldest, sizeof(oldest));
	add(page, remark ? STYLE_BOLD : STYLE_PLAIN,
	    "%3d %-*.*s %c %8s %7s %7s %7s %7s %5s %5s %7s", leg, device, device,
	    now->legs[leg].label, now->status.health[leg], r.reads, r.mb, r.p50, r.p99, r.p999,
	    count_text(now, leg, "inflight", inflight, sizeof(inflight)),
	    count_text(now, leg, "queued", queued, sizeof(queued)), oldest);
	if (remark)
		add(page, STYLE_BOLD, "    ^ %s", remark);
}

void page_target(struct page *page, const struct sample *before, const struct sample *now,
		 int width)
{
	int device = DEVICE + width - NARROW;

	if (device < DEVICE)
		device = DEVICE;
	if (device > MAX_DEVICE)
		device = MAX_DEVICE;
	add_volume(page, before, now);
	add(page, STYLE_HEADING, "LEG %-*s H %8s %7s %7s %7s %7s %5s %5s %7s", device, "DEVICE",
	    "COPIES/S", "MB/S", "P50", "P99", "P99.9", "FLY", "QUEUE", "OLDEST");
	for (int i = 0; i < now->status.nr_legs; i++)
		add_leg(page, before, now, i, device);
	add(page, STYLE_PLAIN, "%s", "");
}
