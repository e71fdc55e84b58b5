#!/usr/bin/env python3
"""--device auto: Vulkan where it is right and faster, else the CPU, with a line that says why; the decision is kept beside the
bundle, and where it says the CPU Vulkan is not opened. A device that is lost in use is given up, and the CPU finishes the run. --device vulkan is forced."""
import json
import os
import resource
import struct
import sys
import unittest

import onnx_file as onnx
from bundle_file import bundle_hash
from tools import SANITIZED, ToolTest, skip

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from vulkan_driver import vulkan_environment  # noqa: E402

ENVIRONMENT = vulkan_environment()
NO_DRIVER = dict(os.environ, VK_ICD_FILENAMES="/nonexistent.json", VK_DRIVER_FILES="/nonexistent.json")
SIZE = 1000
VALUES = [(i % 17 - 8) * 0.5 for i in range(SIZE)]
RELU = [max(v, 0.0) for v in VALUES]
FASTER, SLOWER, REASON_AT = 1, 15, 12  # of the decision's file: choice_file.cpp


class ChooseDevice(ToolTest):
    def bundle(self, *options, targets=("native", "vulkan"), tests=True, expected=RELU, nodes=(onnx.node("Relu", ["x"], ["y"]),),
               weights=()):
        os.makedirs(self.path("relu/test_data_set_0"), exist_ok=True)
        self.write("relu/model.onnx", onnx.model(nodes, [onnx.value("x", onnx.FLOAT, [SIZE])], [onnx.value("y", onnx.FLOAT, [SIZE])],
                                                 weights))
        self.write("relu/test_data_set_0/input_0.pb", onnx.float_tensor("x", [SIZE], VALUES))
        self.write("relu/test_data_set_0/output_0.pb", onnx.float_tensor("y", [SIZE], expected))
        named = [word for target in targets for word in ("--target", target)]
        self.succeeds("quernel", "compile", "relu/model.onnx", "-o", "relu.qnl", "-q", *named,
                      *(["--embed-tests"] if tests else []), *options)

    def runs(self, *arguments, tool="quernel-run", device="auto", env=ENVIRONMENT, code=0):
        """-> stdout, and what is said of the device on stderr"""
        done = self.run_tool(tool, *arguments, "--device", device, env=env, preexec_fn=None)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout, "".join(line for line in done.stderr.splitlines(True) if "note: the input" not in line)

    def chooses_the_cpu(self, *says, device="auto", env=ENVIRONMENT):
        out, said = self.runs("relu.qnl", "--test", device=device, env=env)
        self.assertIn("1 passed, 0 failed", out)
        self.assertNotIn("vulkan", out)
        self.assertTrue(said.startswith("quernel-run: device: the CPU"), said)
        for text in says:
            self.assertIn(text, said)

    def store(self, reason):
        """Makes the decision's file say that the device is faster, or slower."""
        data = bytearray(self.read("relu.qnl.choice"))
        struct.pack_into("<I", data, REASON_AT, reason)
        data[-8:] = struct.pack("<Q", bundle_hash(bytes(data[:-8])))
        self.write("relu.qnl.choice", bytes(data))

    def test_decides_once(self):
        self.bundle()
        out, said = self.runs("relu.qnl", "--test")
        self.assertRegex(said, r"^quernel-run: device: (Vulkan|the CPU): device 'vulkan:.*' is (faster|slower): right on 1 test vector, in "
                               r"[0-9.]+ ms; the CPU \(1 thread\) takes [0-9.]+ ms\n$")
        chosen = "Vulkan" if "device: Vulkan" in said else "the CPU"
        self.assertEqual("PASS test_data_set_0: vulkan" in out, chosen == "Vulkan")
        before = os.stat(self.path("relu.qnl.choice")).st_ino
        out, said = self.runs("relu.qnl", "--json")
        self.assertEqual(said, f"quernel-run: device: {chosen}, as decided before ('relu.qnl.choice')\n")
        self.assertEqual(json.loads(out)["choice"], said[len("quernel-run: device: "):-1])
        self.assertEqual(os.stat(self.path("relu.qnl.choice")).st_ino, before)
        _, said = self.runs("relu.qnl", "--choose-anew", "--choice", "other")
        self.assertIn("right on 1 test vector", said)
        self.assertTrue(os.path.exists(self.path("other")))
        self.write("relu.qnl.choice", b"damaged")
        _, said = self.runs("relu.qnl")
        self.assertIn("right on 1 test vector", said)
        self.assertGreater(len(self.read("relu.qnl.choice")), 500)

    def opens_vulkan(self, device="auto", env=ENVIRONMENT):
        """-> whether the run looks for Vulkan's library, and what is said of the device"""
        _, said = self.runs("relu.qnl", device=device, env=dict(env, LD_DEBUG="files", LD_DEBUG_OUTPUT=self.path("libraries")))
        opened = False
        for name in os.listdir(self.dir):
            if name.startswith("libraries."):
                opened = opened or b"libvulkan" in self.read(name)
                os.remove(self.path(name))
        return opened, said

    def test_the_cpu_without_opening_vulkan(self):
        with open(ENVIRONMENT["VK_ICD_FILENAMES"].split(":")[0], "rb") as f:
            driver = f.read()
        self.write("driver.json", driver)
        env = dict(ENVIRONMENT, VK_ICD_FILENAMES=self.path("driver.json"))
        self.bundle()
        opened, said = self.opens_vulkan(env=env)
        self.assertTrue(opened)
        self.assertIn("right on 1 test vector", said)
        self.store(SLOWER)
        known = "quernel-run: device: the CPU, as decided before ('relu.qnl.choice')\n"
        self.assertEqual(self.opens_vulkan(env=env), (False, known))
        # A driver that is installed again may be another one: the device is looked at once, and is the same.
        os.remove(self.path("driver.json"))
        self.write("driver.json", driver)
        self.assertEqual(self.opens_vulkan(env=env), (True, known))
        self.assertEqual(self.opens_vulkan(env=env), (False, known))
        # One chosen in another way may be another device.
        self.assertEqual(self.opens_vulkan("auto:0", env=env), (True, known))
        self.assertEqual(self.opens_vulkan("auto:0", env=env), (False, known))
        self.store(FASTER)
        opened, said = self.opens_vulkan("auto:0", env=env)
        self.assertTrue(opened)
        self.assertIn("device: Vulkan, as decided before", said)
        self.bundle(targets=("native",))
        opened, said = self.opens_vulkan(env=env)
        self.assertFalse(opened)
        self.assertIn("device: the CPU: Vulkan: the bundle has no code for it", said)

    def test_other_tools(self):
        self.bundle()
        _, said = self.runs("bench", "relu.qnl", "--seconds", "0.01", tool="quernel")
        self.assertIn("quernel: device: ", said)
        out, _ = self.runs("test", "relu.qnl", "relu", tool="quernel")
        self.assertIn("2 passed, 0 failed", out)
        _, said = self.runs("verify", "relu", tool="quernel", code=2)
        self.assertIn("--device: expected cpu or vulkan, found 'auto'", said)

    def test_what_keeps_it_from_running(self):
        self.bundle()
        self.chooses_the_cpu("device: the CPU: Vulkan: expected a", "or use the CPU", env=NO_DRIVER)
        self.chooses_the_cpu("expected device 'nobody has it'", device="auto:nobody has it")
        self.assertFalse(os.path.exists(self.path("relu.qnl.choice")))
        for device, env, says in (("vulkan", NO_DRIVER, "or use the CPU"),
                                  ("vulkan:nobody has it", ENVIRONMENT, "expected device 'nobody has it'")):
            _, said = self.runs("relu.qnl", device=device, env=env, code=1)
            self.assertIn(says, said)
        self.bundle(targets=("native",))
        self.chooses_the_cpu("compile for this device with --target")
        _, said = self.runs("relu.qnl", device="vulkan", code=1)
        self.assertIn("compile for this device with --target", said)
        self.bundle(targets=("vulkan",))
        _, said = self.runs("relu.qnl", env=NO_DRIVER, code=1)
        self.assertIn("no device can run the bundle: Vulkan: expected a", said)

    def test_the_only_device_with_code(self):
        self.bundle(targets=("vulkan",))
        out, said = self.runs("relu.qnl", "--test")
        self.assertIn("is right; the CPU cannot be used: device 'cpu'", said)
        self.assertIn("PASS test_data_set_0: vulkan", out)
        self.bundle(targets=("vulkan",), tests=False)
        _, said = self.runs("relu.qnl")
        self.assertIn("is not checked: the bundle holds no test vectors", said)

    def test_without_test_vectors(self):
        self.bundle(tests=False)
        _, said = self.runs("relu.qnl")
        self.assertRegex(said, r"device: (Vulkan|the CPU): device 'vulkan:.*' is (faster|slower): computes what the CPU does of random input, in ")

    def test_wrong(self):
        self.bundle(expected=[9.0] + RELU[1:])
        out, said = self.runs("relu.qnl", "--test", code=1)
        self.assertIn("is wrong: test vector 'test_data_set_0': output 'y': 1 of 1000 elements beyond", said)
        self.assertIn("FAIL test_data_set_0: ", out)  # the expectation is what is wrong here
        _, again = self.runs("relu.qnl")
        self.assertIn("as decided before ('relu.qnl.choice'): device", again)
        self.assertIn("is wrong", again)

    def runs_in(self, limit, *arguments):
        """-> the lines of stderr of a run that fails in that much address space"""
        done = self.run_tool("quernel-run", "free.qnl", "--device", "auto", *arguments, env=ENVIRONMENT,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        self.assertEqual(done.returncode, 1, done.stderr)
        return done.stderr.splitlines()

    @unittest.skipIf(SANITIZED, "the sanitizer reserves terabytes of address space, which the test limits")
    def test_memory(self):
        self.write("free.onnx", onnx.model([onnx.node("Relu", ["x"], ["y"])], [onnx.value("x", onnx.FLOAT, ["n"])],
                                           [onnx.value("y", onnx.FLOAT, ["n"])]))
        self.succeeds("quernel", "compile", "free.onnx", "-o", "free.qnl", "-q", "--target", "native", "--target", "vulkan")
        self.runs("free.qnl", "--symbol", "n=1000")
        # More than any device has: known before anything is made.
        lines = self.runs_in(2 << 30, "--symbol", "n=1000000000", "--choose-anew")
        self.assertRegex(lines[0], r"device: the CPU: device 'vulkan:.*': the bundle needs a block of memory of 8000000\d+ bytes, expected at "
                                   r"most \d+$")
        self.assertIn("no memory for", lines[1])
        # As much as the device has, but not now.
        data = self.read("free.qnl.choice")
        self.write("relu.qnl.choice", data)
        self.store(FASTER)
        self.write("free.qnl.choice", self.read("relu.qnl.choice"))
        lines = self.runs_in(2 << 30, "--symbol", "n=240000000")
        self.assertIn("device: Vulkan, as decided before", lines[0])
        self.assertIn("device: the CPU for this run: ", lines[1])
        self.assertIn("no memory for", lines[2])
        self.assertEqual(self.read("free.qnl.choice"), self.read("relu.qnl.choice"))

    def test_lost_in_use(self):
        # The same function by way of a product of 2 GFLOP: a device that is done before it is waited for is not lost.
        nodes = (onnx.node("Expand", ["x", "shape"], ["rows"]), onnx.node("MatMul", ["rows", "rows"], ["product"]),
                 onnx.node("Abs", ["product"], ["sizes"]), onnx.node("ReduceMin", ["sizes"], ["zero"], attributes=(onnx.int_attribute("keepdims", 0),)),
                 onnx.node("Relu", ["x"], ["relu"]), onnx.node("Add", ["relu", "zero"], ["y"]))
        self.bundle(nodes=nodes, weights=(onnx.int_tensor("shape", [2], [SIZE, SIZE]),))
        self.runs("relu.qnl")
        for mode in ((), ("--test",)):
            self.store(FASTER)
            out, said = self.runs("relu.qnl", *mode)
            self.assertIn("device: Vulkan, as decided before", said)
            # No device answers that soon.
            out, said = self.runs("relu.qnl", "--json", "--device-timeout", "1e-9", *mode)
            lines = said.splitlines()
            self.assertEqual(len(lines), 2, said)
            self.assertIn("device: Vulkan, as decided before", lines[0])
            self.assertIn("device: the CPU from now on: the Vulkan device failed in use: ", lines[1])
            self.assertEqual(json.loads(out)["device"], "cpu")
            _, said = self.runs("relu.qnl", *mode)
            self.assertIn("device: the CPU, as decided before ('relu.qnl.choice'): the Vulkan device failed in use", said)
        _, said = self.runs("relu.qnl", "--device-timeout", "1e-9", device="vulkan", code=1)
        self.assertIn("quernel-run: ", said)


if __name__ == "__main__":
    if ENVIRONMENT is None:
        skip("there is no Vulkan here (toolchains/install_debian.sh --vulkan)")
    unittest.main()
