#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Every tracepoint fires and the read id ties them together; the histograms hold as
# many copies as were completed; "reset" clears them. Needs dm-lag and tracefs.
# again: a ring of events may lose some

. "$(dirname "$0")/common.sh"
need_hedge

legs_brd 2 8
lag_leg 0
lag_leg 1
lag_law 0 fixed 3000000
lag_law 1 fixed 3000000
hedge_create policy slb timeout_us 1000 budget_pct 100 rescue_us 100000

trace_start dm_hedge/hedge_{read,start,timeout,reissue,cancel,win,lose,leg_state}
load read "$DEV" --threads 2 --count 20 >/dev/null
# queued copies that are cancelled: one leg falls behind the other
lag_law 1 fixed 9000000
put policy coc
put queue_depth 1
load read "$DEV" --threads 6 --count 10 >/dev/null
lag_law 1 fixed 3000000
# a leg that changes its state
put queue_depth 0
lag 1 stuck 1
load read "$DEV" --threads 2 --count 5 >/dev/null
check "a leg stalls" wait_until 10 eval '[ "$(get legs/1/stalled)" = 1 ]'
lag 1 stuck 0
check "all copies ended" wait_until 15 drained
trace_stop

for event in read start timeout reissue cancel win lose leg_state; do
	check_num "hedge_$event fires" "$(trace_lines "hedge_$event:" | wc -l) > 0"
done

# Ids: each read has one hedge_read and at most one hedge_win; whatever else names
# an id comes after its hedge_read.
check "the ids tie them" awk '
	!/hedge_leg_state/ {
		match($0, / id=[0-9a-f]+/); id = substr($0, RSTART, RLENGTH)
		if (!id) { print "no id: " $0; bad = 1; next }
		if (/hedge_read:/) { if (seen[id]++) { print "twice: " $0; bad = 1 } }
		else if (!(id in seen)) { print "before its hedge_read: " $0; bad = 1 }
		if (/hedge_win:/ && won[id]++) { print "won twice: " $0; bad = 1 }
	}
	END { for (i in seen) { n++; if (!won[i]) { print "never won: " i; bad = 1 } }
		if (n < 100) { print n " reads"; bad = 1 }; exit bad }' "$TMP/trace"
check_fails "no string fields" grep -l 'char \*' $TRACE/events/dm_hedge/*/format

# Histograms: the counts of all classes of a leg.
counts() { awk '/^[0-9]+ [0-9]+$/ { n += $2 } END { print n + 0 }' "$1"; }

hist() { counts "$SYS/legs/$1/histogram"; }

message reset
check_eq "reset clears the counters" "$(get stats/reads) $(get stats/copies)" "0 0"
check_eq "reset clears the histograms" "$(hist 0) $(hist 1)" "0 0"
put policy slb
put timeout_us 1000
load read "$DEV" --threads 2 --count 30 --bs 4k >/dev/null
load read "$DEV" --threads 2 --count 10 --bs 32k >/dev/null
load read "$DEV" --threads 2 --count 10 --bs 128k >/dev/null
check "all copies ended again" wait_until 15 drained
check_eq "histograms hold every copy" $(($(hist 0) + $(hist 1))) "$(get stats/copies)"
check_eq "leg reads too" "$(sum reads)" "$(get stats/copies)"
check_num "three size classes have headings" \
	"$(grep -cvE '^[0-9]+ [0-9]+$|^$' "$SYS/legs/0/histogram") >= 3"
# 3 ms is the least a copy takes, and buckets are at most 12.5 % wide.
least=$(awk '/^[0-9]+ [1-9]/ && (!n || $1 < n) { n = $1 } END { print n }' "$SYS/legs/0/histogram")
check_num "no copy is faster than its leg" "$least >= 3000000 * 8 / 9"
check "the message answers with data" message histogram
check_eq "... of all legs" \
	"$(message histogram | awk '/^[0-9]+ [0-9]+$/ { n += $2 } END { print n + 0 }')" \
	"$(get stats/copies)"
check_eq "... or of one" "$(message histogram 0 | awk '/^[0-9]+ [0-9]+$/ { n += $2 } END { print n + 0 }')" "$(hist 0)"
check_fails "... but of no other" message histogram 2
