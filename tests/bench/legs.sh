# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the guest parts of the benchmark share: legs of memory, and counters.

# fio spins where a sleep might end too late, by the slack of timers; its spinning
# would take more instructions than its reads.
echo 1 >/proc/$$/timerslack_ns

null_init()
{
	modprobe null_blk nr_devices=0
	[ -d /sys/kernel/config/nullb ] || mount -t configfs none /sys/kernel/config
}

# null_leg NUMBER MIB [NS]: /dev/nullbNUMBER, memory that answers at once or after
# NS. It is written first: what never was is answered without copying. One that
# answers later can have 1024 requests out: the scheduler of a queue has fewer
# tags than that, and who finds none waits.
null_leg()
{
	local dir=/sys/kernel/config/nullb/nullb$1 queue=/sys/block/nullb$1/queue

	mkdir "$dir"
	echo "$2" >"$dir/size"
	echo 1 >"$dir/memory_backed"
	if [ $# -gt 2 ]; then
		echo 2 >"$dir/irqmode"
		echo 1024 >"$dir/hw_queue_depth"
		echo "$3" >"$dir/completion_nsec"
	else
		echo 0 >"$dir/irqmode"
	fi
	echo 1 >"$dir/power"
	if [ $# -gt 2 ]; then
		echo none >"$queue/scheduler"
		[ "$(<"$queue/nr_requests")" -ge 1024 ] || {
			echo "null_leg: $queue has $(<"$queue/nr_requests") tags, not 1024" >&2
			return 1
		}
	fi
	dd if=/dev/zero of="/dev/nullb$1" bs=1M count="$2" oflag=direct status=none
}

# counters NAME: those of the hedge target in that device; none of another target
counters()
{
	local f disk

	disk=$(dmsetup info -c --noheadings -o blkdevname "$1")
	for f in "/sys/block/$disk/hedge0"/{budget_pct,tau_us,stats/*}; do
		[ ! -e "$f" ] || echo "${f##*/} $(<"$f")"
	done
}
