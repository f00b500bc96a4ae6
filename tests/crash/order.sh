#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# limit: 300
#
# The log is marked, and flushed, before the first write to a clean region reaches
# a leg, also for a second write that comes while the region is being opened: the
# log is slow, and eight threads begin at once in the same regions. And it is
# cleaned only when the legs hold what they were given. So it is with discards of several
# regions at a time, the first and the last in part.

. "$(dirname "$0")/disks.sh"
need_hedge

disks_make 2 16384 512
disks_fill 0
disks_fill 1
disk_lag 0 0 1000000
disk_lag 1 0 3000000
disk_lag 2 10000000 40000000
disks_record
disks_create nosync
discards_start 12392 $((5 * REGION))
check "write" numbered write "$DEV" $MARKS --threads 8 --seconds "${SECONDS_OF_LOAD:-10}" \
	--pause 10 --window 2500 --flush 2 --seed "$SEED" "${NUMBERED[@]}"
discards_stop
disks_done
check_order "a slow log" 16
check_num "a slow log: writes met a region that was being opened" \
	"$(field met "$ORDER") > 5"
check_num "a slow log: regions were cleaned" "$(field cleaned "$ORDER") > 0"
