#!/usr/bin/env python3
"""Names of a model that show as something else, break a line, a document or a program, or cannot be typed: in every form of
output. The expected text is that of Python's JSON, UTF-8 and XML readers."""
import json
import os
import subprocess
import sys
import unittest
import xml.etree.ElementTree

import onnx_file as onnx
from tools import TIME_LIMIT, ToolTest, tool

NASTY = {
    "bytes": b"a\xff\xfeb", "overlong": b"\xc0\xafx", "surrogate": b"\xed\xa0\x80", "cut": b"name\xe2\x82", "beyond": b"\xf4\x90\x80\x80",
    "newline": b"x\ny", "return": b"x\ry", "escape": b"\x1b[31mred\x1b[0m", "bell": b"\x07", "delete": b"x\x7f", "c1": "x\u0085\u009by".encode(),
    "bidi": "x\u202egnp.exe".encode(), "isolate": "\u2066x\u2069".encode(), "separator": "x\u2028y".encode(), "invisible": "x\u200by\ufeff".encode(),
    "tag": "x\U000e0041".encode(), "quotes": b"x\"'<&>\\", "comment": b"x*/ int evil; /*", "trigraph": b"x??/", "format": b"%s%n{}{0}",
    "noncharacter": "x\uffff".encode(), "umlaut": "größe".encode(), "chinese": "图像".encode(), "equals": b"a=b=c", "space": b"a b",
}
HIDDEN = [code for code in range(0x20) if code != 0x0A] + list(range(0x7F, 0xA0)) + [0x200B, 0x2028, 0x202E, 0x2066, 0x2069, 0xFEFF]


def identity(name, output=b"out"):
    return onnx.model([onnx.node("Neg", [name], [output], name)], [onnx.value(name, onnx.FLOAT, [4])],
                      [onnx.value(output, onnx.FLOAT, [4])])


def all_names():
    """Each is the name of an input, of a node, and part of an output's."""
    names = list(NASTY.values())
    return onnx.model([onnx.node("Neg", [name], [b"o" + name], name) for name in names], [onnx.value(name, onnx.FLOAT, [4]) for name in names],
                      [onnx.value(b"o" + name, onnx.FLOAT, [4]) for name in names])


class Names(ToolTest):
    def run_bytes(self, *command):
        name, *arguments = command
        done = subprocess.run([tool(name), *arguments], cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIME_LIMIT)
        return done.returncode, done.stdout, done.stderr

    def shows_all(self, text, what):
        """Well-formed UTF-8 without characters that hide, reorder or break."""
        decoded = text.decode("utf-8")
        self.assertEqual([hex(code) for code in HIDDEN if chr(code) in decoded], [], what)

    def test_every_form_of_output(self):
        names = list(NASTY.values())
        self.write("m.onnx", all_names())
        code, out, err = self.run_bytes("quernel", "compile", "m.onnx", "-o", "m.qnl", "-q")
        self.assertEqual(code, 0, err)
        code, out, err = self.run_bytes("quernel", "opt", "m.onnx")
        self.shows_all(out, "opt")
        self.write("m.qg", out)
        self.assertEqual(self.run_bytes("quernel", "opt", "m.qg"), (0, out, b""))
        for command in (("quernel", "check", "m.onnx"), ("quernel", "inspect", "m.qnl", "--schedule", "--kernels"),
                        ("quernel", "inspect", "m.qnl", "--session"), ("quernel-run", "m.qnl", "--list"), ("quernel-run", "m.qnl", "--profile"),
                        ("quernel-run", "m.qnl", "--input", b"nothing=random:1"), ("quernel", "bench", "m.qnl", "--seconds", "0.001", "--per-kernel"),
                        *(("quernel-run", "m.qnl", "--entry", name) for name in names),
                        *(("quernel-run", "m.qnl", "--input", name + b"=none.npy") for name in names)):
            code, out, err = self.run_bytes(*command)
            self.shows_all(out, command)
            self.shows_all(err, command)
            self.assertLessEqual(len(err.splitlines()), 1, command)
        for command in (("quernel", "inspect", "m.qnl", "--json", "--schedule"), ("quernel", "inspect", "m.qnl", "--json", "--session"),
                        ("quernel-run", "m.qnl", "--list", "--json"), ("quernel-run", "m.qnl", "--json", "--profile"),
                        ("quernel", "check", "m.onnx", "--json")):
            code, out, err = self.run_bytes(*command)
            self.assertEqual(code, 0, err)
            self.shows_all(out, command)
            document = json.loads(out.decode("utf-8"))
            if "--list" in command:
                found = [entry["name"] for entry in document["entry_points"][0]["inputs"]]
                self.assertEqual([name for name in found if "\ufffd" not in name],
                                 [name.decode("utf-8") for name in names if is_utf8(name)])
        code, out, err = self.run_bytes("quernel-run", "m.qnl", "--trace", "t.json")
        self.assertEqual(code, 0, err)
        self.shows_all(self.read("t.json"), "trace")
        json.loads(self.read("t.json").decode("utf-8"))

    def test_generated_c_compiles(self):
        self.write("m.onnx", all_names())
        code, out, err = self.run_bytes("quernel", "compile", "m.onnx", "-o", "m", "--emit", "c")
        self.assertEqual(code, 0, err)
        for end in ".c", ".h":
            self.shows_all(self.read("m" + end), end)
        done = subprocess.run(["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-trigraphs", "-c", "m.c"], cwd=self.dir,
                              stderr=subprocess.PIPE, text=True, errors="replace")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("evil", subprocess.run(["nm", "m.o"], cwd=self.dir, stdout=subprocess.PIPE, text=True).stdout)

    def test_reports_of_tests(self):
        for what in "bytes", "bidi", "newline", "noncharacter", "quotes":
            with self.subTest(what):
                name = NASTY[what]
                os.makedirs(self.path("case/test_data_set_0"), exist_ok=True)
                self.write("case/model.onnx", identity(name, name + b"_out"))
                self.write("case/test_data_set_0/input_0.npy", onnx.npy([4], "f", [1, 2, 3, 4]))
                self.write("case/test_data_set_0/output_0.npy", onnx.npy([4], "f", [-1, -2, -3, 4]))
                code, out, err = self.run_bytes("quernel", "test", "case", "--junit", "j.xml", "--json", "j.json")
                self.assertEqual(code, 1, err)
                self.shows_all(out, what)
                for file in "j.xml", "j.json":
                    self.shows_all(self.read(file), file)
                json.loads(self.read("j.json").decode("utf-8"))
                xml.etree.ElementTree.fromstring(self.read("j.xml"))

    def test_names_with_a_zero_byte_are_refused(self):
        self.write("m.onnx", onnx.model([onnx.node("Add", [b"a\0b", b"a\0c"], ["y"])],
                                        [onnx.value(b"a\0b", onnx.FLOAT, [2]), onnx.value(b"a\0c", onnx.FLOAT, [2])],
                                        [onnx.value("y", onnx.FLOAT, [2])]))
        self.fails("quernel", "compile", "m.onnx", "-o", "m.qnl", says=["input 'a\\x00b': expected a name without zero bytes, found one"])

    def test_names_with_an_equals_sign_can_be_given(self):
        self.write("m.onnx", onnx.model([onnx.node("Add", ["a=b", "a"], ["y=z"])],
                                        [onnx.value("a=b", onnx.FLOAT, [2]), onnx.value("a", onnx.FLOAT, [2])],
                                        [onnx.value("y=z", onnx.FLOAT, [2])]))
        self.succeeds("quernel", "compile", "m.onnx", "-o", "m.qnl", "-q")
        self.write("one.npy", onnx.npy([2], "f", [1, 2]))
        self.write("two.npy", onnx.npy([2], "f", [10, 20]))
        self.succeeds("quernel-run", "m.qnl", "--input", "a=b=one.npy", "--input", "a=two.npy", "--output", "y=z=sum.npy")
        self.assertEqual(onnx.values_of_npy(self.read("sum.npy"))[1], [11, 22])

    def test_names_have_a_limit(self):
        self.write("m.onnx", identity(b"n" * 1024))
        self.succeeds("quernel", "compile", "m.onnx", "-o", "m.qnl", "-q")
        self.write("m.onnx", identity(b"n" * 1025))
        self.fails("quernel", "compile", "m.onnx", "-o", "x.qnl", says=["…': expected a name of up to 1024 bytes, found 1025"])


class Streams(ToolTest):
    @unittest.skipUnless(os.path.exists("/dev/full"), "needs /dev/full")
    def test_output_that_cannot_be_written(self):
        bundle = self.compile_digits()
        with open("/dev/full", "w") as full:
            for command in (("quernel-run", bundle, "--list"), ("quernel-run", bundle, "--list", "--json"), ("quernel-run", "--help"),
                            ("quernel-run", "--version"), ("quernel-run", bundle, "--json"), ("quernel", "inspect", bundle),
                            ("quernel", "inspect", bundle, "--json"), ("quernel", "inspect", bundle, "--tuning", "--check"),
                            ("quernel", "--help"), ("quernel", "devices"), ("quernel", "targets", "--json")):
                done = self.run_tool(*command, stdout=full)
                self.assertEqual(done.returncode, 0 if "--tuning" in command and not done.stderr else 1, f"{command}: {done.stderr}")

    def test_closed_streams(self):
        bundle = self.compile_digits()
        for close in ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-":
            for command in ('"$QUERNEL" check none.onnx', '"$QUERNEL" nonsense', '"$QUERNEL" inspect none.qnl', '"$QUERNEL_RUN" none.qnl',
                            '"$QUERNEL_RUN" digits.qnl --list', '"$QUERNEL_RUN" digits.qnl --output out.npy'):
                done = subprocess.run(["sh", "-c", f"{command} {close}"], cwd=self.dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                      env={**os.environ, "QUERNEL": tool("quernel"), "QUERNEL_RUN": tool("quernel-run")})
                self.assertIn(done.returncode, (0, 1, 2), f"{command} {close}")
                if "none" in command or "nonsense" in command:
                    self.assertNotEqual(done.returncode, 0, command)
            if os.path.exists(self.path("out.npy")):
                self.assertTrue(self.read("out.npy").startswith(b"\x93NUMPY"), close)
        self.assertEqual(self.read(bundle)[:4], b"QNL1")

    def test_random_inputs_of_absurd_size(self):
        self.write("m.onnx", onnx.model([onnx.node("Neg", ["x"], ["y"])], [onnx.value("x", onnx.FLOAT, ["n", "m"])],
                                        [onnx.value("y", onnx.FLOAT, ["n", "m"])]))
        self.succeeds("quernel", "compile", "m.onnx", "-o", "m.qnl", "-q")
        for shape in ("100000000x1000000", "1000000x1000000", "9223372036854775807x2", "99999999999999999999x1", "4294967296x4294967296"):
            self.fails("quernel-run", "m.qnl", f"random:1:{shape}", says=["input 'x': "])
        with open(self.path("huge.npy"), "wb") as file:
            file.truncate(1 << 43)
        self.fails("quernel-run", "m.qnl", "huge.npy", says=["is too large for this machine's memory"])


def is_utf8(name):
    try:
        name.decode("utf-8")
        return True
    except UnicodeDecodeError:
        return False


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
