#!/usr/bin/env python3
"""quernel-run of the preset minsize, which has no texts of errors: bundles run in it as in any other, and what it refuses, it refuses
with the name of the status.

minsize_test.py QUERNEL"""
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "end_to_end"))
import onnx_file as onnx  # noqa: E402

BUILD = os.path.join(ROOT, "build", "minsize")
QUERNEL = os.path.abspath(sys.argv.pop(1))


def run(*command, **how):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how)


class Minsize(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for step in (("cmake", "-S", ROOT, "--preset", "minsize", "-B", BUILD), ("cmake", "--build", BUILD, "--target", "quernel-run")):
            done = run(*step)
            if done.returncode != 0:
                raise RuntimeError(done.stdout[-3000:] + done.stderr[-3000:])

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        values = [(i % 17 - 8) * 0.5 for i in range(96)]
        os.makedirs(self.path("model/test_data_set_0"))
        # A free dim, so that symbols and expressions of them are used.
        self.write("model/model.onnx", onnx.model([onnx.node("Relu", ["x"], ["r"]), onnx.node("Concat", ["r", "r"], ["y"], attributes=(
            onnx.int_attribute("axis", 0),))], [onnx.value("x", onnx.FLOAT, ["n", 8])], [onnx.value("y", onnx.FLOAT, ["m", 8])]))
        self.write("model/test_data_set_0/input_0.pb", onnx.float_tensor("x", [12, 8], values))
        self.write("model/test_data_set_0/output_0.pb", onnx.float_tensor("y", [24, 8], [max(v, 0.0) for v in values * 2]))
        done = run(QUERNEL, "compile", "model/model.onnx", "-o", "model.qnl", "-q", "--embed-tests", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data)

    def runs(self, *arguments, code=0):
        done = run(os.path.join(BUILD, "bin", "quernel-run"), *arguments, cwd=self.folder)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout, done.stderr

    def test_has_no_descriptions(self):
        self.assertIn("expected a runtime with texts, found one that was built with QUERNEL_ERROR_TEXTS=OFF",
                      self.runs("--describe", code=1)[1])

    def test_has_no_features_of_gpus(self):
        self.assertIn("expected a quernel-run with Vulkan, whose features these are; found one without",
                      self.runs("model.qnl", "--hide", "f16", code=2)[1])

    def test_runs(self):
        for threads in ("1", "2"):
            self.assertIn("1 passed, 0 failed", self.runs("model.qnl", "--test", "--threads", threads)[0])
        out, _ = self.runs("model.qnl", "--list")
        self.assertRegex(out, r"f32\[n,8\]")
        self.assertRegex(out, r"f32\[\((n \* 2|2 \* n|n \+ n)\),8\]")

    def test_refuses(self):
        with open(self.path("model.qnl"), "rb") as f:
            data = bytearray(f.read())
        data[len(data) // 2] ^= 1
        self.write("damaged.qnl", bytes(data))
        self.assertRegex(self.runs("damaged.qnl", code=1)[1], r"^quernel-run: 'damaged\.qnl': corrupt (structure|code|constants|bundle structure)\n$")
        self.write("damaged.qnl", b"no bundle at all")
        self.assertEqual(self.runs("damaged.qnl", code=1)[1], "quernel-run: 'damaged.qnl': not a bundle\n")
        self.assertEqual(self.runs("absent.qnl", code=1)[1], "quernel-run: 'absent.qnl': file not found\n")
        self.assertEqual(self.runs("model.qnl", "--symbol", "k=3", code=1)[1], "quernel-run: unknown name\n")


if __name__ == "__main__":
    unittest.main()
