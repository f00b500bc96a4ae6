#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The part of the fuzz test that runs in the guest: COUNT cases in all, drawn by SEED, of
# tables, some of them on legs with labels in which bits are flipped, of messages, and of values
# for attributes, while reads and writes go on. Whatever is refused changes nothing; at
# the end the device works, and nothing is left behind.
# limit: 100000

. "$(dirname "$0")/common.sh"
need_hedge
need_program hedgectl
export DM_DISABLE_UDEV=1
SEED=${SEED:-1} COUNT=${COUNT:-2000}
# What is refused is told in the kernel log, where it would push out what matters.
dmesg -n 1

fuzz_ok() { fuzz "$@" >"$TMP/fuzz" 2>"$TMP/complaints"; }
tell() { echo "# $(<"$TMP/fuzz")"; sed 's/^/# /' "$TMP/complaints" | grep -v 'fuzz:' || :; }
objects() { awk '/^(hedge|dm_hedge)/ { n += $2 } END { print n + 0 }' /proc/slabinfo; }

# load_start: reads and writes of the device that is not to come to harm
load_start()
{
	load mixed "$DEV" --threads 2 --verify >"$TMP/load" &
	load=$!
}

load_stop()
{
	kill $load
	wait $load || :
	check_match "$1: reads and writes went on, all right" "$(<"$TMP/load")" 'errors=0 .*wrong=0'
}

answers()
{
	tell
	check_num "$1: some were taken and some refused" \
		"$(field taken "$(<"$TMP/fuzz")") > $COUNT / 100 && $(field refused "$(<"$TMP/fuzz")") > $COUNT / 100"
}

# A device beside those of the tables, under names that no change of theirs makes.
null_leg size=8 memory_backed=1
null_leg size=8 memory_backed=1
hedge_create
fill_legs
beside=$(dmsetup table "$NAME")

legs_brd 6 8
find_length
hedgectl create labelled --nosync --region-size 64K /dev/ram4 /dev/ram5 >/dev/null
labelled=$(dmsetup table labelled)
dmsetup remove labelled
uuid=12345678-1234-1234-1234-123456789012
cat >"$TMP/tables" <<END
0 $LENGTH hedge core 1 128 2 /dev/ram0 0 /dev/ram1 0
0 $LENGTH hedge core 2 128 nosync 3 /dev/ram0 0 /dev/ram1 0 /dev/ram2 0 2 policy slb
0 8192 hedge core 2 64 sync 2 /dev/ram0 8192 /dev/ram1 0 4 policy coc copies 2
0 8192 hedge disk 2 /dev/ram3 128 2 /dev/ram0 0 /dev/ram1 0 3 keep_log handle_errors policy
0 8192 hedge disk 3 /dev/ram3 128 nosync 2 /dev/ram0 0 /dev/ram1 64 2 handle_errors keep_log
0 8192 hedge core 1 128 2 /dev/ram0 0 /dev/ram1 0 8 leg 0 weight 7 leg 1 timeout_us 500
0 8192 hedge core 1 128 3 /dev/ram0 0 /dev/ram1 0 - 0 3 label $uuid force
0 8192 hedge core 1 128 2 /dev/ram0 0 /dev/ram1 0 12 timeout_us auto queue_depth 4 queue legs order edd replicate nir budget_pct 100
0 8192 hedge core 1 128 2 /dev/ram0 0 /dev/ram1 0 10 task_kb 64 bounce_mb 1 rescue_us 0 sitout_pct 0 max_copy_kb 0
$labelled
$labelled
${labelled/1:5 0/- 0}
END
cat >"$TMP/messages" <<'END'
reset
fail 1
reinstate 1
fail 0
reinstate 0
check
check repair 0
tick
histogram
histogram 1
set policy slb
set copies 2
set timeout_us auto
set queue shared
set sitout_s 1
set leg 0 weight 5
set leg 2 timeout_us inherit
set leg 1 hedge_weight 0
END
tr ' ' '\n' >"$TMP/values" <<'END'
0 1 2 10 100 1000 4096 1000000 auto off on inherit any idle complete start none arrival
latency jsq llw random round-robin shared legs fcfs edd fut lpr nr nir r
fcfs-lpr slb coc cos riq rnd pod probe edd-r fut-nir
END

dmsetup create fuzz --notable
load_start
check "tables" fuzz_ok table fuzz --count $((COUNT * 2 / 5)) --seed "$SEED" \
	--label /dev/ram4 --label /dev/ram5 <"$TMP/tables"
answers tables
load_stop tables
check_eq "the table of another device is as it was" "$(dmsetup table "$NAME")" "$beside"
dmsetup remove fuzz
hedge_remove
null_remove
LEGS=(/dev/ram0 /dev/ram1 /dev/ram2)
for d in "${LEGS[@]}" /dev/ram3; do
	dd if=/dev/zero of=$d bs=1M count=8 oflag=direct status=none
done

LENGTH=8192
hedge_create
fill_legs
load_start
check "values for attributes" fuzz_ok attributes "$NAME" "$SYS" --count $((COUNT * 3 / 10)) --seed "$SEED" <"$TMP/values"
answers attributes
load_stop attributes
hedge_remove
hedge_create
load_start
check "messages" fuzz_ok message "$NAME" "$SYS" --count $((COUNT * 3 / 10)) --seed "$SEED" <"$TMP/messages"
answers messages
load_stop messages
for i in 0 1 2; do [ "$(get legs/$i/state)" != failed ] || message reinstate $i || :; done
all_in_sync() { [ "$(get legs/0/state) $(get legs/1/state) $(get legs/2/state)" = "in_sync in_sync in_sync" ]; }
check "all legs come back" wait_until 60 all_in_sync
check "the device works" load mixed "$DEV" --threads 2 --count 50 --verify
hedge_remove
check_eq "no object is left" "$(objects)" 0
check "no leg stays open" rmmod brd
check "the module can go" rmmod dm_hedge
