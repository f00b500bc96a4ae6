#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# limit: 300
#
# Other people's tests, which know nothing of us: stress-ng's classes for disks and asynchronous
# I/O, which verify what they read, and fio with io_uring and checksums; in a file system on a
# volume that hedges over a slow leg. Needs stress-ng, fio, e2fsprogs and dm-lag.
# leaks: not looked for: its time goes into starting programs

. "$(dirname "$0")/common.sh"
need_hedge
for p in stress-ng fio mkfs.ext4 fsck.ext4; do need_program $p; done
need_module ext4

MNT=$TMP/mnt
SECS=$((8 * SCALE))
mkdir "$MNT"
legs_brd 2 96
lag_leg 0
lag_law 0 bimodal 100000 3000000 100000
hedge_create policy slb timeout_us 500 budget_pct 100
mkfs.ext4 -q "$DEV"
mount "$DEV" "$MNT"

# stressed CLASS WORD...: by two workers, until time is up
stressed()
{
	check "stress-ng $1" stress-ng --temp-path "$MNT" --verify --timeout "$SECS" --no-rand-seed \
		--oomable "--$1" 2 "${@:2}"
	check_eq "stress-ng $1: no leg is out" "$(health)" AA
}

stressed hdd --hdd-bytes 8M --hdd-write-size 16K --hdd-opts direct,wr-rnd,rd-rnd,fdatasync
stressed aio --aio-requests 16
stressed fallocate --fallocate-bytes 8M
stressed seek --seek-size 8M

[ ! -e /proc/sys/kernel/io_uring_disabled ] || echo 0 >/proc/sys/kernel/io_uring_disabled
check "fio, io_uring: it verifies what it wrote" fio --minimal --directory="$MNT" --direct=1 \
	--ioengine=io_uring --iodepth=16 --rw=randrw --verify=crc32c --verify_fatal=1 \
	--verify_backlog=64 --group_reporting=1 --size=6m \
	--name=fixed --bs=4k --registerfiles=1 --name=mixed --bsrange=4k-64k

umount "$MNT"
check "the file system is clean" fsck.ext4 -fn "$DEV"
check "all legs hold the same" legs_equal
check_num "copies beyond the first were sent" "$(get stats/extra) > 0"
check_accounting "at the end"
