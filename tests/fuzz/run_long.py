#!/usr/bin/env python3
"""Random graphs, interpreted and compiled, for as long as one likes; can be stopped and taken up again.

    tests/fuzz/run_long.py --graphs 200000 --state /tmp/fuzz      # runs, or goes on
    tests/fuzz/run_long.py --state /tmp/fuzz --report             # counts, failures, ops x dtypes

Every line of failures.txt begins with the arguments of fuzz_graphs that show the failure again.
"""
import argparse
import collections
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
DTYPES = "f32 f16 bf16 f64 i8 u8 i16 u16 i32 u32 i64 u64 bool i4 u4 f8e4m3 f8e5m2".split()


class Run:
    """One state folder: results.jsonl has a line per finished range of seeds."""

    def __init__(self, state, program):
        self.state = state
        self.program = program
        self.lock = threading.Lock()
        self.stop = threading.Event()
        state.mkdir(parents=True, exist_ok=True)
        self.results = state / "results.jsonl"
        self.failures = state / "failures.txt"

    def finished(self):
        if not self.results.exists():
            return []
        return [json.loads(line) for line in self.results.read_text().splitlines()]

    def record(self, first, graphs, failures, seconds, coverage):
        entry = {"first": first, "graphs": graphs, "failures": failures, "seconds": round(seconds, 1),
                 "coverage": coverage}
        with self.lock, self.results.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def note_failure(self, text):
        with self.lock, self.failures.open("a") as file:
            file.write(text.rstrip() + "\n")
        print(text, flush=True)

    def call(self, arguments):
        return subprocess.run([self.program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace")

    def seeds(self, first, graphs):
        """Runs these seeds; where the program dies, finds the seed and goes on behind its batch."""
        progress, coverage = self.state / f"progress_{first}", self.state / f"coverage_{first}"
        start = time.monotonic()
        done = self.call(["--first", str(first), "--graphs", str(graphs), "--progress", str(progress), "--coverage",
                          str(coverage)])
        failures = [line for line in done.stdout.split("FAIL ")[1:]]
        if done.returncode in (0, 1):
            for text in failures:
                self.note_failure(text.rsplit("\n", 2)[0] if text is failures[-1] else text)
            rows = [line.split("\t") for line in coverage.read_text().splitlines()]
            self.record(first, graphs, len(failures), time.monotonic() - start,
                        {f"{op} {dtype}": int(count) for op, dtype, count in rows})
        else:
            at = progress.read_text().split()
            batch, size, flags = int(at[1]), int(at[3]), at[4:]
            self.find_crash(batch, size, flags, done)
            if batch > first:
                self.seeds(first, batch - first)
            self.record(batch, size, 1, time.monotonic() - start, {})
            if batch + size < first + graphs:
                self.seeds(batch + size, first + graphs - batch - size)
        progress.unlink(missing_ok=True)
        coverage.unlink(missing_ok=True)

    def find_crash(self, batch, size, flags, done):
        found = False
        for seed in range(batch, batch + size):
            alone = ["--first", str(seed), "--graphs", "1", *flags]
            one = self.call(alone)
            if one.returncode not in (0, 1):
                found = True
                self.note_failure(" ".join(alone) + f"\n  exit status {one.returncode}: {one.stdout[-300:]}")
        if not found:
            self.note_failure(f"--first {batch} --graphs {size} --batch {size} {' '.join(flags)}\n"
                              f"  exit status {done.returncode}: {done.stdout[-300:]}")


def report(run):
    entries = run.finished()
    counts = collections.Counter()
    for entry in entries:
        counts.update(entry["coverage"])
    graphs, seconds = sum(e["graphs"] for e in entries), sum(e["seconds"] for e in entries)
    print(f"{graphs} graphs, {sum(e['failures'] for e in entries)} failures, {seconds:.0f} seconds\n")
    print("| op | " + " | ".join(DTYPES) + " |\n|" + "---|" * (len(DTYPES) + 1))
    for op in sorted({key.split()[0] for key in counts}):
        cells = [counts[f"{op} {dtype}"] for dtype in DTYPES]
        print(f"| {op} | " + " | ".join(str(c) if c else "" for c in cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--state", type=pathlib.Path, required=True, help="folder of results")
    parser.add_argument("--graphs", type=int, default=200000)
    parser.add_argument("--first", type=int, default=1, help="first seed")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after that time")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--chunk", type=int, default=2048, help="seeds per process and line of progress")
    parser.add_argument("--program", default=str(ROOT / "build/release/bin/fuzz_graphs"))
    parser.add_argument("--report", action="store_true", help="print what has run so far")
    arguments = parser.parse_args()
    run = Run(arguments.state, arguments.program)
    if arguments.report:
        return report(run)

    done = run.finished()
    covered = set()
    for entry in done:
        covered.update(range(entry["first"], entry["first"] + entry["graphs"]))
    todo, end = [], arguments.first + arguments.graphs
    for first in range(arguments.first, end, arguments.chunk):
        seeds = [s for s in range(first, min(first + arguments.chunk, end)) if s not in covered]
        if seeds:
            todo.append((seeds[0], seeds[-1] - seeds[0] + 1))
    start = time.monotonic()
    total, failures = len(covered), sum(e["failures"] for e in done)

    def work(item):
        if time.monotonic() - start < arguments.seconds:
            run.seeds(*item)
            return item[1]
        return 0

    with concurrent.futures.ThreadPoolExecutor(arguments.processes) as pool:
        for count in pool.map(work, todo):
            total += count
            if count:
                print(f"{total} graphs, {time.monotonic() - start:.0f} seconds", flush=True)
    failures = sum(e["failures"] for e in run.finished())
    print(f"{total} graphs in all, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
