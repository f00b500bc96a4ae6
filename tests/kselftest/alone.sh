#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Speculation off: a read goes to one leg, zero-copy, and is still counted, timed,
# tried elsewhere when it fails, and seen by status and by a rescue_us that is
# switched on while it is out.

. "$(dirname "$0")/common.sh"
need_hedge

legs_brd 2 16
lag_leg 0
lag_leg 1
lag_law 0 fixed 200000
lag_law 1 fixed 200000
hedge_create copies 1 timeout_us off rescue_us 0
fill_legs

reads_end() { timeout $((120 * SCALE)) load read "$DEV" --verify "$@"; }

# How many read copies the histogram of a leg holds.
recorded()
{
	awk '!/^#/ { n += $2 } END { print n + 0 }' "$SYS/legs/$1/histogram"
}

check "reads end" reads_end --threads 4 --count 200
check_eq "each is one copy" "$(get stats/copies)" "$(get stats/reads)"
check_num "both legs serve" "$(get legs/0/reads) > 0 && $(get legs/1/reads) > 0"
check_eq "each latency is recorded" "$(($(recorded 0) + $(recorded 1)))" "$(get stats/copies)"
check_eq "none is in flight" "$(($(get legs/0/inflight) + $(get legs/1/inflight)))" 0

put legs/0/weight 0	# all go to leg 1
lag 1 error 1
before=$(get stats/retried)
check "with a leg that fails: reads end" reads_end --threads 4 --count 50
check_num "they were retried" "$(get stats/retried) > $before"
lag 1 error 0

lag 1 stuck 1
reads_end --threads 4 --count 1 >"$TMP/caught" &
reader=$!
check "reads are caught" wait_until 10 lag_holds 1 4
check_eq "they count as in flight" "$(get legs/1/inflight)" 4
sleep 1
check_num "status tells the age of the oldest" "$(get legs/1/oldest_us) >= 1000000"
check_eq "without rescue_us: the leg is not stalled" "$(get legs/1/stalled)" 0
put rescue_us 50000
stalled() { [ "$(get legs/1/stalled)" = "$1" ]; }
check "with it: the leg is stalled" wait_until 10 stalled 1
lag 1 stuck 0
wait $reader || not_ok "none fails" "$(<"$TMP/caught")"
check "the leg is back again" wait_until 10 stalled 0
check_eq "none is in flight any more" "$(($(get legs/0/inflight) + $(get legs/1/inflight)))" 0
check_accounting "at the end"
