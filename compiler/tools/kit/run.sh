#!/bin/sh
# Kit QUERNEL_KIT_ID of quernel test: runs its tests on this machine and writes results.json, which
# `quernel test --results` reads where the kit was made.
#
#   ./run.sh [--with COMMAND] [--output FOLDER] [--continue] [OPTION OF quernel-run...]
#
#   --with COMMAND    put in front of quernel-run: "qemu-aarch64-static -cpu max", "taskset -c 0"
#   --output FOLDER   where results.json goes (default: the kit's folder)
#   --continue        keep the results of an earlier run that was stopped, run the rest
set -u
architecture=QUERNEL_ARCHITECTURE

here=$(cd "$(dirname "$0")" && pwd) || exit 1
with='' output=$here continue=0
while [ $# -gt 0 ]; do
  case $1 in
    --with | --output)
      [ $# -ge 2 ] || { echo "run.sh: $1: expected a value" >&2; exit 2; }
      case $1$2 in
        --with*) with=$2 ;;
        --output/*) output=$2 ;;
        *) output=$PWD/$2 ;;
      esac
      shift 2 ;;
    --continue) continue=1; shift ;;
    --help | -h) sed -n 's/^#   //p' "$0"; exit 0 ;;
    *) break ;;
  esac
done
cd "$here" || exit 1
parts=$output/parts
mkdir -p "$parts" || exit 1
[ "$continue" = 1 ] || rm -f "$parts"/*.json

chmod +x quernel-run 2>/dev/null
# shellcheck disable=SC2086 # $with is a command and its arguments
if ! version=$($with ./quernel-run --version 2>&1); then
  echo "run.sh: ./quernel-run, a program for Linux on $architecture, does not start on this machine, $(uname -m): $version" >&2
  echo "run.sh: --with COMMAND puts an emulator in front of it" >&2
  exit 1
fi

# run_tests BUNDLE RECORD [OPTION...]
run_tests() {
  bundle_file=$1 record=$2
  shift 2
  # shellcheck disable=SC2086
  $with ./quernel-run "$bundle_file" --record "$record" QUERNEL_ARGUMENTS "$@" </dev/null
}

# All records so far in one file.
write_results() {
  {
    printf '{"quernel_results": 1, "kit":\n'
    cat kit.json
    printf ',\n"results": ['
    comma=
    while read -r bundle name; do
      [ -f "$parts/$bundle.json" ] || continue
      printf '%s\n' "$comma"
      cat "$parts/$bundle.json"
      comma=,
    done <cases.txt
    printf ']}\n'
  } >"$output/results.json.unfinished" && mv "$output/results.json.unfinished" "$output/results.json"
}

stopped() {
  write_results
  echo "run.sh: stopped; --continue runs the rest" >&2
  exit 130
}
trap stopped INT TERM HUP

count=$(wc -l <cases.txt) number=0 bad=0
while read -r bundle name; do
  number=$((number + 1))
  record=$parts/$bundle.json
  [ -f "$record" ] && continue
  file=cases/$bundle unpacked=''
  if [ -f "$file.gz" ]; then
    unpacked=$parts/$bundle
    gzip -dc "$file.gz" >"$unpacked" || { rm -f "$unpacked"; write_results; exit 1; }
    file=$unpacked
  fi
  run_tests "$file" "$record" "$@"
  case $? in
    0) verdict=passed ;;
    1) verdict=failed bad=$((bad + 1)) ;;
    2) exit 2 ;; # what the options mean, it has said
    *) verdict='not run' bad=$((bad + 1)) ;;
  esac
  [ -z "$unpacked" ] || rm -f "$unpacked"
  printf '[%d/%d] %s: %s\n' "$number" "$count" "$name" "$verdict"
done <cases.txt
write_results || exit 1
echo "$output/results.json is written; where the kit was made: quernel test --results results.json"
[ "$bad" = 0 ]
