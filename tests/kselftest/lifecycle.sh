#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Suspend, resume, reload with other knobs, remove and rmmod, a hundred rounds under
# full load with losers out: reads and writes go on with the right data, nothing hangs, memory
# returns. Suspend waits for a stuck leg, and ends when it goes on. Needs dm-lag.
# limit: 1000

. "$(dirname "$0")/common.sh"
need_hedge

ROUNDS=$(scaled 100)
EVERY=2			# a removal after so many rounds

legs_brd 3 8
for i in 0 1 2; do
	lag_leg $i
	lag_law $i bimodal 1000000 20000000 100000
done

# Free memory once nothing is cached, neither files nor free pages of a CPU.
available()
{
	sync
	echo 3 >/proc/sys/vm/drop_caches
	[ ! -e /proc/sys/vm/compact_memory ] || echo 1 >/proc/sys/vm/compact_memory
	awk '/^MemFree/ { print $2 }' /proc/meminfo
}

tables=(
	""
	"policy slb timeout_us 500 budget_pct 100"
	"policy coc copies 3"
	"policy fcfs-lpr timeout_us 500 queue_depth 2 budget_pct 100"
	"policy slb-arrival timeout_us 300 queue_depth 1 budget_pct 100"
	"policy rnd rescue_us 0"
	"policy jsq queue_depth 4 rescue_us 5000"
	"policy coc queue_depth 1 budget_pct 50"
)

start_load()
{
	load mixed "$DEV" --threads 6 --verify >"$TMP/load" &
	load=$!
}

enough() { (($(get stats/reads) > 30)); }

# Not before it has done something: on a slow machine it may not have begun.
stop_load()
{
	wait_until 30 enough || not_ok "round $round: reads go on"
	kill $load
	wait $load || { not_ok "round $round: data is right" "$(<"$TMP/load")"; return; }
	[ "$(field errors "$(<"$TMP/load")")" = 0 ] ||
		not_ok "round $round: no request fails" "$(<"$TMP/load")"
	reads=$((reads + $(field reads "$(<"$TMP/load")")))
}

one_round()
{
	local features

	# shellcheck disable=SC2086
	case $((round % 3)) in
	0)
		dmsetup suspend "$NAME"
		[ ! -d "$SYS" ] || not_ok "round $round: sysfs directory while suspended"
		dmsetup resume "$NAME"
		;;
	1)
		dmsetup suspend --noflush "$NAME"
		dmsetup resume "$NAME"
		;;
	2)
		features=${tables[round % ${#tables[@]}]}
		hedge_reload $features
		;;
	esac
	[ -d "$SYS" ] || not_ok "round $round: no sysfs directory after resume"
}

reads=0 losers=0 round=0
hedge_create
count_versions
fill_legs
start_load
for ((round = 1; round <= ROUNDS; round++)); do
	one_round
	((round % EVERY)) || {
		stop_load
		losers=$((losers + $(get stats/wasted) + $(sum inflight)))
		hedge_remove
		rmmod dm_hedge
		# What the kernel itself keeps has been taken in the first half.
		((round > ROUNDS / 2)) || first=$(available)
		modprobe dm-hedge
		# shellcheck disable=SC2086
		hedge_create ${tables[round / EVERY % ${#tables[@]}]}
		start_load
	}
done
stop_load
check "what was written is there" load check "$DEV"
hedge_remove
ok "$ROUNDS rounds"
check_num "with reads going on" "$reads > 5 * $ROUNDS"
check_num "some copies lost" "$losers > 0"
rmmod dm_hedge
last=$(available)
# The kernel takes a few MiB now and then for itself.
echo "# $reads reads, memory free before and after: $first $last KiB"
check_num "memory returns (KiB)" "$last > $first - 16384"
check_fails "no slab cache is left" grep -i hedge /proc/slabinfo
modprobe dm-hedge

inside_suspend() { grep -q dm_suspend "/proc/$suspend/stack"; }

# A stuck leg holds suspend, whether its read has been answered or not.
hedge_create policy coc
load read "$DEV" --threads 2 --count 10 >/dev/null
lag 2 stuck 1
lag 1 stuck 1
load read "$DEV" --threads 4 --count 10 >/dev/null
check_num "losers are out" "$(sum inflight) > 0"
dmsetup suspend "$NAME" &
suspend=$!
check "suspend begins" wait_until 10 inside_suspend
check "status shows the age of the oldest" \
	wait_until 10 eval '(($(status_field oldest_us) > 500000))'
check "suspend waits for losers" kill -0 $suspend
lag 1 stuck 0
lag 2 stuck 0
check "suspend ends with them" wait_until 20 eval "! kill -0 $suspend 2>/dev/null"
wait $suspend || not_ok "suspend succeeds"
dmsetup resume "$NAME"
check "the device works" load read "$DEV" --threads 2 --count 50 --verify

# A signal ends the wait for a write: the device goes on as before (presuspend_undo).
lag 2 writes 1
lag 2 stuck 1
load write "$DEV" --threads 1 --count 1 >/dev/null &
load=$!
check "a write is out" wait_until 10 lag_holds 2 1
dmsetup suspend --nolockfs "$NAME" &
suspend=$!
check "suspend begins" wait_until 10 inside_suspend
check "suspend waits for a write" kill -0 $suspend
kill -TERM $suspend
check "a signal ends that" wait_until 10 eval "! kill -0 $suspend 2>/dev/null"
lag 2 stuck 0
wait $load || not_ok "the write succeeds"
dmsetup resume "$NAME"
check "reads after an interrupted suspend" load read "$DEV" --threads 2 --count 50 --verify
put timeout_us 500
check "hedges too" load read "$DEV" --threads 2 --count 50 --verify
gone() { [ "$(get legs/2/state)" = failed ]; }
in_sync() { [ "$(get legs/2/state)" = in_sync ]; }
check "a leg is told to go" message fail 2
check "and goes" wait_until 10 gone
check "it is told to come back" message reinstate 2
check "and is copied" wait_until 60 in_sync
check_accounting "after it all"
