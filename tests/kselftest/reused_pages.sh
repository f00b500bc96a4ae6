#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A copy that lost must not write into memory that its reader already uses again.
# A program fills its buffer the moment a read returns and finds the pattern intact
# later, while losers are out on a leg that is first slow, then stuck, and after
# they have ended. Needs dm-lag.
# limit: 1000

. "$(dirname "$0")/common.sh"
need_hedge

# start PROGRAM ARG...: in the background, with an input that go() writes to.
start()
{
	rm -f "$TMP"/in "$TMP"/out
	mkfifo "$TMP/in"
	"$@" <"$TMP/in" >"$TMP/out" 2>&1 &
	reader=$!
	exec 4>"$TMP/in"
}

paused() { grep -q '^paused' "$TMP/out"; }

next() { echo >&4; }

# Lets it go on to its end; its exit status.
go()
{
	next
	exec 4>&-
	wait $reader
}

legs_brd 2 16
lag_leg 0
lag_leg 1
load fill /dev/mapper/lag0 >/dev/null
load fill /dev/mapper/lag1 >/dev/null

# The checker at work: two reads into one buffer, as a hedge without pages of
# its own would do it.
lag 1 stuck 1
start reused /dev/mapper/lag0 --count 100 --pause --rival /dev/mapper/lag1
check "control: the reads end" wait_until 30 paused
lag 1 stuck 0
if go; then not_ok "control: a late copy is seen"; else ok "control: a late copy is seen"; fi
check_num "control: in the pattern" "$(field corrupted "$(<"$TMP/out")") > 0"

for policy in slb coc fcfs-lpr; do
	lag_law 0 bimodal 200000 10000000 20000
	lag_law 1 bimodal 200000 10000000 50000
	hedge_create policy $policy timeout_us 1000 budget_pct 100 rescue_us 50000

	# The program reads until a copy is caught, however slow the machine is.
	start reused "$DEV" --count "$(scaled 800)" --go-on --pause
	check "$policy: there are losers" wait_until 30 eval '(($(get stats/wasted) > 20))'
	lag 1 stuck 1
	check "$policy: a copy is caught on the stuck leg" wait_until 30 lag_holds 1 1
	next
	check "$policy: the reads end while a leg is stuck" wait_until 60 paused
	check_num "$policy: losers are out on it" "$(get legs/1/inflight) > 0"
	lag 1 stuck 0
	check "$policy: the losers end" wait_until 15 drained
	if go; then ok "$policy: every pattern is intact"
	else not_ok "$policy: every pattern is intact" "$(<"$TMP/out")"; fi
	check_num "$policy: all reads were made" \
		"$(field reads "$(<"$TMP/out")") >= $(($(scaled 800) * 4))"
	check_accounting "$policy"
	hedge_remove
done
