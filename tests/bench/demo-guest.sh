#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The part of demo that runs in the guest: makes the two legs, puts each device named
# on the command line on them, and measures it with the same load.
#
#	HEALTHY=LAW STRAGGLING=LAW SERVERS=N TIMEOUT_US=N RATE=N RUNTIME=TIME
#		demo-guest.sh DEVICE...
#
# DEVICE is healthy or straggling (that leg alone), mirror, raid1, or a policy
# of the hedge target. For each there are then in /out DEVICE.json, what fio
# said, and for a policy DEVICE.stats, "<counter> <value>" a line.

set -euo pipefail

. /lag.sh

mib=64
straggler=/dev/mapper/straggling peer=/dev/mapper/healthy

# make_leg NAME DEV LAW: memory behind dm-lag. It is written first: memory that
# never was may be answered without copying.
make_leg()
{
	dd if=/dev/zero of="$2" bs=1M count=$mib oflag=direct status=none
	lag_create "$1" "$2" "$SERVERS" 1
	lag_law "$1" "$3"
}

# The table of a device without start and length. The straggling leg is the first,
# as that is the one that mirror reads.
table()
{
	local legs="2 $straggler 0 $peer 0"

	case $1 in
	mirror) echo "mirror core 2 1024 nosync $legs" ;;
	raid1) echo "raid raid1 2 0 nosync 2 - $straggler - $peer" ;;
	slb | fcfs-lpr) echo "hedge core 2 1024 nosync $legs 6 policy $1 timeout_us $TIMEOUT_US sitout_pct 0" ;;
	*) echo "hedge core 2 1024 nosync $legs 4 policy $1 sitout_pct 0" ;;
	esac
}

# load NAME DEV: the same service times and the same arrivals for all
load()
{
	lag_msg healthy seed 1
	lag_msg straggling seed 2
	FILENAME=$2 fio --eta=never --output-format=json+ --output="/out/$1.json" /open-loop.fio
}

# counters NAME: of the hedge target in that device
counters()
{
	local f disk

	disk=$(dmsetup info -c --noheadings -o blkdevname "$1")
	for f in "/sys/block/$disk/hedge0"/{budget_pct,tau_us,stats/*}; do
		echo "${f##*/} $(<"$f")"
	done
}

measure()
{
	case $1 in
	healthy | straggling)
		load "$1" "/dev/mapper/$1"
		return
		;;
	esac
	dmsetup create "demo-$1" --table "0 $((mib * 2048)) $(table "$1")"
	load "$1" "/dev/mapper/demo-$1"
	case $1 in
	mirror | raid1) ;;
	*) counters "demo-$1" >"/out/$1.stats" ;;
	esac
	dmsetup remove "demo-$1"
}

# fio spins where a sleep might end too late, by the slack of timers; its spinning
# would take more instructions than its reads.
echo 1 >/proc/$$/timerslack_ns

modprobe brd rd_nr=2 rd_size=$((mib * 1024))
modprobe dm-lag
make_leg healthy /dev/ram0 "$HEALTHY"
make_leg straggling /dev/ram1 "$STRAGGLING"
sed -i "s/^runtime=.*/runtime=$RUNTIME/; s/^ramp_time=.*/ramp_time=100ms/" /open-loop.fio

for device; do
	echo "demo: measuring $device"
	measure "$device"
done
