#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Boots a guest and runs the tests of this directory there:
#
#	run.sh [--rig fast|debug|exact] [--hedge FILE.ko] [--lag FILE.ko] [TEST...]
#
# The modules are taken as they were built: by default module/dm-hedge.ko and
# tests/lag/dm-lag.ko, and for the debug rig copies of their sources that are
# built here against that rig's kernel. Environment: SCALE (see common.sh; the debug
# rig has 4), LIMIT (seconds for each test), KERNEL (a directory as for tests/vm/run),
# KLOG (a file for the guest's kernel log).
#
# A test that has a line "# again:" gets a second chance in a guest of its own.

set -euo pipefail

here=$(dirname "$(readlink -f "$0")")
top=$(readlink -f "$here/../..")
rig=fast hedge='' lag=''
while [ $# -gt 0 ]; do
	case $1 in
	--rig) rig=$2; shift 2 ;;
	--hedge) hedge=$2; shift 2 ;;
	--lag) lag=$2; shift 2 ;;
	-*) sed -n '3,14s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
	*) break ;;
	esac
done

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
options=(--mem 1536)
[ -z "${KLOG:-}" ] || options+=(--log "$KLOG")
[ -z "${KERNEL:-}" ] || options+=(--kernel "$KERNEL")

[ "$rig" != debug ] || : "${SCALE:=4}"
. "$top/tests/vm/modules.sh"
modules_for "$rig" "$out" "$hedge" "$lag"
for ko in "$HEDGE" "$LAG"; do
	if [ -e "$ko" ]; then
		options+=(--module "$ko")
	else
		echo "run.sh: no $ko; the tests that need it are skipped" >&2
	fi
done
for m in brd null_blk loop dm-flakey dm-mirror dm-log; do
	options+=(--module "$m")
done

make -s -C "$top/tests/tools"
for p in load reused linear vectors uring submit failing squeeze; do
	options+=(--bin "$top/tests/tools/build/$p")
done
make -s -C "$top/userspace" >&2
options+=(--bin "$top/userspace/build/hedgectl")
for p in dmsetup fio jq cmp timeout losetup truncate blkdiscard blockdev dd od sed grep awk; do
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
	"$top/tests/vm/run" --rig "$rig" "${options[@]}" --timeout "$seconds" \
		--append "ima_policy=critical_data slab_nomerge" \
		--file "$here:/kselftest" -- env SCALE="${SCALE:-1}" \
		LIMIT="${LIMIT:-}" TARGET="${TARGET:-hedge}" "${variables[@]}" \
		bash /kselftest/run_in_guest.sh "$@" | tee -a "$out/tap"
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

# Each test has a limit of its own; this one is for a guest that hangs as a whole.
tests=("$@")
[ $# -gt 0 ] || tests=("$here"/*.sh)
status=0
guest "$rig" $((120 + 1800 * ${#tests[@]} * ${SCALE:-1})) -- "$@" || status=$?

again=''
if [ $status -eq 1 ] && again=$(may_try_again); then
	# shellcheck disable=SC2086 # names
	echo "# once more, in another guest:" $again
	status=0
	# shellcheck disable=SC2086
	guest "$rig" $((120 + 9000 * $(wc -w <<<"$again") * ${SCALE:-1})) -- $again || status=$?
fi

# The clock once more, where time can be trusted.
if [ "$rig" = fast ] && [[ $# -eq 0 || " $* " == *" clock "* ]]; then
	echo "# the exact rig:"
	guest exact 1800 EXACT=1 -- clock || status=$?
fi
total "$(wc -w <<<"$again")"
exit $status
