#!/usr/bin/env python3
"""Prints figures of the tree: sizes of files, what a pass's tests are, how far knowledge of devices spreads. They judge a refit;
nothing here fails.

    figures.py [ROOT]
"""
import os
import re
import statistics
import subprocess
import sys

CODE = (".h", ".cpp", ".hpp", ".c")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def names_in_tables(text):
    """-> the names of the passes in pass_tables.cpp, without the numbers of later runs"""
    return sorted({re.sub(r"-\d+$", "", name) for name in re.findall(r'^\s*\{"([a-z0-9-]+)", "', text, re.M)})


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    os.chdir(root)
    files = subprocess.check_output(["git", "ls-files"], text=True).split("\n")
    product = [f for f in files if f.startswith(("compiler/", "runtime/", "schemas/")) and f.endswith(CODE)]
    lines = {f: read(f).count("\n") for f in product}
    sizes = sorted(lines.values())
    print(f"product files {len(sizes)}, lines {sum(sizes)}, median {statistics.median(sizes):.0f}, p90 {sizes[len(sizes) * 9 // 10]}, max {sizes[-1]}")
    print("files over 700 lines:", ", ".join(f"{f} {n}" for f, n in lines.items() if n > 700) or "none")
    headers = {f: n for f, n in lines.items() if f.startswith("compiler/schedule/") and f.endswith(".h")}
    print("largest schedule header:", *max(headers.items(), key=lambda item: item[1]))
    print("pipeline page:", lines["compiler/pipeline/pipeline.cpp"])
    for what, pattern in (("is_gpu()", r"\bis_gpu\(\)"), (".bare_metal", r"\.bare_metal\b(?! =)")):
        found = [f for f in product if f.startswith("compiler/") and re.search(pattern, read(f))]
        print(f"{what} in {len(found)} files: {' '.join(os.path.relpath(f, 'compiler') for f in found)}")
    golden = [f for f in files if f.startswith("tests/golden/") and f.endswith(".test")]
    cases = sum(max(1, len(re.findall(r"^# case:", read(f), re.M))) for f in files if f.startswith("tests/") and f.endswith(".test"))
    tests = sum(len(re.findall(r"^\s*TEST(?:_P|_F)?\(", read(f), re.M)) for f in files if f.startswith("tests/") and f.endswith(CODE))
    print(f"text cases {cases}, C++ tests {tests}, {cases / tests:.2f} : 1")
    stems = {os.path.splitext(os.path.basename(f))[0] for f in golden}
    named = names_in_tables(read("compiler/pipeline/pass_tables.cpp"))
    without = [name for name in named if not any(stem.startswith(name.removesuffix("-loops").replace("-", "_")) for stem in stems)]
    print(f"passes and steps {len(named)}, without a golden file of their name: {', '.join(without) or 'none'}")
    readmes = {f: read(f).split("\n") for f in files if f.endswith("README.md")}
    print("READMEs over 100 lines:", ", ".join(f"{f} {len(text)}" for f, text in readmes.items() if len(text) > 101) or "none")
    print("READMEs with lines over 120 columns:", ", ".join(f for f, text in readmes.items() if any(len(line) > 120 for line in text)) or "none")


if __name__ == "__main__":
    main()
