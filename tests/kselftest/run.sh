#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Boots a guest and runs the tests of this directory there:
#
#	run.sh [--rig fast|debug|exact] [--jobs N] [--hedge FILE.ko] [--lag FILE.ko] [TEST...]
#
# The modules are taken as they were built: by default module/dm-hedge.ko and
# tests/lag/dm-lag.ko, and for the debug rig copies of their sources that are
# built here against that rig's kernel. Environment: SCALE and TURN (see common.sh; the
# debug rig has SCALE 4), LIMIT (seconds for each test), KERNEL (a directory as for tests/vm/run),
# KLOG (a file for the guest's kernel log).
#
# All tests run in one guest, one after the other. With --jobs, each has a guest of its own, as many at
# a time as told: in the debug rig, where scripts take most of the time and nothing judges
# it, that is the default, and a leak is seen in the test that leaks. Leaks are not looked for
# there in a test that has a line "# leaks: not looked for".
#
# A test that has a line "# again:" gets a second chance in a guest of its own.

set -euo pipefail

here=$(dirname "$(readlink -f "$0")")
top=$(readlink -f "$here/../..")
rig=fast hedge='' lag='' jobs=''
while [ $# -gt 0 ]; do
	case $1 in
	--rig) rig=$2; shift 2 ;;
	--jobs) jobs=$2; shift 2 ;;
	--hedge) hedge=$2; shift 2 ;;
	--lag) lag=$2; shift 2 ;;
	-*) sed -n '3,19s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
	*) break ;;
	esac
done

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
options=(--mem 1536)
[ -z "${KERNEL:-}" ] || options+=(--kernel "$KERNEL")

[ "$rig" != debug ] || : "${SCALE:=4}" "${jobs:=$(nproc)}"
. "$top/tests/vm/modules.sh"
modules_for "$rig" "$out" "$hedge" "$lag"
for ko in "$HEDGE" "$LAG"; do
	if [ -e "$ko" ]; then
		options+=(--module "$ko")
	else
		echo "run.sh: no $ko; the tests that need it fail" >&2
	fi
done
for m in brd null_blk loop dm-flakey dm-mirror dm-log ext4 xfs; do
	options+=(--module "$m")
done

make -s -C "$top/tests/tools"
for p in load reused linear vectors uring submit failing squeeze; do
	options+=(--bin "$top/tests/tools/build/$p")
done
make -s -C "$top/userspace" >&2
options+=(--bin "$top/userspace/build/hedgectl")
for p in dmsetup fio jq cmp timeout losetup truncate blkdiscard blockdev dd od sed grep awk \
	mkfs.ext4 fsck.ext4 mkfs.xfs xfs_repair fstrim mount umount sync find md5sum stress-ng; do
	options+=(--bin "$p")
done

# guest RIG SECONDS [VARIABLE=VALUE]... -- TEST...
guest()
{
	local rig=$1 seconds=$2 variables=()

	shift 2
	while [ "$1" != -- ]; do
		variables+=("$1")
		shift
	done
	shift
	"$top/tests/vm/run" --rig "$rig" "${options[@]}" ${KLOG:+--log "$KLOG"} --timeout "$seconds" \
		--append "ima_policy=critical_data slab_nomerge" \
		--file "$here:/kselftest" -- env SCALE="${SCALE:-1}" \
		TURN="${TURN:-}" LIMIT="${LIMIT:-}" TARGET="${TARGET:-hedge}" "${variables[@]}" \
		bash /kselftest/run_in_guest.sh "$@"
}

# Each test has a limit of its own; this one is for a guest that hangs as a whole.
seconds_for() { echo $((120 + $1 * ${SCALE:-1})); }

# alone TEST: in a guest of its own; what it printed is shown when it has ended. A guest that
# does not end as it should, or whose log shows a fault, is a failure of its test.
alone()
{
	local start=$SECONDS status=0 KLOG=${KLOG:+$KLOG.$1}

	! grep -q '^# leaks: not looked for' "$here/$1.sh" || local options=("${options[@]}" --no-leaks)
	guest "$rig" "$(seconds_for 9000)" -- "$1" >"$out/$1.tap" 2>&1 || status=$?
	{
		flock 9
		if [ $status -le 1 ]; then
			cat "$out/$1.tap"
		else
			sed '/^[0-9]* passed, [0-9]* failed$/d' "$out/$1.tap"
			echo "not ok 1 - $1 # its guest ended with status $status, $((SECONDS - start)) s"
			echo "0 passed, 1 failed"
		fi
	} 9>"$out/lock"
	return $status
}

# The ones with the largest limits first, so that none is left to run alone at the end.
longest_first()
{
	local t limit

	for t; do
		limit=$(sed -n 's/^# limit: //p' "$here/$t.sh")
		echo "${limit:-240} $t"
	done | sort -k 1nr -k 2 | cut -d' ' -f2
}

# side_by_side TEST...
side_by_side()
{
	local t running=0 status=0

	for t in $(longest_first "$@"); do
		if ((running == jobs)); then
			wait -n || status=1
			running=$((running - 1))
		fi
		alone "$t" &
		running=$((running + 1))
	done
	while ((running > 0)); do
		wait -n || status=1
		running=$((running - 1))
	done
	return $status
}

# The tests that failed, if nothing but checks of their own did so, and each of them says in a
# line "# again:" why it may, on a machine that is busy. Never those that judge data.
may_try_again()
{
	local name names

	names=$(sed -n 's/^not ok [0-9]* - \([a-z_]*\) # .*/\1/p' "$out/tap")
	[ "$names" ] || return 1
	for name in $names; do
		grep -q "^not ok [0-9]* - $name # exit status 1, [0-9]* s$" "$out/tap" || return 1
		grep -q '^# again: ' "$here/$name.sh" || return 1
	done
	echo "$names"
}

# total RETRIED: adds up what the guests counted, but not what was tried again.
total()
{
	awk -v again="$1" '/^[0-9]+ passed, [0-9]+ failed$/ { p += $1; f += $3 }
		END { print p " passed, " f - again " failed" }' "$out/tap"
}

tests=("$@")
if [ $# -eq 0 ]; then
	for t in "$here"/*.sh; do
		t=$(basename "$t" .sh)
		case $t in common | run | run_in_guest) ;; *) tests+=("$t") ;; esac
	done
fi
status=0
if [ "$jobs" ]; then
	side_by_side "${tests[@]}" | tee -a "$out/tap" || status=$?
else
	guest "$rig" "$(seconds_for $((1800 * ${#tests[@]})))" -- "${tests[@]}" |
		tee -a "$out/tap" || status=$?
fi

again=''
if [ $status -eq 1 ] && again=$(may_try_again); then
	# shellcheck disable=SC2086 # names
	echo "# once more, in another guest:" $again
	status=0
	# shellcheck disable=SC2086
	guest "$rig" "$(seconds_for $((9000 * $(wc -w <<<"$again"))))" -- $again |
		tee -a "$out/tap" || status=$?
fi

# The clock once more, where time can be trusted.
if [ "$rig" = fast ] && [[ " ${tests[*]} " == *" clock "* ]]; then
	echo "# the exact rig:"
	guest exact 1800 EXACT=1 -- clock | tee -a "$out/tap" || status=$?
fi
total "$(wc -w <<<"$again")"
exit $status
