#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Requests with RWF_NOWAIT end in success or EAGAIN, never sleep and never fail
# otherwise, also with a leg stuck or out of tags; polled reads (IORING_SETUP_IOPOLL)
# complete on legs with poll queues. Needs null_blk and dm-lag.

. "$(dirname "$0")/common.sh"
need_hedge

legs_brd 2 16
hedge_create
fill_legs
for policy in rnd coc slb fcfs-lpr; do
	put policy $policy
	put timeout_us 500
	check "nowait reads on memory, $policy" uring nowait "$DEV" --count "$(scaled 1000)"
	check_num "nowait reads on memory, $policy: done" "$(field "done" "$OUTPUT") > 0"
	check "nowait writes on memory, $policy" \
		uring nowait "$DEV" --count "$(scaled 1000)" --writes
	check_num "nowait writes on memory, $policy: done" "$(field "done" "$OUTPUT") > 0"
done
check_accounting "memory"
check "legs agree after nowait writes" legs_equal
hedge_remove

# A leg that is stuck: who may not sleep goes on with the other.
lag_leg 1
hedge_create sitout_pct 0
put legs/0/weight 0	# until the other one is stalled
for policy in rnd coc slb fcfs-lpr; do
	put policy $policy
	[ "$(get timeout_us)" = off ] || put timeout_us 500
	lag 1 stuck 1
	check "nowait reads beside a stuck leg, $policy" \
		timeout $((60 * SCALE)) uring nowait "$DEV" --count "$(scaled 200)"
	check_num "nowait reads beside a stuck leg, $policy: done" "$(field "done" "$OUTPUT") > 0"
	check_num "nowait reads beside a stuck leg, $policy: some were caught" \
		"$(get legs/1/inflight) + $(get legs/1/queued) > 0"
	lag 1 stuck 0
	check_accounting "beside a stuck leg, $policy"
done
hedge_remove
dmsetup remove lag1
legs_brd 2 16

# A block that a leg cannot read is rewritten, whoever may not wait for it. io_uring asks so at
# first for every read, so there may be no others.
lag_leg 0
for copies in "copies of their own" "no other copies"; do
	hedge_create policy rnd
	[ "$copies" != "no other copies" ] || put rescue_us 0
	fill_legs
	lag 0 error 1
	check "nowait reads find another leg, $copies" uring nowait "$DEV" --count "$(scaled 200)"
	check_num "nowait reads find another leg, $copies: done" "$(field "done" "$OUTPUT") > 0"
	lag 0 error 0
	check "the blocks are rewritten, $copies" \
		wait_until 30 eval '[ "$(get stats/repaired)" -gt 0 ]'
	check_accounting "$copies"
	dmsetup suspend "$NAME"
	check "the legs are equal, $copies" legs_equal
	dmsetup resume "$NAME"
	hedge_remove
done
remove_all

# One tag in each leg: asking for a second one would sleep.
LEGS=() LENGTH=''
for i in 0 1; do
	null_leg memory_backed=1 size=16 hw_queue_depth=1 submit_queues=1 irqmode=2 completion_nsec=20000000
done
load check "${LEGS[0]}" >/dev/null || :
hedge_create policy coc
dd if="$DEV" of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null
check "the legs are filled" timeout $((60 * SCALE)) load fill "$DEV"
for policy in coc slb; do
	put policy $policy
	check "nowait reads without tags, $policy" \
		timeout $((60 * SCALE)) uring nowait "$DEV" --count "$(scaled 200)" --depth 8
	check_num "nowait reads without tags, $policy: submission does not sleep" \
		"$(field sleeps "$OUTPUT") == 0"
done
check "nowait writes without tags" \
	timeout $((60 * SCALE)) uring nowait "$DEV" --count "$(scaled 200)" --depth 8 --writes
check_num "nowait writes without tags: done" "$(field "done" "$OUTPUT") > 0"
check_num "nowait writes without tags: submission does not sleep" \
	"$(field sleeps "$OUTPUT") == 0"
check_accounting "without tags"
check "legs agree after writes without tags" legs_equal
hedge_remove
null_remove

LEGS=() LENGTH=''
for i in 0 1; do
	null_leg memory_backed=1 size=16 submit_queues=1 poll_queues=1
done
hedge_create
fill_legs
check "control: polled reads on a leg" uring poll "${LEGS[0]}" --count 100
check_eq "the device polls its legs" "$(<"${SYS%/*}/queue/io_poll")" 1
polled_reads()
{
	check "polled reads, $1" timeout $((30 * SCALE)) \
		uring poll "$DEV" --count "$(scaled 1000)"
	check_eq "polled reads, $1: all done" "$(field "done" "$OUTPUT")" "$(scaled 1000)"
}
for policy in rnd coc slb fcfs-lpr; do
	put policy $policy
	put timeout_us 300
	polled_reads $policy
done
# Without a copy of their own.
put policy rnd
put rescue_us 0
polled_reads direct
check_accounting "polled"
