#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The check: finds each block that differs, no other, under writes too; rewrites from
# the leg that is named; stops for suspend and goes on after. hedgectl check says which
# legs were not compared, and that a reload drops the check. Needs hedgectl, dm-lag, fio.
# again: it is to be caught in the middle of a comparison

. "$(dirname "$0")/common.sh"
need_hedge
need_program hedgectl
need_program fio

# spoil LEG BLOCK...: other data behind the volume's back
spoil()
{
	local leg=$1 block

	shift
	for block; do
		dd if=/dev/urandom of="$leg" bs=4k seek="$block" count=1 oflag=direct conv=notrunc status=none
	done
}

through() { [ "$(get check_done)" = "$REGIONS/$REGIONS" ]; }

# check_finds WORD...: the number of mismatches of a check
checked()
{
	message reset
	message check "$@"
	wait_until 60 through
	get stats/mismatches
}

legs_brd 3 16
lag_leg 1
hedge_create
REGIONS=32
fill_legs
check_eq "before the first check" "$(get check_done)" "0/$REGIONS"
check_eq "equal legs" "$(checked)" 0
spoil "${LEGS[1]}" 5 1000 4095
spoil "${LEGS[2]}" 5 2000
check_eq "four blocks differ" "$(checked)" 4
check_eq "and still do" "$(checked)" 4
check_fails "there is no leg 3" message check repair 3
check_fails "another word" message check mend 0
check_eq "they are found when they are repaired" "$(checked repair 0)" 4
check "the legs are equal" legs_equal
check_eq "then none differs" "$(checked)" 0
check "what is read is right" load read "$DEV" --threads 2 --count 100 --verify

# Of other data each time, and leg 1 gets it later than the others: most of the time they differ.
lag 1 writes 1
lag_law 1 fixed 3000000
fio --name=writes --filename="$DEV" --direct=1 --ioengine=libaio --iodepth=16 --rw=randwrite --bs=4k \
	--refill_buffers --norandommap --time_based --runtime=3600 >"$TMP/fio" 2>&1 &
writer=$!
written() { [ "$(dmsetup status lag1 | cut -d" " -f4)" -gt $((before + 100)) ]; }
for i in 1 2; do
	before=$(dmsetup status lag1 | cut -d" " -f4)
	check "writes go on" wait_until 30 written
	check_eq "under writes none seems to differ" "$(checked)" 0
done
kill $writer
wait $writer || :
lag_law 1 off
lag 1 writes 0
check "the legs are equal" legs_equal

# resync_throttle is shared by resync and check
throttle=/sys/module/dm_hedge/parameters/resync_throttle
check "the throttle can be set" eval 'echo 1 >$throttle'
message check
check_fails "one check at a time" message check
in_the_middle() { [[ $(get check_done) != "$REGIONS/"* ]]; }
served() { dmsetup status lag1 | cut -d" " -f4; }
check "it is in the middle" in_the_middle
check "suspend" dmsetup suspend "$NAME"
before=$(served)
check_fails "no check begins while suspended" message check
sleep 2
check_eq "nothing is compared while suspended" "$(served)" "$before"
check "resume" dmsetup resume "$NAME"
check "it is in the middle still" in_the_middle
check "the throttle can be set" eval 'echo 100 >$throttle'
check "the check goes on to its end" wait_until 60 through
message fail 1
check "with a leg out" wait_until 10 eval '[ "$(get legs/1/state)" = failed ]'
load write "$DEV" --threads 2 --count "$(scaled 100)" >/dev/null
check_eq "the others are compared" "$(checked)" 0
check_fails "it is no source" message check repair 1

# by hedgectl, with the leg out and without
check_fails "hedgectl check with a leg out" hedgectl check "$NAME"
check_match "hedgectl check with a leg out: it is named" "$OUTPUT" 'leg 1 .* was not compared throughout'
message reinstate 1
check "the leg is back" wait_until 60 eval '[ "$(get legs/1/state)" = in_sync ]'
check "hedgectl check" hedgectl check "$NAME"
spoil "${LEGS[1]}" 5
check_fails "hedgectl check of legs that differ" hedgectl check "$NAME"
check_fails "hedgectl check --repair without a terminal" hedgectl check "$NAME" --repair 0 </dev/null
check "hedgectl check --repair" hedgectl check "$NAME" --repair 0 --force
check_match "hedgectl check --repair: what it did" "$OUTPUT" '1 blocks of 4 KiB differed, and were rewritten'
check "hedgectl check --repair: the legs are equal" legs_equal
check "the throttle can be set" eval 'echo 1 >$throttle'
{ hedgectl check "$NAME" >"$TMP/out" 2>&1 && echo 0 || echo $?; } >"$TMP/status" &
checker=$!
check "hedgectl check is on its way" wait_until 20 eval '[[ $(get check_done) == [1-9]* && $(get check_done) != "$REGIONS/"* ]]'
sleep 0.5
dmsetup load "$NAME" --table "$(dmsetup table "$NAME")"
dmsetup resume "$NAME"
find_sysfs
wait $checker
check_eq "hedgectl check ends at a reload" "$(<"$TMP/status")" 1
check_match "hedgectl check ends at a reload: that is said" "$(<"$TMP/out")" 'the check was dropped'
check "the throttle can be set" eval 'echo 100 >$throttle'
