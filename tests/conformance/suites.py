"""The suites of conformance cases, the cases known to be unsupported, and how `quernel verify` judges them."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from vulkan_driver import vulkan_environment  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# Debian's libonnx-testdata, and test data beside the repository.
ONNX = pathlib.Path(os.environ.get("QUERNEL_ONNX_TEST_DATA") or "/usr/share/libonnx-testdata/data")
SHARED = pathlib.Path(os.environ.get("QUERNEL_TEST_DATA") or ROOT.parent / "shared")
SUITES = {
    "node": ONNX / "node",
    "simple": ONNX / "simple",
    "pytorch-operator": ONNX / "pytorch-operator",
    "pytorch-converted": ONNX / "pytorch-converted",
    "newer": SHARED / "onnx_node_newer",
    "models": SHARED / "models",
}


def cases(suite):
    """Paths of the suite's cases, sorted; none when its data is not here."""
    folder = SUITES[suite]
    return sorted(p.parent for p in folder.glob("*/model.onnx")) if folder.is_dir() else []


def table(name):
    """Lines of a list in this folder: suite/case, then two more columns."""
    rows = {}
    for line in (HERE / name).read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            case, second, third = line.split(None, 2)
            rows[case] = (second, third)
    return rows


def verify(suite, chosen, jobs=1, threads=1, device="cpu", targets=()):
    """{case name: (verdict, reason)} of `quernel verify`; on Vulkan under the validation layers."""
    quernel = os.environ.get("QUERNEL") or ROOT / "build/release/bin/quernel"
    scratch = tempfile.mkdtemp(prefix="quernel-conformance-")
    try:
        result = os.path.join(scratch, "result.json")
        where = ["--device", device, "--validation"] if device == "vulkan" else ["--threads", str(threads)]
        where += [word for target in targets for word in ("--target", target)]
        done = subprocess.run([quernel, "verify", "--jobs", str(jobs), *where, "--timeout", "600",
                               "--json", result, *chosen], stdout=subprocess.DEVNULL,
                              env=vulkan_environment() if device == "vulkan" else None)
        if done.returncode not in (0, 1):
            raise SystemExit(f"quernel verify ended with status {done.returncode}")
        with open(result) as file:
            return {c["name"]: (c["verdict"], c["reason"]) for c in json.load(file)["cases"]}
    finally:
        shutil.rmtree(scratch)
