#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A read that begins after a write was acknowledged sees it: several readers and
# writers on few sectors, one leg slow for reads and writes, each policy. Needs
# dm-lag.
# limit: 1000

. "$(dirname "$0")/common.sh"
need_hedge

legs_brd 3 4
lag_leg 1
lag_law 1 bimodal 300000 4000000 100000
lag 1 writes 1

# The checker at work: a leg that gets no writes is read.
check_fails "control: stale reads are seen" \
	linear "${LEGS[0]}" --seconds 1 --read-from "${LEGS[2]}"
check_match "control: as stale" "$OUTPUT" 'stale=[1-9]'

overlapped=0
hedge_create
for policy in $(presets); do
	for depth in 0 2; do
		its_turn || continue
		put policy "$policy"
		put queue_depth $depth
		put timeout_us 500
		put budget_pct 100
		check "$policy, queue_depth $depth: every read is new enough" \
			linear "$DEV" --seconds $((2 * SCALE)) --ops "$(scaled 2000)"
		check_num "$policy, queue_depth $depth: reads met writes" \
			"$(field overlapped "$OUTPUT") > 20"
		overlapped=$((overlapped + $(field overlapped "$OUTPUT")))
		check "$policy, queue_depth $depth: legs agree afterwards" legs_equal
	done
done
check_num "thousands of reads met writes" "$overlapped > $(scaled 5000)"
check_accounting "all policies"
