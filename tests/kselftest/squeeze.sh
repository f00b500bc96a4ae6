#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Without any memory but what pools hold in reserve, reads and writes go on: many threads
# write to many regions, which are opened and cleaned meanwhile, then also while a leg is
# copied whole; none ends in an error, and in the end the legs are equal. Needs a kernel
# with fault injection (the debug rig).
# limit: 120
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

for sync in nosync sync; do
	LOG="disk 3 $log 64 $sync"
	hedge_create policy coc timeout_us 1000
	check "$sync: it runs without memory" squeeze "$DEV" 6 8
	echo "# $OUTPUT"
	check_num "$sync: requests ended" "$(field ended "$OUTPUT") > 100"
	check_eq "$sync: none in an error" "$(field errors "$OUTPUT")" 0
	check_num "$sync: there was no memory" "$(field slabs "$OUTPUT") > 100"
	check_num "$sync: nothing waited for memory to come back" "$(field seconds "$OUTPUT") < 30"
	check_num "$sync: reads went without copies" "$(get stats/unhedged_memory) > 0"
	check "$sync: all is in sync in the end" wait_until 60 in_sync
	dmsetup suspend "$NAME"
	check "$sync: the legs are equal" legs_equal
	dmsetup resume "$NAME"
	hedge_remove
done
