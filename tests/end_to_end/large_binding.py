#!/usr/bin/env python3
"""Tensors of more than 128 MiB, as much as every Vulkan device's storage buffers hold: read and written through several
windows, with what the CPU computes as the result."""
import os
import sys
import unittest

import onnx_file as onnx
from tools import ToolTest, skip

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from vulkan_driver import vulkan_environment  # noqa: E402

ENVIRONMENT = vulkan_environment()
ROWS, COLUMNS = 36000, 1000  # f32: 144 MB


class LargeBinding(ToolTest):
    def outputs(self, device):
        done = self.run_tool("quernel-run", "model.qnl", "--device", device, "--input", "x=random:1", "--output", "y=raw:" + device,
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


if __name__ == "__main__":
    if ENVIRONMENT is None:
        skip("there is no Vulkan here (toolchains/install_debian.sh --vulkan)")
    unittest.main()
