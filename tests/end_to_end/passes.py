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
        last = re.findall(r"^  (\S+) ", self.succeeds("quernel", "opt", "--list").split("loop passes")[0], re.M)[-1]
        for model in models:
            for target in ("x86-64-v3", "vulkan/x86-64-v3"):
                with self.subTest(model=model, target=target):
                    common = ("--target", target, "--print-after", "all", "--stop-after", last)
                    by_opt = printed(self.run_tool("quernel", "opt", model, *common, "-o", "result.qg").stderr)
                    by_compile = printed(self.run_tool("quernel", "compile", model, "-o", "x.qnl", *common).stderr)
                    self.assertGreater(len(by_opt), 20)
                    self.assertEqual(by_opt, by_compile)


if __name__ == "__main__":
    unittest.main()
