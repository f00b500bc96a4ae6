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
# NS. It is written first: what never was is answered without copying.
null_leg()
{
	local dir=/sys/kernel/config/nullb/nullb$1

	mkdir "$dir"
	echo "$2" >"$dir/size"
	echo 1 >"$dir/memory_backed"
	if [ $# -gt 2 ]; then
		echo 2 >"$dir/irqmode"
		echo "$3" >"$dir/completion_nsec"
	else
		echo 0 >"$dir/irqmode"
	fi
	echo 1 >"$dir/power"
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
