#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# hedgectl's commands that watch a running volume: hist, tune, top, and set --save. Needs
# hedgectl and jq.
# again: it looks at what happens within a second
# leaks: not looked for: its time goes into starting programs

. "$(dirname "$0")/common.sh"
need_program hedgectl
need_program jq
need_hedge
export DM_DISABLE_UDEV=1
. "$(dirname "$0")/hedgectl.inc"

legs_brd 2 16
r0=/dev/ram0 r1=/dev/ram1
LEGS=("$r0" "$r1")
hedgectl create vol --no-label --nosync --policy rnd $r0 $r1 >/dev/null
NAME=vol DEV=/dev/mapper/vol
find_sysfs
load fill $DEV >/dev/null
load read $DEV --threads 2 --count 200 >/dev/null
wait_until 10 drained

# --- hist ----------------------------------------------------------------------------

run 0 "hist: the legs side by side" hedgectl hist vol
says "hist: the legs side by side" "FROM 0 ram0 .* 1 ram1"
run 0 "hist --csv" hedgectl hist vol --csv
check_eq "hist --csv: reads" "$(hedgectl hist vol --csv | awk -F, 'NR > 1 { n += $NF } END { print n }')" "$(sum reads)"
cat "$SYS/legs/0/histogram" >hist0
run 0 "hist of a file" hedgectl hist --file hist0 --tau 1ms
says "hist of a file" "1ms -- tau "
run 1 "hist of no histogram" hedgectl hist --file "$0"

# --- tune ----------------------------------------------------------------------------

run 1 "tune of nothing" hedgectl tune nothing --seconds 0
run 2 "tune by no rule" hedgectl tune vol --rule best
dmsetup message vol 0 reset
load read $DEV --count 50 >/dev/null
wait_until 10 drained
run 0 "tune of few reads" hedgectl tune vol --seconds 0
says "tune of few reads" "not set: too few copies"
load read $DEV --threads 2 --count 1000 >/dev/null
wait_until 10 drained
run 0 "tune, dry run" hedgectl tune vol --seconds 0 --rule percentile:50 --dry-run
says "tune, dry run" "not set: this is a dry run"
says "tune, dry run" "2 legs with enough of them"
check_eq "tune, dry run: nothing is set" "$(get timeout_us)" off
wanted=$(hedgectl tune vol --seconds 0 --rule percentile:50 --dry-run --json | jq '.[0].with.tau_us')
json tune '.[0] | [.set, .rule, .legs, .samples]' "[true,\"percentile\",2,$(sum reads)]" \
	hedgectl tune vol --seconds 0 --rule percentile:50 --json
check_eq "tune: it is set" "$(get timeout_us)" "$wanted"
run 0 "tune again" hedgectl tune vol --seconds 0 --rule percentile:50
says "tune again" "not set: it is so already"
run 0 "tune of an idle volume" hedgectl tune vol --seconds 1
says "tune of an idle volume" "vol: 0 read copies.*too few"
hedgectl tune vol --watch --seconds 1 >watch 2>&1 &
watch=$!
catches_term() { ((0x$(awk '/^SigCgt/ { print $2 }' "/proc/$watch/status") & 0x4000)); }
check "tune --watch begins" wait_until 10 catches_term
sleep 2
kill $watch
status=0
wait $watch || status=$?
check_eq "tune --watch ends when it is told to" $status 0
check_eq "tune --watch: too few copies change nothing" "$(<watch)" ""
hedgectl set vol tau=off >/dev/null

# --- top -----------------------------------------------------------------------------

load read $DEV >/dev/null 2>&1 &
reader=$!
run 0 "top" hedgectl top --batch --count 1
says "top" "vol +rnd +tau off +[0-9.k]+ reads/s"
says "top" "LEG DEVICE .*  0 ram0 +A .*  1 ram1 +A "
json "top" '.[0] | [.name, .target, (.legs | length), .reads > 0, (.legs | map(.copies_per_s) | add > 0)]' \
	'["vol",0,2,true,true]' hedgectl top vol --count 1 --json
run 1 "top of nothing" hedgectl top nothing
kill $reader
wait $reader || :

# --- set --save ----------------------------------------------------------------------

export HEDGETAB=$PWD/hedgetab
run 0 "set --save" hedgectl set vol --save tau=2ms leg:1.weight=50
check_eq "set --save: the file" "$(<hedgetab)" "vol none timeout_us=2000,leg:1.weight=50"
run 1 "set --save: what the kernel refuses" hedgectl set vol --save copies=3
check_eq "set --save: what the kernel refuses is not in the file" "$(<hedgetab)" \
	"vol none timeout_us=2000,leg:1.weight=50"
hedgectl set vol policy=coc leg:1.weight=100 >/dev/null
run 0 "set --saved" hedgectl set vol --saved
says "set --saved" "timeout_us: off -> 2000"
says "set --saved" "legs/1/weight: 100 -> 50"
run 0 "set --save of a policy" hedgectl set vol --save policy=rnd
check_eq "set --save of a policy: it overrides" "$(<hedgetab)" "vol none leg:1.weight=50,policy=rnd"
echo "vol nonsense" >hedgetab
run 1 "set --saved from a wrong file" hedgectl set vol --saved
says "set --saved from a wrong file" "expected UUID=<uuid> or none"
run 1 "set --save to a wrong file" hedgectl set vol --save tau=1ms
check_eq "set --save to a wrong file: it stays" "$(<hedgetab)" "vol nonsense"
unset HEDGETAB

# --- monitor -------------------------------------------------------------------------

run 0 "monitor --once" hedgectl monitor --once
says "monitor --once" "all is well"
run 1 "monitor of nothing" hedgectl monitor nothing
dmsetup remove vol
