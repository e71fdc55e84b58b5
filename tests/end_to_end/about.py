#!/usr/bin/env python3
"""What a model says of itself is shown by check, kept in the bundle, and shown by inspect."""
import io
import json
import unittest
import zipfile

import onnx_file as onnx
import tflite_file as tflite
from tools import ToolTest


def labelled_model(labels="a\nb\nc\n", about=None):
    graph = tflite.subgraph([tflite.floats("x", [3]), tflite.floats("y", [3])], [0], [1], [(0, [0], [1])])
    metadata = [("TFLITE_METADATA", about or tflite.about("letters", "Tells a from b.\nAnd c.", "labels.txt"))]
    file = io.BytesIO(tflite.model([tflite.NEG], [graph], [("negate", 0)], metadata))
    file.seek(0, io.SEEK_END)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("labels.txt", labels)
    return file.getvalue()


class About(ToolTest):
    def test_of_tensorflow_lite(self):
        self.write("m.tflite", labelled_model())
        said = self.succeeds("quernel", "check", "m.tflite")
        for line in ("name: letters", "description: Tells a from b. … (2 lines)", "version: v2", "author: A. Author", "labels: labels.txt, 3 of them",
                     "signature: negate"):
            self.assertIn(f"  {line}\n", said)
        self.assertNotIn("note", said)
        report = json.loads(self.succeeds("quernel", "check", "m.tflite", "--json"))
        self.assertEqual(report["properties"], {"name": "letters", "description": "Tells a from b.\nAnd c.", "version": "v2", "author": "A. Author",
                                                "files": "labels.txt"})
        self.assertEqual((report["labels"], report["signatures"]), ([{"file": "labels.txt", "count": 3}], ["negate"]))
        self.succeeds("quernel", "compile", "m.tflite", "-o", "m.qnl", "--target", "x86-64", "--target", "x86-64-v3")
        kept = json.loads(self.succeeds("quernel", "inspect", "m.qnl", "--json"))["properties"]
        self.assertEqual(kept, {**report["properties"], "labels labels.txt": "a\nb\nc\n"})
        said = self.succeeds("quernel", "inspect", "m.qnl")
        self.assertIn("  author: A. Author\n", said)
        self.assertIn("  labels labels.txt: a … (3 lines)\n", said)
        self.succeeds("quernel", "strip", "m.qnl", "--target", "x86-64", "-o", "less.qnl")
        self.assertEqual(json.loads(self.succeeds("quernel", "inspect", "less.qnl", "--json"))["properties"], kept)

    def test_programs_without_a_runtime_keep_nothing(self):
        self.write("m.tflite", labelled_model())
        self.succeeds("quernel", "compile", "m.tflite", "-o", "m", "--emit", "c")
        for file in "m.c", "m.h":
            self.assertNotIn("Author", self.read(file).decode())

    def test_what_is_damaged_is_left_out(self):
        self.write("m.tflite", labelled_model(about=b"hello"))
        self.assertIn("note: the model's metadata are damaged, and not read\n", self.succeeds("quernel", "check", "m.tflite"))
        self.write("m.tflite", labelled_model(labels="a" * 100000))
        self.assertIn("1 text is left out", self.succeeds("quernel", "compile", "m.tflite", "-o", "m.qnl"))
        self.write("m.tflite", labelled_model()[:-30])
        self.assertIn("labels 'labels.txt' are not read: the archive behind the model has no such file", self.succeeds("quernel", "check", "m.tflite"))

    def test_of_onnx(self):
        values = [onnx.value(n, onnx.FLOAT, [2]) for n in ("x", "y")]
        entries = [onnx.message(14, onnx.message(1, key) + onnx.message(2, text)) for key, text in (("task", "none"), ("version", "other"), ("zero", "a\0b"))]
        self.write("m.onnx", onnx.model([onnx.node("Neg", ["x"], ["y"])], values[:1], values[1:]) + onnx.message(2, "maker") + onnx.message(3, "1.2") +
                   onnx.number(5, 7) + onnx.message(6, "Negates.") + b"".join(entries))
        report = json.loads(self.succeeds("quernel", "check", "m.onnx", "--json"))
        expected = {"description": "Negates.", "version": "7", "producer": "maker 1.2", "task": "none", "version_1": "other", "zero": "a"}
        self.assertEqual(report["properties"], expected)
        self.succeeds("quernel", "compile", "m.onnx", "-o", "m.qnl")
        self.assertEqual(json.loads(self.succeeds("quernel", "inspect", "m.qnl", "--json"))["properties"], expected)


if __name__ == "__main__":
    unittest.main()
