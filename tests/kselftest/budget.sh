#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Both legs turn slow at once: extra copies stay within budget_pct * reads / 100 + 64
# at every moment, over all CPUs, for hedges and for copies at arrival. Needs
# dm-lag.

. "$(dirname "$0")/common.sh"
need_hedge

legs_brd 2 16
lag_leg 0
lag_leg 1

# Only the order of the two matters: reads may grow in between, and the
# bound with them.
watch_budget()
{
	local pct=$1 end=$((SECONDS + $2)) extra reads

	while ((SECONDS < end)); do
		extra=$(<"$SYS/stats/extra")
		reads=$(<"$SYS/stats/reads")
		if ((extra > pct * reads / 100 + 64)); then
			echo "$extra extra copies at $reads reads, $pct %"
			return 1
		fi
	done
}

# The watch at work: the same counters against a bound that is too small.
hedge_create policy coc
load read "$DEV" --threads 2 --count 200 >/dev/null
check_fails "control: more extra copies than allowed are seen" watch_budget 10 1
hedge_remove

while read -r policy pct; do
	lag_law 0 fixed 200000
	lag_law 1 fixed 200000
	hedge_create policy "$policy" timeout_us 3000 budget_pct "$pct" rescue_us 0
	load read "$DEV" --threads 16 --seconds $((6 * SCALE)) >"$TMP/load" &
	load=$!
	sleep 2
	lag_law 0 fixed 20000000
	lag_law 1 fixed 20000000
	check "$policy, $pct %: never more extra copies than allowed" \
		watch_budget "$pct" $((4 * SCALE))
	wait $load
	check_match "$policy, $pct %: reads are good" "$(<"$TMP/load")" 'errors=0'
	if [ "$pct" = 0 ]; then
		check_eq "$policy, 0 %: no extra copy" "$(get stats/extra)" 0
	else
		check_num "$policy, $pct %: the budget was needed" \
			"$(get stats/unhedged_budget) > 0 || $(get stats/extra) >= $pct * $(get stats/reads) / 100 / 2"
		check_num "$policy, $pct %: it was used" "$(get stats/extra) > 5"
	fi
	check_accounting "$policy, $pct %"
	hedge_remove
done <<'END'
slb 10
slb-arrival 10
fcfs-lpr 10
coc 30
fcfs-lpr 0
END
