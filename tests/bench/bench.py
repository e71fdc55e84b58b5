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
import sys

import kernels
import roofline
from sides import MIB, Best, Failure, OnnxRuntime, Quernel, Run, geometric_mean, number, prepare, table

SMALL_MODELS = [                                                   # beside all light ones, by default
    "mnist_8", "ultraface_rfb320", "yunet_n_320", "super_resolution_10", "fsmn_vad_online", "cct_2_opset20",
    "micro_kws_fp32", "yolox_nano"]
FAR_CORES_NS = 150
BUSY_CORES = 0.15


def measure_cold_start(row, bundle, threads, args, quernel, peer):
    """-> milliseconds from the start of a process to its first output; of the peer, also of session and first run alone"""
    found = {}
    for _ in range(args.repeats):
        if bundle and "quernel_error" not in row:
            times = Run([args.cold_start, "5", *quernel.command(bundle, row["facts"], threads, 1)]).json()
            found["quernel"] = min(found.get("quernel", math.inf), times["first_output_ms"]["median"])
        if peer and "peer_error" not in row:
            times = Run([args.cold_start, "1", *peer.first_run_command(row["copy"], threads)], peer.env).json()
            found["peer"] = min(found.get("peer", math.inf), times["first_output_ms"]["median"])
            inside = times["output"]["load_ms"] + times["output"]["first_run_ms"]
            found["peer_session"] = min(found.get("peer_session", math.inf), inside)
    return found


def measure(name, args, quernel, peer):
    """-> everything measured of one model; a side that fails has an "error" instead of figures."""
    model, facts = prepare(name, args.data, args.models_folder)
    row = {"model": name, "copy": model, "facts": facts, "threads": {}}
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
        if threads == args.threads[0] and args.cold_start:
            row["cold_start"] = measure_cold_start(row, bundle, threads, args, quernel, peer)
        row["threads"][threads] = {"quernel": ours.turn, "peer": theirs.turn, "other_cores": max(ours.noise, theirs.noise),
                                   "core_round_trip_ns": theirs.round_trip}
    return row


def mib(value):
    return number(value / MIB) if value is not None else "-"


def footprint(fields):
    """Bytes that a session cannot do without: weights, arenas, code, and its own block, which holds kernels' scratch."""
    memory = (fields or {}).get("memory") or {}
    parts = [v for k, v in memory.items() if k in ("constants_bytes", "workspace_bytes", "state_bytes", "io_bytes",
                                                   "session_bytes", "code_bytes")]
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


def print_cold_starts(rows):
    """Process start to first output. The last column is what is asked of Quernel: its whole process against the peer's
    session creation and first run alone."""
    lines, shares = [], []
    for r in rows:
        times = r.get("cold_start") or {}
        ours, theirs, session = (times.get(k) for k in ("quernel", "peer", "peer_session"))
        if ours and theirs:
            shares.append((ours / theirs, ours / session))
        lines.append([r["model"], number(ours), number(theirs), number(session),
                      *([f"{ours / theirs:.3f}", f"{ours / session:.3f}"] if ours and theirs else ["-", "-"])])
    table("Cold start, ms: process start to first output (files in the page cache)",
          ["model", "start", "ORT start", "ORT session + run", "ratio", "to session + run"], lines)
    if shares:
        whole, session = zip(*shares)
        print(f"{len(shares)} models: geometric mean of the ratio {geometric_mean(whole):.3f}, to session + run "
              f"{geometric_mean(session):.3f}; {sum(s <= 0.05 for s in session)} at 0.05 or below")


def print_models(rows, threads):
    first = threads[0]
    lines = []
    for r in rows:
        c, ours, theirs = r.get("compile") or {}, r["threads"][first]["quernel"] or {}, r["threads"][first]["peer"] or {}
        needed, peak = footprint(ours), ours.get("peak_rss_bytes")
        lines.append([r["model"], r["facts"]["nodes"], mib(r["facts"]["weight_bytes"]), number(c.get("seconds")),
                      mib(c.get("peak_bytes")), mib(c.get("bundle_bytes")), number(ours.get("load_ms")),
                      number(theirs.get("load_ms")), mib(peak), mib(needed),
                      f"{(peak - needed) / MIB:.1f}" if peak and needed else "-", mib(theirs.get("peak_rss_bytes"))])
    table(f"Size and start ({first} thread; MB are MiB; needed: weights + arenas + scratch + code)",
          ["model", "nodes", "weights MB", "compile s", "compile MB", "bundle MB", "load ms", "ORT load ms", "peak MB",
           "needed MB", "over MB", "ORT peak MB"], lines)
    if any("cold_start" in r for r in rows):
        print_cold_starts(rows)
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


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--kernels", action="store_true",
                   help="measure single operators instead of networks; --models then picks those whose names contain a part")
    p.add_argument("--roofline", action="store_true",
                   help="instead say where the time of each network goes, against the machine's peaks")
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
    p.add_argument("--cold-start", help="the program cold_start; none: cold starts are left out")
    p.add_argument("--machine-peak", help="the program machine_peak, for --kernels")
    args = p.parse_args()
    return args


def progress(what=None, done=0, count=0):
    """One line on a terminal, replaced each time; none: takes it away."""
    if sys.stderr.isatty():
        print(f"\r\033[K{what} ({done + 1} of {count})" if what else "\r\033[K", end="", file=sys.stderr, flush=True)


def network_names(args):
    light = os.listdir(os.path.join(args.data, "models", "light"))
    return args.models or sorted(f[:-len(".onnx")] for f in light if f.endswith(".onnx")) + SMALL_MODELS


def run_models(args, quernel, peer):
    """Measures and prints the networks. -> what was measured, and how many failed"""
    names = network_names(args)
    rows = []
    for i, name in enumerate(names):
        progress(name, i, len(names))
        try:
            rows.append(measure(name, args, quernel, peer))
        except Failure as e:
            print(f"failed: {name}: {e}")
    progress()
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
    return rows, len(names) - sum("quernel_error" not in r and "peer_error" not in r for r in rows)


def main():
    args = parse_arguments()
    quernel = Quernel(args.bin, args.models_folder) if args.bin else None
    peer = OnnxRuntime(args.ort_bench, args.ort_library) if args.ort_bench else None
    try:
        if args.roofline:
            measured, failed = roofline.run(args, network_names(args), progress)
        elif args.kernels:
            measured, failed = kernels.run(args, quernel, peer, progress)
        else:
            measured, failed = run_models(args, quernel, peer)
    except Failure as e:
        print(f"bench: {e}", file=sys.stderr)
        return 1
    if args.json:
        with open(args.json, "w") as f:
            json.dump(measured, f, indent=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
