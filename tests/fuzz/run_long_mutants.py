#!/usr/bin/env python3
"""Mutated bundles through opening, inspect, strip and session creation, for as long as one likes; can be stopped and
taken up again.

    tests/fuzz/run_long_bundles.py --state /tmp/bundles --mutants 250000     # runs, or goes on
    tests/fuzz/run_long_bundles.py --state /tmp/bundles --report             # counts by stage, failures

Every line of failures.txt has the arguments of fuzz_bundle that show the failure again. Use the program of the preset
dev: it has the sanitizers.
"""
import argparse
import collections
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
STAGES = ("well-formed", "opened and listed", "stripped", "sessions created", "MB at most")


def counts_of(text):
    """The counts by stage that fuzz_bundle prints."""
    counts = {}
    for stage in STAGES:
        found = re.search(rf"(\d+)\s+{stage}", text)
        counts[stage] = int(found.group(1)) if found else 0
    return counts


class Run:
    """One state folder: results.jsonl has a line per finished range of mutants."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.lock = threading.Lock()
        arguments.state.mkdir(parents=True, exist_ok=True)
        self.results = arguments.state / "results.jsonl"
        self.failures = arguments.state / "failures.txt"

    def finished(self):
        return [json.loads(line) for line in self.results.read_text().splitlines()] if self.results.exists() else []

    def call(self, first, count):
        command = [self.arguments.program, str(count), str(self.arguments.seed), str(first), "--rehash-all",
                   *map(str, self.arguments.bundles)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        return command[1:], done

    def find(self, first, count):
        """Halves a range that fails until the mutant is found that does so alone."""
        while count > 1:
            half = count // 2
            if self.call(first, half)[1].returncode != 0:
                count = half
            else:
                first, count = first + half, count - half
        return first

    def work(self, first, count):
        command, done = self.call(first, count)
        failed = done.returncode != 0
        if failed:
            command, alone = self.call(self.find(first, count), 1)
            with self.lock, self.failures.open("a") as file:
                file.write(f"fuzz_bundle {' '.join(command)}\n  exit status {alone.returncode}: {alone.stdout[-600:]}\n")
        counts = counts_of(done.stdout)
        if counts["MB at most"] > 2000:
            failed = True
            with self.lock, self.failures.open("a") as file:
                file.write(f"fuzz_bundle {' '.join(command)}\n  {counts['MB at most']} MB\n")
        with self.lock, self.results.open("a") as file:
            file.write(json.dumps({"first": first, "mutants": count, "failed": failed, "counts": counts}) + "\n")
        return count


def report(run):
    entries = run.finished()
    total = collections.Counter()
    for entry in entries:
        total.update({stage: n for stage, n in entry["counts"].items() if stage != "MB at most"})
    print(f"{sum(e['mutants'] for e in entries)} mutants, {sum(e['failed'] for e in entries)} ranges with a failure")
    for stage in STAGES[:-1]:
        print(f"{total[stage]:>9}  {stage}")
    print(f"{max((e['counts']['MB at most'] for e in entries), default=0):>9}  MB at most")
    return 1 if any(e["failed"] for e in entries) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--state", type=pathlib.Path, required=True, help="folder of results")
    parser.add_argument("--mutants", type=int, default=250000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--chunk", type=int, default=1000, help="mutants per process and line of progress")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--program", default=str(ROOT / "build/dev/bin/fuzz_bundle"))
    parser.add_argument("--report", action="store_true", help="print what has run so far")
    parser.add_argument("bundles", nargs="*", type=pathlib.Path, help="bundles to change besides those of the unit tests")
    run = Run(parser.parse_args())
    if not run.arguments.report:
        done = {entry["first"] for entry in run.finished()}
        chunk = run.arguments.chunk
        todo = [(first, min(chunk, run.arguments.mutants - first))
                for first in range(0, run.arguments.mutants, chunk) if first not in done]
        with concurrent.futures.ThreadPoolExecutor(run.arguments.processes) as pool:
            count = len(done) * chunk
            for mutants in pool.map(lambda item: run.work(*item), todo):
                count += mutants
                print(f"{count} mutants", flush=True)
    return report(run)


if __name__ == "__main__":
    sys.exit(main())
