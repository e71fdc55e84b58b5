#!/usr/bin/env python3
"""C of MLPerf Tiny's int8 models on emulated boards, where the compiler has the board's instructions: the stored bytes. tests/bench/tiny.py
counts instructions with it.

c_on_boards.py [--targets NAME,NAME…] [--models kws,ic…] [--compilers gcc,clang] [--level -O2]"""
import argparse
import os
import re
import shutil
import subprocess
import tempfile

import static_form
from tools import clang, skip, test_data, tool

# What test_main.c wants to know of a model; the same as `quernel test` writes.
CASE = """#include "model.h"
#define INPUTS(EACH) {inputs}
#define OUTPUTS(EACH) {outputs}
#define INNER_INPUTS(EACH)
#define INNER_OUTPUTS(EACH)
#define SHAPES(EACH)
#define MEMORY(EACH) {memory}
#define RESET() {reset}
#define MODEL_STACK_BYTES MODEL_STACK_ESTIMATE_BYTES
"""
# clang's triple for a toolchain file's compiler.
CLANG_TRIPLES = {"arm-none-eabi-gcc": "arm-none-eabi", "riscv64-unknown-elf-gcc": "riscv32-unknown-elf"}


def run(command, **how):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **how)
    assert done.returncode == 0, f"{' '.join(command)}: exit {done.returncode}\n{done.stdout[-4000:]}"
    return done.stdout


class Board:
    """Of a target: its code as objects, the compiler's words and the emulator's, as `quernel test` has them."""

    def __init__(self, target, folder):
        share = os.path.join(os.path.dirname(os.path.dirname(tool("quernel"))), "share/quernel/firmware")
        run(["cmake", "-S", share, "-B", folder, f"-DCMAKE_TOOLCHAIN_FILE={share}/toolchains/{target}.cmake"])
        run(["cmake", "--build", folder])
        self.main = os.path.join(share, "test_main.c")
        self.words, self.emulator = ([line for line in open(os.path.join(folder, name)).read().splitlines() if line]
                                     for name in ("build.txt", "emulator.txt"))

    def compiler(self, name):
        """-> the words that compile for this core; `name`: gcc or clang"""
        cpu = [word for word in self.words[1:self.words.index("-Os")] if word.startswith(("-m", "-ffreestanding"))]
        if name == "gcc":
            return [self.words[0], *cpu]
        # Both are about where code lies, which clang needs no word for.
        cpu = [word for word in cpu if not word.startswith("-mcmodel")]
        return [clang() or "clang", f"--target={CLANG_TRIPLES[os.path.basename(self.words[0])]}", *cpu]

    def link(self, parts, folder):
        """-> the program of the model's object files, beside case.h"""
        words = []
        for word in self.words:
            words += [word] if word != "@model@" else ["-I" + folder, self.main, *parts, "-o", os.path.join(folder, "program")]
        run(words)
        return os.path.join(folder, "program")


def compile_c(model, target, folder, flags=()):
    """model.c and what belongs to it, for a batch of 1"""
    command = [tool("quernel"), "compile", model, "--target", target, "--emit", "c", "-q", "-o", os.path.join(folder, "model"), *flags]
    free = re.search(r"found the free dim '(.+?)'", subprocess.run(command, stderr=subprocess.PIPE, text=True).stderr)
    if free:
        run([*command, "--dim", f"{free.group(1)}=1"])


def count(board, folder, data, compiler, level):
    """-> (instructions, bytes of code) of the C in `folder`, whose outputs on `data` are those stored there; `level`: -O2"""
    with open(os.path.join(folder, "model.h")) as f:
        header = f.read()
    inputs, outputs = static_form.tensors(header, "model", "input"), static_form.tensors(header, "model", "output")
    each = lambda tensors: " ".join(f"EACH({i}, {t.identifier}, {t.bytes})" for i, t in enumerate(tensors))
    memory = " ".join(f"EACH({name}, {macro}_BYTES)" for name, macro in re.findall(r"^  void\* (\w+); /\* (\w+)_BYTES", header, re.M))
    with open(os.path.join(folder, "case.h"), "w") as f:
        f.write(CASE.format(inputs=each(inputs), outputs=each(outputs), memory=memory,
                            reset="model_reset(&memory);" if "model_reset(" in header else ""))
    parts = []
    for name in ("model", "model_weights"):
        if os.path.exists(os.path.join(folder, name + ".c")):
            parts.append(os.path.join(folder, name + ".o"))
            run([*board.compiler(compiler), "-std=c99", level, "-pedantic", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-c", os.path.join(folder, name + ".c"),
                 "-o", parts[-1]])
    program = board.link(parts, folder)
    with open(os.path.join(folder, "earlier.raw"), "wb") as f:
        f.write(bytes(4))
    for index in range(len(inputs)):
        with open(os.path.join(folder, f"input_{index}.raw"), "wb") as f:
            f.write(static_form.tensor_proto(os.path.join(data, f"input_{index}.pb"))[1])
    said = run([*board.emulator, program], cwd=folder, timeout=600)
    for index in range(len(outputs)):
        expected = static_form.tensor_proto(os.path.join(data, f"output_{index}.pb"))[1]
        with open(os.path.join(folder, f"output_{index}.raw"), "rb") as f:
            assert f.read() == expected, f"output {index} differs from the stored one"
    size = shutil.which(board.words[0].removesuffix("gcc") + "size")
    text = int(run([size, parts[0]]).splitlines()[1].split()[0])
    return int(re.search(r"^instructions (\d+)", said, re.M).group(1)), text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--targets", type=lambda text: text.split(","), default=["cortex-m4", "cortex-m55"])
    parser.add_argument("--models", type=lambda text: text.split(","), default=["kws"])
    parser.add_argument("--compilers", type=lambda text: text.split(","), default=["gcc", "clang"])
    parser.add_argument("--level", default="-O2")
    options = parser.parse_args()
    cases = [os.path.join(test_data(), "models_tflite", f"mlperf_{name}_int8") for name in options.models]
    needed = ["arm-none-eabi-gcc", "qemu-system-arm", "cmake", *([clang() or "clang"] if "clang" in options.compilers else [])]
    missing = [program for program in needed if not shutil.which(program)] + [case for case in cases if not os.path.isdir(case)]
    if missing:
        skip(f"no {missing[0]}")
    for target in options.targets:
        with tempfile.TemporaryDirectory(prefix="quernel-c-") as folder:
            board = Board(target, os.path.join(folder, "board"))
            for case in cases:
                compile_c(os.path.join(case, "model.tflite"), target, folder)
                for compiler in options.compilers:
                    instructions, code = count(board, folder, os.path.join(case, "test_data_set_0"), compiler, options.level)
                    print(f"{target}, {os.path.basename(case)}, {compiler} {options.level}: {instructions} instructions, {code} bytes of code")


if __name__ == "__main__":
    main()
