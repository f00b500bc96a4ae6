#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Does dm-lag do what it says, apart from its queueing (test_queue.sh): table and
# messages, stuck, error, writes, data, suspend and remove under load.
#
# Runs in the fast and debug rigs (debug: --timeout 600):
#	tests/vm/run --module brd --module tests/lag/dm-lag.ko --bin dmsetup
#		--bin tests/tools/build/law --bin tests/tools/build/openloop
#		--file tests/lag/lag.sh --file tests/lag/test_lag.sh
#		-- sh /test_lag.sh
set -u

. "$(dirname "$0")/lag.sh"

lag=/dev/mapper/l
failed=0
test=0

# check LABEL COMMAND...: a test that is passed when the command succeeds
check()
{
	local label=$1 word=ok

	shift
	"$@" || word="not ok"
	test=$((test + 1))
	[ "$word" = ok ] || failed=$((failed + 1))
	echo "$word $test $label"
}

# within SECONDS COMMAND...: the command succeeds sooner or later
within()
{
	local tries=$(($1 * 20))

	shift
	until "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		usleep 50000
	done
}

is()
{
	[ "$(lag_status l "$1")" = "$2" ]
}

ended()
{
	! kill -0 "$1" 2>/dev/null
}

# read_at BLOCK [COUNT]: uncached reads of 4 KiB
read_at()
{
	dd if=$lag of=/dev/null bs=4096 skip="$1" count="${2:-1}" \
		iflag=direct 2>/dev/null
}

write_at()
{
	dd if=/dev/zero of=$lag bs=4096 seek="$1" count=1 oflag=direct \
		conv=notrunc,fsync 2>/dev/null
}

refused()
{
	! "$@" 2>/dev/null
}

# A wrong table must be refused with the right words in the kernel log.
table_refused()
{
	local error=$1

	shift
	dmesg -c >/dev/null
	refused dmsetup create bad --table "$*" && dmesg | grep -q "$error" && return
	dmsetup remove bad 2>/dev/null
	return 1
}

test_tables()
{
	local expected="Expected <dev> <offset> <servers> <seed>"

	check "table: nothing" table_refused "$expected" 0 8 lag
	check "table: no seed" table_refused "$expected" 0 8 lag /dev/ram0 0 1
	check "table: a word too many" \
		table_refused "$expected" 0 8 lag /dev/ram0 0 1 1 1
	check "table: no device" \
		table_refused "Device lookup failed" 0 8 lag /dev/none 0 1 1
	check "table: offset" \
		table_refused "Invalid offset" 0 8 lag /dev/ram0 x 1 1
	for servers in 0 1025 -1 1x 99999999999999999999 ""; do
		check "table: servers '$servers'" \
			table_refused "Invalid servers\|$expected" \
			0 8 lag /dev/ram0 0 "$servers" 1
	done
	check "table: seed" table_refused "Invalid seed" 0 8 lag /dev/ram0 0 1 -1
	check "table: beyond the device" \
		table_refused "too small for target" 0 99999999 lag /dev/ram0 0 1 1

	lag_create l /dev/ram0 1024 18446744073709551615
	check "table: as given" [ "$(dmsetup table l | cut -d' ' -f3-)" = \
		"lag 1:0 0 1024 18446744073709551615" ]
	dmsetup remove l
}

test_messages()
{
	local message

	lag_create l /dev/ram0 1 1
	for message in "stuck" "stuck 2" "stuck x" "stuck 0 0" "error -1" "error eio" \
		"writes 2" "writes" "seed" "seed x" "foo" "foo 1" "law" "law foo" \
		"law end" "law add 0 1" "law off 1" "law begin 1"; do
		# shellcheck disable=SC2086
		check "message: $message" refused lag_msg l $message
	done
	lag_msg l law begin
	for message in "add" "add 0" "add 1 1" "add x 1" "add 1000000001 1" \
		"add 0 3600000000001" "end"; do
		# shellcheck disable=SC2086
		check "law: $message" refused lag_msg l law $message
	done
	lag_msg l law add 0 1000 500000000 2000
	check "law: falling probability" refused lag_msg l law add 499999999 1
	check "law: end below 1" refused lag_msg l law end
	lag_msg l law add 1000000000 1000
	check "law: falling time" lag_msg l law end
	check "law: ended twice" refused lag_msg l law end
	check "law: 8192 pairs" fill_law
	check "law: one more" refused lag_msg l law add 0 1
	check "read after wrong messages" read_at 0 10
	dmsetup remove l
}

# as many pairs as a law may have
fill_law()
{
	local i=0 pairs=""

	while [ $i -lt 1024 ]; do
		pairs="$pairs 0 1"
		i=$((i + 1))
	done
	lag_msg l law begin
	while [ $i -gt 1016 ]; do
		# shellcheck disable=SC2086
		lag_msg l law add $pairs || return
		i=$((i - 1))
	done
}

# 20 reads, one after the other, of at least 10 ms each. How much longer is the
# machine's affair.
takes_200ms()
{
	local begin end

	begin=$(cut -d' ' -f1 /proc/uptime)
	read_at 0 20
	end=$(cut -d' ' -f1 /proc/uptime)
	awk "BEGIN { exit !($end - $begin >= 0.19) }"
}

test_law()
{
	lag_create l /dev/ram0 1 1
	read_at 0 20
	check "no law: no service" is busy_ns 0
	check "no law: served" [ "$(lag_status l served)" -ge 20 ]
	lag_law l det:10ms
	check "law: time" takes_200ms
	check "law: service" is busy_ns 200000000
	lag_law l off
	read_at 0 20
	check "law off: no service" is busy_ns 200000000
	dmsetup remove l
}

# The same seed gives the same service times, another one does not.
test_seed()
{
	local first second third

	lag_create l /dev/ram0 1 5
	lag_law l uniform:1us,2ms
	lag_msg l seed 5
	first=$(lag_status l busy_ns)
	read_at 0 50
	second=$(lag_status l busy_ns)
	lag_msg l seed 5
	read_at 0 50
	third=$(lag_status l busy_ns)
	check "seed: same" [ $((second - first)) = $((third - second)) ]
	lag_msg l seed 6
	read_at 0 50
	check "seed: other" \
		[ $((second - first)) != $(($(lag_status l busy_ns) - third)) ]
	dmsetup remove l
}

test_stuck()
{
	local reader served

	lag_create l /dev/ram0 1 1
	for law in off det:1ms; do
		lag_law l $law
		lag_msg l stuck 1
		served=$(lag_status l served)
		read_at 0 & reader=$!
		check "stuck ($law): queued" within 5 is queued 1
		check "stuck ($law): a write passes" write_at 1
		sleep 1
		check "stuck ($law): status" is stuck 1
		check "stuck ($law): nothing served" is served "$served"
		check "stuck ($law): reader waits" kill -0 $reader
		lag_msg l stuck 0
		check "released ($law)" wait $reader
		check "released ($law): served" is served $((served + 1))
		check "released ($law): nothing in flight" is in_flight 0
	done

	# caught in service: the timer runs out, but the read does not go on
	lag_law l det:4s
	read_at 0 & reader=$!
	within 5 is in_flight 1
	lag_msg l stuck 1
	sleep 5
	check "stuck in service" is in_flight 1
	lag_msg l stuck 0
	check "released in service" wait $reader
	dmsetup remove l
}

read_said() { dd if=$lag of=/dev/null bs=4096 skip="$1" count=1 iflag=direct 2>&1; }

# fails_with TEXT COMMAND...: which prints the text
fails_with()
{
	local text=$1 output

	shift
	output=$("$@") && return 1
	echo "$output" | grep -qi "$text"
}

test_error()
{
	lag_create l /dev/ram0 1 1
	for law in off det:1ms; do
		lag_law l $law
		lag_msg l error 1
		check "error ($law): a read fails" refused read_at 0
		check "error ($law): a write passes" write_at 0
		lag_msg l writes 1
		check "error, writes ($law): a write fails" refused write_at 0
		lag_msg l writes 0
		lag_msg l error 0
		check "no error ($law): a read passes" read_at 0
	done
	lag_msg l error notsupp
	check "error notsupp: a read fails" fails_with "not supported" read_said 0
	lag_msg l error 1
	check "error: a read fails otherwise" fails_with "Input/output error" read_said 0
	lag_msg l error 0
	check "error: nothing in flight" is in_flight 0
	dmsetup remove l
}

test_writes()
{
	local writer

	lag_create l /dev/ram0 1 1
	lag_msg l writes 1
	lag_msg l stuck 1
	write_at 0 & writer=$!
	check "writes: queued" within 5 is queued 1
	lag_msg l stuck 0
	check "writes: released" wait $writer
	dmsetup remove l
}

test_data()
{
	dd if=/dev/urandom of=/dev/ram0 bs=1M count=16 2>/dev/null
	dd if=/dev/ram0 bs=4096 skip=2 count=1000 2>/dev/null >/tmp/want
	dmsetup create l --table "0 8000 lag /dev/ram0 16 4 1"
	lag_law l exp:100us
	lag_msg l writes 1
	check "data: read at an offset" cmp /tmp/want $lag
	dd if=/dev/urandom of=/tmp/new bs=4096 count=1000 2>/dev/null
	dd if=/tmp/new of=$lag bs=64k oflag=direct 2>/dev/null
	sync
	dd if=/dev/ram0 bs=4096 skip=2 count=1000 iflag=direct 2>/dev/null \
		>/tmp/want
	check "data: written at an offset" cmp /tmp/want /tmp/new
	dmsetup remove l
}

# Suspend waits for what is stuck, and can be let go by a message.
test_suspend_stuck()
{
	local reader suspender

	lag_create l /dev/ram0 1 1
	lag_law l det:1ms
	lag_msg l stuck 1
	read_at 0 & reader=$!
	within 5 is queued 1
	dmsetup suspend --noflush --nolockfs l & suspender=$!
	sleep 1
	check "suspend waits for a stuck read" kill -0 $suspender
	lag_msg l stuck 0
	check "released while suspending" wait $suspender
	check "and the read has ended" wait $reader
	check "message while suspended" lag_msg l seed 1
	dmsetup resume l
	check "read after resume" read_at 0
	dmsetup remove l
}

load()
{
	openloop --rate 1000 --count "$1" --warmup 0 $lag >/dev/null
}

test_suspend_load()
{
	local i=0 loader

	lag_create l /dev/ram0 8 1
	lag_law l uniform:0ms,2ms
	load 4000 & loader=$!
	while [ $i -lt 10 ]; do
		dmsetup suspend l
		[ "$(lag_status l in_flight)$(lag_status l queued)" = 00 ] ||
			break
		dmsetup resume l
		i=$((i + 1))
	done
	check "10 times suspended with nothing in flight" [ $i = 10 ]
	dmsetup resume l
	check "load over suspend and resume" wait $loader
	check "every read was served" [ "$(lag_status l served)" -ge 4000 ]

	load 4000 & loader=$!
	i=0
	while [ $i -lt 10 ]; do
		dmsetup reload l --table "0 32768 lag /dev/ram0 0 $((i + 1)) 1"
		dmsetup resume l
		lag_law l uniform:0ms,2ms
		i=$((i + 1))
	done
	check "load over 10 new tables" wait $loader
	dmsetup remove l
}

test_remove()
{
	local i=0

	while [ $i -lt 10 ]; do
		lag_create l /dev/ram0 4 1 && lag_law l uniform:0ms,1ms &&
			load 200 && dmsetup remove --retry l ||
			break
		i=$((i + 1))
	done
	check "10 times made, loaded and removed" [ $i = 10 ]
	check "module unloaded" modprobe -r dm-lag
}

if ! modprobe brd rd_nr=1 rd_size=16384 || ! modprobe dm-lag; then
	echo "1..0 # SKIP needs brd, dm-lag"
	exit 4
fi

echo "TAP version 13"
test_tables
test_messages
test_law
test_seed
test_stuck
test_error
test_writes
test_data
test_suspend_stuck
test_suspend_load
test_remove
echo "1..$test"
[ $failed = 0 ]
