#!/usr/bin/env python3
"""Verifies the TensorFlow Lite cases of a folder with test data: tflite_ops and models_tflite. Those in tflite_refused.txt are refused,
all others pass.

    tflite_cases.py QUERNEL [DATA]      DATA: $QUERNEL_TEST_DATA, or shared/ beside the repository
"""
import os
import pathlib
import subprocess
import sys


def main(quernel, data=""):
    data = data or os.environ.get("QUERNEL_TEST_DATA") or pathlib.Path(__file__).resolve().parents[3] / "shared"
    names = (pathlib.Path(__file__).parent / "tflite_refused.txt").read_text().splitlines()
    refused = [name for name in names if not name.startswith("#")]
    cases = [case for folder in ("tflite_ops", "models_tflite") for case in sorted(pathlib.Path(data, folder).glob("*"))
             if (case / "model.tflite").exists() and any(case.glob("test_data_set_*"))]
    if not cases:
        print(f"SKIPPED: no TensorFlow Lite cases in {data}")
        return 77
    command = [quernel, "verify", "--jobs", "2", "--allow-unsupported", ",".join(refused), *map(str, cases)]
    done = subprocess.run(command, capture_output=True, text=True)
    print("\n".join(l for l in done.stdout.splitlines() if not l.startswith("PASS ")), done.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
