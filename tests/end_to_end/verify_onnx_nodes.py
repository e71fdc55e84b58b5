#!/usr/bin/env python3
"""ONNX's node tests (Debian's libonnx-testdata) of the operators in onnx_operators.txt: each passes or is listed there as
beyond Quernel, with the reason. $QUERNEL_ONNX_NODE_TESTS names another folder.

    verify_onnx_nodes.py [--list]     --list: print the tests that would run
"""
import fnmatch
import os
import subprocess
import sys

from tools import skip, tool

FOLDER = os.environ.get("QUERNEL_ONNX_NODE_TESTS") or "/usr/share/libonnx-testdata/data/node"


def read_patterns():
    """Patterns of tests that must pass, and of those that may be unsupported."""
    wanted, unsupported = [], []
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "onnx_operators.txt")) as f:
        for line in f:
            words = line.split("#")[0].split()
            if words and words[0] == "unsupported:":
                unsupported += words[1:]
            elif words:
                wanted += words[1:]
    return wanted, unsupported


def matches(name, patterns):
    return any(fnmatch.fnmatchcase(name, "test_" + p) for p in patterns)


def main(arguments):
    if not os.path.isdir(FOLDER):
        skip(f"no ONNX node tests in {FOLDER} (Debian package libonnx-testdata)")
    wanted, unsupported = read_patterns()
    names = sorted(n for n in os.listdir(FOLDER) if matches(n, wanted))
    if "--list" in arguments:
        print(*names, sep="\n")
        return
    unmatched = [p for p in wanted + unsupported if not any(fnmatch.fnmatchcase(n, "test_" + p) for n in os.listdir(FOLDER))]
    done = subprocess.run([tool("quernel"), "verify", *(os.path.join(FOLDER, n) for n in names)], stdout=subprocess.PIPE, text=True)
    bad = []
    for line in done.stdout.splitlines():
        verdict, _, rest = line.partition(" ")
        name = rest.split(":")[0]
        if verdict == "FAIL" or (verdict == "UNSUPPORTED" and not matches(name, unsupported)):
            bad.append(line)
        if verdict == "PASS" and matches(name, unsupported):
            bad.append(f"{name} passes: take it out of the unsupported ones")
    print(*bad, sep="\n")
    print(done.stdout.splitlines()[-1] if done.stdout else "no output")
    bad += [f"pattern {p} matches no test" for p in unmatched if FOLDER.startswith("/usr/share")]
    if done.returncode != 0 or bad:
        sys.exit(f"{len(bad)} of {len(names)} tests are not as expected")


if __name__ == "__main__":
    main(sys.argv[1:])
