#include "tensor_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <utility>

#include "runtime/choose/compare_tensors.h"
#include "runtime/platform/file.h"

namespace quernel::tensor_file {
namespace {

bool ends_with(const std::string& text, const char* end) {
  size_t n = strlen(end);
  return text.size() >= n && text.compare(text.size() - n, n, end) == 0;
}

bool begins_with(const std::string& text, const char* begin) {
  return text.compare(0, strlen(begin), begin) == 0;
}

// f32 → f16 bits, round to nearest even.
uint16_t to_f16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
  if (magnitude >= 0x47800000)
    return static_cast<uint16_t>(sign | (magnitude > 0x7F800000 ? 0x7E00 : 0x7C00));
  if (magnitude < 0x38800000) {  // subnormal: scaled by 2^24 it is an integer plus a fraction to round
    float scaled = std::bit_cast<float>(magnitude) * 16777216.0f;
    uint32_t integer = static_cast<uint32_t>(scaled);
    float rest = scaled - static_cast<float>(integer);
    if (rest > 0.5f || (rest == 0.5f && (integer & 1) != 0)) ++integer;
    return static_cast<uint16_t>(sign | integer);
  }
  uint32_t rounded = magnitude + 0xFFF + (magnitude >> 13 & 1);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}

uint64_t split_mix(uint64_t* state) {
  uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

// In [-1, 1), of 24 bits, exactly. They become a number as the last bits of 2^52 + n: an instruction that
// converts an integer would wait for the conversion before it where code is optimised for size.
float random_unit(uint64_t random) {
  double shifted = std::bit_cast<double>(UINT64_C(0x4330000000000000) | random >> 40);
  return static_cast<float>((shifted - (0x1p52 + 0x1p23)) * 0x1p-23);
}

// Of this machine.
uint64_t memory_bytes() {
  long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
  return pages > 0 && bytes > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(bytes) : ~uint64_t{0};
}

// A random element as bits of its type.
uint64_t random_bits(qnl_dtype dtype, uint64_t random) {
  float unit = random_unit(random);
  switch (dtype) {
    case QNL_F32:
      return std::bit_cast<uint32_t>(unit);
    case QNL_F64:
      return std::bit_cast<uint64_t>(static_cast<double>(unit));
    case QNL_F16:
      return to_f16(unit);
    case QNL_BF16:
      return std::bit_cast<uint32_t>(unit) >> 16;
    case QNL_F8E4M3:
      return (random & 0x80) | (random >> 8) % 0x38;  // |value| < 1
    case QNL_F8E5M2:
      return (random & 0x80) | (random >> 8) % 0x3C;
    case QNL_BOOL:
      return random >> 63;
    default:
      return random >> 61;
  }
}

}  // namespace

qnl_tensor view_of(const HostTensor& host) {
  qnl_tensor tensor = {};
  tensor.name = host.name.c_str();
  tensor.dtype = host.dtype;
  tensor.rank = static_cast<uint32_t>(host.shape.size());
  std::copy(host.shape.begin(), host.shape.end(), tensor.shape);
  tensor.bytes = host.bytes.size();
  tensor.data = const_cast<std::byte*>(host.bytes.data());  // only read
  return tensor;
}

HostTensor to_host(const qnl_tensor& tensor) {
  HostTensor host;
  host.name = tensor.name;
  host.dtype = tensor.dtype;
  host.shape.assign(tensor.shape, tensor.shape + tensor.rank);
  const auto* data = static_cast<const std::byte*>(tensor.data);
  if (tensor.bytes > 0) host.bytes.assign(data, data + tensor.bytes);
  return host;
}

std::optional<uint64_t> element_count(const std::vector<int64_t>& shape) {
  uint64_t count = 1;
  for (int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(count, static_cast<uint64_t>(dim), &count) ||
        count > (UINT64_C(1) << 48))
      return std::nullopt;
  }
  return count;
}

Error read_file(const std::string& path, std::vector<std::byte>* bytes) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return "'" + path + "': cannot be opened: " + strerror(errno);
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    return "'" + path + "': expected a regular file";
  }
  if (static_cast<uint64_t>(info.st_size) > memory_bytes() / 2) {
    close(fd);
    return "'" + path + "': is too large for this machine's memory";
  }
  bytes->resize(static_cast<size_t>(info.st_size));
  size_t have = 0;
  while (have < bytes->size()) {
    ssize_t n = read(fd, bytes->data() + have, bytes->size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      close(fd);
      return "'" + path + "': cannot be read: " + (n < 0 ? strerror(errno) : "it became shorter");
    }
    have += static_cast<size_t>(n);
  }
  close(fd);
  return std::nullopt;
}

Error write_file(const std::string& path, const void* data, size_t bytes) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return "'" + path + "': expected a regular file or nothing";
  platform::Piece piece = {data, bytes};
  if (platform::replace_file(path.c_str(), &piece, 1)) return std::nullopt;
  return "'" + path + "': cannot be written: " + strerror(errno);
}

Error read_npy(const std::string& path, HostTensor* tensor) {
  std::vector<std::byte> file;
  if (Error error = read_file(path, &file)) return error;
  Error error = parse_npy(file, tensor);
  return error ? "'" + path + "': " + *error : error;
}

Error read_pb(const std::string& path, HostTensor* tensor) {
  std::vector<std::byte> file;
  if (Error error = read_file(path, &file)) return error;
  Error error = parse_pb(file, tensor);
  return error ? "'" + path + "': " + *error : error;
}

// "2x3x4" after a seed.
bool parse_shape(const char* text, std::vector<int64_t>* shape) {
  shape->clear();
  for (;;) {
    if (*text < '0' || *text > '9') return false;
    char* end = nullptr;
    shape->push_back(strtoll(text, &end, 10));
    if (*end == '\0') return true;
    if (*end != 'x') return false;
    text = end + 1;
  }
}

bool has_own_shape(const std::string& specification) {
  if (begins_with(specification, "raw:")) return false;
  if (begins_with(specification, "random:"))
    return specification.find(':', strlen("random:")) != std::string::npos;
  return true;
}

std::optional<uint64_t> seed_of(const std::string& specification) {
  const char* digits = specification.c_str() + strlen("random:");
  if (!begins_with(specification, "random:") || *digits < '0' || *digits > '9') return std::nullopt;
  char* end = nullptr;
  uint64_t seed = strtoull(digits, &end, 10);
  return *end == '\0' ? std::optional(seed) : std::nullopt;
}

HostTensor typed_as(HostTensor tensor, qnl_dtype dtype) {
  if (tensor.dtype == QNL_U16 && dtype == QNL_BF16) tensor.dtype = QNL_BF16;
  return tensor;
}

Error read_any(const std::string& specification, const HostTensor& expected, HostTensor* tensor) {
  bool is_npy = ends_with(specification, ".npy"), is_pb = ends_with(specification, ".pb");
  if ((is_npy || is_pb) && !begins_with(specification, "raw:")) {
    Error error = is_npy ? read_npy(specification, tensor) : read_pb(specification, tensor);
    *tensor = typed_as(std::move(*tensor), expected.dtype);
    return error;
  }
  bool random = begins_with(specification, "random:");
  if (!random && !begins_with(specification, "raw:"))
    return "'" + specification +
           "': expected a path ending in .npy or .pb, raw:PATH, random:SEED or random:SEED:2x3x4";
  tensor->name = expected.name;
  tensor->dtype = expected.dtype;
  tensor->shape = expected.shape;
  if (random) {
    char* end = nullptr;
    const char* digits = specification.c_str() + strlen("random:");
    uint64_t seed = strtoull(digits, &end, 10);
    if (*digits < '0' || *digits > '9' ||
        (*end != '\0' && (*end != ':' || !parse_shape(end + 1, &tensor->shape))))
      return "'" + specification + "': expected random:SEED, a number, or random:SEED:2x3x4 with a shape";
    std::optional<uint64_t> elements = element_count(tensor->shape);
    if (!elements || qnl_dtype_bytes(tensor->dtype, *elements) > memory_bytes() / 2)
      return "tensor '" + expected.name + "': its shape is too large";
    fill_random(seed, tensor);
    return std::nullopt;
  }
  std::optional<uint64_t> count = element_count(expected.shape);
  if (!count) return "tensor '" + expected.name + "': its shape is too large";
  uint64_t bytes = qnl_dtype_bytes(expected.dtype, *count);
  std::string path = specification.substr(strlen("raw:"));
  if (Error error = read_file(path, &tensor->bytes)) return error;
  if (tensor->bytes.size() != bytes)
    return "'" + path + "': expected " + std::to_string(bytes) + " bytes, found " +
           std::to_string(tensor->bytes.size());
  return std::nullopt;
}

Error write_any(const std::string& path, const HostTensor& tensor) {
  if (begins_with(path, "raw:"))
    return write_file(path.substr(strlen("raw:")), tensor.bytes.data(), tensor.bytes.size());
  if (ends_with(path, ".npy")) return write_npy(path, tensor);
  if (ends_with(path, ".pb")) return write_pb(path, tensor);
  return write_file(path, tensor.bytes.data(), tensor.bytes.size());
}

void fill_random(uint64_t seed, HostTensor* tensor) {
  uint64_t count = element_count(tensor->shape).value_or(0);
  tensor->bytes.resize(qnl_dtype_bytes(tensor->dtype, count));
  fill_random(seed, tensor->dtype, count, tensor->bytes.data());
}

void fill_random(uint64_t seed, qnl_dtype dtype, uint64_t count, void* to) {
  auto* bytes = static_cast<std::byte*>(to);
  if (dtype == QNL_F32) {  // most inputs: a loop without choices, which a first run waits for
    for (uint64_t i = 0; i < count; ++i) {
      float unit = random_unit(split_mix(&seed));
      memcpy(bytes + i * sizeof(unit), &unit, sizeof(unit));
    }
    return;
  }
  bool packed = dtype == QNL_I4 || dtype == QNL_U4;
  size_t size = qnl_dtype_bytes(dtype, 1);
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t bits = random_bits(dtype, split_mix(&seed));
    if (!packed)
      memcpy(bytes + i * size, &bits, size);
    else if (i % 2 == 0)
      bytes[i / 2] = static_cast<std::byte>(bits);
    else
      bytes[i / 2] |= static_cast<std::byte>(bits << 4);
  }
}

double value_at(const HostTensor& tensor, uint64_t index) {
  return runtime::element_value(tensor.dtype, tensor.bytes.data(), index);
}

}  // namespace quernel::tensor_file
