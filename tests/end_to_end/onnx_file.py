"""Writes small ONNX models and tensors, correct or deliberately wrong; protocol buffers by hand, field numbers of
onnx.proto."""
import ast
import struct

FLOAT, UINT8, INT8, INT32, INT64, STRING, BOOL, UINT64, COMPLEX64, UINT4 = 1, 2, 3, 6, 7, 8, 9, 13, 14, 21


def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def message(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def tensor(name, dtype, shape, data):
    return b"".join(number(1, d) for d in shape) + number(2, dtype) + message(8, name) + message(9, data)


def float_tensor(name, shape, values):
    return tensor(name, FLOAT, shape, struct.pack(f"<{len(values)}f", *values))


def int_tensor(name, shape, values):
    return tensor(name, INT64, shape, struct.pack(f"<{len(values)}q", *values))


def external_tensor(name, dtype, shape, location, offset=0):
    entries = b"".join(message(13, message(1, key) + message(2, value)) for key, value in
                       (("location", location), ("offset", str(offset)))[:2 if offset else 1])
    return b"".join(number(1, d) for d in shape) + number(2, dtype) + message(8, name) + entries + number(14, 1)


def value(name, dtype, shape):
    dims = b"".join(message(1, message(2, d) if isinstance(d, str) else number(1, d)) for d in shape)
    return message(1, name) + message(2, message(1, number(1, dtype) + message(2, dims)))


def int_attribute(name, integer):
    return message(1, name) + number(3, integer) + number(20, 2)


def ints_attribute(name, integers):
    return message(1, name) + b"".join(number(8, integer) for integer in integers) + number(20, 7)


def string_attribute(name, text):
    return message(1, name) + message(4, text) + number(20, 3)


def graph_attribute(name, nodes, inputs, outputs, initializers=()):
    return message(1, name) + message(6, graph(nodes, inputs, outputs, initializers)) + number(20, 5)


def graph(nodes, inputs, outputs, initializers=()):
    return (b"".join(message(1, n) for n in nodes) + message(2, "test") + b"".join(message(5, t) for t in initializers) +
            b"".join(message(11, v) for v in inputs) + b"".join(message(12, v) for v in outputs))


def node(op, inputs, outputs, name="", domain="", attributes=()):
    return (b"".join(message(1, i) for i in inputs) + b"".join(message(2, o) for o in outputs) + message(3, name) +
            message(4, op) + b"".join(message(5, a) for a in attributes) + message(7, domain))


def model(nodes, inputs, outputs, initializers=(), opset=17, domains=()):
    return (number(1, 8) + message(7, graph(nodes, inputs, outputs, initializers)) + message(8, number(2, opset)) +
            b"".join(message(8, message(1, domain) + number(2, 1)) for domain in domains))


def npy(shape, code, values):
    """A .npy file; code is both NumPy's and struct's: f, d, b, B, i, q."""
    kinds = {"f": "<f4", "d": "<f8", "b": "|i1", "B": "|u1", "i": "<i4", "q": "<i8"}
    header = str({"descr": kinds[code], "fortran_order": False, "shape": tuple(shape)})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}{code}", *values)


def values_of_npy(data):
    """Shape and elements of a .npy file."""
    length = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:10 + length].decode())
    codes = {"<f4": "f", "<f8": "d", "|i1": "b", "|u1": "B", "<i4": "i", "<i8": "q", "|b1": "?"}
    code = codes[header["descr"]]
    body = data[10 + length:]
    return list(header["shape"]), list(struct.unpack(f"<{len(body) // struct.calcsize(code)}{code}", body))
