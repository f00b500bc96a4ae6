#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# limit: 1800
#
# Crashes while the second leg is failing, is out, and comes back. The first has all
# the data all the time.

. "$(dirname "$0")/disks.sh"
[ "$TARGET" = hedge ] || skip "legs of $TARGET do not come back"
need_hedge

is_out() { [[ $(health) == A[DF] ]]; }
is_back() { [ "$(get legs/1/state)" = in_sync ]; }

disks_make 2 8216 128
disks_fill 0
disks_fill 1
disk_lag 0 0 3000000
disk_lag 1 0 6000000
disk_lag 2 0 4000000
disks_record
disks_create nosync
say begin
numbered write "$DEV" $MARKS --threads 6 --pause 20 --seed "$SEED" --seconds 60 >"$TMP/load" &
load=$!
sleep 2
lag 1 error 1
check "the leg goes out" wait_until 10 is_out
sleep 1
lag 1 error 0
sleep 1
check "it is to come back" message reinstate 1
check "it comes back" wait_until 60 is_back
sleep 1
say end
kill $load
wait $load || :
disks_done
check "the legs were equal" numbered same --bytes $((LENGTH * 512)) /dev/ram0 /dev/ram1
check_order "out and back"
crash_points 15 judge_numbered
