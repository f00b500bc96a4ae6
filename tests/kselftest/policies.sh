#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Every preset, and random settings of all knobs that make up a policy: data is right,
# each copy is accounted for, and extra copies stay within the budget. Then all of
# them in turn while reads and writes go on, with little and with much in the
# queues: no request is lost, fails or returns other data, and the volume counts as many
# reads as were made. Needs dm-lag.
# limit: 400

. "$(dirname "$0")/common.sh"
need_hedge

legs_brd 3 16
for i in 0 1 2; do
	lag_leg $i 2
	lag_law $i bimodal 200000 4000000 50000
done
hedge_create
count_versions
fill_legs

check_load()
{
	check "$1: $2 bytes: reads end" timeout $((60 * SCALE)) \
		load read "$DEV" --verify --threads 8 --bs "$2" --count "$(scaled "$3")"
	check_match "$1: $2 bytes: reads are good" "$OUTPUT" 'errors=0 .*wrong=0'
}

# A reset of the counters leaves what is in the bucket, and with each CPU.
check_budget()
{
	check_num "$1: extra copies within the budget" \
		"$(get stats/extra) <= $(get budget_pct) * $(get stats/reads) / 100 + 64 + 3 * $(nproc)"
}

# Small reads, and reads that are cut where the policy cuts them.
one_policy()
{
	message reset
	check_load "$1" 4k 16
	check_load "$1" 192k 4
	check_accounting "$1"
	check_budget "$1"
}

for policy in $(presets); do
	put policy "$policy"
	[ "$(get timeout_us)" = off ] || put timeout_us 1000
	one_policy "$policy"
	case $policy in
	coc | cos | riq | probe | *-nir | *-r)
		check_num "$policy: extra copies were sent" \
			"$(get stats/extra) + $(get stats/cancelled) > 0" ;;
	esac
done

# A value of each knob at random. Every one of them is taken.
pick() { shift $((RANDOM % $#)); echo "$1"; }

random_knobs()
{
	local words='' word

	for word in copies="$(pick 1 2 3)" copies_to="$(pick any idle)" \
		cancel="$(pick complete complete start none)" \
		timeout_us="$(pick auto off 500 2000)" timeout_from="$(pick start arrival)" \
		max_hedges="$(pick 0 1 2)" hedge_to="$(pick any idle)" \
		balance="$(pick latency jsq llw random round-robin)" choices="$(pick 0 1 2)" \
		queue="$(pick shared legs)" order="$(pick fcfs edd fut)" \
		replicate="$(pick lpr nr nir r)" probe="$(pick off off on)" \
		probe_priority="$(pick 0 1)" task_kb="$(pick 0 0 16 64)" queue_depth="$(pick 0 1 2 8)" \
		budget_pct="$(pick 0 10 100 200)" hedge_depth="$(pick 0 1)" \
		sitout_pct="$(pick 0 110)" "$@"; do
		put "${word%%=*}" "${word#*=}" || return 1
		words+=" $word"
	done
	echo "$words"
}

RANDOM=${SEED:=$RANDOM}
echo "# SEED=$SEED"
for ((n = 0; n < $(scaled 12); n++)); do
	check "random knobs $n are taken" random_knobs
	echo "#$OUTPUT"
	one_policy "random knobs $n"
done

# all_in_turn SECONDS: switches as fast as it can.
all_in_turn()
{
	local end=$((SECONDS + $1)) policy

	while ((SECONDS < end)); do
		for policy in $(presets); do
			put policy "$policy" || return 1
			[ "$(get timeout_us)" = off ] || put timeout_us 500
			sleep 0.0$((RANDOM % 5))
		done
		random_knobs >/dev/null || return 1
	done
}

ended() { ! kill -0 "$1" 2>/dev/null && ! kill -0 "$2" 2>/dev/null; }

for threads in 2 32; do
	put policy fcfs-lpr
	put queue_depth 2
	wait_until 15 drained
	message reset
	load mixed "$DEV" --verify --threads $threads >"$TMP/load" &
	load=$!
	load read "$DEV" --verify --threads 2 --bs 128k >"$TMP/large" &
	large=$!
	check "$threads threads: switching" all_in_turn $((6 * SCALE))
	kill $load $large
	check "$threads threads: every request ends" wait_until 30 ended $load $large
	wait $load || not_ok "$threads threads: data was right"
	wait $large || not_ok "$threads threads: data of large reads was right"
	check_match "$threads threads: requests are good" "$(<"$TMP/load")" 'errors=0 .*wrong=0'
	check_match "$threads threads: large ones too" "$(<"$TMP/large")" 'errors=0 .*wrong=0'
	check_accounting "$threads threads"
	check "$threads threads: the legs are equal" legs_equal
done

# As many reads as were made, where none is cut in two.
put policy fcfs-lpr
message reset
load read "$DEV" --verify --threads 16 >"$TMP/load" &
load=$!
check "switching" all_in_turn $((3 * SCALE))
kill $load
wait $load || not_ok "data was right"
check_eq "as many reads as were made" "$(get stats/reads)" "$(field reads "$(<"$TMP/load")")"
check_accounting "at last"
