#!/usr/bin/env bash
# Prints what the five int8 models of MLPerf Tiny take on emulated microcontrollers, next to published figures:
#
#   tests/bench/tiny.sh [--targets cortex-m4,cortex-m55] [--models kws,ic] [--rounding double] [--no-cycles] [--json FILE]
#                       [--form c [--compiler gcc|clang] [--level -O2]]
#
# Needs the models of the shared test data ($QUERNEL_TEST_DATA, else ../shared beside the repository).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT
quietly() { "$@" >"$log" 2>&1 </dev/null || { echo "tiny: failed: $*" >&2; tail -n 30 "$log" >&2; exit 1; }; }
quietly ./toolchains/install_debian.sh --build --cross
quietly cmake --preset release
quietly cmake --build build/release --target quernel quernel-run
exec python3 -B tests/bench/tiny.py "$@"
