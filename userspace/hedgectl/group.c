// SPDX-License-Identifier: GPL-2.0
/*
 * The policies fcfs-gr and edd-gr: for each hedge target of a volume by itself, as a group of servers,
 * fcfs-r (edd-r) if its latencies are new-worse-than-used, else fcfs-lpr (edd-lpr).
 *
 * A law is new-worse-than-used if a copy that has been out for some time takes longer still than a
 * new one would take (classify.h: what hedgesim --analyse says of the same histogram). Then it never
 * costs to send another copy. A device that takes some least time for each read is not of that kind.
 */
#include <string.h>

#include "classify.h"
#include "hedgectl.h"

#define MIN_COPIES 500

bool histogram_new_worse(const struct histogram *h)
{
	struct law_bucket *buckets;
	struct law law;
	size_t nr = 0;
	bool worse;

	if (h->total < MIN_COPIES)
		return false;
	buckets = xcalloc(h->count, sizeof(*buckets));
	for (int i = 0; i < h->count; i++)
		if (h->buckets[i].count)
			buckets[nr++] = (struct law_bucket){
				.low = (double)h->buckets[i].from / 1e3,
				.high = (double)h->buckets[i].to / 1e3,
				.mass = (double)h->buckets[i].count,
			};
	law_from_buckets(&law, buckets, nr);
	worse = law_classify(&law) & LAW_NWU;
	law_free(&law);
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
