#!/usr/bin/env python3
"""quernel compile --emit static: files, header, CMake package, memory, entry points and states, and what is refused."""
import json
import os
import shutil
import subprocess
import unittest

import onnx_file
import static_form
from tools import DIGITS, ToolTest



class StaticLibrary(ToolTest):
    def compile_static(self, *arguments):
        return self.succeeds("quernel", "compile", *arguments, "--emit", "static", "--target", "x86-64-v3")

    def command(self, *command, **how):
        done = subprocess.run(command, cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **how)
        self.assertEqual(done.returncode, 0, f"{command}: {done.stdout}")
        return done.stdout

    def write_c(self, name, text):
        self.write(name, text.encode())

    def compile_counter(self):
        """y and state s: s' = s + x, y = s'; two entry points that differ in their length."""
        nodes = [onnx_file.node("Add", ["s", "sum"], ["next"]), onnx_file.node("ReduceSum", ["x"], ["sum"], attributes=[
            onnx_file.int_attribute("keepdims", 0)])]
        nodes.reverse()
        nodes.append(onnx_file.node("Identity", ["next"], ["y"]))
        model = onnx_file.model(nodes, [onnx_file.value("x", onnx_file.FLOAT, ["n"]), onnx_file.value("s", onnx_file.FLOAT, [])],
                                [onnx_file.value("y", onnx_file.FLOAT, []), onnx_file.value("next", onnx_file.FLOAT, [])])
        self.write("counter.onnx", model)
        self.write("ten.npy", onnx_file.npy([], "f", [10.0]))
        self.compile_static("counter.onnx", "-o", "counter", "--state", "s=next", "--input-value", "s=ten.npy",
                            "--entry", "one:n=1", "--entry", "many:n=3")

    def test_three_files_and_a_report(self):
        report = json.loads(self.compile_static(DIGITS, "-o", "digits", "--json"))
        self.assertEqual(report["static"]["files"], ["digits.a", "digits.h", "digits-config.cmake"])
        self.assertIsNone(report["bundle"])
        self.assertLessEqual(report["static"]["overhead_bytes"], 2048)
        header = self.read("digits.h").decode()
        for macro, value in (("CONSTANTS_BYTES", report["constants_bytes"]), ("CODE_BYTES", report["code_bytes"]),
                             ("STACK_BYTES", report["static"]["stack_bytes"]),
                             ("WORKSPACE_BYTES", report["static"]["memory"]["workspace"])):
            self.assertIn(f"#define DIGITS_{macro} {value}\n", header)
        text = self.compile_static(DIGITS, "-o", "digits")
        for word in ("digits.a", "flash", "constants", "overhead", "RAM", "workspace", "stack"):
            self.assertIn(word, text)

    def test_a_directory_gets_files_named_after_the_model(self):
        os.mkdir(self.path("out"))
        self.compile_static(DIGITS, "-o", "out")
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["digits-config.cmake", "digits.a", "digits.h"])

    def test_same_input_same_bytes(self):
        for folder, threads in (("a", "1"), ("b", "3")):
            os.mkdir(self.path(folder))
            self.compile_static(DIGITS, "-o", folder + "/digits", "--threads", threads)
        for name in ("digits.a", "digits.h", "digits-config.cmake"):
            self.assertTrue(self.read("a/" + name) == self.read("b/" + name), name)

    def test_header_is_strict_c_and_cpp(self):
        self.compile_static(DIGITS, "-o", "digits")
        self.write_c("use.c", '#include "digits.h"\nint main(void) { return (int)sizeof(digits_memory) - (int)sizeof(void*); }\n')
        self.command("gcc", "-std=c99", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-c", "use.c")
        self.command("g++", "-x", "c++", "-std=c++11", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-c", "use.c")

    def test_needs_no_library_and_no_static_memory_that_is_not_used(self):
        self.compile_static(DIGITS, "-o", "digits")
        self.assertEqual(self.command("nm", "-u", "digits.a").split("digits_program.o:")[0].count(" U "), 0)
        self.write_c("start.c", """#include "digits.h"
static float image[64], scores[10];
static digits_memory memory;
static unsigned char workspace[DIGITS_WORKSPACE_BYTES + 1] __attribute__((aligned(64)));
void _start(void) {
  digits_inputs inputs = {(const void*)image};
  digits_outputs outputs = {(void*)scores};
  memory.workspace = workspace;
  digits_run(&memory, &inputs, &outputs);
  for (;;) { }
}
""")
        flags = ["-nostdlib", "-ffreestanding", "-static", "-Wl,--gc-sections", "-Wl,--no-undefined"]
        self.command("gcc", *flags, "start.c", "digits.a", "-o", "own")
        self.assertNotIn("digits_static_memory", self.command("nm", "own"))
        self.write_c("start.c", self.read("start.c").decode().replace("digits_run(&memory", "digits_run(&digits_static_memory"))
        self.command("gcc", *flags, "start.c", "digits.a", "-o", "static")
        self.assertIn("digits_static_memory", self.command("nm", "static"))
        self.assertIn(".bss.workspace.digits", self.command("objdump", "-h", "digits.a"))

    def test_what_is_not_called_is_not_linked(self):
        self.compile_counter()
        self.write_c("start.c", """#include "counter.h"
void _start(void) {
  counter_one_inputs inputs = {0};
  counter_one_outputs outputs = {0};
  counter_one_run(&counter_static_memory, &inputs, &outputs);
}
""")
        self.command("gcc", "-nostdlib", "-static", "-Wl,--gc-sections", "start.c", "counter.a", "-o", "program")
        symbols = self.command("nm", "program")
        self.assertIn("counter_one_run", symbols)
        self.assertNotIn("counter_many_run", symbols)
        self.assertNotIn("counter_reset", symbols)

    def test_entry_points_share_states_which_reset_sets(self):
        self.compile_counter()
        self.write_c("main.c", """#include <stdio.h>
#include "counter.h"
int main(void) {
  float x[3] = {1, 2, 3}, y = 0;
  counter_one_inputs one_in = {x};
  counter_one_outputs one_out = {&y};
  counter_many_inputs many_in = {x};
  counter_many_outputs many_out = {&y};
  for (int i = 0; i < 2; ++i) {
    counter_reset(&counter_static_memory);
    if (counter_one_run(&counter_static_memory, &one_in, &one_out) != COUNTER_OK) return 1;
    printf("%g ", y);
    if (counter_many_run(&counter_static_memory, &many_in, &many_out) != COUNTER_OK) return 1;
    printf("%g %g ", y, *(const float*)((const char*)counter_static_memory.state + COUNTER_STATE_S_OFFSET));
  }
  return 0;
}
""")
        self.command("gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "main.c", "counter.a", "-o", "program")
        self.assertEqual(self.command("./program").split(), ["11", "17", "17"] * 2)

    def test_hot_buffers_lie_in_the_first_memory(self):
        report = json.loads(self.compile_static(DIGITS, "-o", "whole", "--json"))
        all_bytes = report["static"]["memory"]["workspace"]
        report = json.loads(self.compile_static(DIGITS, "-o", "digits", "--json", "--memory", f"dtcm={all_bytes // 2},sram=1M"))
        memory = report["static"]["memory"]
        self.assertEqual(set(memory), {"dtcm", "sram"})
        self.assertLessEqual(memory["dtcm"], all_bytes // 2)
        self.assertGreater(memory["dtcm"], 0)
        self.assertGreater(memory["sram"], 0)
        header = self.read("digits.h").decode()
        self.assertIn(f"#define DIGITS_DTCM_BYTES {memory['dtcm']}\n", header)
        self.assertIn("void* dtcm; /* DIGITS_DTCM_BYTES", header)
        sections = self.command("objdump", "-h", "digits.a")
        self.assertIn(".bss.dtcm.digits", sections)
        self.assertIn(".bss.sram.digits", sections)

    def test_what_does_not_fit_is_told_item_by_item(self):
        both = ("quernel", "compile", DIGITS, "--emit", "static", "-o", "digits", "--target", "x86-64-v3")
        need = json.loads(self.compile_static(DIGITS, "-o", "whole", "--json"))["static"]
        all_bytes = need["memory"]["workspace"] + need["stack_bytes"]
        self.succeeds(*both, "--max-ram", str(all_bytes))
        for name in ("digits.a", "digits.h", "digits-config.cmake"):
            os.remove(self.path(name))
        done = self.fails(*both, "--max-ram", "1K", lines=None, says=[
            "expected at most 1024 bytes of RAM, found a need of ", ": workspace ", "item 0: ", "bytes of workspace live (peak): "])
        self.assertGreater(len(done.stderr.splitlines()), 3)
        self.fails(*both, "--memory", "dtcm=1K,sram=2K", lines=None, says=[
            "memory 'sram': expected at most 2048 bytes, found a need of",
            "give --memory more, or another memory behind the last one", "(peak)"])
        self.fails(*both, "--memory", "dtcm", code=2, says=[
            "--memory: expected NAME=SIZE,NAME=SIZE…, sizes as 4096, 256K or 1M, found 'dtcm'"])
        self.fails(*both, "--memory", "a=1K,a=2K", code=2, says=["--memory: 'a' is there twice"])
        self.fails(*both, "--max-ram", "much", code=2, says=["--max-ram: expected a size as 4096, 256K or 1M, found 'much'"])
        self.fails("quernel", "compile", DIGITS, "-o", "digits.qnl", "--max-ram", "64K", code=2,
                   says=["--memory and --max-ram are for --emit static and c: a bundle's memory is the runtime's"])

    def test_wide_layers_are_computed_in_strips_where_ram_is_short(self):
        small = ("quernel", "compile", DIGITS, "--emit", "static", "--target", "cortex-m4", "-o", "digits", "--json")
        whole = json.loads(self.succeeds(*small))["static"]
        need = whole["memory"]["workspace"]
        limit = need + whole["stack_bytes"] - 1
        report = json.loads(self.succeeds(*small, "--max-ram", str(limit)))
        self.assertLessEqual(report["static"]["memory"]["workspace"] + report["static"]["stack_bytes"], limit)
        self.assertRegex(" ".join(report["notes"]), r"\d strips of the \d+ rows of '.*', from '.*' on: \d+ bytes of workspace and "
                         r"states instead of " + str(need) + r", \d+\.\d % (more|fewer) multiply-adds")

    def test_two_models_in_one_program(self):
        self.compile_static(DIGITS, "-o", "first")
        self.compile_static(DIGITS, "-o", "second")
        self.write_c("main.c", """#include "first.h"
#include "second.h"
int main(void) { return &first_static_memory == (const void*)&second_static_memory || first_run == (void*)second_run; }
""")
        self.command("gcc", "main.c", "first.a", "second.a", "-o", "program")
        self.command("./program")

    @unittest.skipUnless(shutil.which("cmake"), "no cmake")
    def test_cmake_package_is_found_and_linked(self):
        os.mkdir(self.path("model"))
        self.compile_static(DIGITS, "-o", "model/Digits")
        self.write_c("main.c", '#include "Digits.h"\nint main(void) { return Digits_run == 0; }\n')
        self.write_c("CMakeLists.txt", """cmake_minimum_required(VERSION 3.20)
project(firmware C)
find_package(Digits REQUIRED)
add_executable(program main.c)
target_link_libraries(program PRIVATE Digits::Digits)
""")
        self.command("cmake", "-S", ".", "-B", "build", "-DDigits_DIR=" + self.path("model"))
        self.command("cmake", "--build", "build")
        self.command("build/program")

    def test_what_is_refused(self):
        both = ("quernel", "compile", DIGITS, "--emit", "static")
        self.fails(*both, "-o", "digits", "--target", "x86-64", "--target", "x86-64-v3",
                   says=["expected one target for a static library, found 2"])
        self.fails(*both, "-o", "my digits", says=["expected a name of letters, digits and _ - + . for a static library, found 'my digits'"])
        self.fails("quernel", "compile", DIGITS, "-o", "digits.qnl", "--target", "cortex-m7",
                   says=["name a target that runs Linux, or compile for firmware with --emit=static"])
        self.fails(*both, "-o", "digits", "--target", "vulkan",
                   says=["target 'vulkan': a static library cannot hold shaders", "compile a bundle (--emit=bundle)"])
        self.fails(*both, "-o", "nowhere/digits", says=["there is no directory 'nowhere'"])
        self.write("free.onnx", onnx_file.model([onnx_file.node("Neg", ["x"], ["y"])], [onnx_file.value("x", onnx_file.FLOAT, ["n"])],
                                                [onnx_file.value("y", onnx_file.FLOAT, ["n"])]))
        self.fails("quernel", "compile", "free.onnx", "--emit", "static", "-o", "free",
                   says=["expected dims of fixed size, found the free dim 'n'", "--dim n=N"])
        os.mkdir(self.path("taken.h"))
        self.fails(*both, "-o", "taken", says=["taken.h"])


if __name__ == "__main__":
    unittest.main()
