#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Cgroups: whatever a volume does for a task is charged to the task's cgroup, whoever submits it:
# copies by the clock, by rescues and retries and from a queue, writes that wait for their region.
# A cgroup may go while a copy for it is still out, and one whose I/O is throttled on a leg is
# served by the other. Needs dm-lag.
# may skip: a kernel without cgroups for I/O (the debug rig)

. "$(dirname "$0")/common.sh"
need_hedge
CG=/sys/fs/cgroup
grep -q " $CG cgroup2 " /proc/mounts || mount -t cgroup2 cgroup2 $CG 2>/dev/null || skip "no cgroups"
grep -qw io $CG/cgroup.controllers || skip "no cgroups for I/O"
echo +io >$CG/cgroup.subtree_control
mkdir -p $CG/hedged

# within COMMAND...: in the cgroup
within() { (echo "$BASHPID" >$CG/hedged/cgroup.procs; exec "$@"); }

number_of() { dmsetup info -c --noheadings --separator : -o major,minor "lag$1"; }

# charged FIELD: the sum over the legs
charged()
{
	awk -v field="$1" -v legs=" $NUMBERS " '
		index(legs, " " $1 " ") {
			for (i = 2; i <= NF; i++) {
				split($i, word, "=")
				if (word[1] == field)
					n += word[2]
			}
		}
		END { print n + 0 }' $CG/hedged/io.stat
}

# --- reads ------------------------------------------------------------------------------

legs_brd 2 16
for i in 0 1; do lag_leg $i; done
NUMBERS="$(number_of 0) $(number_of 1)"
hedge_create rescue_us 0
fill_legs

# reads_charged DESCRIPTION ATTRIBUTE: 100 reads, of which some are counted in the attribute
reads_charged()
{
	local copies before rios

	copies=$(get stats/copies) rios=$(charged rios) before=$(get "$2")
	check "$1: reads end" within load read "$DEV" --verify --threads 4 --count 25
	check "$1: and all copies" wait_until 15 drained
	check_num "$1: there are some ($2)" "$(get "$2") > $before"
	check_eq "$1: all copies are charged" "$(($(charged rios) - rios))" $(($(get stats/copies) - copies))
}

put policy coc
reads_charged "two copies at once" stats/extra
put policy fcfs-lpr
put budget_pct 100
put timeout_us 1000
lag_law 0 fixed 20000000
weight=$(get legs/1/weight)
put legs/1/weight 0	# all go to leg 0 first, however busy the machine
reads_charged "hedges by the clock" stats/hedged
put queue_depth 1
reads_charged "hedges and a queue" stats/hedged
put queue_depth 0
put timeout_us off
lag_law 0 off
lag 0 error 1
reads_charged "retries" stats/retried
put legs/1/weight "$weight"
lag 0 error 0
put copies 1
put queue_depth 1
for i in 0 1; do lag_law $i fixed 2000000; done
reads_charged "one copy, which waits" stats/reads
put queue_depth 0
for i in 0 1; do lag_law $i off; done
reads_charged "one copy, which does not" stats/reads

rios=$(charged rios)
check "reads by others end" load read "$DEV" --verify --threads 4 --count 25
check_eq "they are not charged here" "$(charged rios)" "$rios"

# --- writes -----------------------------------------------------------------------------

# writes_charged DESCRIPTION BYTES FROM: one write
writes_charged()
{
	local wbytes

	wbytes=$(charged wbytes)
	check "$1: it ends" within dd if=/dev/zero of="$DEV" bs="$2" count=1 seek="$3" \
		oflag=direct,seek_bytes conv=notrunc status=none
	check_eq "$1: it is charged for each leg" "$(($(charged wbytes) - wbytes))" $((2 * $2))
}

hedge_remove
hedge_create
writes_charged "a write to a clean region" 4096 0
writes_charged "a write to an open region" 4096 8192
writes_charged "a write across clean regions" 8192 $((3 * 524288 - 4096))
writes_charged "a write across open regions" 8192 $((3 * 524288 - 4096))
wbytes=$(charged wbytes)
dd if=/dev/zero of="$DEV" bs=4k count=1 seek=1000 oflag=direct conv=notrunc status=none
check_eq "a write by others is not charged here" "$(charged wbytes)" "$wbytes"

# --- a limit on one leg -------------------------------------------------------------------

fill_legs
put timeout_us 1000
put budget_pct 100
echo "$(number_of 0) riops=10" >$CG/hedged/io.max
put legs/1/weight 0	# all go to leg 0 first
hedged=$(get stats/hedged)
check "leg 0 is throttled: reads end" within load read "$DEV" --verify --threads 4 --count 25
check_num "some by hedges" "$(get stats/hedged) > $hedged"
check "a suspend ends" timeout $((60 * SCALE)) dmsetup suspend "$NAME"
dmsetup resume "$NAME"
echo "$(number_of 0) riops=max" >$CG/hedged/io.max
put legs/1/weight "$weight"
check_accounting "throttled"

# --- a cgroup that goes first -------------------------------------------------------------

put policy coc
lag 0 stuck 1
check "leg 0 is stuck: a read ends" within load read "$DEV" --verify --threads 1 --count 1
check_num "a copy is out" "$(get legs/0/inflight) > 0"
check "its cgroup goes" rmdir $CG/hedged
lag 0 stuck 0
check "the copy ends" wait_until 15 drained
check_accounting "the cgroup is gone"
hedge_remove
umount $CG
