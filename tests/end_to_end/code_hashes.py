#!/usr/bin/env python3
"""Compares the code that two builds of the compiler generate: hashes of bundles (machine code, SPIR-V, plans), of C files and
of static archives, for models and targets. A commit that claims no change of code shows none.

    code_hashes.py BIN > before.txt              hashes with the tools in BIN (build/release/bin of the commit before)
    code_hashes.py BIN --against before.txt      prints what differs; exits with 1 where something does

    --models spine|all|NAME,NAME…   of the test data (default: spine), and the digits of examples/
    --targets T,T…                  default: every preset, Vulkan and its variants
    --forms bundle,c,static         default: all three, where a target has them
"""
import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tools import DIGITS, test_data  # noqa: E402
from verify_models import every_model, spine_models  # noqa: E402

VARIANTS = ["vulkan+dotprod", "vulkan+float16", "vulkan/x86-64-v3"]
C_TARGETS = ["x86-64-v3", "cortex-m4", "cortex-m55", "riscv32imc"]
STATIC_TARGETS = ["x86-64-v3", "aarch64", "cortex-m0plus", "cortex-m4", "cortex-m55", "riscv32imc"]


def hash_of_folder(folder):
    digest = hashlib.sha256()
    for name in sorted(os.listdir(folder)):
        digest.update(name.encode())
        with open(os.path.join(folder, name), "rb") as f:
            digest.update(f.read())
    return digest.hexdigest()[:16]


def hash_of(compiler, model, target, form):
    """-> the hash of what is written, or of the message of a refusal"""
    with tempfile.TemporaryDirectory(prefix="quernel-test-") as folder:
        command = [compiler, "compile", model, "--target", target, "-q", "-o", os.path.join(folder, "m.qnl" if form == "bundle" else "m")]
        if form != "bundle":
            command += ["--emit", form]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder)
        if done.returncode != 0:
            return "refused-" + hashlib.sha256(done.stdout.encode()).hexdigest()[:8]
        return hash_of_folder(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("--against")
    parser.add_argument("--models", default="spine")
    parser.add_argument("--targets")
    parser.add_argument("--forms", default="bundle,c,static")
    options = parser.parse_args()
    compiler = os.path.join(os.path.abspath(options.bin), "quernel")
    folder = os.path.join(test_data(), "models")
    models = {"spine": lambda: spine_models(folder), "all": lambda: every_model(folder)}.get(
        options.models, lambda: [os.path.join(folder, name) for name in options.models.split(",")])()
    presets = [target["name"] for target in json.loads(subprocess.check_output([compiler, "targets", "--json"]))]
    targets = options.targets.split(",") if options.targets else [*presets, *VARIANTS]
    known = {}
    if options.against:
        with open(options.against, encoding="utf-8") as f:
            known = dict(line.rstrip("\n").rsplit(" ", 1) for line in f)
    compared = differ = 0
    for path in [DIGITS, *(os.path.join(model, "model.onnx") for model in models)]:
        for target in targets:
            for form in options.forms.split(","):
                of_form = {"bundle": [t for t in targets if not t.startswith(("cortex-m", "riscv32"))],
                           "c": C_TARGETS, "static": STATIC_TARGETS}[form]
                if target not in of_form:
                    continue
                name = f"{os.path.basename(os.path.dirname(path))} {target} {form}"
                found = hash_of(compiler, path, target, form)
                if not options.against:
                    print(name, found, flush=True)
                elif name in known:
                    compared += 1
                    if known[name] != found:
                        differ += 1
                        print(f"differs: {name}", flush=True)
    if options.against:
        print(f"{compared} compared, {differ} differ")
        if differ or not compared:
            sys.exit(1)


if __name__ == "__main__":
    main()
