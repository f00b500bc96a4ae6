#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# limit: 1800
#
# Crashes while numbered blocks are written to a mirror in sync: no promised write
# is lost, and the legs are equal after the resync. The size is no multiple of the
# region's. Meanwhile sectors of several regions, two of them in part, are discarded.

. "$(dirname "$0")/disks.sh"
need_hedge

disks_make 2 8216 128
disks_fill 0
disks_fill 1
disk_lag 0 0 3000000
disk_lag 1 0 8000000
disk_lag 2 0 4000000
disks_record
disks_create nosync
say begin
discards_start 7208 $((5 * REGION))
check "write" numbered write "$DEV" $MARKS --threads 6 --seconds "${SECONDS_OF_LOAD:-17}" \
	--pause 20 --window 3500 --seed "$SEED" "${NUMBERED[@]}"
discards_stop
echo "# $OUTPUT"
say end
disks_done
check_order "write"
crash_points 45 judge_numbered
controls
