// A model with free dims, run at sizes where what operators ask of them has different answers, gives what the
// same model gives with these sizes fixed, or says that it cannot.
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include "run_model.h"

namespace quernel::onnx_test {

using Sizes = std::map<std::string, int64_t>;

struct Operand {
  std::string name;
  std::vector<std::string> dims;  // numbers, or names of free dims
  int type = kFloat;
};

struct Member {
  std::string name;
  int64_t opset;
  std::vector<Operand> operands;
  std::function<void(ModelBuilder&)> build;  // of operands to y
  std::vector<Sizes> right;                  // sizes that must work; none: the model must be refused
  std::vector<Sizes> others = {};            // sizes that may fail when the inputs are bound
};

inline bool is_number(const std::string& dim) { return std::isdigit(static_cast<unsigned char>(dim[0])); }

inline ModelBuilder model_of(const Member& member) {
  ModelBuilder m(member.opset);
  for (const Operand& operand : member.operands) {
    std::vector<int64_t> dims;
    std::vector<std::string> names;
    for (const std::string& dim : operand.dims) {
      dims.push_back(is_number(dim) ? std::stoll(dim) : -1);
      names.push_back(is_number(dim) ? "" : dim);
    }
    m.input(operand.name, dims, operand.type, names);
  }
  m.output("y");
  member.build(m);
  return m;
}

inline std::vector<Tensor> inputs_of(const Member& member, const Sizes& sizes) {
  std::vector<Tensor> inputs;
  for (const Operand& operand : member.operands) {
    std::vector<int64_t> dims;
    for (const std::string& dim : operand.dims)
      dims.push_back(is_number(dim) ? std::stoll(dim) : sizes.at(dim));
    int64_t count = element_count(dims).value_or(0);
    if (operand.type == kInt64) {
      std::vector<int64_t> values;
      for (int64_t i = 0; i < count; ++i) values.push_back(i * 5 % 3 == 2 ? 1 : 0);
      inputs.push_back(i64_tensor(dims, values));
    } else if (operand.type == kBool) {
      std::vector<uint8_t> values;
      for (int64_t i = 0; i < count; ++i) values.push_back(i % 3 != 1);
      inputs.push_back(make_tensor<uint8_t>(DType::kBool, dims, values));
    } else {
      std::vector<float> values;
      for (int64_t i = 0; i < count; ++i)
        values.push_back(static_cast<float>(std::sin(2.5 * static_cast<double>(i) + 1) * 4));
      inputs.push_back(f32_tensor(dims, values));
    }
  }
  return inputs;
}

inline std::string text_of(const Sizes& sizes) {
  std::string text;
  for (const auto& [name, size] : sizes) text += " " + name + "=" + std::to_string(size);
  return text;
}

inline void expect_same(const Tensor& found, const Tensor& expected) {
  EXPECT_EQ(found.dims, expected.dims);
  if (found.dims != expected.dims) return;
  for (int64_t i = 0; i < expected.count(); ++i) {
    double a = element_as_f64(found, i), b = element_as_f64(expected, i);
    EXPECT_TRUE(std::abs(a - b) <= 1e-5 || (std::isnan(a) && std::isnan(b)))
        << "element " << i << ": " << a << ", expected " << b;
  }
}

inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

// What the model gives where the sizes are fixed; nothing where they make no sense.
inline std::optional<Tensor> fixed_result(const Member& member, const ModelBuilder& m, const Sizes& sizes) {
  ImportOptions options;
  options.dims = sizes;
  Expected<ImportedModel> imported = m.import(options);
  if (!imported) return std::nullopt;
  Expected<std::vector<Tensor>> outputs = interpret(imported->graph, inputs_of(member, sizes));
  return outputs ? std::optional((*outputs)[0]) : std::nullopt;
}

inline void check_member(const Member& member) {
  SCOPED_TRACE(member.name);
  ModelBuilder m = model_of(member);
  Expected<ImportedModel> imported = m.import();
  if (!imported) {
    EXPECT_TRUE(member.right.empty()) << to_string(imported.errors());
    expect_contains(to_string(imported.errors()), "--dim ");
    return;
  }
  EXPECT_FALSE(member.right.empty()) << "expected to be refused";
  if (Status ok = verify(imported->graph); !ok) ADD_FAILURE() << to_string(ok.errors());
  auto run_at = [&](const Sizes& sizes, bool may_fail) {
    SCOPED_TRACE(text_of(sizes));
    std::optional<Tensor> expected = fixed_result(member, m, sizes);
    Expected<std::vector<Tensor>> found = interpret(imported->graph, inputs_of(member, sizes));
    if (!found) {
      std::string why = to_string(found.errors());
      EXPECT_TRUE(may_fail) << why;
      EXPECT_TRUE(why.find("symbol '") != why.npos || why.find("input '") != why.npos) << why;
      return;
    }
    EXPECT_TRUE(expected) << "the sizes make no sense, but give a result";
    if (expected) expect_same((*found)[0], *expected);
  };
  for (const Sizes& sizes : member.right) run_at(sizes, false);
  for (const Sizes& sizes : member.others) run_at(sizes, true);
}

inline std::vector<Sizes> one_dim(const std::vector<int64_t>& values) {
  std::vector<Sizes> sizes;
  for (int64_t value : values) sizes.push_back({{"n", value}});
  return sizes;
}
inline std::vector<Sizes> two_dims(const std::vector<std::pair<int64_t, int64_t>>& values) {
  std::vector<Sizes> sizes;
  for (auto [n, m] : values) sizes.push_back({{"n", n}, {"m", m}});
  return sizes;
}

inline const std::vector<Sizes> kSmall = one_dim({1, 2, 3, 5, 7});

}  // namespace quernel::onnx_test
