#!/usr/bin/env python3
"""`quernel test --kit` packs tests for another machine, `--results` reports what ran there.

kits.py           kits for this machine, and what may be wrong with one or with its results
kits.py aarch64   a kit of 20 models, which runs in an empty folder under the emulator
"""
import glob
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import onnx_file as onnx
from linux_devices import ARCHITECTURES, build_runner
from tools import ROOT, SANITIZED, ToolTest, skip, test_data, tool

NODE_TESTS = "/usr/share/libonnx-testdata/data/node"
MODELS = ["mnist_8", "micro_kws_fp32", "micro_kws_qdq", "micro_kws_qoperator", "fsmn_vad_online", "cct_2_opset20", "dtln_1", "lgbm_classifier_tensor"]
TARGET = "x86-64"
DIM = 96  # a matrix of this size counts as large


def numbers(seed, count):
    generator = random.Random(seed)
    return [generator.gauss(0, 1) for _ in range(count)]


def value_free(text):
    """Without times, memory and what else differs from run to run."""
    return re.sub(r"; .*", "", text)


class Kits(ToolTest):
    def case(self, name, op="Relu", answer=None, weights=None):
        """A test directory of y = op(x), or of y = x times weights."""
        values = numbers(1, DIM)
        node, initializers = onnx.node(op, ["x"], ["y"], "the_node"), []
        if weights:
            node, initializers = onnx.node("MatMul", ["x", "w"], ["y"], "the_node"), [onnx.float_tensor("w", [DIM, DIM], weights)]
            answer = [sum(values[i] * weights[i * DIM + j] for i in range(DIM)) for j in range(DIM)]
        shaped = [onnx.value(n, onnx.FLOAT, [1, DIM]) for n in "xy"]
        folder = os.path.join(self.dir, name, "test_data_set_0")
        os.makedirs(folder)
        self.write(f"{name}/model.onnx", onnx.model([node], shaped[:1], shaped[1:], initializers))
        self.write(f"{name}/test_data_set_0/input_0.pb", onnx.float_tensor("x", [1, DIM], values))
        answer = answer or [max(v, 0.0) for v in values]
        self.write(f"{name}/test_data_set_0/output_0.pb", onnx.float_tensor("y", [1, DIM], answer))
        return name

    def cases(self):
        return [self.case("right"), self.case("wrong", answer=[2.0] * DIM), self.case("unknown", op="NoSuchOperator")]

    def kit(self, name, *arguments, code=0):
        done = self.run_tool("quernel", "test", "--kit", name, "--target", TARGET, *arguments)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout

    def run_kit(self, name, *arguments, code=0, folder=None):
        """Runs it as on a machine that has nothing else: in a folder of its own, without an environment."""
        there = os.path.join(self.dir, folder or "there-" + name)
        if not os.path.exists(there):
            shutil.copytree(self.path(name), there)
        done = subprocess.run(["./run.sh", *arguments], cwd=there, env={"PATH": "/usr/bin:/bin"}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240)
        self.assertEqual(done.returncode, code, done.stdout)
        return os.path.join(there, "results.json"), done.stdout

    def report(self, results, *arguments, code=0):
        done = self.run_tool("quernel", "test", "--results", results, *arguments)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout

    def test_a_report_is_that_of_a_run_here(self):
        cases = self.cases()
        self.assertIn("UNSUPPORTED unknown", self.kit("kit", *cases, "--allow-unsupported", "1"))
        results, said = self.run_kit("kit", code=1)
        for line in ("[1/2] right: passed", "[2/2] wrong: failed"):
            self.assertIn(line, said)
        there = self.report(results, "--allow-unsupported", "1", "--json", "there.json", "--junit", "there.xml", code=1)
        here = self.run_tool("quernel", "test", *cases, "--target", TARGET, "--allow-unsupported", "1", "--json", "here.json", "--junit", "here.xml")
        here_lines = [line for line in here.stdout.splitlines() if not line.startswith("  ")]  # layers are compared here only
        self.assertEqual([value_free(line) for line in there.splitlines()], [value_free(line) for line in here_lines])
        documents = [json.loads(self.read(f"{place}.json")) for place in ("here", "there")]
        for member in ("passed", "failed", "unsupported", "device", "threads"):
            self.assertEqual(documents[0][member], documents[1][member])
        for ours, theirs in zip(documents[0]["cases"], documents[1]["cases"]):
            for member in ("name", "verdict", "reason"):
                self.assertEqual(ours[member], theirs[member])
            self.assertEqual(len(ours.get("runs", [])), len(theirs.get("runs", [])))
        test = documents[1]["cases"][0]["runs"][0]["tests"][0]
        self.assertGreater(test["median_ms"], 0)
        self.assertEqual([item["node"] for item in test["items"]], ["the_node"])
        self.assertGreater(documents[1]["cases"][0]["runs"][0]["peak_rss_bytes"], 0)
        self.assertGreater(documents[1]["machine"]["memory_bytes"], 0)
        names = [re.findall(r'<testcase classname="[^"]*" name="([^"]*)"', self.read(f"{place}.xml").decode()) for place in ("here", "there")]
        self.assertEqual(names[0], names[1])

    def test_damaged_results_are_refused(self):
        self.kit("kit", self.case("right"), self.case("wrong", answer=[2.0] * DIM))
        results, _ = self.run_kit("kit", code=1)
        with open(results, "rb") as file:
            good = file.read()
        step = 1 if not SANITIZED else 40
        positions = range(0, len(good), max(step, len(good) // 150))
        damaged = [good[:at] + bytes([good[at] ^ 1]) + good[at + 1:] for at in positions if not good[at:at + 1].isspace()]
        damaged += [good[:len(good) // 2], good[:-2], b"", b"{}", good.replace(b'"passed": false', b'"passed": true')]
        for data in damaged:
            self.assertNotEqual(data, good)
            self.write("damaged.json", data)
            self.fails("quernel", "test", "--results", "damaged.json", says=["damaged.json"])
        self.report(results, code=1)

    def test_results_of_another_kit_are_refused(self):
        self.kit("one", self.case("right"))
        self.kit("two", self.case("also_right"))
        results, _ = self.run_kit("one")
        self.fails("quernel", "test", "--results", results, "--kit", "two", says=["expected results of kit", "which is in 'two'"])
        shutil.copy(results, self.path("two/results.json"))
        self.fails("quernel", "test", "--results", "two/results.json", says=["expected results of kit"])
        self.assertIn("PASS right", self.report("two/results.json", "--kit", "one"))

    def test_a_record_that_is_missing_is_a_failure(self):
        self.kit("kit", self.case("right"), self.case("also_right"))
        results, _ = self.run_kit("kit")
        there = os.path.dirname(results)
        os.remove(os.path.join(there, "parts", "1-0.qnl.json"))
        self.write(os.path.join(there, "cases", "1-0.qnl"), b"no bundle")
        _, said = self.run_kit("kit", "--continue", code=1)
        self.assertEqual(said.count("passed"), 0, "what has run is not run again")
        self.assertIn("FAIL also_right: ", self.report(results, code=1))
        with open(results) as file:
            text = file.read()
        record = next(line for line in text.splitlines() if '"bundle": "1-0.qnl"' in line)
        self.write("fewer.json", text.replace(",\n" + record + "\n", "").encode())
        self.assertIn("FAIL also_right: 1-0.qnl was not run there", self.report("fewer.json", code=1))

    def test_a_run_that_takes_too_long_is_a_failure(self):
        self.kit("kit", self.case("right"), "--repeat", "1000000", "--timeout", "0.01")
        results, _ = self.run_kit("kit", code=1)
        self.assertIn("quernel-run timed out after 0.01 s", self.report(results, code=1))

    def test_damaged_bundles_are_failures(self):
        weights = numbers(2, DIM * DIM)
        self.kit("kit", self.case("weights", weights=weights))
        data = bytearray(self.read("kit/cases/0-0.qnl"))
        data[data.index(struct.pack("<f", weights[5000]))] ^= 1
        self.write("kit/cases/0-0.qnl", data)
        results, _ = self.run_kit("kit", code=1)
        self.assertIn("quernel-run exited with 1: quernel-run: 'cases/0-0.qnl'", self.report(results, code=1))

    def test_what_exceeds_the_limit_is_left_out_and_said(self):
        weights = numbers(2, DIM * DIM)
        cases = [self.case("large", weights=weights), self.case("right")]
        runner = os.path.getsize(tool("quernel-run")) / 1e6
        said = self.kit("kit", *cases, "--kit-limit", str(runner + 0.03), code=1)
        self.assertRegex(said, "UNSUPPORTED large: left out of the kit.*--random-weights makes it smaller")
        results, _ = self.run_kit("kit")
        said = self.report(results, code=1)
        self.assertRegex(said, "UNSUPPORTED large: left out of the kit")
        self.assertIn("1 passed, 0 failed, 1 unsupported", said)

    def test_random_weights_need_not_travel(self):
        """They are of the seed, and give a network whose outputs this machine knows."""
        weights = numbers(2, DIM * DIM)
        case = self.case("product", weights=weights)
        sizes = {}
        for kit, options in (("full", []), ("first", ["--random-weights", "1"]), ("second", ["--random-weights", "2"]), ("again", ["--random-weights", "1"])):
            self.kit(kit, case, *options)
            files = glob.glob(self.path(kit + "/cases/*"))
            sizes[kit] = sum(os.path.getsize(f) for f in files)
            results, _ = self.run_kit(kit)
            self.assertIn("PASS product: 1 test vector", self.report(results))
        self.assertLess(sizes["first"], sizes["full"] / 4)
        hashes = {kit: json.loads(self.read(kit + "/kit.json"))["contents"]["cases"][0]["bundles"][0]["hash"] for kit in sizes}
        self.assertEqual(hashes["first"], hashes["again"])
        self.assertEqual(len({hashes[kit] for kit in ("full", "first", "second")}), 3, hashes)

    def test_a_folder_may_have_any_name_and_results_another_place(self):
        self.kit("my kit's", self.case("the 'right' case"))
        results, said = self.run_kit("my kit's", "--output", "../out put")
        self.assertIn("the 'right' case: passed", said)
        self.assertFalse(os.path.exists(results))
        self.assertIn("PASS the 'right' case", self.report("out put/results.json"))

    def test_a_command_in_front_and_options_of_the_runner(self):
        self.kit("kit", self.case("right"))
        results, _ = self.run_kit("kit", "--with", "env SOME=thing", "--threads", "2")
        self.report(results, "--json", "out.json")
        self.assertEqual(json.loads(self.read("out.json"))["cases"][0]["runs"][0]["threads"], 2)
        _, said = self.run_kit("kit", "--no-such-option", code=2)
        self.assertIn("unknown option '--no-such-option'", said)
        _, said = self.run_kit("kit", "--with", "false", code=1)
        self.assertIn("a program for Linux on x86-64, does not start on this machine", said)

    def test_what_makes_no_kit_is_refused(self):
        case = self.case("right")

        def refuse(*arguments, says, code=1):
            self.fails("quernel", "test", *arguments, says=[says], code=code)
        refuse(case, "--kit", "kit", says="--kit: expected --target, what the other machine runs", code=2)
        refuse(case, "--kit", "right", "--target", TARGET, says="--kit: expected a new folder or an empty one")
        refuse(case, "--kit", "kit", "--target", TARGET, "--target", "aarch64", says="--kit: expected code for one architecture")
        refuse(case, "--kit", "kit", "--target", TARGET, "--json", "f", code=2,
               says="leave out --on, --json, --junit, --per-kernel, --pipeline-cache, --choice and --choose-anew")
        refuse(case, "--kit", "kit", "--target", "cortex-m4", says="target 'cortex-m4' is firmware")
        refuse(case, "--random-weights", "1", says="--random-weights and --kit-limit: expected --kit, too", code=2)
        refuse(case, "--kit-limit", "1", says="--random-weights and --kit-limit: expected --kit, too", code=2)
        refuse(says="expected bundles, models or folders to test, or --results", code=2)
        refuse(case, "--results", "results.json", says="--results: expected no models, which the kit names", code=2)
        refuse("--results", "results.json", "--target", TARGET, code=2,
               says="--results: the tests have run: leave out --target, --on, --run-binary, --device, --threads, --repeat, --random-weights and --kit-limit")
        refuse(self.compile_digits(), "--kit", "kit", "--target", TARGET, "--random-weights", "1",
               says="--random-weights: expected a model, found a bundle")
        refuse(self.compile_digits(), "--target", TARGET, says="--target: expected models, which are compiled for it, found a bundle")
        self.write("static", self.read(tool("quernel-run")).replace(b"libvulkan.so.1", b"libnothing.so."))
        refuse(case, "--kit", "kit", "--target", "vulkan", "--device", "vulkan", "--run-binary", "static",
               says="--run-binary: expected a program that can load the Vulkan loader")

    def test_results_that_no_kit_gives_are_refused(self):
        self.kit("kit", self.case("right"))
        results, _ = self.run_kit("kit")
        with open(results) as file:
            good = file.read()

        def refuse(text, says):
            self.write("bad.json", text.encode())
            self.fails("quernel", "test", "--results", "bad.json", says=[says])
        record = next(line for line in good.splitlines() if line.startswith('{"check"'))
        refuse("[]", "expected results of a kit, of version 1, found another document")
        refuse(good.replace('"quernel_kit"', '"quernel_cat"'), "expected a kit of quernel test")
        refuse(good.replace('"quernel_kit": 1', '"quernel_kit": 2'), "use the quernel that made the kit")
        refuse(good.replace('"name": "right"', '"name": "wrong"'), "the kit's contents are not those that its id says: the file is damaged")
        refuse(good[:-9], "bring the file back as run.sh wrote it")
        refuse(good.replace(record, record.replace('", "result": ', '",  "result": ')), "expected a record of quernel-run")
        refuse(good.replace('"signal": 0', '"signal": 1'), "a record is not what its hash says")
        refuse(good.replace(record, record + "\n,\n" + record), "'0-0.qnl' is there twice")
        refuse(good.replace(record, " " + record), "expected every record on a line of its own")
        self.kit("other", self.case("first"), self.case("second"))
        with open(self.run_kit("other")[0]) as file:
            theirs = [line for line in file.read().splitlines() if line.startswith('{"check"')]
        refuse(good.replace(record, "\n,\n".join(theirs)), "expected records of the kit's bundles, found one of another")

    def test_random_weights_need_a_float_to_compare(self):
        folder = os.path.join(self.dir, "integers", "test_data_set_0")
        os.makedirs(folder)
        node = onnx.node("ArgMax", ["x"], ["y"], attributes=[onnx.int_attribute("axis", 1)])
        self.write("integers/model.onnx", onnx.model([node], [onnx.value("x", onnx.FLOAT, [1, 4])], [onnx.value("y", onnx.INT64, [1, 1])]))
        self.write("integers/test_data_set_0/input_0.pb", onnx.float_tensor("x", [1, 4], [1, 3, 2, 0]))
        self.write("integers/test_data_set_0/output_0.pb", onnx.int_tensor("y", [1, 1], [1]))
        self.assertIn("with random weights expected an output of floats, found none", self.kit("kit", "integers", "--random-weights", "1", code=1))
        os.makedirs(self.path("empty/test_data_set_0"))
        nodes = [onnx.node("ArgMax", ["x"], ["i"], attributes=[onnx.int_attribute("axis", 0)]),
                 onnx.node("Cast", ["i"], ["y"], attributes=[onnx.int_attribute("to", onnx.FLOAT)])]
        self.write("empty/model.onnx", onnx.model(nodes, [onnx.value("x", onnx.FLOAT, ["n"])], [onnx.value("y", onnx.FLOAT, [1])]))
        self.write("empty/test_data_set_0/input_0.pb", onnx.float_tensor("x", [0], []))
        self.assertIn("with random weights on this machine: ", self.kit("two", "empty", "--random-weights", "1", code=1))

    def test_a_record_says_what_it_needs(self):
        self.compile_digits()
        for arguments, says in ((["--record", "r"], "--record: expected --test, too"), (["--test", "--timeout", "1"], "--timeout: expected --record, too")):
            done = self.run_tool("quernel-run", "digits.qnl", *arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn(says, done.stderr)
        self.fails("quernel-run", "digits.qnl", "--test", "--record", "none/r", code=3, says=["cannot create a file beside it"])


def twenty_models(architecture, target):
    """The kit of a cross target, run where there is nothing but the kit, the emulator and a shell."""
    runner = build_runner(architecture)
    models = [path for path in (os.path.join(test_data(), "models", name) for name in MODELS) if os.path.isdir(path)]
    nodes = sorted(glob.glob(NODE_TESTS + "/test_*conv_*") + glob.glob(NODE_TESTS + "/test_*softmax*"))[:20 - len(models)]
    if len(models + nodes) < 20:
        skip(f"expected 20 models in {test_data()} and {NODE_TESTS}, found {len(models + nodes)}")
    with tempfile.TemporaryDirectory(prefix="quernel-test-") as folder:
        def run(*command, cwd=ROOT):
            done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            print(done.stdout, end="", flush=True)
            return done

        kit = os.path.join(folder, "kit")
        run(tool("quernel"), "test", *models, *nodes, "--kit", kit, "--target", target, "--run-binary", runner)
        there = os.path.join(folder, "there")
        shutil.copytree(kit, there)
        if run("./run.sh", "--with", f"{architecture.emulator} -cpu {architecture.targets[target]}", cwd=there).returncode != 0:
            sys.exit("run.sh: expected every bundle to pass")
        if os.path.exists(os.path.join(kit, "results.json")):
            sys.exit("expected results in the copy only")
        done = run(tool("quernel"), "test", "--results", os.path.join(there, "results.json"), "--kit", kit)
        here = run(tool("quernel"), "test", *models, *nodes, "--target", "native")
        if done.returncode != 0 or [value_free(l).split(", max")[0] for l in done.stdout.splitlines()[1:]] != [value_free(l).split(", max")[0] for l in here.stdout.splitlines()]:
            sys.exit("expected the report of a run here")


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in ARCHITECTURES:
        twenty_models(ARCHITECTURES[sys.argv[1]], sys.argv[1])
    else:
        unittest.main()
