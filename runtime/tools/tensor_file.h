// Tensors in files: NumPy .npy, ONNX TensorProto .pb, raw bytes. Readers check every length against the file
// before they allocate, so a damaged file gives a message, never a crash or a huge allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "quernel/runtime.h"

namespace quernel::tensor_file {

// A dense row-major tensor in host memory, little-endian, packed types two elements per byte.
struct HostTensor {
  std::string name;  // from the .pb, else empty
  qnl_dtype dtype = QNL_F32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
};
// A copy of what the runtime shows.
HostTensor to_host(const qnl_tensor& tensor);
// What the runtime reads it as; valid while `host` stays as it is.
qnl_tensor view_of(const HostTensor& host);

// Number of elements of a shape; nothing when a dim is negative or the product does not fit 48 bits.
std::optional<uint64_t> element_count(const std::vector<int64_t>& shape);

// A message, or nothing when all went well.
using Error = std::optional<std::string>;

// Whole contents of a regular file.
Error read_file(const std::string& path, std::vector<std::byte>* bytes);
// Writes beside the path and renames, so that a file is whole or not there.
Error write_file(const std::string& path, const void* data, size_t bytes);

// .npy, format 1.0 to 3.0: f2 f4 f8, i1..i8, u1..u8, b1, little-endian or byte-order free; C or Fortran order
// (the latter is transposed while reading).
Error parse_npy(const std::vector<std::byte>& file, HostTensor* tensor);
Error read_npy(const std::string& path, HostTensor* tensor);
// Types without a NumPy equivalent are written as f4 (bf16, f8) or i1 / u1 (i4, u4).
Error write_npy(const std::string& path, const HostTensor& tensor);

// ONNX TensorProto: raw_data or the typed fields, every dtype of qnl_dtype; not strings, complex or external
// data.
Error parse_pb(const std::vector<std::byte>& file, HostTensor* tensor);
Error read_pb(const std::string& path, HostTensor* tensor);
Error write_pb(const std::string& path, const HostTensor& tensor);

// The tensor, where u16 stand for the bf16 that are wanted as bf16: NumPy has none, and ONNX's own suite
// stores some so.
HostTensor typed_as(HostTensor tensor, qnl_dtype dtype);

// By specification: a path ending in .npy or .pb, "raw:PATH", "random:SEED" or "random:SEED:2x3x4". expected
// gives dtype and shape for raw and random (its bytes are not used); a file has its own (see typed_as), the
// last form its own shape.
Error read_any(const std::string& specification, const HostTensor& expected, HostTensor* tensor);
// True when the shape of what read_any returns does not come from `expected`.
bool has_own_shape(const std::string& specification);
// The seed of "random:SEED"; none: the specification is another one, or wrong.
std::optional<uint64_t> seed_of(const std::string& specification);
// By the end of the path: .npy, .pb, else raw bytes; "raw:PATH" forces raw.
Error write_any(const std::string& path, const HostTensor& tensor);

// Deterministic values from a seed, the same on every machine (SplitMix64): floats uniform in [-1, 1),
// integers uniform in [0, 8) (bool 0 or 1), so that they are plausible as indices, too.
void fill_random(uint64_t seed, HostTensor* tensor);
// The same into the `count` elements at `to`.
void fill_random(uint64_t seed, qnl_dtype dtype, uint64_t count, void* to);

// Element as a number, for printing and comparing; index < element_count.
double value_at(const HostTensor& tensor, uint64_t index);

}  // namespace quernel::tensor_file
