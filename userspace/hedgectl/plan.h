/* SPDX-License-Identifier: GPL-2.0 */
/* plan.c and fio.c: what each policy would give, simulated for a law in microseconds. */
#ifndef PLAN_H
#define PLAN_H

#include "hedgectl.h"
#include "law.h"

struct plan_config {
	const struct law *law;
	int legs;
	unsigned int slots;	/* reads that a leg serves at a time */
	double load;		/* of all slots, without extra copies */
	uint64_t jobs;
};

struct plan_row {
	const char *policy;
	double tau;		/* infinite: none */
	bool stable;
	double mean, p50, p99, p999;	/* microseconds */
	double extra;		/* extra copies, a share of the reads */
	double max_load;	/* up to which it is stable */
};

size_t plan_policies(void);
void plan_simulate(const struct plan_config *config, size_t policy, struct plan_row *rows);
int plan_recommend(const struct plan_row *rows, size_t nr, double load);

int fio_parse(const char *text, struct law *law);

#endif
