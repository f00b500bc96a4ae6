#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The clock: a timeout never comes before tau, and when reads end in time there is at
# most one timer interrupt for each tau and CPU, however many they are; a read that does
# not may take one more. With EXACT=1 (a guest whose clock counts instructions) these are
# far fewer than reads, hedges are less than 50 us late, the worker that submits
# them included, and a read that is caught on a stuck leg takes no longer than the time
# until it is rescued or hedged and that of the other leg. Needs dm-lag and tracefs.
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
device() { dmsetup info -c --noheadings --separator , -o major,minor "$1"; }
trace_start dm_hedge/hedge_read dm_hedge/hedge_start dm_hedge/hedge_timeout block/block_bio_queue
echo mono >$TRACE/trace_clock	# that of hedge_read's at_ns
load read "$DEV" --threads 1 --count 30 >/dev/null
trace_stop
echo local >$TRACE/trace_clock
# How many microseconds after tau each timeout and each hedge came, and when that reached its leg. The events
# carry the nanoseconds since the read arrived; its first copy may have started later.
awk -v tau=2000 -v leg0="$(device lag0)" -v leg1="$(device lag1)" '
	function value(name) {
		return match($0, name "=[0-9a-f]+") ? \
			substr($0, RSTART + length(name) + 1, RLENGTH - length(name) - 1) : ""
	}
	function at_us() { return match($0, / [0-9]+\.[0-9]+: /) ? substr($0, RSTART + 1) * 1e6 : 0 }
	/hedge_read:/ { arrival[value(" id")] = value("at_ns") / 1000 }
	/hedge_start:.* kind=0/ { start[value(" id")] = value("since_arrival_ns") / 1000 }
	/hedge_timeout:/ { print "timeout", value(" ns") / 1000 - start[value(" id")] - tau }
	/hedge_start:.* kind=1/ {
		hedged = value(" id")
		print "hedge", value("since_arrival_ns") / 1000 - start[hedged] - tau
	}
	/block_bio_queue:/ && hedged && (index($0, " " leg0 " R") || index($0, " " leg1 " R")) {
		print "submitted", at_us() - arrival[hedged] - start[hedged] - tau
		hedged = ""
	}
' "$TMP/trace" >"$TMP/late"
check_num "hedges were seen" "$(grep -c hedge "$TMP/late") >= 20"
early=$(awk '$2 < 0' "$TMP/late" | wc -l)
check_eq "no timeout is early" "$early" 0
check_num "they reached their legs" "$(grep -c submitted "$TMP/late") >= 20"
early=$(awk '/submitted/ && $2 < -1' "$TMP/late" | wc -l)
check_eq "not before they were sent" "$early" 0
worst=$(awk '/submitted/ && $2 > w { w = $2 } END { print int(w + 1) }' "$TMP/late")
echo "# the latest hedge was on its leg $worst us after tau"
[ "$EXACT" = 0 ] || check_num "hedges are less than 50 us late" "$worst < 50"

# --- a read that is caught on a stuck leg ----------------------------------------------------

[ "$EXACT" = 1 ] || exit 0
SERVICE=200 SLACK=1500	# microseconds: of the leg, and of the processor

# caught BOUND: by a read whose first copy goes to the stuck leg, if the policy has it so
caught()
{
	local what="$policy, depth $depth, from $from" took

	lag 1 stuck 1
	took=$(field max_us "$(load read "$DEV" --threads 1 --count 1 --seed $RANDOM)")
	(($(get legs/1/inflight) + $(get legs/1/queued) == 0)) || on_stuck=$((on_stuck + 1))
	check_num "$what: a read that is caught ends in time" "$took < $1 + $SERVICE + $SLACK"
	lag 1 stuck 0
	check "$what: all copies end" wait_until 5 drained
	message tick
	check "$what: the leg is back" wait_until 5 eval '[ "$(get legs/1/stalled)" = 0 ]'
}

hedge_remove
lag_law 0 fixed $((SERVICE * 1000))
lag_law 1 fixed $((SERVICE * 1000))
hedge_create rescue_us 50000 sitout_pct 0 budget_pct 100
put legs/0/weight 0
on_stuck=0
for policy in $(presets); do
	put policy "$policy"
	bound=50000 froms=start
	if [ "$(get timeout_us)" != off ]; then
		put timeout_us 2000
		bound=2000 froms='start arrival'
	fi
	for depth in 0 1; do
		for from in $froms; do
			put queue_depth $depth
			put timeout_from $from
			caught $bound
		done
	done
done
check_num "most reads were caught" "$on_stuck >= 30"
