#!/usr/bin/env python3
"""Runs `quernel verify` over all suites and writes the table of scores between the markers in README.md.

    update_score.py [--jobs N] [--print]     --print: to stdout, and leave README.md alone
"""
import argparse
import collections
import os

import suites

BEGIN, END = "<!-- conformance: begin -->", "<!-- conformance: end -->"
ROWS = [  # title, suites, threads, device
    ("the node, simple and pytorch tests of libonnx-testdata 1.12",
     ["node", "simple", "pytorch-operator", "pytorch-converted"], 1, "cpu"),
    ("631 node tests of ONNX 1.23's development version, opsets up to 28", ["newer"], 1, "cpu"),
    ("all of these on Vulkan, by Mesa's software driver",
     ["node", "simple", "pytorch-operator", "pytorch-converted", "newer"], 1, "vulkan"),
    ("models from the field, 1 thread", ["models"], 1, "cpu"),
    ("models from the field, 2 threads", ["models"], 2, "cpu"),
]


def score(names, threads, jobs, device):
    verdicts, classes = collections.Counter(), collections.Counter()
    known = suites.table("unsupported.txt")
    for suite in names:
        for name, (verdict, _) in suites.verify(suite, suites.cases(suite), jobs, threads, device).items():
            verdicts[verdict] += 1
            if verdict == "UNSUPPORTED":
                classes[known.get(f"{suite}/{name}", ("not listed",))[0]] += 1
    return verdicts, ", ".join(f"{kind} {count}" for kind, count in sorted(classes.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--print", action="store_true")
    arguments = parser.parse_args()
    missing = [str(suites.SUITES[s]) for _, names, _, _ in ROWS for s in names if not suites.cases(s)]
    if missing:
        raise SystemExit("no cases in " + ", ".join(sorted(set(missing))))
    if suites.vulkan_environment() is None:
        raise SystemExit("no Vulkan loader and software driver (toolchains/install_debian.sh --vulkan)")
    lines = ["| cases | passed | failed | unsupported | of these |", "|---|---|---|---|---|"]
    for title, names, threads, device in ROWS:
        verdicts, classes = score(names, threads, arguments.jobs, device)
        lines.append(f"| {title} | {verdicts['PASS']} | {verdicts['FAIL']} | {verdicts['UNSUPPORTED']} | {classes} |")
        print(lines[-1], flush=True)
    if arguments.print:
        return
    readme = suites.ROOT / "README.md"
    before, rest = readme.read_text().split(BEGIN)
    readme.write_text(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + rest.split(END)[1])


if __name__ == "__main__":
    main()
