#!/usr/bin/env python3
"""Files that are read and written: FIFOs, directories and links in their place, processes that are killed, links of external data."""
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import unittest

import onnx_file as onnx
from tools import DIGITS, ToolTest, tool

def with_external(location):
    return onnx.model([onnx.node("Add", ["x", "w"], ["y"])], [onnx.value("x", onnx.FLOAT, [2])],
                      [onnx.value("y", onnx.FLOAT, [2])], [onnx.external_tensor("w", onnx.FLOAT, [2], location)])


class Files(ToolTest):
    def setUp(self):
        super().setUp()
        self.bundle = self.compile_digits()
        os.mkfifo(self.path("fifo"))
        for end in ".onnx", ".qg", ".npy", ".pb", ".qnl", ".op", ".loop":
            os.symlink("fifo", self.path("fifo" + end))

    def test_a_fifo_is_refused_wherever_a_file_is_read(self):
        compile_digits = ("quernel", "compile", DIGITS, "-o", "x.qnl")
        os.mkdir(self.path("case"))
        os.symlink(self.path("fifo"), self.path("case/model.onnx"))
        commands = [
            ("quernel", "compile", "fifo.onnx", "-o", "x.qnl"), ("quernel", "compile", "fifo.qg", "-o", "x.qnl"),
            ("quernel", "check", "fifo.onnx"), ("quernel", "bench", "fifo.onnx"), ("quernel", "bench", "fifo.qnl"),
            ("quernel", "tune", "fifo.onnx", "-o", "x"), ("quernel", "opt", "fifo.qg"), ("quernel", "opt", "fifo.loop"),
            ("quernel", "test", "fifo.qnl"), ("quernel", "test", "fifo.onnx"), ("quernel", "inspect", "fifo.qnl"),
            ("quernel", "strip", "fifo.qnl", "--target", "x", "-o", "x.qnl"), ("quernel-run", "fifo.qnl"),
            ("quernel", "verify", "case"),
            (*compile_digits, "--tuning", "fifo"), (*compile_digits, "--custom-op", "fifo.op"),
            (*compile_digits, "--target", "vulkan", "--device-profile", "fifo"),
            (*compile_digits, "--input-value", "image=fifo.npy"), (*compile_digits, "--input-value", "image=fifo.pb"),
            ("quernel-run", self.bundle, "fifo.npy"), ("quernel-run", self.bundle, "fifo.pb"), ("quernel-run", self.bundle, "raw:fifo"),
            ("quernel", "test", self.bundle, "--run-binary", "fifo"),
        ]
        for command in commands:
            done = self.run_tool(*command)
            self.assertIn(done.returncode, (1, 2), f"{command}: {done.stdout} {done.stderr}")
            self.assertTrue(done.stderr or done.stdout, command)
        for command in commands[14:17]:
            self.assertIn("expected a regular file, found a FIFO", self.run_tool(*command).stderr, command)

    def test_data_beside_a_model_are_regular_files(self):
        os.mkfifo(self.path("w.bin"))
        self.write("m.onnx", with_external("w.bin"))
        self.assertEqual(self.run_tool("quernel", "compile", "m.onnx", "-o", "x.qnl").returncode, 1)
        os.makedirs(self.path("case/test_data_set_0"))
        shutil.copy(DIGITS, self.path("case/model.onnx"))
        for name in "case/tolerance.json", "case/test_data_set_0/input_0.pb", "case/test_data_set_0/output_0.npy":
            os.mkfifo(self.path(name))
            self.assertEqual(self.run_tool("quernel", "verify", "case").returncode, 1, name)
            os.remove(self.path(name))

    def test_a_fifo_or_a_directory_is_no_place_for_output(self):
        os.mkdir(self.path("folder"))
        self.write("id.qg", b"graph @main(%x: f32[4]) {\n  %1 = add %x, %x : f32[4]\n  return y = %1\n}\n")
        for place in "fifo", "folder":
            for command in (("quernel", "compile", DIGITS, "-o", place), ("quernel", "opt", "id.qg", "-o", place),
                            ("quernel", "strip", self.bundle, "--target", "x", "-o", place),
                            ("quernel-run", self.bundle, "--trace", place), ("quernel-run", self.bundle, "--output", place)):
                done = self.run_tool(*command)
                self.assertEqual(done.returncode, 1, f"{command}: {done.stderr}")

    def test_links_in_the_place_of_output_are_not_followed(self):
        for index, (form, ends) in enumerate(((["--emit", "c"], [".c", ".h"]), (["--emit", "static"], [".a", ".h"]), ([], [""]))):
            victims = [self.write(f"victim{index}{end}", b"mine") for end in ends]
            for victim, end in zip(victims, ends):
                os.symlink(victim, self.path(f"out{index}{end}"))
                for other in (f"out{index}{end}.tmp-0", f"out{index}{end}.tmp-{os.getpid()}"):
                    os.symlink(victim, self.path(other))
            self.succeeds("quernel", "compile", DIGITS, "-q", "-o", f"out{index}", *form)
            for victim in victims:
                self.assertEqual(self.read(victim), b"mine")

    def test_leftovers_of_killed_processes_are_replaced(self):
        for left in "x.qnl.tmp-0", "scores.npy.tmp-0", "t.json.tmp-0":
            self.write(left, b"left behind")
        self.compile_digits("x.qnl")
        self.succeeds("quernel-run", "x.qnl", "--output", "scores.npy", "--trace", "t.json")
        self.assertEqual([name for name in os.listdir(self.dir) if ".tmp-" in name], [])

    def test_files_beyond_the_limit_of_sizes_leave_nothing(self):
        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        for command in (("quernel", "compile", DIGITS, "-o", "x.qnl"),
                        ("quernel", "compile", DIGITS, "-o", "x", "--emit", "c"),
                        ("quernel-run", self.bundle, "--trace", "x", "--repeat", "100")):
            before = set(os.listdir(self.dir))
            done = self.run_tool(*command, preexec_fn=limited)
            self.assertEqual(done.returncode, 1, f"{command}: {done.returncode} {done.stderr}")
            self.assertEqual(set(os.listdir(self.dir)), before, command)

    def test_a_terminated_compiler_leaves_nothing(self):
        def heeded():  # a shell's background jobs ignore SIGINT
            for number in signal.SIGTERM, signal.SIGINT:
                signal.signal(number, signal.SIG_DFL)
        os.mkdir(self.path("temporary"))
        environment = {**os.environ, "TMPDIR": self.path("temporary")}
        before = set(os.listdir(self.dir))
        for delay in (0.02, 0.05, 0.1, 0.2):
            for number in (signal.SIGTERM, signal.SIGINT):
                process = subprocess.Popen([tool("quernel"), "bench", DIGITS, "--seconds", "20"], cwd=self.dir, env=environment,
                                           preexec_fn=heeded, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(delay)
                process.send_signal(number)
                self.assertNotEqual(process.wait(timeout=20), 0)
                self.assertEqual(os.listdir(self.path("temporary")), [], delay)
                self.assertEqual(set(os.listdir(self.dir)), before)


class ExternalData(ToolTest):
    def setUp(self):
        super().setUp()
        for folder in "model", "elsewhere", "blobs", "snapshots/one":
            os.makedirs(self.path(folder))
        for folder in "elsewhere", "blobs":
            self.write(f"{folder}/w.bin", bytes(8))
        self.write("model/m.onnx", with_external("w.bin"))

    def test_links_out_of_the_folder_are_refused(self):
        for link, target in (("model/w.bin", "../elsewhere/w.bin"), ("model/w.bin", self.path("elsewhere/w.bin"))):
            os.symlink(target, self.path(link))
            self.fails("quernel", "check", "model/m.onnx", says=["is a link that leaves the model's folder"])
            self.fails("quernel", "compile", "model/m.onnx", "-o", "x.qnl",
                       says=["is a link that leaves the model's folder", "--external-data DIR"])
            self.succeeds("quernel", "compile", "model/m.onnx", "-o", "x.qnl", "-q", "--external-data", "elsewhere")
            self.fails("quernel", "compile", "model/m.onnx", "-o", "y.qnl", "--external-data", "blobs",
                       says=["is a link that leaves the model's folder"])
            os.remove(self.path(link))
            os.remove(self.path("x.qnl"))

    def test_a_link_to_a_folder_is_a_link_out_of_it_too(self):
        os.symlink("../elsewhere", self.path("model/sub"))
        self.write("model/m.onnx", with_external("sub/w.bin"))
        self.fails("quernel", "compile", "model/m.onnx", "-o", "x.qnl", says=["is a link that leaves the model's folder"])

    def test_links_inside_the_folder_are_followed(self):
        self.write("model/data", bytes(8))
        os.symlink("data", self.path("model/w.bin"))
        self.succeeds("quernel", "compile", "model/m.onnx", "-o", "x.qnl", "-q")
        os.symlink("model", self.path("other"))
        self.succeeds("quernel", "compile", "other/m.onnx", "-o", "x.qnl", "-q")

    def test_download_caches_link_all_files_of_a_model_into_one_folder(self):
        os.rename(self.path("model/m.onnx"), self.path("blobs/1234"))
        os.symlink("../../blobs/1234", self.path("snapshots/one/m.onnx"))
        os.symlink("../../blobs/w.bin", self.path("snapshots/one/w.bin"))
        self.succeeds("quernel", "compile", "snapshots/one/m.onnx", "-o", "x.qnl", "-q")
        os.remove(self.path("snapshots/one/w.bin"))
        os.symlink("../../elsewhere/w.bin", self.path("snapshots/one/w.bin"))
        self.fails("quernel", "compile", "snapshots/one/m.onnx", "-o", "y.qnl", says=["is a link that leaves the model's folder"])

    def test_external_data_may_lie_in_the_folder_that_is_named(self):
        self.fails("quernel", "compile", "model/m.onnx", "-o", "x.qnl", says=["keep the data file beside the model"])
        self.succeeds("quernel", "compile", "model/m.onnx", "-o", "x.qnl", "-q", "--external-data", "elsewhere")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
