#!/usr/bin/python3
"""Writes a small decoder-only language model as ONNX, with weights from a fixed seed.

  build_model.py OUT.onnx [--positions N]

Architecture (of the Llama family): 256 tokens (bytes), width 128, 4 layers, each: RMS norm, attention with 8 query
heads over 2 key/value heads of width 16 (grouped queries), rotary positions of base 10000, RMS norm, gated SiLU
network of width 352; a last RMS norm and the output weights. 771,200 weights, normal with variance 1/fan-in.

  inputs   tokens     i64[length]
           positions  i64[length]              of the tokens in the text, counted from 0
           keys_L     f32[POSITIONS, 32]       what layer L has computed for earlier positions
           values_L   f32[POSITIONS, 32]
  outputs  logits     f32[length, 256]         of the token after each
           next_keys_L, next_values_L          with the rows of these positions filled in

Every token sees the rows of positions up to its own, so a text may be given whole or in any parts, in order.
"""
import argparse

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save

TOKENS, WIDTH, LAYERS, HEADS, KV_HEADS, HEAD, HIDDEN, SEED = 256, 128, 4, 8, 2, 16, 352, 20260101
KV = KV_HEADS * HEAD
GROUP = HEADS // KV_HEADS


class Builder:
    def __init__(self, positions):
        self.positions = positions
        self.random = np.random.default_rng(SEED)
        self.nodes, self.initializers, self.count = [], {}, 0

    def constant(self, name, array):
        self.initializers.setdefault(name, numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def ints(self, *values):
        return self.constant("ints_" + "_".join(str(v) for v in values), np.array(values, np.int64))

    def weight(self, name, rows, columns):
        return self.constant(name, self.random.standard_normal((rows, columns), np.float32) / np.sqrt(np.float32(rows)))

    def op(self, kind, *inputs, output=None, **attributes):
        self.count += 1
        output = output or f"{kind}_{self.count}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], name=output, **attributes))
        return output

    def linear(self, x, name, rows, columns):
        return self.op("MatMul", x, self.weight(name, rows, columns))

    def rms_norm(self, x, name):
        mean = self.op("ReduceMean", self.op("Mul", x, x), axes=[-1], keepdims=1)
        root = self.op("Sqrt", self.op("Add", mean, self.constant("epsilon", np.float32(1e-5))))
        weight = self.constant(name, 1 + self.random.standard_normal(WIDTH, np.float32) / 8)
        return self.op("Mul", self.op("Div", x, root), weight)

    def rotate(self, x, heads):
        """x: [length, heads * HEAD]; the halves of each head are the two coordinates."""
        x = self.op("Reshape", x, self.ints(-1, heads, 2, HEAD // 2))
        half = [self.op("Gather", x, self.constant(f"index_{i}", np.int64(i)), axis=2) for i in range(2)]
        turned = [self.op("Sub", self.op("Mul", half[0], self.cos), self.op("Mul", half[1], self.sin)),
                  self.op("Add", self.op("Mul", half[1], self.cos), self.op("Mul", half[0], self.sin))]
        return self.op("Concat", *turned, axis=2)  # [length, heads, HEAD]

    def angles(self):
        frequency = 10000.0 ** (-np.arange(HEAD // 2) / (HEAD // 2))
        angle = np.outer(np.arange(self.positions), frequency)
        pick = lambda name, table: self.op(
            "Unsqueeze", self.op("Gather", self.constant(name, table.astype(np.float32)), "positions"), self.ints(1))
        self.cos, self.sin = pick("cosines", np.cos(angle)), pick("sines", np.sin(angle))

    def attention(self, x, layer):
        name = f"layer_{layer}."
        query = self.rotate(self.linear(x, name + "query", WIDTH, HEADS * HEAD), HEADS)
        key = self.op("Reshape", self.rotate(self.linear(x, name + "key", WIDTH, KV), KV_HEADS), self.ints(-1, KV))
        value = self.linear(x, name + "value", WIDTH, KV)
        heads = []
        for kind, rows in (("keys", key), ("values", value)):
            cache = self.op("ScatterND", f"{kind}_{layer}", self.rows, rows, output=f"next_{kind}_{layer}")
            heads.append(self.op("Reshape", cache, self.ints(self.positions, KV_HEADS, 1, HEAD)))
        keys = self.op("Transpose", heads[0], perm=[1, 2, 3, 0])    # [KV_HEADS, 1, HEAD, POSITIONS]
        values = self.op("Transpose", heads[1], perm=[1, 2, 0, 3])  # [KV_HEADS, 1, POSITIONS, HEAD]
        query = self.op("Reshape", query, self.ints(-1, KV_HEADS, GROUP, HEAD))
        query = self.op("Transpose", query, perm=[1, 2, 0, 3])      # [KV_HEADS, GROUP, length, HEAD]
        scores = self.op("Mul", self.op("MatMul", query, keys), self.constant("scale", np.float32(HEAD ** -0.5)))
        scores = self.op("Where", self.visible, scores, self.constant("never", np.float32(-1e9)))
        mixed = self.op("MatMul", self.op("Softmax", scores, axis=-1), values)
        mixed = self.op("Reshape", self.op("Transpose", mixed, perm=[2, 0, 1, 3]), self.ints(-1, HEADS * HEAD))
        return self.linear(mixed, name + "output", HEADS * HEAD, WIDTH)

    def network(self, x, layer):
        name = f"layer_{layer}."
        gate = self.linear(x, name + "gate", WIDTH, HIDDEN)
        gate = self.op("Mul", gate, self.op("Sigmoid", gate))
        return self.linear(self.op("Mul", gate, self.linear(x, name + "up", WIDTH, HIDDEN)), name + "down", HIDDEN, WIDTH)

    def model(self):
        self.angles()
        self.rows = self.op("Unsqueeze", "positions", self.ints(-1))  # [length, 1]
        self.visible = self.op("LessOrEqual", self.ints(*range(self.positions)), self.rows)
        x = self.op("Gather", self.weight("embedding", TOKENS, WIDTH), "tokens")
        x = self.op("Mul", x, self.constant("embedding_scale", np.float32(TOKENS ** 0.5)))
        for layer in range(LAYERS):
            x = self.op("Add", x, self.attention(self.rms_norm(x, f"layer_{layer}.norm_1"), layer))
            x = self.op("Add", x, self.network(self.rms_norm(x, f"layer_{layer}.norm_2"), layer))
        self.op("MatMul", self.rms_norm(x, "norm"), self.weight("logits_weight", WIDTH, TOKENS), output="logits")

        value = helper.make_tensor_value_info
        caches = [f"{kind}_{layer}" for layer in range(LAYERS) for kind in ("keys", "values")]
        cache = lambda name: value(name, TensorProto.FLOAT, [self.positions, KV])
        inputs = [value(n, TensorProto.INT64, ["length"]) for n in ("tokens", "positions")] + [cache(n) for n in caches]
        outputs = [value("logits", TensorProto.FLOAT, ["length", TOKENS])] + [cache("next_" + n) for n in caches]
        graph = helper.make_graph(self.nodes, "language_model", inputs, outputs, list(self.initializers.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="quernel-example")
        model.ir_version = 8
        checker.check_model(model)
        return model


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out")
    parser.add_argument("--positions", type=int, default=256, help="longest text, in tokens")
    args = parser.parse_args()
    save(Builder(args.positions).model(), args.out)


if __name__ == "__main__":
    main()
