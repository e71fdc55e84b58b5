#!/usr/bin/env python3
"""quernel compile --emit c: files, strict C99 at every level of optimisation, no library, other processors, what is refused."""
import json
import os
import re
import shutil
import subprocess
import unittest

import onnx_file
from tools import DIGITS, ToolTest, clang

STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off"]
FILES = ["digits.c", "digits_weights.c", "digits_memory.c"]
ARM = "arm-none-eabi-gcc"
# Firmware targets, and how each compiler is told of them.
BARE_METAL = {
    "cortex-m0plus": ["--target=arm-none-eabi", "-mcpu=cortex-m0plus"],
    "cortex-m3": ["--target=arm-none-eabi", "-mcpu=cortex-m3"],
    "cortex-m23": ["--target=arm-none-eabi", "-mcpu=cortex-m23"],
    "cortex-m4": ["--target=arm-none-eabi", "-mcpu=cortex-m4", "-mfloat-abi=hard"],
    "cortex-m4+nofp": ["--target=arm-none-eabi", "-mcpu=cortex-m4+nofp", "-mfloat-abi=soft"],
    "cortex-m33": ["--target=arm-none-eabi", "-mcpu=cortex-m33", "-mfloat-abi=hard"],
    "cortex-m55": ["--target=arm-none-eabi", "-mcpu=cortex-m55", "-mfloat-abi=hard"],
    "riscv32imc": ["--target=riscv32-unknown-elf", "-march=rv32imc", "-mabi=ilp32"],
    "riscv32imafc": ["--target=riscv32-unknown-elf", "-march=rv32imafc", "-mabi=ilp32f"],
}
# Of a platform's ABI, in libgcc and compiler-rt.
COMPILER_HELPER = re.compile(r"__aeabi_\w+|__\w+[sdt][if][23]?")
NO_CLANG = "no clang-22 and no clang: toolchains/install_debian.sh --test installs it"


def comparisons_model():
    """Operands joined along an inner axis, and a gather: conditions of one comparison, which clang wants in one pair of parentheses."""
    nodes = [onnx_file.node("Concat", ["x", "y", "z"], ["xyz"], attributes=[onnx_file.int_attribute("axis", 1)]), onnx_file.node("Exp", ["xyz"], ["out"])]
    values = [onnx_file.value(name, onnx_file.FLOAT, [3, columns]) for name, columns in (("x", 2), ("y", 1), ("z", 4), ("out", 7))]
    return onnx_file.model(nodes, values[:3], values[3:])


class CFiles(ToolTest):
    def compile_c(self, *arguments):
        return self.succeeds("quernel", "compile", *arguments, "--emit", "c")

    def command(self, *command):
        done = subprocess.run(command, cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, f"{command}: {done.stdout}")
        return done.stdout

    def undefined(self, program, objects):
        """Symbols that the objects need and do not have."""
        defined, wanted = set(), set()
        for line in self.command(program, *objects).splitlines():
            words = line.split()
            if len(words) >= 2 and words[-2].isupper() | (words[-2] in "bdrt"):
                (wanted if words[-2] == "U" else defined).add(words[-1])
        return wanted - defined

    def test_four_files_and_a_report(self):
        report = json.loads(self.compile_c(DIGITS, "-o", "digits", "--target", "x86-64", "--json"))
        self.assertEqual(report["static"]["files"], ["digits.c", "digits.h", "digits_weights.c", "digits_memory.c"])
        text = self.compile_c(DIGITS, "-o", "digits", "--target", "x86-64")
        for word in ("digits.c", "constants", "kernels", "RAM", "workspace"):
            self.assertIn(word, text)

    def test_same_input_same_bytes(self):
        for folder, threads in (("a", "1"), ("b", "3")):
            os.mkdir(self.path(folder))
            self.compile_c(DIGITS, "-o", folder + "/digits", "--threads", threads)
        for name in [*FILES, "digits.h"]:
            self.assertTrue(self.read("a/" + name) == self.read("b/" + name), name)

    def test_without_a_target_it_is_for_any_machine(self):
        """Neither fused multiply-add nor long vectors are asked for, whatever this machine has."""
        for folder, target in (("any", ()), ("least", ("--target", "x86-64"))):
            os.mkdir(self.path(folder))
            self.compile_c(DIGITS, "-o", folder + "/digits", *target)
        for name in [*FILES, "digits.h"]:
            self.assertEqual(self.read("any/" + name), self.read("least/" + name), name)

    def test_fused_multiply_add_by_the_macros_of_each_compiler(self):
        """GCC says __FP_FAST_FMAF for it, clang __FMA__ or __ARM_FEATURE_FMA: each will do, and without all the file refuses."""
        self.compile_c(DIGITS, "-o", "digits", "--target", "x86-64-v3")
        none = ["-U__FP_FAST_FMAF", "-U__FP_FAST_FMA", "-U__FMA__"]
        for defined, compiles in (([], True), ([*none, "-D__FMA__=1"], True), ([*none, "-D__ARM_FEATURE_FMA=1", "-D__ARM_FP=14"], True),
                                  ([*none, "-D__riscv_flen=64"], True), (none, False)):
            done = subprocess.run(["gcc", "-std=c99", "-mavx2", "-mfma", "-ffp-contract=off", *defined, "-c", "digits.c"], cwd=self.dir,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertEqual(done.returncode == 0, compiles, done.stdout)

    @unittest.skipUnless(clang(), NO_CLANG)
    def test_clang_here(self):
        """Strict, without a call of a library, fused multiply-adds included."""
        for target, flags in (("x86-64", ["-O0"]), ("x86-64-v3", ["-O2", "-mavx2", "-mfma"])):
            self.compile_c(DIGITS, "-o", "digits", "--target", target)
            self.command(clang(), *STRICT, *flags, "-ffreestanding", "-c", *FILES)
            self.assertEqual(self.undefined("nm", ["digits.o", "digits_weights.o", "digits_memory.o"]), set(), target)

    @unittest.skipUnless(clang(), NO_CLANG)
    def test_clang_for_bare_metal(self):
        self.write("less.onnx", comparisons_model())
        list_symbols = os.path.join(os.path.dirname(os.path.realpath(clang())), "llvm-nm")
        for target, flags in BARE_METAL.items():
            for model, files in ((DIGITS, FILES), ("less.onnx", ["digits.c", "digits_memory.c"])):
                self.compile_c(model, "-o", "digits", "--target", target)
                self.command(clang(), *STRICT, *flags, "-Os", "-ffreestanding", "-c", *files)
                needed = self.undefined(list_symbols, [name[:-1] + "o" for name in files])
                self.assertEqual([name for name in needed if not COMPILER_HELPER.fullmatch(name)], [], target)

    def test_strict_c_without_a_library(self):
        self.compile_c(DIGITS, "-o", "digits", "--target", "x86-64")
        for level in ("-O0", "-O2", "-O3", "-Os"):
            self.command("gcc", *STRICT, level, "-ffreestanding", "-fno-tree-loop-distribute-patterns", "-c", *FILES)
            self.assertEqual(self.undefined("nm", ["digits.o", "digits_weights.o", "digits_memory.o"]), set(), level)

    @unittest.skipUnless(shutil.which(ARM), f"no {ARM}")
    def test_cortex_m(self):
        for target, flags in (("cortex-m4", ["-mcpu=cortex-m4", "-mfloat-abi=hard"]), ("cortex-m0plus", ["-mcpu=cortex-m0plus"])):
            self.compile_c(DIGITS, "-o", "digits", "--target", target)
            for level in ("-O2", "-Os"):
                self.command(ARM, *STRICT, "-mthumb", *flags, level, "-fno-tree-loop-distribute-patterns", "-c", *FILES)
                needed = self.undefined("arm-none-eabi-nm", ["digits.o", "digits_weights.o", "digits_memory.o"])
                # The helpers of the platform's ABI, which every compiler brings.
                self.assertEqual([name for name in needed if not name.startswith("__aeabi_")], [], (target, level))

    def estimates(self):
        header = self.read("digits.h").decode()
        self.assertNotIn("DIGITS_STACK_BYTES", header)
        self.assertIn("what quernel's machine code for", header)
        return {name: int(number) for name, number in re.findall(r"#define DIGITS_(STACK_ESTIMATE|CODE_ESTIMATE|WORKSPACE)_BYTES (\d+)", header)}

    def test_stack_and_code_are_estimates_by_machine_code(self):
        """C is somebody else's to compile: the header says so, and what the numbers are of."""
        report = json.loads(self.compile_c(DIGITS, "-o", "digits", "--target", "cortex-m4", "--json"))["static"]
        found = self.estimates()
        self.succeeds("quernel", "compile", DIGITS, "-o", "digits", "--target", "cortex-m4", "--emit", "static")
        known = {name: int(number) for name, number in re.findall(r"#define DIGITS_(STACK|CODE)_BYTES (\d+)", self.read("digits.h").decode())}
        self.assertEqual(found["CODE_ESTIMATE"], known["CODE"])
        self.assertGreaterEqual(found["STACK_ESTIMATE"], known["STACK"])
        self.assertEqual((report["estimated"], report["stack_bytes"]), (True, found["STACK_ESTIMATE"]))

    def test_arrays_in_c_are_counted(self):
        """Elements of vectors are arrays in C, which machine code has in registers."""
        values = [onnx_file.value(name, onnx_file.FLOAT, shape) for name, shape in (("x", [8, 1024]), ("y", [8, 1]))]
        self.write("sum.onnx", onnx_file.model([onnx_file.node("ReduceL2", ["x"], ["y"], attributes=[onnx_file.ints_attribute("axes", [1])])],
                                               values[:1], values[1:]))
        self.compile_c("sum.onnx", "-o", "digits", "--target", "x86-64-v4")
        arrays = [int(count) for count in re.findall(r"^ +float \w+\[(\d+)\];", self.read("digits.c").decode(), re.M)]
        self.assertGreaterEqual(self.estimates()["STACK_ESTIMATE"], 4 * max(arrays))

    def test_any_machine_has_c_only(self):
        text = self.succeeds("quernel", "compile", DIGITS, "-o", "digits", "--target", "generic-c")
        self.assertIn("digits.c\n", text)
        self.assertIn("and the code, of which the C compiler decides", text)
        self.command("gcc", *STRICT, "-O2", "-c", "digits.c")
        for form in ("bundle", "static"):
            self.fails("quernel", "compile", DIGITS, "-o", "digits", "--target", "generic-c", "--emit", form, says=[
                "target 'generic-c': there is no machine code for it, only C", "compile with --emit=c, or name the machine's target"])
        self.fails("quernel", "test", DIGITS, "--target", "generic-c", says=[
            "target 'generic-c': there is no machine code for it to be run", "name a target with a board, such as cortex-m4"])
        self.assertIn("generic-c: any machine with a C compiler", self.succeeds("quernel", "targets"))

    def test_ram_limit_counts_the_stack(self):
        both = ("quernel", "compile", DIGITS, "-o", "digits", "--target", "cortex-m4", "--emit", "c")
        self.succeeds(*both)
        found = self.estimates()
        needed = found["WORKSPACE"] + found["STACK_ESTIMATE"]
        self.succeeds(*both, "--max-ram", str(needed))
        self.fails(*both, "--max-ram", "1K", lines=None, says=[
            "expected at most 1024 bytes of RAM, found a need of ", "states 0, stack ", " (estimated)"])

    @unittest.skipUnless(shutil.which(ARM), f"no {ARM}")
    def test_compilers_take_about_the_stack_of_the_estimate(self):
        self.compile_c(DIGITS, "-o", "digits", "--target", "cortex-m4")
        for level in ("-Os", "-O2"):
            self.command(ARM, *STRICT, "-mthumb", "-mcpu=cortex-m4", "-mfloat-abi=hard", level, "-fstack-usage", "-c", "digits.c")
            frames = [int(line.split("\t")[1]) for line in self.read("digits.su").decode().splitlines()]
            # The run function, a kernel and a function that it calls.
            self.assertLessEqual(sum(sorted(frames)[-3:]), self.estimates()["STACK_ESTIMATE"] + 128, level)

    def test_indices_have_32_bits(self):
        """Tails of tiles, offsets of rows and joined operands: nothing of them needs 64 bits, which 32-bit processors compute in two words."""
        shapes = {"x": [7, 50], "w": [50, 13], "product": [7, 13], "image": [1, 3, 17, 17], "kernels": [5, 3, 3, 3], "convolved": [1, 5, 15, 15],
                  "pooled": [1, 5, 7, 7], "joined": [7, 63]}
        nodes = [onnx_file.node("MatMul", ["x", "w"], ["product"]), onnx_file.node("Conv", ["image", "kernels"], ["convolved"]),
                 onnx_file.node("MaxPool", ["convolved"], ["pooled"], attributes=[
                     onnx_file.ints_attribute("kernel_shape", [3, 3]), onnx_file.ints_attribute("strides", [2, 2])]),
                 onnx_file.node("Concat", ["product", "x"], ["joined"], attributes=[onnx_file.int_attribute("axis", 1)])]
        values = {name: onnx_file.value(name, onnx_file.FLOAT, shape) for name, shape in shapes.items()}
        self.write("model.onnx", onnx_file.model(nodes, [values[n] for n in ("x", "w", "image", "kernels")],
                                                 [values[n] for n in ("product", "pooled", "joined")]))
        for target in ("cortex-m4", "cortex-m0plus", "riscv32imc", "x86-64"):
            self.compile_c("model.onnx", "-o", "digits", "--target", target)
            self.assertEqual([line for line in self.read("digits.c").decode().splitlines() if "int64_t" in line], [], target)

    def test_fast_math_and_missing_instructions_are_errors(self):
        self.compile_c(DIGITS, "-o", "digits", "--target", "x86-64-v3")
        for flags, says in ((["-Ofast", "-mfma"], "fast-math changes results"), (["-O2"], "QNL_FMA_F32(a, b, c)")):
            done = subprocess.run(["gcc", "-std=c99", *flags, "-c", "digits.c"], cwd=self.dir, stderr=subprocess.PIPE, text=True)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(says, done.stderr)
        self.command("gcc", *STRICT, "-O2", "-DQNL_FMA_F32(a,b,c)=__builtin_fmaf(a,b,c)", "-c", "digits.c")

    def test_states_and_entry_points(self):
        nodes = [onnx_file.node("Add", ["s", "x"], ["next"]), onnx_file.node("Neg", ["next"], ["y"])]
        values = [onnx_file.value(name, onnx_file.FLOAT, ["n"]) for name in ("x", "s", "y", "next")]
        self.write("counter.onnx", onnx_file.model(nodes, values[:2], values[2:]))
        self.write("first.npy", onnx_file.npy([2], "f", [10.0, 20.0]))
        self.compile_c("counter.onnx", "-o", "counter", "--target", "x86-64", "--state", "s=next", "--input-value",
                       "s=first.npy", "--dim", "n=2")
        self.write("main.c", b"""#include <stdio.h>
#include "counter.h"
int main(void) {
  float x[2] = {1, 2}, y[2] = {0, 0};
  counter_inputs inputs = {x};
  counter_outputs outputs = {y};
  for (int i = 0; i < 2; ++i) {
    counter_reset(&counter_static_memory);
    for (int run = 0; run < 2; ++run)
      if (counter_run(&counter_static_memory, &inputs, &outputs) != COUNTER_OK) return 1;
    printf("%g %g ", y[0], y[1]);
  }
  return 0;
}
""")
        self.command("gcc", *STRICT, "-O2", "main.c", "counter.c", "counter_memory.c", "-o", "program")
        self.assertEqual(self.command("./program").split(), ["-12", "-24"] * 2)

    def test_what_is_refused(self):
        both = ("quernel", "compile", DIGITS, "--emit", "c")
        self.fails(*both, "-o", "digits", "--target", "x86-64", "--target", "x86-64-v3", says=["expected one target for C files, found 2"])
        os.mkdir(self.path("taken.h"))
        self.fails(*both, "-o", "taken", says=["taken.h"])
        self.assertFalse(os.path.exists(self.path("taken.c")))


if __name__ == "__main__":
    unittest.main()
