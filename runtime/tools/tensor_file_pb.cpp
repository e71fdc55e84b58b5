// ONNX TensorProto in protobuf wire format; field numbers from onnx/onnx.proto, wire types from
// protobuf.dev/programming-guides/encoding.
#include <string.h>

#include "quernel/runtime.h"
#include "tensor_file.h"

namespace quernel::tensor_file {
namespace {

enum Field : uint32_t {
  kDims = 1,
  kDataType = 2,
  kFloatData = 4,
  kInt32Data = 5,
  kStringData = 6,
  kInt64Data = 7,
  kName = 8,
  kRawData = 9,
  kDoubleData = 10,
  kUint64Data = 11,
  kExternalData = 13,
  kDataLocation = 14,
};
enum Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct OnnxType {
  uint32_t number;  // TensorProto.DataType
  qnl_dtype dtype;
};
constexpr OnnxType kTypes[] = {
    {1, QNL_F32},   {2, QNL_U8},      {3, QNL_I8},      {4, QNL_U16},  {5, QNL_I16},  {6, QNL_I32},
    {7, QNL_I64},   {9, QNL_BOOL},    {10, QNL_F16},    {11, QNL_F64}, {12, QNL_U32}, {13, QNL_U64},
    {16, QNL_BF16}, {17, QNL_F8E4M3}, {19, QNL_F8E5M2}, {21, QNL_U4},  {22, QNL_I4}};

// A bounded cursor over wire-format bytes.
struct Reader {
  const unsigned char* p;
  const unsigned char* end;

  bool varint(uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (p == end) return false;
      unsigned char byte = *p++;
      *value |= uint64_t{byte & 127u} << shift;
      if (byte < 128) return true;
    }
    return false;
  }
  bool fixed(void* value, size_t size) {
    if (static_cast<size_t>(end - p) < size) return false;
    memcpy(value, p, size);
    p += size;
    return true;
  }
  bool bytes(Reader* inside) {
    uint64_t size;
    if (!varint(&size) || size > static_cast<uint64_t>(end - p)) return false;
    *inside = {p, p + size};
    p += size;
    return true;
  }
  bool skip(uint32_t wire) {
    uint64_t ignored;
    Reader inside;
    switch (wire) {
      case kVarint:
        return varint(&ignored);
      case kFixed64:
        return fixed(&ignored, 8);
      case kBytes:
        return bytes(&inside);
      case kFixed32:
        return fixed(&ignored, 4);
      default:
        return false;
    }
  }
};

// What a TensorProto held: typed values as 64-bit patterns (of the double, the float or the integer).
struct Parsed {
  uint64_t type = 0;
  std::vector<uint64_t> values;
  uint32_t values_field = 0;
  bool has_raw = false, external = false;
};

// Values of a repeated field, packed or one by one.
bool read_values(Reader& reader, uint32_t wire, uint32_t item_wire, std::vector<uint64_t>* values) {
  auto one = [&](Reader& from) {
    uint64_t value = 0;
    bool ok = item_wire == kVarint    ? from.varint(&value)
              : item_wire == kFixed64 ? from.fixed(&value, 8)
                                      : from.fixed(&value, 4);
    if (ok) values->push_back(value);
    return ok;
  };
  if (wire == item_wire) return one(reader);
  Reader packed;
  if (wire != kBytes || !reader.bytes(&packed)) return false;
  while (packed.p != packed.end)
    if (!one(packed)) return false;
  return true;
}

bool read_field(Reader& reader, uint32_t field, uint32_t wire, HostTensor* tensor, Parsed* parsed) {
  Reader inside;
  uint64_t number;
  uint32_t item_wire = field == kFloatData ? kFixed32 : field == kDoubleData ? kFixed64 : kVarint;
  switch (field) {
    case kDims: {
      std::vector<uint64_t> dims;
      if (!read_values(reader, wire, kVarint, &dims)) return false;
      for (uint64_t dim : dims) tensor->shape.push_back(static_cast<int64_t>(dim));
      return tensor->shape.size() <= QNL_MAX_RANK;
    }
    case kDataType:
      return wire == kVarint && reader.varint(&parsed->type);
    case kFloatData:
    case kInt32Data:
    case kInt64Data:
    case kDoubleData:
    case kUint64Data:
      parsed->values_field = field;
      return read_values(reader, wire, item_wire, &parsed->values);
    case kName:
      if (wire != kBytes || !reader.bytes(&inside)) return false;
      tensor->name.assign(reinterpret_cast<const char*>(inside.p),
                          static_cast<size_t>(inside.end - inside.p));
      return true;
    case kRawData:
      if (wire != kBytes || !reader.bytes(&inside)) return false;
      tensor->bytes.assign(reinterpret_cast<const std::byte*>(inside.p),
                           reinterpret_cast<const std::byte*>(inside.end));
      parsed->has_raw = true;
      return true;
    case kExternalData:
      parsed->external = true;
      return reader.skip(wire);
    case kDataLocation:
      if (wire != kVarint || !reader.varint(&number)) return false;
      parsed->external = parsed->external || number != 0;
      return true;
    default:
      return reader.skip(wire);
  }
}

// Which typed field holds a dtype (comments of TensorProto in onnx.proto).
uint32_t field_of(qnl_dtype dtype) {
  switch (dtype) {
    case QNL_F32:
      return kFloatData;
    case QNL_F64:
      return kDoubleData;
    case QNL_I64:
      return kInt64Data;
    case QNL_U32:
    case QNL_U64:
      return kUint64Data;
    default:
      return kInt32Data;
  }
}

Error place_values(const Parsed& parsed, uint64_t count, HostTensor* tensor) {
  if (parsed.values_field != field_of(tensor->dtype) && !(count == 0 && parsed.values.empty()))
    return "TensorProto: expected raw data or the field of its data type";
  bool packed = tensor->dtype == QNL_I4 || tensor->dtype == QNL_U4;
  uint64_t expected = packed ? (count + 1) / 2 : count;  // int32_data carries two nibbles per value
  if (parsed.values.size() != expected)
    return "TensorProto: expected " + std::to_string(expected) + " values, found " +
           std::to_string(parsed.values.size());
  size_t size = qnl_dtype_bytes(tensor->dtype, 1);
  tensor->bytes.resize(expected * size);
  for (uint64_t i = 0; i < expected; ++i) memcpy(tensor->bytes.data() + i * size, &parsed.values[i], size);
  return std::nullopt;
}

void put_varint(std::string* out, uint64_t value) {
  for (; value >= 128; value >>= 7) *out += static_cast<char>(value | 128);
  *out += static_cast<char>(value);
}

void put_bytes(std::string* out, uint32_t field, const void* data, size_t bytes) {
  put_varint(out, field << 3 | kBytes);
  put_varint(out, bytes);
  out->append(static_cast<const char*>(data), bytes);
}

}  // namespace

Error parse_pb(const std::vector<std::byte>& file, HostTensor* tensor) {
  const auto* begin = reinterpret_cast<const unsigned char*>(file.data());
  Reader reader = {begin, begin + file.size()};
  Parsed parsed;
  *tensor = {};
  while (reader.p != reader.end) {
    uint64_t tag;
    if (!reader.varint(&tag) || tag >> 3 == 0 || tag >> 3 > 0x1FFFFFFF ||
        !read_field(reader, static_cast<uint32_t>(tag >> 3), tag & 7, tensor, &parsed))
      return "expected an ONNX TensorProto, found something else or a damaged one";
  }
  if (parsed.external) return "TensorProto: its data is in another file, which is not supported here";
  bool known = false;
  for (const OnnxType& type : kTypes) {
    if (type.number != parsed.type) continue;
    tensor->dtype = type.dtype;
    known = true;
  }
  if (!known) return "TensorProto: data type " + std::to_string(parsed.type) + " is not supported";
  std::optional<uint64_t> count = element_count(tensor->shape);
  if (!count) return "TensorProto: its shape is negative or too large";
  uint64_t bytes = qnl_dtype_bytes(tensor->dtype, *count);
  if (!parsed.has_raw && !(parsed.values.empty() && bytes == 0)) return place_values(parsed, *count, tensor);
  if (tensor->bytes.size() != bytes)
    return "TensorProto: expected " + std::to_string(bytes) + " bytes of raw data, found " +
           std::to_string(tensor->bytes.size());
  return std::nullopt;
}

Error write_pb(const std::string& path, const HostTensor& tensor) {
  std::string out;
  for (int64_t dim : tensor.shape) {
    put_varint(&out, kDims << 3 | kVarint);
    put_varint(&out, static_cast<uint64_t>(dim));
  }
  put_varint(&out, kDataType << 3 | kVarint);
  for (const OnnxType& type : kTypes)
    if (type.dtype == tensor.dtype) put_varint(&out, type.number);
  if (!tensor.name.empty()) put_bytes(&out, kName, tensor.name.data(), tensor.name.size());
  put_bytes(&out, kRawData, tensor.bytes.data(), tensor.bytes.size());
  return write_file(path, out.data(), out.size());
}

}  // namespace quernel::tensor_file
