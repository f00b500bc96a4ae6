#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Both legs turn slow at once: extra copies stay within budget_pct * reads / 100 + 64
# at every moment, over all CPUs, for hedges and for copies at arrival; and what was
# earned before budget_pct changed is void. Needs dm-lag.
# limit: 1000
# again: how soon a budget is used depends on the machine

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

	# At least once: the clock of the shell may tick at once.
	while :; do
		extra=$(<"$SYS/stats/extra")
		reads=$(<"$SYS/stats/reads")
		if ((extra > pct * reads / 100 + 64)); then
			echo "$extra extra copies at $reads reads, $pct %"
			return 1
		fi
		((SECONDS < end)) || return 0
	done
}

# The watch at work: the same counters against a bound that is too small.
hedge_create policy coc
load read "$DEV" --threads 2 --count 200 >/dev/null
check_fails "control: more extra copies than allowed are seen" watch_budget 10 1
hedge_remove

used() { (($(get stats/extra) > 5)); }
enough() { (($(get stats/reads) > $(scaled 1000))); }

while read -r policy pct; do
	lag_law 0 fixed 200000
	lag_law 1 fixed 200000
	hedge_create policy "$policy" timeout_us 3000 budget_pct "$pct" \
		rescue_us 0 hedge_depth 4096
	load read "$DEV" --threads 16 >"$TMP/load" &
	load=$!
	check "$policy, $pct %: reads earn a budget" wait_until 30 enough
	lag_law 0 fixed 20000000
	lag_law 1 fixed 20000000
	check "$policy, $pct %: never more extra copies than allowed" \
		watch_budget "$pct" $((4 * SCALE))
	[ "$pct" = 0 ] || wait_until 30 used || :
	kill $load
	wait $load
	check_match "$policy, $pct %: reads are good" "$(<"$TMP/load")" 'errors=0'
	if [ "$pct" = 0 ]; then
		check_eq "$policy, 0 %: no extra copy" "$(get stats/extra)" 0
	else
		check_num "$policy, $pct %: the budget was needed" \
			"$(get stats/unhedged_budget) > 0 || $(get stats/extra) >= $pct * $(get stats/reads) / 100 / 2"
		check "$policy, $pct %: it was used" used
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

# A change of budget_pct voids what was earned before, also what each CPU still keeps
# for itself: the credit of two reads.
lag_law 0 off
lag_law 1 off
hedge_create policy slb timeout_us 100000000 budget_pct 100 rescue_us 0
on_each_cpu()
{
	local cpu

	for ((cpu = 0; cpu < $(nproc); cpu++)); do
		taskset -c $cpu "$@" >/dev/null || return 1
	done
}
check "reads earn a budget on each CPU" on_each_cpu load read "$DEV" --threads 1 --count 2
put budget_pct 0
put timeout_us 1000
lag_law 0 fixed 5000000
lag_law 1 fixed 5000000
check "late reads on each CPU" on_each_cpu load read "$DEV" --threads 1 --count 8
check_num "they would have been hedged" "$(get stats/unhedged_budget) > 0"
check_eq "what was earned before is void" "$(get stats/extra)" 0
hedge_remove

# Nor do counters that start anew show more than the bound, though each CPU has the
# credit of two reads beside a full bucket: a read in ten is one, and 1007 leave 200.
lag_law 0 off
lag_law 1 off
hedge_create policy slb timeout_us 100000000 budget_pct 10 rescue_us 0 sitout_pct 0
check "the bucket is full" on_each_cpu load read "$DEV" --threads 1 --count 1007
message reset
put timeout_us 1000
lag_law 0 fixed 5000000
lag_law 1 fixed 5000000
check "late reads after a reset" on_each_cpu load read "$DEV" --threads 1 --count 60
check_num "they were hedged" "$(get stats/extra) >= 64"
check "within the bound" watch_budget 10 0
check_accounting "after a reset"
