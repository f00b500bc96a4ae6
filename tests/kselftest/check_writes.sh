#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The check rewrites blocks that differ right beside those that are being written: it takes no
# write that is on its way for a difference, and undoes none. Needs dm-lag, fio.

. "$(dirname "$0")/common.sh"
need_hedge
need_program fio

through() { [ "$(get check_done)" = 32/32 ]; }

# Leg 1 is slow: most of the time some write is on one leg and not on the other.
legs_brd 2 16
lag_leg 1
lag 1 writes 1
hedge_create
fill_legs
lag_law 1 fixed 3000000

# Of each 64 KiB the first half is written to, and in the other half of each fourth a block is
# spoilt.
for ((i = 0; i < 256; i++)); do
	echo "$((i * 64)) 64 linear $DEV $((i * 128))"
done >"$TMP/table"
dmsetup create halves "$TMP/table"
# Each time with other data: the same once more would make no difference.
fio --name=writes --filename=/dev/mapper/halves --direct=1 --ioengine=libaio --iodepth=16 --rw=randwrite \
	--bs=4k --refill_buffers --norandommap --time_based --runtime=3600 >"$TMP/fio" 2>&1 &
writer=$!
for ((i = 8; i < 4096; i += 64)); do
	dd if=/dev/urandom of=/dev/ram1 bs=4k seek=$i count=1 oflag=direct conv=notrunc status=none
done
before=$(dmsetup status lag1 | cut -d" " -f4)
check "writes go on" wait_until 30 eval '[ "$(dmsetup status lag1 | cut -d" " -f4)" -gt '$((before + 100))' ]'
message check repair 0
check "the check ends" wait_until 60 through
check_eq "it found what differed and nothing else" "$(get stats/mismatches)" 64
check "the kernel log tells what became of it" wait_until 10 \
	eval 'dmesg | tail -n 40 | grep -q "check: 64 blocks differed, 64 were rewritten"'
kill -0 $writer && kill $writer
wait $writer || :
dmsetup remove halves
check "the legs are equal" legs_equal
