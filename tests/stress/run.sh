#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Boots a guest and runs the stress test or the fuzz test there, once for each seed:
#
#	run.sh [--rig fast|debug] [--seconds N] [--only REGEX] [--hedge FILE.ko] [SEED...]
#	run.sh --fuzz COUNT [--rig fast|debug] [--hedge FILE.ko] [SEED...]
#
# By default the debug rig, 60 seconds and a seed of the moment, which is printed: a run
# with the same seed does the same things in the same order, if not at the same time. It
# takes longer where the machine is so slow that not each of them would happen.
# --only names the actions that may happen (see stress.sh). Environment: KLOG, a file for
# the guest's kernel log.

set -euo pipefail

here=$(dirname "$(readlink -f "$0")")
top=$(readlink -f "$here/../..")
rig=debug seconds=60 only=. hedge='' test=stress count=''
while [ $# -gt 0 ]; do
	case $1 in
	--rig) rig=$2; shift 2 ;;
	--seconds) seconds=$2; shift 2 ;;
	--only) only=$2; shift 2 ;;
	--fuzz) test=fuzz count=$2; shift 2 ;;
	--hedge) hedge=$2; shift 2 ;;
	-*) sed -n '3,14s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
	*) break ;;
	esac
done
[ $# -gt 0 ] || set -- $(($(date +%s) % 32768))

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
. "$top/tests/vm/modules.sh"
modules_for "$rig" "$out" "$hedge"
make -s -C "$top/tests/tools"
make -s -C "$top/userspace" >&2

options=(--mem 768 --module "$HEDGE" --module "$LAG")
[ -z "${KLOG:-}" ] || options+=(--log "$KLOG")
for m in brd loop null_blk dm-mirror dm-log; do
	options+=(--module "$m")
done
for p in stress fuzz load; do
	options+=(--bin "$top/tests/tools/build/$p")
done
options+=(--bin "$top/userspace/build/hedgectl")
for p in dmsetup cmp timeout blockdev losetup truncate dd sed grep awk sort cut find cat rm; do
	options+=(--bin "$p")
done
for f in "$here"/{stress,fuzz}.sh "$top"/tests/kselftest/{common,run_in_guest}.sh; do
	options+=(--file "$f:/stress/")
done

passed=0 failed=0
for seed; do
	echo "# $test: seed $seed, ${count:-$seconds s}${count:+ cases}, $rig rig"
	if "$top/tests/vm/run" --rig "$rig" "${options[@]}" --timeout $((seconds * 2 + 1800 + ${count:-0} / 5)) -- \
		env SCALE=$([ "$rig" = debug ] && echo 4 || echo 1) SEED="$seed" \
		DURATION="$seconds" ONLY="$only" COUNT="$count" bash /stress/run_in_guest.sh $test; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "# failed: seed $seed"
	fi
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
