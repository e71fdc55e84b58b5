#!/usr/bin/env python3
"""One bundle for a processor and for Vulkan: each model is compiled once for both, with its reference data, and passes on both.

same_bundle.py           the models that models.tsv marks as spine, each with its first data set
same_bundle.py --all     every model, with all its data sets
same_bundle.py NAME...   those, with all their data sets
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
# Models that take no free dims, nor every value of an input: the options with which data sets of theirs can be run, a bundle
# for each; "{}" is the model's folder.
OPTIONS = {"silero_vad_v5": {
    "--dim input_dim0=1 --dim input_dim1=576 --input-value sr={}/test_data_set_0/input_2.pb": ["test_data_set_0", "test_data_set_1"],
    "--dim input_dim0=2 --dim input_dim1=288 --input-value sr={}/test_data_set_2/input_2.pb": ["test_data_set_2"]}}


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=vulkan_environment())
    return done.returncode, done.stdout


def fails_on(model, bundle, data, *options):
    """-> what does not pass of the model, compiled with these options, on the data sets in folder `data`, a line each"""
    name = os.path.basename(model)
    code, said = run(tool("quernel"), "compile", os.path.join(model, "model.onnx"), "-o", bundle, "-q", "--embed-tests=" + data,
                     "--target", "native", "--target", "vulkan", *options)
    if code != 0:
        return [said]
    failures = []
    for device, how in DEVICES.items():
        code, said = run(tool("quernel-run"), bundle, "--test", "--device", device, *how)
        lines = said.splitlines()
        passes = code == 0 and lines and lines[-1].endswith(" 0 failed") and not lines[-1].startswith("0 ")
        print(f"{'PASS' if passes else 'FAIL'} {name} on {device}: {lines[-1] if lines else code}", flush=True)
        if not passes:
            failures.append(f"{name} on {device}: exit {code}: {said}")
    return failures


def some_data(model, scratch, sets):
    """-> a folder with those data sets of the model, and its tolerance"""
    folder = tempfile.mkdtemp(dir=scratch)
    for name in [*sets, "tolerance.json"]:
        if os.path.exists(os.path.join(model, name)):
            os.symlink(os.path.abspath(os.path.join(model, name)), os.path.join(folder, name))
    return folder


def model_fails(model, scratch, every_set):
    bundle = os.path.join(scratch, "model.qnl")
    divisions = OPTIONS.get(os.path.basename(model))
    if divisions is None:
        return fails_on(model, bundle, model if every_set else some_data(model, scratch, ["test_data_set_0"]))
    return [line for options, sets in divisions.items()
            for line in fails_on(model, bundle, some_data(model, scratch, sets), *(word.format(model) for word in options.split()))]


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
            failures += model_fails(model, scratch, every_set=bool(arguments))
    if failures or not models:
        sys.exit("\n".join(failures) or "expected models")
    print(f"{len(models)} models pass on both devices, from the same bundles")


if __name__ == "__main__":
    main(sys.argv[1:])
