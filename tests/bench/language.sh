#!/usr/bin/env bash
# Times language models with 4- and 8-bit weights on Quernel, ONNX Runtime, llama.cpp and OpenVINO, and prints tables: ms
# for a token and for prompts next to the bounds, load time, memory, sizes, compile time.
#
#   tests/bench/language.sh [--no-build] [--model smol135m --bits 4 --threads 1 --past 256 --prompt 64 …]
#
# Models come from the script $LANGUAGE_MODEL_MAKER or --maker FILE (default: bench/make_language_model.py of
# $QUERNEL_TEST_DATA, else of ../shared next to the repository). Models, bundles and peers stay in --cache DIR (default
# build/bench-language). Peers are fetched there unless $ORT_PYTHON or $OPENVINO_PYTHON names a Python that has them, or
# $LLAMA_NODE_MODULES a folder with node-llama-cpp; one that cannot be had is left out, with a line that says so.
# --bin DIR measures the tools in DIR and builds nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

cache=build/bench-language bin=build/release/bin build=1
maker=${LANGUAGE_MODEL_MAKER:-${QUERNEL_TEST_DATA:-$(cd .. && pwd)/shared}/bench/make_language_model.py}
options=()
while [[ $# -gt 0 ]]; do
  case "$1" in
    --no-build) build=0 ;;
    --cache) cache=$2 && shift ;;
    --bin) bin=$2 build=0 && shift ;;
    --maker) maker=$2 && shift ;;
    *) options+=("$1") ;;
  esac
  shift
done
mkdir -p "$cache"
log=$cache/log
: >"$log"
logged() { "$@" >>"$log" 2>&1 </dev/null; }
quietly() { logged "$@" || { echo "language: failed: $*" >&2; tail -n 30 "$log" >&2; exit 1; }; }

fail() { echo "language: $*" >&2; exit 1; }
[[ -f $maker ]] || fail "expected make_language_model.py at $maker; set LANGUAGE_MODEL_MAKER or QUERNEL_TEST_DATA"
if [[ $build == 1 ]]; then
  quietly ./toolchains/install_debian.sh --build --test --bench
  quietly cmake --preset release
  quietly cmake --build build/release --target quernel quernel-run
fi
[[ -x $bin/quernel && -x $bin/quernel-run ]] || fail "expected quernel and quernel-run in $bin: run without --no-build"
if [[ tests/bench/machine_peak.cpp -nt $cache/machine_peak ]]; then
  quietly g++ -std=c++20 -O2 -pthread -march=native -o "$cache/machine_peak" tests/bench/machine_peak.cpp
fi

# python_with MODULE [PYTHON]: a Python that imports it, in an environment that is made where none is given; nothing without
python_with() {
  local python=${2:-$cache/$1/bin/python}
  if [[ -z ${2:-} && ! -x $python ]]; then
    { logged python3 -m venv "$cache/$1" && logged "$python" -m pip install numpy "$1"; } || return 0
  fi
  if logged "$python" -c "import numpy, $1"; then echo "$python"; fi
}
ort=$(python_with onnxruntime "${ORT_PYTHON:-}")
openvino=$(python_with openvino "${OPENVINO_PYTHON:-}")
[[ -z $ort ]] || options+=(--ort-python "$ort")
[[ -z $openvino ]] || options+=(--openvino-python "$openvino")

case "$(uname -m)" in aarch64) arch=arm64 ;; armv7l) arch=armv7l ;; *) arch=x64 ;; esac
llama=${LLAMA_NODE_MODULES:-$cache/llama/node_modules}
if [[ -z ${LLAMA_NODE_MODULES:-} && ! -d $llama/node-llama-cpp ]]; then
  # The package for this machine alone: the optional ones hold code for GPUs.
  logged npm install --prefix "$cache/llama" --ignore-scripts --omit=optional --no-audit --no-fund node-llama-cpp \
    "@node-llama-cpp/linux-$arch" || true
fi
[[ ! -d $llama/node-llama-cpp ]] || options+=(--llama "$(cd "$llama" && pwd)")

exec python3 -B tests/bench/language.py --cache "$cache" --bin "$bin" --maker "$maker" --machine-peak "$cache/machine_peak" "${options[@]}"
