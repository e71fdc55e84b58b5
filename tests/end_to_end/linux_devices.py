"""The Linux devices that the tests have: emulated processors, and the quernel-run that a CMake preset builds for each."""
import os
import shutil
import subprocess
from dataclasses import dataclass

from tools import ROOT, skip, tool


@dataclass(frozen=True)
class Architecture:
    preset: str    # of CMake: builds quernel-run
    compiler: str
    emulator: str
    targets: dict  # of quernel compile -> the emulator's CPU
    lesser: tuple  # a target, a CPU that lacks something of it, and what the refusal says
    c_flags: str = ""  # that tell a C compiler what the targets have


SVE = "max,sve-default-vector-length="
RISCV_V = "rv64,v=true,vext_spec=v1.0,vlen="
ARCHITECTURES = {
    "aarch64": Architecture(
        preset="aarch64",
        compiler="aarch64-linux-gnu-g++",
        emulator="qemu-aarch64-static",
        targets={"aarch64": "cortex-a53", "cortex-a53": "cortex-a53", "cortex-a72": "cortex-a72", "cortex-a76": "cortex-a76", "cortex-a710": "max",
                 "aarch64+sve256": SVE + "32", "aarch64+sve512": SVE + "64"},
        lesser=("cortex-a76", "cortex-a53", "has aarch64 (neon), the bundle has cortex-a76: aarch64 (neon fp16 dotprod)")),
    "armv7": Architecture(
        preset="armv7",
        compiler="arm-linux-gnueabihf-g++",
        emulator="qemu-arm-static",
        targets={"armv7": "cortex-a7", "cortex-a15": "cortex-a15"},
        c_flags="-mfpu=neon-vfpv4",
        lesser=("armv7", "cortex-a9", "has arm (thumb2 neon), the bundle has armv7: arm (thumb2 vfp4-sp vfp4-dp neon idiv)")),
    "riscv64": Architecture(
        preset="riscv64",
        compiler="riscv64-linux-gnu-g++",
        emulator="qemu-riscv64-static",
        targets={"riscv64": "rv64", "riscv64-v": RISCV_V + "128", "riscv64-v+vlen256": RISCV_V + "256"},
        lesser=("riscv64-v", "rv64", "has riscv64 (gc), the bundle has riscv64-v: riscv64 (gc v)")),
}


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command[:4])} …: exit {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


class Device:
    """quernel-run of an architecture on one of its CPUs; without one, on what `--on qemu` takes for the target."""

    def __init__(self, runner, cpu=None):
        self.options = ["--on", "qemu:" + cpu if cpu else "qemu", "--run-binary", runner, "--allow-unsupported", "*"]

    def test(self, target, cases, *options):
        """-> the ended `quernel test` of these cases"""
        command = [tool("quernel"), "test", "--target", target, *self.options, "--jobs", str(os.cpu_count()), *options, *cases]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def missing_program(architecture):
    return next((program for program in (architecture.compiler, architecture.emulator) if not shutil.which(program)), None)


def build_runner(architecture):
    """-> path of quernel-run; skips the test where the cross compiler or the emulator is missing"""
    if missing := missing_program(architecture):
        skip(f"no {missing}: toolchains/install_debian.sh --cross installs it")
    build = os.path.join(ROOT, "build", architecture.preset)
    launcher = [f"-DCMAKE_{language}_COMPILER_LAUNCHER=ccache" for language in ("C", "CXX") if shutil.which("ccache")]
    run(["cmake", "-S", ROOT, "--preset", architecture.preset, *launcher])
    said = run(["cmake", "--build", build, "--target", "quernel-run"])
    if "warning:" in said:
        raise SystemExit(f"quernel-run for {architecture.preset}: expected a build without warnings, found\n{said[-4000:]}")
    return os.path.join(build, "bin", "quernel-run")
