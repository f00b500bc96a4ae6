#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The tail of read latencies, for `bench': runs in a guest of the exact rig.
#
#	tail.sh NAME SERVERS TIMEOUT_US READS LAW LAW LOAD:RATE... -- DEVICE...
#
# Two legs, each of which serves SERVERS reads at a time with service times of its
# LAW. Reads arrive at random, RATE a second, whether earlier ones have returned or
# not. DEVICE is raw (the first leg alone), linear (of it), mirror, raid1 or a policy of
# hedge. For each DEVICE and LOAD there are then in /out tail-NAME-DEVICE-LOAD.json, what
# openloop said, and .stats, "<counter> <value>" a line for a policy.

set -euo pipefail

. /legs.sh
. /lag.sh

name=$1 servers=$2 timeout=$3 reads=$4 laws=("$5" "$6")
shift 6
loads=()
while [ "$1" != -- ]; do
	loads+=("$1")
	shift
done
shift
mib=16
# So many reads are not out at a time if a queue is stable.
limit=2000

# A policy that cancels queued copies, looks for a free slot or has a shared queue
# needs to know how many reads a leg serves; the others let the legs queue. No leg
# is left out: neither the one with the stalls, nor after them.
knobs()
{
	case $1 in
	slb) echo "policy $1 timeout_us $timeout" ;;
	fcfs-lpr) echo "policy $1 timeout_us $timeout queue_depth $servers" ;;
	cos | riq | probe | fcfs-*) echo "policy $1 queue_depth $servers" ;;
	*) echo "policy $1" ;;
	esac
}

table()
{
	local legs='2 /dev/mapper/leg0 0 /dev/mapper/leg1 0' knobs

	case $1 in
	linear) echo 'linear /dev/mapper/leg0 0' ;;
	mirror) echo "mirror core 2 1024 nosync $legs" ;;
	raid1) echo 'raid raid1 2 0 nosync 2 - /dev/mapper/leg0 - /dev/mapper/leg1' ;;
	*)
		knobs="$(knobs "$1") rescue_us 0 sitout_pct 0"
		echo "hedge core 2 1024 nosync $legs $(wc -w <<<"$knobs") $knobs"
		;;
	esac
}

# measure DEVICE LOAD RATE: the same service times and arrivals for all
measure()
{
	local out=/out/tail-$name-$1-$2 file=/dev/mapper/leg0

	lag_msg leg0 seed 1
	lag_msg leg1 seed 2
	if [ "$1" != raw ]; then
		file=/dev/mapper/tail
		dmsetup create tail --table "0 $((mib * 2048)) $(table "$1")"
	fi
	openloop --rate "$3" --count "$reads" --limit $limit --seed 3 --json $file >"$out.json"
	if [ "$1" = raw ]; then
		: >"$out.stats"
	else
		counters tail >"$out.stats"
		dmsetup remove tail
	fi
}

null_init
modprobe dm-lag
for i in 0 1; do
	null_leg $i $mib
	lag_create leg$i /dev/nullb$i "$servers" $((i + 1))
	lag_law leg$i "${laws[i]}"
done
for device; do
	for load in "${loads[@]}"; do
		measure "$device" "${load%:*}" "${load#*:}"
	done
	echo "tail: $name $device"
done
