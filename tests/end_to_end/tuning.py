#!/usr/bin/env python3
"""Rooflines and choices: what bench says of kernels, and choices about kernels in a file."""
import json
import os
import unittest

import onnx_file
from tools import DIGITS, ToolTest


class Tuning(ToolTest):
    def choices(self, bundle):
        """Lines of `inspect --tuning`, as [(key, choice)]."""
        return [line.split(" = ") for line in self.succeeds("quernel", "inspect", bundle, "--tuning").splitlines()]

    def tilings(self, bundle):
        """Those of contractions."""
        return [line for line in self.choices(bundle) if line[1].startswith("tile ")]

    def compile_digits(self, *arguments):
        return self.succeeds("quernel", "compile", DIGITS, "-o", "digits.qnl", *arguments)

    def test_bench_compares_kernels_with_the_peaks_of_the_machine(self):
        self.compile_digits()
        document = json.loads(self.succeeds("quernel", "bench", "digits.qnl", "--repeat", "20", "--per-kernel", "--json"))
        peaks = document["peaks"]
        self.assertGreater(peaks["flops_per_second"], 1e8)
        self.assertGreater(peaks["near_bytes_per_second"], 1e8)
        self.assertGreater(peaks["far_bytes_per_second"], 1e8)
        by_class = {kernel["class"]: kernel for kernel in document["kernels"]}
        self.assertIn("gemv", by_class)
        for kernel in document["kernels"]:
            least = max(kernel["flops"] / peaks["flops_per_second"],
                        kernel["weight_bytes"] / peaks["far_bytes_per_second"]
                        + (kernel["bytes"] - kernel["weight_bytes"]) / peaks["near_bytes_per_second"])
            self.assertAlmostEqual(kernel["share_of_peak"], least / kernel["seconds"], delta=0.01 * kernel["share_of_peak"] + 1e-6)
            self.assertIn(kernel["bound"], ("compute", "memory"))
            if kernel["class"] == "gemv":
                self.assertRegex(kernel["choice"], r"^tile \d+x\d+")
        text = self.succeeds("quernel", "bench", "digits.qnl", "--repeat", "5", "--per-kernel")
        for word in ("peaks", "of peak", "class", "choice", "gemv", "GB/s"):
            self.assertIn(word, text)

    def test_bench_compares_int8_dot_products_with_their_own_peak(self):
        self.write("bytes.onnx", onnx_file.model(
            [onnx_file.node("MatMulInteger", ["x", "w"], ["y"])], [onnx_file.value("x", onnx_file.UINT8, [64, 256])],
            [onnx_file.value("y", onnx_file.INT32, [64, 256])], [onnx_file.tensor("w", onnx_file.INT8, [256, 256], bytes(range(256)) * 256)]))
        document = json.loads(self.succeeds("quernel", "bench", "bytes.onnx", "--repeat", "20", "--per-kernel", "--json"))
        peaks = document["peaks"]
        self.assertGreater(peaks["byte_ops_per_second"], 1e8)
        products = [kernel for kernel in document["kernels"] if kernel["flops"] == 2 * 64 * 256 * 256]
        self.assertEqual([kernel["bound"] for kernel in products], ["bytes"])
        least = products[0]["flops"] / peaks["byte_ops_per_second"]
        self.assertAlmostEqual(products[0]["share_of_peak"], least / products[0]["seconds"], delta=0.01 * products[0]["share_of_peak"])
        self.assertIn("Gop/s of int8 dot products", self.succeeds("quernel", "bench", "bytes.onnx", "--repeat", "5", "--per-kernel"))

    def test_printed_choices_are_read_again(self):
        self.compile_digits()
        first = self.read("digits.qnl")
        choices = self.choices("digits.qnl")
        self.assertGreater(len(choices), 0)
        self.write("choices", self.succeeds("quernel", "inspect", "digits.qnl", "--tuning").encode())
        self.assertNotIn("note", self.compile_digits("--tuning", "choices"))
        self.assertEqual(self.choices("digits.qnl"), choices)
        self.write("none", b"# nothing\n")
        self.compile_digits("--tuning", "none")
        self.assertEqual(self.read("digits.qnl"), first)

    def test_a_choice_overrides_the_estimate(self):
        self.compile_digits("--target", "x86-64")
        key, tiling = self.tilings("digits.qnl")[0]
        other = "tile 1x4" if tiling != "tile 1x4" else "tile 1x8"
        self.write("choices", f"{key} = {other}\n".encode())
        self.compile_digits("--target", "x86-64", "--tuning", "choices")
        self.assertEqual(dict(self.choices("digits.qnl"))[key], other)
        document = json.loads(self.succeeds("quernel", "inspect", "digits.qnl", "--json", "--schedule"))
        items = [item for item in document["variants"][0]["schedule"] if "key" in item]
        self.assertIn((key, other), [("x86-64 " + item["key"], item["choice"]) for item in items])

    def test_choices_about_loops_override_the_estimates(self):
        self.compile_digits("--target", "x86-64")
        schedule = self.succeeds("quernel", "inspect", "digits.qnl", "--schedule")
        printed = [line.strip().removeprefix("choice ").split(" = ") for line in schedule.splitlines() if line.strip().startswith("choice ")]
        self.assertEqual({"x86-64 " + key: choice for key, choice in printed}, dict(self.choices("digits.qnl")))
        key_of = {key.split()[0]: key for key, choice in printed if choice.startswith("along 2 ") or " tiles " in choice}
        lines = {key_of["map"]: "along 0 group 100", key_of["reduce"]: "along 1 group 512"}
        self.write("choices", "".join(f"x86-64 {key} = {choice}\n" for key, choice in lines.items()).encode())
        self.assertNotIn("note", self.compile_digits("--target", "x86-64", "--tuning", "choices"))
        found = dict(self.choices("digits.qnl"))
        for key, choice in lines.items():
            self.assertEqual(found["x86-64 " + key], choice)
        self.write("choices", f"x86-64 {key_of['reduce']} = along 9\n".encode())
        self.fails("quernel", "compile", DIGITS, "-o", "x.qnl", "--target", "x86-64", "--tuning", "choices",
                   says=["choices:1: expected 'along 2', 'along ", "with 'group' up to", f"for '{key_of['reduce']}', found 'along 9'"])

    def test_choices_that_are_wrong(self):
        def refused(text, *says):
            self.write("choices", text.encode())
            self.fails("quernel", "compile", DIGITS, "-o", "x.qnl", "--target", "x86-64", "--tuning", "choices", says=["choices:1: expected", *says])

        self.compile_digits("--target", "x86-64")
        key = self.tilings("digits.qnl")[0][0]
        refused("nonsense\n", "TARGET KEY = CHOICE, found 'nonsense'", "inspect BUNDLE --tuning")
        refused(f"{key} = tile 4\n", "'tile ROWSxCOLUMNS", "found 'tile 4'")
        refused(f"{key} = tile 99x4\n", "a tile among 1", "found 'tile 99x4'")
        self.fails("quernel", "compile", DIGITS, "-o", "x.qnl", "--tuning", "nothing", says=["nothing: cannot be read", "quernel tune"])

    def test_a_choice_for_no_kernel_is_noted(self):
        self.write("choices", b"x86-64 gemm of another model = tile 4x4\nx86-64-v4 gemm of another target = tile 4x16\n")
        text = self.compile_digits("--target", "x86-64", "--tuning", "choices")
        self.assertIn("choices:1: no kernel is 'gemm of another model' for x86-64", text)
        self.assertNotIn("another target", text)

    def test_a_file_of_another_model_is_told_in_one_line(self):
        lines = [f"x86-64 gemm {n} of another model = tile 4x4" for n in range(40)]
        self.write("choices", "\n".join(lines).encode())
        text = self.compile_digits("--target", "x86-64", "--tuning", "choices")
        self.assertEqual(text.count("no kernel is"), 1)
        self.assertIn("choices:1: no kernel is 'gemm 0 of another model' for x86-64, nor what any other line names: it is of another model", text)
        self.compile_digits("--target", "x86-64")
        key, tiling = self.tilings("digits.qnl")[0]
        self.write("choices", "\n".join([f"{key} = {tiling}", *lines]).encode())
        text = self.compile_digits("--target", "x86-64", "--tuning", "choices")
        self.assertEqual(text.count("no kernel is"), 1)
        self.assertIn("nor what 39 more of 41 lines name", text)
        self.write("choices", b"\n".join(b"line %d of some other text" % n for n in range(392)))
        self.fails("quernel", "compile", DIGITS, "-o", "x.qnl", "--tuning", "choices", says=["(and 384 more such lines)"], lines=8)

    def test_tune_writes_what_compile_reads(self):
        document = json.loads(self.succeeds("quernel", "tune", DIGITS, "-o", "tuned", "--budget", "3", "--json"))
        self.assertGreater(document["kernels"], 0)
        self.assertGreater(document["rounds"], 0)
        lines = [line.split("#")[0].strip() for line in self.read("tuned").decode().splitlines()]
        found = dict(line.split(" = ") for line in lines if line)
        wanted = {document["target"] + " " + choice["key"]: choice["choice"] for choice in document["choices"]}
        self.assertEqual(found, wanted)
        for choice in document["choices"]:
            self.assertLess(choice["ratio"], 0.98)  # less is not worth a line
            self.assertNotEqual(choice["choice"], choice["estimated"])
        self.assertNotIn("note", self.compile_digits("--tuning", "tuned"))
        self.assertTrue(set(wanted.items()) <= set(map(tuple, self.choices("digits.qnl"))))

    def test_tune_measures_where_on_says(self):
        document = json.loads(self.succeeds("quernel", "tune", DIGITS, "-o", "tuned", "--on", "nice -n 1", "--budget", "2", "--json"))
        self.assertGreater(document["kernels"], 0)
        self.assertGreater(document["rounds"], 0)
        self.assertGreater(document["estimated_seconds"], 0)
        self.assertIn("1 thread, --on nice -n 1.", self.read("tuned").decode().splitlines()[0])
        self.assertNotIn("note", self.compile_digits("--tuning", "tuned"))
        self.fails("quernel", "tune", DIGITS, "-o", "tuned", "--on", "qemu", says=[
            "--on qemu: an emulator's times are not the processor's", "tune on a device: --on ssh:HOST or adb"])
        self.fails("quernel", "tune", DIGITS, "-o", "tuned", "--on", "false", says=["--on false: quernel-run does not start"])
        self.write("starts_only", b'#!/bin/sh\ncase "$*" in *--version*) exec "$@";; esac\nexit 3\n')
        os.chmod(self.path("starts_only"), 0o755)
        self.fails("quernel", "tune", DIGITS, "-o", "tuned", "--on", self.path("starts_only"), says=["the device does not run the model: "])

    def test_tune_of_a_model_of_one_small_kernel(self):
        self.write("abs.qg", b"graph @main(%x: f32[4]) {\n  %1 = abs %x : f32[4]\n  return y = %1\n}\n")
        self.assertIn("0 of 0 kernels changed", self.succeeds("quernel", "tune", "abs.qg", "-o", "tuned", "--budget", "1"))
        self.succeeds("quernel", "compile", "abs.qg", "-o", "abs.qnl", "--tuning", "tuned")

    def test_what_tune_refuses(self):
        self.fails("quernel", "tune", DIGITS, "-o", "tuned", "--budget", "0", says=["--budget"], code=2)
        self.fails("quernel", "tune", DIGITS, "-o", "tuned", "--target", "x86-64", "--target", "x86-64-v3",
                   says=["tune: expected one --target, found 2"], code=2)
        self.fails("quernel", "tune", "nothing.onnx", "-o", "tuned", says=["nothing.onnx"])
        self.fails("quernel", "tune", DIGITS, "-o", "nowhere/tuned", says=["there is no directory 'nowhere'"])
        self.write("abs.qg", b"graph @main(%x: f32[4]) {\n  %1 = abs %x : f32[4]\n  return y = %1\n}\n")
        self.fails("quernel", "tune", "abs.qg", "-o", "abs.qg", says=["the output would overwrite the model"])


if __name__ == "__main__":
    unittest.main()
