#!/usr/bin/env python3
"""`quernel test` for another processor: bundles made here, run under an emulator by the quernel-run that the
architecture's CMake preset builds: a rotating sample of ONNX's node tests on one target of the architecture, products of
bytes and of quantised weights and the smaller of the real models on all of them.

cross_linux.py ARCH [--sample N]   one case of each eight, the N-th; else N counts the commits of the history
cross_linux.py ARCH --all          every node test and every model, compared with what the same cases do on x86-64
"""
import argparse
import glob
import os
import subprocess
import sys
import tempfile

import byte_products
import quantised_products
from linux_devices import ARCHITECTURES, Device, build_runner
from tools import ROOT, skip, test_data, tool

NODE_TESTS = "/usr/share/libonnx-testdata/data/node"
EVERY = 8
# QEMU 7.2 stops at a RISC-V vector instruction that truncates floats where no other float instruction comes before it in the
# basic block (gitlab.com/qemu-project/qemu/-/issues/1441, solved in 8.1).
EMULATOR_STOPS = "decode_save_opc: Assertion"
SMALL_MODELS = ["mnist_8", "micro_kws_fp32", "micro_kws_qdq", "micro_kws_qoperator", "fsmn_vad_online", "cct_2_opset20"]


def commits():
    done = subprocess.run(["git", "-C", ROOT, "rev-list", "--count", "HEAD"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return int(done.stdout) if done.returncode == 0 else 0


def verdicts(output):
    """-> {case: "PASS" and the like; "STOPPED" by a bug of the emulator}, the lines of those that failed"""
    found, failures = {}, []
    for line in output.splitlines():
        verdict, _, rest = line.partition(" ")
        if verdict not in ("PASS", "FAIL", "UNSUPPORTED"):
            continue
        if verdict == "FAIL" and EMULATOR_STOPS in rest:
            verdict = "STOPPED"
            print(f"the emulator stopped: {rest}", flush=True)
        found[rest.split(" ")[0].rstrip(":")] = verdict
        if verdict == "FAIL":
            failures.append(line)
    return found, failures


def test_on(device, target, cases, *options):
    """-> what became of each case; none may fail"""
    output = device.test(target, cases, *options).stdout
    found, failures = verdicts(output)
    print(f"{target}: {output.splitlines()[-1]}", flush=True)
    if failures or len(found) != len(cases):
        sys.exit("\n".join(failures) or f"expected a verdict for each of {len(cases)} cases, found {len(found)}:\n{output[-4000:]}")
    return found


def refuses_a_lesser_processor(architecture, runner, case):
    target, cpu, expected = architecture.lesser
    done = Device(runner, cpu).test(target, [case])
    if done.returncode == 0 or expected not in done.stdout:
        sys.exit(f"expected a failure that says '{expected}', found exit {done.returncode}: {done.stdout}")


def says_why_it_has_no_vulkan(architecture, runner):
    """Of a static program; the device is refused before a bundle is read."""
    done = subprocess.run([architecture.emulator, runner, "none.qnl", "--device", "vulkan"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    expected = ("expected cpu or auto, this program is linked statically and cannot open Vulkan's loader "
                "(configure it with -DCMAKE_EXE_LINKER_FLAGS= -DQUERNEL_VULKAN=ON")
    if done.returncode == 0 or expected not in done.stdout:
        sys.exit(f"expected a failure that says '{expected}', found exit {done.returncode}: {done.stdout}")


def all_cases(architecture, runner):
    cases = [path.rstrip("/") for path in sorted(glob.glob(NODE_TESTS + "/*/") + glob.glob(os.path.join(test_data(), "models", "*", "model.onnx")))]
    cases = [os.path.dirname(case) if case.endswith(".onnx") else case for case in cases]
    here = subprocess.run([tool("quernel"), "test", "--target", "x86-64", "--jobs", str(os.cpu_count()), *cases],
                          stdout=subprocess.PIPE, text=True).stdout
    print(f"x86-64: {here.splitlines()[-1]}", flush=True)
    expected, _ = verdicts(here)
    differences = []
    for target, cpu in architecture.targets.items():
        output = Device(runner, cpu).test(target, cases, "--timeout", "1200").stdout
        found, failures = verdicts(output)
        print(f"{target}: {output.splitlines()[-1]}", flush=True)
        differences += failures
        differences += [f"{target}: {case}: {found.get(case)}, on x86-64 {verdict}"
                        for case, verdict in expected.items() if found.get(case) not in (verdict, "STOPPED")]
    if differences:
        sys.exit("\n".join(differences))
    print("every case does what it does on x86-64")


def sample(architecture, runner, start):
    nodes = sorted(glob.glob(NODE_TESTS + "/*"))[start % EVERY::EVERY]
    models = [path for path in (os.path.join(test_data(), "models", name) for name in SMALL_MODELS) if os.path.isdir(path)]
    if not nodes:
        skip(f"no ONNX tests in {NODE_TESTS}: toolchains/install_debian.sh --test installs them")
    print(f"node tests: one of each {EVERY}; again with --sample {start % (EVERY * len(architecture.targets))}", flush=True)
    with tempfile.TemporaryDirectory(prefix="quernel-test-") as folder:
        cases = byte_products.write_cases(folder) + quantised_products.write_cases(folder) + models
        rounded = {activations: quantised_products.write_cases(folder, activations) for activations in quantised_products.ROUNDED}
        for i, (target, cpu) in enumerate(architecture.targets.items()):
            device = Device(runner, cpu)
            # The targets take turns, too: node tests on one of them, the other cases on all.
            if i == start // EVERY % len(architecture.targets):
                found = test_on(device, target, nodes)
                if sum(verdict == "PASS" for verdict in found.values()) < len(nodes) // 2:
                    sys.exit("expected most node tests to be supported")
            if set(test_on(device, target, cases).values()) != {"PASS"}:
                sys.exit(f"expected all of {len(cases)} cases to pass")
            for activations, of_these in rounded.items():
                if set(test_on(device, target, of_these, "--activations", activations).values()) != {"PASS"}:
                    sys.exit(f"expected all of {len(of_these)} cases with activations of {activations} to pass")
            if set(test_on(Device(runner), target, cases[:1]).values()) != {"PASS"}:
                sys.exit(f"expected {target} to run on the processor that --on qemu takes for it")
        refuses_a_lesser_processor(architecture, runner, cases[0])


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("architecture", choices=sorted(ARCHITECTURES))
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--sample", type=int)
    options = parser.parse_args()
    architecture = ARCHITECTURES[options.architecture]
    runner = build_runner(architecture)
    says_why_it_has_no_vulkan(architecture, runner)
    if options.all:
        all_cases(architecture, runner)
    else:
        sample(architecture, runner, commits() if options.sample is None else options.sample)


if __name__ == "__main__":
    main()
