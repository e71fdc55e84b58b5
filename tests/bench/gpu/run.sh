#!/bin/sh
# Checks and times Vulkan code on this machine, measures the device's peaks, and writes one JSON file. Needs a POSIX
# shell, a driver of Vulkan 1.1 and no network.
#
#   ./run.sh [--output FILE] [--minutes N] [--device D] [--no-peer] [--no-times] [--with COMMAND]
#
#   --output FILE   what is written (default: results.json in the kit's folder)
#   --minutes N     end after at most that many minutes (default: 8); what is left out is listed
#   --device D      vulkan, or vulkan:D with a number, a type or a part of a name (default: vulkan, the best device)
#   --no-peer       do not time PyTorch
#   --no-times      run every test vector once, measure no peaks
#   --with COMMAND  put in front of quernel-run: "taskset -c 0", "qemu-aarch64-static -L ROOT"
#
# Exit status: 0 all results are right, 1 some are wrong, 2 nothing could run.
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 2
output=$here/results.json minutes=8 device=vulkan peer=1 times=1 with=''
while [ $# -gt 0 ]; do
  case $1 in
    --output | --minutes | --device | --with)
      [ $# -ge 2 ] || { echo "run.sh: $1: expected a value" >&2; exit 2; }
      case $1$2 in
        --output/*) output=$2 ;;
        --output*) output=$PWD/$2 ;;
        --minutes*) minutes=$2 ;;
        --with*) with=$2 ;;
        *) device=$2 ;;
      esac
      shift 2 ;;
    --no-peer) peer=0; shift ;;
    --no-times) times=0; shift ;;
    --help | -h) sed -n 's/^#   //p' "$0"; exit 0 ;;
    *) echo "run.sh: unknown option '$1'; --help lists the options" >&2; exit 2 ;;
  esac
done
case $minutes in '' | *[!0-9]* | 0) echo "run.sh: --minutes: expected a number from 1 on, found '$minutes'" >&2; exit 2 ;; esac
cd "$here" || exit 2
began=$(date +%s)
reserve=20                                        # seconds to write the results
deadline=$((began + minutes * 60 - reserve))
parts=$output.parts
rm -rf "$parts"
mkdir -p "$parts" || exit 2
trap 'rm -rf "$parts"' EXIT
child=''
trap 'kill -9 $child 2>/dev/null; exit 130' INT TERM HUP
chmod +x quernel-run 2>/dev/null

seconds_left() { echo $((deadline - $(date +%s))); }

# quoted TEXT: as a string of JSON
quoted() { printf '"%s"' "$(printf '%s' "$1" | tr '\n\t' '  ' | tr -d '\000-\037' | sed 's/\\/\\\\/g; s/"/\\"/g')"; }

# limited SECONDS COMMAND...: status 124 where it takes longer
limited() {
  limit=$(($(date +%s) + $1))
  shift
  "$@" &
  child=$!
  while kill -0 "$child" 2>/dev/null; do
    if [ "$(date +%s)" -ge "$limit" ]; then
      kill -9 "$child" 2>/dev/null
      wait "$child" 2>/dev/null
      return 124
    fi
    sleep 0.1
  done
  wait "$child"
}

# --- the loader and a driver. What the machine has comes first, then the kit's loader, then drivers that the loader
# does not find by itself.
# shellcheck disable=SC2086 # $with is a command and its arguments
try_device() { $with ./quernel-run --describe --json --device "$device" >"$parts/device" 2>"$parts/device.errors"; }
is_hardware() { grep -q '"software": false' "$parts/device"; }
found=''
use_driver() {  # HOW: takes the device unless one was found that is no worse
  try_device || { tail -n 1 "$parts/device.errors" >>"$parts/no_device"; return 1; }
  if [ -z "$found" ] || is_hardware; then found=$1 found_libraries=${LD_LIBRARY_PATH:-} found_driver=${VK_ICD_FILENAMES:-}; fi
  is_hardware
}
find_driver() {
  own=${LD_LIBRARY_PATH:-}
  use_driver "the machine's loader" && return
  export LD_LIBRARY_PATH="$here/lib${own:+:$own}"
  use_driver "the kit's loader" && return
  [ -z "${VK_ICD_FILENAMES:-}${VK_DRIVER_FILES:-}" ] || return
  for manifest in /usr/local/share/vulkan/icd.d/*.json /usr/local/*/share/vulkan/icd.d/*.json /opt/*/share/vulkan/icd.d/*.json; do
    [ -f "$manifest" ] || continue
    prefix=${manifest%/share/vulkan/*}
    for library in "" "$prefix/lib64:$prefix/lib" "$prefix/lib64:$prefix/lib:$here/lib/x11"; do
      export VK_ICD_FILENAMES="$manifest" VK_DRIVER_FILES="$manifest" LD_LIBRARY_PATH="$here/lib${own:+:$own}${library:+:$library}"
      use_driver "$manifest" && return
    done
  done
  for driver in libGLX_nvidia.so.0 libEGL_nvidia.so.0; do        # containers often have the driver without its manifest
    printf '{"file_format_version": "1.0.0", "ICD": {"library_path": "%s", "api_version": "1.3.0"}}\n' "$driver" >"$parts/$driver.json"
    export VK_ICD_FILENAMES="$parts/$driver.json" VK_DRIVER_FILES="$parts/$driver.json" LD_LIBRARY_PATH="$here/lib${own:+:$own}:$here/lib/x11"
    use_driver "a manifest for $driver" && return
  done
}
find_driver
if [ -z "$found" ]; then
  echo "run.sh: no Vulkan device can be opened: $(head -n 1 "$parts/no_device")" >&2
  exit 2
fi
export LD_LIBRARY_PATH="$found_libraries" VK_ICD_FILENAMES="$found_driver" VK_DRIVER_FILES="$found_driver"
[ -n "$LD_LIBRARY_PATH" ] || unset LD_LIBRARY_PATH
[ -n "$VK_ICD_FILENAMES" ] || unset VK_ICD_FILENAMES VK_DRIVER_FILES
try_device || exit 2
echo "device: $(sed 's/^{"name": "\([^"]*\)".*/\1/' "$parts/device"), by $found"
# shellcheck disable=SC2086
if $with ./quernel-run --describe --device "$device" --validation >/dev/null 2>"$parts/validation.errors"; then
  validation=yes
else
  validation=$(tail -n 1 "$parts/validation.errors")
fi

has_feature() { grep -q "\"features\": \[[^]]*\"$1\"" "$parts/device"; }

# --- bundles. run_bundles PASS GROUP SECONDS HIDDEN OPTIONS: the group's bundles in that pass, with those features hidden.
# Lines of JSON go to $parts/run.N; a bundle on which the program dies gets one that says so, and the next one goes on.
run=0 failed=0
: >"$parts/peaks"
run_bundles() {
  pass=$1 group=$2 seconds=$3 hidden=$4 options=$5
  set --
  while read -r of file features; do
    [ "$of" = "$group" ] || continue
    case $pass:$features in
      best:* | validation:*) ;;
      base:-) continue ;;
      base:*) ;;
      *:*?,"$pass",* | *:*,"$pass",?*) ;;           # without the others, which the best pass has
      *) continue ;;
    esac
    set -- "$@" "bundles/$file"
  done <cases.txt
  [ $# -gt 0 ] || return
  run=$((run + 1))
  lines=$parts/run.$run not_run=''
  : >"$lines"
  end=$(($(date +%s) + seconds))
  while [ $# -gt 0 ]; do
    left=$(seconds_left)
    [ $((end - $(date +%s))) -ge "$left" ] || left=$((end - $(date +%s)))
    if [ "$left" -le 0 ]; then
      not_run=$*
      break
    fi
    # shellcheck disable=SC2086 # words
    limited "$left" $with ./quernel-run "$@" --test --json --device "$device" --device-timeout 60 ${hidden:+--hide $hidden} $options \
      >"$parts/lines" 2>"$parts/errors" </dev/null
    status=$?
    sed -n '/}$/p' "$parts/lines" >"$parts/complete"
    cat "$parts/complete" >>"$lines"
    done_=$(wc -l <"$parts/complete")
    while [ "$done_" -gt 0 ]; do shift; done_=$((done_ - 1)); done
    [ $# -gt 0 ] || break
    case $status in
      3) ;;                                        # the device was lost, which the last line says
      124) not_run=$*; break ;;
      *)
        printf '{"bundle": %s, "error": %s}\n' "$(quoted "${1##*/}")" \
          "$(quoted "quernel-run ended with status $status: $(tail -n 1 "$parts/errors")")" >>"$lines"
        shift ;;
    esac
  done
  bad=$(grep -v '"status": 400' "$lines" | grep -c -e '"passed": false' -e '^{"bundle": "[^"]*", "error"' -e '"validation": "')
  failed=$((failed + bad))
  {
    printf '{"pass": %s, "group": %s, "hidden": %s, "not_run": [' "$(quoted "$pass")" "$(quoted "$group")" "$(quoted "$hidden")"
    # shellcheck disable=SC2086 # file names without spaces
    [ -z "$not_run" ] || printf '%s\n' $not_run | sed 's|.*/||; s/.*/"&"/; $!s/$/,/'
    printf '], "bundles": [\n'
    sed '$!s/$/,/' "$lines"
    printf ']}'
  } >"$parts/runs.$run"
  echo "$pass $group: $(wc -l <"$lines") bundles, $bad wrong, $(echo "$not_run" | wc -w) not run, $(seconds_left) s left"
}

# --- peaks: kernels of our own. peak NAME FILE OPTIONS
peaks() {
  comma=
  while read -r name file words; do
    [ "$(seconds_left)" -gt 5 ] || break
    case $words in *' needs '*) has_feature "${words##* }" || continue ;; esac
    words=${words% needs *}
    # shellcheck disable=SC2086
    limited 60 $with ./quernel-run "peaks/$file" --device "$device" --json $words >"$parts/peak" 2>"$parts/errors" </dev/null
    printf '%s\n%s: ' "$comma" "$(quoted "$name")"
    if [ -s "$parts/peak" ]; then cat "$parts/peak"; else printf '{"error": %s}' "$(quoted "$(tail -n 1 "$parts/errors")")"; fi
    comma=,
  done <peaks.txt
}
[ "$times" = 0 ] || peaks >"$parts/peaks"
echo "peaks: $(grep -c '^"' "$parts/peaks") measured, $(seconds_left) s left"

peer_seconds=0
if [ "$peer" = 1 ] && command -v python3 >/dev/null && python3 -c 'import torch' 2>"$parts/peer.errors"; then peer_seconds=$((minutes * 12)); fi
# What comes first gets its share of the time that the peer leaves.
share() { echo $((($(seconds_left) - peer_seconds) * $1 / 100 + 1)); }
timed='--repeat 2000 --seconds 0.4'             # long enough for a GPU to raise its clocks
[ "$times" = 1 ] || timed=''
optional='subgroups,dotprod,float16,coopmat,coopmat-int8,coopmat-bf16'
# A fast device needs less than these shares; on a slow one, all groups get some time.
for group_share in products:12 int8:8 attention:10 networks:20 networks_f16:12 operators:20 models:35; do
  run_bundles best "${group_share%:*}" "$(share "${group_share#*:}")" '' "--verify-weights $timed"
done
run_bundles best conformance "$(share 60)" '' --verify-weights
for group in products int8 attention networks networks_f16 operators models; do
  run_bundles base $group "$(share 20)" $optional "$timed"
done
run_bundles base conformance "$(share 40)" $optional ''
for group in conformance int8 attention products models; do
  for feature in subgroups dotprod float16 coopmat coopmat-int8 coopmat-bf16; do
    if has_feature $feature; then
      case $feature in coopmat-*) needed='subgroups float16 coopmat' ;; coopmat) needed='subgroups float16' ;; *) needed= ;; esac
      others=",$optional,"
      for kept in $feature $needed; do others=$(echo "$others" | sed "s/,$kept,/,/"); done
      others=$(echo "$others" | sed 's/^,//; s/,$//')
      run_bundles $feature $group "$(share 40)" "$others" ''
    fi
  done
done
if [ "$validation" = yes ]; then
  for group in conformance models attention products; do run_bundles validation $group "$(share 60)" '' '--validation'; done
fi

# --- the peer
if [ "$peer" = 0 ]; then
  printf '{"skipped": "--no-peer"}\n' >"$parts/peer"
elif [ "$peer_seconds" = 0 ]; then
  printf '{"skipped": %s}\n' "$(quoted "no PyTorch: $(tail -n 1 "$parts/peer.errors" 2>/dev/null || echo 'no python3')")" >"$parts/peer"
else
  limited "$(seconds_left)" python3 -B peer.py kit.json --seconds "$(($(seconds_left) - 10))" >"$parts/peer" 2>"$parts/peer.errors" </dev/null
  [ -s "$parts/peer" ] || printf '{"skipped": %s}\n' "$(quoted "peer.py: $(tail -n 1 "$parts/peer.errors")")" >"$parts/peer"
fi

# --- one document
{
  printf '{"quernel_gpu": 1,\n"kit": '
  cat kit.json
  printf ',\n"machine": {"system": %s, "processor": %s, "cores": %s, "began": %s, "seconds": %s},\n' "$(quoted "$(uname -srm)")" \
    "$(quoted "$(sed -n 's/^\(model name\|Model\|Hardware\)[^:]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1)")" \
    "$(grep -c '^processor' /proc/cpuinfo 2>/dev/null || echo 0)" "$began" "$(($(date +%s) - began))"
  printf '"found_by": %s, "validation": %s,\n"device": ' "$(quoted "$found")" "$(quoted "$validation")"
  cat "$parts/device"
  printf ',\n"peaks": {'
  cat "$parts/peaks"
  printf '},\n"runs": ['
  number=1 comma=
  while [ "$number" -le "$run" ]; do
    printf '%s\n' "$comma"
    cat "$parts/runs.$number"
    comma=, number=$((number + 1))
  done
  printf '],\n"failed": %s,\n"peer": ' "$failed"
  cat "$parts/peer"
  printf '}\n'
} >"$output.unfinished" && mv "$output.unfinished" "$output" || exit 2
echo "$output is written: $failed wrong, $(($(date +%s) - began)) s"
[ "$failed" = 0 ]
