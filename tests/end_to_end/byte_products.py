"""Cases for `quernel verify` whose results are sums of products of bytes: matrix products of every combination of signs, and a
depthwise convolution. Extreme bytes are among them, so that an instruction that saturates is found out."""
import os
import random
import struct

import onnx_file as onnx

INT8, UINT8, INT32 = 3, 2, 6
RANGES = {INT8: (-128, 127), UINT8: (0, 255)}


def byte_values(rng, dtype, count):
    low, high = RANGES[dtype]
    return [rng.choice((low, high)) if rng.random() < 0.3 else rng.randint(low, high) for _ in range(count)]


def byte_tensor(name, dtype, shape, values):
    return onnx.tensor(name, dtype, shape, struct.pack(f"<{len(values)}{'b' if dtype == INT8 else 'B'}", *values))


def write_case(folder, name, model, x, y):
    data = os.path.join(folder, name, "test_data_set_0")
    os.makedirs(data)
    for path, content in ((os.path.join(folder, name, "model.onnx"), model), (os.path.join(data, "input_0.pb"), x), (os.path.join(data, "output_0.pb"), y)):
        with open(path, "wb") as f:
            f.write(content)
    return os.path.join(folder, name)


def matrix_product(folder, rng, a_dtype, b_dtype, depth):
    rows, columns = 13, 21
    a, b = byte_values(rng, a_dtype, rows * depth), byte_values(rng, b_dtype, depth * columns)
    y = [sum(a[i * depth + k] * b[k * columns + j] for k in range(depth)) for i in range(rows) for j in range(columns)]
    model = onnx.model([onnx.node("MatMulInteger", ["a", "b"], ["y"])], [onnx.value("a", a_dtype, [rows, depth])],
                       [onnx.value("y", INT32, [rows, columns])], [byte_tensor("b", b_dtype, [depth, columns], b)])
    kinds = {INT8: "s8", UINT8: "u8"}
    return write_case(folder, f"matmul_{kinds[a_dtype]}_{kinds[b_dtype]}_{depth}", model, byte_tensor("a", a_dtype, [rows, depth], a),
                      onnx.tensor("y", INT32, [rows, columns], struct.pack(f"<{len(y)}i", *y)))


def depthwise(folder, rng):
    channels, size = 20, 7
    out = size - 2
    x, w = byte_values(rng, UINT8, channels * size * size), byte_values(rng, INT8, channels * 9)
    y = [sum(x[(c * size + i + p) * size + j + q] * w[(c * 3 + p) * 3 + q] for p in range(3) for q in range(3))
         for c in range(channels) for i in range(out) for j in range(out)]
    model = onnx.model([onnx.node("ConvInteger", ["x", "w"], ["y"], attributes=[onnx.int_attribute("group", channels)])],
                       [onnx.value("x", UINT8, [1, channels, size, size])], [onnx.value("y", INT32, [1, channels, out, out])],
                       [byte_tensor("w", INT8, [channels, 1, 3, 3], w)])
    return write_case(folder, "depthwise_u8_s8", model, byte_tensor("x", UINT8, [1, channels, size, size], x),
                      onnx.tensor("y", INT32, [1, channels, out, out], struct.pack(f"<{len(y)}i", *y)))


def write_cases(folder):
    """-> the cases' folders"""
    rng = random.Random(0)
    cases = [matrix_product(folder, rng, a, b, depth) for a in (INT8, UINT8) for b in (INT8, UINT8) for depth in (64, 35)]
    return cases + [depthwise(folder, rng)]
