// SPDX-License-Identifier: GPL-2.0
/*
 * hedgectl show --openmetrics: what the volumes are and count, as text that Prometheus reads, such as
 * through the textfile collector of its node_exporter.
 *
 * A metric is a line of a table below: the value of a sample (sample.c) that it takes, and the unit
 * of that. All values of one metric must follow each other, so the outer loops are over the tables
 * and the inner ones over the samples. A value that is not known now, as most are not while a volume
 * is suspended, is left out.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metrics.h"

#define NS 1e-9
#define US 1e-6

/* A number of a target or, in legs, of a leg; sysfs or the status line has it under this name. */
struct metric {
	const char *name, *type, *help, *source;
	double unit;
};

static const struct metric of_targets[] = {
	{ "reads_total", "counter", "Reads.", "reads", 1 },
	{ "copies_total", "counter", "Copies of reads that were started.", "copies", 1 },
	{ "extra_copies_total", "counter",
	  "Copies that were started while another one of their read was out.", "extra", 1 },
	{ "hedges_total", "counter", "Hedges: copies that were started as a read was late.", "hedged", 1 },
	{ "won_reads_total", "counter", "Reads that were answered by another copy than their first.",
	  "won", 1 },
	{ "wasted_copies_total", "counter", "Copies that were started and did not answer their read.",
	  "wasted", 1 },
	{ "cancelled_copies_total", "counter", "Waiting copies that were removed.", "cancelled", 1 },
	{ "moved_copies_total", "counter", "Waiting copies that were moved to another leg.", "moved", 1 },
	{ "rescued_copies_total", "counter", "Copies that were started as a leg stalled.", "rescued", 1 },
	{ "retried_copies_total", "counter", "Copies that were started after all before had failed.",
	  "retried", 1 },
	{ "repaired_blocks_total", "counter", "Blocks that were rewritten after a read error.", "repaired",
	  1 },
	{ "mismatched_blocks_total", "counter", "Blocks in which a check found that legs differ.",
	  "mismatches", 1 },
	{ "unhedged_budget_total", "counter", "Copies that were not started at once for want of budget.",
	  "unhedged_budget", 1 },
	{ "unhedged_memory_total", "counter", "Copies that were not started for want of memory.",
	  "unhedged_memory", 1 },
	{ "unhedged_sync_total", "counter", "Reads with one copy only as one leg was in sync there.",
	  "unhedged_sync", 1 },
	{ "unhedged_large_total", "counter", "Reads with one copy only as they were too large.",
	  "unhedged_large", 1 },
	{ "timeout_seconds", "gauge", "The timeout in force, 0 without one.", "tau_us", US },
	{ "budget_ratio", "gauge", "Extra copies that are allowed for each read.", "budget_pct", 0.01 },
	{ "held_writes", "gauge", "Writes that wait until the table is reloaded.", "held", 1 },
	{ "oldest_copy_seconds", "gauge", "How long the oldest copy has been out.", "oldest_us", US },
};

static const struct metric of_legs[] = {
	{ "leg_reads_total", "counter", "Copies of reads that were handed to the leg.", "reads", 1 },
	{ "leg_errors_total", "counter", "Copies of reads that failed on the leg.", "errors", 1 },
	{ "leg_inflight", "gauge", "Copies of reads that are out.", "inflight", 1 },
	{ "leg_queued", "gauge", "Copies of reads that wait for the leg.", "queued", 1 },
	{ "leg_latency_seconds", "gauge", "Smoothed latency of the copies of reads.", "latency_us",
	  1024 * NS },
	{ "leg_oldest_copy_seconds", "gauge", "How long the oldest copy has been out.", "oldest_us", US },
	{ "leg_missed_regions", "gauge", "Regions that the leg lacks.", "missed", 1 },
	{ "leg_sitting", "gauge", "1 if the leg gets no reads for a while as it is slow.", "sitting", 1 },
	{ "leg_stalled", "gauge", "1 if the leg answers nothing.", "stalled", 1 },
	{ "leg_weight", "gauge", "Share of the reads in relation to other legs.", "weight", 1 },
};

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static void head(FILE *file, const char *name, const char *type, const char *help)
{
	fprintf(file, "# HELP dm_hedge_%s %s\n# TYPE dm_hedge_%s %s\n", name, help, name, type);
}

/* ,key="value" */
static void label(FILE *file, const char *key, const char *value)
{
	fprintf(file, ",%s=\"", key);
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			putc('\\', file);
		if (*value == '\n')
			fputs("\\n", file);
		else
			putc(*value, file);
	}
	putc('"', file);
}

/* The name of a metric with the labels of what it is of; the caller closes the brace. */
static void begin(FILE *file, const char *name, const struct sample *sample, int leg)
{
	fprintf(file, "dm_hedge_%s{target=\"%d\"", name, sample->target);
	label(file, "volume", sample->name);
	if (leg < 0)
		return;
	fprintf(file, ",leg=\"%d\"", leg);
	label(file, "device", sample->legs[leg].label);
}

static void value(FILE *file, double number)
{
	fprintf(file, "} %.15g\n", number);
}

static void put_targets(FILE *file, const struct samples *samples)
{
	uint64_t number;

	for (int m = 0; m < COUNT(of_targets); m++) {
		head(file, of_targets[m].name, of_targets[m].type, of_targets[m].help);
		for (int i = 0; i < samples->count; i++) {
			if (!sample_number(&samples->items[i], of_targets[m].source, &number))
				continue;
			begin(file, of_targets[m].name, &samples->items[i], -1);
			value(file, (double)number * of_targets[m].unit);
		}
	}
}

static void put_legs(FILE *file, const struct samples *samples)
{
	uint64_t number;

	for (int m = 0; m < COUNT(of_legs); m++) {
		head(file, of_legs[m].name, of_legs[m].type, of_legs[m].help);
		for (int i = 0; i < samples->count; i++) {
			const struct sample *s = &samples->items[i];

			for (int leg = 0; leg < s->status.nr_legs; leg++) {
				if (!sample_leg_number(s, leg, of_legs[m].source, &number))
					continue;
				begin(file, of_legs[m].name, s, leg);
				value(file, (double)number * of_legs[m].unit);
			}
		}
	}
}

/* --- what is no attribute ---------------------------------------------------------------- */

static void put_info(FILE *file, const struct samples *samples)
{
	head(file, "info", "gauge", "A hedge target: 1.");
	for (int i = 0; i < samples->count; i++) {
		const char *policy = kv_get(&samples->items[i].status.fields, "policy");

		begin(file, "info", &samples->items[i], -1);
		label(file, "uuid", samples->items[i].uuid);
		label(file, "policy", policy ? policy : "");
		value(file, 1);
	}
}

static double suspended(const struct sample *sample)
{
	return sample->suspended;
}

static double regions(const struct sample *sample)
{
	return (double)sample->status.regions;
}

static double in_sync(const struct sample *sample)
{
	return (double)sample->status.in_sync;
}

static void put_of_target(FILE *file, const struct samples *samples, const char *name,
			  const char *help, double (*of)(const struct sample *sample))
{
	head(file, name, "gauge", help);
	for (int i = 0; i < samples->count; i++) {
		begin(file, name, &samples->items[i], -1);
		value(file, of(&samples->items[i]));
	}
}

/* D and F are failed writes and flushes: then it is out, as it is when it was taken out. */
static double is_out(const struct sample *sample, int leg)
{
	return sample_leg_is(sample, leg, "failed") || sample->status.health[leg] == 'D' ||
	       sample->status.health[leg] == 'F';
}

static double is_syncing(const struct sample *sample, int leg)
{
	return sample_leg_is(sample, leg, "resync");
}

static double had_error(const struct sample *sample, int leg)
{
	return !strchr("AU", sample->status.health[leg]);
}

static void put_of_leg(FILE *file, const struct samples *samples, const char *name, const char *help,
		       double (*of)(const struct sample *sample, int leg))
{
	head(file, name, "gauge", help);
	for (int i = 0; i < samples->count; i++) {
		for (int leg = 0; leg < samples->items[i].status.nr_legs; leg++) {
			begin(file, name, &samples->items[i], leg);
			value(file, of(&samples->items[i], leg));
		}
	}
}

/* --- histograms ---------------------------------------------------------------------------- */

/*
 * Two bounds in each power of two, all of them ends of the module's buckets, so that the counts are
 * true; always the same, as Prometheus adds up only what has the same bounds.
 */
#define FIRST_BOUND 4096ull		/* ns */
#define LAST_BOUND (FIRST_BOUND << 23)	/* 34 s */

static void put_bucket(FILE *file, const struct sample *sample, int leg, const char *size,
		       const char *bound, uint64_t count)
{
	begin(file, "leg_read_seconds_bucket", sample, leg);
	label(file, "size", size);
	label(file, "le", bound);
	value(file, (double)count);
}

static void put_histogram(FILE *file, const struct sample *sample, int leg, const char *size,
			  const struct histogram *h)
{
	uint64_t seen = 0;
	double sum = 0;
	char text[32];
	int i = 0;

	for (uint64_t octave = FIRST_BOUND; octave <= LAST_BOUND; octave *= 2) {
		for (uint64_t bound = octave; bound < 2 * octave; bound += octave / 2) {
			for (; i < h->count && h->buckets[i].to <= bound; i++)
				seen += h->buckets[i].count;
			snprintf(text, sizeof(text), "%.10g", (double)bound * NS);
			put_bucket(file, sample, leg, size, text, seen);
		}
	}
	put_bucket(file, sample, leg, size, "+Inf", h->total);
	for (i = 0; i < h->count; i++)
		sum += (double)h->buckets[i].count *
		       ((double)h->buckets[i].from + (double)h->buckets[i].to) / 2;
	begin(file, "leg_read_seconds_sum", sample, leg);
	label(file, "size", size);
	value(file, sum * NS);
	begin(file, "leg_read_seconds_count", sample, leg);
	label(file, "size", size);
	value(file, (double)h->total);
}

static void put_histograms(FILE *file, const struct samples *samples)
{
	/* In the order of the attribute. */
	static const char *const sizes[] = { "16KiB", "64KiB", "larger" };

	head(file, "leg_read_seconds", "histogram",
	     "Latency of the copies of reads of a leg; the sum is from the middles of narrow buckets.");
	for (int i = 0; i < samples->count; i++) {
		const struct sample *s = &samples->items[i];

		for (int leg = 0; leg < s->status.nr_legs; leg++)
			for (int c = 0; c < s->legs[leg].classes.count && c < COUNT(sizes); c++)
				put_histogram(file, s, leg, sizes[c],
					      &s->legs[leg].classes.classes[c]);
	}
}

void metrics_print(FILE *file, const struct samples *samples)
{
	put_info(file, samples);
	put_of_target(file, samples, "suspended", "1 while the volume is suspended.", suspended);
	put_of_target(file, samples, "regions", "Regions of the dirty log.", regions);
	put_of_target(file, samples, "regions_in_sync", "Regions that are in sync.", in_sync);
	put_targets(file, samples);
	put_of_leg(file, samples, "leg_out", "1 if the leg is not written any more.", is_out);
	put_of_leg(file, samples, "leg_resync", "1 while the leg is brought up to date.", is_syncing);
	put_of_leg(file, samples, "leg_had_error", "1 after an error, until the leg is reinstated.",
		   had_error);
	put_legs(file, samples);
	put_histograms(file, samples);
}
