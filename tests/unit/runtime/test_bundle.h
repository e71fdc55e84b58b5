// A small bundle with kernels written by hand, for tests of the runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bundle/bundle_contents.h"
#include "quernel/runtime.h"

namespace quernel::test {

inline constexpr uint32_t kAdd = 0, kScale = 1, kAccumulate = 2, kFail = 3, kCount = 4;
inline constexpr uint32_t kOffset = 5, kStore = 6, kSumUp = 7;  // of symbols
inline constexpr uint32_t kKernelCount = 8;
inline constexpr uint64_t kElements = 4096;  // of the tensors of entry point "main"

// The image that CMake builds from test_kernels.c.
std::vector<std::byte> test_image();

// Entry points:
//   main:       a, b f32[64,64] → sum f32[64,64] = (a + b) * 2 + 1, through a workspace and constants
//   accumulate: x f32[16] → y f32[16]; state acc f32[16] += x; y = acc
//   extras:     in i32[4,6] → out i32[6,4], transposed by a strided copy; a synchronize; callback "notify"
//   with out failing:    x f32[16] → y f32[16]; its kernel fails count:      no inputs → counts
//   i32[workgroups]; each workgroup adds one, the slot is cleared by a copy first
// Variants, all with the same image: "host" for this machine's architecture, "future" that needs feature bit
// 63 of it, "foreign" for an architecture that this machine is not.
bundle::BundleContents test_contents(uint64_t count_workgroups = 1000);

// The same constants and variants, with symbols and control flow. Symbols, as kBatch…:
//   batch from 1 to 8, width a multiple of 16 from 16 to 64, bias from 0 to 100, rows from 1 up;
//   during a run: count from 0 to 16 but at most rows, i and j from 0 up, go, pick.
// Entry points:
//   add:    a, b f32[batch,width], c f32[(batch * 2)] → sum f32[batch,width] = (a + b) * 2 + 1 + bias, twice
//           f32[(batch * 2)] = c; a workspace in two parts
//   steps:  n i64, rows i64[rows] → steps i64[count]; count = n; in a loop i < count: steps[i] = i * i + rows
//   nested: x f32[16] → y f32[16] += i + j for i < 3, j < i
//   until:  limit i64 → sum i64; adds 3 while sum < limit, and counts the iterations in trips i64
//   choose: pick i32, x f32[16] → y f32[16] = x + 10 when pick is 0, else when it is 1 x + 20, else x + 30
bundle::BundleContents symbolic_contents();
inline constexpr uint32_t kSymbolCount = 9;

// The symbols and variants of symbolic_contents, and an entry point `custom`: x f32[batch,width] → y
// f32[(batch * 2)], n i32[] by the custom op test::Rows of signature f32[?,?]->f32[?],i32[] and attribute
// gain=0.5, node "rows".
bundle::BundleContents custom_contents();

// A new file in a directory of this test process; removed at exit.
std::string temporary_path(const std::string& name);

// The bytes of the bundle of these contents. Aborts the test program when it cannot be written.
std::vector<std::byte> bundle_bytes(const bundle::BundleContents& contents);

// Makes the header's and the structure's hashes right again after a change of the bytes.
void rehash(std::vector<std::byte>& bytes);
// Also of the code and constants segments that can still be found.
void rehash_segments(std::vector<std::byte>& bytes);

// Memory that qnl_bundle_open_memory accepts.
class AlignedBytes {
 public:
  explicit AlignedBytes(const std::vector<std::byte>& bytes);
  const void* data() const { return data_; }
  uint64_t size() const { return size_; }

 private:
  std::vector<std::byte> storage_;
  std::byte* data_;
  uint64_t size_;
};

// A tensor descriptor over a vector.
template <class T>
qnl_tensor tensor(const char* name, qnl_dtype dtype, std::vector<int64_t> shape, std::vector<T>& values) {
  qnl_tensor t = {};
  t.name = name;
  t.dtype = dtype;
  t.rank = static_cast<uint32_t>(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) t.shape[d] = shape[d];
  t.bytes = values.size() * sizeof(T);
  t.data = values.data();
  return t;
}

}  // namespace quernel::test
