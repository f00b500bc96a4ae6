#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A root on a hedged volume: what the initramfs needs to assemble the volumes of /etc/hedgetab.

# called by dracut
check()
{
	[ -e "${dracutsysrootdir-}/etc/hedgetab" ] || return 255
	require_binaries /usr/sbin/hedgectl dmsetup || return 1
}

# called by dracut
depends()
{
	echo dm
}

# called by dracut
installkernel()
{
	hostonly='' instmods dm-hedge
}

# called by dracut
install()
{
	inst_multiple /usr/sbin/hedgectl dmsetup modprobe
	inst_simple /etc/hedgetab
	inst_script /usr/lib/dm-hedge/hedgetab
	inst_script /usr/lib/udev/hedge-leg
	inst_rules 61-dm-hedge.rules
	inst_hook initqueue/settled 20 "$moddir/hedge-assemble.sh"
	inst_hook initqueue/timeout 20 "$moddir/hedge-degraded.sh"
	inst_hook pre-mount 10 "$moddir/hedge-root.sh"
}
