#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A flush by the user that takes long, and then fails: what the leg may have lost is copied to it again when
# it comes back, also where nobody has written since and the legs were flushed meanwhile. The same for a
# write with FUA to a leg that has none. One that ends well keeps nothing from being called clean, nor do
# flushes without a pause. A leg that is copied meanwhile is not full, what was copied from that leg is copied
# again, and what was rewritten from it counts as lost. Needs dm-lag.
# limit: 500

. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/labels.inc"

cached_disks
LEGS=(/dev/loop0 /dev/loop1)
lag_leg 0
hedge_create
lag 0 writes 1

flush() { dd if=/dev/null of="$DEV" conv=fsync,notrunc status=none; }
write_fua() { dd if=/dev/zero of="$DEV" bs=4k count=1 seek=1500 oflag=direct,dsync conv=notrunc status=none; }
served() { dmsetup status lag0 | cut -d' ' -f4; }
in_service() { dmsetup status lag0 | cut -d' ' -f5; }

# is_late SECONDS COMMAND...: the command takes that long on leg 0, and nothing that comes after it
is_late()
{
	# Nothing is open: the target flushes nothing itself.
	dmsetup suspend "$NAME"
	dmsetup resume "$NAME"
	find_sysfs
	lag_law 0 fixed $(($1 * 1000000000))
	shift
	{ "$@" 2>/dev/null || exit 1; } &
	late=$!
	check "$* is on its way" wait_until 10 eval '(($(in_service) == 1))'
	lag_law 0 off
	write A 5
	before=$(served)
}

# What was written is idle soon, and then the legs are flushed.
flushed() { (($(served) > before)); }

late_ends()
{
	ended=0
	wait $late || ended=$?
}

# comes_back MISSED: leg 0, which misses that many regions
comes_back()
{
	check_eq "it misses what is not known to be on it" "$(get legs/0/missed)" "$1"
	check "it comes back" message reinstate 0
	check "and is in sync" wait_until 30 state 0 in_sync
	check "what is read is right" volume_reads A 5
	check "also on it" reads /dev/loop0 A 5
}

# loses COMMAND REGIONS: what was acknowledged, idle and flushed when the command failed late
loses()
{
	write O 5
	is_late $((20 * SCALE)) "$1"
	check "the legs are flushed meanwhile" wait_until 15 flushed
	sleep 1
	check_eq "$1 is out still" "$(in_service)" 1
	lag 0 error 1
	late_ends
	lag 0 error 0
	check_eq "the other leg has it: it is no error" $ended 0
	check "leg 0 is out" wait_until 20 state 0 failed
	# Its cache is gone.
	block O | dd of=/dev/loop0 bs=4k seek=5 oflag=direct conv=notrunc iflag=fullblock status=none
	comes_back "$2"
}

loses flush 1
# That it is written with FUA itself is a region too.
loses write_fua 2

# All is well: it is cleaned when the flush has ended.
is_late $((12 * SCALE)) flush
late_ends
check_eq "a flush that is late ends well" $ended 0
sleep 16
check "leg 0 is taken out" message fail 0
check "and is out" wait_until 20 state 0 failed
comes_back 0

# There is always one out.
flushes()
{
	while [ ! -e "$TMP/stop" ]; do flush; done
}

write A 5
lag_law 0 fixed 800000000
flushes &
first=$!
sleep 0.4
flushes &
sleep 26
touch "$TMP/stop"
check "flushes went on" kill -0 $first
wait
lag_law 0 off
check "leg 0 is taken out" message fail 0
check "and is out" wait_until 20 state 0 failed
comes_back 0

# A leg that has been copied while one is out is not full before that has ended: what it fails may be the copy.
lag_leg 1
hedge_remove
hedge_create
write O 5
check "leg 0 is taken out" message fail 0
check "and is out" wait_until 20 state 0 failed
write A 5
lag 1 stuck 1			# reads, and so the copy
check "it comes back" message reinstate 0
check "its copy waits" wait_until 20 lag_holds 1 1
lag_law 0 fixed $((20 * SCALE * 1000000000))
{ flush || exit 1; } &
late=$!
check "a flush is on its way" wait_until 10 eval '(($(in_service) == 1))'
lag_law 0 off
lag 1 stuck 0
check "the leg is copied" wait_until 10 eval '[ "$(get legs/0/missed)" = 0 ]'
sleep 6
check_eq "the flush is out still" "$(in_service)" 1
check "the leg is not full" state 0 resync
check_fails "the other one cannot go" message fail 1
lag 0 error 1
late_ends
lag 0 error 0
check "the leg is out" wait_until 20 state 0 failed
comes_back 1
check "all legs are equal" all_equal

# A leg that was copied from one that then fails a flush.
hedge_remove
legs_brd 1 8
LEGS=(/dev/mapper/lag0 /dev/mapper/lag1 /dev/ram0)
for d in "${LEGS[@]}"; do dd if=/dev/zero of="$d" bs=1M count=8 oflag=direct status=none; done
hedge_create
write O 5
is_late $((20 * SCALE)) flush
check "leg 2 is taken out" message fail 2
check "and is out" wait_until 20 state 2 failed
write A 5
drops() { block O | dd of=/dev/loop0 bs=4k seek=5 oflag=direct conv=notrunc iflag=fullblock status=none; }
drops
check "it comes back" message reinstate 2
check "and is copied" wait_until 20 eval '[ "$(get legs/2/missed)" = 0 ]'
check "from what was dropped" reads /dev/ram0 O 5
check_eq "the flush is out still" "$(in_service)" 1
lag 0 error 1
late_ends
lag 0 error 0
check "leg 0 is out" wait_until 20 state 0 failed
check "leg 2 is copied again" wait_until 30 state 2 in_sync
check "from leg 1" reads /dev/ram0 A 5
comes_back 1
check "all legs are equal" all_equal
hedge_remove

# One that was rewritten from such a leg has lost it too; that is told.
LEGS=(/dev/mapper/lag0 /dev/mapper/lag1)
hedge_create policy rnd
put legs/0/weight 0
is_late $((20 * SCALE)) flush
drops
lag 1 error 1
dd if="$DEV" of=/dev/null bs=4k skip=5 count=1 iflag=direct status=none
lag 1 error 0
check "a block of leg 1 is rewritten" wait_until 20 eval '[ "$(get stats/repaired)" = 1 ]'
check "with what was dropped" reads /dev/loop1 O 5
check_eq "the flush is out still" "$(in_service)" 1
lag 0 error 1
late_ends
lag 0 error 0
check_num "the flush is an error" "$ended != 0"
hedge_remove
for i in 0 1; do dmsetup remove lag$i; done
cached_disks_end
