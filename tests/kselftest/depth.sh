#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The learnt hedge_depth: a leg that serves one read at a time is idle with none in
# flight only, one that serves many with as many in flight as it was seen to serve as
# fast as one alone. Needs dm-lag.

. "$(dirname "$0")/common.sh"
need_hedge

busy=0 place=0

# reads THREADS NUMBER: all of them on leg 1
reads() { load read "$DEV" --threads "$1" --count $(($2 / $1)) >/dev/null; }

# to_leg LEG: first copies go there only
to_leg() { put "legs/$((1 - $1))/weight" 0; put "legs/$1/weight" 100; }

one_read()
{
	place=$((place + 2))
	dd if="$DEV" of=/dev/null bs=4k count=1 skip=$place iflag=direct status=none &
}

leg_has() { [ "$(get "legs/$1/inflight")" = "$2" ]; }
hedged() { [ "$(get stats/hedged)" = "$1" ]; }

# occupy NUMBER: so many reads more on leg 1, which nobody hedges
occupy()
{
	local i

	to_leg 1
	put timeout_us off
	for ((i = 0; i < $1; i++)); do one_read; done
	busy=$((busy + $1))
	check "$what: leg 1 has $busy" wait_until 10 leg_has 1 $busy
}

# overdue: a read on leg 0, which does not answer
overdue()
{
	to_leg 0
	put timeout_us 50000
	one_read
}

# learn SERVERS NANOSECONDS THREADS:READS...: what leg 1 is, with so many reads in flight. What was
# measured fades by a sixteenth a second, so what is to last comes last.
learn()
{
	local servers=$1 ns=$2 which

	shift 2
	legs_brd 2 16
	lag_leg 0
	lag_leg 1 "$servers"
	hedge_create policy fcfs-lpr timeout_us off rescue_us 0 sitout_pct 0 budget_pct 100 max_hedges 1
	check_eq "$what: hedge_depth is learnt" "$(get hedge_depth)" 0
	to_leg 1
	lag_law 1 fixed "$ns"
	for which; do reads "${which%:*}" "${which#*:}"; done
	message tick
	check "$what: all were read" wait_until 10 drained
	lag 0 stuck 1
	lag 1 stuck 1
	busy=0
}

finish_legs()
{
	lag 0 stuck 0
	lag 1 stuck 0
	wait
	check_accounting "$what"
	hedge_remove
	dmsetup remove lag0
	dmsetup remove lag1
}

what="one at a time"
learn 1 10000000 8:320 1:250
occupy 1
overdue
sleep 0.5
check "$what: no hedge where a read is in flight" hedged 0
lag 1 stuck 0
check "$what: a hedge when there is none" wait_until 10 hedged 1
finish_legs

what="many at a time"
# So long that what the processor takes for eight of them is little.
learn 16 $((20000000 * (SCALE + 1))) 2:250 8:1280
occupy 3
overdue
check "$what: a hedge where three are in flight" wait_until 10 hedged 1
check "$what: ... which they still are" leg_has 1 4
busy=4
occupy 4
overdue
sleep 0.5
check "$what: no hedge beside more than was seen" hedged 1
lag 1 stuck 0
check "$what: but when they have ended" wait_until 10 hedged 2
finish_legs
