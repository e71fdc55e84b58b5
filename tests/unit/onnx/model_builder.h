// Small ONNX models made in memory, for tests of the importer.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "frontends/onnx/import_model.h"

namespace quernel::onnx_test {

inline constexpr int kFloat = 1, kInt64 = 7, kBool = 9, kString = 8;

class ModelBuilder {
 public:
  explicit ModelBuilder(int64_t opset = 17) {
    model.set_ir_version(8);
    auto* import = model.add_opset_import();
    import->set_domain("");
    import->set_version(opset);
    graph().set_name("test");
  }

  onnx::ModelProto model;
  onnx::GraphProto& graph() { return *model.mutable_graph(); }

  // Dims of -1 have no name; names are given by `names` where not empty.
  ModelBuilder& input(const std::string& name, const std::vector<int64_t>& dims, int type = kFloat,
                      const std::vector<std::string>& names = {}) {
    describe(*graph().add_input(), name, dims, type, names);
    return *this;
  }
  ModelBuilder& output(const std::string& name) {
    graph().add_output()->set_name(name);
    return *this;
  }
  onnx::TensorProto& floats(const std::string& name, const std::vector<int64_t>& dims,
                            const std::vector<float>& values) {
    onnx::TensorProto& tensor = initializer(name, dims, kFloat);
    for (float v : values) tensor.add_float_data(v);
    return tensor;
  }
  onnx::TensorProto& ints(const std::string& name, const std::vector<int64_t>& dims,
                          const std::vector<int64_t>& values) {
    onnx::TensorProto& tensor = initializer(name, dims, kInt64);
    for (int64_t v : values) tensor.add_int64_data(v);
    return tensor;
  }
  onnx::NodeProto& node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, const std::string& name = {}) {
    onnx::NodeProto& n = *graph().add_node();
    n.set_op_type(op);
    n.set_name(name.empty() ? op + "_" + std::to_string(graph().node_size()) : name);
    for (const auto& i : inputs) n.add_input(i);
    for (const auto& o : outputs) n.add_output(o);
    return n;
  }

  std::string bytes() const { return model.SerializeAsString(); }
  Expected<ImportedModel> import(const ImportOptions& options = {},
                                 const std::string& file_name = "test.onnx") const {
    std::string data = bytes();
    keep(data);
    return import_onnx_bytes({reinterpret_cast<const uint8_t*>(data.data()), data.size()}, file_name,
                             options);
  }

  static void describe(onnx::ValueInfoProto& info, const std::string& name, const std::vector<int64_t>& dims,
                       int type, const std::vector<std::string>& names = {}) {
    info.set_name(name);
    auto* tensor = info.mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    tensor->mutable_shape();
    for (size_t i = 0; i < dims.size(); ++i) {
      auto* dim = tensor->mutable_shape()->add_dim();
      if (i < names.size() && !names[i].empty())
        dim->set_dim_param(names[i]);
      else if (dims[i] >= 0)
        dim->set_dim_value(dims[i]);
    }
  }

 private:
  // With QUERNEL_KEEP_MODELS=FOLDER every model becomes a file there, named by its content: seeds of
  // tests/fuzz/onnx.
  static void keep(const std::string& data) {
    const char* folder = std::getenv("QUERNEL_KEEP_MODELS");
    if (!folder) return;
    std::filesystem::create_directories(folder);
    std::string name = std::to_string(std::hash<std::string>()(data)) + ".onnx";
    std::ofstream(std::filesystem::path(folder) / name, std::ios::binary) << data;
  }

  onnx::TensorProto& initializer(const std::string& name, const std::vector<int64_t>& dims, int type) {
    onnx::TensorProto& tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(type);
    for (int64_t d : dims) tensor.add_dims(d);
    return tensor;
  }
};

inline onnx::AttributeProto& attribute(onnx::NodeProto& node, const std::string& name,
                                       onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto& a = *node.add_attribute();
  a.set_name(name);
  a.set_type(type);
  return a;
}
inline void set_int(onnx::NodeProto& node, const std::string& name, int64_t value) {
  attribute(node, name, onnx::AttributeProto::INT).set_i(value);
}
inline void set_float(onnx::NodeProto& node, const std::string& name, float value) {
  attribute(node, name, onnx::AttributeProto::FLOAT).set_f(value);
}
inline void set_string(onnx::NodeProto& node, const std::string& name, const std::string& value) {
  attribute(node, name, onnx::AttributeProto::STRING).set_s(value);
}
inline void set_ints(onnx::NodeProto& node, const std::string& name, const std::vector<int64_t>& values) {
  onnx::AttributeProto& a = attribute(node, name, onnx::AttributeProto::INTS);
  for (int64_t v : values) a.add_ints(v);
}
inline onnx::GraphProto& set_graph(onnx::NodeProto& node, const std::string& name) {
  return *attribute(node, name, onnx::AttributeProto::GRAPH).mutable_g();
}

}  // namespace quernel::onnx_test
