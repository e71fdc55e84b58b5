#!/usr/bin/env python3
"""One bundle for every Linux architecture and for Vulkan, made here once: each processor takes the variant that is its best, and
computes what the others do, as a Vulkan device does."""
import glob
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from json import loads

from linux_devices import ARCHITECTURES, RISCV_V, build_runner, missing_program, run
from tools import DIGITS, ROOT, test_data, tool
from verify_models import spine_models

sys.path.append(os.path.join(ROOT, "tests"))
from vulkan_driver import vulkan_environment  # noqa: E402

TARGETS = ["x86-64", "x86-64-v3", "x86-64-v4", "aarch64", "armv7", "riscv64", "riscv64-v", "vulkan"]
# Emulated CPUs of an architecture, and what each should take. QEMU 7.2 has no AVX-512: v4 runs where the host has it. It also
# reads what AVX's masked loads leave out, which may lie outside all memory: AVX2 runs the smallest model only.
AVX2 = "Haswell"
CPUS = {
    "x86-64": {"qemu64": "x86-64", AVX2: "x86-64-v3"},
    "aarch64": {"cortex-a53": "aarch64", "max": "aarch64"},
    "armv7": {"cortex-a7": "armv7"},
    "riscv64": {"rv64": "riscv64", RISCV_V + "256": "riscv64-v"},
}


def devices():
    """-> [(name, command that starts quernel-run, the target it should take or None)]"""
    found = [("this machine", [tool("quernel-run")], None)]
    if shutil.which("qemu-x86_64-static"):
        found += [(cpu, ["qemu-x86_64-static", "-cpu", cpu, tool("quernel-run")], target) for cpu, target in CPUS["x86-64"].items()]
    for name, architecture in ARCHITECTURES.items():
        if missing := missing_program(architecture):
            print(f"left out: {name}, no {missing}")
            continue
        runner = build_runner(architecture)
        found += [(cpu, [architecture.emulator, "-cpu", cpu, runner], target) for cpu, target in CPUS[name].items()]
    environment = vulkan_environment()
    if environment is None:
        print("left out: Vulkan, no loader and software driver")
    else:
        icd = "VK_ICD_FILENAMES=" + environment["VK_ICD_FILENAMES"]
        found.append(("Vulkan", ["env", icd, tool("quernel-run"), "--device", "vulkan"], "vulkan"))
    return found


def data_inputs(model):
    """quernel-run's options for the first data set of a model, by the inputs' names in the bundle"""
    return sorted(glob.glob(os.path.join(os.path.dirname(model), "test_data_set_0", "input_*.pb")))


def outputs_of(command, bundle, inputs, folder):
    """-> the target that was taken, {output: (dtype, bytes)}"""
    listed = loads(run([tool("quernel-run"), bundle, "--list", "--json"]))["entry_points"][0]
    options = [word for tensor, path in zip(listed["inputs"], inputs) for word in ("--input", f"{tensor['name']}={path}")]
    paths = {tensor["name"]: os.path.join(folder, f"{i}.raw") for i, tensor in enumerate(listed["outputs"])}
    options += [word for name, path in paths.items() for word in ("--output", f"{name}={path}")]
    report = loads(run([*command, bundle, *options, "--json"]))
    outputs = {}
    for tensor in report["outputs"]:
        with open(paths[tensor["name"]], "rb") as f:
            outputs[tensor["name"]] = (tensor["dtype"], f.read())
    return report["target"], outputs


def deviation(dtype, expected, found):
    """How far floats are apart, as a share of the largest; other types must be equal."""
    if dtype != "f32" or len(expected) != len(found):
        return 0 if expected == found else float("inf")
    a, b = (struct.unpack(f"<{len(data) // 4}f", data) for data in (expected, found))
    return max((abs(x - y) for x, y in zip(a, b)), default=0) / max(max(map(abs, a), default=0), 1e-30)


def check(model, places, folder):
    bundle = os.path.join(folder, "fat.qnl")
    run([tool("quernel"), "compile", model, "-o", bundle, "-q", *(word for target in TARGETS for word in ("--target", target))])
    inputs = data_inputs(model)
    reference = None
    for name, command, target in places:
        taken, outputs = outputs_of(command, bundle, inputs, folder)
        if target and taken != target:
            sys.exit(f"{model} on {name}: expected the variant {target}, found {taken}")
        reference = reference or outputs
        worst = max(deviation(reference[o][0], reference[o][1], data) for o, (_, data) in outputs.items())
        print(f"{os.path.basename(os.path.dirname(model))}: {name} takes {taken}, largest deviation {worst:.1e}", flush=True)
        if not worst <= 1e-4:
            sys.exit(f"{model} on {name}: expected the results of {places[0][0]}, found them {worst:.1e} of the largest element away")


def main():
    places = devices()
    folder = os.path.join(test_data(), "models")
    models = spine_models(folder) if os.path.isfile(os.path.join(folder, "models.tsv")) else []
    with tempfile.TemporaryDirectory(prefix="quernel-test-") as scratch:
        check(DIGITS, places, scratch)
        # same_bundle.py runs the models on the software driver, which takes minutes for some.
        places = [place for place in places if place[0] not in (AVX2, "Vulkan")]
        for path in models:
            check(os.path.join(path, "model.onnx"), places, scratch)


if __name__ == "__main__":
    main()
