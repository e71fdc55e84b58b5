"""Operators that add up very many f32 numbers, as a user runs them: results beside sums that are exactly rounded (math.fsum),
the same with one thread and with two."""
import math
import struct
import unittest

import onnx_file as onnx
from tools import ToolTest

BOUND = 1600 * 2.0**-24  # of the terms' magnitudes, compiler/lower/README.md


def ints_attribute(name, integers):
    return onnx.message(1, name) + b"".join(onnx.number(8, i) for i in integers) + onnx.number(20, 7)


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


TENTH = f32(0.1)


def tenths(count):
    return [TENTH] * count


def mixed(count, mean):
    """Of both signs around a large mean."""
    state, values = 1, []
    for _ in range(count):
        state = state * 1664525 + 1013904223 & 0xffffffff
        values.append(f32(mean + 8 * (state / 2.0**32 - 0.5)))
    return values


def moments(values):
    mean = math.fsum(values) / len(values)
    return mean, math.fsum((v - mean)**2 for v in values) / len(values)


class LongSums(ToolTest):
    def results(self, node, inputs, y_shape, initializers=(), target="native", free=False):
        """Of the node, the only one of a model: `inputs` are shapes and values by name."""
        shapes = {name: ["n"] + list(shape[1:]) if free else shape for name, (shape, _) in inputs.items()}
        self.write("m.onnx", onnx.model([node], [onnx.value(name, onnx.FLOAT, shape) for name, shape in shapes.items()],
                                        [onnx.value("y", onnx.FLOAT, y_shape)], initializers))
        self.succeeds("quernel", "compile", "m.onnx", "-o", "m.qnl", "-q", "--target", target)
        arguments = []
        for name, (shape, values) in inputs.items():
            self.write(name + ".npy", onnx.npy(shape, "f", values))
            arguments += ["--input", f"{name}={name}.npy"]
        found = []
        for threads in ("1", "2"):
            self.succeeds("quernel-run", "m.qnl", *arguments, "--output", "y=y.npy", "--threads", threads)
            found.append(self.read("y.npy"))
        self.assertEqual(found[0], found[1], "two threads give other bits than one")
        return onnx.values_of_npy(found[0])[1]

    def reduction(self, op, x, want, scale, **how):
        with self.subTest(op=op, first=x[0], **how):
            node = onnx.node(op, ["x"], ["y"], attributes=[onnx.int_attribute("keepdims", 0)])
            (got,) = self.results(node, {"x": ([len(x)], x)}, [], **how)
            self.assertLessEqual(abs(got - want), BOUND * scale + 2.0**-22 * abs(want))

    def test_reductions(self):
        for x in (tenths(1 << 20), mixed(1 << 18, 3)):
            magnitude, squares = math.fsum(map(abs, x)), math.fsum(v * v for v in x)
            self.reduction("ReduceSum", x, math.fsum(x), magnitude)
            self.reduction("ReduceMean", x, math.fsum(x) / len(x), magnitude / len(x))
            self.reduction("ReduceL1", x, magnitude, magnitude)
            self.reduction("ReduceSumSquare", x, squares, squares)
            self.reduction("ReduceL2", x, math.sqrt(squares), math.sqrt(squares))
            self.reduction("ReduceLogSumExp", x, math.log(math.fsum(map(math.exp, x))), 1)
            if min(x) > 0:
                self.reduction("ReduceLogSum", x, math.log(magnitude), 1)

    def test_other_vectors_and_free_lengths(self):
        x = tenths(1 << 20)
        for how in ({"target": "x86-64"}, {"free": True}, {"free": True, "target": "x86-64"}):
            self.reduction("ReduceSum", x, len(x) * TENTH, len(x) * TENTH, **how)
            self.reduction("ReduceL2", x, 1024 * TENTH, 1024 * TENTH, **how)

    def test_normalisations(self):
        side = 300
        x = mixed(2 * side * side, 50)
        channels = [x[:side * side], x[side * side:]]
        pair = [onnx.float_tensor("s", [2], [1, 1]), onnx.float_tensor("b", [2], [0, 0])]
        whole = [onnx.float_tensor("s", [2, side, side], [1] * len(x))]
        each = [v for values in channels for v in self.normalised(values)]
        cases = [("InstanceNormalization", ["x", "s", "b"], pair, [], each),
                 ("MeanVarianceNormalization", ["x"], [], [ints_attribute("axes", [0, 2, 3])], each),
                 ("LayerNormalization", ["x", "s"], whole, [onnx.int_attribute("axis", 1)], self.normalised(x))]
        for op, names, initializers, attributes, want in cases:
            with self.subTest(op=op):
                node = onnx.node(op, names, ["y"], attributes=attributes)
                got = self.results(node, {"x": ([1, 2, side, side], x)}, [1, 2, side, side], initializers)
                worst = max(abs(g - w) for g, w in zip(got, want))
                self.assertLess(worst, 1e-4)  # the spacing of the data is 4e-6 / 2.3

    def normalised(self, values):
        mean, variance = moments(values)
        return [(v - mean) / math.sqrt(variance + 1e-5) for v in values]

    def test_global_average(self):
        x = tenths(3 * 700 * 700)
        got = self.results(onnx.node("GlobalAveragePool", ["x"], ["y"]), {"x": ([1, 3, 700, 700], x)}, [1, 3, 1, 1])
        for value in got:
            self.assertLessEqual(abs(value - TENTH), BOUND * TENTH)

    def test_softmax(self):
        width = 60000
        x = [f32(v / 4) for v in mixed(2 * width, 0)]
        got = self.results(onnx.node("Softmax", ["x"], ["y"]), {"x": ([2, width], x)}, [2, width])
        for row in range(2):
            values = x[row * width:(row + 1) * width]
            total = math.fsum(map(math.exp, values))
            for g, v in list(zip(got[row * width:], values))[::97]:
                self.assertLessEqual(abs(g * total / math.exp(v) - 1), BOUND + 1e-6)

    def test_products(self):
        depth = 1 << 17
        equation = onnx.message(1, "equation") + onnx.message(4, "ik,kj->ij") + onnx.number(20, 3)
        matmul = onnx.node("MatMul", ["a", "b"], ["y"])
        others = [onnx.node("Gemm", ["a", "b"], ["y"]), onnx.node("Einsum", ["a", "b"], ["y"], attributes=[equation])]
        for a, cases in ((tenths(2 * depth), [(matmul, "native"), (matmul, "x86-64")] + [(node, "native") for node in others]),
                         (mixed(2 * depth, 3), [(matmul, "native")])):
            b = a[::-1]
            products = [[a[i * depth + k] * b[k * 2 + j] for k in range(depth)] for i in range(2) for j in range(2)]
            for number, (node, target) in enumerate(cases):
                with self.subTest(number=number, first=a[0], target=target):
                    got = self.results(node, {"a": ([2, depth], a), "b": ([depth, 2], b)}, [2, 2], target=target)
                    for value, terms in zip(got, products):
                        self.assertLessEqual(abs(value - math.fsum(terms)), BOUND * math.fsum(map(abs, terms)))

    def test_convolution(self):
        channels = 4096
        w = onnx.float_tensor("w", [1, channels, 3, 3], tenths(9 * channels))
        got = self.results(onnx.node("Conv", ["x", "w"], ["y"]), {"x": ([1, channels, 4, 3], tenths(12 * channels))}, [1, 1, 2, 1], [w])
        want = 9 * channels * TENTH * TENTH
        for value in got:
            self.assertLessEqual(abs(value - want), BOUND * want)

    def test_folded(self):
        """A sum of 2^25 ones: known when the model is compiled."""
        shape = onnx.int_tensor("shape", [1], [1 << 25])
        one = onnx.message(1, "value") + onnx.message(5, onnx.float_tensor("", [1], [1])) + onnx.number(20, 4)
        nodes = [onnx.node("ConstantOfShape", ["shape"], ["ones"], attributes=[one]),
                 onnx.node("ReduceSum", ["ones"], ["sum"], attributes=[onnx.int_attribute("keepdims", 0)]), onnx.node("Add", ["sum", "x"], ["y"])]
        self.write("m.onnx", onnx.model(nodes, [onnx.value("x", onnx.FLOAT, [])], [onnx.value("y", onnx.FLOAT, [])], [shape]))
        self.succeeds("quernel", "compile", "m.onnx", "-o", "m.qnl", "-q")
        self.write("x.npy", onnx.npy([], "f", [0]))
        self.succeeds("quernel-run", "m.qnl", "--input", "x=x.npy", "--output", "y=y.npy")
        self.assertEqual(onnx.values_of_npy(self.read("y.npy"))[1], [float(1 << 25)])


if __name__ == "__main__":
    unittest.main()
