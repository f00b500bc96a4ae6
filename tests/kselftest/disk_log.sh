#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A dirty log on disk: it says that the legs are equal after a clean stop, and not
# while the device runs nor when a leg has failed. Needs dm-lag.

. "$(dirname "$0")/common.sh"
need_hedge

legs_brd 3 8
lag_leg 1
lag 1 writes 1
size=$(blockdev --getsz /dev/ram0)
legs="2 /dev/ram0 0 ${LEGS[1]} 0"

# table WORD... of the log, after its device
table() { echo "0 $size hedge disk $(($# + 1)) /dev/ram2 $* $legs"; }

check "a new log is made" dmsetup create "$NAME" --table "$(table 1024 nosync)"
dd if=/dev/urandom of="$DEV" bs=64k count=16 oflag=direct conv=notrunc status=none
check "suspend and resume" eval 'dmsetup suspend $NAME && dmsetup resume $NAME'
dd if=/dev/ram2 of="$TMP/log" bs=64k count=4 iflag=direct status=none
hedge_remove
check "after a clean stop the log is believed" dmsetup create "$NAME" --table "$(table 1024)"
check_match "all regions are in sync" "$(dmsetup status "$NAME")" ' 16/16 1 AA 3 disk '
hedge_remove

dd if=/dev/ram2 of="$TMP/clean" bs=64k count=4 iflag=direct status=none
dd if="$TMP/log" of=/dev/ram2 bs=64k oflag=direct conv=notrunc status=none
log_mark
check_fails "after a crash it asks for a resync" dmsetup create "$NAME" --table "$(table 1024)"
check_match "and the kernel says so" "$(log_since)" 'would need a resync'
dmsetup remove "$NAME" 2>/dev/null || :

dd if="$TMP/clean" of=/dev/ram2 bs=64k oflag=direct conv=notrunc status=none
check "back to the clean log" dmsetup create "$NAME" --table "$(table 1024)"
lag 1 error 1
check "a write that fails on one leg" dd if=/dev/zero of="$DEV" bs=4k count=1 oflag=direct conv=notrunc
lag 1 error 0
check "suspend and resume with a leg out" eval 'dmsetup suspend $NAME && dmsetup resume $NAME'
check_match "it is still out" "$(dmsetup status "$NAME")" ' 1 AD '
hedge_remove
check_fails "legs that differ ask for a resync" dmsetup create "$NAME" --table "$(table 1024)"
dmsetup remove "$NAME" 2>/dev/null || :
