// What is wrong with tensors of a file: data, sparsity, quantization.
#include <gtest/gtest.h>

#include "graph/text.h"
#include "model_builder.h"

namespace quernel::tflite_test {
namespace {

using Builder = flatbuffers::FlatBufferBuilder;
using Extra = ModelBuilder::Extra;

// y = x + c, with something special about c, [2,2] of two elements of data.
ModelBuilder sum_model(const std::function<Extra(Builder&)>& extra, Type type = Type::FLOAT32,
                       std::vector<int32_t> dims = {2, 2}) {
  ModelBuilder m;
  int x = m.input("x", {2, 2}, type), y = m.output("y", {2, 2}, type);
  int c = m.constant<float>("c", std::move(dims), type, {3, 4});
  m.node(Op::ADD, {x, c}, {y});
  m.extras[c] = extra;
  return m;
}

void expect_error(const ModelBuilder& m, const std::string& text) {
  EXPECT_NE(m.errors().find(text), std::string::npos) << m.errors();
}

flatbuffers::Offset<tflite::DimensionMetadata> dense(Builder& b, int size) {
  return tflite::CreateDimensionMetadata(b, tflite::DimensionType::DENSE, size);
}

flatbuffers::Offset<tflite::DimensionMetadata> sparse(Builder& b, const std::vector<int32_t>& segments,
                                                      const std::vector<uint8_t>& indices) {
  auto s = tflite::CreateInt32Vector(b, b.CreateVector(segments)).Union();
  auto i = tflite::CreateUint8Vector(b, b.CreateVector(indices)).Union();
  return tflite::CreateDimensionMetadata(b, tflite::DimensionType::SPARSE_CSR, 0,
                                         tflite::SparseIndexVector::Int32Vector, s,
                                         tflite::SparseIndexVector::Uint8Vector, i);
}

std::function<Extra(Builder&)> rows_of(std::vector<int32_t> segments, std::vector<uint8_t> indices) {
  return [=](Builder& b) {
    Extra extra;
    auto order = b.CreateVector(std::vector<int32_t>{0, 1});
    auto levels = b.CreateVector(std::vector{dense(b, 2), sparse(b, segments, indices)});
    extra.sparsity = tflite::CreateSparsityParameters(b, order, 0, levels);
    return extra;
  };
}

TEST(TfliteTensors, sparse_constants_are_made_dense) {
  ModelBuilder m = sum_model(rows_of({0, 1, 2}, {1, 0}));
  expect_values(m.run({f32_tensor({2, 2}, {10, 20, 30, 40})}), {2, 2}, {10, 23, 34, 40});
  // A block of two columns.
  ModelBuilder blocks = sum_model([](Builder& b) {
    Extra extra;
    auto order = b.CreateVector(std::vector<int32_t>{0, 1, 2}), map = b.CreateVector(std::vector<int32_t>{1});
    auto levels = b.CreateVector(std::vector{sparse(b, {0, 1}, {1}), dense(b, 1), dense(b, 2)});
    extra.sparsity = tflite::CreateSparsityParameters(b, order, map, levels);
    return extra;
  });
  expect_values(blocks.run({f32_tensor({2, 2}, {10, 20, 30, 40})}), {2, 2}, {10, 20, 33, 44});
}

TEST(TfliteTensors, descriptions_of_sparse_constants_are_checked) {
  const char* text = "the description of a sparse tensor contradicts its shape or data";
  expect_error(sum_model(rows_of({0, 1, 3}, {1, 0})), text);
  expect_error(sum_model(rows_of({0, 1, 2}, {1, 7})), text);
  expect_error(sum_model(rows_of({0, 2, 1}, {1, 0})), text);
  expect_error(sum_model(rows_of({0, 1}, {1, 0})), text);
  expect_error(sum_model(rows_of({0, 1, 1}, {1, 0})), text);
  expect_error(sum_model(rows_of({0, 1, 2}, {1, 0}), Type::INT4), "convert the model with dense weights");
}

TEST(TfliteTensors, places_of_data_are_checked) {
  auto outside = [](Builder&) {
    Extra extra;
    extra.offset = 1 << 20;
    extra.size = 16;
    return extra;
  };
  expect_error(sum_model(outside), "data 1048576+16 lie outside of the file of");
  auto external = [](Builder&) {
    Extra extra;
    extra.external_buffer = 1;
    return extra;
  };
  expect_error(sum_model(external), "data in another file are not supported");
  expect_error(sum_model([](Builder&) { return Extra(); }, Type::FLOAT32, {1 << 30, 1 << 30}),
               "expected the shape of a constant, found");
}

TEST(TfliteTensors, data_may_lie_behind_the_flatbuffer) {
  ModelBuilder m;
  int x = m.input("x", {2}), y = m.output("y", {2}), c = m.tensor("c", {2});
  m.node(Op::ADD, {x, c}, {y});
  uint64_t place = 2;
  m.extras[c] = [&](Builder&) {
    Extra extra;
    extra.offset = place;
    extra.size = 8;
    return extra;
  };
  place = (m.bytes().size() + 15) / 16 * 16;
  std::vector<uint8_t> bytes = m.bytes();
  bytes.resize(place + 8);
  const float values[] = {5, 6};
  std::memcpy(bytes.data() + place, values, 8);
  Expected<ImportedModel> imported = import_tflite_bytes(bytes, "m.tflite");
  ASSERT_TRUE(imported) << to_string(imported.errors());
  Expected<std::vector<Tensor>> results = interpret(imported->graph, {f32_tensor({2}, {1, 2})});
  ASSERT_TRUE(results);
  expect_values(*results, {2}, {6, 8});
}

// Padding and strides of a transposed convolution of one pixel: its kernel times it.
TEST(TfliteTensors, options_may_lie_behind_the_flatbuffer) {
  ModelBuilder m;
  int x = m.input("x", {1, 1, 1, 1}), y = m.output("y", {1, 2, 2, 1});
  int w = m.floats("w", {1, 2, 2, 1}, {1, 2, 3, 4}), b = m.floats("b", {1}, {0});
  m.custom_node("Convolution2DTransposeBias", {x, w, b}, {y});
  const int32_t options[] = {2, 1, 1};
  m.set_large_options(2, sizeof options);
  const size_t place = (m.bytes().size() + 15) / 16 * 16;
  m.set_large_options(place, sizeof options);
  std::vector<uint8_t> bytes = m.bytes();
  bytes.resize(place + sizeof options);
  std::memcpy(bytes.data() + place, options, sizeof options);
  Expected<ImportedModel> imported = import_tflite_bytes(bytes, "m.tflite");
  ASSERT_TRUE(imported) << to_string(imported.errors());
  Expected<std::vector<Tensor>> results = interpret(imported->graph, {f32_tensor({1, 1, 1, 1}, {10})});
  ASSERT_TRUE(results);
  expect_values(*results, {1, 2, 2, 1}, {10, 20, 30, 40});
  // One byte is missing; the end does not fit 64 bits.
  bytes.pop_back();
  imported = import_tflite_bytes(bytes, "m.tflite");
  EXPECT_NE(to_string(imported.errors()).find("operator 0 of subgraph 0: options "), std::string::npos);
  m.set_large_options(place, UINT64_MAX);
  EXPECT_NE(m.errors().find("lie outside of the file of"), std::string::npos) << m.errors();
  m.set_large_options(UINT64_MAX, 8);
  EXPECT_NE(m.errors().find("lie outside of the file of"), std::string::npos) << m.errors();
}

std::function<Extra(Builder&)> details(tflite::QuantizationDetails kind,
                                       std::function<flatbuffers::Offset<void>(Builder&)> make) {
  return [=](Builder& b) {
    Extra extra;
    extra.quantization = tflite::CreateQuantizationParameters(b, 0, 0, 0, 0, kind, make(b));
    return extra;
  };
}

TEST(TfliteTensors, forms_of_quantization_are_checked) {
  using Details = tflite::QuantizationDetails;
  expect_error(sum_model(details(Details::CustomQuantization,
                                 [](Builder& b) { return tflite::CreateCustomQuantization(b).Union(); }),
                         Type::FLOAT32, {2}),
               "convert the model with scales per tensor or per channel");
  expect_error(
      sum_model(details(Details::BlockwiseQuantization,
                        [](Builder& b) { return tflite::CreateBlockwiseQuantization(b, 0, 3, 32).Union(); }),
                Type::FLOAT32, {2}),
      "blocks of quantized elements with zero points, or of no elements, are not supported");
  auto unknown = [](Builder&) {
    Extra extra;
    extra.unknown_field = true;
    return extra;
  };
  expect_error(sum_model(unknown, Type::FLOAT32, {2}),
               "a tensor with fields that are newer than this importer is not supported");
}

// y = x * w, with scales of blocks of w's rows in another tensor.
ModelBuilder block_model(int block, int scale_count) {
  ModelBuilder m;
  int x = m.input("x", {1, 4}), y = m.output("y", {1, 1});
  int w = m.constant<int8_t>("w", {1, 4}, Type::INT8, {1, 2, 3, 4});
  std::vector<float> values(static_cast<size_t>(scale_count), 0.5);
  values.back() = 2;
  int scales = m.floats("scales", {1, scale_count}, values);
  m.node(Op::FULLY_CONNECTED, {x, w}, {y});
  m.extras[w] = details(tflite::QuantizationDetails::BlockwiseQuantization, [=](Builder& b) {
    return tflite::CreateBlockwiseQuantization(b, scales, 0, block).Union();
  });
  return m;
}

TEST(TfliteTensors, scales_of_blocks) {
  expect_values(block_model(2, 2).run({f32_tensor({1, 4}, {1, 1, 1, 1})}), {1, 1}, {15.5});
  EXPECT_NE(print(block_model(2, 2).import()->graph).find("= dequantize"), std::string::npos)
      << "elements keep their bits";
  expect_error(block_model(3, 2), "expected rows of whole blocks of 3, found [1,4]");
  expect_error(block_model(2, 3), "expected a scale for each of the blocks [1,2], found [1,3]");
}

TEST(TfliteTensors, zero_points_are_elements) {
  for (auto [zero, type, text] :
       {std::tuple{int64_t{128}, Type::INT8, "expected zero points from -128 to 127, found 128"},
        {int64_t{-1}, Type::UINT8, "expected zero points from 0 to 255, found -1"},
        {INT64_MIN, Type::INT16, "expected zero points from -32768 to 32767, found -9223372036854775808"},
        {INT64_MAX, Type::INT32, "expected zero points from -2147483648 to 2147483647"}}) {
    ModelBuilder m;
    int x = m.input("x", {4}, type, {{0.5}, {zero}}), y = m.output("y", {4});
    m.node(Op::DEQUANTIZE, {x}, {y});
    EXPECT_NE(m.errors().find(text), std::string::npos) << m.errors();
  }
}

}  // namespace
}  // namespace quernel::tflite_test
