#!/usr/bin/env python3
"""The main path: a model becomes a bundle, the bundle runs; its bytes do not depend on when or how it is compiled."""
import json
import os
import struct
import unittest

import onnx_file
from tools import DIGITS, ToolTest


class CompileAndRun(ToolTest):
    def test_compiled_model_runs(self):
        report = json.loads(self.succeeds("quernel", "compile", DIGITS, "-o", "digits.qnl", "--json"))
        self.assertEqual(report["file_bytes"], len(self.read("digits.qnl")))
        self.assertGreater(report["kernels"], 0)
        result = json.loads(self.succeeds("quernel-run", "digits.qnl", "random:1", "--output", "scores.npy", "--json"))
        self.assertLessEqual(result["latency_ms"]["min"], result["latency_ms"]["median"])
        self.assertGreater(result["load_ms"], 0)
        self.assertGreaterEqual(result["first_result_ms"], result["load_ms"] + result["latency_ms"]["min"])
        self.assertGreater(result["peak_rss_bytes"], 0)
        self.assertEqual(result["memory"]["constants_bytes"], report["constants_bytes"])
        self.assertEqual(set(result["memory"]), {"constants_bytes", "workspace_bytes", "state_bytes", "io_bytes", "session_bytes", "code_bytes"})
        self.assertTrue(self.read("scores.npy").startswith(b"\x93NUMPY"))

    def test_summary_names_file_and_sizes_and_quiet_is_quiet(self):
        text = self.succeeds("quernel", "compile", DIGITS, "-o", "digits.qnl")
        for word in ("digits.qnl", "constants", "code", "workspace", "time"):
            self.assertIn(word, text)
        self.assertEqual(self.succeeds("quernel", "compile", DIGITS, "-o", "digits.qnl", "-q"), "")

    def test_random_inputs_are_said_and_forgotten_ones_refused(self):
        self.write("sum.onnx", onnx_file.model([onnx_file.node("Add", ["a", "b"], ["y"])], [onnx_file.value(name, onnx_file.FLOAT, [2]) for name in "ab"],
                                               [onnx_file.value("y", onnx_file.FLOAT, [2])]))
        self.succeeds("quernel", "compile", "sum.onnx", "-o", "sum.qnl", "-q")
        done = self.run_tool("quernel-run", "sum.qnl")
        self.assertEqual((done.returncode, done.stderr),
                         (0, "quernel-run: note: the inputs are random numbers: --input a=FILE gives others\n"))
        self.fails("quernel-run", "sum.qnl", "--input", "a=random:1",
                   says=["expected a value of every input, found none of 'b'", "--input b=FILE, or --input b=random:0"])
        done = self.run_tool("quernel-run", "sum.qnl", "--input", "a=random:1", "--input", "b=random:2")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_what_is_not_finite_has_no_least_and_mean(self):
        self.write("log.onnx", onnx_file.model([onnx_file.node("Log", ["x"], ["y"])], [onnx_file.value("x", onnx_file.FLOAT, [3])],
                                               [onnx_file.value("y", onnx_file.FLOAT, [3])]))
        self.succeeds("quernel", "compile", "log.onnx", "-o", "log.qnl", "-q")
        for values, says, least in (([-1.0, -2.0, 0.0], "nothing finite: 2 NaN, 1 infinite", None), ([1.0, 0.0, -1.0], "min 0  max 0  mean 0  not finite: 2 (1 NaN)", 0)):
            self.write("x.pb", onnx_file.float_tensor("x", [3], values))
            self.assertIn(says, self.succeeds("quernel-run", "log.qnl", "x.pb"))
            output = json.loads(self.succeeds("quernel-run", "log.qnl", "x.pb", "--json"))["outputs"][0]
            self.assertEqual([output["min"], output["max"], output["mean"]], [least] * 3)

    def test_states_go_on_from_process_to_process(self):
        value = onnx_file.value("x", onnx_file.FLOAT, [2])
        self.write("sum.onnx", onnx_file.model([onnx_file.node("Add", ["x", "s"], ["t"]), onnx_file.node("Neg", ["t"], ["y"])],
                                               [value, onnx_file.value("s", onnx_file.FLOAT, [2])],
                                               [onnx_file.value("y", onnx_file.FLOAT, [2]), onnx_file.value("t", onnx_file.FLOAT, [2])]))
        self.succeeds("quernel", "compile", "sum.onnx", "--state", "s=t", "-o", "sum.qnl", "-q")
        found = []
        for number, words in ((1.0, []), (2.0, ["--load-state", "state"]), (4.0, ["--load-state", "state"])):
            self.write("x.pb", onnx_file.float_tensor("x", [2], [number, 10 * number]))
            self.succeeds("quernel-run", "sum.qnl", "x.pb", *words, "--save-state", "state", "--output", "y=y.raw")
            found.append(struct.unpack("<2f", self.read("y.raw")))
        self.assertEqual(found, [(-1, -10), (-3, -30), (-7, -70)])
        # Of another model, with as many bytes; damaged; absent.
        self.write("other.onnx", self.read("sum.onnx").replace(b"s", b"q"))
        self.succeeds("quernel", "compile", "other.onnx", "--state", "q=t", "-o", "other.qnl", "-q")
        other_words = ["--load-state", "state", "--input", "x=x.pb"]
        self.fails("quernel-run", "other.qnl", *other_words, says=["expected the 1 states of this entry point", "found something else in 'state'"])
        self.write("state", self.read("state")[:-1])
        self.fails("quernel-run", "sum.qnl", "x.pb", "--load-state", "state", says=["found something else in 'state'"])
        self.fails("quernel-run", "sum.qnl", "x.pb", "--load-state", "none", says=["--load-state", "none"])
        done = self.run_tool("quernel-run", "sum.qnl", "--test", "--load-state", "state")
        self.assertEqual(done.returncode, 2)
        self.assertIn("not with --test", done.stderr)

    def test_threads_give_the_same_result(self):
        self.compile_digits()
        for threads in ("1", "2", "3"):
            self.succeeds("quernel-run", "digits.qnl", "random:7", "--threads", threads, "--output", f"{threads}.npy")
        self.assertEqual(self.read("1.npy"), self.read("2.npy"))
        self.assertEqual(self.read("1.npy"), self.read("3.npy"))

    def test_same_input_same_bytes(self):
        self.compile_digits("a.qnl")
        self.compile_digits("b.qnl")
        self.compile_digits("c.qnl", "--threads", "1")
        self.compile_digits("d.qnl", "--threads", "3")
        expected = self.read("a.qnl")
        for name in ("b.qnl", "c.qnl", "d.qnl"):
            self.assertTrue(self.read(name) == expected, name + " differs from a.qnl")

    def test_several_targets_in_one_bundle(self):
        self.compile_digits("both.qnl", "--target", "x86-64", "--target", "native")
        self.compile_digits("one.qnl", "--target", "x86-64")
        targets = [v["target"] for v in json.loads(self.succeeds("quernel", "inspect", "both.qnl", "--json"))["variants"]]
        self.assertEqual(len(targets), 2)
        self.succeeds("quernel-run", "both.qnl", "random:1")

    def test_an_older_bundle_is_replaced(self):
        self.write("digits.qnl", b"something else")
        self.compile_digits("digits.qnl")
        self.succeeds("quernel", "inspect", "digits.qnl", "--check")

    def test_narrow_weights_take_half_the_bytes_and_are_said_to_be_off(self):
        weights = [(i * 7919 % 2003 - 1001) / 1000 for i in range(64 * 128)]
        self.write("product.onnx", onnx_file.model([onnx_file.node("MatMul", ["x", "w"], ["y"])], [onnx_file.value("x", onnx_file.FLOAT, [1, 64])],
                                                   [onnx_file.value("y", onnx_file.FLOAT, [1, 128])],
                                                   [onnx_file.float_tensor("w", [64, 128], weights)]))
        self.write("x.npy", onnx_file.npy([1, 64], "f", [1.0] * 64))
        bytes_of, answer = {}, {}
        for precision, error in (("f32", None), ("f16", 0.01), ("bf16", 0.1)):
            report = json.loads(self.succeeds("quernel", "compile", "product.onnx", "-o", "p.qnl", "--precision", precision, "--json"))
            bytes_of[precision] = report["constants_bytes"]
            self.assertEqual(bool(report["notes"]), error is not None)
            if error:
                self.assertRegex(report["notes"][0], f"^large weights are stored in {precision}, off by [0-9.]+ % \\(root mean square\\)$")
                self.assertLess(float(report["notes"][0].split()[-5]), 2 * error)
            self.succeeds("quernel-run", "p.qnl", "x.npy", "--output", "y.npy")
            answer[precision] = struct.unpack("<128f", self.read("y.npy")[-512:])
            for a, b in zip(answer[precision], answer["f32"]):
                self.assertLess(abs(a - b), 64 * 2 * (error or 1) / 100)
        report = json.loads(self.succeeds("quernel", "compile", "product.onnx", "-o", "p.qnl", "--precision", "f16", "--target", "x86-64", "--json"))
        self.assertEqual(report["notes"][1], "target x86-64 has no instruction that widens f16: bf16 is several times faster there")
        report = json.loads(self.succeeds("quernel", "compile", "product.onnx", "-o", "p.qnl", "--precision", "bf16", "--target", "x86-64-v4+bf16", "--json"))
        self.assertEqual(report["notes"][1], "target x86-64-v4+bf16 multiplies bf16: what large weights are multiplied with is rounded, too, sums are f32")
        self.assertEqual((bytes_of["f16"], bytes_of["bf16"]), (bytes_of["f32"] // 2,) * 2)
        self.assertNotEqual(answer["bf16"], answer["f32"])

    def test_quantised_weights_take_a_part_of_the_bytes_and_are_said_to_be_off(self):
        weights = [(i * 7919 % 2003 - 1001) / 1000 for i in range(64 * 128)]
        self.write("product.onnx", onnx_file.model([onnx_file.node("MatMul", ["x", "w"], ["y"], name="last")],
                                                   [onnx_file.value("x", onnx_file.FLOAT, [1, 64])],
                                                   [onnx_file.value("y", onnx_file.FLOAT, [1, 128])],
                                                   [onnx_file.float_tensor("w", [64, 128], weights)]))
        self.write("x.npy", onnx_file.npy([1, 64], "f", [(i % 5 - 2) / 2 for i in range(64)]))
        bytes_of, answer = {}, {}
        for flags, error in (((), 0), (("--weights", "i8"), 0.7), (("--weights", "i4"), 12), (("--weights", "i4:16"), 12)):
            report = json.loads(self.succeeds("quernel", "compile", "product.onnx", "-o", "p.qnl", *flags, "--json"))
            bytes_of[flags] = report["constants_bytes"]
            if error:
                self.assertRegex(report["notes"][0], r"^1 layers with 8192 weights are quantised, off by [0-9.]+ % .*'last' [0-9.]+ %$")
                self.assertLess(float(report["notes"][0].split()[-2]), error)
                [layer] = report["quantised_layers"]
                self.assertEqual((layer["name"], layer["elements"], layer["bits"]), ("last", 8192, 8 if "i8" in flags else 4))
                self.assertAlmostEqual(layer["error"] * 100, float(report["notes"][0].split()[-2]), delta=error / 20)
            self.succeeds("quernel-run", "p.qnl", "x.npy", "--output", "y.npy")
            answer[flags] = struct.unpack("<128f", self.read("y.npy")[-512:])
            for a, b in zip(answer[flags], answer[()]):
                self.assertLess(abs(a - b), 64 * 2 * error / 100 + 1e-6)
            self.assertEqual(answer[flags] == answer[()], error == 0)
        whole, scales = bytes_of[()], bytes_of[()] // 64                    # of as many columns as tiles have
        self.assertEqual([bytes_of[f] for f in bytes_of], [whole, whole // 4 + scales, whole // 8 + 2 * scales, whole // 8 + 4 * scales])
        self.succeeds("quernel", "compile", "product.onnx", "-o", "p.qnl", "--weights", "i4", "--float-weights", "la*")
        self.succeeds("quernel-run", "p.qnl", "x.npy", "--output", "y.npy")
        self.assertEqual(struct.unpack("<128f", self.read("y.npy")[-512:]), answer[()])

    def test_quantised_weights_of_windows_stay_quantised(self):
        weights = [(i * 7919 % 2003 - 1001) / 1000 for i in range(64 * 32 * 9)]
        self.write("window.onnx", onnx_file.model([onnx_file.node("Conv", ["x", "w"], ["y"], attributes=[onnx_file.ints_attribute("pads", [1] * 4)])],
                                                  [onnx_file.value("x", onnx_file.FLOAT, [1, 32, 12, 12])],
                                                  [onnx_file.value("y", onnx_file.FLOAT, [1, 64, 12, 12])],
                                                  [onnx_file.float_tensor("w", [64, 32, 3, 3], weights)]))
        for target in ("x86-64", "x86-64-v3", "x86-64-v4", "cortex-a76", "cortex-a15", "vulkan"):
            for flags, part in (("i8", 4), ("i4", 8)):
                report = json.loads(self.succeeds("quernel", "compile", "window.onnx", "-o", "w.qnl", "--weights", flags, "--target", target, "--json"))
                # Tiles may have up to half as many columns more; there are nine scales of four bytes for a column at most.
                self.assertLessEqual(report["constants_bytes"], (len(weights) * 4 // part + 64 * 9 * 4) * 3 // 2, (target, flags))

    def test_rounded_activations_change_results_a_little_and_are_said_to_be_left_where_they_are(self):
        weights = [(i * 7919 % 2003 - 1001) / 1000 for i in range(64 * 128)]
        self.write("product.onnx", onnx_file.model([onnx_file.node("MatMul", ["x", "w"], ["y"])],
                                                   [onnx_file.value("x", onnx_file.FLOAT, [2, 64])],
                                                   [onnx_file.value("y", onnx_file.FLOAT, [2, 128])],
                                                   [onnx_file.float_tensor("w", [64, 128], weights)]))
        self.write("x.npy", onnx_file.npy([2, 64], "f", [(i * 37 % 101 - 50) / 50 for i in range(128)]))
        answer = {}
        for target in ("x86-64", "x86-64-v2", "native"):
            for activations in ("f32", "i8", "i8:row"):
                report = json.loads(self.succeeds("quernel", "compile", "product.onnx", "-o", "p.qnl", "--weights", "i4", "--activations",
                                                  activations, "--target", target, "--json"))
                left = [note for note in report["notes"] if "int8 dot product" in note]
                self.assertEqual(len(left), int(target == "x86-64" and activations != "f32"))
                self.succeeds("quernel-run", "p.qnl", "x.npy", "--output", "y.npy")
                answer[target, activations] = struct.unpack("<256f", self.read("y.npy")[-1024:])
        # Half a step of 1 / 127, for weights of up to 1.
        for rounded in ("i8", "i8:row"):
            worst = max(abs(a - b) for a, b in zip(answer["native", rounded], answer["native", "f32"]))
            self.assertTrue(0 < worst < 64 * 0.5 / 127)
            for target in ("x86-64", "x86-64-v2"):
                for a, b in zip(answer["native", rounded], answer[target, rounded]):
                    self.assertLess(abs(a - b), 1e-4)
        self.assertNotEqual(answer["native", "i8"], answer["native", "i8:row"])
        report = json.loads(self.succeeds("quernel", "compile", "product.onnx", "-o", "p.qnl", "--activations", "i8", "--json"))
        self.assertIn("no product has quantised weights", report["notes"][-1])

    def test_free_dim_is_fixed_on_the_command_line(self):
        shape = ["batch", 4]
        self.write("free.onnx", onnx_file.model([onnx_file.node("Relu", ["x"], ["y"])], [onnx_file.value("x", onnx_file.FLOAT, shape)],
                                                [onnx_file.value("y", onnx_file.FLOAT, shape)]))
        for option in (("--dim", "batch=3"), ("--input-shape", "x=3x4"), ("--input-shape", "x=3,4")):
            self.succeeds("quernel", "compile", "free.onnx", "-o", "free.qnl", *option)
            entry = json.loads(self.succeeds("quernel", "inspect", "free.qnl", "--json"))["entry_points"][0]
            self.assertEqual(entry["inputs"][0]["shape"], [3, 4])
        self.write("x.npy", onnx_file.npy([3, 4], "f", [-1.5, 2.5] * 6))
        self.succeeds("quernel-run", "free.qnl", "x.npy", "--output", "y.npy")
        self.assertEqual(self.read("y.npy")[-48:], struct.pack("<12f", *[0, 2.5] * 6))

    def test_a_free_dim_may_be_0(self):
        """A cache that is empty in the first step; the largest element of nothing has no index."""
        shapes = {name: onnx_file.value(name, onnx_file.FLOAT, [dim, 2]) for name, dim in (("past", "past"), ("x", 1), ("now", "now"))}
        self.write("cache.onnx", onnx_file.model([onnx_file.node("Concat", ["past", "x"], ["now"], attributes=[onnx_file.int_attribute("axis", 0)])],
                                                 [shapes["past"], shapes["x"]], [shapes["now"]]))
        self.write("largest.onnx", onnx_file.model([onnx_file.node("ArgMax", ["past"], ["i"], "the_largest")], [shapes["past"]],
                                                   [onnx_file.value("i", onnx_file.INT64, [1, 2])]))
        self.write("x.npy", onnx_file.npy([1, 2], "f", [8.0, 9.0]))
        for model in ("cache", "largest"):
            self.succeeds("quernel", "compile", f"{model}.onnx", "-o", f"{model}.qnl")
        for rows in (0, 3, 0):
            past = [float(i) for i in range(2 * rows)]
            self.write("past.npy", onnx_file.npy([rows, 2], "f", past))
            self.succeeds("quernel-run", "cache.qnl", "--input", "past=past.npy", "--input", "x=x.npy", "--output", "now=now.npy")
            self.assertEqual(onnx_file.values_of_npy(self.read("now.npy")), ([rows + 1, 2], past + [8.0, 9.0]))
            if rows:
                self.succeeds("quernel-run", "largest.qnl", "past.npy")
            else:
                self.fails("quernel-run", "largest.qnl", "past.npy", says=["node 'the_largest'", "too few"], lines=None)

    def test_value_of_an_input_on_the_command_line_makes_it_a_constant(self):
        for shape_dims in ([2], ["rank"]):
            self.write("reshape.onnx", onnx_file.model(
                [onnx_file.node("Reshape", ["x", "shape"], ["y"])],
                [onnx_file.value("x", onnx_file.FLOAT, [2, 3]), onnx_file.value("shape", onnx_file.INT64, shape_dims)],
                [onnx_file.value("y", onnx_file.FLOAT, ["a", "b"])]))
            self.fails("quernel", "check", "reshape.onnx", says=["shape"], lines=None)
            self.write("shape.npy", onnx_file.npy([2], "q", [3, 2]))
            self.write("shape.pb", onnx_file.int_tensor("other name", [2], [3, 2]))
            for file in ("shape.npy", "shape.pb"):
                option = ("--input-value", f"shape={file}")
                self.assertIn("input 'shape' is fixed", self.succeeds("quernel", "check", "reshape.onnx", *option))
                self.assertIn("input 'shape' is fixed", self.succeeds("quernel", "compile", "reshape.onnx", "-o", "r.qnl", *option))
                entry = json.loads(self.succeeds("quernel", "inspect", "r.qnl", "--json"))["entry_points"][0]
                self.assertEqual([t["name"] for t in entry["inputs"]], ["x"])
                self.assertEqual(entry["outputs"][0]["shape"], [3, 2])
                os.remove(self.path("r.qnl"))
        self.write("x.npy", onnx_file.npy([2, 3], "f", [0.0] * 6))
        self.assertIn("the value of input 'x' is not used",
                      self.succeeds("quernel", "check", "reshape.onnx", *option, "--input-value", "x=x.npy"))
        self.fails("quernel", "check", "reshape.onnx", *option, "--input-value", "z=x.npy", says=["'x'", "'z'"])
        self.fails("quernel", "check", "reshape.onnx", "--input-value", "shape=x.npy", says=["'shape'", "i64", "f32"], lines=None)


if __name__ == "__main__":
    unittest.main()
