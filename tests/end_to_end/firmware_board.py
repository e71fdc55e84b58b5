"""Models as firmware on emulated boards: writes the program, builds it with the toolchain file, runs it."""
import os
import re
import shutil
import subprocess

import static_form
from tools import ROOT

# What the program does beside calling the model: memory is painted, and everything that the model may write to lies
# between guards.
PROGRAM = r"""
#include "board.h"
#include "model.h"

enum { kGuard = 64, kPaint = 0xA5, kGap = 256 };

static void paint(uint8_t* block, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes + 2 * kGuard; ++i) ((volatile uint8_t*)block)[i] = kPaint;
}
/* Bytes up to the last one that is not painted; dies of a guard that is not. */
static uint32_t used(const uint8_t* block, uint32_t bytes) {
  uint32_t last = 0;
  for (uint32_t i = 0; i < bytes + 2 * kGuard; ++i) {
    if (block[i] == kPaint) continue;
    last = i - kGuard + 1;
    if (i >= kGuard && i < kGuard + bytes) continue;
    board_print("wrote beside a block\n");
    board_exit(1);
  }
  return last;
}
static void print_line(const char* name, uint64_t number, uint64_t most) {
  board_print(name);
  board_print(" ");
  board_print_number(number);
  board_print(" ");
  board_print_number(most);
  board_print("\n");
}

static model_memory memory;
static model_inputs inputs;
static model_outputs outputs;
static const void* frame; /* below which the model's stack lies */

/* What board_instructions leaves on the stack is not the model's: it lies in the gap. */
static __attribute__((noinline)) int32_t run_below_a_gap(void) {
  uint8_t gap[kGap];
  frame = board_stack_pointer();
  int32_t code = model_run(&memory, &inputs, &outputs);
  __asm__ volatile("" : : "r"(gap) : "memory"); /* which is there until now */
  return code;
}

%(blocks)s
int main(void) {
%(prepare)s
  board_paint_stack();
  uint64_t begin = board_instructions();
  int32_t code = run_below_a_gap();
  uint64_t instructions = board_instructions() - begin;
  print_line("stack", board_stack_used(frame), MODEL_STACK_BYTES);
  print_line("instructions", instructions, board_instruction_step);
  if (code != MODEL_OK) return 1;
%(finish)s
  return 0;
}
"""


def write_program(folder):
    """-> (inputs, outputs); program.c beside model.h"""
    with open(os.path.join(folder, "model.h")) as f:
        header = f.read()
    inputs, outputs = static_form.tensors(header, "model", "input"), static_form.tensors(header, "model", "output")
    blocks, prepare, finish = [], [], []

    def block(name, size):
        blocks.append(f"static uint8_t {name}[{size} + 2 * kGuard] __attribute__((aligned(64)));")
        prepare.append(f"  paint({name}, {size});")

    for index, t in enumerate(inputs):
        block(f"in{index}", t.bytes)
        prepare.append(f"  if (board_read_file(\"in{index}.raw\", 0, in{index} + kGuard, {t.bytes}) != {t.bytes}) return 1;")
        prepare.append(f"  inputs.{t.identifier} = (const void*)(in{index} + kGuard);")
        finish.append(f"  used(in{index}, {t.bytes});")
    for index, t in enumerate(outputs):
        block(f"out{index}", t.bytes)
        prepare.append(f"  outputs.{t.identifier} = (void*)(out{index} + kGuard);")
        finish.append(f"  used(out{index}, {t.bytes});")
        finish.append(f"  if (board_write_file(\"out{index}.raw\", out{index} + kGuard, {t.bytes}) != {t.bytes}) return 1;")
        if hasattr(t, "shape_identifier"):
            prepare.append(f"  int64_t shape{index}[8];\n  outputs.{t.shape_identifier} = shape{index};")
    for member, size in re.findall(r"^  void\* (\w+); /\* (\w+_BYTES)", header, re.M):
        block(member, size)
        prepare.append(f"  memory.{member} = {member} + kGuard;")
        finish.append(f"  print_line(\"{member}\", used({member}, {size}), {size});")
    if "model_reset(" in header:
        prepare.append("  model_reset(&memory);")
    with open(os.path.join(folder, "program.c"), "w") as f:
        f.write(PROGRAM % dict(blocks="\n".join(blocks), prepare="\n".join(prepare), finish="\n".join(finish)))
    return inputs, outputs


class Board:
    """A build folder for one program after another; not to be used by two threads at once."""

    def __init__(self, target, folder):
        self.case, self.build = os.path.join(folder, "case"), os.path.join(folder, "build")
        os.makedirs(self.case)
        for name in ("program.c", "model.a"):
            open(os.path.join(self.case, name), "w").close()
        self._run(["cmake", "-S", os.path.join(ROOT, "tests/end_to_end/firmware"), "-B", self.build, "-G", "Ninja",
                   "-DCMAKE_TOOLCHAIN_FILE=" + os.path.join(ROOT, "toolchains", target + ".cmake"), "-DCASE_DIR=" + self.case])
        with open(os.path.join(self.build, "emulator.txt")) as f:
            self.emulator = f.read().split(";")

    @staticmethod
    def is_there(target):
        compiler, emulator = ("riscv64-unknown-elf-gcc", "qemu-system-riscv32") if target.startswith("riscv") else (
            "arm-none-eabi-gcc", "qemu-system-arm")
        return shutil.which(compiler) and shutil.which(emulator)

    @staticmethod
    def _run(command, **how):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL, **how)
        assert done.returncode == 0, f"exit {done.returncode}: {done.stdout[-2000:]}"
        return done.stdout

    def run_program(self):
        """Builds and runs what is in `case`. -> what the program prints, by the first word: lists of numbers"""
        self._run(["cmake", "--build", self.build])
        text = self._run([*self.emulator, os.path.join(self.build, "program")], cwd=self.case, timeout=600)
        return {line.split()[0]: [int(word) for word in line.split()[1:]] for line in text.splitlines()}
