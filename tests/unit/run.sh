#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run test programs that print TAP and add up their results: run.sh PROGRAM...
# A program that dies, hangs, or runs fewer tests than it planned, counts as a
# failure of its own.
set -euo pipefail

passed=0 failed=0
for program in "$@"; do
	echo "# $program"
	status=0
	output=$(timeout 2400 "$program" 2>&1) || status=$?
	printf '%s\n' "$output"
	ok=$(grep -c '^ok ' <<< "$output" || true)
	not_ok=$(grep -c '^not ok ' <<< "$output" || true)
	planned=$(sed -n 's/^1\.\.//p' <<< "$output")
	if ((ok + not_ok != ${planned:--1})) || ((status != 0 && not_ok == 0)); then
		echo "not ok - $program ended early, status $status"
		not_ok=$((not_ok + 1))
	fi
	passed=$((passed + ok)) failed=$((failed + not_ok))
done
echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
