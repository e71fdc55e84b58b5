#!/usr/bin/env python3
"""Models that run partly on a Vulkan device and partly on the companion CPU: results, what the trace shows, mistakes."""
import json
import os
import struct
import sys
import unittest

from tools import DIGITS, ROOT, SANITIZED, ToolTest

sys.path.append(os.path.join(ROOT, "tests"))
from vulkan_driver import vulkan_environment  # noqa: E402

RUNS = 2
# After "gpu:*".
PLACEMENTS = {
    "all on the GPU": [],
    "the middle": ["cpu:/features/features.2/*", "cpu:/features/features.3/*"],
    "both ends": ["cpu:/features/features.0/*", "cpu:/classify/*", "cpu:/Softmax"],
    "all on the CPU": ["cpu:*"],
}


class Placement(ToolTest):
    def compile(self, bundle, *arguments):
        return self.succeeds("quernel", "compile", DIGITS, "-o", bundle, "-q", *arguments)

    def refused(self, *arguments):
        done = self.run_tool("quernel", "compile", DIGITS, "-o", "refused.qnl", *arguments)
        self.assertNotEqual(done.returncode, 0)
        self.assertFalse(os.path.exists(self.path("refused.qnl")))
        return done.stderr

    def output(self, bundle, *arguments, **how):
        outputs = json.loads(self.succeeds("quernel-run", bundle, "--list", "--json"))["entry_points"][0]["outputs"]
        done = self.run_tool("quernel-run", bundle, "random:1", "--json", "--output", f"{outputs[0]['name']}=out.raw", *arguments, **how)
        self.assertEqual(done.returncode, 0, done.stderr)
        data = self.read("out.raw")
        return json.loads(done.stdout), struct.unpack(f"<{len(data) // 4}f", data)

    @unittest.skipIf(SANITIZED or vulkan_environment() is None, "no Vulkan, or its driver is not for the sanitizers")
    def test_every_division_computes_the_same(self):
        self.compile("cpu.qnl")
        _, expected = self.output("cpu.qnl")
        for name, rules in PLACEMENTS.items():
            with self.subTest(name):
                places = [word for rule in ["gpu:*", *rules] for word in ("--place", rule)]
                self.compile("split.qnl", "--target", "vulkan/native", *places)
                variant = json.loads(self.succeeds("quernel", "inspect", "split.qnl", "--schedule", "--json"))["variants"][0]
                on_companion = [item["on_companion"] for item in variant["schedule"]]
                self.assertEqual("companion" in variant, any(on_companion))
                self.assertEqual(all(on_companion), name == "all on the CPU")
                report, found = self.output("split.qnl", "--device", "vulkan", "--repeat", str(RUNS), "--trace", "trace.json",
                                            env=vulkan_environment())
                self.assertEqual(report["target"], variant["target"])
                worst = max(abs(a - b) for a, b in zip(expected, found))
                self.assertLess(worst, 1e-5 * max(map(abs, expected)))
                self.check_trace(on_companion)
                done = self.run_tool("quernel", "inspect", "split.qnl", "--session", "--device", "vulkan", "--json", env=vulkan_environment())
                session = json.loads(done.stdout)["session"]
                for kernels, companion in (("kernels", False), ("companion_kernels", True)):
                    self.assertEqual(sum(kernel["items"] for kernel in session.get(kernels, [])), on_companion.count(companion))

    def check_trace(self, on_companion):
        """Items in order, each where it belongs; a submission for each stretch of one of the two; nothing is copied, and the input is made in place."""
        with open(self.path("trace.json")) as file:
            events = [event for event in json.load(file)["traceEvents"] if event["ph"] != "M"]
        kinds = {kind: sum(event["cat"] == kind for event in events) for kind in ("submit", "upload", "download", "record")}
        items = [event["tid"] == 0 for event in events if event["cat"] == "item"]
        self.assertEqual(sorted(items), sorted(on_companion * RUNS))
        stretches = sum(i == 0 or companion != on_companion[i - 1] for i, companion in enumerate(on_companion))
        self.assertEqual(kinds["submit"], stretches * RUNS)
        self.assertEqual((kinds["download"], kinds["upload"]), (0, 0))

    @unittest.skipIf(SANITIZED or vulkan_environment() is None, "no Vulkan, or its driver is not for the sanitizers")
    def test_without_rules_it_is_estimated_and_a_plain_variant_may_stand_beside(self):
        self.compile("both.qnl", "--target", "vulkan/native", "--target", "vulkan", "--target", "x86-64")
        report, _ = self.output("both.qnl", "--device", "vulkan", env=vulkan_environment())
        self.assertTrue(report["target"].startswith("vulkan/"), report)
        self.succeeds("quernel", "strip", "both.qnl", "-o", "one.qnl", "--target", report["target"])
        again, _ = self.output("one.qnl", "--device", "vulkan", env=vulkan_environment())
        self.assertEqual(again["target"], report["target"])

    @unittest.skipIf(SANITIZED or vulkan_environment() is None, "no Vulkan, or its driver is not for the sanitizers")
    def test_a_probed_device_can_be_compiled_for(self):
        done = self.run_tool("quernel", "probe", "--device", "vulkan", "-o", "profile", env=vulkan_environment())
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("profile")) as file:
            lines = file.read().splitlines()
        facts = dict(line.split("#")[0].split() for line in lines if not line.startswith("#"))
        for fact in ("flops_per_second", "memory_bytes_per_second", "transfer_bytes_per_second", "transfer_seconds"):
            self.assertGreater(float(facts[fact]), 0, fact)
        self.compile("probed.qnl", "--target", "vulkan/native", "--device-profile", "profile")
        report, _ = self.output("probed.qnl", "--device", "vulkan", env=vulkan_environment())
        self.assertTrue(report["target"].startswith("vulkan/"), report)
        # With the features that the device has.
        best = next(line.split()[-1].rstrip(".") for line in lines if line.startswith("# The device runs code for --target "))
        self.compile("best.qnl", "--target", best, "--device-profile", "profile")
        report, _ = self.output("best.qnl", "--device", "vulkan", env=vulkan_environment())
        self.assertEqual(report["target"], best)

    def test_mistakes_are_named(self):
        told = self.refused("--device-profile", "p")
        self.assertIn("device profile 'p': expected a GPU among the targets, found none", told)
        self.assertIn("name one (--target=vulkan), or leave the profile out", told)
        told = self.refused("--device-profile", "nowhere", "--target", "vulkan")
        self.assertIn("cannot be read: expected a device profile", told)
        self.assertIn("`quernel probe` writes one", told)
        self.assertIn("--place: expected a target that is a GPU with a companion CPU", self.refused("--place", "cpu:*"))
        self.assertIn("expected a target that is a GPU with", self.refused("--place", "cpu:*", "--target", "vulkan"))
        self.assertIn("--place: no node has a name like 'Conv_99'",
                      self.refused("--place", "cpu:Conv_99", "--target", "vulkan/native"))
        self.assertIn("--place: expected cpu:GLOB or gpu:GLOB, found 'tpu:*'", self.refused("--place", "tpu:*", "--target", "vulkan/native"))
        for target in "native/vulkan", "x86-64/x86-64", "vulkan/vulkan", "vulkan/cortex-m4":
            told = self.refused("--target", target)
            self.assertIn("expected GPU/CPU", told)
            self.assertIn("name a GPU and its companion CPU, vulkan/native say", told)
        self.assertIn("ask the same of a device", self.refused("--target", "vulkan/x86-64", "--target", "vulkan/x86-64"))


if __name__ == "__main__":
    unittest.main()
