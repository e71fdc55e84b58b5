#!/usr/bin/env python3
"""Command lines: help, exit codes, and the tools that look at what was made."""
import json
import os
import re
import resource
import shutil
import sys
import unittest

import onnx_file as onnx
from tools import DIGITS, ROOT, SANITIZED, ToolTest

sys.path.append(os.path.join(ROOT, "tests"))
from vulkan_driver import vulkan_environment  # noqa: E402

COMMANDS = ("compile", "check", "verify", "inspect", "bench", "tune", "opt", "targets", "devices", "probe")


class CommandLine(ToolTest):
    def test_help_lists_every_command(self):
        text = self.succeeds("quernel")
        for command in COMMANDS:
            self.assertIn(command, text)
            self.assertIn("Usage", self.succeeds("quernel", command, "--help"))
        self.assertRegex(self.succeeds("quernel", "--version"), r"^quernel \d+\.\d+\.\d+\n$")

    def test_wrong_command_lines_exit_with_2(self):
        self.fails("quernel", "compil", says=["unknown command 'compil': expected one of", "compile"], code=2)
        self.fails("quernel", "--nonsense", says=["`quernel --help` explains"], code=2)
        self.fails("quernel", "opt", says=["opt: expected a file; `quernel opt --help` explains"], code=2)
        self.fails("quernel", "compile", says=["MODEL"], code=2)
        self.fails("quernel", "compile", DIGITS, says=["output"], code=2)
        self.fails("quernel", "compile", DIGITS, "-o", "x.qnl", "--threads", "0", says=["--threads"], code=2)
        self.fails("quernel", "compile", DIGITS, "-o", "x.qnl", "--precision", "i8", code=2,
                   says=["--precision: expected f32, f16 or bf16, found 'i8'"])
        for weights in ("f16", "i4:", "i4:24", "i8:0", "i4:32x"):
            self.fails("quernel", "compile", DIGITS, "-o", "x.qnl", "--weights", weights, code=2,
                       says=[f"--weights: expected i8 or i4, or one of them with :BLOCK, a multiple of 16 up to 65536; found '{weights}'"])
        self.fails("quernel", "compile", DIGITS, "-o", "x.qnl", "--activations", "u8", code=2,
                   says=["--activations: expected f32, i8 or i8:row, found 'u8'"])
        self.fails("quernel", "compile", DIGITS, "-o", "x.qnl", "--float-weights", "x", code=2,
                   says=["--float-weights: expected --weights, too"])
        self.fails("quernel", "compile", DIGITS, "-o", "x.qnl", "--state-dtype", "i4", code=2,
                   says=["--state-dtype: expected f32, f16 or bf16, found 'i4'"])
        self.fails("quernel", "compile", DIGITS, "-o", "x.qnl", "--state", "image", code=2,
                   says=["--state: expected INPUT=OUTPUT, found 'image'"])
        self.fails("quernel", "compile", DIGITS, "-o", "x.qnl", "--entry", "run:batch", code=2,
                   says=["--entry: expected NAME[@MODEL][:DIM=N,DIM=MIN..MAX,…], found 'run:batch'"])
        self.fails("quernel", "compile", DIGITS, "-o", "x.qnl", "--entry", "run", "--entry", "run", code=1,
                   says=["expected entry points of different names, found 'run' twice"])
        self.fails("quernel", "bench", DIGITS, "--entry", "other", code=1,
                   says=["--entry: expected one of 'torch_jit', found 'other'"])
        self.fails("quernel", "bench", DIGITS, "--symbol", "n", code=1,
                   says=["--symbol: expected NAME=NUMBER, found 'n'"])
        for dim in "n", "n=4..2", "n=1..8/0":
            self.fails("quernel", "compile", DIGITS, "-o", "x.qnl", "--dim", dim, code=2,
                       says=[f"--dim: expected NAME=N, NAME=MIN..MAX or NAME=MIN..MAX/MULTIPLE, found '{dim}'"])
        self.fails("quernel", "compile", DIGITS, "-o", "x.qnl", "--input-shape", "x=1x", says=["--input-shape: expected NAME=1x3x224x224, found 'x=1x'"], code=2)
        self.fails("quernel", "compile", DIGITS, "-o", "x.qnl", "--input-value", "x.npy", says=["--input-value: expected NAME=FILE, found 'x.npy'"], code=2)
        self.fails("quernel", "check", DIGITS, "--input-value", "x=x.txt", says=["expected a file that ends in .npy or .pb, found 'x.txt'"], code=2)
        self.fails("quernel", "check", DIGITS, "--input-value", "x=none.npy", says=["'none.npy': cannot be opened"], code=2)

    def test_only_some_of_the_entry_points_are_built(self):
        self.write("a.qg", b"graph @main(%x: f32[4]) {\n  %1 = add %x, %x : f32[4]\n  return y = %1\n}\n")
        entries = ("a.qg", "-o", "x.qnl", "--entry", "prefill", "--entry", "decode", "--entry", "decode4",
                   "--entry", "other@missing.onnx")
        for patterns, built in ((["decode*"], ["decode", "decode4"]), (["decode", "pre*"], ["prefill", "decode"])):
            self.succeeds("quernel", "compile", *entries, *(word for pattern in patterns for word in ("--only-entry", pattern)))
            document = json.loads(self.succeeds("quernel", "inspect", "x.qnl", "--json"))
            self.assertEqual([entry["name"] for entry in document["entry_points"]], built)
        self.fails("quernel", "compile", *entries, "--only-entry", "decode44", "--only-entry", "decode", code=1,
                   says=["entry points to build: expected a pattern that matches one of 'decode4', 'decode', ", "found 'decode44'"])
        self.fails("quernel", "compile", *entries, code=1, says=["missing.onnx"])
        self.fails("quernel", "compile", "a.qg", "-o", "x.qnl", "--only-entry", "m", code=1,
                   says=["expected a pattern that matches one of 'main', found 'm'"])
        self.succeeds("quernel", "compile", "a.qg", "-o", "x.qnl", "--only-entry", "m*")

    def test_devices_and_sessions_describe_themselves(self):
        def listed(*options):                                            # drivers of Vulkan may leak, which is not ours
            done = self.run_tool("quernel", "devices", *options, env=vulkan_environment() or os.environ)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        devices = json.loads(listed("--json"))
        self.assertEqual((devices[0]["name"], devices[0]["code"]), ("cpu", "ELF image"))
        for device in devices[1:]:
            self.assertTrue(device["name"].startswith("vulkan:"))
            self.assertGreater(device["limits"]["workgroup_invocations"], 0)
        self.assertIn("name: cpu\n", listed())
        bundle = self.compile_digits()
        found = json.loads(self.succeeds("quernel", "inspect", bundle, "--session", "--json"))
        session = found["session"]
        self.assertEqual((found["device"]["name"], session["device"], session["entry_point"]), ("cpu", "cpu", "torch_jit"))
        self.assertEqual(session["recording"]["items"], len(session["items"]))
        self.assertEqual(sum(kernel["items"] for kernel in session["kernels"]),
                         sum("kernel" in item for item in session["items"]))
        places = {arena["arena"]: arena for arena in session["arenas"]}
        for item in session["items"]:
            for binding in item["bindings"]:
                place = places[binding["arena"]]
                self.assertLessEqual(binding["offset"] + binding["bytes"], place["offset"] + place["bytes"])
        self.assertIn("\nitems:\n  item 0, name ", self.succeeds("quernel", "inspect", bundle, "--session"))
        self.fails("quernel", "inspect", bundle, "--session", "--entry", "other", says=["other"])
        self.fails("quernel", "inspect", bundle, "--session", "--device", "gpu", code=2, says=["--device: expected cpu, vulkan, or auto"])
        self.fails("quernel", "inspect", bundle, "--entry", "torch_jit", code=2, says=["--session"])

    def test_wrong_command_lines_of_quernel_run_exit_with_2(self):
        for arguments, says in (((), "expected a bundle"), (("a", "b", "c"), "unexpected argument 'c'"),
                                (("a", "--nonsense"), "unknown option '--nonsense'"), (("a", "--threads"), "--threads: expected a value"),
                                (("a", "--threads", "0"), "--threads: expected a number from 1 on, found '0'"),
                                (("a", "--symbol", "n"), "--symbol: expected NAME=NUMBER, found 'n'"),
                                (("a", "--symbol", "n=x"), "--symbol: expected NAME=NUMBER, found 'n=x'"),
                                (("a", "--test", "--profile"), "--profile: not with --test, whose --json has the times of items"),
                                (("a", "--hide", "subgroups"), "--hide: expected a Vulkan device (--device vulkan), found 'cpu'"),
                                (("a", "--device", "vulkan", "--hide", "float16,wings"),
                                 "--hide: expected features (int16, int64, float64, storage16, storage8, int8, float16, subgroups, dotprod, coopmat, coopmat-int8, coopmat-bf16), found 'wings'"),
                                (("a", "--describe"), "--describe: expected no bundle, found 'a'"),
                                (("a", "--test", "--seconds", "0"), "--seconds: expected a number above 0, found '0'"),
                                (("a", "b", "--test", "--device", "auto"),
                                 "several bundles: expected neither --record, --trace nor --device auto, which are for one"),
                                (("a", "--repeat", "x"), "--repeat: expected a number from 1 to 1000000, found 'x'")):
            done = self.run_tool("quernel-run", *arguments)
            self.assertEqual((done.returncode, done.stderr), (2, f"quernel-run: {says}\nquernel-run --help lists the options\n"))

    def test_several_bundles_run_on_one_device(self):
        self.write("a.qg", b"graph @main(%x: f32[2]) {\n  %1 = add %x, %x : f32[2]\n  return y = %1\n}\n")
        os.mkdir(self.path("test_data_set_0"))
        self.write("test_data_set_0/input_0.pb", onnx.float_tensor("x", [2], [1, 2]))
        for name, answer in (("right", [2, 4]), ("wrong", [2, 5])):
            self.write("test_data_set_0/output_0.pb", onnx.float_tensor("y", [2], answer))
            self.succeeds("quernel", "compile", "a.qg", "-o", f"{name}.qnl", "-q", "--embed-tests")
        done = self.run_tool("quernel-run", "wrong.qnl", "none.qnl", "right.qnl", "--test", "--json", "--repeat", "3")
        self.assertEqual(done.returncode, 1, done.stderr)
        wrong, none, right = map(json.loads, done.stdout.splitlines())
        self.assertEqual([b["bundle"] for b in (wrong, none, right)], ["wrong.qnl", "none.qnl", "right.qnl"])
        self.assertIn("no such file", none["error"])
        self.assertEqual([b["tests"][0]["passed"] for b in (wrong, right)], [False, True])
        self.assertEqual((right["tests"][0]["runs"], right["tests"][0]["status"]), (3, 0))
        self.assertIn("right.qnl: PASS", self.succeeds("quernel-run", "right.qnl", "right.qnl", "--test"))
        self.assertEqual(json.loads(self.succeeds("quernel-run", "--describe", "--json"))["name"], "cpu")

    def test_runs_end_after_some_seconds(self):
        bundle = self.compile_digits()
        run = json.loads(self.succeeds("quernel-run", bundle, "random:1", "--repeat", "1000000", "--seconds", "0.05", "--profile", "--json"))
        self.assertGreater(run["repeat"], 1)
        self.assertLess(run["repeat"], 1000000)
        for item in run["items"]:
            self.assertLessEqual(item["min_ms"], item["ms"])

    def test_values_of_inputs_that_do_not_exist(self):
        self.write("v.npy", onnx.npy([1], "f", [1.0]))
        self.fails("quernel", "compile", DIGITS, "-o", "x.qnl", "--input-value", "nothing=v.npy",
                   says=["input value: expected the name of an input (", "found 'nothing'"])

    @unittest.skipUnless(os.path.exists("/dev/full"), "needs /dev/full")
    def test_output_that_cannot_be_written(self):
        bundle = self.compile_digits()
        with open("/dev/full", "w") as full:
            for command in (("quernel", "targets"), ("quernel", "--version"), ("quernel", "opt", DIGITS), ("quernel-run", bundle, "random:1")):
                self.fails(*command, says=["standard output cannot be written"], stdout=full)

    def test_no_place_for_temporary_files(self):
        nowhere = {**os.environ, "TMPDIR": self.path("nowhere")}
        os.mkdir(self.path("case"))
        shutil.copy(DIGITS, self.path("case/model.onnx"))
        for command in (("bench", DIGITS), ("verify", "case")):
            self.fails("quernel", *command, says=["cannot create a temporary directory; set TMPDIR to a writable place"], env=nowhere)

    def test_dump_dir_that_cannot_be_written(self):
        self.write("file", b"")
        self.fails("quernel", "compile", DIGITS, "-o", "x.qnl", "--dump-dir", "file/dump", says=["cannot write to the dump directory 'file/dump"])

    @unittest.skipIf(SANITIZED, "the sanitizer needs more address space than the limit leaves")
    def test_out_of_memory(self):
        self.write("a.qg", b"graph @main() {\n  %1 = constant f32[500000000] {0 ...}\n  return y = %1\n}\n")

        def little_memory():
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        self.fails("quernel", "compile", "a.qg", "-o", "x.qnl", says=["out of memory"], preexec_fn=little_memory)

    def test_text_that_cannot_be_compiled(self):
        self.write("empty.qg", b"")
        self.fails("quernel", "compile", "empty.qg", "-o", "x.qnl", says=["empty.qg: cannot read the file, or it is empty"])

    def test_mistyped_pass_is_answered_with_the_nearest_one_first(self):
        for option in ("--disable-pass", "--print-after", "--stop-after"):
            self.fails("quernel", "compile", DIGITS, "-o", "x.qnl", option, "fold-constnts",
                       says=[f"{option}: expected one of fold-constants, ", "simplify-2", "found 'fold-constnts'"], code=2)
        self.fails("quernel", "compile", DIGITS, "-o", "x.qnl", "--disable-pass", "vectorize-loops", says=["always runs"], code=2)
        self.fails("quernel", "compile", DIGITS, "-o", "x.qnl", "--print-after", "alll", says=["expected one of all, "], code=2)

    def test_stop_after_runs_the_passes_up_to_it_and_writes_no_bundle(self):
        for number, (name, suffix, begin) in enumerate((("simplify-algebra", ".qg", "graph @"), ("materialize-operands", ".qg", "graph @"),
                                                        ("simplify", ".loop", "kernel @"), ("vectorize-loops", ".loop", "kernel @"))):
            dump = f"dump{number}"
            done = self.run_tool("quernel", "compile", DIGITS, "-o", "x.qnl", "--stop-after", name, "--print-after", name, "--dump-dir", dump)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"stopped after {name}; no bundle was written", done.stdout)
            self.assertTrue(done.stderr.startswith(f"// after {name}\n{begin}"), done.stderr[:200])
            self.assertEqual(done.stderr.count("// after"), 1)
            self.assertFalse(os.path.exists(self.path("x.qnl")))
            (target,) = os.listdir(self.path(dump))
            folder = os.path.join(self.path(dump), target, "graph" if suffix == ".qg" else "")
            files = sorted(f for f in os.listdir(folder) if f[0].isdigit())
            self.assertTrue(files[-1].endswith(f"-{name}{suffix}"), files)
        document = json.loads(self.succeeds("quernel", "compile", DIGITS, "-o", "x.qnl", "--stop-after", "simplify", "--json"))
        self.assertEqual((document["stopped_after"], document["bundle"]), ("simplify", None))

    def test_loop_passes_can_be_printed_and_disabled(self):
        done = self.run_tool("quernel", "compile", DIGITS, "-o", "x.qnl", "-q", "--disable-pass", "simplify-2", "--print-after", "all")
        self.assertEqual(done.returncode, 0, done.stderr)
        printed = [line.removeprefix("// after ") for line in done.stderr.splitlines() if line.startswith("// after ")]
        self.assertEqual(printed[-3:], ["simplify", "vectorize-loops", "unroll-loops"])
        self.succeeds("quernel-run", "x.qnl", "random:1")

    def test_unknown_target_is_answered_with_near_matches(self):
        self.fails("quernel", "compile", DIGITS, "-o", "x.qnl", "--target", "x86-64-v33",
                   says=["x86-64-v33", "did you mean", "x86-64-v3", "native", "`quernel targets` describes each"])

    def test_targets_that_ask_the_same_are_refused(self):
        self.fails("quernel", "compile", DIGITS, "-o", "x.qnl", "--target", "aarch64", "--target", "x86-64-v3", "--target", "cortex-a53",
                   says=["targets 'aarch64' and 'cortex-a53'", "ask the same of a device: it would never choose the second", "leave one of them out"])
        self.fails("quernel", "compile", DIGITS, "-o", "out.qnl", "--target", "cortex-m7",
                   says=["target 'cortex-m7': its kernels are linked into firmware, bundles hold none",
                         "name a target that runs Linux, or compile for firmware with --emit=static"])

    def test_targets(self):
        targets = json.loads(self.succeeds("quernel", "targets", "--json"))
        self.assertIn("x86-64-v3", [t["name"] for t in targets])
        self.assertLessEqual(sum(t["native"] for t in targets), 1)
        self.assertIn("x86-64-v3", self.succeeds("quernel", "targets"))

    def test_inspect_shows_all_parts(self):
        self.compile_digits()
        text = self.succeeds("quernel", "inspect", "digits.qnl", "--check", "--kernels", "--schedule")
        for word in ("entry point", "input", "output", "weights", "workspace", "arenas", "variant", "kernel", "schedule", "intact"):
            self.assertIn(word, text)
        document = json.loads(self.succeeds("quernel", "inspect", "digits.qnl", "--json", "--schedule"))
        variant = document["variants"][0]
        self.assertEqual(len(variant["schedule"]), variant["items"])
        self.assertTrue(all(kernel["stack_bytes"] > 0 for kernel in variant["kernels"]))
        self.assertTrue(variant["plan_text"].startswith("schedule "))
        self.assertIn(variant["plan_text"], text)
        self.assertFalse(document["weights_checked"])

    def test_bench_of_bundle_and_of_model(self):
        self.compile_digits()
        for what in ("digits.qnl", DIGITS):
            document = json.loads(self.succeeds("quernel", "bench", what, "--repeat", "5", "--per-kernel", "--json"))
            self.assertEqual(document["runs"], 5)
            self.assertGreater(document["min_seconds"], 0)
            self.assertGreater(len(document["kernels"]), 0)
        self.assertIn("latency", self.succeeds("quernel", "bench", "digits.qnl", "--repeat", "5"))
        for flag, value in (("--precision", "f16"), ("--weights", "i4"), ("--activations", "i8")):
            self.fails("quernel", "bench", "digits.qnl", flag, value, code=2,
                       says=[f"{flag}: expected a model, which it compiles otherwise, found the bundle 'digits.qnl'"])

    def test_check_of_a_supported_model(self):
        self.assertIn("can be compiled", self.succeeds("quernel", "check", DIGITS))
        self.assertTrue(json.loads(self.succeeds("quernel", "check", DIGITS, "--json"))["supported"])

    def test_opt_runs_passes_on_text_and_prints_what_it_can_read(self):
        listed = self.succeeds("quernel", "opt", "--list")
        self.assertIn("fold-constants", listed)
        self.assertIn("vectorize-loops", listed)
        self.succeeds("quernel", "opt", DIGITS, "--stop-after", "fold-constants", "-o", "a.qg")
        self.succeeds("quernel", "opt", "a.qg", "--passes", "fold-constants", "-o", "b.qg")
        self.assertEqual(self.read("a.qg"), self.read("b.qg"))
        self.succeeds("quernel", "compile", "a.qg", "-o", "a.qnl")
        self.fails("quernel", "opt", "a.qg", "--passes", "fold-constnts", says=["expected one of fold-constants, ", "fold-constnts"], code=2)

    def test_opt_on_text_that_cannot_be_read(self):
        self.write("a.qg", b"graph @main(%x: f32[4]) {\n  %1 = nonsense %x : f32[4]\n  return y = %1\n}\n")
        self.fails("quernel", "opt", "a.qg", says=["a.qg:2", "nonsense"])
        self.write("a.loop", b"kernel {")
        self.fails("quernel", "opt", "a.loop", says=["a.loop:1"])

    def test_help_of_every_command_ends_with_an_example(self):
        for command in (*COMMANDS, "test", "strip"):
            text = self.succeeds("quernel", command, "--help")
            example = re.search(rf"^Example: quernel {command} ?(.*)$", text, re.M).group(1)
            for option in re.findall(r"(?<!\S)--?[a-z][a-z-]*", example):
                self.assertRegex(text.split("Example: ")[0], rf"(^|[ ,]){option}\b", command)
            self.assertEqual(self.succeeds("quernel", "help", command), text)
        self.assertEqual(self.succeeds("quernel", "help"), self.succeeds("quernel", "--help"))

    def test_slips_are_corrected(self):
        for arguments, says in ((("compile", "--targets", "x86-64", DIGITS, "-o", "x.qnl"), "did you mean '--target'?"),
                                (("bench", DIGITS, "--thread=2"), "did you mean '--threads'?"), (("benhc",), "did you mean 'bench'?"),
                                (("verify", "--jsno", "f", "d"), "did you mean '--json'?")):
            self.fails("quernel", *arguments, code=2, says=[says])
        self.assertNotIn("did you mean", self.run_tool("quernel", "compile", DIGITS, "-o", "x.qnl", "--frobnicate").stderr)

    def test_dump_dir_holds_every_stage(self):
        self.succeeds("quernel", "compile", DIGITS, "-o", "digits.qnl", "-q", "--dump-dir", "dump")
        names = [f for _, _, files in os.walk(self.path("dump")) for f in files]
        for part in ("import.qg", "form-groups.txt", "plan-memory.txt", "lowered.loop"):
            self.assertTrue(any(part in n for n in names), f"{part} not in {names}")

    def test_dumping_changes_nothing(self):
        forms = [("--target", "x86-64-v3"), ("--target", "aarch64"), ("--target", "vulkan"), ("--target", "cortex-m4", "--emit", "static")]
        for number, options in enumerate(forms):
            for name, dump in (("plain", ()), ("dumped", ("--dump-dir", f"dump{number}"))):
                os.makedirs(self.path(name), exist_ok=True)
                self.succeeds("quernel", "compile", DIGITS, "-o", f"{name}/digits", "-q", *options, *dump)
            result = "digits.a" if "static" in options else "digits"
            self.assertEqual(self.read(f"plain/{result}"), self.read(f"dumped/{result}"), options)
            if "vulkan" not in options:
                found = [set(f[:-len(ending)] for _, _, files in os.walk(self.path(f"dump{number}")) for f in files if f.endswith(ending))
                         for ending in (".ll", ".s")]
                self.assertGreater(len(found[0]), 2)
                self.assertEqual(*found)


if __name__ == "__main__":
    unittest.main()
