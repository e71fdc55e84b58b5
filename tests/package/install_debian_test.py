#!/usr/bin/env python3
"""toolchains/install_debian.sh beside programs of Debian that only pretend: it waits for apt's lock, and for nothing else."""
import os
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(ROOT, "toolchains", "install_debian.sh")
LOCKED = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 4711 (unattended-upgr)"

# $STATE: a folder. `calls` has a line per call, `locked` the number of updates that still find the lock held.
PROGRAMS = {
    "apt-get": r"""echo "$*" >>"$STATE/calls"
case "$*" in
  *update*)
    left=$(cat "$STATE/locked")
    if [[ $left != 0 ]]; then echo $((left - 1)) >"$STATE/locked"; cat "$STATE/says" >&2; exit 100; fi ;;
  *install*) touch "$STATE/installed" ;;
esac""",
    "dpkg-query": r"""if [[ -e $STATE/installed ]]; then
  "$SCRIPT" --runtime-only --list | sed 's/$/ installed/'
fi""",
    "apt-cache": "echo '  Candidate: 1.0'",
    "id": "echo 0",
    "sleep": 'echo "slept $*" >>"$STATE/calls"',
    "npm": "exit 0",
}


class InstallDebian(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.state = folder.name
        for name, body in PROGRAMS.items():
            path = os.path.join(self.state, name)
            with open(path, "w") as f:
                f.write("#!/usr/bin/env bash\n" + body + "\n")
            os.chmod(path, 0o755)

    def install(self, locked, says=LOCKED, **environment):
        """-> (exit code, what is said, calls of apt-get and sleep)"""
        for name, text in (("locked", str(locked)), ("says", says + "\n"), ("calls", "")):
            with open(os.path.join(self.state, name), "w") as f:
                f.write(text)
        environment = dict(os.environ, STATE=self.state, SCRIPT=SCRIPT, PATH=self.state + ":" + os.environ["PATH"], **environment)
        done = subprocess.run(["bash", SCRIPT, "--runtime-only"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env=environment, timeout=60)
        with open(os.path.join(self.state, "calls")) as f:
            return done.returncode, done.stdout, f.read().splitlines()

    def test_waits_for_the_lock(self):
        code, said, calls = self.install(locked=3)
        self.assertEqual(code, 0, said)
        self.assertNotIn("Could not get lock", said)
        self.assertEqual(sum("update" in call for call in calls), 4, calls)
        self.assertEqual(sum(call.startswith("slept") for call in calls), 3, calls)
        # dpkg's own lock, which is another one, apt-get waits for.
        self.assertTrue(all("DPkg::Lock::Timeout=600" in call for call in calls if "install" in call), calls)
        self.assertIn("packages: all", said)

    def test_gives_up_with_what_apt_says(self):
        """bash counts its seconds from the SECONDS that it is given."""
        code, said, calls = self.install(locked=9, SECONDS="601")
        self.assertEqual((code, len(calls)), (1, 1), said)
        self.assertIn("It is held by process 4711", said)

    def test_other_failures_are_not_waited_for(self):
        code, said, calls = self.install(locked=1, says="E: The repository has no Release file")
        self.assertEqual((code, len(calls)), (1, 1), said)
        self.assertIn("no Release file", said)

    def test_every_build_has_the_headers_of_the_vulkan_device(self):
        """So that the tools of the quickstart, which asks for no driver, have it."""
        for group in ("--runtime-only", "--build"):
            listed = subprocess.run(["bash", SCRIPT, group, "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
            self.assertIn("libvulkan-dev", listed)
            self.assertNotIn("mesa-vulkan-drivers", listed)

    def test_nothing_missing_touches_nothing(self):
        open(os.path.join(self.state, "installed"), "w").close()
        code, said, calls = self.install(locked=9)
        self.assertEqual((code, calls), (0, []), said)


if __name__ == "__main__":
    unittest.main()
