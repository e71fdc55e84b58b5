// Reading of ONNX files: the model's protobuf message, tensors of every storage form, and external data
// files. Sizes are checked against what is really there before anything is allocated.
#pragma once

#include <onnx/onnx_pb.h>

#include <memory>
#include <span>
#include <string>

#include "frontends/onnx/import_model.h"
#include "frontends/shared/check_node.h"
#include "frontends/shared/map_file.h"

namespace quernel::onnx_import {

// A model's message. Tensors made from it point into its raw data, and those of large tensors into its file.
struct ParsedModel {
  std::shared_ptr<const onnx::ModelProto> message;
  Bytes file;  // empty: all tensors are in the message
};

// Parses a model and checks that it is one. parse_model_file leaves large tensors in the file.
Expected<ParsedModel> parse_model(std::span<const uint8_t> bytes, const std::string& file_name);
Expected<ParsedModel> parse_model_file(const std::string& path);

// What tensors are read against: the message that owns them, the model's folder, and the files mapped so far.
struct TensorSource {
  std::shared_ptr<const void> owner;
  Bytes own_file;         // of the model, if large tensors are there
  std::string file_name;  // of the model
  std::map<std::string, Bytes> external_files;
  int64_t bytes_left = INT64_MAX;
  std::vector<std::string> external_dirs = {};  // where external data may lie besides the model's folder
};

// The dtype of an ONNX element type; unsupported for strings, complex and other types without a core dtype.
Expected<DType> dtype_from_onnx(int element_type, const Location& place);
std::string element_type_name(int element_type);

Expected<Tensor> read_tensor(const onnx::TensorProto& proto, TensorSource& source, Location place);
// The value of a Constant node.
Expected<Tensor> read_constant(const onnx::NodeProto& node, TensorSource& source, const Location& place);

}  // namespace quernel::onnx_import
