// Small TensorFlow Lite models made in memory, for tests of the importer.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/tflite/import_model.h"
#include "frontends/tflite/tflite_generated.h"
#include "graph/interpret.h"
#include "graph/verify.h"

namespace quernel::tflite_test {

using Op = tflite::BuiltinOperator;
using Type = tflite::TensorType;

// Scale and zero point, of one or of each index of a dim.
struct Quant {
  std::vector<float> scales;
  std::vector<int64_t> zeros;
  int dim = 0;
};

class ModelBuilder {
 public:
  using Options = std::function<flatbuffers::Offset<void>(flatbuffers::FlatBufferBuilder&)>;

  // Returns the number of a new tensor. Dims of -1 are free.
  int tensor(const std::string& name, std::vector<int32_t> dims, Type type = Type::FLOAT32,
             const Quant& q = {}) {
    return add(name, std::move(dims), type, q, {});
  }
  int input(const std::string& name, std::vector<int32_t> dims, Type type = Type::FLOAT32,
            const Quant& q = {}) {
    inputs.push_back(tensor(name, std::move(dims), type, q));
    return inputs.back();
  }
  int output(const std::string& name, std::vector<int32_t> dims, Type type = Type::FLOAT32,
             const Quant& q = {}) {
    outputs.push_back(tensor(name, std::move(dims), type, q));
    return outputs.back();
  }
  template <class T>
  int constant(const std::string& name, std::vector<int32_t> dims, Type type, const std::vector<T>& values,
               const Quant& q = {}) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
    return add(name, std::move(dims), type, q, {bytes, bytes + values.size() * sizeof(T)});
  }
  int ints(const std::string& name, const std::vector<int32_t>& values) {
    return constant(name, {static_cast<int32_t>(values.size())}, Type::INT32, values);
  }
  int floats(const std::string& name, std::vector<int32_t> dims, const std::vector<float>& values) {
    return constant(name, std::move(dims), Type::FLOAT32, values);
  }
  // Adds an operator. `options`: makes its table of options.
  void node(Op op, std::vector<int32_t> in, std::vector<int32_t> out,
            tflite::BuiltinOptions kind = tflite::BuiltinOptions::NONE, Options options = {},
            const std::string& custom = {}) {
    nodes_.push_back({op, std::move(in), std::move(out), kind, std::move(options), custom, {}});
  }
  // Adds a custom operator. `options`: its own bytes.
  void custom_node(const std::string& name, std::vector<int32_t> in, std::vector<int32_t> out,
                   std::vector<uint8_t> options = {}) {
    nodes_.push_back({Op::CUSTOM,
                      std::move(in),
                      std::move(out),
                      tflite::BuiltinOptions::NONE,
                      {},
                      name,
                      std::move(options)});
  }
  template <class Table>
  void node(Op op, std::vector<int32_t> in, std::vector<int32_t> out,
            std::function<flatbuffers::Offset<Table>(flatbuffers::FlatBufferBuilder&)> options) {
    node(op, std::move(in), std::move(out), tflite::BuiltinOptionsTraits<Table>::enum_value,
         [options](flatbuffers::FlatBufferBuilder& b) { return options(b).Union(); });
  }

  // The last operator's own bytes lie behind the FlatBuffer.
  void set_large_options(uint64_t offset, uint64_t size) {
    nodes_.back().large_offset = offset;
    nodes_.back().large_size = size;
  }
  // Tensors inside the last operator.
  void set_intermediates(std::vector<int32_t> tensors) { nodes_.back().intermediates = std::move(tensors); }

  std::vector<int32_t> inputs, outputs;
  uint32_t version = 3;

  // With QUERNEL_KEEP_MODELS=FOLDER every model becomes a file there, named by its content: seeds of mutants.
  std::vector<uint8_t> bytes() const;
  Expected<ImportedModel> import(const ImportOptions& options = {}) const {
    return import_tflite_bytes(bytes(), "test.tflite", options);
  }
  // The model's results in the interpreter.
  std::vector<Tensor> run(const std::vector<Tensor>& values, const ImportOptions& options = {}) const;
  // The diagnostics of the import.
  std::string errors(const ImportOptions& options = {}) const {
    Expected<ImportedModel> imported = import(options);
    return imported ? "no error" : to_string(imported.errors());
  }

  // What else the file says of a tensor.
  struct Extra {
    flatbuffers::Offset<tflite::SparsityParameters> sparsity;
    flatbuffers::Offset<tflite::QuantizationParameters> quantization;
    uint32_t external_buffer = 0;
    bool is_variable = false, unknown_field = false;
    uint64_t offset = 0, size = 0;  // of data behind the FlatBuffer
  };
  std::map<int, std::function<Extra(flatbuffers::FlatBufferBuilder&)>> extras;
  // What programs call the subgraphs and their tensors, these by number.
  struct Signature {
    std::string key;
    uint32_t subgraph = 0;
    std::map<std::string, uint32_t> inputs = {}, outputs = {};
  };
  std::vector<Signature> signatures;
  // Buffers by name of which the file says what they are.
  std::vector<std::pair<std::string, std::vector<uint8_t>>> metadata;
  std::vector<uint8_t> behind;  // the FlatBuffer, in the file
  // The second subgraph: inputs, outputs, tensors and operators of another builder.
  const ModelBuilder* second = nullptr;

 private:
  // What all subgraphs share.
  struct Parts {
    flatbuffers::FlatBufferBuilder builder;
    std::vector<flatbuffers::Offset<tflite::Buffer>> buffers;
    std::vector<flatbuffers::Offset<tflite::OperatorCode>> codes;
  };
  flatbuffers::Offset<tflite::SubGraph> graph(Parts& parts) const;

  struct TensorData {
    std::string name;
    std::vector<int32_t> dims;
    Type type;
    Quant quant;
    std::vector<uint8_t> data;
  };
  struct Node {
    Op op;
    std::vector<int32_t> in, out;
    tflite::BuiltinOptions kind;
    Options options;
    std::string custom;
    std::vector<uint8_t> custom_options;
    std::vector<int32_t> intermediates = {};
    uint64_t large_offset = 0, large_size = 0;
  };
  int add(const std::string& name, std::vector<int32_t> dims, Type type, const Quant& q,
          std::vector<uint8_t> data) {
    tensors_.push_back({name, std::move(dims), type, q, std::move(data)});
    return static_cast<int>(tensors_.size()) - 1;
  }

  std::vector<TensorData> tensors_;
  std::vector<Node> nodes_;
};

inline flatbuffers::Offset<tflite::SubGraph> ModelBuilder::graph(Parts& parts) const {
  flatbuffers::FlatBufferBuilder& b = parts.builder;
  std::vector<flatbuffers::Offset<tflite::Tensor>> tensors;
  for (const TensorData& t : tensors_) {
    std::vector<int32_t> shape = t.dims;
    for (int32_t& d : shape) d = d < 0 ? 1 : d;
    uint32_t buffer = 0;
    if (!t.data.empty()) {
      buffer = static_cast<uint32_t>(parts.buffers.size());
      parts.buffers.push_back(tflite::CreateBuffer(b, b.CreateVector(t.data)));
    }
    Extra extra;
    if (auto it = extras.find(static_cast<int>(tensors.size())); it != extras.end()) extra = it->second(b);
    if (extra.offset > 0) {
      buffer = static_cast<uint32_t>(parts.buffers.size());
      parts.buffers.push_back(tflite::CreateBuffer(b, 0, extra.offset, extra.size));
    }
    flatbuffers::Offset<tflite::QuantizationParameters> quantization = extra.quantization;
    if (!t.quant.scales.empty())
      quantization = tflite::CreateQuantizationParameters(b, 0, 0, b.CreateVector(t.quant.scales),
                                                          b.CreateVector(t.quant.zeros),
                                                          tflite::QuantizationDetails::NONE, 0, t.quant.dim);
    auto shape_vector = b.CreateVector(shape), signature = b.CreateVector(t.dims);
    auto name = b.CreateString(t.name);
    tflite::TensorBuilder tensor(b);
    tensor.add_shape(shape_vector);
    tensor.add_shape_signature(signature);
    tensor.add_type(t.type);
    tensor.add_buffer(buffer);
    tensor.add_name(name);
    if (!quantization.IsNull()) tensor.add_quantization(quantization);
    if (!extra.sparsity.IsNull()) tensor.add_sparsity(extra.sparsity);
    tensor.add_external_buffer(extra.external_buffer);
    tensor.add_is_variable(extra.is_variable);
    if (extra.unknown_field) b.AddElement<int32_t>(flatbuffers::FieldIndexToOffset(20), 1, 0);
    tensors.push_back(tensor.Finish());
  }
  std::vector<flatbuffers::Offset<tflite::Operator>> nodes;
  for (const Node& n : nodes_) {
    flatbuffers::Offset<flatbuffers::String> custom;
    if (!n.custom.empty()) custom = b.CreateString(n.custom);
    int old = std::min(static_cast<int>(n.op), 127);
    parts.codes.push_back(tflite::CreateOperatorCode(b, static_cast<int8_t>(old), custom, 1, n.op));
    flatbuffers::Offset<void> options = n.options ? n.options(b) : 0;
    auto in = b.CreateVector(n.in), out = b.CreateVector(n.out);
    flatbuffers::Offset<flatbuffers::Vector<uint8_t>> bytes;
    if (!n.custom_options.empty()) bytes = b.CreateVector(n.custom_options);
    flatbuffers::Offset<flatbuffers::Vector<int32_t>> intermediates;
    if (!n.intermediates.empty()) intermediates = b.CreateVector(n.intermediates);
    nodes.push_back(tflite::CreateOperator(b, static_cast<uint32_t>(parts.codes.size() - 1), in, out, n.kind,
                                           options, bytes, 0, 0, intermediates, n.large_offset,
                                           n.large_size));
  }
  auto tensor_vector = b.CreateVector(tensors);
  auto in = b.CreateVector(inputs), out = b.CreateVector(outputs);
  auto node_vector = b.CreateVector(nodes);
  return tflite::CreateSubGraph(b, tensor_vector, in, out, node_vector, b.CreateString("main"));
}

inline std::vector<uint8_t> ModelBuilder::bytes() const {
  Parts parts;
  flatbuffers::FlatBufferBuilder& b = parts.builder;
  parts.buffers.push_back(tflite::CreateBuffer(b));
  std::vector<flatbuffers::Offset<tflite::SubGraph>> subgraphs{graph(parts)};
  if (second) subgraphs.push_back(second->graph(parts));
  std::vector<flatbuffers::Offset<tflite::Metadata>> about;
  for (const auto& [name, data] : metadata) {
    about.push_back(
        tflite::CreateMetadata(b, b.CreateString(name), static_cast<uint32_t>(parts.buffers.size())));
    parts.buffers.push_back(tflite::CreateBuffer(b, b.CreateVector(data)));
  }
  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<tflite::Metadata>>> about_vector;
  if (!about.empty()) about_vector = b.CreateVector(about);
  auto codes = b.CreateVector(parts.codes);
  auto graphs = b.CreateVector(subgraphs);
  auto buffers = b.CreateVector(parts.buffers);
  std::vector<flatbuffers::Offset<tflite::SignatureDef>> defs;
  for (const Signature& signature : signatures) {
    auto maps = [&](const std::map<std::string, uint32_t>& tensors) {
      std::vector<flatbuffers::Offset<tflite::TensorMap>> list;
      for (const auto& [name, tensor] : tensors)
        list.push_back(tflite::CreateTensorMap(b, b.CreateString(name), tensor));
      return b.CreateVector(list);
    };
    auto in = maps(signature.inputs), out = maps(signature.outputs);
    defs.push_back(tflite::CreateSignatureDef(b, in, out, b.CreateString(signature.key), signature.subgraph));
  }
  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<tflite::SignatureDef>>> signature_vector;
  if (!defs.empty()) signature_vector = b.CreateVector(defs);
  b.Finish(tflite::CreateModel(b, version, codes, graphs, 0, buffers, 0, about_vector, signature_vector),
           "TFL3");
  std::vector<uint8_t> file(b.GetBufferPointer(), b.GetBufferPointer() + b.GetSize());
  file.insert(file.end(), behind.begin(), behind.end());
  if (const char* folder = std::getenv("QUERNEL_KEEP_MODELS")) {
    std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
    std::filesystem::create_directories(folder);
    std::ofstream(
        std::filesystem::path(folder) / (std::to_string(std::hash<std::string_view>()(text)) + ".tflite"),
        std::ios::binary)
        << text;
  }
  return file;
}

inline std::vector<Tensor> ModelBuilder::run(const std::vector<Tensor>& values,
                                             const ImportOptions& options) const {
  Expected<ImportedModel> imported = import(options);
  if (!imported) {
    ADD_FAILURE() << to_string(imported.errors());
    return {};
  }
  if (Status ok = verify(imported->graph); !ok) ADD_FAILURE() << to_string(ok.errors());
  Expected<std::vector<Tensor>> results = interpret(imported->graph, values);
  if (!results) {
    ADD_FAILURE() << to_string(results.errors());
    return {};
  }
  return *results;
}

inline void expect_values(const std::vector<Tensor>& results, const std::vector<int64_t>& dims,
                          const std::vector<double>& values, double tolerance = 1e-5) {
  ASSERT_FALSE(results.empty());
  EXPECT_EQ(results[0].dims, dims);
  ASSERT_EQ(static_cast<size_t>(results[0].count()), values.size());
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(element_as_f64(results[0], static_cast<int64_t>(i)), values[i], tolerance) << "element " << i;
}

inline Tensor i8_tensor(std::vector<int64_t> dims, const std::vector<int8_t>& values) {
  return make_tensor(DType::kI8, std::move(dims), values);
}
inline Tensor i32_tensor(std::vector<int64_t> dims, const std::vector<int32_t>& values) {
  return make_tensor(DType::kI32, std::move(dims), values);
}

}  // namespace quernel::tflite_test
