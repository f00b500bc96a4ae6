#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Read errors: a leg that fails does not fail the read; both legs do; an error of the
# loser after the win is only counted; an error before the winner's answer waits for
# the winner; a caller's own mistake is not retried. Needs dm-lag.

. "$(dirname "$0")/common.sh"
need_hedge

legs_brd 2 16
lag_leg 0
lag_leg 1

create_filled()
{
	hedge_create policy "$@"
	fill_legs
}

hedge_create
policies=$(presets)
hedge_remove
# shellcheck disable=SC2086 # words
for policy in $(sample $policies); do
	create_filled "$policy"
	[ "$(get timeout_us)" = off ] || put timeout_us 2000
	lag 0 error 1
	check "$policy, one leg fails: data is right" load read "$DEV" --count "$(scaled 100)" --verify
	check_eq "$policy, one leg fails: no read does" "$(field errors "$OUTPUT")" 0
	check_num "$policy, one leg fails: it is counted" "$(get legs/0/errors) > 0"
	check_eq "$policy, one leg fails: the other is innocent" "$(get legs/1/errors)" 0
	check_match "$policy, one leg fails: health" "$(health)" '^RA'
	# With several copies, at once or by a free leg, the other one answers.
	[ "$(get copies)" != 1 ] || [[ $policy == *-r || $policy == *-nir ]] ||
		check_num "$policy, one leg fails: reads were retried" "$(get stats/retried) > 0"

	lag 1 error 1
	check "$policy, both legs fail" load read "$DEV" --count 10 --threads 1
	check_eq "$policy, both legs fail: every read does" "$(field errors "$OUTPUT")" 10
	check_eq "$policy, both legs fail: with EIO" "$(field errno "$OUTPUT")" EIO
	lag 0 error 0
	lag 1 error 0
	check "$policy: legs that answer again are read" load read "$DEV" --count 20 --verify
	check_eq "$policy: without errors" "$(field errors "$OUTPUT")" 0
	check_accounting "$policy"
	hedge_remove
done

# The loser's error comes after the win.
create_filled coc
lag_law 1 fixed 10000000
lag 1 error 1
check "the loser fails after the win" load read "$DEV" --count 50 --threads 2 --verify
check_eq "the loser fails after the win: no read does" "$(field errors "$OUTPUT")" 0
check_accounting "the loser fails after the win"
check_num "the loser fails after the win: counted" "$(get legs/1/errors) > 0"
check_eq "the loser fails after the win: nothing to retry" "$(get stats/retried)" 0
lag 1 error 0
lag_law 1 off
hedge_remove

# The rival's error comes while the other copy is still out.
create_filled coc
lag_law 0 fixed 5000000
lag 1 error 1
check "a copy fails before the winner" load read "$DEV" --count 50 --threads 2 --verify
check_eq "a copy fails before the winner: no read does" "$(field errors "$OUTPUT")" 0
check_accounting "a copy fails before the winner"
lag 1 error 0
lag_law 0 off

hedge_remove
create_filled rnd
# An error that is the caller's own says nothing of the leg: it goes to the caller,
# to no other leg, and is not counted.
lag 0 error notsupp
lag 1 error notsupp
# shellcheck disable=SC2086 # words
for policy in $(sample $policies); do
	put policy $policy
	message reset
	check "$policy, caller's error" load read "$DEV" --threads 2 --count 20
	check_eq "$policy, caller's error: every read ends with it" \
		"$(field errors "$OUTPUT") $(field errno "$OUTPUT")" "40 EOPNOTSUPP"
	check_accounting "$policy, caller's error"
	check_eq "$policy, caller's error: no other leg is tried" "$(get stats/retried)" 0
	check_eq "$policy, caller's error: no leg is blamed" "$(sum errors)" 0
done
lag 0 error 0
lag 1 error 0
check_eq "caller's error: no leg has failed by it" "$(health)" AA
check "caller's error: reads go on" load read "$DEV" --threads 2 --count 20 --verify
check_eq "caller's error: without errors" "$(field errors "$OUTPUT")" 0

# Misaligned: refused before any copy.
before=$(get stats/copies)
check_fails "a misaligned read is refused" \
	dd if="$DEV" of=/dev/null bs=100 count=1 iflag=direct
check_eq "a misaligned read makes no copy" "$(get stats/copies)" "$before"
hedge_remove
