// Names that a model gives to several values: every pair of definitions, in every kind of graph, under every
// rule. Which one counts is what ONNX Runtime does, where it does not refuse the model.
#include <gtest/gtest.h>

#include "run_model.h"

namespace quernel::onnx_test {
namespace {

enum class Kind { kInitializer, kConstant, kNode };
enum class Place { kGraph, kBranch, kBody, kFunction };
const Kind kKinds[] = {Kind::kInitializer, Kind::kConstant, Kind::kNode};
const Place kPlaces[] = {Place::kGraph, Place::kBranch, Place::kBody, Place::kFunction};
const DuplicateNames kRules[] = {DuplicateNames::kConstants, DuplicateNames::kLast, DuplicateNames::kRefuse};

const char* text(Kind kind) {
  return kind == Kind::kInitializer ? "initializer" : kind == Kind::kConstant ? "constant" : "node";
}
const char* text(Place place) {
  return place == Place::kGraph    ? "graph"
         : place == Place::kBranch ? "branch"
         : place == Place::kBody   ? "body"
                                   : "function";
}
const char* text(DuplicateNames rule) {
  return rule == DuplicateNames::kConstants ? "constants" : rule == DuplicateNames::kLast ? "last" : "refuse";
}

void set_floats(onnx::TensorProto& tensor, const std::string& name, const std::vector<int64_t>& dims,
                const std::vector<float>& values) {
  tensor.set_name(name);
  tensor.set_data_type(kFloat);
  for (int64_t d : dims) tensor.add_dims(d);
  for (float v : values) tensor.add_float_data(v);
}

template <class Owner>
onnx::NodeProto& add_node(Owner& owner, const std::string& op, const std::vector<std::string>& inputs,
                          const std::string& output, const std::string& name) {
  onnx::NodeProto& node = *owner.add_node();
  node.set_op_type(op);
  node.set_name(name);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
  return node;
}

template <class Owner>
void add_constant(Owner& owner, const std::string& output, const std::string& name, float value) {
  onnx::NodeProto& node = add_node(owner, "Constant", {}, output, name);
  set_floats(*attribute(node, "value", onnx::AttributeProto::TENSOR).mutable_t(), "", {2}, {value, value});
}

template <class Owner>
void add_definition(Owner& owner, Kind kind, const std::string& source, float value,
                    const std::string& name) {
  if constexpr (std::is_same_v<Owner, onnx::GraphProto>)
    if (kind == Kind::kInitializer) set_floats(*owner.add_initializer(), "k", {2}, {value, value});
  if (kind == Kind::kConstant) add_constant(owner, "k", name, value);
  // 2 or 3 times what is known to be 1.
  if (kind == Kind::kNode) add_node(owner, value == 2 ? "Neg" : "Abs", {source}, "k", name);
}

// y = (x * k) * z, with k defined twice, of the values 2 and `second`, and a consumer between the two.
template <class Owner>
void add_pair(Owner& owner, Kind first, Kind last, float second, const std::string& source,
              const std::string& output) {
  add_definition(owner, first, source, 2, "first");
  add_node(owner, "Mul", {source, "k"}, "between", "between");
  add_definition(owner, last, source, second, "second");
  add_node(owner, "Add", {"between", "k"}, output, "after");
}

ModelBuilder pair_model(Place place, Kind first, Kind last, float second) {
  ModelBuilder m;
  m.input("x", {2}).output("y");
  if (place == Place::kGraph) add_pair(m.graph(), first, last, second, "x", "y");
  if (place == Place::kBranch) {
    onnx::TensorProto& condition = *m.graph().add_initializer();
    condition.set_name("c");
    condition.set_data_type(kBool);
    condition.add_int32_data(1);
    onnx::NodeProto& node = m.node("If", {"c"}, {"y"}, "if");
    onnx::GraphProto& chosen = set_graph(node, "then_branch");
    add_pair(chosen, first, last, second, "x", "a");
    chosen.add_output()->set_name("a");
    onnx::GraphProto& other = set_graph(node, "else_branch");
    add_node(other, "Neg", {"x"}, "b", "other");
    other.add_output()->set_name("b");
  }
  if (place == Place::kBody) {
    m.ints("trips", {}, {1});
    onnx::GraphProto& body = set_graph(m.node("Loop", {"trips", "", "x"}, {"y"}, "loop"), "body");
    ModelBuilder::describe(*body.add_input(), "i", {}, kInt64);
    ModelBuilder::describe(*body.add_input(), "go", {}, kBool);
    ModelBuilder::describe(*body.add_input(), "v", {2}, kFloat);
    add_pair(body, first, last, second, "v", "v_out");
    add_node(body, "Identity", {"go"}, "go_out", "on");
    body.add_output()->set_name("go_out");
    body.add_output()->set_name("v_out");
  }
  if (place == Place::kFunction) {
    auto* import = m.model.add_opset_import();
    import->set_domain("own");
    import->set_version(1);
    onnx::FunctionProto& function = *m.model.add_functions();
    function.set_domain("own");
    function.set_name("pair");
    function.add_input("v");
    function.add_output("r");
    function.add_opset_import()->set_version(17);
    add_pair(function, first, last, second, "v", "r");
    m.node("pair", {"x"}, {"y"}, "call").set_domain("own");
  }
  return m;
}

struct Expectation {
  bool refused = false, noted = false;
  std::vector<double> k;  // of x = [1, -5]
};

std::vector<double> value_of(Kind kind, float value) {
  if (kind != Kind::kNode) return {value, value};
  return value == 2 ? std::vector<double>{-1, 5} : std::vector<double>{1, 5};
}

Expectation expected(Kind first, Kind last, float second, DuplicateNames rule) {
  bool constants = first != Kind::kNode && last != Kind::kNode;
  if (constants && second == 2) return {false, false, {2, 2}};
  if (rule == DuplicateNames::kRefuse || (rule == DuplicateNames::kConstants && !constants))
    return {true, false, {}};
  // An initializer stands before all nodes, wherever the file has it.
  if (last == Kind::kInitializer && first != Kind::kInitializer) return {false, true, value_of(first, 2)};
  return {false, true, value_of(last, second)};
}

TEST(DuplicateNames, every_pair_in_every_graph_by_every_rule) {
  int models = 0;
  for (Place place : kPlaces)
    for (Kind first : kKinds)
      for (Kind last : kKinds)
        for (float second : {2.f, 3.f})
          for (DuplicateNames rule : kRules) {
            if (place == Place::kFunction && (first == Kind::kInitializer || last == Kind::kInitializer))
              continue;
            SCOPED_TRACE(std::string(text(place)) + ": " + text(first) + ", " + text(last) +
                         (second == 2 ? ", equal" : ", different") + ", rule " + text(rule));
            ++models;
            ImportOptions options;
            options.duplicate_names = rule;
            ModelBuilder m = pair_model(place, first, last, second);
            Expected<ImportedModel> imported = m.import(options);
            Expectation want = expected(first, last, second, rule);
            ASSERT_EQ(static_cast<bool>(imported), !want.refused)
                << (imported ? "imported" : to_string(imported.errors()));
            if (want.refused) {
              std::string said = to_string(imported.errors());
              EXPECT_NE(said.find("expected one definition of 'k', found "), std::string::npos) << said;
              for (auto [kind, name] : {std::pair(first, "first"), std::pair(last, "second")})
                EXPECT_NE(said.find(kind == Kind::kInitializer
                                        ? "an"
                                        : std::string("node '") + (place == Place::kFunction ? "call/" : "") +
                                              name + "'"),
                          std::string::npos)
                    << said;
              continue;
            }
            bool noted = false;
            for (const std::string& note : imported->notes) noted = noted || note.find("'k'") != note.npos;
            EXPECT_EQ(noted, want.noted);
            std::vector<Tensor> y = run(m, {f32_tensor({2}, {1, -5})}, options);
            ASSERT_EQ(y.size(), 1u);
            // All that read the name read the same value, also those between the two definitions.
            expect_values(y[0], {2}, {1 * want.k[0] + want.k[0], -5 * want.k[1] + want.k[1]});
          }
  EXPECT_EQ(models, (9 * 3 + 4) * 2 * 3);
}

// A name may be given often; the rule is said once.
TEST(DuplicateNames, one_note_for_all_constants) {
  ModelBuilder m;
  m.input("x", {2}).output("y");
  std::string before = "x";
  for (int i = 0; i < 48; ++i) {
    std::string k = "k" + std::to_string(i % 8), t = i == 47 ? "y" : "t" + std::to_string(i);
    add_constant(m.graph(), k, "const" + std::to_string(i), static_cast<float>(i));
    m.node("Add", {before, k}, {t});
    before = t;
  }
  Expected<ImportedModel> imported = m.import();
  ASSERT_TRUE(imported) << to_string(imported.errors());
  ASSERT_EQ(imported->notes.size(), 1u);
  EXPECT_NE(imported->notes[0].find("'k0', 'k1', 'k2', 'k3', 'k4', 'k5', … (8 in all)"), std::string::npos)
      << imported->notes[0];
  // 40 to 47, six times.
  expect_values(run(m, {f32_tensor({2}, {0, 1})}).at(0), {2}, {2088, 2089});
}

std::string errors_of(const ModelBuilder& m, const ImportOptions& options = {}) {
  Expected<ImportedModel> imported = m.import(options);
  return imported ? "no error" : to_string(imported.errors());
}

TEST(DuplicateNames, inputs_are_never_replaced) {
  for (DuplicateNames rule : kRules) {
    ImportOptions options;
    options.duplicate_names = rule;
    ModelBuilder m;
    m.input("x", {2}).output("y");
    m.node("Neg", {"x"}, {"x"}, "again");
    m.node("Relu", {"x"}, {"y"});
    EXPECT_NE(
        errors_of(m, options).find("expected one definition of 'x', found an input and node 'again' (Neg)"),
        std::string::npos)
        << errors_of(m, options);
    ModelBuilder twice;
    twice.input("x", {2}).input("x", {2}).output("y");
    twice.node("Relu", {"x"}, {"y"});
    EXPECT_NE(errors_of(twice, options).find("expected inputs of different names, found 'x' twice"),
              std::string::npos)
        << errors_of(twice, options);
  }
}

TEST(DuplicateNames, results_of_one_node) {
  ModelBuilder m;
  m.input("x", {4}).output("y");
  set_int(m.node("Split", {"x"}, {"t", "t"}, "halves"), "axis", 0);
  m.node("Neg", {"t"}, {"y"});
  EXPECT_NE(errors_of(m).find(
                "expected one definition of 't', found node 'halves' (Split) and node 'halves' (Split)"),
            std::string::npos)
      << errors_of(m);
  ImportOptions options;
  options.duplicate_names = DuplicateNames::kLast;
  expect_values(run(m, {f32_tensor({4}, {1, 2, 3, 4})}, options).at(0), {2}, {-3, -4});
}

TEST(DuplicateNames, functions) {
  auto model = [](const char* second) {
    ModelBuilder m;
    m.input("x", {2}).output("y");
    auto* import = m.model.add_opset_import();
    import->set_domain("own");
    import->set_version(1);
    for (const char* op : {"Neg", second}) {
      onnx::FunctionProto& function = *m.model.add_functions();
      function.set_domain("own");
      function.set_name("f");
      function.add_input("a");
      function.add_output("b");
      function.add_opset_import()->set_version(17);
      add_node(function, op, {"a"}, "b", "n");
    }
    m.node("f", {"x"}, {"y"}).set_domain("own");
    return m;
  };
  EXPECT_TRUE(model("Neg").import());
  EXPECT_NE(errors_of(model("Abs")).find("expected one definition of 'f', found a function and another"),
            std::string::npos)
      << errors_of(model("Abs"));
  ImportOptions options;
  options.duplicate_names = DuplicateNames::kLast;
  expect_values(run(model("Abs"), {f32_tensor({2}, {-1, 2})}, options).at(0), {2}, {1, 2});
}

// A name of a branch that the graph around it has, too.
ModelBuilder shadow_model(Kind outer, Kind inner, float value) {
  ModelBuilder m;
  m.input("x", {2}).input("c", {}, kBool).output("y");
  add_definition(m.graph(), outer, "x", 2, "outside");
  onnx::NodeProto& node = m.node("If", {"c"}, {"r"}, "if");
  onnx::GraphProto& chosen = set_graph(node, "then_branch");
  add_definition(chosen, inner, "x", value, "inside");
  add_node(chosen, "Mul", {"x", "k"}, "a", "product");
  chosen.add_output()->set_name("a");
  onnx::GraphProto& other = set_graph(node, "else_branch");
  add_node(other, "Neg", {"x"}, "b", "other");
  other.add_output()->set_name("b");
  m.node("Add", {"r", "k"}, {"y"}, "last");
  return m;
}

TEST(DuplicateNames, inner_names_that_outer_graphs_have_too) {
  for (Kind outer : kKinds)
    for (Kind inner : kKinds)
      for (float value : {2.f, 3.f})
        for (DuplicateNames rule : kRules) {
          SCOPED_TRACE(std::string(text(outer)) + " around " + text(inner) + (value == 2 ? ", equal" : "") +
                       ", rule " + text(rule));
          ImportOptions options;
          options.duplicate_names = rule;
          ModelBuilder m = shadow_model(outer, inner, value);
          Expected<ImportedModel> imported = m.import(options);
          // ONNX asks for names of their own of results only.
          bool equal_constants = outer != Kind::kNode && inner == Kind::kConstant && value == 2;
          bool refused = inner != Kind::kInitializer && !equal_constants && rule != DuplicateNames::kLast;
          ASSERT_EQ(static_cast<bool>(imported), !refused)
              << (imported ? "imported" : to_string(imported.errors()));
          if (refused) {
            std::string said = to_string(imported.errors());
            std::string there = outer == Kind::kInitializer ? "an initializer"
                                : outer == Kind::kConstant  ? "node 'outside' (Constant)"
                                                            : "node 'outside' (Neg)";
            EXPECT_NE(said.find("found 'k', which is " + there + " there"), std::string::npos) << said;
            EXPECT_NE(said.find("inside"), std::string::npos) << said;
            continue;
          }
          bool noted = false;
          for (const std::string& note : imported->notes) noted = noted || note.find("'k'") != note.npos;
          bool silent = inner == Kind::kInitializer ? outer != Kind::kNode && value == 2 : equal_constants;
          EXPECT_EQ(noted, !silent);
          std::vector<double> k = value_of(outer, 2), own = value_of(inner, value);
          for (bool taken : {true, false}) {
            std::vector<Tensor> y =
                run(m, {f32_tensor({2}, {1, -5}), make_tensor<uint8_t>(DType::kBool, {}, {taken})}, options);
            ASSERT_EQ(y.size(), 1u);
            if (taken) expect_values(y[0], {2}, {own[0] + k[0], -5 * own[1] + k[1]});
            if (!taken) expect_values(y[0], {2}, {-1 + k[0], 5 + k[1]});
          }
        }
}

TEST(DuplicateNames, an_output_listed_twice_has_two_names) {
  ModelBuilder m;
  m.input("x", {2}).output("y").output("y_1").output("y").output("y").output("x");
  m.node("Neg", {"x"}, {"y"});
  m.node("Abs", {"x"}, {"y_1"});
  Expected<ImportedModel> imported = m.import();
  ASSERT_TRUE(imported) << to_string(imported.errors());
  std::vector<std::string> names;
  for (const Graph::Output& output : imported->graph.outputs) names.push_back(output.name);
  EXPECT_EQ(names, (std::vector<std::string>{"y", "y_1", "y_1_", "y_2", "x"}));
  EXPECT_EQ(imported->notes,
            (std::vector<std::string>{"output 'y' is listed again, and is there called 'y_1_'",
                                      "output 'y' is listed again, and is there called 'y_2'"}));
  std::vector<Tensor> y = run(m, {f32_tensor({2}, {1, -5})});
  ASSERT_EQ(y.size(), 5u);
  for (size_t i : {0u, 2u, 3u}) expect_values(y[i], {2}, {-1, 5});
  expect_values(y[1], {2}, {1, 5});
  expect_values(y[4], {2}, {1, -5});
}

// ---- initializers that are inputs

ModelBuilder default_model(int64_t ir_version) {
  ModelBuilder m;
  m.model.set_ir_version(ir_version);
  m.input("x", {2}).input("k", {2}).input("b[0]", {2}).output("y");
  m.floats("k", {2}, {2, 3});
  m.floats("b[0]", {2}, {10, 20});
  m.node("Mul", {"x", "k"}, {"t"});
  m.node("Add", {"t", "b[0]"}, {"y"});
  return m;
}

TEST(InitializersAmongInputs, are_constants_unless_kept) {
  for (int64_t ir : {3, 8}) {
    ModelBuilder m = default_model(ir);
    Expected<ImportedModel> imported = m.import();
    ASSERT_TRUE(imported) << to_string(imported.errors());
    EXPECT_EQ(imported->graph.inputs.size(), 1u);
    if (ir == 8) {
      ASSERT_EQ(imported->notes.size(), 1u);
      EXPECT_EQ(
          imported->notes[0],
          "initializers that the model lists as inputs are taken as constants: 'k', 'b[0]' (--keep-input "
          "NAME makes one an input)");
    }
    expect_values(run(m, {f32_tensor({2}, {1, 2})}).at(0), {2}, {12, 26});
    ImportOptions options;
    options.keep_inputs = {"k"};
    expect_values(run(m, {f32_tensor({2}, {1, 2}), f32_tensor({2}, {5, 6})}, options).at(0), {2}, {15, 32});
    options.keep_inputs = {"b[0]"};
    expect_values(run(m, {f32_tensor({2}, {1, 2}), f32_tensor({2}, {5, 6})}, options).at(0), {2}, {7, 12});
    options.keep_inputs = {"*"};
    expect_values(
        run(m, {f32_tensor({2}, {1, 2}), f32_tensor({2}, {5, 6}), f32_tensor({2}, {7, 8})}, options).at(0),
        {2}, {12, 20});
  }
}

TEST(InitializersAmongInputs, what_names_one_is_answered_with_the_option) {
  ModelBuilder m = default_model(8);
  ImportOptions options;
  options.input_shapes["k"] = {2};
  EXPECT_NE(
      errors_of(m, options)
          .find(
              "input 'k' is an initializer, too, and taken as a constant; --keep-input k makes it an input"),
      std::string::npos)
      << errors_of(m, options);
  options = {};
  options.keep_inputs = {"x"};
  EXPECT_NE(
      errors_of(m, options)
          .find("expected the name of an initializer that the model lists as an input, found 'x'; those "
                "initializers: 'k', 'b[0]'"),
      std::string::npos)
      << errors_of(m, options);
}

}  // namespace
}  // namespace quernel::onnx_test
