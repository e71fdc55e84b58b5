"""Times decoders with 4- and 8-bit weights on Quernel and its peers, and prints tables. Started by language.sh.

Models are those of make_language_model.py --free --last. Keys and values stay in buffers of --capacity positions. Each
figure comes from a fresh process; the sides take turns. Of several turns the one with the smallest median counts, of the
machine's speed the turn in the middle. Where it may, every side runs with the scheduler's real-time class: llama.cpp
starts threads for every token, which the usual class leaves on one CPU for milliseconds.
"""
import argparse
import collections
import json
import os
import statistics
import struct
import sys

from sides import DEBIAN_PYTHON, HERE, MIB, Best, Failure, Run, number, table
from bench import BUSY_CORES, progress

Situation = collections.namedtuple("Situation", "name tokens past")
TITLES = {"quernel": "Quernel", "quernel-i8": "Quernel i8", "quernel-i8:row": "Quernel i8:row", "onnxruntime": "ORT", "llama.cpp": "llama.cpp", "openvino": "OpenVINO"}
BARS = ("onnxruntime", "llama.cpp")                                # the peers that Quernel is held against


class Model:
    """A decoder as files: ONNX, GGUF, and what Quernel makes of it; all made once."""

    def __init__(self, options, shape, bits):
        self.name, self.shape, self.bits, self.options = f"{shape} {bits}", shape, bits, options
        self.folder = os.path.join(options.cache, f"{shape}-{bits}")
        os.makedirs(self.folder, exist_ok=True)
        self.onnx, self.gguf, facts = (os.path.join(self.folder, f) for f in ("model.onnx", "model.gguf", "model.json"))
        if not os.path.exists(facts):
            Run([DEBIAN_PYTHON, options.maker, self.onnx, "--shape", shape, "--bits", str(bits), "--free", "--last"])
            written = Run([DEBIAN_PYTHON, os.path.join(HERE, "language_model.py"), self.onnx, self.gguf]).out
            with open(facts, "w") as f:
                f.write(written)
        with open(facts) as f:
            self.facts = json.load(f)
        self.bundles = {}

    def cache_bytes(self, positions):
        return positions * 2 * self.facts["layers"] * self.facts["groups"] * self.facts["head_size"] * 4

    def file_bytes(self):
        """What a bundle cannot do without."""
        return self.facts["weight_bytes"] + self.facts["embedding_bytes"]

    def bound_ms(self, situation, peaks, integers):
        """The least time: weights and caches read once, every product at the peak of its arithmetic."""
        f, s = self.facts, situation
        memory = (f["weight_bytes"] + self.cache_bytes(s.past + s.tokens)) / peaks["bytes"]
        pairs = s.tokens * s.past + s.tokens * (s.tokens + 1) / 2
        attention = 4 * pairs * f["layers"] * f["heads"] * f["head_size"] / peaks["flops"]
        products = 2 * (f["layer_macs"] * s.tokens + f["logits_macs"]) / peaks["byte_ops" if integers else "flops"]
        return 1e3 * max(memory, attention + products)

    def bundle(self, side):
        """-> facts of the bundle, which is compiled where compiler or flags have changed, or an entry point is not in it"""
        if side not in self.bundles:
            options, path = self.options, os.path.join(self.folder, side + ".qnl")
            compiler = os.path.join(options.bin, "quernel")
            command = [compiler, "compile", self.onnx, "-o", path, "--state", "past_key_values.*=present.*",
                       *(["--activations", side.removeprefix("quernel-")] if side != "quernel" else [])]
            key = [*command, os.path.getmtime(compiler), os.path.getmtime(self.onnx), options.capacity]
            facts = read_json(path + ".json")
            known = set(facts["tokens"]) if facts.get("key") == key and os.path.exists(path) else set()
            tokens = known | {s.tokens for s in options.situations}
            if tokens != known:
                progress(f"compiling {self.name}, {TITLES[side]}")
                run = Run(command + [part for t in sorted(tokens) for part in
                                     ("--entry", f"{entry_of(t)}:tokens={t},past={options.capacity},total={options.capacity}")])
                facts = {"key": key, "tokens": sorted(tokens), "seconds": run.seconds, "peak_bytes": run.peak_bytes,
                         "bundle_bytes": os.path.getsize(path)}
                write_json(path + ".json", facts)
            self.bundles[side] = {"path": path, **facts}
        return self.bundles[side]

    def run(self, side, situation, threads):
        """-> the finished process of one turn"""
        options, s = self.options, situation
        numbers = [str(n) for n in (threads, options.capacity, s.tokens, s.past, options.seconds)]
        if side == "llama.cpp":
            return self.timed(["node", os.path.join(HERE, "language_llama.mjs"), options.llama, self.gguf, *numbers])
        if side in ("onnxruntime", "openvino"):
            python = options.openvino_python if side == "openvino" else options.ort_python
            return self.timed([python, os.path.join(HERE, "language_peer.py"), side, self.onnx, *numbers])
        ids = self.raw(f"ids-{s.tokens}", range(300, 300 + s.tokens))
        filled = s.tokens + s.past
        mask = self.raw(f"mask-{filled}-{options.capacity}", [1] * filled + [0] * (options.capacity - filled))
        command = [os.path.join(options.bin, "quernel-run"), self.bundle(side)["path"], "--entry", entry_of(s.tokens),
                   "--input", f"ids=raw:{ids}", "--input", f"attention_mask=raw:{mask}", "--threads", str(threads), "--json", "--repeat"]
        median = self.timed([*command, "3"]).json()["latency_ms"]["median"]
        return self.timed([*command, str(max(5, int(options.seconds * 1e3 / median)))])

    def timed(self, command):
        return Run([*self.options.priority, *command])

    def raw(self, name, values):
        path = os.path.join(self.options.cache, name + ".raw")
        with open(path, "wb") as f:
            f.write(struct.pack(f"<{len(values)}q", *values))
        return path

    def kernels(self, side, situation, threads):
        """-> what `quernel bench --per-kernel` says: the machine's peaks, and each kernel (of any mask, so of any past)"""
        return self.timed([os.path.join(self.options.bin, "quernel"), "bench", self.bundle(side)["path"], "--entry",
                           entry_of(situation.tokens), "--json", "--per-kernel", "--threads", str(threads), "--seconds", "0.3"]).json()


def entry_of(tokens):
    return "decode" if tokens == 1 else f"prompt{tokens}"


def read_json(path):
    if not os.path.exists(path):
        return {}
    with open(path) as f:
        return json.load(f)


def write_json(path, value):
    with open(path, "w") as f:
        json.dump(value, f, indent=1)


def measure(model, situation, threads, options):
    """-> one row: the sides' best turns, the machine's peaks, the bounds"""
    row = {"model": model.shape, "bits": model.bits, "threads": threads, "situation": situation.name, "tokens": situation.tokens,
           "past": situation.past, "sides": {}, "errors": {}, "bytes_per_second": [], "bound_ms": {}}
    best, peaks = {side: Best() for side in options.sides}, {}
    for _ in range(options.turns):
        for side in options.sides:
            if side not in row["errors"]:
                progress(f"{model.name} bits, {threads} threads, {situation.name}: {TITLES[side]}")
                try:
                    best[side].add(model.run(side, situation, threads))
                except Failure as e:
                    row["errors"][side] = str(e)
        speed = model.timed([options.machine_peak, "--threads", str(threads), str(model.facts["weight_bytes"])]).json()
        row["bytes_per_second"].append(1e9 * next(iter(speed["read_gb_per_s"].values())))
        peaks["flops"] = max(peaks.get("flops", 0), 1e9 * speed["gflops"])
    peaks["bytes"] = statistics.median(row["bytes_per_second"])
    for side in options.sides:
        if side in row["errors"]:
            continue
        row["sides"][side] = {**best[side].turn, "other_cores": best[side].noise}
        if side.startswith("quernel"):
            account = model.kernels(side, situation, threads)
            row["sides"][side]["kernels"] = account["kernels"]
            peaks["byte_ops"] = account["peaks"]["byte_ops_per_second"]
            row["bound_ms"][side] = model.bound_ms(situation, peaks, side != "quernel")
    row["peaks"] = peaks
    progress()
    return row


def print_times(rows, options):
    ours = [s for s in options.sides if s.startswith("quernel")]
    header = ["model", "bits", "threads", "tokens", *(TITLES[s] for s in options.sides), "GB/s"]
    header += [h for s in ours for h in (f"{TITLES[s]} bound", "of bound", "to better")]
    lines = []
    for r in rows:
        times = {s: r["sides"][s]["latency_ms"]["median"] for s in r["sides"]}
        line = [r["model"], r["bits"], r["threads"], r["situation"], *(number(times.get(s)) for s in options.sides),
                number(r["peaks"]["bytes"] / 1e9)]
        for s in ours:
            better = min((times[p] for p in BARS if p in times), default=None)
            line += [number(r["bound_ms"].get(s)), f"{100 * r['bound_ms'][s] / times[s]:.0f} %" if s in times else "-",
                     f"{times[s] / better:.2f}" if s in times and better else "-"]
        lines.append(line)
    table("ms for one token behind a past, or for a prompt (GB/s: the weights' bytes read over and over; bound: weights and caches at "
          "that speed, or the products at the peak of floats (i8: of int8 dot products); to better: of ORT and llama.cpp)", header, lines)


def print_kernels(rows):
    """Where Quernel's time goes: share of the time, and in brackets which share of its bound a class reaches."""
    lines = []
    for r in rows:
        for side, s in r["sides"].items():
            if "kernels" not in s:
                continue
            classes = collections.defaultdict(lambda: [0.0, 0.0])
            for k in s["kernels"]:
                classes[k["class"]][0] += k["seconds"]
                classes[k["class"]][1] += k["seconds"] * min(k["share_of_peak"], 1)
            total = sum(own for own, _ in classes.values())
            order = sorted(classes.items(), key=lambda item: -item[1][0])[:5]
            lines.append([f"{r['model']} {r['bits']}", r["threads"], r["situation"], TITLES[side], number(total * 1e3),
                          ", ".join(f"{name} {100 * own / total:.0f} % ({100 * least / own:.0f})" for name, (own, least) in order)])
    if lines:
        table("Quernel's kernels, by class (in brackets: of the class's bound)",
              ["model", "threads", "tokens", "side", "ms", "classes"], lines)


def print_memory(rows, models, options):
    header, lines = ["model", "threads", "side", "load ms", "peak MB", "of it before the load", "allowed"], []
    for model in models:
        for threads in options.threads:
            of_model = [r["sides"] for r in rows if (r["model"], r["bits"], r["threads"]) == (model.shape, model.bits, threads)]
            for side in options.sides:
                turns = [sides[side] for sides in of_model if side in sides]
                if not turns:
                    continue
                allowed = model.file_bytes() + model.cache_bytes(options.capacity) + 10e6 if side.startswith("quernel") else None
                base = max(t.get("base_rss_bytes", 0) for t in turns)
                lines.append([model.name, threads, TITLES[side], number(min(t["load_ms"] for t in turns)),
                              number(max(t["peak_rss_bytes"] for t in turns) / MIB), number(base / MIB) if base else "-",
                              number(allowed / MIB) if allowed else "-"])
    table(f"Load and memory (allowed: packed weights, scales, embedding, caches of {options.capacity} positions, 10 MB)", header, lines)


def print_sizes(models):
    header = ["model", "side", "file MB", "weights + scales", "embedding", "bundle MB", "ratio", "compile s", "compile MB", "allowed"]
    lines = []
    for m in models:
        for side, b in m.bundles.items():
            size = os.path.getsize(m.onnx)
            lines.append([m.name, TITLES[side], *(number(v / MIB) for v in (size, m.facts["weight_bytes"], m.facts["embedding_bytes"],
                                                                            b["bundle_bytes"])),
                          f"{b['bundle_bytes'] / m.file_bytes():.2f}", number(b["seconds"]), number(b["peak_bytes"] / MIB),
                          number((1.3 * size + 150e6) / MIB)])
    if lines:
        table("Files and compiling (ratio: to weights + scales + embedding; allowed: 1.3 of the file + 150 MB)", header, lines)


def numbers(text):
    return [int(n) for n in text.split(",")]


def parse_arguments():
    p = argparse.ArgumentParser(prog="language.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", type=lambda s: s.split(","), default=["smol135m", "qwen0.5b"], help="shapes (smol135m,qwen0.5b)")
    p.add_argument("--bits", type=numbers, default=[4, 8])
    p.add_argument("--threads", type=numbers, default=[1, 2])
    p.add_argument("--past", type=numbers, help="tokens behind which one is computed (16,256,1000; none where --prompt is given)")
    p.add_argument("--prompt", type=numbers, help="sizes of prompts (16,64,256,512; none where --past is given)")
    p.add_argument("--sides", type=lambda s: s.split(","), default=list(TITLES), help=",".join(TITLES))
    p.add_argument("--turns", type=int, default=3)
    p.add_argument("--seconds", type=float, default=1, help="timed runs in each turn go on for at least this long (1)")
    p.add_argument("--capacity", type=int, default=1024, help="positions of the caches (1024)")
    p.add_argument("--usual-priority", action="store_true", help="no real-time class for anybody")
    p.add_argument("--cache", required=True, help="folder of models and bundles (build/bench-language)")
    p.add_argument("--json", help="everything measured (default: language.json in the cache folder)")
    p.add_argument("--maker", required=True, help="make_language_model.py")
    p.add_argument("--bin", required=True, help="folder of quernel and quernel-run")
    p.add_argument("--machine-peak", required=True)
    p.add_argument("--ort-python", help="a Python with onnxruntime and numpy")
    p.add_argument("--openvino-python", help="a Python with openvino and numpy")
    p.add_argument("--llama", help="folder of node_modules with node-llama-cpp")
    options = p.parse_args()
    default = options.past is None and options.prompt is None
    options.situations = [Situation(f"1 at {n}", 1, n) for n in options.past or ([16, 256, 1000] if default else [])]
    options.situations += [Situation(f"{n}", n, 0) for n in options.prompt or ([16, 64, 256, 512] if default else [])]
    if (most := max(s.tokens + s.past for s in options.situations)) > options.capacity:
        p.error(f"expected --capacity of at least {most}, found {options.capacity}")
    return options


def real_time(options):
    """-> what a command begins with, to run before other work of the machine"""
    command = ["chrt", "--rr", "1"]
    try:
        Run([*command, "true"])
    except Failure as e:
        print(f"no real-time class: {e}; llama.cpp with several threads may look slow")
        return []
    return [] if options.usual_priority else command


def leave_out_missing(options):
    """Says which sides are not there, and goes on without them."""
    missing = {} if options.ort_python else {"onnxruntime": "no Python with onnxruntime"}
    if not options.openvino_python:
        missing["openvino"] = "no Python with openvino"
    if not options.llama:
        missing["llama.cpp"] = "no node-llama-cpp"
    if "--activations" not in Run([os.path.join(options.bin, "quernel"), "compile", "--help"]).out:
        missing["quernel-i8"] = "this compiler has no --activations"
    for side in options.sides:
        if side in missing:
            print(f"left out: {TITLES[side]}: {missing[side]}")
    options.sides = [s for s in options.sides if s not in missing]


def main():
    options = parse_arguments()
    rows, models = [], []
    try:
        leave_out_missing(options)
        options.priority = real_time(options)
        for shape in options.model:
            for bits in options.bits:
                progress(f"making {shape}, {bits} bits")
                models.append(Model(options, shape, bits))
                rows += [measure(models[-1], s, t, options) for t in options.threads for s in options.situations]
    except Failure as e:
        print(f"language: {e}", file=sys.stderr)
        return 1
    print_times(rows, options)
    print_kernels(rows)
    print_memory(rows, models, options)
    print_sizes(models)
    for r in rows:
        tokens = {TITLES[s]: t.get("token", t["outputs"][0]["top_5"][0] if "outputs" in t else None) for s, t in r["sides"].items()}
        if r["past"] == 0 and len(set(tokens.values())) > 1:
            print(f"different next tokens: {r['model']} {r['bits']}, {r['threads']} threads, prompt {r['situation']}: {tokens}")
        cell = f"{r['model']} {r['bits']}, {r['threads']} threads, {r['situation']}"
        for side, error in r["errors"].items():
            print(f"failed: {cell}: {TITLES[side]}: {error}")
        if (busy := max((s["other_cores"] for s in r["sides"].values()), default=0)) > BUSY_CORES:
            print(f"noise: {cell}: other processes kept up to {busy:.1f} cores busy")
    facts = [{"model": m.shape, "bits": m.bits, "file_bytes": os.path.getsize(m.onnx), **m.facts, "bundles": m.bundles} for m in models]
    write_json(options.json or os.path.join(options.cache, "language.json"), {"models": facts, "rows": rows})
    return 1 if any(r["errors"] for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
