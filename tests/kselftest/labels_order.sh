#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What labels must say before a write goes on: that the set is open before the first write
# reaches any leg; that a leg is out before a write is acknowledged that it lacks, or a flush
# that comes after one that it failed; that the log is not to be believed before a write is sent
# that it could not note. Each time the label of one leg hangs. Needs hedgectl, jq, dm-lag, loop.

. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/labels.inc"

# Leg 0: the data on ram0, what is behind it on lag 0. Leg 1 is lag 1, the log lag 2. What is
# on leg 0 can be looked at while it hangs: it is in raw0 too.
legs_brd 4 8
size=$(blockdev --getsz /dev/ram0)
LENGTH=$((size - 16))
dmsetup create lag0 --table "0 16 lag /dev/ram1 0 64 1"
dmsetup create lag1 --table "0 $size lag /dev/ram2 0 64 2"
dmsetup create lag2 --table "0 $size lag /dev/ram3 0 64 3"
dmsetup create leg0 --table "0 $LENGTH linear /dev/ram0 0
$LENGTH 16 linear /dev/mapper/lag0 0"
dmsetup create raw0 --table "0 $LENGTH linear /dev/ram0 0
$LENGTH 16 linear /dev/ram1 0"
LEGS=(/dev/mapper/leg0 /dev/mapper/lag1)
RAW=(/dev/mapper/raw0 /dev/ram2)
for i in 0 1 2; do lag $i writes 1; done

# make LOG: a new set
make()
{
	hedgectl create "$NAME" --nosync --log "$1" --region-size 64K --force "${LEGS[@]}" >/dev/null
	find_sysfs
}

# begin LETTER BLOCK: a write that is expected to hang with the label of leg 0
begin()
{
	# Nor is the output of check for it to keep open.
	{ write "$1" "$2" && echo 0 || echo $?; } >"$TMP/status" 2>/dev/null &
	wait_until 20 lag_holds 0 1 || return 1
	# what does not wait for the label is through by then
	sleep 0.5
}

waits() { [ ! -s "$TMP/status" ]; }
ends() { lag 0 stuck 0 && wait_until 20 grep -q . "$TMP/status" && [ "$(<"$TMP/status")" = 0 ]; }
on_no_leg() { ! reads "${RAW[0]}" "$1" "$2" && ! reads "${RAW[1]}" "$1" "$2"; }
on_both() { reads "${RAW[0]}" "$1" "$2" && reads "${RAW[1]}" "$1" "$2"; }

# --- open -----------------------------------------------------------------------------

make core
lag 0 stuck 1
check "the first write has labels written" begin A 5
check "it waits for them" waits
check "it is on no leg" on_no_leg A 5
check_eq "the set is not called open yet" "$(label "${RAW[0]}" .open)" false
check "with the labels it ends" ends
check "it is on both legs" on_both A 5
check_eq "the set is open" "$(label "${RAW[0]}" .open) $(label "${RAW[1]}" .open)" "true true"

# --- out ------------------------------------------------------------------------------

lag 0 stuck 1
lag 1 error 1
check "a write that fails on a leg has labels written" begin B 6
check "it waits for them" waits
check_eq "the leg is out" "$(get legs/1/state)" failed
check_eq "the label does not say so yet" "$(label "${RAW[0]}" '[.in, .out]')" '[[0,1],[]]'
check "with the label it ends" ends
check_eq "the label says so" "$(label "${RAW[0]}" '[.in, .out]')" '[[0],[1]]'
check "the write is there" volume_reads B 6
lag 1 error 0
stop

# --- the log is not believed ------------------------------------------------------------

for d in "${LEGS[@]}"; do hedgectl wipe "$d" >/dev/null; done
make disk:/dev/mapper/lag2
write A 5
check_match "the labels have the stamp of the log" \
	"$(label "${RAW[0]}" .log_stamp) $(label "${RAW[1]}" .log_stamp)" '^([0-9a-f]{16}) \1$'
lag 0 stuck 1
lag 2 error 1
check "a write that the log cannot note has labels written" begin C 320
check "it waits for them" waits
check "it is on no leg" on_no_leg C 320
check "with the labels it ends" ends
check "it is on both legs" on_both C 320
check_eq "the labels do not believe the log" \
	"$(label "${RAW[0]}" .log_stamp) $(label "${RAW[1]}" .log_stamp)" "null null"
lag 2 error 0
check "a write that the log can note" write D 640
check_match "they believe it again" \
	"$(label "${RAW[0]}" .log_stamp) $(label "${RAW[1]}" .log_stamp)" '^([0-9a-f]{16}) \1$'
stop

# --- a flush after one that failed --------------------------------------------------------

# What has no cache gets no flush: that of the label of leg 0 does not hang with it.
need_module loop
mkdir "$TMP/files"
mount -t tmpfs tmpfs "$TMP/files"
dmsetup remove leg0
dmsetup remove raw0
dmsetup remove lag1
for i in 0 1; do
	truncate -s $((size * 512)) "$TMP/files/disk$i"
	losetup /dev/loop$i "$TMP/files/disk$i"
done
dmsetup create lag1 --table "0 $size lag /dev/loop1 0 64 2"
dmsetup create lag3 --table "0 $LENGTH lag /dev/loop0 0 64 4"
dmsetup create leg0 --table "0 $LENGTH linear /dev/mapper/lag3 0
$LENGTH 16 linear /dev/mapper/lag0 0"
dmsetup create raw0 --table "0 $LENGTH linear /dev/loop0 0
$LENGTH 16 linear /dev/ram1 0"
hedgectl wipe /dev/mapper/raw0 >/dev/null
RAW[1]=/dev/loop1
make core
write A 5
lag 1 writes 1
lag 3 writes 1

# begin_flush NUMBER: a flush that is expected to hang on leg 0
begin_flush()
{
	{ dd if=/dev/null of="$DEV" conv=fsync,notrunc status=none && echo 0 || echo $?; } >"$TMP/flush$1" 2>/dev/null &
	wait_until 20 lag_holds 3 "$1" || return 1
	# the other leg has answered by then
	sleep 0.5
}

flush_waits() { [ ! -s "$TMP/flush$1" ]; }
flush_ends() { wait_until 20 grep -qx 0 "$TMP/flush$1"; }

lag 3 stuck 1
lag 1 error 1
check "a flush fails on leg 1 and hangs on leg 0" begin_flush 1
lag 1 error 0
check "another one works on leg 1 and hangs on leg 0" begin_flush 2
lag 0 stuck 1
lag 3 stuck 0
check "leg 0 answers: labels are written" wait_until 20 lag_holds 0 1
sleep 0.5
check "the flush that failed waits for them" flush_waits 1
check "the one that worked waits too" flush_waits 2
lag 0 stuck 0
check "with the labels one ends" flush_ends 1
check "so does the other" flush_ends 2
check_eq "the label says that leg 1 is out" "$(label "${RAW[0]}" '[.in, .out]')" '[[0],[1]]'
stop
remove_all
for i in 0 1; do losetup -d /dev/loop$i; done
umount "$TMP/files"
