#!/usr/bin/env python3
"""Tensors of more than 128 MiB, as much as every Vulkan device's storage buffers hold, with what the CPU computes as the result:
inputs and outputs are read and written through several windows, weights are split."""
import array
import os
import sys
import unittest

import onnx_file as onnx
from tools import ToolTest, skip

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from vulkan_driver import vulkan_environment  # noqa: E402

ENVIRONMENT = vulkan_environment()
ROWS, COLUMNS = 36000, 1000  # f32: 144 MB
DEPTH, WIDTH = 4096, 17000  # f32: 279 MB, three windows: five with the operand and the result, of four that every device has


class LargeBinding(ToolTest):
    def outputs(self, device, *options):
        done = self.run_tool("quernel-run", "model.qnl", "--device", device, *options, "--input", "x=random:1", "--output", "y=raw:" + device,
                             "--output", "s=raw:" + device + "-s", env=ENVIRONMENT, preexec_fn=None)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.read(device), self.read(device + "-s")

    def test_both_sides(self):
        self.write("model.onnx", onnx.model(
            [onnx.node("Neg", ["x"], ["y"]), onnx.node("ReduceMax", ["x"], ["s"], attributes=[onnx.int_attribute("keepdims", 0)])],
            [onnx.value("x", onnx.FLOAT, [ROWS, COLUMNS])],
            [onnx.value("y", onnx.FLOAT, [ROWS, COLUMNS]), onnx.value("s", onnx.FLOAT, [])], opset=13))
        self.succeeds("quernel", "compile", "model.onnx", "-o", "model.qnl", "-q", "--target", "native", "--target", "vulkan")
        y, s = self.outputs("cpu")
        found_y, found_s = self.outputs("vulkan")
        self.assertEqual(len(y), ROWS * COLUMNS * 4)
        self.assertTrue(found_y == y)  # not assertEqual: it would print them
        self.assertEqual(found_s, s)

    def test_free_size(self):
        self.write("model.onnx", onnx.model(
            [onnx.node("Neg", ["x"], ["y"]), onnx.node("ArgMax", ["x"], ["s"], attributes=[onnx.int_attribute("axis", 1)])],
            [onnx.value("x", onnx.FLOAT, ["n", COLUMNS])],
            [onnx.value("y", onnx.FLOAT, ["n", COLUMNS]), onnx.value("s", onnx.INT64, ["n", 1])], opset=13))
        self.succeeds("quernel", "compile", "model.onnx", "-o", "model.qnl", "-q", "--target", "native", "--target", "vulkan")
        y, s = self.outputs("cpu", "--symbol", f"n={ROWS}")
        found_y, found_s = self.outputs("vulkan", "--symbol", f"n={ROWS}")
        self.assertEqual((len(y), len(s)), (ROWS * COLUMNS * 4, ROWS * 8))
        self.assertTrue(found_y == y)
        self.assertTrue(found_s == s)

    def test_weights(self):
        period = array.array("f", [(k * 7919 % 251 - 125) / 128 for k in range(251)]).tobytes()
        weights = (period * (DEPTH * WIDTH // 251 + 1))[:DEPTH * WIDTH * 4]
        self.write("model.onnx", onnx.model(
            [onnx.node("MatMul", ["x", "w"], ["y"])], [onnx.value("x", onnx.FLOAT, [1, DEPTH])], [onnx.value("y", onnx.FLOAT, [1, WIDTH])],
            [onnx.tensor("w", onnx.FLOAT, [DEPTH, WIDTH], weights)], opset=13))
        self.succeeds("quernel", "compile", "model.onnx", "-o", "model.qnl", "-q", "--target", "native", "--target", "vulkan")
        y = {}
        for device in ("cpu", "vulkan"):
            done = self.run_tool("quernel-run", "model.qnl", "--device", device, "--input", "x=random:1", "--output", "y=raw:" + device,
                                 env=ENVIRONMENT, preexec_fn=None)
            self.assertEqual(done.returncode, 0, done.stderr)
            y[device] = array.array("f", self.read(device))
        self.assertEqual(len(y["cpu"]), WIDTH)
        self.assertGreater(len(set(y["cpu"])), 200)
        worst = max(abs(a - b) for a, b in zip(y["cpu"], y["vulkan"]))
        self.assertLess(worst, 1e-5 * max(map(abs, y["cpu"])))


if __name__ == "__main__":
    if ENVIRONMENT is None:
        skip("there is no Vulkan here (toolchains/install_debian.sh --vulkan)")
    unittest.main()
