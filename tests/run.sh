#!/usr/bin/env bash
# Builds Quernel and runs its tests.
#
#   tests/run.sh          packages, release build, every test; then the sanitizer build (preset dev) and its fast tests, and the
#                         runtime's and the Vulkan device's unit tests under the thread sanitizer (preset tsan)
#   tests/run.sh --fast   packages, release build, the tests with label fast
#
# Model tests look for their data in $QUERNEL_TEST_DATA, else in ../shared beside the repository, and say so when there
# are none.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fast=0
case "${1:-}" in
  "") ;;
  --fast) fast=1 ;;
  *) echo "usage: tests/run.sh [--fast]" >&2; exit 64 ;;
esac

jobs=$(nproc)
launcher=()
# Vulkan's loader, layers and driver are not compiled with the sanitizer: of them it would see the memory that they touch through
# functions of libc, but not the atomics that order it. What is called from code of ours it sees.
export TSAN_OPTIONS=${TSAN_OPTIONS:-ignore_noninstrumented_modules=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
failed=()
passed_tests=0
failed_tests=0
skipped_tests=0

stage() { printf '\n== %s (%d min %02d s so far)\n' "$1" $((SECONDS / 60)) $((SECONDS % 60)); }

build() {  # build PRESET
  stage "build: $1"
  cmake --preset "$1" "${launcher[@]}" >"$logs/configure-$1.log" 2>&1 || { cat "$logs/configure-$1.log"; return 1; }
  # Ninja's progress is for a terminal; a log gets the lines that matter.
  if [[ -t 1 ]]; then
    cmake --build --preset "$1" --parallel "$jobs"
  else
    cmake --build --preset "$1" --parallel "$jobs" >"$logs/build-$1.log" 2>&1 || { tail -n 200 "$logs/build-$1.log"; return 1; }
    grep -E 'warning:' "$logs/build-$1.log" | sort -u | head -n 40 || true
  fi
}

run_tests() {  # run_tests NAME PRESET CTEST-ARGUMENTS...
  local name=$1 preset=$2 log
  shift 2
  stage "test: $name"
  log=$logs/test-$preset.log
  if ! ctest --test-dir "build/$preset" --output-on-failure --no-tests=error --parallel "$jobs" "$@" 2>&1 | tee "$log"; then
    failed+=("$name")
    # Their names once more at the end, where a log that was cut still has them: "	595 - end_to_end/files (Failed)".
    mapfile -t -O "${#failed[@]}" failed < <(sed -n '/^The following tests FAILED:/,$ s/^\t *[0-9]* - /  /p' "$log" | head -n 30)
  fi
  # ctest's own summary: "97% tests passed, 3 tests failed out of 104"
  local line
  line=$(grep -E 'tests failed out of [0-9]+$' "$log" | tail -n 1) || return 0
  local bad=${line##*passed, } total=${line##* }
  bad=${bad%% *}
  # ctest counts a skipped test as passed; here it is neither.
  local skipped
  skipped=$(grep -cE '\*\*\*(Skipped|Not Run)' "$log") || true
  failed_tests=$((failed_tests + bad))
  skipped_tests=$((skipped_tests + skipped))
  passed_tests=$((passed_tests + total - bad - skipped))
}

stage "packages"
./toolchains/install_debian.sh --build --test --cross --vulkan
# Clones of the project share what ccache keeps: it sees paths relative to their root.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=true CCACHE_SLOPPINESS=pch_defines,time_macros
command -v ccache >/dev/null && launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
logs=build/logs
mkdir -p "$logs"

data=${QUERNEL_TEST_DATA:-../shared}
[[ -d $data/models ]] || echo "no test data in $data: tests of real models are left out (set QUERNEL_TEST_DATA)"

build release
if [[ $fast == 1 ]]; then
  run_tests "release, fast" release --label-regex '^fast$'
else
  run_tests "release" release
  build dev
  run_tests "dev (sanitizers), fast" dev --label-regex '^fast$' --label-exclude '^outside$'
  build tsan
  run_tests "tsan (thread sanitizer), runtime and Vulkan" tsan --tests-regex '^runtime\.'
fi

stage "done"
((${#failed[@]})) && { echo "failed:"; printf '%s\n' "${failed[@]}"; }
echo "$passed_tests passed, $failed_tests failed, $skipped_tests skipped"
[[ ${#failed[@]} == 0 ]]
