#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Every allocation of a message, of a value for an attribute, of a read and of a write fails, each
# in turn: what is refused changes nothing, no read or write ends in an error, and all data is
# right. Needs a kernel with fault injection (the debug rig).
# limit: 400
# may skip: no fault injection, but in the debug rig

. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/alloc_fail.inc"

legs_brd 2 4
hedge_create policy coc
purpose begin

setting()
{
	check "$1" fail_all "${@:2}"
	check_num "$1: it was refused" "$(said ' errno=ENOMEM ') > 0"
	check_eq "$1: with ENOMEM or nothing" "$(said ' errno=(ENOMEM|0) ')" "$(said '')"
	check_eq "$1: what is refused changes nothing" "$(said wrong=1)" 0
	check_match "$1: without a failure it is taken" "$(tail -n 1 "$TMP/said")" ' errno=0 wrong=0$'
}

setting "message set" message "$NAME" "$SYS/copies" "set copies 2" "set copies 1"
setting "message set policy" message "$NAME" "$SYS/policy" "set policy slb" "set policy edd-r"
setting "message set leg" message "$NAME" "$SYS/legs/1/weight" "set leg 1 weight 7" "set leg 1 weight 8"
setting "message histogram" message "$NAME" "$SYS/copies" histogram histogram
setting "attribute" write "$SYS/timeout_us" 777 off
setting "attribute of a leg" write "$SYS/legs/1/timeout_us" 777 inherit
hedge_remove

# Every allocation of a read and of a write. The kernel itself needs memory for direct I/O
# of many pages before any target sees it.
[ ! -e /sys/kernel/debug/fail_page_alloc ] || echo 0 >/sys/kernel/debug/fail_page_alloc/min-order
failed=0
policies=(
	"policy coc" "policy probe" "policy fut-lpr task_kb 4"
	"policy fcfs-r task_kb 4 queue_depth 1" "policy slb timeout_us 1" "policy fcfs-lpr queue_depth 1"
)
mapfile -t policies < <(sample "${policies[@]}")
for words in "${policies[@]}"; do
	# shellcheck disable=SC2086
	hedge_create $words
	fill_legs
	check "$words: each allocation of reads and writes" fail_all io "$DEV"
	failed=$((failed + $(said '') - 16))
	echo "# $(said '') requests, $(said ' errno=ENOMEM ') times ENOMEM, unhedged $(get stats/unhedged_memory)"
	check_eq "$words: no request failed but by the kernel's own need" \
		"$(said ' errno=0 ')" "$(($(said '') - $(said ' 65536 errno=ENOMEM ')))"
	check_eq "$words: all data is right" "$(said wrong=1)" 0
	check_accounting "$words"
	dmsetup suspend "$NAME"
	check "$words: the legs are equal" legs_equal
	dmsetup resume "$NAME"
	hedge_remove
done
purpose end
check_num "allocations failed" "$failed > 20"
check "no leg stays open" rmmod brd
check "the module can go" rmmod dm_hedge
