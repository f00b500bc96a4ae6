#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The status line has the fields of mirror and then those of hedge, and they are the
# counters of sysfs; the table line makes the same device; IMA is answered; discards,
# write-zeroes, flushes and FUA reach every leg. Needs null_blk.

. "$(dirname "$0")/common.sh"
need_hedge

for i in 0 1 2; do
	null_leg memory_backed=1 size=16 discard=1 cache_size=4
done
hedge_create policy coc
fill_legs
load read "$DEV" --threads 2 --count 50 >/dev/null
check "all copies ended" wait_until 10 drained

status=$(dmsetup status "$NAME")
majmin=''
for d in "${LEGS[@]}"; do
	majmin+="$(cat "/sys/block/${d#/dev/}/dev") "
done
check_match "the fields of mirror" "$status" \
	"^0 $LENGTH hedge 3 $majmin([0-9]+)/([0-9]+) 1 AAA 1 core [0-9]+ policy coc "
check_eq "all regions are in sync" "${BASH_REMATCH[1]:-x}" "${BASH_REMATCH[2]:-y}"
for f in policy tau_us reads extra hedged won wasted cancelled rescued unhedged sitting \
	stalled held oldest_us oldest_leg; do
	check_match "field $f" "$status" " $f [^ ]+"
done
for f in reads extra hedged won wasted cancelled rescued; do
	check_eq "field $f is the counter" "$(status_field $f)" "$(get stats/$f)"
done
# The number of words that follow is announced.
read -r -a words <<<"${status#*1 core }"
check_eq "the number of fields" "${words[0]}" $((${#words[@]} - 1))

# dm_hedge's status is measured where the kernel was told to (ima_policy=critical_data).
measured=/sys/kernel/security/ima/ascii_runtime_measurements
if [ -e $measured ] && grep -q ima_policy=critical_data /proc/cmdline &&
   grep -q dm_table_load $measured; then
	hex=$(printf 'target_name=hedge' | od -An -tx1 | tr -d ' \n')
	check "IMA is answered" grep -q "$hex" $measured
else
	echo "# this kernel does not measure tables"
fi

# Every leg gets what is not a read, in one piece where it matters.
number() { IFS=: read -r a b <"/sys/block/${1#/dev/}/dev"; echo "$a,$b"; }

reaches()
{
	local what=$1 rwbs=$2 d

	shift 2
	trace_start block/block_bio_queue
	"$@" >/dev/null 2>&1 || not_ok "$what: $*"
	trace_stop
	for d in "${LEGS[@]}"; do
		check_num "$what reaches $d" \
			"$(trace_lines ": $(number "$d") $rwbs " | wc -l) > 0"
	done
}

reaches "a write" 'W[S]*' dd if=/dev/urandom of="$DEV" bs=4k count=4 oflag=direct
reaches "a flush" 'F[WFS]*' dd if=/dev/zero of="$DEV" bs=4k count=1 conv=fsync
[ "$(cat "/sys/block/$(basename "$(dirname "$SYS")")/queue/fua")" = 0 ] ||
	reaches "FUA" 'WF[S]*' dd if=/dev/zero of="$DEV" bs=4k count=1 oflag=direct,dsync
reaches "a discard" 'D[S]*' blkdiscard -o 1M -l 2M "$DEV"
check_eq "a discard stays in one piece" \
	"$(trace_lines ": $(number "${LEGS[0]}") D" | wc -l)" 1
check "legs agree afterwards" legs_equal
fill_legs
load mixed "$DEV" --threads 4 --count "$(scaled 100)" >/dev/null
check "and after random writes" legs_equal
hedge_remove

# Memory files under loop devices take write-zeroes (N); null_blk and brd do not.
need_module loop
LEGS=() LENGTH=''
for i in 0 1; do
	truncate -s 8M "/dev/shm/leg$i"
	losetup "/dev/loop$i" "/dev/shm/leg$i"
	LEGS+=("/dev/loop$i")
done
hedge_create
fill_legs
reaches "write-zeroes" 'N[S]*' blkdiscard -z -o 4M -l 1M "$DEV"
check "legs agree after write-zeroes" legs_equal
check "they are zeroes" cmp -n 1048576 -i 4194304:0 "$DEV" /dev/zero
# A leg that does not take them: the caller writes zeroes instead.
rmmod brd 2>/dev/null || :
modprobe brd rd_nr=1 rd_size=8192
hedge_remove
LEGS[1]=/dev/ram0
hedge_create
fill_legs
check "write-zeroes with a leg that cannot" blkdiscard -z -o 4M -l 1M "$DEV"
check "legs agree after it" legs_equal
check "no leg is lost by it" test "$(health)" = AA
hedge_remove
losetup -d /dev/loop0
losetup -d /dev/loop1
rm /dev/shm/leg?
