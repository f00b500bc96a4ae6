#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A leg that lacks a write is out before that write is acknowledged, and stays out
# over suspend and reload; a write that no live leg has is an error; with
# handle_errors writes are held until the reload, which may be hedgectl replace. Needs dm-lag, hedgectl.

. "$(dirname "$0")/common.sh"
need_hedge
need_program hedgectl
export DM_DISABLE_UDEV=1

block() { head -c 4096 /dev/zero | tr '\0' "$1"; }

# write LETTER BLOCK: writes a block of that letter
write() { block "$1" | dd of="$DEV" bs=4k seek="$2" oflag=direct conv=notrunc iflag=fullblock status=none; }

# reads_as LETTER BLOCK: whether each of some reads finds that letter
reads_as()
{
	local i

	for i in 1 2 3 4 5 6 7 8; do
		dd if="$DEV" bs=4k skip="$2" count=1 iflag=direct status=none |
			cmp -s - <(block "$1") || return 1
	done
}

# Two writes in flight, each of which fails on another leg: block 0 lies on lag 1 of
# leg 1, block 2048 on lag 0 of leg 0, so that each can be made to fail alone.
legs_brd 6 8
size=$(blockdev --getsz /dev/ram0)
dmsetup create lag0 --table "0 $size lag /dev/ram1 0 64 1"
dmsetup create lag1 --table "0 $size lag /dev/ram2 0 64 1"
dmsetup create l0 --table "0 $size linear /dev/ram0 0
$size $size linear /dev/mapper/lag0 0"
dmsetup create l1 --table "0 $size linear /dev/mapper/lag1 0
$size $size linear /dev/ram3 0"
dmsetup create l2 --table "0 $size linear /dev/ram4 0
$size $size linear /dev/ram5 0"
LEGS=(/dev/mapper/l0 /dev/mapper/l1) LENGTH=$((2 * size))
hedge_create policy rnd
lag 0 writes 1
lag 1 writes 1
write O 0
write O 2048
lag 1 stuck 1
{ write N 0 2>/dev/null && echo 0 || echo 1; } >"$TMP/first" &
first=$!
check "a write waits on the other leg" wait_until 10 lag_holds 1 1
lag 0 error 1
check "a write that fails on one leg is acknowledged" write N 2048
check_eq "that leg is out" "$(get legs/0/state) $(get legs/1/state)" "failed in_sync"
check "it is read from the other" reads_as N 2048
lag 1 error 1
lag 1 stuck 0
wait $first
lag 0 error 0
lag 1 error 0
check_fails "a write that only an out leg has is an error" grep -qx 0 "$TMP/first"
check_eq "the last leg stays" "$(get legs/1/state)" in_sync
check "reads go on" reads_as O 0

# A reload and a suspend forget nothing.
table=$(dmsetup table "$NAME")
dmsetup suspend "$NAME"
dmsetup resume "$NAME"
check_eq "after suspend the leg is out" "$(get legs/0/state)" failed
dmsetup load "$NAME" --table "$table"
dmsetup resume "$NAME"
find_sysfs
check_eq "after a reload too" "$(get legs/0/state)" failed
check "and is not read" reads_as N 2048
hedge_remove

# handle_errors: a write that a leg lacks waits for the reload.
lag 0 error 1
hedge_create handle_errors
{ write H 2048 && echo 0 || echo 1; } >"$TMP/held" &
held=$!
check "the write is held" wait_until 5 eval '[ "$(status_field held)" = 1 ]'
check "it has not ended" kill -0 $held
lag 0 error 0
dmsetup load "$NAME" --table "0 $LENGTH linear ${LEGS[1]} 0"
dmsetup suspend --noflush "$NAME"
dmsetup resume "$NAME"
wait $held
check_eq "after the reload it ends" "$(<"$TMP/held")" 0
check "where the new table sends it" reads_as H 2048
dmsetup remove "$NAME"

# hedgectl replace is such a reload.
hedge_create handle_errors
find_sysfs
lag 0 error 1
{ write J 2048 && echo 0 || echo 1; } >"$TMP/held" &
held=$!
check "the write is held" wait_until 5 eval '[ "$(status_field held)" = 1 ]'
check "the leg is replaced" hedgectl replace "$NAME" 0 /dev/mapper/l2
wait $held
check_eq "the write ends" "$(<"$TMP/held")" 0
lag 0 error 0
find_sysfs
check "the new leg is copied to" wait_until 30 eval '[ "$(get legs/0/state)" = in_sync ]'
check "the write is there" reads_as J 2048
hedge_remove
