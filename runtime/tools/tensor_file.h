// Tensors in files: NumPy .npy, ONNX TensorProto .pb, raw bytes. Readers check every length against the file
// before they allocate: a damaged file gives a message, never a crash or a huge allocation.
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
// Copies a tensor of the runtime.
HostTensor to_host(const qnl_tensor& tensor);
// Returns a view for the runtime; valid while `host` does not change.
qnl_tensor view_of(const HostTensor& host);

// Returns the number of elements of a shape; nothing if a dim is negative or the product does not fit in 48
// bits.
std::optional<uint64_t> element_count(const std::vector<int64_t>& shape);

// A message; nothing on success.
using Error = std::optional<std::string>;

// Reads the whole contents of a regular file.
Error read_file(const std::string& path, std::vector<std::byte>* bytes);
// Writes a file next to the path and renames it, so that the file is complete or absent.
Error write_file(const std::string& path, const void* data, size_t bytes);

// Reads .npy, format 1.0 to 3.0: f2 f4 f8, i1..i8, u1..u8, b1, little-endian or without byte order. Fortran
// order is transposed to C order.
Error parse_npy(const std::vector<std::byte>& file, HostTensor* tensor);
Error read_npy(const std::string& path, HostTensor* tensor);
// Types that NumPy lacks are written as f4 (bf16, f8) or i1 / u1 (i4, u4).
Error write_npy(const std::string& path, const HostTensor& tensor);

// Reads an ONNX TensorProto: raw_data or the typed fields, every dtype of qnl_dtype. Strings, complex numbers
// and external data are not supported.
Error parse_pb(const std::vector<std::byte>& file, HostTensor* tensor);
Error read_pb(const std::string& path, HostTensor* tensor);
Error write_pb(const std::string& path, const HostTensor& tensor);

// Returns the tensor; u16 is reinterpreted as bf16 if `dtype` is bf16. NumPy has no bf16, and ONNX's own
// suite stores some as u16.
HostTensor typed_as(HostTensor tensor, qnl_dtype dtype);

// Reads a tensor by specification: a path ending in .npy or .pb, "raw:PATH", "random:SEED" or
// "random:SEED:2x3x4". expected gives dtype and shape for raw and random (its bytes are unused). A file has
// its own (see typed_as); the last form has its own shape.
Error read_any(const std::string& specification, const HostTensor& expected, HostTensor* tensor);
// Returns true if the shape of read_any's result does not come from `expected`.
bool has_own_shape(const std::string& specification);
// Returns the seed of "random:SEED"; nothing for another or a wrong specification.
std::optional<uint64_t> seed_of(const std::string& specification);
// Writes by the end of the path: .npy, .pb, else raw bytes; "raw:PATH" forces raw.
Error write_any(const std::string& path, const HostTensor& tensor);

// Fills in deterministic values from a seed, the same on every machine (SplitMix64): floats uniform in [-1,
// 1), integers uniform in [0, 8) (bool 0 or 1). Integers are small, so that they are plausible as indices.
void fill_random(uint64_t seed, HostTensor* tensor);
// The same for the `count` elements at `to`.
void fill_random(uint64_t seed, qnl_dtype dtype, uint64_t count, void* to);

// Returns an element as a number, for printing and comparing. Requires index < element_count.
double value_at(const HostTensor& tensor, uint64_t index);

}  // namespace quernel::tensor_file
