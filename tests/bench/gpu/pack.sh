#!/usr/bin/env bash
# Packs one archive that checks and times Vulkan code on a machine with a GPU and without network:
#
#   tests/bench/gpu/pack.sh OUT.tar.xz [--arch x86-64|aarch64] [--no-build] [--bin DIR] [--run-binary FILE] [OPTIONS OF pack.py]
#
# There: tar xJf OUT.tar.xz && quernel-gpu/run.sh, which writes results.json. Back here: report.py results.json.
# Models come from the test data ($QUERNEL_TEST_DATA, else ../shared next to the repository) and Debian's libonnx-testdata;
# what is missing is left out, with a line that says so. --bin DIR has quernel; --no-build takes build/release/bin.
set -euo pipefail
invoked=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

arch=x86-64 build=1 bin='' runner='' out=''
options=()
whole() { case "$1" in /*) echo "$1" ;; *) echo "$invoked/$1" ;; esac; }
while [[ $# -gt 0 ]]; do
  case "$1" in
    --arch) arch=$2 && shift ;;
    --no-build) build=0 ;;
    --bin) bin=$(whole "$2") build=0 && shift ;;
    --run-binary) runner=$(whole "$2") && shift ;;
    --*) options+=("$1") ;;
    *) if [[ -z $out ]]; then out=$(whole "$1"); else options+=("$1"); fi ;;
  esac
  shift
done
fail() { echo "pack: $*" >&2; exit 1; }
[[ $out == *.tar.xz ]] || fail "expected the archive to write, NAME.tar.xz, found '$out'"
case "$arch" in
  x86-64) preset=release ;;
  aarch64) preset=aarch64 ;;
  *) fail "--arch: expected x86-64 or aarch64, found '$arch'" ;;
esac
work=$PWD/build/gpu-kit
mkdir -p "$work"
log=$work/log
quietly() { "$@" >"$log" 2>&1 </dev/null || { echo "pack: failed: $*" >&2; tail -n 30 "$log" >&2; exit 1; }; }

if [[ $build == 1 ]]; then
  quietly cmake --preset release
  quietly cmake --build build/release --target quernel quernel-run
fi
if [[ -z $runner && $arch == aarch64 ]]; then
  runner=$PWD/build/aarch64-vulkan/bin/quernel-run
  if [[ $build == 1 || ! -x $runner ]]; then                # not static: it opens the loader
    quietly cmake --preset $preset -B build/aarch64-vulkan -DCMAKE_EXE_LINKER_FLAGS= -DQUERNEL_VULKAN=ON
    quietly cmake --build build/aarch64-vulkan --target quernel-run
  fi
fi
bin=${bin:-$PWD/build/release/bin}
runner=${runner:-$bin/quernel-run}
[[ -x $bin/quernel ]] || fail "expected quernel in $bin: run without --no-build"
[[ -x $runner ]] || fail "expected quernel-run at $runner: run without --no-build"
data=${QUERNEL_TEST_DATA:-$(cd .. && pwd)/shared}
exec python3 -B tests/bench/gpu/pack.py "$out" --arch "$arch" --quernel "$bin/quernel" --runner "$runner" --data "$data" \
  --work "$work" "${options[@]}"
