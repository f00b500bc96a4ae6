# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2119,SC2120
#
# What the tests of the hedge target share. A test is a bash file that sources
# this one, makes legs, puts a hedged device NAME on them, and states what must
# hold with check functions that print TAP lines:
#
#	legs_brd 2 16			LEGS=(/dev/ram0 /dev/ram1), 16 MiB each
#	lag_leg 1			LEGS[1] becomes a straggler, dm-lag
#	lag_law 1 fixed 2000000		... that takes 2 ms for each read
#	hedge_create policy coc		a table over LEGS, its device in $DEV
#	check_eq "desc" "$(get stats/wasted)" 0
#
# A command that fails outside of a condition fails the test. On exit everything
# is removed, the plan is printed, and the exit status is 0 (pass), 1 or 4 (skip).
# SCALE (a whole number, 1 by default) divides the counts and multiplies the
# times, for rigs that are slow, and of many cases that are alike takes so much fewer;
# TURN (0 by default) says which.

set -Eeuo pipefail

SCALE=${SCALE:-1} TURN=${TURN:-0} CASES=0
NAME=hedge_test
DEV=/dev/mapper/$NAME
TARGET=${TARGET:-hedge}		# another target shows that a checker can fail
LOG='core 2 1024 nosync'
LEGS=() OFFSETS=() LENGTH=''
TESTS=0 FAILURES=0 SKIPPED=''
TMP=$(mktemp -d)

# --- TAP -------------------------------------------------------------------

ok()
{
	TESTS=$((TESTS + 1))
	echo "ok $TESTS - $1"
}

not_ok()
{
	TESTS=$((TESTS + 1))
	FAILURES=$((FAILURES + 1))
	echo "not ok $TESTS - $1"
	shift
	[ $# -eq 0 ] || printf '# %s\n' "$@"
}

# check DESCRIPTION COMMAND...: the command must succeed. Its output is shown
# when it does not, and is in OUTPUT afterwards.
check()
{
	local description=$1

	shift
	if OUTPUT=$("$@" 2>&1); then
		ok "$description"
	else
		not_ok "$description" "failed: $*" "${OUTPUT//$'\n'/$'\n'# }"
	fi
}

# The same for a command that must fail.
check_fails()
{
	local description=$1

	shift
	if OUTPUT=$("$@" 2>&1); then
		not_ok "$description" "did not fail: $*" "${OUTPUT//$'\n'/$'\n'# }"
	else
		ok "$description"
	fi
}

check_eq()
{
	if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "is '$2', expected '$3'"; fi
}

check_match()
{
	if [[ $2 =~ $3 ]]; then ok "$1"; else not_ok "$1" "'$2' does not match '$3'"; fi
}

# check_num DESCRIPTION 'ARITHMETIC EXPRESSION'
check_num()
{
	if (($2)); then ok "$1"; else not_ok "$1" "does not hold: $2"; fi
}

skip()
{
	echo "1..0 # SKIP $1"
	SKIPPED=1
	exit 4
}

# --- cleaning up -------------------------------------------------------------

# All dm devices, those on top first. Losers on a stuck leg end first.
remove_all()
{
	local round names name

	for name in $(dmsetup ls --target lag 2>/dev/null | cut -f1); do
		[ "$name" = No ] || dmsetup message "$name" 0 stuck 0 2>/dev/null || :
	done
	for round in 1 2 3 4 5 6; do
		names=$(dmsetup ls 2>/dev/null | cut -f1)
		[ "$names" != "No devices found" ] && [ "$names" ] || return 0
		for name in $names; do
			dmsetup resume "$name" 2>/dev/null || :
			dmsetup remove "$name" 2>/dev/null || :
		done
		[ "$round" = 1 ] || sleep 0.3
	done
	echo "# left over: $names"
	return 1
}

null_remove()
{
	local d

	for d in /sys/kernel/config/nullb/*/; do
		[ ! -e "$d/power" ] || { echo 0 >"$d/power"; rmdir "$d"; }
	done
}

finish()
{
	local status=$? jobs

	trap - ERR EXIT
	set +e
	jobs=$(jobs -p)
	# shellcheck disable=SC2086
	[ -z "$jobs" ] || kill $jobs 2>/dev/null
	remove_all || FAILURES=$((FAILURES + 1))
	wait
	null_remove
	rm -rf "$TMP"
	[ -z "$SKIPPED" ] || exit 4
	echo "1..$TESTS"
	[ "$status" = 0 ] && [ "$FAILURES" = 0 ] && [ "$TESTS" -gt 0 ] || exit 1
	exit 0
}

trap finish EXIT
trap 'not_ok "line $LINENO: $BASH_COMMAND"' ERR
trap 'exit 1' TERM INT

# --- what is needed ------------------------------------------------------------

scaled() { echo $((($1 + SCALE - 1) / SCALE)); }

# sample WORD...: each SCALEth of them
sample()
{
	local i=0 word

	for word; do
		(((i++ + TURN) % SCALE)) || echo "$word"
	done
}

# its_turn: whether this case is to be run, one of SCALE. Each round begins with another
# one, for cases that come in groups.
its_turn()
{
	CASES=$((CASES + 1))
	((((CASES + CASES / SCALE + TURN) % SCALE) == 0))
}

need_module()
{
	modprobe "$1" 2>/dev/null || skip "no module $1"
}

need_program()
{
	command -v "$1" >/dev/null || skip "no program $1"
}

need_hedge()
{
	[ "$TARGET" = hedge ] || { need_module "dm-$TARGET"; return; }
	need_module dm-hedge
}

# --- legs ----------------------------------------------------------------------

# legs_brd NUMBER MIB: empty memory disks.
legs_brd()
{
	rmmod brd 2>/dev/null || :
	modprobe brd rd_nr="$1" rd_size=$(($2 * 1024)) max_part=1
	LEGS=() OFFSETS=() LENGTH=''
	for ((i = 0; i < $1; i++)); do
		LEGS+=("/dev/ram$i")
	done
}

# null_leg ATTRIBUTE=VALUE...: appends a null_blk device to LEGS.
null_leg()
{
	local dir=/sys/kernel/config/nullb/leg${#LEGS[@]} dev word

	[ -d /sys/kernel/config/nullb ] || {
		modprobe null_blk nr_devices=0 || skip "no module null_blk"
		mount -t configfs configfs /sys/kernel/config 2>/dev/null || :
	}
	mkdir "$dir"
	for word in "$@"; do
		[ -e "$dir/${word%%=*}" ] || skip "null_blk has no ${word%%=*}"
		echo "${word#*=}" >"$dir/${word%%=*}"
	done
	echo 1 >"$dir/power"
	dev=/dev/leg${#LEGS[@]}		# kernels differ in the name
	[ -b "$dev" ] || dev=/dev/nullb$(<"$dir/index")
	LEGS+=("$dev")
}

# lag_leg I [SERVERS]: puts dm-lag under leg I.
lag_leg()
{
	local i=$1 dev=${LEGS[$1]}

	need_module dm-lag
	dmsetup create "lag$i" --table \
		"0 $(blockdev --getsz "$dev") lag $dev 0 ${2:-64} $((i + 1))"
	LEGS[i]=/dev/mapper/lag$i
}

# lag I MESSAGE...
lag() { local i=$1; shift; dmsetup message "lag$i" 0 "$@"; }

# How many requests wait in leg I. While it is stuck, none of them goes on.
lag_queued() { dmsetup status "lag$1" | cut -d' ' -f6; }

# lag_holds I N: whether at least N do
lag_holds() { (($(lag_queued "$1") >= $2)); }

# lag_law I fixed NS | bimodal FAST_NS SLOW_NS SLOW_PER_MILLION | off
lag_law()
{
	local i=$1 at

	if [ "$2" = off ]; then
		lag "$i" law off
		return
	fi
	lag "$i" law begin
	case $2 in
	fixed) lag "$i" law add 0 "$3" 1000000000 "$3" ;;
	bimodal)
		at=$(((1000000 - $5) * 1000))
		lag "$i" law add 0 "$3" $at "$3" $at "$4" 1000000000 "$4"
		;;
	esac
	lag "$i" law end
}

# The same stamps on every leg, at its offset (OFFSETS are those of the table).
fill_legs()
{
	load fill "$DEV" >/dev/null
}

# From now on `load' knows what it has written, with each write of a block another version: data
# that is old is wrong. fill_legs, or filling any device, begins anew.
count_versions() { export LOAD_STATE=$TMP/versions; }

# Both or all legs must hold the same data where the volume is.
legs_equal()
{
	local i bytes=$(($(blockdev --getsz "$DEV") * 512))

	for ((i = 1; i < ${#LEGS[@]}; i++)); do
		blockdev --flushbufs "${LEGS[0]}" "${LEGS[i]}"
		cmp -n $bytes \
		    -i $((${OFFSETS[0]:-0} * 512)):$((${OFFSETS[i]:-0} * 512)) \
		    "${LEGS[0]}" "${LEGS[i]}" || return 1
	done
}

# --- the hedged device -----------------------------------------------------------

# The size that fits all legs, unless the test has set LENGTH.
find_length()
{
	local i size

	[ -z "$LENGTH" ] || return 0
	for i in "${!LEGS[@]}"; do
		size=$(($(blockdev --getsz "${LEGS[i]}") - ${OFFSETS[i]:-0}))
		[ "$LENGTH" ] && ((LENGTH <= size)) || LENGTH=$size
	done
}

# The table line over LEGS and OFFSETS, with the feature words given.
hedge_table()
{
	local i words=''

	for i in "${!LEGS[@]}"; do
		words+=" ${LEGS[i]} ${OFFSETS[i]:-0}"
	done
	[ "$TARGET" = hedge ] || set --
	echo "0 $LENGTH $TARGET $LOG ${#LEGS[@]}$words${*:+ $# $*}"
}

hedge_create()
{
	find_length
	dmsetup create "$NAME" --table "$(hedge_table "$@")"
	find_sysfs
}

find_sysfs()
{
	SYS=/sys/block/$(dmsetup info -c --noheadings -o blkdevname "$NAME")/hedge0
}

# hedge_reload FEATURE...: another table for the same device, then live.
hedge_reload()
{
	dmsetup load "$NAME" --table "$(hedge_table "$@")"
	dmsetup resume "$NAME"
}

hedge_remove() { dmsetup remove "$NAME"; }

message() { dmsetup message "$NAME" 0 "$@"; }

# Attributes: get stats/reads; put policy coc. REPLY-free and quick, for loops.
get() { echo "$(<"$SYS/$1")"; }
put() { echo "$2" >"$SYS/$1"; }

# The preset in force: the word in brackets.
current() { local all; all=$(get "$1"); all=${all#*[}; echo "${all%%]*}"; }

# All presets that this module has.
presets() { local all; all=$(get policy); all=${all//[\[\]]/}; echo "${all/custom/}"; }

# sum ATTRIBUTE: of all legs.
sum()
{
	local i total=0

	for ((i = 0; i < ${#LEGS[@]}; i++)); do
		total=$((total + $(get "legs/$i/$1")))
	done
	echo $total
}

drained() { [ "$(sum inflight)" = 0 ] && [ "$(sum queued)" = 0 ]; }

# wait_until SECONDS COMMAND...: polls; fails after that long (times SCALE).
wait_until()
{
	local end=$((SECONDS + 5 * $1 * SCALE + 1))

	shift
	while ! "$@"; do
		((SECONDS < end)) || return 1
		sleep 0.05
	done
}

# Rule: every copy is the first of a read, an extra one, a rescue or a retry.
# Only true when nothing is in flight.
check_accounting()
{
	check "$1: all copies ended" wait_until 15 drained
	check_num "$1: copies = reads + extra + rescued + retried" \
		"$(get stats/copies) == $(get stats/reads) + $(get stats/extra) + $(get stats/rescued) + $(get stats/retried)"
}

# field NAME TEXT: the value of NAME=VALUE in a program's output.
field()
{
	local word

	for word in $2; do
		[ "${word%%=*}" != "$1" ] || echo "${word#*=}"
	done
}

# status_field NAME: of dmsetup status.
status_field()
{
	local -a words
	local i

	read -r -a words <<<"$(dmsetup status "$NAME")"
	for ((i = 0; i < ${#words[@]} - 1; i++)); do
		[ "${words[i]}" != "$1" ] || { echo "${words[i + 1]}"; return; }
	done
}

# The health characters of the legs.
health()
{
	local -a words

	read -r -a words <<<"$(dmsetup status "$NAME")"
	echo "${words[6 + words[3]]}"
}

now_us() { echo "${EPOCHREALTIME/[.,]/}"; }

# Kernel messages since a mark.
log_mark() { MARK="mark $$ $RANDOM $SECONDS"; echo "$MARK" >/dev/kmsg; }
log_since() { dmesg | sed "1,/$MARK/d"; }

# purpose begin|end: between them allocations fail on purpose. The kernel's log then has traces of
# allocators; see run_in_guest.sh.
purpose() { echo "allocations fail on purpose: $1" >/dev/kmsg; }

# Tracepoints: trace_start [-f FILTER] SYSTEM/EVENT...; the lines are in trace_lines.
TRACE=/sys/kernel/tracing

trace_start()
{
	local event filter=''

	[ -d $TRACE/events ] || mount -t tracefs tracefs $TRACE 2>/dev/null || skip "no tracefs"
	[ "$1" != -f ] || { filter=$2; shift 2; }
	echo 0 >$TRACE/tracing_on
	echo 8192 >$TRACE/buffer_size_kb
	echo >$TRACE/set_event
	echo >$TRACE/trace
	for event in "$@"; do
		[ -d "$TRACE/events/$event" ] || skip "no trace event $event"
		[ -z "$filter" ] || echo "$filter" >"$TRACE/events/$event/filter"
		echo 1 >"$TRACE/events/$event/enable"
	done
	echo 1 >$TRACE/tracing_on
}

trace_stop()
{
	echo 0 >$TRACE/tracing_on
	grep -v '^#' $TRACE/trace >"$TMP/trace" || :
	echo >$TRACE/set_event
	echo >$TRACE/trace
}

trace_lines() { grep -E "${1:-.}" "$TMP/trace" || :; }
