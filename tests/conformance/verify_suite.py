#!/usr/bin/env python3
"""A suite's cases, or every Nth of them: each passes, or is refused and listed in unsupported.txt.

    verify_suite.py SUITE [--only PATTERN] [--part I/N] [--device cpu|vulkan] [--target T]... [--list]

--only: cases whose names a regular expression matches from the beginning; --target: as of quernel, else the device's;
--list: print lines for unsupported.txt instead of judging.
"""
import argparse
import re
import sys

import suites


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=suites.SUITES)
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--target", action="append", default=[])
    parser.add_argument("--device", choices=("cpu", "vulkan"), default="cpu")
    arguments = parser.parse_args()
    suite = arguments.suite
    part, parts = (int(n) for n in arguments.part.split("/"))
    everything = suites.cases(suite)
    if not everything:
        print(f"skipped: no cases in {suites.SUITES[suite]} (Debian package libonnx-testdata, QUERNEL_TEST_DATA)")
        sys.exit(77)
    if arguments.device == "vulkan" and suites.vulkan_environment() is None:
        print("skipped: no Vulkan loader and software driver (toolchains/install_debian.sh --vulkan)")
        sys.exit(77)
    chosen = [case for case in everything if re.match(arguments.only, case.name)][part - 1::parts]
    if not chosen:
        sys.exit(f"no case of {suite} matches {arguments.only}")
    known = suites.table("unsupported.txt")
    verdicts = suites.verify(suite, chosen, device=arguments.device, targets=arguments.target)
    if arguments.list:
        for name, (verdict, reason) in sorted(verdicts.items()):
            if verdict == "UNSUPPORTED":
                print(f"{suite}/{name}  {known.get(f'{suite}/{name}', ('?', reason))}")
        return
    wrong = []
    for case in chosen:
        verdict, reason = verdicts.get(case.name, ("FAIL", "no verdict"))
        listed = f"{suite}/{case.name}" in known
        if verdict == "FAIL":
            wrong.append(f"FAIL {case.name}: {reason}")
        elif verdict == "UNSUPPORTED" and not listed:
            wrong.append(f"UNSUPPORTED {case.name}, which unsupported.txt does not list: {reason}")
        elif verdict == "PASS" and listed:
            wrong.append(f"PASS {case.name}: take it out of unsupported.txt")
    if part == 1:
        names = {f"{suite}/{case.name}" for case in everything}
        wrong += [f"{case} is listed, but there is no such case" for case in known
                  if case.startswith(suite + "/") and case not in names]
    print(*wrong, sep="\n")
    print(f"{len(chosen)} cases, {len(wrong)} not as expected")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
