#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Legs that others have used, or whose numbers were not known: a leg that went on alone is
# not overwritten, one that answers at last is known by its label, a table that could not be
# resumed as another of its targets could not looks at the labels again, and two sets never share a
# log. And a flush that fails on the only full leg is not forgotten. Needs hedgectl, jq,
# dm-lag, loop.
# limit: 300
# leaks: not looked for: its time goes into starting programs, see labels_order

. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/labels.inc"

legs_brd 6 8
r0=/dev/ram0 r1=/dev/ram1 r2=/dev/ram2 spare=/dev/ram3 log=/dev/ram4 log2=/dev/ram5
LEGS=("$r0" "$r1" "$r2")
LENGTH=$(((8 << 11) - 16))
all=("$r0" "$r1" "$r2" "$log")
disk="disk 2 $log 128"

# later_images: what is on all devices now is put away, and what keep() took put back
later_images()
{
	local d

	mkdir -p "$TMP/later"
	for d in "${all[@]}"; do
		dd if="$d" of="$TMP/later/${d##*/}" bs=1M iflag=direct status=none
	done
	put_back "${all[@]}"
}
later() { local d; for d in "$@"; do dd if="$TMP/later/${d##*/}" of="$d" bs=1M oflag=direct status=none; done; }

# --- a leg that went on alone ---------------------------------------------------------------

new_set
stop
keep "${all[@]}"
check "leg 1 goes on alone, on another machine" kernel "$disk" "- $r1 -" force
write E 40
stop
later_images
check "here all run" kernel "$disk" "$r0 $r1 $r2"
find_sysfs
message fail 1
check "leg 1 goes out" wait_until 10 state 1 failed
write T 8
later "$r1"
check "leg 1 is told to come back" message reinstate 1
check "it does not, as it has data of its own" wait_until 20 klog "leg 1 (.*) went on alone"
check_eq "it is out" "$(states)" "in_sync failed in_sync"
check "nothing was written to it" cmp "$r1" "$TMP/later/ram1"
stop
hedgectl wipe "$r1" >/dev/null
check "that is given up" kernel "$disk" "$r0 $r1 $r2"
find_sysfs
check "leg 1 comes back" message reinstate 1
check "leg 1 is copied" wait_until 20 state 1 in_sync
stop
check "all legs are equal" all_equal

# --- a leg that was out when it was taken for another -----------------------------------------

new_set
for i in 0 2; do
	message fail $i
	check "leg $i goes out" wait_until 10 state $i failed
done
write G 8
stop
LEGS=("$r2" "$r0" "$r1")
lag_leg 0
lag_leg 1
lag 0 error 1
lag 1 error 1
check "the third alone, and the others in another order" kernel "$disk" "${LEGS[*]}"
find_sysfs
check_eq "only that can be read" "$(states)" "failed failed in_sync"
lag 0 error 0
lag 1 error 0
for i in 0 1; do
	check "position $i comes back" message reinstate $i
	check "position $i is copied" wait_until 20 state $i in_sync
done
stop
check_eq "each has its own number" "$(label "$r0" .leg)$(label "$r1" .leg)$(label "$r2" .leg)" 012
LEGS=("$r0" "$r1" "$r2")
check "all legs are equal" all_equal
dmsetup remove lag0 lag1

# What has no label is not given a number that may be another leg's.
new_set
for i in 0 2; do
	message fail $i
	check "leg $i goes out" wait_until 10 state $i failed
done
stop
hedgectl wipe "$r2" >/dev/null
LEGS=("$r0")
lag_leg 0
lag 0 error 1
check "the second alone, one that cannot be read, and one without a label" kernel "$disk" "$r2 ${LEGS[0]} $r1"
find_sysfs
check "the one without a label is told to come back" message reinstate 0
check "its number cannot be told" wait_until 20 klog "cannot be told"
check_eq "it is out" "$(get legs/0/state)" failed
stop
dmsetup remove lag0
LEGS=("$r0" "$r1" "$r2")

# --- a table of which one target cannot be resumed -----------------------------------------------

# The set, and behind it a target whose log fails.
two_targets()
{
	local half=4096

	LEGS=("$log2")
	lag_leg 0
	lag 0 writes 1
	lag 0 error 1
	dmsetup create "$NAME" --notable
	dmsetup load "$NAME" <<-END
		0 $LENGTH hedge $disk 3 $r0 0 $r1 0 $r2 0 2 label $UUID
		$LENGTH $half hedge disk 2 ${LEGS[0]} 128 2 $spare 0 $spare $half
	END
}

new_set
stop
keep "${all[@]}"
check "on another machine" kernel "$disk" "$r0 $r1 $r2"
find_sysfs
message fail 1
check "leg 1 goes out" wait_until 10 state 1 failed
write H 8
stop
later_images
two_targets
check_fails "a table is resumed in vain, as another target's log fails" dmsetup resume "$NAME"
later "${all[@]}"
lag 0 error 0
check "it is resumed again" dmsetup resume "$NAME"
find_sysfs
check_eq "leg 1 is out" "$(get legs/1/state)" failed
check "and is not read" volume_reads H 8
check "the others are equal: it cannot be known whether it was this log that they used" wait_until 20 state 2 in_sync
check "it comes back" message reinstate 1
check "and is copied" wait_until 20 state 1 in_sync
dmsetup remove "$NAME"
dmsetup remove lag0
LEGS=("$r0" "$r1" "$r2")
check "all legs are equal" all_equal

# The legs were in use by others as it was tried, and a crash left them different.
new_set
stop
keep "${all[@]}"
check "on another machine" kernel "$disk" "$r0 $r1 $r2"
write K 8
for d in "${all[@]}"; do dd if="$d" of="$TMP/later/${d##*/}" bs=1M iflag=direct status=none; done
stop
put_back "${all[@]}"
block L | dd of="$TMP/later/ram1" bs=4k seek=8 conv=notrunc status=none
two_targets
check_fails "a table is resumed in vain" dmsetup resume "$NAME"
later "${all[@]}"
lag 0 error 0
check "it is resumed again" dmsetup resume "$NAME"
find_sysfs
check "the legs are made equal" wait_until 20 state 1 in_sync
stop
dmsetup remove lag0
LEGS=("$r0" "$r1" "$r2")
check "they are" all_equal

# --- one log for two sets ------------------------------------------------------------------------

new_set
check_fails "another set cannot have the same log" dmsetup create other --table \
	"0 1024 hedge $disk 2 $spare 0 $log2 0 2 label 0f4d8a5c-3d4c-4d5a-8b7e-1a2b3c4d5e6f"
dmsetup remove other 2>/dev/null || :
check "the log says why" klog "overlap with no leg or other log"
stop

# Two that are loaded at the same time.
one="0 1024 hedge $disk 2 $r0 0 $r1 0 2 label 0f4d8a5c-3d4c-4d5a-8b7e-1a2b3c4d5e6f"
other="0 1024 hedge $disk 2 $spare 0 $log2 0 2 label 1f4d8a5c-3d4c-4d5a-8b7e-1a2b3c4d5e6f"
dmsetup create one --notable
dmsetup create other --notable
loaded=0
for ((i = 0; i < 40; i++)); do
	dmsetup load one --table "$one" 2>/dev/null &
	dmsetup load other --table "$other" 2>/dev/null && loaded=$((loaded + 1))
	wait $! && loaded=$((loaded + 1))
	dmsetup clear one
	dmsetup clear other
done
check_eq "nor if both are loaded at once" "$loaded" 40
dmsetup remove one
dmsetup remove other

# --- a flush that fails on the only full leg ---------------------------------------------------------

need_module loop
mkdir "$TMP/files"
mount -t tmpfs tmpfs "$TMP/files"
truncate -s 8M "$TMP/files/disk"
losetup /dev/loop0 "$TMP/files/disk"
LENGTH=''
LOG='core 2 128 sync'
LEGS=(/dev/loop0 "$r1")
lag_leg 0
throttle=/sys/module/dm_hedge/parameters/resync_throttle
echo 1 >$throttle
hedge_create
misses() { local missed; missed=$(get legs/1/missed); [ "$missed" "$1" "$2" ]; }
check "regions are copied, slowly" wait_until 30 misses -le 125
write C 0
lag 0 writes 1
lag 0 error 1
sleep 0.5
missed=$(get legs/1/missed)
check "then a flush fails on the only full leg: what was written is copied again" wait_until 30 misses -gt "$missed"
lag 0 error 0
check "another table comes" again
find_sysfs
fsync() { dd if=/dev/zero of="$DEV" bs=4k count=1 seek=700 conv=fsync,notrunc status=none; }
check_fails "what was lost was acknowledged: the next fsync fails" fsync
check "and the one after it does not" fsync
echo 100 >$throttle
check "all is copied in the end" wait_until 60 state 1 in_sync
hedge_remove

# The same while a region is copied that had such data: it was read before that was lost. What
# hangs is a write to a part of leg 1 that has no cache, and gets no flush.
truncate -s 8M "$TMP/files/disk1"
losetup /dev/loop1 "$TMP/files/disk1"
size=$(blockdev --getsz "$r1")
dmsetup create lag1 --table "0 1024 lag $r1 0 64 2"
dmsetup create leg1 --table "0 1024 linear /dev/mapper/lag1 0
1024 $((size - 1024)) linear /dev/loop1 1024"
LEGS[1]=/dev/mapper/leg1
lag 1 writes 1
lag 1 stuck 1
hedge_create
check "the copy of a region hangs" wait_until 30 lag_holds 1 1
block Z | dd of="$TMP/files/disk" bs=4k seek=3 conv=notrunc status=none
lag 0 error 1
flush() { dd if=/dev/null of="$DEV" conv=fsync,notrunc status=none; }
check_fails "a flush fails on the only full leg" flush
lag 0 error 0
lag 1 stuck 0
check "all is copied in the end" wait_until 60 state 1 in_sync
dmsetup suspend "$NAME"
check "also what was lost while it was copied" legs_equal
dmsetup resume "$NAME"
hedge_remove
LEGS[0]=/dev/loop0
check "both legs are equal" all_equal
for d in lag0 leg1 lag1; do dmsetup remove $d; done
for i in 0 1; do losetup -d /dev/loop$i; done
umount "$TMP/files"
