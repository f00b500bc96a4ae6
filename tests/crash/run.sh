#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Boots a guest and runs the crash tests there:
#
#	run.sh [--long] [--keep DIR] [--hedge FILE.ko] [--rig fast|debug] [TEST...]
#
# The short pass looks at some 25 crash points, the long one at more than 500.
# Tests are raw, files, resync, out, order and labels here. The modules
# are taken as they were built. --keep brings back what the tests recorded, through
# a serial port, which takes minutes: name one test. Environment: TARGET=mirror
# judges dm-mirror instead; CACHED, see disks.sh; POINTS is the number of crash
# points in all, SEED another choice of everything, KLOG a file for the guest's
# kernel log, LIMIT the seconds for each test.

set -euo pipefail

here=$(dirname "$(readlink -f "$0")")
top=$(readlink -f "$here/../..")
rig=fast long='' keep='' hedge=$top/module/dm-hedge.ko
while [ $# -gt 0 ]; do
	case $1 in
	--long) long=1; shift ;;
	--rig) rig=$2; shift 2 ;;
	--hedge) hedge=$2; shift 2 ;;
	--keep) keep=$2; shift 2 ;;
	-*) sed -n '3,16s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
	*) break ;;
	esac
done
make -s -C "$top/tests/tools"
make -s -C "$top/userspace" >&2
if [ $# -eq 0 ]; then
	"$here/selftest" | sed 's/^/    /'
fi
[ $# -gt 0 ] || set -- raw files resync out order labels
: "${POINTS:=${long:+520}}" "${POINTS:=14}"

options=(--mem 3072)
[ -z "$keep" ] || options+=(--out "$keep")
[ -z "${KLOG:-}" ] || options+=(--log "$KLOG")
for ko in "$hedge" "$top/tests/lag/dm-lag.ko"; do
	[ ! -e "$ko" ] || options+=(--module "$ko")
done
for m in brd loop null_blk dm-mirror dm-log dm-flakey dm-log-writes ext4; do
	options+=(--module "$m")
done
for p in load linear replay numbered; do
	options+=(--bin "$top/tests/tools/build/$p")
done
options+=(--bin "$top/userspace/build/hedgectl")
for p in dmsetup fio jq sort cmp timeout blockdev blkdiscard dd sed grep awk mkfs.ext4 fsck.ext4 \
	mount umount truncate sync find md5sum; do
	options+=(--bin "$p")
done
for f in "$here"/*.sh "$here"/../kselftest/{common,run_in_guest}.sh; do
	[[ $f == */run.sh ]] || [ ! -e "$f" ] || options+=(--file "$f:/crash/")
done

environment=(SCALE="${SCALE:-1}" LIMIT="${LIMIT:-}" TARGET="${TARGET:-hedge}"
	POINTS="$POINTS" SEED="${SEED:-1}" ${CACHED+CACHED="$CACHED"}
	SECONDS_OF_LOAD="${SECONDS_OF_LOAD:-${long:+40}}" FILES="${long:+400}")
"$top/tests/vm/run" --rig "$rig" "${options[@]}" --timeout $((2400 + 120 * POINTS)) -- \
	env "${environment[@]}" bash /crash/run_in_guest.sh "$@"
