"""Runs quernel and quernel-run for the tests of this folder, and says what every command must do."""
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DIGITS = os.path.join(ROOT, "examples", "digits", "digits.onnx")
DIGITS_IMAGES = os.path.join(ROOT, "examples", "digits", "digits_test.npy")
SANITIZED = os.environ.get("QUERNEL_SANITIZE") == "1"
TIME_LIMIT = 120 if SANITIZED else 30
MEMORY_LIMIT = 4 << 30  # of address space: a damaged size must not become an allocation


def test_data():
    """Where real models and their data are: $QUERNEL_TEST_DATA, else ../shared beside the repository."""
    return os.environ.get("QUERNEL_TEST_DATA") or os.path.join(os.path.dirname(ROOT), "shared")


def skip(reason):
    print("skipped: " + reason)
    sys.exit(77)


def clang():
    """The newest clang, None where there is none."""
    return shutil.which("clang-22") or shutil.which("clang")


def multiplies_bf16():
    """Whether this machine has the instructions of `--target native+bf16`."""
    with open("/proc/cpuinfo") as file:
        return "avx512_bf16" in file.read()


def tool(name):
    """Path of a tool: what ctest says, else that of build/release."""
    variable = name.upper().replace("-", "_")
    return os.environ.get(variable) or os.path.join(ROOT, "build", "release", "bin", name)


def limit_memory():
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))


class ToolTest(unittest.TestCase):
    """Each test has a folder of its own, self.dir, which is the working directory of the tools."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="quernel-test-")
        self.addCleanup(shutil.rmtree, self.dir)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data)
        return name

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def run_tool(self, name, *arguments, **how):
        """`how` replaces what subprocess.run is told: env, stdout, preexec_fn, timeout."""
        return subprocess.run([tool(name), *arguments], cwd=self.dir, text=True, errors="replace",
                              **{"timeout": TIME_LIMIT, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "preexec_fn": limit_memory, **how})

    def succeeds(self, name, *arguments):
        done = self.run_tool(name, *arguments)
        self.assertEqual(done.returncode, 0, f"{name} {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def fails(self, name, *arguments, says=(), code=1, lines=1, **how):
        """The command ends with `code`, one line per diagnostic on stderr that says all of `says`, and leaves no file
        that was not there before."""
        before = set(os.listdir(self.dir))
        done = self.run_tool(name, *arguments, **how)
        command = f"{name} {' '.join(arguments)}: exit {done.returncode}, stdout {done.stdout!r}, stderr {done.stderr!r}"
        self.assertEqual(done.returncode, code, command)
        found = done.stderr.splitlines()
        if lines is not None:
            self.assertEqual(len(found), lines, command)
        self.assertTrue(found and all(line.startswith(name + ": ") for line in found), command)
        self.assertNotIn("internal", done.stderr, command)
        for text in says:
            self.assertIn(text, done.stderr, command)
        self.assertEqual(set(os.listdir(self.dir)), before, "files left behind by " + command)
        return done

    def ends_well_or_fails(self, name, *arguments, output=None):
        """For damaged input where either is right: success, or a diagnostic; never a crash, a hang or half a file."""
        before = set(os.listdir(self.dir))
        done = self.run_tool(name, *arguments)
        command = f"{name} {' '.join(arguments)}: exit {done.returncode}, stderr {done.stderr!r}"
        self.assertIn(done.returncode, (0, 1), command)
        if done.returncode == 1:
            self.assertTrue(done.stderr.startswith(name + ": "), command)
            self.assertNotIn("internal", done.stderr, command)
            self.assertEqual(set(os.listdir(self.dir)), before, "files left behind by " + command)
        elif output:
            os.remove(self.path(output))
        return done.returncode == 0

    def compile_digits(self, name="digits.qnl", *options):
        self.succeeds("quernel", "compile", DIGITS, "-o", name, "-q", *options)
        return name
