#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# limit: 240
#
# From mirror to hedge and back by reloading the table, with one disk log, in sync and at
# several stages of a resync, under a load that verifies: each goes on where the
# other was. Needs dm-mirror and dm-lag.
# leaks: not looked for: its time goes into starting programs

. "$(dirname "$0")/common.sh"
need_hedge
need_module dm-mirror
count_versions

in_sync()
{
	[[ $(dmsetup status "$NAME") =~ \ ([0-9]+)/$REGIONS\ 1\  ]] && echo "${BASH_REMATCH[1]}"
}

at_least() { (($(in_sync) >= $1)); }
slow() { for i in 0 1; do lag_law $i fixed "$1"; done; }
# What is cached of legs that others hold open may be old.
equal() { blockdev --flushbufs /dev/ram0 /dev/ram1 && cmp -n $((LENGTH * 512)) /dev/ram0 /dev/ram1; }

# change TARGET: the same legs and log under another target.
change()
{
	local before

	TARGET=$1
	dmsetup load "$NAME" --table "$(hedge_table)" &&
		dmsetup suspend "$NAME" &&
		before=$(in_sync) &&
		dmsetup resume "$NAME" &&
		[[ $(dmsetup table "$NAME") == *" $1 disk "* ]] &&
		echo "$1: $before before, $(in_sync) after" &&
		(($(in_sync) + 4 >= before))
}

load_begin()
{
	load mixed "$DEV" --threads 4 --verify >"$TMP/load" 2>&1 &
	LOAD=$!
}

load_end()
{
	local status=0

	kill $LOAD
	wait $LOAD || status=$?
	check_eq "$1: the load found no wrong data" $status 0
	[ $status = 0 ] || sed 's/^/# /' "$TMP/load"
	check_eq "$1: and no errors" "$(field errors "$(<"$TMP/load")")" 0
}

legs_brd 3 4
lag_leg 0
lag_leg 1
lag 1 writes 1
LEGS=("${LEGS[@]:0:2}")
LENGTH=$((63 * 128 + 40))
REGIONS=64
load fill /dev/ram0 >/dev/null
load fill /dev/ram1 >/dev/null

TARGET=mirror LOG='disk 3 /dev/ram2 128 nosync'
hedge_create
LOG='disk 2 /dev/ram2 128'
load_begin
for target in hedge mirror hedge; do
	check "in sync, under load: change to $target" change $target
	TARGET=$target
	check "in sync: $target has all regions in sync" wait_until 5 at_least $REGIONS
	sleep 0.5
done
load_end "in sync"
check "in sync: what was written is there" load check "$DEV"
hedge_remove
check "in sync: the legs are equal" equal

# At stages of a resync. dm-mirror copies a region at a time, so each takes long.
dd if=/dev/zero of=/dev/ram1 bs=64k count=64 oflag=direct status=none
slow 8000000
TARGET=mirror LOG='disk 3 /dev/ram2 128 sync'
hedge_create
LOG='disk 2 /dev/ram2 128'
TARGET=hedge
dmsetup load "$NAME" --table "$(hedge_table)"
dmsetup suspend "$NAME"
dmsetup resume "$NAME" 2>/dev/null || skip "hedge has no resync"
load_begin
for stage in 8 16 24 32 44 56; do
	check "the resync goes on" wait_until 30 at_least $stage
	[ "$TARGET" = hedge ] && target=mirror || target=hedge
	check "at $stage of $REGIONS, under load: change to $target" change $target
	TARGET=$target
done
check "the resync ends" wait_until 60 at_least $REGIONS
check "at the end: change to hedge" change hedge
TARGET=hedge
load_end "resync"
hedge_remove
check "resync: the legs are equal" equal
dmsetup create leg1 --table "0 $LENGTH linear /dev/ram1 0"
check "and hold what they should" load check /dev/mapper/leg1
dmsetup remove leg1
for TARGET in mirror hedge; do
	hedge_create
	check_eq "$TARGET finds all regions in sync" "$(in_sync)" $REGIONS
	hedge_remove
done
