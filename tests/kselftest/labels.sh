#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Labels: a set that was stopped starts again with its legs in any order; a leg that
# is missing, stale, foreign, torn or went on alone is found out, by hedgectl and by
# the kernel alone; a log that is not the set's is not believed. Needs hedgectl, jq.
# limit: 900
# leaks: not looked for: its time goes into starting programs, see labels_order

. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/labels.inc"

legs_brd 8 8
r0=/dev/ram0 r1=/dev/ram1 r2=/dev/ram2 spare=/dev/ram3 log=/dev/ram4 log2=/dev/ram5
other0=/dev/ram6 other1=/dev/ram7
LEGS=("$r0" "$r1" "$r2")

# --- a set that is made, runs and stops --------------------------------------------

hedgectl create "$NAME" --nosync --log "disk:$log" --region-size 64K "$r0" "$r1" "$r2" >/dev/null
find_sysfs
LENGTH=$(blockdev --getsz "$DEV")
check_eq "the data leaves room for the label" "$LENGTH" $(((8 << 11) - 16))
UUID=$(label "$r0" .uuid)
check_match "the table has the label" "$(dmsetup table "$NAME")" " label $UUID"
check_eq "nothing was written yet" "$(label "$r1" '[.generation, .open, .in, .leg]')" '[1,false,[0,1,2],1]'
write A 0
check_eq "the first write opens the set" "$(label "$r0" '[.generation, .open]')" '[2,true]'
check_eq "on every leg" "$(label "$r2" '[.generation, .open, .leg]')" '[2,true,2]'
write B 8
check_eq "the next does not" "$(label "$r1" .generation)" 2
dmsetup suspend "$NAME"
check_eq "suspend closes it" "$(label "$r1" '[.generation, .open]')" '[3,false]'
dmsetup resume "$NAME"
write B 9
check_eq "and a write opens it again" "$(label "$r1" '[.generation, .open]')" '[4,true]'
stop
check_eq "it is closed in the end" "$(label "$r2" '[.generation, .open, .in]')" '[5,false,[0,1,2]]'
check_match "the log has a stamp" "$(label "$log" '[.kind, .uuid] | join(" ")')" "^log $UUID"
check_eq "it is that of the labels" "$(label "$log" .log_stamp)" "$(label "$r0" .log_stamp)"

check "it starts by its devices, in another order" start "$NAME" "$r2" "$r0" "$r1"
check_eq "all legs are in" "$(states)" "in_sync in_sync in_sync"
check "the data is there" volume_reads A 0
check_eq "no region is resynced" "$(dmsetup status "$NAME" | awk '{ split($8, n, "/"); print n[1] == n[2] }')" 1
stop
check "it starts by its UUID, with its name" start "$UUID"
check "it is there" dmsetup info "$NAME"
stop
check "it starts by a scan" start --scan
check "it is there" dmsetup info "$NAME"
check "a scan starts no set twice" hedgectl assemble --scan
stop
check "the kernel takes the legs in any order" kernel "disk 2 $log 128" "$r1 $r2 $r0"
check_eq "leg 0 is ram1" "$(get legs/0/device)" 1:1
check "the data is there" volume_reads A 0
write C 16
stop
check_eq "labels keep their numbers" "$(label "$r0" .leg) $(label "$r1" .leg) $(label "$r2" .leg)" "0 1 2"

# --- what tables are refused ----------------------------------------------------------

unlabelled() { dmsetup create "$NAME" --table "0 $LENGTH hedge core 2 128 nosync 2 $r0 0 $spare 0"; }
check_fails "a table without label refuses a leg with one" unlabelled
check "and says so" klog "Expected the feature label"
dmsetup remove "$NAME" 2>/dev/null || :
LENGTH=$((LENGTH + 8))
check_fails "a leg without room is refused" kernel "disk 2 $log 128" "$r0 $r1 $r2"
LENGTH=$((LENGTH - 8))
check_fails "a UUID that is none is refused" dmsetup create "$NAME" \
	--table "0 $LENGTH hedge core 1 128 2 $r0 0 $r1 0 2 label 12345"
dmsetup remove "$NAME" 2>/dev/null || :
check_fails "a missing leg needs labels" dmsetup create "$NAME" --table "0 $LENGTH hedge core 2 128 nosync 2 $spare 0 - 0"
dmsetup remove "$NAME" 2>/dev/null || :
check_fails "no leg at all is refused" kernel "core 1 128" "- - -"
check_fails "legs within reach of another's label are refused" dmsetup create "$NAME" \
	--table "0 4096 hedge core 1 128 3 $spare 0 $spare 4096 $r1 0 2 label $UUID"
dmsetup remove "$NAME" 2>/dev/null || :
check_fails "another length finds no label" dmsetup create "$NAME" \
	--table "0 4096 hedge core 1 128 3 $r0 0 $r1 0 $r2 0 2 label $UUID"
check "and says so" klog "make the set with hedgectl create"
dmsetup remove "$NAME" 2>/dev/null || :

# --- a leg that is missing ---------------------------------------------------------------

check "a missing leg that was in is refused" refused "$NAME" "$r0" "$r1"
check_match "hedgectl says why" "$(<"$TMP/out")" "leg 2 \(missing\) is not there, and may have gone on alone"
check_fails "the kernel refuses it too" kernel "disk 2 $log 128" "$r0 $r1 -"
check "and says why" klog "may have gone on alone"
check "force starts without it" start "$NAME" "$r0" "$r1" --force
check_eq "it is out" "$(states)" "in_sync in_sync failed"
check_match "the status has it" "$(dmsetup status "$NAME")" "hedge 3 1:0 1:1 - "
check_match "the table has it" "$(dmsetup table "$NAME")" " - 0 "
check_fails "the labels say so now, and the table needs no force" grep -w force <<<"$(dmsetup table "$NAME")"
check "the same table is taken again" again
check "reads go on" volume_reads A 0
check "writes go on" write D 24
check_eq "the others call it out" "$(label "$r0" '[.in, .out]')" '[[0,1],[2]]'
check_fails "it cannot be reinstated" dmsetup message "$NAME" 0 reinstate 2
stop
check "without force it starts now" start "$NAME" "$r1" "$r0"
stop

check "a leg that is missing can be waited for" refused "$NAME" "$r1" "$r0" --no-degraded
check_match "hedgectl says which" "$(<"$TMP/out")" "leg 2 is missing"

# --- a leg that is stale ------------------------------------------------------------------

check "it comes back with the others" start "$NAME" "$r2" "$r1" "$r0"
check_eq "it is out, as it lacks a write" "$(states)" "in_sync in_sync failed"
check "it is not read" volume_reads D 24
check_num "the log tells what it misses" "$(get legs/2/missed) > 0 && $(get legs/2/missed) < 20"
check "it is reinstated" hedgectl reinstate "$NAME" "$r2"
check "and comes in" wait_until 20 state 2 in_sync
check_eq "the labels say so" "$(label "$r2" '[.in, .out]')" '[[0,1,2],[]]'
stop
check "all legs are equal" all_equal
keep "$r1"
check "it starts" start "$UUID"
write E 32
stop
put_back "$r1"
check "an old copy of a leg is out" start "$UUID"
check_eq "an old copy of a leg is out" "$(states)" "in_sync failed in_sync"
check "it is not read" volume_reads E 32
check_eq "nobody knows what it misses" "$(get legs/1/missed)" 128
check "it is reinstated" hedgectl reinstate "$NAME" 1
check "and comes in" wait_until 20 state 1 in_sync
stop
check "all legs are equal" all_equal

# --- foreign and torn labels -----------------------------------------------------------------

hedgectl create other --nosync --region-size 64K "$other0" "$other1" >/dev/null
dmsetup remove other
check "a leg of another set is refused" refused "$NAME" "$r0" "$r1" "$other0"
check_match "hedgectl names it" "$(<"$TMP/out")" "$other0: it is a leg of another set"
check_fails "the kernel refuses it too" kernel "disk 2 $log 128" "$r0 $r1 $other0"
check "and says why" klog "is a leg of another set"
check_fails "one leg twice is refused" kernel "core 1 128" "$r0 $r0 $r1"

# slot DEV: the byte at which its newest slot begins
slot() { echo $((($(label "$1" .label_sector) + 8 * $(label "$1" .slot)) * 512)); }
tear() { dd if=/dev/urandom of="$1" bs=512 seek=$(($2 / 512)) count=7 oflag=direct conv=notrunc status=none; }

tear "$r1" "$(($(slot "$r1") + 512))"
check "with its newest slot torn" start "$UUID"
check_eq "a leg falls back to the older one, and is out" "$(states)" "in_sync failed in_sync"
check "the data is there" volume_reads E 32
hedgectl reinstate "$NAME" 1 >/dev/null
check "it is copied" wait_until 20 state 1 in_sync
stop
tear "$r1" "$(($(slot "$r1") + 512))"
tear "$r1" "$(($(slot "$r1") + 512))"
check_eq "a damaged label is one" "$(hedgectl examine "$r1" --any --json | jq -r .kind)" damaged
check "without a slot a leg may have gone on" refused "$UUID"
check "with force it is out" kernel "disk 2 $log 128" "$r0 $r1 $r2" force
check_eq "with force it is out" "$(states)" "in_sync failed in_sync"
stop

# --- a split brain --------------------------------------------------------------------------

new_set
stop
check "one leg goes on alone" start "$NAME" "$r0" --force
write L 40
stop
check "and another" start "$NAME" "$r1" --force
write R 40
stop
check "together they are refused" refused "$UUID"
check_match "hedgectl names both" "$(<"$TMP/out")" "leg 0 \($r0\) and leg 1 \($r1\) went on without each other"
check "even with force" refused "$UUID" --force
check_fails "the kernel refuses them too" kernel "disk 2 $log 128" "$r1 $r0 $r2" force
check "and names both" klog "legs 0 (1:1) and 1 (1:0) went on without each other"
check "a word that is wrong costs no data" refused "$UUID" --prefer "$r1" --force --set nonsense=1
check "nor does a table that the kernel refuses" refused "$UUID" --prefer "$r1" --force --set copies=4
check_num "nor does a table that the kernel refuses" "$(label "$r0" .generation) > 0 && $(label "$r2" .generation) > 0"
check "one is preferred" start "$UUID" --prefer "$r1" --force
check "its data is there" volume_reads R 40
check_eq "the others are out" "$(states)" "failed in_sync failed"
for leg in 0 2; do
	hedgectl reinstate "$NAME" $leg >/dev/null
	check "leg $leg is copied whole" wait_until 20 state $leg in_sync
done
stop
check "all legs are equal" all_equal

# --- two legs that went out one after the other; the last one missing ---------------------------

new_set
hedgectl fail "$NAME" 1 >/dev/null
write F 48
hedgectl fail "$NAME" 2 >/dev/null
write G 56
stop
check "without the one that went on it is refused" refused "$NAME" "$r1" "$r2"
check "with it all start" start "$UUID"
check_eq "both are out" "$(states)" "in_sync failed failed"
check "the data is there" volume_reads G 56
hedgectl reinstate "$NAME" 1 >/dev/null
check "one comes back" wait_until 20 state 1 in_sync
write H 64
stop
check "that is no split brain" start "$UUID"
check_eq "the other is out" "$(states)" "in_sync in_sync failed"
stop
check "the one that came back can be alone" refused "$NAME" "$r1"
hedgectl assemble "$UUID" >/dev/null
hedgectl fail "$NAME" 0 >/dev/null
write I 72
stop
check "the default leg is out and the set starts" start "$UUID"
check_eq "the default leg is out" "$(states)" "failed in_sync failed"
check "the data is there" volume_reads I 72
stop

# --- crashes ------------------------------------------------------------------------------------

new_set
write N 8
keep "$r0" "$r1" "$r2" "$log"
write O 8
stop
put_back "$r0" "$r1" "$r2" "$log"
check_eq "after a crash the labels are open" "$(label "$r0" .open)" true
check "it starts" start "$UUID"
check "and resyncs the regions that were written to" wait_until 20 state 1 in_sync
check "the data is there" volume_reads N 8
stop
check "all legs are equal" all_equal

new_set core
write N 8
keep "$r0" "$r1" "$r2"
stop
check "a core log, closed" start "$UUID"
check_eq "a core log, closed: no resync" "$(states)" "in_sync in_sync in_sync"
stop
put_back "$r0" "$r1" "$r2"
block X | dd of="$r1" bs=4k seek=100 oflag=direct conv=notrunc iflag=fullblock status=none
check "a core log, after a crash" start "$UUID"
check "all is resynced from the default leg" wait_until 20 state 1 in_sync
wait_until 20 state 2 in_sync
check_fails "all is resynced from the default leg" reads "$r1" X 100
stop
check "all legs are equal" all_equal

# --- a log that is not this set's ----------------------------------------------------------------

new_set
stop
old=$(label "$r0" .log_stamp)
dd if="$log" of="$log2" bs=1M count=1 oflag=direct status=none
check "a log and its copy are refused" refused "$UUID"
check_match "hedgectl names both" "$(<"$TMP/out")" "$log and $log2 both have the log"
check "the log that is named among the devices is taken" start "$NAME" "$r0" "$r1" "$r2" "$log"
stop
dd if=/dev/zero of="$log2" bs=1M count=1 oflag=direct status=none
block X | dd of="$r1" bs=4k seek=100 oflag=direct conv=notrunc iflag=fullblock status=none
check "the log is missing" refused "$NAME" "$r0" "$r1" "$r2" --log "disk:$other0"
hedgectl wipe "$log" >/dev/null
check "without its log it is refused" refused "$UUID"
check_match "hedgectl says why" "$(<"$TMP/out")" "the disk log of this set .* is on no device"
check "another log is taken" start "$UUID" --log "disk:$log2"
check "it is not believed: all is resynced" wait_until 20 state 1 in_sync
wait_until 20 state 2 in_sync
check_fails "it is not believed: all is resynced" reads "$r1" X 100
write P 8
check_match "it is the set's now" "$(label "$log2" .log_stamp) $(label "$r1" .log_stamp)" '^([0-9a-f]+) \1$'
check_num "and has another stamp" "0x$(label "$log2" .log_stamp) != 0x$old"
stop

# --- a leg that is replaced ------------------------------------------------------------------------

new_set
check "a leg is replaced while it runs" hedgectl replace "$NAME" 1 "$spare"
find_sysfs
check "it is copied" wait_until 20 state 1 in_sync
check_eq "it has the number" "$(label "$spare" '[.leg, .in]')" '[1,[0,1,2]]'
write Q 8
stop
LEGS=("$r0" "$spare" "$r2")
check "all legs are equal" all_equal
check "what it replaced is passed over" start "$UUID"
check_match "what it replaced is passed over: that is said" "$(tr '\n' ' ' <"$TMP/out")" \
	".*$r1: not used: $spare has taken its place as leg 1.*"
check_eq "the new leg is in" "$(get legs/1/device) $(states)" "$(<"/sys/block/${spare##*/}/dev") in_sync in_sync in_sync"
stop
dd if="$spare" of="$other0" bs=1M oflag=direct status=none
check "a copy of a leg is refused beside it" refused "$UUID"
hedgectl wipe "$other0" >/dev/null
keep "$r1"
check "what it replaced goes on alone" start "$NAME" "$r1" --force
write R 9
stop
check "then it is refused beside the others" refused "$UUID"
put_back "$r1"
check "the new legs start" start "$NAME" "$spare" "$r2" "$r0"
check_eq "all are in" "$(states)" "in_sync in_sync in_sync"
check_fails "what runs is not started once more" hedgectl assemble other "$UUID"
check_match "what runs is not started once more: that is said" "$OUTPUT" "runs already, as $NAME"
check_eq "what runs is not started once more: it runs on" "$(states)" "in_sync in_sync in_sync"
stop
check "the old one is wiped" hedgectl wipe "$r1"
check_fails "it has no label now" hedgectl examine "$r1"
check "the set is found without it" start "$UUID"
check_fails "a leg in use is not wiped" hedgectl wipe "$r0"
stop

# --- a device that was in two sets -----------------------------------------------------------------------

new_set
stop
hedgectl wipe "$spare" >/dev/null 2>&1 || :
hedgectl create older --nosync --force "$other0" "$spare" >/dev/null
dmsetup remove older
dmsetup create short --table "0 8192 linear $other1 0"
hedgectl create newer --nosync --force /dev/mapper/short "$spare" >/dev/null
dmsetup remove newer
check_num "the label of the shorter set is found" "$(label "$spare" .bytes) < 8192 * 512"
check "it is wiped" hedgectl wipe "$spare"
check_fails "the older one does not come back" hedgectl examine "$spare"
dmsetup remove short
hedgectl wipe "$other0" >/dev/null
