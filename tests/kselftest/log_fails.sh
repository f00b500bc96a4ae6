#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A log on disk that cannot be written, with handle_errors: with keep_log a write that it
# cannot note is an error that no leg has seen; without, such a write is held, and ends in an
# error when the device is suspended with a flush. Needs dm-lag.

. "$(dirname "$0")/common.sh"
need_hedge

block() { head -c 4096 /dev/zero | tr '\0' "$1"; }
write() { block "$1" | dd of="$DEV" bs=4k seek="$2" oflag=direct conv=notrunc iflag=fullblock status=none; }
reads() { dd if="$1" bs=4k skip="$3" count=1 iflag=direct status=none | cmp -s - <(block "$2"); }
ended() { [ -s "$TMP/held" ]; }

# A region is one block: each that was not written to is clean.
legs_brd 3 8
lag_leg 1
lag_leg 2
lag 1 writes 1
lag 2 writes 1
LOG="disk 3 ${LEGS[2]} 8 nosync"
LEGS=("${LEGS[@]:0:2}")
for d in /dev/ram0 /dev/ram1; do dd if=/dev/zero of=$d bs=1M count=8 oflag=direct status=none; done

hedge_create handle_errors keep_log
check "a write" write A 5
lag 2 error 1
check_fails "the log fails: a write to a clean region is an error" write C 6
check_match "an I/O error" "$OUTPUT" 'Input/output error'
check_eq "it is not held" "$(status_field held)" 0
check_fails "no leg has it" eval 'reads /dev/ram0 C 6 || reads /dev/ram1 C 6'
check "the legs are equal" legs_equal
check_match "the status says so" "$(dmsetup status "$NAME")" ' AA 3 disk [0-9:]+ [DF] '
lag 2 error 0
check "the log works: it is written" write C 6
lag 1 error 1
check "a write that fails on a leg is acknowledged" write D 7
check_match "the leg is out" "$(health)" '^AD$'
check "and what is read is right" eval 'reads $DEV D 7 && reads $DEV C 6 && reads $DEV A 5'
lag 2 error 1
check_fails "log and leg fail: an error" write E 8
lag 2 error 0
lag 1 error 0
check "the leg comes back" message reinstate 1
check "and is copied" wait_until 60 eval '[ "$(get legs/1/state)" = in_sync ]'
check "the legs are equal" legs_equal
hedge_remove

# Without keep_log.
hedge_create handle_errors
lag 2 error 1
{ write F 9 2>"$TMP/error" && echo 0 || echo 1; } >"$TMP/held" &
check "the log fails: a write is held" wait_until 10 eval '[ "$(status_field held)" = 1 ]'
check_fails "it has not ended" ended
check "suspend" dmsetup suspend "$NAME"
check "with a flush it ends" wait_until 20 ended
check_eq "in an error" "$(<"$TMP/held")" 1
check_match "an I/O error" "$(<"$TMP/error")" 'Input/output error'
check_fails "no leg has it" eval 'reads /dev/ram0 F 9 || reads /dev/ram1 F 9'
dmsetup resume "$NAME"
check_eq "nothing is held any more" "$(status_field held)" 0
lag 2 error 0
check "the log works: it is written" write F 9
check "and is on both legs" eval 'reads /dev/ram0 F 9 && reads /dev/ram1 F 9'

# The same writes wait for a table that can note them, without a flush.
lag 2 error 1
{ write G 10 2>/dev/null && echo 0 || echo 1; } >"$TMP/held" &
check "a write is held again" wait_until 10 eval '[ "$(status_field held)" = 1 ]'
dmsetup load "$NAME" --table "0 $LENGTH linear /dev/ram0 0"
dmsetup suspend --noflush "$NAME"
dmsetup resume "$NAME"
check "it ends with another table" wait_until 20 ended
check_eq "without an error" "$(<"$TMP/held")" 0
check "where that sends it" reads /dev/ram0 G 10
