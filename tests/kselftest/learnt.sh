#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The learnt timeout: there is none, and no hedge, before enough reads were seen; stalls
# bring one; and it is that of reads of that size: larger ones, of which not enough
# were seen, are never overdue though each takes longer. Needs dm-lag.

. "$(dirname "$0")/common.sh"
need_hedge

legs_brd 2 16
lag_leg 0
lag_leg 1

law() { lag_law 0 "$@"; lag_law 1 "$@"; }

# reads BYTES NUMBER: of 8 threads, then the evaluation
reads()
{
	load read "$DEV" --threads 8 --bs "$1" --count $(($2 / 8)) >/dev/null
	wait_until 15 drained
	message tick
}

hedge_create policy fcfs-lpr timeout_us auto rescue_us 0 sitout_pct 0 \
	budget_pct 100 hedge_depth 64
law bimodal 1000000 100000000 20000
reads 4k 400
check_eq "400 reads: no timeout yet" "$(get tau_us)" 0
check_eq "... and no hedge" "$(get stats/hedged)" 0
reads 4k 1600
check_num "2000 reads, one in fifty stalls: a timeout" "$(get tau_us) > 0"
check_num "... below the stalls" "$(get tau_us) < 100000"
reads 4k 400
hedged=$(get stats/hedged)
check_num "... and hedges" "$hedged > 0"

# Each one longer than that timeout, and no larger than what a memory disk takes in one piece.
law fixed 150000000
reads 96k 400
check_eq "400 large reads: their own timeout, none yet" "$(get stats/hedged)" "$hedged"
check_eq "... so each was sent once" "$(get stats/extra)" "$hedged"
check_accounting "at last"
