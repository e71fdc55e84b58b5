"""Where the time of networks goes, by kinds of kernels, against what the machine could do. Used by bench.py --roofline.

`quernel bench --per-kernel` says of each kernel how long its run takes and which share of its bound it reaches: of the
multiply-adds, or of the bytes per second, that the same machine reaches in the same run, whichever needs longer. The
rest is what could be gained. Algorithms are taken as they are: Winograd's multiplications are those that it makes.
"""
from sides import Failure, Quernel, Run, number, prepare, table

SHOWN_CLASSES = 4


def measure_model(name, args, threads):
    """-> what `quernel bench --per-kernel --json` says"""
    model, _ = prepare(name, args.data, args.models_folder)
    quernel = Quernel(args.bin, args.models_folder)
    bundle, _ = quernel.compile(name, model)
    turns = [Run([quernel.compiler, "bench", bundle, "--per-kernel", "--json", "--threads", str(threads), "--seconds",
                  str(args.min_seconds)]).json() for _ in range(args.repeats)]
    return min(turns, key=lambda turn: sum(k["seconds"] for k in turn["kernels"]))


def line_of(name, measured):
    """What a row shows: time, the bound's time, and the classes in which most of the difference is."""
    total = bound = 0.0
    classes = {}
    for kernel in measured["kernels"]:
        own, least = kernel["seconds"], kernel["seconds"] * min(kernel["share_of_peak"], 1.0)
        total, bound = total + own, bound + least
        kind = "gemv, memory" if kernel["class"] == "gemv" and kernel["bound"] == "memory" else kernel["class"]
        took, needed = classes.get(kind, (0.0, 0.0))
        classes[kind] = (took + own, needed + least)
    order = sorted(classes.items(), key=lambda item: item[1][0] - item[1][1], reverse=True)[:SHOWN_CLASSES]
    lost = ", ".join(f"{kind} {100 * (took - needed) / total:.0f} % (of {100 * took / total:.0f} %)" for kind, (took, needed) in order
                     if took - needed >= 0.005 * total)
    return [name, number(total * 1e3), number(bound * 1e3), f"{100 * bound / total:.0f} %", lost or "-"]


def run(args, names, progress):
    """Measures and prints the account of each network. -> what was measured, and how many failed"""
    if not args.bin:
        raise Failure("--roofline measures Quernel: expected --bin, found none")
    measured, failed = {}, 0
    for threads in args.threads:
        lines = []
        for i, name in enumerate(names):
            progress(f"{name}, {threads} threads", i, len(names))
            try:
                turn = measure_model(name, args, threads)
            except Failure as e:
                print(f"failed: {name}: {e}")
                failed += 1
                continue
            measured.setdefault(name, {})[threads] = turn
            lines.append(line_of(name, turn))
        progress()
        table(f"Against the roofline, {threads} thread{'s' if threads > 1 else ''} (ms: the sum of the kernels; bound: at the measured "
              "peaks; lost: share of the time above the bound, of what the class takes)",
              ["model", "ms", "bound ms", "reached", "lost in"], lines)
    return measured, failed


