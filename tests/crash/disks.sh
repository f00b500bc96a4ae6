# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034
#
# What the crash tests share, on top of ../kselftest/common.sh. A test runs a
# workload on a mirror whose legs and log are recorded, then makes what a crash at
# many points would have left, assembles a mirror of it, and judges that:
#
#	disks_make 2 8216 128		two legs of so many sectors, regions of 128
#	disks_create nosync		the mirror on them, traced from here on
#	... the workload writes to $DEV and says "begin" and "end" with say
#	disks_done			the mirror is removed, the trace is in $TRACE_FILE
#	crash_points 40 judge		calls judge POINT for 40 % of POINTS
#
# Each disk is a stack: log-writes, which records, on dm-lag, which makes requests
# stay in flight for a while, on memory. The last disk is that of the log.
#
# CACHED is --volatile (the default) for disks that may lose what was not flushed,
# empty for disks that do not.

. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

CACHED=${CACHED---volatile}
POINTS=${POINTS:-40}
SWEPT=$((POINTS > 100 ? POINTS : POINTS / 3))	# points that sweep looks at
SEED=${SEED:-1}
TRACE_FILE=$TMP/trace
MARKS=/sys/kernel/tracing/trace_marker
TARGETS=()		# where crashed legs are put
DISKS=()		# what replay takes
LAGS=()			# processes that set them up
NUMBERED=()		# which part of the mirror numbered uses; see discards_start

say() { echo "$1" >$MARKS; }

# disks_make LEGS SECTORS REGION-SECTORS [MORE]: the mirror has so many sectors, each
# disk has some more of them, for a label.
disks_make()
{
	local i nr=$(($1 + 1))

	need_module dm-log-writes
	need_module dm-lag
	modprobe -q dm-log
	NR_LEGS=$1 LENGTH=$2 REGION=$3 SECTORS=$(($2 + ${4:-0}))
	rmmod brd 2>/dev/null || :
	modprobe brd rd_nr=$((3 * nr)) rd_size=$((512 * 1024)) max_part=1
	LEGS=() OFFSETS=() TARGETS=() DISKS=()
	for ((i = 0; i < nr; i++)); do
		truncate -s $((SECTORS * 512)) "$TMP/base$i"
		dmsetup create "lag$i" --table "0 $SECTORS lag /dev/ram$i 0 64 $((SEED * 16 + i))"
		LEGS+=("/dev/mapper/disk$i")
		TARGETS+=("/dev/ram$((2 * nr + i))")
	done
	LOG_DISK=${LEGS[$1]}
	unset "LEGS[$1]"
}

# What the disk holds at the beginning is what its base is, too.
disks_fill()
{
	numbered fill "$TMP/base$1"
	dd if="$TMP/base$1" of="/dev/ram$1" bs=1M oflag=direct status=none
}

# disk_lag I LEAST MOST: nanoseconds that a request takes; all disks at once, so it is
# sure only when they are recorded.
disk_lag()
{
	{
		lag "$1" writes 1 && lag "$1" law begin &&
			lag "$1" law add 0 "$2" 1000000000 "$3" && lag "$1" law end
	} &
	LAGS+=($!)
}

# disks_record: the disks are recorded from here on.
disks_record()
{
	local i filter='' number

	for i in "${LAGS[@]}"; do wait "$i"; done
	for ((i = 0; i <= NR_LEGS; i++)); do
		dmsetup create "disk$i" --table \
			"0 $SECTORS log-writes /dev/mapper/lag$i /dev/ram$((NR_LEGS + 1 + i))"
		number=$(dmsetup info -c --noheadings --separator : -o major,minor "disk$i")
		filter+="${filter:+ || }dev == $((${number%:*} << 20 | ${number#*:}))"
		DISKS+=("$number,/dev/ram$((NR_LEGS + 1 + i)),$TMP/base$i,${TARGETS[i]}")
	done
	echo counter >$TRACE/trace_clock
	echo 1 >$TRACE/options/overwrite
	trace_start -f "$filter" block/block_bio_queue block/block_bio_complete
	echo 24576 >$TRACE/buffer_size_kb
}

# disks_create sync|nosync [FEATURE...]
disks_create()
{
	LOG="disk 3 $LOG_DISK $REGION $1"
	shift
	hedge_create "$@"
}

# discards_start FIRST LENGTH: sectors that are discarded twice every nine seconds: in
# between, their regions are cleaned. They are left out by numbered, which uses those in
# front of them.
discards_start()
{
	NUMBERED=(--bytes $(($1 / 64 * 64 * 512)))
	(
		for ((i = 0; ; i++)); do
			((i % 36 && i % 36 != 4)) ||
				{ blkdiscard -f -o $(($1 * 512)) -l $(($2 * 512)) "$DEV" 2>/dev/null && echo; }
			[ ! -e "$TMP/enough" ] || break
			sleep 0.25
		done
	) >"$TMP/discards" &
	DISCARDS=$!
}

discards_stop()
{
	: >"$TMP/enough"
	wait $DISCARDS || :
	check_num "sectors were discarded" "$(wc -l <"$TMP/discards") > 1"
}

# Removes the mirror and its disks: only then the recorded logs are complete.
disks_done()
{
	dmsetup remove "$NAME"
	disks_stop
}

disks_stop()
{
	local i

	echo 0 >$TRACE/tracing_on
	cp $TRACE/trace "$TRACE_FILE"
	echo >$TRACE/set_event
	echo 0 >$TRACE/events/enable
	echo >$TRACE/trace
	echo local >$TRACE/trace_clock
	for ((i = 0; i <= NR_LEGS; i++)); do
		dmsetup remove "disk$i"
	done
	LEGS=("${TARGETS[@]:0:NR_LEGS}")
	[ ! -d /out ] || keep
}

# What was recorded, for the machine outside: see --keep of run.sh.
keep()
{
	local dir i log sectors

	dir=/out/$(basename "$0" .sh)
	mkdir -p "$dir"
	cp "$TRACE_FILE" "$TMP"/base* "$dir"
	for ((i = 0; i <= NR_LEGS; i++)); do
		log=/dev/ram$((NR_LEGS + 1 + i))
		# each entry has a sector of its own; a mark's text is in it
		sectors=$(replay list $log | awk '/ mark/ { $NF = 0 } { n += 1 + $NF } END { print n + 1 }')
		dd if=$log of="$dir/log$i" bs=512 count="$sectors" status=none
	done
	echo "${DISKS[@]}" >"$dir/disks"
}

in_sync() { [[ $(dmsetup status "$NAME") =~ \ ([0-9]+)/([0-9]+)\ 1\  ]] &&
	    [ "${BASH_REMATCH[1]}" = "${BASH_REMATCH[2]}" ]; }

# ask NAME WORD: gives a program that runs in the background a line, and shows its
# answer; what it complained about on failure.
ask_start()
{
	local name=$1

	shift
	mkfifo "$TMP/$name.in" "$TMP/$name.out"
	"$@" <"$TMP/$name.in" >"$TMP/$name.out" 2>"$TMP/$name.err" &
	eval "exec {${name}_in}>\"\$TMP/\$name.in\" {${name}_out}<\"\$TMP/\$name.out\""
}

ask()
{
	local in=${1}_in out=${1}_out answer

	trap '' PIPE		# it may have died
	echo "$2" >&"${!in}" || :
	read -r -t 60 -u "${!out}" answer || answer="no answer"
	echo "$answer"
	[[ $answer =~ $3 ]] || { cat "$TMP/$1.err"; return 1; }
}

# assemble POINT: makes what a crash there leaves, starts a mirror of it, and waits
# until its legs are in sync.
assemble()
{
	ask crashes "$1" 'done$' &&
		LOG="disk 2 ${TARGETS[NR_LEGS]} $REGION" &&
		dmsetup create "$NAME" --table "$(hedge_table)" &&
		wait_until 20 in_sync ||
		{ dmsetup status "$NAME"; return 1; }
}

# The legs are equal.
legs_same()
{
	numbered same --bytes $((LENGTH * 512)) "${LEGS[@]}"
}

judge_numbered()
{
	assemble "$1" && legs_same && ask numbers "$1" 'lost=0 foreign=0$'
}

# What the judge must not miss: disks as they were long before the crash point, and
# legs that the log calls clean although they differ.
judge_stale()
{
	assemble $(($1 / 2)) && legs_same && ask numbers "$1" 'lost=0 foreign=0$'
}

# No need to assemble: a mirror would not touch regions that are clean.
judge_blind()
{
	ask crashes "$1" 'done$' &&
		dd if=/dev/zero bs=512 count=1 status=none | tr '\0' '\377' |
		dd of="${TARGETS[NR_LEGS]}" bs=512 seek=2 oflag=direct conv=notrunc status=none &&
		legs_same
}

# mark_point MARK: the crash point at which the workload said it.
mark_point()
{
	awk -v mark="tracing_mark_write: $1" '!/^#/ { n++ } index($0, mark) { print n; exit }' "$TRACE_FILE"
}

# What makes crashes and looks for lost writes, for ask.
crashes_start()
{
	# shellcheck disable=SC2086
	ask_start crashes replay crash "$TRACE_FILE" - --seed "$SEED" $CACHED "${DISKS[@]}"
	# shellcheck disable=SC2086
	ask_start numbers numbered check "$DEV" "$TRACE_FILE" - $CACHED "${NUMBERED[@]}"
}

# crash_points PERCENT COMMAND: one test for each point, COMMAND POINT NUMBER; that
# many of POINTS.
crash_points()
{
	local point kind last number=$(((POINTS * $1 + 99) / 100)) i=0 begin=$SECONDS

	last=$(wc -l <"$TRACE_FILE")
	[ "${crashes_in-}" ] || crashes_start
	replay points "$TRACE_FILE" $number --seed "$SEED" "${DISKS[@]}" >"$TMP/points"
	while read -r point kind <&9; do
		check "crash at $point of $last, $kind" "$2" "$point" $((i++))
		dmsetup remove "$NAME" 2>/dev/null || :
	done 9<"$TMP/points"
	check_eq "so many crashes were looked at" $i $number
	echo "# $number points in $((SECONDS - begin)) s"
}

# controls: the judges see what they are there for, at some of those points.
controls()
{
	local point kind stale=0 blind=0

	while read -r point kind <&9 && ((!stale || !blind)); do
		if ! ((stale)); then
			judge_stale "$point" >"$TMP/stale" 2>&1 || :
			! grep -q 'lost=[1-9]' "$TMP/stale" || stale=1
			dmsetup remove "$NAME" 2>/dev/null || :
		fi
		if ! ((blind)); then
			judge_blind "$point" >"$TMP/blind" 2>&1 || :
			! grep -q 'different=[1-9]' "$TMP/blind" || blind=1
			dmsetup remove "$NAME" 2>/dev/null || :
		fi
	done 9<"$TMP/points"
	check_match "control: lost writes are seen" "$(<"$TMP/stale")" 'lost=[1-9]'
	check_match "control: legs that differ are seen" "$(<"$TMP/blind")" 'different=[1-9]'
}

# check_order DESCRIPTION [MARKED]: the log and the legs, at all crash points; at
# least so many regions were marked. What replay said is in ORDER.
check_order()
{
	# shellcheck disable=SC2086
	check "$1: the log is marked before and cleaned after the legs" \
		replay order "$TRACE_FILE" "$REGION" $CACHED "${DISKS[@]}"
	echo "# $OUTPUT"
	check_num "$1: regions were marked" "$(field marked "$OUTPUT") >= ${2:-1}"
	ORDER=$OUTPUT
	# shellcheck disable=SC2086
	check "$1: at $SWEPT points the legs are equal where the log says so" \
		replay sweep "$TRACE_FILE" "$SWEPT" "$REGION" --seed "$SEED" $CACHED "${DISKS[@]}"
	echo "# $OUTPUT"
}
