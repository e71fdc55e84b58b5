#!/usr/bin/env python3
"""quernel strip: of a bundle for several targets, each one's share is what compiling for it alone gives."""
import json
import os
import unittest

import onnx_file as onnx
from tools import DIGITS, ToolTest, test_data

TARGETS = ("x86-64", "x86-64-v3", "aarch64")
MODELS = ("mnist_8", "micro_kws_qdq", "scan_lstm")


def every(targets):
    return [word for target in targets for word in ("--target", target)]


class Strip(ToolTest):
    def each_is_what_it_would_be_alone(self, model, *options):
        self.succeeds("quernel", "compile", model, "-o", "fat.qnl", "-q", *every(TARGETS), *options)
        for target in TARGETS:
            self.succeeds("quernel", "compile", model, "-o", "alone.qnl", "-q", "--target", target, *options)
            self.succeeds("quernel", "strip", "fat.qnl", "--target", target, "-o", "stripped.qnl", "-q")
            self.assertEqual(self.read("stripped.qnl"), self.read("alone.qnl"), f"{model} for {target}")

    def test_digits(self):
        self.each_is_what_it_would_be_alone(DIGITS)
        self.assertLess(len(self.read("stripped.qnl")), len(self.read("fat.qnl")))

    def test_free_dims(self):
        weights = onnx.float_tensor("w", [5, 7], [k / 8 for k in range(35)])
        model = onnx.model([onnx.node("MatMul", ["x", "w"], ["h"]), onnx.node("Softmax", ["h"], ["y"])],
                           [onnx.value("x", onnx.FLOAT, ["n", 5])], [onnx.value("y", onnx.FLOAT, ["n", 7])], [weights])
        self.each_is_what_it_would_be_alone(self.write("free.onnx", model))

    def test_real_models(self):
        folders = [os.path.join(test_data(), "models", name) for name in MODELS]
        if not all(os.path.isdir(folder) for folder in folders):
            self.skipTest(f"no models in {test_data()}")
        for folder in folders:
            self.each_is_what_it_would_be_alone(folder + "/model.onnx")

    def test_several_stay_in_the_order_asked_for(self):
        self.succeeds("quernel", "compile", DIGITS, "-o", "fat.qnl", "-q", *every(TARGETS))
        said = self.succeeds("quernel", "strip", "fat.qnl", "-o", "two.qnl", *every(("x86-64-v3", "x86-64")))
        self.assertIn("2 of 3 variants", said)
        self.succeeds("quernel", "compile", DIGITS, "-o", "alone.qnl", "-q", *every(("x86-64-v3", "x86-64")))
        self.assertEqual(self.read("two.qnl"), self.read("alone.qnl"))
        self.succeeds("quernel", "inspect", "two.qnl", "--check")

    def test_bench_measures_the_variant_that_is_named(self):
        self.succeeds("quernel", "compile", DIGITS, "-o", "fat.qnl", "-q", *every(("x86-64", "x86-64-v2")))
        for target in ("x86-64", "x86-64-v2"):
            measured = json.loads(self.succeeds("quernel", "bench", "fat.qnl", "--target", target, "--repeat", "1", "--json"))
            self.assertEqual(measured["variant"], target)
        self.fails("quernel", "bench", "fat.qnl", "--target", "x86-64-v3", says=["--target: expected one of those in the bundle, x86-64, x86-64-v2, found 'x86-64-v3'"])
        self.fails("quernel", "bench", "fat.qnl", "--precision", "bf16", code=2, says=["--precision: expected a model", "found the bundle 'fat.qnl'"])
        self.fails("quernel", "test", "fat.qnl", "--target", "x86-64", says=["--target: expected models", "quernel strip"])

    def test_test_vectors_stay_unless_told(self):
        os.makedirs(self.path("case/test_data_set_0"))
        self.write("case/model.onnx", onnx.model([onnx.node("Neg", ["x"], ["y"])], [onnx.value("x", onnx.FLOAT, [2])],
                                                 [onnx.value("y", onnx.FLOAT, [2])]))
        self.write("case/test_data_set_0/input_0.pb", onnx.float_tensor("x", [2], [1.0, 2.0]))
        self.write("case/test_data_set_0/output_0.pb", onnx.float_tensor("y", [2], [-1.0, -2.0]))
        self.succeeds("quernel", "compile", "case/model.onnx", "-o", "fat.qnl", "-q", "--embed-tests", *every(TARGETS))
        self.succeeds("quernel", "strip", "fat.qnl", "--target", "x86-64", "-o", "with.qnl", "-q")
        self.assertIn("1 passed", self.succeeds("quernel-run", "with.qnl", "--test"))
        self.succeeds("quernel", "strip", "fat.qnl", "--target", "x86-64", "-o", "without.qnl", "-q", "--no-tests")
        self.succeeds("quernel", "compile", "case/model.onnx", "-o", "alone.qnl", "-q", "--target", "x86-64")
        self.assertEqual(self.read("without.qnl"), self.read("alone.qnl"))

    def test_refused(self):
        self.compile_digits("fat.qnl", *every(TARGETS))
        strip = ("quernel", "strip", "fat.qnl", "-o", "out.qnl")
        self.fails(*strip, "--target", "x86-64-v4",
                   says=["--target: expected one of those in the bundle, x86-64, x86-64-v3, aarch64, found 'x86-64-v4'"])
        self.fails(*strip, *every(("x86-64", "x86-64")), says=["--target: 'x86-64' is named twice"])
        self.fails(*strip, code=2, says=["--target is required"])
        self.fails("quernel", "strip", "fat.qnl", "--target", "x86-64", "-o", "fat.qnl", says=["the output would overwrite the model"])
        self.write("bad.qnl", b"hello")
        self.fails("quernel", "strip", "bad.qnl", "--target", "x86-64", "-o", "out.qnl", says=["not a bundle"])

    def test_what_no_variant_fits_lists_both_sides(self):
        self.succeeds("quernel", "compile", DIGITS, "-o", "arm.qnl", "-q", *every(("aarch64", "cortex-a76")))
        done = self.run_tool("quernel-run", "arm.qnl")
        self.assertEqual(done.returncode, 1)
        for text in ("has x86-64 (", "the bundle has aarch64: aarch64 (neon); cortex-a76: aarch64 (neon fp16 dotprod)"):
            self.assertIn(text, done.stderr)


if __name__ == "__main__":
    unittest.main()
