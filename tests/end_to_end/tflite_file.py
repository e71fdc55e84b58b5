"""Writes small TensorFlow Lite models; FlatBuffers by hand, field numbers of tflite.fbs."""
import struct

FLOAT_TYPE, INT8_TYPE, RESOURCE_TYPE = 0, 9, 13
ADD, NEG, ABS, QUANTIZE, VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE = 0, 59, 101, 114, 142, 143, 144


class Buffer:
    """Tables and vectors, each behind what refers to it. A field is a pair of struct's letter and a number, or what Buffer.place takes."""

    def __init__(self, identifier=b"TFL3"):
        self.data = bytearray(8)
        self.data[4:8] = identifier

    def align(self, size, remainder=0):
        while len(self.data) % size != remainder:
            self.data.append(0)

    def refer(self, at, what):
        struct.pack_into("<I", self.data, at, self.place(what) - at)

    def place(self, what):
        if isinstance(what, dict):
            return self.table(what)
        if isinstance(what, str):
            self.align(4)
            at = len(self.data)
            self.data += struct.pack("<I", len(what)) + what.encode() + b"\0"
            return at
        letter, values = what if isinstance(what, tuple) else ("I", what)
        self.align(8, 4)
        at = len(self.data)
        self.data += struct.pack("<I", len(values))
        if isinstance(what, tuple):
            self.data += struct.pack(f"<{len(values)}{letter}", *values)
        else:
            self.data += bytes(4 * len(values))
            for i, value in enumerate(values):
                self.refer(at + 4 + 4 * i, value)
        return at

    def table(self, fields):
        count = max(fields, default=-1) + 1
        self.align(4)
        vtable = len(self.data)
        self.data += bytes(4 + 2 * count)
        self.align(4)
        at = len(self.data)
        self.data += bytes(4 + 4 * len(fields))
        struct.pack_into("<i", self.data, at, at - vtable)
        struct.pack_into("<HH", self.data, vtable, 4 + 2 * count, 4 + 4 * len(fields))
        children = []
        for i, (field, what) in enumerate(sorted(fields.items())):
            place = 4 + 4 * i
            struct.pack_into("<H", self.data, vtable + 4 + 2 * field, place)
            if isinstance(what, tuple) and not hasattr(what[1], "__len__"):
                struct.pack_into("<" + what[0], self.data, at + place, what[1])
            else:
                children.append((at + place, what))
        for place, what in children:
            self.refer(place, what)
        return at


def quantized(name, shape, scale, zero):
    return {0: ("i", shape), 1: ("b", INT8_TYPE), 3: name, 4: {2: ("f", [scale]), 3: ("q", [zero])}}


def subgraph(tensors, inputs, outputs, nodes):
    """Nodes: number of the operator in the model's list, inputs, outputs."""
    return {0: tensors, 1: ("i", inputs), 2: ("i", outputs),
            3: [{0: ("I", op), 1: ("i", takes), 2: ("i", gives)} for op, takes, gives in nodes], 4: "main"}


def model(operators, subgraphs, signatures=(), metadata=()):
    """Signatures: key and number of a subgraph. Metadata: name and bytes."""
    codes = [{0: ("b", min(op, 127)), 3: ("i", op)} for op in operators]
    buffer = Buffer()
    buffer.refer(0, {0: ("I", 3), 1: codes, 2: subgraphs, 4: [{}] + [{0: ("B", data)} for _, data in metadata],
                     6: [{0: name, 1: ("I", i + 1)} for i, (name, _) in enumerate(metadata)],
                     7: [{2: key, 4: ("I", number)} for key, number in signatures]})
    return bytes(buffer.data)


def floats(name, shape):
    return {0: ("i", shape), 1: ("b", FLOAT_TYPE), 3: name}


def requantization(shape, from_scale, to_scale):
    """int8 'x' to int8 'y' by QUANTIZE."""
    tensors = [quantized("x", shape, from_scale, 0), quantized("y", shape, to_scale, 0)]
    return model([QUANTIZE], [subgraph(tensors, [0], [1], [(0, [0], [1])])])


def accumulator(shape):
    """'y' is the sum of all 'x' so far."""
    handle = {0: ("i", []), 1: ("b", RESOURCE_TYPE), 3: "handle"}
    tensors = [floats("x", shape), floats("y", shape), floats("before", shape), handle]
    nodes = [(0, [], [3]), (1, [3], [2]), (2, [0, 2], [1]), (3, [3, 1], [])]
    return model([VAR_HANDLE, READ_VARIABLE, ADD, ASSIGN_VARIABLE], [subgraph(tensors, [0], [1], nodes)])


def two_signatures(shape):
    """'negate' gives 'y' of 'x', 'absolute' 'b' of 'a'."""
    graphs = [subgraph([floats(x, shape), floats(y, shape)], [0], [1], [(op, [0], [1])]) for op, (x, y) in enumerate(("xy", "ab"))]
    return model([NEG, ABS], graphs, [("negate", 0), ("absolute", 1)])


def about(name, description, labels):
    """Metadata of a model, whose output has a file of labels."""
    buffer = Buffer(b"M001")
    output = {6: [{0: labels, 2: ("b", 2)}]}
    buffer.refer(0, {0: name, 1: description, 2: "v2", 3: [{3: [output]}], 4: "A. Author"})
    return bytes(buffer.data)
