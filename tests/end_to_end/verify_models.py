#!/usr/bin/env python3
"""Real models against their reference data: the eight that models.tsv marks as spine must all pass.

    verify_models.py [--threads N] [--precision D] [--target native+bf16]
"""
import csv
import os
import subprocess
import sys

from tools import multiplies_bf16, skip, test_data, tool


def rows(folder):
    with open(os.path.join(folder, "models.tsv"), newline="") as f:
        return list(csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE))


def every_model(folder):
    return [os.path.join(folder, row["name"]) for row in rows(folder)]


def spine_models(folder):
    return [os.path.join(folder, row["name"]) for row in rows(folder) if "spine" in row["marks"].split()]


def main(arguments):
    folder = os.path.join(test_data(), "models")
    if not os.path.isfile(os.path.join(folder, "models.tsv")):
        skip(f"no test models in {folder} (set QUERNEL_TEST_DATA)")
    if "native+bf16" in arguments and not multiplies_bf16():
        skip("this machine does not multiply bf16")
    models = spine_models(folder)
    done = subprocess.run([tool("quernel"), "verify", *arguments, *models], stdout=subprocess.PIPE, text=True)
    print(done.stdout, end="")
    passed = sum(line.startswith("PASS ") for line in done.stdout.splitlines())
    if done.returncode != 0 or not models or passed != len(models):
        sys.exit(f"expected all of {len(models)} models to pass, {passed} did")


if __name__ == "__main__":
    main(sys.argv[1:])
