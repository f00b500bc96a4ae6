#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Legs with differing limits: sizes of blocks and requests, discards, write-zeroes, and
# zones, limits that change below a table that is loaded. A request that one leg takes and
# another refuses, with an error that is the caller's, never leaves legs that differ
# while both count as in sync. Needs dm-lag, loop, null_blk.

. "$(dirname "$0")/common.sh"
need_hedge
need_module dm-lag
need_module loop
need_program blkdiscard
need_program losetup

MIB=8

queue() { echo "$(<"${SYS%/hedge0}/queue/$1")"; }
state() { [ "$(get "legs/$1/state")" = "$2" ]; }
both_in() { state 0 in_sync && state 1 in_sync; }
all_in_sync() { both_in && [[ $(dmsetup status "$NAME") =~ \ ([0-9]+)/([0-9]+)\ 1\  ]] && [ "${BASH_REMATCH[1]}" = "${BASH_REMATCH[2]}" ]; }

# write BLOCKSIZE SEEK COUNT: something new; read_back with the same: it is there
write()
{
	dd if=/dev/urandom of="$TMP/data" bs="$1" count="$3" iflag=fullblock status=none
	dd if="$TMP/data" of="$DEV" bs="$1" seek="$2" oflag=direct conv=notrunc status=none
}

read_back()
{
	local i

	for i in 1 2 3 4 5 6; do
		cmp "$TMP/data" <(dd if="$DEV" bs="$1" skip="$2" count="$3" iflag=direct status=none) || return 1
	done
}

# Whatever became of the requests: after what recovery makes of it legs that count as in
# sync hold the same, and the volume reads what they hold.
never_silent()
{
	wait_until 30 settled || { not_ok "$1: recovery comes to an end" "$(dmsetup status "$NAME")"; return; }
	dmsetup suspend "$NAME"
	if both_in_before; then
		check "$1: the legs are equal" legs_equal
	else
		ok "$1: a leg is out ($(health_before))"
	fi
	dmsetup resume "$NAME"
}
settled() { BEFORE="$(get legs/0/state) $(get legs/1/state)" HEALTH=$(health); [[ $BEFORE != *resync* ]]; }
both_in_before() { [ "$BEFORE" = "in_sync in_sync" ]; }
health_before() { echo "$HEALTH"; }

# Legs that are out come back, and are equal then.
come_back()
{
	local i

	for i in 0 1; do state $i in_sync || message reinstate $i || :; done
	check "$1: the legs come back" wait_until 60 all_in_sync
	never_silent "$1, back"
}

# Once what has been copied so far has been logged, too.
times_copied() { sleep 1; dmesg | grep -c 'device-mapper: hedge: .* is in sync' || :; }

# A file in memory: it can discard. It says that it can write zeroes too, and finds out
# that it cannot, which new kernels remember until it is set up again.
loop_leg()
{
	truncate -s ${MIB}M "$TMP/files/disk$1"
	losetup "/dev/loop$1" "$TMP/files/disk$1"
	LEGS[$1]=/dev/loop$1
}

# --- limits that differ from the beginning ------------------------------------------------

null_leg size=$MIB memory_backed=1 blocksize=512 completion_nsec=0
null_leg size=$MIB memory_backed=1 blocksize=4096 completion_nsec=0
LOG='core 2 128 nosync'
hedge_create
check_eq "the larger block counts" "$(queue logical_block_size)" 4096
load fill "$DEV" >/dev/null
check_fails "a smaller one is refused" write 512 1 1
check "a block is taken" write 4096 3 5
never_silent "blocks of 512 and 4096"
hedge_remove
null_remove
LEGS=() LENGTH=''

null_leg size=$MIB memory_backed=1 completion_nsec=0 max_sectors=8
null_leg size=$MIB memory_backed=1 completion_nsec=0 discard=1
hedge_create
load fill "$DEV" >/dev/null
check "requests larger than one leg takes" write 256k 3 4
check "and a read of them" dd if="$DEV" of=/dev/null bs=1M iflag=direct status=none
check_eq "no leg is out" "$(health)" AA
check_eq "one leg without discards: none are taken" "$(queue discard_max_bytes)" 0
check_fails "a discard is refused" blkdiscard "$DEV"
never_silent "requests of 4 KiB and more"
hedge_remove
null_remove

# A kernel that knows of zones.
if grep -q blkdev_report_zones /proc/kallsyms; then
	LEGS=() LENGTH=''
	null_leg size=$MIB memory_backed=1 completion_nsec=0
	null_leg size=$MIB memory_backed=1 completion_nsec=0 zoned=1 zone_size=4
	find_length
	dmsetup create "$NAME" --notable
	check_fails "a leg with zones is refused when the table is loaded" dmsetup load "$NAME" --table "$(hedge_table)"
	check "a leg with zones is refused: the log says so" eval 'dmesg | tail -n 5 | grep -q "leg without zones"'
	dmsetup remove "$NAME"
	null_remove
fi

mkdir "$TMP/files"
mount -t tmpfs tmpfs "$TMP/files" 2>/dev/null || skip "no tmpfs"
legs_brd 2 $MIB
brd=${LEGS[1]}
loop_leg 0
LENGTH=''
hedge_create
load fill "$DEV" >/dev/null
check_eq "one leg that cannot write zeroes: none are passed on" "$(queue write_zeroes_max_bytes)" 0
check "zeroes are written all the same" blkdiscard -z -o 65536 -l 1048576 "$DEV"
check_eq "no leg is out" "$(health)" AA
never_silent "zeroes"
hedge_remove

# --- limits that change below ------------------------------------------------------------------

size=$(blockdev --getsz /dev/loop0)
below() { dmsetup "$1" below "${@:2}"; }
moves_to() { below suspend && below load --table "0 $size linear $1 0" && below resume; }

for i in 0 1; do
	losetup -D
	loop_leg 0
	loop_leg 1
	# Leg i loses what it could when the table was loaded.
	dmsetup create below --table "0 $size linear /dev/loop$i 0"
	LEGS=(/dev/loop0 /dev/loop1)
	LEGS[i]=/dev/mapper/below
	hedge_create
	load fill "$DEV" >/dev/null
	check_num "leg $i: both write zeroes" "$(queue write_zeroes_max_bytes) > 0"
	check "leg $i: zeroes are written" blkdiscard -z -o 65536 -l 1048576 "$DEV"
	dd if=/dev/loop$i of="$brd" bs=1M oflag=direct status=none
	check "leg $i: it is moved to a disk that cannot" moves_to "$brd"
	blkdiscard -z -o 2097152 -l 1048576 "$DEV" || :
	never_silent "leg $i: zeroes that it refuses"
	come_back "leg $i: zeroes that it refuses"
	copies=$(times_copied)
	check "leg $i: once more: the caller writes them" \
		blkdiscard -z -o 2097152 -l 1048576 "$DEV"
	check_eq "leg $i: this time nothing is copied" "$(times_copied)" "$copies"
	blkdiscard -o 3145728 -l 65536 "$DEV" || :
	check_eq "leg $i: a discard that it refuses takes none out" "$(health)" AA
	write 64k 48 1
	never_silent "leg $i: what is written over it"
	hedge_remove
	dmsetup remove below
done

losetup -D
umount "$TMP/files"

# --- an error that is the caller's, of one leg ---------------------------------------------------

legs_brd 2 $MIB
lag_leg 0
lag_leg 1
flush() { dd if=/dev/null of="$DEV" conv=fsync,notrunc status=none; }
for i in 0 1; do
	hedge_create
	load fill "$DEV" >/dev/null
	lag $i writes 1
	lag $i error notsupp
	check "leg $i refuses a write that the other takes" write 4096 10 20
	check_fails "leg $i refuses a write: it does not count as in sync any more" both_in
	lag $i error 0
	check "leg $i refuses a write: what was written is read" read_back 4096 10 20
	never_silent "leg $i refuses a write"
	come_back "leg $i refuses a write"
	lag $i error notsupp
	flush || :
	lag $i error 0
	come_back "leg $i refuses a flush"
	hedge_remove
	lag $i writes 0
done

hedge_create
load fill "$DEV" >/dev/null
for i in 0 1; do lag $i writes 1; lag $i error notsupp; done
check_fails "both refuse a write: it is an error" write 4096 10 20
for i in 0 1; do lag $i error 0; done
come_back "both refuse a write"
hedge_remove
remove_all

# --- what is offered, and what is not ---------------------------------------------------------------

LEGS=() LENGTH=''
for i in 0 1; do null_leg size=$MIB memory_backed=1 cache_size=2; done
hedge_create
for i in 0 1; do
	check_eq "control: leg $i has a cache and FUA" \
		"$(cat "/sys/block/${LEGS[i]#/dev/}/queue/write_cache" "/sys/block/${LEGS[i]#/dev/}/queue/fua" | tr '\n' ' ')" \
		"write back 1 "
done
check_eq "legs with a cache: it is flushed" "$(queue write_cache)" "write back"
check_eq "legs with FUA: it is passed on" "$(queue fua)" 1
check_eq "no DAX" "$(queue dax)" 0
check_eq "no integrity data" "$(cat "${SYS%/*}/integrity/format" 2>/dev/null || echo none)" none
check_fails "no zones" grep -v none "${SYS%/*}/queue/zoned"
check_fails "no inline encryption" test -e "${SYS%/*}/queue/crypto"
check "a write with FUA" dd if=/dev/zero of="$DEV" bs=4k count=4 oflag=direct,dsync conv=notrunc status=none
never_silent "after a write with FUA"
