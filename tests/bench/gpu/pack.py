#!/usr/bin/env python3
"""Packs the GPU kit. Started by pack.sh, which builds what goes into it; --help lists the options.

Every case is compiled for `vulkan` and its variants by `quernel test --kit`, which adds the test vectors. A group of
cases goes in as a whole or, where it is sorted by size, as far as the archive's limit allows; what is left out is printed
and stands in kit.json with the reason.
"""
import argparse
import glob
import gzip
import json
import lzma
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import sides  # noqa: E402

FEATURES = ["subgroups", "dotprod", "float16", "coopmat", "coopmat-int8", "coopmat-bf16"]
# One of each, of two that many devices have, of all.
TARGETS = ["vulkan", *(f"vulkan+{f}" for f in FEATURES), "vulkan+subgroups+dotprod", "vulkan+" + "+".join(FEATURES)]
GROUPS = ["products", "int8", "attention", "networks", "networks_f16", "operators", "models", "conformance"]
LIMIT = 50e6                                                      # bytes of the archive
MOST_VECTORS = 1 << 20                                            # bytes of a model's test vectors
MOST_WEIGHTS = 2 << 20                                            # bytes of a model's weights that travel
MOST_CASE = 64 << 10                                              # bytes of a conformance case with its data
NODE_TESTS = ["/usr/share/libonnx-testdata/data/node", "/usr/share/libonnx-testdata/data/simple"]
NETWORKS_F16 = ["ncnn_resnet50", "ncnn_mobilenet_v2", "ncnn_vision_transformer"]
LOADER = ["libvulkan1"]
# What NVIDIA's driver links and machines without a display lack.
DISPLAY = ["libx11-6", "libxext6", "libxcb1", "libxau6", "libxdmcp6", "libbsd0", "libmd0"]
DEBIAN_ARCH = {"x86-64": "amd64", "aarch64": "arm64"}
SIZES, KEYS = [256, 512, 1024, 2048, 4096], [128, 512, 1024, 2048, 4096]


class Failure(Exception):
    pass


def say(text):
    print(f"pack: {text}", flush=True)


def run(*command, **how):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how)
    if done.returncode != 0:
        raise Failure(f"{' '.join(command[:6])}…: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")
    return done.stdout


def size_of(folder):
    return sum(os.path.getsize(f) for f in glob.glob(os.path.join(folder, "**"), recursive=True) if os.path.isfile(f))


def safe(name):
    return re.sub(r"[^\w.-]", "_", name)


class Kit:
    def __init__(self, options):
        self.options = options
        self.root = os.path.join(options.work, "quernel-gpu")
        self.cases, self.left_out, self.lines, self.bytes = [], [], [], 0
        shutil.rmtree(self.root, ignore_errors=True)
        os.makedirs(os.path.join(self.root, "bundles"))

    def leave_out(self, group, name, reason):
        self.left_out.append({"group": group, "name": name, "reason": reason})

    def compile(self, group, folders, facts=None, random_weights=True, arguments=()):
        """Compiles the folders' models into the kit. `facts`: by name, what kit.json says of them, too."""
        if not folders:
            return
        stage = os.path.join(self.options.work, "stage")
        shutil.rmtree(stage, ignore_errors=True)
        words = [self.options.quernel, "test", *folders, "--kit", stage, "--device", "vulkan", "--run-binary", self.options.runner,
                 "--jobs", str(os.cpu_count()), *arguments]
        for target in TARGETS:
            words += ["--target", target]
        if random_weights:
            words += ["--random-weights", "1"]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if not os.path.exists(os.path.join(stage, "kit.json")):
            raise Failure(f"{group}: quernel test --kit: {done.stderr.strip()}")
        with open(os.path.join(stage, "kit.json")) as f:
            contents = json.load(f)["contents"]
        before, count = self.bytes, len(self.cases)
        for case in contents["cases"]:
            self.take(group, case, os.path.join(stage, "cases"), (facts or {}).get(case["name"], {}))
        shutil.rmtree(stage)
        # One after another they take less than each by itself.
        added = [os.path.join(self.root, "bundles", name) for case in self.cases[count:] for name in case["bundles"]]
        self.bytes = before + compressed_size(added)
        say(f"{group}: {sum(c['group'] == group for c in self.cases)} cases, {self.bytes / 1e6:.1f} MB so far")

    def take(self, group, case, folder, facts):
        if "bundles" not in case:
            self.leave_out(group, case["name"], case["reason"])
            return
        files = []
        for number, bundle in enumerate(case["bundles"]):
            name = safe(f"{group}-{case['name']}" + (f"-{number}" if number else "")) + ".qnl"
            files.append(os.path.join(self.root, "bundles", name))
            packed = os.path.join(folder, bundle["file"])
            if os.path.exists(packed):
                shutil.move(packed, files[-1])
            else:
                with gzip.open(packed + ".gz") as source, open(files[-1], "wb") as target:
                    shutil.copyfileobj(source, target)
        compressed = compressed_size(files)
        if self.bytes + compressed > self.options.limit * 1e6:
            for file in files:
                os.remove(file)
            self.leave_out(group, case["name"], f"takes {compressed / 1e6:.1f} MB of the archive, which would exceed "
                           f"{self.options.limit:g} MB")
            return
        self.bytes += compressed
        names = [os.path.basename(f) for f in files]
        self.cases.append({"group": group, "name": case["name"], "bundles": names, **facts})
        for file in files:
            features = optional_features(self.options.quernel, file)
            self.lines.append(f"{group} {os.path.basename(file)} {features}")

    def finish(self, out):
        options = self.options
        shutil.copy(options.runner, os.path.join(self.root, "quernel-run"))
        for name in ("run.sh", "peer.py"):
            shutil.copy(os.path.join(HERE, name), self.root)
        self.write("cases.txt", "".join(line + "\n" for line in self.lines))
        self.write("kit.json", json.dumps({"commit": commit(), "architecture": options.arch, "targets": TARGETS, "cases": self.cases,
                                           "left_out": self.left_out}, indent=0) + "\n")
        say("compressing")
        unfinished = out + ".unfinished"
        archive = subprocess.Popen(["tar", "-C", options.work, "--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner",
                                    "-cf", "-", "quernel-gpu"], stdout=subprocess.PIPE)
        with open(unfinished, "wb") as f:
            packed = subprocess.run(["xz", "-T0" if options.fast else "-T1", "-2" if options.fast else "-9", "-c"], stdin=archive.stdout, stdout=f)
        if archive.wait() != 0 or packed.returncode != 0:
            raise Failure("the archive cannot be written")
        size = os.path.getsize(unfinished)
        if size > LIMIT:
            raise Failure(f"expected at most {LIMIT / 1e6:.0f} MB, found {size / 1e6:.1f} MB: a smaller --limit leaves more out")
        os.replace(unfinished, out)
        for entry in self.left_out:
            say(f"left out: {entry['group']} {entry['name']}: {entry['reason']}")
        say(f"{out}: {len(self.cases)} cases, {size / 1e6:.1f} MB, {size_of(self.root) / 1e6:.0f} MB unpacked")

    def write(self, name, text):
        with open(os.path.join(self.root, name), "w") as f:
            f.write(text)


def compressed_size(files):
    """About what the archive grows by."""
    coder, size = lzma.LZMACompressor(preset=6), 0
    for file in files:
        with open(file, "rb") as f:
            while piece := f.read(1 << 20):
                size += len(coder.compress(piece))
    return size + len(coder.flush())


def optional_features(quernel, bundle):
    """",subgroups,float16,": those whose variants have other code than the first variant; "-" for none."""
    variants = {v["target"]: v for v in json.loads(run(quernel, "inspect", bundle, "--json"))["variants"]}
    found = [f for f in FEATURES if variants[f"vulkan+{f}"]["code_bytes"] != variants["vulkan"]["code_bytes"]]
    return "," + ",".join(found) + "," if found else "-"


def commit():
    try:
        return run("git", "-C", HERE, "describe", "--always", "--dirty").strip()
    except (Failure, OSError):
        return ""


def data_bytes(folder):
    return size_of(os.path.join(folder, "test_data_set_0"))


def one_data_set(folder, work):
    """A copy of a test directory that has the first data set only."""
    copy = os.path.join(work, "models", os.path.basename(folder))
    shutil.rmtree(copy, ignore_errors=True)
    os.makedirs(copy)
    for file in os.listdir(folder):
        whole = os.path.join(folder, file)
        if os.path.isfile(whole):
            shutil.copy(whole, copy)
    shutil.copytree(os.path.join(folder, "test_data_set_0"), os.path.join(copy, "test_data_set_0"))
    return copy


def generate(kit, options):
    """Writes products, attention, operators and networks. Returns what compiles those of a group."""
    folder = os.path.join(options.work, "generated")
    words = [sides.DEBIAN_PYTHON, "-B", os.path.join(HERE, "models.py"), folder]
    light = os.path.join(options.data, "models", "light")
    if "products" in options.groups or "int8" in options.groups:
        words += ["--sizes", ",".join(map(str, options.sizes))]
    if "attention" in options.groups:
        words += ["--keys", ",".join(map(str, options.keys))]
    if {"operators", "networks", "networks_f16"} & set(options.groups):
        if os.path.isdir(light):
            words += ["--light", light, "--materialize", os.path.join(light, "materialize_weights.py"), "--networks", ",".join(networks(light, options))]
        else:
            say(f"no networks: expected them in {light}; set QUERNEL_TEST_DATA")
        if "operators" in options.groups:
            words.append("--operators")
    if len(words) == 4:
        return lambda group: None
    say("writing models")
    cases = json.loads(run(*words))
    by_group = {}
    for case in cases:
        by_group.setdefault(case["group"], []).append(case)
    by_group["networks_f16"] = [c for c in by_group.get("networks", []) if c["name"] in NETWORKS_F16]
    def add(group):
        chosen = by_group.get(group, [])
        if group not in options.groups or not chosen:
            return
        facts = {c["name"]: {k: v for k, v in c.items() if k not in ("group", "name", "folder")} for c in chosen}
        if group == "networks_f16":
            facts = {name: {**about, "dtype": "f16"} for name, about in facts.items()}
        arguments = ["--precision", "f16"] if group == "networks_f16" else []
        kit.compile(group, [c["folder"] for c in smaller_first(chosen)], facts, random_weights=group not in ("int8", "attention"),
                    arguments=arguments)
    return add


def networks(light, options):
    names = options.networks or sorted(os.path.basename(f)[:-len(".onnx")] for f in glob.glob(os.path.join(light, "*.onnx")))
    too_large = set() if options.networks else {"light_bvlc_alexnet", "light_zfnet512", "light_vgg19", "ncnn_vgg16"}
    return [n for n in names if n not in too_large]


def add_models(kit, options):
    """Models from the field with their weights, the small ones first; where weights are large, random ones."""
    folders = [os.path.dirname(m) for m in glob.glob(os.path.join(options.data, "models", "*", "model.onnx"))]
    folders = [f for f in folders if not options.models or os.path.basename(f) in options.models]
    if not folders:
        say(f"no models: expected them in {options.data}/models; set QUERNEL_TEST_DATA")
    small, large = [], []
    for folder in sorted(folders, key=size_of):
        if data_bytes(folder) > MOST_VECTORS:
            kit.leave_out("models", os.path.basename(folder), f"its data set has {data_bytes(folder) / 1e6:.1f} MB, more than 1")
            continue
        copy = one_data_set(folder, options.work)
        (small if size_of(folder) - data_bytes(folder) <= MOST_WEIGHTS else large).append(copy)
    kit.compile("models", small, random_weights=False)
    kit.compile("models", large)


def add_conformance(kit, options):
    places = [*NODE_TESTS, os.path.join(options.data, "onnx_node_newer")]
    for place in places:
        if not os.path.isdir(place):
            say(f"no cases of {place}")
    cases = sorted((c for place in places for c in glob.glob(os.path.join(place, "*")) if os.path.exists(os.path.join(c, "model.onnx"))),
                   key=os.path.basename)
    chosen, seen = [], set()
    for case in cases[::options.every]:
        name = os.path.basename(case)
        if name in seen or size_of(case) > MOST_CASE:
            continue
        seen.add(name)
        chosen.append(case)
    kit.compile("conformance", chosen, random_weights=False)


def add_peaks(kit, options):
    """Kernels that measure the device, a line of peaks.txt for each."""
    run(options.quernel, "probe", "--kernels", os.path.join(kit.root, "peaks"))
    kit.write("peaks.txt", """multiply_adds_f32 peaks-vulkan.qnl --entry multiply_adds --repeat 1000 --seconds 2 --profile
multiply_adds_int8 peaks-vulkan.qnl --entry byte_products --repeat 1000 --seconds 2 --profile
multiply_adds_int8_dotprod peaks-vulkan+dotprod.qnl --entry byte_products --repeat 1000 --seconds 2 --profile needs dotprod
multiply_adds_f16_coopmat peaks-vulkan+coopmat.qnl --entry matrix_products --repeat 1000 --seconds 2 --profile needs coopmat
multiply_adds_int8_coopmat peaks-vulkan+coopmat-int8.qnl --entry matrix_products --repeat 1000 --seconds 2 --profile needs coopmat-int8
multiply_adds_bf16_coopmat peaks-vulkan+coopmat-bf16.qnl --entry matrix_products --repeat 1000 --seconds 2 --profile needs coopmat-bf16
reads peaks-vulkan.qnl --entry reads --repeat 1000 --seconds 2 --profile
copies copies.qnl --repeat 1000 --seconds 2 --profile
copies_with_transfers copies.qnl --repeat 100 --seconds 2
transfer transfer.qnl --repeat 1000 --seconds 1
chain chain.qnl --repeat 1000 --seconds 1
link link.qnl --repeat 1000 --seconds 1
""")


def unpack(package, folder):
    os.makedirs(folder, exist_ok=True)
    run("dpkg-deb", "-x", package, folder)


def download(packages, arch, work):
    """-> the packages' files, for an architecture that need not be this machine's."""
    place = os.path.join(work, "packages", arch)
    os.makedirs(os.path.join(place, "lists", "partial"), exist_ok=True)
    os.makedirs(os.path.join(place, "archives", "partial"), exist_ok=True)
    settings = [f"-oAPT::Architecture={arch}", f"-oAPT::Architectures={arch}", f"-oDir::State::Lists={place}/lists",
                f"-oDir::Cache={place}", "-oDir::State::status=/dev/null"]
    missing = [p for p in packages if not glob.glob(os.path.join(place, f"{p}_*.deb"))]
    if missing:
        run("apt-get", "-q", *settings, "update")
        run("apt-get", "-q", *settings, "download", *missing, cwd=place)
    return {p: max(glob.glob(os.path.join(place, f"{p}_*.deb"))) for p in packages}


def add_loader(kit, options):
    """The Vulkan loader, and what drivers link that a machine without a display lacks."""
    library = os.path.join(kit.root, "lib")
    os.makedirs(os.path.join(library, "x11"))
    if options.installed_loader:
        found = [f for place in ("/usr/lib", "/lib") for f in glob.glob(f"{place}/*-linux-gnu/libvulkan.so.1")]
        if not found:
            raise Failure("--installed-loader: expected libvulkan.so.1 on this machine, found none")
        shutil.copy(os.path.realpath(found[0]), os.path.join(library, "libvulkan.so.1"))
        return
    files = download(LOADER + DISPLAY, DEBIAN_ARCH[options.arch], options.work)
    for package, file in files.items():
        folder = os.path.join(options.work, "unpacked", package)
        shutil.rmtree(folder, ignore_errors=True)
        unpack(file, folder)
        target = library if package in LOADER else os.path.join(library, "x11")
        for found in glob.glob(os.path.join(folder, "**", "*-linux-gnu", "lib*.so.*"), recursive=True):
            if re.search(r"\.so\.\d+$", found):                    # the name that programs ask for: a link, here a file
                shutil.copy(found, target)
        for text in glob.glob(os.path.join(folder, "usr", "share", "doc", "*", "copyright")):
            shutil.copy(text, os.path.join(target, f"{package}.copyright"))


def numbers(text):
    return [int(n) for n in text.split(",") if n]


def names(text):
    return [n for n in text.split(",") if n]


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", help="the archive")
    parser.add_argument("--arch", choices=sorted(DEBIAN_ARCH), default="x86-64", help="of the machine that it is for")
    parser.add_argument("--quernel", required=True)
    parser.add_argument("--runner", required=True, help="the quernel-run that goes into the kit")
    parser.add_argument("--data", required=True, help="test data: models, models/light, onnx_node_newer")
    parser.add_argument("--work", required=True, help="folder that keeps models and packages from one call to the next")
    parser.add_argument("--groups", type=names, default=GROUPS, metavar="NAME,NAME", help="of cases: " + ", ".join(GROUPS))
    parser.add_argument("--sizes", type=numbers, default=SIZES, metavar="N,N", help="of products")
    parser.add_argument("--keys", type=numbers, default=KEYS, metavar="N,N", help="of attention")
    parser.add_argument("--networks", type=names, default=[], metavar="NAME,NAME", help="which (default: all but the largest)")
    parser.add_argument("--models", type=names, default=[], metavar="NAME,NAME", help="which (default: all whose data are small)")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take every N-th conformance case")
    parser.add_argument("--limit", type=float, default=48, metavar="MB", help="of cases, compressed")
    parser.add_argument("--installed-loader", action="store_true", help="this machine's Vulkan loader; nothing is downloaded")
    parser.add_argument("--fast", action="store_true", help="compress less")
    options = parser.parse_args()
    for group in options.groups:
        if group not in GROUPS:
            parser.error(f"--groups: expected some of {', '.join(GROUPS)}, found '{group}'")
    return options


def smaller_first(cases):
    """What has to be there, then the rest by size: the largest are left out where the archive is full."""
    return sorted(cases, key=lambda c: (c["name"] not in NETWORKS_F16, size_of(c["folder"])))


def main():
    options = parse()
    os.makedirs(options.work, exist_ok=True)
    kit = Kit(options)
    add_loader(kit, options)
    add_peaks(kit, options)
    add = generate(kit, options)
    for group in ("products", "int8", "attention", "networks_f16"):
        add(group)
    if "conformance" in options.groups:
        add_conformance(kit, options)
    if "models" in options.groups:
        add_models(kit, options)
    for group in ("operators", "networks"):
        add(group)
    kit.finish(options.out)


if __name__ == "__main__":
    try:
        main()
    except Failure as e:
        sys.exit(f"pack: {e}")
