#!/usr/bin/env python3
"""Operators that the application computes: examples/custom_op, beside numbers computed here, and what is refused."""
import json
import os
import re
import shutil
import struct
import subprocess
import unittest

import onnx_file
from onnx_file import FLOAT, UINT8, message, node, number, value
from tools import ROOT, ToolTest

EXAMPLE = os.path.join(ROOT, "examples", "custom_op")
COMPAND = os.environ.get("COMPAND", "")
CC = os.environ.get("QUERNEL_CC", "cc")
WINDOW = [0.125, 0.375, 0.75, 1.0, 1.0, 0.75, 0.375, 0.125]
SIGNAL = [(i * 37 % 101 - 50) / 64 for i in range(24)]


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def expected(signal):
    """Codes and loudness of each frame, from the definition of the model."""
    frames = []
    for begin in range(0, len(signal), 8):
        x = [f32(s * w) for s, w in zip(signal[begin:begin + 8], WINDOW)]
        peak = max(abs(v) for v in x)
        y = [v / peak if peak > 0 else 0 for v in x]
        codes = [int((v * 9 / (1 + 8 * abs(v)) + 1) / 2 * 255 + 0.5) for v in y]
        frames.append((codes, sum(codes) / 8 * peak))
    return frames


def float_attribute(name, x):
    return message(1, name) + struct.pack("<Bf", 2 << 3 | 5, x) + number(20, 1)


def compand_model(levels=256):
    """What examples/custom_op/build_model.py writes, which needs the package onnx."""
    attributes = [float_attribute("knee", 8.0), onnx_file.int_attribute("levels", levels)]
    nodes = [node("Mul", ["signal", "window"], ["windowed"]),
             node("Compand", ["windowed"], ["code", "peak"], "compand", "example.audio", attributes),
             node("Cast", ["code"], ["numbers"], attributes=[onnx_file.int_attribute("to", FLOAT)]),
             node("ReduceMean", ["numbers"], ["mean"],
                  attributes=[message(1, "axes") + number(8, 1) + number(20, 7), onnx_file.int_attribute("keepdims", 0)]),
             node("Mul", ["mean", "peak"], ["loudness"])]
    return onnx_file.model(nodes, [value("signal", FLOAT, ["frames", 8])],
                           [value("code", UINT8, ["frames", 8]), value("loudness", FLOAT, ["frames"])],
                           [onnx_file.float_tensor("window", [8], WINDOW)])


class CustomOp(ToolTest):
    def setUp(self):
        super().setUp()
        self.write("model.onnx", compand_model())

    def compile(self, *options):
        self.succeeds("quernel", "compile", "model.onnx", "-o", "model.qnl", "-q", *options)
        return "model.qnl"

    def described(self, *options):
        return self.compile("--custom-op", os.path.join(EXAMPLE, "compand.op"), *options)

    def compand(self, *arguments):
        return subprocess.run([COMPAND, *arguments], cwd=self.dir, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=60)

    def check_numbers(self, calls):
        """The application's output for SIGNAL, of three frames and of one."""
        for frames in (3, 1):
            done = self.compand("model.qnl", str(frames), *[str(x) for x in SIGNAL[:8 * frames]])
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = done.stdout.splitlines()
            self.assertEqual(lines.pop(), f"the function was called {calls} times")
            self.assertEqual(len(lines), frames)
            for f, (codes, loudness) in enumerate(expected(SIGNAL[:8 * frames])):
                found = re.fullmatch(rf"frame {f}: codes ([\d ]+), loudness (\S+)", lines[f])
                self.assertEqual([int(c) for c in found[1].split()], codes)
                self.assertAlmostEqual(float(found[2]), loudness, delta=1e-4 * abs(loudness))

    def test_numbers_of_the_example(self):
        self.described()
        self.check_numbers(1)
        self.described("--dim", "frames=1..64")
        self.check_numbers(1)

    def test_the_readme_says_what_the_example_prints(self):
        self.described()
        done = self.compand("model.qnl")
        with open(os.path.join(EXAMPLE, "README.md"), encoding="utf-8") as f:
            self.assertIn("\n" + done.stdout + "```", f.read())

    def test_the_script_writes_this_model(self):
        built = subprocess.run(["/usr/bin/python3", "-B", os.path.join(EXAMPLE, "build_model.py"), "model.onnx"],
                               cwd=self.dir, text=True, stderr=subprocess.PIPE)
        if "No module named" in built.stderr:
            self.skipTest("python3-onnx is not installed")
        self.assertEqual(built.returncode, 0, built.stderr)
        self.described()
        self.check_numbers(1)

    def test_a_failing_function_ends_the_run(self):
        self.write("model.onnx", compand_model(levels=1000))
        self.described()
        done = self.compand("model.qnl")
        self.assertEqual(done.returncode, 2)
        self.assertIn("'example.audio::Compand' (node 'compand'): host callback failed, code 1: levels: expected 2 to 256, "
                      "found 1000", done.stderr)

    def compile_kernel(self, name="compand_kernel", source=None, *flags):
        """compand_kernel.o, from the example's source or from this one, and a description for x86-64 that names it."""
        if source is None:
            shutil.copy(os.path.join(EXAMPLE, "compand_kernel.c"), self.path("kernel.c"))
        else:
            self.write("kernel.c", source.encode())
        subprocess.run([CC, "-c", "-O2", "-ffreestanding", "-fPIC", "-I", ROOT, "-I", os.path.join(ROOT, "runtime", "include"),
                        "-I", EXAMPLE, "kernel.c", "-o", "compand_kernel.o", *flags], cwd=self.dir, check=True)
        with open(os.path.join(EXAMPLE, "compand_kernel.op"), encoding="utf-8") as f:
            return self.write("kernel.op", f.read().replace('symbol "compand_kernel"', f'symbol "{name}"').encode())

    def test_a_precompiled_kernel_needs_no_function(self):
        description = self.compile_kernel()
        for options in ([], ["--target", "x86-64"], ["--target", "x86-64", "--target", "x86-64-v2"], ["--dim", "frames=1..8"]):
            self.compile("--custom-op", description, *options)
            self.check_numbers(0)
        self.write("signal.npy", onnx_file.npy([3, 8], "f", SIGNAL))
        self.succeeds("quernel-run", "model.qnl", "signal.npy", "--output", "code=code.npy")
        codes = [c for frame in expected(SIGNAL) for c in frame[0]]
        self.assertEqual(onnx_file.values_of_npy(self.read("code.npy")), ([3, 8], codes))
        self.succeeds("quernel", "bench", "model.onnx", "--custom-op", description, "--dim", "frames=2", "--seconds", "0.01")
        self.write_case()
        out = self.succeeds("quernel", "verify", "case", "--custom-op", description)
        self.assertTrue(out.startswith("PASS case: "), out)
        self.assertNotIn("function of the application", self.succeeds("quernel", "inspect", "model.qnl"))

    def test_c_holds_no_precompiled_kernel(self):
        self.fails("quernel", "compile", "model.onnx", "--custom-op", self.compile_kernel(), "--emit", "c", "-o", "model",
                   "--target", "x86-64", "--dim", "frames=2",
                   says=["custom op 'example.audio::Compand': a precompiled kernel is machine code, C cannot hold it"])

    def test_a_kernel_sees_other_attributes(self):
        self.write("model.onnx", compand_model(levels=128))
        self.compile("--custom-op", self.compile_kernel())
        done = self.compand("model.qnl")
        self.assertEqual(done.returncode, 2)
        self.assertIn("'example.audio::Compand' (node 'compand'): kernel failed, code 1000", done.stderr)

    def test_objects_that_are_no_kernels(self):
        how = ["compile", "model.onnx", "-o", "model.qnl", "--custom-op"]
        head = "#include <quernel/runtime.h>\n"
        body = "int32_t compand_kernel(const qnl_kernel_args* a, uint64_t b, uint64_t e) { return {}; }\n"

        def refused(source, *says, name="compand_kernel", flags=()):
            description = self.compile_kernel(name, head + source, *flags)
            self.fails("quernel", *how, description,
                       says=["compand_kernel.o", "kernel of custom op 'example.audio::Compand': ", *says])

        refused(body.replace("{}", "0"), "expected a global function 'other', found 'compand_kernel'", name="other")
        refused("static " + body.replace("{}", "0") + "void* p(void) { return compand_kernel; }",
                "expected a global function 'compand_kernel', found 'p'")
        refused("double log(double); extern int more;\n" + body.replace("{}", "log(*(double*)a->bindings[0]) > more"),
                "expected a kernel that needs nothing outside of its object, found uses of 'log', 'more'")
        refused("static int calls;\n" + body.replace("{}", "++calls"),
                "expected a kernel that keeps no state and needs no relocation, found data in section '.bss'")
        refused("static const char* const names[] = {\"a\", \"b\"};\n" + body.replace("{}", "*names[b & 1]"),
                "found data in section '.data.rel.ro")
        refused("void qnl_query(void) {}\n" + body.replace("{}", "0"), "global name 'qnl_query' is Quernel's own")
        description = self.compile_kernel()
        os.remove(self.path("compand_kernel.o"))
        self.fails("quernel", *how, description, says=["compand_kernel.o: ", "cannot read the object file"])
        shutil.copy(COMPAND, self.path("compand_kernel.o"))
        self.fails("quernel", *how, description, says=["expected a relocatable object, found a linked one",
                                                       "give what the compiler writes with -c"])
        self.write("compand_kernel.o", b"no object")
        self.fails("quernel", *how, description, says=["expected an ELF object file, found something else"])
        description = self.compile_kernel("compand_kernel", None, "-fno-pic", "-mcmodel=large")
        data = bytearray(self.read("compand_kernel.o"))
        data[18:20] = struct.pack("<H", 183)
        self.write("compand_kernel.o", bytes(data))
        self.fails("quernel", *how, description, says=["expected code for x86-64", "found aarch64"])
        self.write("kernel.op", self.read("kernel.op").replace(b"x86-64", b"x86-46"))
        self.fails("quernel", *how, "kernel.op", says=["target: expected PRESET", "found 'x86-46'"])

    def test_absolute_addresses_cannot_be_linked(self):
        description = self.compile_kernel(
            "compand_kernel", "#include <quernel/runtime.h>\nstatic const int table[] = {1, 2, 3, 5, 7, 11};\n"
            "int32_t compand_kernel(const qnl_kernel_args* a, uint64_t b, uint64_t e) { (void)a; return table[(b + e) % 6]; }",
            "-fno-pic", "-mcmodel=small", "-no-pie")
        self.fails("quernel", "compile", "model.onnx", "-o", "model.qnl", "--custom-op", description,
                   says=["the kernels of custom ops cannot be linked: ", "compile them with -c -ffreestanding -fPIC"])

    def test_more_dims_than_a_bundle_can_tell(self):
        self.write("wide.op", ('op "demo::Wide" (' + ", ".join(f"x{i}: f32[2,2,2]" for i in range(86)) + ") -> (y: f32[2])").encode())
        self.write("model.onnx", onnx_file.model([node("Wide", ["x"] * 86, ["y"], "wide", "demo")], [value("x", FLOAT, [2, 2, 2])],
                                                 [value("y", FLOAT, [2])]))
        self.fails("quernel", "compile", "model.onnx", "-o", "model.qnl", "--custom-op", "wide.op",
                   says=["custom op 'demo::Wide': expected operands and results of at most 256 dims, found 259"])

    def test_a_target_without_a_kernel_is_noted(self):
        description = self.compile_kernel()
        self.write("kernel.op", self.read("kernel.op").replace(b'"x86-64"', b'"x86-64-v4"'))
        out = self.succeeds("quernel", "compile", "model.onnx", "-o", "model.qnl", "--custom-op", description, "--target", "x86-64")
        self.assertIn("custom op 'example.audio::Compand' has no kernel for target x86-64: the application gives its function", out)
        self.check_numbers(1)

    def write_case(self):
        """A folder for quernel verify: the model, and SIGNAL with what is expected for it."""
        os.makedirs(self.path("case/test_data_set_0"))
        shutil.copy(self.path("model.onnx"), self.path("case/model.onnx"))
        frames = expected(SIGNAL)
        for name, data in (("input_0", onnx_file.float_tensor("signal", [3, 8], SIGNAL)),
                           ("output_0", onnx_file.tensor("code", UINT8, [3, 8], bytes(c for f in frames for c in f[0]))),
                           ("output_1", onnx_file.float_tensor("loudness", [3], [f[1] for f in frames]))):
            self.write(f"case/test_data_set_0/{name}.pb", data)

    def test_tools_that_have_no_functions_say_so(self):
        self.described("--dim", "frames=2")
        says = ["custom op 'example.audio::Compand' (node 'compand')", "f32[?,?]->u8[?,?],f32[?]"]
        self.fails("quernel-run", "model.qnl", says=says)
        self.fails("quernel", "bench", "model.qnl", says=[*says, "only an application has its functions; a kernel in the description needs none"])
        self.write_case()
        out = self.succeeds("quernel", "verify", "case", "--allow-unsupported", "1", "--custom-op", os.path.join(EXAMPLE, "compand.op"))
        self.assertTrue(out.startswith("UNSUPPORTED case: "), out)
        self.assertIn("custom op 'example.audio::Compand'", out)
        out = self.succeeds("quernel", "verify", "case", "--allow-unsupported", "1")
        self.assertTrue(out.startswith("UNSUPPORTED case: "), out)
        self.assertIn("export the model with operators of the default ONNX domain, or describe the operator to compute it "
                      "yourself: --custom-op FILE", out)

    def test_what_the_bundle_holds_is_shown(self):
        self.described()
        out = self.succeeds("quernel", "inspect", "model.qnl")
        self.assertIn("  function of the application  example.audio::Compand  f32[?,?]->u8[?,?],f32[?]\n", out)
        items = json.loads(self.succeeds("quernel", "inspect", "model.qnl", "--schedule", "--json"))["variants"][0]["schedule"]
        self.assertEqual([i["attributes"] for i in items if "signature" in i], ["knee=8.0;levels=256"])

    def test_models_and_descriptions_that_do_not_fit(self):
        self.fails("quernel", "compile", "model.onnx", "-o", "model.qnl",
                   says=["compand", "operator Compand of domain 'example.audio' is not supported", "--custom-op FILE"])
        self.fails("quernel", "check", "model.onnx", says=["--custom-op FILE"], lines=None)
        describe = lambda text: self.write("wrong.op", text.encode())
        how = ["compile", "model.onnx", "-o", "model.qnl", "--custom-op", "wrong.op"]
        describe("op \"example.audio::Compand\" (x: f32[n]) -> (code: u8[n], peak: f32[])")
        self.fails("quernel", *how, says=["input 'x' of custom op 'example.audio::Compand': expected f32[n]"])
        describe("op example")
        self.fails("quernel", *how, says=["wrong.op:1", "expected a quoted name, found 'example'"], code=2)
        self.fails("quernel", *how[:-1], "missing.op", says=["missing.op: cannot read the description"], code=2)
        with open(os.path.join(EXAMPLE, "compand.op"), "rb") as f:
            self.write("wrong.op", f.read())
        self.fails("quernel", *how, *how[-2:], says=["'example.audio::Compand' is described in two files"], code=2)


if __name__ == "__main__":
    unittest.main()
