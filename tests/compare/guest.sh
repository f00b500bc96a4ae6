#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The part of compare that runs in the guest: measures each cell of /cells, a line
#
#	KEY LEGS RATE COUNT LIMIT KB LAW WORD...
#
# on as many legs of one server with that law, COUNT reads of KB KiB after a
# quarter as many to warm up, the words being features of the table. For each it
# prints "cell KEY JSON", with what openloop says and the settings in force.

set -euo pipefail

. /lag.sh

mib=16 max_legs=4

# What a volume is made of: legs of memory, each behind a straggler.
make_legs()
{
	local i

	modprobe brd rd_nr=$max_legs rd_size=$((mib * 1024))
	modprobe dm-lag
	modprobe dm-hedge
	for ((i = 0; i < max_legs; i++)); do
		dd if=/dev/zero of="/dev/ram$i" bs=1M count=$mib oflag=direct status=none
		lag_create "leg$i" "/dev/ram$i" 1 $((i + 1))
	done
}

set_law()
{
	local i

	[ "$1" != "$law" ] || return 0
	law=$1
	for ((i = 0; i < max_legs; i++)); do
		lag_law "leg$i" "$law"
	done
}

measure()
{
	local key=$1 legs=$2 rate=$3 count=$4 limit=$5 kb=$6 law=$7 table dir out i

	shift 7
	table="0 $((mib * 2048)) hedge core 2 1024 nosync $legs"
	for ((i = 0; i < legs; i++)); do
		lag_msg "leg$i" seed $((RANDOM * 32768 + RANDOM))
		table+=" /dev/mapper/leg$i 0"
	done
	dmsetup create vol --table "$table $# $*"
	dir=/sys/block/$(dmsetup info -c --noheadings -o blkdevname vol)/hedge0
	out=$(openloop --json --rate "$rate" --count "$count" --warmup $((count / 4)) \
		--bs $((kb * 1024)) --limit "$limit" --seed $RANDOM /dev/mapper/vol)
	echo "cell $key ${out%\}}, \"budget_pct\": $(<"$dir/budget_pct")," \
		"\"queue_depth\": $(<"$dir/queue_depth"), \"tau_us\": $(<"$dir/tau_us")," \
		"\"reads\": $(<"$dir/stats/reads"), \"copies\": $(<"$dir/stats/copies")}"
	dmsetup remove vol
}

# Wake-ups to the nanosecond, not to the slack of timers.
echo 1 >/proc/$$/timerslack_ns
RANDOM=$SEED
law=
make_legs
while read -r -a cell; do
	set_law "${cell[6]}"
	measure "${cell[@]}"
done </cells
