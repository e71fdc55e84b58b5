#!/usr/bin/env python3
"""Times PyTorch on what the GPU kit times: products, attention and convolutions, each eager and as a captured graph.

    peer.py kit.json [--seconds N]

Prints one JSON object: versions, and per case ms eager, ms of a graph's replay, or why it has none. Needs PyTorch and a
GPU that it can use; without it prints {"skipped": reason}. TF32 is off: f32 is compared with f32.
"""
import argparse
import json
import statistics
import sys
import time

try:
    import torch
except ImportError as e:
    print(json.dumps({"skipped": f"no PyTorch: {e}"}))
    sys.exit()

WARM, LONGEST = 3, 0.3
ORDER = ["products", "int8", "attention", "networks", "networks_f16", "operators"]


def settled(function):
    """Milliseconds of one call, by the GPU's clock: the median of many, each between two events."""
    for _ in range(WARM):
        function()
    torch.cuda.synchronize()
    times, begin = [], time.monotonic()
    while len(times) < 5 or (time.monotonic() - begin < LONGEST and len(times) < 50):
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        function()
        last.record()
        last.synchronize()
        times.append(first.elapsed_time(last))
    return statistics.median(times)


def captured(function):
    """A function that replays what `function` does as one graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM):
            function()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    return graph.replay


def work_of(case):
    """-> what to call, None where there is no counterpart."""
    dtypes = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}

    def random(shape):
        return torch.randn(shape, device="cuda", dtype=dtypes[case["dtype"]])
    if case.get("op") == "matmul" and case["dtype"] == "int8":
        a, b = (torch.randint(-128, 128, (case["m"], case["k"]), device="cuda", dtype=torch.int8) for _ in range(2))
        return lambda: torch._int_mm(a, b)
    if case.get("op") == "matmul":
        a, b = random((case["m"], case["k"])), random((case["k"], case["n"]))
        return lambda: torch.matmul(a, b)
    if case.get("op") == "attention":
        q, k, v = (random((1, case["heads"], case["keys"], case["width"])) for _ in range(3))
        return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v)
    if case.get("op") == "conv" and case["pads"][:2] == case["pads"][2:]:
        x, w, bias = random(case["image"]), random(case["weights"]), random(case["weights"][:1])
        return lambda: torch.relu(torch.nn.functional.conv2d(x, w, bias, case["strides"], case["pads"][:2], groups=case["groups"]))
    return None


NETWORKS = {"ncnn_resnet18": "resnet18", "ncnn_resnet50": "resnet50", "ncnn_mobilenet_v2": "mobilenet_v2", "ncnn_vision_transformer": "vit_b_16",
            "ncnn_alexnet": "alexnet", "ncnn_squeezenet": "squeezenet1_1", "ncnn_efficientnet_b0": "efficientnet_b0"}


def network_of(case):
    """torchvision's network of the same architecture, or nearly: random weights, batch 1."""
    try:
        import torchvision
    except ImportError:
        return None
    if case.get("op") != "network" or case["name"] not in NETWORKS:
        return None
    dtype = torch.float16 if case["dtype"] == "f16" else torch.float32
    model = getattr(torchvision.models, NETWORKS[case["name"]])(weights=None).eval().to("cuda", dtype)
    x = torch.randn((1, 3, 224, 224), device="cuda", dtype=dtype)
    return lambda: model(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kit")
    parser.add_argument("--seconds", type=float, default=120)
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    if not torch.cuda.is_available():
        print(json.dumps({"skipped": f"PyTorch {torch.__version__} sees no GPU"}))
        return
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    with open(options.kit) as f:
        cases = [case for case in json.load(f)["cases"] if case["group"] in ORDER]
    cases.sort(key=lambda case: ORDER.index(case["group"]))
    rows, not_run = [], []
    with torch.inference_mode():
        for case in cases:
            if time.monotonic() > end:
                not_run.append(case["name"])
                continue
            row = {"group": case["group"], "name": case["name"]}
            try:
                work = work_of(case) or network_of(case)
                if work is None:
                    continue
                row["eager_ms"] = settled(work)
                row["graph_ms"] = settled(captured(work))
            except Exception as e:  # what this version lacks; the others are still timed
                row["error"] = f"{type(e).__name__}: {e}".splitlines()[0]
                torch.cuda.synchronize()
            rows.append(row)
    print(json.dumps({"pytorch": torch.__version__, "cuda": torch.version.cuda, "device": torch.cuda.get_device_name(), "tf32": False,
                      "cases": rows, "not_run": not_run}))


if __name__ == "__main__":
    main()
