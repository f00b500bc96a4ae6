#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# limit: 1800
#
# Crashes under ext4: files that were synced are there with what they had, and
# the file system is without errors once its journal has been replayed.

. "$(dirname "$0")/disks.sh"
need_module ext4
need_program mkfs.ext4
need_hedge

mnt=$TMP/mnt
mkdir "$mnt"

judge_files()
{
	local status=0

	assemble "$1" && legs_same && mount -t ext4 "$DEV" "$mnt" || return 1
	numbered checkfiles "$mnt" "$TRACE_FILE" "$1" || status=1
	umount "$mnt" && fsck.ext4 -fn "$DEV" && return $status
}

disks_make 2 16408 128
disk_lag 0 0 2000000
disk_lag 1 0 5000000
disk_lag 2 0 3000000
disks_record
disks_create nosync
check "mkfs" mkfs.ext4 -q -b 1024 -J size=1 -N 512 \
	-E nodiscard,lazy_itable_init=0,lazy_journal_init=0 "$DEV"
mount -t ext4 "$DEV" "$mnt"
say begin
check "make, rename and remove files" numbered files "$mnt" $MARKS --count "${FILES:-80}"
say end
umount "$mnt"
disks_done
check_order "files"
crash_points 20 judge_files
