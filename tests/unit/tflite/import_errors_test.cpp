// What cannot be imported is refused with one clear diagnostic for each thing that is wrong.
#include <gtest/gtest.h>

#include <cstring>

#include "model_builder.h"

namespace quernel::tflite_test {
namespace {

using Builder = flatbuffers::FlatBufferBuilder;

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

std::string errors_of(const std::vector<uint8_t>& bytes) {
  Expected<ImportedModel> imported = import_tflite_bytes(bytes, "m.tflite");
  return imported ? "no error" : to_string(imported.errors());
}

ModelBuilder relu_model() {
  ModelBuilder m;
  int x = m.input("x", {2}), y = m.output("y", {2});
  m.node(Op::RELU, {x}, {y});
  return m;
}

TEST(TfliteErrors, damaged_files_give_one_diagnostic) {
  expect_contains(errors_of({}), "expected a TensorFlow Lite model, which has TFL3 at byte 4");
  expect_contains(errors_of({1, 2, 3, 4, 5, 6, 7, 8, 9}), "expected a TensorFlow Lite model");
  std::vector<uint8_t> bytes = relu_model().bytes();
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::vector<uint8_t> damaged = bytes;
    damaged[i] ^= 0xff;
    std::string text = errors_of(damaged);
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 2) << i << ": " << text;
  }
  for (size_t size = 8; size + 16 < bytes.size(); size += 4) {
    std::string text = errors_of({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)});
    expect_contains(text,
                    "the TensorFlow Lite model is damaged: an offset or a size lies outside of the file");
  }
  ModelBuilder future = relu_model();
  future.version = 4;
  expect_contains(future.errors(), "version 4 of the TensorFlow Lite format is not supported, expected 3");
}

TEST(TfliteErrors, foreign_files_are_named_with_their_way_to_tensorflow_lite) {
  std::string zip("PK\x03\x04", 4);
  zip.resize(30);
  const std::string python = "archive/data.pkl", keras = "metadata.json",
                    safetensors("\x28\0\0\0\0\0\0\0", 8);
  auto named = [&](const std::string& name) {
    std::string bytes = zip;
    bytes[26] = static_cast<char>(name.size());
    return bytes + name + "contents";
  };
  const std::pair<std::string, std::vector<const char*>> files[] = {
      {named(python), {"expected a TensorFlow Lite model, found a PyTorch file", "litert_torch.convert"}},
      {named(keras), {"found a Keras model (a zip archive)", "TFLiteConverter"}},
      {named("notes.txt"), {"found a zip archive", "unpack it"}},
      {"\x89HDF\r\n\x1a\n", {"found an HDF5 file (as Keras writes)", "TFLiteConverter"}},
      {safetensors + "{\"w\":{\"dtype\":\"F32\",", {"found a safetensors file"}},
      {std::string("\x80\x02\x8a\x0al\xfc\x9c\x46", 8), {"found a pickle", "litert_torch.convert"}},
      {"<!DOCTYPE html><title>404</title>", {"found a web page (HTML)", "raw"}},
  };
  for (const auto& [bytes, expected] : files)
    for (const char* text : expected) expect_contains(errors_of({bytes.begin(), bytes.end()}), text);
}

TEST(TfliteErrors, numbers_are_checked) {
  ModelBuilder m = relu_model();
  m.outputs = {7};
  expect_contains(m.errors(), "subgraph 0: input or output: expected a number from 0 to 1, found 7");
  ModelBuilder node = relu_model();
  node.node(Op::RELU, {9}, {1});
  expect_contains(node.errors(), "operator 1 of subgraph 0: input: expected a number from -1 to 1, found 9");
  ModelBuilder none = relu_model();
  none.outputs.clear();
  expect_contains(none.errors(), "the model has no outputs");
  flatbuffers::FlatBufferBuilder b;
  b.Finish(tflite::CreateModel(b, 3), "TFL3");
  expect_contains(errors_of({b.GetBufferPointer(), b.GetBufferPointer() + b.GetSize()}),
                  "expected a model with a subgraph, found none");
}

TEST(TfliteErrors, all_unsupported_operators_are_reported) {
  ModelBuilder m;
  int x = m.input("x", {2}), a = m.tensor("a", {2}), b = m.tensor("b", {2}), y = m.output("y", {2});
  m.node(Op::HASHTABLE_SIZE, {x}, {a});
  m.node(Op::CUSTOM, {x}, {b}, tflite::BuiltinOptions::NONE, {}, "MyOperator");
  m.node(Op::ADD, {a, b}, {y});
  std::string text = m.errors();
  expect_contains(text,
                  "node 'a' (HASHTABLE_SIZE): operator HASHTABLE_SIZE is not supported; "
                  "replace it by supported operators (`quernel check` lists all that are missing)");
  expect_contains(text, "node 'b' (MyOperator): custom operator MyOperator is not supported");
  EXPECT_EQ(text.find("node 'y'"), std::string::npos) << text;
}

TEST(TfliteErrors, options_are_never_ignored) {
  ModelBuilder m;
  int x = m.input("x", {2}), y = m.output("y", {2});
  m.node<tflite::LeakyReluOptions>(Op::RELU, {x}, {y},
                                   [](Builder& f) { return tflite::CreateLeakyReluOptions(f, 1); });
  expect_contains(m.errors(), "the operator has options that are not known");
  ModelBuilder wrong;
  x = wrong.input("x", {2}), y = wrong.output("y", {2});
  wrong.node<tflite::LeakyReluOptions>(Op::ADD, {x, x}, {y},
                                       [](Builder& f) { return tflite::CreateLeakyReluOptions(f, 1); });
  expect_contains(wrong.errors(), "expected options of the operator's own kind, found those of another one");
  ModelBuilder future;
  x = future.input("x", {2}), y = future.output("y", {2});
  future.node(Op::ADD, {x, x}, {y}, tflite::BuiltinOptions::AddOptions, [](Builder& f) {
    flatbuffers::uoffset_t start = f.StartTable();
    f.AddElement<int32_t>(flatbuffers::FieldIndexToOffset(5), 1, 0);
    return flatbuffers::Offset<void>(f.EndTable(start));
  });
  expect_contains(future.errors(), "the options have field 5, which is newer than this importer");
  ModelBuilder sign_bit;
  x = sign_bit.input("x", {2}), y = sign_bit.output("y", {2});
  sign_bit.node<tflite::AddOptions>(Op::ADD, {x, x}, {y}, [](Builder& f) {
    return tflite::CreateAddOptions(f, tflite::ActivationFunctionType::SIGN_BIT);
  });
  expect_contains(
      sign_bit.errors(),
      "option 'fused_activation_function': expected none, a clamp, or tanh of floats, found SIGN_BIT");
}

TEST(TfliteErrors, operands_are_checked) {
  ModelBuilder m;
  int x = m.input("x", {2}), y = m.output("y", {2});
  m.node(Op::ADD, {x, -1}, {y});
  expect_contains(m.errors(), "expected at least 2 inputs, found input 1 missing");
  ModelBuilder more = relu_model();
  more.node(Op::RELU, {0, 0}, {1});
  expect_contains(more.errors(), "expected at most 1 inputs, found 2");
  ModelBuilder early;
  x = early.input("x", {2}), y = early.output("y", {2});
  int later = early.tensor("later", {2});
  early.node(Op::RELU, {later}, {y});
  early.node(Op::RELU, {x}, {later});
  expect_contains(early.errors(), "operand 'later' is computed by no earlier operator, and has no data");
  ModelBuilder types;
  x = types.input("x", {2}, Type::INT32), y = types.output("y", {2});
  types.node(Op::NEG, {x}, {y});
  expect_contains(types.errors(), "result 0: the file says f32, but operands like these give i32");
  ModelBuilder kernel;
  x = kernel.input("x", {2}, Type::INT32), y = kernel.output("y", {2}, Type::INT32);
  kernel.node(Op::COS, {x}, {y});
  expect_contains(kernel.errors(),
                  "the operator is not supported with operands of i32; convert the model with");
  ModelBuilder strings;
  x = strings.input("x", {2}, Type::STRING), y = strings.output("y", {2}, Type::STRING);
  strings.node(Op::RELU, {x}, {y});
  expect_contains(strings.errors(), "node 'x' (input): tensors of string are not supported");
  ModelBuilder rank;
  x = rank.input("x", {2}), y = rank.output("y", {2});
  rank.node(Op::MAX_POOL_2D, {x}, {y});
  expect_contains(rank.errors(), "operand 0: expected a shape of rank 4, found [2]");
  ModelBuilder dtype;
  x = dtype.input("x", {2}), y = dtype.output("y", {2}, Type::BOOL);
  dtype.node(Op::LOGICAL_NOT, {x}, {y});
  expect_contains(dtype.errors(), "operand 0: expected bool, found f32");
}

TEST(TfliteErrors, constants_are_checked) {
  ModelBuilder m;
  int x = m.input("x", {2}), y = m.output("y", {2}), c = m.floats("c", {2}, {1});
  m.node(Op::ADD, {x, c}, {y});
  expect_contains(m.errors(), "expected 8 bytes for f32[2], found 4");
  ImportOptions options;
  options.keep_inputs = {"x"};
  expect_contains(relu_model().errors(options), "--keep-input: expected an ONNX model");
}

TEST(TfliteErrors, quantization_is_checked) {
  auto errors = [](const Quant& q, std::vector<int32_t> dims = {2}) {
    ModelBuilder m;
    int x = m.input("x", dims, Type::INT8, q), y = m.output("y", dims);
    m.node(Op::DEQUANTIZE, {x}, {y});
    return m.errors();
  };
  expect_contains(errors({{-1}, {0}}), "expected scales above 0, found -1");
  expect_contains(errors({{1}, {0, 0}}), "expected as many zero points as scales, found 2 and 1");
  expect_contains(errors({{1, 1, 1}, {0, 0, 0}, 1}, {2, 2}),
                  "expected a scale for each index of dim 1, found 3 scales");
  ModelBuilder m;
  int a = m.input("a", {2}, Type::INT8, {{1}, {0}}), b = m.input("b", {2}, Type::INT8, {{2}, {0}});
  int y = m.output("y", {2}, Type::INT8, {{1}, {0}});
  m.node(Op::MAXIMUM, {a, b}, {y});
  expect_contains(m.errors(), "expected operands and result of one scale and zero point");
}

}  // namespace
}  // namespace quernel::tflite_test
