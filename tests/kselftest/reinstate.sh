#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Legs that go out and come back: by message and after errors, with writes before,
# between and meanwhile; nothing that they lack is read, and at the end all legs are
# equal. What cannot be is refused. A block that a leg cannot read is rewritten there.
# Needs dm-lag.

. "$(dirname "$0")/common.sh"
need_hedge

# state I S: whether leg I is in that state
state() { [ "$(get "legs/$1/state")" = "$2" ]; }

# back I: it is reinstated, and all is copied
back()
{
	dmsetup message "$NAME" 0 reinstate "$1" &&
		wait_until 60 state "$1" in_sync &&
		[ "$(get "legs/$1/missed")" = 0 ]
}

all_equal()
{
	dmsetup suspend "$NAME"
	legs_equal || return 1
	dmsetup resume "$NAME"
}

legs_brd 3 16
lag_leg 0
lag_leg 1
lag_leg 2
hedge_create
fill_legs

check_fails "a leg that is not out cannot come back" dmsetup message "$NAME" 0 reinstate 1
check_fails "there is no leg 3" dmsetup message "$NAME" 0 fail 3
check "leg 1 is taken out" dmsetup message "$NAME" 0 fail 1
check "it goes" wait_until 10 state 1 failed
check_match "the status says so" "$(health)" '^AUA'
check_fails "it cannot go twice" dmsetup message "$NAME" 0 fail 1
check "reads and writes go on" load write "$DEV" --threads 2 --count "$(scaled 100)"
check_num "it lacks what was written" "$(get legs/1/missed) > 0"
before=$(get legs/1/reads)
check "what is read is right" load read "$DEV" --threads 2 --count "$(scaled 100)" --verify
check_eq "it is not read" "$(get legs/1/reads)" "$before"
check_num "the other two are" "$(get legs/0/reads) > 0 && $(get legs/2/reads) > 0"
check "the default leg goes too" dmsetup message "$NAME" 0 fail 0
check "it goes" wait_until 10 state 0 failed
check_fails "the last one cannot" dmsetup message "$NAME" 0 fail 2
check "writes go on" load write "$DEV" --threads 2 --count "$(scaled 100)"
check "what is read is right" load read "$DEV" --threads 2 --count "$(scaled 100)" --verify
check "after a reload they are still out" hedge_reload
check_eq "after a reload they are still out" "$(get legs/0/state) $(get legs/1/state)" "failed failed"
load write "$DEV" --threads 2 --count "$(scaled 400)" >"$TMP/out" &
writer=$!
check "leg 0 comes back under writes" back 0
check "leg 1 comes back under writes" back 1
check "the writer ends" wait $writer
check_eq "the writer ends: without errors" "$(field errors "$(<"$TMP/out")")" 0
check_match "all are alive" "$(health)" '^AAA'
check "the legs are equal" all_equal
check "what is read is right" load read "$DEV" --threads 2 --count "$(scaled 200)" --verify

lag 1 writes 1
lag 1 error 1
check "a write that fails takes leg 1 out" load write "$DEV" --threads 1 --count 5
check "it is out" state 1 failed
dmsetup message "$NAME" 0 reinstate 1
check "coming back with the error takes it out again" wait_until 30 eval '[[ $(health) == AS* ]]'
lag 1 error 0
check "without the error it comes back" back 1
check "the legs are equal" all_equal

# A write that fails everywhere leaves its regions to be made equal.
for i in 0 1 2; do lag $i writes 1; lag $i error 1; done
load write "$DEV" --threads 1 --count 5 >/dev/null || :
for i in 0 1 2; do lag $i error 0; done
check "after writes that failed everywhere the legs are resynced" \
	wait_until 60 eval 'state 0 in_sync && state 1 in_sync && state 2 in_sync'
check "the legs are equal" all_equal
hedge_remove

# Reads of leg 0 fail, writes to it do not.
for i in 0 1 2; do lag $i writes 0; done
hedge_create policy rnd
fill_legs
lag 0 error 1
check "reads find another leg" load read "$DEV" --threads 1 --count "$(scaled 40)" --verify
lag 0 error 0
check "reads find another leg: without errors" [ "$(field errors "$OUTPUT")" = 0 ]
check "the blocks are rewritten" wait_until 30 eval '[ "$(get stats/repaired)" -gt 0 ]'
check "the legs are equal" all_equal
