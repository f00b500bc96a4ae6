#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A leg out of tags sleeps in whoever submits to it. It must block its own worker and
# nobody else: reads of the other leg, and the callers' submissions, go on. And writes
# do not wait until there are no reads. Needs null_blk, fio.
# again: what sleeps, and where, depends on the load of the machine

. "$(dirname "$0")/common.sh"
need_hedge

null_leg memory_backed=0 size=64 hw_queue_depth=1 submit_queues=1 irqmode=2 completion_nsec=50000000
null_leg memory_backed=0 size=64 hw_queue_depth=64 submit_queues=1 irqmode=2 completion_nsec=200000

# Without hedging the submitter does sleep: the measurement can fail.
check "control: reads of the leg alone" submit "${LEGS[0]}" --count 8
check_num "control: make their submitter sleep" "$(field sleeps "$OUTPUT") >= 6"

for policy in slb fcfs-lpr; do
	hedge_create policy "$policy" timeout_us 5000 budget_pct 100 rescue_us 100000
	check "$policy: reads" submit "$DEV" --count "$(scaled 400)"
	check_eq "$policy: nobody slept in its submission" "$(field sleeps "$OUTPUT")" 0
	check_num "$policy: copies went to the leg without tags" "$(get legs/0/reads) > 0"
	# They would not win if they stood behind the worker that sleeps.
	[ "$policy" != slb ] || check_num "$policy: hedges win" "$(get stats/won) > $(get stats/hedged) / 2"
	check_accounting "$policy"
	hedge_remove
done

# The first write to a region is for the workers of the legs, which have reads as well: more than
# either leg has tags for, in copies of our own.
null_remove
LEGS=() LENGTH=''
for i in 0 1; do
	null_leg memory_backed=0 size=64 hw_queue_depth=2 submit_queues=1 irqmode=2 completion_nsec=5000000
done
hedge_create policy fcfs-lpr queue_depth 0 timeout_us 10000000 rescue_us 0
fio --name=reads --filename="$DEV" --direct=1 --ioengine=libaio --iodepth=64 --rw=randread \
	--time_based --runtime=$((30 * SCALE)) >/dev/null &
reader=$!
reads_are() { (($(get stats/reads) > $1)); }
check "reads go on" wait_until 20 reads_are 100
for i in 1 2 3; do
	check "a write ends under them" timeout $((5 * SCALE)) \
		dd if=/dev/zero of="$DEV" bs=4k count=1 seek=$((i * 1000)) oflag=direct conv=notrunc status=none
done
check "they did not end before" kill -0 $reader
kill $reader
wait $reader || :
hedge_remove
