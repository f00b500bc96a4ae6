#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What tests/packages does in its machine: at the first start it makes volumes, at the second
# it looks at them and removes the packages. Where the root is on a volume it looks at that. Ends
# with the machine off.

check()
{
	local what=$1 output

	shift
	if output=$("$@" 2>&1); then
		echo "ok - $what"
	else
		echo "not ok - $what"
		sed 's/^/# /' <<<"$output" | tail -n 15
	fi
}
same() { [ "$1" = "$2" ] || { echo "is '$1', expected '$2'"; false; }; }
not() { ! "$@"; }
gone() { ! compgen -G "$1"; }

udevadm settle

# --- the root is on a volume -------------------------------------------------------------------

attributes() { echo "/sys/block/$(basename "$(readlink -f /dev/mapper/system)")/hedge0"; }
above_0() { [ "$1" -gt 0 ]; }

if grep -q ' root=UUID=' /proc/cmdline; then
	check "it is on the volume" same "$(findmnt -no SOURCE /)" /dev/mapper/system
	check "the root can be written" touch /var/lib/written
	check "no leg is mounted" not grep -E '^/dev/vd' /proc/mounts
	check "its settings are there" same "$(cat "$(attributes)/timeout_us")" 3000
	check "the link by UUID is to the volume" same \
		"$(readlink -f /dev/disk/by-uuid/66666666-7777-8888-9999-aaaaaaaaaaaa)" "$(readlink -f /dev/mapper/system)"
	check "vda is not for systemd" grep -q SYSTEMD_READY=0 <(udevadm info /dev/vda)
	check "the unit that assembles has done so" systemctl is-active hedgectl-assemble
	check "no unit has failed" same "$(systemctl --failed --no-legend | grep -v packages-guest)" ""
	check "leg 0 serves" above_0 "$(cat "$(attributes)/legs/0/reads")"
	check "leg 0 has all" same "$(cat "$(attributes)/legs/0/state")" in_sync
	if [ -e /dev/vdb ]; then
		check "leg 1 serves" above_0 "$(cat "$(attributes)/legs/1/reads")"
		check "leg 1 has all" same "$(cat "$(attributes)/legs/1/state")" in_sync
		echo data >/var/lib/both
	else
		check "leg 1 is out" same "$(cat "$(attributes)/legs/1/state")" failed
		check "what was written to both is there" same "$(cat /var/lib/both)" data
		echo data >/var/lib/one
	fi
	echo end
	exec systemctl --no-block poweroff
fi

# --- volumes beside it -------------------------------------------------------------------------

name1=vol-1 unit1=$(systemd-escape vol-1)
if [ ! -e /var/lib/second ]; then
	check "the monitor is enabled" systemctl is-enabled hedgectl-monitor
	check "it runs" systemctl is-active hedgectl-monitor
	check "what has boot wait for the network is not" not systemctl is-enabled hedgectl-assemble-netdev
	check "the module is loaded by its name" modprobe dm-hedge
	check "a volume" hedgectl create vol0 --nosync /dev/vdb /dev/vdc
	check "another" hedgectl create "$name1" --nosync --policy coc /dev/vdd /dev/vde
	check "settings are saved" hedgectl set vol0 policy=slb leg:1.weight=50 --save
	check "of the other too" hedgectl set "$name1" tau=2ms --save
	check "a file system" mkfs.ext4 -q -U 11111111-2222-3333-4444-555555555555 /dev/mapper/vol0
	echo 'UUID=11111111-2222-3333-4444-555555555555 /srv ext4 defaults 0 2' >>/etc/fstab
	# As packaging/README.md says; by names, which do not change here.
	printf 'devices {\n\tglobal_filter = [ "r|^/dev/vd[de]$|" ]\n}\n' >/etc/lvm/lvmlocal.conf
	check "a physical volume" pvcreate -q -y "/dev/mapper/$name1"
	check "a volume group" vgcreate -q vg "/dev/mapper/$name1"
	check "a logical volume" lvcreate -q -y -n lv -L 20M vg
	check "it is mounted" mount /dev/mapper/vol0 /srv
	echo data >/srv/file
	check "a mounted device is no leg" grep -q "it is mounted" \
		<(hedgectl create other --no-label --nosync --force /dev/mapper/vol0 "/dev/mapper/$name1" 2>&1)
	check "the units are taken" systemctl enable hedgectl-tune@vol0 "hedgectl-tune@$unit1" hedgectl-assemble-netdev
	# As if its legs came over the network.
	sed -i "/^$name1 /s/timeout_us/_netdev,&/" /etc/hedgetab
	# What the labels say before the volumes are assembled again.
	mkdir -p /etc/systemd/system/hedgectl-assemble.service.d
	printf '[Service]\nExecStartPre=/bin/sh -c "hedgectl examine /dev/vdb --json >/run/label"\n' \
		>/etc/systemd/system/hedgectl-assemble.service.d/label.conf
	sed "s/^/# /" /etc/hedgetab
	check "a volume for a root" hedgectl create system --nosync --force /dev/vdf /dev/vdg
	mkdir /run/system
	check "its file system is that of its legs" mount /dev/mapper/system /run/system
	export HEDGETAB=/run/system/etc/hedgetab
	check "it is to be assembled" hedgectl set system tau=3ms --save
	sed 's/^/# root: /' "$HEDGETAB"
	unset HEDGETAB
	umount /run/system
	check "it is stopped" hedgectl remove system
	touch /var/lib/second
	echo end
	exec systemctl --no-block reboot
fi

for ((i = 0; i < 300; i++)); do
	[ ! -e /dev/vg/lv ] || break
	sleep 0.2
done
check "the unit that assembles has done so" systemctl is-active hedgectl-assemble
check "that for the network too" systemctl is-active hedgectl-assemble-netdev
check "the file system is mounted, from the volume" same "$(findmnt -no SOURCE /srv)" /dev/mapper/vol0
check "its data is there" same "$(cat /srv/file)" data
check "its settings are" same "$(cat /sys/block/"$(basename "$(readlink -f /dev/mapper/vol0)")"/hedge0/legs/1/weight)" 50
check "the policy is" grep -q '\[slb\]' "/sys/block/$(basename "$(readlink -f /dev/mapper/vol0)")/hedge0/policy"
check "the other one has its timeout" same \
	"$(cat /sys/block/"$(basename "$(readlink -f "/dev/mapper/$name1")")"/hedge0/timeout_us)" 2000
check "the link by UUID is to the volume" same \
	"$(readlink -f /dev/disk/by-uuid/11111111-2222-3333-4444-555555555555)" "$(readlink -f /dev/mapper/vol0)"
check "LVM sees the volume" same "$(pvs --noheadings -o pv_name 2>/dev/null | tr -d ' ')" "/dev/mapper/$name1"
check "the logical volume is active" test -e /dev/vg/lv
for leg in vdb vdc vdd vde; do
	check "$leg is not for systemd" grep -q SYSTEMD_READY=0 <(udevadm info "/dev/$leg")
	check "$leg is used by a volume only" same "$(ls "/sys/block/$leg/holders" | wc -l)" 1
done
check "a leg can not be mounted" not mount /dev/vdb /mnt
check "no unit has failed" same "$(systemctl --failed --no-legend | grep -v packages-guest)" ""
check "the labels were closed when the machine stopped" grep -q '"open": *false' /run/label
check "the volume is tuned" systemctl is-active hedgectl-tune@vol0
check "the other too" systemctl is-active "hedgectl-tune@$unit1"
check "the root could be closed" /usr/lib/systemd/system-shutdown/hedge.shutdown poweroff
check "the volumes are monitored" systemctl is-active hedgectl-monitor
hedgectl fail vol0 1 >/dev/null
for ((i = 0; i < 100; i++)); do
	journalctl -u hedgectl-monitor | grep -q leg-out && break
	sleep 0.2
done
check "the monitor tells of a leg that is out" grep -q 'leg-out' <(journalctl -u hedgectl-monitor)

check "a volume in use is not removed" not hedgectl remove vol0
check "the file system is unmounted" umount /srv
check "the volume group is stopped" vgchange -q -an vg
systemctl stop hedgectl-tune@vol0 "hedgectl-tune@$unit1"
check "the volume is removed" hedgectl remove vol0
check "the other too, by its unit" systemctl stop hedgectl-assemble-netdev
check "it is gone" not test -e "/dev/mapper/$name1"
check "the packages are removed" dpkg --purge hedgectl dm-hedge-dkms
check "the units are gone" gone '/lib/systemd/system/hedgectl*'
check "the rules of udev are gone" gone '/usr/lib/udev/rules.d/*hedge*'
check "no unit is enabled" gone '/etc/systemd/system/*.wants/hedgectl*'
check "the module is gone" gone '/lib/modules/*/updates/dkms/dm-hedge*'
check "its source is gone" gone '/usr/src/dm-hedge*'
check "the module can be unloaded" rmmod dm-hedge
check "and is not found any more" not modprobe dm-hedge
check "what the administrator wrote is left" test -s /etc/hedgetab
echo end
exec systemctl --no-block poweroff
