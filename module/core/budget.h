/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The budget of extra copies: a bucket that counts hundredths of a copy.
 *
 * It is empty at the start, gets budget_pct for each read that could be copied,
 * and pays 100 when an extra copy starts. It holds no more than 64 copies, so
 * that a quiet hour does not pay for a storm. As it starts empty and only
 * reads fill it, extra copies never exceed budget_pct * reads / 100.
 *
 * These functions say only what the new level is; how the level is shared (one
 * variable in the simulator, per-CPU pools in the kernel) is the caller's.
 */
#ifndef HEDGE_CORE_BUDGET_H
#define HEDGE_CORE_BUDGET_H

#include "types.h"

#define HEDGE_COPY_COST		100
#define HEDGE_BUDGET_CAP	(64 * HEDGE_COPY_COST)

/**
 * hedge_budget_credit - the level of a bucket after more came in
 * @level: hundredths of a copy in the bucket
 * @amount: hundredths of a copy to add
 */
static inline u32 hedge_budget_credit(u32 level, u32 amount)
{
	return min(level + amount, (u32)HEDGE_BUDGET_CAP);
}

/**
 * hedge_budget_pays - whether a bucket can pay for an extra copy
 * @level: hundredths of a copy in the bucket
 */
static inline bool hedge_budget_pays(u32 level)
{
	return level >= HEDGE_COPY_COST;
}

#endif
