#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A dirty log on disk: it says that the legs are equal after a clean stop; after a
# crash and after a leg has failed the legs are made equal; a table that was resumed in vain
# looks at it again. Needs dm-lag.

. "$(dirname "$0")/common.sh"
need_hedge

legs_brd 5 8
lag_leg 1
lag_leg 4
for i in 1 4; do lag $i writes 1; done
LEGS=("${LEGS[@]:0:2}")
size=$(blockdev --getsz /dev/ram0)
legs="2 /dev/ram0 0 ${LEGS[1]} 0"

in_sync() { [[ $(dmsetup status "$NAME") == *' 16/16 1 AA '* ]]; }

# table WORD... of the log, after its device
table() { echo "0 $size hedge disk $(($# + 1)) /dev/ram2 $* $legs"; }

check "a new log is made" dmsetup create "$NAME" --table "$(table 1024 nosync)"
dd if=/dev/urandom of="$DEV" bs=64k count=16 oflag=direct conv=notrunc status=none
dd if=/dev/ram2 of="$TMP/log" bs=64k count=4 iflag=direct status=none
check "suspend and resume" eval 'dmsetup suspend $NAME && dmsetup resume $NAME'
hedge_remove
check "after a clean stop the log is believed" dmsetup create "$NAME" --table "$(table 1024)"
check_match "all regions are in sync" "$(dmsetup status "$NAME")" ' 16/16 1 AA 3 disk '
hedge_remove

dd if=/dev/ram2 of="$TMP/clean" bs=64k count=4 iflag=direct status=none
dd if="$TMP/log" of=/dev/ram2 bs=64k oflag=direct conv=notrunc status=none
# What a crash may leave: the default leg has writes that the other lacks.
dd if=/dev/urandom of=/dev/ram0 bs=64k count=4 oflag=direct conv=notrunc status=none
check "after a crash the table is taken" dmsetup create "$NAME" --table "$(table 1024)"
check "the other leg is resynced" wait_until 30 in_sync
check "the legs are equal" legs_equal
hedge_remove

dd if="$TMP/clean" of=/dev/ram2 bs=64k oflag=direct conv=notrunc status=none
check "back to the clean log" dmsetup create "$NAME" --table "$(table 1024)"
lag 1 error 1
check "a write that fails on one leg" dd if=/dev/urandom of="$DEV" bs=4k count=1 oflag=direct conv=notrunc
lag 1 error 0
check "suspend and resume with a leg out" eval 'dmsetup suspend $NAME && dmsetup resume $NAME'
check_match "it is still out" "$(dmsetup status "$NAME")" ' 1 AD '
hedge_remove
check "legs that differ are taken" dmsetup create "$NAME" --table "$(table 1024)"
check "and resynced" wait_until 30 in_sync
check "the legs are equal" legs_equal
hedge_remove

# Behind it is a target whose log fails. Meanwhile others use the legs and the log, and crash.
dmsetup create "$NAME" --notable
dmsetup load "$NAME" <<-END
	$(table 1024)
	$size 4096 hedge disk 2 /dev/mapper/lag4 128 2 /dev/ram3 0 /dev/ram3 4096
END
lag 4 error 1
check_fails "a table is resumed in vain" dmsetup resume "$NAME"
dd if="$TMP/log" of=/dev/ram2 bs=64k oflag=direct conv=notrunc status=none
dd if=/dev/urandom of=/dev/ram0 bs=64k count=4 oflag=direct conv=notrunc status=none
lag 4 error 0
check "it is resumed again" dmsetup resume "$NAME"
check "and the legs resynced" wait_until 30 in_sync
hedge_remove
blockdev --flushbufs /dev/ram0 /dev/ram1
check "the legs are equal" cmp /dev/ram0 /dev/ram1
