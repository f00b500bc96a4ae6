#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Data is right: fio writes and reads with crc32c, several jobs at once, blocks of 512
# bytes to 1 MiB, over 2, 3 and 8 legs that begin at different offsets, one of
# them slow; then vectors whose pieces straddle pages. At the end all legs hold the
# same. Needs fio and dm-lag.

. "$(dirname "$0")/common.sh"
need_hedge
need_program fio

# fio_job NAME OFFSET SIZE BLOCKS: the jobs' extents do not overlap.
fio_jobs()
{
	fio --minimal --filename="$DEV" --direct=1 --ioengine=libaio --iodepth=8 \
		--rw=randrw --rwmixread=50 --verify=crc32c --verify_fatal=1 \
		--verify_backlog=64 --verify_backlog_batch=32 --group_reporting=1 \
		--name=a --bs=512 --offset=0 --size=256k \
		--name=b --bs=4k --offset=1m --size=3m \
		--name=c --bsrange=512-64k --bs_unaligned=0 --offset=4m --size=4m \
		--name=d --bs=1m --offset=8m --size=6m
}

# A leg with a wrong sector must be noticed.
control()
{
	dd if=/dev/urandom of="${LEGS[1]}" bs=512 count=1 \
		seek=$((OFFSETS[1] + 77)) conv=notrunc oflag=direct 2>/dev/null
	check_fails "control: legs that differ are seen" legs_equal
}

for setup in "2 slb" "3 coc" "8 fcfs-lpr"; do
	read -r n policy <<<"$setup"
	legs_brd "$n" 16
	for ((i = 0; i < n; i++)); do
		OFFSETS[i]=$((i * 24))
	done
	lag_leg 0
	lag_law 0 bimodal 100000 5000000 200000
	LENGTH=$((15 << 11))
	# At random: by latency a quick machine would soon leave the slow leg alone.
	# Large reads are copied too.
	hedge_create policy "$policy" balance random timeout_us 500 budget_pct 100 max_copy_kb 1024

	check "$n legs, $policy: fio verifies what it wrote" fio_jobs
	check "$n legs, $policy: all hold the same" legs_equal
	check_num "$n legs, $policy: copies beyond the first were sent" "$(get stats/extra) > 0"
	check "$n legs, $policy: odd vectors" \
		vectors "$DEV" --count "$(scaled 150)" --max-bs 1m --span 14m
	check "$n legs, $policy: all hold the same again" legs_equal
	[ "$n" != 2 ] || check_fails "control: vectors see a wrong bit" \
		vectors "$DEV" --count "$(scaled 150)" --max-bs 128k --span 2m --corrupt
	[ "$n" != 2 ] || control
	check_accounting "$n legs, $policy"
	hedge_remove
	remove_all
done
