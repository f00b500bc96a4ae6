#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Each allocation of a table's construction, and of a resume, fails once: the table is
# refused and leaves nothing behind, or the device works, if need be without its
# directories in sysfs. Needs a kernel with fault injection (the debug rig).
# limit: 1000

. "$(dirname "$0")/common.sh"
need_hedge
[ -w /proc/self/fail-nth ] && [ -d /sys/kernel/debug/failslab ] || skip "no fault injection"

for kind in failslab fail_page_alloc; do
	[ ! -d /sys/kernel/debug/$kind ] || {
		echo N >/sys/kernel/debug/$kind/ignore-gfp-wait
		echo 0 >/sys/kernel/debug/$kind/verbose
	}
done

legs_brd 3 4
find_length
lines=(
	"$(hedge_table policy coc leg 1 weight 7)"
	"0 $LENGTH hedge disk 3 /dev/ram2 1024 nosync 2 /dev/ram0 0 /dev/ram1 0"
)

works()
{
	local errors

	errors=$(field errors "$(load read "$DEV" --threads 2 --count 5)") && [ "$errors" = 0 ]
}

# Every allocation of the constructor.
dmsetup create "$NAME" --notable
for line in "${lines[@]}"; do
	refused=0 taken=0
	for ((n = 1; n < 5000; n++)); do
		said=$(failing load "$NAME" $n "$line")
		case $said in
		"failed=0 errno=0") break ;;
		"failed=1 errno=0") taken=$((taken + 1)) ;;
		"failed=1 errno=ENOMEM") refused=$((refused + 1)) ;;
		*) not_ok "allocation $n of the table: ENOMEM or nothing" "$said" ;;
		esac
		dmsetup clear "$NAME"
	done
	echo "# $refused times refused, $taken times taken"
	check_num "the table was refused for each that matters" "$refused > 10"
	check_eq "without a failure it is taken" "$said" "failed=0 errno=0"
	dmsetup resume "$NAME"
	check "the device works" works
	hedge_remove
	dmsetup create "$NAME" --notable
done
hedge_remove

# Every allocation of a resume.
hedge_create policy coc
without=0 with=0
for ((n = 1; n < 5000; n++)); do
	dmsetup suspend "$NAME"
	said=$(failing resume "$NAME" $n)
	[ "$said" != "failed=0 errno=0" ] || break
	[[ $said == "failed=1 errno="* ]] || not_ok "allocation $n of the resume" "$said"
	[ "$said" = "failed=1 errno=0" ] || dmsetup resume "$NAME"
	if [ -d "$SYS/legs/1" ]; then with=$((with + 1)); else without=$((without + 1)); fi
	works || not_ok "allocation $n of the resume: the device works"
done
echo "# $with times with directories in sysfs, $without times without"
check_num "the directories could not be made" "$without > 20"
check "in the end they are there" test -d "$SYS/legs/1"
check "and the device works" works
hedge_remove
check "no leg stays open" rmmod brd
check "the module can go" rmmod dm_hedge
