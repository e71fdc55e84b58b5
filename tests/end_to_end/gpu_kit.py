#!/usr/bin/env python3
"""tests/bench/gpu/pack.sh packs a kit that runs on a machine with nothing but a shell and a Vulkan driver."""
import json
import os
import shutil
import struct
import subprocess
import sys
import tarfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import onnx_file as onnx
from tools import ROOT, ToolTest, skip, tool
from vulkan_driver import vulkan_environment

GPU = os.path.join(ROOT, "tests", "bench", "gpu")
# What run.sh may use of a machine.
PROGRAMS = "sh cat chmod cut date dirname grep head mkdir mv rm sed sleep tail tr uname wc".split()
DIM = 64


def python_with_onnx():
    return subprocess.run(["/usr/bin/python3", "-c", "import numpy, onnx"], stderr=subprocess.DEVNULL).returncode == 0


class GpuKit(ToolTest):
    def model(self, name, answer):
        """A test directory of y = relu(x)."""
        values = [i / DIM - 0.5 for i in range(DIM)]
        shaped = [onnx.value(n, onnx.FLOAT, [1, DIM]) for n in "xy"]
        folder = f"data/models/{name}"
        os.makedirs(self.path(f"{folder}/test_data_set_0"))
        self.write(f"{folder}/model.onnx", onnx.model([onnx.node("Relu", ["x"], ["y"], "the_node")], shaped[:1], shaped[1:], []))
        self.write(f"{folder}/test_data_set_0/input_0.pb", onnx.float_tensor("x", [1, DIM], values))
        self.write(f"{folder}/test_data_set_0/output_0.pb", onnx.float_tensor("y", [1, DIM], answer or [max(v, 0.0) for v in values]))

    def pack(self, *options):
        done = subprocess.run([os.path.join(GPU, "pack.sh"), self.path("kit.tar.xz"), "--bin", os.path.dirname(tool("quernel")), "--run-binary",
                               tool("quernel-run"), "--installed-loader", "--fast", "--work", self.path("work"), *options],
                              env={**os.environ, "QUERNEL_TEST_DATA": self.path("data")}, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=240)
        self.assertEqual(done.returncode, 0, done.stdout)
        with tarfile.open(self.path("kit.tar.xz")) as archive:
            archive.extractall(self.path("there"))
        return os.path.join(self.path("there"), "quernel-gpu")

    def run_kit(self, kit, *options, code=0):
        """Runs it without network, with the environment and the programs of a bare machine."""
        programs = self.path("programs")
        if not os.path.exists(programs):
            os.mkdir(programs)
            for name in PROGRAMS:
                os.symlink(shutil.which(name), os.path.join(programs, name))
        environment = {"PATH": programs, "VK_ICD_FILENAMES": vulkan_environment()["VK_ICD_FILENAMES"]}
        alone = ["unshare", "-rn"] if subprocess.run(["unshare", "-rn", "true"], stderr=subprocess.DEVNULL).returncode == 0 else []
        if alone:
            alone[0] = shutil.which("unshare")
        done = subprocess.run([*alone, os.path.join(kit, "run.sh"), "--output", self.path("results.json"), *options], cwd=self.dir, env=environment,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240)
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout

    def results(self):
        return json.loads(self.read("results.json"))

    def found(self, name):
        """The tests of the bundle of that name, by pass."""
        return {run["pass"]: bundle.get("tests", bundle.get("error")) for run in self.results()["runs"] for bundle in run["bundles"] if bundle["bundle"] == name}

    def report(self, code=0):
        done = subprocess.run([sys.executable, "-B", os.path.join(GPU, "report.py"), self.path("results.json"), "--all"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout

    def test_a_kit_runs_where_nothing_is_installed(self):
        self.model("right", None)
        kit = self.pack("--groups", "products,int8,attention,models", "--sizes", "64", "--keys", "128")
        said = self.run_kit(kit)
        self.assertIn("0 wrong", said)
        document = self.results()
        self.assertEqual(document["failed"], 0)
        self.assertEqual(document["peer"], {"skipped": "no PyTorch: no python3"})
        self.assertTrue(document["device"]["name"].startswith("vulkan:"))
        for peak in document["peaks"].values():
            self.assertGreater(peak["median_ms"], 0)
        names = {bundle["bundle"] for run in document["runs"] for bundle in run["bundles"]}
        self.assertLessEqual({"products-product_64_f32.qnl", "int8-product_64_int8.qnl", "attention-attention_128_f16.qnl", "models-right.qnl"}, names)
        for run in document["runs"]:
            self.assertEqual(run["not_run"], [])
            for bundle in run["bundles"]:
                for test in bundle["tests"]:
                    self.assertTrue(test["passed"], test)
        # Every variant has run that the device can run.
        variants = {run: tests[0]["target"] for run, tests in self.found("attention-attention_128_f16.qnl").items()}
        self.assertEqual(variants["base"], "vulkan")
        for feature in ("subgroups", "float16", "coopmat"):
            if feature in document["device"]["features"]:
                self.assertEqual(variants[feature], f"vulkan+{feature}")
        best = self.found("products-product_64_f32.qnl")["best"][0]
        self.assertGreater(best["items_ms"], 0)
        self.assertGreater(best["runs"], 1)
        report = self.report()
        self.assertIn("multiply_adds_f32", report)
        self.assertIn("product_64_f32", report)

    def test_wrong_and_damaged_results_are_failures(self):
        self.model("right", None)
        self.model("wrong", [2.0] * DIM)
        kit = self.pack("--groups", "models")
        self.run_kit(kit, "--no-times", code=1)
        self.assertTrue(self.found("models-right.qnl")["best"][0]["passed"])
        self.assertFalse(self.found("models-wrong.qnl")["best"][0]["passed"])
        self.assertIn("models-wrong.qnl", self.report(code=1))
        damaged = os.path.join(kit, "bundles", "models-right.qnl")
        with open(damaged, "rb") as file:
            data = bytearray(file.read())
        at = data.rindex(struct.pack("<f", 20 / DIM))
        data[at + 2] ^= 127
        with open(damaged, "wb") as file:
            file.write(data)
        self.run_kit(kit, "--no-times", code=1)
        self.assertIn("hash", self.found("models-right.qnl")["best"])
        if "validation" in self.found("models-right.qnl"):  # a pass that checks no hashes
            self.assertFalse(self.found("models-right.qnl")["validation"][0]["passed"])

    def test_a_bundle_that_kills_the_runner_is_a_failure_and_the_rest_runs(self):
        self.model("a_right", None)
        self.model("b_right", None)
        kit = self.pack("--groups", "models")
        # A runner that dies on one bundle.
        os.rename(os.path.join(kit, "quernel-run"), os.path.join(kit, "real-run"))
        with open(os.path.join(kit, "quernel-run"), "w") as file:
            file.write('#!/bin/sh\ncase "$1" in *a_right*) echo oops >&2; kill -9 $$ ;; esac\nexec "$(dirname "$0")/real-run" "$@"\n')
        self.run_kit(kit, "--no-times", code=1)
        bundles = {b["bundle"]: b for b in self.results()["runs"][0]["bundles"]}
        self.assertEqual(bundles["models-a_right.qnl"]["error"], "quernel-run ended with status 137: oops")
        self.assertTrue(bundles["models-b_right.qnl"]["tests"][0]["passed"])

    def test_wrong_command_lines(self):
        for arguments, says in ((["--nonsense"], "unknown option '--nonsense'"), (["--minutes", "x"], "--minutes: expected a number from 1 on, found 'x'"),
                                (["--minutes"], "--minutes: expected a value")):
            done = subprocess.run([os.path.join(GPU, "run.sh"), *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 2)
            self.assertIn(says, done.stderr)
        done = subprocess.run([os.path.join(GPU, "pack.sh"), self.path("kit.zip")], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 1)
        self.assertIn("expected the archive to write, NAME.tar.xz", done.stderr)


if __name__ == "__main__":
    if vulkan_environment() is None:
        skip("no Vulkan driver; toolchains/install_debian.sh --vulkan installs one")
    if not python_with_onnx():
        skip("no onnx for /usr/bin/python3; toolchains/install_debian.sh --bench installs it")
    unittest.main()
