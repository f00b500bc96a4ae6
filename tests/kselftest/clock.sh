#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The clock: a timeout never comes before tau, and when reads end in time there is at
# most one timer interrupt for each tau and CPU, however many they are; a read that does
# not may take one more. With EXACT=1 (a guest whose clock counts instructions) these are
# far fewer than reads, and hedges are less than 50 us late, the worker that submits
# them included. Needs dm-lag and tracefs.
# again: a guest that is held up sees timers late

. "$(dirname "$0")/common.sh"
need_hedge

EXACT=${EXACT:-0}

legs_brd 2 8
lag_leg 0
lag_leg 1
hedge_create policy slb rescue_us 0 budget_pct 100

# Reads that end long before tau.
lag_law 0 fixed 100000
lag_law 1 fixed 100000
for tau in 5000 50000; do
	put timeout_us $tau
	trace_start timer/hrtimer_expire_entry dm_hedge/hedge_timeout
	begin=$(now_us)
	load read "$DEV" --threads 4 --count "$(scaled 1000)" >/dev/null
	sleep 0.2
	took=$(($(now_us) - begin))
	trace_stop
	fired=$(trace_lines 'function=hedge|\[dm_hedge\]' | wc -l)
	late=$(trace_lines 'hedge_timeout:' | wc -l)
	cpus=$(nproc)
	echo "# $fired interrupts in $took us, $late reads were late"
	check_num "tau $tau us: at most one interrupt for each tau and CPU" \
		"$fired <= $cpus * ($took / $tau + 2) + $late"
	[ "$EXACT" = 0 ] || check_num "tau $tau us: they were fewer than reads" \
		"$fired < $(scaled 4000) / 4"
done

# Reads that are always late: the time from start to timeout and to the hedge.
lag_law 0 fixed 30000000
lag_law 1 fixed 30000000
put timeout_us 2000
trace_start dm_hedge/hedge_start dm_hedge/hedge_timeout dm_hedge/hedge_reissue
load read "$DEV" --threads 1 --count 30 >/dev/null
trace_stop
# How many microseconds after tau each timeout and each hedge came. The events carry
# the nanoseconds since the read arrived; its first copy may have started later.
awk -v tau=2000 '
	function value(name) {
		return match($0, name "=[0-9a-f]+") ? \
			substr($0, RSTART + length(name) + 1, RLENGTH - length(name) - 1) : ""
	}
	/hedge_start:.* kind=0/ { start[value(" id")] = value("since_arrival_ns"); next }
	/hedge_timeout:/ { print "timeout", (value(" ns") - start[value(" id")]) / 1000 - tau }
	/hedge_start:.* kind=1/ { print "hedge", (value("since_arrival_ns") - start[value(" id")]) / 1000 - tau }
' "$TMP/trace" >"$TMP/late"
check_num "hedges were seen" "$(grep -c hedge "$TMP/late") >= 20"
early=$(awk '$2 < 0' "$TMP/late" | wc -l)
check_eq "no timeout is early" "$early" 0
worst=$(awk '/hedge/ && $2 > w { w = $2 } END { print int(w + 1) }' "$TMP/late")
echo "# the latest hedge was sent $worst us after tau"
[ "$EXACT" = 0 ] || check_num "hedges are less than 50 us late" "$worst < 50"
