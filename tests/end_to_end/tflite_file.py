"""Writes small TensorFlow Lite models; FlatBuffers by hand, field numbers of tflite.fbs."""
import struct

INT8_TYPE, QUANTIZE = 9, 114


class Buffer:
    """Tables and vectors, each behind what refers to it. A field is a pair of struct's letter and a number, or what Buffer.place takes."""

    def __init__(self):
        self.data = bytearray(8)
        self.data[4:8] = b"TFL3"

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


def requantization(shape, from_scale, to_scale):
    """int8 'x' to int8 'y' by QUANTIZE."""
    graph = {0: [quantized("x", shape, from_scale, 0), quantized("y", shape, to_scale, 0)], 1: ("i", [0]), 2: ("i", [1]),
             3: [{1: ("i", [0]), 2: ("i", [1])}], 4: "main"}
    model = {0: ("I", 3), 1: [{0: ("b", QUANTIZE), 3: ("i", QUANTIZE)}], 2: [graph], 4: [{}]}
    buffer = Buffer()
    buffer.refer(0, model)
    return bytes(buffer.data)
