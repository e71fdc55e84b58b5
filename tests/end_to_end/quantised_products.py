#!/usr/bin/env python3
"""Cases for `quernel test` whose results are products with quantised weights, MatMulNBits: widths, blocks and kinds of zero
points, sums that end within a block, few rows and many; and a convolution of such weights, DequantizeLinear. Expected values are sums in f64. For `--activations i8` and
`i8:row` they are sums with rows rounded as these options say. As a program it runs them here, on the CPU and by Vulkan."""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

import onnx_file as onnx
from tools import ROOT, tool

sys.path.insert(0, os.path.join(ROOT, "tests"))
from vulkan_driver import vulkan_environment  # noqa: E402

# Bits, elements of a block, zero points: none, those of elements or of floats. Two of one kind become one product.
FORMATS = [(2, 16, "elements"), (2, 32, None), (4, 16, None), (4, 32, "elements"), (4, 32, "elements"), (4, 128, "floats"), (8, 32, None),
           (8, 128, "elements")]
# Rows, columns, steps of a sum: whole blocks of no format, and once whole groups of eight, which two rows by two columns
# take. With few rows and at least 65,536 weights, rows of f32 become digits of bytes where the target multiplies those.
SIZES = [(1, 512, 130), (3, 520, 130), (67, 44, 136)]
# Values of `--activations` for cases whose rows are rounded.
ROUNDED = ["i8", "i8:row"]


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def packed(values, bits):
    """Elements of 2, 4 or 8 bits as bytes, the first in the lowest bits, and the last byte filled up."""
    per_byte = 8 // bits
    values = values + [0] * (-len(values) % per_byte)
    return bytes(sum(v << (bits * i) for i, v in enumerate(values[at:at + per_byte])) for at in range(0, len(values), per_byte))


class Weights:
    """Random weights of one format: the node's inputs, and what they stand for."""

    def __init__(self, rng, name, columns, steps, bits, block, kind):
        blocks = -(-steps // block)
        top = (1 << bits) - 1
        elements = [[rng.choice((0, top)) if rng.random() < 0.2 else rng.randint(0, top) for _ in range(blocks * block)] for _ in range(columns)]
        scales = [[f32(rng.uniform(0.01, 0.1)) for _ in range(blocks)] for _ in range(columns)]
        self.block = block
        self.inputs = [name + "_b", name + "_s"]
        self.tensors = [onnx.tensor(name + "_b", onnx.UINT8, [columns, blocks, block * bits // 8], packed(sum(elements, []), bits)),
                        onnx.float_tensor(name + "_s", [columns * blocks], sum(scales, []))]
        zeros = [[float(1 << (bits - 1))] * blocks for _ in range(columns)]
        if kind == "elements":
            zeros = [[float(rng.randint(0, top)) for _ in range(blocks)] for _ in range(columns)]
            rows = b"".join(packed([int(z) for z in row], bits) for row in zeros)
            self.tensors.append(onnx.tensor(name + "_z", onnx.UINT8, [len(rows)], rows))
        if kind == "floats":
            zeros = [[f32(rng.uniform(0, top)) for _ in range(blocks)] for _ in range(columns)]
            self.tensors.append(onnx.float_tensor(name + "_z", [columns * blocks], sum(zeros, [])))
        if kind:
            self.inputs.append(name + "_z")
        self.columns = [[(e - z[k // block]) * s[k // block] for k, e in enumerate(column[:steps])]
                        for column, s, z in zip(elements, scales, zeros)]

    def products(self, rows):
        return [sum(map(float.__mul__, row, column)) for row in rows for column in self.columns]


def rounded(row, block):
    """A row as multiples of 1/127 of the largest magnitude in each block."""
    result = []
    for at in range(0, len(row), block):
        part = row[at:at + block]
        unit = max(map(abs, part)) / 127
        result += [round(x / unit) * unit for x in part]
    return result


def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(content)


def write_case(folder, name, rng, rows, columns, steps, activations):
    """One model with a product of each format, which all read one input."""
    x = [[f32(rng.uniform(-1, 1)) for _ in range(steps)] for _ in range(rows)]
    case, nodes, outputs, tensors = os.path.join(folder, name), [], [], []
    for number, (bits, block, kind) in enumerate(FORMATS):
        weights = Weights(rng, f"w{number}", columns, steps, bits, block, kind)
        attributes = [onnx.int_attribute(key, value) for key, value in
                      (("K", steps), ("N", columns), ("bits", bits), ("block_size", block))]
        nodes.append(onnx.node("MatMulNBits", ["x", *weights.inputs], [f"y{number}"], domain="com.microsoft", attributes=attributes))
        outputs.append(onnx.value(f"y{number}", onnx.FLOAT, [rows, columns]))
        tensors += weights.tensors
        y = weights.products(x if activations == "f32" else [rounded(row, block if activations == "i8" else steps) for row in x])
        write(os.path.join(case, "test_data_set_0", f"output_{number}.pb"), onnx.float_tensor(f"y{number}", [rows, columns], y))
    write(os.path.join(case, "test_data_set_0", "input_0.pb"), onnx.float_tensor("x", [rows, steps], sum(x, [])))
    write(os.path.join(case, "model.onnx"), onnx.model(nodes, [onnx.value("x", onnx.FLOAT, [rows, steps])], outputs, tensors,
                                                       domains=("com.microsoft",)))
    # Sums of 130 or 136 terms in f32, which are as large as elements are. A digit of bytes that is lost shows: the third is worth as much
    # as the tolerance for each element of x.
    outputs = {f"y{number}": {"rtol": 1e-6, "atol": 6e-7 * (1 << bits)} for number, (bits, _, _) in enumerate(FORMATS)}
    write(os.path.join(case, "tolerance.json"), json.dumps({"outputs": outputs}).encode())
    return case


def write_windows(folder, rng):
    """One model with convolutions of 3 by 3 over 40 channels: a scale per column, or for blocks of channels."""
    channels, columns, side = 40, 24, 6
    x = [[[f32(rng.uniform(-1, 1)) for _ in range(side)] for _ in range(side)] for _ in range(channels)]
    case, nodes, outputs, tensors, tolerances = os.path.join(folder, "windows"), [], [], [], {}
    for number, (dtype, bits, block, has_zeros) in enumerate(((onnx.INT8, 8, 0, False), (onnx.UINT8, 8, 16, True), (onnx.UINT4, 4, 0, True),
                                                              (onnx.UINT4, 4, 16, False))):
        low = -128 if dtype == onnx.INT8 else 0
        weights = [rng.randint(low, low + (1 << bits) - 1) for _ in range(columns * channels * 9)]
        blocks = -(-channels // block) * 9 if block else 1
        dims = [columns, blocks // 9, 3, 3] if block else [columns]
        scales = [f32(rng.uniform(0.01, 0.1)) for _ in range(columns * blocks)]
        zeros = [rng.randint(low, low + (1 << bits) - 1) if has_zeros else 0 for _ in scales]
        inputs = [f"w{number}", f"s{number}", f"z{number}"][:3 if has_zeros else 2]
        tensors += [onnx.tensor(inputs[0], dtype, [columns, channels, 3, 3], packed([w & (1 << bits) - 1 for w in weights], bits)),
                    onnx.float_tensor(inputs[1], dims, scales)]
        if has_zeros:
            tensors.append(onnx.tensor(inputs[2], dtype, dims, packed(zeros, bits)))
        attributes = [onnx.int_attribute("axis", 1 if block else 0)] + ([onnx.int_attribute("block_size", block)] if block else [])
        nodes += [onnx.node("DequantizeLinear", inputs, [f"f{number}"], attributes=attributes),
                  onnx.node("Conv", ["x", f"f{number}"], [f"y{number}"], attributes=[onnx.ints_attribute("pads", [1] * 4)])]
        outputs.append(onnx.value(f"y{number}", onnx.FLOAT, [1, columns, side, side]))
        y = [0.0] * (columns * side * side)
        for o in range(columns):
            for c in range(channels):
                for place in range(9):
                    at = (o * (blocks // 9) + c // block) * 9 + place if block else o
                    weight = (weights[(o * channels + c) * 9 + place] - zeros[at]) * scales[at]
                    i, j = place // 3 - 1, place % 3 - 1
                    for row in range(max(0, -i), min(side, side - i)):
                        for column in range(max(0, -j), min(side, side - j)):
                            y[(o * side + row) * side + column] += weight * x[c][row + i][column + j]
        write(os.path.join(case, "test_data_set_0", f"output_{number}.pb"), onnx.float_tensor(f"y{number}", [1, columns, side, side], y))
        tolerances[f"y{number}"] = {"rtol": 1e-6, "atol": 2e-6 * (1 << bits)}
    flat = [value for channel in x for row in channel for value in row]
    write(os.path.join(case, "test_data_set_0", "input_0.pb"), onnx.float_tensor("x", [1, channels, side, side], flat))
    write(os.path.join(case, "model.onnx"), onnx.model(nodes, [onnx.value("x", onnx.FLOAT, [1, channels, side, side])], outputs, tensors, opset=21))
    write(os.path.join(case, "tolerance.json"), json.dumps({"outputs": tolerances}).encode())
    return case


def write_cases(folder, activations="f32"):
    """-> the cases' folders, for that value of `--activations`"""
    rng = random.Random(1)
    windows = [write_windows(folder, random.Random(2))] if activations == "f32" else []
    return windows + [write_case(folder, f"nbits_{rows}_rows_{activations.replace(':', '_')}", rng, rows, columns, steps, activations)
                      for rows, columns, steps in SIZES]


def main():
    environment = vulkan_environment()
    if not environment:
        print("no Vulkan device here: on the CPU only")
    with tempfile.TemporaryDirectory(prefix="quernel-test-") as folder:
        for activations in ("f32", *ROUNDED):
            cases, options = write_cases(folder, activations), ["--activations", activations]
            for where in ([], ["--target", "vulkan", "--device", "vulkan"])[:2 if environment else 1]:
                done = subprocess.run([tool("quernel"), "test", *where, *options, *cases], env=environment, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True)
                print(" ".join(where + options), done.stdout, flush=True)
                if done.returncode != 0 or f"{len(cases)} passed, 0 failed, 0 unsupported" not in done.stdout:
                    sys.exit(f"expected all of {len(cases)} cases to pass")


if __name__ == "__main__":
    main()
