"""Single operators beside ONNX Runtime: matrix products, row-wise operators, poolings, operators that move elements, the
convolutions of two networks. Used by bench.py --kernels.

The two sides take turns on the same models; of several turns the smallest median counts. Rates are of the operator's
own multiplications and additions, whatever the algorithm needs (Winograd's needs fewer), and shares are of what
machine_peak reaches on this machine in the same run.
"""
import json
import os

from sides import DEBIAN_PYTHON, HERE, MIB, Best, Failure, Run, geometric_mean, number, prepare, table

NETWORKS = ["ncnn_resnet50", "ncnn_mobilenet_v2"]


def is_read_bound(kernel):
    return kernel["group"] == "m1"                                 # every weight is used once


def generate(args):
    """-> the kernels' descriptions; their models are written to the models' folder"""
    networks = [prepare(name, args.data, args.models_folder)[0] for name in NETWORKS]
    folder = os.path.join(args.models_folder, "kernels")
    kernels = json.loads(Run([DEBIAN_PYTHON, os.path.join(HERE, "kernel_models.py"), folder, *networks]).out)
    if args.models:
        kernels = [k for k in kernels if any(part in k["name"] for part in args.models)]
    if not kernels:
        raise Failure(f"--models: no kernel's name contains {' or '.join(args.models)}")
    return kernels


def measure_kernel(kernel, threads, args, quernel, peer):
    """-> {"quernel": figures or None, "peer": figures or None, …}"""
    row = {**kernel, "threads": threads}
    ours, theirs = Best(), Best()
    bundle, count = None, None
    try:
        if quernel:
            bundle = kernel["path"].replace(".onnx", ".qnl")
            Run([quernel.compiler, "compile", kernel["path"], "-o", bundle])
            count = quernel.repeats(bundle, kernel, threads, args.min_seconds)
        for _ in range(args.repeats):
            if quernel:
                ours.add(Run(quernel.command(bundle, kernel, threads, count)))
            if peer:
                theirs.add(peer.run(kernel["path"], threads, args.min_seconds))
    except Failure as e:
        row["error"] = str(e)
    return {**row, "quernel": ours.turn, "peer": theirs.turn}


def line_of(row, peak):
    """What a row shows, with the ratio as a number (or None) at the end."""
    times = [side["latency_ms"]["median"] if side else None for side in (row["quernel"], row["peer"])]
    own = times[0]
    ratio = own / times[1] if all(times) else None
    rate = row["flops"] / own * 1e-6 if own else None
    share = rate / (peak["gflops"] * row["threads"]) if rate else None
    speed = bound = None
    if own and is_read_bound(row):
        speed = row["moved_bytes"] / own * 1e-6
        bound = speed / peak["read_gb_per_s"][str(row["weight_bytes"])]
    line = [row["name"], number(row["weight_bytes"] / MIB), number(times[0]), number(times[1]),
            f"{ratio:.2f}" if ratio else "-", number(rate), f"{100 * share:.0f} %" if share else "-",
            number(speed), f"{100 * bound:.0f} %" if bound else "-"]
    return line, ratio, share


def print_kernels(rows, peak, threads):
    lines, groups = [], {}
    for row in rows:
        line, ratio, share = line_of(row, peak)
        lines.append(line)
        if ratio:
            groups.setdefault(row["group"], []).append((ratio, share))
    table(f"Kernels, {threads} thread{'s' if threads > 1 else ''} (ratio: Quernel's median / ONNX Runtime's; share: of "
          f"{peak['gflops'] * threads:.0f} GFLOP/s; of read: of a read of the weights' size)",
          ["kernel", "weights MB", "ms", "ORT ms", "ratio", "GFLOP/s", "share", "GB/s", "of read"], lines)
    table("Means", ["group", "kernels", "ratio, mean", "worst", "share, least"],
          [[name, len(pairs), f"{geometric_mean([r for r, _ in pairs]):.2f}", f"{max(r for r, _ in pairs):.2f}",
            f"{100 * min(s for _, s in pairs):.0f} %" if all(s for _, s in pairs) else "-"] for name, pairs in groups.items()])
    for row in rows:
        if "error" in row:
            print(f"{row['name']}: {row['error']}")


def run(args, quernel, peer, progress):
    """Measures and prints all kernels. -> what was measured, and how many failed"""
    kernels = generate(args)
    sizes = sorted({k["weight_bytes"] for k in kernels if is_read_bound(k)})
    peak = Run([args.machine_peak, *map(str, sizes)]).json()
    read = ", ".join(f"{int(size) / MIB:.2f} MB {rate:.0f}" for size, rate in peak["read_gb_per_s"].items())
    print(f"measured peak of one core: {peak['gflops']:.0f} GFLOP/s; reads, GB/s: {read or '-'}")
    rows = []
    for threads in args.threads:
        for i, kernel in enumerate(kernels):
            progress(f"{kernel['name']}, {threads} threads", i, len(kernels))
            rows.append(measure_kernel(kernel, threads, args, quernel, peer))
        progress()
        print_kernels([r for r in rows if r["threads"] == threads], peak, threads)
    return {"peak": peak, "kernels": rows}, sum("error" in r for r in rows)
