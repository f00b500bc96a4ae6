#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A leg that hangs while the target flushes it, or writes its label: it can be taken out all the
# same, writes go on, and it comes back when it answers. What was left behind is waited for, a
# flush by the destructor only. Needs hedgectl, jq, dm-lag.
# limit: 300

. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/labels.inc"

# A leg that has a cache: what has none gets no flush.
need_module loop
mkdir "$TMP/files"
mount -t tmpfs tmpfs "$TMP/files"
truncate -s 8M "$TMP/files/disk"
losetup /dev/loop0 "$TMP/files/disk"

legs_brd 5 8
r0=/dev/ram0 r1=/dev/loop0 r2=/dev/ram1 spare=/dev/ram2 log=/dev/ram3 log2=/dev/ram4
LEGS=("$r0" "$r1" "$r2")

# takes_write CHARACTER BLOCK: within a minute
takes_write()
{
	block "$1" >"$TMP/block"
	timeout 60 dd if="$TMP/block" of="$DEV" bs=4k seek="$2" oflag=direct conv=notrunc status=none
}

# --- a flush ----------------------------------------------------------------------------

lag_leg 1
hedge_create
write A 0
lag 1 writes 1
lag 1 stuck 1
# What was written is idle soon: then the legs are flushed, to call it clean.
check "a flush hangs on one leg" wait_until 30 lag_holds 1 1
check_eq "nothing else does" "$(lag_queued 1)" 1
check "the leg can be taken out" message fail 1
check "the leg goes out" wait_until 20 state 1 failed
check "writes go on, also where none was" takes_write B 1024
check "and what is read is right" volume_reads B 1024
check "the table can be changed" timeout 60 dmsetup suspend "$NAME"
dmsetup resume "$NAME"
check "and writes go on" takes_write C 1400
check "it is told to come back" message reinstate 1
sleep 1
check "it can be taken out once more while it hangs" message fail 1
check "then it is out" wait_until 20 state 1 failed
check "writes go on" takes_write D 700
lag 1 stuck 0
check "it answers, and comes back" message reinstate 1
check "it is copied" wait_until 30 state 1 in_sync
hedge_remove
check "all legs are equal" all_equal
dmsetup remove lag1
LEGS[1]=$r1

# The destructor waits for it.
lag_leg 1
hedge_create
write A 0
lag 1 writes 1
lag 1 stuck 1
check "a flush hangs on one leg" wait_until 30 lag_holds 1 1
message fail 1
check "the leg goes out" wait_until 20 state 1 failed
dmsetup remove "$NAME" &
remover=$!
sleep 2
check "the device waits for it" kill -0 $remover
lag 1 stuck 0
gone=0
wait $remover || gone=$?
check_eq "and goes" $gone 0
dmsetup remove lag1
LEGS[1]=$r1

# --- a label ----------------------------------------------------------------------------

LENGTH=$(((8 << 11) - 16))
new_set
stop
lag_leg 1
check "a set with labels" kernel "disk 2 $log 128" "$r0 ${LEGS[1]} $r2"
find_sysfs
write E 8
lag 1 writes 1
lag 1 stuck 1
message fail 2
check "one leg goes out, and another hangs when its label is to say so" wait_until 30 lag_holds 1 1
check "it can be taken out too" message fail 1
both_out() { [ "$(states)" = "in_sync failed failed" ]; }
check "both are out" wait_until 20 both_out
check "writes go on" takes_write F 16
check "and what is read is right" volume_reads F 16
dmsetup suspend "$NAME" &
suspender=$!
sleep 2
check "a suspend waits for the label" kill -0 $suspender
lag 1 stuck 0
gone=0
wait $suspender || gone=$?
check_eq "and ends" $gone 0
dmsetup resume "$NAME"
find_sysfs
check_eq "both are out still" "$(states)" "in_sync failed failed"
for i in 1 2; do
	check "leg $i comes back" message reinstate $i
	check "leg $i is copied" wait_until 30 state $i in_sync
done
check "the data is there" volume_reads F 16
stop
check "all legs are equal" all_equal
check "and start together" kernel "disk 2 $log 128" "$r2 ${LEGS[1]} $r0"
find_sysfs
check_eq "all in" "$(states)" "in_sync in_sync in_sync"
stop
dmsetup remove lag1

losetup -d /dev/loop0
umount "$TMP/files"
