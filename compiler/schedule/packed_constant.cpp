#include "schedule/packed_constant.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "support/mapped_file.h"

namespace quernel::schedule {
namespace {

constexpr size_t kSamples = 8, kSampleBytes = 64;

size_t joined(size_t hash, size_t other) {
  return hash ^ (other + 0x9E3779B97F4A7C15 + (hash << 6) + (hash >> 2));
}

}  // namespace

size_t sampled_hash(const Bytes& bytes) {
  auto hash_of = [&](size_t at, size_t count) {
    return std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()) + at, count});
  };
  size_t hash = joined(bytes.size(), 0);
  if (bytes.size() <= kSamples * kSampleBytes) return joined(hash, hash_of(0, bytes.size()));
  const size_t step = (bytes.size() - kSampleBytes) / (kSamples - 1);
  for (size_t i = 0; i < kSamples; ++i) hash = joined(hash, hash_of(i * step, kSampleBytes));
  release_pages(bytes.data(), bytes.size());
  return hash;
}

bool same_bytes(const Bytes& a, const Bytes& b) {
  constexpr size_t kPart = size_t{8} << 20;
  if (a.size() != b.size()) return false;
  if (a.data() == b.data()) return true;
  bool same = true;
  for (size_t at = 0; same && at < a.size(); at += kPart) {
    const size_t count = std::min(kPart, a.size() - at);
    same = std::memcmp(a.data() + at, b.data() + at, count) == 0;
    release_pages(a.data() + at, count);
    release_pages(b.data() + at, count);
  }
  return same;
}

size_t sampled_hash(const Tensor& tensor) {
  size_t hash = joined(sampled_hash(tensor.bytes), static_cast<size_t>(tensor.dtype));
  for (int64_t dim : tensor.dims) hash = joined(hash, static_cast<size_t>(dim));
  return hash;
}

size_t sampled_hash(const PackedConstant& constant) {
  size_t hash = std::hash<std::string>()(constant.recipe);
  for (const Tensor& source : constant.sources) hash = joined(hash, sampled_hash(source));
  return hash;
}

bool same_tensor(const Tensor& a, const Tensor& b) {
  return a.dtype == b.dtype && a.dims == b.dims && same_bytes(a.bytes, b.bytes);
}

bool same_constant(const PackedConstant& a, const PackedConstant& b) {
  return a.dtype == b.dtype && a.bytes == b.bytes && a.recipe == b.recipe &&
         std::equal(a.sources.begin(), a.sources.end(), b.sources.begin(), b.sources.end(), same_tensor);
}

}  // namespace quernel::schedule
