#!/usr/bin/python3
"""Prints what a model of make_language_model.py --free holds, as JSON, and writes it as a GGUF file for llama.cpp.

    language_model.py MODEL.onnx OUT.gguf

Every quantised weight is one of GGUF's Q4_0 or Q8_0: the same integers, the scales rounded to f16. GGUF's embedding has 8
bits where ONNX's is f32. Needs Debian's python3-onnx.
"""
import json
import re
import struct
import sys

import numpy as np
import onnx
from onnx import numpy_helper

BLOCK = 32                                                         # of both GGUF types
F32, Q4_0, Q8_0 = 0, 2, 8                                          # types of GGUF
NAMES = {"q": "attn_q", "k": "attn_k", "v": "attn_v", "o": "attn_output", "gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down"}


def rows_of(node, constants, halves_of_heads):
    """-> (GGUF type, bytes) of the weights [N, K] of a MatMulNBits. Where the rows belong to heads of halves_of_heads * 2
    values, rotary positions pair values a half apart in ONNX and neighbours in GGUF."""
    a = {x.name: x.i for x in node.attribute}
    if a["block_size"] != BLOCK or len(node.input) > 3:
        raise ValueError(f"{node.name}: GGUF needs blocks of {BLOCK} without zero points")
    packed = constants[node.input[1]].reshape(a["N"], -1, BLOCK * a["bits"] // 8)
    scales = constants[node.input[2]].reshape(a["N"], -1, 1)
    if halves_of_heads:
        order = np.arange(a["N"]).reshape(-1, 2, halves_of_heads).transpose(0, 2, 1).ravel()
        packed, scales = packed[order], scales[order]
    if a["bits"] == 4:
        values = np.stack([packed & 15, packed >> 4], -1).reshape(a["N"], -1, BLOCK)
        packed = values[..., :BLOCK // 2] | values[..., BLOCK // 2:] << 4
    else:
        packed = packed ^ 128
    return (Q4_0 if a["bits"] == 4 else Q8_0), with_scales(scales, packed)


def with_scales(scales, packed):
    return np.concatenate([scales.astype(np.float16).view(np.uint8), packed.view(np.uint8)], -1).tobytes()


def tensors_of(graph, constants, half):
    """-> {GGUF's name: (sizes, fastest first; type; bytes)}"""
    embedding = constants["embedding"].reshape(len(constants["embedding"]), -1, BLOCK)
    scales = np.abs(embedding).max(-1, keepdims=True) / 127
    rounded = np.round(embedding / scales).astype(np.int8)
    found = {"token_embd.weight": (constants["embedding"].shape[::-1], Q8_0, with_scales(scales, rounded))}
    layers = sum(n.op_type == "GroupQueryAttention" for n in graph.node)
    for name, value in constants.items():
        if norm := re.fullmatch(r"norm_(?:([ab])_(\d+)|0)", name):
            kind, layer = norm.group(1), int(norm.group(2) or 0)
            layer = layer if kind == "a" else layer + 1 if kind else 0
            gguf = f"blk.{layer}.{'ffn' if kind == 'a' else 'attn'}_norm.weight" if layer < layers else "output_norm.weight"
            found[gguf] = (value.shape, F32, value.tobytes())
    for node in graph.node:
        if node.op_type == "MatMulNBits":
            kind, _, layer = node.name.partition("_")
            kind_of, data = rows_of(node, constants, half if kind in ("q", "k") else 0)
            sizes = [x.i for key in "KN" for x in node.attribute if x.name == key]
            found[f"blk.{layer}.{NAMES[kind]}.weight" if layer else "output.weight"] = (sizes, kind_of, data)
    return found


def text(value):
    return struct.pack("<Q", len(value.encode())) + value.encode()


def write_gguf(path, tensors, facts):
    # Types of values: 4 u32, 5 i32, 6 f32, 8 text, 9 an array of one of them.
    words = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
    count = facts["vocabulary"]
    words += [f"\u2581t{i}" for i in range(count - len(words))]
    numbers = {"context_length": 4096, "embedding_length": facts["hidden"], "block_count": facts["layers"],
               "feed_forward_length": facts["feed"], "attention.head_count": facts["heads"],
               "attention.head_count_kv": facts["groups"], "rope.dimension_count": facts["head_size"], "vocab_size": count}
    fields = [("general.architecture", 8, text("llama")), ("tokenizer.ggml.model", 8, text("llama")),
              *((f"llama.{k}", 4, struct.pack("<I", v)) for k, v in numbers.items()),
              ("llama.attention.layer_norm_rms_epsilon", 6, struct.pack("<f", 1e-5)),
              ("llama.rope.freq_base", 6, struct.pack("<f", 10000.0)),
              ("tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, count) + b"".join(map(text, words))),
              ("tokenizer.ggml.scores", 9, struct.pack("<IQ", 6, count) + bytes(4 * count)),
              ("tokenizer.ggml.token_type", 9, struct.pack(f"<IQ{count}i", 5, count, 2, 3, 3, *[6] * 256, *[1] * (count - 259))),
              ("tokenizer.ggml.bos_token_id", 4, struct.pack("<I", 1)), ("tokenizer.ggml.eos_token_id", 4, struct.pack("<I", 2))]
    with open(path, "wb") as f:
        f.write(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(fields)))
        f.write(b"".join(text(k) + struct.pack("<I", t) + v for k, t, v in fields))
        offset = 0
        for name, (sizes, kind, data) in tensors.items():
            f.write(text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, kind, offset))
            offset += len(data) + -len(data) % 32
        f.write(bytes(-f.tell() % 32))
        for _, _, data in tensors.values():
            f.write(data + bytes(-len(data) % 32))


def main(source, gguf):
    graph = onnx.load(source).graph
    constants = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    products = [n for n in graph.node if n.op_type == "MatMulNBits"]
    a = {x.name: x.i for n in graph.node if n.op_type == "GroupQueryAttention" for x in n.attribute}
    vocabulary, hidden = constants["embedding"].shape
    macs = {n.name: [x.i for x in n.attribute if x.name == "K"][0] * [x.i for x in n.attribute if x.name == "N"][0] for n in products}
    size = next(o.type.tensor_type.shape.dim[3].dim_value for o in graph.output[1:])
    layers = sum(n.op_type == "GroupQueryAttention" for n in graph.node)
    facts = {"layers": layers, "hidden": hidden, "feed": macs["up_0"] // hidden, "heads": a["num_heads"], "groups": a["kv_num_heads"],
             "head_size": size, "vocabulary": vocabulary,
             "weight_bytes": sum(constants[i].nbytes for n in products for i in n.input[1:]),
             "embedding_bytes": constants["embedding"].nbytes,
             "layer_macs": sum(macs.values()) - macs["logits"], "logits_macs": macs["logits"]}
    write_gguf(gguf, tensors_of(graph, constants, size // 2), facts)
    print(json.dumps(facts))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
