#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A leg out of tags sleeps in whoever submits to it. It must block its own worker and
# nobody else: reads of the other leg, and the callers' submissions, go on. Needs
# null_blk.
# again: what sleeps, and where, depends on the load of the machine

. "$(dirname "$0")/common.sh"
need_hedge

null_leg memory_backed=0 size=64 hw_queue_depth=1 submit_queues=1 irqmode=2 completion_nsec=50000000
null_leg memory_backed=0 size=64 hw_queue_depth=64 submit_queues=1 irqmode=2 completion_nsec=200000

# Without hedging the submitter does sleep: the measurement can fail.
check "control: reads of the leg alone" submit "${LEGS[0]}" --count 8
check_num "control: make their submitter sleep" "$(field sleeps "$OUTPUT") >= 6"

for policy in slb fcfs-lpr; do
	hedge_create policy "$policy" timeout_us 5000 budget_pct 100 rescue_us 100000
	check "$policy: reads" submit "$DEV" --count "$(scaled 400)"
	check_eq "$policy: nobody slept in its submission" "$(field sleeps "$OUTPUT")" 0
	check_num "$policy: copies went to the leg without tags" "$(get legs/0/reads) > 0"
	# They would not win if they stood behind the worker that sleeps.
	[ "$policy" != slb ] || check_num "$policy: hedges win" "$(get stats/won) > $(get stats/hedged) / 2"
	check_accounting "$policy"
	hedge_remove
done
