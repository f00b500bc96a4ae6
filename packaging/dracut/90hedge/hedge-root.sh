#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Just before the root is mounted: a root by UUID or label is found on a leg too while its volume is not
# there, and what is mounted from a leg is written past the volume. The link goes to the volume when
# udev has seen that.

hedge_leg()
{
	node=$(readlink -f "${root#block:}")
	/usr/lib/udev/hedge-leg is "${node##*/}" "$node"
}

if hedge_leg; then
	/usr/lib/dm-hedge/hedgetab 20 || :
	udevadm settle
	! hedge_leg || die "${root#block:} is a leg of a hedged volume that is not there, and is not mounted for it"
fi
