#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Labels of a leg that is out and hangs: the volume starts without waiting for it, and it
# does not come back before it answers. A table that is read-only writes none. One that is
# resumed in vain looks again when it is resumed once more. Needs hedgectl, jq, dm-lag.
# limit: 300
# leaks: not looked for: its time goes into starting programs, see labels_order

. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/labels.inc"

legs_brd 6 8
r0=/dev/ram0 r1=/dev/ram1 r2=/dev/ram2 spare=/dev/ram3 log=/dev/ram4 log2=/dev/ram5
LEGS=("$r0" "$r1" "$r2")
LENGTH=$(((8 << 11) - 16))

# --- a leg that hangs -------------------------------------------------------------------

new_set
stop
lag_leg 1
check "it starts" kernel "disk 2 $log 128" "$r0 ${LEGS[1]} $r2"
find_sysfs
message fail 1
check "a leg goes out" wait_until 10 state 1 failed
write T 8
lag 1 writes 1
lag 1 stuck 1
began=$SECONDS
check "it hangs, and the table is changed all the same" again
check_num "that does not wait for it" "SECONDS - began < 60"
check_eq "it is still out" "$(states)" "in_sync failed in_sync"
check "writes go on" write U 16
check "and what is read is right" volume_reads T 8
message reinstate 1
check "it cannot come back while it hangs" wait_until 60 klog "leg 1 (.*) does not come back"
check_eq "it is still out" "$(states)" "in_sync failed in_sync"
check "writes go on" write V 24
# The old table goes when the read of its label has ended; the new one does not wait.
check_num "the volume was read from" "$(get stats/reads) > 0"
again &
changer=$!
runs_anew() { [ "$(get stats/reads 2>/dev/null)" = 0 ]; }
check "with its label still being read the table is changed once more" wait_until 60 runs_anew
block W >"$TMP/block"
check "writes go on" timeout 60 dd if="$TMP/block" of="$DEV" bs=4k seek=24 oflag=direct conv=notrunc status=none
lag 1 stuck 0
changed=0
wait $changer || changed=$?
check_eq "the old table goes" $changed 0
check "when it answers it does" message reinstate 1
check "and is copied" wait_until 20 state 1 in_sync
lag 1 writes 0
lag 1 stuck 1
dmsetup load "$NAME" --table "$(dmsetup table "$NAME")"
(sleep 8 && dmsetup message lag1 0 stuck 0) &
check "a leg that is in is waited for" dmsetup resume "$NAME"
wait $!
check_eq "all are in" "$(states)" "in_sync in_sync in_sync"
stop
check "all legs are equal" all_equal
dmsetup remove lag1
LEGS[1]=$r1

# --- a table that is resumed in vain -----------------------------------------------------

new_set
stop
keep "$r0" "$r1" "$r2" "$log"
check "leg 0 goes on alone, on another machine" kernel "disk 2 $log 128" "$r0 - -" force
write E 40
stop
dd if="$r0" of="$TMP/alone" bs=1M iflag=direct status=none
put_back "$r0" "$r1" "$r2" "$log"
LEGS=("$log")
lag_leg 0
LEGS=("$r0" "$r1" "$r2")
check "here all run" kernel "disk 2 $log 128" "$r0 $r1 $r2"
lag 0 writes 1
lag 0 error 1
dmsetup load "$NAME" --table "0 $LENGTH hedge disk 2 /dev/mapper/lag0 128 3 $r0 0 $r1 0 $r2 0 2 label $UUID"
check_fails "a table is resumed in vain, as its log fails" dmsetup resume "$NAME"
dd if="$TMP/alone" of="$r0" bs=1M oflag=direct status=none
lag 0 error 0
check "meanwhile leg 0 has gone on, and it is resumed again" dmsetup resume "$NAME"
find_sysfs
check_eq "the others are out" "$(states)" "in_sync failed failed"
check "and are not read" volume_reads E 40
for i in 1 2; do
	check "leg $i comes back" message reinstate $i
	check "leg $i comes back" wait_until 20 state $i in_sync
done
stop
check "all legs are equal" all_equal
dmsetup remove lag0

# The same where it was a label that could not be read, so that nobody has looked before.
new_set
stop
keep "$r0" "$r1" "$r2" "$log"
check "leg 1 goes on alone, on another machine" kernel "disk 2 $log 128" "- $r1 -" force
write F 40
stop
dd if="$r1" of="$TMP/alone" bs=1M iflag=direct status=none
put_back "$r0" "$r1" "$r2" "$log"
lag_leg 0
check "here all run" kernel "disk 2 $log 128" "${LEGS[0]} $r1 $r2"
lag 0 error 1
dmsetup load "$NAME" --table "$(dmsetup table "$NAME")"
check_fails "a table is resumed in vain, as a label cannot be read" dmsetup resume "$NAME"
dd if="$TMP/alone" of="$r1" bs=1M oflag=direct status=none
lag 0 error 0
check "meanwhile leg 1 has gone on, and it is resumed again" dmsetup resume "$NAME"
find_sysfs
check_eq "the others are out" "$(states)" "failed in_sync failed"
check "and are not read" volume_reads F 40
stop
dmsetup remove lag0
LEGS[0]=$r0

# --- a table that is refused forgets nothing ------------------------------------------------

new_set
write G 8
message fail 0
check "a leg goes out" wait_until 10 state 0 failed
write H 8
table=$(dmsetup table "$NAME")
dmsetup load "$NAME" --table "0 $LENGTH hedge disk 2 $log 128 3 $r0 0 - 0 - 0 2 label $UUID"
check_fails "a table of nothing but that leg is refused" dmsetup resume "$NAME"
dmsetup load "$NAME" --table "$table"
check "the table that it was is taken again" dmsetup resume "$NAME"
find_sysfs
check_eq "the leg is out" "$(states)" "failed in_sync in_sync"
check "and is not read" volume_reads H 8
stop

# --- a table that is read-only ------------------------------------------------------------

read_only()
{
	dmsetup create --readonly "$NAME" --table \
		"0 $LENGTH hedge disk 2 $log 128 3 $r0 0 $r1 0 $r2 0 2 label $UUID"
}

new_set
write N 8
keep "$r0" "$r1" "$r2" "$log"
stop
put_back "$r0" "$r1" "$r2" "$log"
before=$(label "$r0" '[.generation, .open]')
check "after a crash it starts read-only" read_only
find_sysfs
check "the data is there" volume_reads N 8
check "a leg can go out" message fail 1
check "a leg can go out" wait_until 10 state 1 failed
check_fails "and not come back" message reinstate 1
check "the data is there" volume_reads N 8
sleep 1
stop
check_eq "no label was written" "$(label "$r0" '[.generation, .open]') $(label "$r1" '[.generation, .open]')" \
	"$before $before"
check "it starts again, to be written" kernel "disk 2 $log 128" "$r2 $r1 $r0"
find_sysfs
check "and is resynced" wait_until 20 state 1 in_sync
stop
check "all legs are equal" all_equal
