#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A leg out of tags sleeps in whoever submits to it. It must block its own worker and
# nobody else: reads of the other leg, and the callers' submissions, go on. Needs
# null_blk and fio.

. "$(dirname "$0")/common.sh"
need_hedge
need_program fio

null_leg memory_backed=0 size=64 hw_queue_depth=1 submit_queues=1 irqmode=2 completion_nsec=50000000
null_leg memory_backed=0 size=64 hw_queue_depth=64 submit_queues=1 irqmode=2 completion_nsec=200000

fio_read()
{
	fio --output-format=json --name=t --filename="$1" --direct=1 --rw=randread --bs=4k \
		--ioengine=libaio --iodepth=32 --number_ios="$2" --size=100% --norandommap
}

# The mean time that io_submit() took, in us: the largest may be the host's.
slat_mean()
{
	awk '/"slat_ns"/ { s = 1 } s && /"mean"/ { sub(/,/, "", $3); print int($3 / 1000); exit }' "$1"
}

# Without hedging the submitter does sleep: the measurement can fail.
fio_read "${LEGS[0]}" 8 >"$TMP/leg"
check_num "control: the leg alone makes its submitter sleep" "$(slat_mean "$TMP/leg") >= 10000"

for policy in slb fcfs-lpr; do
	hedge_create policy "$policy" timeout_us 5000 budget_pct 100 rescue_us 100000
	begin=$(now_us)
	fio_read "$DEV" "$(scaled 400)" >"$TMP/hedge"
	took=$((($(now_us) - begin) / 1000))
	check_num "$policy: copies went to the leg without tags" "$(get legs/0/reads) > 0"
	# Waiting for it would take 50 ms for every second read.
	check_num "$policy: 400 reads do not wait for its tags" "$took < 6000 * SCALE"
	check_num "$policy: nobody slept in its submission" "$(slat_mean "$TMP/hedge") < 5000 * SCALE"
	check_accounting "$policy"
	hedge_remove
done
