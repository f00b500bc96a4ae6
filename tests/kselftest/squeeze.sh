#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Without any memory but what pools hold in reserve, reads and writes go on: many threads
# write to many regions, which are opened and cleaned meanwhile, then also while a leg is
# copied whole; none ends in an error, what is read is right, and in the end the legs are
# equal. The same while only each second, third and so on allocation fails. Needs a
# kernel with fault injection (the debug rig).
# limit: 360
# may skip: no fault injection, but in the debug rig

. "$(dirname "$0")/common.sh"
need_hedge
for kind in failslab fail_page_alloc; do
	[ -d /sys/kernel/debug/$kind ] || skip "no fault injection"
done

in_sync()
{
	[[ $(dmsetup status "$NAME") =~ \ ([0-9]+)/([0-9]+)\ 1\  ]] &&
		[ "${BASH_REMATCH[1]}" = "${BASH_REMATCH[2]}" ]
}

legs_brd 3 16
# Memory disks allocate what is written for the first time.
for d in "${LEGS[@]}"; do dd if=/dev/zero of="$d" bs=1M count=16 oflag=direct status=none; done
log=${LEGS[2]}
LEGS=("${LEGS[@]:0:2}")

# squeezed DESCRIPTION SECONDS [INTERVAL]
squeezed()
{
	check "$1: it runs without memory" squeeze "$DEV" "$2" 8 "${@:3}"
	echo "# $OUTPUT"
	check_num "$1: requests ended" "$(field ended "$OUTPUT") > 100"
	check_eq "$1: none in an error" "$(field errors "$OUTPUT")" 0
	check_eq "$1: all data is right" "$(field wrong "$OUTPUT")" 0
	check_num "$1: there was no memory" "$(field slabs "$OUTPUT") > $((100 / ${3:-1}))"
	check_num "$1: nothing waited for memory to come back" "$(field seconds "$OUTPUT") < 30"
}

equal()
{
	check "$1: all is in sync in the end" wait_until 60 in_sync
	dmsetup suspend "$NAME"
	check "$1: the legs are equal" legs_equal
	dmsetup resume "$NAME"
}

purpose begin
for sync in nosync sync; do
	LOG="disk 3 $log 64 $sync"
	hedge_create policy coc timeout_us 1000
	squeezed "$sync" 6
	check_num "$sync: reads went without copies" "$(get stats/unhedged_memory) > 0"
	equal "$sync"
	hedge_remove
done

LOG="disk 3 $log 64 nosync"
hedge_create policy coc timeout_us 1000
for interval in 2 3 5 7 13; do
	squeezed "each ${interval}th" 2 $interval
done
equal "some"
hedge_remove
purpose end
