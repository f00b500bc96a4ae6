#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# One leg gets stuck: reads that are caught on it end through the other leg, in every
# policy, with and without slots, the clock from start and from arrival; later reads
# avoid it; oldest_us grows; writes wait; bounce memory stays in its bounds; and
# when the leg goes on, every copy is accounted for. Needs dm-lag.
# limit: 1500

. "$(dirname "$0")/common.sh"
need_hedge

legs_brd 2 16
lag_leg 0
lag_leg 1
lag_law 0 fixed 200000
lag_law 1 fixed 200000
# A leg that sits out for having been stuck would get no copies.
hedge_create rescue_us 50000 sitout_pct 0
fill_legs

# Ends with all reads done within the time, or fails.
reads_end() { timeout $((120 * SCALE)) load read "$DEV" --verify "$@"; }

on_leg1() { echo $(($(get legs/1/inflight) + $(get legs/1/queued))); }

one_case()
{
	local what="$policy, depth $depth, from $from" before oldest

	put policy "$policy"
	put queue_depth "$depth"
	put timeout_from "$from"
	[ "$(get timeout_us)" = off ] || put timeout_us 2000

	load read "$DEV" --threads 2 --count 20 >/dev/null	# both legs known
	put legs/0/weight 0	# a policy that measures might keep away from the other
	lag 1 stuck 1
	check "$what: reads end" reads_end --threads 8 --count 12
	check_eq "$what: without an error" "$(field errors "$OUTPUT")" 0
	put legs/0/weight 100
	check_num "$what: some were caught" "$(on_leg1) > 0"
	oldest=$(get legs/1/oldest_us)
	check "$what: the leg is stalled" wait_until 3 stalled 1
	check_num "$what: oldest_us grows" "$(get legs/1/oldest_us) > $oldest"
	before=$(on_leg1)
	start=$SECONDS
	check "$what: later reads end" reads_end --threads 4 --count 40
	# Each of the 4 threads may meet a moment in which the other seems stalled, too.
	check_num "$what: they avoid the leg" \
		"$(on_leg1) - $before <= $SECONDS - $start + 10"
	lag 1 stuck 0
	check_accounting "$what"
	check_num "$what: all but one copy of each read lost" \
		"$(get stats/wasted) == $(get stats/copies) - $(get stats/reads)"
	check "$what: the leg is back" wait_until 5 stalled 0
}

stalled() { [ "$(get legs/1/stalled)" = "$1" ]; }

for policy in $(presets); do
	put policy "$policy"
	froms=start		# without a timeout there is nothing to start
	[ "$(get timeout_us)" = off ] || froms='start arrival'
	for depth in 0 1; do
		for from in $froms; do
			! its_turn || one_case
		done
	done
done
check_num "reads were rescued" "$(get stats/rescued) > 0"

# Switched on while reads are already caught: they are rescued as any other.
put policy slb
put queue_depth 0
put timeout_from start
put timeout_us 100000000
put rescue_us 0
put legs/0/weight 0	# all go to leg 1
lag 1 stuck 1
reads_end --threads 8 --count 1 >"$TMP/caught" &
reader=$!
check "without rescue_us: reads are caught" wait_until 10 lag_holds 1 8
check_eq "without rescue_us: the leg is not stalled" "$(get legs/1/stalled)" 0
before=$(get stats/rescued)
put rescue_us 50000
check "with it: they end" wait_until 10 eval "! kill -0 $reader 2>/dev/null"
wait $reader || not_ok "with it: none fails" "$(<"$TMP/caught")"
check_num "with it: all are rescued" "$(get stats/rescued) - $before == 8"
check "with it: the leg is stalled" stalled 1
lag 1 stuck 0
put legs/0/weight 100
check_accounting "rescue_us switched on"
check "the leg is back again" wait_until 5 stalled 0

# Writes wait for the leg, reads do not.
put policy fcfs-lpr
lag 1 writes 1
lag 1 stuck 1
load write "$DEV" --threads 1 --count 1 >"$TMP/write" &
writer=$!
check "a write is on the stuck leg" wait_until 10 lag_holds 1 1
check "reads do not wait for the write" reads_end --threads 4 --count 20
check "the write waits for that leg" kill -0 $writer
lag 1 stuck 0
wait $writer
check_match "the write ends without an error" "$(<"$TMP/write")" 'writes=1 errors=0'
lag 1 writes 0

# Memory: copies on the stuck leg hold more than is then allowed.
put policy coc
put queue_depth 0
put rescue_us 0	# nobody avoids the leg while the reads are sent
lag 1 stuck 1
reads_end --threads 48 --count 1 --bs 64k >/dev/null
check_num "copies are out" "$(get legs/1/inflight) >= 17"
put rescue_us 1000000	# direct reads are not rescued: the good leg must not seem stalled
check "they stall the leg" wait_until 10 stalled 1
put bounce_mb 1
before=$(get legs/1/inflight) unhedged=$(get stats/unhedged_memory)
start=$SECONDS
check "no memory for copies: reads end" reads_end --threads 4 --count 50 --bs 64k
check_num "no memory for copies: they are not copied" \
	"$(get stats/unhedged_memory) > $unhedged"
check_num "no memory for copies: they go to the good leg" \
	"$(get legs/1/inflight) - $before <= $SECONDS - $start + 10"
lag 1 stuck 0
put bounce_mb 32
check_accounting "after the shortage"
check_num "oldest_us is small again" "$(get legs/1/oldest_us) < 50000"
