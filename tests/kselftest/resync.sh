#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# limit: 240
#
# Legs that differ are made equal while reads and writes go on: the first has the
# data, and until a region is in sync nothing else is read there. The last region is
# smaller than the others. A suspend in the middle, and a remove with a disk log,
# lose nothing of what was done. Needs dm-lag.

. "$(dirname "$0")/common.sh"
need_hedge
count_versions

REGIONS=65

# Fills leg 0 with stamps and leg 1 with something else.
differ()
{
	load fill /dev/ram0 >/dev/null
	dd if=/dev/urandom of="$TMP/noise" bs=64k count=1 iflag=fullblock status=none
	for ((i = 0; i < 65; i++)); do
		dd if="$TMP/noise" of=/dev/ram1 bs=64k seek=$i oflag=direct conv=notrunc status=none
	done
}

# How many regions are in sync: the number before the slash in the status.
in_sync()
{
	[[ $(dmsetup status "$NAME") =~ \ ([0-9]+)/$REGIONS\ 1\  ]] && echo "${BASH_REMATCH[1]}"
}

at_least() { (($(in_sync) >= $1)); }

# Copying a region takes at least so many nanoseconds on each leg.
slow() { for i in 0 1; do lag_law $i fixed "$1"; done; }

# On the legs themselves: what they hold where the volume is.
equal() { blockdev --flushbufs /dev/ram0 /dev/ram1 && cmp -n $((LENGTH * 512)) /dev/ram0 /dev/ram1; }

legs_brd 3 5
unset 'LEGS[2]'	# for the log
lag_leg 0
lag_leg 1
lag 1 writes 1
LENGTH=$((64 * 128 + 24))		# the last region has 24 sectors
differ
slow $((100000000 * SCALE))
LOG='core 2 128 sync'
hedge_create 2>/dev/null || skip "$TARGET has no resync"
check_num "the resync has begun, and not ended" "$(in_sync) < $REGIONS"
check "reads under it find the data of the first leg" \
	load read "$DEV" --threads 4 --count "$(scaled 12)" --verify
check_num "it goes on" "$(in_sync) < $REGIONS"
[ "$TARGET" != hedge ] ||
	check_num "such reads are counted" "$(get stats/unhedged_sync) > 0"
check "it gets on" wait_until 30 at_least 10

# Suspended in the middle: nothing is copied meanwhile, and nothing again later.
dmsetup suspend "$NAME"
before=$(in_sync)
served=$(dmsetup status lag1)
sleep 0.3
check_eq "suspended: nothing is copied" "$(dmsetup status lag1)" "$served"
dmsetup resume "$NAME"
check_num "resumed: what was done stays" "$(in_sync) >= $before && $before < $REGIONS"
slow 2000000
check "writes and reads under it are right" \
	linear "$DEV" --first $((REGIONS / 2 * 128)) --sectors 512 --writers 2 --readers 3 --seconds 3
check "it ends" wait_until 30 at_least $REGIONS
check "the legs are equal, the last region too" equal
hedge_remove
check "the legs are still equal" equal

# Writes all over while the resync runs.
differ
hedge_create
load mixed "$DEV" --threads 6 --bs 4k --verify >"$TMP/load" 2>&1 &
load=$!
check "under a load everywhere it ends" wait_until 60 at_least $REGIONS
kill $load
status=0
wait $load || status=$?
check_eq "the load found no wrong data" $status 0
check_eq "and no errors" "$(field errors "$(<"$TMP/load")")" 0
hedge_remove
check "the legs are equal" equal
dmsetup create leg1 --table "0 $LENGTH linear /dev/ram1 0"
check "and hold what they should" load check /dev/mapper/leg1
dmsetup remove leg1

# A disk log knows how far it was.
differ
slow $((60000000 * SCALE))
LOG='disk 3 /dev/ram2 128 sync'
hedge_create
check "with a disk log it gets on" wait_until 30 at_least 12
dmsetup suspend "$NAME"
before=$(in_sync)
hedge_remove
LOG='disk 2 /dev/ram2 128'
hedge_create
check_num "after a remove it goes on from there" \
	"$(in_sync) + 4 >= $before && $before < $REGIONS"
slow 1000000
check "it ends" wait_until 30 at_least $REGIONS
hedge_remove
check "the legs are equal" equal
hedge_create
check_eq "and the log knows" "$(in_sync)" $REGIONS
hedge_remove

# It takes no more of the time than it may, and hedgectl shows how far it is.
throttle=/sys/module/dm_hedge/parameters/resync_throttle
if [ "$TARGET" = hedge ]; then
	need_program hedgectl
	differ
	slow 10000000
	check "the throttle can be set" eval 'echo 1 >$throttle'
	LOG='core 2 128 sync'
	hedge_create
	sleep 6
	check_num "one hundredth of the time is not enough" "$(in_sync) < $REGIONS"
	check "hedgectl shows it" hedgectl show "$NAME"
	check_match "with a bar" "$OUTPUT" '\[[#=>. -]+\].*[0-9]+ ?%|[0-9]+ ?%.*\[[#=>. -]+\]'
	check "the throttle can be set" eval 'echo 100 >$throttle'
	check "then it ends" wait_until 30 at_least $REGIONS
	check "the legs are equal" equal
fi
