#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A leg that is slow for good gets no reads for a while, and is tried again; legs that are
# all slow go on, and so does the last one; a leg that sits serves when the others
# have failed or are stuck. An evaluation is made by a message, so that no test waits for
# the clock; the clock makes more of them. Needs dm-lag.
# limit: 300
# again: the clock evaluates as well, at times of its own

. "$(dirname "$0")/common.sh"
need_hedge

FAST=2000000 SLOW=$((60000000 * SCALE))	# what an emulated machine adds is little to the latter

legs_brd 3 16
for i in 0 1 2; do
	lag_leg $i
done

reads() { load read "$DEV" --threads 16 --count "${1:-12}" >/dev/null; }
sitting() { [ "$(get legs/"$1"/sitting)" = "$2" ]; }
mask() { printf '%d' "0x$(status_field sitting)"; }

# evaluate N: each with enough reads before it
evaluate()
{
	local n

	for ((n = 0; n < $1; n++)); do
		reads
		message tick
	done
}

ticks() { local n; for ((n = 0; n < $1; n++)); do message tick; done; }

# begin LAW...: a fresh device, one law in ns for each leg
begin()
{
	local i=0 law

	for law in "$@"; do
		lag_law $i fixed "$law"
		i=$((i + 1))
	done
	hedge_create policy rnd rescue_us 10000000 sitout_s 30
}

# One of three: goes, is probed, returns, and goes again for longer.
begin $FAST $SLOW $FAST
reads 6		# some 32 of the slow leg: never enough for three evaluations
message tick
check_eq "one evaluation is not enough" "$(mask)" 0
log_mark
evaluate 4
check_eq "the slow one of three sits" "$(mask)" 2
check_eq "legs/1/sitting" "$(get legs/1/sitting)" 1
check_eq "legs/0/sitting" "$(get legs/0/sitting)" 0
before=$(get legs/1/reads) start=$SECONDS
reads 24
check_num "it gets no more than a probing read a second" \
	"$(get legs/1/reads) - $before <= $SECONDS - $start + 1"
sleep 1.1
before=$(get legs/1/reads) rescued=$(get stats/rescued)
reads 5
sleep 1.1
reads 5
check_num "but it gets that" "$(get legs/1/reads) - $before >= 1"
check_num "which is the second copy of a read" "$(get stats/rescued) - $rescued >= 1"
ticks 30
check "its time passes" sitting 1 0
sits_again() { local n; for n in 1 2 3 4 5; do evaluate 1; ! sitting 1 1 || return 0; done; false; }
check "still slow, it sits again" sits_again
# A second passes by itself now and then.
start=$SECONDS
for ((n = 0; n + SECONDS - start <= 35; n++)); do message tick; done
check "for longer" sitting 1 1
lag_law 1 fixed $FAST
ticks 30
check "and returns" sitting 1 0
evaluate 6
check_eq "fast by now, it stays" "$(mask)" 0
before=$(get legs/1/reads)
reads 40
check_num "and is read" "$(get legs/1/reads) - $before > 10"
hedge_remove

# All of them.
begin $FAST $FAST $FAST
evaluate 2
for i in 0 1 2; do
	lag_law $i fixed $SLOW
done
evaluate 8
check_eq "all slow: none sits" "$(mask)" 0
put sitout_pct 0
hedge_remove

# Two legs, and then the other becomes slower.
all=("${LEGS[@]}")
LEGS=("${all[@]:0:2}")
begin $SLOW $FAST
evaluate 5
check_eq "the slow one of two sits" "$(mask)" 1
lag_law 1 fixed $((2 * SLOW))
evaluate 4
check_num "the last one never" "$(mask) != 2 && $(mask) != 3"
lag_law 1 fixed $FAST
put sitout_pct 0
message tick
check_eq "off: nobody sits" "$(mask)" 0

# Who sits serves when the other fails, for each read and for good.
put sitout_pct 300
put sitout_s 3600
evaluate 5
check_eq "it sits again" "$(mask)" 1
lag 1 error 1
check "the other fails: reads end" load read "$DEV" --threads 4 --count 20
check_match "without an error" "$OUTPUT" 'errors=0'
lag 1 error 0
put rescue_us 20000
lag 1 stuck 1
check "the other is stuck: reads end" timeout $((20 * SCALE)) \
	load read "$DEV" --threads 4 --count 20
check_match "without an error, either" "$OUTPUT" 'errors=0'
message tick
check_eq "alone, it does not sit" "$(mask)" 0
lag 1 stuck 0
check_accounting "at last"
check_match "status shows who sits" "$(dmsetup status "$NAME")" ' sitting [0-9a-f]+ stalled '

# Weight 0 is a user's word, and no reason to sit.
hedge_remove
begin $FAST $SLOW
put legs/0/weight 0
evaluate 6
check_eq "the only leg that is wanted does not sit" "$(mask)" 0

# Where reads never start when they arrive, since others wait, it is probed too.
put legs/0/weight 100
put sitout_s 3600
evaluate 5
check_eq "it sits while others wait" "$(mask)" 2
put queue_depth 1
load read "$DEV" --threads 16 >"$TMP/load" &
load=$!
sleep 1.5
before=$(get legs/1/reads)
probed() { (($(get legs/1/reads) > before)); }
check "and gets a probing read" wait_until 10 probed
kill $load
wait $load || :
check_accounting "while others wait"
