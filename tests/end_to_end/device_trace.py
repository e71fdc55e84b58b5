#!/usr/bin/env python3
"""quernel-run's --trace and --profile: items, submissions and transfers, on the CPU and on Vulkan's software driver."""
import json
import os
import struct
import sys
import unittest

from tools import DIGITS, ROOT, SANITIZED, ToolTest

sys.path.append(os.path.join(ROOT, "tests"))
from vulkan_driver import vulkan_environment  # noqa: E402

RUNS = 3


class Trace(ToolTest):
    def events(self):
        with open(self.path("trace.json")) as file:
            return json.load(file)["traceEvents"]

    def make_image(self):
        """A file, which is uploaded; random inputs are made in place."""
        with open(self.path("image.raw"), "wb") as file:
            file.write(struct.pack("<64f", *range(64)))

    def check(self, device, *arguments, **how):
        """Each item is on the queue once per run and each run on the host. -> what the profile says was done beside items"""
        self.make_image()
        done = self.run_tool("quernel-run", "t.qnl", "raw:image.raw", "--repeat", str(RUNS), "--device", device, "--json", "--profile",
                             "--trace", "trace.json", *arguments, **how)
        self.assertEqual(done.returncode, 0, done.stderr)
        profile = json.loads(done.stdout)
        items, work, events = profile["items"], profile["device_work"], self.events()
        tracks = {event["tid"]: event["args"]["name"] for event in events if event["ph"] == "M"}
        self.assertEqual(tracks[0], "host")
        self.assertTrue(tracks[1].startswith(f"queue of {device}"), tracks)
        found = {kind: [event for event in events if event.get("cat") == kind] for kind in ("item", "run", "upload", "wait")}
        self.assertEqual((len(found["run"]), len(found["item"])), (RUNS, RUNS * len(items)))
        for run in found["run"]:
            inside = [event for event in found["item"] if run["ts"] <= event["ts"] and event["ts"] + event["dur"] <= run["ts"] + run["dur"] + 1e-3]
            self.assertEqual([event["name"] for event in inside], [item["name"] for item in items])
        self.assertTrue(all(event["tid"] == 1 and event["args"]["node"] for event in found["item"]))
        self.assertGreater(sum(item["flops"] for item in items), 0)
        self.assertEqual(sum(item["flops"] for item in items) * RUNS, sum(event["args"]["flops"] for event in found["item"]))
        self.assertEqual([item["runs"] for item in items], [RUNS] * len(items))
        self.assertEqual((work["run"]["count"], work["submit"]["count"]), (RUNS, RUNS))
        self.assertGreaterEqual(sum(event["args"]["bytes"] for event in found["upload"]), work["upload"]["bytes"])
        return work

    def test_a_cpu(self):
        self.succeeds("quernel", "compile", DIGITS, "-o", "t.qnl", "-q")
        for threads in "1", "2":
            work = self.check("cpu", "--threads", threads)
            self.assertEqual([work[kind]["count"] for kind in ("upload", "download", "record", "descriptors", "pipeline")], [1, 0, 0, 0, 0])
        text = self.succeeds("quernel-run", "t.qnl", "raw:image.raw", "--profile")
        self.assertRegex(text, r"time +share +runs +GFLOP/s +GB/s +kernel, first node\n.* ms +[0-9.]+% +1 ")
        self.assertRegex(text, r" ms  1 x run\n.* ms  1 x submit\n.* ms  1 x upload, [0-9]+ bytes\n")
        self.assertNotIn("upload", self.succeeds("quernel-run", "t.qnl", "random:1", "--profile"))

    @unittest.skipIf(SANITIZED or vulkan_environment() is None, "no Vulkan, or its driver is not for the sanitizers")
    def test_vulkan(self):
        self.succeeds("quernel", "compile", DIGITS, "-o", "t.qnl", "-q", "--target", "vulkan")
        work = self.check("vulkan", env=vulkan_environment())
        self.assertEqual([work[kind]["count"] for kind in ("upload", "download", "record", "descriptors", "pipeline")], [1, 0, 1, 0, 0])

    def test_test_vectors_are_traced_and_files_that_cannot_be_written_are_named(self):
        self.succeeds("quernel", "compile", DIGITS, "-o", "t.qnl", "-q")
        self.assertEqual(self.run_tool("quernel-run", "t.qnl", "random:1", "--trace", "none/trace.json").stderr,
                         "quernel-run: 'none/trace.json': cannot be written: No such file or directory\n")
        self.run_tool("quernel-run", "t.qnl", "--test", "--trace", "trace.json")
        self.assertEqual(len(self.events()), 2, "no test vectors, no events but the tracks' names")


if __name__ == "__main__":
    unittest.main()
