#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# limit: 300
#
# ext4 and xfs: make, mount, fill, check, trim. Legs that take discards, with a cache: each
# leg gets the discards and the flushes.
# leaks: not looked for: its time goes into starting programs

. "$(dirname "$0")/common.sh"
need_hedge
for p in mkfs.ext4 fsck.ext4 mkfs.xfs xfs_repair fstrim mount truncate; do
	need_program $p
done

MNT=$TMP/mnt
mkdir "$MNT"

make_ext4() { mkfs.ext4 -q "$DEV"; }
check_ext4() { fsck.ext4 -fn "$DEV"; }
make_xfs() { mkfs.xfs -q "$DEV"; }
check_xfs() { xfs_repair -n "$DEV"; }

# Files of many sizes, with what says whether they are whole.
fill()
{
	local i

	for ((i = 0; i < 40; i++)); do
		mkdir -p "$MNT/$((i % 7))"
		truncate -s $((i * i * 500)) "$MNT/$((i % 7))/$i"
		load fill "$MNT/$((i % 7))/$i" 2>/dev/null ||
			dd if=/dev/urandom of="$MNT/$((i % 7))/$i" bs=4k count=$((i + 1)) status=none
	done
	(cd "$MNT" && find . -type f -exec md5sum {} + | sort >"$TMP/sums")
	[ "$(wc -l <"$TMP/sums")" = 40 ]
}

# A number of each leg's statistics: discards are the 12th, flushes the 16th.
counted() { local d; for d in "${LEGS[@]}"; do awk -v n="$1" '{ print $n }' "/sys/block/${d#/dev/}/stat"; done; }

# check_legs_got DESCRIPTION N BEFORE
check_legs_got()
{
	local before after i=0

	before=($3)
	for after in $(counted "$2"); do
		check_num "$1 leg $i" "$after > ${before[i++]}"
	done
}

whole() { (cd "$MNT" && md5sum -c "$TMP/sums" >/dev/null); }

legs()
{
	remove_all
	null_remove
	LEGS=() LENGTH=''
	modprobe null_blk nr_devices=0
	null_leg "size=$1" memory_backed=1 discard=1 cache_size=8 completion_nsec=0
	null_leg "size=$1" memory_backed=1 discard=1 cache_size=8 completion_nsec=0
}

for fs in ext4 xfs; do
	need_module $fs
	# xfsprogs refuse less than 300 MiB; a leg takes only the memory that is written to
	[ $fs = ext4 ] && legs 64 || legs 304
	hedge_create
	check "$fs: make" make_$fs
	check "$fs: mount" mount -t $fs "$DEV" "$MNT"
	check "$fs: fill" fill
	before=$(counted 16)
	check "$fs: sync" sync -f "$MNT"
	check_legs_got "$fs: sync: flushes" 16 "$before"
	umount "$MNT"
	check "$fs: no errors" check_$fs
	mount -t $fs "$DEV" "$MNT"
	check "$fs: files are whole" whole
	rm -r "$MNT"/[135]
	sed -i '/ \.\/[135]\//d' "$TMP/sums"
	sync -f "$MNT"
	# dm-mirror passes discards on too
	before=$(counted 12)
	check "$fs: trim" fstrim -v "$MNT"
	echo "# $OUTPUT"
	check_legs_got "$fs: trim: discards" 12 "$before"
	check "$fs: the other files are whole" whole
	umount "$MNT"
	check "$fs: still no errors" check_$fs
	check_match "$fs: all legs are in" "$(health)" '^A+$'
	check "$fs: the legs are equal" legs_equal
	hedge_remove
done
