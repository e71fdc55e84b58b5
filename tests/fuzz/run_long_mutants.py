#!/usr/bin/env python3
"""Mutated bundles and models, for as long as one likes; can be stopped and taken up again.

    tests/fuzz/run_long_mutants.py bundles --state /tmp/bundles [BUNDLE...]    # through opening, inspect, strip, sessions
    tests/fuzz/run_long_mutants.py models --state /tmp/models [FOLDER...]      # random ones, through the whole compiler
    tests/fuzz/run_long_mutants.py operators --state /tmp/ops [FOLDER...]      # systematic ones of every operator: import
    tests/fuzz/run_long_mutants.py tflite --state /tmp/tflite [FOLDER...]      # of TensorFlow Lite models: import
    tests/fuzz/run_long_mutants.py models --state /tmp/models --report         # counts by stage, failures

Every entry of failures.txt begins with the command that shows the failure again. Use the programs of the preset dev: they
have the sanitizers. A mutant that takes over 10 seconds, or 2 GB, is a failure. FOLDERs hold models; without any, those of
the importers' unit tests, as the tests onnx_mutant_seeds and tflite_mutant_seeds leave them, and Debian's libonnx-testdata.
"""
import argparse
import collections
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_MEGABYTES = 2000
MEMORY = "MB at most"


@dataclasses.dataclass(frozen=True)
class Kind:
    """What is mutated, and the program that does it: it prints a line "COUNT STAGE" for each stage."""
    program: str
    count: int      # by default
    chunk: int      # per process and line of progress
    goes_on: bool   # behind a mutant that fails, and names it; else the program ends
    stages: tuple

    def command(self, arguments, first, count):
        program = str(arguments.build / "bin" / self.program)
        files = [str(f) for f in arguments.files]
        if self.program == "fuzz_bundle":
            return [program, str(count), "1", str(first), "--rehash-all", *files]
        tests = arguments.build / "tests/fuzz"
        folders = files or ([str(tests / "tflite/unit_models")] if self.program == "tflite_fuzz_import" else
                            [str(tests / "onnx/unit_models"), "/usr/share/libonnx-testdata/data/node"])
        return [program, "--first", str(first), "--count", str(count), *folders]


KINDS = {
    "bundles": Kind("fuzz_bundle", 250000, 1000, False, ("well-formed", "opened and listed", "stripped", "sessions created")),
    "models": Kind("fuzz_compile", 100000, 500, True, ("imported", "reached code generation", "written", "wrong", "crashes")),
    "tflite": Kind("tflite_fuzz_import", 1000000, 20000, False, ("mutants", "imported", "refused at a node", "wrong")),
    "operators": Kind("onnx_mutate_operators", 2000, 20, True, ("mutants", "imported", "wrong", "crashes")),
}


class Run:
    """One state folder: results.jsonl has a line per finished range of mutants."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.kind = KINDS[arguments.kind]
        self.lock = threading.Lock()
        arguments.state.mkdir(parents=True, exist_ok=True)
        self.results = arguments.state / "results.jsonl"
        self.failures = arguments.state / "failures.txt"
        # Stacks of allocations would take a third of the time; the command that shows a failure again has them.
        options = [os.environ.get("ASAN_OPTIONS"), f"hard_rss_limit_mb={MOST_MEGABYTES}", "malloc_context_size=1"]
        self.environment = {**os.environ, "ASAN_OPTIONS": ":".join(filter(None, options))}

    def finished(self):
        return [json.loads(line) for line in self.results.read_text().splitlines()] if self.results.exists() else []

    def counts_of(self, text):
        """The counts by stage that the program prints."""
        found = {stage: re.search(rf"(\d+)\s+{stage}", text) for stage in (*self.kind.stages, MEMORY)}
        return {stage: int(match.group(1)) if match else 0 for stage, match in found.items()}

    def call(self, first, count):
        command = self.kind.command(self.arguments, first, count)
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              env=self.environment)
        return command, done

    def find(self, first, count):
        """Halves a range that fails until the mutant is found that does so alone."""
        while count > 1:
            half = count // 2
            if self.call(first, half)[1].returncode != 0:
                count = half
            else:
                first, count = first + half, count - half
        return first

    def note_failure(self, command, text):
        with self.lock, self.failures.open("a") as file:
            file.write(f"{' '.join(command)}\n  {text}\n")

    def work(self, first, count):
        command, done = self.call(first, count)
        failed = done.returncode != 0
        counts = self.counts_of(done.stdout)
        if failed:
            if not self.kind.goes_on:
                command, done = self.call(self.find(first, count), 1)
            self.note_failure(command, f"exit status {done.returncode}: {done.stdout[-4000:]}")
        if counts[MEMORY] > MOST_MEGABYTES:
            failed = True
            self.note_failure(command, f"{counts[MEMORY]} MB")
        with self.lock, self.results.open("a") as file:
            file.write(json.dumps({"first": first, "mutants": count, "failed": failed, "counts": counts}) + "\n")
        return count


def report(run):
    entries = run.finished()
    total = collections.Counter()
    for entry in entries:
        total.update({stage: n for stage, n in entry["counts"].items() if stage != MEMORY})
    what = "seeds" if run.arguments.kind == "operators" else "mutants"
    print(f"{sum(e['mutants'] for e in entries)} {what}, {sum(e['failed'] for e in entries)} ranges with a failure")
    for stage in run.kind.stages:
        print(f"{total[stage]:>9}  {stage}")
    print(f"{max((e['counts'][MEMORY] for e in entries), default=0):>9}  {MEMORY}")
    return 1 if any(e["failed"] for e in entries) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--state", type=pathlib.Path, required=True, help="folder of results")
    parser.add_argument("--mutants", type=int, help="how many; of operators: how many models, whose mutants are all tried")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/dev", help="where the programs are")
    parser.add_argument("--report", action="store_true", help="print what has run so far")
    parser.add_argument("files", nargs="*", type=pathlib.Path, help="bundles, or folders of models")
    run = Run(parser.parse_args())
    if not run.arguments.report:
        done = {entry["first"] for entry in run.finished()}
        chunk, mutants = run.kind.chunk, run.arguments.mutants or run.kind.count
        todo = [(first, min(chunk, mutants - first)) for first in range(0, mutants, chunk) if first not in done]
        with concurrent.futures.ThreadPoolExecutor(run.arguments.processes) as pool:
            count = len(done) * chunk
            for finished in pool.map(lambda item: run.work(*item), todo):
                count += finished
                print(count, flush=True)
    return report(run)


if __name__ == "__main__":
    sys.exit(main())
