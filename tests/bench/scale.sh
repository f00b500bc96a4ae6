#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# How costs grow, for `bench': runs in a guest of the exact rig.
#
#	scale.sh legs READS N...
#		what a 4 KiB read costs on N legs of memory that answer at once
#	scale.sh depth READS N...
#		what it costs on two legs, with N reads out at a time
#	scale.sh memory KIB N
#		what memory N reads of KIB KiB take while they are out
#
# Devices are those of cost.sh: raw and linear (of one leg), mirror, raid1, and
# hedge with speculation off and on. So that N reads are out, legs answer 1 us
# and 8 us for each of the other reads after they were asked, by a timer: the
# processor takes longer than that for a read and never waits.
#
# /out gets scale-WHAT-DEVICE-N.json, what fio said, and for memory
# scale-memory-DEVICE-KIB: "kib <n>", by how much free memory fell from before the
# reads began until all of them were out, and for each slab cache that grew by
# about one object for each read "cache <name> <objects> <bytes of one>".

set -euo pipefail

. /legs.sh

mib=16
devices='linear mirror raid1 off on'

# table DEVICE LEG...: its line, without start and length
table()
{
	local device=$1 i legs='' pairs=''

	shift
	for i; do
		legs+=" /dev/nullb$i 0"
		pairs+=" - /dev/nullb$i"
	done
	case $device in
	linear) echo "linear /dev/nullb$1 0" ;;
	mirror) echo "mirror core 2 1024 nosync $#$legs" ;;
	raid1) echo "raid raid1 2 0 nosync $#$pairs" ;;
	off) echo "hedge core 2 1024 nosync $#$legs 6 copies 1 timeout_us off rescue_us 0" ;;
	on) echo "hedge core 2 1024 nosync $#$legs 4 timeout_us 10000000 rescue_us 0" ;;
	esac
}

# on DEVICE LEG...: makes it, and sets file to its name
on()
{
	file=/dev/nullb$2
	[ "$1" != raw ] || return 0
	dmsetup create scale --table "0 $((mib * 2048)) $(table "$@")"
	file=/dev/mapper/scale
}

gone()
{
	[ "$file" != /dev/mapper/scale ] || dmsetup remove scale
}

# reads NUMBER KIB DEPTH OUTPUT: reads from file at random places
reads()
{
	fio --name=scale --filename="$file" --direct=1 --ioengine=libaio --iodepth="$3" \
		--norandommap --randrepeat=1 --rw=randread --bs="$2k" --io_size=$(($1 * $2))k \
		--eta=never --output-format=json --output="$4"
}

# measure WHAT N DEPTH DEVICE LEG...
measure()
{
	local what=$1 n=$2 depth=$3

	shift 3
	on "$@"
	reads "$number" 4 "$depth" "/out/scale-$what-$1-$n.json"
	gone
	echo "scale: $what $n $1"
}

legs()
{
	local n device i

	for i in $(seq 0 7); do
		null_leg "$i" $mib
	done
	measure legs 1 16 raw 0
	measure legs 1 16 linear 0
	for n; do
		for device in $devices; do
			[ "$device" != linear ] || continue
			# shellcheck disable=SC2046 # numbers
			measure legs "$n" 16 "$device" $(seq 0 $((n - 1)))
		done
	done
}

depth()
{
	local n device leg=0

	for n; do
		null_leg $leg $mib $(((n - 1) * 8000 + 1000))
		null_leg $((leg + 1)) $mib $(((n - 1) * 8000 + 1000))
		for device in raw $devices; do
			measure depth "$n" "$n" "$device" $leg $((leg + 1))
		done
		leg=$((leg + 2))
	done
}

# Pages that nobody uses, those in the allocator's lists of each CPU too.
free_kib()
{
	awk '$1 == "MemFree:" { kib += $2 } $1 == "count:" { kib += 4 * $2 } END { print kib }' \
		/proc/meminfo /proc/zoneinfo
}

# caches: "<name> <objects> <bytes of one>" for each
caches()
{
	awk '$2 ~ /^[0-9]+$/ { print $1, $2, $4 }' /proc/slabinfo
}

reads_out()
{
	cat /sys/block/nullb*/inflight | awk '{ n += $1 } END { print n }'
}

# memory KIB N. The first time on the raw leg fills what is kept.
memory()
{
	local kib=$1 n=$2 device before

	null_leg 0 $mib 1000000000
	null_leg 1 $mib 1000000000
	for device in raw raw $devices; do
		on "$device" 0 1
		caches >/tmp/caches
		before=$(free_kib)
		reads "$n" "$kib" "$n" /tmp/fio.json &
		until [ "$(reads_out)" -ge "$n" ]; do
			sleep 0.01
		done
		{
			echo "kib $((before - $(free_kib)))"
			caches | awk -v n="$n" 'NR == FNR { had[$1] = $2; next }
				$2 - had[$1] >= n * 0.9 { print "cache", $1, $2 - had[$1], $3 }' \
				/tmp/caches -
		} >"/out/scale-memory-$device-$kib"
		wait $!
		gone
		echo "scale: memory $kib $device"
	done
}

null_init
modprobe dm-hedge
what=$1
shift
case $what in
memory) memory "$@" ;;
*)
	number=$1
	shift
	"$what" "$@"
	;;
esac
