#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The clock: a timeout never comes before tau, and when reads end in time there is at
# most one timer interrupt for each tau and CPU, however many they are. With EXACT=1
# (a guest whose clock counts instructions) hedges are also less than 50 us late,
# the worker that submits them included. Needs dm-lag and tracefs.

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
	trace_start timer/hrtimer_expire_entry
	begin=$(now_us)
	load read "$DEV" --threads 4 --count "$(scaled 1000)" >/dev/null
	sleep 0.2
	took=$(($(now_us) - begin))
	trace_stop
	fired=$(trace_lines 'function=hedge|\[dm_hedge\]' | wc -l)
	cpus=$(nproc)
	check_num "tau $tau us: at most one interrupt for each tau and CPU" \
		"$fired <= $cpus * ($took / $tau + 2)"
	check_num "tau $tau us: they were fewer than reads" "$fired < $(scaled 4000) / 4"
done

# Reads that are always late: the time from start to timeout and to the hedge.
lag_law 0 fixed 30000000
lag_law 1 fixed 30000000
put timeout_us 2000
trace_start dm_hedge/hedge_start dm_hedge/hedge_timeout dm_hedge/hedge_reissue
load read "$DEV" --threads 1 --count 30 >/dev/null
trace_stop
# LATE lists, for each hedge, how many ns after tau it came, by the trace's clock.
awk -v tau=2000 '
	function id(line) { match(line, /id=[0-9]+/); return substr(line, RSTART + 3, RLENGTH - 3) }
	{
		match($0, /[0-9]+\.[0-9]+: hedge_/)
		stamp = substr($0, RSTART, RLENGTH); sub(/:.*/, "", stamp)
		us = stamp * 1e6
	}
	/hedge_start:/ && !(id($0) in start) { start[id($0)] = us; next }
	/hedge_timeout:/ { print "timeout", int(us - start[id($0)] - tau) }
	/hedge_reissue:/ { print "reissue", int(us - start[id($0)] - tau) }
' "$TMP/trace" >"$TMP/late"
check_num "hedges were seen" "$(grep -c reissue "$TMP/late") >= 20"
early=$(awk '$2 < -1' "$TMP/late" | wc -l)
check_eq "no timeout is early" "$early" 0
worst=$(awk '/reissue/ && $2 > w { w = $2 } END { print w + 0 }' "$TMP/late")
echo "# the latest hedge was sent $worst us after tau"
[ "$EXACT" = 0 ] || check_num "hedges are less than 50 us late" "$worst < 50"
