#!/usr/bin/env python3
"""The memory that large weights take: compiling them holds a few at a time, running them holds the pages of the bundle."""
import os
import subprocess
import sys
import unittest

import onnx_file as onnx
from tools import SANITIZED, TIME_LIMIT, ToolTest, skip, tool

SIDE = 1024
LAYERS = 32
LAYER_BYTES = 4 * SIDE * SIDE
WEIGHTS = LAYERS * LAYER_BYTES  # 128 MiB
MEBIBYTE = 1 << 20

# Says what its child has held at most. The test's own process is too large: what it holds when it starts a child counts
# as the child's.
MEASURE = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10)
sys.exit(code)
"""


def chain(weights, rows=1):
    """A chain of products with some tensors named w0, w1, …"""
    nodes = [onnx.node("MatMul", [f"y{i}", f"w{i}"], [f"y{i + 1}"]) for i in range(len(weights))]
    return onnx.model(nodes, [onnx.value("y0", onnx.FLOAT, [rows, SIDE])], [onnx.value(f"y{len(weights)}", onnx.FLOAT, [rows, SIDE])],
                      weights, opset=13)


class LargeWeights(ToolTest):
    weights = os.urandom(WEIGHTS)

    def setUp(self):
        super().setUp()
        self.write("small.onnx", chain([onnx.tensor("w0", onnx.FLOAT, [SIDE, SIDE], self.weights[:LAYER_BYTES])]))
        self.small = self.compiling("small.onnx")
        self.running_small = self.running()

    def inline(self, rows=1):
        return chain([onnx.tensor(f"w{i}", onnx.FLOAT, [SIDE, SIDE], self.weights[i * LAYER_BYTES:(i + 1) * LAYER_BYTES])
                      for i in range(LAYERS)], rows)

    def peak(self, name, *arguments):
        """The most memory that the tool has held, in bytes, with pages of files."""
        done = subprocess.run([sys.executable, "-c", MEASURE, tool(name), *arguments], cwd=self.dir, text=True, timeout=TIME_LIMIT,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return int(done.stdout.splitlines()[-1])

    def compiling(self, model, *options):
        return self.peak("quernel", "compile", model, "-o", "model.qnl", "-q", "--target", "x86-64-v3", *options)

    def running(self):
        return self.peak("quernel-run", "model.qnl", "--input", "y0=random:1", "--output", "raw:y")

    def check_compiling(self, model, *options, also=0):
        """A copy of the weights would be twice as much. The kernel counts up to 2 MiB around each place that a pass looks at."""
        self.assertLess(self.compiling(model, *options) - self.small, also + WEIGHTS // 2)
        size = os.path.getsize(self.path("model.qnl"))
        self.assertTrue(WEIGHTS < size < WEIGHTS + 4 * MEBIBYTE, size)

    def test_weights_in_the_model_file(self):
        self.write("model.onnx", self.inline())
        self.check_compiling("model.onnx")

    def test_weights_in_a_file_of_their_own(self):
        self.write("weights.bin", self.weights)
        self.write("model.onnx", chain([
            onnx.external_tensor(f"w{i}", onnx.FLOAT, [SIDE, SIDE], "weights.bin", i * LAYER_BYTES) for i in range(LAYERS)]))
        self.check_compiling("model.onnx")

    def test_entry_points_that_share_weights(self):
        self.write("model.onnx", self.inline("rows"))
        self.check_compiling("model.onnx", "--entry", "prompt:rows=16", "--entry", "token:rows=1")

    def test_several_targets(self):
        self.write("model.onnx", self.inline())
        self.assertLess(self.compiling("model.onnx", "--target", "x86-64-v4") - self.small, WEIGHTS // 2)

    def test_one_tensor_is_all(self):
        self.write("model.onnx", onnx.model(
            [onnx.node("MatMul", ["x", "w"], ["y"])], [onnx.value("x", onnx.FLOAT, [1, SIDE])],
            [onnx.value("y", onnx.FLOAT, [1, LAYERS * SIDE])], [onnx.tensor("w", onnx.FLOAT, [SIDE, LAYERS * SIDE], self.weights)],
            opset=13))
        self.check_compiling("model.onnx", also=WEIGHTS)

    def test_a_run_maps_its_bundle(self):
        self.write("model.onnx", self.inline())
        self.compiling("model.onnx")
        self.assertLess(self.running() - self.running_small, WEIGHTS + 4 * MEBIBYTE)


if __name__ == "__main__":
    if SANITIZED:
        skip("sanitizers keep memory of their own")
    unittest.main()
