#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What waits for a slot: no read is sent to one leg twice, also where the retry of a
# failed copy meets the shared queue; no copy is forgotten whose slot comes free while it
# is queued; a direct read that waited is accounted for once. Needs dm-lag and tracefs.
# again: reads must meet in a queue

. "$(dirname "$0")/common.sh"
need_hedge

legs_brd 2 16
lag_leg 0
lag_leg 1
lag_law 0 fixed 100000
lag_law 1 fixed 100000

# Each read wants two copies and finds the slots taken, so it stays in the shared
# queue for its second one when the first has failed.
hedge_create policy coc queue shared queue_depth 1
fill_legs
lag 0 error 1
trace_start dm_hedge/hedge_start
check "shared queue, a leg fails: data is right" \
	load read "$DEV" --threads 8 --count "$(scaled 1000)" --verify
check_eq "shared queue, a leg fails: no read does" "$(field errors "$OUTPUT")" 0
trace_stop
check_accounting "shared queue"
check_num "shared queue: copies were retried" "$(get stats/retried) > 0"
check "shared queue: no read goes to a leg twice" awk '
	{ match($0, / id=[0-9a-f]+/); id = substr($0, RSTART, RLENGTH)
	  match($0, / leg=[0-9]+/); leg = substr($0, RSTART, RLENGTH)
	  if (seen[id leg]++) { print; bad = 1 } }
	END { exit bad || NR < 100 }' "$TMP/trace"
hedge_remove

# Two reads at a time: one fails on leg 0 and is to be retried on leg 1 just when the
# other one gives the slot back there. Nothing else happens that could help it.
hedge_create policy jsq queue_depth 1 rescue_us 0
lag_law 0 fixed 300000
lag_law 1 fixed 300000

# A copy is queued and nothing is in flight: for a moment that is right.
forgotten()
{
	local i

	for ((i = 0; i < 20; i++)); do
		[ "$(sum inflight)" = 0 ] && [ "$(sum queued)" != 0 ] || return 1
		sleep 0.05
	done
}

ended() { ! kill -0 $load 2>/dev/null; }

ended_or_forgotten() { ended || forgotten; }

load read "$DEV" --threads 2 --together --count "$(scaled 5000)" >"$TMP/load" &
load=$!
check "two at a time: they go on" wait_until 100 ended_or_forgotten
if ended; then
	ok "two at a time: none is forgotten"
else
	not_ok "two at a time: none is forgotten" "after $(get stats/reads) reads"
	lag 0 error 0
	# Any other read helps.
	while ! ended; do dd if="$DEV" of=/dev/null bs=4k count=1 iflag=direct status=none; done
fi
wait $load || :
check_match "two at a time: no read fails" "$(<"$TMP/load")" 'errors=0'
check_num "two at a time: copies were retried" "$(get stats/retried) > 0"
check_accounting "two at a time"
lag 0 error 0
hedge_remove

# Direct reads that wait are started by a worker while map is still at work.
lag_law 0 off
lag_law 1 off
hedge_create policy rnd queue_depth 1 rescue_us 0
disk=$(dirname "$SYS")
read -r before _ <"$disk/stat"
check "direct reads wait" load read "$DEV" --threads 16 --count "$(scaled 1000)" --verify
read -r after _ <"$disk/stat"
check_eq "direct reads: each was accounted for" $((after - before)) $(($(scaled 1000) * 16))
check_match "direct reads: none is in flight" "$(<"$disk/inflight")" '^ *0 +0$'
check_accounting "direct reads"
