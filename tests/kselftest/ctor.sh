#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Wrong table lines are refused, each with a message in the kernel log that names what
# was expected; good ones next to them are taken; nothing leaks. Each line of the list
# is a table without its start, length and target, and what the log must say.
# 1- to 9- are legs, S- one that is too small, ME- the device itself.
# limit: 1000

. "$(dirname "$0")/common.sh"
need_hedge

legs_brd 10 4
LENGTH=8192
dmsetup create small --table "0 4096 linear /dev/ram9 0"

line()
{
	local i words=" $1 "

	for ((i = 1; i <= 9; i++)); do
		words=${words// $i- / /dev/ram$((i - 1)) }
		words=${words// $i- / /dev/ram$((i - 1)) }
	done
	words=${words// S- / /dev/mapper/small }
	words=${words// ME- / $DEV }
	echo "$words"
}

good()
{
	check "taken: $1" dmsetup create "$NAME" --table "0 $LENGTH hedge $(line "$1")"
	hedge_remove 2>/dev/null || :
}

# refused TABLE REGEX: tries it and notes what must be said. What was said is
# taken from the log at once for all, by judge().
refused()
{
	number=$((number + 1))
	echo "ctor test $$ line $number." >/dev/kmsg
	tables[number]=$1 regexes[number]=$2 taken[number]=0
	if dmsetup create "$NAME" --table "0 $LENGTH hedge $(line "$1")" >/dev/null 2>&1; then
		taken[number]=1
		hedge_remove
	fi
}

judge()
{
	local i said

	echo "ctor test $$ line $((number + 1))." >/dev/kmsg
	dmesg >"$TMP/dmesg"
	for ((i = 1; i <= number; i++)); do
		said=$(sed -n "/ctor test $$ line $i\./,/ctor test $$ line $((i + 1))\./p" \
			"$TMP/dmesg" | sed -n 's/^.*device-mapper: //p' | tr '\n' ';')
		if [ "${taken[i]}" = 1 ]; then
			not_ok "refused: ${tables[i]:0:90}" "it was taken"
		elif grep -qiE "hedge: .*(${regexes[i]})" <<<"$said"; then
			ok "refused: ${tables[i]:0:90}"
		else
			not_ok "refused: ${tables[i]:0:90}" \
				"the log says '$said', expected '${regexes[i]}'"
		fi
	done
}

number=0 tables=() regexes=() taken=()
while IFS='|' read -r table regex; do
	[ "$table" ] || continue
	# shellcheck disable=SC2295
	table=${table%"${table##*[![:space:]]}"} regex=${regex#"${regex%%[![:space:]]*}"}
	refused "$table" "$regex"
done <<'END'
                                                                 | log
core                                                             | log
core x 1024                                                      | log
core 0                                                           | log
core 1                                                           | log
core 9 1024 nosync                                               | log
core -1 1024 nosync                                              | log
core 99999999999 1024                                            | log
nolog 1 1024 2 1- 0 2- 0                                         | log
userspace 2 1024 nosync 2 1- 0 2- 0                              | log
clustered_core 2 1024 nosync 2 1- 0 2- 0                         | log
core 2 0 nosync 2 1- 0 2- 0                                      | region
core 2 1023 nosync 2 1- 0 2- 0                                   | region
core 2 1000 nosync 2 1- 0 2- 0                                   | region
core 2 -8 nosync 2 1- 0 2- 0                                     | region
core 2 text nosync 2 1- 0 2- 0                                   | region
core 2 1 nosync 2 1- 0 2- 0                                      | region
core 2 1024 nonsense 2 1- 0 2- 0                                 | log|sync
disk 2 /dev/nonexistent 1024 2 1- 0 2- 0                         | log|device
disk 1 1024 2 1- 0 2- 0                                          | log
disk 3 1- 1024 nosync 2 1- 0 2- 0                                | log.*overlap
core 2 1024 nosync                                               | legs
core 2 1024 nosync x                                             | legs
core 2 1024 nosync -2 1- 0 2- 0                                  | legs
core 2 1024 nosync 0                                             | legs
core 2 1024 nosync 1 1- 0                                        | legs
core 2 1024 nosync 9 1- 0 2- 0 3- 0 4- 0 5- 0 6- 0 7- 0 8- 0 9- 0 | legs
core 2 1024 nosync 3 1- 0 2- 0                                   | leg
core 2 1024 nosync 2 1- 0 2-                                     | leg|offset
core 2 1024 nosync 2 1- 0                                        | leg
core 2 1024 nosync 2 1- x 2- 0                                   | offset
core 2 1024 nosync 2 1- -1 2- 0                                  | offset
core 2 1024 nosync 2 1- 99999999999999999999999 2- 0             | offset
core 2 1024 nosync 2 1- 18446744073709551615 2- 0                | offset|large
core 2 1024 nosync 2 /dev/nonexistent 0 2- 0                     | leg|device
core 2 1024 nosync 2 - 0 2- 0                                    | label|leg|device
core 2 1024 nosync 2 /proc/version 0 2- 0                        | leg|device
core 2 1024 nosync 2 1- 0 S- 0                                   | large|offset
core 2 1024 nosync 2 1- 0 2- 8                                   | large|offset
core 2 1024 nosync 2 1- 0 1- 0                                   | overlap
core 2 1024 nosync 2 1- 0 1- 100                                 | overlap|large
core 2 1024 nosync 3 1- 0 2- 0 1- 0                              | overlap
core 2 1024 nosync 2 1- 0 2- 0 x                                 | feature
core 2 1024 nosync 2 1- 0 2- 0 -1                                | feature
core 2 1024 nosync 2 1- 0 2- 0 1                                 | feature
core 2 1024 nosync 2 1- 0 2- 0 2 policy                          | feature
core 2 1024 nosync 2 1- 0 2- 0 1 policy coc                      | feature|value|policy
core 2 1024 nosync 2 1- 0 2- 0 1 policy                          | value|policy
core 2 1024 nosync 2 1- 0 2- 0 1 nonsense                        | nonsense|feature|unknown
core 2 1024 nosync 2 1- 0 2- 0 2 nonsense 1                      | nonsense|feature|unknown
core 2 1024 nosync 2 1- 0 2- 0 2 policy nonsense                 | policy
core 2 1024 nosync 2 1- 0 2- 0 2 copies 0                        | copies
core 2 1024 nosync 2 1- 0 2- 0 2 copies 3                        | copies
core 2 1024 nosync 2 1- 0 2- 0 2 copies text                     | copies
core 2 1024 nosync 2 1- 0 2- 0 2 cancel never                    | cancel
core 2 1024 nosync 2 1- 0 2- 0 2 timeout_us 0                    | timeout_us
core 2 1024 nosync 2 1- 0 2- 0 2 timeout_us -5                   | timeout_us
core 2 1024 nosync 2 1- 0 2- 0 2 timeout_us 5us                  | timeout_us
core 2 1024 nosync 2 1- 0 2- 0 2 timeout_from end                | timeout_from
core 2 1024 nosync 2 1- 0 2- 0 2 max_hedges 2                    | max_hedges
core 2 1024 nosync 2 1- 0 2- 0 2 hedge_to all                    | hedge_to
core 2 1024 nosync 2 1- 0 2- 0 2 balance nonsense                | balance
core 2 1024 nosync 2 1- 0 2- 0 2 queue_depth -1                  | queue_depth
core 2 1024 nosync 2 1- 0 2- 0 2 queue_depth 99999999999         | queue_depth
core 2 1024 nosync 2 1- 0 2- 0 2 budget_pct 101                  | budget_pct
core 2 1024 nosync 2 1- 0 2- 0 2 rescue_us x                     | rescue_us
core 2 1024 nosync 2 1- 0 2- 0 2 bounce_mb -1                    | bounce_mb
core 2 1024 nosync 2 1- 0 2- 0 2 reads 1                         | reads|feature|unknown
core 2 1024 nosync 2 1- 0 2- 0 1 leg                             | leg
core 2 1024 nosync 2 1- 0 2- 0 2 leg 0                           | leg|value
core 2 1024 nosync 2 1- 0 2- 0 3 leg 0 weight                    | leg|weight
core 2 1024 nosync 2 1- 0 2- 0 4 leg 2 weight 1                  | leg
core 2 1024 nosync 2 1- 0 2- 0 4 leg x weight 1                  | leg
core 2 1024 nosync 2 1- 0 2- 0 4 leg -1 weight 1                 | leg
core 2 1024 nosync 2 1- 0 2- 0 4 leg 0 weight 1001               | weight
core 2 1024 nosync 2 1- 0 2- 0 4 leg 0 nonsense 1                | nonsense|leg|unknown
core 2 1024 nosync 2 1- 0 2- 0 0 x                               | feature|word|argument|extra
core 2 1024 nosync 2 1- 0 2- 0 2 policy coc x                    | feature|word|argument|extra
core 2 1024 nosync 2 1- 0 2- 0 1 keep_log                        | handle_errors
END
judge

while read -r table; do
	good "$table"
done <<'END'
core 2 1024 nosync 2 1- 0 2- 0
core 2 1024 nosync 2 1- 0 2- 0 0
core 2 8 nosync 2 1- 0 2- 0
core 2 1024 nosync 8 1- 0 2- 0 3- 0 4- 0 5- 0 6- 0 7- 0 8- 0
core 2 1024 nosync 2 1- 0 2- 0 1 handle_errors
core 2 1024 nosync 2 1- 0 2- 0 2 handle_errors keep_log
core 2 1024 nosync 2 1- 0 2- 0 4 policy coc copies 2
core 2 1024 nosync 3 1- 0 2- 0 3- 0 15 handle_errors policy fcfs-lpr timeout_us 2000 queue_depth 8 budget_pct 200 hedge_depth 4 leg 2 weight 0
disk 3 9- 1024 nosync 2 1- 0 2- 0
END
LENGTH=4096
good "core 2 1024 nosync 2 1- 0 1- 4096"
LENGTH=8192

# A leg that is the device itself.
LEGS=(/dev/ram0 /dev/ram1)
hedge_create
log_mark
check_fails "the device itself as a leg is refused" \
	dmsetup load "$NAME" --table "0 $LENGTH hedge $(line "core 2 1024 nosync 2 1- 0 ME- 0")"
check_match "it says so" "$(log_since)" 'a leg cannot be the device itself'
dmsetup clear "$NAME"
check "the old table still works" dd if="$DEV" of=/dev/null bs=4k count=10 iflag=direct
hedge_remove

# Nothing leaks: the legs are free, memory returns.
refuse_all()
{
	local i

	for ((i = 0; i < $1; i++)); do
		dmsetup create "$NAME" --table "0 $LENGTH hedge $(line "$table")" 2>/dev/null || :
	done
}
# Where a target's memory comes from; free memory as such is noisier.
used() { sleep 1; awk '/^(SUnreclaim|Percpu):/ { n += $2 } END { print n }' /proc/meminfo; }
table="core 2 1024 nosync 3 1- 0 2- 0 3- 0 4 policy coc queue_depth nonsense"
refuse_all 20
before=$(used)
refuse_all "$(scaled 60)"
memory_back() { (($(used) < before + 2048 / SCALE)); }
check "memory returns after refused tables" wait_until 20 memory_back
dmsetup remove "$NAME" 2>/dev/null || :
dmsetup remove small
check "no leg stays open" rmmod brd
check "the module can go" rmmod dm_hedge
