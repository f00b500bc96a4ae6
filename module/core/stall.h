/* SPDX-License-Identifier: GPL-2.0 */
/*
 * When a leg counts as stalled.
 *
 * A leg is stalled when a read copy has been out on it longer than rescue_us
 * and it completed no read copy for as long. Each copy out is a witness: the
 * clock asks about the copy's leg when the copy gets that old, and again when
 * the leg's last completion does. So no list of the oldest copies is needed.
 */
#ifndef HEDGE_CORE_STALL_H
#define HEDGE_CORE_STALL_H

#include "types.h"

/**
 * hedge_stall_due - when a copy that is still out proves its leg stalled
 * @started_ns: when the copy was handed to the device
 * @last_done_ns: when the leg last completed a read copy, 0 if never
 * @rescue_ns: the knob rescue_us in nanoseconds
 *
 * Return: the time in nanoseconds from which on, if nothing completes until
 * then, the leg is stalled.
 */
static inline u64 hedge_stall_due(u64 started_ns, u64 last_done_ns,
				  u64 rescue_ns)
{
	return max(started_ns, last_done_ns) + rescue_ns;
}

#endif
