"""Writes a small random checkpoint of llama2.c (version 0) and a vocabulary, and what the checkpoint computes.

  llama2c_checkpoint.py FOLDER [--unshared] [--positions N] [--vocabulary N] [--greedy] TOKEN...

FOLDER gets model.bin, tokenizer.bin and logits.txt: a line for each token, the logits behind it. They are computed in
float64, one token after another, as llama2.c's run.c does: rotation of neighbours, a cache, no batches. With --greedy,
text.txt is what run.c writes without a prompt at temperature 0, and utf8.txt the same without broken characters.
"""
import argparse
import struct

import numpy as np

DIM, HIDDEN, LAYERS, HEADS, KV_HEADS = 64, 160, 2, 4, 2
SIZE = DIM // HEADS
KV = KV_HEADS * SIZE


def random_weights(vocabulary, unshared):
    """In the order of the file, without the tables of cosines and sines, which run.c does not read."""
    rng = np.random.default_rng(7)
    matrix = lambda *shape: (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)
    norm = lambda *shape: (1 + rng.standard_normal(shape) / 8).astype(np.float32)
    weights = {
        "embedding": rng.standard_normal((vocabulary, DIM)).astype(np.float32), "rms_att": norm(LAYERS, DIM),
        "wq": matrix(LAYERS, DIM, DIM), "wk": matrix(LAYERS, KV, DIM), "wv": matrix(LAYERS, KV, DIM),
        "wo": matrix(LAYERS, DIM, DIM), "rms_ffn": norm(LAYERS, DIM), "w1": matrix(LAYERS, HIDDEN, DIM),
        "w2": matrix(LAYERS, DIM, HIDDEN), "w3": matrix(LAYERS, HIDDEN, DIM), "rms_final": norm(DIM)}
    if unshared:
        weights["wcls"] = matrix(vocabulary, DIM)
    return weights


def write_checkpoint(path, weights, vocabulary, positions, unshared):
    with open(path, "wb") as file:
        file.write(struct.pack("7i", DIM, HIDDEN, LAYERS, HEADS, KV_HEADS, -vocabulary if unshared else vocabulary,
                               positions))
        for name, array in weights.items():
            if name == "wcls":
                continue
            file.write(array.tobytes())
        file.write(np.full((2, positions, SIZE // 2), np.nan, np.float32).tobytes())
        if unshared:
            file.write(weights["wcls"].tobytes())


def write_vocabulary(path, vocabulary):
    """Special tokens, bytes, then pieces, of which the first are letters; scores fall. Returns the pieces."""
    pieces = [b"<unk>", b"\n<s>\n", b"\n</s>\n"] + [b"<0x%02X>" % byte for byte in range(256)]
    pieces += [bytes([c]) for c in b" abcdefghijklmnopqrstuvwxyz"] + "é".encode().split()
    pieces += [b"th", b"he", b"the", b" the", b"in", b"ing", b"er", b" t"]
    pieces += [b"piece%d" % i for i in range(vocabulary - len(pieces))]
    with open(path, "wb") as file:
        file.write(struct.pack("i", max(map(len, pieces))))
        for i, piece in enumerate(pieces[:vocabulary]):
            file.write(struct.pack("fi", 0.0 if i < 259 else -float(i - 259), len(piece)) + piece)
    return pieces


def rms_norm(x, weight):
    return x / np.sqrt(np.mean(x * x) + 1e-5) * weight


def rotate(x, position):
    """Pairs of neighbours, each by its angle."""
    angles = position * 10000.0 ** (-np.arange(0, SIZE, 2) / SIZE)
    pairs = x.reshape(-1, SIZE // 2, 2)
    cos, sin = np.cos(angles), np.sin(angles)
    return np.stack([pairs[..., 0] * cos - pairs[..., 1] * sin, pairs[..., 0] * sin + pairs[..., 1] * cos],
                    -1).reshape(-1, SIZE)


def evaluate(weights, tokens):
    w = {name: array.astype(np.float64) for name, array in weights.items()}
    keys, values, logits = [[] for _ in range(LAYERS)], [[] for _ in range(LAYERS)], []
    for position, token in enumerate(tokens):
        x = w["embedding"][token]
        for i in range(LAYERS):
            h = rms_norm(x, w["rms_att"][i])
            query = rotate(w["wq"][i] @ h, position)
            keys[i].append(rotate(w["wk"][i] @ h, position))
            values[i].append((w["wv"][i] @ h).reshape(-1, SIZE))
            heads = []
            for head in range(HEADS):
                group = head // (HEADS // KV_HEADS)
                scores = np.array([query[head] @ key[group] for key in keys[i]]) / np.sqrt(SIZE)
                scores = np.exp(scores - scores.max())
                heads.append(sum(s * v[group] for s, v in zip(scores / scores.sum(), values[i])))
            x = x + w["wo"][i] @ np.concatenate(heads)
            h = rms_norm(x, w["rms_ffn"][i])
            gate = w["w1"][i] @ h
            x = x + w["w2"][i] @ (gate / (1 + np.exp(-gate)) * (w["w3"][i] @ h))
        logits.append(w.get("wcls", w["embedding"]) @ rms_norm(x, w["rms_final"]))
    return np.array(logits)


def greedy_text(weights, pieces, positions):
    """From the begin token to an end token, or until the caches are full. As float32 has it, up to ties."""
    tokens, text = [1], b""
    while len(tokens) <= positions:
        token = int(evaluate(weights, tokens)[-1].argmax())
        if token in (1, 2):
            break
        piece = bytes([token - 3]) if token < 259 else pieces[token]
        text += piece[1:] if len(tokens) == 1 and piece.startswith(b" ") else piece
        tokens.append(token)
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("tokens", type=int, nargs="*")
    parser.add_argument("--unshared", action="store_true", help="the classifier is not the embedding")
    parser.add_argument("--positions", type=int, default=64)
    parser.add_argument("--vocabulary", type=int, default=320)
    parser.add_argument("--greedy", action="store_true")
    args = parser.parse_args()
    weights = random_weights(args.vocabulary, args.unshared)
    write_checkpoint(args.folder + "/model.bin", weights, args.vocabulary, args.positions, args.unshared)
    pieces = write_vocabulary(args.folder + "/tokenizer.bin", args.vocabulary)
    if args.greedy:
        text = greedy_text(weights, pieces, args.positions)
        for name, contents in (("text", text), ("utf8", text.decode("utf-8", "replace").encode())):
            with open(f"{args.folder}/{name}.txt", "wb") as file:
                file.write(contents)
    np.savetxt(args.folder + "/logits.txt", evaluate(weights, args.tokens), "%.8g")


if __name__ == "__main__":
    main()
