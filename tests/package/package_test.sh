#!/usr/bin/env bash
# Installs a build, moves the installation elsewhere, and uses it as a stranger would.
#
#   package_test.sh BUILD_FOLDER SCRATCH_FOLDER
#
# 1. The installed quernel and quernel-run start, and quernel-run needs no LLVM.
# 2. The installed quernel compiles the digits model; the installed quernel-run runs it.
# 3. A consumer in C and one in C++ build against find_package(QuernelRuntime) and run that bundle; it also compiles the
#    model through find_package(QuernelCompiler).
# 4. quernel_add_model makes a bundle, a static library and C, the last two of the same results.
# 5. examples/digits builds against the same package and recognises the held-out digits.
# 6. So does examples/custom_op, and its kernel: both print what its README says.
# 7. examples/hello_linux builds here and, where the cross compiler is there, against a runtime for AArch64, and runs.
# 8. examples/hello_firmware builds for each microcontroller whose toolchain is there, and recognises the digits under its
#    emulator.
# 9. examples/language_model builds against the package. It and its firmware write the text that a random checkpoint of
#    llama2.c stands for.
set -euo pipefail
build=$1 scratch=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$(cd "$here/../.." && pwd)

say() { printf '== %s\n' "$*"; }
fail() { echo "package_test: $*" >&2; exit 1; }

rm -rf "$scratch"
mkdir -p "$scratch"
say "install, then move"
cmake --install "$build" --prefix "$scratch/first" >"$scratch/install.log"
mv "$scratch/first" "$scratch/moved"
prefix=$scratch/moved
if grep -rIl --include='*.cmake' --include='*.h' --include='*.hpp' --include='*.pc' -e "$build" -e "$source" "$prefix"; then
  fail "expected a package that may be moved, found the paths of its build in the files above"
fi

say "the installed tools start"
"$prefix/bin/quernel" --version
"$prefix/bin/quernel" targets >"$scratch/targets.txt"
grep -q 'x86-64' "$scratch/targets.txt" || fail "quernel targets: expected x86-64 among them, found: $(head -n 5 "$scratch/targets.txt")"
needed=$(readelf -d "$prefix/bin/quernel-run" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p')
if grep -qiE 'llvm|protobuf|onnx|flatbuffers|fmt' <<<"$needed"; then
  fail "quernel-run: expected the system's libraries only, found: $needed"
fi

say "the installed tools compile and run a model"
"$prefix/bin/quernel" compile "$source/examples/digits/digits.onnx" -o "$scratch/digits.qnl"
"$prefix/bin/quernel-run" "$scratch/digits.qnl" --input image=random:1 --threads 1 >"$scratch/run.txt"

say "a consumer in C and one in C++"
cmake -S "$here/consumer" -B "$scratch/consumer" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix" \
  -DQUERNEL_MODEL="$source/examples/digits/digits.onnx" >"$scratch/consumer.log"
cmake --build "$scratch/consumer"
cmp "$scratch/consumer/model.qnl" "$scratch/digits.qnl" || fail "QuernelCompiler: expected the bundle that the installed tool wrote"
for language in c cpp; do
  "$scratch/consumer/consumer_$language" "$scratch/digits.qnl" >"$scratch/consumer_$language.txt"
  printf 'input image\noutput scores\n' | diff - "$scratch/consumer_$language.txt" || fail "consumer_$language: wrong signature"
done

say "models that quernel_add_model compiled"
"$prefix/bin/quernel" inspect "$scratch/consumer/added.qnl" | grep -q x86-64-v3 || fail "quernel_add_model: expected a bundle with x86-64-v3"
"$scratch/consumer/consumer_static_form" >"$scratch/consumer_static_form.txt"
"$scratch/consumer/consumer_c_form" >"$scratch/consumer_c_form.txt"
diff "$scratch/consumer_static_form.txt" "$scratch/consumer_c_form.txt" || fail "expected the same bits from the static library and from C"

say "examples/digits"
cmake -S "$source/examples/digits" -B "$scratch/digits" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix" \
  >"$scratch/digits.log"
cmake --build "$scratch/digits"
"$scratch/digits/digits" "$scratch/digits.qnl" "$source/examples/digits/digits_test.npy" \
  "$source/examples/digits/digits_test_labels.npy" | tail -n 4

say "examples/custom_op"
example=$source/examples/custom_op
PYTHONPATH=$source/tests/end_to_end python3 -B -c 'import custom_op, sys; sys.stdout.buffer.write(custom_op.compand_model())' \
  >"$scratch/compand.onnx"
cmake -S "$example" -B "$scratch/custom_op" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix" >"$scratch/custom_op.log"
cmake --build "$scratch/custom_op"
cc -c -O2 -ffreestanding -fPIC -I "$prefix/include" "$example/compand_kernel.c" -o "$scratch/compand_kernel.o"
cp "$example/compand_kernel.op" "$scratch/compand_kernel.op"
for description in "$example/compand.op" "$scratch/compand_kernel.op"; do
  "$prefix/bin/quernel" compile "$scratch/compand.onnx" -o "$scratch/compand.qnl" -q --custom-op "$description"
  "$scratch/custom_op/compand" "$scratch/compand.qnl" | tee "$scratch/compand.txt"
  grep -v called "$scratch/compand.txt" | while read -r line; do
    grep -qxF "$line" "$example/README.md" || fail "examples/custom_op: expected a line of its README, found: $line"
  done
done
grep -q 'called 0 times' "$scratch/compand.txt" || fail "examples/custom_op: expected the kernel to be run"

say "examples/hello_linux"
hello() {  # hello NAME CMAKE-ARGUMENTS...
  local out=$scratch/hello-$1
  cmake -S "$source/examples/hello_linux" -B "$out" -G Ninja "${@:2}" >"$out.log"
  cmake --build "$out" >>"$out.log" || fail "hello_linux: $(tail -n 20 "$out.log")"
  ctest --test-dir "$out" --verbose >"$out.txt" || fail "hello_linux: $(tail -n 20 "$out.txt")"
  grep 'this is a' "$out.txt"
}
hello native -DCMAKE_PREFIX_PATH="$prefix"
if command -v aarch64-linux-gnu-g++ >/dev/null && command -v qemu-aarch64-static >/dev/null; then
  toolchain=-DCMAKE_TOOLCHAIN_FILE=$source/toolchains/aarch64-linux-gnu.cmake
  cmake -S "$source" -B "$scratch/runtime-aarch64" -G Ninja "$toolchain" -DCMAKE_BUILD_TYPE=MinSizeRel \
    -DQUERNEL_BUILD_COMPILER=OFF -DQUERNEL_BUILD_TESTS=OFF >"$scratch/runtime-aarch64.log"
  cmake --build "$scratch/runtime-aarch64" >>"$scratch/runtime-aarch64.log"
  ! grep -i 'warning' "$scratch/runtime-aarch64.log" || fail "the runtime for AArch64: expected no warning of compiler or linker"
  cmake --install "$scratch/runtime-aarch64" --prefix "$scratch/device" >>"$scratch/runtime-aarch64.log"
  hello aarch64 "$toolchain" -DCMAKE_PREFIX_PATH="$scratch/device" -DQUERNEL_PROGRAM="$prefix/bin/quernel"
  if cmake -S "$source/examples/hello_linux" -B "$scratch/hello-mixed" -G Ninja "$toolchain" -DCMAKE_PREFIX_PATH="$prefix" \
      >"$scratch/hello-mixed.txt" 2>&1; then
    fail "expected a runtime of this machine to be refused for AArch64"
  fi
  grep -q 'this runtime was built for' "$scratch/hello-mixed.txt" || fail "expected the processors to be named: $(tail -n 9 "$scratch/hello-mixed.txt")"
else
  say "examples/hello_linux for AArch64: left out, no cross compiler or emulator (toolchains/install_debian.sh --cross)"
fi

for target in cortex-m4 cortex-m7 cortex-m33 cortex-m55 riscv32imc; do
  compiler=arm-none-eabi-gcc emulator=qemu-system-arm
  [[ $target == cortex* ]] || compiler=riscv64-unknown-elf-gcc emulator=qemu-system-riscv32
  if ! command -v "$compiler" >/dev/null || ! command -v "$emulator" >/dev/null; then
    say "examples/hello_firmware for $target: left out, no $compiler or $emulator (toolchains/install_debian.sh --cross)"
    continue
  fi
  say "examples/hello_firmware for $target"
  cmake -S "$source/examples/hello_firmware" -B "$scratch/firmware-$target" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_TOOLCHAIN_FILE="$source/toolchains/$target.cmake" >"$scratch/firmware-$target.log"
  cmake --build "$scratch/firmware-$target" >>"$scratch/firmware-$target.log"
  ctest --test-dir "$scratch/firmware-$target" --verbose >"$scratch/firmware-$target.txt" ||
    fail "hello_firmware for $target: $(tail -n 20 "$scratch/firmware-$target.txt")"
  grep -E 'right|instructions|bytes' "$scratch/firmware-$target.txt"
done

if ! /usr/bin/python3 -c 'import onnx' 2>/dev/null; then
  say "examples/language_model: left out, no python3-onnx (toolchains/install_debian.sh)"
  exit 0
fi
say "examples/language_model"
example=$source/examples/language_model story=$scratch/story
mkdir "$story"
/usr/bin/python3 -B "$source/tests/end_to_end/llama2c_checkpoint.py" "$story" --unshared --positions 24 --greedy
/usr/bin/python3 -B "$example/llama2c_to_onnx.py" "$story/model.bin" "$story/model.onnx"
"$prefix/bin/quernel" compile "$story/model.onnx" -o "$story/model.qnl" --quiet --state 'past_key_values.*=present.*' \
  --entry prefill:sequence_length=1..64 --entry decode:sequence_length=1
cmake -S "$example" -B "$scratch/language_model" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >"$scratch/language_model.log"
cmake --build "$scratch/language_model" >>"$scratch/language_model.log"
"$scratch/language_model/generate" "$story/model.qnl" --tokenizer "$story/tokenizer.bin" --tokens 24 >"$story/found.txt"
check_text() { LC_ALL=C grep -qaF -f "$2" "$3" || fail "$1: expected the text of $2, found $3"; }
check_text examples/language_model "$story/utf8.txt" "$story/found.txt"
if command -v arm-none-eabi-gcc >/dev/null && command -v qemu-system-arm >/dev/null; then
  cmake -S "$example/firmware" -B "$scratch/writer" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DMODEL="$story/model.onnx" \
    -DCMAKE_TOOLCHAIN_FILE="$source/toolchains/cortex-m7.cmake" -DVOCABULARY="$story/tokenizer.bin" >"$scratch/writer.log"
  cmake --build "$scratch/writer" >>"$scratch/writer.log"
  ctest --test-dir "$scratch/writer" --verbose >"$scratch/writer.txt" ||
    fail "examples/language_model/firmware: $(tail -n 20 "$scratch/writer.txt")"
  check_text examples/language_model/firmware "$story/text.txt" "$scratch/writer.txt"
  grep -aE 'instructions|bytes of' "$scratch/writer.txt"
fi
