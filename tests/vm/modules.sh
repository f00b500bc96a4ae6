# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Read by scripts that boot a rig: which modules it takes.

# modules_for RIG DIR [HEDGE.ko] [LAG.ko]: sets HEDGE and LAG to the modules given, or by
# default to those that were built for the stock kernel; for the debug rig both are
# built in DIR, from copies of the sources, so that the others stay where they
# are. Needs top, the top of the tree.
modules_for()
{
	local rig=$1 dir=$2 kernel

	HEDGE=${3:-} LAG=${4:-}
	if [ "$rig" = debug ]; then
		kernel=${KERNEL:-$("$top/tests/vm/debug-kernel")}
		if [ -z "$LAG" ]; then
			make -s -C "$top/tests/lag" KDIR="$kernel" BUILD="$dir/lag" >&2
			LAG=$dir/lag/dm-lag.ko
		fi
		if [ -z "$HEDGE" ] && [ -e "$top/Kbuild" ]; then
			mkdir "$dir/hedge"
			cp -r "$top/Kbuild" "$top/module" "$dir/hedge"
			find "$dir/hedge" \( -name '*.o' -o -name '*.ko' -o -name '.*.cmd' \) -delete
			make -s -C "$kernel" M="$dir/hedge" modules >&2
			HEDGE=$dir/hedge/module/dm-hedge.ko
		fi
	fi
	: "${HEDGE:=$top/module/dm-hedge.ko}" "${LAG:=$top/tests/lag/dm-lag.ko}"
}
