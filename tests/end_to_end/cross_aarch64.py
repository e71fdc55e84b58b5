#!/usr/bin/env python3
"""Bundles for AArch64, made here, run under an emulator by a quernel-run that the preset aarch64 builds: ONNX's node tests,
every eighth, and the smaller of the real models.
"""
import glob
import os
import shutil
import subprocess
import sys

from tools import ROOT, skip, test_data, tool

EMULATOR = "qemu-aarch64-static"
NODE_TESTS = "/usr/share/libonnx-testdata/data/node"
MODELS = ["mnist_8", "micro_kws_fp32", "micro_kws_qdq", "fsmn_vad_online", "cct_2_opset20"]


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command[:4])} …: exit {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


def build_runner():
    build = os.path.join(ROOT, "build", "aarch64")
    run(["cmake", "-S", ROOT, "--preset", "aarch64"])
    run(["cmake", "--build", build, "--target", "quernel-run"])
    return os.path.join(build, "bin", "quernel-run")


def verify(target, runner, cases):
    """-> how many cases passed; none may fail"""
    out = run([tool("quernel"), "verify", "--target", target, "--on", "qemu", "--run-binary", runner, *cases])
    print(f"{target}: {out.splitlines()[-1]}")
    return sum(line.startswith("PASS ") for line in out.splitlines())


def refuses_a_lesser_processor(runner, case):
    """A bundle that needs dot products names what the processor lacks."""
    command = [tool("quernel"), "verify", "--target", "cortex-a76", "--on", "qemu:cortex-a53",
               "--run-binary", runner, case]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    expected = "has aarch64 (neon), the bundle has cortex-a76: aarch64 (neon fp16 dotprod)"
    if done.returncode == 0 or expected not in done.stdout:
        sys.exit(f"expected a failure that says '{expected}', found exit {done.returncode}: {done.stdout}")


def main():
    for program in ("aarch64-linux-gnu-g++", EMULATOR):
        if not shutil.which(program):
            skip(f"no {program}: toolchains/install_debian.sh --cross installs it")
    nodes = sorted(glob.glob(NODE_TESTS + "/*"))[::8]
    models = [path for path in (os.path.join(test_data(), "models", name) for name in MODELS) if os.path.isdir(path)]
    if not nodes and not models:
        skip(f"no ONNX tests in {NODE_TESTS} and no models in {test_data()}")
    runner = build_runner()
    if nodes and verify("aarch64", runner, nodes) < len(nodes) // 2:
        sys.exit("expected most node tests to be supported")
    for target in ("aarch64", "cortex-a53", "cortex-a72", "cortex-a76"):
        if models and verify(target, runner, models) != len(models):
            sys.exit(f"expected all of {len(models)} models to pass")
    refuses_a_lesser_processor(runner, (models or nodes)[0])


if __name__ == "__main__":
    main()
