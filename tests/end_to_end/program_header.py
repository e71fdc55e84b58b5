#!/usr/bin/env python3
"""What the header of a program without a runtime says of a model: inputs and outputs, and what their integers stand for."""
import hashlib
import struct
import subprocess
import unittest

import onnx_file
import tflite_file
from tools import ToolTest, clang

STRICT = ["-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-ffp-contract=off"]

# Two programs of one model, of integers and of real numbers, on every float whose lower half is one of four, and around
# the halves between integers: what the header's functions make of the integers has the bits of the real numbers.
COMPARE = r"""
#include <stdio.h>
#include <string.h>
#include "ints.h"
#include "reals.h"

static float of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float x[COUNT], y[COUNT];
static INTEGER quantized[COUNT], result[COUNT];

int main(void) {
  static const uint32_t lower[4] = {0, 1, 0x8000, 0xffff};
  const float scale = INTS_INPUT_X_SCALE;
  int n = 0;
  for (uint32_t bits = 0; bits < 0x10000; ++bits)
    for (int k = 0; k < 4; ++k) x[n++] = of_bits(bits << 16 | lower[k]);
  for (int halves = -1100; halves < 1100; ++halves)
    for (int ulps = -3; ulps <= 3; ++ulps) x[n++] = of_bits(bits_of(scale * (float)halves / 2.0f) + (uint32_t)ulps);
  if (n != COUNT) return 2;
  reals_inputs real_in = {x};
  reals_outputs real_out = {y};
  ints_inputs int_in = {quantized};
  ints_outputs int_out = {result};
  for (int i = 0; i < COUNT; ++i) quantized[i] = ints_input_x_quantize(x[i]);
  if (reals_run(&reals_static_memory, &real_in, &real_out) != REALS_OK) return 3;
  if (ints_run(&ints_static_memory, &int_in, &int_out) != INTS_OK) return 3;
  int seen[256] = {0}, different = 0;
  for (int i = 0; i < COUNT; ++i) {
    const float made = ints_output_y_dequantize(result[i]);
    seen[(unsigned char)quantized[i]] = 1;
    if (x[i] != x[i] && quantized[i] != (INTEGER)INTS_INPUT_X_ZERO_POINT) return 4;
    if (bits_of(made) == bits_of(y[i])) continue;
    if (different++ == 0) printf("%a is %d, which gives %a, expected %a\n", (double)x[i], quantized[i], (double)made, (double)y[i]);
  }
  int values = 0;
  for (int i = 0; i < 256; ++i) values += seen[i];
  printf("%d values, %d different\n", values, different);
  return different != 0;
}
"""
COUNT = 4 * 0x10000 + 2200 * 7


class ProgramHeader(ToolTest):
    def command(self, *command):
        done = subprocess.run(command, cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, f"{command}: {done.stdout}")
        return done.stdout

    def compile_c(self, name, *arguments):
        """-> C files"""
        self.succeeds("quernel", "compile", *arguments, "-o", name, "--emit", "c")
        files = [name + ".c", name + "_memory.c"]
        return files + [name + "_weights.c"] if f"{name}_weights_0" in self.read(name + ".c").decode() else files

    def compare(self, model, integer, ints=(), reals=()):
        files = self.compile_c("ints", model, *ints) + self.compile_c("reals", model, *reals)
        self.command("gcc", "-std=c99", "-O1", "-ffp-contract=off", "-c", *files)
        objects = [name[:-1] + "o" for name in files]
        self.write("compare.c", COMPARE.encode())
        flags = [*STRICT, f"-DCOUNT={COUNT}", f"-DINTEGER={integer}"]
        for compiler in (["gcc", "-std=c99", "-O0"], ["gcc", "-std=c99", "-O3"], ["g++", "-std=c++11", "-O2", "-x", "c++"]):
            self.command(*compiler, *flags, "compare.c", "-x", "none", *objects, "-o", "compare")
            self.assertEqual(self.command("./compare"), "256 values, 0 different\n", (compiler, ints, reals))

    def test_quantize_and_dequantize_are_those_of_io_f32(self):
        """Halves away from zero; --rounding float32: products, halves to even."""
        for scale, zero, rounding in ((0.1, -3, "single"), (0.0078125, 127, "double"), (0.3, 5, "float32"), (3.7, -128, "float32")):
            tensors = [tflite_file.quantized("x", [COUNT], scale, zero), tflite_file.quantized("y", [COUNT], scale * 1.1, 7)]
            graph = tflite_file.subgraph(tensors, [0], [1], [(0, [0], [1])])
            self.write("model.tflite", tflite_file.model([tflite_file.QUANTIZE], [graph]))
            self.compare("model.tflite", "int8_t", ["--rounding", rounding], ["--rounding", rounding, "--io", "f32"])

    def test_quantize_and_dequantize_are_the_nodes_that_io_i8_leaves_out(self):
        for dtype, integer, code, scale, zero in ((onnx_file.INT8, "int8_t", "b", 0.1, 0), (onnx_file.UINT8, "uint8_t", "B", 0.02, 0)):
            parameters = [onnx_file.float_tensor("s", [], [scale]), onnx_file.tensor("z", dtype, [], struct.pack(code, zero))]
            nodes = [onnx_file.node("QuantizeLinear", ["x", "s", "z"], ["q"]), onnx_file.node("DequantizeLinear", ["q", "s", "z"], ["y"])]
            values = [onnx_file.value(name, onnx_file.FLOAT, [COUNT]) for name in "xy"]
            self.write("model.onnx", onnx_file.model(nodes, values[:1], values[1:], parameters))
            self.compare("model.onnx", integer, ["--io", "i8"])

    def test_macros_are_for_arrays_and_the_preprocessor(self):
        tensors = [tflite_file.quantized("x", [1, 2, 3], 0.5, -3), tflite_file.quantized("y", [1, 2, 3], 0.25, 7)]
        graph = tflite_file.subgraph(tensors, [0], [1], [(0, [0], [1])])
        self.write("model.tflite", tflite_file.model([tflite_file.QUANTIZE], [graph]))
        self.write("use.c", b"""#include <stdio.h>
#include "net.h"
#if NET_INPUT_COUNT != 1 || NET_INPUT_X_RANK != 3 || NET_INPUT_X_ELEMENTS != 6 || NET_INPUT_X_BYTES != 6 || NET_INPUT_X_ZERO_POINT >= 0
#error "wrong"
#endif
static const int shape[NET_INPUT_X_RANK] = NET_INPUT_X_SHAPE;
static int8_t x[NET_INPUT_X_ELEMENTS], y[NET_OUTPUT_Y_ELEMENTS];
int main(void) {
  net_inputs inputs = {x};
  net_outputs outputs = {y};
  for (int i = 0; i < NET_INPUT_X_ELEMENTS; ++i) x[i] = net_input_x_quantize((float)i - 1.25f);
  if (net_run(&net_static_memory, &inputs, &outputs) != NET_OK) return 1;
  printf("%d %d %d", shape[0], shape[1], shape[2]);
  for (int i = 0; i < NET_OUTPUT_Y_ELEMENTS; ++i) printf(" %g", (double)net_output_y_dequantize(y[i]));
  return 0;
}
""")
        for form in ("c", "static"):
            objects = ["net.a"]
            if form == "c":
                files = self.compile_c("net", "model.tflite")
                self.command("gcc", "-std=c99", "-ffp-contract=off", "-c", *files)
                objects = [name[:-1] + "o" for name in files]
            else:
                self.succeeds("quernel", "compile", "model.tflite", "-o", "net", "--emit", "static")
            for compiler in (["gcc", "-std=c99"], ["g++", "-std=c++11", "-x", "c++"]):
                self.command(*compiler, *STRICT, "use.c", "-x", "none", *objects, "-o", "use")
                self.assertEqual(self.command("./use"), "1 2 3 -1.5 -0.5 1 2 3 4", (form, compiler))

    def test_hash_multiply_adds_and_the_nodes_of_kernels(self):
        nodes = [onnx_file.node("MatMul", ["x", "w"], ["h"], name="first/product"), onnx_file.node("Relu", ["h"], ["y"], name="last")]
        values = {name: onnx_file.value(name, onnx_file.FLOAT, shape) for name, shape in (("x", [3, 8]), ("y", [3, 5]))}
        weights = [onnx_file.float_tensor("w", [8, 5], [i / 8 for i in range(40)])]
        self.write("model.onnx", onnx_file.model(nodes, [values["x"]], [values["y"]], weights))
        expected = [f'#define NET_MODEL_SHA256 "{hashlib.sha256(self.read("model.onnx")).hexdigest()}"\n', "#define NET_MULTIPLY_ADDS 120\n"]
        self.compile_c("net", "model.onnx")
        header, text = self.read("net.h").decode(), self.read("net.c").decode()
        self.assertIn("/* first.product last */\nstatic void net_kernel_0(", text)
        self.assertIn("  /* first.product last */\n  net_kernel_0(", text)
        for line in expected:
            self.assertIn(line, header)
        self.succeeds("quernel", "compile", "model.onnx", "-o", "net", "--emit", "static")
        for line in [*expected, " * net_kernel_0\n *   first.product last\n */\n"]:
            self.assertIn(line, self.read("net.h").decode())
        self.assertIn("net_kernel_0", self.command("nm", "net.a"))
        self.succeeds("quernel", "compile", "-o", "two", "model.onnx", "--emit", "static", "--entry", "a", "--entry", "b")
        for entry in "AB":
            for line in expected:
                self.assertIn(line.replace("NET", "TWO_" + entry), self.read("two.h").decode())

    def test_a_section_for_every_constant_array(self):
        """Weights, and initial values of states; by default they lie where constants of the compiler do."""
        nodes = [onnx_file.node("MatMul", ["x", "w"], ["h"]), onnx_file.node("Add", ["h", "s"], ["next"]), onnx_file.node("Add", ["next", "b"], ["y"])]
        shapes = {"x": [3, 8], "s": [3, 5], "y": [3, 5], "next": [3, 5]}
        values = {name: onnx_file.value(name, onnx_file.FLOAT, shape) for name, shape in shapes.items()}
        constants = [onnx_file.float_tensor("w", [8, 5], [i / 8 for i in range(40)]), onnx_file.float_tensor("b", [5], [1, 2, 3, 4, 5])]
        self.write("model.onnx", onnx_file.model(nodes, [values["x"], values["s"]], [values["y"], values["next"]], constants))
        self.write("s.npy", onnx_file.npy([3, 5], "f", [1.0] * 15))
        files = self.compile_c("net", "model.onnx", "--target", "x86-64", "--state", "s=next", "--input-value", "s=s.npy")
        self.assertIn("net_weights.c", files)
        flags = ["-std=c99", *STRICT[:3], "-Werror", "-ffp-contract=off", "-fdata-sections", "-c", *files]
        for compiler in filter(None, ("gcc", clang())):
            self.command(compiler, *flags, "-DNET_WEIGHTS_SECTION=__attribute__((section(\".xip\")))")
            for name in ("net.o", "net_weights.o"):
                sections = self.command("objdump", "-h", name)
                self.assertRegex(sections, r"\.xip +[0-9a-f]{8}[\s\S]*?\n.*\bREADONLY, DATA")
                self.assertNotIn(".rodata.net_", sections)
            self.command(compiler, *flags)
            self.assertNotIn(".xip", self.command("objdump", "-h", "net_weights.o"))

    def test_inputs_and_outputs_inside_the_workspace(self):
        """The last result lies where the input was; a state is no part of it."""
        nodes = [onnx_file.node("Add", ["x", "s"], ["next"]), onnx_file.node("Identity", ["next"], ["y"]), onnx_file.node("Neg", ["x"], ["z"])]
        values = {name: onnx_file.value(name, onnx_file.FLOAT, [64]) for name in ("x", "s", "next", "y", "z")}
        self.write("model.onnx", onnx_file.model(nodes, [values["x"], values["s"]], [values["y"], values["z"], values["next"]]))
        self.write("use.c", b"""#include <stdio.h>
#include "net.h"
static float place[NET_INPUT_X_ELEMENTS];
int main(void) {
  const net_memory* const memory = &net_static_memory;
  net_reset(memory);
  for (int run = 1; run <= 3; ++run) {
    float* const x = net_input_x_address(memory);
    if ((char*)x != (char*)memory->workspace + NET_INPUT_X_OFFSET) return 1;
    for (int i = 0; i < NET_INPUT_X_ELEMENTS; ++i) x[i] = (float)(i + run);
    if (net_run(memory, NULL, NULL) != NET_OK) return 2;
    const float *y = net_output_y_address(memory), *z = net_output_z_address(memory);
    for (int i = 0; i < NET_INPUT_X_ELEMENTS; ++i) {
      place[i] += (float)(i + run);
      if (y[i] != place[i] || z[i] != -(float)(i + run)) return 3;
    }
  }
  printf("%d", NET_WORKSPACE_BYTES);
  return 0;
}
""")
        options = ["model.onnx", "--state", "s=next", "--target", "x86-64", "--io-in-workspace"]
        for form in ("c", "static"):
            objects = ["net.a"]
            if form == "c":
                files = self.compile_c("net", *options)
                self.command("gcc", "-std=c99", *STRICT, "-c", *files)
                objects = [name[:-1] + "o" for name in files]
            else:
                self.assertIn("RAM, with inputs and outputs", self.succeeds("quernel", "compile", *options, "-o", "net", "--emit", "static"))
            for compiler in (["gcc", "-std=c99"], ["g++", "-std=c++11", "-x", "c++"]):
                self.command(*compiler, *STRICT, "use.c", "-x", "none", *objects, "-o", "use")
                self.assertEqual(self.command("./use"), str(2 * 64 * 4), (form, compiler))  # y, and x, which becomes z
        self.fails("quernel", "compile", "model.onnx", "-o", "net.qnl", "--io-in-workspace", code=2,
                   says=["--io-in-workspace is for --emit static and c: a bundle's inputs and outputs are the caller's"])
        self.fails("quernel", "test", "model.onnx", "--io-in-workspace", "--target", "x86-64",
                   says=["--io-in-workspace: expected a target that is firmware, found 'x86-64'", "a bundle's inputs and outputs are the caller's"])
        self.fails("quernel", "test", "model.onnx", "--io-in-workspace", "--kit", "kit", code=2,
                   says=["--io-in-workspace: expected no --kit, which holds bundles"])


if __name__ == "__main__":
    unittest.main()
