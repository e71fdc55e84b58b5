#!/usr/bin/env python3
"""Models that are damaged, wrong or beyond Quernel: one clear diagnostic, a non-zero exit, no file left behind."""
import json
import os
import random
import unittest

import onnx_file as onnx
from tools import DIGITS, SANITIZED, ToolTest, tool

X = onnx.value("x", onnx.FLOAT, [2, 3])
Y = onnx.value("y", onnx.FLOAT, [2, 3])


def folders_of(path):
    """Every folder on the way to a file."""
    path = os.path.dirname(os.path.realpath(path))
    return [path] + (folders_of(path) if path != os.path.dirname(path) else [])


class BadModel(ToolTest):
    def refused(self, data, says, lines=1):
        """compile and check both refuse the model with these words."""
        self.write("model.onnx", data)
        self.fails("quernel", "compile", "model.onnx", "-o", "out.qnl", says=says, lines=lines)
        return self.fails("quernel", "check", "model.onnx", says=says, lines=lines)

    def test_a_correct_model_of_this_kind_compiles(self):
        self.write("model.onnx", onnx.model([onnx.node("Relu", ["x"], ["y"])], [X], [Y]))
        self.succeeds("quernel", "compile", "model.onnx", "-o", "out.qnl")

    def test_inputs_and_outputs_of_too_high_a_rank(self):
        dims = [1] * 8 + [3]
        self.refused(onnx.model([onnx.node("Relu", ["x"], ["y"])], [onnx.value("x", onnx.FLOAT, dims)],
                                [onnx.value("y", onnx.FLOAT, dims)]), lines=2,
                     says=["input 'x': expected rank up to 8, found f32[1,1,1,1,1,1,1,1,3]",
                           "output 'y': expected rank up to 8, found f32[1,1,1,1,1,1,1,1,3]"])

    def test_missing_file(self):
        self.fails("quernel", "compile", "missing.onnx", "-o", "out.qnl", says=["missing.onnx", "No such file"])
        self.fails("quernel", "check", "missing.onnx", says=["missing.onnx"])
        self.fails("quernel", "bench", "missing.onnx", says=["missing.onnx"])
        self.fails("quernel", "opt", "missing.qg", says=["missing.qg"])
        self.fails("quernel", "opt", "missing.loop", says=["missing.loop"])
        self.fails("quernel", "verify", "missing", says=["missing"])

    def test_directory_instead_of_a_file(self):
        self.fails("quernel", "compile", ".", "-o", "out.qnl")

    def test_not_onnx(self):
        for data in (b"", b"hello, this is text\n" * 20, b"\x89PNG\r\n\x1a\n" + bytes(200), bytes(4096), b"\xff" * 4096):
            self.refused(data, says=["model.onnx"])

    def test_truncated(self):
        with open(DIGITS, "rb") as f:
            data = f.read()
        for keep in (1, 10, 100, len(data) // 3, len(data) // 2, len(data) - 1000, len(data) - 1):
            self.refused(data[:keep], says=["model.onnx"], lines=None)

    def test_corrupted(self):
        with open(DIGITS, "rb") as f:
            data = f.read()
        generator = random.Random(2)
        for _ in range(10 if SANITIZED else 40):
            damaged = bytearray(data)
            for _ in range(generator.choice((1, 4, 64))):
                # Mostly where the structure is: weights take most of the file.
                at = generator.choice((generator.randrange(len(data)), generator.randrange(600), len(data) - 1 - generator.randrange(2000)))
                damaged[at] = generator.randrange(256)
            self.write("model.onnx", bytes(damaged))
            self.ends_well_or_fails("quernel", "compile", "model.onnx", "-o", "out.qnl", output="out.qnl")

    def test_cycle(self):
        nodes = [onnx.node("Add", ["x", "b"], ["a"], "first"), onnx.node("Relu", ["a"], ["b"], "second"), onnx.node("Relu", ["b"], ["y"], "third")]
        self.refused(onnx.model(nodes, [X], [Y]), says=["cycle", "first", "second"])

    def test_missing_tensor(self):
        self.refused(onnx.model([onnx.node("Add", ["x", "nowhere"], ["y"], "sum")], [X], [Y]), says=["nowhere", "sum"])

    def test_missing_output(self):
        self.refused(onnx.model([onnx.node("Relu", ["x"], ["z"])], [X], [Y]), says=["'y'"])

    def test_contradictory_shapes(self):
        weights = onnx.float_tensor("w", [4, 5], [0.5] * 20)
        self.refused(onnx.model([onnx.node("MatMul", ["x", "w"], ["y"], "product")], [X], [onnx.value("y", onnx.FLOAT, [2, 5])], [weights]),
                     says=["product", "MatMul", "3", "4"])

    def test_initializer_of_the_wrong_length(self):
        short = onnx.tensor("w", onnx.FLOAT, [2, 3], bytes(20))
        self.refused(onnx.model([onnx.node("Add", ["x", "w"], ["y"])], [X], [Y], [short]), says=["'w'"])

    def test_huge_shapes_are_not_allocated(self):
        huge = onnx.tensor("w", onnx.FLOAT, [1 << 40, 1 << 20], bytes(20))
        self.refused(onnx.model([onnx.node("Add", ["x", "w"], ["y"])], [X], [Y], [huge]), says=["'w'"])
        shape = onnx.int_tensor("s", [2], [1 << 40, 1 << 20])
        self.refused(onnx.model([onnx.node("ConstantOfShape", ["s"], ["y"])], [], [onnx.value("y", onnx.FLOAT, [])], [shape]),
                     says=["ConstantOfShape"])

    def test_missing_external_file(self):
        weights = onnx.external_tensor("w", onnx.FLOAT, [2, 3], "weights.bin")
        data = onnx.model([onnx.node("Add", ["x", "w"], ["y"])], [X], [Y], [weights])
        self.refused(data, says=["weights.bin", "'w'"])
        self.write("weights.bin", bytes(20))
        self.refused(data, says=["'w'", "external", "24", "20"])

    def test_external_file_outside_the_folder(self):
        weights = onnx.external_tensor("w", onnx.FLOAT, [2, 3], "../../etc/passwd")
        self.refused(onnx.model([onnx.node("Add", ["x", "w"], ["y"])], [X], [Y], [weights]), says=["'w'"])

    def test_all_unsupported_ops_are_reported_together(self):
        nodes = [onnx.node("Bogus", ["x"], ["a"], "one"), onnx.node("Relu", ["a"], ["b"], "fine"),
                 onnx.node("Strange", ["b"], ["y"], "two", domain="com.example")]
        done = self.refused(onnx.model(nodes, [X], [Y]), says=["'one'", "Bogus", "'two'", "Strange"], lines=2)
        self.assertIn("2 problems", done.stdout)
        listed = json.loads(self.run_tool("quernel", "check", "model.onnx", "--json").stdout)
        self.assertFalse(listed["supported"])
        self.assertEqual([p["node"] for p in listed["problems"]], ["one", "two"])
        self.assertEqual({p["kind"] for p in listed["problems"]}, {"unsupported"})

    def test_unsupported_dtype(self):
        strings = [onnx.value("x", onnx.STRING, [2, 3])]
        self.refused(onnx.model([onnx.node("Identity", ["x"], ["y"])], strings, [onnx.value("y", onnx.STRING, [2, 3])]), says=["string"])
        weights = onnx.tensor("w", onnx.COMPLEX64, [2, 3], bytes(48))
        self.refused(onnx.model([onnx.node("Add", ["x", "w"], ["y"])], [X], [Y], [weights]), says=["'w'", "complex64"], lines=None)

    def test_free_dims_that_do_not_exist(self):
        self.fails("quernel", "compile", DIGITS, "-o", "out.qnl", "--dim", "nonsense=2", says=["nonsense"])
        self.fails("quernel", "compile", DIGITS, "-o", "out.qnl", "--input-shape", "nonsense=2", says=["nonsense", "image"])

    def test_unwritable_output(self):
        self.fails("quernel", "compile", DIGITS, "-o", "nowhere/out.qnl", says=["nowhere/out.qnl", "cannot be written: there is no directory", "create it first"])
        os.mkdir(self.path("folder"))
        self.fails("quernel", "compile", DIGITS, "-o", "folder", says=["folder: expected a file to write, found a directory"])
        self.fails("quernel", "compile", DIGITS, "-o", "/proc/out.qnl", says=["/proc/out.qnl"])
        self.assertEqual(os.listdir(self.path("folder")), [])

    def test_folder_without_permission(self):
        os.chmod(self.dir, 0o755)
        os.mkdir(self.path("closed"), 0o555)

        def as_nobody():  # the superuser may write everywhere
            if os.geteuid() == 0:
                os.setuid(65534)
        if os.geteuid() == 0 and not all(os.stat(p).st_mode & 1 for p in (tool("quernel"), *folders_of(tool("quernel")), *folders_of(DIGITS))):
            self.skipTest("another user cannot reach the tool")
        self.fails("quernel", "compile", DIGITS, "-o", "closed/out.qnl",
                   says=["closed/out.qnl: cannot be written: no permission to create files in 'closed'"], preexec_fn=as_nobody)

    def test_check_names_every_unsupported_node_of_a_large_file(self):
        """Each hangs on the one before, and every second one is an operator that ONNX has."""
        rows, columns, names = 1024, 2048, [f"odd_{i}" for i in range(12)]
        weights = [onnx.tensor(f"w{i}", onnx.FLOAT, [rows, columns], os.urandom(4) * (rows * columns)) for i in range(12)]
        nodes = [onnx.node(*(("StringConcat",) if i % 2 else (f"Mystery{i}",)), [f"y{i}", f"w{i}"], [f"y{i + 1}"], name,
                           "" if i % 2 else "com.example") for i, name in enumerate(names)]
        shape = [rows, columns]
        self.write("model.onnx", onnx.model(nodes, [onnx.value("y0", onnx.FLOAT, shape)], [onnx.value("y12", onnx.FLOAT, shape)],
                                            weights, opset=20))
        self.assertGreater(os.path.getsize(self.path("model.onnx")), 100_000_000)
        done = self.fails("quernel", "check", "model.onnx", lines=12,
                          says=[f"node '{name}'" for name in names] + ["com.example.Mystery0", "StringConcat"])
        self.assertIn("12 problems", done.stdout)

    def test_the_model_is_not_overwritten(self):
        self.write("model.onnx", onnx.model([onnx.node("Relu", ["x"], ["y"])], [X], [Y]))
        self.fails("quernel", "compile", "model.onnx", "-o", "model.onnx", says=["the output would overwrite the model"])

    def test_a_failed_compile_keeps_the_older_bundle(self):
        self.write("out.qnl", b"precious")
        self.refused(b"hello", says=["model.onnx"])
        self.assertEqual(self.read("out.qnl"), b"precious")


if __name__ == "__main__":
    unittest.main()
