#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# hedgectl convert: mirror to hedge and back on one log, while data is written and
# verified; in the middle of a resync too; from legs with labels, which then are gone;
# of a mirror that does not know whether its legs are equal all is copied; and what is
# refused. Needs dm-lag, hedgectl.
# limit: 240
# leaks: not looked for: its time goes into starting programs

. "$(dirname "$0")/common.sh"
need_hedge
need_module dm-mirror
need_program hedgectl
count_versions

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
	load mixed "$DEV" --threads 2 --verify >"$TMP/out" 2>&1 &
	writer=$!
	for to in hedge mirror hedge; do
		check "to $to" hedgectl convert "$NAME"
		check_eq "it is one" "$(target)" $to
	done
	check "reads and writes went on" kill $writer
	ended=0
	wait $writer || ended=$?
	check_eq "what was read was right" $ended 0
	check_eq "without errors" "$(field errors "$(<"$TMP/out")")" 0
	check "what is read is right" load check "$DEV"
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
check "what is read is right" load check "$DEV"
check "it becomes a hedge again, without labels" hedgectl convert "$NAME"
check_eq "it is one" "$(target)" hedge
check_fails "without labels" grep -w label <<<"$(dmsetup table "$NAME")"
check "what is read is right" load check "$DEV"
check "all is in sync" wait_until 60 in_sync
dmsetup suspend "$NAME"
check "the legs are equal" legs_equal
dmsetup resume "$NAME"
hedge_remove

# A mirror on which a write has failed: what it lacks, only that mirror knows.
dmsetup create lag0 --table "0 $size lag ${LEGS[0]} 0 64 1"
ended() { [ -s "$TMP/held" ]; }
new_mirror()
{
	dd if=/dev/zero of="$LOGDEV" bs=64k count=4 oflag=direct conv=notrunc status=none
	dmsetup create "$NAME" --table "0 $size mirror disk 3 $LOGDEV 1024 nosync 2 /dev/mapper/lag0 0 /dev/mapper/lag1 0$1"
}
for i in 0 1; do
	check "a mirror in sync" new_mirror " 1 handle_errors"
	lag $i writes 1
	lag $i error 1
	{ dd if=/dev/urandom of="$DEV" bs=4k count=1 oflag=direct conv=notrunc status=none 2>/dev/null && echo 0 || echo 1; } >"$TMP/held" &
	check "a write fails on leg $i" wait_until 20 eval '[[ $(health) == *D* ]]'
	lag $i error 0
	lag $i writes 0
	check_fails "then it is refused" hedgectl convert "$NAME"
	check_match "for that reason" "$OUTPUT" "leg $i .* is not healthy"
	check_eq "it is as it was" "$(target)" mirror
	dmsetup suspend "$NAME"		# which ends what the mirror held
	wait_until 20 ended
	dmsetup resume "$NAME"
	hedge_remove
done

# One that did not look at errors: its legs may differ although its log calls them equal.
check "a mirror in sync that does not tell of errors" new_mirror ""
load fill "$DEV" >/dev/null
dd if=/dev/urandom of=/dev/ram1 bs=4k seek=700 count=1 oflag=direct conv=notrunc status=none
check "it is in sync for all it knows" in_sync
check "it becomes a hedge" hedgectl convert "$NAME"
check_match "all is copied from its first leg" "$OUTPUT" "hedge disk 3 [^ ]+ 1024 sync "
check_match "and that is said" "$OUTPUT" "had no handle_errors"
check "it gets in sync" wait_until 60 in_sync
check "what is read is right" load check "$DEV"
dmsetup suspend "$NAME"
check "the legs are equal" legs_equal
check "the block that differed is that of the first leg" \
	cmp -n 4096 -i $((700 * 4096)) /dev/ram0 /dev/ram1
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
