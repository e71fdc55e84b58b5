#!/usr/bin/env python3
"""`quernel test --on qemu` of firmware targets: static libraries on emulated boards. ONNX's node tests and MLPerf Tiny's int8
models run beside their data, to the bit, other real models beside what the host's bundle computes. Prints what a run of each
model takes: instructions, these per multiply-add, memory.

firmware_models.py TARGET... [--every N] [--models-only] [--nodes-only] [--models NAME,NAME…] [--tiny NAME,NAME…]"""
import argparse
import glob
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

from onnx_file import INT32, INT64, UINT64, int_attribute, model, node, string_attribute, tensor, value
from tools import skip, test_data, tool

NODE_TESTS = "/usr/share/libonnx-testdata/data/node"
MODELS = ["mnist_8", "micro_kws_fp32", "micro_kws_qdq", "micro_kws_qoperator", "fomo_mnv2_onnx", "mnist_quant_cinteger", "deeploy_autoencoder1d"]
TINY = ["mlperf_ad_int8", "mlperf_ic_int8", "mlperf_kws_int8", "mlperf_sww_int8", "mlperf_vww_int8"]
# Whatever the sample: a model without kernels, which takes no stack.
NODES = ["test_reshape_allowzero_reordered"]
NO_TOOLS = "toolchains/install_debian.sh --cross installs compilers and emulators"


def run(*command, ok=(0,)):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode not in ok:
        sys.exit(f"{' '.join(command[:3])} …: exit {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done


def host_case(model, folder):
    """The model with its first data set, whose outputs are those of the host's bundle: they are compared within ONNX's
    tolerance, integers to the bit, whatever the model's own tolerance."""
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data)
    os.symlink(os.path.join(model, "model.onnx"), os.path.join(folder, "model.onnx"))
    bundle = os.path.join(folder, "model.qnl")
    run(tool("quernel"), "compile", os.path.join(model, "model.onnx"), "-o", bundle, "-q")
    listed = json.loads(run(tool("quernel-run"), bundle, "--list", "--json").stdout)["entry_points"][0]
    options = []
    for index, tensor in enumerate(listed["inputs"]):
        path = os.path.join(data, f"input_{index}.pb")
        os.symlink(os.path.join(model, "test_data_set_0", f"input_{index}.pb"), path)
        options += ["--input", f"{tensor['name']}={path}"]
    for index, tensor in enumerate(listed["outputs"]):
        options += ["--output", f"{tensor['name']}={os.path.join(data, f'output_{index}.pb')}"]
    run(tool("quernel-run"), bundle, *options)
    return folder


def products_case(folder):
    """Upper halves of products of 32-bit integers, which requantization takes: a processor without the instruction computes
    them from products of 16 bits."""
    edges = [0, 1, -1, 0xFFFF, 0x10000, -0x10000, -0xFFFF, 0x7FFFFFFF, -0x80000000, 0x7FFF0000, 0x8000FFFF - (1 << 32)]
    pairs = [(x, y) for x in edges for y in edges]
    values = random.Random(1)
    pairs += [(values.randint(-1 << 31, (1 << 31) - 1), values.randint(-1 << 31, (1 << 31) - 1)) for _ in range(500)]
    halves = [x * y >> 32 for x, y in pairs]
    shape = [len(pairs)]
    os.makedirs(os.path.join(folder, "test_data_set_0"))

    def words(name, numbers):
        return tensor(name, INT32, shape, struct.pack(f"<{len(numbers)}i", *numbers))

    def cast(source, result, dtype):
        return node("Cast", [source], [result], attributes=[int_attribute("to", dtype)])
    files = {
        "model.onnx": model(
            [cast("x", "wide_x", INT64), cast("y", "wide_y", INT64), node("Mul", ["wide_x", "wide_y"], ["product"]),
             cast("product", "bits", UINT64),
             node("BitShift", ["bits", "word"], ["half"], attributes=[string_attribute("direction", "RIGHT")]),
             cast("half", "z", INT32)],
            [value("x", INT32, shape), value("y", INT32, shape)], [value("z", INT32, shape)],
            [tensor("word", UINT64, [1], struct.pack("<Q", 32))]),
        "test_data_set_0/input_0.pb": words("x", [x for x, _ in pairs]),
        "test_data_set_0/input_1.pb": words("y", [y for _, y in pairs]),
        "test_data_set_0/output_0.pb": words("z", halves),
    }
    for name, data in files.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)
    return folder


def row(case):
    """| model | instructions | multiply-adds | per multiply-add | memory |"""
    test = case["runs"][0]["tests"][0]
    memory = ", ".join(f"{m['name']} {m['used_bytes']} of {m['bytes']}" for m in test["memory"])
    count = test["multiply_adds"]
    per = f"{test['instructions'] / count:.2f}" if count else ""
    return f"| {case['name']} | {int(test['instructions'])} | {count} | {per} | {memory} |"


def test(target, nodes, models, folder):
    """-> whether all is as it should be"""
    report = os.path.join(folder, "report.json")
    done = run(tool("quernel"), "test", "--on", "qemu", "--target", target, "--jobs", str(os.cpu_count()), "--timeout", "600",
               "--json", report, "--allow-unsupported", "*", *nodes, *models, ok=(0, 1))
    if NO_TOOLS in done.stderr:
        print(f"left out: {target}: {done.stderr.strip()}", flush=True)
        return None
    if done.stderr:
        sys.exit(f"{target}: {done.stderr}")
    with open(report) as f:
        results = json.load(f)
    for case in results["cases"]:
        if case["verdict"] != "PASS":
            print(f"{case['verdict']} {case['name']}: {case['reason']}")
    names = [os.path.basename(path) for path in models]
    rows = [row(case) for case in results["cases"] if case["verdict"] == "PASS" and case["name"] in names]
    if rows:
        print("| model | instructions | multiply-adds | instructions per multiply-add | bytes of memory used |\n|---|---|---|---|---|")
        print("\n".join(rows))
    print(f"{target}: {done.stdout.splitlines()[-1]}", flush=True)
    return results["failed"] == 0 and results["passed"] * 2 > len(results["cases"])


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--models-only", action="store_true")
    parser.add_argument("--nodes-only", action="store_true")
    parser.add_argument("--models", type=lambda text: text.split(","), default=MODELS)
    parser.add_argument("--tiny", type=lambda text: text.split(","), default=TINY)
    parser.add_argument("targets", nargs="+")
    options = parser.parse_args()
    all_nodes = sorted(glob.glob(NODE_TESTS + "/*"))
    always = [path for path in all_nodes if os.path.basename(path) in NODES]
    nodes = [] if options.models_only else sorted({*all_nodes[::options.every], *always})
    names = [] if options.nodes_only else options.models
    found = [path for path in (os.path.join(test_data(), "models", name) for name in names) if os.path.isdir(path)]
    tiny = [] if options.nodes_only else options.tiny
    tiny = [path for path in (os.path.join(test_data(), "models_tflite", name) for name in tiny) if os.path.isdir(path)]
    if not nodes + found + tiny:
        skip(f"no ONNX tests in {NODE_TESTS} and no models in {test_data()}")
    with tempfile.TemporaryDirectory(prefix="quernel-firmware-") as folder:
        models = [host_case(os.path.abspath(path), os.path.join(folder, os.path.basename(path))) for path in found]
        generated = [] if options.nodes_only else [products_case(os.path.join(folder, "upper_halves_of_products"))]
        done = [test(target, nodes, generated + models + tiny, folder) for target in options.targets]
    if all(result is None for result in done):
        skip(f"no toolchain or emulator: {NO_TOOLS}")
    sys.exit(1 if False in done else 0)


if __name__ == "__main__":
    main()
