#!/usr/bin/env python3
"""Every rule of the lint finds what it is for: each case is a small tree with one thing wrong, or nothing."""
import os
import tempfile
import unittest

import diagnostics
import lint

HEADER = "// What it is.\n#pragma once\n"
README = {"README.md": "x", "compiler/README.md": "x", "compiler/graph/README.md": "x", "compiler/loop/README.md": "x",
          "runtime/README.md": "x", "runtime/core/README.md": "x"}


def found(files, check=lambda root: lint.findings(lint.Tree(root))):
    """The findings in a tree of these files (path: text)."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in {**README, **files}.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w") as f:
                f.write(text)
        return list(check(root))


class LintTest(unittest.TestCase):
    def expect(self, files, *wanted):
        """Exactly one finding for each (path:line, rule)."""
        got = found(files)
        self.assertEqual(len(got), len(wanted), got)
        for (place, rule), line in zip(wanted, got):
            self.assertTrue(line.startswith(place + ":") and line.endswith(f"[{rule}]"), line)

    def test_a_clean_tree_has_no_findings(self):
        self.expect({"compiler/graph/graph.h": HEADER,
                     "compiler/graph/print.cpp": '#include "graph/graph.h"\n#include <string>\n'})

    def test_the_loop_ir_never_sees_the_graph(self):
        self.expect({"compiler/graph/graph.h": HEADER, "compiler/loop/loop.cpp": '#include "graph/graph.h"\n'},
                    ("compiler/loop/loop.cpp:1", "layers"))

    def test_the_compiler_never_sees_the_runtime(self):
        self.expect({"runtime/include/quernel/runtime.h": HEADER,
                     "compiler/graph/a.cpp": "\n#include <quernel/runtime.h>\n"},
                    ("compiler/graph/a.cpp:2", "layers"))

    def test_the_runtime_never_sees_the_compiler_even_by_a_relative_path(self):
        self.expect({"compiler/graph/graph.h": HEADER,
                     "runtime/core/a.cpp": '#include "../../compiler/graph/graph.h"\n'},
                    ("runtime/core/a.cpp:1", "layers"))

    def test_tools_may_link_the_runtime(self):
        self.expect({"runtime/include/quernel/runtime.h": HEADER, "compiler/tools/README.md": "x",
                     "compiler/tools/run.cpp": "#include <quernel/runtime.h>\n"})

    def test_a_source_file_belongs_to_a_layer(self):
        self.expect({"compiler/odd/a.cpp": ""}, ("compiler/odd/a.cpp:1", "layers"))

    def test_llvm_stays_in_its_folder(self):
        self.expect({"compiler/graph/a.cpp": "#include <llvm/IR/Module.h>\n"}, ("compiler/graph/a.cpp:1", "libraries"))
        self.expect({"compiler/codegen/README.md": "x", "compiler/codegen/llvm/README.md": "x",
                     "compiler/codegen/llvm/a.cpp": '#include "llvm/IR/Module.h"\n'})

    def test_flatbuffers_stay_in_the_bundle_reader(self):
        self.expect({"runtime/core/session.cpp": '#include "bundle_generated.h"\n'},
                    ("runtime/core/session.cpp:1", "libraries"))
        self.expect({"runtime/core/bundle_reader.cpp": '#include "bundle_generated.h"\n'})

    def test_the_core_has_no_threads(self):
        self.expect({"runtime/core/a.cpp": "#include <thread>\n"}, ("runtime/core/a.cpp:1", "libraries"))

    def test_names_of_the_standard_library_come_with_their_headers(self):
        self.expect({"compiler/graph/graph.h": HEADER + "#include <optional>\n",
                     "compiler/graph/a.cpp": '#include "graph/graph.h"\nstd::optional<int> x;\n',
                     "compiler/graph/b.cpp": "// std::sort(x)\nstd::map<int, int> y;\n"},
                    ("compiler/graph/b.cpp:2", "standard-names"))

    def test_lowering_asks_a_target_for_lanes_and_masks_only(self):
        readme = {"compiler/lower/README.md": "x"}
        self.expect({**readme, "compiler/lower/a.cpp": "int n = c_.target.lanes(4);\n// target.l2_bytes\nbool m = target.has_masks;\n"
                                                       "f(schedule::rows(plan, 3), target);\nint w = plan.target_work;\n"})
        self.expect({**readme, "compiler/lower/a.cpp": "int n = c_.target.lanes(4);\nint b = c_.target\n    .l2_bytes;\n"},
                    ("compiler/lower/a.cpp:2", "lowering"))
        self.expect({**readme, "compiler/lower/a.h": "// What it is.\nint n = schedule::rows(plan,\n    c_.target);\n"},
                    ("compiler/lower/a.h:2", "lowering"))
        self.expect({"compiler/schedule/README.md": "x", "compiler/schedule/a.cpp": "int b = target.l2_bytes;\n"})

    def test_a_long_file_says_why(self):
        self.expect({"compiler/graph/a.cpp": "\n" * 601}, ("compiler/graph/a.cpp:1", "length"))
        self.expect({"compiler/graph/a.cpp": "// Over 600 lines because the table is one.\n" + "\n" * 700})

    def test_a_file_over_the_limit_has_no_excuse(self):
        self.expect({"compiler/graph/a.cpp": "// Over 600 lines because the table is one.\n" + "\n" * 1000},
                    ("compiler/graph/a.cpp:1", "length"))

    def test_the_table_of_features_is_that_of_the_list(self):
        features = ('QNL_ARCHITECTURE(ARM, 3, "arm")  // both profiles\n'
                    'QNL_FEATURE(ARM, QNL_ARM_A, 0, "a", "", "", 0, "none")\n'
                    'QNL_FEATURE(ARM, QNL_ARM_B, 1, "b", "bb", "+b", QNL_ARM_A, "two at a time")\n')
        table = "# Targets\n| option | of | in texts | does |\n|---|---|---|---|\n"
        row, other = "| `+bb` | arm | b | two at a time |\n", "| `+c` | arm | c | three |\n"
        place = "compiler/targets/README.md"
        for rows, wanted in ((row, []), ("", [(place + ":1", "features")]), (other, [(place + ":4", "features")]),
                             (row + other, [(place + ":5", "features")])):
            self.expect({"schemas/README.md": "x", "schemas/features.def": features, place: table + rows}, *wanted)
        self.expect({"schemas/README.md": "x", "schemas/features.def": features + "QNL_FEATURE(ARM, D)\n", place: table + row},
                    ("schemas/features.def:4", "features"))

    def test_a_header_opens_with_a_comment(self):
        self.expect({"compiler/graph/a.h": "#pragma once\n"}, ("compiler/graph/a.h:1", "headers"))

    def test_tests_are_named_in_words(self):
        self.expect({"tests/README.md": "# Tests\n", "tests/unit/README.md": "# Unit tests\n",
                     "tests/unit/graph/a_test.cpp": "TEST(Graph, KeepsNames) {}\nTEST_P(Graph, keeps_names) {}\n"},
                    ("tests/unit/graph/a_test.cpp:1", "test-names"))

    def test_no_path_of_one_machine(self):
        self.expect({"compiler/graph/a.cpp": "// see /ho" + "me/me/notes\n"}, ("compiler/graph/a.cpp:1", "machine-paths"))
        self.expect({"compiler/graph/a.cpp": "// the model's node /model/root" + "/Conv, not a path\n"})

    def test_the_top_level_is_fixed(self):
        self.expect({"scripts/a.txt": "x"}, ("scripts:1", "top-level"))

    def test_a_folder_says_what_it_is(self):
        self.expect({"compiler/lower/a.cpp": ""}, ("compiler/lower/README.md:1", "documented"))

    def test_prose_uses_the_words_of_the_field(self):
        self.expect({"compiler/README.md": "# x\n\nThe tile is turned\nround.\n"}, ("compiler/README.md:3", "prose"))
        self.expect({"compiler/README.md": "| a | written anew |\n- A list. Of its items, one.\n"},
                    ("compiler/README.md:1", "prose"), ("compiler/README.md:2", "prose"))
        self.expect({"compiler/graph/ir.h": "// What it is.\nint a = 0;  // in place\n            // of b\n"},
                    ("compiler/graph/ir.h:2", "prose"))
        self.expect({"compiler/graph/ir.h": "/* What it is,\n * put together. */\n"}, ("compiler/graph/ir.h:2", "prose"))

    def test_prose_is_not_code_and_knows_other_meanings(self):
        self.expect({"compiler/README.md": "Computed in place, of course. At present: `--choose-anew`.\n"
                                           "```\nin place of\n```\nBoundary-clipped windows, shared memory of a workgroup.\n"
                                           "Instead of its own, the cost of its own kernel.\n"})
        self.expect({"compiler/graph/ir.h": "// The keys of the present values.\nauto in_place; const char* s = \"// anew\";\n"
                                            "int x;  // computed in place\nint y;  // of x\n",
                     "compiler/graph/other.h": "// Made anew.\n"})


class DiagnosticsTest(unittest.TestCase):
    SOURCE = ('Status f(int n) {\n  if (n == 0)\n    return invalid_input("expected a size above 0, "\n'
              '                         "found " + std::to_string(n), {.file = name});\n  return {};\n}\n')

    def expect(self, files, *wanted):
        got = found(files, diagnostics.findings)
        self.assertEqual(len(got), len(wanted), got)
        for place, line in zip(wanted, got):
            self.assertTrue(line.startswith(place + ": "), line)

    def test_a_diagnostic_without_a_test(self):
        self.expect({"compiler/graph/a.cpp": self.SOURCE}, "compiler/graph/a.cpp:2")
        self.expect({"compiler/graph/a.cpp": self.SOURCE, "tests/unit/a_test.cpp": '"expected a size"'}, "compiler/graph/a.cpp:2")
        self.expect({"runtime/core/a.cpp": 'x = Failure(error, CODE) << "bundle: wrong \\"kind\\": " << 3;'}, "runtime/core/a.cpp:1")

    def test_a_diagnostic_with_a_test(self):
        for test in ("tests/unit/a_test.cpp", "tests/error/graph/a.test", "tests/end_to_end/a.py"):
            self.expect({"compiler/graph/a.cpp": self.SOURCE, test: 'says "expected a size above 0, found 0"'})
        self.expect({"compiler/graph/a.cpp": self.SOURCE, "tests/unit/a_test.cpp": '"expected a size "\n    "above 0"'})

    def test_the_piece_that_is_no_other_diagnostics_counts(self):
        two = 'fail("first thing" + s + " is given twice"); fail("second thing" + s + " is given twice");'
        self.expect({"compiler/graph/a.cpp": two, "tests/unit/a_test.cpp": '"first thing is given twice"'}, "compiler/graph/a.cpp:1")

    def test_internal_errors_need_none(self):
        self.expect({"compiler/graph/a.cpp": 'return internal_error("expected a node");\nQUERNEL_UNREACHABLE("unknown kind");\n',
                     "compiler/graph/b.cpp": 'Diagnostic broken(Text t, Place p = {}) {\n  return internal_error(t);\n}\n'
                                             'Status f() { return broken("expected a node"); }\n'})

    def test_exemptions_are_needed_and_say_why(self):
        exemption = {diagnostics.EXEMPTIONS: "# a list\nexpected a size above 0 | a reason\n"}
        self.expect({"compiler/graph/a.cpp": self.SOURCE, **exemption})
        self.expect(exemption, diagnostics.EXEMPTIONS + ":2")


if __name__ == "__main__":
    unittest.main()
