#!/usr/bin/env python3
"""Models as firmware on emulated microcontrollers: ONNX's node tests and real models. Outputs are compared with those of
the host's bundle: integers to the bit, floats within ONNX's tolerance; memory and stack are no more than the header says.

firmware_models.py TARGET... [--every N] [--models-only] [--models NAME,NAME…] [--cases FOLDER...]"""
import argparse
import concurrent.futures
import glob
import os
import queue
import struct
import sys
import tempfile

import firmware_board
from static_models import NODE_TESTS, Refused, case_inputs, compile_both, run_bundle
from tools import skip, test_data, tool

MODELS = ["mnist_8", "micro_kws_fp32", "micro_kws_qdq", "micro_kws_qoperator", "fomo_mnv2_onnx", "mnist_quant_cinteger", "deeploy_autoencoder1d"]
# Whatever the sample: a model without kernels, which takes no stack.
NODES = ["test_reshape_allowzero_reordered"]
FLOATS = {"f32": "f", "f64": "d", "f16": "e"}
RELATIVE, ABSOLUTE = 1e-3, 1e-7


def differs(t, expected, found):
    """What is wrong with the values of an output, or None: floats within ONNX's tolerance, all else to the bit."""
    if len(expected) != len(found):
        return f"has {len(found)} bytes, expected {len(expected)}"
    if t.dtype not in FLOATS:
        return None if expected == found else "differs from the host's"
    code = FLOATS[t.dtype]
    for index, ((a,), (b,)) in enumerate(zip(struct.iter_unpack(code, expected), struct.iter_unpack(code, found))):
        if a != a and b != b or a == b:
            continue
        if not abs(a - b) <= RELATIVE * abs(a) + ABSOLUTE:
            return f"[{index}]: expected {a}, found {b}"
    return None


def compare(case, target, board):
    values = case_inputs(case)
    compile_both(case, board.case, argparse.Namespace(target=target, form="static", memory=""), values, "native")
    inputs, outputs = firmware_board.write_program(board.case)
    run_bundle(board.case, inputs, outputs, values, [tool("quernel-run")])
    said = board.run_program()
    for index, t in enumerate(outputs):
        read = lambda name: open(os.path.join(board.case, f"{name}{index}.raw"), "rb").read()
        expected, found = read("bundle"), read("out")
        # Of a shape that depends on data the output has room for the largest.
        wrong = differs(t, expected, found[:len(expected)] if hasattr(t, "shape_identifier") else found)
        assert not wrong, f"output '{t.name}' {wrong}"
    assert said["stack"][0] <= said["stack"][1], f"used {said['stack'][0]} bytes of stack, the header says {said['stack'][1]}"
    return said


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--models-only", action="store_true")
    parser.add_argument("--models", type=lambda text: text.split(","), default=MODELS)
    parser.add_argument("--cases", nargs="*", default=[])
    parser.add_argument("targets", nargs="+")
    options = parser.parse_args()
    targets = [target for target in options.targets if firmware_board.Board.is_there(target)]
    if not targets:
        skip(f"no toolchain or emulator for {', '.join(options.targets)}: toolchains/install_debian.sh --cross")
    for target in set(options.targets) - set(targets):
        print(f"left out: {target}, no toolchain or emulator: toolchains/install_debian.sh --cross")
    all_nodes = sorted(glob.glob(NODE_TESTS + "/*"))
    always = [path for path in all_nodes if os.path.basename(path) in NODES]
    nodes = [] if options.models_only else sorted({*all_nodes[::options.every], *always})
    models = [path for path in (os.path.join(test_data(), "models", name) for name in options.models) if os.path.isdir(path)]
    cases = options.cases or nodes + models
    if not cases:
        skip(f"no ONNX tests in {NODE_TESTS} and no models in {test_data()}")
    bad = False
    for target in targets:
        with tempfile.TemporaryDirectory(prefix="quernel-firmware-") as folder:
            boards = queue.Queue()
            workers = os.cpu_count()
            for index in range(workers):
                boards.put(firmware_board.Board(target, os.path.join(folder, str(index))))

            def one(case):
                board = boards.get()
                try:
                    return compare(case, target, board)
                finally:
                    boards.put(board)

            same, refused, failed = 0, {}, []
            with concurrent.futures.ThreadPoolExecutor(workers) as pool:
                for case, future in [(case, pool.submit(one, case)) for case in cases]:
                    name = os.path.basename(case.rstrip("/"))
                    try:
                        said = future.result()
                        same += 1
                        if case not in nodes:
                            print(f"{target} {name}:", ", ".join(f"{word} {a} of {b}" if word != "instructions" else f"{a} instructions"
                                                                for word, (a, b) in said.items()))
                    except Refused as refusal:
                        refused[name] = str(refusal)
                    except Exception as error:
                        failed.append(name)
                        print(f"FAIL {target} {name}: {error}")
            for name, reason in refused.items():
                print(f"{target} {name} refused: {reason}")
            print(f"{target}: {same} of {len(cases)} right, {len(refused)} refused, {len(failed)} failed", flush=True)
            bad |= bool(failed) or same < len(cases) // 2
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
