"""Times a model of make_language_model.py --free with ONNX Runtime or OpenVINO, in this process, and prints one JSON object.

    language_peer.py onnxruntime|openvino MODEL.onnx THREADS CAPACITY TOKENS PAST SECONDS

A run takes TOKENS tokens behind PAST ones. ONNX Runtime keeps keys and values in place, in buffers of CAPACITY positions
that are inputs and outputs; OpenVINO gets PAST positions and returns all. base_rss_bytes is what Python and the library
held before the model was loaded, peak_rss_bytes the process's largest resident size. Needs numpy and the library.
"""
import json
import os
import sys
import time

import numpy as np


def memory():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM"))


def bind_apart(cpus, before):
    """One CPU for each computing thread: two may share one for seconds otherwise."""
    threads = [os.getpid()] + sorted(set(map(int, os.listdir("/proc/self/task"))) - before)
    for i, thread in enumerate(threads):
        os.sched_setaffinity(thread, {cpus[i % len(cpus)]})


def onnxruntime(path, threads, capacity, tokens, past):
    import onnxruntime as library
    base, before, start = memory(), set(map(int, os.listdir("/proc/self/task"))), time.perf_counter()
    options = library.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = library.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    load = time.perf_counter() - start
    if threads > 1:
        bind_apart(sorted(os.sched_getaffinity(0)), before)
    value, binding = library.OrtValue.ortvalue_from_numpy, session.io_binding()
    binding.bind_output("logits")
    for name, data in inputs_of(tokens, past).items():
        binding.bind_ortvalue_input(name, value(data))
    for i in session.get_inputs()[2:]:
        cache = value(np.full([1, i.shape[1], capacity, i.shape[3]], 0.5, np.float32))
        binding.bind_ortvalue_input(i.name, cache)
        binding.bind_ortvalue_output(i.name.replace("past_key_values", "present"), cache)
    return library.__version__, base, load, lambda: session.run_with_iobinding(binding), lambda: binding.get_outputs()[0].numpy()


def openvino(path, threads, capacity, tokens, past):
    import openvino as library
    base, start = memory(), time.perf_counter()
    model = library.Core().compile_model(path, "CPU", {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"})
    load = time.perf_counter() - start
    request = model.create_infer_request()
    values = inputs_of(tokens, past)
    for i in model.inputs[2:]:
        shape = i.partial_shape
        values[i.any_name] = np.full([1, shape[1].get_length(), past, shape[3].get_length()], 0.5, np.float32)
    for name, data in values.items():
        request.set_tensor(name, library.Tensor(data, shared_memory=True) if data.size else library.Tensor(data))
    return library.__version__, base, load, request.infer, lambda: request.get_tensor("logits").data


def inputs_of(tokens, past):
    return {"ids": np.arange(300, 300 + tokens, dtype=np.int64)[None], "attention_mask": np.ones((1, tokens + past), np.int64)}


def main(library, path, *numbers):
    threads, capacity, tokens, past = map(int, numbers[:4])
    version, base, load, run, logits = {"onnxruntime": onnxruntime, "openvino": openvino}[library](path, threads, capacity, tokens, past)
    run(), run()
    times, begin = [], time.perf_counter()
    while len(times) < 5 or time.perf_counter() - begin < float(numbers[4]):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    times.sort()
    print(json.dumps({"version": version, "load_ms": load * 1e3, "latency_ms": {"median": times[len(times) // 2], "min": times[0]},
                      "runs": len(times), "token": int(logits().argmax()), "base_rss_bytes": base,
                      "peak_rss_bytes": memory()}))


if __name__ == "__main__":
    if len(sys.argv) != 8:
        sys.exit(__doc__)
    main(*sys.argv[1:])
