#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# limit: 1800
#
# Crashes in the middle of the first resync, under writes: the legs differ at the
# beginning, and the first has the data.

. "$(dirname "$0")/disks.sh"
need_hedge

disks_make 2 8216 64
disks_fill 0
dd if=/dev/urandom of="$TMP/base1" bs=64k count=65 iflag=fullblock status=none
truncate -s $((LENGTH * 512)) "$TMP/base1"
dd if="$TMP/base1" of=/dev/ram1 bs=1M oflag=direct status=none
disk_lag 0 0 4000000
disk_lag 1 0 8000000
disk_lag 2 0 4000000
disks_record
disks_create sync
say begin
numbered write "$DEV" $MARKS --threads 6 --pause 20 --seed "$SEED" --seconds 60 >/dev/null &
load=$!
check "the resync ends under load" wait_until 60 in_sync
sleep 7			# so that regions are cleaned, and written again
say end
kill $load
wait $load || :
disks_done
check_order "resync"
check "resync: the legs were equal" \
	numbered same --bytes $((LENGTH * 512)) /dev/ram0 /dev/ram1
crash_points 20 judge_numbered
