#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What a read and a write cost, for `bench': runs in a guest of the exact rig.
#
#	cost.sh DEVICE...
#
# All is done by the processor: the legs are memory and answer before the
# submitter goes on, so the time a job takes, divided by its I/Os, is the
# instructions of one I/O, from fio to the memory and back. DEVICE is raw (a leg
# alone), linear, mirror, raid1, or hedge as
#
#	off	with speculation off: a read is sent once, zero-copy
#	on	with a clock for each read, which never fires
#	hedged	with one read in twenty sent to a leg that takes longer than the
#		timeout, and hedged
#
# For each there are then in /out cost-DEVICE.json, what fio said of four jobs
# (reads and writes at random places, of 4 and 64 KiB, 16 at a time; hedged only
# reads), and cost-DEVICE.stats, "<counter> <value>" a line for hedge.

set -euo pipefail

. /legs.sh

mib=64
reads=40000 reads_64=10000	# enough that a millisecond, fio's unit, is small

table()
{
	local legs='2 /dev/nullb0 0 /dev/nullb1 0'

	case $1 in
	linear) echo 'linear /dev/nullb0 0' ;;
	mirror) echo "mirror core 2 1024 nosync $legs" ;;
	raid1) echo 'raid raid1 2 0 nosync 2 - /dev/nullb0 - /dev/nullb1' ;;
	off) echo "hedge core 2 1024 nosync $legs 6 copies 1 timeout_us off rescue_us 0" ;;
	on) echo "hedge core 2 1024 nosync $legs 2 timeout_us 1000000" ;;
	hedged) echo "hedge core 2 1024 nosync 2 /dev/nullb0 0 /dev/nullb2 0" \
		'16 policy slb balance random timeout_us 200 hedge_to any' \
		'leg 0 weight 95 leg 1 weight 5' ;;
	esac
}

# job RW KIB NUMBER
job()
{
	printf '%s\n' "--name=$1-$2k" --stonewall --rw=rand"$1" --bs="$2k" --io_size=$(($2 * $3))k
}

measure()
{
	local file=/dev/nullb0 jobs

	if [ "$1" != raw ]; then
		file=/dev/mapper/cost
		dmsetup create cost --table "0 $((mib * 2048)) $(table "$1")"
	fi
	mapfile -t jobs < <(job read 4 $reads; job read 64 $reads_64
		[ "$1" = hedged ] || { job write 4 $reads; job write 64 $reads_64; })
	fio --filename=$file --direct=1 --ioengine=libaio --iodepth=16 --norandommap \
		--randrepeat=1 --eta=never --output-format=json --output="/out/cost-$1.json" "${jobs[@]}"
	[ "$1" != raw ] || return 0
	counters cost >"/out/cost-$1.stats"
	dmsetup remove cost
}

null_init
null_leg 0 $mib
null_leg 1 $mib
null_leg 2 $mib 1000000
for device; do
	echo "cost: $device"
	measure "$device"
done
