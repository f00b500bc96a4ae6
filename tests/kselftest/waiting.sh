#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What waits for a slot: no read is sent to one leg twice, also where the retry of a
# failed copy meets the shared queue; no copy is forgotten whose slot comes free while it
# is queued; a direct read that waited is accounted for once; what no leg will take waits
# for nothing; a copy that was moved is not hedged at once. Needs dm-lag and tracefs.
# again: reads must meet in a queue

. "$(dirname "$0")/common.sh"
need_hedge

legs_brd 2 16
lag_leg 0
lag_leg 1
lag_law 0 fixed 100000
lag_law 1 fixed 100000

# Each read wants two copies and finds the slots taken, so it stays in the shared
# queue for its second one when the first has failed.
hedge_create policy coc queue shared queue_depth 1
fill_legs
lag 0 error 1
trace_start dm_hedge/hedge_start
check "shared queue, a leg fails: data is right" \
	load read "$DEV" --threads 8 --count "$(scaled 1000)" --verify
check_eq "shared queue, a leg fails: no read does" "$(field errors "$OUTPUT")" 0
trace_stop
check_accounting "shared queue"
check_num "shared queue: copies were retried" "$(get stats/retried) > 0"
check "shared queue: no read goes to a leg twice" awk '
	{ match($0, / id=[0-9a-f]+/); id = substr($0, RSTART, RLENGTH)
	  match($0, / leg=[0-9]+/); leg = substr($0, RSTART, RLENGTH)
	  if (seen[id leg]++) { print; bad = 1 } }
	END { exit bad || NR < 100 }' "$TMP/trace"
hedge_remove

# Two reads at a time: one fails on leg 0 and is to be retried on leg 1 just when the
# other one gives the slot back there. Nothing else happens that could help it.
hedge_create policy jsq queue_depth 1 rescue_us 0
lag_law 0 fixed 300000
lag_law 1 fixed 300000

# A copy is queued and nothing is in flight: for a moment that is right.
forgotten()
{
	local i

	for ((i = 0; i < 20; i++)); do
		[ "$(sum inflight)" = 0 ] && [ "$(sum queued)" != 0 ] || return 1
		sleep 0.05
	done
}

ended() { ! kill -0 $load 2>/dev/null; }

ended_or_forgotten() { ended || forgotten; }

load read "$DEV" --threads 2 --together --count "$(scaled 5000)" >"$TMP/load" &
load=$!
check "two at a time: they go on" wait_until 100 ended_or_forgotten
if ended; then
	ok "two at a time: none is forgotten"
else
	not_ok "two at a time: none is forgotten" "after $(get stats/reads) reads"
	lag 0 error 0
	# Any other read helps.
	while ! ended; do dd if="$DEV" of=/dev/null bs=4k count=1 iflag=direct status=none; done
fi
wait $load || :
check_match "two at a time: no read fails" "$(<"$TMP/load")" 'errors=0'
check_num "two at a time: copies were retried" "$(get stats/retried) > 0"
check_accounting "two at a time"
lag 0 error 0
hedge_remove

# Direct reads that wait are started by a worker while map is still at work.
lag_law 0 off
lag_law 1 off
hedge_create policy rnd queue_depth 1 rescue_us 0
disk=$(dirname "$SYS")
read -r before _ <"$disk/stat"
check "direct reads wait" load read "$DEV" --threads 16 --count "$(scaled 1000)" --verify
read -r after _ <"$disk/stat"
check_eq "direct reads: each was accounted for" $((after - before)) $(($(scaled 1000) * 16))
check_match "direct reads: none is in flight" "$(<"$disk/inflight")" '^ *0 +0$'
check_accounting "direct reads"
hedge_remove

# one_read KIB: a read at that offset, in the background
one_read()
{
	dd if="$DEV" of=/dev/null bs=4k count=1 skip=$(($1 / 4)) iflag=direct status=none &
}

gone() { ! kill -0 "$1" 2>/dev/null; }
leg_busy() { [ "$(get "legs/$1/inflight")" = 1 ]; }
stuck() { local i; for i in 0 1; do lag $i stuck "$1"; done; }

# A read that only a leg of last resort can serve does not wait for a slot of another
# leg, though what came before it does. Leg 1 lacks what was written while it was out,
# and gets no copy of it since writes to it do not go on.
hedge_create policy jsq queue shared queue_depth 1 rescue_us 0 sitout_pct 0
message fail 1
is_out() { [ "$(get legs/1/state)" = failed ]; }
check "only one leg has it: the other is out" wait_until 10 is_out
dd if=/dev/zero of="$DEV" bs=1M count=4 oflag=direct status=none
lag 1 writes 1
lag 1 stuck 1
message reinstate 1
is_partial() { [ "$(get legs/1/state)" = resync ]; }
check "only one leg has it: the other comes back" wait_until 10 is_partial
put legs/0/weight 0
one_read 8192; first=$!
check "only one leg has it: the other has a read" wait_until 10 leg_busy 1
one_read 12288
sleep 0.3
one_read 3072; last=$!
check "only one leg has it: it is read there" wait_until 10 gone $last
check "only one leg has it: who came first still waits" kill -0 $first
lag 1 stuck 0
lag 1 writes 0
wait
check_accounting "only one leg has it"
hedge_remove

# A read that wants a second copy, when the only leg left for it is avoided: it waits
# for that leg no longer, and others may be hedged.
dmsetup remove lag0
dmsetup remove lag1
legs_brd 3 16
lag_leg 0
lag_leg 1
stuck 1
hedge_create policy coc queue shared queue_depth 1 rescue_us 0 sitout_pct 0 \
	timeout_us 2000000 budget_pct 200 hedge_to idle max_hedges 2
put legs/2/weight 0
put legs/0/weight 0
one_read 0; first=$!
check "a leg is avoided: it has a read" wait_until 10 leg_busy 1
put legs/0/weight 100
one_read 8
check "a leg is avoided: so has the other" wait_until 10 leg_busy 0
put legs/1/weight 0
check "a leg is avoided: an overdue read is hedged" wait_until 10 gone $first
stuck 0
wait
check_accounting "a leg is avoided"
hedge_remove

# A queued copy that is moved at the timeout gets the whole of the next one.
lag_leg 2
stuck 1
lag 2 stuck 1
hedge_create policy slb-arrival queue_depth 1 rescue_us 0 sitout_pct 0 \
	timeout_us 400000 max_hedges 2 budget_pct 200
put legs/1/weight 0
put legs/2/weight 0
put legs/0/hedge_weight 0
put max_hedges 0
one_read 0
check "moved: the leg has a read" wait_until 10 leg_busy 0
put max_hedges 2
trace_start dm_hedge/hedge_timeout dm_hedge/hedge_reissue
one_read 8
twice() { [ "$(grep -c hedge_reissue "$TRACE/trace")" -ge 2 ]; }
check "moved: and is sent once more" wait_until 10 twice
trace_stop
check_num "moved: it was" "$(get stats/moved) == 1"
check "moved: not before the second timeout" awk '
	/hedge_reissue/ { match($0, /ns=[0-9]+/)
			  at[++n] = substr($0, RSTART + 3, RLENGTH - 3) }
	END { print at[1], at[2]; exit !(n == 2 && at[2] - at[1] >= 400000000) }' "$TMP/trace"
stuck 0
lag 2 stuck 0
wait
check_accounting "moved"
hedge_remove

# Due times by the class of the I/O priority, and the order is theirs. All legs have a
# read, and three more wait, of which the last one to arrive is due first; one leg goes on.
hedge_create policy edd-nr queue_depth 1 rescue_us 0 sitout_pct 0 \
	due_us_rt 1000 due_us_be 30000000 due_us_idle 60000000
all_stuck() { stuck "$1"; lag 2 stuck "$1"; }
arrived() { [ "$(get stats/reads)" = "$1" ]; }
started() { [ "$(grep -c hedge_start "$TRACE/trace")" -ge "$1" ]; }
sectors() { trace_lines hedge_start | sed 's/.* sector=\([0-9]*\).*/\1/' | xargs; }

all_stuck 1
for _ in 1 2 3; do one_read 0; done
all_busy() { [ "$(sum inflight)" = 3 ]; }
check "edd: all legs have a read" wait_until 10 all_busy
trace_start dm_hedge/hedge_start
for class in 3 2 1; do
	ionice -c $class dd if="$DEV" of=/dev/null bs=4k count=1 skip=$((256 * class)) iflag=direct status=none &
	check "edd: class $class waits" wait_until 10 arrived $((7 - class))
done
lag 0 stuck 0
check "edd: a leg serves them" wait_until 10 started 3
trace_stop
all_stuck 0
wait
check_eq "edd: real-time, best-effort, idle" "$(sectors)" "2048 4096 6144"
check_accounting "edd"
hedge_remove

# With probe_priority the probe of a large read goes ahead of what waits for its leg,
# and is a real-time read for the device; without it neither. A read that is no larger
# than a probe has none.
bio_ioprio='p:hedge_test/sent submit_bio_noacct sector=+32($arg1):u64 bytes=+40($arg1):u32 ioprio=+22($arg1):u16'
kprobes() { echo "$1" >>$TRACE/kprobe_events 2>/dev/null; }
no_kprobes() { echo 0 >$TRACE/events/hedge_test/enable; echo >$TRACE/kprobe_events; }

probe_order()
{
	hedge_create policy probe copies 1 queue_depth 1 rescue_us 0 sitout_pct 0 probe_priority "$1"
	put legs/1/weight 0
	put legs/2/weight 0
	lag 0 stuck 1
	one_read 0
	check "probe_priority $1: the leg has a read" wait_until 10 leg_busy 0
	trace_start dm_hedge/hedge_start
	one_read 1024
	check "probe_priority $1: a small one waits" wait_until 10 arrived 2
	dd if="$DEV" of=/dev/null bs=64k count=1 skip=32 iflag=direct status=none &
	check "probe_priority $1: a large one waits" wait_until 10 arrived 3
	[ ! -d $TRACE/events/hedge_test ] || echo 1 >$TRACE/events/hedge_test/enable
	lag 0 stuck 0
	wait
	trace_stop
	check_eq "probe_priority $1: order" "$(sectors)" "$2"
	check_accounting "probe_priority $1"
	hedge_remove
}

if [ ! -e $TRACE/kprobe_events ] || ! kprobes "$bio_ioprio"; then
	echo "# no kprobes: what is sent to the device is not looked at"
fi
# io_class BYTES: the class of what is sent first at that sector: to the leg, and then on
io_class() { echo $(($(trace_lines "sent:.*sector=4096 bytes=$1 " | sed -n '1s/.*ioprio=//p') >> 13)); }
real_time=1
probe_order 0 "2048 4096"
[ ! -d $TRACE/events/hedge_test ] ||
	check_num "probe_priority 0: the probe is as any read" "$(io_class 4096) != $real_time"
probe_order 1 "4096 2048"
if [ -d $TRACE/events/hedge_test ]; then
	check_num "probe_priority 1: the probe is real-time" "$(io_class 4096) == $real_time"
	check_num "probe_priority 1: the whole read is not" "$(io_class 65536) != $real_time"
	no_kprobes
fi

# Where nothing of a read waits, its end takes no lock but that of its CPU: nobody
# looks for what does. Where copies wait they are looked for.
if kprobes 'p:hedge_test/forget hedge_wait_forget' && kprobes 'p:hedge_test/remove hedge_order_remove'; then
	for i in 0 1 2; do lag_law $i off; done
	hits() { awk '{ n += $2 } END { print n }' $TRACE/kprobe_profile; }
	hedge_create policy coc copies 2 budget_pct 100 queue_depth 0 rescue_us 0 sitout_pct 0
	echo 1 >$TRACE/events/hedge_test/enable
	load read "$DEV" --threads 8 --count "$(scaled 125)" >/dev/null
	check "nothing waits: all copies ended" wait_until 15 drained
	check_num "nothing waits: second copies were sent" "$(get stats/extra) > 0"
	check_eq "nothing waits: it is not looked for" "$(hits)" 0
	put probe on
	load read "$DEV" --threads 8 --bs 64k --count "$(scaled 25)" >/dev/null
	check "nothing waits: all probes ended" wait_until 15 drained
	check_eq "nothing waits, probes: it is not looked for" "$(hits)" 0
	put queue_depth 1
	load read "$DEV" --threads 8 --bs 64k --count "$(scaled 25)" >/dev/null
	check_num "copies wait: they are" "$(hits) > 0"
	no_kprobes
	check_accounting "nothing waits"
	hedge_remove
fi
