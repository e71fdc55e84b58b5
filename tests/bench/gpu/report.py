#!/usr/bin/env python3
"""Prints what run.sh of a GPU kit wrote: the device and its peaks, what is wrong, times next to the peaks and to PyTorch's.

    report.py results.json [--all]

Times are of the device's clock, medians; `wall` is a whole run of the session. Shares are of the peak that the kit's own
kernels measured in the same run. Ratios are to PyTorch's captured graph, below 1 is faster. --all: also every operator.
Exit status 1 if a result is wrong.
"""
import argparse
import json
import math
import statistics
import sys

UNSUPPORTED = 400                                                 # qnl_status: no code for this device


def rate(peak, member):
    """Operations or bytes per second of the one item of a peak's run."""
    items = peak.get("items") or []
    seconds = sum(i["min_ms"] for i in items) / 1e3
    return sum(i[member] for i in items) / seconds if seconds else None


def median_ms(peak):
    return (peak.get("latency_ms") or {}).get("median")


def rates(peaks):
    """-> {name: value} of what the peaks say, in base units; what was not measured is missing."""
    found = {}
    for name in ("multiply_adds_f32", "multiply_adds_int8", "multiply_adds_int8_dotprod", "multiply_adds_f16_coopmat",
                 "multiply_adds_int8_coopmat", "multiply_adds_bf16_coopmat"):
        found[name] = rate(peaks.get(name, {}), "flops")
    found["reads"] = rate(peaks.get("reads", {}), "bytes")
    found["copies"] = rate(peaks.get("copies", {}), "bytes")
    chain, link, small, large = (median_ms(peaks.get(n, {})) for n in ("chain", "link", "transfer", "copies_with_transfers"))
    if chain and link:
        found["dispatch_seconds"] = max(chain - link, 0) / 32 / 1e3
    if small:
        found["transfer_seconds"] = small / 1e3
    copies = peaks.get("copies", {})
    if small and large and copies.get("items"):
        seconds = (large - small - sum(i["ms"] for i in copies["items"])) / 1e3
        # the process reads and writes nothing in a run: 0 where it shares memory with the device
        found["copies_beside_kernels_seconds"] = max(seconds, 0)
    return {k: v for k, v in found.items() if v is not None}


def results(document):
    """Yields (pass, group, bundle, test or None, why it is wrong, unsupported)."""
    for run in document["runs"]:
        for bundle in run["bundles"]:
            if "error" in bundle:
                yield run["pass"], run["group"], bundle["bundle"], None, bundle["error"], False
            for test in bundle.get("tests", []):
                wrong = test["error"] or next((o["message"] for o in test["outputs"] if o["message"]), "")
                yield run["pass"], run["group"], bundle["bundle"], test, wrong, test.get("status") == UNSUPPORTED
            if bundle.get("validation"):
                yield run["pass"], run["group"], bundle["bundle"], None, bundle["validation"], False


def table(title, header, lines):
    if not lines:
        return
    widths = [max(len(str(row[i])) for row in [header, *lines]) for i in range(len(header))]
    print(f"\n{title}")
    for row in [header, ["-" * w for w in widths], *lines]:
        print("| " + " | ".join(str(c).ljust(w) for c, w in zip(row, widths)) + " |")


def number(value, digits=3):
    if value is None:
        return "-"
    return f"{value:.{digits}g}" if value < 1000 else f"{value:.0f}"


def peak_of(case, found):
    """The peak that bounds the case's multiply-adds."""
    if case.get("dtype") == "int8":
        return found.get("multiply_adds_int8_coopmat") or found.get("multiply_adds_int8_dotprod") or found.get("multiply_adds_int8")
    if case.get("dtype") == "f16" and found.get("multiply_adds_f16_coopmat"):
        return found["multiply_adds_f16_coopmat"]
    return found.get("multiply_adds_f32")                         # other arithmetic is of f32, whatever the storage


def print_times(document, found, show_all):
    cases = {bundle: case for case in document["kit"]["cases"] for bundle in case["bundles"]}
    peer = {(row["group"], row["name"]): row for row in (document.get("peer") or {}).get("cases", [])}
    ratios = {}
    by_group = {}
    for name, group, bundle, test, wrong, unsupported in results(document):
        if name not in ("best", "base") or test is None or wrong or unsupported or group in ("conformance", "models"):
            continue
        case = cases.get(bundle, {})
        device_ms = test["items_ms"]
        flops = case.get("flops") or sum(i["flops"] * i["runs"] for i in test["items"])
        speed = flops / device_ms * 1e3 if device_ms and flops else None
        peak = peak_of(case, found)
        theirs = peer.get((group, case.get("name")), {})
        ratio = device_ms / theirs["graph_ms"] if theirs.get("graph_ms") else None
        if ratio:
            ratios.setdefault((group, name), []).append(ratio)
        by_group.setdefault(group, []).append([
            case.get("name", bundle), test["target"].replace("vulkan+", "+"), number(device_ms), number(test["median_ms"]),
            number(speed / 1e9) if speed else "-", f"{100 * speed / peak:.0f} %" if speed and peak else "-",
            number(theirs.get("eager_ms")), number(theirs.get("graph_ms")), number(ratio)])
    for group, lines in by_group.items():
        if group != "operators" or show_all:
            table(f"{group}: ms by the device's clock, and the rest",
                  ["case", "code", "ms", "wall", "GFLOP/s", "of peak", "eager", "graph", "ratio"], lines)
    table("means of ratios to PyTorch's captured graph", ["group", "pass", "cases", "mean", "worst"],
          [[*key, len(r), f"{math.exp(statistics.mean(map(math.log, r))):.2f}", f"{max(r):.2f}"] for key, r in ratios.items()])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("results")
    parser.add_argument("--all", action="store_true", help="every operator, too")
    options = parser.parse_args()
    with open(options.results) as f:
        document = json.load(f)
    device, machine = document["device"], document["machine"]
    print(f"{device['name']} ({device['vulkan']['type']}, Vulkan {device['vulkan']['api_version']}), {machine['processor'] or machine['system']}, "
          f"{machine['cores']} cores; driver by {document['found_by']}; kit of commit {document['kit']['commit']}; {machine['seconds']} s")
    print(f"features: {', '.join(device['features'])}; validation layers: {document['validation']}")
    found = rates(document["peaks"])
    table("peaks by the kit's kernels", ["what", "value"],
          [[k, f"{v * 1e6:.3g} us" if k.endswith("seconds") else f"{v / 1e9:.4g} G/s"] for k, v in found.items()])
    counts = {(run["pass"], run["group"]): [0, 0, 0] for run in document["runs"]}
    wrong_lines = []
    for name, group, bundle, test, wrong, unsupported in results(document):
        row = counts[name, group]
        row[1 if unsupported else 2 if wrong else 0] += 1
        if wrong and not unsupported:
            wrong_lines.append([name, bundle, wrong[:120]])
    table("results", ["pass", "group", "right", "unsupported", "wrong", "not run"],
          [[*key, *row, sum(len(r["not_run"]) for r in document["runs"] if (r["pass"], r["group"]) == key)] for key, row in counts.items()])
    table("wrong", ["pass", "bundle", "why"], wrong_lines)
    print_times(document, found, options.all)
    peer = document.get("peer") or {}
    print(f"\npeer: {peer.get('skipped') or 'PyTorch ' + peer['pytorch'] + ' on ' + peer['device']}")
    for row in peer.get("cases", []):
        if "error" in row:
            print(f"peer: {row['name']}: {row['error']}")
    left_out = document["kit"]["left_out"]
    print(f"left out of the kit: {len(left_out)} cases")
    return 1 if document["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
