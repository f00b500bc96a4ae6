#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The part of the stress test that runs in the guest, in rounds: a volume is made, the
# program stress works on it, and meanwhile actions drawn by SEED happen to it,
# one after the other: attributes and policies, suspends, reloads, legs that are slow,
# stuck, failing, failed, reinstated, checks, a processor that goes and comes, memory
# that runs short. Then everything is healed, each block is read again, the legs are
# compared, and the module is unloaded.
#
# Whatever is done must leave each region one leg that is good: an action that
# takes a leg away is drawn again while not all legs are in sync.
# Environment: SEED, DURATION (seconds of all rounds), ONLY (a regular expression: the
# actions that may happen). What happened is printed with its time.
# limit: 100000

. "$(dirname "$0")/common.sh"
need_hedge
need_program hedgectl
export DM_DISABLE_UDEV=1
SEED=${SEED:-1} DURATION=${DURATION:-60} ONLY=${ONLY:-.}
RANDOM=$SEED
NAME=vol DEV=/dev/mapper/vol

# one WORD...: one of them
one() { shift $((RANDOM % $#)); echo "$1"; }
chance() { ((RANDOM % $1 == 0)); }
rest() { sleep "0.$((RANDOM % 9 + 1))"; }
state() { [ "$(get "legs/$1/state" 2>/dev/null)" = "$2" ]; }
all_in_sync() { local i; for i in "${!LEGS[@]}"; do state "$i" in_sync || return 1; done; }
say() { echo "# ${SECONDS} s: $*"; }

# --- what happens ------------------------------------------------------------------

act_policy() { local all; read -r -a all <<<"$(presets)"; put policy "$(one "${all[@]}")"; }

# A value may be refused beside others: that is an answer too.
act_attribute()
{
	local knob value

	read -r knob value <<<"$(shuf_line <<'END'
copies 1
copies 2
copies 3
copies_to idle
copies_to any
cancel complete
cancel start
cancel none
timeout_us auto
timeout_us off
timeout_us 50
timeout_us 1000
timeout_us 20000
timeout_from start
timeout_from arrival
max_hedges 0
max_hedges 1
max_hedges 2
hedge_to idle
hedge_to any
hedge_depth 0
hedge_depth 1
hedge_depth 64
balance latency
balance jsq
balance llw
balance random
balance round-robin
choices 0
choices 2
queue_depth 0
queue_depth 1
queue_depth 4
queue_depth 64
budget_pct 0
budget_pct 10
budget_pct 100
rescue_us 0
rescue_us 1000
rescue_us 100000
max_copy_kb 0
max_copy_kb 16
max_copy_kb 256
bounce_mb 1
bounce_mb 32
probe_kb 4
probe_priority 1
probe_priority 0
queue shared
queue legs
order fcfs
order edd
order fut
replicate lpr
replicate nr
replicate nir
replicate r
task_kb 0
task_kb 4
task_kb 64
due_us_be 100
due_us_be 10000
sitout_pct 0
sitout_pct 101
sitout_pct 300
sitout_s 1
END
)"
	WHAT="$knob $value"
	put "$knob" "$value" 2>/dev/null || WHAT+=" (refused)"
}

shuf_line() { local lines; mapfile -t lines; echo "${lines[RANDOM % ${#lines[@]}]}"; }

act_leg_attribute()
{
	local i=$((RANDOM % ${#LEGS[@]})) knob

	knob=$(one weight hedge_weight timeout_us)
	case $knob in
	timeout_us) WHAT="$knob $(one inherit 500 5000)" ;;
	*) WHAT="$knob $(one 0 1 100 1000)" ;;
	esac
	put "legs/$i/${WHAT% *}" "${WHAT#* }" 2>/dev/null || WHAT+=" (refused)"
	WHAT+=" of leg $i"
}

act_look()
{
	local f

	dmsetup status "$NAME" >/dev/null
	dmsetup table "$NAME" >/dev/null
	find "$SYS/" -type f -perm -u=r -exec cat {} + >/dev/null
}

act_reset() { message reset; }

act_suspend()
{
	WHAT=$(one '' --nolockfs --noflush)
	# shellcheck disable=SC2086
	dmsetup suspend $WHAT "$NAME"
	chance 2 || rest
	dmsetup resume "$NAME"
}

# Other words, and with labels another order of the legs.
act_reload()
{
	local words=() order i

	chance 2 || words+=(policy "$(one rnd jsq slb coc cos riq fcfs-lpr fcfs-r edd-lpr fut-nir)")
	chance 3 && words+=(queue_depth "$(one 0 1 8)")
	chance 3 && words+=(rescue_us "$(one 0 20000)")
	chance 3 && words+=(keep_log)
	if [ "$UUID" ]; then
		words+=(label "$UUID")
		if chance 2; then
			for i in "${!LEGS[@]}"; do echo "$RANDOM ${LEGS[i]} ${LAGS[i]}"; done |
				sort -n >"$TMP/order"
			mapfile -t order < <(cut -d' ' -f2 "$TMP/order")
			LEGS=("${order[@]}")
			mapfile -t LAGS < <(cut -d' ' -f3 "$TMP/order")
		fi
	fi
	WHAT="${LEGS[*]} ${words[*]}"
	hedge_reload "${words[@]}"
	find_sysfs
}

act_law()
{
	local i=$((RANDOM % ${#LEGS[@]})) law

	law=$(one off 'fixed 100000' 'fixed 2000000' 'fixed 30000000' 'bimodal 100000 20000000 50000')
	WHAT="leg $i $law"
	# shellcheck disable=SC2086
	lag_law "${LAGS[i]}" $law
}

act_stuck()
{
	local i=$((RANDOM % ${#LEGS[@]}))

	WHAT="leg $i"
	lag "${LAGS[i]}" writes "$(one 0 1)"
	lag "${LAGS[i]}" stuck 1
	rest
	chance 3 && rest
	# Others may happen meanwhile, but none that waits for writes.
	chance 2 && { act_attribute; act_policy; }
	lag "${LAGS[i]}" stuck 0
	lag "${LAGS[i]}" writes 0
}

# Reads that fail on one leg are answered by another, and repaired.
act_failing()
{
	local i=$((RANDOM % ${#LEGS[@]}))

	WHAT="leg $i"
	lag "${LAGS[i]}" writes "$(one 0 1)"
	lag "${LAGS[i]}" error 1
	rest
	lag "${LAGS[i]}" error 0
	lag "${LAGS[i]}" writes 0
}

act_fail()
{
	local i=$((RANDOM % ${#LEGS[@]}))

	WHAT="leg $i"
	message fail $i
}

act_reinstate()
{
	local i

	for i in "${!LEGS[@]}"; do
		state "$i" failed || continue
		WHAT+="leg $i "
		message reinstate "$i" || WHAT+="(refused) "
	done
}

act_check() { message check 2>/dev/null || WHAT='(refused)'; }

act_cpu()
{
	[ -e /sys/devices/system/cpu/cpu1/online ] || return 0
	echo 0 >/sys/devices/system/cpu/cpu1/online || return 0
	rest
	echo 1 >/sys/devices/system/cpu/cpu1/online
}

act_caches() { echo 3 >/proc/sys/vm/drop_caches; }

# The kernel is to keep nearly all that is free for itself: who cannot wait gets no memory,
# and who can has to make some free.
act_memory()
{
	local before kb

	before=$(</proc/sys/vm/min_free_kbytes)
	kb=$(awk '/^MemFree/ { print $2 - 50 * 1024 }' /proc/meminfo)
	((kb > before)) || return 0
	WHAT="$kb KiB"
	echo "$kb" >/proc/sys/vm/min_free_kbytes
	rest
	echo "$before" >/proc/sys/vm/min_free_kbytes
}

# Action, how often in a hundred or so, and whether all legs must be in sync.
ACTIONS=(
	"policy 12" "attribute 25" "leg_attribute 6" "look 5" "reset 2" "suspend 8" "reload 8"
	"law 12" "stuck 6" "failing 5 all" "fail 5 all" "reinstate 10" "check 3" "cpu 4"
	"caches 2" "memory 3"
)

draw()
{
	local total=0 a name weight need

	for a in "${ACTIONS[@]}"; do
		read -r name weight need <<<"$a"
		[[ $name =~ $ONLY ]] && total=$((total + weight))
	done
	total=$((RANDOM % total))
	for a in "${ACTIONS[@]}"; do
		read -r name weight need <<<"$a"
		[[ $name =~ $ONLY ]] || continue
		total=$((total - weight))
		((total < 0)) || continue
		[ -z "$need" ] || all_in_sync || return 0
		WHAT=''
		"act_$name"
		say "$name $WHAT"
		return
	done
}

# --- a round -----------------------------------------------------------------------

heal()
{
	local i

	for i in "${LAGS[@]}"; do
		lag "$i" stuck 0
		lag "$i" error 0
		lag "$i" writes 0
		lag_law "$i" off
	done
	WHAT=''
	act_reinstate
	wait_until 120 all_in_sync
}

in_sync() { local s; s=$(dmsetup status "$NAME" | cut -d' ' -f$((5 + ${#LEGS[@]}))); [ "${s%/*}" = "${s#*/}" ]; }

make_volume()
{
	local legs=$1 log=$2 labelled=$3 i

	legs_brd $((legs + 1)) 24
	LOG_DEV=${LEGS[legs]}
	unset "LEGS[legs]"
	LAGS=() UUID='' LENGTH=''
	for ((i = 0; i < legs; i++)); do
		lag_leg "$i"
		LAGS+=("$i")
	done
	dd if=/dev/zero of="$LOG_DEV" bs=1M status=none 2>/dev/null || :
	if [ "$labelled" ]; then
		hedgectl create "$NAME" --nosync --log "${log/disk/disk:$LOG_DEV}" --region-size 64K \
			--force "${LEGS[@]}" >/dev/null
		UUID=$(hedgectl examine "${LEGS[0]}" --json | sed -n 's/.*"uuid": *"\([^"]*\)".*/\1/p')
		LENGTH=$(blockdev --getsz "$DEV")
	fi
	# The log of the tables that follow is as that of the first.
	case $log in
	core) LOG="core 2 128 nosync" ;;
	disk) LOG="disk 3 $LOG_DEV 128 nosync" ;;
	esac
	if [ ! "$labelled" ]; then
		hedge_create
		return
	fi
	case $log in
	core) LOG="core 1 128" ;;
	disk) LOG="disk 2 $LOG_DEV 128" ;;
	esac
	find_sysfs
}

round()
{
	local seconds=$1 end worker status i actions=0

	echo "# seed $SEED: $legs legs, log $log${labelled:+, labels}, $seconds s"
	make_volume "$legs" "$log" "$labelled"
	stress "$DEV" --threads 16 --seconds 100000 --seed "$RANDOM" \
		2> >(sed -u 's/^/# /') >"$TMP/stress" &
	worker=$!
	end=$((SECONDS + seconds))
	while ((SECONDS < end)) && kill -0 $worker 2>/dev/null; do
		draw
		actions=$((actions + 1))
		chance 3 || rest
	done
	check "seed $SEED, $legs legs, $log${labelled:+, labels}: all legs come back" heal
	kill $worker 2>/dev/null || :
	status=0
	wait $worker || status=$?
	check_eq "each read was right, in $actions actions" $status 0
	echo "# $(<"$TMP/stress")"
	check_num "there was something to do" "$(field reads "$(<"$TMP/stress")") > 100"
	check "nothing is left to copy" wait_until 60 in_sync
	check "all copies ended" wait_until 30 drained
	message check
	check "the comparison ends" wait_until 120 compared
	check_eq "it finds nothing" "$(get stats/mismatches)" 0
	dmsetup suspend "$NAME"
	check "the legs are equal" legs_equal
	dmsetup resume "$NAME"
	hedge_remove
	for i in "${LAGS[@]}"; do dmsetup remove "lag$i"; done
	check "the module can go" rmmod dm_hedge
	modprobe dm-hedge
}

compared() { local s; s=$(get check_done); [ "${s%/*}" = "${s#*/}" ] || [ "$s" = 0 ]; }

# A leg that lacks what was written.
legs_brd 2 8
check_fails "control: stale data is seen" stress "${LEGS[0]}" --seconds 3 --read-from "${LEGS[1]}"

rounds=("2 core" "2 disk labels" "3 disk" "3 core labels")
each=$((DURATION / ${#rounds[@]}))
for r in "${rounds[@]}"; do
	read -r legs log labelled <<<"$r"
	round $each
done
