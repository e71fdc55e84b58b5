#!/usr/bin/env python3
"""One bundle for a processor and for Vulkan: each model is compiled once for both, with its reference data, and passes on both.

same_bundle.py           the models that models.tsv marks as spine
same_bundle.py --all     every model
same_bundle.py NAME...   those
"""
import os
import subprocess
import sys
import tempfile

from tools import skip, test_data, tool
from verify_models import every_model, spine_models

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from vulkan_driver import vulkan_environment  # noqa: E402

DEVICES = {"cpu": [], "vulkan": ["--validation"]}


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=vulkan_environment())
    return done.returncode, done.stdout


def fails_on(model, bundle):
    """-> what of the model does not pass, a line each"""
    code, said = run(tool("quernel"), "compile", os.path.join(model, "model.onnx"), "-o", bundle, "-q", "--embed-tests",
                     "--target", "native", "--target", "vulkan")
    if code != 0:
        return [said]
    failures = []
    for device, options in DEVICES.items():
        code, said = run(tool("quernel-run"), bundle, "--test", "--device", device, *options)
        lines = said.splitlines()
        passes = code == 0 and lines and lines[-1].endswith(" 0 failed") and not lines[-1].startswith("0 ")
        print(f"{'PASS' if passes else 'FAIL'} {os.path.basename(model)} on {device}: {lines[-1] if lines else code}", flush=True)
        if not passes:
            failures.append(f"{os.path.basename(model)} on {device}: exit {code}: {said}")
    return failures


def main(arguments):
    folder = os.path.join(test_data(), "models")
    if not os.path.isfile(os.path.join(folder, "models.tsv")):
        skip(f"no test models in {folder} (set QUERNEL_TEST_DATA)")
    if vulkan_environment() is None:
        skip("no Vulkan loader and software driver (toolchains/install_debian.sh --vulkan)")
    models = spine_models(folder)
    if arguments:
        models = every_model(folder) if arguments == ["--all"] else [os.path.join(folder, name) for name in arguments]
    failures = []
    with tempfile.TemporaryDirectory(prefix="quernel-test-") as scratch:
        for model in models:
            failures += fails_on(model, os.path.join(scratch, "model.qnl"))
    if failures or not models:
        sys.exit("\n".join(failures) or "expected models")
    print(f"{len(models)} models pass on both devices, each from one bundle")


if __name__ == "__main__":
    main(sys.argv[1:])
