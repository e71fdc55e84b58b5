#!/usr/bin/env python3
"""What the shaders of a Vulkan variant execute and move: counts of their SPIR-V, weighted by the trips of the loops.

shader_counts.py [--bin build/release/bin] [--target vulkan] [--device-profile P] [--trips N] [--subgroup N] [--json FILE] MODEL…

MODEL is what `quernel compile` reads, or a folder of *.spvasm that `--dump-dir` left. Counted is one invocation that takes every
branch. A load is uniform where its address does not depend on the invocation: a workgroup needs its bytes once. Loops whose trips only
a run tells count as --trips (1), and their kernels are marked `?`; a loop over a workgroup's subgroups goes by --subgroup, the
invocations of one (32). Registers are 32-bit words of the function's variables: an upper
bound for what is alive at once, before the driver's compiler."""
import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FREE = {"OpLabel", "OpLoopMerge", "OpSelectionMerge", "OpVariable", "OpFunction", "OpFunctionEnd", "OpAccessChain",
        "OpInBoundsAccessChain", "OpReturn", "OpBitcast", "OpUndef", "OpCompositeExtract", "OpCompositeConstruct",
        "OpCopyObject", "OpFunctionParameter", "OpUnreachable", "OpReturnValue", "OpLine", "OpNoLine"}
FLOPS = {"OpFAdd", "OpFSub", "OpFMul", "OpFDiv"}


class Module:
    """The instructions of a module in text form, with what types, constants and names say."""

    def __init__(self, text):
        self.code, self.constants, self.bits, self.pointers, self.arrays = [], {}, {}, {}, {}
        self.pointer_of, self.builtin, self.local_size, self.subgroups = {}, set(), 1, set()
        for line in text.splitlines():
            line = line.split(";")[0].strip()
            if not line:
                continue
            result, _, rest = line.partition(" = ") if " = " in line else ("", "", line)
            words = rest.split()
            self.declare(result.strip(), words)
            self.code.append((result.strip(), words[0], words[1:]))

    def declare(self, result, words):
        op = words[0]
        if op == "OpConstant" and re.fullmatch(r"-?\d+", words[2]):
            self.constants[result] = int(words[2])
        elif op in ("OpTypeInt", "OpTypeFloat"):
            self.bits[result] = int(words[1])
        elif op == "OpTypeBool":
            self.bits[result] = 32
        elif op == "OpTypeVector":
            self.bits[result] = self.bits.get(words[1], 32) * int(words[2])
        elif op == "OpTypePointer":
            self.pointers[result] = (words[1], words[2])
        elif op == "OpTypeArray":
            self.arrays[result] = (words[1], words[2])
        elif op == "OpDecorate" and len(words) > 3 and words[2] == "BuiltIn":
            if words[3] in ("LocalInvocationIndex", "SubgroupId"):
                self.builtin.add(words[1])
            elif words[3] == "NumSubgroups":
                self.subgroups.add(words[1])
        elif op in ("OpLoad", "OpBitcast") and words[2] in self.subgroups:
            self.subgroups.add(result)
        elif op == "OpExecutionMode" and words[2] == "LocalSize":
            self.local_size = int(words[3])
        if op in ("OpVariable", "OpAccessChain", "OpInBoundsAccessChain", "OpFunctionParameter"):
            self.pointer_of[result] = self.pointers.get(words[1], ("", ""))

    def words(self, type_name):
        """32-bit words of a type."""
        if type_name in self.arrays:
            element, count = self.arrays[type_name]
            return self.words(element) * self.constants.get(count, 1)
        return max(1, self.bits.get(type_name, 32) // 32)

    def per_invocation(self):
        """Results and variables that differ between invocations."""
        varies = set(self.builtin)
        while True:
            before = len(varies)
            for result, op, args in self.code:
                if op == "OpStore" and any(a in varies for a in args):
                    base = self.base_of(args[0])
                    if self.pointer_of.get(base, ("",))[0] in ("Function", "Private"):
                        varies.update((base, args[0]))
                elif op == "OpLoad":
                    if args[1] in varies or self.base_of(args[1]) in varies:
                        varies.add(result)
                elif result and op not in ("OpLabel", "OpVariable") and any(a in varies for a in args):
                    varies.add(result)
            if len(varies) == before:
                return varies

    def base_of(self, pointer):
        return self.bases().get(pointer, pointer)

    def bases(self):
        if not hasattr(self, "_bases"):
            self._bases = {r: a[1] for r, op, a in self.code if op in ("OpAccessChain", "OpInBoundsAccessChain")}
        return self._bases


def count(text, unknown_trips, subgroup):
    module = Module(text)
    varies = module.per_invocation()
    result = {"workgroup": module.local_size, "fma": 0, "flops": 0, "instructions": 0, "loads": 0, "load_bytes": 0,
              "group_load_bytes": 0, "store_bytes": 0, "shared_loads": 0, "shared_stores": 0, "barriers": 0,
              "subgroup_operations": 0, "registers": 0, "exact": True}
    functions, function, main = {}, None, None
    for instruction in module.code:
        result_id, op, args = instruction
        if op == "OpEntryPoint":
            main = args[1]
        if op == "OpFunction":
            function = functions.setdefault(result_id, [])
        if function is not None:
            function.append(instruction)

    def walk(name, weight):
        open_loops, code = [], functions[name]
        for at, (result_id, op, args) in enumerate(code):
            if op == "OpLabel":
                while open_loops and open_loops[-1][0] == result_id:
                    weight = open_loops.pop()[1]
            if op == "OpLoopMerge":
                open_loops.append((args[0], weight))
                weight *= trips(code, at)
            if op == "OpFunctionCall":
                walk(args[1], weight)
                continue
            if op == "OpVariable" and args[1] == "Function":
                result["registers"] += module.words(module.pointers[args[0]][1])
            tally(op, args, weight)

    def trips(code, at):
        for _, op, args in code[at:]:
            if op in ("OpSLessThan", "OpULessThan"):
                if args[2] in module.constants:
                    return module.constants[args[2]]
                if args[2] in module.subgroups:  # from the second one on
                    return -(-module.local_size // subgroup) - 1
                break
            if op == "OpBranchConditional":
                break
        result["exact"] = False
        return unknown_trips

    def tally(op, args, weight):
        if op in ("OpLoad", "OpStore"):
            pointer = args[1] if op == "OpLoad" else args[0]
            scope, type_name = module.pointer_of.get(pointer, ("", ""))
            size = module.bits.get(type_name, 32) // 8
            if scope in ("Uniform", "StorageBuffer"):
                if op == "OpLoad":
                    result["loads"] += weight
                    result["load_bytes"] += weight * size
                    result["group_load_bytes"] += weight * size * (module.local_size if pointer in varies else 1)
                else:
                    result["store_bytes"] += weight * size
            elif scope == "Workgroup":
                result["shared_loads" if op == "OpLoad" else "shared_stores"] += weight
            else:
                return
        elif op == "OpControlBarrier":
            result["barriers"] += weight
        elif op.startswith("OpGroupNonUniform") and op != "OpGroupNonUniformElect":
            result["subgroup_operations"] += weight
        elif op == "OpExtInst" and args[2] == "Fma":
            result["fma"] += weight
            result["flops"] += 2 * weight
        elif op in FLOPS:
            result["flops"] += weight
        if op not in FREE:
            result["instructions"] += weight

    walk(main, 1)
    return result


def shaders(model, arguments):
    if os.path.isdir(model):
        return sorted(glob.glob(f"{model}/**/*.spvasm", recursive=True)), None
    folder = tempfile.TemporaryDirectory()
    command = [os.path.join(arguments.bin, "quernel"), "compile", model, "--target", arguments.target, "-o",
               os.path.join(folder.name, "model.qnl"), "--dump-dir", folder.name]
    if arguments.device_profile:
        command += ["--device-profile", arguments.device_profile]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"shader_counts: {' '.join(command)}: exit {done.returncode}\n{done.stdout[-3000:]}")
    return sorted(glob.glob(f"{folder.name}/**/*.spvasm", recursive=True)), folder


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(ROOT, "build/release/bin"))
    parser.add_argument("--target", default="vulkan")
    parser.add_argument("--device-profile")
    parser.add_argument("--trips", type=int, default=1)
    parser.add_argument("--subgroup", type=int, default=32)
    parser.add_argument("--json")
    parser.add_argument("models", nargs="+", metavar="MODEL")
    arguments = parser.parse_args()
    columns = ["kernel", "FMAs", "instructions an FMA", "buffer loads", "FMAs a buffer load", "workgroup loads",
               "workgroup stores", "subgroup operations", "bytes stored", "barriers", "flops a byte, invocation", "flops a byte, workgroup",
               "registers"]
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    rows = []
    for model in arguments.models:
        files, folder = shaders(model, arguments)
        if not files:
            sys.exit(f"shader_counts: {model}: expected shaders, found none: was it compiled for a GPU?")
        for path in files:
            with open(path, encoding="utf-8") as file:
                c = count(file.read(), arguments.trips, arguments.subgroup)
            name = os.path.splitext(os.path.basename(model.rstrip("/")))[0]
            c["kernel"] = f"{name} {os.path.splitext(os.path.basename(path))[0]}"
            rows.append(c)

            def ratio(x, y):
                return f"{x / y:.2f}" if y else "-"
            cells = [c["kernel"] + ("" if c["exact"] else " ?"), f"{c['fma']:,}", ratio(c["instructions"], c["fma"]),
                     f"{c['loads']:,}", ratio(c["fma"], c["loads"]), f"{c['shared_loads']:,}", f"{c['shared_stores']:,}",
                     f"{c['subgroup_operations']:,}", f"{c['store_bytes']:,}", f"{c['barriers']:,}", ratio(c["flops"], c["load_bytes"]),
                     ratio(c["flops"] * c["workgroup"], c["group_load_bytes"]), f"{c['registers']:,}"]
            print(f"| {' | '.join(cells)} |")
            sys.stdout.flush()
        if folder:
            folder.cleanup()
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
