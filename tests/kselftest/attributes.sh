#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Every attribute, while reads and writes go on: what it accepts it shows again, what it
# does not accept is EINVAL and changes nothing; by sysfs and by message. What
# "dmsetup table" prints makes the same device. Values survive suspend.
# limit: 300

. "$(dirname "$0")/common.sh"
need_hedge

legs_brd 3 8
hedge_create
count_versions
fill_legs
load mixed "$DEV" --threads 2 --verify >"$TMP/load" &
load=$!

long=$(printf '%5000s' '' | tr ' ' 1)

# value FILE: without the other choices, where they are listed.
value()
{
	local all

	all=$(get "$1")
	[[ $all != *"["* ]] || { all=${all#*[}; all=${all%%]*}; }
	echo "$all"
}

try_put() { echo "$2" >"$SYS/$1"; }

# Accepted one after the other.
accepts()
{
	local file=$1 v

	shift
	for v in "$@"; do
		try_put "$file" "$v" || return 1
		[ "$(value "$file")" = "$v" ] || { echo "put $v, got $(value "$file")"; return 1; }
	done
}

# Refused one after the other, each leaving what was there.
refuses()
{
	local file=$1 v before error

	shift
	before=$(get "$file")
	for v in "$@"; do
		if error=$(try_put "$file" "$v" 2>&1); then
			echo "took '${v:0:40}'"
			return 1
		fi
		[[ $error == *"Invalid argument"* ]] || { echo "'${v:0:40}': $error"; return 1; }
		[ "$(get "$file")" = "$before" ] || { echo "'${v:0:40}' changed it"; return 1; }
	done
}

bad=('' ' ' text -1 99999999999999999999 18446744073709551616 "$long" '1x' '1 2' '0x' '1.5' '[')
seen=' '

# attribute FILE 'GOOD...' 'BAD...': ends with the value it began with.
attribute()
{
	local file=$1 good bads before

	seen+="$file "
	read -r -a good <<<"$2"
	read -r -a bads <<<"${3:-}"
	before=$(value "$file")
	check "$file: takes what it should" accepts "$file" "${good[@]}"
	check "$file: refuses what it should" refuses "$file" "${bad[@]}" "${bads[@]}"
	check "$file: goes back" accepts "$file" "$before"
}

attribute policy 'rnd jsq llw slb slb-arrival coc edd-nir fut-r fcfs-lpr' 'custom fcfs FCFS-LPR coc2 [coc]'
attribute copies '1 2 3' '0 4'
attribute copies_to 'any idle' 'all'
attribute cancel 'complete start none' 'stop'
attribute timeout_us 'off 1 2000 1000000 auto' '0 on'
attribute timeout_from 'start arrival' 'begin'
attribute max_hedges '1 2' '3'
attribute hedge_to 'any idle' 'none'
attribute hedge_depth '1 8 0' '1000000000'
attribute balance 'latency jsq llw random round-robin' 'roundrobin'
attribute choices '1 2 3 0' '4'
attribute queue_depth '1 32 0' '1000000000'
attribute budget_pct '0 10 200' '201'
attribute rescue_us '1000 100000 0' '10000000000000'
attribute max_copy_kb '4 1024 256'
attribute bounce_mb '1 64 32'
attribute queue 'legs shared' 'one'
attribute order 'edd fut fcfs' 'due'
attribute replicate 'nr nir r lpr' 'x'
attribute due_us_rt '0 5 1000' '1000000000'
attribute due_us_be '0 5 10000' '1000000000'
attribute due_us_idle '0 5 100000' '1000000000'
attribute probe 'on off' '1'
attribute probe_kb '1 64 4' '0 1025'
attribute probe_priority '1 0' '2'
attribute task_kb '4 1024 0' '1025'
attribute sitout_pct '0 150 300' '1000000'
attribute sitout_s '0 3600 60' '3601'
for i in 0 2; do
	attribute legs/$i/weight '0 1 1000 100' '1001'
	attribute legs/$i/hedge_weight '0 1 1000 100' '1001'
	attribute legs/$i/timeout_us '500 off inherit' '0'
done

# The read-only ones: as many as there are, none writable, each with one value.
numbers='^[0-9]+$'
for path in "$SYS"/* "$SYS"/stats/* "$SYS"/legs/*/*; do
	[ -f "$path" ] || continue
	file=${path#"$SYS/"}
	[[ $seen != *" $file "* ]] || continue
	[[ ! $file =~ ^legs/1/(weight|hedge_weight|timeout_us)$ ]] || continue
	[[ $file == */* || ! -w $path || $(stat -c %a "$path") != 644 ]] ||
		not_ok "$file: is a setting that this test does not know"
	check_fails "$file: is read only" try_put "$file" 1
	case ${file##*/} in
	histogram) check "$file: reads" cat "$path" ;;
	device) check_match "$file: reads" "$(get "$file")" '^[0-9]+:[0-9]+$|^[a-z]' ;;
	check_done) check_match "$file: reads" "$(get "$file")" '^[0-9]+/[0-9]+$' ;;
	state) check_eq "$file: reads" "$(get "$file")" in_sync ;;
	*) check_match "$file: is a number" "$(get "$file")" "$numbers" ;;
	esac
done
# Names that other people's scripts use.
for f in stats/{reads,copies,extra,hedged,won,wasted,cancelled,moved,rescued,retried,repaired,mismatches} \
	stats/unhedged_{budget,memory,sync,large} tau_us check_done \
	legs/0/{device,state,weight,hedge_weight,timeout_us,inflight,queued,oldest_us,stalled,sitting,missed} \
	legs/0/histogram; do
	check "$f is there" test -f "$SYS/$f"
done

# Presets: a knob turned by hand makes it custom.
put policy slb
check_eq "a preset is shown" "$(current policy)" slb
check_match "all presets are listed" "$(get policy)" 'rnd.*jsq.*slb.*coc'
put copies 2
check_eq "a knob by hand makes it custom" "$(current policy)" custom
put policy coc
check_eq "a preset undoes it" "$(current policy)" coc

# Messages.
check "set" message set policy rnd
check_eq "set: took effect" "$(current policy)" rnd
check "set leg" message set leg 1 weight 50
check_eq "set leg: took effect" "$(get legs/1/weight)" 50
before=$(get policy)$(get queue_depth)$(get legs/1/weight)
while read -r words; do
	# shellcheck disable=SC2086
	check_fails "message '$words' is refused" message $words
done <<'END'
set
set policy
set policy nonsense
set queue_depth -1
set queue_depth 1 2
set nonsense 1
set leg
set leg 0
set leg 0 weight
set leg 3 weight 1
set leg -1 weight 1
set leg x weight 1
set leg 0 weight 1001
set leg 0 nonsense 1
set reads 1
nonsense
reset 1
histogram 3
histogram x
END
check_eq "refused messages changed nothing" \
	"$(get policy)$(get queue_depth)$(get legs/1/weight)" "$before"

check "the load is still there" kill -0 $load
kill $load
wait $load || not_ok "data was right all the time" "$(<"$TMP/load")"
check_match "no request failed" "$(<"$TMP/load")" 'errors=0 .*wrong=0'

# The table.
hedge_remove
hedge_create
plain=$(dmsetup table "$NAME")
check_match "defaults are not printed" "$plain" "hedge core 2 1024 nosync 3( [0-9:]+ 0){3}( 0)?$"
put policy coc
put queue_depth 3
put timeout_us 1234
put legs/2/weight 7
changed=$(dmsetup table "$NAME")
check_match "what was set is printed" "$changed" 'policy coc'
check_match "a leg's too" "$changed" 'leg 2 weight 7'
check_fails "what was not set is not" grep -E 'bounce_mb|rescue_us|budget_pct' <<<"$changed"
snapshot()
{
	local f

	for f in "$SYS"/* "$SYS"/legs/?/*weight; do
		[ ! -f "$f" ] || [ "${f##*/}" = tau_us ] || grep -H . "$f"
	done
}
snapshot >"$TMP/before"
dmsetup suspend "$NAME"
dmsetup resume "$NAME"
snapshot >"$TMP/after"
check "values survive suspend" cmp "$TMP/before" "$TMP/after"
hedge_remove
check "the printed line makes a device" dmsetup create "$NAME" --table "$changed"
find_sysfs
check_eq "the same line" "$(dmsetup table "$NAME")" "$changed"
snapshot >"$TMP/after"
check "the same values" cmp "$TMP/before" "$TMP/after"
