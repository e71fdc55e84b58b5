#include "random_variation.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "graph/tensor.h"

namespace quernel::onnx_test {
namespace {

void forget_output_types(onnx::ModelProto& model) {
  for (auto& output : *model.mutable_graph()->mutable_output()) output.clear_type();
  model.mutable_graph()->clear_value_info();
}

bool is_tensor(const onnx::ValueInfoProto& info) { return info.type().has_tensor_type(); }

// Every dim of some size, of all inputs.
void resize(onnx::ModelProto& model, Random& random) {
  static constexpr int64_t kSizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 64, 100};
  std::set<int64_t> found;
  for (const auto& input : model.graph().input())
    if (is_tensor(input))
      for (const auto& dim : input.type().tensor_type().shape().dim())
        if (dim.has_dim_value()) found.insert(dim.dim_value());
  if (found.empty()) return;
  const int64_t from = *std::next(found.begin(), static_cast<long>(pick(random, found.size())));
  const size_t choice = pick(random, std::size(kSizes) + 4);
  for (auto& input : *model.mutable_graph()->mutable_input()) {
    if (!is_tensor(input)) continue;
    for (auto& dim : *input.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim()) {
      if (!dim.has_dim_value() || dim.dim_value() != from) continue;
      if (choice < std::size(kSizes))
        dim.set_dim_value(kSizes[choice]);
      else
        dim.set_dim_param("n");
    }
  }
  forget_output_types(model);
}

void convert(onnx::TensorProto& tensor, int type, DType dtype) {
  if (tensor.data_type() != kFloat) return;
  std::vector<float> values(tensor.float_data().begin(), tensor.float_data().end());
  if (values.empty() && !tensor.raw_data().empty()) {
    values.resize(tensor.raw_data().size() / sizeof(float));
    std::memcpy(values.data(), tensor.raw_data().data(), values.size() * sizeof(float));
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(dtype, static_cast<int64_t>(values.size()))));
  for (size_t i = 0; i < values.size(); ++i)
    store_f64(dtype, bytes.data(), static_cast<int64_t>(i), values[i]);
  tensor.clear_float_data();
  tensor.set_data_type(type);
  tensor.set_raw_data(bytes.data(), bytes.size());
}

// Floats of another width, everywhere.
void retype(onnx::ModelProto& model, Random& random) {
  static constexpr struct {
    int type;
    DType dtype;
  } kTypes[] = {{onnx::TensorProto::FLOAT16, DType::kF16},
                {onnx::TensorProto::BFLOAT16, DType::kBF16},
                {onnx::TensorProto::DOUBLE, DType::kF64}};
  const auto [type, dtype] = kTypes[pick(random, std::size(kTypes))];
  for (auto& input : *model.mutable_graph()->mutable_input())
    if (is_tensor(input) && input.type().tensor_type().elem_type() == kFloat)
      input.mutable_type()->mutable_tensor_type()->set_elem_type(type);
  for (auto& tensor : *model.mutable_graph()->mutable_initializer()) convert(tensor, type, dtype);
  for (auto& node : *model.mutable_graph()->mutable_node())
    for (auto& attribute : *node.mutable_attribute())
      if (attribute.has_t()) convert(*attribute.mutable_t(), type, dtype);
  forget_output_types(model);
}

bool has_subgraphs(const onnx::ModelProto& model) {
  for (const auto& node : model.graph().node())
    for (const auto& attribute : node.attribute())
      if (attribute.has_g() || attribute.graphs_size()) return true;
  return false;
}

bool same_opsets(const onnx::ModelProto& a, const onnx::ModelProto& b) {
  return a.opset_import_size() == 1 && b.opset_import_size() == 1 &&
         a.opset_import(0).domain() == b.opset_import(0).domain() &&
         a.opset_import(0).version() == b.opset_import(0).version();
}

bool same_type(const onnx::ValueInfoProto& a, const onnx::ValueInfoProto& b) {
  if (!is_tensor(a) || !is_tensor(b)) return false;
  const auto &x = a.type().tensor_type(), &y = b.type().tensor_type();
  return x.elem_type() == y.elem_type() && x.shape().dim_size() == y.shape().dim_size();
}

// Nodes of `next` that take results of the model in place of inputs of theirs, where types agree.
void compute_on(onnx::ModelProto& model, onnx::ModelProto next) {
  if (!same_opsets(model, next) || has_subgraphs(next) || next.functions_size() || model.functions_size())
    return;
  onnx::GraphProto& graph = *model.mutable_graph();
  const std::string prefix = "on" + std::to_string(graph.node_size()) + "_";
  auto renamed = [&](const std::string& name) { return name.empty() ? name : prefix + name; };
  std::set<std::string> taken;
  for (auto& input : *next.mutable_graph()->mutable_input()) {
    auto from =
        std::find_if(graph.output().begin(), graph.output().end(), [&](const onnx::ValueInfoProto& output) {
          return same_type(output, input) && !taken.count(output.name());
        });
    if (from == graph.output().end()) {
      *graph.add_input() = input;
      graph.mutable_input(graph.input_size() - 1)->set_name(renamed(input.name()));
      continue;
    }
    taken.insert(from->name());
    onnx::NodeProto& same = *graph.add_node();
    same.set_op_type("Identity");
    same.add_input(from->name());
    same.add_output(renamed(input.name()));
  }
  for (const auto& tensor : next.graph().initializer()) {
    *graph.add_initializer() = tensor;
    graph.mutable_initializer(graph.initializer_size() - 1)->set_name(renamed(tensor.name()));
  }
  for (const auto& node : next.graph().node()) {
    onnx::NodeProto& added = *graph.add_node();
    added = node;
    for (auto& name : *added.mutable_input()) name = renamed(name);
    for (auto& name : *added.mutable_output()) name = renamed(name);
  }
  for (const auto& output : next.graph().output()) {
    *graph.add_output() = output;
    graph.mutable_output(graph.output_size() - 1)->set_name(renamed(output.name()));
  }
  if (!taken.empty()) graph.clear_value_info();
}

void swap_operands(onnx::ModelProto& model, Random& random) {
  if (model.graph().node_size() == 0) return;
  auto& node = *model.mutable_graph()->mutable_node(
      static_cast<int>(pick(random, static_cast<size_t>(model.graph().node_size()))));
  if (node.input_size() < 2) return;
  const auto count = static_cast<size_t>(node.input_size());
  node.mutable_input()->SwapElements(static_cast<int>(pick(random, count)),
                                     static_cast<int>(pick(random, count)));
  forget_output_types(model);
}

}  // namespace

void vary(onnx::ModelProto& model, const std::vector<onnx::ModelProto>& others, Random& random) {
  switch (pick(random, 8)) {
    case 0:
    case 1:
      return resize(model, random);
    case 2:
      return retype(model, random);
    case 3:
      return swap_operands(model, random);
    default:
      return compute_on(model, others[pick(random, others.size())]);
  }
}

onnx::ModelProto random_einsum(Random& random) {
  ModelBuilder m(13);
  std::vector<std::string> names;
  std::string equation, all;
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < 8; ++i) sizes.push_back(static_cast<int64_t>(1 + pick(random, 4)));
  const size_t operands = 1 + pick(random, 3), letters = 1 + pick(random, sizes.size());
  for (size_t i = 0; i < operands; ++i) {
    std::string term;
    std::vector<int64_t> dims;
    for (size_t rank = pick(random, 6); rank-- > 0;) {
      const size_t letter = pick(random, letters);
      if (pick(random, 8) != 0 && term.find(static_cast<char>('a' + letter)) != std::string::npos) continue;
      term += static_cast<char>('a' + letter);
      dims.push_back(sizes[letter]);
    }
    all += term;
    equation += (i ? "," : "") + term;
    names.push_back("x" + std::to_string(i));
    m.input(names.back(), dims);
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::shuffle(all.begin(), all.end(), random);
  all.resize(pick(random, all.size() + 1));
  if (pick(random, 4) != 0) equation += "->" + all;
  m.output("y");
  set_string(m.node("Einsum", names, {"y"}), "equation", equation);
  return m.model;
}

}  // namespace quernel::onnx_test
