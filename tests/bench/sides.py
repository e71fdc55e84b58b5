"""The two sides of a comparison, Quernel and ONNX Runtime, as processes that are started, timed and read; and tables."""
import json
import math
import os
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1024.0 * 1024.0
DEBIAN_PYTHON = "/usr/bin/python3"                                 # the only one that sees Debian's onnx module


class Failure(Exception):
    pass


def machine_cpu_seconds():
    """CPU seconds used on the whole machine, those stolen by a hypervisor included."""
    with open("/proc/stat") as f:
        v = [int(x) for x in f.readline().split()[1:9]]
    return (v[0] + v[1] + v[2] + v[5] + v[6] + v[7]) / os.sysconf("SC_CLK_TCK")


class Run:
    """One finished child process: its output, wall time, peak memory, and how busy others kept the machine meanwhile."""

    def __init__(self, command, env=None):
        busy, start = machine_cpu_seconds(), time.monotonic()
        with tempfile.TemporaryFile("w+") as err:                  # no pipe: reading two in turn could wait for ever
            try:
                child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=err, env=env, text=True)
            except OSError as e:
                raise Failure(f"{command[0]}: {e.strerror}") from e
            self.out = child.stdout.read()
            _, status, usage = os.wait4(child.pid, 0)
            err.seek(0)
            self.err = err.read()
        child.returncode = os.waitstatus_to_exitcode(status)
        self.seconds = time.monotonic() - start
        self.peak_bytes = usage.ru_maxrss * 1024                   # at least what this script held when it forked
        own = usage.ru_utime + usage.ru_stime
        self.other_cores = max(0.0, machine_cpu_seconds() - busy - own) / max(self.seconds, 1e-3)
        if child.returncode != 0:
            last = (self.err.strip() or self.out.strip() or "no message").splitlines()
            raise Failure(f"{os.path.basename(command[0])} exited with {child.returncode}: {last[0][:200]}")

    def json(self):
        return json.loads(self.out[self.out.index("{"):])


class Best:
    """The turn with the smallest median latency, and the least favourable conditions seen."""

    def __init__(self):
        self.turn, self.noise, self.round_trip = None, 0.0, 0.0

    def add(self, run):
        fields = {"load_ms": None, "peak_rss_bytes": None, **run.json()}
        self.noise = max(self.noise, run.other_cores)
        self.round_trip = max(self.round_trip, fields.get("core_round_trip_ns", 0))
        loads = [f["load_ms"] for f in (fields, self.turn) if f and f["load_ms"] is not None]
        if self.turn is None or fields["latency_ms"]["median"] < self.turn["latency_ms"]["median"]:
            self.turn = fields
        self.turn["load_ms"] = min(loads, default=None)


def prepare(name, data, folder):
    """-> (path of the copy that both sides read, facts about it)"""
    target = os.path.join(folder, name)
    copy, facts = os.path.join(target, "bench.onnx"), os.path.join(target, "bench.json")
    if not os.path.exists(facts):
        source = os.path.join(data, "models", name, "model.onnx")
        light = os.path.join(data, "models", "light", name + ".onnx")
        if os.path.exists(light):
            source = os.path.join(target, "model.onnx")
            if not os.path.exists(source):
                Run([DEBIAN_PYTHON, os.path.join(data, "models", "light", "materialize_weights.py"), light, target])
        elif not os.path.exists(source):
            raise Failure(f"no such model: expected {source} or {light}")
        out = Run([DEBIAN_PYTHON, os.path.join(HERE, "prepare_model.py"), source, copy]).out
        with open(facts, "w") as f:
            f.write(out)
    with open(facts) as f:
        return copy, json.load(f)


class Quernel:
    """The two tools under test."""

    def __init__(self, bin_folder, folder):
        self.compiler, self.runner = os.path.join(bin_folder, "quernel"), os.path.join(bin_folder, "quernel-run")
        self.folder = folder

    def compile(self, name, model):
        bundle = os.path.join(self.folder, name, "bench.qnl")
        run = Run([self.compiler, "compile", model, "-o", bundle])
        return bundle, {"seconds": run.seconds, "peak_bytes": run.peak_bytes, "bundle_bytes": os.path.getsize(bundle)}

    def command(self, bundle, facts, threads, repeat):
        inputs = [part for name in facts["inputs"] for part in ("--input", f"{name}=random:1")]
        return [self.runner, bundle, *inputs, "--threads", str(threads), "--repeat", str(repeat), "--json"]

    def repeats(self, bundle, facts, threads, min_seconds):
        """How many runs fill the time."""
        probe = Best()
        probe.add(Run(self.command(bundle, facts, threads, 5)))
        median = probe.turn["latency_ms"]["median"]
        return max(15, min(20000, int(min_seconds * 1e3 / max(median, 1e-3))))


class OnnxRuntime:
    def __init__(self, binary, library):
        self.binary, self.env = binary, {**os.environ, "ORT_LIB": library}

    def first_run_command(self, model, threads):
        return [self.binary, model, "--threads", str(threads), "--first-run"]

    def run(self, model, threads, min_seconds):
        return Run([self.binary, model, "--threads", str(threads), "--min-seconds", str(min_seconds)], self.env)


def number(value, digits=3):
    """Significant digits, without exponents."""
    if value is None:
        return "-"
    text = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e" in text or abs(value) >= 10 ** digits else text


def table(title, header, rows):
    print(f"\n{title}")
    widths = [max(len(str(r[i])) for r in [header] + rows) for i in range(len(header))]
    for r in [header, ["-" * w for w in widths]] + rows:
        print("  ".join(str(c).ljust(w) if i == 0 else str(c).rjust(w) for i, (c, w) in enumerate(zip(r, widths))).rstrip())


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))
