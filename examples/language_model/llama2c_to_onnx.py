#!/usr/bin/python3
"""Converts a checkpoint of llama2.c (stories15M.bin and its kind, version 0) to ONNX.

  llama2c_to_onnx.py CHECKPOINT.bin OUT.onnx [--bits 4|8 [--block N]] [--positions N] [--free]

The operators and names are those of exporters for ONNX Runtime GenAI:
  inputs   input_ids               i64[1, sequence_length]
           attention_mask          i64[1, total]             1 for each position up to the last token
           past_key_values.L.key   f32[1, kv_heads, past, head_size]; and .value
  outputs  logits                  f32[1, sequence_length, vocabulary]
           present.L.key           f32[1, kv_heads, max(past, total), head_size]; and .value
past and total are the checkpoint's seq_len, or --positions. With --free they are left open, and so are the batch and
the caches' head_size, as exporters do.
"""
import argparse
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HEADER = ("dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "seq_len")
EXTERNAL = 1 << 30  # a protobuf holds 2 GiB


class Checkpoint:
    """The header's numbers as attributes, and `weights`: float32 arrays [layers,] [out, in] by llama2.c's names."""

    def __init__(self, path):
        size = os.path.getsize(path)
        header = np.fromfile(path, np.int32, len(HEADER)) if size >= 28 else np.zeros(7, np.int32)
        if header[0] == 0x616B3432:
            sys.exit(f"{path}: a checkpoint of version {header[1]}; export it with --version 0")
        for name, value in zip(HEADER, header):
            setattr(self, name, int(value))
        self.is_shared = self.vocab_size > 0  # the classifier is the embedding
        self.vocab_size = abs(self.vocab_size)
        numbers = [getattr(self, name) for name in HEADER]
        if min(numbers) < 1 or self.dim % self.n_heads or self.n_heads % self.n_kv_heads or self.head_size % 2:
            sys.exit(f"{path}: not a checkpoint of llama2.c: its header says {dict(zip(HEADER, map(int, header)))}")
        kv, half = self.n_kv_heads * self.head_size, self.head_size // 2
        layers, dim, hidden = self.n_layers, self.dim, self.hidden_dim
        shapes = {"token_embedding": (self.vocab_size, dim), "rms_att": (layers, dim), "wq": (layers, dim, dim),
                  "wk": (layers, kv, dim), "wv": (layers, kv, dim), "wo": (layers, dim, dim), "rms_ffn": (layers, dim),
                  "w1": (layers, hidden, dim), "w2": (layers, dim, hidden), "w3": (layers, hidden, dim),
                  "rms_final": (dim,), "cosines": (self.seq_len, half), "sines": (self.seq_len, half)}
        if not self.is_shared:
            shapes["wcls"] = (self.vocab_size, dim)
        expected = 28 + 4 * sum(int(np.prod(shape, dtype=np.int64)) for shape in shapes.values())
        if size != expected:
            sys.exit(f"{path}: expected {expected} bytes as its header says, found {size}")
        data, at, self.weights = np.memmap(path, np.float32, "r", 28), 0, {}
        for name, shape in shapes.items():
            count = int(np.prod(shape, dtype=np.int64))
            self.weights[name] = data[at:at + count].reshape(shape)
            at += count

    @property
    def head_size(self):
        return self.dim // self.n_heads


def halves(weight, heads):
    """Rows of each head from rotated pairs, as in llama2.c, to rotated halves, as exporters have them."""
    rows, columns = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, columns).transpose(0, 2, 1, 3).reshape(rows, columns)


def quantize(weight, bits, block):
    """[out, in] to MatMulNBits' packed integers [out, blocks, bytes] and scales; the zero point is in the middle."""
    rows, columns = weight.shape
    middle = 1 << (bits - 1)
    padded = np.pad(weight, ((0, 0), (0, -columns % block))).reshape(rows, -1, block)
    extreme = np.take_along_axis(padded, np.abs(padded).argmax(-1, keepdims=True), -1)
    scales = np.where(extreme == 0, 1, extreme / -middle).astype(np.float32)
    integers = np.clip(np.rint(padded / scales) + middle, 0, 2 * middle - 1).astype(np.uint8)
    if bits == 4:
        integers = integers[..., 0::2] | integers[..., 1::2] << 4
    return integers, scales.reshape(-1)


class Exporter:
    def __init__(self, checkpoint, positions, bits, block, free):
        self.checkpoint, self.positions, self.bits, self.block, self.free = checkpoint, positions, bits, block, free
        self.nodes, self.initializers = [], []

    def constant(self, name, array):
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def op(self, kind, inputs, name, outputs=None, domain="", **attributes):
        self.nodes.append(helper.make_node(kind, inputs, outputs or [name], name, domain=domain, **attributes))
        return (outputs or [name])[0]

    def contrib(self, kind, inputs, name, outputs=None, **attributes):
        return self.op(kind, inputs, name, outputs, "com.microsoft", **attributes)

    def linear(self, x, weight, name):
        rows, columns = weight.shape
        if self.bits == 32:
            return self.op("MatMul", [x, self.constant(name + ".weight", weight.T)], name)
        packed, scales = quantize(weight, self.bits, self.block)
        return self.contrib("MatMulNBits", [x, self.constant(name + ".packed", packed),
                                            self.constant(name + ".scales", scales)], name,
                            K=columns, N=rows, bits=self.bits, block_size=self.block, accuracy_level=1)

    def classifier(self, x):
        c = self.checkpoint
        if c.is_shared and self.bits == 32:  # the embedding is in the file once
            return self.op("MatMul", [x, self.op("Transpose", ["embedding"], "embedding_t", perm=[1, 0])], "logits")
        return self.linear(x, c.weights["token_embedding" if c.is_shared else "wcls"], "logits")

    def lengths(self):
        """seqlens_k and total_sequence_length of GroupQueryAttention, from the mask."""
        constant = lambda name, value: self.constant(name, np.array(value, np.int64))
        ones = self.op("ReduceSum", ["attention_mask", constant("axis", [1])], "mask_sum", keepdims=0)
        self.op("Cast", [self.op("Sub", [ones, constant("one", [1])], "last")], "seqlens_k", to=TensorProto.INT32)
        shape = self.op("Shape", ["attention_mask"], "mask_shape")
        self.op("Cast", [self.op("Gather", [shape, constant("second", 1)], "mask_length")], "total_sequence_length",
                to=TensorProto.INT32)
        size = self.checkpoint.head_size
        angles = np.outer(np.arange(self.positions), 10000.0 ** (-np.arange(0, size, 2) / size))
        self.constant("cos_cache", np.cos(angles).astype(np.float32))
        self.constant("sin_cache", np.sin(angles).astype(np.float32))

    def layer(self, i, x, h):
        """`x`: the residual; `h`: the same, normalised. Returns both behind the layer."""
        c, name = self.checkpoint, f"layers.{i}."
        w = {key: value[i] for key, value in c.weights.items() if value.ndim > 1 and len(value) == c.n_layers}
        query = self.linear(h, halves(w["wq"], c.n_heads), name + "query")
        key = self.linear(h, halves(w["wk"], c.n_kv_heads), name + "key")
        value = self.linear(h, w["wv"], name + "value")
        mixed = self.contrib("GroupQueryAttention",
                             [query, key, value, f"past_key_values.{i}.key", f"past_key_values.{i}.value", "seqlens_k",
                              "total_sequence_length", "cos_cache", "sin_cache"], name + "attention",
                             [name + "attention", f"present.{i}.key", f"present.{i}.value"], num_heads=c.n_heads,
                             kv_num_heads=c.n_kv_heads, do_rotary=1, rotary_interleaved=0)
        x, h = self.add_and_norm(x, self.linear(mixed, w["wo"], name + "output"), w["rms_ffn"], name + "middle")
        gate = self.linear(h, w["w1"], name + "gate")
        gate = self.op("Mul", [gate, self.op("Sigmoid", [gate], name + "sigmoid")], name + "silu")
        gated = self.op("Mul", [gate, self.linear(h, w["w3"], name + "up")], name + "gated")
        norm = c.weights["rms_att"][i + 1] if i + 1 < c.n_layers else c.weights["rms_final"]
        return self.add_and_norm(x, self.linear(gated, w["w2"], name + "down"), norm, name + "end")

    def add_and_norm(self, x, y, weight, name):
        h = self.contrib("SkipSimplifiedLayerNormalization", [x, y, self.constant(name + ".norm", weight)], name,
                         [name, "", "", name + ".sum"], epsilon=1e-5)
        return name + ".sum", h

    def model(self):
        c = self.checkpoint
        self.lengths()
        x = self.op("Gather", [self.constant("embedding", c.weights["token_embedding"]), "input_ids"], "embedded")
        h = self.op("SimplifiedLayerNormalization", [x, self.constant("first.norm", c.weights["rms_att"][0])], "first",
                    axis=-1, epsilon=1e-5, stash_type=1)
        for i in range(c.n_layers):
            x, h = self.layer(i, x, h)
        self.classifier(h)

        value = helper.make_tensor_value_info
        batch, past, total, size = 1, self.positions, self.positions, c.head_size
        if self.free:
            batch, past, total, size = "batch_size", "past_sequence_length", "total_sequence_length", "kv_cache_dim"
        names = [f"{i}.{kind}" for i in range(c.n_layers) for kind in ("key", "value")]
        cache = lambda name, rows: value(name, TensorProto.FLOAT, [batch, c.n_kv_heads, rows, size])
        graph = helper.make_graph(
            self.nodes, "decoder",
            [value("input_ids", TensorProto.INT64, [batch, "sequence_length"]),
             value("attention_mask", TensorProto.INT64, [batch, total])] +
            [cache("past_key_values." + name, past) for name in names],
            [value("logits", TensorProto.FLOAT, [batch, "sequence_length", c.vocab_size])] +
            [cache("present." + name, total) for name in names], self.initializers)
        model = helper.make_model(graph, producer_name="llama2c_to_onnx", opset_imports=[
            helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])
        model.ir_version = 8
        return model


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("checkpoint")
    parser.add_argument("out")
    parser.add_argument("--bits", type=int, choices=(4, 8, 32), default=32, help="of the weights of products")
    parser.add_argument("--block", type=int, choices=(16, 32, 64, 128, 256), default=32, help="weights that share a scale")
    parser.add_argument("--positions", type=int, help="longest text, in tokens (default and most: the checkpoint's)")
    parser.add_argument("--free", action="store_true", help="leave the lengths of texts and caches open")
    args = parser.parse_args()
    checkpoint = Checkpoint(args.checkpoint)
    positions = args.positions or checkpoint.seq_len
    if not 1 <= positions <= checkpoint.seq_len:
        parser.error(f"--positions: expected 1 to {checkpoint.seq_len}, found {positions}")
    model = Exporter(checkpoint, positions, args.bits, args.block, args.free).model()
    external = {}
    if model.ByteSize() > EXTERNAL:
        external = dict(save_as_external_data=True, location=os.path.basename(args.out) + ".data")
    onnx.save(model, args.out, **external)


if __name__ == "__main__":
    main()
