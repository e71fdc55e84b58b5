#!/usr/bin/python3
"""Writes an ONNX model with an operator that no compiler knows: example.audio::Compand (compand.op).

  build_model.py OUT.onnx

  input    signal   f32[frames, 8]
  outputs  code     u8[frames, 8]    the frames, each sample weighted by WINDOW, companded with knee 8 and 256 levels
           loudness f32[frames]      mean of the codes, times the frame's peak
"""
import argparse

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save

WINDOW = [0.125, 0.375, 0.75, 1.0, 1.0, 0.75, 0.375, 0.125]


def build():
    nodes = [
        helper.make_node("Mul", ["signal", "window"], ["windowed"], name="window"),
        helper.make_node("Compand", ["windowed"], ["code", "peak"], name="compand", domain="example.audio", knee=8.0,
                         levels=256),
        helper.make_node("Cast", ["code"], ["numbers"], name="cast", to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["numbers"], ["mean"], name="mean", axes=[1], keepdims=0),
        helper.make_node("Mul", ["mean", "peak"], ["loudness"], name="loudness"),
    ]
    graph = helper.make_graph(
        nodes, "compand", [helper.make_tensor_value_info("signal", TensorProto.FLOAT, ["frames", len(WINDOW)])],
        [helper.make_tensor_value_info("code", TensorProto.UINT8, ["frames", len(WINDOW)]),
         helper.make_tensor_value_info("loudness", TensorProto.FLOAT, ["frames"])],
        [numpy_helper.from_array(np.array(WINDOW, np.float32), "window")])
    return helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid("example.audio", 1)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    model = build()
    checker.check_model(model)
    save(model, parser.parse_args().out)


if __name__ == "__main__":
    main()
