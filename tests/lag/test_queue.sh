#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Are the queues that dm-lag builds those of theory? Poisson arrivals at an M/D/1,
# an M/G/1 and an M/M/8 queue over memory; the mean response time must be that of
# Pollaczek and Khinchine, or of Erlang, within 3 % plus the overhead that the
# same load shows without a law.
#
# Runs in the exact rig, where time is that of instructions:
#	tests/vm/run --rig exact --module brd --module tests/lag/dm-lag.ko
#		--bin dmsetup --bin tests/tools/build/law
#		--bin tests/tools/build/openloop
#		--file tests/lag/lag.sh --file tests/lag/test_queue.sh
#		-- sh /test_queue.sh
#
# SERVERS_OFF_BY=1 gives every queue a server too many, which must fail.
set -eu

. "$(dirname "$0")/lag.sh"

off_by=${SERVERS_OFF_BY:-0}
failed=0
test=0

skip()
{
	echo "1..0 # SKIP $1"
	exit 4
}

result()
{
	test=$((test + 1))
	[ "$1" = ok ] || failed=$((failed + 1))
	echo "$1 $test $2"
}

# field NAME: the value in the name=value lines of openloop and law
field()
{
	sed -n "s/^$1=//p"
}

# theory SERVERS RATE MEAN_NS M2_NS2: the mean response time in ns. One server
# may have any law; several are exponential.
theory()
{
	awk -v c="$1" -v rate="$2" -v mean="$3" -v m2="$4" 'BEGIN {
		if (c == 1) {
			load = rate * mean / 1e9
			wait = rate / 1e9 * m2 / (2 * (1 - load))
		} else {
			offered = rate * mean / 1e9
			for (b = k = 1; k <= c; k++)	# Erlang B
				b = offered * b / (k + offered * b)
			busy = b / (1 - offered / c * (1 - b))
			wait = busy * mean / (c - offered)
		}
		printf "%.0f\n", wait + mean
	}'
}

# queue LABEL SERVERS LAW LOAD COUNT
queue()
{
	local label="$1, load $4" law=$3 count=$5
	local mean m2 rate want bare out got ci verdict

	mean=$(law -m "$law" | field mean_ns)
	m2=$(law -m "$law" | field m2_ns2)
	rate=$(awk "BEGIN { print $4 * $2 / $mean * 1e9 }")
	want=$(theory "$2" "$rate" "$mean" "$m2")

	lag_create q /dev/ram0 $(($2 + off_by)) 7
	bare=$(openloop --rate "$rate" --count 2000 /dev/mapper/q | field mean)
	lag_law q "$law"
	out=$(openloop --rate "$rate" --count "$count" --seed 11 /dev/mapper/q)
	dmsetup remove q

	got=$(echo "$out" | field mean)
	ci=$(echo "$out" | field ci95)
	verdict=$(awk "BEGIN {
		good = $got >= $want * 0.97 && $got <= $want * 1.03 + $bare
		print (good && $ci <= $want * 0.03) ? \"ok\" : \"not ok\"
	}")
	result "$verdict" "$label: mean $got ns +- $ci, theory $want, overhead $bare"
}

if ! modprobe brd rd_nr=1 rd_size=16384 || ! modprobe dm-lag; then
	skip "needs brd, dm-lag"
fi
[ "$(nproc)" = 1 ] || skip "needs the exact rig"
dd if=/dev/zero of=/dev/ram0 bs=1M count=16 2>/dev/null

echo "TAP version 13"
queue "M/D/1" 1 det:2ms 0.5 20000
queue "M/D/1" 1 det:2ms 0.7 80000
queue "M/G/1" 1 stall:exp:2ms,0.02,10ms 0.5 60000
queue "M/G/1" 1 stall:exp:2ms,0.02,10ms 0.7 150000
queue "M/M/8" 8 exp:2ms 0.7 25000
echo "1..$test"
[ $failed = 0 ]
