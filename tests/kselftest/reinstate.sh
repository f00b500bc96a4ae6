#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Legs that go out and come back: by message and after errors, with writes before,
# between and meanwhile; nothing that they lack is read, and at the end all legs are
# equal. What cannot be is refused. A block that a leg cannot read is rewritten there, also
# while it is written to, and if that fails the leg goes out. Going out is an event. Needs
# dm-lag.

. "$(dirname "$0")/common.sh"
need_hedge

# state I S: whether leg I is in that state
state() { [ "$(get "legs/$1/state")" = "$2" ]; }

# back I: it is reinstated, and all is copied
back()
{
	dmsetup message "$NAME" 0 reinstate "$1" &&
		wait_until 60 state "$1" in_sync &&
		[ "$(get "legs/$1/missed")" = 0 ]
}

all_equal()
{
	dmsetup suspend "$NAME"
	legs_equal || return 1
	dmsetup resume "$NAME"
}

legs_brd 3 16
lag_leg 0
lag_leg 1
lag_leg 2
hedge_create
count_versions
fill_legs

check_fails "a leg that is not out cannot come back" dmsetup message "$NAME" 0 reinstate 1
check_fails "there is no leg 3" dmsetup message "$NAME" 0 fail 3
{ dmsetup wait "$NAME" "$(dmsetup info -c --noheadings -o events "$NAME")" && echo ended; } >"$TMP/event" &
event() { grep -q ended "$TMP/event"; }
check "somebody waits for an event" wait_until 10 eval 'grep -q dm_wait_event /proc/[0-9]*/stack'
check_fails "there is none" event
check "leg 1 is taken out" dmsetup message "$NAME" 0 fail 1
check "it goes" wait_until 10 state 1 failed
check "that is an event" wait_until 10 event
check_match "the status says so" "$(health)" '^AUA'
check_fails "it cannot go twice" dmsetup message "$NAME" 0 fail 1
check "reads and writes go on" load write "$DEV" --threads 2 --count "$(scaled 100)"
check_num "it lacks what was written" "$(get legs/1/missed) > 0"
check_fails "it holds what is old" load check "${LEGS[1]}"
before=$(get legs/1/reads)
check "what is read is right" load check "$DEV"
check "what is read is right" load read "$DEV" --threads 2 --count "$(scaled 100)" --verify
check_eq "it is not read" "$(get legs/1/reads)" "$before"
check_num "the other two are" "$(get legs/0/reads) > 0 && $(get legs/2/reads) > 0"
check "the default leg goes too" dmsetup message "$NAME" 0 fail 0
check "it goes" wait_until 10 state 0 failed
check_fails "the last one cannot" dmsetup message "$NAME" 0 fail 2
check "writes go on" load write "$DEV" --threads 2 --count "$(scaled 100)"
check "what is read is right" load check "$DEV"
check_fails "leg 0 holds what is old" load check "${LEGS[0]}"
check "after a reload they are still out" hedge_reload
check_eq "after a reload they are still out" "$(get legs/0/state) $(get legs/1/state)" "failed failed"
check "what is read is right" load check "$DEV"
load mixed "$DEV" --threads 3 --verify >"$TMP/out" 2>&1 &
writer=$!
check "leg 0 comes back under writes" back 0
check "leg 1 comes back under writes" back 1
check "writes went on" kill $writer
done=0
wait $writer || done=$?
check_eq "what was read meanwhile was right" $done 0
check_eq "without errors" "$(field errors "$(<"$TMP/out")")" 0
check_match "all are alive" "$(health)" '^AAA'
check "the legs are equal" all_equal
check "what is read is right" load check "$DEV"

lag 1 writes 1
lag 1 error 1
check "a write that fails takes leg 1 out" load write "$DEV" --threads 1 --count 5
check "it is out" state 1 failed
dmsetup message "$NAME" 0 reinstate 1
check "coming back with the error takes it out again" wait_until 30 eval '[[ $(health) == AS* ]]'
lag 1 error 0
check "without the error it comes back" back 1
check "the legs are equal" all_equal
check "what is read is right" load check "$DEV"

# A write that fails everywhere leaves its regions to be made equal.
for i in 0 1 2; do lag $i writes 1; lag $i error 1; done
load write "$DEV" --threads 1 --count 5 >/dev/null || :
for i in 0 1 2; do lag $i error 0; done
check "after writes that failed everywhere the legs are resynced" \
	wait_until 60 eval 'state 0 in_sync && state 1 in_sync && state 2 in_sync'
check "the legs are equal" all_equal
check "what is read is right" load check "$DEV"
hedge_remove

# Reads of leg 0 fail, writes to it do not.
for i in 0 1 2; do lag $i writes 0; done
hedge_create policy rnd
fill_legs
lag 0 error 1
check "reads find another leg" load read "$DEV" --threads 1 --count "$(scaled 40)" --verify
lag 0 error 0
check "reads find another leg: without errors" [ "$(field errors "$OUTPUT")" = 0 ]
check "the blocks are rewritten" wait_until 30 eval '[ "$(get stats/repaired)" -gt 0 ]'
check "the legs are equal" all_equal
hedge_remove

# A block is written to while it is on its way from leg 1 to leg 0, which could not read it.
LEGS=("${LEGS[@]:0:2}")
RAW=(/dev/ram0 /dev/ram1)
block() { head -c 4096 /dev/zero | tr '\0' "$1"; }
write() { block "$1" | dd of="$DEV" bs=4k seek="$2" oflag=direct conv=notrunc iflag=fullblock status=none; }
holds() { dd if="$1" bs=4k skip="$3" count=1 iflag=direct status=none | cmp -s - <(block "$2"); }
written() { [ -s "$TMP/written" ]; }

# copy_hangs BLOCK [BAD]: a read of it has failed on leg 0, or BAD, and the copy's read hangs in the other
copy_hangs()
{
	local bad=${2:-0} good=$((1 - ${2:-0}))

	lag $bad error 1
	lag_law $good fixed $((2000000000 * SCALE))
	dd if="$DEV" of=/dev/null bs=4k skip="$1" count=1 iflag=direct status=none || return 1
	lag $good stuck 1
	lag_law $good off
	wait_until 5 eval '[ "$(dmsetup status lag'$good' | awk "{ print \$5 + \$6 }")" -gt 0 ]'
}

hedge_create policy rnd
put legs/1/weight 0
write O 100
write O 200
check "a block that leg 0 cannot read is copied to it" copy_hangs 100
{ write N 100 && echo 0 || echo 1; } >"$TMP/written" &
sleep 1
check_fails "a write to it waits" written
check "it is on no leg" eval 'holds ${RAW[0]} O 100 && holds ${RAW[1]} O 100'
check_eq "nothing was rewritten yet" "$(get stats/repaired)" 0
lag 1 stuck 0
check "it ends after the copy" wait_until 20 written
check_eq "without an error" "$(<"$TMP/written")" 0
check_num "the block was rewritten" "$(get stats/repaired) > 0"
check "and then written to, on both legs" eval 'holds ${RAW[0]} N 100 && holds ${RAW[1]} N 100'
lag 0 error 0
check "it reads so" holds "$DEV" N 100
check "the legs are equal" all_equal

# The leg that could not read the block cannot be written to either.
check "another block is copied to leg 0" copy_hangs 200
lag 0 writes 1
lag 1 stuck 0
check "that fails: the leg is out" wait_until 20 state 0 failed
check_match "the status says why" "$(health)" '^SA$'
check "the block is read from the other" holds "$DEV" O 200
lag 0 error 0
lag 0 writes 0
check "the leg comes back" back 0
check "the legs are equal" all_equal
hedge_remove

# The system stops while a block that leg 1 could not read is rewritten there, and half of it is: then its region
# is copied from leg 0, though it was clean before.
image() { dd if="$1" of="$TMP/$2" bs=1M iflag=direct status=none; }
crashed()
{
	local i

	for i in 0 1; do dd if="$TMP/leg$i" of="${RAW[i]}" bs=1M oflag=direct status=none; done
	dd if="$TMP/$1" of=/dev/ram2 bs=1M oflag=direct status=none
	{ head -c 2048 /dev/zero | tr '\0' O; head -c 2048 /dev/urandom; } |
		dd of="${RAW[1]}" bs=4k seek=100 oflag=direct conv=notrunc iflag=fullblock status=none
	LOG='disk 2 /dev/ram2 1024'
	hedge_create
	wait_until 30 eval '[[ $(dmsetup status "$NAME") =~ \ 32/32\ 1\  ]]'
}

dmsetup remove lag2
LOG='disk 3 /dev/ram2 1024 nosync'
hedge_create policy rnd
put legs/0/weight 0
write O 100
dmsetup suspend "$NAME"		# which cleans all
image /dev/ram2 clean
dmsetup resume "$NAME"
find_sysfs
put legs/0/weight 0
check "a block that leg 1 cannot read is copied to it" copy_hangs 100 1
for i in 0 1; do image "${RAW[i]}" leg$i; done
image /dev/ram2 dirty
lag 1 error 0
lag 0 stuck 0
check "the block is rewritten" wait_until 20 eval '[ "$(get stats/repaired)" -gt 0 ]'
hedge_remove
check "control: a clean region is taken as it is" crashed clean
check_fails "control: with half a block on leg 1" holds "${RAW[1]}" O 100
hedge_remove
check "after a crash in the middle the legs get in sync" crashed dirty
check "the block is whole on leg 1" holds "${RAW[1]}" O 100
check "the legs are equal" all_equal
hedge_remove

# Both legs lack regions that the third has, and come back together.
remove_all
legs_brd 3 16
for i in 0 1 2; do lag_leg $i; done
LOG='core 2 128 nosync'
hedge_create
fill_legs
message fail 0
check "leg 0 goes" wait_until 10 state 0 failed
load write "$DEV" --threads 2 --count "$(scaled 100)" >/dev/null
message fail 1
check "leg 1 goes" wait_until 10 state 1 failed
load write "$DEV" --threads 2 --count "$(scaled 100)" >/dev/null
lag_law 2 fixed $((2000000 * SCALE))
for i in 0 1; do message reinstate $i; done
check "both are copied to" wait_until 10 eval 'state 0 resync && state 1 resync'
check "what is read is right meanwhile" load read "$DEV" --threads 2 --count "$(scaled 100)" --verify
lag_law 2 off
check "both are in sync" wait_until 60 eval 'state 0 in_sync && state 1 in_sync'
check "the legs are equal" all_equal
check "what is read is right" load check "$DEV"
