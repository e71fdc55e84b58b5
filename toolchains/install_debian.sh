#!/usr/bin/env bash
# Installs the Debian 12 packages that Quernel's build, tests and examples need. What is already there is not touched:
# when nothing is missing the script ends at once, without reading package lists.
set -euo pipefail
export LC_ALL=C

usage() {
  cat <<'USAGE'
usage: toolchains/install_debian.sh [GROUP ...]

groups (default: build and test)
  --runtime-only  runtime and quernel-run alone: no LLVM, no ONNX, no tests
  --build         compiler and runtime
  --test          what tests/run.sh needs besides
  --bench         ONNX Runtime's npm client and binutils, for tests/bench/run.sh
  --train         python3-torch and python3-sklearn, to train examples/digits again (about 1 GB)
  --vulkan        Mesa's software driver and Vulkan's validation layers, for tests of the device
  --cross         cross compilers and emulators: aarch64, armv7, riscv64, Cortex-M, riscv32
  --dev           build and test, and clang-tidy
  --all           every group
other options
  --list          print the packages of the chosen groups and stop
USAGE
}

runtime=(g++ cmake ninja-build ccache libflatbuffers-dev flatbuffers-compiler libvulkan-dev)  # headers: the tools always have the device
compiler=(llvm-22-dev liblld-22-dev libonnx-dev libprotobuf-dev protobuf-compiler libcli11-dev libfmt-dev zlib1g-dev libzstd-dev
          glslang-dev glslang-tools spirv-tools)
test=(libgtest-dev libgmock-dev libbenchmark-dev nlohmann-json3-dev libonnx-testdata python3 python3-numpy python3-onnx
      clang-format clang-22 openssh-server openssh-client)
bench=(binutils python3 python3-numpy python3-onnx)
train=(python3-torch python3-sklearn python3-numpy)
vulkan=(mesa-vulkan-drivers vulkan-validationlayers)
cross=(qemu-user-static qemu-system-arm qemu-system-misc g++-aarch64-linux-gnu g++-arm-linux-gnueabihf g++-riscv64-linux-gnu
       gcc-arm-none-eabi gcc-riscv64-unknown-elf)
dev=(clang-tidy)
# Any node with npm will do: Debian's npm is asked for only where there is none.
command -v npm >/dev/null || bench+=(npm)

want=()
list=0
for option in "$@"; do
  case "$option" in
    --runtime-only) want+=("${runtime[@]}") ;;
    --build) want+=("${runtime[@]}" "${compiler[@]}") ;;
    --test) want+=("${test[@]}") ;;
    --bench) want+=("${bench[@]}") ;;
    --train) want+=("${train[@]}") ;;
    --vulkan) want+=("${vulkan[@]}") ;;
    --cross) want+=("${cross[@]}") ;;
    --dev) want+=("${runtime[@]}" "${compiler[@]}" "${test[@]}" "${dev[@]}") ;;
    --all) want+=("${runtime[@]}" "${compiler[@]}" "${test[@]}" "${bench[@]}" "${train[@]}" "${vulkan[@]}" "${cross[@]}" "${dev[@]}") ;;
    --list) list=1 ;;
    --help|-h) usage; exit 0 ;;
    *) echo "install_debian.sh: unknown option $option" >&2; usage >&2; exit 64 ;;
  esac
done
[[ ${#want[@]} -gt 0 ]] || want=("${runtime[@]}" "${compiler[@]}" "${test[@]}")
mapfile -t want < <(printf '%s\n' "${want[@]}" | sort -u)
if [[ $list == 1 ]]; then printf '%s\n' "${want[@]}"; exit 0; fi

command -v dpkg-query >/dev/null || { echo "install_debian.sh: expected a Debian 12 machine, found no dpkg" >&2; exit 1; }
missing_packages() {
  # shellcheck disable=SC2016  # the braces are dpkg's
  comm -23 <(printf '%s\n' "$@") \
    <(dpkg-query -W -f '${Package} ${db:Status-Status}\n' 2>/dev/null | sed -n 's/ installed$//p' | sort -u)
}
mapfile -t missing < <(missing_packages "${want[@]}")
if [[ ${#missing[@]} == 0 ]]; then echo "packages: all ${#want[@]} installed"; exit 0; fi

as_root=()
if [[ $(id -u) != 0 ]]; then
  command -v sudo >/dev/null || { echo "install_debian.sh: run as root, or install sudo; missing: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "packages: installing ${missing[*]}"
# A fresh machine's own updates may hold apt's locks for minutes: they are waited for.
readonly lock_seconds=600
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=$lock_seconds "$@" </dev/null; }
until said=$(apt update -qq 2>&1); do
  [[ $said == *"Could not get lock"* && $SECONDS -lt $lock_seconds ]] || { echo "$said" >&2; exit 1; }
  sleep 2
done
for package in "${missing[@]}"; do
  if [[ ! $(apt-cache policy "$package") =~ Candidate:\ [^\(] ]]; then
    echo "install_debian.sh: no package $package here; expected Debian 12 with its main and security" \
      "archives (LLVM 22 comes from bookworm-security)" >&2
    exit 1
  fi
done
apt install -y -qq --no-install-recommends "${missing[@]}"
mapfile -t missing < <(missing_packages "${want[@]}")
[[ ${#missing[@]} == 0 ]] || { echo "install_debian.sh: still missing after the install: ${missing[*]}" >&2; exit 1; }
echo "packages: all ${#want[@]} installed"
