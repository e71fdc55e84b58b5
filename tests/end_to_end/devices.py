#!/usr/bin/env python3
"""Test vectors in bundles, `quernel test`, and where --on says: here, under an emulator, over ssh (an sshd of this test's own
on the loopback interface), over adb (a stand-in that speaks its command line), behind a command. What hangs, dies, is of
another architecture or cannot be reached is told, and nothing stays on the device.
"""
import glob
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
import unittest
import xml.etree.ElementTree

import onnx_file as onnx
from tools import ROOT, TIME_LIMIT, ToolTest, tool

VALUES = [-2.0, -1.0, 0.0, 1.0, 2.5, 8.0]
RELU = [max(v, 0.0) for v in VALUES]
SSHD = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
EMULATOR = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
AARCH64_RUNNER = os.path.join(ROOT, "build", "aarch64", "bin", "quernel-run")

ADB = """#!/bin/sh
# A device for adb: its files below $ADB_ROOT/SERIAL, in place of /data/local/tmp.
serial=emulator-5554
if [ "$1" = -s ]; then serial=$2; shift 2; fi
root=$ADB_ROOT/$serial
if [ ! -d "$root" ]; then echo "adb: device '$serial' not found" >&2; exit 1; fi
command=$1; shift
inside() { printf %s "$1" | sed "s|/data/local/tmp|$root|g"; }
case $command in
  push) cp "$1" "$(inside "$2")" && echo "$1: 1 file pushed" ;;
  pull) cp "$(inside "$1")" "$2" && echo "$1: 1 file pulled" ;;
  shell)
    out=$(mktemp); sh -c "$(inside "$*")" >"$out"; status=$?
    sed "s|$root|/data/local/tmp|g" "$out"; rm -f "$out"; exit $status ;;
  *) echo "adb: unknown command $command" >&2; exit 1 ;;
esac
"""


def relu_model(op="Relu"):
    return onnx.model([onnx.node(op, ["x"], ["y"], name="layer")], [onnx.value("x", onnx.FLOAT, [2, 3])],
                      [onnx.value("y", onnx.FLOAT, [2, 3])])


class DeviceTest(ToolTest):
    def setUp(self):
        super().setUp()
        self.environment = dict(os.environ)

    def program(self, name, text):
        """An executable script in a folder that comes first in PATH."""
        folder = self.path("programs")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, 0o755)
        self.environment["PATH"] = folder + ":" + os.environ["PATH"]
        return path

    def case(self, name, expected):
        os.makedirs(self.path(name + "/test_data_set_0"))
        self.write(name + "/model.onnx", relu_model())
        self.write(name + "/test_data_set_0/input_0.pb", onnx.float_tensor("x", [2, 3], VALUES))
        self.write(name + "/test_data_set_0/output_0.pb", onnx.float_tensor("y", [2, 3], expected))
        return name

    def verify(self, on, *arguments, code=0):
        done = self.run_tool("quernel", "verify", "--on", on, *arguments, env=self.environment)
        self.assertEqual(done.returncode, code, f"--on {on}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def runs_there(self, on, *options):
        """The right answer passes, a wrong one is told; by verify, and as test vectors of a bundle."""
        self.runs_verify(on, *options)
        done = self.run_tool("quernel", "test", "right", "wrong", "--on", on, *options, env=self.environment)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("PASS right: 1 test vector, max abs error 0; ", done.stdout)
        self.assertIn("FAIL wrong: test_data_set_0: output 'y': 1 of 6 elements", done.stdout)
        self.assertIn("first diverging layer: none of 1 layers is off", done.stdout)

    def runs_verify(self, on, *options):
        self.case("right", RELU)
        self.case("wrong", RELU[:5] + [8.1])
        self.assertIn("PASS right: 1 data set", self.verify(on, "right", *options))
        self.assertIn("worst at [1,2]: expected 8.1000004, found 8", self.verify(on, "right", "wrong", *options, code=1))


class TestVectors(DeviceTest):
    """compile --embed-tests, quernel-run --test, inspect."""

    def embed(self, name, *options):
        self.succeeds("quernel", "compile", name + "/model.onnx", "-o", name + ".qnl", "-q", "--embed-tests", *options)
        return name + ".qnl"

    def test_embedded(self):
        right = self.embed(self.case("right", RELU))
        self.assertIn("PASS test_data_set_0: ", self.succeeds("quernel-run", right, "--test"))
        self.assertIn("output  y  f32[2,3]  24 B, within rtol 0.001, atol 1e-07", self.succeeds("quernel", "inspect", right))
        self.case("wrong", RELU[:5] + [8.1])
        self.succeeds("quernel", "compile", "right/model.onnx", "-o", "other.qnl", "-q", "--embed-tests=wrong")
        done = self.run_tool("quernel-run", "other.qnl", "--test", "--json")
        self.assertEqual(done.returncode, 1)
        test = json.loads(done.stdout)["tests"][0]
        self.assertIn("worst at [1,2]", test["outputs"][0]["message"])
        self.assertEqual((test["passed"], len(test["items"])), (False, 1))
        self.write("wrong/tolerance.json", b'{"rtol": 0.1, "outputs": {"y": {"atol": 0.5, "mean_atol": 0.25, "top1": true}}}')
        self.assertIn("PASS", self.succeeds("quernel-run", self.embed("wrong"), "--test"))
        tensor = json.loads(self.succeeds("quernel", "inspect", "wrong.qnl", "--json"))["test_vectors"][0]["tensors"][1]
        self.assertEqual([tensor[k] for k in ("rtol", "atol", "mean_atol", "top1")], [0.1, 0.5, 0.25, True])

    def test_the_same_bytes_but_for_the_vectors(self):
        self.case("right", RELU)
        self.succeeds("quernel", "compile", "right/model.onnx", "-o", "plain.qnl", "-q")
        plain = self.read("plain.qnl")
        self.assertGreater(len(self.read(self.embed("right"))), len(plain))
        self.fails("quernel-run", "plain.qnl", "--test", says=["'plain.qnl': holds no test vectors; quernel compile --embed-tests stores some"])

    def test_free_dims_take_every_size(self):
        os.makedirs(self.path("free/test_data_set_0"))
        self.write("free/model.onnx", onnx.model([onnx.node("Relu", ["x"], ["y"])], [onnx.value("x", onnx.FLOAT, ["n", 3])],
                                                 [onnx.value("y", onnx.FLOAT, ["n", 3])]))
        for k, rows in enumerate((1, 2, 70000)):
            os.makedirs(self.path(f"free/test_data_set_{k}"), exist_ok=True)
            self.write(f"free/test_data_set_{k}/input_0.pb", onnx.float_tensor("x", [rows, 3], VALUES[1:4] * rows))
            self.write(f"free/test_data_set_{k}/output_0.pb", onnx.float_tensor("y", [rows, 3], RELU[1:4] * rows))
        self.assertIn("3 passed, 0 failed", self.succeeds("quernel-run", self.embed("free"), "--test"))

    def test_data_that_does_not_fit(self):
        self.case("case", RELU)
        compile_case = ("quernel", "compile", "case/model.onnx", "-o", "case.qnl", "-q", "--embed-tests")
        self.write("case/test_data_set_0/input_0.pb", onnx.float_tensor("x", [3, 2], VALUES))
        self.fails(*compile_case, says=["test_data_set_0: input 'x': expected f32[2,3], found f32[3,2]"])
        self.write("case/test_data_set_0/input_0.pb", b"hello")
        self.fails(*compile_case, says=["test_data_set_0/input_0.pb: "])
        os.remove(self.path("case/test_data_set_0/input_0.pb"))
        self.fails(*compile_case, says=["test_data_set_0: no file for input 'x'"])
        self.write("case/test_data_set_0/input_0.pb", onnx.float_tensor("x", [2, 3], VALUES))
        self.write("case/test_data_set_0/output_1.pb", onnx.float_tensor("z", [2, 3], VALUES))
        self.fails(*compile_case, says=["test_data_set_0: expected a file for each of 1 outputs, found 2 files"])
        self.fails(*compile_case, "--emit", "static", code=2, says=["--embed-tests: expected --emit bundle, found static", "only a bundle has room for test vectors"])
        os.mkdir(self.path("none"))
        self.fails(*compile_case[:-1], "--embed-tests=none", says=["none: --embed-tests: expected folders test_data_set_0, …; found none"])

    def test_states_begin_as_the_data_has_them(self):
        os.makedirs(self.path("sum/test_data_set_0"))
        self.write("sum/model.onnx", onnx.model([onnx.node("Add", ["x", "s"], ["t"])],
                                                [onnx.value("x", onnx.FLOAT, [2]), onnx.value("s", onnx.FLOAT, [2])],
                                                [onnx.value("t", onnx.FLOAT, [2])]))
        self.write("sum/test_data_set_0/input_0.pb", onnx.float_tensor("x", [2], [1.0, 2.0]))
        self.write("sum/test_data_set_0/input_1.pb", onnx.float_tensor("s", [2], [0.0, 0.0]))
        self.write("sum/test_data_set_0/output_0.pb", onnx.float_tensor("t", [2], [1.0, 2.0]))
        self.assertIn("1 passed", self.succeeds("quernel-run", self.embed("sum", "--state", "s=t"), "--test", "--repeat", "3"))
        self.write("sum/test_data_set_0/input_1.pb", onnx.float_tensor("s", [2], [0.0, 1.0]))
        os.remove(self.path("sum.qnl"))
        self.fails("quernel", "compile", "sum/model.onnx", "-o", "sum.qnl", "-q", "--embed-tests", "--state", "s=t",
                   says=["expected the value that the bundle is compiled with or begins with for input 's', found another"])


class Reports(DeviceTest):
    """quernel test."""

    def report(self, *arguments, code=0):
        done = self.run_tool("quernel", "test", *arguments, env=self.environment)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout

    def test_bundles_models_and_directories(self):
        self.case("all/right", RELU)
        self.case("all/wrong", RELU[:5] + [8.1])
        self.succeeds("quernel", "compile", "all/right/model.onnx", "-o", "right.qnl", "-q", "--embed-tests")
        self.assertIn("PASS right.qnl: 1 test vector, max abs error 0; ", self.report("right.qnl"))
        self.assertIn("PASS model.onnx: 1 test vector", self.report("all/right/model.onnx", "--per-kernel"))
        said = self.report("all", "right.qnl", "--json", "all.json", "--junit", "all.xml", "--jobs", "2", code=1)
        self.assertIn("FAIL wrong: test_data_set_0: output 'y': 1 of 6 elements", said)
        self.assertIn("first diverging layer: none of 1 layers is off when each stores its result", said)
        self.assertIn("2 passed, 1 failed, 0 unsupported", said)
        report = json.loads(self.read("all.json"))
        self.assertEqual([(c["name"], c["verdict"]) for c in report["cases"]], [("right", "PASS"), ("wrong", "FAIL"), ("right.qnl", "PASS")])
        suite = xml.etree.ElementTree.fromstring(self.read("all.xml"))
        self.assertEqual((suite.get("tests"), suite.get("failures")), ("3", "1"))
        self.assertIn("worst at [1,2]", suite.findall("testcase")[1].find("failure").get("message"))

    def test_time_of_each_kernel(self):
        self.case("right", RELU)
        self.assertRegex(self.report("right", "--per-kernel"), r"time +share +kernel +first node\n.*100\.0%  map_0")

    def test_nothing_to_test(self):
        self.case("right", RELU)
        self.succeeds("quernel", "compile", "right/model.onnx", "-o", "plain.qnl", "-q")
        self.assertIn("FAIL plain.qnl: error[invalid input]: ", self.report("plain.qnl", code=1))
        self.assertIn("holds no test vectors", self.report("plain.qnl", code=1))
        shutil.rmtree(self.path("right/test_data_set_0"))
        self.assertIn("expected a folder test_data_set_0 beside the model", self.report("right", code=1))
        self.fails("quernel", "test", "none", says=["expected a directory with a model.onnx or model.tflite, found none"])

    def test_unsupported_is_told(self):
        self.case("unknown", RELU)
        self.write("unknown/model.onnx", relu_model("Bogus"))
        said = self.report("unknown", "--junit", "-", "--allow-unsupported", "unknown")
        self.assertIn("UNSUPPORTED unknown: error[unsupported]", said)
        self.assertIn("<skipped message=", said)

    def test_runners_that_hang_or_die(self):
        self.case("right", RELU)
        begin = '#!/bin/sh\ncase "$*" in *--version*) exec "$@" ;; esac\n'
        hanging = self.program("hanging", begin + "sleep 1000\n")
        self.assertIn("hanging timed out after 2 s", self.report("right", "--on", hanging, "--timeout", "2", code=1))
        dying = self.program("dying", begin + "echo words >&2\nkill -SEGV $$\n")
        self.assertIn("dying was killed by Segmentation fault: words", self.report("right", "--on", dying, code=1))
        babbling = self.program("babbling", begin + "echo hello\n")
        self.assertIn("the runner's output", self.report("right", "--on", babbling, code=1))

    def test_the_first_layer_that_is_off_is_named(self):
        """A device whose second layer is wrong, and with it the third."""
        os.makedirs(self.path("case/test_data_set_0"))
        nodes = [onnx.node("Relu", ["x"], ["a"], name="first"), onnx.node("Neg", ["a"], ["b"], name="second"),
                 onnx.node("Exp", ["b"], ["y"], name="third")]
        self.write("case/model.onnx", onnx.model(nodes, [onnx.value("x", onnx.FLOAT, [2, 3])], [onnx.value("y", onnx.FLOAT, [2, 3])]))
        self.write("case/test_data_set_0/input_0.pb", onnx.float_tensor("x", [2, 3], VALUES))
        self.write("case/test_data_set_0/output_0.pb", onnx.float_tensor("y", [2, 3], [0.0] * 6))
        wrong = onnx.float_tensor("", [2, 3], [-(v + 1) for v in RELU])
        self.write("wrong.pb", wrong)
        lying = self.program("lying", f"""#!/bin/sh
"$@"; status=$?
previous= count=0 total=0
for word; do
  if [ "$word" = --output ]; then total=$((total + 1)); fi
done
for word; do
  if [ "$previous" = --output ]; then
    count=$((count + 1))
    if [ $count = $((total - 1)) ]; then cp {self.path("wrong.pb")} "${{word#*=}}"; fi
  fi
  previous=$word
done
exit $status
""")
        said = self.report("case", "--on", lying, code=1)
        self.assertRegex(said, r"first diverging layer: 'second' \(Neg\): 6 of 6 elements beyond .* worst at ")

    def test_layers_of_more_dims_than_an_output_has(self):
        os.makedirs(self.path("deep/test_data_set_0"))
        nodes = [onnx.node("Reshape", ["x", "many"], ["a"], name="unfold"), onnx.node("Neg", ["a"], ["b"], name="negate"),
                 onnx.node("Reshape", ["b", "few"], ["y"], name="fold")]
        self.write("deep/model.onnx", onnx.model(nodes, [onnx.value("x", onnx.FLOAT, [2, 3])], [onnx.value("y", onnx.FLOAT, [2, 3])],
                                                 [onnx.int_tensor("many", [9], [1, 2, 1, 1, 1, 1, 1, 3, 1]), onnx.int_tensor("few", [2], [2, 3])]))
        self.write("deep/test_data_set_0/input_0.pb", onnx.float_tensor("x", [2, 3], VALUES))
        self.write("deep/test_data_set_0/output_0.pb", onnx.float_tensor("y", [2, 3], VALUES))
        self.assertRegex(self.report("deep", code=1), r"first diverging layer: none of \d layers is off when each stores its result")

    def test_layers_that_cannot_be_compared(self):
        os.makedirs(self.path("sized/test_data_set_0"))
        self.write("sized/model.onnx", onnx.model([onnx.node("NonZero", ["x"], ["y"])], [onnx.value("x", onnx.FLOAT, [3])],
                                                  [onnx.value("y", onnx.INT64, [1, "n"])]))
        self.write("sized/test_data_set_0/input_0.pb", onnx.float_tensor("x", [3], [1.0, 0.0, 2.0]))
        self.write("sized/test_data_set_0/output_0.pb", onnx.int_tensor("y", [1, 2], [0, 1]))
        self.assertIn("first diverging layer: the layers cannot be compared: sizes that are known during a run only",
                      self.report("sized", code=1))
        self.case("case", RELU[:5] + [8.1])
        begin = '#!/bin/sh\ncase "$*" in *layers.qnl*) echo words >&2; exit 3 ;; esac\nexec "$@"\n'
        self.assertIn("failing exited with 3: words", self.report("case", "--on", self.program("failing", begin), code=1))


class Here(DeviceTest):
    def test_local(self):
        self.runs_there("local")

    def test_a_named_binary(self):
        self.runs_there("local", "--run-binary", tool("quernel-run"))

    def test_behind_a_command(self):
        self.runs_there("env A=b")

    def test_what_on_does_not_know(self):
        self.case("right", RELU)
        for on, says in (("no-such-emulator -x", "there is no program 'no-such-emulator'"), (" ", "--on: expected local, qemu"),
                         ("ssh:", "--on: expected local"), ("ssh:host:port", "or a command that starts quernel-run, found 'ssh:host:port'")):
            self.fails("quernel", "verify", "right", "--on", on, says=[says])

    def test_binaries_that_cannot_be_it(self):
        self.case("right", RELU)
        self.write("text", b"hello")
        self.fails("quernel", "verify", "right", "--run-binary", "text", says=["--run-binary: expected a quernel-run, found no program"])
        self.fails("quernel", "verify", "right", "--run-binary", "/bin/true",
                   says=["--on local: expected quernel-run 0.1.0, found 'W", "build it again"])
        self.fails("quernel", "verify", "right", "--on", "false", says=["--on false: quernel-run does not start: false exited with 1"])
        broken = self.program("broken", "#!/no/such/shell\n")
        self.fails("quernel", "verify", "right", "--on", broken, says=[f"broken exited with 127: cannot start {broken}: No such file"])

    def test_a_runner_that_dies(self):
        self.case("right", RELU)
        dying = self.program("dying", '#!/bin/sh\ncase "$*" in *--version*) exec "$@" ;; esac\necho words >&2\nkill -SEGV $$\n')
        self.assertIn("dying was killed by Segmentation fault: words", self.verify(dying, "right", code=1))

    def test_a_runner_that_says_nothing(self):
        self.case("right", RELU)
        silent = self.program("silent", '#!/bin/sh\ncase "$*" in *--version*) exec "$@" ;; esac\n')
        self.assertIn("FAIL right: test_data_set_0: the runner's output: ", self.verify(silent, "right", code=1))

    def test_a_runner_that_hangs(self):
        self.case("right", RELU)
        hanging = self.program("hanging", '#!/bin/sh\ncase "$*" in *--version*) exec "$@" ;; esac\n'
                               f'sleep 1000 &\necho $! >{self.path("sleeper")}\nwait\n')
        self.assertIn("hanging timed out after 2 s", self.verify(hanging, "right", "--timeout", "2", code=1))
        with open(self.path("sleeper"), encoding="utf-8") as f:
            sleeper = int(f.read())
        self.assertTrue(ended(sleeper), "the process group of the runner should be gone")


def ended(process):
    """Whether a process is gone, or will be in a moment."""
    for _ in range(100):
        try:
            with open(f"/proc/{process}/stat", encoding="utf-8") as f:
                if f.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


class Emulated(DeviceTest):
    def setUp(self):
        super().setUp()
        if EMULATOR is None:
            self.skipTest("no qemu-aarch64-static: toolchains/install_debian.sh --cross installs it")

    def test_other_architectures_need_a_runner_of_theirs(self):
        self.case("right", RELU)
        self.fails("quernel", "verify", "right", "--on", "qemu", "--target", "aarch64", "--run-binary", tool("quernel-run"),
                   says=["--run-binary: expected a program for aarch64, found one for x86-64"])
        self.fails("quernel", "verify", "right", "--on", "qemu-aarch64", "--target", "x86-64",
                   says=["the device is aarch64, there is code for x86-64 only", "compile with a --target for it"])
        self.fails("quernel", "verify", "right", "--on", "qemu", "--target", "x86-64", "--target", "aarch64",
                   says=["expected code for one architecture, found x86-64, aarch64", "name the emulator's, as in qemu-aarch64"])

    def test_what_is_not_built(self):
        """Seen from a folder of its own, where no other build is found."""
        self.case("right", RELU)
        os.makedirs(self.path("alone/bin"))
        shutil.copy(tool("quernel"), self.path("alone/bin/quernel"))
        for target, says in (("aarch64", "found no quernel-run for aarch64; name one with --run-binary, or build it: cmake --preset aarch64"),
                             ("armv7", "found no quernel-run for arm; name one with --run-binary, or build it: cmake --preset armv7")):
            done = subprocess.run([self.path("alone/bin/quernel"), "verify", "right", "--on", "qemu", "--target", target],
                                  cwd=self.dir, text=True, capture_output=True, timeout=TIME_LIMIT, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(says, done.stderr)

    def test_no_emulator(self):
        self.case("right", RELU)
        os.mkdir(self.path("empty"))
        self.fails("quernel", "verify", "right", "--on", "qemu", "--target", "aarch64", env={"PATH": self.path("empty")},
                   says=["found neither qemu-aarch64-static nor qemu-aarch64 in PATH", "Debian's package is qemu-user-static"])

    def test_runs_there(self):
        if not os.path.exists(AARCH64_RUNNER):
            self.skipTest("no build/aarch64: cmake --preset aarch64 && cmake --build --preset aarch64")
        if os.path.getmtime(AARCH64_RUNNER) < os.path.getmtime(tool("quernel-run")):
            self.skipTest("build/aarch64 is older than what is tested: cmake --build --preset aarch64")
        self.runs_there("qemu", "--target", "aarch64", "--run-binary", AARCH64_RUNNER)
        self.assertIn("PASS", self.verify("qemu-aarch64:cortex-a76", "right", "--target", "cortex-a76", "--target", "x86-64",
                                          "--run-binary", AARCH64_RUNNER))
        said = self.verify("qemu:cortex-a53", "right", "--target", "cortex-a76", "--run-binary", AARCH64_RUNNER, code=1)
        self.assertIn("has aarch64 (neon), the bundle has cortex-a76: aarch64 (neon fp16 dotprod)", said)


class Adb(DeviceTest):
    def setUp(self):
        super().setUp()
        self.program("adb", ADB)
        self.environment["ADB_ROOT"] = self.path("adb")
        for serial in ("emulator-5554", "phone"):
            os.makedirs(self.path("adb/" + serial))

    def device_files(self):
        return glob.glob(self.path("adb/*/*"))

    def test_runs_there(self):
        self.runs_there("adb")
        self.assertIn("PASS", self.verify("adb:phone", "right"))
        self.assertEqual(self.device_files(), [])

    def test_no_such_device(self):
        self.case("right", RELU)
        self.fails("quernel", "verify", "right", "--on", "adb:gone", env=self.environment,
                   says=["--on adb:gone: the device cannot be reached, or has no place for files: adb exited with 1", "device 'gone' not found"])

    def test_another_architecture(self):
        self.case("right", RELU)
        self.program("uname", "#!/bin/sh\necho aarch64\n")
        self.fails("quernel", "verify", "right", "--on", "adb", env=self.environment,
                   says=["the device is aarch64, there is code for x86-64 only"])
        self.program("uname", "#!/bin/sh\necho s390x\n")
        self.fails("quernel", "verify", "right", "--on", "adb", env=self.environment,
                   says=["expected an x86_64, aarch64, arm or riscv64 device, found 's390x'"])
        self.assertEqual(self.device_files(), [])

    def test_a_full_device(self):
        self.case("right", RELU)
        self.program("adb", ADB.replace("push) cp", "push) echo 'adb: no space left' >&2; exit 1; cp"))
        self.fails("quernel", "verify", "right", "--on", "adb", env=self.environment,
                   says=["cannot be written on the device: adb exited with 1: adb: no space left"])
        self.program("adb", ADB.replace("pull) cp", "pull) echo 'adb: gone' >&2; exit 1; cp"))
        self.assertIn("cannot be read from the device: adb exited with 1: adb: gone", self.verify("adb", "right", code=1))
        self.assertEqual(self.device_files(), [])

    def test_what_cannot_be_removed_is_named(self):
        self.case("right", RELU)
        self.program("rm", "#!/bin/sh\necho 'rm: not today' >&2\nexit 1\n")
        done = self.fails("quernel", "verify", "right", "--on", "adb", env=self.environment, lines=None,
                          says=["could not be removed from the device: adb exited with 1: rm: not today"])
        self.assertIn("/data/local/tmp/quernel-", done.stderr)
        self.assertEqual(len(self.device_files()), 1)


class Ssh(DeviceTest):
    @classmethod
    def setUpClass(cls):
        if SSHD is None or shutil.which("ssh") is None or shutil.which("ssh-keygen") is None:
            raise unittest.SkipTest("no sshd: toolchains/install_debian.sh --test installs it")

    def setUp(self):
        super().setUp()
        os.chmod(self.dir, stat.S_IRWXU)
        for key in ("host_key", "user_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.path(key)], check=True)
        shutil.copy(self.path("user_key.pub"), self.path("authorized_keys"))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        os.mkdir(self.path("device_tmp"))
        self.write("sshd_config", f"""Port {self.port}
ListenAddress 127.0.0.1
HostKey {self.path("host_key")}
AuthorizedKeysFile {self.path("authorized_keys")}
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
SetEnv TMPDIR={self.path("device_tmp")}
""".encode())
        with open(self.path("host_key.pub"), encoding="utf-8") as f:
            self.write("known_hosts", f"[127.0.0.1]:{self.port} {f.read()}".encode())
        self.program("ssh", f"""#!/bin/sh
exec {shutil.which("ssh")} -F none -i {self.path("user_key")} -o UserKnownHostsFile={self.path("known_hosts")} "$@"
""")
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        server = subprocess.Popen([SSHD, "-D", "-e", "-f", self.path("sshd_config")], stderr=subprocess.PIPE)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    break
            if server.poll() is not None:
                self.skipTest("sshd does not start: " + server.stderr.read().decode(errors="replace").strip())
            time.sleep(0.05)
        self.on = f"ssh:127.0.0.1:{self.port}"

    def device_files(self):
        return os.listdir(self.path("device_tmp"))

    def test_runs_there(self):
        self.runs_there(self.on)
        self.assertEqual(self.device_files(), [])

    def test_nobody_listens(self):
        self.case("right", RELU)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.fails("quernel", "verify", "right", "--on", f"ssh:127.0.0.1:{port}", env=self.environment,
                   says=["the device cannot be reached", "ssh exited with 255", "Connection refused"])

    def test_no_key_fits(self):
        self.case("right", RELU)
        self.write("authorized_keys", b"")
        self.fails("quernel", "verify", "right", "--on", self.on, env=self.environment,
                   says=["the device cannot be reached", "Permission denied"])

    def hanging_runner(self, says_version=True):
        """A program that says it is a quernel-run, or not even that, and then waits for ever."""
        source = self.write("hang.c", b"""#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int n, char** v) {
  if (SAYS_VERSION && n > 1 && strcmp(v[1], "--version") == 0) return puts("quernel-run 0.1.0") < 0;
  for (;;) pause();
}
""")
        subprocess.run([os.environ.get("QUERNEL_CC", "cc"), f"-DSAYS_VERSION={int(says_version)}", "-o", self.path("hang"), self.path(source)], check=True)
        return self.path("hang")

    def test_a_runner_that_hangs(self):
        self.case("right", RELU)
        said = self.verify(self.on, "right", "--timeout", "2", "--run-binary", self.hanging_runner(), code=1)
        self.assertIn("ssh timed out after 2 s", said)
        self.assertEqual(self.device_files(), [])
        self.assertEqual(processes_of(self.path("device_tmp")), [])

    def interrupt(self, runner):
        """`verify` is interrupted as soon as its runner is on the device and runs."""
        self.case("right", RELU)
        verify = subprocess.Popen([tool("quernel"), "verify", "right", "--on", self.on, "--run-binary", runner],
                                  cwd=self.dir, env=self.environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(200):
            if processes_of(self.path("device_tmp")):
                break
            time.sleep(0.05)
        verify.send_signal(signal.SIGINT)
        _, said = verify.communicate(timeout=TIME_LIMIT)
        self.assertEqual((verify.returncode, said), (1, "quernel: error[invalid input]: interrupted\n"))
        self.assertEqual(self.device_files(), [])
        self.assertEqual(processes_of(self.path("device_tmp")), [])

    def test_interrupted(self):
        self.interrupt(self.hanging_runner())

    def test_interrupted_while_the_runner_starts(self):
        self.interrupt(self.hanging_runner(says_version=False))


def processes_of(folder):
    """Programs below a folder that run."""
    found = []
    for link in glob.glob("/proc/[0-9]*/exe"):
        try:
            if os.readlink(link).startswith(folder + "/"):
                found.append(link)
        except OSError:
            pass
    return found


if __name__ == "__main__":
    unittest.main()
