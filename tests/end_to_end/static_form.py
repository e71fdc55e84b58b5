"""Models as static libraries, or as C, in a C program: reads the header, writes the program, runs it beside the bundle."""
import os
import re
import struct
import subprocess

# What the program does beside calling the model: memory and stack are painted before the run, everything that the model
# may write to lies between guards, and inputs are aligned to an element only.
PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "%(name)s.h"

#ifndef %(macro)s_STACK_BYTES /* of C nobody knows before it is compiled */
#define %(macro)s_STACK_BYTES (1 << 19)
#endif

enum { kGuard = 4096, kPaint = 0xA5, kStack = 1 << 20 };

typedef struct block { unsigned char *all, *bytes; size_t size; } block;
static block make_block(size_t size, size_t offset) {
  block b;
  b.all = aligned_alloc(4096, (size + 2 * kGuard + 4095 + 64) / 4096 * 4096 + 4096);
  memset(b.all, kPaint, size + 2 * kGuard + 64);
  b.bytes = b.all + kGuard + offset;
  b.size = size;
  return b;
}
/* Bytes up to the last one that is not painted; dies of a guard that is not. */
static size_t used(const char* what, block b) {
  size_t last = 0;
  for (unsigned char* p = b.all; p != b.bytes; ++p)
    if (*p != kPaint) printf("wrote before %%s\n", what), exit(3);
  for (size_t i = 0; i < b.size; ++i)
    if (b.bytes[i] != kPaint) last = i + 1;
  for (size_t i = b.size; i < b.size + kGuard - 64; ++i)
    if (b.bytes[i] != kPaint) printf("wrote behind %%s\n", what), exit(3);
  return last;
}
static __attribute__((unused)) block read_block(const char* path, size_t size, size_t offset) {
  block b = make_block(size, offset);
  FILE* f = fopen(path, "rb");
  if (!f || fread(b.bytes, 1, size, f) != size || fgetc(f) != EOF) printf("%%s: expected %%zu bytes\n", path, size), exit(3);
  fclose(f);
  return b;
}

static %(id)s_memory memory;
static %(entry)s_inputs inputs;
static %(entry)s_outputs outputs;
static unsigned char* stack;
static int32_t code;
static size_t stack_used;

static unsigned char* frame; /* from which the stack is measured */
static __attribute__((noinline)) void call(void) {
  frame = __builtin_frame_address(0);
  code = %(entry)s_run(&memory, &inputs, &outputs);
}
static void* run_on_painted_stack(void* unused) {
  unsigned char* here = __builtin_frame_address(0);
  unsigned char* top = here - 160; /* this function's own frame lies above */
  for (volatile unsigned char* p = stack; p < top; ++p) *p = kPaint;
  call();
  unsigned char* deepest = stack;
  while (deepest < top && *deepest == kPaint) ++deepest;
  stack_used = deepest == top ? 0 : (size_t)(frame - deepest);
  return unused;
}

int main(int argc, char** argv) {
  if (argc != 1 + %(files)d) return 3;
%(prepare)s
  stack = aligned_alloc(4096, kStack);
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, kStack);
  for (int run = 0; run < 2; ++run) { /* what the first one leaves behind must not matter */
%(before)s
    if (pthread_create(&thread, &attributes, run_on_painted_stack, NULL) != 0) return 3;
    pthread_join(thread, NULL);
    if (code != %(macro)s_OK) return printf("code %%d\n", (int)code), 4;
    if (run == 0) printf("stack %%zu of %%d\n", stack_used, %(macro)s_STACK_BYTES);
%(after)s
  }
%(finish)s
  return 0;
}
"""


class Tensor:
    def __init__(self, name, dtype, rank, size, identifier):
        self.name, self.dtype, self.rank, self.bytes, self.identifier = name, dtype, rank, size, identifier


def identifier(name):
    """As the compiler makes them, for the names that tests use."""
    return re.sub(r"\W", "_", name)


def tensors(header, entry, kind):
    """Of the struct <entry>_<kind>s; a shape that is told at run time has `dims` in the tensor."""
    begin = header.index(f"#define {entry.upper()}_{kind.upper()}_COUNT")
    part = header[begin:header.index(f"}} {entry}_{kind}s;", begin)]
    described = re.findall(r"/\* '(.*)': (\w+)\[(.*)\](?:; .*)? \*/\n#define \w+_BYTES (\d+)\n", part)
    members = re.findall(r"^  (?:const )?(\w+)\* (\w+); /\* \w+\[.*bytes \*/$", part, re.M)
    inside = re.findall(rf"^static inline (\w+)\* {entry}_{kind}_(\w+)_address\(", header, re.M)
    members = members or inside
    assert len(described) == len(members), part
    result = [Tensor(name, dtype, len(dims.split(",")) if dims else 0, int(size), member)
              for (name, dtype, dims, size), (_, member) in zip(described, members)]
    for t in result:
        t.inside = bool(inside)
    for t, dims in zip([t for t, d in zip(result, described) if "?" in d[2]], re.findall(r"int64_t\* (\w+); /\* gets", part)):
        t.shape_identifier = dims
    return result


def write_program(folder, name, entry=None):
    """-> (inputs, outputs); the C program beside the header."""
    with open(os.path.join(folder, name + ".h")) as f:
        header = f.read()
    base = identifier(name)
    entry = entry or base
    inputs, outputs = tensors(header, entry, "input"), tensors(header, entry, "output")
    prepare, finish, before, after = [], [], [], []
    for index, t in enumerate(inputs):
        size = {"f64": 8, "i64": 8, "u64": 8, "f32": 4, "i32": 4, "u32": 4}.get(t.dtype, 2)
        prepare.append(f"  block in{index} = read_block(argv[{1 + index}], {t.bytes}, {size});")
        if t.inside:
            before.append(f"    memcpy({entry}_input_{t.identifier}_address(&memory), in{index}.bytes, {t.bytes});")
            continue
        prepare.append(f"  inputs.{t.identifier} = (void*)in{index}.bytes;")
    for index, t in enumerate(outputs):
        prepare.append(f"  block out{index} = make_block({t.bytes}, 0);")
        if t.inside:
            after.append(f"    memcpy(out{index}.bytes, {entry}_output_{t.identifier}_address(&memory), {t.bytes});")
        else:
            prepare.append(f"  outputs.{t.identifier} = (void*)out{index}.bytes;")
        finish.append(f"  used(\"output {index}\", out{index});")
        finish.append(f"  FILE* f{index} = fopen(argv[{1 + len(inputs) + index}], \"wb\");")
        finish.append(f"  if (!f{index} || fwrite(out{index}.bytes, 1, {t.bytes}, f{index}) != {t.bytes} || fclose(f{index}) != 0) return 3;")
        if hasattr(t, "shape_identifier"):
            prepare.append(f"  int64_t shape{index}[8];\n  outputs.{t.shape_identifier} = shape{index};")
            finish.append(f"  printf(\"shape {index}\");\n  for (int d = 0; d < {t.rank}; ++d) printf(\" %ld\", (long)shape{index}[d]);\n  printf(\"\\n\");")
    for member in re.findall(r"^  void\* (\w+); /\* (\w+)_BYTES", header, re.M):
        prepare.append(f"  block {member[0]} = make_block({member[1]}_BYTES, 0);\n  memory.{member[0]} = {member[0]}.bytes;")
        finish.append(f"  printf(\"{member[0]} %zu of %d\\n\", used(\"{member[0]}\", {member[0]}), {member[1]}_BYTES);")
    if f"{base}_reset(" in header:
        prepare.append(f"  {base}_reset(&memory);")
    with open(os.path.join(folder, "program.c"), "w") as f:
        f.write(PROGRAM % dict(name=name, id=base, entry=entry, macro=base.upper(), files=len(inputs) + len(outputs),
                               before="\n".join(before), after="\n".join(after), prepare="\n".join(prepare), finish="\n".join(finish)))
    return inputs, outputs


def build_program(folder, name, compiler=("gcc",), flags=(), c_flags=None):
    """The library, or with `c_flags` the C files, are linked without any other, and must not need one."""
    run = lambda *command: subprocess.run([*compiler, *command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    parts = [name + ".a"]
    if c_flags is not None:
        parts = sorted(f for f in os.listdir(folder) if re.fullmatch(re.escape(name) + r"(_weights|_memory)?\.c", f))
        done = run("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", *c_flags, "-c", *parts)
        assert done.returncode == 0, done.stdout
        parts = [part[:-1] + "o" for part in parts]
    done = run("-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", *flags, "program.c", *parts, "-pthread", "-o", "program")
    assert done.returncode == 0, done.stdout


def run_program(folder, inputs, outputs, emulator=()):
    """-> what it prints, by the first word: lists of the other words"""
    files = [f"in{i}.raw" for i in range(len(inputs))] + [f"static{i}.raw" for i in range(len(outputs))]
    done = subprocess.run([*emulator, "./program", *files], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=600)
    assert done.returncode == 0, f"exit {done.returncode}: {done.stdout}"
    said = {}
    for line in done.stdout.splitlines():
        word, *rest = line.split()
        said[word if word != "shape" else f"shape{rest.pop(0)}"] = rest
    return said


# ---- TensorProto, as stored beside ONNX's tests

def fields(data):
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            size = {1: 8, 5: 4}.get(key & 7) or varint()
            yield key >> 3, data[at:at + size]
            at += size


def packed_varints(chunks):
    values = []
    for chunk in chunks:
        if isinstance(chunk, int):
            values.append(chunk)
            continue
        value = shift = 0
        for byte in chunk:
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                values.append(value)
                value = shift = 0
    return values


# ONNX's numbers of dtypes: bytes of an element.
WIDTHS = {1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8, 16: 2}


def tensor_proto(path):
    """-> (name, bytes of its elements), None where it is no dense tensor of numbers"""
    found = {}
    with open(path, "rb") as f:
        for number, value in fields(f.read()):
            found.setdefault(number, []).append(value)
    width = WIDTHS.get(found.get(2, [0])[0])
    if width is None:
        return None
    name = found.get(8, [b""])[0].decode()
    if 9 in found:
        return name, found[9][0]
    for number in (4, 10):  # float_data, double_data
        if number in found:
            return name, b"".join(found[number])
    for number in (5, 7, 11):  # int32_data, int64_data, uint64_data
        if number in found:
            return name, b"".join((v & (1 << 8 * width) - 1).to_bytes(width, "little") for v in packed_varints(found[number]))
    return name, b""


def read_npy(path):
    """The elements' bytes."""
    with open(path, "rb") as f:
        data = f.read()
    return data[10 + struct.unpack("<H", data[8:10])[0]:]
