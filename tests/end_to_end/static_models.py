#!/usr/bin/env python3
"""Static libraries, or C, beside bundles: ONNX's node tests and real models, the same inputs, the same bits; memory and
stack are no more than the compiler says.

--every N: of the node tests, from the --first on; --models-only: none; --models A,B: of the real ones; --target T, --bundle-target T: of
bundles, for bare metal, which has none (C of integers computes the same anywhere); --form c: C instead of static libraries, compiled with --flags;
--memory M, --io-in-workspace: as quernel compile has it; --ram-share P: strips where P % of the program's RAM are enough then; --architecture A: on an emulated processor of linux_devices.py, bundles too; --compiler,
--runner: C on another processor, bundles here; `clang` is the newest one."""
import argparse
import concurrent.futures
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import static_form
from linux_devices import ARCHITECTURES, build_runner
from tools import clang, skip, test_data, tool

NODE_TESTS = "/usr/share/libonnx-testdata/data/node"
MODELS = ["mnist_8", "micro_kws_fp32", "micro_kws_qdq", "micro_kws_qoperator", "fomo_mnv2_onnx", "mnist_quant_cinteger",
          "mnist_rten_torch", "deeploy_autoencoder1d", "scan_lstm", "cct_2_opset20", "fsmn_vad_online", "yunet_n_320"]
# The caller's frame, from which the stack is measured.
CALLER_BYTES = 64
in_strips = []  # commands whose programs compute layers in strips


def run(command, **how):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, **how)


def reason_of(text):
    return text.splitlines()[-1] if text else "no output"


class Refused(Exception):
    """The compiler does not do this model in this form."""


def case_inputs(case):
    """Elements of the case's first data set by name; in order where they have none."""
    values = []
    for path in sorted(glob.glob(os.path.join(case, "test_data_set_0", "input_*.pb")),
                       key=lambda p: int(p.rsplit("_", 1)[1][:-3])):
        value = static_form.tensor_proto(path)
        if value is None:
            raise Refused("an input is no tensor of numbers")
        values.append((path, *value))
    return values


def is_nan(dtype, bits):
    """Payloads of NaNs are left open."""
    exponent, mantissa = {"f32": (0x7f800000, 0x7fffff), "f64": (0x7ff << 52, (1 << 52) - 1), "f16": (0x7c00, 0x3ff),
                          "bf16": (0x7f80, 0x7f)}.get(dtype, (0, 0))
    return exponent != 0 and bits & exponent == exponent and bits & mantissa != 0


def same_elements(dtype, a, b):
    if a == b:
        return True
    size = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2}.get(dtype)
    if size is None or len(a) != len(b):
        return False
    number = lambda data, i: int.from_bytes(data[i:i + size], "little")
    return all(a[i:i + size] == b[i:i + size] or is_nan(dtype, number(a, i)) and is_nan(dtype, number(b, i))
               for i in range(0, len(a), size))


def compile_both(case, folder, options, values, bundle_target=None):
    """Free dims become 1: batches of the real models. Values of inputs are constants where an operator needs them."""
    model = next(path for path in (os.path.join(case, "model.onnx"), os.path.join(case, "model.tflite")) if os.path.exists(path))
    flags = ["-q"]
    memory = ["--memory", options.memory] if options.memory else []
    memory += ["--io-in-workspace"] if options.io_in_workspace else []
    for path, name, _ in values:
        flags += ["--input-value", f"{name}={path}"]
    command = [tool("quernel"), "compile", model, "--emit", options.form, "--target", options.target, "-o",
               os.path.join(folder, "model"), *memory]
    done = run([*command, *flags])
    for name in re.findall(r"found the free dim '(.*)';", done.stdout):
        flags += ["--dim", name + "=1"]
    if "--dim" in flags:
        done = run([*command, *flags])
    if done.returncode != 0:
        if "internal" not in done.stdout:
            raise Refused(reason_of(done.stdout))
        raise AssertionError(done.stdout)
    if options.ram_share:
        compile_in_strips([*command, *flags], options.ram_share)
    done = run([tool("quernel"), "compile", model, "-o", os.path.join(folder, "model.qnl"), "--target", bundle_target or options.target,
                *flags])
    assert done.returncode == 0, done.stdout


def compile_in_strips(command, share):
    """The same with a share of the RAM, in percent, that the program needs; the program as it is where strips do not help."""
    report = json.loads(run([*command, "--json"]).stdout)["static"]
    need = sum(report["memory"].values()) + report["stack_bytes"]
    done = run([*command, "--max-ram", str(need * share // 100)])
    if done.returncode != 0:
        assert "bytes of RAM, found a need of" in done.stdout, done.stdout
        assert run(command).returncode == 0
    else:
        in_strips.append(command)


def run_bundle(folder, inputs, outputs, values, device):
    """model.qnl on the case's inputs, which are written to in0.raw and so on; its outputs to bundle0.raw and so on."""
    by_name = {name: data for _, name, data in values}
    arguments = []
    for index, t in enumerate(inputs):
        data = by_name[t.name] if t.name in by_name else values[index][2]
        if len(data) != t.bytes:
            raise Refused(f"input '{t.name}' has {len(data)} bytes in the data, {t.bytes} with its free dims 1")
        with open(os.path.join(folder, f"in{index}.raw"), "wb") as f:
            f.write(data)
        arguments += ["--input", f"{t.name}=raw:" + os.path.join(folder, f"in{index}.raw")]
    for index, t in enumerate(outputs):
        arguments += ["--output", f"{t.name}=" + os.path.join(folder, f"bundle{index}.raw")]
    done = run([*device, os.path.join(folder, "model.qnl"), *arguments])
    if "dtype mismatch" in done.stdout:
        raise Refused("the stored data are of another dtype")
    assert done.returncode == 0, done.stdout


def compare(case, options):
    """One case in a folder of its own; raises AssertionError."""
    folder = tempfile.mkdtemp(prefix="quernel-static-")
    try:
        values = case_inputs(case)
        compile_both(case, folder, options, values, options.bundle_target)
        inputs, outputs = static_form.write_program(folder, "model")
        device = [*options.runner.split(), options.device] if options.device else [tool("quernel-run")]
        run_bundle(folder, inputs, outputs, values, device)
        c_flags = options.flags.split() if options.form == "c" else None
        static_form.build_program(folder, "model", options.compiler,
                                  [*(c_flags or []), *(["-static"] if options.runner else [])], c_flags)
        said = static_form.run_program(folder, inputs, outputs, options.runner.split())
        for index, t in enumerate(outputs):
            read = lambda name: open(os.path.join(folder, f"{name}{index}.raw"), "rb").read()
            expected, found = read("bundle"), read("static")
            if hasattr(t, "shape_identifier"):
                found = found[:len(expected)]
            assert same_elements(t.dtype, expected, found), f"output '{t.name}' differs from the bundle's"
        stack, most = int(said["stack"][0]), int(said["stack"][2])
        assert stack <= most + CALLER_BYTES, f"used {stack} bytes of stack, the header says {most}"
        regions = [words for name, words in said.items() if name != "stack" and not name.startswith("shape")]
        return sum(int(r[0]) for r in regions), sum(int(r[2]) for r in regions), stack, most
    finally:
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--models-only", action="store_true")
    parser.add_argument("--form", choices=["static", "c"], default="static")
    parser.add_argument("--flags", default="-O1", help="of the C compiler")
    parser.add_argument("--target", default="native")
    parser.add_argument("--bundle-target", default=None)
    parser.add_argument("--memory", default="")
    parser.add_argument("--ram-share", type=int, default=0)
    parser.add_argument("--io-in-workspace", action="store_true")
    parser.add_argument("--compiler", default="gcc")
    parser.add_argument("--runner", default="")
    parser.add_argument("--models", type=lambda text: text.split(","), default=MODELS)
    parser.add_argument("--architecture", choices=sorted(ARCHITECTURES))
    parser.add_argument("--list", action="store_true", help="print every case")
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    options.device = ""
    if options.architecture:
        architecture = ARCHITECTURES[options.architecture]
        options.device = build_runner(architecture)
        options.flags = f"{options.flags} {architecture.c_flags}"
        triple = architecture.compiler.removesuffix("-g++")
        options.compiler = f"clang --target={triple}" if options.compiler == "clang" else triple + "-gcc"
        options.target = options.target if options.target != "native" else next(iter(architecture.targets))
        options.runner = f"{architecture.emulator} -cpu {architecture.targets[options.target]}"
    options.compiler = options.compiler.split()
    if options.compiler[0] == "clang":
        options.compiler[0] = clang() or "clang-22"
    for program in [options.compiler[0], *options.runner.split()[:1]]:
        if not shutil.which(program):
            skip(f"no {program}: toolchains/install_debian.sh --test --cross installs it")
    nodes = [] if options.models_only else sorted(glob.glob(NODE_TESTS + "/*"))[options.first::options.every]
    models = [path for name in options.models for path in glob.glob(os.path.join(test_data(), "models*", name))]
    cases = options.cases or nodes + models
    if not cases:
        skip(f"no ONNX tests in {NODE_TESTS} and no models in {test_data()}")
    same, refused, failed, sizes = 0, {}, [], []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for case, future in [(case, pool.submit(compare, case, options)) for case in cases]:
            name = os.path.basename(case.rstrip("/"))
            try:
                figures = future.result()
                same += 1
                if case not in nodes or options.list:
                    print("%-40s workspace %d of %d, stack %d of %d" % (name, *figures))
            except Refused as refusal:
                refused[name] = str(refusal)
                if options.list:
                    print(f"{name}: {refusal}")
            except Exception as error:
                failed.append(name)
                print(f"FAIL {name}: {error!r}")
    if options.ram_share:
        print(f"{len(in_strips)} fit {options.ram_share} % of their RAM in strips")
    print(f"{options.target}, {options.form}: {same} of {len(cases)} the same as their bundles, {len(refused)} refused, {len(failed)} failed")
    if failed or same < len(cases) * 2 // 3 or (options.ram_share and not in_strips):
        sys.exit(1)


if __name__ == "__main__":
    main()
