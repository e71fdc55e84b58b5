#!/usr/bin/python3
"""Writes the copy of an ONNX model that both sides are timed on, and prints what a driver needs to know of it as JSON.

    prepare_model.py SOURCE.onnx COPY.onnx

Weights are taken out of the graph's inputs: ONNX Runtime does not optimise what could be overridden at run time, which
would make the comparison unfair to it. Free dimensions get the sizes of the first data set beside the source
(test_data_set_0/input_K.pb), or 1. Needs Debian's python3-onnx.
"""
import json
import os
import sys

import onnx
from onnx import numpy_helper


def data_set_shapes(source):
    """Shape by position of the first data set's inputs."""
    folder = os.path.join(os.path.dirname(source), "test_data_set_0")
    shapes = []
    while os.path.exists(path := os.path.join(folder, f"input_{len(shapes)}.pb")):
        tensor = onnx.TensorProto()
        with open(path, "rb") as f:
            tensor.ParseFromString(f.read())
        shapes.append(list(tensor.dims))
    return shapes


def main(source, copy):
    model = onnx.load(source)
    graph = model.graph
    weights = {i.name for i in graph.initializer}
    inputs = [i for i in graph.input if i.name not in weights]
    sizes = {}                                                     # of named free dimensions
    for value, shape in zip(inputs, data_set_shapes(source) or [None] * len(inputs)):
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.HasField("dim_value"):
                continue
            size = shape[axis] if shape else 1
            if dim.dim_param:
                size = sizes.setdefault(dim.dim_param, size)
            dim.dim_value = size
    for value in list(graph.output) + list(graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in sizes:
                dim.dim_value = sizes[dim.dim_param]
    del graph.input[:]
    graph.input.extend(inputs)
    model.ir_version = max(model.ir_version, 4)                    # the first that lets weights not be inputs
    os.makedirs(os.path.dirname(copy), exist_ok=True)
    onnx.save(model, copy)
    print(json.dumps({
        "inputs": [i.name for i in inputs],
        "nodes": len(graph.node),
        "weight_bytes": sum(numpy_helper.to_array(i).nbytes for i in graph.initializer),
    }))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
