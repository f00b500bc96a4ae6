#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A leg whose health changes, or that stalls or sits out, is told to userspace: the device has a
# change uevent that says which leg, its device and its state, and nothing else has such fields.
# Needs busybox's uevent, dm-lag.

. "$(dirname "$0")/common.sh"
need_hedge

state() { [ "$(get "legs/$1/state")" = "$2" ]; }

# told LEG DEVICE STATE: among the uevents since the last mark() is such a one
told()
{
	tail -n "+$MARK" "$TMP/uevents" | awk -v RS= -F'\n' -v disk="$DISK" -v leg="$1" -v device="$2" -v state="$3" '
		{
			delete has
			for (i = 1; i <= NF; i++)
				has[$i]
			if ("ACTION=change" in has && "SUBSYSTEM=block" in has && "DEVNAME=" disk in has &&
			    "DM_HEDGE_LEG=" leg in has && "DM_HEDGE_DEVICE=" device in has &&
			    "DM_HEDGE_STATE=" state in has)
				found = 1
		}
		END { exit !found }'
}
told_of() { tail -n "+$MARK" "$TMP/uevents" | grep -c "^DM_HEDGE_LEG=$1\$" || :; }
mark() { MARK=$(($(wc -l <"$TMP/uevents") + 1)); }

# is_told DESCRIPTION LEG STATE
is_told()
{
	local failures=$FAILURES

	check "$1" wait_until 10 told "$2" "${NUMBER[$2]}" "$3"
	[ "$failures" = "$FAILURES" ] || tail -n "+$MARK" "$TMP/uevents" | grep -E '^(DEVNAME|DM_)' | sed 's/^/# /' || :
}

legs_brd 3 16
for i in 0 1 2; do
	lag_leg $i
	NUMBER[i]=$(dmsetup info -c --noheadings -o major,minor "lag$i")
done
hedge_create policy rnd
DISK=$(dmsetup info -c --noheadings -o blkdevname "$NAME")
fill_legs

: >"$TMP/uevents"
UEVENTS=$TMP/uevents busybox uevent sh -c '{ echo; env; } >>"$UEVENTS"' &
MARK=1
hears() { echo change >"/sys/block/$DISK/uevent" && grep -q "^DEVNAME=$DISK" "$TMP/uevents"; }
check "uevents are heard" wait_until 10 hears
check_fails "others have no such fields" grep -q DM_HEDGE_ "$TMP/uevents"

mark
message fail 1
is_told "leg 1 is taken out" 1 U
check "there is no such event of another leg" eval '[ "$(told_of 0) $(told_of 2)" = "0 0" ]'
mark
message reinstate 1
is_told "it comes back" 1 A
check "it is copied" wait_until 30 state 1 in_sync

mark
lag 2 writes 1
lag 2 error 1
load write "$DEV" --threads 1 --count 5 >/dev/null
is_told "a write fails on leg 2" 2 D
lag 2 error 0
lag 2 writes 0
mark
message reinstate 2
is_told "it comes back" 2 A
check "it is copied" wait_until 30 state 2 in_sync

mark
lag 0 error 1
load read "$DEV" --threads 1 --count 40 >/dev/null
is_told "a read fails on leg 0" 0 R
lag 0 error 0

mark
put rescue_us 200000
lag 1 stuck 1
load read "$DEV" --threads 8 --count 20 >/dev/null &
reader=$!
is_told "leg 1 stalls" 1 "A stalled"
mark
lag 1 stuck 0
is_told "it answers" 1 A
wait $reader

mark
put rescue_us 10000000
lag_law 0 fixed 2000000
lag_law 1 fixed 2000000
lag_law 2 fixed 60000000
sits()
{
	load read "$DEV" --threads 16 --count 12 >/dev/null
	message tick
	[ "$(get legs/2/sitting)" = 1 ]
}
check "leg 2 is slow: it sits out" wait_until 30 sits
is_told "that is told" 2 "A sitting"
