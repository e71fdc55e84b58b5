#!/usr/bin/env python3
"""Models of free sizes: one bundle computes them all, or the refusal says which dims to fix or to bound."""
import math
import random
import struct
import unittest

import onnx_file
from onnx_file import FLOAT, INT64, node, value
from tools import ToolTest

WORDS, WIDTH = 11, 8


def tensor_attribute(name, tensor):
    return onnx_file.message(1, name) + onnx_file.message(5, tensor) + onnx_file.number(20, 4)


def dims(x, names):
    """Nodes that give the dims of x, each as one element."""
    nodes, initializers = [node("Shape", [x], ["shape"])], []
    for i, name in enumerate(names):
        initializers.append(onnx_file.int_tensor(name + "_at", [1], [i]))
        nodes.append(node("Gather", ["shape", name + "_at"], [name]))
    return nodes, initializers


def decoder(weights):
    """Causal attention over embedded words [b,s], with the mask that exporters make: a large negative number above the diagonal."""
    nodes, initializers = dims("ids", ["b", "s"])
    hidden = tensor_attribute("value", onnx_file.float_tensor("", [1], [-1e9]))
    nodes += [
        node("Gather", ["embedding", "ids"], ["x"]),
        node("MatMul", ["x", "wq"], ["q"]), node("MatMul", ["x", "wk"], ["k"]), node("MatMul", ["x", "wv"], ["v"]),
        node("Einsum", ["q", "k"], ["products"], attributes=[onnx_file.message(1, "equation") + onnx_file.message(4, "bid,bjd->bij") + onnx_file.number(20, 3)]),
        node("Mul", ["products", "scale"], ["scores"]),
        node("Concat", ["s", "s"], ["square"], attributes=[onnx_file.int_attribute("axis", 0)]),
        node("ConstantOfShape", ["square"], ["filled"], attributes=[hidden]),
        node("Trilu", ["filled", "one"], ["mask"], attributes=[onnx_file.int_attribute("upper", 1)]),
        node("Add", ["scores", "mask"], ["masked"]),
        node("Softmax", ["masked"], ["shares"], attributes=[onnx_file.int_attribute("axis", -1)]),
        node("MatMul", ["shares", "v"], ["seen"]), node("Add", ["seen", "x"], ["y"])]
    initializers += [onnx_file.float_tensor(name, [len(rows), WIDTH], [e for row in rows for e in row]) for name, rows in weights.items()]
    initializers += [onnx_file.int_tensor("one", [], [1]), onnx_file.float_tensor("scale", [], [WIDTH ** -0.5])]
    return onnx_file.model(nodes, [value("ids", INT64, ["batch", "length"])], [value("y", FLOAT, ["batch", "length", WIDTH])], initializers)


def product(row, matrix):
    return [sum(a * matrix[k][j] for k, a in enumerate(row)) for j in range(WIDTH)]


def decoded(weights, ids):
    rows = []
    for sentence in ids:
        x = [weights["embedding"][word] for word in sentence]
        q, k, v = ([product(row, weights[name]) for row in x] for name in ("wq", "wk", "wv"))
        for i in range(len(x)):
            scores = [math.exp(sum(a * b for a, b in zip(q[i], k[j])) * WIDTH ** -0.5) for j in range(i + 1)]
            rows.append([x[i][d] + sum(s * v[j][d] for j, s in enumerate(scores)) / sum(scores) for d in range(WIDTH)])
    return [e for row in rows for e in row]


class FreeSizes(ToolTest):
    def test_a_decoder_masks_any_length(self):
        rng = random.Random(1)
        weights = {name: [[rng.uniform(-1, 1) for _ in range(WIDTH)] for _ in range(WORDS if name == "embedding" else WIDTH)]
                   for name in ("embedding", "wq", "wk", "wv")}
        self.write("decoder.onnx", decoder(weights))
        self.succeeds("quernel", "compile", "decoder.onnx", "-o", "decoder.qnl")
        for batch, length in ((1, 1), (1, 7), (2, 1), (3, 33)):
            ids = [[rng.randrange(WORDS) for _ in range(length)] for _ in range(batch)]
            self.write("ids.npy", onnx_file.npy([batch, length], "q", [w for row in ids for w in row]))
            self.succeeds("quernel-run", "decoder.qnl", "ids.npy", "--output", "y.npy")
            shape, found = onnx_file.values_of_npy(self.read("y.npy"))
            self.assertEqual(shape, [batch, length, WIDTH])
            for a, b in zip(found, decoded(weights, ids)):
                self.assertAlmostEqual(a, b, delta=1e-4)

    def test_triangles_take_their_diagonal_while_they_run(self):
        for upper in (0, 1):
            self.write("t.onnx", onnx_file.model(
                [node("Trilu", ["x", "k"], ["y"], attributes=[onnx_file.int_attribute("upper", upper)])],
                [value("x", FLOAT, ["n", "rows", "columns"]), value("k", INT64, [])], [value("y", FLOAT, ["n", "rows", "columns"])]))
            self.succeeds("quernel", "compile", "t.onnx", "-o", "t.qnl")
            for rows, columns, k in ((1, 1, 0), (3, 5, 1), (5, 3, -2), (20, 33, 4)):
                x = [i % 7 + 1.0 for i in range(2 * rows * columns)]
                self.write("x.npy", onnx_file.npy([2, rows, columns], "f", x))
                self.write("k.npy", onnx_file.npy([], "q", [k]))
                self.succeeds("quernel-run", "t.qnl", "--input", "x=x.npy", "--input", "k=k.npy", "--output", "y.npy")
                kept = [e if (i % columns - i // columns % rows >= k if upper else i % columns - i // columns % rows <= k) else 0
                        for i, e in enumerate(x)]
                self.assertEqual(onnx_file.values_of_npy(self.read("y.npy"))[1], kept)

    def test_a_dim_that_may_be_1_is_not_guessed(self):
        self.write("s.onnx", onnx_file.model([node("Squeeze", ["x"], ["y"])], [value("x", FLOAT, ["batch", 5, 1])], [value("y", FLOAT, ["batch", 5])]))
        self.fails("quernel", "compile", "s.onnx", "-o", "s.qnl", says=["'batch'", "--dim batch=1 or --dim batch=2..64"], lines=None)
        for option, sizes in (("batch=1", ([5],)), ("batch=2..64", ([2, 5], [3, 5]))):
            self.succeeds("quernel", "compile", "s.onnx", "-o", "s.qnl", "--dim", option)
            for shape in sizes:
                x = [float(i) for i in range(math.prod(shape))]
                self.write("x.npy", onnx_file.npy([len(x) // 5, 5, 1], "f", x))
                self.succeeds("quernel-run", "s.qnl", "x.npy", "--output", "y.npy")
                self.assertEqual(onnx_file.values_of_npy(self.read("y.npy")), (shape, x))

    def test_what_a_model_demands_of_its_dims_is_checked_when_it_runs(self):
        self.write("r.onnx", onnx_file.model([node("Reshape", ["x", "shape"], ["y"])], [value("x", FLOAT, ["n", 3])], [value("y", FLOAT, [2, 6])],
                                             [onnx_file.int_tensor("shape", [2], [2, 6])]))
        self.assertIn("free dim 'n' must be 4", self.succeeds("quernel", "check", "r.onnx"))
        self.succeeds("quernel", "compile", "r.onnx", "-o", "r.qnl")
        for n in (4, 3, 5):
            self.write("x.npy", onnx_file.npy([n, 3], "f", [1.0] * 3 * n))
            if n == 4:
                self.succeeds("quernel-run", "r.qnl", "x.npy", "--output", "y.npy")
            else:
                self.fails("quernel-run", "r.qnl", "x.npy", "--output", "z.npy", says=["x"], lines=None)


if __name__ == "__main__":
    unittest.main()
