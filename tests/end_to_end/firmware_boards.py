#!/usr/bin/env python3
"""`quernel test --on qemu` of a firmware target: what it reports of right and wrong answers, memory and instructions, what
it refuses, what it says where tools are missing."""
import glob
import json
import os
import re
import shutil
import subprocess
import unittest
import xml.etree.ElementTree

import onnx_file as onnx
import tflite_file as tflite
from tools import ToolTest, tool

VALUES = [-2.0, -1.0, 0.0, 1.0, 2.5, 8.0]
WEIGHTS = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
ON_BOARD = ("--on", "qemu", "--target", "cortex-m4")
TOOLS = shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm") and shutil.which("cmake")


@unittest.skipUnless(TOOLS, "no toolchain or emulator: toolchains/install_debian.sh --cross")
class FirmwareBoards(ToolTest):
    def case(self, name, expected, rows=2):
        folder = os.path.join(name, "test_data_set_0")
        os.makedirs(self.path(folder))
        nodes = [onnx.node("MatMul", ["x", "w"], ["product"], name="product"), onnx.node("Neg", ["product"], ["y"], name="negated")]
        self.write(name + "/model.onnx", onnx.model(nodes, [onnx.value("x", onnx.FLOAT, ["rows", 3])],
                                                   [onnx.value("y", onnx.FLOAT, ["rows", 2])],
                                                   initializers=[onnx.float_tensor("w", [3, 2], WEIGHTS)]))
        self.write(folder + "/input_0.pb", onnx.float_tensor("x", [rows, 3], VALUES[:3 * rows]))
        self.write(folder + "/output_0.pb", onnx.float_tensor("y", [rows, 2], expected))
        return name

    def test_sequences_keep_states(self):
        for name, last in ("sums", 6.0), ("other", 3.0):
            for k, y in enumerate([1.0, 3.0, last]):
                folder = f"{name}/test_data_set_{k}"
                os.makedirs(self.path(folder))
                self.write(folder + "/input_0.pb", onnx.float_tensor("x", [1], [k + 1.0]))
                self.write(folder + "/output_0.pb", onnx.float_tensor("y", [1], [y]))
            self.write(name + "/model.tflite", tflite.accumulator([1]))
            self.write(name + "/tolerance.json", b'{"sequence": true}')
        done = self.run_tool("quernel", "test", "sums", "other", *ON_BOARD)
        self.assertIn("PASS sums: 3 test vectors", done.stdout, done.stderr)
        self.assertIn("FAIL other: test_data_set_2: ", done.stdout)

    def test_verdicts_and_figures(self):
        y = self.answers()
        self.case("right", y)
        self.case("wrong", y[:3] + [7.0])
        done = self.run_tool("quernel", "test", "right", "wrong", *ON_BOARD, "--json", "report.json", "--junit", "report.xml")
        self.assertEqual((done.returncode, done.stderr), (1, ""), done.stdout)
        self.assertRegex(done.stdout, r"PASS right: 1 test vector, max abs error 0; cortex-m4, \d+ instructions, "
                                      r"[\d.]+ a multiply-add, workspace \d+ of \d+ bytes, stack \d+ of \d+ bytes\n")
        self.assertIn("FAIL wrong: test_data_set_0: output 'y': 1 of 4 elements", done.stdout)
        self.assertIn("first diverging layer: none of 2 layers is off", done.stdout)
        cases = json.loads(self.read("report.json"))["cases"]
        test = cases[0]["runs"][0]["tests"][0]
        self.assertEqual((test["passed"], test["multiply_adds"], test["target"]), (True, 2 * 3 * 2, "cortex-m4"))
        self.assertGreaterEqual(test["instructions"], test["instruction_step"])
        self.assertEqual([memory["name"] for memory in test["memory"]], ["workspace", "stack"])
        self.assertTrue(all(memory["used_bytes"] <= memory["bytes"] for memory in test["memory"]))
        suite = xml.etree.ElementTree.fromstring(self.read("report.xml"))
        self.assertEqual((suite.get("tests"), suite.get("failures")), ("2", "1"))

    @staticmethod
    def answers(rows=2):
        return [-sum(VALUES[3 * r + k] * WEIGHTS[2 * k + c] for k in range(3)) for r in range(rows) for c in range(2)]

    def test_sizes_come_from_each_data_set(self):
        self.case("model", self.answers())
        os.makedirs(self.path("model/test_data_set_1"))
        self.write("model/test_data_set_1/input_0.pb", onnx.float_tensor("x", [1, 3], VALUES[:3]))
        self.write("model/test_data_set_1/output_0.pb", onnx.float_tensor("y", [1, 2], self.answers(1)))
        self.assertIn("PASS model: 2 test vectors", self.succeeds("quernel", "test", "model", *ON_BOARD))

    def test_the_largest_value_has_to_be_the_right_one(self):
        y = self.answers()
        self.case("model", [y[1], y[0], y[3], y[2]])
        self.write("model/tolerance.json", b'{"atol": 1000}')
        self.assertIn("PASS model: ", self.succeeds("quernel", "test", "model", *ON_BOARD))
        self.write("model/tolerance.json", b'{"atol": 1000, "top1": true}')
        self.assertIn("FAIL model: ", self.run_tool("quernel", "test", "model", *ON_BOARD).stdout)

    def test_instructions_of_each_kernel(self):
        """A network whose last two convolutions share a kernel; another one copies the result. Values of a tensor are the same."""
        folder, size, channels = "network/test_data_set_0", 8, 8
        os.makedirs(self.path(folder))
        nodes, weights, y = [], [], 1.0
        for k, window in enumerate((3, 1, 1)):
            kernel_shape = onnx.ints_attribute("kernel_shape", [window, window])
            nodes.append(onnx.node("Conv", [f"x{k}", f"w{k}"], [f"x{k + 1}"], name=f"layer_{k}", attributes=[kernel_shape]))
            taps = channels * window * window
            weights.append(onnx.float_tensor(f"w{k}", [channels, channels, window, window], [(k + 1) / 64] * (channels * taps)))
            y *= taps * (k + 1) / 64
        shapes = [1, channels, size, size], [1, channels, size - 2, size - 2]
        self.write("network/model.onnx", onnx.model(nodes, [onnx.value("x0", onnx.FLOAT, shapes[0])], [onnx.value("x3", onnx.FLOAT, shapes[1])],
                                                    initializers=weights))
        self.write(folder + "/input_0.pb", onnx.float_tensor("x0", shapes[0], [1.0] * (channels * size ** 2)))
        self.write(folder + "/output_0.pb", onnx.float_tensor("x3", shapes[1], [y] * (channels * (size - 2) ** 2)))
        targets = [("cortex-m4", 40)]
        if shutil.which("riscv64-unknown-elf-gcc") and shutil.which("qemu-system-riscv32"):
            targets.append(("riscv32imafc", 1))
        for target, step in targets:
            command = ("quernel", "test", "network", "--on", "qemu", "--target", target, "--json", "report.json")
            self.succeeds(*command)
            plain = json.loads(self.read("report.json"))["cases"][0]["runs"][0]["tests"][0]
            said = self.succeeds(*command, "--per-kernel")
            test = json.loads(self.read("report.json"))["cases"][0]["runs"][0]["tests"][0]
            kernels = {kernel["node"]: kernel for kernel in test.pop("kernels")}
            self.assertEqual(test, plain)  # what the program without counters takes
            self.assertEqual({node: (kernel["calls"], kernel["nodes"]) for node, kernel in kernels.items()},
                             {"layer_0": (1, 1), "layer_1": (2, 2), "layer_2": (1, 1)}, said)
            points = channels * channels * (size - 2) ** 2
            self.assertEqual([kernels[f"layer_{k}"]["multiply_adds"] for k in range(3)], [9 * points, 2 * points, 0])
            self.assertTrue(all(kernel["instructions"] > kernel["multiply_adds"] for kernel in kernels.values()), said)
            taken = sum(kernel["instructions"] for kernel in kernels.values())
            self.assertTrue(0.8 * test["instructions"] <= taken <= test["instructions"], said)
            self.assertRegex(said, r"share instructions calls a mult-add  class +choice +kernel +first node\n"
                                   r" +[\d.]+% +\d+ +1 +[\d.]+  conv3x3 .* contract_0 +layer_0\n"
                                   r" +[\d.]+% +\d+ +2 +[\d.]+  .* contract_1 +layer_1 and 1 more\n"
                                   r" +[\d.]+% +\d+ +1 +-  map .* map_2 +layer_2\n"
                                   r"  kernels take [\d.]+% of \d+ instructions")
            self.assertEqual((test["instruction_step"], f"counts in steps of {step}," in said), (step, step > 1))

    def test_inputs_and_outputs_inside_the_workspace(self):
        """The workspace that the board measures holds them, within what the header says."""
        self.case("model", self.answers())
        said = self.succeeds("quernel", "test", "model", *ON_BOARD, "--io-in-workspace")
        used, most = map(int, re.search(r"PASS model: 1 test vector, .* workspace (\d+) of (\d+) bytes", said).groups())
        self.assertTrue(4 * 2 * 2 <= used <= most, said)
        self.case("other", [value + 1 for value in self.answers()])
        self.assertIn("FAIL other", self.run_tool("quernel", "test", "other", *ON_BOARD, "--io-in-workspace").stdout)

    def test_a_board_with_another_core_is_named(self):
        self.case("right", self.answers())
        done = self.succeeds("quernel", "test", "right", "--on", "qemu", "--target", "cortex-m23", "--json", "report.json")
        self.assertIn("; cortex-m23 on the cortex-m33 of mps2-an505, ", done)
        test = json.loads(self.read("report.json"))["cases"][0]["runs"][0]["tests"][0]
        self.assertEqual((test["target"], test["board"], test["board_core"]), ("cortex-m23", "mps2-an505", "cortex-m33"))

    def models(self):
        """Two models, model.onnx and ops.onnx; the second has functions of floats, sorting and sums of 64 bits."""
        self.case("model", self.answers())
        nodes = [onnx.node("Softmax", ["x"], ["p"]), onnx.node("TopK", ["p", "k"], ["y", "i"]),
                 onnx.node("CumSum", ["x", "axis"], ["c"]), onnx.node("Mul", ["i", "i"], ["m"])]
        self.write("model/ops.onnx", onnx.model(nodes, [onnx.value("x", onnx.FLOAT, [4, 7])], [
            onnx.value("y", onnx.FLOAT, [4, 3]), onnx.value("c", onnx.FLOAT, [4, 7]),
            onnx.value("m", onnx.INT64, [4, 3])], initializers=[onnx.int_tensor("k", [1], [3]), onnx.int_tensor("axis", [], [1])]))

    def compile_static(self, name, target):
        """Makes the library of_NAME.a."""
        self.succeeds("quernel", "compile", f"model/{name}.onnx", "-o", "of_" + name, "--emit", "static", "--target", target, "-q",
                      *(["--dim", "rows=2"] if name == "model" else []))

    def code(self, name, target):
        """-> the encodings and mnemonics of the library of_NAME.a, which is compiled"""
        self.compile_static(name, target)
        code = self.command("arm-none-eabi-objdump", "-d", f"of_{name}.a")
        lines = re.findall(r"^ +[0-9a-f]+:\t([0-9a-f]{4}(?: [0-9a-f]{4})?) *\t(\S+)", code, re.M)
        self.assertGreater(len(lines), 100)
        return lines

    def command(self, *words):
        done = subprocess.run(words, cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, f"{words}: {done.stdout}")
        return done.stdout

    def attributes(self, name):
        """-> what the objects of a library say of floats to the linker"""
        text = self.command("arm-none-eabi-readelf", "-A", f"of_{name}.a")
        return set(re.findall(r"Tag_(FP_arch|ABI_VFP_args): (.*)", text))

    def link(self, name, flags, compiler="arm-none-eabi-gcc"):
        """Links of_NAME.a with a program that is compiled with the flags, and passes floats: what the linker says"""
        self.write("program.c", f'''#include "of_{name}.h"
float scale(float x) {{ return 3 * x; }}
int start(of_{name}_inputs* in, of_{name}_outputs* out) {{ return of_{name}_run(&of_{name}_static_memory, in, out); }}'''.encode())
        done = subprocess.run([compiler, *flags.split(), "-ffreestanding", "-nostdlib", "-Wl,-e,start,--no-warn-execstack", "program.c", f"of_{name}.a", "-lgcc",
                               "-o", "program"], cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.stdout

    def test_code_has_instructions_of_its_core_only(self):
        """Emulated boards have a larger core, which runs more: so the object is read."""
        self.models()
        # Of 32 bits an M0 has calls, special registers, barriers and udf; of 16 bits it lacks those that test and branch or
        # predicate. An M23 has wide branches, division, constants of 16 bits, and acquires and releases; of 16 bits it predicates not.
        small = r"(bl|mrs|msr|dmb|dsb|isb|udf)\b"
        for target, wide, narrow in (("cortex-m0", small, r"(cbn?z|it[te]*)$"), ("cortex-m0plus", small, r"(cbn?z|it[te]*)$"),
                                     ("cortex-m23", small + r"|(b\.w|[su]div|mov[wt]|lda|stl)", r"it[te]*$")):
            other = set()
            for name in ("model", "ops"):
                lines = self.code(name, target)
                other |= {mnemonic for encoding, mnemonic in lines
                          if (not re.match(wide, mnemonic) if " " in encoding else re.match(narrow, mnemonic))}
            self.assertEqual(other, set(), target)

    def test_code_for_parts_without_fpu(self):
        """It has no register of floats, says so to the linker, and runs where start-up code leaves the FPU off."""
        self.models()
        for core in "cortex-m4", "cortex-m7", "cortex-m33":
            for name in "model", "ops":
                floats = {mnemonic for _, mnemonic in self.code(name, core + "+nofp") if mnemonic.startswith("v")}
                self.assertEqual((floats, self.attributes(name)), (set(), set()), core)
                self.assertEqual(self.link(name, f"-mthumb -mcpu={core}+nofp -mfloat-abi=soft"), "")
                self.assertIn("uses VFP register arguments", self.link(name, f"-mthumb -mcpu={core} -mfloat-abi=hard"))
        for target in "cortex-m4+nofp", "cortex-m33+nofp":
            self.assertIn(f"; {target}, ", self.succeeds("quernel", "test", "model", "--on", "qemu", "--target", target))

    def test_firmware_that_passes_floats_in_integer_registers(self):
        """The FPU computes all the same. Libraries link with firmware of the same -mfloat-abi, and no other."""
        self.models()
        for core in "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55":
            abis = {core: "hard", core + "+softfp": "softfp"}
            code = {}
            for target, abi in abis.items():
                code[abi] = self.code("ops", target)
                arguments = {("ABI_VFP_args", "VFP registers")} if abi == "hard" else set()
                self.assertEqual({fact for fact in self.attributes("ops") if fact[0] == "ABI_VFP_args"}, arguments, target)
                self.assertIn("FP_arch", dict(self.attributes("ops")), target)
                for other in "hard", "softfp":
                    said = self.link("ops", f"-mthumb -mcpu={core} -mfloat-abi={other}")
                    self.assertEqual((said == "", "uses VFP register arguments" in said), (other == abi, other != abi), (target, said))
            self.assertEqual(code["hard"], code["softfp"], core)
            self.assertTrue(any(mnemonic.startswith("vfma") for _, mnemonic in code["softfp"]), core)
        for target in "cortex-m4+softfp", "cortex-m55+softfp":
            self.assertIn(f"; {target}, ", self.succeeds("quernel", "test", "model", "--on", "qemu", "--target", target))

    @unittest.skipUnless(shutil.which("riscv64-unknown-elf-gcc") and shutil.which("qemu-system-riscv32"), "no toolchain or emulator of RISC-V")
    def test_extensions_of_riscv(self):
        """They are in what objects say of themselves; floats are computed and passed in the FPU where there is one. The
        emulated core has what the target has and no more."""
        self.models()
        for target, arch, abi in (("riscv32imc", "rv32imc", "ilp32"), ("riscv32imac", "rv32imac", "ilp32"), ("riscv32imafc", "rv32imafc", "ilp32f")):
            floats = target == "riscv32imafc"
            self.compile_static("ops", target)
            facts = self.command("riscv64-unknown-elf-readelf", "-hA", "of_ops.a")
            self.assertEqual(set(re.findall(r"\w+-float ABI", facts)), {"single-float ABI" if floats else "soft-float ABI"}, target)
            for said in re.findall(r'Tag_RISCV_arch: "(.*)"', facts):
                self.assertEqual("".join(re.findall(r"(?:^rv32|_)(\w)\dp\d", said)), target[len("riscv32"):], said)
            code = self.command("riscv64-unknown-elf-objdump", "-d", "of_ops.a")
            self.assertEqual(bool(re.search(r"\tfmadd\.s\t", code)), floats, target)
            self.assertEqual(bool(re.search(r"\tf\w+\.s\t", code)), floats, target)
            for other in "ilp32", "ilp32f":
                march = arch if other == abi else "rv32imafc" if other == "ilp32f" else "rv32imac"
                said = self.link("ops", f"-march={march} -mabi={other}", "riscv64-unknown-elf-gcc")
                self.assertEqual((said == "", "can't link" in said), (other == abi, other != abi), (target, said))
        for target in "riscv32imac", "riscv32imafc":
            self.assertIn(f"; {target}, ", self.succeeds("quernel", "test", "model", "--on", "qemu", "--target", target))

    def test_a_model_that_does_not_fit_the_board(self):
        self.case("model", self.answers())
        self.write("model/test_data_set_0/input_0.pb", onnx.float_tensor("x", [400000, 3], [0.0] * 1200000))
        self.write("model/test_data_set_0/output_0.pb", onnx.float_tensor("y", [400000, 2], [0.0] * 800000))
        said = self.succeeds("quernel", "test", "model", "--on", "qemu", "--target", "cortex-m0plus", "--allow-unsupported", "1")
        self.assertIn("UNSUPPORTED model: error[unsupported]: the emulated board has too little memory: region `DATA' overflowed by", said)

    def test_what_is_refused(self):
        self.case("model", self.answers())
        self.fails("quernel", "test", "model", "--target", "cortex-m4",
                   says=["--on local: target 'cortex-m4' is firmware, which runs on an emulated board", "--on qemu"])
        self.fails("quernel", "test", "model", *ON_BOARD, "--target", "cortex-m7",
                   says=["expected one target where cortex-m7 is among them, found 2"])
        self.fails("quernel", "test", "model", *ON_BOARD, "--threads", "2",
                   says=["target 'cortex-m4' is firmware, which runs without quernel-run", "leave out --run-binary, --device, --threads and --repeat"])
        self.succeeds("quernel", "compile", "model/model.onnx", "-o", "model.qnl", "-q", "--embed-tests")
        self.fails("quernel", "test", "model.qnl", *ON_BOARD, says=["target 'cortex-m4' is firmware, a bundle holds none", "name the model"])

    def test_missing_tools_are_named(self):
        self.case("model", self.answers())
        os.mkdir(self.path("programs"))
        for program in ("cmake", "ninja"):
            os.symlink(shutil.which(program), self.path("programs/" + program))
        environment = dict(os.environ, PATH=self.path("programs"))
        self.fails("quernel", "test", "model", *ON_BOARD, env=environment,
                   says=["cannot be built: cmake exited with 1: found no arm-none-eabi-gcc in PATH", "toolchains/install_debian.sh --cross"])
        for program in glob.glob(os.path.join(os.path.dirname(shutil.which("arm-none-eabi-gcc")), "arm-none-eabi-*")):
            os.symlink(program, self.path("programs/" + os.path.basename(program)))
        os.remove(self.path("programs/cmake"))
        self.fails("quernel", "test", "model", *ON_BOARD, env=environment, says=["firmware tests are built by cmake, found none in PATH"])
        os.symlink(shutil.which("cmake"), self.path("programs/cmake"))
        self.fails("quernel", "test", "model", *ON_BOARD, env=environment, says=["found no qemu-system-arm in PATH"])

    def test_a_copy_of_the_tool_alone(self):
        self.case("model", self.answers())
        os.mkdir(self.path("bin"))
        shutil.copy(tool("quernel"), self.path("bin/quernel"))
        done = self.run_tool(self.path("bin/quernel"), "test", "model", *ON_BOARD)
        self.assertEqual(done.returncode, 1)
        self.assertIn("found no folder of firmware tests; run quernel where it was built or installed", done.stderr)


if __name__ == "__main__":
    unittest.main()
