#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The part of the stress test that runs in the guest, in rounds: a volume is made, the
# program stress works on it, and meanwhile three loops of actions go on side by
# side: what takes the table, legs or data in hand (suspends, reloads, legs that fail
# or are missing, come back, are replaced or compared); legs that are slow or stuck; and
# all else (attributes, policies, a processor that goes and comes, memory that
# runs short). Then everything is healed, each block is read again, the legs are
# compared, and the module is unloaded.
#
# What the nth action of a loop is, and with which words, follows from SEED and n
# alone; it is left out if not all legs are in sync and it needs that, since whatever is
# done must leave each region one leg that is good. Before any is drawn, half of the
# actions have their turn, and in the next round the other half.
#
# Environment: SEED, DURATION (seconds of all rounds), ONLY (a regular expression: the
# actions that may happen). What happened is printed with its time.
# limit: 100000
# shellcheck disable=SC2034

. "$(dirname "$0")/common.sh"
need_hedge
need_program hedgectl
export DM_DISABLE_UDEV=1
SEED=${SEED:-1} DURATION=${DURATION:-60} ONLY=${ONLY:-.}
NAME=vol DEV=/dev/mapper/vol
FAULTS=/sys/kernel/debug CGROUP=/sys/fs/cgroup/stress

# one WORD...: one of them, in ONE. A subshell would have random numbers of its own.
one() { shift $((RANDOM % $#)); ONE=$1; }
one_leg() { LEG=$((RANDOM % ${#LEGS[@]})); }
chance() { ((RANDOM % $1 == 0)); }
rest() { sleep "0.$((RANDOM % 9 + 1))"; }
state() { [ "$(get "legs/$1/state" 2>/dev/null)" = "$2" ]; }
all_in_sync() { local i; for i in "${!LEGS[@]}"; do state "$i" in_sync || return 1; done; }
say() { echo "# ${SECONDS} s: $*"; }

# Counters that have counted, before they go.
note()
{
	local c n

	for c in hedged rescued retried repaired mismatches; do
		n=$(get stats/$c 2>/dev/null) || continue
		[ "${n:-0}" = 0 ] || echo "$c" >>"$TMP/happened"
	done
}

# --- what happens ------------------------------------------------------------------

act_policy()
{
	one "${POLICIES[@]}"
	WHAT=$ONE
	put policy "$ONE" 2>/dev/null || WHAT+=" (refused)"
}

# A value may be refused beside others: that is an answer too.
ATTRIBUTES=(	# and some of its values
	"copies 1 2 3"
	"copies_to idle any"
	"cancel complete start none"
	"timeout_us auto off 50 1000 20000"
	"timeout_from start arrival"
	"max_hedges 0 1 2"
	"hedge_to idle any"
	"hedge_depth 0 1 64"
	"balance latency jsq llw random round-robin"
	"choices 0 2"
	"queue_depth 0 1 4 64"
	"budget_pct 0 10 100"
	"rescue_us 0 1000 100000"
	"max_copy_kb 0 16 256"
	"bounce_mb 1 32"
	"probe_kb 1 4 64"
	"probe_priority 1 0"
	"queue shared legs"
	"order fcfs edd fut"
	"replicate lpr nr nir r"
	"task_kb 0 4 64"
	"due_us_rt 0 1000"
	"due_us_be 100 10000"
	"due_us_idle 100 100000"
	"sitout_pct 0 101 300"
	"sitout_s 0 1 60"
)

act_attribute()
{
	local -a words

	one "${ATTRIBUTES[@]}"
	read -r -a words <<<"$ONE"
	one "${words[@]:1}"
	WHAT="${words[0]} $ONE"
	put "${words[0]}" "$ONE" 2>/dev/null || WHAT+=" (refused)"
}

act_leg_attribute()
{
	one_leg
	one "weight 0" "weight 1" "weight 100" "weight 1000" "hedge_weight 0" "hedge_weight 1" \
		"hedge_weight 100" "hedge_weight 1000" "timeout_us inherit" "timeout_us 500" "timeout_us 5000"
	WHAT="$ONE of leg $LEG"
	put "legs/$LEG/${ONE% *}" "${ONE#* }" 2>/dev/null || WHAT+=" (refused)"
}

# Files come and go with a table.
act_look()
{
	dmsetup status "$NAME" >/dev/null
	dmsetup table "$NAME" >/dev/null
	message histogram >/dev/null
	find "$SYS/" -type f -perm -u=r -exec cat {} + >/dev/null 2>&1 || WHAT="(in part)"
}

act_reset() { note; message reset; }

act_tick() { message tick; }

act_suspend()
{
	one '' --nolockfs --noflush
	WHAT=$ONE
	note
	# shellcheck disable=SC2086
	dmsetup suspend $WHAT "$NAME"
	chance 2 || rest
	dmsetup resume "$NAME"
}

# reload FEATURE...: those of labels are added.
reload()
{
	note
	hedge_reload "$@" ${UUID:+label "$UUID"}
}

# Other words, and with labels another order of the legs.
act_reload()
{
	local words=() i j leg

	one rnd jsq slb coc cos riq fcfs-lpr fcfs-r edd-lpr fut-nir
	chance 2 || words+=(policy "$ONE")
	one 0 1 8
	chance 3 && words+=(queue_depth "$ONE")
	one 0 20000
	chance 3 && words+=(rescue_us "$ONE")
	# With handle_errors alone a leg that is out would hold all writes.
	chance 3 && words+=(handle_errors keep_log)
	for ((i = ${#LEGS[@]} - 1; i > 0; i--)); do
		j=$((RANDOM % (i + 1)))
		[ "$UUID" ] || continue
		leg=${LEGS[i]} LEGS[i]=${LEGS[j]} LEGS[j]=$leg
	done
	WHAT="${LEGS[*]} ${words[*]}"
	reload "${words[@]}"
}

# Writes that a leg lacks are held until the next table, which they then go through.
act_held()
{
	one_leg
	WHAT="leg $LEG"
	reload handle_errors
	message fail $LEG
	rest
	dmsetup load "$NAME" --table "$(hedge_table ${UUID:+label "$UUID"})"
	dmsetup suspend --noflush --nolockfs "$NAME"
	dmsetup resume "$NAME"
}

act_missing()
{
	local leg

	one_leg
	WHAT="leg $LEG"
	leg=${LEGS[LEG]} LEGS[LEG]=-
	reload force
	rest
	LEGS[LEG]=$leg
	reload
}

act_replace()
{
	local old try

	one_leg
	old=${LEGS[LEG]}
	WHAT="leg $LEG ($old) by $SPARE"
	hedgectl wipe "$SPARE" >/dev/null 2>&1 || :
	note
	# It is refused when the table, with all attributes, changes meanwhile.
	for try in 1 2 3 4 5 6 7 8; do
		hedgectl replace "$NAME" "$LEG" "$SPARE" --force >/dev/null && break
		((try < 8)) || { WHAT+=" (refused)"; return 0; }
	done
	LEGS[LEG]=$SPARE SPARE=$old
}

act_law()
{
	local i=$((RANDOM % ${#LEGS[@]}))

	one off 'fixed 100000' 'fixed 2000000' 'fixed 30000000' 'bimodal 100000 20000000 50000'
	WHAT="lag$i $ONE"
	# shellcheck disable=SC2086
	lag_law $i $ONE
}

# Others may happen meanwhile, and wait.
act_stuck()
{
	local i=$((RANDOM % ${#LEGS[@]}))

	one 0 1
	WHAT="lag$i, writes too: $ONE"
	lag $i writes "$ONE"
	lag $i stuck 1
	rest
	chance 3 && rest
	lag $i stuck 0
	lag $i writes 0
}

# repaired_since N: sees to it, too, that the leg gets reads.
repaired_since()
{
	local n

	put policy rnd 2>/dev/null || :
	put "legs/$LEG/weight" 100 2>/dev/null || :
	n=$(get stats/repaired 2>/dev/null)
	((${n:-0} > $1))
}

# Reads that fail on one leg are answered by another, and repaired.
act_failing()
{
	local i before

	one_leg
	i=${LEGS[LEG]#/dev/mapper/lag}
	WHAT="leg $LEG"
	before=$(get stats/repaired)
	lag "$i" error 1
	rest
	wait_until 10 repaired_since "$before" || WHAT+=" (nothing was repaired)"
	lag "$i" error 0
	note
}

# Writes that fail take it out.
act_broken()
{
	local i

	one_leg
	i=${LEGS[LEG]#/dev/mapper/lag}
	WHAT="leg $LEG"
	lag "$i" writes 1
	lag "$i" error 1
	rest
	lag "$i" error 0
	lag "$i" writes 0
}

act_fail()
{
	one_leg
	WHAT="leg $LEG"
	message fail $LEG
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

# Of what the program's threads allocate in the kernel a part fails, whether it may wait or not.
act_alloc()
{
	local kind

	for kind in failslab fail_page_alloc; do echo 20 >$FAULTS/$kind/probability; done
	rest
	for kind in failslab fail_page_alloc; do echo 0 >$FAULTS/$kind/probability; done
}

# Action, how often in a hundred or so, and what it needs: that all legs are in sync
# (all), labels too (labels), faults in allocations (faults).
TABLE=(
	"suspend 8" "reload 8" "fail 5 all" "failing 5 all" "reinstate 15" "check 3" "held 3 all"
	"missing 3 labels" "replace 2 labels" "broken 3 all"
)
LAGGING=("law 10" "stuck 6")
OTHERS=(
	"policy 12" "attribute 25" "leg_attribute 6" "look 5" "reset 2" "tick 3" "cpu 4" "caches 2"
	"memory 3" "alloc 4 faults"
)

# can NEED: in this round. Only memory disks that were filled need no memory for writes.
can()
{
	case $1 in
	labels) [ "$UUID" ] ;;
	faults) [ -d $FAULTS/failslab ] && [ -d $FAULTS/fail_page_alloc ] && [ "$kind" = brd ] ;;
	esac
}

# draw ACTION...: one of them, by weight, in ONE
draw()
{
	local total=0 a name weight need

	for a; do
		read -r name weight need <<<"$a"
		total=$((total + weight))
	done
	total=$((RANDOM % total))
	for ONE; do
		read -r name weight need <<<"$ONE"
		total=$((total - weight))
		((total >= 0)) || return 0
	done
}

# So that what has its turn finds what it needs.
bring_back() { act_reinstate; wait_until 60 all_in_sync; }

# happen NUMBER ACTION...: until the round ends; NUMBER is that of the loop.
happen()
{
	local number=$1 n=0 i=0 a name weight need
	local -a possible=() turn=()

	shift
	for a; do
		read -r name weight need <<<"$a"
		if [[ $name =~ $ONLY ]] && can "$need"; then
			possible+=("$a")
			((i % 2 != ROUND % 2)) || turn+=("$a")
			echo "$name" >>"$TMP/possible"
		fi
		i=$((i + 1))
	done
	[ ${#possible[@]} -gt 0 ] || return 0
	while ((SECONDS < END || n < ${#turn[@]})) && kill -0 $WORKER 2>/dev/null; do
		RANDOM=$((SEED * 7919 + (ROUND * 4 + number) * 15485863 + n))
		: $RANDOM $RANDOM
		ONE=${turn[n]-}
		[ "$ONE" ] || draw "${possible[@]}"
		read -r name weight need <<<"$ONE"
		WHAT=''
		((number > 0 || n >= ${#turn[@]})) || bring_back || :
		n=$((n + 1))
		[ -z "$need" ] || [ "$need" = faults ] || all_in_sync || continue
		WHAT=''
		"act_$name"
		say "$number.$n $name $WHAT"
		[[ $WHAT == *refused* ]] || echo "$name" >>"$TMP/happened"
		echo >>"$TMP/actions"
		chance 3 || rest
	done
}

# --- a round -----------------------------------------------------------------------

heal()
{
	local i

	for ((i = 0; i <= ${#LEGS[@]}; i++)); do
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

# disks KIND NUMBER MIB: memory disks that take no discard, some that do, or loop
# devices, which also zero by a command.
disks()
{
	local i

	LEGS=() OFFSETS=()
	case $1 in
	brd) legs_brd "$2" "$3" ;;
	null) for ((i = 0; i < $2; i++)); do null_leg size="$3" memory_backed=1 discard=1; done ;;
	loop)
		modprobe -q loop || skip "no module loop"
		for ((i = 0; i < $2; i++)); do
			truncate -s "$3M" "/dev/shm/loop$i"
			LEGS+=("$(losetup -f --show "/dev/shm/loop$i")")
		done
		;;
	esac
}

remove_disks()
{
	local i

	case $1 in
	null) null_remove ;;
	loop) for ((i = 0; i < ${#LEGS[@]} + 2; i++)); do losetup -d "/dev/loop$i"; rm "/dev/shm/loop$i"; done ;;
	esac
}

# Legs, one more to replace one of them, and the log, each behind dm-lag but for the log.
make_volume()
{
	local kind=$1 legs=$2 log=$3 labelled=$4 i log_dev

	disks "$kind" $((legs + 2)) 24
	log_dev=${LEGS[legs + 1]}
	unset "LEGS[legs + 1]"
	UUID='' LENGTH=''
	for ((i = 0; i <= legs; i++)); do lag_leg "$i"; done
	SPARE=${LEGS[legs]}
	unset "LEGS[legs]"
	dd if=/dev/zero of="$SPARE" bs=1M status=none 2>/dev/null || :
	dd if=/dev/zero of="$log_dev" bs=1M status=none 2>/dev/null || :
	if [ "$labelled" ]; then
		hedgectl create "$NAME" --nosync --log "${log/disk/disk:$log_dev}" --region-size 64K \
			--force "${LEGS[@]}" >/dev/null
		UUID=$(hedgectl examine "${LEGS[0]}" --json | sed -n 's/.*"uuid": *"\([^"]*\)".*/\1/p')
		LENGTH=$(blockdev --getsz "$DEV")
	fi
	# The log of the tables that follow is as that of the first.
	case $log in
	core) LOG="core 2 128 nosync" ;;
	disk) LOG="disk 3 $log_dev 128 nosync" ;;
	esac
	if [ ! "$labelled" ]; then
		hedge_create
		return
	fi
	case $log in
	core) LOG="core 1 128" ;;
	disk) LOG="disk 2 $log_dev 128" ;;
	esac
	find_sysfs
}

# Allocations that are to fail are those of tasks that were told so: no script's.
prepare_faults()
{
	local kind words word

	[ -d $FAULTS/failslab ] || return 0
	for kind in failslab fail_page_alloc; do
		words="probability=0 interval=1 space=0 times=1000000000 verbose=0 task-filter=Y ignore-gfp-wait=N"
		[ $kind = failslab ] || words+=" min-order=0"
		for word in $words; do echo "${word#*=}" >"$FAULTS/$kind/${word%%=*}"; done
	done
}

# A memory cgroup with little more than the program needs.
prepare_cgroup()
{
	[ -d $CGROUP ] || {
		mount -t cgroup2 cgroup2 "${CGROUP%/*}" 2>/dev/null &&
			echo +memory >"${CGROUP%/*}/cgroup.subtree_control" && mkdir $CGROUP &&
			echo 16M >$CGROUP/memory.max
	} || echo "# no memory cgroup"
}

# The loop driver charges the pages of its files to who writes.
start_worker()
{
	(
		[ ! -e /proc/self/make-it-fail ] || echo 1 >/proc/self/make-it-fail
		[ "$kind" = loop ] || [ ! -d $CGROUP ] || echo 0 >$CGROUP/cgroup.procs
		exec stress "$DEV" --threads 16 --seconds 100000 --seed $((SEED + ROUND))
	) 2> >(sed -u 's/^/# /') >"$TMP/stress" &
	WORKER=$!
}

round()
{
	local kind=$1 legs=$2 log=$3 labelled=${4:-} title status i loops=() all

	title="seed $SEED: $legs legs ($kind), log $log${labelled:+, labels}"
	echo "# $title"
	make_volume "$kind" "$legs" "$log" "$labelled"
	read -r -a POLICIES <<<"$(presets)"
	: >"$TMP/actions"
	sed -i '/^mismatches$/d' "$TMP/happened"
	start_worker
	END=$((SECONDS + each))
	happen 1 "${LAGGING[@]}" &
	loops=($!)
	happen 2 "${OTHERS[@]}" &
	loops+=($!)
	happen 0 "${TABLE[@]}"
	status=0
	for i in "${loops[@]}"; do wait "$i" || status=$?; done
	check_eq "$title: nothing that was done failed" $status 0
	note
	check "all legs come back" heal
	kill $WORKER 2>/dev/null || :
	status=0
	wait $WORKER || status=$?
	all=$(<"$TMP/stress")
	check_eq "each read was right, in $(wc -l <"$TMP/actions") actions" $status 0
	echo "# $all"
	check_num "there was something to do" "$(field reads "$all") > 100"
	[ "$kind" = brd ] || check_num "the legs took discards" "$(field discards "$all") > 0"
	[ "$kind" != loop ] || check_num "and commands to zero" "$(field unmapped "$all") > 0"
	check "nothing is left to copy" wait_until 60 in_sync
	check "all copies ended" wait_until 30 drained
	# A discard that failed has left legs that differ, until now.
	[ "$kind" != brd ] || check_fails "no comparison found anything" grep -x mismatches "$TMP/happened"
	message reset
	message check
	check "the comparison ends" wait_until 120 compared
	check_eq "it finds nothing" "$(get stats/mismatches)" 0
	dmsetup suspend "$NAME"
	check "the legs are equal" legs_equal
	dmsetup resume "$NAME"
	hedge_remove
	for ((i = 0; i <= legs; i++)); do dmsetup remove "lag$i"; done
	remove_disks "$kind"
	check "the module can go" rmmod dm_hedge
	modprobe dm-hedge
}

compared() { local s; s=$(get check_done); [ "${s%/*}" = "${s#*/}" ] || [ "$s" = 0 ]; }

# A leg that lacks what was written.
legs_brd 2 8
check_fails "control: stale data is seen" stress "${LEGS[0]}" --seconds 3 --read-from "${LEGS[1]}"

# Those with labels one after the other, so that their actions all have a turn.
rounds=("null 2 core" "brd 2 disk labels" "null 3 core labels" "loop 3 disk")
each=$((DURATION / ${#rounds[@]})) ROUND=0
: >"$TMP/happened"
prepare_faults
prepare_cgroup
for r in "${rounds[@]}"; do
	# shellcheck disable=SC2086
	round $r
	ROUND=$((ROUND + 1))
done

# Which of these lines of a file are not in the other.
missing() { sort -u "$1" | grep -vxFf "$2" | tr '\n' ' ' || :; }

check_eq "each action happened" "$(missing "$TMP/possible" "$TMP/happened")" ""
printf '%s\n' hedged rescued retried repaired >"$TMP/wanted"
[ "$ONLY" != . ] ||
	check_eq "reads were hedged, rescued, tried again, repaired" "$(missing "$TMP/wanted" "$TMP/happened")" ""
