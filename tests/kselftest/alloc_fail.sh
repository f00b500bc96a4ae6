#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Allocations of a table's construction, and of a resume, fail, each in turn but for
# those of pools, where one is like the next: the table is refused and leaves nothing
# behind, or the device works, if need be without its directories in sysfs. Needs a kernel with
# fault injection (the debug rig).
# limit: 1000
# may skip: no fault injection, but in the debug rig

. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/alloc_fail.inc"

legs_brd 3 4
find_length
lines=(
	"$(hedge_table policy coc leg 1 weight 7)"
	"0 $LENGTH hedge disk 3 /dev/ram2 1024 nosync 2 /dev/ram0 0 /dev/ram1 0"
)
# Of the second most are as those of the first.
edge=100

works()
{
	local errors

	errors=$(field errors "$(load read "$DEV" --threads 2 --count 5)") && [ "$errors" = 0 ]
}

purpose begin

# Every allocation of the constructor. dm_dirty_log_create() does not say why it
# failed: what is then EINVAL is told apart by the kernel log.
for line in "${lines[@]}"; do
	dmsetup create "$NAME" --notable
	log_mark
	check "each allocation of the table" fail_all load "$NAME" "$line" --edge $edge
	edge=30
	echo "# $(said ' errno=ENOMEM$') times ENOMEM, $(said ' errno=EINVAL$') times EINVAL, $(said ' errno=0$') times taken"
	check_num "the table was refused for each that matters" "$(said ' errno=ENOMEM$') > 10"
	check_eq "with ENOMEM or nothing" "$(said ' errno=(ENOMEM|EINVAL|0)$')" "$(said '')"
	check_eq "but where it was the dirty log's" "$(said ' errno=EINVAL$')" \
		"$(log_since | grep -c "dirty log cannot be made" || :)"
	check_match "without a failure it is taken" "$(tail -n 1 "$TMP/said")" ' errno=0$'
	dmsetup resume "$NAME"
	check "the device works" works
	hedge_remove
done

# Every allocation of a resume.
hedge_create policy coc
check "each allocation of a resume" fail_all resume "$NAME" "$DEV" "$SYS/legs/1"
echo "# $(said dir=1) times with directories in sysfs, $(said dir=0) times without, $(said ' errno=E') times refused"
check_num "the directories could not be made" "$(said dir=0) > 20"
check_eq "the device always works" "$(said read=1)" "$(said '')"
check_match "in the end they are there" "$(tail -n 1 "$TMP/said")" ' errno=0 dir=1 read=1$'
purpose end
check "and the device works" works
hedge_remove
check "no leg stays open" rmmod brd
check "the module can go" rmmod dm_hedge
