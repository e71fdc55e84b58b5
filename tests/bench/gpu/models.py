#!/usr/bin/python3
"""Writes the models of the GPU kit that need no test data from elsewhere, each with one data set:

    models.py FOLDER [--sizes 256,4096] [--keys 128,4096] [--operators] [--light FOLDER --materialize SCRIPT --networks A,B]

FOLDER/GROUP/NAME/model.onnx and test_data_set_0, and prints a JSON list of what they are. Groups: products (f32, f16,
bf16), int8, attention, operators (those of kernel_models.py that are of floats), networks. Answers
of int8 and attention are written, too; `quernel test --random-weights` computes the others.

Inputs repeat, with periods that are no powers of two: a mistake in an address shows, and inputs and most outputs compress
to almost nothing. Needs Debian's python3-onnx.
"""
import argparse
import json
import math
import os
import shutil
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import kernel_models  # noqa: E402

ROWS, MATRIX = 13, (61, 67)                      # periods: of rows, of a constant matrix
IMAGE, PICTURE = (7, 5), (31, 29)                # of images of operators, of pictures that networks see
LEVELS = 17                                      # different values of an input
DTYPES = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16, "u8": TensorProto.UINT8,
          "i8": TensorProto.INT8, "i32": TensorProto.INT32}


def repeated(block, shape):
    """An array of that shape in which the block occurs again and again along its last axes."""
    for axis in range(block.ndim - len(shape), 0):
        block = block[0]
    copies = [-(-shape[d] // block.shape[d]) for d in range(len(shape))]
    return np.tile(block, copies)[tuple(slice(0, n) for n in shape)]


def values(rng, shape, image=IMAGE):
    """Numbers from -1 to 1 in few levels: an image repeats along both its sides, anything else along its rows."""
    block = list(shape)
    if len(shape) == 4 and shape[0] == 1 and min(shape[2:]) > 1:
        block[2:] = [min(p, n) for p, n in zip(image, shape[2:])]
    elif len(shape) >= 2:
        block[-2] = min(ROWS, shape[-2])
    levels = rng.integers(-(LEVELS // 2), LEVELS // 2 + 1, block)
    return repeated((levels / (LEVELS // 2)).astype(np.float32), shape)


def tensor_of(array, name, dtype):
    if dtype == TensorProto.BFLOAT16:
        words = (np.ascontiguousarray(array, np.float32).view(np.uint32) >> 16).astype(np.uint16)
        return helper.make_tensor(name, dtype, array.shape, words.tobytes(), raw=True)
    return numpy_helper.from_array(array.astype(np.float16) if dtype == TensorProto.FLOAT16 else array, name)


def constant(rng, name, shape, dtype):
    """A matrix that repeats, of few values, which random weights leave as they are; a product's results are near 1."""
    levels = rng.integers(-(LEVELS // 2), LEVELS // 2 + 1, MATRIX) / LEVELS
    return tensor_of(repeated((levels * 2 / math.sqrt(shape[0])).astype(np.float32), shape), name, dtype)


class Folder:
    """Writes models with their inputs and collects what they are."""

    def __init__(self, path):
        self.path, self.cases, self.rng = path, [], np.random.default_rng(7)

    def take(self, group, name, model, about, inputs=None, outputs=(), tolerance=None):
        folder = os.path.join(self.path, group, name)
        data = os.path.join(folder, "test_data_set_0")
        os.makedirs(data, exist_ok=True)
        onnx.save(model, os.path.join(folder, "model.onnx"))
        self.data(data, model.graph, inputs, outputs)
        if tolerance:
            with open(os.path.join(folder, "tolerance.json"), "w") as f:
                json.dump({"rtol": tolerance[0], "atol": tolerance[1]}, f)
        self.cases.append({"group": group, "name": name, "folder": folder, **about})

    def data(self, folder, graph, inputs=None, outputs=(), image=IMAGE):
        weights = {w.name for w in graph.initializer}
        signature = [v for v in graph.input if v.name not in weights]
        for i, value in enumerate(signature):
            kind = value.type.tensor_type
            shape = [d.dim_value for d in kind.shape.dim]
            array = inputs[i] if inputs else values(self.rng, shape, image)
            with open(os.path.join(folder, f"input_{i}.pb"), "wb") as f:
                f.write(tensor_of(array, value.name, kind.elem_type).SerializeToString())
        for i, array in enumerate(outputs):
            with open(os.path.join(folder, f"output_{i}.pb"), "wb") as f:
                f.write(tensor_of(array, graph.output[i].name, graph.output[i].type.tensor_type.elem_type).SerializeToString())


def model_of(name, nodes, inputs, outputs, weights=()):
    """Inputs and outputs: {name: (dtype, shape)}."""
    def infos(what):
        return [helper.make_tensor_value_info(n, *v) for n, v in what.items()]
    graph = helper.make_graph(nodes, name, infos(inputs), infos(outputs), list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model


def product(folder, size, dtype):
    kind, shape = DTYPES[dtype], [size, size]
    name = f"product_{size}_{dtype}"
    model = model_of(name, [helper.make_node("MatMul", ["a", "b"], ["y"])], {"a": (kind, shape)}, {"y": (kind, shape)},
                     [constant(folder.rng, "b", shape, kind)])
    folder.take("products", name, model, {"op": "matmul", "dtype": dtype, "m": size, "k": size, "n": size, "flops": 2 * size ** 3})


def byte_product(folder, size):
    shape, name = [size, size], f"product_{size}_int8"
    a = repeated(folder.rng.integers(0, 256, (ROWS, size)).astype(np.uint8), shape)
    b = repeated(folder.rng.integers(-128, 128, MATRIX).astype(np.int8), shape)
    rows = (a[:ROWS].astype(np.float64) @ b.astype(np.float64)).astype(np.int32)   # below 2^53: exact
    model = model_of(name, [helper.make_node("MatMulInteger", ["a", "b"], ["y"])], {"a": (DTYPES["u8"], shape)},
                     {"y": (DTYPES["i32"], shape)}, [numpy_helper.from_array(b, "b")])
    folder.take("int8", name, model, {"op": "matmul", "dtype": "int8", "m": size, "k": size, "n": size, "flops": 2 * size ** 3},
                [a], [repeated(rows, shape)])


def attention(folder, keys, dtype, heads=12, width=64):
    kind, shape, name = DTYPES[dtype], [1, heads, keys, width], f"attention_{keys}_{dtype}"
    scale = tensor_of(np.float32(1 / math.sqrt(width)).reshape([]), "scale", kind)
    nodes = [helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]), helper.make_node("MatMul", ["q", "kt"], ["s"]),
             helper.make_node("Mul", ["s", "scale"], ["t"]), helper.make_node("Softmax", ["t"], ["p"], axis=-1),
             helper.make_node("MatMul", ["p", "v"], ["y"])]
    model = model_of(name, nodes, {n: (kind, shape) for n in "qkv"}, {"y": (kind, shape)}, [scale])
    inputs = [repeated(values(folder.rng, [1, heads, ROWS, width]), shape) for _ in "qkv"]
    folder.take("attention", name, model, {"op": "attention", "dtype": dtype, "heads": heads, "keys": keys, "width": width,
                                           "flops": 4 * heads * keys * keys * width}, inputs, [attended(*inputs, shape)],
                {"f32": (1e-3, 1e-5), "f16": (1e-2, 2e-3)}[dtype])


def attended(q, k, v, shape):
    """Attention in f64, of the rows of q that differ."""
    q, k, v = (a.astype(np.float64) for a in (q[:, :, :ROWS], k, v))
    scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return repeated((weights / weights.sum(axis=-1, keepdims=True) @ v).astype(np.float32), shape)


def operators(folder, networks):
    """The single operators of the bench, those of floats."""
    flat = os.path.join(folder.path, "flat")
    done = subprocess.run([sys.executable, "-B", kernel_models.__file__, flat, *networks], stdout=subprocess.PIPE, check=True)
    for kernel in json.loads(done.stdout):
        model = onnx.load(kernel["path"])
        if kernel["group"] in ("bytes", "top"):                          # integers come out, which are not compared
            continue
        about = {"op": model.graph.node[-1].op_type, "dtype": "f32", "flops": kernel["flops"], "bytes": kernel["moved_bytes"],
                 **convolution_facts(model)}
        folder.take("operators", kernel["name"], model, about)
    shutil.rmtree(flat)


def convolution_facts(model):
    """What a peer needs to time the same convolution."""
    node, graph = model.graph.node[0], model.graph
    if node.op_type != "Conv":
        return {}
    facts = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    return {"op": "conv", "image": [d.dim_value for d in graph.input[0].type.tensor_type.shape.dim],
            "weights": list(graph.initializer[0].dims), "strides": list(facts.get("strides", [1, 1])),
            "pads": list(facts.get("pads", [0, 0, 0, 0])), "groups": facts.get("group", 1)}


def network(folder, name, light, materialize):
    """A network of full size with random weights; returns its file."""
    target = os.path.join(folder.path, "networks", name)
    model = os.path.join(target, "model.onnx")
    if not os.path.exists(model):
        subprocess.run([sys.executable, "-B", materialize, os.path.join(light, name + ".onnx"), target],
                       stdout=subprocess.DEVNULL, check=True)
    data = os.path.join(target, "test_data_set_0")
    os.makedirs(data, exist_ok=True)
    Folder(folder.path).data(data, onnx.load(model).graph, image=PICTURE)      # the same picture for all
    folder.cases.append({"group": "networks", "name": name, "folder": target, "op": "network", "dtype": "f32"})
    return model


def numbers(text):
    return [int(n) for n in text.split(",") if n]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--sizes", type=numbers, default=[], metavar="N,N", help="of products")
    parser.add_argument("--keys", type=numbers, default=[], metavar="N,N", help="of attention")
    parser.add_argument("--operators", action="store_true", help="of kernel_models.py")
    parser.add_argument("--light", metavar="FOLDER", help="of networks without weights")
    parser.add_argument("--materialize", metavar="SCRIPT", help="gives them random ones: SCRIPT LIGHT.onnx FOLDER")
    parser.add_argument("--networks", default="", metavar="NAME,NAME", help="which of them")
    options = parser.parse_args()
    folder = Folder(options.folder)
    for size in options.sizes:
        for dtype in ("f32", "f16", "bf16"):
            product(folder, size, dtype)
        byte_product(folder, size)
    for keys in options.keys:
        for dtype in ("f32", "f16"):
            attention(folder, keys, dtype)
    networks = {name: network(folder, name, options.light, options.materialize) for name in options.networks.split(",") if name}
    if options.operators:
        operators(folder, [path for name, path in networks.items() if name in ("ncnn_resnet50", "ncnn_mobilenet_v2")])
    print(json.dumps(folder.cases))


if __name__ == "__main__":
    main()
