#!/usr/bin/env python3
"""quernel verify says PASS only of right answers, and tells failures apart."""
import json
import os
import signal
import struct
import subprocess
import unittest

import onnx_file as onnx
import tflite_file as tflite
from tools import TIME_LIMIT, ToolTest, multiplies_bf16, tool

VALUES = [-1.0, 0.5, 2.0, -3.0, 0.0, 8.0]
RELU = [max(v, 0.0) for v in VALUES]


def relu_model(op="Relu", shape=(2, 3)):
    shape = list(shape)
    return onnx.model([onnx.node(op, ["x"], ["y"], "the_node")], [onnx.value("x", onnx.FLOAT, shape)], [onnx.value("y", onnx.FLOAT, shape)])


class VerifyReports(ToolTest):
    def case(self, name, model, sets, tolerance=None, file="model.onnx"):
        """A test directory; sets: pairs of input and output TensorProtos."""
        os.makedirs(self.path(name))
        self.write(f"{name}/{file}", model)
        for k, (inputs, outputs) in enumerate(sets):
            os.makedirs(self.path(f"{name}/test_data_set_{k}"))
            for role, tensors in (("input", inputs), ("output", outputs)):
                for i, tensor in enumerate(tensors):
                    self.write(f"{name}/test_data_set_{k}/{role}_{i}.pb", tensor)
        if tolerance is not None:
            self.write(f"{name}/tolerance.json", json.dumps(tolerance).encode())
        return name

    def relu_case(self, name, expected, tolerance=None):
        return self.case(name, relu_model(), [([onnx.float_tensor("x", [2, 3], VALUES)], [onnx.float_tensor("y", [2, 3], expected)])], tolerance)

    def verdict(self, name, *options):
        done = self.run_tool("quernel", "verify", name, *options)
        line = done.stdout.splitlines()[0]
        self.assertEqual(done.returncode, 0 if line.startswith("PASS") else 1, done.stdout + done.stderr)
        return line

    def test_right_answer_passes(self):
        self.assertEqual(self.verdict(self.relu_case("right", RELU)), "PASS right: 1 data set")

    def requantized_case(self, name, expected):
        """98, 120 and 3 times 10 / 27: 36.3, 44.4, 1.1."""
        os.makedirs(self.path(f"{name}/test_data_set_0"))
        self.write(f"{name}/model.tflite", tflite.requantization([1, 3], 10.0, 27.0))
        for role, tensor, values in (("input", "x", [98, 120, 3]), ("output", "y", expected)):
            self.write(f"{name}/test_data_set_0/{role}_0.pb", onnx.tensor(tensor, onnx.INT8, [1, 3], struct.pack("<3b", *values)))
        return name

    def test_the_rounding_of_the_data_is_named(self):
        expected = {"single": [36, 44, 1], "double": [37, 45, 1], "float32": [36, 45, 1]}
        for data, values in expected.items():
            name = self.requantized_case(data, values)
            for rounding in expected:
                line = self.verdict(name, "--rounding", rounding)
                if rounding == data:
                    self.assertEqual(line, f"PASS {name}: 1 data set")
                else:
                    self.assertIn(f"FAIL {name}: test_data_set_0: output 'y'", line)
                    self.assertIn(f"; the data have rounding {data}: compile with --rounding {data}", line)
        self.assertEqual(self.verdict("single"), "PASS single: 1 data set")
        self.assertNotIn("the data have rounding", self.verdict(self.requantized_case("wrong", [0, 0, 0])))

    def test_the_rounding_is_recorded(self):
        self.requantized_case("model", [36, 44, 1])
        for options, rounding in ((), "single"), (("--rounding", "double"), "double"):
            self.run_tool("quernel", "compile", "model/model.tflite", "-o", "m.qnl", *options)
            self.assertIn(f"rounding of quantized operators: {rounding}\n", self.run_tool("quernel", "inspect", "m.qnl").stdout)
            self.assertEqual(json.loads(self.run_tool("quernel", "inspect", "m.qnl", "--json").stdout)["rounding"], rounding)
        self.relu_case("floats", RELU)
        self.run_tool("quernel", "compile", "floats/model.onnx", "-o", "f.qnl")
        self.assertNotIn("rounding", self.run_tool("quernel", "inspect", "f.qnl").stdout)

    def test_a_rounding_is_refused_where_it_means_nothing(self):
        self.relu_case("floats", RELU)
        self.fails("quernel", "compile", "floats/model.onnx", "-o", "f.qnl", "--rounding", "double",
                   says=["--rounding: expected a TensorFlow Lite model, found one of another format"])
        self.fails("quernel", "check", "floats/model.onnx", "--rounding", "up", code=2, says=["--rounding: expected single, double or float32, found 'up'"])

    def test_wrong_value_fails_and_is_named(self):
        line = self.verdict(self.relu_case("wrong", RELU[:5] + [8.1]))
        for text in ("FAIL wrong: test_data_set_0: output 'y'", "1 of 6 elements beyond rtol", "[1,2]", "expected 8.1", "found 8"):
            self.assertIn(text, line)

    def test_fourier_transforms_are_compared_with_their_largest_element(self):
        """Of four equal elements only the sum is left; what a transform in f32 leaves of the others is forgiven."""
        values = onnx.value("x", onnx.FLOAT, [1, 4, 1]), onnx.value("y", onnx.FLOAT, [1, 4, 2])
        model = onnx.model([onnx.node("DFT", ["x"], ["y"])], [values[0]], [values[1]])
        for name, rest, verdict in (("near", 5e-5, "PASS near: 1 data set, y also to 1e-6 of the largest element"), ("far", 5e-4, "FAIL")):
            answer = [100.0, 0.0, rest, 0.0, 0.0, -rest, rest, 0.0]
            sets = [([onnx.float_tensor("x", [1, 4, 1], [25.0] * 4)], [onnx.float_tensor("y", [1, 4, 2], answer)])]
            self.assertTrue(self.verdict(self.case(name, model, sets)).startswith(verdict))
        self.assertIn("FAIL", self.verdict(self.case("told", model, [([onnx.float_tensor("x", [1, 4, 1], [25.0] * 4)],
                      [onnx.float_tensor("y", [1, 4, 2], [100.0] + [5e-5] * 7)])], {"rtol": 0, "atol": 1e-7})))

    def test_narrow_weights_are_allowed_a_share_of_the_largest_element(self):
        """The line says how far off the outputs are; an error of 7.5 % is too much for f16, one of 11 % for bf16."""
        self.relu_case("right", RELU)
        self.relu_case("near", RELU[:5] + [8.65])
        self.relu_case("far", RELU[:5] + [9.0])
        self.assertEqual(self.verdict("right", "--precision", "f16"),
                         "PASS right: 1 data set, f16 weights: off by 0 at most, 0 % of the largest element, 5 % is allowed")
        self.assertIn("FAIL near: test_data_set_0: output 'y'", self.verdict("near", "--precision", "f16"))
        self.assertEqual(self.verdict("near", "--precision", "bf16"),
                         "PASS near: 1 data set, bf16 weights: off by 0.65 at most, 7.5 % of the largest element, 10 % is allowed")
        self.assertIn("FAIL far", self.verdict("far", "--precision", "bf16"))
        self.assertTrue(self.verdict("far", "--precision", "bf16", "--precision-limit", "12").endswith("11 % of the largest element, 12 % is allowed"))
        self.assertIn("FAIL near", self.verdict("near", "--precision", "bf16", "--precision-limit", "2.5"))

    def test_operands_in_bf16_are_allowed_a_larger_share(self):
        """An error of 11 % is allowed where operands are rounded as well as weights, one of 16 % is not."""
        if not multiplies_bf16():
            self.skipTest("this machine does not multiply bf16")
        options = "--precision", "bf16", "--target", "native+bf16"
        self.assertEqual(self.verdict(self.relu_case("near", RELU[:5] + [9.0]), *options),
                         "PASS near: 1 data set, bf16 weights and operands: off by 1 at most, 11 % of the largest element, 15 % is allowed")
        self.assertIn("FAIL far", self.verdict(self.relu_case("far", RELU[:5] + [9.6]), *options))

    def test_data_sets_call_signatures(self):
        model = tflite.two_signatures([2])
        sets = [([onnx.float_tensor("x", [2], [-1, 2])], [onnx.float_tensor("y", [2], [1, -2])]),
                ([onnx.float_tensor("a", [2], [-1, 2])], [onnx.float_tensor("b", [2], [1, 2])])]
        case = self.case("both", model, sets, {"signatures": ["negate", "absolute"]}, "model.tflite")
        self.assertEqual(self.verdict(case), "PASS both: 2 data sets")
        self.assertEqual(self.verdict(case, "--entry", "absolute"), "PASS both: 1 data set")
        self.assertIn("expected a data set that calls signature 'other', found none", self.verdict(case, "--entry", "other"))
        self.assertIn("PASS both: 2 test vectors", self.succeeds("quernel", "test", case))
        self.assertIn("PASS", self.verdict(self.case("second", model, sets[1:], None, "model.tflite"), "--entry", "absolute"))
        self.fails("quernel", "check", "second/model.tflite", "--entry", "other", says=["('negate', 'absolute'), found 'other'"])
        self.succeeds("quernel", "bench", "second/model.tflite", "--entry", "absolute", "--seconds", "0.01")
        for k, wrong in enumerate((["negate"], ["negate", 1], "negate")):
            case = self.case(f"wrong{k}", model, sets, {"signatures": wrong}, "model.tflite")
            self.assertIn("signatures: expected the name of one for each of 2 data sets", self.verdict(case))

    def test_embedded_data_sets_call_signatures(self):
        sets = [([onnx.float_tensor("x", [2], [-1, 2])], [onnx.float_tensor("y", [2], [1, -2])]),
                ([onnx.float_tensor("a", [2], [-1, 2])], [onnx.float_tensor("b", [2], [1, 2])])]
        self.case("both", tflite.two_signatures([2]), sets, {"signatures": ["negate", "absolute"]}, "model.tflite")
        embed = "quernel", "compile", "both/model.tflite", "-o", "both.qnl", "--embed-tests"
        self.succeeds(*embed, "--entry", "absolute", "--entry", "negate")
        tests = json.loads(self.succeeds("quernel", "inspect", "both.qnl", "--json"))["test_vectors"]
        self.assertEqual([(t["name"], t["entry"]) for t in tests], [("test_data_set_0", "negate"), ("test_data_set_1", "absolute")])
        self.assertIn("2 passed, 0 failed", self.succeeds("quernel-run", "both.qnl", "--test"))
        self.assertIn("--embed-tests: left out 1 data set of other entry points", self.succeeds(*embed, "--entry", "absolute"))
        self.assertIn("1 passed, 0 failed", self.succeeds("quernel-run", "both.qnl", "--test"))
        self.fails(*embed, says=["test_data_set_0 calls 'negate': expected an entry point of this name, found 'main'", "--entry negate"])

    def test_a_sequence_is_not_embedded(self):
        sets = [([onnx.float_tensor("x", [1], [1])], [onnx.float_tensor("y", [1], [y])]) for y in (1, 2)]
        self.case("sums", tflite.accumulator([1]), sets, {"sequence": True}, "model.tflite")
        self.fails("quernel", "compile", "sums/model.tflite", "-o", "sums.qnl", "--embed-tests",
                   says=["--embed-tests: a test vector begins with initial states, data sets are one sequence of runs", "quernel verify"])

    def test_inputs_and_outputs_of_other_dtypes(self):
        """98, 120 and 3 of scale 10 and zero point 0, in scale 27; the same as real numbers."""
        ints = [onnx.tensor(n, onnx.INT8, [1, 3], struct.pack("<3b", *v)) for n, v in (("x", [98, 120, 3]), ("y", [36, 44, 1]))]
        reals = [onnx.float_tensor(n, [1, 3], v) for n, v in (("x", [984.0, 1196.0, 30.0]), ("y", [972.0, 1188.0, 27.0]))]
        for name, (x, y) in (("ints", ints), ("reals", reals)):
            self.case(name, tflite.requantization([1, 3], 10.0, 27.0), [([x], [y])], None, "model.tflite")
        self.assertEqual(self.verdict("ints"), "PASS ints: 1 data set")
        self.assertEqual(self.verdict("reals", "--io", "f32"), "PASS reals: 1 data set")
        self.assertIn("PASS", self.succeeds("quernel", "test", "reals", "--io", "f32"))
        self.assertIn("FAIL", self.verdict("ints", "--io", "f32"))
        self.succeeds("quernel", "bench", "ints/model.tflite", "--io", "f32", "--seconds", "0.01")
        self.assertIn("f32[1,3]", self.succeeds("quernel", "opt", "ints/model.tflite", "--io", "f32"))
        self.succeeds("quernel", "compile", "ints/model.tflite", "-o", "ints.qnl")
        said = self.succeeds("quernel", "inspect", "ints.qnl")
        self.assertIn("input   x  i8[1,3]  3 B  scale 10, zero point 0\n", said)
        self.assertIn("output  y  i8[1,3]  3 B  scale 27, zero point 0\n", said)
        entry = json.loads(self.succeeds("quernel", "inspect", "ints.qnl", "--json"))["entry_points"][0]
        self.assertEqual([(t["scale"], t["zero_point"]) for t in (*entry["inputs"], *entry["outputs"])], [(10, 0), (27, 0)])
        self.succeeds("quernel", "compile", "ints/model.tflite", "-o", "numbers", "--emit", "c")
        for line in "NUMBERS_INPUT_X_SCALE 1.000000000e+01f", "NUMBERS_INPUT_X_ZERO_POINT (0)", "NUMBERS_OUTPUT_Y_SCALE 2.700000000e+01f":
            self.assertIn(f"#define {line}\n", self.read("numbers.h").decode())
        self.succeeds("quernel", "compile", "ints/model.tflite", "-o", "reals.qnl", "--io", "f32")
        said = self.succeeds("quernel", "inspect", "reals.qnl")
        self.assertIn("f32[1,3]", said)
        self.assertNotIn("scale", said)
        self.relu_case("floats", RELU)
        self.assertIn("note: --io changes nothing: no input or output has a scale", self.succeeds("quernel", "check", "floats/model.onnx", "--io", "f32"))
        done = self.run_tool("quernel", "check", "floats/model.onnx", "--io", "i8")
        self.assertEqual(done.returncode, 1)
        for says in ("--io i8: input 'x': expected only quantizations of one scale to read it, found 'the_node' (Relu)",
                     "--io i8: output 'y': expected a dequantization of one scale, found 'the_node' (Relu)"):
            self.assertIn(says, done.stderr)
        self.fails("quernel", "check", "floats/model.onnx", "--io", "i16", code=2, says=["--io: expected f32 or i8, found 'i16'"])

    def test_sequences_keep_states(self):
        """Of eleven sets: the tenth is behind the ninth, by number."""
        sums = [float(k * (k + 1) // 2) for k in range(1, 12)]
        sets = [([onnx.float_tensor("x", [1], [k + 1])], [onnx.float_tensor("y", [1], [y])]) for k, y in enumerate(sums)]
        case = self.case("sums", tflite.accumulator([1]), sets, {"sequence": True}, "model.tflite")
        self.assertEqual(self.verdict(case), "PASS sums: 11 data sets")
        done = self.run_tool("quernel", "test", case)
        self.assertIn("UNSUPPORTED sums: ", done.stdout)
        self.assertIn("data sets that are one sequence of runs are not supported here", done.stdout)

    def test_tolerance_file_is_honoured(self):
        wrong = RELU[:5] + [8.1]
        self.assertIn("PASS", self.verdict(self.relu_case("loose", wrong, {"rtol": 0, "atol": 0.2})))
        self.assertIn("FAIL", self.verdict(self.relu_case("tight", wrong, {"rtol": 0, "atol": 0.05})))
        self.assertIn("PASS", self.verdict(self.relu_case("own", wrong, {"rtol": 0, "atol": 0, "outputs": {"y": {"atol": 0.2}}})))
        self.assertIn("mean abs error 0.0167 beyond 0.01", self.verdict(self.relu_case("mean", wrong, {"rtol": 0, "atol": 0.2, "outputs": {"y": {"mean_atol": 0.01}}})))
        self.assertIn("top-1 differs: expected [1,0] (8.3999996), found [1,2] (8)", self.verdict(self.relu_case("top1", [0, 0.5, 2, 8.4, 0, 8], {"rtol": 0, "atol": 10, "top1": True})))
        self.assertIn("tolerance.json: expected an object", self.verdict(self.relu_case("no_object", RELU, "text")))
        self.write(self.relu_case("damaged", RELU) + "/tolerance.json", b'{"rtol": 1e-3,')
        self.assertIn("FAIL damaged", self.verdict("damaged"))

    def test_damaged_tolerance_files_say_where(self):
        self.relu_case("case", RELU)
        for text, says in ((b'{"rtol": 1e-3,', "JSON: expected a string, found the end"), (b'{} x', "JSON: expected the end of the file, found 'x'"),
                           (b'{"rtol" 1}', "expected ':', found '1'"), (b'{"rtol": [1 2]}', "expected ',' or ']', found '2'"),
                           (b'{"rtol": 1 2}', "expected ',' or '}', found '2'"), (b'{1: 2}', "expected a string, found '1'"),
                           (b'{"\\q": 2}', "expected an escape sequence"), (b"[" * 10000, "expected fewer levels")):
            self.write("case/tolerance.json", text)
            self.assertIn(says, self.verdict("case"))

    def test_integers_are_compared_exactly(self):
        model = onnx.model([onnx.node("Neg", ["x"], ["y"])], [onnx.value("x", onnx.INT64, [2])], [onnx.value("y", onnx.INT64, [2])])
        line = self.verdict(self.case("integers", model, [([onnx.int_tensor("x", [2], [1, 2])], [onnx.int_tensor("y", [2], [-1, -3])])]))
        self.assertIn("1 of 2 elements differ, first at [1]: expected -3, found -2", line)

    def test_nan_only_where_nan_is_expected(self):
        nan, infinity = float("nan"), float("inf")
        self.assertIn("FAIL", self.verdict(self.relu_case("unexpected_number", RELU[:5] + [nan])))
        self.assertIn("FAIL", self.verdict(self.relu_case("infinity", RELU[:5] + [infinity])))
        tensors = [onnx.float_tensor("x", [2, 3], VALUES[:4] + [nan, infinity])], [onnx.float_tensor("y", [2, 3], [-v for v in VALUES[:4]] + [nan, -infinity])]
        self.assertIn("PASS", self.verdict(self.case("expected_nan", relu_model("Neg"), [tensors])))

    def test_dtype_and_shape_are_compared(self):
        x = onnx.float_tensor("x", [2, 3], VALUES)
        self.assertIn("expected f32[3,2], found f32[2,3]", self.verdict(self.case("shape", relu_model(), [([x], [onnx.float_tensor("y", [3, 2], RELU)])])))
        other = onnx.tensor("y", 11, [2, 3], struct.pack("<6d", *RELU))
        self.assertIn("expected f64[2,3], found f32[2,3]", self.verdict(self.case("dtype", relu_model(), [([x], [other])])))

    def test_missing_data_fails(self):
        x = onnx.float_tensor("x", [2, 3], VALUES)
        self.assertIn("expected a file for each of 1 outputs, found 0 files", self.verdict(self.case("no_output", relu_model(), [([x], [])])))
        self.assertIn("no file for input 'x'", self.verdict(self.case("no_input", relu_model(), [([], [onnx.float_tensor("y", [2, 3], RELU)])])))
        self.assertIn("expected a folder test_data_set_0 beside the model", self.verdict(self.case("no_set", relu_model(), [])))
        self.assertIn("FAIL", self.verdict(self.case("damaged_input", relu_model(), [([b"hello"], [onnx.float_tensor("y", [2, 3], RELU)])])))

    def test_free_dims_take_every_data_set(self):
        sets = [([onnx.float_tensor("x", [n, 3], VALUES[:3] * n)], [onnx.float_tensor("y", [n, 3], RELU[:3] * n)]) for n in (1, 4)]
        self.assertEqual(self.verdict(self.case("free", relu_model(shape=("n", 3)), sets)), "PASS free: 2 data sets, any shape")

    def test_sets_whose_sizes_the_bundle_does_not_take_are_compiled_for(self):
        """Free dims of an Add are assumed to be equal, so that a dim of 1 that broadcasts needs sizes that are fixed."""
        shapes = [onnx.value(name, onnx.FLOAT, dims) for name, dims in (("a", ["n", 3]), ("b", ["m", 3]), ("y", ["k", 3]))]
        model = onnx.model([onnx.node("Add", ["a", "b"], ["y"])], shapes[:2], shapes[2:])
        sets = [([onnx.float_tensor("a", [n, 3], [1.0] * 3 * n), onnx.float_tensor("b", [m, 3], [2.0] * 3 * m)],
                 [onnx.float_tensor("y", [max(n, m), 3], [3.0] * 3 * max(n, m))]) for n, m in ((2, 2), (1, 4), (3, 3))]
        self.assertEqual(self.verdict(self.case("both", model, sets)), "PASS both: 3 data sets")
        self.assertEqual(self.verdict(self.case("equal", model, sets[::2])), "PASS equal: 2 data sets, any shape")

    def test_data_sets_may_be_empty(self):
        sets = [([onnx.float_tensor("x", [n, 2], [-1.0, 2.0] * n)], [onnx.float_tensor("y", [n, 2], [0.0, 2.0] * n)]) for n in (0, 2)]
        for name, rows, some in (("free", "n", sets), ("fixed", 0, sets[:1])):
            line = self.verdict(self.case(name, relu_model(shape=(rows, 2)), some))
            self.assertTrue(line.startswith("PASS"), line)

    def test_values_that_must_be_known_come_from_the_data_set(self):
        model = onnx.model([onnx.node("Reshape", ["x", "shape"], ["y"])],
                           [onnx.value("x", onnx.FLOAT, [2, 3]), onnx.value("shape", onnx.INT64, [2])], [onnx.value("y", onnx.FLOAT, [3, 2])])
        inputs = [onnx.float_tensor("x", [2, 3], VALUES), onnx.int_tensor("shape", [2], [3, 2])]
        line = self.verdict(self.case("reshape", model, [(inputs, [onnx.float_tensor("y", [3, 2], VALUES)])]))
        self.assertEqual(line, "PASS reshape: 1 data set, compiled with the values of shape")

    def test_a_model_without_inputs_left_is_said_to_compute_nothing(self):
        """The only input decides a branch of another size, so it becomes a constant, and every result with it."""
        then = onnx.graph_attribute("then_branch", [onnx.node("Neg", ["x"], ["a"])], [], [onnx.value("a", onnx.FLOAT, [2])])
        other = onnx.graph_attribute("else_branch", [onnx.node("Concat", ["x", "x"], ["b"], attributes=[onnx.int_attribute("axis", 0)])], [],
                                     [onnx.value("b", onnx.FLOAT, [4])])
        nodes = [onnx.node("ReduceMax", ["x"], ["m"], attributes=[onnx.int_attribute("keepdims", 0)]), onnx.node("Less", ["m", "limit"], ["c"]),
                 onnx.node("If", ["c"], ["y"], "choice", attributes=[then, other])]
        model = onnx.model(nodes, [onnx.value("x", onnx.FLOAT, [2])], [onnx.value("y", onnx.FLOAT, ["n"])], [onnx.float_tensor("limit", [], [3.0])])
        sets = [([onnx.float_tensor("x", [2], x)], [onnx.float_tensor("y", [len(y)], y)]) for x, y in (([1.0, 2.0], [-1.0, -2.0]), ([1.0, 4.0], [1.0, 4.0] * 2))]
        self.assertEqual(self.verdict(self.case("branch", model, sets)), "PASS branch: 2 data sets, compiled with the values of all inputs (x): "
                         "nothing was computed from an input")

    def test_data_for_an_initializer_make_it_an_input(self):
        """An initializer that is listed as an input is its default; data sets that have the same value, another, or none."""
        model = onnx.model([onnx.node("Mul", ["x", "k"], ["y"])], [onnx.value(n, onnx.FLOAT, [2]) for n in ("x", "k")],
                           [onnx.value("y", onnx.FLOAT, [2])], [onnx.float_tensor("k", [2], [2.0, 3.0])])

        def data(k, y, names=("x", "k")):
            values = [onnx.float_tensor(names[0], [2], [1.0, -1.0])] + ([onnx.float_tensor(names[1], [2], k)] if k else [])
            return values, [onnx.float_tensor("y", [2], y)]
        same, other, none = data([2.0, 3.0], [2.0, -3.0]), data([5.0, 7.0], [5.0, -7.0]), data(None, [2.0, -3.0])
        self.assertEqual(self.verdict(self.case("same", model, [same, none])), "PASS same: 2 data sets")
        self.assertEqual(self.verdict(self.case("other", model, [same, other, none])), "PASS other: 3 data sets, the data's values for initializer k")
        self.assertEqual(self.verdict(self.case("unnamed", model, [data([5.0, 7.0], [5.0, -7.0], ("", ""))])),
                         "PASS unnamed: 1 data set, the data's values for initializer k")
        self.assertEqual(self.verdict("other", "--keep-input", "k").split(":")[1], " test_data_set_2")  # which has no value for it
        self.assertIn("output 'y'", self.verdict(self.case("wrong", model, [data([5.0, 7.0], [2.0, -3.0])])))
        self.assertIn("PASS", self.run_tool("quernel", "test", "other").stdout)

    def test_names_given_twice(self):
        """The last of two constants counts, or the model is refused, as the option says; an output listed twice is compared twice."""
        model = onnx.model([onnx.node("Add", ["x", "k"], ["y"])], [onnx.value("x", onnx.FLOAT, [2])], [onnx.value("y", onnx.FLOAT, [2])] * 2,
                           [onnx.float_tensor("k", [2], [9.0, 9.0]), onnx.float_tensor("k", [2], [1.0, 2.0])])
        y = onnx.float_tensor("y", [2], [4.0, 6.0])
        self.case("twice", model, [([onnx.float_tensor("x", [2], [3.0, 4.0])], [y, y])])
        self.assertEqual(self.verdict("twice"), "PASS twice: 1 data set")
        self.assertIn("expected one definition of 'k', found an initializer and another", self.verdict("twice", "--duplicate-names", "refuse"))
        self.fails("quernel", "verify", "twice", "--duplicate-names", "first",
                   says=["--duplicate-names: expected constants, last or refuse, found 'first'"], code=2)

    def test_sets_of_other_values_get_a_bundle_of_their_own(self):
        model = onnx.model([onnx.node("Reshape", ["x", "shape"], ["y"])],
                           [onnx.value("x", onnx.FLOAT, [2, 3]), onnx.value("shape", onnx.INT64, [2])], [onnx.value("y", onnx.FLOAT, ["a", "b"])])
        sets = [([onnx.float_tensor("x", [2, 3], VALUES), onnx.int_tensor("shape", [2], shape)], [onnx.float_tensor("y", shape, VALUES)])
                for shape in ([3, 2], [1, 6], [3, 2])]
        self.assertEqual(self.verdict(self.case("values", model, sets)), "PASS values: 3 data sets, compiled with the values of shape")

    def test_unsupported_is_told_from_invalid(self):
        sets = [([onnx.float_tensor("x", [2, 3], VALUES)], [onnx.float_tensor("y", [2, 3], RELU)])]
        line = self.verdict(self.case("unknown", relu_model("Bogus"), sets))
        self.assertTrue(line.startswith("UNSUPPORTED unknown: 1 diagnostic"), line)
        self.assertIn("Bogus", line)
        self.assertIn("FAIL", self.verdict(self.case("invalid", b"hello", sets)))

    def test_what_is_not_tested_does_not_succeed(self):
        sets = [([onnx.float_tensor("x", [2, 3], VALUES)], [onnx.float_tensor("y", [2, 3], RELU)])]
        self.relu_case("some/right", RELU)
        for name in ("exotic_a", "exotic_b"):
            self.case(f"some/{name}", relu_model("Bogus"), sets)
        says = ["found 2 that are not: exotic_a, exotic_b", "--allow-unsupported 2"]
        self.fails("quernel", "verify", "some", says=says)
        self.fails("quernel", "test", "some", says=says)
        self.fails("quernel", "verify", "some", "--allow-unsupported", "1", says=says)
        self.fails("quernel", "verify", "some", "--allow-unsupported", "*_a", says=["found 1 that is not: exotic_b"])
        for allowed in (["2"], ["exotic_*"], ["exotic_a", "1"]):
            options = [word for value in allowed for word in ("--allow-unsupported", value)]
            for command in ("verify", "test"):
                self.assertIn("1 passed, 0 failed, 2 unsupported", self.succeeds("quernel", command, "some", *options))

    def test_folder_of_cases_counts_and_goes_on(self):
        self.relu_case("all/a", RELU)
        self.relu_case("all/b", VALUES)
        self.case("all/c", relu_model("Bogus"), [([onnx.float_tensor("x", [2, 3], VALUES)], [onnx.float_tensor("y", [2, 3], RELU)])])
        done = self.run_tool("quernel", "verify", "all", "--jobs", "2", "--json", "report.json")
        lines = done.stdout.splitlines()
        self.assertEqual([l.split(":")[0] for l in lines], ["PASS a", "FAIL b", "UNSUPPORTED c", "1 passed, 1 failed, 1 unsupported"])
        self.assertEqual(done.returncode, 1)
        report = json.loads(self.read("report.json"))
        self.assertEqual((report["passed"], report["failed"], report["unsupported"]), (1, 1, 1))
        self.assertEqual([c["verdict"] for c in report["cases"]], ["PASS", "FAIL", "UNSUPPORTED"])

    def test_time_limit(self):
        line = self.verdict(self.relu_case("slow", RELU), "--timeout", "0.0001")
        self.assertIn("FAIL slow: timed out", line)

    def test_nothing_to_verify(self):
        os.mkdir(self.path("empty"))
        self.fails("quernel", "verify", "empty", says=["expected a model.onnx or model.tflite in the directory or in its children, found none"])
        self.fails("quernel", "verify", "nothing", says=["expected a directory with a model.onnx or model.tflite, found none"])
        self.fails("quernel", "verify", "empty", "--device", "gpu",
                   says=["--device: expected cpu, vulkan, or auto; vulkan:D and auto:D with a number, a type or a part of a name, found 'gpu'"],
                   code=2)

    def test_interrupted(self):
        for i in range(200):
            self.relu_case(f"many/{i}", RELU)
        verify = subprocess.Popen([tool("quernel"), "verify", "many", "--jobs", "1"], cwd=self.dir, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertIn("PASS", verify.stdout.readline())
        verify.send_signal(signal.SIGINT)
        rest, said = verify.communicate(timeout=TIME_LIMIT)
        self.assertEqual((verify.returncode, said), (1, "quernel: error[invalid input]: interrupted\n"))
        self.assertLess(rest.count("PASS"), 199)


if __name__ == "__main__":
    unittest.main()
