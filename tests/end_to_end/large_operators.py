#!/usr/bin/env python3
"""Single operators on a million elements, of fixed and of free size, on a Vulkan device and two threads of the CPU, against what Python
computes: some drivers end the loops of an invocation early, without a word."""
import array
import itertools
import os
import sys
import unittest

import onnx_file as onnx
from tools import ToolTest, skip

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from vulkan_driver import vulkan_environment  # noqa: E402

ENVIRONMENT = vulkan_environment()
N = 1_000_000
CODES = {onnx.FLOAT: "f", onnx.INT64: "q", onnx.BOOL: "B"}
MIXED = array.array("f", ((i * 7919 + 13) % 999_983 - 400_000 for i in range(N)))  # no two alike below 999,983
WIDE = array.array("q", ((i * 7919 % 1009 - 500) << 33 | i % 3 for i in range(N)))
FEW = array.array("f", (i * 7919 % 1009 % 7 for i in range(N)))

SOFTWARE_DRIVER = 150  # seconds: a scatter of N updates takes it over 30 beside other tests


class LargeOperators(ToolTest):
    def computes(self, nodes, inputs, outputs, expected, weights=(), tolerance=0, free=("n",), opset=17):
        """`inputs`: name -> (dtype, shape, values); dims of N may be free; `outputs`: name -> (dtype, shape)."""
        for name, (dtype, shape, values) in inputs.items():
            self.write(name + ".raw", array.array(CODES[dtype], values).tobytes())
        expected = {name: array.array(CODES[dtype], expected[name]) for name, (dtype, _) in outputs.items()}
        for size in ("fixed", *free):
            def dims(shape):
                return [size if d == N and size != "fixed" else d for d in shape]
            self.write("model.onnx", onnx.model(nodes, [onnx.value(name, t, dims(shape)) for name, (t, shape, _) in inputs.items()],
                                                [onnx.value(name, t, dims(shape)) for name, (t, shape) in outputs.items()], weights, opset))
            self.succeeds("quernel", "compile", "model.onnx", "-o", "model.qnl", "-q", "--target", "native", "--target", "vulkan")
            symbols = [] if size == "fixed" else ["--symbol", f"{size}={N}"]
            for device in (["--device", "vulkan"], ["--threads", "2"]):
                done = self.run_tool("quernel-run", "model.qnl", *device, *symbols,
                                     *(word for name in inputs for word in ("--input", f"{name}=raw:{name}.raw")),
                                     *(word for name in outputs for word in ("--output", f"{name}=raw:{name}.out")), env=ENVIRONMENT, preexec_fn=None, timeout=SOFTWARE_DRIVER)
                self.assertEqual(done.returncode, 0, done.stderr)
                for name, (dtype, _) in outputs.items():
                    found = array.array(CODES[dtype], self.read(name + ".out"))
                    wanted = expected[name]
                    self.assertEqual(len(found), len(wanted), f"{name}, {size} {device}")
                    if tolerance == 0:
                        first = next((i for i, (a, b) in enumerate(zip(wanted, found)) if a != b), None) if found != wanted else None
                        self.assertIsNone(first, f"{name}, {size} {device}: from {first} on")
                    else:
                        worst = max(abs(a - b) for a, b in zip(wanted, found))
                        self.assertLessEqual(worst, tolerance, f"{name}, {size} {device}")

    def test_concat(self):
        tail = [1.0] * 14
        self.computes([onnx.node("Concat", ["x", "y", "x", "z"], ["c"], attributes=[onnx.int_attribute("axis", 0)])],
                      {"x": (onnx.FLOAT, [N], MIXED), "y": (onnx.FLOAT, [N], FEW), "z": (onnx.FLOAT, [14], tail)},
                      {"c": (onnx.FLOAT, ["m"])}, {"c": itertools.chain(MIXED, FEW, MIXED, tail)})
        # Channels last, as detectors have their outputs.
        pixels, channels = 90_000, 24
        x, y = MIXED * 3, FEW * 3
        both = [v for i in range(0, pixels * channels, channels) for v in (*x[i:i + channels], *y[i:i + channels])]
        self.computes([onnx.node("Concat", ["x", "y"], ["c"], attributes=[onnx.int_attribute("axis", 1)])],
                      {"x": (onnx.FLOAT, [pixels, channels], x[:pixels * channels]), "y": (onnx.FLOAT, [pixels, channels], y[:pixels * channels])},
                      {"c": (onnx.FLOAT, [pixels, 2 * channels])}, {"c": both}, free=())

    def test_cumsum(self):
        for reverse, exclusive in ((0, 0), (1, 1)):
            line = list(reversed(FEW)) if reverse else FEW
            sums = list(itertools.accumulate(line, initial=0))
            sums = sums[:-1] if exclusive else sums[1:]
            self.computes([onnx.node("CumSum", ["x", "axis"], ["y"], attributes=[onnx.int_attribute("reverse", reverse), onnx.int_attribute("exclusive", exclusive)])],
                          {"x": (onnx.FLOAT, [N], FEW)}, {"y": (onnx.FLOAT, [N])}, {"y": reversed(sums) if reverse else sums},
                          [onnx.int_tensor("axis", [1], [0])])

    def test_argmax(self):
        for op, last in (("ArgMax", 0), ("ArgMin", 1)):
            best = (max if op == "ArgMax" else min)(FEW)
            where = N - 1 - list(reversed(FEW)).index(best) if last else list(FEW).index(best)
            self.computes([onnx.node(op, ["x"], ["y"], attributes=[onnx.int_attribute("select_last_index", last), onnx.int_attribute("keepdims", 0)])],
                          {"x": (onnx.FLOAT, [N], FEW)}, {"y": (onnx.INT64, [])}, {"y": [where]})
        where = MIXED.index(max(MIXED))
        self.computes([onnx.node("ArgMax", ["x"], ["y"])], {"x": (onnx.FLOAT, [N], MIXED)}, {"y": (onnx.INT64, [1])}, {"y": [where]})

    def test_nonzero(self):
        places = [i for i, v in enumerate(FEW) if v]
        self.computes([onnx.node("NonZero", ["x"], ["y"])], {"x": (onnx.FLOAT, [N], FEW)}, {"y": (onnx.INT64, [1, "m"])}, {"y": places})

    def test_topk(self):
        for k, largest in ((10, 1), (1000, 0)):
            order = sorted(range(N), key=lambda i: -MIXED[i] if largest else MIXED[i])[:k]
            self.computes([onnx.node("TopK", ["x", "k"], ["v", "i"], attributes=[onnx.int_attribute("largest", largest)])],
                          {"x": (onnx.FLOAT, [N], MIXED)}, {"v": (onnx.FLOAT, [k]), "i": (onnx.INT64, [k])},
                          {"v": [MIXED[i] for i in order], "i": order}, [onnx.int_tensor("k", [1], [k])])

        order = sorted(range(N), key=WIDE.__getitem__)[:500]
        self.computes([onnx.node("TopK", ["x", "k"], ["v", "i"], attributes=[onnx.int_attribute("largest", 0)])],
                      {"x": (onnx.INT64, [N], WIDE)}, {"v": (onnx.INT64, [500]), "i": (onnx.INT64, [500])},
                      {"v": [WIDE[i] for i in order], "i": order}, [onnx.int_tensor("k", [1], [500])])

    def test_sort(self):
        order = sorted(range(N), key=lambda i: FEW[i])
        self.computes([onnx.node("TopK", ["x", "k"], ["v", "i"], attributes=[onnx.int_attribute("largest", 0)])],
                      {"x": (onnx.FLOAT, [N], FEW)}, {"v": (onnx.FLOAT, [N]), "i": (onnx.INT64, [N])},
                      {"v": [FEW[i] for i in order], "i": order}, [onnx.int_tensor("k", [1], [N])], free=())

    def test_scatter(self):
        places = [i * 7919 % N for i in range(N)]
        result = [0.0] * N
        for i, p in enumerate(places):
            result[p] = MIXED[i]
        for op, shape in (("ScatterElements", [N]), ("ScatterND", [N, 1])):
            self.computes([onnx.node(op, ["x", "i", "u"], ["y"])],
                          {"x": (onnx.FLOAT, [N], [0.0] * N), "i": (onnx.INT64, shape, places), "u": (onnx.FLOAT, [N], MIXED)},
                          {"y": (onnx.FLOAT, [N])}, {"y": result})

    def test_scatter_of_one_place_in_order(self):
        updates = 200_000
        result = array.array("f", FEW)
        for i in range(updates):
            result[i % 3] = MIXED[i]
        self.computes([onnx.node("ScatterElements", ["x", "i", "u"], ["y"])],
                      {"x": (onnx.FLOAT, [N], FEW), "i": (onnx.INT64, [updates], [i % 3 for i in range(updates)]),
                       "u": (onnx.FLOAT, [updates], MIXED[:updates])}, {"y": (onnx.FLOAT, [N])}, {"y": result})

    # Updates of integers, whose sums are exact in any order, and of one place in runs.
    def test_scatter_sums(self):
        places = [i * 7919 % 1009 % 50 * 2 if i % 10 else 7 for i in range(N)]
        sums, most = [1.0] * 100, [1.0] * 100
        for i, p in enumerate(places):
            sums[p] += FEW[i]
            most[p] = max(most[p], MIXED[i])
        for op, shape, reduction, updates, expected, free in (("ScatterElements", [N], "add", FEW, sums, ("n",)),
                                                              ("ScatterND", [N, 1], "max", MIXED, most, ())):
            self.computes([onnx.node(op, ["x", "i", "u"], ["y"], attributes=[onnx.string_attribute("reduction", reduction)])],
                          {"x": (onnx.FLOAT, [100], [1.0] * 100), "i": (onnx.INT64, shape, places), "u": (onnx.FLOAT, [N], updates)},
                          {"y": (onnx.FLOAT, [100])}, {"y": expected}, free=free, opset=18)

    def test_gather_and_movement(self):
        places = [i * 7919 % N for i in range(N)]
        self.computes([onnx.node("Gather", ["x", "i"], ["g"]), onnx.node("Unsqueeze", ["g", "axes"], ["c"]), onnx.node("Expand", ["c", "two"], ["e"]),
                       onnx.node("Transpose", ["e"], ["y"])],
                      {"x": (onnx.FLOAT, [N], MIXED), "i": (onnx.INT64, [N], places)}, {"y": (onnx.FLOAT, [2, N])},
                      {"y": [MIXED[p] for p in places] * 2}, [onnx.int_tensor("axes", [1], [1]), onnx.int_tensor("two", [2], [1, 2])])


if __name__ == "__main__":
    if ENVIRONMENT is None:
        skip("there is no Vulkan here (toolchains/install_debian.sh --vulkan)")
    unittest.main()
