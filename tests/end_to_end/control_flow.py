#!/usr/bin/env python3
"""Loops, branches and recurrences whose course is found while a model runs: one bundle each, at several values."""
import math
import random
import struct
import unittest

import onnx_file
from onnx_file import BOOL, FLOAT, INT64, node, value
from tools import ToolTest


def scalar(name, number, dtype=INT64):
    return onnx_file.tensor(name, dtype, [], struct.pack({INT64: "<q", FLOAT: "<f", BOOL: "<?"}[dtype], number))


def ints(name, numbers):
    return onnx_file.int_tensor(name, [len(numbers)], numbers)


def loop(inputs, outputs, body):
    return node("Loop", inputs, outputs, attributes=[onnx_file.graph_attribute("body", *body)])


# The inputs that every body of a Loop has.
COUNTING = [value("i", INT64, []), value("goes_on", BOOL, [])]


def collatz():
    """x is halved, or tripled and increased, until it is 1: {x, how often}."""
    odd = ([node("Mul", ["v", "three"], ["v3"]), node("Add", ["v3", "one"], ["odd_next"]),
            node("ReduceSum", ["odd_next"], ["then_v"], attributes=[onnx_file.int_attribute("keepdims", 0)])],
           [], [value("then_v", INT64, [])])
    even = ([node("Div", ["v", "two"], ["else_v"])], [], [value("else_v", INT64, [])])
    body = ([node("Mod", ["v", "two"], ["rest"]), node("Equal", ["rest", "one"], ["is_odd"]),
             node("If", ["is_odd"], ["v_out"], attributes=[onnx_file.graph_attribute("then_branch", *odd),
                                                          onnx_file.graph_attribute("else_branch", *even)]),
             node("Add", ["n", "one"], ["n_out"]), node("Greater", ["v_out", "one"], ["again"])],
            COUNTING + [value("v", INT64, []), value("n", INT64, [])],
            [value("again", BOOL, []), value("v_out", INT64, []), value("n_out", INT64, [])])
    return onnx_file.model([node("Greater", ["x", "one"], ["begins"]), loop(["", "begins", "x", "zero"], ["y", "steps"], body)],
                           [value("x", INT64, [])], [value("y", INT64, []), value("steps", INT64, [])],
                           [scalar("zero", 0), scalar("one", 1), scalar("two", 2), scalar("three", 3)])


def newton():
    """Steps towards the root of x until one is small: the root, and all that was tried."""
    body = ([node("Div", ["x", "r"], ["q"]), node("Add", ["q", "r"], ["sum"]), node("Mul", ["sum", "half"], ["r_out"]),
             node("Sub", ["r_out", "r"], ["d"]), node("Abs", ["d"], ["size"]), node("Greater", ["size", "small"], ["again"]),
             node("Identity", ["r_out"], ["tried"])],
            COUNTING + [value("r", FLOAT, [])], [value("again", BOOL, []), value("r_out", FLOAT, []), value("tried", FLOAT, [])])
    return onnx_file.model([loop(["most", "yes", "x"], ["root", "all"], body)], [value("x", FLOAT, [])],
                           [value("root", FLOAT, []), value("all", FLOAT, ["k"])],
                           [scalar("most", 5000), scalar("yes", True, BOOL), scalar("half", 0.5, FLOAT), scalar("small", 1e-4, FLOAT)])


def triangle():
    """A loop in a loop, both of computed counts: the sum of i * j over j <= i < m."""
    inner = ([node("Mul", ["i", "j"], ["product"]), node("Add", ["t", "product"], ["t_out"]), node("Identity", ["goes_on_2"], ["again_2"])],
             [value("j", INT64, []), value("goes_on_2", BOOL, []), value("t", INT64, [])],
             [value("again_2", BOOL, []), value("t_out", INT64, [])])
    outer = ([node("Add", ["i", "one"], ["count"]), loop(["count", "", "s"], ["s_out"], inner), node("Identity", ["goes_on"], ["again"])],
             COUNTING + [value("s", INT64, [])], [value("again", BOOL, []), value("s_out", INT64, [])])
    return onnx_file.model([loop(["m", "", "zero"], ["sum"], outer)], [value("m", INT64, [])], [value("sum", INT64, [])],
                           [scalar("zero", 0), scalar("one", 1)])


def noise(rows):
    """Random numbers in each iteration, as many as x has rows."""
    body = ([node("RandomNormalLike", ["one_row"], ["drawn"]), node("Identity", ["goes_on"], ["again"])], COUNTING,
            [value("again", BOOL, []), value("drawn", FLOAT, [3])])
    return onnx_file.model([node("Shape", ["x"], ["shape"]), node("Gather", ["shape", "first"], ["count"]), loop(["count", ""], ["y"], body)],
                           [value("x", FLOAT, [rows, 2])], [value("y", FLOAT, [rows, 3])],
                           [scalar("first", 0), onnx_file.float_tensor("one_row", [3], [0, 0, 0])])


def lstm(inputs, hidden, weights, recurrence, bias, direction):
    text = onnx_file.message(1, "direction") + onnx_file.message(4, direction) + onnx_file.number(20, 3)
    count = 2 if direction == "bidirectional" else 1
    return onnx_file.model(
        [node("LSTM", ["x", "w", "r", "b"], ["y", "h", "c"], attributes=[onnx_file.int_attribute("hidden_size", hidden), text])],
        [value("x", FLOAT, ["length", "batch", inputs])],
        [value("y", FLOAT, ["length", count, "batch", hidden]), value("h", FLOAT, [count, "batch", hidden]),
         value("c", FLOAT, [count, "batch", hidden])],
        [onnx_file.float_tensor("w", [count, 4 * hidden, inputs], weights), onnx_file.float_tensor("r", [count, 4 * hidden, hidden], recurrence),
         onnx_file.float_tensor("b", [count, 8 * hidden], bias)])


def run_lstm(x, length, batch, inputs, hidden, weights, recurrence, bias, count):
    """Y [length, count, batch, hidden] of x [length, batch, inputs]."""
    sigmoid = lambda v: 1 / (1 + math.exp(-v))
    y = [0.0] * (length * count * batch * hidden)
    for d in range(count):
        for b in range(batch):
            h, c = [0.0] * hidden, [0.0] * hidden
            for s in range(length):
                t = s if d == 0 else length - 1 - s
                gates = []
                for g in range(4 * hidden):
                    row = d * 4 * hidden + g
                    v = bias[d * 8 * hidden + g] + bias[d * 8 * hidden + 4 * hidden + g]
                    v += sum(weights[row * inputs + k] * x[(t * batch + b) * inputs + k] for k in range(inputs))
                    v += sum(recurrence[row * hidden + k] * h[k] for k in range(hidden))
                    gates.append(v)
                for k in range(hidden):
                    i, o, f, g = (gates[part * hidden + k] for part in range(4))
                    c[k] = sigmoid(f) * c[k] + sigmoid(i) * math.tanh(g)
                    gates[k] = sigmoid(o) * math.tanh(c[k])
                h = gates[:hidden]
                for k in range(hidden):
                    y[((t * count + d) * batch + b) * hidden + k] = h[k]
    return y


class ControlFlow(ToolTest):
    def compile(self, name, model, *options):
        self.write(name + ".onnx", model)
        self.succeeds("quernel", "compile", name + ".onnx", "-o", name + ".qnl", *options)

    def run_bundle(self, name, x, outputs, threads="1"):
        self.write("x.npy", x)
        files = [part for output in outputs for part in ("--output", f"{output}={output}.npy")]
        self.succeeds("quernel-run", name + ".qnl", "x.npy", *files, "--threads", threads)
        return [onnx_file.values_of_npy(self.read(output + ".npy")) for output in outputs]

    def test_a_loop_ends_when_its_condition_says(self):
        self.compile("collatz", collatz())
        for x in (1, 2, 6, 7, 27, 97):
            v, steps = x, 0
            while v > 1:
                v, steps = (v * 3 + 1 if v % 2 else v // 2), steps + 1
            self.assertEqual(self.run_bundle("collatz", onnx_file.npy([], "q", [x]), ["y", "steps"]), [([], [v]), ([], [steps])])

    def test_scan_outputs_are_as_long_as_the_loop_has_run(self):
        self.compile("newton", newton())
        for x in (1.0, 2.0, 1e6):
            (_, root), (shape, tried) = self.run_bundle("newton", onnx_file.npy([], "f", [x]), ["root", "all"], "2")
            self.assertAlmostEqual(root[0] / math.sqrt(x), 1, places=5)
            self.assertEqual(shape, [len(tried)])
            self.assertEqual(tried[-1], root[0])
            self.assertEqual(len(tried) > 5, x > 100)

    def test_loops_of_computed_counts_are_nested(self):
        self.compile("triangle", triangle())
        for m in (-3, 0, 1, 2, 9):
            want = sum(i * j for i in range(m) for j in range(i + 1))
            self.assertEqual(self.run_bundle("triangle", onnx_file.npy([], "q", [m]), ["sum"]), [([], [want])])

    def test_each_iteration_draws_other_numbers_unrolled_or_not(self):
        self.compile("free", noise("rows"))
        self.compile("fixed", noise(4))
        x = onnx_file.npy([4, 2], "f", [0.0] * 8)
        (shape, free), = self.run_bundle("free", x, ["y"])
        (_, fixed), = self.run_bundle("fixed", x, ["y"])
        self.assertEqual(shape, [4, 3])
        self.assertLess(max(abs(a - b) for a, b in zip(free, fixed)), 1e-5)
        self.assertEqual(len(set(free)), 12)

    def test_one_bundle_runs_a_recurrence_of_any_length(self):
        draw = random.Random(7)
        inputs, hidden = 3, 5
        for direction, count in (("forward", 1), ("bidirectional", 2)):
            numbers = lambda n: [draw.uniform(-1, 1) for _ in range(n)]
            parameters = numbers(count * 4 * hidden * inputs), numbers(count * 4 * hidden * hidden), numbers(count * 8 * hidden)
            self.compile(direction, lstm(inputs, hidden, *parameters, direction))
            for length, batch, threads in ((1, 2, "1"), (7, 1, "2"), (90, 2, "2")):
                x = numbers(length * batch * inputs)
                want = run_lstm(x, length, batch, inputs, hidden, *parameters, count)
                (shape, y), (_, h) = self.run_bundle(direction, onnx_file.npy([length, batch, inputs], "f", x), ["y", "h"], threads)
                self.assertEqual(shape, [length, count, batch, hidden])
                self.assertLess(max(abs(a - b) for a, b in zip(y, want)), 2e-5)
                last = (length - 1) * count * batch * hidden
                self.assertEqual(h[:batch * hidden], y[last:last + batch * hidden])


if __name__ == "__main__":
    unittest.main()
