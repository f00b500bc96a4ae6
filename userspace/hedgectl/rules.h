/* SPDX-License-Identifier: GPL-2.0 */
/* rules.c: timeouts from measured latencies, which are in microseconds. Budgets are a share of the reads. */
#ifndef RULES_H
#define RULES_H

#include "hedgectl.h"
#include "law.h"

#define RULE_MIN_SAMPLES 500	/* of all legs: the module learns nothing from fewer either */
#define RULE_LEG_SAMPLES 100	/* a leg with fewer of a size is left out */
#define RULE_VOTES 3
#define RULE_BAND 1.25

enum rule_kind { RULE_LOAD, RULE_PERCENTILE, RULE_KNEE, RULE_QUANTILE };

struct rule {
	enum rule_kind kind;
	double percentile;
};

/* The latencies of a volume: a law for each size class that has enough copies. */
#define RULE_CLASSES 3

struct pool {
	int nr;
	double weight[RULE_CLASSES];	/* of all copies */
	struct law law[RULE_CLASSES];
};

struct rule_votes {
	int count, side;
};

int rule_parse(const char *text, struct rule *rule);
const char *rule_name(const struct rule *rule);
int rules_pool(const struct leg_set *set, int target, struct pool *pool);
double rules_tau(const struct rule *rule, const struct pool *pool, double budget);
double rules_quantile(const struct pool *pool, double tau, double budget, double p);
double rules_hedged(const struct pool *pool, double tau, double budget);
double rules_load(const struct pool *pool, double tau);
void pool_free(struct pool *pool);
bool rules_vote(struct rule_votes *votes, double wanted, double current);

#endif
