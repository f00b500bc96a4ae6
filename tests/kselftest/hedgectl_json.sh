#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Every command of hedgectl on real devices with --json, against the schema, and the
# metrics; a volume that is removed; no permission; a volume that goes in the middle. Needs
# hedgectl and jq.
# limit: 480
# leaks: not looked for: its time goes into starting programs

. "$(dirname "$0")/common.sh"
need_program hedgectl
need_program jq
need_hedge
export DM_DISABLE_UDEV=1
. "$(dirname "$0")/hedgectl.inc"

legs_brd 5 16
r0=/dev/ram0 r1=/dev/ram1 spare=/dev/ram2 log=/dev/ram3
LEGS=("$r0" "$r1") NAME=vol DEV=/dev/mapper/vol
state() { [ "$(get "legs/$1/state")" = "$2" ]; }

# --- each command ------------------------------------------------------------------------

json create '[.created, (.legs | map(.path))]' '[true,["/dev/ram0","/dev/ram1"]]' \
	hedgectl create vol --json --nosync --log disk:$log --set tau=2ms $r0 $r1
find_sysfs
load fill $DEV >/dev/null
load read $DEV --count 200 >/dev/null
wait_until 10 drained
json list '.[0].name' vol hedgectl list --json
json show '.targets[0].attributes.timeout_us' 2000 hedgectl show vol --json
json set '.[] | select(.attribute == "timeout_us") | [.attribute, .from, .to]' '["timeout_us",2000,"off"]' hedgectl set vol tau=off --json
json hist '[.[].classes[].reads] | add' "$(sum reads)" hedgectl hist vol --json
json top '.[0].legs | length' 2 hedgectl top vol --count 1 --json
json tune '.[0] | [.samples, .set]' "[$(sum reads),false]" hedgectl tune vol --seconds 0 --dry-run --json
json plan '[.legs, (.plans[0].command | startswith("hedgectl set vol policy="))]' '[2,true]' \
	hedgectl plan --device vol --slots 4 --jobs 10000 --json
json monitor '.event' test hedgectl monitor vol --test --json
json "examine of a leg" '[.kind, .leg, .in, .open]' '["leg",1,[0,1],true]' hedgectl examine $r1 --json
json "examine of a log" .kind log hedgectl examine $log --json
json fail '[.leg, .device]' "[1,\"$(</sys/block/ram1/dev)\"]" hedgectl fail vol $r1 --json
check "fail: it is" wait_until 10 state 1 failed
json "monitor of a leg that is out" '[.event, .leg]' '["leg-out",1]' hedgectl monitor vol --once --json
json reinstate .leg 1 hedgectl reinstate vol 1 --json
check "reinstate: it is" wait_until 30 state 1 in_sync
hedgectl fail vol 1 >/dev/null
check "fail: it is, again" wait_until 10 state 1 failed
load write $DEV --count 20 >/dev/null
run 0 "reinstate --wait" hedgectl reinstate vol $r1 --wait
check "reinstate --wait: it has all" state 1 in_sync
check_eq "reinstate --wait: nothing is missing" "$(get legs/1/missed)" 0
json check '[.mismatches, .repaired]' '[0,false]' hedgectl check vol --json
json replace '[.leg, .disk, .done]' "[1,\"$spare\",\"has all data\"]" hedgectl replace vol 1 $spare --wait --json
find_sysfs
check "replace: it has" state 1 in_sync

run 0 metrics hedgectl show --openmetrics
says metrics "dm_hedge_reads_total[{]target=.0.,volume=.vol.[}] $(get stats/reads)"
check_eq "metrics: the histograms have all reads" \
	"$(awk '/^dm_hedge_leg_read_seconds_count/ { n += $2 } END { print n }' <<<"$OUTPUT")" "$(sum reads)"
check_eq "metrics: of one volume" "$(hedgectl show --openmetrics vol | grep -c '^dm_hedge_info')" 1
run 1 "metrics of nothing" hedgectl show --openmetrics nothing

# --- suspended -----------------------------------------------------------------------------

dmsetup suspend vol
json "list, suspended" '.[0].suspended' true hedgectl list --json
json "show, suspended" '.targets[0].attributes' null hedgectl show vol --json
run 0 "metrics, suspended" hedgectl show --openmetrics
says "metrics, suspended" "dm_hedge_suspended[{][^}]*[}] 1"
run 0 "top, suspended" hedgectl top --batch --count 1
run 1 "check, suspended" hedgectl check vol
says "check, suspended" "suspended"
run 1 "fail, suspended" hedgectl fail vol 0
says "fail, suspended" "suspended"
run 1 "replace, suspended" hedgectl replace vol 1 $r1 --force
says "replace, suspended" "suspended"
dmsetup resume vol

# --- remove, assemble, wipe ------------------------------------------------------------------

exec 9<$DEV
run 1 "remove of an open volume" hedgectl remove vol
says "remove of an open volume" "vol: a program has it open"
exec 9<&-
dmsetup create above --table "0 2048 linear $DEV 0"
run 1 "remove of a volume in use" hedgectl remove vol
says "remove of a volume in use" "vol: it is in use by dm-[0-9]+"
dmsetup remove above
json remove '[.name, .removed]' '["vol",true]' hedgectl remove vol --json
check_fails "remove: it is gone" dmsetup info vol
run 1 "remove of nothing" hedgectl remove vol
says "remove of nothing" "vol: there is no such device"
json "assemble, dry run" '[.started, (.legs | map(.state))]' '[false,["in","in"]]' \
	hedgectl assemble vol $r0 $spare --dry-run --json
run 0 "assemble, of what was replaced too" hedgectl assemble --scan --dry-run
says "assemble, of what was replaced too" "$r1: not used: $spare has taken its place as leg 1"
json assemble '[.name, .started]' '["vol",true]' hedgectl assemble --scan --json
find_sysfs
check_eq "assemble: with the new leg" "$(get legs/0/device) $(get legs/1/device)" \
	"$(</sys/block/ram0/dev) $(</sys/block/ram2/dev)"
run 0 remove hedgectl remove /dev/mapper/vol
says remove "vol: stopped"
echo "vol UUID=$(hedgectl examine $r0 --json | jq -r .uuid)" >hedgetab
run 0 "assemble of a name in hedgetab" env HEDGETAB="$PWD/hedgetab" hedgectl assemble vol
says "assemble of a name in hedgetab" "vol: started"
run 0 "remove of it" hedgectl remove vol
json wipe '[.path, .wiped]' '["/dev/ram0","label"]' hedgectl wipe $r0 --json
json "wipe of a log" .wiped stamp hedgectl wipe $log --json
run 1 "wipe of what is not there" hedgectl wipe $r0
says "wipe of what is not there" "$r0: there is no label"
for d in $r1 $spare; do hedgectl wipe $d >/dev/null; done

hedgectl create vol --no-label --nosync $r0 $r1 >/dev/null
if modprobe dm-mirror 2>/dev/null; then
	json "convert, dry run" '[.from, .to, .converted]' '["hedge","mirror",false]' hedgectl convert vol --dry-run --json
fi

# --- no permission ----------------------------------------------------------------------------

# Whoever is not root may open neither the control node nor the devices.
find_sysfs
as_nobody() { busybox su -s /bin/sh nobody -c "exec hedgectl $*"; }
grep -q '^nobody:' /etc/passwd 2>/dev/null || echo 'nobody:x:65534:65534:nobody:/:/bin/sh' >>/etc/passwd
for words in "list" "show vol" "set vol tau=1ms" "fail vol 0" "remove vol" "check vol" "top vol --count 1" \
	     "create v2 --nosync --no-label $spare $log" "examine $r0" "hist vol" "monitor --once" "convert vol" \
	     "assemble --scan" "replace vol 0 $spare" "tune vol --seconds 0" "reinstate vol 0" "close vol" \
	     "wipe $spare" "plan --device vol"; do
	# shellcheck disable=SC2086
	run 1 "without permission: $words" as_nobody $words
	says "without permission: $words" "ermission denied|run it as root"
done
check "without permission: nothing happened" test "$(get timeout_us)" != 1000

# --- a volume that goes ------------------------------------------------------------------------

hedgectl top --batch --count 0 >"$TMP/top" 2>&1 &
top=$!
hedgectl top vol --batch --count 0 >"$TMP/top.vol" 2>&1 &
top_vol=$!
hedgectl monitor --interval 1 >"$TMP/monitor" 2>&1 &
monitor=$!
hedgectl tune vol --watch --seconds 1 >"$TMP/tune" 2>&1 &
tune=$!
status() { local got=0; wait "$1" || got=$?; echo "$got" >"$TMP/status"; }
wait_until 10 grep -q '^vol' "$TMP/top"
run 0 "remove while it is watched" hedgectl remove vol
status $top_vol
check_eq "top of a volume that goes ends" "$(<"$TMP/status")" 1
check_match "top of a volume that goes ends: why" "$(tr '\n' ' ' <"$TMP/top.vol")" "vol: (there is no such device|can not read /sys/)"
status $tune
check_eq "tune of a volume that goes ends" "$(<"$TMP/status")" 1
check_match "tune of a volume that goes ends: why" "$(tr '\n' ' ' <"$TMP/tune")" "vol: (there is no such device|can not read /sys/)"
hedgectl create vol2 --no-label --nosync $r0 $r1 >/dev/null
check "top of all goes on: with the new one" wait_until 20 grep -q '^vol2' "$TMP/top"
check "and on, until it is stopped" kill $top
kill $monitor
status $monitor
check_eq "monitor goes on until it is stopped" "$(<"$TMP/status")" 0
check_eq "monitor: nothing but that the volume went" "$(cut -d' ' -f1,2 <"$TMP/monitor")" "volume-gone: vol:"
hedgectl remove vol2 >/dev/null
