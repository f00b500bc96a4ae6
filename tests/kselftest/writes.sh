#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Writes that fail: on one leg, which goes out and is read no more; on all legs, which
# is an error. The last good leg stays. Needs dm-lag.

. "$(dirname "$0")/common.sh"
need_hedge

legs_brd 2 8
lag_leg 0
lag_leg 1
hedge_create
fill_legs
lag 0 writes 1
lag 1 writes 1

lag 1 error 1
check "a write that fails on one leg" load write "$DEV" --threads 1 --count 5
check_eq "a write that fails on one leg: is acknowledged" "$(field errors "$OUTPUT")" 0
check_match "a write that fails on one leg: takes it out" "$(health)" '^AD'
check_eq "a write that fails on one leg: state" "$(get legs/1/state)" failed
lag 1 error 0
# what it misses must never be read, even though it answers again
load fill "$DEV" >/dev/null
dd if=/dev/zero of="${LEGS[1]}" bs=1M count=8 oflag=direct 2>/dev/null
before=$(get legs/1/reads)
check "data comes from the other leg" load read "$DEV" --threads 4 --count 200 --verify
check_eq "the failed leg is not read" "$(get legs/1/reads)" "$before"

lag 0 error 1
check "a write that fails on the last leg" load write "$DEV" --threads 1 --count 5
check_eq "a write that fails on the last leg: is an error" "$(field errors "$OUTPUT")" 5
lag 0 error 0
check "the last good leg still serves" load read "$DEV" --threads 2 --count 50
check_eq "the last good leg still serves: without errors" "$(field errors "$OUTPUT")" 0
hedge_remove

lag 1 error 0
hedge_create
fill_legs
lag 0 error 1
lag 1 error 1
check "a write that fails on all legs" load write "$DEV" --threads 2 --count 5
check_eq "a write that fails on all legs: is an error" "$(field errors "$OUTPUT")" 10
lag 0 error 0
lag 1 error 0
check "reads go on" load read "$DEV" --threads 2 --count 50
check_eq "reads go on: without errors" "$(field errors "$OUTPUT")" 0
