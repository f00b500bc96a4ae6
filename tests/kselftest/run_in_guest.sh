#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# run_in_guest.sh TEST...: runs these tests of this directory, one after the other in the
# machine that it is on (a guest: tests load modules and make devices), and prints TAP.
# A test fails, whatever it says, if the kernel log shows a fault since the last one,
# if it takes longer than LIMIT seconds (six times 240 or what its line "# limit:" says, times
# SCALE), if it leaves a device behind, or if it is skipped without a line "# may skip:" that
# says when it may be (or another TARGET). Ends with "N passed, N failed"; exit status 1 if any failed.

set -euo pipefail

cd "$(dirname "$0")"
SCALE=${SCALE:-1}
export SCALE

FAULTS='\bBUG\b|\bWARNING\b|\bOops\b|general protection|[Cc]all [Tt]race|KASAN|UBSAN|ODEBUG'
FAULTS+='|possible (circular|recursive)|INFO: |suspicious RCU|inconsistent lock|lock held when'
FAULTS+='|blocked for more than|scheduling while atomic|sleeping function called'
FAULTS+='|refcount_t|list_(add|del) corruption|stall|page allocation failure|new suspected memory leaks'

tests=("$@")

# What vmalloc and kmem_cache_create say when they fail is no fault where allocations fail on purpose; tests/vm/run
# leaves the same out.
PURPOSE='/allocations fail on purpose: begin/,/allocations fail on purpose: end/'
PURPOSE+='{/vmalloc error:|kmem_cache_create.* failed/,/Call Trace:/d}'

passed=0 failed=0 skipped=0 number=0 bad=()

# What a test that was killed has left.
tidy()
{
	bash -c '. ./common.sh; TESTS=1' >/dev/null 2>&1 || return 1
	rmmod dm_hedge 2>/dev/null || [ ! -d /sys/module/dm_hedge ] || return 1
	rmmod null_blk brd 2>/dev/null || :
}

echo "TAP version 13"
echo "1..${#tests[@]}"
for t in "${tests[@]}"; do
	number=$((number + 1))
	mark="kselftest $t begins $RANDOM"
	echo "$mark" >/dev/kmsg
	start=$SECONDS status=0
	limit=$(sed -n 's/^# limit: //p' "$t.sh")
	limit=$((${LIMIT:-$((${limit:-240} * 6))} * SCALE))
	# Not a pipe: a process that hangs in a stuck leg would keep it open, and
	# only tidy() lets it go on.
	exec 3> >(sed -u 's/^/    /')
	printer=$!
	timeout -k 10 $limit bash "./$t.sh" >&3 2>&1 3>&- || status=$?
	exec 3>&-
	seconds=$((SECONDS - start))
	why=''
	case $status in
	0) ;;
	4) [ "${TARGET:-hedge}" != hedge ] || grep -q '^# may skip: ' "$t.sh" || why="skipped" ;;
	124 | 137) why="took longer than $limit s" ;;
	*) why="exit status $status" ;;
	esac
	tidy || why+="${why:+, }left something behind"
	wait $printer || :
	faults=$(dmesg | sed "1,/$mark/d" | sed -E "$PURPOSE" | grep -E "$FAULTS" | head -n 5 || :)
	[ -z "$faults" ] || why+="${why:+, }the kernel log shows a fault"
	if [ "$why" ]; then
		failed=$((failed + 1)) bad+=("$t")
		echo "not ok $number - $t # $why, $seconds s"
		[ -z "$faults" ] || sed 's/^/# /' <<<"$faults"
	elif [ "$status" = 4 ]; then
		skipped=$((skipped + 1))
		echo "ok $number - $t # SKIP"
	else
		passed=$((passed + 1))
		echo "ok $number - $t # $seconds s"
	fi
done
[ ${#bad[@]} -eq 0 ] || echo "# failed: ${bad[*]}"
[ $skipped -eq 0 ] || echo "# skipped: $skipped"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
