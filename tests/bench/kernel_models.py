#!/usr/bin/python3
"""Writes models of one operator each and prints what they are, as a JSON list.

    kernel_models.py FOLDER NETWORK.onnx…

Matrix products with constant weights and between activations, row-wise operators, poolings, operators that move elements,
transposed convolutions, the largest elements of rows, 1x1 convolutions of bytes, and
every distinct convolution of the networks (with bias and Relu). Each goes to FOLDER/NAME.onnx. Needs Debian's python3-onnx.
"""
import json
import math
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(1)


def constant(name, shape, fan_in):
    values = RNG.standard_normal(shape, dtype=np.float32) / math.sqrt(fan_in)
    return numpy_helper.from_array(values.astype(np.float32), name)


class Folder:
    """Writes the models and collects their description."""

    def __init__(self, path):
        self.path, self.kernels = path, []
        os.makedirs(path, exist_ok=True)

    def add(self, name, group, nodes, inputs, output, weights, flops, moved_bytes, dtype=TensorProto.FLOAT):
        def values(shapes):
            return [helper.make_tensor_value_info(n, dtype, s) for n, s in shapes.items()]
        graph = helper.make_graph(nodes, name, values(inputs), values(output), weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
        model.ir_version = 8
        path = os.path.join(self.path, name + ".onnx")
        onnx.save(model, path)
        weight_bytes = sum(numpy_helper.to_array(w).nbytes for w in weights)
        self.kernels.append({"name": name, "group": group, "path": path, "inputs": list(inputs), "flops": flops,
                             "moved_bytes": moved_bytes, "weight_bytes": weight_bytes})


def product(folder, group, m, k, n, weights=True, heads=None):
    """A MatMul: by constant weights, or of two inputs for each head."""
    batch = [heads] if heads else []
    left, right = batch + [m, k], batch + [k, n]
    inputs, constants = {"a": left}, []
    if weights:
        constants.append(constant("b", right, k))
    else:
        inputs["b"] = right
    count = (heads or 1) * m * n
    name = "x".join(map(str, batch + [m, k, n]))
    folder.add(f"{group}_{name}".replace(" ", "_"), group, [helper.make_node("MatMul", ["a", "b"], ["y"])], inputs,
               {"y": batch + [m, n]}, constants, 2 * count * k, 4 * (heads or 1) * (m * k + k * n + m * n))


def row_operator(folder, op, shape, flops_per_element, weights=(), **attributes):
    name = f"{op.lower()}_" + "x".join(map(str, shape))
    constants = [constant(w, shape[-1:], 1) for w in weights]
    folder.add(name, "rows", [helper.make_node(op, ["x", *weights], ["y"], **attributes)], {"x": shape}, {"y": shape},
               constants, flops_per_element * math.prod(shape), 8 * math.prod(shape))


def pooling(folder, op, image, window, stride=1, pad=0, pad_end=None):
    pads = [pad] * 2 + [pad if pad_end is None else pad_end] * 2
    result = image[:2] + [(image[d] + pads[d - 2] + pads[d] - window) // stride + 1 for d in (2, 3)]
    name = f"{op.lower()}_{image[1]}x{image[2]}x{image[3]}_{window}x{window}_s{stride}" + ("_padded" if any(pads) else "")
    folder.add(name, "pool", [helper.make_node(op, ["x"], ["y"], kernel_shape=[window] * 2, strides=[stride] * 2, pads=pads)],
               {"x": image}, {"y": result}, [], math.prod(result) * window * window, 4 * (math.prod(image) + math.prod(result)))


def movement(folder, name, op, image, result, constants=(), **attributes):
    """An operator that computes nothing, or next to nothing; an operand "" is left out."""
    arrays = {f"c{i}": np.array(c) for i, c in enumerate(constants) if c is not None}
    operands = [f"c{i}" if c is not None else "" for i, c in enumerate(constants)]
    folder.add(f"{name}_" + "x".join(map(str, image[1:])), "movement", [helper.make_node(op, ["x", *operands], ["y"], **attributes)],
               {"x": image}, {"y": result}, [numpy_helper.from_array(a, n) for n, a in arrays.items()], 0,
               4 * (math.prod(image) + math.prod(result)))


def transposed(folder, image, channels, window, stride, pad=0, extra=0, groups=1):
    """A ConvTranspose with bias of a square window."""
    weights = [image[1], channels // groups, window, window]
    sides = [(image[d] - 1) * stride + window + extra - 2 * pad for d in (2, 3)]
    result, fan_in = [image[0], channels, *sides], image[1] // groups * math.ceil(window / stride) ** 2
    name = f"transposed_{image[1]}x{image[2]}x{image[3]}_{window}x{window}_{channels}_s{stride}" + (f"_g{groups}" if groups != 1 else "")
    node = helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], strides=[stride] * 2, pads=[pad] * 4,
                            output_padding=[extra] * 2, group=groups)
    folder.add(name, "transposed", [node], {"x": image}, {"y": result}, [constant("w", weights, fan_in), constant("b", [channels], 1)],
               2 * math.prod(image) * channels // groups * window * window,
               4 * (math.prod(image) + math.prod(weights) + math.prod(result)))


def top(folder, shape, count):
    """The largest elements of each row."""
    folder.add("top_" + "x".join(map(str, shape)) + f"_{count}", "top", [helper.make_node("TopK", ["x", "k"], ["y", "i"])], {"x": shape},
               {"y": [*shape[:-1], count]}, [numpy_helper.from_array(np.array([count], np.int64), "k")], 0,
               4 * (math.prod(shape) + 3 * math.prod(shape[:-1]) * count))


def bytes_1x1(folder, image, channels):
    """A QLinearConv of one position, which stands alone: channels first, so that what is summed lies apart."""
    values = {"w": RNG.integers(-127, 128, (channels, image[1], 1, 1)).astype(np.int8), "x_scale": np.float32(0.02),
              "x_zero": np.uint8(128), "w_scale": np.float32(0.01), "w_zero": np.int8(0), "y_scale": np.float32(0.05),
              "y_zero": np.uint8(120)}
    node = helper.make_node("QLinearConv", ["x", "x_scale", "x_zero", "w", "w_scale", "w_zero", "y_scale", "y_zero"], ["y"])
    result = [image[0], channels, *image[2:]]
    folder.add(f"bytes_{image[1]}x{image[2]}x{image[3]}_1x1_{channels}", "bytes", [node], {"x": image}, {"y": result},
               [numpy_helper.from_array(np.array(v), n) for n, v in values.items()], 2 * math.prod(result) * image[1],
               math.prod(image) + math.prod(result) + image[1] * channels, dtype=TensorProto.UINT8)


def layers(network):
    """Shapes and attributes of the distinct convolutions, in their order."""
    graph = onnx.shape_inference.infer_shapes(onnx.load(network)).graph
    shapes = {w.name: list(w.dims) for w in graph.initializer}
    for value in [*graph.input, *graph.value_info, *graph.output]:
        shapes.setdefault(value.name, [d.dim_value for d in value.type.tensor_type.shape.dim])
    found = {}
    for node in graph.node:
        if node.op_type != "Conv":
            continue
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        image, weights, result = (shapes[n] for n in (node.input[0], node.input[1], node.output[0]))
        key = json.dumps([image, weights, result, {k: str(v) for k, v in attributes.items()}], sort_keys=True)
        found.setdefault(key, (image, weights, result, attributes))
    return list(found.values())


def convolution(folder, network, image, weights, result, attributes):
    groups, stride = attributes.get("group", 1), attributes.get("strides", [1])[0]
    name = f"{network}_{image[1]}x{image[2]}x{image[3]}_{weights[2]}x{weights[3]}_{weights[0]}"
    name += (f"_s{stride}" if stride != 1 else "") + (f"_g{groups}" if groups != 1 else "")
    fan_in = math.prod(weights[1:])
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], **attributes), helper.make_node("Relu", ["c"], ["y"])]
    folder.add(name, network, nodes, {"x": image}, {"y": result},
               [constant("w", weights, fan_in), constant("b", weights[:1], 1)], 2 * math.prod(result) * fan_in,
               4 * (math.prod(image) + math.prod(weights) + math.prod(result)))


def main(path, networks):
    folder = Folder(path)
    for size in (64, 128, 192, 256, 384, 512, 768, 1024):
        product(folder, "gemm", size, size, size)
    for m in (1, 8):
        for k, n in ((256, 256), (768, 768), (768, 3072), (3072, 768), (2048, 1000), (4096, 4096)):
            product(folder, f"m{m}", m, k, n)
    for k, n in ((768, 768), (768, 3072), (3072, 768)):
        product(folder, "bert", 128, k, n)
    for rows in (128, 512):
        product(folder, "attention", rows, 64, rows, weights=False, heads=12)
        product(folder, "attention", rows, rows, 64, weights=False, heads=12)
    for shape in ([12, 128, 128], [64, 1000]):
        row_operator(folder, "Softmax", shape, 5, axis=-1)
    row_operator(folder, "LayerNormalization", [128, 768], 8, weights=("scale", "bias"), axis=-1)
    row_operator(folder, "Gelu", [128, 3072], 10)
    pooling(folder, "MaxPool", [1, 24, 112, 112], 3, 2, pad=1)
    pooling(folder, "MaxPool", [1, 64, 224, 224], 2, 2)
    pooling(folder, "MaxPool", [1, 512, 14, 14], 3, 2, pad_end=1)
    pooling(folder, "MaxPool", [1, 192, 28, 28], 3, pad=1)
    pooling(folder, "MaxPool", [1, 832, 7, 7], 3, pad=1)
    pooling(folder, "MaxPool", [1, 256, 13, 13], 13, pad=6)
    pooling(folder, "AveragePool", [1, 24, 56, 56], 3, 2, pad=1)
    image = [1, 64, 56, 56]
    border = np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64)
    for mode in ("reflect", "edge"):
        movement(folder, f"pad_{mode}", "Pad", image, [1, 64, 58, 58], [border], mode=mode)
    movement(folder, "tile", "Tile", image, [1, 64, 56, 112], [np.array([1, 1, 1, 2], np.int64)])
    for mode in ("nearest", "linear", "cubic"):
        movement(folder, f"resize_{mode}", "Resize", image, [1, 64, 112, 112], [None, np.array([1, 1, 2, 2], np.float32)], mode=mode)
    for shape, order in (([1, 64, 56, 56], [0, 2, 3, 1]), ([1, 56, 56, 64], [0, 3, 1, 2]), ([1, 64, 56, 56], [0, 1, 3, 2]),
                         ([1, 12, 128, 64], [0, 2, 3, 1]), ([1, 12, 128, 64], [0, 2, 1, 3]), ([768, 768], [1, 0])):
        movement(folder, "transpose_" + "".join(map(str, order)), "Transpose", shape, [shape[axis] for axis in order], [], perm=order)
    transposed(folder, [1, 64, 64, 64], 32, 2, 2)
    transposed(folder, [1, 64, 56, 56], 64, 3, 2, pad=1, extra=1)
    transposed(folder, [1, 64, 56, 56], 64, 4, 2, pad=1)
    transposed(folder, [1, 512, 4, 4], 256, 4, 2, pad=1)
    transposed(folder, [1, 32, 64, 64], 3, 5, 2, pad=2, extra=1)
    transposed(folder, [1, 21, 28, 28], 21, 16, 8, pad=4)
    transposed(folder, [1, 64, 28, 28], 64, 4, 2, pad=1, groups=64)
    for shape, count in (([64, 1000], 5), ([1, 8400], 300), ([1, 10000], 100), ([1, 20000], 1000)):
        top(folder, shape, count)
    for side, channels in ((56, (64, 256)), (28, (128, 128)), (7, (512, 128))):
        bytes_1x1(folder, [1, channels[0], side, side], channels[1])
    for network in networks:
        name = os.path.basename(os.path.dirname(network)).replace("ncnn_", "")
        for layer in layers(network):
            convolution(folder, name, *layer)
    print(json.dumps(folder.kernels))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
