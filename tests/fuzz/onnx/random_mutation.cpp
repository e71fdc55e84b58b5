#include "random_mutation.h"

#include <cmath>

namespace quernel::onnx_test {
namespace {

int64_t interesting_int(Random& random) {
  static constexpr int64_t kValues[] = {0,
                                        1,
                                        -1,
                                        2,
                                        -2,
                                        3,
                                        4,
                                        5,
                                        7,
                                        8,
                                        16,
                                        63,
                                        64,
                                        65,
                                        255,
                                        1000,
                                        1 << 16,
                                        1 << 20,
                                        int64_t{1} << 31,
                                        (int64_t{1} << 31) - 1,
                                        int64_t{1} << 32,
                                        int64_t{1} << 40,
                                        int64_t{1} << 52,
                                        int64_t{1} << 62,
                                        INT64_MAX,
                                        INT64_MIN,
                                        INT64_MIN + 1,
                                        -(int64_t{1} << 31)};
  return kValues[pick(random, std::size(kValues))];
}

float interesting_float(Random& random) {
  static const float kValues[] = {0,      1,        -1,        0.5f, 2,    1e-30f, 1e30f,
                                  -1e30f, INFINITY, -INFINITY, NAN,  3.7f, 1000};
  return kValues[pick(random, std::size(kValues))];
}

const char* any_operator(Random& random) {
  static const char* const kNames[] = {
#define QUERNEL_ONNX(domain, name, since, until, min_inputs, max_inputs, function) #name,
#include "frontends/onnx/operators.def"
      "If", "Loop", "LSTM", "NoSuchOperator"};
  return kNames[pick(random, std::size(kNames))];
}

std::vector<std::string> tensor_names(const onnx::GraphProto& graph) {
  std::vector<std::string> names{"", "missing"};
  for (const auto& v : graph.input()) names.push_back(v.name());
  for (const auto& t : graph.initializer()) names.push_back(t.name());
  for (const auto& n : graph.node())
    for (const auto& o : n.output()) names.push_back(o);
  return names;
}

void mutate_attribute(onnx::NodeProto& node, Random& random) {
  if (node.attribute_size() == 0 || pick(random, 8) == 0) {
    static const char* const kNames[] = {"axis",      "axes",      "keepdims", "kernel_shape", "pads",
                                         "strides",   "dilations", "group",    "mode",         "auto_pad",
                                         "ceil_mode", "perm",      "to",       "value",        "alpha",
                                         "epsilon",   "size",      "split",    "blocksize"};
    auto& a = *node.add_attribute();
    a.set_name(kNames[pick(random, std::size(kNames))]);
    if (pick(random, 2)) {
      a.set_type(onnx::AttributeProto::INT);
      a.set_i(interesting_int(random));
    } else {
      a.set_type(onnx::AttributeProto::INTS);
      for (size_t i = pick(random, 6); i-- > 0;) a.add_ints(interesting_int(random));
    }
    return;
  }
  auto& a =
      *node.mutable_attribute(static_cast<int>(pick(random, static_cast<size_t>(node.attribute_size()))));
  switch (pick(random, 8)) {
    case 0:
      a.set_i(interesting_int(random));
      break;
    case 1:
      a.set_f(interesting_float(random));
      break;
    case 2:
      a.add_ints(interesting_int(random));
      break;
    case 3:
      a.clear_ints();
      break;
    case 4:
      a.set_s(pick(random, 2) ? "SAME_LOWER" : "bogus");
      break;
    case 5:
      a.set_name(pick(random, 2) ? "axis" : "other");
      break;
    case 6:
      a.set_type(static_cast<onnx::AttributeProto::AttributeType>(1 + pick(random, 10)));
      break;
    default:
      if (a.ints_size())
        a.set_ints(static_cast<int>(pick(random, static_cast<size_t>(a.ints_size()))),
                   interesting_int(random));
      else
        a.set_i(interesting_int(random));
  }
}

void mutate_tensor(onnx::TensorProto& tensor, Random& random) {
  switch (pick(random, 7)) {
    case 0:
      tensor.add_dims(interesting_int(random));
      break;
    case 1:
      tensor.set_data_type(static_cast<int>(pick(random, 28)));
      break;
    case 2:
      if (tensor.dims_size())
        tensor.set_dims(static_cast<int>(pick(random, static_cast<size_t>(tensor.dims_size()))),
                        interesting_int(random));
      break;
    case 3:
      tensor.mutable_raw_data()->assign(pick(random, 64), '\x7f');
      break;
    case 4:
      tensor.set_data_location(onnx::TensorProto::EXTERNAL);
      break;
    case 5:
      if (tensor.float_data_size())
        tensor.set_float_data(static_cast<int>(pick(random, static_cast<size_t>(tensor.float_data_size()))),
                              interesting_float(random));
      [[fallthrough]];
    default:
      if (tensor.int64_data_size())
        tensor.set_int64_data(static_cast<int>(pick(random, static_cast<size_t>(tensor.int64_data_size()))),
                              interesting_int(random));
  }
}

void mutate_node(onnx::GraphProto& graph, Random& random) {
  auto& node = *graph.mutable_node(static_cast<int>(pick(random, static_cast<size_t>(graph.node_size()))));
  std::vector<std::string> names = tensor_names(graph);
  const std::string& name = names[pick(random, names.size())];
  int input = static_cast<int>(pick(random, static_cast<size_t>(node.input_size())));
  switch (pick(random, 10)) {
    case 0:
      node.set_op_type(any_operator(random));
      break;
    case 1:
      node.add_input(name);
      break;
    case 2:
      if (node.input_size()) node.mutable_input()->DeleteSubrange(input, 1);
      break;
    case 3:
      node.add_output("extra" + std::to_string(pick(random, 3)));
      break;
    case 4:
      node.clear_attribute();
      break;
    case 5:
    case 6:
      if (node.input_size()) node.set_input(input, name);
      break;
    default:
      mutate_attribute(node, random);
  }
}

}  // namespace

void mutate_somewhere(onnx::ModelProto& model, Random& random) {
  onnx::GraphProto& graph = *model.mutable_graph();
  switch (pick(random, 10)) {
    case 0:
      if (graph.input_size()) {
        auto& type =
            *graph.mutable_input(static_cast<int>(pick(random, static_cast<size_t>(graph.input_size()))))
                 ->mutable_type()
                 ->mutable_tensor_type();
        if (pick(random, 4) == 0)
          type.set_elem_type(static_cast<int>(pick(random, 28)));
        else if (type.shape().dim_size())
          type.mutable_shape()
              ->mutable_dim(static_cast<int>(pick(random, static_cast<size_t>(type.shape().dim_size()))))
              ->set_dim_value(interesting_int(random));
        else
          type.mutable_shape()->add_dim()->set_dim_param("n");
      }
      break;
    case 1:
      if (graph.input_size()) {
        auto& shape = *graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
        if (shape.dim_size())
          shape.mutable_dim(static_cast<int>(pick(random, static_cast<size_t>(shape.dim_size()))))
              ->set_dim_param("free");
      }
      break;
    case 2:
    case 3:
      if (graph.initializer_size())
        mutate_tensor(*graph.mutable_initializer(
                          static_cast<int>(pick(random, static_cast<size_t>(graph.initializer_size())))),
                      random);
      break;
    case 4:
      model.mutable_opset_import(0)->set_version(static_cast<int64_t>(pick(random, 32)));
      break;
    default:
      if (graph.node_size()) mutate_node(graph, random);
  }
}

}  // namespace quernel::onnx_test
