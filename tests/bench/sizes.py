#!/usr/bin/env python3
"""Sizes, for every target: the code of kernels by class, what firmware needs beyond them, and for every Linux architecture the
parts of the runtime as they are linked into quernel-run of the preset minsize.

sizes.py [--bin build/release/bin] [--models NAME,NAME…] [--targets NAME,NAME…] [--no-runtime] [--json FILE]
sizes.py --runtime-limit ARCHITECTURE=BYTES [--runtime-limit …]

Architectures without a cross compiler are left out, and said to be. With limits, of core and CPU device, only the runtime of these architectures is built; the
result is 0 when it keeps all of them, 77 when there was no compiler for any."""
import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODELS = ["mnist_8", "micro_kws_fp32", "micro_kws_qdq", "fomo_mnv2_onnx", "cct_2_opset20"]
# Parts of the runtime: the first whose pattern fits a file below runtime/ has it.
PARTS = [("verifier", r"core/.*verify"), ("reader", r"core/bundle_reader"), ("core", r"core/"), ("loader", r"cpu/image"), ("cpu", r"cpu/"),
         ("platform", r"platform/"),
         ("choose", r"choose/"), ("others", r"")]
RUNNING = ("verifier", "reader", "core", "loader", "cpu")  # what a limit is for


def run(*command, check=True):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if check and done.returncode != 0:
        sys.exit(f"sizes: {' '.join(command)}: exit {done.returncode}\n{done.stdout[-3000:]}")
    return done


def table(title, columns, rows):
    print(f"\n{title}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for row in rows:
        print("| " + " | ".join(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row) + " |")
    sys.stdout.flush()


# ---- the runtime

def architectures():
    """-> [(name, toolchain file or None)]: this machine, and what CMakePresets.json has toolchain files for"""
    with open(os.path.join(ROOT, "CMakePresets.json")) as f:
        presets = json.load(f)["configurePresets"]
    return [(os.uname().machine, None)] + [(p["name"], p["toolchainFile"].replace("${sourceDir}", ROOT)) for p in presets if "toolchainFile" in p]


def linked_sections(map_file):
    """-> [(section, bytes, input file)] of an executable, by GNU ld's map"""
    with open(map_file, errors="replace") as f:
        text = f.read()
    text = text[text.index("\nLinker script and memory map"):]
    return [(section, int(size, 16), path)
            for section, size, path in re.findall(r"^ (\.\S+)\s+0x[0-9a-f]+\s+(0x[0-9a-f]+) (\S.*)$", text, re.M)]


def runtime_parts(map_file):
    """-> {part: bytes of text and rodata}"""
    files = {}
    for path in glob.glob(os.path.join(ROOT, "runtime", "*", "*.cpp")):
        place = os.path.relpath(path, os.path.join(ROOT, "runtime"))
        files[os.path.basename(path)] = next(part for part, pattern in PARTS if re.match(pattern, place))
    parts = dict.fromkeys((part for part, _ in PARTS), 0)
    for section, size, path in linked_sections(map_file):
        member = re.search(r"libquernel_runtime\.a\((.*)\.o\)$", path)
        if member and section.startswith((".text", ".rodata")):
            parts[files[member.group(1)]] += size
    return parts


def runtime_sizes(names=None):
    rows = []
    for name, toolchain in architectures():
        if names is not None and name not in names:
            continue
        build = os.path.join(ROOT, "build", "sizes", name)
        map_file = os.path.join(build, "quernel-run.map")
        options = ["--toolchain", toolchain] if toolchain else []
        done = run("cmake", "-S", ROOT, "--preset", "minsize", "-B", build, *options, "-DCMAKE_EXE_LINKER_FLAGS=-Wl,-Map=" + map_file,
                   check=False)
        if done.returncode != 0:
            print(f"left out: the runtime for {name}: no cross compiler (toolchains/install_debian.sh --cross)")
            continue
        run("cmake", "--build", build, "--target", "quernel-run")
        parts = runtime_parts(map_file)
        rows.append({"architecture": name, **parts, "core + cpu": sum(parts[part] for part in RUNNING), "all": sum(parts.values())})
    return rows


def check_runtime(limits):
    """-> exit status"""
    known = [name for name, _ in architectures()]
    for name in limits:
        if name not in known:
            sys.exit(f"sizes: expected a limit for one of {', '.join(known)}, found {name}")
    rows = runtime_sizes(limits)
    for row in rows:
        table(f"Runtime for {row['architecture']}, limit {limits[row['architecture']]:,}", list(row), [list(row.values())])
    over = [row["architecture"] for row in rows if row["core + cpu"] > limits[row["architecture"]]]
    if over:
        print(f"sizes: the runtime for {', '.join(over)} is over its limit; make it smaller, nm --size-sort says where it is large")
    return 1 if over else 0 if rows else 77


# ---- kernels

def kernel_symbols(archive):
    """Bytes of each kernel, by its number."""
    sizes = {}
    for line in run("nm", "-S", archive).stdout.splitlines():
        found = re.match(r"[0-9a-f]+ ([0-9a-f]+) T model_kernel_(\d+)$", line)
        if found:
            sizes[int(found.group(2))] = int(found.group(1), 16)
    return sizes


def compile_model(quernel, model, target, *options):
    """-> what the compiler prints"""
    return run(quernel, "compile", os.path.join(model, "model.onnx"), "--target", target["name"], "--json", *options, check=False).stdout


def model_sizes(quernel, model, target, folder):
    stem = os.path.join(folder, "model")
    static = ["--emit", "static", "-o", stem]
    # Free dims, which a static library has none of, become 1.
    dims = [word for name in re.findall(r"found the free dim '(.*)';", compile_model(quernel, model, target, *static))
            for word in ("--dim", name + "=1")]
    report = json.loads(compile_model(quernel, model, target, *static, *dims))
    image = None
    if not target["firmware"]:
        image = json.loads(compile_model(quernel, model, target, "-o", os.path.join(folder, "model.qnl"), *dims))["code_bytes"]
    symbols = kernel_symbols(stem + ".a")
    if sorted(symbols) != list(range(len(report["kernel_classes"]))):
        sys.exit(f"sizes: {model} for {target['name']}: expected a symbol for each of {len(report['kernel_classes'])} kernels, found {sorted(symbols)}")
    classes = {}
    for kernel, kernel_class in enumerate(report["kernel_classes"]):
        classes.setdefault(kernel_class, []).append(symbols[kernel])
    kernels = report["static"]["kernel_bytes"]
    return {"model": os.path.basename(model), "target": target["name"], "kernels": kernels, "overhead": report["static"]["overhead_bytes"],
            "shared": kernels - sum(symbols.values()), "constants": report["constants_bytes"],
            "image": image, "classes": classes}


def print_kernels(sizes, models, targets):
    names = sorted({kernel_class for size in sizes for kernel_class in size["classes"]})
    rows = []
    for target in targets:
        of_target = [size for size in sizes if size["target"] == target["name"]]
        cells = []
        for name in names:
            found = [n for size in of_target for n in size["classes"].get(name, [])]
            cells.append(round(sum(found) / len(found)) if found else "")
        rows.append([target["name"], *cells])
    table(f"Bytes of a kernel, mean of its class, in {', '.join(models)}", ["target", *names], rows)
    rows = []
    for target in targets:
        of_target = [size for size in sizes if size["target"] == target["name"]]
        rows.append([target["name"], *(f"{size['kernels']:,} + {size['overhead']:,}" + (f", {size['image']:,}" if size["image"] else "")
                                       for size in of_target)])
    table("Bytes of all kernels + what a static library has beyond kernels and weights; of the image in a bundle",
          ["target", *models], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--data", default=os.environ.get("QUERNEL_TEST_DATA") or os.path.join(os.path.dirname(ROOT), "shared"))
    parser.add_argument("--models", type=lambda text: text.split(","), default=MODELS)
    parser.add_argument("--targets", type=lambda text: text.split(","), help="those of `quernel targets` (default: all)")
    parser.add_argument("--no-runtime", action="store_true")
    parser.add_argument("--runtime-limit", action="append", metavar="ARCHITECTURE=BYTES", help="build and check these, nothing else")
    parser.add_argument("--json", help="write all figures to a file, too")
    options = parser.parse_args()
    if options.runtime_limit:
        sys.exit(check_runtime({name: int(limit) for name, _, limit in (text.partition("=") for text in options.runtime_limit)}))
    quernel = os.path.join(options.bin, "quernel")
    models = [os.path.join(options.data, "models", name) for name in options.models]
    for model in models:
        if not os.path.isdir(model):
            sys.exit(f"sizes: expected a model in {model}; set QUERNEL_TEST_DATA")
    # Shaders are no code of a processor: drivers compile them.
    targets = [t for t in json.loads(run(quernel, "targets", "--json").stdout)
               if t["arch"] != "spirv" and (not options.targets or t["name"] in options.targets)]
    runtime = [] if options.no_runtime else runtime_sizes()
    if runtime:
        table("Runtime in quernel-run, preset minsize: bytes of text and rodata", list(runtime[0]), [list(row.values()) for row in runtime])
    with tempfile.TemporaryDirectory(prefix="quernel-sizes-") as folder:
        sizes = [model_sizes(quernel, model, target, folder) for target in targets for model in models]
    print_kernels(sizes, options.models, targets)
    if options.json:
        with open(options.json, "w") as f:
            json.dump({"runtime": runtime, "kernels": sizes}, f, indent=2)


if __name__ == "__main__":
    main()
