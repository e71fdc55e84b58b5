#!/usr/bin/env python3
"""What CMake says, when Quernel is configured, of settings that have no effect or cannot be had; the runtime alone, nothing is built."""
import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED_LIBS_NOTE = "BUILD_SHARED_LIBS has no effect: Quernel's libraries are static"
CROSS = "aarch64-linux-gnu-g++"


class Configure(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = folder.name

    def configure(self, *options):
        """-> (exit code, what is said on both streams, in one line)"""
        done = subprocess.run(["cmake", "-S", ROOT, "-B", self.build, "-G", "Ninja", "-DQUERNEL_BUILD_COMPILER=OFF",
                               "-DQUERNEL_BUILD_TESTS=OFF", *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, " ".join(done.stdout.split())

    def libraries(self):
        with open(os.path.join(self.build, "build.ninja")) as f:
            text = f.read()
        return "libquernel_runtime.a:" in text, "libquernel_runtime.so" in text

    def test_shared_libraries_that_there_are_not(self):
        for options, noted in (((), False), (("-DBUILD_SHARED_LIBS=OFF",), False), (("-DBUILD_SHARED_LIBS=ON",), True)):
            code, said = self.configure(*options)
            self.assertEqual(code, 0, said)
            self.assertEqual(SHARED_LIBS_NOTE in said, noted, said)
            self.assertEqual(self.libraries(), (True, False))

    @unittest.skipUnless(shutil.which(CROSS), f"no {CROSS}: toolchains/install_debian.sh --cross installs it")
    def test_static_programs_have_no_vulkan(self):
        toolchain = "-DCMAKE_TOOLCHAIN_FILE=" + os.path.join(ROOT, "toolchains", "aarch64-linux-gnu.cmake")
        code, said = self.configure(toolchain)
        self.assertEqual(code, 0, said)
        self.assertIn("Vulkan is left out: static programs cannot open its loader", said)
        code, said = self.configure("-DQUERNEL_VULKAN=ON")
        self.assertNotEqual(code, 0)
        self.assertIn("QUERNEL_VULKAN: expected programs that are linked dynamically", said)
        self.assertIn("found '-static' in CMAKE_EXE_LINKER_FLAGS; configure with -DCMAKE_EXE_LINKER_FLAGS=", said)
        code, said = self.configure("-DQUERNEL_VULKAN=AUTO", "-DCMAKE_EXE_LINKER_FLAGS=")
        self.assertEqual(code, 0, said)
        self.assertNotIn("Vulkan is left out", said)


if __name__ == "__main__":
    unittest.main()
