# SPDX-License-Identifier: GPL-2.0
#
# Straggling devices for tests: source this in the guest. It needs dm-lag.ko
# and the programs dmsetup and law.

# lag_create NAME DEV SERVERS SEED: /dev/mapper/NAME, all of DEV
lag_create()
{
	dmsetup create "$1" --table \
		"0 $(blockdev --getsz "$2") lag $2 0 $3 $4"
}

# lag_msg NAME WORD...: a message to the target
lag_msg()
{
	local name=$1

	shift
	dmsetup message "$name" 0 "$@"
}

# lag_law NAME LAW: service times, as the program law spells them, or off
lag_law()
{
	local name=$1 message messages

	if [ "$2" = off ]; then
		lag_msg "$name" law off
		return
	fi
	messages=$(law "$2") || return
	echo "$messages" | while read -r message; do
		# shellcheck disable=SC2086 # its words are the message
		lag_msg "$name" $message || return
	done
}

# lag_status NAME served|in_flight|queued|busy_ns|stuck: that word of the status
lag_status()
{
	local word=$2

	# shellcheck disable=SC2046 # to split it is the aim
	set -- $(dmsetup status "$1")
	case $word in
	served)    echo "$4" ;;
	in_flight) echo "$5" ;;
	queued)    echo "$6" ;;
	busy_ns)   echo "$7" ;;
	stuck)     echo "$8" ;;
	*)         return 1 ;;
	esac
}
