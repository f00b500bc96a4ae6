#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# hedgectl on real devices: every command, used well and used wrong, its exit status,
# what it prints for people and that its JSON can be parsed. Needs hedgectl and jq.
# leaks: not looked for: its time goes into starting programs

. "$(dirname "$0")/common.sh"
need_program hedgectl
need_program jq
need_hedge
export DM_DISABLE_UDEV=1

. "$(dirname "$0")/hedgectl.inc"

create() { hedgectl create vol --no-label --nosync "$@"; }
remove() { dmsetup remove vol; }

# --- no device yet -------------------------------------------------------------

legs_brd 6 16
r0=/dev/ram0 r1=/dev/ram1 r2=/dev/ram2 log=/dev/ram3 r4=/dev/ram4 r5=/dev/ram5

run 0 "list of nothing" hedgectl list
json "list of nothing" length 0 hedgectl list --json
refused "show of nothing" "vol: there is no such device" hedgectl show vol
refused "set of nothing" "vol: there is no such device" hedgectl set vol tau=1ms
refused "hist of nothing" "vol: there is no such device" hedgectl hist vol
for words in "remove vol" "close vol" "check vol" "fail vol 0" "reinstate vol 0" "replace vol 0 $r4" "convert vol" "set vol --save" \
	     "top vol --count 1" "tune vol --seconds 0" "plan --device vol" "monitor vol --once"; do
	# shellcheck disable=SC2086
	run 1 "no device: $words" hedgectl $words
	says "no device: $words" "vol: there is no such device"
done
run 1 "show of a path" hedgectl show /dev/nowhere
says "show of a path" "/dev/nowhere: no block device"

# --- create: what it refuses -------------------------------------------------------

wrong
wrong frobnicate
says "an unknown command" "create .*list .*show .*set .*hist "
wrong create vol
says "create without devices" "DEV is missing after .vol."
wrong fail vol
says "fail without a leg" "LEG is missing after .vol."
wrong remove
says "remove without a name" "remove: NAME is missing"
wrong create vol --nosync $r0
wrong create vol --no-label $r0 $r1
says "create without --nosync" "--nosync .*--from DEV"
wrong create vol --nosync --from $r0 $r0 $r1
wrong create "a b" --nosync $r0 $r1
wrong create vol --nosync --log tape $r0 $r1
wrong create vol --nosync --region-size 3K $r0 $r1
wrong create vol --nosync --set tau=1h $r0 $r1
wrong create vol --nosync --set leg:2.weight=1 $r0 $r1
wrong create vol --nosync --set nonsense=1 $r0 $r1
wrong create vol --nosync $r0 $r0 $r0 $r0 $r0 $r0 $r0 $r0 $r0
refused "one device twice" "one device" create $r0 $r1 $r0
refused "no block device" "/dev/null: not a block device" create $r0 /dev/null
refused "no device" "/nowhere: No such file" create $r0 /nowhere
refused "a region that is too large" "smaller --region-size" create --region-size 32M $r0 $r1
refused "a leg as the log" "is a leg and the log" create --log disk:$r0 $r0 $r1
refused "--from another device" "none of the legs" hedgectl create vol --no-label --from $r2 $r0 $r1
refused "--from without a terminal" "--force if that is intended" hedgectl create vol --no-label --from $r0 $r0 $r1
refused "a policy that is none" "kernel: device-mapper: .*" create --policy nonsense $r0 $r1
refused "a value out of range" "kernel: device-mapper: .*" create --set copies=3 $r0 $r1
refused "a value out of range, before the copy" "kernel: device-mapper: .*" \
	hedgectl create vol --no-label --from $r0 --force --set copies=3 $r0 $r1
refused "a value out of range, dry run" "kernel: device-mapper: .*" create --dry-run --set copies=3 $r0 $r1

dmsetup create other --table "0 2048 linear $r2 0"
refused "a leg in use" "$r2: it is in use by dm-[0-9]+" create $r0 $r2
refused "a log in use" "$r2: it is in use" create --log disk:$r2 $r0 $r1
run 1 "a name in use" hedgectl create other --no-label --nosync $r0 $r1
says "a name in use" "other: there is a device of this name"
for words in "show other" "remove other" "close other" "set other tau=1ms" "set other --save" "check other" "fail other 0" \
	     "reinstate other 0" "replace other 0 $r4" "hist other" "top other --count 1" "tune other --seconds 0" \
	     "plan --device other" "monitor other --once"; do
	# shellcheck disable=SC2086
	run 1 "another target: $words" hedgectl $words
	says "another target: $words" "other: this device has no hedge target"
done
check "another target: it is there still" dmsetup info other
dmsetup remove other

blockdev --setro $r1
refused "a read-only leg" "$r1: it is read-only" create $r0 $r1
blockdev --setrw $r1

printf 'LUKS\272\276\0\001' | dd of=$r1 conv=notrunc,fsync status=none
refused "a leg that holds something" "$r1: it holds crypto_LUKS.*--force" create $r0 $r1
refused "a log that holds something" "$r1: it holds crypto_LUKS.*--force" create --log disk:$r1 $r0 $r2
refused "a leg to copy over that holds something" "$r1: it holds crypto_LUKS.*--force" \
	hedgectl create vol --no-label --from $r0 $r0 $r1
refused "a leg to copy from that holds something up to its end" \
	"$r1: it holds crypto_LUKS, and the volume has the first 16769024 of its 16777216 bytes.*--no-label" hedgectl create vol $r1 $r0
run 0 "--force takes it" create --force $r0 $r1
check "--force: the device is there" remove
dd if=/dev/zero of=$r1 bs=4k count=1 conv=notrunc,fsync status=none

dmsetup create short --table "0 8192 linear $r2 0"
refused "a leg to copy from that is longer" "$r0: its data is to be kept, .* from byte 4186112 on .* other legs" \
	hedgectl create vol --from $r0 $r0 /dev/mapper/short
dmsetup remove short

# --- create: what it makes -----------------------------------------------------------

run 0 "dry run" create --dry-run $r0 $r1
says "dry run" "0 32768 hedge core 2 1024 nosync 2 1:0 0 "
check_fails "dry run: no device" dmsetup info vol
json "dry run" '[.created, .bytes, (.legs | length), .legs[1].path]' '[false,16777216,2,"/dev/ram1"]' \
	create --dry-run --json $r0 $r1

run 0 create create --policy slb --set tau=2ms --set leg:1.weight=50 --region-size 64K $r0 $r1
says create "leg 1: $r1 .*16 MiB"
says create "taken to be identical"
check "create: the node" test -b /dev/mapper/vol
check_eq "create: the length" "$(blockdev --getsz /dev/mapper/vol)" 32768
check_match "create: the table" "$(dmsetup table vol)" \
	"^0 32768 hedge core 2 128 nosync 2 1:0 0 [0-9:]+ 0 [0-9]+ .*policy slb.*timeout_us 2000.*"
check_match "create: the UUID" "$(dmsetup info -c --noheadings -o uuid vol)" \
	'^HEDGE-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
run 1 "create again" create $r4 $r5
says "create again" "vol: there is a device of this name"
run 1 "create of its legs" hedgectl create vol2 --no-label --nosync $r0 $r1
says "create of its legs" "it is in use by dm-"
remove

dd if=/dev/urandom of=$r0 bs=1M count=16 conv=fsync status=none
run 0 "create --from" hedgectl create vol --no-label --from $r0 --force $r1 $r0 $r2
remove
blockdev --flushbufs $r0 $r1 $r2
check "create --from: leg 0 is a copy" cmp $r0 $r1
check "create --from: leg 2 is a copy" cmp $r0 $r2

# --- close ---------------------------------------------------------------------------

closed() { hedgectl examine "$1" --json | jq -c 'if .open then "open" else "closed" end'; }
hedgectl create vol --nosync --force $r0 $r1 >"$TMP/created" 2>&1
check "create says what boot does" grep -q "hedgectl set vol --save" "$TMP/created"
load fill /dev/mapper/vol >/dev/null
check_eq "a volume that was written to is open" "$(closed $r0)" '"open"'
run 0 close hedgectl close vol
check_eq "close: the labels say so" "$(closed $r0) $(closed $r1)" '"closed" "closed"'
check "close: it can be read" load check /dev/mapper/vol
check_eq "close: reads leave it so" "$(closed $r1)" '"closed"'
dd if=/dev/zero of=/dev/mapper/vol bs=4k count=1 oflag=direct status=none
check_eq "the next write opens it" "$(closed $r0) $(closed $r1)" '"open" "open"'
json "close --all" '[.[] | [.name, .closed]]' '[["vol",true]]' hedgectl close --all --json
check_eq "close --all: the labels say so" "$(closed $r0)" '"closed"'
remove
hedgectl wipe $r0 >/dev/null
hedgectl wipe $r1 >/dev/null

run 1 "a disk log that is none" hedgectl create vol --no-label --log disk:$log $r0 $r1
says "a disk log that is none" "$log: there is no log on it"
run 0 "a new disk log" create --log disk:$log $r0 $r1
check_match "a new disk log: the table" "$(dmsetup table vol)" "hedge disk 3 1:[0-9]+ 1024 nosync 2 "
remove
refused "a disk log that would be lost" "$log: it holds the log of a mirror" create --log disk:$log $r0 $r1
run 0 "a disk log that is there" hedgectl create vol --no-label --log disk:$log $r0 $r1
check_match "a disk log that is there: the table" "$(dmsetup table vol)" "hedge disk 2 1:[0-9]+ 1024 2 "
remove

# --- list and show -----------------------------------------------------------------

LEGS=("$r0" "$r1")
create --policy rnd $r0 $r1 >/dev/null
NAME=vol DEV=/dev/mapper/vol
find_sysfs
load fill $DEV >/dev/null
load read $DEV --threads 2 --count 200 >/dev/null
wait_until 10 drained

run 0 list hedgectl list
says list "vol +dm-[0-9]+ +running +16 MiB +2 AA +rnd +off"
json list '.[0] | [.name, .target, .bytes, .legs, .health, .policy, .tau_us, .suspended]' \
	'["vol",0,16777216,2,"AA","rnd",0,false]' hedgectl list --json
wrong list vol

run 0 show hedgectl show vol
says show "vol: /dev/mapper/vol, dm-[0-9]+, 16 MiB, running"
says show "policy +rnd, tau off"
says show "in sync"
says show "AA? .*in_sync"
check_fails "show: no check runs" grep -q '^  check' <<<"$OUTPUT"
run 0 "show of a path" hedgectl show /dev/mapper/vol
run 0 "show of its number" hedgectl show "/dev/$(dmsetup info -c --noheadings -o blkdevname vol)"
json show '[.name, .bytes, .suspended, (.targets | length)]' '["vol",16777216,false,1]' hedgectl show --json vol
json show '.targets[0] | [.policy, .tau_us, .log.type, .log.region_bytes, .log.regions, .log.in_sync]' \
	'["rnd",0,"core",524288,32,32]' hedgectl show vol --json
json show '.targets[0].attributes | [.policy, .copies, .timeout_us, .queue]' '["rnd",1,"off","legs"]' \
	hedgectl show vol --json
json show '.targets[0].counters.reads' "$(get stats/reads)" hedgectl show vol --json
json show '.targets[0].counters | map(select(. == null)) | length' 0 hedgectl show vol --json
json show '[.targets[0].legs[] | .reads] | add' "$(sum reads)" hedgectl show vol --json
json show '.targets[0].legs[1] | [.leg, .health, .state, .weight, .timeout_us, .inflight]' \
	'[1,"A","in_sync",100,"inherit",0]' hedgectl show vol --json
json show '[.targets[0].legs[] | to_entries[] | select(.value == null) | .key] - ["model", "serial", "sitting"]' '[]' \
	hedgectl show vol --json
wrong show
wrong show vol vol
wrong show vol --frobnicate

# --- set -----------------------------------------------------------------------------

run 0 "set tau" hedgectl set vol tau=2ms
says "set tau" "timeout_us: off -> 2000"
says "set tau" "tau_us: 0 -> 2000"
says "set tau" "policy: rnd -> custom"
check_eq "set tau: it is" "$(get timeout_us)" 2000
run 0 "set the same again" hedgectl set vol tau=2ms
check_eq "set the same again: nothing changed" "$OUTPUT" ""
run 0 "set the policy" hedgectl set vol policy=coc
says "set the policy" "policy: custom -> coc"
says "set the policy" "copies: 1 -> 2"
says "set the policy" "budget_pct: 10 -> 100"
for v in 500us=500 1s=1000000 1.5ms=1500 700=700 off=off auto=auto; do
	run 0 "tau=${v%=*}" hedgectl set vol "tau=${v%=*}"
	check_eq "tau=${v%=*}: it is" "$(get timeout_us)" "${v#*=}"
done
run 0 "set of a leg" hedgectl set vol leg:1.weight=50 leg:0.tau=3ms rescue_us=20ms max_copy_kb=1M
says "set of a leg" "legs/1/weight: 100 -> 50"
says "set of a leg" "legs/0/timeout_us: inherit -> 3000"
check_eq "set of a leg: leg 1" "$(get legs/1/weight)" 50
check_eq "set of a leg: leg 0" "$(get legs/0/timeout_us)" 3000
check_eq "set in another unit: time" "$(get rescue_us)" 20000
check_eq "set in another unit: size" "$(get max_copy_kb)" 1024
json "set" '.[] | [.target, .attribute, .from, .to]' '[0,"legs/1/weight",50,60]' hedgectl set vol --json leg:$r1.weight=60
json "set nothing new" length 0 hedgectl set vol --json leg:1.weight=60

run 1 "set: a policy that is none" hedgectl set vol policy=nonsense
says "set: a policy that is none" "vol: the kernel refused policy=nonsense .*preset"
run 1 "set: out of range" hedgectl set vol leg:1.weight=70 copies=3 leg:0.weight=1
says "set: out of range" "the kernel refused copies=3 .*expected 1 to the number of legs"
says "set: out of range" "legs/1/weight: 60 -> 70"
check_eq "set: out of range: what follows is not set" "$(get legs/0/weight)" 100
run 1 "set: negative" hedgectl set vol copies=-1
run 1 "set: no such leg" hedgectl set vol copies=1 leg:5.weight=1
says "set: no such leg" "vol: there is no leg 5"
check_eq "set: no such leg: nothing is set" "$(get copies)" 2
run 1 "set: no such target" hedgectl set vol --target 1 copies=1
says "set: no such target" "no hedge target 1"
wrong set vol
wrong set vol tau
wrong set vol tau=2h
wrong set vol copies=1 nonsense=1
check_eq "wrong usage sets nothing" "$(get copies)" 2
wrong set vol --target x tau=1ms
hedgectl set vol policy=rnd >/dev/null

# Every attribute that can be set can be set to what it is, so the tool knows all of them.
for file in "$SYS"/* "$SYS"/legs/1/*; do
	if [ ! -f "$file" ] || [ "$(stat -c %A "$file" | cut -c3)" != w ]; then continue; fi
	attr=${file##*/} prefix=''
	value=$(<"$file")
	[[ $value != *'['* ]] || { value=${value#*[}; value=${value%%]*}; }
	[[ $file != */legs/* ]] || prefix=leg:1.
	run 0 "set $prefix$attr to what it is" hedgectl set vol "$prefix$attr=$value"
done

# --- hist ----------------------------------------------------------------------------

run 0 hist hedgectl hist vol
says hist "p99\.9 "
says hist "#"
check_eq "hist: reads" "$(hedgectl hist vol | awk '$1 == "all" { print $3 }')" "$(sum reads)"
json hist 'length' 2 hedgectl hist vol --json
json hist '[.[].classes[].reads] | add' "$(sum reads)" hedgectl hist vol --json
json hist '[.[].classes[].buckets[].count] | add' "$(sum reads)" hedgectl hist vol --json
json hist '[.[].classes[] | select(.reads > 0) | .p50_ns <= .p99_ns and .p99_ns <= .max_ns] | all' true \
	hedgectl hist vol --json
for leg in 1 "$r1" "$(</sys/block/ram1/dev)"; do
	json "hist of leg $leg" '[.[].leg]' '[1]' hedgectl hist vol "$leg" --json
done
run 1 "hist of no leg" hedgectl hist vol 2
says "hist of no leg" "vol: it has no leg 2"
run 1 "hist of another device" hedgectl hist vol $r2
wrong hist
wrong hist vol 0 1
wrong hist vol --target=-1

# --- suspended -----------------------------------------------------------------------

dmsetup suspend vol
run 0 "list, suspended" hedgectl list
says "list, suspended" "vol .*suspended"
run 0 "show, suspended" hedgectl show vol
says "show, suspended" "16 MiB, suspended"
says "show, suspended" "policy +rnd"
json "show, suspended" '[.suspended, .targets[0].policy, .targets[0].attributes, .targets[0].legs[0].state]' \
	'[true,"rnd",null,null]' hedgectl show vol --json
json "show, suspended" '.targets[0].counters.reads' "$(status_field reads)" hedgectl show vol --json
run 1 "set, suspended" hedgectl set vol tau=1ms
says "set, suspended" "vol: it is suspended.*dmsetup resume vol"
run 1 "hist, suspended" hedgectl hist vol
says "hist, suspended" "vol: it is suspended.*dmsetup resume vol"
dmsetup resume vol
run 0 "show, resumed" hedgectl show vol
says "show, resumed" "running"
remove

# --- several targets in one table ------------------------------------------------------

dmsetup create vol <<END
0 2048 hedge core 2 1024 nosync 2 $r0 0 $r1 0 2 policy rnd
2048 2048 linear $r2 0
4096 4096 hedge core 2 1024 nosync 2 $r0 4096 $r1 4096 2 policy coc
END
json "two targets" '[.[] | [.name, .target, .policy]]' '[["vol",0,"rnd"],["vol",1,"coc"]]' hedgectl list --json
json "two targets" '[.bytes, [.targets[] | [.start_sector, .bytes, .policy, .legs[0].offset_sectors]]]' \
	'[4194304,[[0,1048576,"rnd",0],[4096,2097152,"coc",4096]]]' hedgectl show vol --json
json "two targets: set one" '[.[] | select(.attribute == "timeout_us") | .target]' '[1]' \
	hedgectl set vol --target 1 tau=1ms --json
json "two targets: set both" '[.[] | select(.attribute == "rescue_us") | .target]' '[0,1]' \
	hedgectl set vol rescue_us=50ms --json
json "two targets: hist" '[.[] | [.target, .leg]]' '[[0,0],[0,1],[1,0],[1,1]]' hedgectl hist vol --json
remove

# As groups of servers: each target by what was measured there, also where there is nothing yet.
need_module dm-lag
LEGS=($r0 $r1 $r4 $r5)
for i in 0 1 2 3; do lag_leg $i; done
dmsetup create vol <<END
0 2048 hedge core 2 1024 nosync 2 ${LEGS[0]} 0 ${LEGS[1]} 0 2 policy rnd
2048 2048 hedge core 2 1024 nosync 2 ${LEGS[2]} 0 ${LEGS[3]} 0 2 policy rnd
END
run 0 "a group policy of nothing measured" hedgectl set vol policy=fcfs-gr
says "a group policy of nothing measured" "too few copies"
json "a group policy of nothing measured" '[.[].policy]' '["fcfs-lpr","fcfs-lpr"]' hedgectl list --json
hedgectl set vol policy=rnd >/dev/null
for i in 2 3; do lag_law $i bimodal 100000 $((30000000 * SCALE)) 100000; done
dmsetup create part --table "0 2048 linear /dev/mapper/vol 2048"
load read /dev/mapper/part --threads 4 --count 300 >/dev/null
dmsetup remove part
run 0 "a group policy" hedgectl set vol policy=edd-gr
says "a group policy" "target 0: edd-lpr for edd-gr: too few copies were measured yet"
says "a group policy" "target 1: edd-lpr for edd-gr: its latencies are not new-worse-than-used"
json "a group policy" '[.[].policy]' '["edd-lpr","edd-lpr"]' hedgectl list --json
remove

# --- legs that hang --------------------------------------------------------------------

hedgectl create vol --no-label --nosync --policy slb --force "${LEGS[0]}" "${LEGS[1]}" >/dev/null
for i in 0 1; do lag $i stuck 1; done
load read /dev/mapper/vol --threads 4 --count 1 >/dev/null 2>&1 &
reader=$!
check "both legs hang" wait_until 10 eval 'lag_holds 0 1 || lag_holds 1 1'
sleep 1
run 0 "list, legs hang" timeout $((20 * SCALE)) hedgectl list
run 0 "show, legs hang" timeout $((20 * SCALE)) hedgectl show vol
says "show, legs hang" "stalled|[0-9.]+ ?m?s"
json "show, legs hang" '[.targets[0].legs[].oldest_us] | max > 500000' true hedgectl show vol --json
run 0 "show --openmetrics, legs hang" timeout $((20 * SCALE)) hedgectl show vol --openmetrics
run 0 "hist, legs hang" timeout $((20 * SCALE)) hedgectl hist vol
check "reads are out still" kill -0 $reader
for i in 0 1; do lag $i stuck 0; done
wait $reader

# --- a volume that goes while it is checked ----------------------------------------------

echo 1 >/sys/module/dm_hedge/parameters/resync_throttle
for i in 0 1; do lag_law $i fixed 50000000; done
{ hedgectl check vol >"$TMP/out" 2>&1 && echo 0 || echo $?; } >"$TMP/status" &
checker=$!
check "a check is on its way" wait_until 20 eval '[[ $(cat /sys/block/dm-*/hedge0/check_done) == [1-9]* ]]'
remove
wait $checker
echo 100 >/sys/module/dm_hedge/parameters/resync_throttle
check_eq "a check of a volume that goes fails" "$(<"$TMP/status")" 1
check_match "and says why" "$(<"$TMP/out")" 'vol: .*(gone|there is no such device)'
