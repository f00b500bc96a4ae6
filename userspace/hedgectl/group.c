// SPDX-License-Identifier: GPL-2.0
/*
 * The policies fcfs-gr and edd-gr: for each hedge target of a volume by itself, as a group of servers,
 * fcfs-r (edd-r) if its latencies are new-worse-than-used, else fcfs-lpr (edd-lpr).
 *
 * A law is new-worse-than-used if a copy that has been out for some time takes longer still than a
 * new one would take:
 *
 *	P(X > s + t) >= P(X > s) P(X > t)	for all s and t.
 *
 * Then it never costs to send another copy. Here s and t are the bounds of the buckets that are not
 * empty, between which no more can be said, P(X > s + t) is linear within a bucket, and what random
 * sampling explains is allowed for. A device that takes some least
 * time for each read is not of that kind.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hedgectl.h"

#define MIN_COPIES 500
#define MIN_EXPECTED 10		/* copies above s + t; fewer say nothing */
#define SIGMAS 4
#define SLACK 0.01		/* of the straight lines within buckets */

/* P(X > x): at the bounds of buckets it is known. */
static double tail(const struct histogram *h, const double *above, double x)
{
	int low = 0, high = h->count;

	while (low < high) {
		int mid = (low + high) / 2;

		if ((double)h->buckets[mid].to <= x)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == h->count)
		return 0;
	if (x <= (double)h->buckets[low].from)
		return above[low] + (double)h->buckets[low].count / (double)h->total;
	return above[low] + (double)h->buckets[low].count / (double)h->total *
				    ((double)h->buckets[low].to - x) /
				    (double)(h->buckets[low].to - h->buckets[low].from);
}

/* Bound i, and P(X > it): each bucket has two. */
static double bound(const struct histogram *h, const double *above, int i, double *at)
{
	const struct bucket *bucket = &h->buckets[i / 2];

	*at = (double)(i % 2 ? bucket->to : bucket->from);
	return above[i / 2] + (i % 2 ? 0 : (double)bucket->count / (double)h->total);
}

bool histogram_new_worse(const struct histogram *h)
{
	double *above = xcalloc(h->count + 1, sizeof(*above)), n = (double)h->total;
	uint64_t left = h->total;
	bool worse = h->total >= MIN_COPIES;

	for (int i = 0; i < h->count; i++) {
		left -= h->buckets[i].count;
		above[i] = (double)left / n;
	}
	for (int i = 0; worse && i < 2 * h->count; i++) {
		for (int j = i; worse && j < 2 * h->count; j++) {
			double s, t, product = bound(h, above, i, &s) * bound(h, above, j, &t);

			if (product * n < MIN_EXPECTED)
				break;
			worse = tail(h, above, s + t) >=
				product - SIGMAS * sqrt(product / n) - SLACK;
		}
	}
	free(above);
	return worse;
}

/* The legs of a target together: each size class that has enough copies must be of that kind. */
static bool set_new_worse(const struct leg_set *set, int *classes)
{
	bool worse = true;

	*classes = 0;
	for (int class = 0; set->count && class < set->legs[0].classes.count; class++) {
		struct histogram all = { 0 };

		for (int i = 0; i < set->count; i++)
			if (class < set->legs[i].classes.count)
				histogram_merge(&all, &set->legs[i].classes.classes[class]);
		if (all.total >= MIN_COPIES) {
			++*classes;
			worse = worse && histogram_new_worse(&all);
		}
		histogram_free(&all);
	}
	return worse && *classes;
}

bool policy_is_group(const char *policy)
{
	return !strcmp(policy, "fcfs-gr") || !strcmp(policy, "edd-gr");
}

/* The policy for one target, to be freed, and why; NULL if the histograms can not be read. */
char *policy_of_group(const struct volume *volume, int target, const char *policy, const char **why)
{
	struct leg_set set = { 0 };
	int classes;
	bool worse;

	if (legs_read(volume, target, NULL, &set)) {
		legs_free(&set);
		return NULL;
	}
	worse = set_new_worse(&set, &classes);
	legs_free(&set);
	*why = worse ? "its latencies are new-worse-than-used" :
	       classes ? "its latencies are not new-worse-than-used" :
			 "too few copies were measured yet";
	return xprintf("%.*s-%s", (int)strcspn(policy, "-"), policy, worse ? "r" : "lpr");
}
