#!/usr/bin/env python3
"""quernel opt and quernel compile run passes in the same way: on the bodies of loops and branches, too."""
import glob
import os
import re
import unittest

from tools import ROOT, ToolTest

NODES = "/usr/share/libonnx-testdata/data/node"  # Debian's libonnx-testdata
NESTED = """symbol i min=0 max=3 runtime bound=3
graph @main(%x: f32[4]) {
  %l = loop %x carry 1 for i below 3 do (%v: f32[4]) {
    %1 = neg %v : f32[4]
    %2 = neg %1 : f32[4]
    %3 = exp %2 : f32[4]
    return v = %3
  }
  %r = result %l {0} : f32[4]
  return y = %r
}
"""
SOFTMAX = """graph @main(%x: f32[8,100]) {
  %m = reduce_max %x {1} keepdims : f32[8,1]
  %1 = expand %m : f32[8,100]
  %2 = sub %x, %1 : f32[8,100]
  %e = exp %2 : f32[8,100]
  %z = reduce_sum %e {1} keepdims acc f32 : f32[8,1]
  %3 = expand %z : f32[8,100]
  %p = div %e, %3 : f32[8,100]
  return y = %p
}
"""


def graphs_with_bodies():
    """Texts of the golden cases of graph passes that have loops or branches."""
    for path in sorted(glob.glob(os.path.join(ROOT, "tests", "golden", "graph", "*.test"))):
        with open(path) as file:
            text = file.read()
        for case in re.findall(r"^# input\n(.*?)^# expect$", text, re.M | re.S):
            if re.search(r"= (loop|branch) ", case):
                yield case


def printed(text):
    """What a tool printed after each pass, in order: (pass, IR)."""
    parts = re.split(r"^// after (\S+)\n", text, flags=re.M)[1:]
    return list(zip(parts[::2], parts[1::2]))


class Passes(ToolTest):
    def test_opt_runs_passes_on_bodies(self):
        self.write("nested.qg", NESTED.encode())
        text = self.succeeds("quernel", "opt", "nested.qg", "--passes", "simplify-algebra")
        self.assertIn("exp", text)
        self.assertNotIn("neg", text)

    def test_opt_and_compile_print_the_same_after_every_pass(self):
        for i, text in enumerate(graphs_with_bodies()):
            self.write(f"{i}.qg", text.encode())
        self.write("nested.qg", NESTED.encode())
        models = sorted(glob.glob(self.path("*.qg")))
        for name in ("if", "scan9_sum", "scan_sum"):
            models += glob.glob(f"{NODES}/test_{name}/model.onnx")
        self.assertGreater(len(models), 5)
        last = re.findall(r"^  (\S+) ", self.succeeds("quernel", "opt", "--list").split("steps of")[0], re.M)[-1]
        for model in models:
            for target in ("x86-64-v3", "vulkan/x86-64-v3"):
                with self.subTest(model=model, target=target):
                    common = ("--target", target, "--print-after", "all", "--stop-after", last)
                    by_opt = printed(self.run_tool("quernel", "opt", model, *common, "-o", "result.qg").stderr)
                    by_compile = printed(self.run_tool("quernel", "compile", model, "-o", "x.qnl", *common).stderr)
                    self.assertGreater(len(by_opt), 20)
                    self.assertEqual(by_opt, by_compile)

    def test_steps_of_scheduling_are_passes(self):
        self.write("nested.qg", NESTED.encode())
        listed = self.succeeds("quernel", "opt", "--list").split("steps of")[1].split("loop passes")[0]
        steps = re.findall(r"^  (\S+) ", listed, re.M)
        self.assertIn("plan-memory", steps)
        compile_it = ("compile", "nested.qg", "-o", "x.qnl", "-q", "--target", "x86-64-v3")
        said = self.run_tool("quernel", *compile_it, "--print-after", "all", "--time-passes").stderr
        after = dict(printed(said))
        for step in steps:
            self.assertIn("schedule main", after[step])
            self.assertRegex(said.split("// after ")[-1], rf" {step}\b")
        self.assertEqual(after["place-states"].count("\n    schedule "), 0)
        self.assertEqual(after["schedule-bodies"].count("\n    schedule "), 1)  # the loop's body
        stopped = self.run_tool("quernel", *compile_it, "--print-after", "changed", "--stop-after", "form-groups").stderr
        self.assertEqual(printed(stopped)[-1][0], "form-groups")
        optional = [step for step in steps if f"{step} " in listed and "(always runs)" not in re.search(rf"^  {step} .*$", listed, re.M)[0]]
        self.assertEqual(optional, ["narrow-stored-values", "form-rows", "form-attention"])
        self.write("softmax.qg", SOFTMAX.encode())
        for disabled, kernels in (((), "rows"), (("--disable-pass", "form-rows"), "reduce reduce_max")):
            self.succeeds("quernel", "compile", "softmax.qg", "-o", "y.qnl", "-q", "--target", "x86-64-v3", *disabled)
            said = self.run_tool("quernel", "compile", "softmax.qg", "-o", "y.qnl", "-q", "--print-after", "plan-memory", *disabled).stderr
            self.assertIn(kernels, said)


if __name__ == "__main__":
    unittest.main()
