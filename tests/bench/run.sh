#!/usr/bin/env bash
# Measures Quernel beside ONNX Runtime and prints tables: compile time and memory, bundle size, load time, cold start,
# latency, peak memory, size of the runtime by section; with --kernels, single operators instead of networks.
#
#   tests/bench/run.sh [--kernels] [--peer-only] [--no-peer] [--no-build] [OPTIONS OF bench.py, e.g. --models mnist_8
#                      --threads 1]
#
# Needs the models of the shared test data: $QUERNEL_TEST_DATA, else ../shared beside the repository. ONNX Runtime comes
# from npm's onnxruntime-node into build/onnxruntime ($ORT_VERSION, default 1.30.0).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

data=${QUERNEL_TEST_DATA:-$(cd .. && pwd)/shared}
ort=build/onnxruntime
log=build/bench/log
options=()
build=1 peer=1 own=1
for option in "$@"; do
  case "$option" in
    --peer-only) own=0 ;;
    --no-peer) peer=0 ;;
    --no-build) build=0 ;;
    *) options+=("$option") ;;
  esac
done
[[ -d $data/models/light ]] || { echo "bench: expected models in $data/models; set QUERNEL_TEST_DATA" >&2; exit 1; }
mkdir -p build/bench "$ort"
: >"$log"
quietly() { "$@" >>"$log" 2>&1 </dev/null || { echo "bench: failed: $*" >&2; tail -n 30 "$log" >&2; exit 1; }; }
# compile_program NAME [FLAG…]: one source file of this folder, where it has changed
compile_program() {
  local name=$1
  shift
  if [[ tests/bench/$name.cpp -nt build/bench/$name ]]; then
    quietly g++ -std=c++20 -O2 -pthread "$@" -o "build/bench/$name" "tests/bench/$name.cpp" -ldl
  fi
}

quietly ./toolchains/install_debian.sh --bench
if [[ $own == 1 && $build == 1 ]]; then
  quietly ./toolchains/install_debian.sh --build --test
  quietly cmake --preset release
  quietly cmake --build build/release --target compiler/all runtime/all
  quietly cmake --preset minsize
  quietly cmake --build build/minsize
fi
if [[ $own == 1 && ! -x build/release/bin/quernel-run ]]; then
  echo "bench: expected build/release/bin/quernel-run: run without --no-build, or with --peer-only" >&2
  exit 1
fi
if [[ $own == 1 ]]; then options+=(--bin build/release/bin --minsize-build build/minsize); fi

if [[ $peer == 1 ]]; then
  find_library() { find "$ort" -path "*linux/$1/libonnxruntime.so.1" | head -n 1; }
  case "$(uname -m)" in x86_64) arch=x64 ;; aarch64) arch=arm64 ;; *) echo "bench: no ONNX Runtime for $(uname -m)" >&2; exit 1 ;; esac
  library=$(find_library $arch)
  if [[ -z $library ]]; then
    # The CPU library is inside the package; its install script would only fetch GPU ones.
    quietly npm install --prefix "$ort" --ignore-scripts --no-audit --no-fund "onnxruntime-node@${ORT_VERSION:-1.30.0}"
    library=$(find_library $arch)
  fi
  compile_program ort_bench
  options+=(--ort-bench build/bench/ort_bench --ort-library "$PWD/$library")
fi
compile_program cold_start
compile_program machine_peak -march=native
options+=(--cold-start build/bench/cold_start --machine-peak build/bench/machine_peak)

exec python3 tests/bench/bench.py --data "$data" --models-folder build/bench-models "${options[@]}"
