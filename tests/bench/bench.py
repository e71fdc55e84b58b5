#!/usr/bin/env python3
"""Measures Quernel beside ONNX Runtime and prints tables. Started by run.sh, which builds what is measured.

Each figure comes from a fresh process; the two sides take turns, so that a slow minute of the machine hits both. Of
several turns the one with the smallest median counts. Latencies are of warm runs with inputs already in place.
"""
import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MIB = 1024.0 * 1024.0
SMALL_MODELS = [                                                   # beside all light ones, by default
    "mnist_8", "ultraface_rfb320", "yunet_n_320", "super_resolution_10", "fsmn_vad_online", "cct_2_opset20",
    "micro_kws_fp32", "yolox_nano"]
DEBIAN_PYTHON = "/usr/bin/python3"                                 # the only one that sees Debian's onnx module
FAR_CORES_NS = 150
BUSY_CORES = 0.15


class Failure(Exception):
    pass


def machine_cpu_seconds():
    """CPU seconds used on the whole machine, those stolen by a hypervisor included."""
    with open("/proc/stat") as f:
        v = [int(x) for x in f.readline().split()[1:9]]
    return (v[0] + v[1] + v[2] + v[5] + v[6] + v[7]) / os.sysconf("SC_CLK_TCK")


class Run:
    """One finished child process: its output, wall time, peak memory, and how busy others kept the machine meanwhile."""

    def __init__(self, command, env=None):
        busy, start = machine_cpu_seconds(), time.monotonic()
        with tempfile.TemporaryFile("w+") as err:                  # no pipe: reading two in turn could wait for ever
            try:
                child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=err, env=env, text=True)
            except OSError as e:
                raise Failure(f"{command[0]}: {e.strerror}") from e
            self.out = child.stdout.read()
            _, status, usage = os.wait4(child.pid, 0)
            err.seek(0)
            self.err = err.read()
        child.returncode = os.waitstatus_to_exitcode(status)
        self.seconds = time.monotonic() - start
        self.peak_bytes = usage.ru_maxrss * 1024                   # at least what this script held when it forked
        own = usage.ru_utime + usage.ru_stime
        self.other_cores = max(0.0, machine_cpu_seconds() - busy - own) / max(self.seconds, 1e-3)
        if child.returncode != 0:
            last = (self.err.strip() or self.out.strip() or "no message").splitlines()
            raise Failure(f"{os.path.basename(command[0])} exited with {child.returncode}: {last[0][:200]}")

    def json(self):
        return json.loads(self.out[self.out.index("{"):])


class Best:
    """The turn with the smallest median latency, and the least favourable conditions seen."""

    def __init__(self):
        self.turn, self.noise, self.round_trip = None, 0.0, 0.0

    def add(self, run):
        fields = {"load_ms": None, "peak_rss_bytes": None, **run.json()}
        self.noise = max(self.noise, run.other_cores)
        self.round_trip = max(self.round_trip, fields.get("core_round_trip_ns", 0))
        loads = [f["load_ms"] for f in (fields, self.turn) if f and f["load_ms"] is not None]
        if self.turn is None or fields["latency_ms"]["median"] < self.turn["latency_ms"]["median"]:
            self.turn = fields
        self.turn["load_ms"] = min(loads, default=None)


def prepare(name, data, folder):
    """-> (path of the copy that both sides read, facts about it)"""
    target = os.path.join(folder, name)
    copy, facts = os.path.join(target, "bench.onnx"), os.path.join(target, "bench.json")
    if not os.path.exists(facts):
        source = os.path.join(data, "models", name, "model.onnx")
        light = os.path.join(data, "models", "light", name + ".onnx")
        if os.path.exists(light):
            source = os.path.join(target, "model.onnx")
            if not os.path.exists(source):
                Run([DEBIAN_PYTHON, os.path.join(data, "models", "light", "materialize_weights.py"), light, target])
        elif not os.path.exists(source):
            raise Failure(f"no such model: expected {source} or {light}")
        out = Run([DEBIAN_PYTHON, os.path.join(HERE, "prepare_model.py"), source, copy]).out
        with open(facts, "w") as f:
            f.write(out)
    with open(facts) as f:
        return copy, json.load(f)


class Quernel:
    """The two tools under test."""

    def __init__(self, bin_folder, folder):
        self.compiler, self.runner = os.path.join(bin_folder, "quernel"), os.path.join(bin_folder, "quernel-run")
        self.folder = folder

    def compile(self, name, model):
        bundle = os.path.join(self.folder, name, "bench.qnl")
        run = Run([self.compiler, "compile", model, "-o", bundle])
        return bundle, {"seconds": run.seconds, "peak_bytes": run.peak_bytes, "bundle_bytes": os.path.getsize(bundle)}

    def command(self, bundle, facts, threads, repeat):
        inputs = [part for name in facts["inputs"] for part in ("--input", f"{name}=random:1")]
        return [self.runner, bundle, *inputs, "--threads", str(threads), "--repeat", str(repeat), "--json"]

    def repeats(self, bundle, facts, threads, min_seconds):
        """How many runs fill the time."""
        probe = Best()
        probe.add(Run(self.command(bundle, facts, threads, 5)))
        median = probe.turn["latency_ms"]["median"]
        return max(15, min(20000, int(min_seconds * 1e3 / max(median, 1e-3))))


class OnnxRuntime:
    def __init__(self, binary, library):
        self.binary, self.env = binary, {**os.environ, "ORT_LIB": library}

    def run(self, model, threads, min_seconds):
        return Run([self.binary, model, "--threads", str(threads), "--min-seconds", str(min_seconds)], self.env)


def measure(name, args, quernel, peer):
    """-> everything measured of one model; a side that fails has an "error" instead of figures."""
    model, facts = prepare(name, args.data, args.models_folder)
    row = {"model": name, "facts": facts, "threads": {}}
    bundle = None
    if quernel:
        try:
            bundle, row["compile"] = quernel.compile(name, model)
        except Failure as e:
            row["quernel_error"] = str(e)
    for threads in args.threads:
        ours, theirs = Best(), Best()
        count = None
        for _ in range(args.repeats):
            if bundle and "quernel_error" not in row:
                try:
                    count = count or quernel.repeats(bundle, facts, threads, args.min_seconds)
                    ours.add(Run(quernel.command(bundle, facts, threads, count)))
                except Failure as e:
                    row["quernel_error"] = str(e)
            if peer:
                try:
                    theirs.add(peer.run(model, threads, args.min_seconds))
                except Failure as e:
                    row["peer_error"] = str(e)
        row["threads"][threads] = {"quernel": ours.turn, "peer": theirs.turn, "other_cores": max(ours.noise, theirs.noise),
                                   "core_round_trip_ns": theirs.round_trip}
    return row


def number(value, digits=3):
    """Significant digits, without exponents."""
    if value is None:
        return "-"
    text = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e" in text or abs(value) >= 10 ** digits else text


def table(title, header, rows):
    print(f"\n{title}")
    widths = [max(len(str(r[i])) for r in [header] + rows) for i in range(len(header))]
    for r in [header, ["-" * w for w in widths]] + rows:
        print("  ".join(str(c).ljust(w) if i == 0 else str(c).rjust(w) for i, (c, w) in enumerate(zip(r, widths))).rstrip())


def mib(value):
    return number(value / MIB) if value is not None else "-"


def footprint(fields):
    """Bytes that a session cannot do without: weights, arenas and code."""
    memory = (fields or {}).get("memory") or {}
    parts = [v for k, v in memory.items() if k in ("constants_bytes", "workspace_bytes", "state_bytes", "io_bytes",
                                                   "code_bytes")]
    return sum(parts) if parts else None


def read_bars(path):
    """{model: {threads: bar}} from a Markdown file of tables with the columns "model" and "bar" (one for each number of
    threads, ascending). A heading that mentions models/light/PREFIX_*.onnx says how its table's models are called here;
    other tables are passed over. The bar is the better peer's latency as a share of ONNX Runtime's."""
    bars, prefix, columns = {}, None, None
    with open(path) as f:
        for line in f:
            if line.startswith("#"):
                found = re.search(r"models/light/(\w+?)_\*\.onnx", line)
                prefix, columns = found and found.group(1), None
            if not prefix or not line.startswith("|"):
                continue
            cells = [c.strip() for c in line.strip().strip("|").split("|")]
            if cells[0] == "model":
                columns = [i for i, c in enumerate(cells) if c == "bar"]
            elif columns and not cells[0].startswith("-"):
                name = f"{prefix}_" + re.sub(r"\W", "_", cells[0])
                bars[name] = {t + 1: float(cells[i]) for t, i in enumerate(columns)}
    return bars


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def print_bars(rows, threads, bars):
    """How Quernel stands against the better of all peers, where a bar is known."""
    header, lines, all_shares = ["model"], [], {t: [] for t in threads}
    for t in threads:
        header += [f"{t}T ratio", "bar", "ratio / bar"]
    for r in rows:
        line = [r["model"]]
        for t in threads:
            ours, theirs = r["threads"][t]["quernel"], r["threads"][t]["peer"]
            bar = bars.get(r["model"], {}).get(t)
            if not (ours and theirs and bar):
                line += ["-"] * 3
                continue
            ratio = ours["latency_ms"]["median"] / theirs["latency_ms"]["median"]
            all_shares[t].append((ratio, ratio / bar))
            line += [f"{ratio:.2f}", f"{bar:.2f}", f"{ratio / bar:.2f}"]
        if any(c != "-" for c in line[1:]):
            lines.append(line)
    if lines:
        table("Against the better peer (bar: its latency as a share of ONNX Runtime's, measured elsewhere)", header, lines)
        for t in threads:
            if all_shares[t]:
                ratios, shares = zip(*all_shares[t])
                print(f"{t} thread{'s' if t > 1 else ''}, {len(ratios)} models: geometric mean of the ratio "
                      f"{geometric_mean(ratios):.2f}, of ratio / bar {geometric_mean(shares):.2f}, at most {max(shares):.2f}")


def print_models(rows, threads):
    first = threads[0]
    lines = []
    for r in rows:
        c, ours, theirs = r.get("compile") or {}, r["threads"][first]["quernel"] or {}, r["threads"][first]["peer"] or {}
        lines.append([r["model"], r["facts"]["nodes"], mib(r["facts"]["weight_bytes"]), number(c.get("seconds")),
                      mib(c.get("peak_bytes")), mib(c.get("bundle_bytes")), number(ours.get("load_ms")),
                      number(theirs.get("load_ms")), mib(ours.get("peak_rss_bytes")), mib(footprint(ours)),
                      mib(theirs.get("peak_rss_bytes"))])
    table(f"Size and start ({first} thread; MB are MiB; needed: weights + arenas + code)",
          ["model", "nodes", "weights MB", "compile s", "compile MB", "bundle MB", "load ms", "ORT load ms", "peak MB",
           "needed MB", "ORT peak MB"], lines)
    header, lines = ["model"], []
    for t in threads:
        header += [f"{t}T median", "min", "ORT median", "min", "ratio"]
    for r in rows:
        line = [r["model"]]
        for t in threads:
            ours, theirs = r["threads"][t]["quernel"], r["threads"][t]["peer"]
            both = ours and theirs and ours["latency_ms"]["median"] / theirs["latency_ms"]["median"]
            for side in (ours, theirs):
                line += [number(side["latency_ms"][k]) if side else "-" for k in ("median", "min")]
            line.append(f"{both:.2f}" if both else "-")
        lines.append(line)
    table("Latency, ms (ratio: Quernel's median / ONNX Runtime's; below 1 is faster)", header, lines)


def print_conditions(rows):
    for r in rows:
        for side in ("quernel_error", "peer_error"):
            if side in r:
                print(f"failed: {r['model']}: {r[side]}")
    busy = [r["model"] for r in rows if any(t["other_cores"] > BUSY_CORES for t in r["threads"].values())]
    far = [r["model"] for r in rows if any(t["core_round_trip_ns"] > FAR_CORES_NS for t in r["threads"].values())]
    if busy:
        print(f"noise: other processes kept over {BUSY_CORES} cores busy during: {', '.join(busy)}")
    if far:
        print(f"noise: the first two CPUs were over {FAR_CORES_NS} ns apart during: {', '.join(far)}")


SECTIONS = ["text", "rodata", "unwind", "data", "bss", "other"]


def sections(path):
    """Bytes by kind of section of an executable, object or archive; what a stripped file does not hold is left out."""
    sums = dict.fromkeys(SECTIONS, 0)
    for line in Run(["size", "-A", "-d", path]).out.splitlines():
        parts = line.split()
        if len(parts) != 3 or not parts[1].isdigit():
            continue
        name, size = parts[0], int(parts[1])
        if name.startswith((".debug", ".comment", ".note", ".symtab", ".strtab", ".group")):
            continue
        for kind, prefixes in (("text", (".text", ".init", ".fini", ".plt")), ("rodata", (".rodata",)),
                               ("unwind", (".eh_frame", ".gcc_except", ".ARM.ex")), ("bss", (".bss", ".tbss")),
                               ("data", (".data", ".tdata", ".got", ".init_array", ".fini_array", ".dynamic"))):
            if name.startswith(prefixes) and not (kind == "text" and name.endswith("_array")):
                sums[kind] += size
                break
        else:
            sums["other"] += size
    return sums


def print_sizes(build, scratch):
    lines = []
    runner = os.path.join(build, "bin", "quernel-run")
    if os.path.exists(runner):
        stripped = os.path.join(scratch, "quernel-run.stripped")
        Run(["strip", "-o", stripped, runner])
        s = sections(stripped)
        lines.append(["quernel-run, stripped", *(s[k] for k in SECTIONS), os.path.getsize(stripped)])
    for folder, _, files in sorted(os.walk(build)):
        for f in sorted(files):
            if f.endswith(".a"):
                s = sections(os.path.join(folder, f))
                lines.append([f, *(s[k] for k in SECTIONS), sum(s[k] for k in SECTIONS)])
    if lines:
        table("Runtime by section, bytes (preset minsize; the last column: the file for the program, the sum for libraries)",
              ["", *SECTIONS, "total"], lines)
    else:
        print(f"\nno minsize build in {build}: sizes left out")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", type=lambda s: s.split(","),
                   help="comma-separated; default: all of models/light and " + ", ".join(SMALL_MODELS))
    p.add_argument("--threads", type=lambda s: [int(t) for t in s.split(",")], default=[1, 2])
    p.add_argument("--repeats", type=int, default=3, help="turns of each side (3)")
    p.add_argument("--min-seconds", type=float, default=0.7, help="timed runs in each turn go on for at least this long (0.7)")
    p.add_argument("--bars", help="Markdown tables of what peers reach (default: bench/PEERS.md of the data, if it is there)")
    p.add_argument("--json", help="write everything measured to this file")
    p.add_argument("--data", required=True, help="folder with models/ and models/light/")
    p.add_argument("--bin", help="folder of quernel and quernel-run; none: the peer alone")
    p.add_argument("--minsize-build", help="build folder of the preset minsize")
    p.add_argument("--models-folder", required=True, help="where model copies and bundles go")
    p.add_argument("--ort-bench", help="the program ort_bench; none: Quernel alone")
    p.add_argument("--ort-library")
    args = p.parse_args()
    if not args.models:
        light = os.listdir(os.path.join(args.data, "models", "light"))
        args.models = sorted(f[:-len(".onnx")] for f in light if f.endswith(".onnx")) + SMALL_MODELS
    quernel = Quernel(args.bin, args.models_folder) if args.bin else None
    peer = OnnxRuntime(args.ort_bench, args.ort_library) if args.ort_bench else None
    rows = []
    for name in args.models:
        if sys.stderr.isatty():
            print(f"\r\033[K{name} ({len(rows) + 1} of {len(args.models)})", end="", file=sys.stderr, flush=True)
        try:
            rows.append(measure(name, args, quernel, peer))
        except Failure as e:
            print(f"failed: {name}: {e}")
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    version = next((t["peer"]["version"] for r in rows for t in r["threads"].values() if t["peer"]), None)
    if version:
        print(f"peer: ONNX Runtime {version}, all graph optimisations; best of {args.repeats} turns")
    if rows:
        print_models(rows, args.threads)
        bars = args.bars or os.path.join(args.data, "bench", "PEERS.md")
        if os.path.exists(bars):
            print_bars(rows, args.threads, read_bars(bars))
        print_conditions(rows)
    if args.minsize_build and shutil.which("size"):
        print_sizes(args.minsize_build, args.models_folder)
    if args.json:
        with open(args.json, "w") as f:
            json.dump(rows, f, indent=1)
    return 1 if len(rows) < len(args.models) or any("quernel_error" in r or "peer_error" in r for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
