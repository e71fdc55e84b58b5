#include "frontends/onnx/read_model.h"

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "frontends/onnx/detach_weights.h"
#include "frontends/onnx/why_unreadable.h"

namespace quernel::onnx_import {
namespace {

// `light`: the message without what is left in the file, if that is not all of `bytes`.
Expected<std::shared_ptr<const onnx::ModelProto>> parse(std::span<const uint8_t> bytes,
                                                        const std::optional<std::string>& light,
                                                        const Location& place) {
  if (bytes.empty()) return invalid_input("expected an ONNX model, found an empty file", place);
  if (bytes.size() > static_cast<size_t>(INT32_MAX))
    return invalid_input(
        "file of " + std::to_string(bytes.size()) + " bytes, but one protobuf message holds at most 2 GiB",
        place, "store the weights as external data, e.g. onnx.save(model, path, save_as_external_data=True)");
  google::protobuf::LogSilencer silence;
  auto model = std::make_shared<onnx::ModelProto>();
  const uint8_t* data = light ? reinterpret_cast<const uint8_t*>(light->data()) : bytes.data();
  google::protobuf::io::CodedInputStream stream(data, static_cast<int>(light ? light->size() : bytes.size()));
  stream.SetTotalBytesLimit(INT32_MAX);
  stream.SetRecursionLimit(kMaxMessageDepth);
  if (!model->ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage())
    return why_unreadable(bytes, place);
  if (!model->has_graph() || model->opset_import_size() == 0)
    return invalid_input(std::string("not an ONNX model: expected a graph and an opset import, found no ") +
                             (model->has_graph() ? "opset import" : "graph"),
                         place);
  return std::shared_ptr<const onnx::ModelProto>(std::move(model));
}

}  // namespace

Expected<ParsedModel> parse_model(std::span<const uint8_t> bytes, const std::string& file_name) {
  ParsedModel result;
  QUERNEL_TRY(result.message, parse(bytes, std::nullopt, {.file = file_name}));
  return result;
}

Expected<ParsedModel> parse_model_file(const std::string& path) {
  QUERNEL_TRY(Bytes file, map_file(path, "model file"));
  const std::span<const uint8_t> bytes(file.data(), file.size());
  const std::optional<std::string> light = detach_weights(bytes);
  ParsedModel result;
  QUERNEL_TRY(result.message, parse(bytes, light, {.file = path}));
  if (light) result.file = std::move(file);
  return result;
}

std::string element_type_name(int element_type) {
  static const char* const kNames[] = {
      "undefined",      "float",      "uint8",          "int8",       "uint16",    "int16",
      "int32",          "int64",      "string",         "bool",       "float16",   "double",
      "uint32",         "uint64",     "complex64",      "complex128", "bfloat16",  "float8e4m3fn",
      "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4",      "int4",      "float4e2m1",
      "float8e8m0",     "uint2",      "int2",           "float6e2m3", "float6e3m2"};
  if (element_type >= 0 && element_type < static_cast<int>(std::size(kNames))) return kNames[element_type];
  return "element type " + std::to_string(element_type);
}

Expected<DType> dtype_from_onnx(int element_type, const Location& place) {
  switch (element_type) {
    case 1:
      return DType::kF32;
    case 2:
      return DType::kU8;
    case 3:
      return DType::kI8;
    case 4:
      return DType::kU16;
    case 5:
      return DType::kI16;
    case 6:
      return DType::kI32;
    case 7:
      return DType::kI64;
    case 9:
      return DType::kBool;
    case 10:
      return DType::kF16;
    case 11:
      return DType::kF64;
    case 12:
      return DType::kU32;
    case 13:
      return DType::kU64;
    case 16:
      return DType::kBF16;
    case 17:
      return DType::kF8E4M3;
    case 19:
      return DType::kF8E5M2;
    case 21:
      return DType::kU4;
    case 22:
      return DType::kI4;
    default:
      break;
  }
  if (element_type == 0) return invalid_input("element type is missing", place);
  return unsupported("element type " + element_type_name(element_type) + " is not supported", place,
                     "use float, float16, bfloat16, double, bool or an integer type");
}

namespace {

Diagnostic size_mismatch(const onnx::TensorProto& proto, const Location& place, int64_t expected,
                         int64_t found, const char* unit) {
  return invalid_input("tensor '" + proto.name() + "': expected " + std::to_string(expected) + " " + unit +
                           " for its dims, found " + std::to_string(found),
                       place);
}

// Elements of a typed field, narrowed to the storage type T.
template <class T, class Field>
Tensor from_field(DType dtype, const std::vector<int64_t>& dims, const Field& field) {
  std::vector<uint8_t> bytes(static_cast<size_t>(field.size()) * sizeof(T));
  for (int i = 0; i < field.size(); ++i) {
    T value = static_cast<T>(field[i]);
    std::memcpy(bytes.data() + static_cast<size_t>(i) * sizeof(T), &value, sizeof(T));
  }
  return {dtype, dims, Bytes::own(std::move(bytes))};
}

Expected<Tensor> read_typed(const onnx::TensorProto& proto, DType dtype, const std::vector<int64_t>& dims,
                            int64_t count, const Location& place) {
  int64_t expected = bit_width(dtype) < 8 ? byte_size(dtype, count) : count;
  int64_t found = 0;
  switch (dtype) {
    case DType::kF32:
      found = proto.float_data_size();
      break;
    case DType::kF64:
      found = proto.double_data_size();
      break;
    case DType::kI64:
      found = proto.int64_data_size();
      break;
    case DType::kU32:
    case DType::kU64:
      found = proto.uint64_data_size();
      break;
    default:
      found = proto.int32_data_size();
      break;
  }
  if (found != expected) return size_mismatch(proto, place, expected, found, "values");
  switch (dtype) {
    case DType::kF32:
      return from_field<float>(dtype, dims, proto.float_data());
    case DType::kF64:
      return from_field<double>(dtype, dims, proto.double_data());
    case DType::kI64:
      return from_field<int64_t>(dtype, dims, proto.int64_data());
    case DType::kU32:
      return from_field<uint32_t>(dtype, dims, proto.uint64_data());
    case DType::kU64:
      return from_field<uint64_t>(dtype, dims, proto.uint64_data());
    case DType::kI32:
      return from_field<int32_t>(dtype, dims, proto.int32_data());
    case DType::kBool: {
      std::vector<uint8_t> bytes(static_cast<size_t>(found));
      for (int i = 0; i < proto.int32_data_size(); ++i)
        bytes[static_cast<size_t>(i)] = proto.int32_data(i) != 0;
      return Tensor{dtype, dims, Bytes::own(std::move(bytes))};
    }
    default:
      break;
  }
  if (bit_width(dtype) == 16) return from_field<uint16_t>(dtype, dims, proto.int32_data());
  return from_field<uint8_t>(dtype, dims, proto.int32_data());
}

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& file) {
  fs::path folder = file.parent_path();
  return folder.empty() ? "." : folder;
}

// The file in the model's folder, or where it is not there, in the first of the others that has it.
fs::path find_external(const TensorSource& source, const fs::path& relative) {
  std::error_code error;
  fs::path beside = folder_of(source.file_name) / relative;
  if (fs::exists(beside, error)) return beside;
  for (const std::string& dir : source.external_dirs)
    if (fs::exists(fs::path(dir) / relative, error)) return fs::path(dir) / relative;
  return beside;
}

bool lies_below(const fs::path& file, const fs::path& folder) {
  std::error_code error;
  fs::path top = fs::canonical(folder, error);
  if (error) return false;
  auto [end, rest] = std::mismatch(top.begin(), top.end(), file.begin(), file.end());
  return end == top.end();
}

// Links may lead where the caller allows it, and where the model itself is a link to: download caches keep
// all files of a model side by side, and links to them under their names. What is not there is left to fail
// when it is opened.
bool may_read_external(const TensorSource& source, const fs::path& path) {
  std::error_code error;
  fs::path file = fs::canonical(path, error);
  if (error || lies_below(file, folder_of(source.file_name))) return true;
  fs::path model = fs::canonical(source.file_name, error);
  if (!error && fs::is_symlink(source.file_name, error) && file.parent_path() == model.parent_path())
    return true;
  return std::any_of(source.external_dirs.begin(), source.external_dirs.end(),
                     [&](const std::string& dir) { return lies_below(file, dir); });
}

// Where a tensor's data are in a file. `length`: as the model says, -1: it does not; `size`: what the dims need.
struct DataRange {
  int64_t offset, length, size;
  const char* unit;  // of what the model calls them
};

Expected<Bytes> in_file(const onnx::TensorProto& proto, const DataRange& range, const Bytes& bytes,
                        const std::string& file, const Location& place) {
  auto [offset, length, size, unit] = range;
  const auto file_size = static_cast<int64_t>(bytes.size());
  if (length < 0) length = offset <= file_size ? std::min(size, file_size - offset) : 0;
  if (offset > file_size || length > file_size - offset)
    return invalid_input("tensor '" + proto.name() + "': external data " + std::to_string(offset) + "+" +
                             std::to_string(length) + " lies outside of " + file + " of " +
                             std::to_string(file_size) + " bytes",
                         place);
  if (length != size) return size_mismatch(proto, place, size, length, unit);
  return Bytes(std::make_shared<Bytes>(bytes), bytes.data() + offset, static_cast<size_t>(size));
}

Expected<Bytes> read_external(const onnx::TensorProto& proto, int64_t size, TensorSource& source,
                              const Location& place) {
  std::string location;
  int64_t offset = 0, length = -1;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() != "offset" && entry.key() != "length") continue;
    errno = 0;
    char* end = nullptr;
    long long value = std::strtoll(entry.value().c_str(), &end, 10);
    if (entry.value().empty() || *end != 0 || errno != 0 || value < 0)
      return invalid_input("tensor '" + proto.name() + "': expected external data " + entry.key() +
                               " to be a number, found '" + entry.value() + "'",
                           place);
    (entry.key() == "offset" ? offset : length) = value;
  }
  if (location == kOwnFile && source.own_file.size() != 0)
    return in_file(proto, {offset, length, size, "bytes"}, source.own_file, "the model", place);
  std::filesystem::path relative(location);
  if (location.empty() || location.find('\0') != std::string::npos)
    return invalid_input("tensor '" + proto.name() + "': external data without a location", place);
  bool escapes = relative.is_absolute();
  for (const auto& part : relative) escapes = escapes || part == "..";
  if (escapes)
    return invalid_input(
        "tensor '" + proto.name() + "': external data location '" + location + "' leaves the model's folder",
        place, "use a path relative to the model file, without '..'");
  auto [file, inserted] = source.external_files.try_emplace(location);
  if (inserted) {
    std::filesystem::path full = find_external(source, relative);
    if (!may_read_external(source, full)) {
      source.external_files.erase(file);
      return invalid_input("tensor '" + proto.name() + "': external data location '" + location +
                               "' is a link that leaves the model's folder",
                           place, "name the folder that it leads to with --external-data DIR");
    }
    Expected<Bytes> mapped = map_file(full.string(), "external data of tensor '" + proto.name() + "'");
    if (!mapped) {
      source.external_files.erase(file);
      Diagnostic error = mapped.take_errors().front();
      error.message += " (" + error.place.file + ")";
      error.place = place;
      error.hint = "keep the data file beside the model";
      return error;
    }
    file->second = *mapped;
  }
  return in_file(proto, {offset, length, size, "bytes of external data"}, file->second, "'" + location + "'",
                 place);
}

}  // namespace

Expected<Tensor> read_tensor(const onnx::TensorProto& proto, TensorSource& source, Location place) {
  QUERNEL_TRY(DType dtype, dtype_from_onnx(proto.data_type(), place));
  std::vector<int64_t> dims(proto.dims().begin(), proto.dims().end());
  std::optional<int64_t> count = element_count(dims);
  if (!count || !is_sane_shape(dims))
    return invalid_input(
        "tensor '" + proto.name() + "': dims " + to_string(make_shape(dims)) + " are negative or too large",
        place);
  if (proto.has_segment())
    return unsupported("tensor '" + proto.name() + "': segmented tensors are not supported", place);
  int64_t size = byte_size(dtype, *count);
  if (size > source.bytes_left)
    return unsupported("tensor '" + proto.name() + "' of " + std::to_string(size) +
                           " bytes exceeds the limit on initializers",
                       place);
  source.bytes_left -= size;
  if (proto.has_data_location() && proto.data_location() == onnx::TensorProto::EXTERNAL) {
    QUERNEL_TRY(Bytes bytes, read_external(proto, size, source, place));
    return Tensor{dtype, dims, bytes};
  }
  if (proto.raw_data().empty()) return read_typed(proto, dtype, dims, *count, place);
  const std::string& raw = proto.raw_data();
  if (static_cast<int64_t>(raw.size()) != size)
    return size_mismatch(proto, place, size, static_cast<int64_t>(raw.size()), "bytes");
  return Tensor{dtype, dims, Bytes(source.owner, reinterpret_cast<const uint8_t*>(raw.data()), raw.size())};
}

}  // namespace quernel::onnx_import

namespace quernel {

Expected<NamedTensor> read_tensor_proto(const std::string& path) {
  using namespace onnx_import;
  Location place{.file = path};
  QUERNEL_TRY(Bytes bytes, map_file(path, "tensor file"));
  if (bytes.size() > static_cast<size_t>(INT32_MAX))
    return invalid_input("a tensor file holds at most 2 GiB", place);
  google::protobuf::LogSilencer silence;
  auto proto = std::make_shared<onnx::TensorProto>();
  // The values of a sequence or optional file look like the segment of a tensor, or leave it without an
  // element type.
  if (!proto->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || proto->data_type() == 0 ||
      proto->has_segment())
    return invalid_input("expected an ONNX TensorProto, found something else", place,
                         "sequence, optional and map values are not supported");
  TensorSource source{proto, {}, path, {}, INT64_MAX};
  QUERNEL_TRY(Tensor tensor, read_tensor(*proto, source, place));
  return NamedTensor{proto->name(), tensor};
}

}  // namespace quernel
