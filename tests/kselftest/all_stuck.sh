#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# All legs get stuck at once, with a timeout: nothing can be hedged and nothing
# rescued, the machine lives, and every read ends when the legs go on. Needs dm-lag.

. "$(dirname "$0")/common.sh"
need_hedge

legs_brd 2 16
lag_leg 0
lag_leg 1
lag_law 0 fixed 200000
lag_law 1 fixed 200000
hedge_create rescue_us 50000 timeout_us 2000
fill_legs

stalled() { [ "$(get legs/0/stalled)$(get legs/1/stalled)" = "$1" ]; }

for policy in fcfs-lpr slb slb-arrival coc; do
	for depth in 0 1; do
		what="$policy, depth $depth"
		put policy $policy
		put timeout_us 2000
		put queue_depth $depth
		lag 0 stuck 1
		lag 1 stuck 1
		load read "$DEV" --threads 4 --count 2 >"$TMP/load" &
		load=$!
		check "$what: both legs stall" wait_until 10 stalled 11
		check "$what: a read is waiting" kill -0 $load
		lag 0 stuck 0
		lag 1 stuck 0
		wait $load || :
		check_match "$what: every read ends" "$(<"$TMP/load")" 'reads=8 .*errors=0 .*wrong=0'
		check "$what: both are back" wait_until 10 stalled 00
		check_accounting "$what"
	done
done
