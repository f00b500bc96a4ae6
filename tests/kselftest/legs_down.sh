#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# limit: 300
#
# Legs and log go down and come back in the middle of writes, of a flush, of a resync,
# under loads that verify: no wrong data, no lost write that was acknowledged, no
# hang, and no error as long as a leg is good. Needs dm-lag; fio and dm-flakey.

. "$(dirname "$0")/common.sh"
need_hedge
need_module dm-flakey
need_program fio
count_versions

in_sync()
{
	[[ $(dmsetup status "$NAME") =~ \ ([0-9]+)/([0-9]+)\ 1\  ]] &&
		[ "${BASH_REMATCH[1]}" = "${BASH_REMATCH[2]}" ]
}

is_out() { [[ $(health) =~ ^.{$1}[DFS] ]]; }
is_back() { [ "$(get "legs/$1/state")" = in_sync ]; }

reads_right() { load check "$DEV" && load read "$DEV" --threads 4 --count "$(scaled 100)" --verify; }
flush() { dd if=/dev/null of="$DEV" conv=fsync,notrunc status=none; }

begin()
{
	load mixed "$DEV" --threads 4 --verify >"$TMP/load" 2>&1 &
	LOAD=$!
	sleep 0.3
}

# end DESCRIPTION [errors]: with errors, requests may have failed.
end()
{
	local status=0

	kill $LOAD 2>/dev/null || :
	wait $LOAD || status=$?
	check_eq "$1: the load found no wrong data" $status 0
	[ $status = 0 ] || sed 's/^/# /' "$TMP/load"
	[ "${2-}" ] || check_eq "$1: and no errors" "$(field errors "$(<"$TMP/load")")" 0
}

# Leg I is asked to come back; wait until it has what it missed.
comes_back()
{
	message reinstate "$1" && wait_until 60 is_back "$1"
}

# What is on the legs, whatever the target makes of it.
equal() { blockdev --flushbufs "${RAW[@]}" && cmp -n $((LENGTH * 512)) "${RAW[@]}"; }

make()
{
	legs_brd 3 8
	RAW=("${LEGS[@]:0:2}")
	load fill /dev/ram0 >/dev/null
	load fill /dev/ram1 >/dev/null
	lag_leg 0
	lag_leg 1
	lag_leg 2
	for i in 0 1 2; do
		lag $i writes 1
		lag_law $i fixed 500000
	done
	LOG_LEG=${LEGS[2]}
	unset 'LEGS[2]'
	LENGTH=$((8 * 2048 - 40))
}

# --- a leg, in the middle of writes -------------------------------------------

LOG='core 2 128 nosync'
make
for i in 1 0; do
	hedge_create
	begin
	lag $i error 1
	check "leg $i fails under writes: it goes out" wait_until 10 is_out $i
	sleep 0.3
	end "leg $i fails under writes"
	check "leg $i: what is read is right" reads_right
	lag $i error 0
	if [ "$TARGET" = hedge ]; then
		begin
		check "leg $i comes back under writes" comes_back $i
		end "leg $i comes back"
		check_match "leg $i comes back: the status says so" "$(health)" '^AA$'
	fi
	hedge_remove
	[ "$TARGET" != hedge ] || check "leg $i: the legs are equal" equal
	load fill /dev/ram0 >/dev/null
	load fill /dev/ram1 >/dev/null
done

# Both at once: errors, but neither a hang nor wrong data, and one is left.
hedge_create
begin
lag 0 error 1
lag 1 error 1
sleep 0.5
lag 0 error 0
lag 1 error 0
sleep 0.3
end "both fail" errors
[ "$TARGET" != hedge ] ||
	check_match "both fail: one is left" "$(get legs/0/state) $(get legs/1/state)" in_sync
check "both fail: what is read is right" reads_right
hedge_remove
# One may have been out.
load fill /dev/ram0 >/dev/null
load fill /dev/ram1 >/dev/null

# Both for a moment, under writes of which each has other data: what was acknowledged is there,
# what was not is the old or the new, and the same on both legs.
block() { printf '%4096d' "$1"; }
write() { block "$2" | dd of="$DEV" bs=4k seek="$1" oflag=direct conv=notrunc iflag=fullblock status=none 2>/dev/null; }
content() { dd if="$DEV" bs=4k skip="$1" count=1 iflag=direct status=none | tr -d ' '; }

# Until it is told to stop, or all were written to. Nothing is out while it pauses.
write_all()
{
	local i

	for ((i = 0; i < 400; i++)); do
		[ ! -e "$TMP/stop" ] || break
		while [ -e "$TMP/pause" ]; do
			: >"$TMP/paused"
			sleep 0.1
		done
		if write $i $((1000 + i)); then echo $i good; else echo $i bad; fi
	done >"$TMP/written"
}

as_promised()
{
	local i result now

	while read -r i result; do
		now=$(content "$i")
		[ "$now" = $((1000 + i)) ] || { [ "$result" = bad ] && [ "$now" = $((2000 + i)) ]; } ||
			{ echo "block $i, $result: $now"; return 1; }
	done <"$TMP/written"
}
lines() { (($(wc -l <"$TMP/written") >= $1)); }

if [ "$TARGET" = hedge ]; then
	hedge_create
	for ((i = 0; i < 400; i++)); do block $((2000 + i)); done |
		dd of="$DEV" bs=4k oflag=direct conv=notrunc iflag=fullblock status=none
	: >"$TMP/written"
	write_all &
	writer=$!
	check "a blip: writes go on" wait_until 20 lines 3
	touch "$TMP/pause"
	check "a blip: they pause" wait_until 20 test -e "$TMP/paused"
	for i in 0 1; do lag $i stuck 1; done
	rm "$TMP/pause"
	check "a blip: one hangs in both legs" wait_until 20 eval 'lag_holds 0 1 && lag_holds 1 1'
	for i in 0 1; do lag $i error 1; done
	for i in 0 1; do lag $i stuck 0; done
	check "a blip: it fails" wait_until 20 grep -q bad "$TMP/written"
	for i in 0 1; do lag $i error 0; done
	check "a blip: then writes go on" wait_until 20 eval 'tail -n 1 "$TMP/written" | grep -q good'
	touch "$TMP/stop"
	wait $writer
	check "a blip: what was acknowledged is there, and else the old or the new" as_promised
	for i in 0 1; do ! is_out $i || message reinstate $i; done
	check "a blip: both legs come back" wait_until 60 eval 'is_back 0 && is_back 1'
	check "a blip: what was acknowledged is there still" as_promised
	hedge_remove
	check "a blip: the legs are equal" equal
	load fill /dev/ram0 >/dev/null
	load fill /dev/ram1 >/dev/null
fi

# --- a leg that fails now and then --------------------------------------------

load fill /dev/ram0 >/dev/null
load fill /dev/ram1 >/dev/null
dmsetup create flaky --table "0 $(blockdev --getsz "${LEGS[1]}") flakey ${LEGS[1]} 0 $((3 * SCALE)) 1"
LEGS=("${LEGS[0]}" /dev/mapper/flaky)
hedge_create
fio --minimal --name=flaky --filename="$DEV" --direct=1 --ioengine=libaio --iodepth=8 \
	--rw=randrw --bs=4k --size=4m --time_based --runtime=$((20 * SCALE)) --verify=crc32c \
	--verify_fatal=1 --verify_backlog=64 >"$TMP/fio" 2>&1 &
fio=$!
outs=0 was_in=''
while kill -0 $fio 2>/dev/null; do
	if [ "$TARGET" = hedge ] && is_out 1; then
		outs=$((outs + ${was_in:-0})) was_in=''
		message reinstate 1
	elif [ "$TARGET" = hedge ] && is_back 1; then
		was_in=1
	fi
	sleep 0.1
done
status=0
wait $fio || status=$?
check_eq "a flaky leg: fio verifies what it wrote" $status 0
[ $status = 0 ] || sed 's/^/# /' "$TMP/fio"
[ "$TARGET" != hedge ] || check_num "a flaky leg: it went out and came back" "$outs >= 2"
load fill "$DEV" >/dev/null
check "a flaky leg: what is read is right" reads_right
hedge_remove
dmsetup remove flaky
LEGS=("${LEGS[0]}" /dev/mapper/lag1)

# --- the log ------------------------------------------------------------------

load fill /dev/ram0 >/dev/null
load fill /dev/ram1 >/dev/null
LOG="disk 3 $LOG_LEG 8 nosync"		# so small that some are always clean
hedge_create
begin
lag 2 error 1
sleep 1
end "the log fails"
check "the log fails: what is read is right" reads_right
check_match "the log fails: the status says so" "$(dmsetup status "$NAME")" \
	' 3 disk [0-9:]+ [DF]'
lag 2 error 0
hedge_remove
check "the log fails: the legs are equal" equal

# The log fails and a leg too: still no wrong data.
hedge_create
begin
lag 2 error 1
sleep 0.5
lag 1 error 1
check "log and leg fail: the leg goes out" wait_until 10 is_out 1
sleep 0.3
end "log and leg fail"
lag 2 error 0
lag 1 error 0
check "log and leg fail: what is read is right" reads_right
hedge_remove

# --- in the middle of a flush -------------------------------------------------

# Only disks with a cache are flushed.
remove_all
LEGS=()
modprobe null_blk nr_devices=0 || skip "no module null_blk"
for i in 0 1; do
	null_leg size=8 memory_backed=1 cache_size=2 completion_nsec=0
	RAW[i]=${LEGS[i]}
done
lag_leg 0
lag_leg 1
LENGTH='' LOG='core 2 128 nosync'
hedge_create
load fill "$DEV" >/dev/null
lag 0 writes 1
lag 1 writes 1
lag 1 error 1
check "a flush that fails on one leg is acknowledged" flush
check "it takes the leg out" wait_until 5 is_out 1
lag 1 error 0
check "what is read is right" reads_right
if [ "$TARGET" = hedge ]; then
	check "the leg comes back" comes_back 1
	check "the legs are equal" equal
fi
lag 0 error 1
lag 1 error 1
check_fails "a flush that fails on all legs is an error" flush
lag 0 error 0
lag 1 error 0
check "then reads are right" reads_right
hedge_remove
remove_all
null_remove

# --- in the middle of a resync ------------------------------------------------

make
LOG='core 2 128 sync'
for i in 1 0; do
	lag_law 0 fixed 20000000
	lag_law 1 fixed 20000000
	load fill /dev/ram0 >/dev/null
	dd if=/dev/zero of=/dev/ram1 bs=64k count=128 oflag=direct status=none
	hedge_create 2>/dev/null || skip "$TARGET has no resync"
	begin
	lag $i error 1
	sleep 1
	# Where regions are not in sync only the first leg has the data.
	[ $i = 1 ] && end "leg $i fails in a resync" || end "leg $i fails in a resync" errors
	check_fails "leg $i fails in a resync: the resync does not end" in_sync
	lag $i error 0
	check "leg $i: what is read is right" reads_right
	if [ "$TARGET" = hedge ] && [ $i = 1 ]; then
		lag_law 0 off
		lag_law 1 off
		begin
		check "leg $i comes back" comes_back $i
		end "leg $i comes back in a resync"
		hedge_remove
		check "leg $i: the legs are equal" equal
	else
		hedge_remove
	fi
done
