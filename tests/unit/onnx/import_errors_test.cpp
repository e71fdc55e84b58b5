// What cannot be imported is refused with one clear diagnostic for each thing that is wrong.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "model_builder.h"

namespace quernel::onnx_test {
namespace {

std::string errors_of(const ModelBuilder& m, const ImportOptions& options = {},
                      const std::string& file_name = "test.onnx") {
  Expected<ImportedModel> imported = m.import(options, file_name);
  return imported ? "no error" : to_string(imported.errors());
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

std::string import_text(const std::string& text) {
  Expected<ImportedModel> imported =
      import_onnx_bytes({reinterpret_cast<const uint8_t*>(text.data()), text.size()}, "m.onnx");
  return imported ? "no error" : to_string(imported.errors());
}

ModelBuilder relu_model() {
  ModelBuilder m;
  m.input("x", {2}).output("y");
  m.node("Relu", {"x"}, {"y"}, "r");
  return m;
}

std::string zip_of(const std::string& name) {
  std::string header("PK\x03\x04", 4);
  header.resize(30);
  header[26] = static_cast<char>(name.size());
  return header + name + "contents";
}

TEST(ImportErrors, foreign_files_are_named_with_their_way_to_onnx) {
  const std::string safetensors = std::string("\x28\0\0\0\0\0\0\0", 8) + "{\"w\":{\"dtype\":\"F32\",";
  const std::pair<std::string, std::vector<const char*>> files[] = {
      {zip_of("archive/data.pkl"), {"found a PyTorch file", "torch.onnx.export"}},
      {zip_of("model/version"), {"found a PyTorch file"}},
      {zip_of("metadata.json"), {"found a Keras model", "model.export"}},
      {zip_of("notes.txt"), {"found a zip archive", "unpack it"}},
      {"\x89HDF\r\n\x1a\n", {"found an HDF5 file", "model.export"}},
      {safetensors, {"found a safetensors file", "optimum-cli"}},
      {std::string("GGUF\x03\0\0\0", 8), {"found a GGUF file", "optimum-cli"}},
      {"\n<!DOCTYPE HTML><title>404</title>", {"found a web page (HTML)", "raw"}},
      {"<?xml version=\"1.0\"?>\n<net name=\"m\" version=\"11\">", {"found an OpenVINO model"}},
      {"<?xml version=\"1.0\"?><other/>", {"found a text in XML"}},
  };
  for (const auto& [bytes, expected] : files)
    for (const char* text : expected) expect_contains(import_text(bytes), text);
}

// A name that is empty stands for no value; what needs one refuses it by the node's name.
TEST(ImportErrors, values_that_are_absent) {
  using Model = std::pair<const char*, std::function<void(ModelBuilder&)>>;
  auto identity = [](onnx::GraphProto& g, const std::string& from, const std::string& to) {
    onnx::NodeProto& node = *g.add_node();
    node.set_op_type("Identity");
    node.add_input(from);
    node.add_output(to);
  };
  auto branches = [&](onnx::NodeProto& node, const std::string& result) {
    for (const char* branch : {"then_branch", "else_branch"}) {
      onnx::GraphProto& g = set_graph(node, branch);
      identity(g, "x", "z");
      g.add_output()->set_name(result);
    }
  };
  const Model models[] = {
      {"If without a condition", [&](ModelBuilder& m) { branches(m.node("If", {""}, {"y"}, "n"), "z"); }},
      {"If whose branches give nothing",
       [&](ModelBuilder& m) {
         m.input("c", {}, kBool);
         branches(m.node("If", {"c"}, {"y"}, "n"), "");
       }},
      {"SequenceMap of nothing",
       [&](ModelBuilder& m) {
         onnx::GraphProto& body = set_graph(m.node("SequenceMap", {""}, {"s"}, "n"), "body");
         body.add_input()->set_name("e");
         identity(body, "e", "r");
         body.add_output()->set_name("r");
         m.node("ConcatFromSequence", {"s"}, {"y"});
       }},
      {"Loop whose body gives no condition",
       [&](ModelBuilder& m) {
         m.input("t", {}, kInt64);
         onnx::GraphProto& body = set_graph(m.node("Loop", {"t", "", "x"}, {"y"}, "n"), "body");
         for (const char* name : {"i", "c", "v"}) body.add_input()->set_name(name);
         identity(body, "v", "w");
         for (const char* name : {"", "w"}) body.add_output()->set_name(name);
       }},
      {"Scan over nothing",
       [&](ModelBuilder& m) {
         onnx::NodeProto& node = m.node("Scan", {""}, {"y"}, "n");
         set_int(node, "num_scan_inputs", 1);
         onnx::GraphProto& body = set_graph(node, "body");
         body.add_input()->set_name("e");
         identity(body, "e", "r");
         body.add_output()->set_name("r");
       }},
  };
  for (const auto& [what, add] : models) {
    SCOPED_TRACE(what);
    ModelBuilder m;
    m.input("x", {2}).output("y");
    add(m);
    Expected<ImportedModel> imported = m.import();
    ASSERT_FALSE(imported);
    expect_contains(to_string(imported.errors()), "'n'");
    for (const Diagnostic& d : imported.errors()) EXPECT_NE(d.kind, DiagnosticKind::kInternal);
  }
}

TEST(ImportErrors, a_newer_format_is_noted) {
  for (int64_t version : {14, 15}) {
    ModelBuilder m = relu_model();
    m.model.set_ir_version(version);
    std::string bytes = m.bytes();
    Expected<ImportedModel> imported =
        import_onnx_bytes({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "newer.onnx");
    ASSERT_TRUE(imported) << to_string(imported.errors());
    ASSERT_EQ(imported->notes.size(), version > 14 ? 1u : 0u);
    if (version > 14) {
      EXPECT_EQ(imported->notes[0],
                "the file has ONNX's IR version 15, newer than 14, the newest that is known: what only newer "
                "versions have is not seen");
    }
  }
}

TEST(ImportErrors, not_onnx) {
  expect_contains(import_text(""), "expected an ONNX model, found an empty file");
  expect_contains(import_text("not a model"),
                  "not an ONNX model, or truncated or corrupted: the protobuf message does not parse");
  expect_contains(import_text("version https://git-lfs.github.com/spec/v1\n"),
                  "expected an ONNX model, found a Git LFS pointer; fetch the file itself");
  expect_contains(import_text(std::string("\x1c\0\0\0TFL3", 8)), "found a TensorFlow Lite model");
  std::string truncated = relu_model().bytes();
  truncated.resize(truncated.size() / 2);
  expect_contains(import_text(truncated), "not an ONNX model");
  expect_contains(to_string(import_onnx("/nonexistent/model.onnx").errors()), "cannot open the model file");
  expect_contains(to_string(import_onnx(testing::TempDir()).errors()),
                  "expected the model file to be a regular file");
}

// Sparse, so it takes no room on the disk.
TEST(ImportErrors, files_larger_than_a_message) {
  std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "quernel_large.onnx";
  std::ofstream(path).close();
  std::filesystem::resize_file(path, (uint64_t{1} << 31) + 5);
  expect_contains(to_string(import_onnx(path.string()).errors()),
                  "file of 2147483653 bytes, but one protobuf message holds at most 2 GiB");
  expect_contains(to_string(read_tensor_proto(path.string()).errors()), "a tensor file holds at most 2 GiB");
  std::filesystem::remove(path);
}

// If in If: 32 are imported, more refused by what they are, not as a damaged file.
TEST(ImportErrors, bodies_nested_deeply) {
  auto nested = [](int depth) {
    ModelBuilder m;
    m.input("x", {2}).input("c", {}, kBool).output("y0");
    onnx::GraphProto* graph = &m.graph();
    for (int d = 0; d < depth; ++d) {
      onnx::NodeProto& node = *graph->add_node();
      node.set_op_type("If");
      node.add_input("c");
      node.add_output("y" + std::to_string(d));
      for (const char* branch : {"else_branch", "then_branch"}) {
        graph = &set_graph(node, branch);
        graph->add_output()->set_name(branch + std::to_string(d));
        onnx::NodeProto& leaf = *graph->add_node();
        leaf.set_op_type("Neg");
        leaf.add_input("x");
        leaf.add_output(branch + std::to_string(d));
      }
      if (d + 1 < depth) graph->mutable_output(0)->set_name("y" + std::to_string(d + 1));
    }
    return m;
  };
  EXPECT_TRUE(nested(32).import()) << errors_of(nested(32));
  expect_contains(errors_of(nested(33)), "functions, bodies and branches nested more than 32 deep");
  expect_contains(errors_of(nested(60)), "functions, bodies and branches nested more than 32 deep");
  expect_contains(
      errors_of(nested(70)),
      "bodies and branches in each other make 213 nested protobuf messages, but at most 200 are read; "
      "nest If, Loop and Scan less deeply");
  expect_contains(errors_of(nested(1000)),
                  "bodies and branches in each other make 3003 nested protobuf messages");
}

TEST(ImportErrors, training_form_of_an_old_opset) {
  ModelBuilder m(6);
  m.input("x", {2}).output("y");
  m.node("Dropout", {"x"}, {"y"});
  expect_contains(errors_of(m), "training mode is not supported");
}

TEST(ImportErrors, old_operands_broadcast_only_where_they_say_so) {
  ModelBuilder m(6);
  m.input("x", {2, 3}).input("b", {3}).output("y");
  onnx::NodeProto& node = m.node("Add", {"x", "b"}, {"y"});
  expect_contains(errors_of(m), "without attribute 'broadcast'");
  set_int(node, "broadcast", 1);
  EXPECT_TRUE(m.import());
  set_int(node, "axis", 0);
  expect_contains(errors_of(m), "broadcast");
}

TEST(ImportErrors, negative_opset) {
  ModelBuilder m(-1);
  expect_contains(errors_of(m), "expected an opset of at least 1");
}

TEST(ImportErrors, future_opset) {
  ModelBuilder m(1000);
  expect_contains(errors_of(m), "opset 1000 is newer");
}

TEST(ImportErrors, all_unsupported_nodes_are_reported_together) {
  ModelBuilder m;
  m.input("x", {2}).output("y");
  m.node("StringSplit", {"x"}, {"a"}, "first");
  m.node("Relu", {"a"}, {"b"}, "between");
  m.node("NoSuchOperator", {"b"}, {"y"}, "second");
  Expected<ImportedModel> imported = m.import();
  ASSERT_FALSE(imported);
  ASSERT_EQ(imported.errors().size(), 2u) << to_string(imported.errors());
  EXPECT_EQ(imported.errors()[0].kind, DiagnosticKind::kUnsupported);
  EXPECT_EQ(imported.errors()[0].place.node, "first");
  EXPECT_EQ(imported.errors()[0].place.op, "StringSplit");
  EXPECT_EQ(imported.errors()[1].place.node, "second");
}

TEST(ImportErrors, other_domain) {
  ModelBuilder m = relu_model();
  m.graph().mutable_node(0)->set_domain("com.example");
  expect_contains(errors_of(m), "of domain 'com.example' is not supported");
}

TEST(ImportErrors, operator_of_a_newer_opset) {
  ModelBuilder m(9);
  m.input("x", {2}).output("y");
  m.node("Gelu", {"x"}, {"y"});
  expect_contains(errors_of(m), "does not exist at opset 9; expected opset 20 on");
}

TEST(ImportErrors, unknown_attribute_is_not_ignored) {
  ModelBuilder m = relu_model();
  set_float(*m.graph().mutable_node(0), "leak", 0.5);
  expect_contains(errors_of(m), "unknown attribute 'leak'");
}

TEST(ImportErrors, attribute_given_twice) {
  ModelBuilder m;
  m.input("x", {2, 2}).output("y");
  onnx::NodeProto& node = m.node("Gemm", {"x", "x"}, {"y"});
  set_int(node, "transA", 1);
  set_int(node, "transA", 0);
  expect_contains(errors_of(m), "expected one attribute 'transA', found two");
}

TEST(ImportErrors, attribute_of_wrong_type) {
  ModelBuilder m;
  m.input("x", {2}).output("y");
  set_string(m.node("Softmax", {"x"}, {"y"}), "axis", "one");
  expect_contains(errors_of(m), "attribute 'axis': expected an integer");
}

TEST(ImportErrors, cycle_names_its_nodes) {
  ModelBuilder m;
  m.input("x", {2}).output("c");
  m.node("Add", {"x", "c"}, {"a"}, "one");
  m.node("Relu", {"a"}, {"b"}, "two");
  m.node("Neg", {"b"}, {"c"}, "three");
  std::string text = errors_of(m);
  expect_contains(text, "the graph has a cycle");
  for (const char* name : {"'one'", "'two'", "'three'"}) expect_contains(text, name);
}

TEST(ImportErrors, missing_and_duplicated_tensors) {
  ModelBuilder m = relu_model();
  m.graph().mutable_node(0)->set_input(0, "nowhere");
  expect_contains(errors_of(m),
                  "input 'nowhere' is produced by no node, and is neither an input nor an initializer");
  ModelBuilder twice = relu_model();
  twice.node("Neg", {"x"}, {"y"}, "again");
  expect_contains(errors_of(twice),
                  "expected one definition of 'y', found node 'r' (Relu) and node 'again' (Neg)");
  ModelBuilder no_output = relu_model();
  no_output.output("z");
  expect_contains(errors_of(no_output), "output 'z' is produced by no node");
}

TEST(ImportErrors, contradictory_shapes) {
  ModelBuilder m;
  m.input("x", {2}).input("z", {3}).output("y");
  m.node("Add", {"x", "z"}, {"y"}, "sum");
  expect_contains(errors_of(m), "'sum'");
  expect_contains(errors_of(m), "[2] and [3]");
}

TEST(ImportErrors, wrong_number_of_inputs) {
  ModelBuilder m;
  m.input("x", {2}).output("y");
  m.node("Add", {"x"}, {"y"});
  expect_contains(errors_of(m), "expected at least 2 inputs");
}

TEST(ImportErrors, computed_operand_that_must_be_known) {
  ModelBuilder m;
  m.input("x", {4}).input("shape", {2}, kInt64).output("y");
  m.node("Reshape", {"x", "shape"}, {"y"});
  expect_contains(errors_of(m), "operand 1 (shape) to be known at compile time");
}

TEST(ImportErrors, free_dims_are_reported_once) {
  ModelBuilder m;
  m.input("x2", {-1, 4}, kFloat, {"batch"}).output("y");
  m.node("Det", {"x2"}, {"a"}, "d1");
  m.node("Det", {"x2"}, {"b"}, "d2");
  m.node("Add", {"a", "b"}, {"y"});
  Expected<ImportedModel> imported = m.import();
  ASSERT_FALSE(imported);
  ASSERT_EQ(imported.errors().size(), 1u) << to_string(imported.errors());
  expect_contains(to_string(imported.errors()), "free dims 'batch' must be fixed");
  expect_contains(to_string(imported.errors()), "--dim batch=N");
}

TEST(ImportErrors, options_that_fit_nothing) {
  ModelBuilder m = relu_model();
  ImportOptions dims;
  dims.dims["batch"] = 2;
  expect_contains(errors_of(m, dims), "the model has no free dim 'batch'");
  ImportOptions shapes;
  shapes.input_shapes["z"] = {2};
  expect_contains(errors_of(m, shapes), "the model has no input 'z'");
  ImportOptions contradiction;
  contradiction.input_shapes["x"] = {3};
  expect_contains(errors_of(m, contradiction), "dim 0 is 2 in the model, and was asked to be 3");
}

TEST(ImportErrors, what_no_text_form_can_say) {
  ModelBuilder nonzero;
  nonzero.output("y");
  onnx::TensorProto& ones = nonzero.ints("ones", {(1 << 22) + 1}, {});
  ones.set_data_type(kBool);
  ones.set_raw_data(std::string((1 << 22) + 1, '\1'));
  nonzero.node("NonZero", {"ones"}, {"y"});
  expect_contains(errors_of(nonzero), "NonZero with more than 2^22 results is not supported");

  ModelBuilder unnamed = relu_model();
  unnamed.floats("", {2}, {1, 2});
  expect_contains(errors_of(unnamed), "initializer without a name");
  ModelBuilder input = relu_model();
  input.input("", {2});
  expect_contains(errors_of(input), "expected inputs with names");
  ModelBuilder twice = relu_model();
  twice.floats("w", {2}, {1, 2});
  twice.floats("w", {2}, {1, 3});
  ImportOptions refuse;
  refuse.duplicate_names = DuplicateNames::kRefuse;
  expect_contains(errors_of(twice, refuse),
                  "expected one definition of 'w', found an initializer and another");
  ModelBuilder sparse = relu_model();
  sparse.graph().add_sparse_initializer()->mutable_values()->set_name("w");
  expect_contains(errors_of(sparse), "sparse initializers are not supported; store the tensor densely");
  ModelBuilder sparse_constant;
  sparse_constant.output("y");
  attribute(sparse_constant.node("Constant", {}, {"y"}), "sparse_value", onnx::AttributeProto::SPARSE_TENSOR);
  expect_contains(errors_of(sparse_constant), "attribute 'sparse_value': sparse constants are not supported");
  ModelBuilder segment = relu_model();
  segment.floats("w", {2}, {1, 2}).mutable_segment();
  segment.node("Neg", {"w"}, {"z"});
  expect_contains(errors_of(segment), "tensor 'w': segmented tensors are not supported");

  ModelBuilder no_rank = relu_model();
  no_rank.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  expect_contains(errors_of(no_rank),
                  "input 'x' has no shape, not even a rank; fix it with --input-shape x=");
  ModelBuilder negative = relu_model();
  negative.input("z", {int64_t{1} << 30, int64_t{1} << 30});
  expect_contains(errors_of(negative), "is negative or too large");
  ModelBuilder taken = relu_model();
  taken.input("x", {2});
  expect_contains(errors_of(taken), "expected inputs of different names, found 'x' twice");
  ModelBuilder no_graph;
  no_graph.model.clear_graph();
  expect_contains(errors_of(no_graph),
                  "not an ONNX model: expected a graph and an opset import, found no graph");
}

TEST(ImportErrors, model_is_larger_than_the_limits) {
  ModelBuilder m = relu_model();
  m.floats("w", {2}, {1, 2});
  m.node("Neg", {"w"}, {"z"});
  ImportOptions options;
  options.max_initializer_bytes = 7;
  expect_contains(errors_of(m, options), "tensor 'w' of 8 bytes exceeds the limit on initializers");
}

TEST(ImportErrors, options_that_contradict_the_model) {
  ModelBuilder m;
  m.input("x", {-1, -1}, kFloat, {"n", "n"}).output("y");
  m.node("Relu", {"x"}, {"y"});
  ImportOptions both;
  both.input_shapes["x"] = {2, 3};
  expect_contains(errors_of(m, both), "input 'x': free dim 'n' cannot be both 2 and 3");
  ImportOptions rank;
  rank.input_shapes["x"] = {2};
  expect_contains(errors_of(m, rank), "input 'x': expected a shape of rank 2, found one of rank 1");
  ImportOptions negative;
  negative.dims["n"] = -1;
  expect_contains(errors_of(m, negative), "input 'x': shape [-1,-1] is negative or too large");
}

// Function i calls function i + 1 twice, so that there are 2^levels nodes.
TEST(ImportErrors, functions_that_become_too_many_nodes) {
  constexpr int kLevels = 17;
  ModelBuilder m;
  auto* domain = m.model.add_opset_import();
  domain->set_domain("f");
  domain->set_version(1);
  m.input("x", {2}).output("y");
  m.node("F0", {"x"}, {"y"}).set_domain("f");
  for (int i = 0; i < kLevels; ++i) {
    onnx::FunctionProto& function = *m.model.add_functions();
    function.set_domain("f");
    function.set_name("F" + std::to_string(i));
    function.add_input("a");
    function.add_output("c");
    for (const char* name : {"", "f"}) {
      auto* import = function.add_opset_import();
      import->set_domain(name);
      import->set_version(*name ? 1 : 17);
    }
    for (auto [from, to] : {std::pair("a", "b"), std::pair("b", "c")}) {
      onnx::NodeProto& call = *function.add_node();
      call.set_op_type(i + 1 < kLevels ? "F" + std::to_string(i + 1) : "Relu");
      call.set_domain(i + 1 < kLevels ? "f" : "");
      call.add_input(from);
      call.add_output(to);
    }
  }
  expect_contains(errors_of(m), "nodes after loops, branches and functions are inlined");
}

TEST(ImportErrors, functions_of_many_bytes) {
  ModelBuilder m;
  auto* domain = m.model.add_opset_import();
  domain->set_domain("f");
  domain->set_version(1);
  m.input("x", {1}).output("y");
  onnx::FunctionProto& function = *m.model.add_functions();
  function.set_domain("f");
  function.set_name("F");
  function.add_output("c");
  function.add_opset_import()->set_version(17);
  onnx::NodeProto& constant = *function.add_node();
  constant.set_op_type("Constant");
  constant.add_output("c");
  onnx::TensorProto& value = *attribute(constant, "value", onnx::AttributeProto::TENSOR).mutable_t();
  value.set_data_type(kFloat);
  value.add_dims(1 << 23);
  value.mutable_raw_data()->assign(size_t{1} << 25, '\0');
  for (int i = 0; i < 9; ++i) m.node("F", {}, {"c" + std::to_string(i)}).set_domain("f");
  m.node("Add", {"x", "c0"}, {"y"});
  expect_contains(errors_of(m), "calls of functions whose bodies have more than 256 MiB together");
  ImportOptions large;
  large.allow_large = true;
  EXPECT_TRUE(m.import(large));
}

TEST(ImportErrors, images_that_may_have_no_rows) {
  ModelBuilder m;
  m.input("a", {1, 1, -1, 2}, kFloat, {"", "", "h"}).input("b", {1, 1, -1, 2}, kFloat, {"", "", "g"});
  m.input("boxes", {1, 4}).input("batch", {1}, kInt64).output("y");
  set_int(m.node("Concat", {"a", "b"}, {"x"}), "axis", 2);
  set_int(m.node("RoiAlign", {"x", "boxes", "batch"}, {"y"}), "sampling_ratio", 2);
  ImportOptions options;
  for (const char* name : {"h", "g"}) options.dim_ranges[name] = {name, 0, 4, 1, false, {}};
  expect_contains(errors_of(m, options), "expected the height of the images to be at least 1, found");
}

TEST(ImportErrors, dims_of_long_expressions) {
  ModelBuilder m;
  std::vector<std::string> names;
  for (int i = 0; i < 200; ++i) {
    names.push_back("x" + std::to_string(i));
    m.input(names.back(), {-1}, kFloat, {names.back() + std::string(100, 'd')});
  }
  m.output("y");
  set_int(m.node("Concat", names, {"y"}), "axis", 0);
  expect_contains(errors_of(m), "a dim that is an expression of more than 16384 characters over free dims");
}

TEST(ImportErrors, unsupported_types) {
  ModelBuilder text;
  text.input("x", {2}, kString).output("y");
  text.node("Identity", {"x"}, {"y"});
  expect_contains(errors_of(text), "element type string is not supported");
  ModelBuilder sequence = relu_model();
  sequence.graph().mutable_input(0)->mutable_type()->mutable_sequence_type();
  expect_contains(errors_of(sequence), "expected a tensor");
}

TEST(ImportErrors, initializer_data_that_do_not_fit_the_dims) {
  ModelBuilder m = relu_model();
  m.floats("w", {10000, 10000}, {1, 2});
  m.output("z");
  m.node("Neg", {"w"}, {"z"});
  expect_contains(errors_of(m), "tensor 'w': expected 100000000 values for its dims, found 2");
  ModelBuilder overflow = relu_model();
  overflow.floats("w", {INT64_MAX, 4}, {1});
  overflow.output("z");
  overflow.node("Neg", {"w"}, {"z"});
  expect_contains(errors_of(overflow), "are negative or too large");
}

TEST(TensorFiles, are_read_or_refused) {
  std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "quernel_tensor.pb";
  onnx::TensorProto tensor;
  tensor.set_name("t");
  tensor.set_data_type(kFloat);
  tensor.add_dims(1);
  tensor.add_float_data(2);
  std::ofstream(path, std::ios::binary) << tensor.SerializeAsString();
  Expected<NamedTensor> read = read_tensor_proto(path.string());
  ASSERT_TRUE(read) << to_string(read.errors());
  EXPECT_EQ(read->name, "t");
  EXPECT_EQ(element_as_f64(read->tensor, 0), 2);
  // A SequenceProto: name, elem_type TENSOR, one tensor value.
  std::string value = tensor.SerializeAsString();
  std::ofstream(path, std::ios::binary)
      << std::string("\x0a\x01s\x10\x01\x1a") + static_cast<char>(value.size()) + value;
  Expected<NamedTensor> sequence = read_tensor_proto(path.string());
  ASSERT_FALSE(sequence);
  expect_contains(to_string(sequence.errors()),
                  "expected an ONNX TensorProto, found something else; "
                  "sequence, optional and map values are not supported");
}

}  // namespace
}  // namespace quernel::onnx_test
