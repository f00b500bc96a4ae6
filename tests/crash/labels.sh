#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# limit: 3600
#
# Crashes of three legs with labels and a log on disk: while a leg fails, the default
# leg is taken out too, the third goes on alone, another table is loaded, legs come
# back, the log fails and returns, and blocks are rewritten that a leg could not read.
# The legs are given in any order. At some points all legs are there; at some the log is not
# theirs and calls all regions clean, or is empty; at some a leg is missing, or the newest
# label of one is torn that another leg has too. What starts has all that was promised, and
# after all have come back they are equal. What is refused may only be a set without a
# leg that may have gone on alone, with a leg of another set, or of legs that went on alone.
#
# The disks are under all of it as in the other tests, so each may lose what was in
# its cache.

. "$(dirname "$0")/disks.sh"
[ "$TARGET" = hedge ] || skip "legs of $TARGET have no labels"
need_hedge
need_program hedgectl
need_program jq
export DM_DISABLE_UDEV=1

state() { [ "$(get "legs/$1/state")" = "$2" ]; }
is_out() { state "$1" failed; }
is_back() { state "$1" in_sync; }

# Which states the legs are in, without repetition.
states() { for i in 0 1 2; do get "legs/$i/state"; done | sort -u | tr '\n' ' '; }
all_back() { [ "$(states)" = "in_sync " ]; }

# start LEG...: the set of these legs; - is a missing one. FORCE may be set.
start()
{
	local leg words='' features="2 label $UUID"

	[ -z "${FORCE:-}" ] || features="3 label $UUID force"
	for leg in "$@"; do
		[ "$leg" = - ] || leg=${TARGETS[leg]}
		words+=" $leg 0"
	done
	dmsetup create "$NAME" --table "0 $LENGTH hedge disk 2 ${TARGETS[NR_LEGS]} $REGION $#$words $features" || {
		dmsetup remove "$NAME" 2>/dev/null
		return 1
	}
	find_sysfs
}

# All that was promised is there, whatever legs are out, and when all have come back.
settles()
{
	local i

	ask numbers "$1" 'lost=0 foreign=0$' || return 1
	for i in 0 1 2; do
		! is_out $i || message reinstate $i || return 1
	done
	wait_until 60 all_back || { dmsetup status "$NAME"; return 1; }
	ask numbers "$1" 'lost=0 foreign=0$' && legs_same
}

ORDERS=("0 1 2" "2 1 0" "1 2 0" "0 2 1" "2 0 1" "1 0 2")

# shellcheck disable=SC2086
judge_whole()
{
	ask crashes "$1" 'done$' && start ${ORDERS[$2 % 6]} && settles "$1"
}

# The bitmap says that all is clean, and what comes behind it is not the stamp.
lose_log()
{
	local log=${TARGETS[NR_LEGS]}

	if [ "$1" = empty ]; then
		dd if=/dev/zero of="$log" bs=4k count=2 oflag=direct conv=notrunc status=none
		return
	fi
	dd if=/dev/zero bs=512 count=6 status=none | tr '\0' '\377' |
		dd of="$log" bs=512 seek=2 iflag=fullblock oflag=direct conv=notrunc status=none
	dd if=/dev/zero of="$log" bs=4k seek=1 count=1 oflag=direct conv=notrunc status=none
}

# shellcheck disable=SC2086
judge_log()
{
	local kind=foreign

	((!($2 % 2))) || kind=empty
	ask crashes "$1" 'done$' && lose_log $kind && start ${ORDERS[$2 % 6]} && settles "$1"
}

# A leg is missing: refused, or it lacks nothing.
judge_missing()
{
	local -a legs=(0 1 2)

	ask crashes "$1" 'done$' || return 1
	legs[$2 % 3]=-
	if ! start "${legs[@]}"; then
		dmesg | tail -n 20 | grep -q "may have gone on alone" || { dmesg | tail -n 20; return 1; }
		return 0
	fi
	ask numbers "$1" 'lost=0 foreign=0$'
}

# says TEXT: the kernel log has it, of late
says() { dmesg | tail -n 20 | grep -q "$1" || { dmesg | tail -n 20; return 1; }; }

# Leg 1 is one of another set.
judge_foreign()
{
	ask crashes "$1" 'done$' &&
		dd if="$TMP/foreign" of="${TARGETS[1]}" bs=1M oflag=direct conv=notrunc status=none &&
		! start 0 1 2 && says "is a leg of another set"
}

# alone LEG...: these are started by force, written to and stopped
alone()
{
	FORCE=1 start "$@" && dd if=/dev/zero of="$DEV" bs=4k count=1 oflag=direct status=none &&
		dmsetup remove "$NAME"
}

# Two legs go on without each other.
judge_split()
{
	ask crashes "$1" 'done$' && alone 0 - - && alone - 1 - &&
		! start 0 1 2 && says "a split brain"
}

# What the label of a leg says
label() { hedgectl examine "/dev/mapper/whole$1" --json | jq -r "$2"; }

# tear LEG: its newest label is not whole; mend LEG puts it back
tear()
{
	SECTOR=$(($(label "$1" .label_sector) + 8 * $(label "$1" .slot)))
	dd if="${TARGETS[$1]}" of="$TMP/sector" bs=512 skip="$SECTOR" count=1 iflag=direct status=none
	dd if=/dev/zero of="${TARGETS[$1]}" bs=512 seek="$SECTOR" count=1 oflag=direct conv=notrunc status=none
}
mend() { dd if="$TMP/sector" of="${TARGETS[$1]}" bs=512 seek="$SECTOR" count=1 oflag=direct conv=notrunc status=none; }

# left_by_crash LEG NEWEST WHO: whether a crash can leave it so while those others have the newest round.
# A leg that is in gets a round before one that comes back does.
left_by_crash()
{
	[ "$(label "$1" ".generation < $2 and ((.in - [.leg]) == .in or ([$3] - .in) == [])")" = true ]
}

# The newest label of a leg is not whole; another leg has that round, or a later one.
# shellcheck disable=SC2086
judge_torn()
{
	local -a rounds=()
	local i j leg others newest torn='' old=''

	ask crashes "$1" 'done$' || return 1
	for i in 0 1 2; do rounds+=("$(label $i .generation)"); done
	newest=$(printf '%s\n' "${rounds[@]}" | sort -n | tail -n 1)
	for ((i = $2; i < $2 + 3 && ${#torn} == 0; i++)); do
		leg=$((i % 3)) others=''
		if [ "${rounds[leg]}" != "$newest" ]; then
			old=$leg
			continue
		fi
		for j in 0 1 2; do
			((j == leg || rounds[j] != newest)) || others+=${others:+,}$j
		done
		[ "$others" ] || continue
		tear $leg
		if left_by_crash $leg "$newest" "$others"; then torn=$leg; else mend $leg; fi
	done
	if [ ! "$torn" ] && [ "$old" ]; then
		torn=$old
		tear $torn
	fi
	echo "leg ${torn:-none}, of rounds ${rounds[*]}"
	[ "$torn" ] && start ${ORDERS[$2 % 6]} && settles "$1"
}

# Each point is judged in one of these ways; in the long pass in all of them.
judge_labels()
{
	local kind

	if ((POINTS <= 100)); then
		case $(($2 % 3)) in
		0) judge_whole "$1" $(($2 / 3)) ;;
		1) judge_log "$1" $(($2 / 3)) ;;
		2) judge_missing "$1" $(($2 / 3)) ;;
		esac
		return
	fi
	for kind in whole log missing torn; do
		"judge_$kind" "$@" || { echo "judge_$kind"; return 1; }
		dmsetup remove "$NAME" 2>/dev/null || :
	done
}

judge_alone_missing()
{
	ask crashes "$1" 'done$' && ! start 0 - 2
}

judge_alone()
{
	ask crashes "$1" 'done$' && start - - 1 && ask numbers "$1" 'lost=0 foreign=0$'
}

# --- the run -------------------------------------------------------------------

disks_make 3 8216 128 16
for i in 0 1 2; do
	disks_fill $i
	disk_lag $i 0 $((3000000 + 1500000 * i))
done
disk_lag 3 0 4000000
disks_record
hedgectl create "$NAME" --nosync --force --log "disk:$LOG_DISK" --region-size 64K "${LEGS[@]}" >/dev/null
find_sysfs
UUID=$(dmsetup table "$NAME" | sed 's/.* label \([^ ]*\).*/\1/')
check_eq "the data leaves room for labels" "$(blockdev --getsz "$DEV")" $LENGTH
LOG="disk 2 $LOG_DISK $REGION"

numbered write "$DEV" $MARKS --threads 6 --pause 20 --seed "$SEED" --seconds 100 >"$TMP/load" &
load=$!
say begin
sleep 1
lag 2 error 1
check "a leg fails" wait_until 20 is_out 2
sleep 0.5
lag 2 error 0
message fail 0
check "the default leg goes out too" wait_until 20 is_out 0
sleep 1
say alone
sleep 0.5
check "another table is loaded" hedge_reload label "$UUID" budget_pct 30
check_eq "they are still out" "$(get legs/0/state) $(get legs/1/state) $(get legs/2/state)" \
	"failed in_sync failed"
say reloaded
sleep 0.7
message reinstate 0
say "comes back"
check "the leg that was the default one comes back" wait_until 60 is_back 0
say "is back"
sleep 0.3
say "log fails"
lag 3 error 1
sleep 1
lag 3 error 0
say "log returns"
sleep 0.7
say repair
lag 1 writes 0
lag 1 error 1
dd if="$DEV" of=/dev/null bs=16k iflag=direct status=none
sleep 0.5
lag 1 error 0
lag 1 writes 1
say repaired
check_num "blocks were rewritten" "$(get stats/repaired) > 0"
message reinstate 2
check "the leg that failed comes back" wait_until 60 is_back 2
sleep 0.5
say end
kill $load
wait $load || :
disks_done
check "in the end the legs were equal" \
	numbered same --bytes $((LENGTH * 512)) /dev/ram0 /dev/ram1 /dev/ram2

# --- its crashes -----------------------------------------------------------------

# Legs of another set, of the same size; then what shows the labels of what crashes leave.
for i in 0 1 2; do
	dmsetup create whole$i --table "0 $SECTORS linear ${TARGETS[i]} 0"
done
hedgectl create other --nosync --force /dev/mapper/whole{0,1,2} >/dev/null
dmsetup remove other
dd if=/dev/mapper/whole1 of="$TMP/foreign" bs=4k iflag=direct status=none

crashes_start
point=$(mark_point alone)
check "crash with two legs out: without the third they are refused" judge_alone_missing "$point"
check "crash with two legs out: the third starts alone" judge_alone "$point"
dmsetup remove "$NAME" 2>/dev/null || :
check "crash with two legs out: all start" judge_whole "$point" 1
dmsetup remove "$NAME" 2>/dev/null || :

# In the middle of each of these.
i=0
while IFS=: read -r kind from to <&8; do
	point=$((($(mark_point "$from") + $(mark_point "$to")) / 2))
	check "crash between \"$from\" and \"$to\": $kind" "judge_$kind" $point $((i++))
	dmsetup remove "$NAME" 2>/dev/null || :
done 8<<'END'
whole:alone:reloaded
whole:reloaded:comes back
whole:comes back:is back
whole:log fails:log returns
whole:repair:repaired
missing:repaired:end
log:comes back:is back
torn:begin:alone
torn:comes back:is back
torn:repair:repaired
END
point=$(mark_point end)
for kind in foreign split torn; do
	check "crash at the end: $kind" judge_$kind "$point" $((i++))
	dmsetup remove "$NAME" 2>/dev/null || :
done
crash_points 12 judge_labels
