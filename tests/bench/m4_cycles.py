"""Modelled cycles of a Cortex-M4: a program runs in QEMU, which writes down every block of instructions that it executes, and
those inside the model's own functions are counted by a model of the pipeline.

The model, as in ARM's table of cycle counts: a load takes 2 cycles, 1 if it directly follows another load; LDM and LDRD
1 + the number of registers, as do STM, STRD, PUSH and POP; a branch that is taken 3; everything else 1. Divisions, which
take 2 to 12, count as 1. Memory has no wait states."""
import os
import re
import shutil
import stat
import subprocess
import sys

QEMU = "qemu-system-arm"
INSTRUCTION = re.compile(r"^0x([0-9a-f]+):\s+((?:[0-9a-f]{4} ?)+)\s+(\S+)\s*(.*)$")
EXECUTED = re.compile(r"^Trace \d+: \S+ \[[0-9a-f]+/([0-9a-f]+)/")
LOAD = re.compile(r"^v?ldr(?!ex)")
SEVERAL = re.compile(r"^v?(ldm|stm|ldrd|strd|push|pop)")
BRANCH = re.compile(r"^(b|bl|bx|blx|cbn?z|tbb|tbh)(?:\.[nw])?$|^b(eq|ne|hs|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le|cs|cc)(?:\.[nw])?$")


def registers_of(operands):
    """How many registers a list {r0, r4-r7} names."""
    count = 0
    for part in re.search(r"\{(.*?)\}", operands).group(1).split(","):
        ends = re.findall(r"(\d+)\s*-\s*[a-z]+(\d+)", part)
        count += int(ends[0][1]) - int(ends[0][0]) + 1 if ends else 1
    return count


class Block:
    """Instructions that run one after another."""

    def __init__(self):
        self.cycles, self.instructions, self.end, self.branches = 0, 0, 0, False
        self.after_load = False

    def add(self, address, size, mnemonic, operands):
        name = mnemonic.split(".")[0]
        if SEVERAL.match(name):
            self.cycles += 1 + (2 if name in ("ldrd", "strd") else registers_of(operands))
        elif LOAD.match(name):
            self.cycles += 1 if self.after_load else 2
        else:
            self.cycles += 1
        self.after_load = bool(LOAD.match(name))
        self.instructions += 1
        self.end = address + size
        self.branches = bool(BRANCH.match(mnemonic)) or "pc" in operands.split(",")[0] or (name == "pop" and "pc" in operands)


def read_trace(path, is_own):
    """-> (instructions, cycles) of blocks for whose first address `is_own` holds"""
    blocks, block, first = {}, None, None
    instructions = cycles = 0
    before = None  # the block that ran last, where its end decides whether a branch was taken
    with open(path, errors="replace") as trace:
        for line in trace:
            if line.startswith("Trace"):
                address = int(EXECUTED.match(line).group(1), 16)
                if before is not None and before.branches and before.end != address:
                    cycles += 2
                before = None
                if is_own(address):
                    before = blocks.get(address)
                    if before is None:
                        sys.exit(f"tiny: QEMU ran {address:#x} and did not list it")
                    instructions += before.instructions
                    cycles += before.cycles
            elif line.startswith("IN:"):
                block, first = Block(), None
            elif block is not None and (found := INSTRUCTION.match(line)):
                address = int(found.group(1), 16)
                if first is None:
                    first = address
                    blocks[first] = block
                block.add(address, 2 * len(found.group(2).split()), found.group(3), found.group(4))
    return instructions, cycles


def own_functions(elf):
    """-> [(begin, end)] of the model's functions: kernels and the run function"""
    listed = subprocess.run(["arm-none-eabi-nm", "-S", "--defined-only", elf], check=True, stdout=subprocess.PIPE, text=True).stdout
    found = []
    for line in listed.splitlines():
        words = line.split()
        if len(words) == 4 and words[2] in "tT" and re.search(r"_(kernel_\d+|run)$", words[3]):
            begin = int(words[0], 16) & ~1
            found.append((begin, begin + int(words[1], 16)))
    if not found:
        sys.exit(f"tiny: {elf} has no functions of a model")
    return found


def wrapper(folder):
    """Makes a qemu-system-arm that traces; -> (folder for $PATH, where the trace and the program will be)"""
    real = shutil.which(QEMU)
    place = os.path.join(folder, "bin")
    trace, program = os.path.join(folder, "trace"), os.path.join(folder, "program.elf")
    os.makedirs(place, exist_ok=True)
    path = os.path.join(place, QEMU)
    with open(path, "w") as f:
        f.write(f"""#!/bin/bash
for ((i = 1; i < $#; ++i)); do
  if [[ ${{!i}} == -kernel ]]; then j=$((i + 1)); cp "${{!j}}" {program!r}; fi
done
exec {real} "$@" -d in_asm,exec,nochain -D {trace!r}
""")
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
    return place, trace, program


def count(folder, run):
    """Calls `run(environment)`, which runs a program once, and -> (instructions, cycles) of the model's functions."""
    place, trace, program = wrapper(folder)
    run({**os.environ, "PATH": f"{place}:{os.environ['PATH']}"})
    functions = own_functions(program)
    result = read_trace(trace, lambda address: any(begin <= address < end for begin, end in functions))
    os.remove(trace)
    return result
