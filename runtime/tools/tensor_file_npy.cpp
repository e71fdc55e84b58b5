// NumPy .npy; the format is described in numpy/lib/format.py.
#include <string.h>

#include "quernel/runtime.h"
#include "tensor_file.h"

namespace quernel::tensor_file {
namespace {

struct NpyType {
  const char* code;
  qnl_dtype dtype;
};
constexpr NpyType kTypes[] = {{"f4", QNL_F32}, {"f2", QNL_F16}, {"f8", QNL_F64}, {"i1", QNL_I8},
                              {"u1", QNL_U8},  {"i2", QNL_I16}, {"u2", QNL_U16}, {"i4", QNL_I32},
                              {"u4", QNL_U32}, {"i8", QNL_I64}, {"u8", QNL_U64}, {"b1", QNL_BOOL}};

// The value behind 'key': in the header, which is a Python dict literal; null when the key is missing.
const char* find_value(const std::string& header, const char* key) {
  size_t at = header.find(std::string("'") + key + "'");
  if (at == std::string::npos) return nullptr;
  at = header.find(':', at + strlen(key) + 2);
  if (at == std::string::npos) return nullptr;
  at = header.find_first_not_of(' ', at + 1);
  return at == std::string::npos ? nullptr : header.c_str() + at;
}

Error parse_descr(const std::string& header, qnl_dtype* dtype) {
  const char* value = find_value(header, "descr");
  if (value == nullptr || *value != '\'') return "npy header: expected 'descr': a simple type";
  std::string text(value + 1, strcspn(value + 1, "'"));
  if (text.size() == 3 && (text[0] == '<' || text[0] == '|' || (text[0] == '=' && text[2] != '1')))
    for (const NpyType& type : kTypes)
      if (text.compare(1, 2, type.code) == 0) {
        *dtype = type.dtype;
        return std::nullopt;
      }
  return "npy header: expected one of <f2 <f4 <f8 |i1 |u1 <i2 <u2 <i4 <u4 <i8 <u8 |b1, found '" + text + "'";
}

Error parse_shape(const std::string& header, std::vector<int64_t>* shape) {
  const char* p = find_value(header, "shape");
  if (p == nullptr || *p != '(') return "npy header: expected 'shape': a tuple";
  for (++p; *p != ')';) {
    if (*p == ' ' || *p == ',') {
      ++p;
      continue;
    }
    int64_t dim = 0;
    const char* begin = p;
    for (; *p >= '0' && *p <= '9' && p - begin < 18; ++p) dim = dim * 10 + (*p - '0');
    if (p == begin || shape->size() >= QNL_MAX_RANK) return "npy header: malformed shape or rank above 8";
    shape->push_back(dim);
  }
  return std::nullopt;
}

// Fortran order: the first index runs fastest in the file; ours is the reverse.
std::vector<std::byte> to_row_major(const std::byte* data, const std::vector<int64_t>& shape, size_t size,
                                    uint64_t count) {
  std::vector<std::byte> out(count * size);
  std::vector<int64_t> index(shape.size(), 0);
  for (uint64_t from = 0; from < count; ++from) {
    uint64_t to = 0;
    for (size_t d = 0; d < shape.size(); ++d)
      to = to * static_cast<uint64_t>(shape[d]) + static_cast<uint64_t>(index[d]);
    memcpy(out.data() + to * size, data + from * size, size);
    for (size_t d = 0; d < shape.size() && ++index[d] == shape[d]; ++d) index[d] = 0;
  }
  return out;
}

}  // namespace

Error parse_npy(const std::vector<std::byte>& file, HostTensor* tensor) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(file.data());
  if (file.size() < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0) return "expected a .npy file";
  size_t header_at = bytes[6] == 1 ? 10 : 12;
  if (bytes[6] < 1 || bytes[6] > 3 || file.size() < header_at) return "npy header: unknown format version";
  uint64_t header_bytes = bytes[8] | bytes[9] << 8;
  if (header_at == 12) header_bytes |= uint64_t{bytes[10]} << 16 | uint64_t{bytes[11]} << 24;
  if (header_bytes > file.size() - header_at) return "npy header: longer than the file";
  std::string header(reinterpret_cast<const char*>(bytes) + header_at, header_bytes);

  *tensor = {};
  if (Error error = parse_descr(header, &tensor->dtype)) return error;
  if (Error error = parse_shape(header, &tensor->shape)) return error;
  std::optional<uint64_t> count = element_count(tensor->shape);
  uint64_t have = file.size() - header_at - header_bytes;
  if (!count || qnl_dtype_bytes(tensor->dtype, *count) != have)
    return "npy data: expected the bytes of its shape, found " + std::to_string(have);
  const std::byte* data = file.data() + header_at + header_bytes;
  const char* order = find_value(header, "fortran_order");
  bool fortran = order != nullptr && strncmp(order, "True", 4) == 0 && tensor->shape.size() > 1;
  if (fortran) {
    tensor->bytes = to_row_major(data, tensor->shape, qnl_dtype_bytes(tensor->dtype, 1), *count);
  } else {
    tensor->bytes.assign(data, data + have);
  }
  return std::nullopt;
}

Error write_npy(const std::string& path, const HostTensor& tensor) {
  const char* code = nullptr;
  for (const NpyType& type : kTypes)
    if (type.dtype == tensor.dtype) code = type.code;
  std::vector<std::byte> data;
  if (code == nullptr) {  // no NumPy equivalent: widened
    bool nibbles = tensor.dtype == QNL_I4 || tensor.dtype == QNL_U4;
    code = tensor.dtype == QNL_I4 ? "i1" : tensor.dtype == QNL_U4 ? "u1" : "f4";
    uint64_t count = element_count(tensor.shape).value_or(0);
    size_t size = nibbles ? 1 : 4;
    data.resize(count * size);
    for (uint64_t i = 0; i < count; ++i) {
      float value = static_cast<float>(value_at(tensor, i));
      int8_t small = nibbles ? static_cast<int8_t>(value) : int8_t{0};
      memcpy(data.data() + i * size, nibbles ? static_cast<const void*>(&small) : &value, size);
    }
  }
  const std::vector<std::byte>& body = data.empty() ? tensor.bytes : data;

  std::string header = "{'descr': '";
  header += code[1] == '1' ? '|' : '<';
  header += code;
  header += "', 'fortran_order': False, 'shape': (";
  for (int64_t dim : tensor.shape) header += std::to_string(dim) + ",";
  header += "), }";
  header.append((64 - (10 + header.size() + 1) % 64) % 64, ' ');
  header += '\n';

  std::string file = "\x93NUMPY";
  file += '\x01';
  file += '\0';
  file += static_cast<char>(header.size() & 255);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  file.append(reinterpret_cast<const char*>(body.data()), body.size());
  return write_file(path, file.data(), file.size());
}

}  // namespace quernel::tensor_file
