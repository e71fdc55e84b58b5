#!/usr/bin/env bash
# From a bare Debian 12 machine to recognised digits: packages, build, install, compile a model, build an application
# against the installed runtime, run it.
set -euo pipefail
export LC_NUMERIC=C
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=build/quickstart
log=$work/log
mkdir -p "$work"
: >"$log"
bold='' dim='' plain=''
if [[ -t 1 ]]; then bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'; fi

# stage TEXT COMMAND...: one line with the time it took; what the command prints goes to the log, shown if it fails.
stage() {
  local text=$1 start=$EPOCHREALTIME
  shift
  printf '  %-58s' "$text"
  printf '\n== %s\n' "$text" >>"$log"
  if ! "$@" >>"$log" 2>&1 </dev/null; then
    printf 'failed\n\n' >&2
    tail -n 40 "$log" >&2
    printf '\nThe whole log: %s\n' "$log" >&2
    exit 1
  fi
  printf '%s%7.1f s%s\n' "$dim" "$(seconds_between "$start" "$EPOCHREALTIME")" "$plain"
}

# Seconds between two values of EPOCHREALTIME ("seconds.microseconds"), in plain shell.
seconds_between() {
  local us=$(( (${2%.*} - ${1%.*}) * 1000000 + 10#${2#*.} - 10#${1#*.} ))
  printf '%d.%06d' $((us / 1000000)) $((us % 1000000))
}

build() {
  local launcher=()
  command -v ccache >/dev/null && launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  cmake --preset release "${launcher[@]}" &&
    cmake --build --preset release --target compiler/all runtime/all
}

build_application() {
  cmake -S examples/digits -B "$work/digits" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$PWD/$work/install" &&
    cmake --build "$work/digits"
}

printf '%sQuernel quickstart%s\n\n' "$bold" "$plain"
stage "Debian packages" ./toolchains/install_debian.sh --build --test
stage "build the compiler and the runtime" build
stage "install them into $work/install" cmake --install build/release --prefix "$work/install"
stage "quernel compile digits.onnx -o digits.qnl" \
  "$work/install/bin/quernel" compile examples/digits/digits.onnx -o "$work/digits.qnl"
stage "build examples/digits against the installed runtime" build_application
printf '\n'
exec "$work/digits/digits" "$work/digits.qnl" examples/digits/digits_test.npy examples/digits/digits_test_labels.npy
