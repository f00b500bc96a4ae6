#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# hedgectl convert: mirror to hedge and back on one log, while data is written and
# verified; in the middle of a resync too; from legs with labels, which then are gone;
# and what it refuses. Needs dm-lag, hedgectl.
# limit: 240

. "$(dirname "$0")/common.sh"
need_hedge
need_module dm-mirror
need_program hedgectl

target() { dmsetup table "$NAME" | cut -d' ' -f3; }
in_sync() { dmsetup status "$NAME" | awk '{ split($(4 + $4 + 1), n, "/"); exit n[1] != n[2] }'; }

legs_brd 3 16
lag_leg 1
LOGDEV=${LEGS[2]}
LEGS=("${LEGS[@]:0:2}")
size=$(blockdev --getsz "${LEGS[0]}")
legs="2 ${LEGS[0]} 0 ${LEGS[1]} 0 1 handle_errors"

for log in "disk 2 $LOGDEV 1024" "core 1 1024"; do
	dd if=/dev/urandom of="${LEGS[0]}" bs=64k count=4 oflag=direct conv=notrunc status=none
	check "a mirror, ${log%% *} log" dmsetup create "$NAME" --table "0 $size mirror $log $legs"
	check "it gets in sync" wait_until 60 in_sync
	load fill "$DEV" >/dev/null
	load write "$DEV" --threads 2 --count "$(scaled 500)" >"$TMP/out" &
	writer=$!
	for to in hedge mirror hedge; do
		check "to $to" hedgectl convert "$NAME"
		check_eq "it is one" "$(target)" $to
	done
	check "the writer ends" wait $writer
	check_eq "the writer ends: without errors" "$(field errors "$(<"$TMP/out")")" 0
	check "what is read is right" load read "$DEV" --threads 2 --count "$(scaled 200)" --verify
	check "all is in sync" wait_until 60 in_sync
	dmsetup suspend "$NAME"
	check "the legs are equal" legs_equal
	dmsetup resume "$NAME"
	hedge_remove
	dd if=/dev/zero of="$LOGDEV" bs=64k count=4 oflag=direct conv=notrunc status=none
done

# In the middle of a resync: each target goes on with what the other has left.
dd if=/dev/urandom of="${LEGS[0]}" bs=1M count=16 oflag=direct conv=notrunc status=none
lag_law 1 fixed 1000000
lag 1 writes 1
check "a mirror that resyncs" dmsetup create "$NAME" --table "0 $size mirror disk 2 $LOGDEV 1024 $legs"
for to in hedge mirror hedge; do
	check "to $to in the middle" hedgectl convert "$NAME"
	check_eq "it is one" "$(target)" $to
done
lag_law 1 fixed 0
check "it gets in sync" wait_until 60 in_sync
dmsetup suspend "$NAME"
check "the legs are equal" legs_equal
dmsetup resume "$NAME"

check "a dry run" hedgectl convert "$NAME" --dry-run
check_match "prints the table" "$OUTPUT" "^0 $size mirror disk 2 "
check_eq "and changes nothing" "$(target)" hedge
message fail 1
check "with a leg out" wait_until 10 eval '[[ $(health) == AU ]]'
check_fails "it is refused" hedgectl convert "$NAME"
check_match "for that reason" "$OUTPUT" 'leg 1 .* is not healthy'
check_eq "it is as it was" "$(target)" hedge
message reinstate 1
check "the leg comes back" wait_until 60 eval '[[ $(health) == AA ]]'
check "the legs get in sync" wait_until 60 in_sync
message fail 0
wait_until 10 eval '[[ $(health) == UA ]]'
message reinstate 0
check "the default leg was another for a while" wait_until 60 in_sync
check "it can be converted" hedgectl convert "$NAME"
hedge_remove

# Legs with labels: a mirror would not keep them true.
labelled() { hedgectl examine "$1" >/dev/null 2>&1; }
dd if=/dev/zero of="$LOGDEV" bs=64k count=4 oflag=direct conv=notrunc status=none
hedgectl create "$NAME" --nosync --force --log "disk:$LOGDEV" "${LEGS[@]}" >/dev/null
find_sysfs
load fill "$DEV" >/dev/null
check "it has labels" labelled /dev/ram0
message fail 1
check "with a leg out" wait_until 10 eval '[[ $(health) == AU ]]'
check_fails "it is refused" hedgectl convert "$NAME"
check "and the labels stay" labelled /dev/ram0
message reinstate 1
check "the leg comes back" wait_until 60 eval '[[ $(get legs/1/state) == in_sync ]]'
lag 1 writes 1
load write "$DEV" --threads 1 --count 5 >/dev/null
lag 1 error 1
check_fails "with a leg whose label cannot be written it is refused" hedgectl convert "$NAME"
lag 1 error 0
lag 1 writes 0
check_eq "it is as it was" "$(target)" hedge
check "and the labels stay" labelled /dev/ram0
message reinstate 1
check "the leg comes back" wait_until 60 eval '[[ $(get legs/1/state) == in_sync ]]'
check_eq "a dry run tells that labels go" "$(hedgectl convert "$NAME" --dry-run 2>&1 | grep -c 'would be removed')" 1
check "and leaves them" labelled /dev/ram0
export HEDGETAB=$TMP/hedgetab
echo "boot UUID=$(dmsetup table "$NAME" | sed 's/.* label \([^ ]*\).*/\1/')" >"$HEDGETAB"
load write "$DEV" --threads 2 --count "$(scaled 500)" >"$TMP/out" &
writer=$!
check "it becomes a mirror under load" hedgectl convert "$NAME"
check_match "and says what hedgetab has of its labels" "$OUTPUT" "boot: its set still has a line"
check_eq "it is one" "$(target)" mirror
rm "$HEDGETAB"
wait $writer
check_eq "the writer ends without errors" "$(field errors "$(<"$TMP/out")")" 0
for d in /dev/ram0 /dev/ram1 "$LOGDEV"; do
	check_fails "$d: the label is gone" labelled "$d"
done
check "what is read is right" load read "$DEV" --threads 2 --count "$(scaled 200)" --verify
check "it becomes a hedge again, without labels" hedgectl convert "$NAME"
check_eq "it is one" "$(target)" hedge
check_fails "without labels" grep -w label <<<"$(dmsetup table "$NAME")"
check "what is read is right" load read "$DEV" --threads 2 --count "$(scaled 200)" --verify
check "all is in sync" wait_until 60 in_sync
dmsetup suspend "$NAME"
check "the legs are equal" legs_equal
dmsetup resume "$NAME"
hedge_remove

dmsetup create "$NAME" --table "0 $size linear ${LEGS[0]} 0"
check_fails "a linear device" hedgectl convert "$NAME"
check_match "is refused for what it is" "$OUTPUT" 'its target is "linear"'
hedge_remove
dmsetup create "$NAME" -u LVM-abc --table "0 $size mirror core 2 1024 nosync $legs"
check_fails "a device of LVM" hedgectl convert "$NAME"
check_match "is LVM's to convert" "$OUTPUT" 'another program'
check_fails "no device" hedgectl convert nothing
