#!/usr/bin/env python3
"""Bundles that are damaged or meant for something else, and inputs that do not fit: one clear diagnostic, a non-zero
exit, no file left behind."""
import os
import random
import struct
import unittest

import bundle_file as bundle
import onnx_file
from tools import SANITIZED, ToolTest


class BadBundle(ToolTest):
    def setUp(self):
        super().setUp()
        self.compile_digits()
        self.data = self.read("digits.qnl")

    def refused(self, data, says=()):
        self.write("bad.qnl", data)
        self.fails("quernel-run", "bad.qnl", "random:1", "--output", "scores.npy", says=says)
        self.fails("quernel", "inspect", "bad.qnl", says=["bad.qnl", *says])
        self.fails("quernel", "bench", "bad.qnl", says=says)

    def test_missing(self):
        self.fails("quernel-run", "missing.qnl", says=["missing.qnl"])
        self.fails("quernel", "inspect", "missing.qnl", says=["missing.qnl"])
        self.fails("quernel", "bench", "missing.qnl", says=["missing.qnl"])

    def test_not_a_bundle(self):
        for data in (b"", b"hello", bytes(10000), b"hello" * 1000):
            self.refused(data)

    def test_truncated(self):
        for keep in (1, 63, 64, 1000, len(self.data) // 2, len(self.data) - 1):
            self.refused(self.data[:keep])

    def test_longer_than_it_says(self):
        self.refused(self.data + bytes(1))

    def test_flipped_bit_in_header_structure_or_code(self):
        generator = random.Random(3)
        end = bundle.structure_range(self.data)[1]
        for _ in range(8 if SANITIZED else 30):
            damaged = bytearray(self.data)
            damaged[generator.randrange(end)] ^= 1 << generator.randrange(8)
            self.refused(bytes(damaged))

    def test_flipped_bit_in_the_weights_is_found_when_asked(self):
        for at in range(len(self.data) - 40000, len(self.data) - 1000, 13000):  # weights are the last and largest segment
            changed = bytearray(self.data)
            changed[at] ^= 4
            self.write("bad.qnl", bytes(changed))
            self.fails("quernel", "inspect", "bad.qnl", "--check", says=["bad.qnl", "hash"])
            self.fails("quernel-run", "bad.qnl", "random:1", "--verify-weights", says=["hash"])

    def test_newer_schema(self):
        self.refused(bundle.with_field(self.data, bundle.SCHEMA, 1000), says=["schema", "1000"])

    def test_newer_runtime_needed(self):
        self.refused(bundle.with_field(self.data, bundle.RUNTIME, 99 << 16), says=["runtime", "99"])

    def test_unknown_feature(self):
        self.refused(bundle.with_field(self.data, bundle.FEATURES, 1 << 40), says=["feature"])

    def test_sizes_that_lie(self):
        for field, value in ((bundle.FILE_BYTES, 1 << 50), (bundle.STRUCTURE_BYTES, 1 << 50), (bundle.STRUCTURE_OFFSET, 1 << 62),
                             (bundle.STRUCTURE_BYTES, 0)):
            self.refused(bundle.with_field(self.data, field, value))

    def test_structure_that_lies(self):
        # The hashes are right, so only the checks behind them stand between these bytes and the runtime.
        generator = random.Random(4)
        begin, end = bundle.structure_range(self.data)
        for _ in range(8 if SANITIZED else 30):
            structure = bytearray(self.data[begin:end])
            for _ in range(generator.choice((1, 2, 8))):
                structure[generator.randrange(len(structure))] = generator.randrange(256)
            self.write("bad.qnl", bundle.with_structure(self.data, bytes(structure)))
            self.ends_well_or_fails("quernel", "inspect", "bad.qnl", "--json", "--schedule")

    def test_for_another_cpu(self):
        # The variant's required features are one of the structure's aligned words; 1 << 63 is a feature that no CPU has.
        begin, end = bundle.structure_range(self.data)
        structure = self.data[begin:end]
        refused = 0
        for at in range(0, len(structure) - 7, 8):
            word = struct.unpack_from("<Q", structure, at)[0]
            if word == 0 or word >= 1 << 16 or word.bit_count() > 2:  # a level, perhaps with one more feature
                continue
            changed = structure[:at] + struct.pack("<Q", 1 << 63) + structure[at + 8:]
            self.write("bad.qnl", bundle.with_structure(self.data, changed))
            done = self.run_tool("quernel-run", "bad.qnl", "random:1")
            self.assertIn(done.returncode, (0, 1), done.stderr)
            if done.returncode == 1 and "variant" in done.stderr and "bit" in done.stderr:
                self.fails("quernel-run", "bad.qnl", "random:1", "--output", "scores.npy", says=["variant"])
                refused += 1
        self.assertGreater(refused, 0)


class BadInput(ToolTest):
    def setUp(self):
        super().setUp()
        self.compile_digits()

    def refused(self, *arguments, says):
        self.fails("quernel-run", "digits.qnl", *arguments, "--output", "scores.npy", says=says)

    def test_wrong_name(self):
        self.refused("--input", "picture=random:1", says=["picture", "image"])
        self.refused("--output", "result=x.npy", says=["result", "scores"])
        self.refused("--entry", "nonsense", says=["nonsense"])

    def test_wrong_dtype(self):
        self.write("x.npy", onnx_file.npy([1, 1, 8, 8], "d", [0] * 64))
        self.refused("x.npy", says=["image", "f32", "f64"])

    def test_wrong_shape(self):
        self.write("x.npy", onnx_file.npy([1, 8, 8], "f", [0] * 64))
        self.refused("x.npy", says=["image", "[1,1,8,8]", "[1,8,8]"])

    def test_wrong_size(self):
        self.write("x.bin", bytes(255))
        self.refused("raw:x.bin", says=["256", "255"])

    def test_file_that_is_missing_or_no_tensor(self):
        self.refused("missing.npy", says=["missing.npy"])
        self.write("x.npy", b"hello")
        self.refused("x.npy", says=["x.npy"])
        self.write("x.pb", b"hello")
        self.refused("x.pb", says=["x.pb"])
        self.write("x.npy", onnx_file.npy([1, 1, 8, 8], "f", [0] * 64)[:-1])
        self.refused("x.npy", says=["x.npy"])

    def test_unwritable_output(self):
        self.fails("quernel-run", "digits.qnl", "random:1", "--output", "nowhere/scores.npy", says=["nowhere/scores.npy"])
        os.mkdir(self.path("folder.npy"))
        self.fails("quernel-run", "digits.qnl", "random:1", "--output", "folder.npy", says=["folder.npy"])


if __name__ == "__main__":
    unittest.main()
