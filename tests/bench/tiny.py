#!/usr/bin/env python3
"""Instructions, modelled cycles, flash and RAM of MLPerf Tiny's int8 models on emulated boards. tiny.sh builds what it needs.

tiny.py [--targets NAME,NAME…] [--models ic,kws,…] [--rounding single|double|float32] [--no-cycles] [--json FILE]
        [--form c [--compiler gcc|clang] [--level -O2]]: C, as that compiler makes it, next to the static library"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

import m4_cycles

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/end_to_end"))
import c_on_boards  # noqa: E402

QUERNEL = os.path.join(ROOT, "build/release/bin/quernel")
TARGETS = ["cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55", "riscv32imc"]
MODELS = {"ic": "image classification", "kws": "keyword spotting", "vww": "visual wake words", "ad": "anomaly detection",
          "sww": "streaming wake word"}
# Instructions per multiply-add of TensorFlow Lite Micro with CMSIS-NN 7.0 at -O3 (gcc 12.2, qemu 7.2, November 2026).
CMSIS = {"cortex-m4": {"ic": 2.39, "kws": 2.95, "vww": 3.30, "ad": 2.20}, "cortex-m7": {"ic": 2.40, "kws": 2.92, "vww": 3.27},
         "cortex-m55": {"ic": 0.385, "kws": 0.67, "vww": 0.86, "ad": 1.08}}
# Cycles per multiply-add of the fastest published results on silicon (mlcommons/tiny, rounds 1.0 to 1.3, an L4R5).
SILICON = {"ic": 1.58, "kws": 1.95, "vww": 1.42, "ad": 1.84}


def run(*command, env=None):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    if done.returncode != 0:
        sys.exit(f"tiny: {' '.join(command)}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def one_case(folder, case):
    """The model with its first data set alone."""
    os.makedirs(folder)
    for name in ("model.tflite", "tolerance.json", "test_data_set_0"):
        if os.path.exists(os.path.join(case, name)):
            os.symlink(os.path.join(case, name), os.path.join(folder, name))
    return folder


def static_form(model, target, folder, flags):
    """-> the report of --emit=static, with free dims (the batch) fixed to 1"""
    dims = []
    while True:
        done = subprocess.run([QUERNEL, "compile", model, "--target", target, "--emit=static", "--json", "-o", os.path.join(folder, "model"),
                               *dims, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode == 0:
            return json.loads(done.stdout)
        free = re.search(r"found the free dim '(.+?)'", done.stderr)
        if not free:
            sys.exit(f"tiny: {model}: {done.stderr}")
        dims += ["--dim", f"{free.group(1)}=1"]


def measure(name, case, target, options, folder):
    flags = ["--rounding", options.rounding]
    case = one_case(os.path.join(folder, "case"), case)
    report = os.path.join(folder, "report.json")
    command = [QUERNEL, "test", case, "--target", target, "--on", "qemu", "--json", report, "--timeout", "600", *flags]
    run(*command)
    with open(report) as f:
        test = json.load(f)["cases"][0]["runs"][0]["tests"][0]
    memory = {m["name"]: m for m in test["memory"]}
    static = static_form(os.path.join(case, "model.tflite"), target, folder, flags)
    row = {"target": target, "model": name, "instructions": int(test["instructions"]), "multiply_adds": test["multiply_adds"],
           "code": static["code_bytes"], "constants": static["constants_bytes"], "workspace": memory["workspace"]["used_bytes"],
           "stack": memory["stack"]["used_bytes"]}
    if options.form == "c":
        files = os.path.join(folder, "c")
        os.makedirs(files)
        c_on_boards.compile_c(os.path.join(case, "model.tflite"), target, files, flags)
        board = c_on_boards.Board(target, os.path.join(folder, "board"))
        row["c_instructions"], row["c_code"] = c_on_boards.count(board, files, os.path.join(case, "test_data_set_0"), options.compiler,
                                                                 options.level)
    elif target == "cortex-m4" and options.cycles:
        instructions, cycles = m4_cycles.count(folder, lambda env: run(*command, env=env))
        row["cycles"] = round(cycles * row["instructions"] / instructions)
    return row


COLUMNS = ["model", "instructions", "per multiply-add", "CMSIS-NN", "cycles per multiply-add", "best on silicon", "code", "constants",
           "workspace", "stack"]
C_COLUMNS = ["model", "instructions", "per multiply-add", "of the library", "times", "code"]


def c_text_of(row):
    return [row["model"], f"{row['c_instructions']:,}", f"{row['c_instructions'] / row['multiply_adds']:.2f}", f"{row['instructions']:,}",
            f"{row['c_instructions'] / row['instructions']:.2f}", f"{row['c_code']:,}"]


def text_of(row):
    if "c_code" in row:
        return c_text_of(row)
    per = row["instructions"] / row["multiply_adds"]
    bar = CMSIS.get(row["target"], {}).get(row["model"])
    cycles = f"{row['cycles'] / row['multiply_adds']:.2f}" if "cycles" in row else ""
    silicon = f"{SILICON[row['model']]:.2f}" if "cycles" in row and row["model"] in SILICON else ""
    return [row["model"], f"{row['instructions']:,}", f"{per:.2f}", f"{bar:.2f}" if bar else "", cycles, silicon, f"{row['code']:,}",
            f"{row['constants']:,}", f"{row['workspace']:,}", f"{row['stack']:,}"]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--targets", type=lambda text: text.split(","), default=TARGETS)
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(MODELS))
    parser.add_argument("--rounding", default="single")
    parser.add_argument("--no-cycles", dest="cycles", action="store_false")
    parser.add_argument("--json")
    parser.add_argument("--form", choices=["static", "c"], default="static")
    parser.add_argument("--compiler", choices=["gcc", "clang"], default="gcc")
    parser.add_argument("--level", default="-O2")
    options = parser.parse_args()
    data = os.environ.get("QUERNEL_TEST_DATA", os.path.join(os.path.dirname(ROOT), "shared"))
    cases = {name: os.path.join(os.path.abspath(data), "models_tflite", f"mlperf_{name}_int8") for name in options.models}
    for case in cases.values():
        if not os.path.isdir(case):
            sys.exit(f"tiny: expected the model {case}; set QUERNEL_TEST_DATA")
    rows = []
    for target in options.targets:
        columns = C_COLUMNS if options.form == "c" else COLUMNS
        title = f"{target}, C by {options.compiler} {options.level}" if options.form == "c" else target
        print(f"\n{title}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)
        for name, case in cases.items():
            with tempfile.TemporaryDirectory(prefix="quernel-tiny-") as folder:
                rows.append(measure(name, case, target, options, folder))
            print(f"| {' | '.join(text_of(rows[-1]))} |", flush=True)
    if options.json:
        with open(options.json, "w") as f:
            json.dump(rows, f, indent=1)


if __name__ == "__main__":
    main()
