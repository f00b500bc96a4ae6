#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A leg that hangs while the target flushes it, writes its label, copies to or from it, or compares it:
# it can be taken out all the same, writes go on, and it comes back when it answers. What was left behind is
# waited for, a flush by the destructor only. And flushes that fail unseen by the user are told with
# the next one, and a leg that failed one is not trusted while it hangs on another. Needs hedgectl, jq, dm-lag.
# limit: 300

. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/labels.inc"

cached_disks
legs_brd 5 8
r0=/dev/ram0 r1=/dev/loop0 r2=/dev/ram1 spare=/dev/ram2 log=/dev/ram3 log2=/dev/ram4
LEGS=("$r0" "$r1" "$r2")

# takes_write CHARACTER BLOCK: within a minute
takes_write()
{
	block "$1" >"$TMP/block"
	timeout 60 dd if="$TMP/block" of="$DEV" bs=4k seek="$2" oflag=direct conv=notrunc status=none
}

fsync() { dd if=/dev/zero of="$DEV" bs=4k count=1 seek=700 conv=fsync,notrunc status=none; }

# suspend_waits LEG WHAT: for what hangs on that leg, which then answers
suspend_waits()
{
	local suspender gone=0

	dmsetup suspend "$NAME" &
	suspender=$!
	sleep 2
	check "a suspend waits for $2" kill -0 $suspender
	lag "$1" stuck 0
	wait $suspender || gone=$?
	check_eq "and ends" $gone 0
	dmsetup resume "$NAME"
}

# --- a flush ----------------------------------------------------------------------------

lag_leg 1
hedge_create
write A 0
lag 1 writes 1
lag 1 stuck 1
# What was written is idle soon: then the legs are flushed, to call it clean.
check "a flush hangs on one leg" wait_until 30 lag_holds 1 1
check_eq "nothing else does" "$(lag_queued 1)" 1
check "another leg is told to go" message fail 2
check "and not to" message reinstate 2
check "the leg can be taken out" message fail 1
check "the leg goes out" wait_until 20 state 1 failed
check_eq "the other one does not" "$(get legs/2/state)" in_sync
check "writes go on, also where none was" takes_write B 1024
check "and what is read is right" volume_reads B 1024
check "the table can be changed" timeout 60 dmsetup suspend "$NAME"
dmsetup resume "$NAME"
check "and writes go on" takes_write C 1400
check "it is told to come back" message reinstate 1
sleep 1
check "it can be taken out once more while it hangs" message fail 1
check "then it is out" wait_until 20 state 1 failed
check "writes go on" takes_write D 700
lag 1 stuck 0
check "it answers, and comes back" message reinstate 1
check "it is copied" wait_until 30 state 1 in_sync
hedge_remove
check "all legs are equal" all_equal
dmsetup remove lag1
LEGS[1]=$r1

# The destructor waits for it.
lag_leg 1
hedge_create
write A 0
lag 1 writes 1
lag 1 stuck 1
check "a flush hangs on one leg" wait_until 30 lag_holds 1 1
message fail 1
check "the leg goes out" wait_until 20 state 1 failed
dmsetup remove "$NAME" &
remover=$!
sleep 2
check "the device waits for it" kill -0 $remover
lag 1 stuck 0
gone=0
wait $remover || gone=$?
check_eq "and goes" $gone 0
dmsetup remove lag1
LEGS[1]=$r1

# The leg stays after all, as the other one's flush fails; and then its own does.
LEGS=(/dev/loop1 "$r1")
lag_leg 0
lag_leg 1
hedge_create
write A 0
for i in 0 1; do lag $i writes 1; done
lag 0 stuck 1
lag 1 error 1
check "a flush hangs on one leg" wait_until 30 lag_holds 0 1
check "it is told to go" message fail 0
check "the other one goes, whose flush has failed" wait_until 20 state 1 failed
check_eq "the leg stays" "$(get legs/0/state)" in_sync
check "its flush is out" lag_holds 0 1
lag 0 error 1
lag 0 stuck 0
lag_idle() { (($(lag_queued 0) == 0)); }
check "and fails" wait_until 10 lag_idle
for i in 0 1; do lag $i error 0; done
check "the other one comes back" message reinstate 1
check "it is copied" wait_until 60 state 1 in_sync
check_fails "what was lost was acknowledged: the next fsync fails" fsync
check "and the one after it does not" fsync
check "all is copied in the end" wait_until 60 state 1 in_sync
hedge_remove
for i in 0 1; do dmsetup remove lag$i; done
LEGS=("$r0" "$r1" "$r2")

# It has failed on another leg, which has lost what it had in its cache, and is not acknowledged yet:
# that leg is neither read nor copied from.
flush() { dd if=/dev/null of="$DEV" conv=fsync,notrunc status=none; }

LEGS=(/dev/loop1 "$r1" "$r2")
for d in "${LEGS[@]}"; do dd if=/dev/zero of="$d" bs=1M count=8 oflag=direct status=none; done
lag_leg 0
lag_leg 1
hedge_create
write O 5
check "leg 2 goes out" message fail 2
check "and is out" wait_until 20 state 2 failed
write A 5
for i in 0 1; do lag $i writes 1; done
lag_law 1 fixed $((20000000000 * SCALE))
lag 0 error 1
flush &
flusher=$!
check "a flush fails on leg 0 and takes long on leg 1" wait_until 15 \
	eval '(($(dmsetup status lag1 | cut -d" " -f5) > 0))'
# Else reads would take as long.
lag_law 1 off
sleep 1
lag 0 error 0
block O | dd of=/dev/loop1 bs=4k seek=5 oflag=direct conv=notrunc iflag=fullblock status=none
check "what is read is right" volume_reads A 5
check "leg 2 is told to come back" message reinstate 2
check "it is copied" wait_until 20 eval '[ "$(get legs/2/missed)" = 0 ]'
check "from leg 1" reads "$r2" A 5
check "what is read is right still" volume_reads A 5
check "the flush is not acknowledged yet" kill -0 $flusher
done=0
wait $flusher || done=$?
check_eq "it is in the end" $done 0
check "leg 0 is out" state 0 failed
check "leg 2 is in sync" wait_until 30 state 2 in_sync
check "what is read is right in the end" volume_reads A 5
check "leg 0 comes back" message reinstate 0
check "and is copied" wait_until 30 state 0 in_sync
hedge_remove
check "all legs are equal" all_equal
for i in 0 1; do dmsetup remove lag$i; done
LEGS=("$r0" "$r1" "$r2")

# --- a copy -----------------------------------------------------------------------------

# copy_hangs: a write to its region waits until leg $1 goes, which the copy to leg 2 waits for
copy_hangs()
{
	write A 0
	check "leg 2 goes out" message fail 2
	check "and is out" wait_until 20 state 2 failed
	write B 0
	lag "$1" writes 1
	lag "$1" stuck 1
	check "leg 2 comes back" message reinstate 2
	check "its copy hangs" wait_until 20 lag_holds "$1" 1
	takes_write C 0 &
	writer=$!
	sleep 1
	check "a write to that region waits" kill -0 $writer
	check "leg $1 can be taken out" message fail "$1"
	check "it goes out" wait_until 20 state "$1" failed
	done=0
	wait $writer || done=$?
	check_eq "the write ends" $done 0
	check "what is read is right" volume_reads C 0
	check "writes go on elsewhere" takes_write D 1024
}

for d in "${LEGS[@]}"; do dd if=/dev/zero of="$d" bs=1M count=8 oflag=direct status=none; done

# From leg 0 to leg 2, which stays, and gets old data late.
lag_leg 0
hedge_create
copy_hangs 0
check_eq "leg 2 is not in sync" "$(get legs/2/state)" resync
lag 0 stuck 0
check "leg 2 is copied when the old copy has ended" wait_until 30 state 2 in_sync
check "leg 0 comes back" message reinstate 0
check "and is copied" wait_until 30 state 0 in_sync
hedge_remove
check "all legs are equal" all_equal
dmsetup remove lag0
LEGS[0]=$r0

# To leg 2, which must not come back before the old copy has ended.
lag_leg 2
hedge_create
copy_hangs 2
check "it is told to come back" message reinstate 2
sleep 1
check_eq "it does not while it hangs" "$(get legs/2/state)" failed
suspend_waits 2 "the copy"
state 2 failed && message reinstate 2
check "it is copied" wait_until 30 state 2 in_sync
hedge_remove
check "all legs are equal" all_equal
dmsetup remove lag2
LEGS[2]=$r2

# --- a comparison -------------------------------------------------------------------------

# comparison_hangs N WORD...: a check, in the request after the Nth to leg 2; a write to its region waits
# until that leg goes
comparison_hangs()
{
	local before number=$1

	shift
	write A 0
	write A 1
	block B | dd of="$r2" bs=4k oflag=direct conv=notrunc iflag=fullblock status=none
	before=$(dmsetup status lag2 | cut -d' ' -f4)
	lag_law 2 fixed $((2000000000 * SCALE))
	log_mark
	message check "$@"
	check "a check is on its way" wait_until 30 \
		eval '[ "$(dmsetup status lag2 | cut -d" " -f4)" = '$((before + number))' ]'
	lag 2 stuck 1
	check "it hangs in leg 2" eval '[ "$(dmsetup status lag2 | cut -d" " -f5)" = 1 ]'
	takes_write C 1 &
	writer=$!
	sleep 1
	check "a write to that region waits" kill -0 $writer
	check_fails "it is on no leg" reads "$r0" C 1
	check "leg 2 can be taken out" message fail 2
	check "it goes out" wait_until 20 state 2 failed
	done=0
	wait $writer || done=$?
	check_eq "the write ends" $done 0
	check "what is read is right" volume_reads C 1
	check "writes go on elsewhere" takes_write D 1024
	check "it is told to come back" message reinstate 2
	sleep 1
}

# compares_on: what hung goes on, the leg comes back, and the check ends
compares_on()
{
	lag 2 stuck 0
	lag_law 2 off
	check "leg 2 is copied when it has answered" wait_until 30 state 2 in_sync
	check "the check says what it could not compare" wait_until 20 \
		eval 'log_since | grep -q "region 0 was not compared to its end"'
	check "and ends" wait_until 30 eval '[ "$(get check_done)" = 16/16 ]'
	hedge_remove
	check "all legs are equal" all_equal
}

lag_leg 2
hedge_create
comparison_hangs 1
check_eq "leg 2 is not in sync" "$(get legs/2/state)" resync
check_eq "no difference was counted" "$(get stats/mismatches)" 0
compares_on

# In what it rewrites on leg 2, which must not come after what is copied there.
hedge_create
lag 2 writes 1
comparison_hangs 2 repair 0
check_eq "leg 2 does not come back while it hangs" "$(get legs/2/state)" failed
compares_on
dmsetup remove lag2
LEGS[2]=$r2

# --- a label ----------------------------------------------------------------------------

LENGTH=$(((8 << 11) - 16))
new_set
stop
lag_leg 1
check "a set with labels" kernel "disk 2 $log 128" "$r0 ${LEGS[1]} $r2"
find_sysfs
write E 8
lag 1 writes 1
lag 1 stuck 1
message fail 2
check "one leg goes out, and another hangs when its label is to say so" wait_until 30 lag_holds 1 1
check "it can be taken out too" message fail 1
both_out() { [ "$(states)" = "in_sync failed failed" ]; }
check "both are out" wait_until 20 both_out
check "writes go on" takes_write F 16
check "and what is read is right" volume_reads F 16
suspend_waits 1 "the label"
find_sysfs
check_eq "both are out still" "$(states)" "in_sync failed failed"
for i in 1 2; do
	check "leg $i comes back" message reinstate $i
	check "leg $i is copied" wait_until 30 state $i in_sync
done
check "the data is there" volume_reads F 16
stop
check "all legs are equal" all_equal
check "and start together" kernel "disk 2 $log 128" "$r2 ${LEGS[1]} $r0"
find_sysfs
check_eq "all in" "$(states)" "in_sync in_sync in_sync"

# The flush before a label fails on the last full leg.
message fail 0
message fail 2
alone() { [ "$(states)" = "failed in_sync failed" ]; }
check "two legs go out" wait_until 20 alone
write G 24
lag 1 error 1
check "one is to come back" message reinstate 0
check "the last leg cannot be told so" wait_until 20 klog "the label of leg 1 .* cannot be written"
lag 1 error 0
check_fails "what its cache has lost was acknowledged: the next fsync fails" fsync
check "and the one after it does not" fsync
check "the leg is copied" wait_until 30 state 0 in_sync
check "the other one comes back" message reinstate 2
check "it is copied" wait_until 30 state 2 in_sync
stop
check "all legs are equal" all_equal
dmsetup remove lag1

cached_disks_end
