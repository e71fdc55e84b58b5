// MaxPool never takes padding: values and indices against a direct loop, for every dtype, also where nothing
// in a window is larger than the padding.
#include <cmath>
#include <limits>
#include <random>

#include "run_model.h"

namespace quernel::onnx_test {
namespace {

struct PoolCase {
  std::string name;
  std::vector<int64_t> spatial, kernel, strides, dilations, pads;
  std::string auto_pad = "NOTSET";
  bool ceil_mode = false, column_major = false;
};

const std::vector<PoolCase>& pool_cases() {
  static const std::vector<PoolCase> cases{
      {"plain", {4, 5}, {2, 2}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
      {"pads", {4, 5}, {3, 2}, {1, 2}, {1, 1}, {1, 1, 2, 0}},
      {"column_major", {4, 5}, {3, 2}, {1, 2}, {1, 1}, {1, 1, 2, 0}, "NOTSET", false, true},
      {"same_upper", {5, 4}, {2, 3}, {2, 2}, {1, 1}, {}, "SAME_UPPER"},
      {"same_lower", {5, 4}, {2, 3}, {2, 1}, {1, 1}, {}, "SAME_LOWER"},
      {"ceil", {5, 4}, {2, 3}, {2, 2}, {1, 1}, {1, 1, 0, 1}, "NOTSET", true},
      {"dilated", {6, 5}, {2, 2}, {1, 2}, {3, 2}, {2, 1, 1, 1}},
      {"one_dim", {7}, {3}, {2}, {1}, {1, 1}, "NOTSET", true},
      {"three_dims", {3, 2, 3}, {2, 2, 2}, {1, 1, 2}, {1, 1, 1}, {1, 1, 1, 0, 1, 1}, "NOTSET", false, true},
      {"beside_the_image", {2}, {2}, {1}, {4}, {2, 3}},
  };
  return cases;
}

struct Pooled {
  std::vector<int64_t> dims;
  std::vector<double> values;
  std::vector<int64_t> indices;
};

// The definition, one window after another, over the elements of the input alone.
Pooled pool(const PoolCase& c, int64_t planes, const std::vector<double>& x, double lowest) {
  size_t rank = c.spatial.size();
  std::vector<int64_t> before(rank), out(rank);
  int64_t plane = 1, windows = 1, taps = 1;
  for (size_t d = 0; d < rank; ++d) {
    int64_t extent = (c.kernel[d] - 1) * c.dilations[d] + 1, size = c.spatial[d], stride = c.strides[d];
    if (c.auto_pad != "NOTSET") {
      out[d] = (size + stride - 1) / stride;
      int64_t total = std::max<int64_t>((out[d] - 1) * stride + extent - size, 0);
      before[d] = c.auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    } else {
      before[d] = c.pads[d];
      int64_t room = size + c.pads[d] + c.pads[rank + d] - extent;
      out[d] = (c.ceil_mode ? (room + stride - 1) / stride : room / stride) + 1;
      if (c.ceil_mode && (out[d] - 1) * stride >= size + before[d]) --out[d];
    }
    plane *= size, windows *= out[d], taps *= c.kernel[d];
  }
  Pooled result{{1, planes}, {}, {}};
  result.dims.insert(result.dims.end(), out.begin(), out.end());
  for (int64_t p = 0; p < planes; ++p)
    for (int64_t w = 0; w < windows; ++w) {
      double best = lowest;
      int64_t index = -1;
      for (int64_t t = 0; t < taps; ++t) {
        int64_t window = w, tap = t, at = 0, stride = 1, number = 0, number_stride = 1;
        bool inside = true;
        std::vector<int64_t> position(rank);
        for (size_t d = rank; d-- > 0;) {
          position[d] = window % out[d] * c.strides[d] - before[d] + tap % c.kernel[d] * c.dilations[d];
          window /= out[d], tap /= c.kernel[d];
          inside = inside && position[d] >= 0 && position[d] < c.spatial[d];
          at += position[d] * stride;
          stride *= c.spatial[d];
        }
        if (!inside) continue;
        for (size_t d = 0; d < rank; ++d)
          number += position[d] * number_stride, number_stride *= c.spatial[d];
        double value = x[static_cast<size_t>(p * plane + at)];
        if (index < 0 || value > best || (std::isnan(value) && !std::isnan(best))) {
          best = value;
          index = p * plane + (c.column_major ? number : at);
        }
      }
      result.values.push_back(best);
      result.indices.push_back(index);
    }
  return result;
}

struct Element {
  DType dtype;
  int type;  // ONNX's
};

class MaxPoolIndices : public testing::TestWithParam<Element> {};

double lowest_of(DType dtype) {
  if (is_float(dtype)) return -std::numeric_limits<double>::infinity();
  return dtype == DType::kI8 ? -128 : 0;
}

Tensor tensor_of(DType dtype, const std::vector<int64_t>& dims, const std::vector<double>& values) {
  std::vector<uint8_t> bytes(values.size() * static_cast<size_t>(element_size(dtype)));
  for (size_t i = 0; i < values.size(); ++i)

    is_float(dtype)
        ? store_f64(dtype, bytes.data(), static_cast<int64_t>(i), values[i])
        : store_i64(dtype, bytes.data(), static_cast<int64_t>(i), static_cast<int64_t>(values[i]));
  return {dtype, dims, Bytes::own(std::move(bytes))};
}

ModelBuilder model_of(const PoolCase& c, int64_t planes, int type, int64_t opset = 22) {
  ModelBuilder m(opset);
  std::vector<int64_t> dims{1, planes};
  dims.insert(dims.end(), c.spatial.begin(), c.spatial.end());
  m.input("x", dims, type).output("y").output("i");
  onnx::NodeProto& node = m.node("MaxPool", {"x"}, {"y", "i"});
  set_ints(node, "kernel_shape", c.kernel);
  set_ints(node, "strides", c.strides);
  set_ints(node, "dilations", c.dilations);
  if (c.auto_pad == "NOTSET")
    set_ints(node, "pads", c.pads);
  else
    set_string(node, "auto_pad", c.auto_pad);
  set_int(node, "ceil_mode", c.ceil_mode);
  set_int(node, "storage_order", c.column_major);
  return m;
}

// Maps whose elements are all the lowest, mostly the lowest, NaN among them, equal, or any.
std::vector<double> map_of(int kind, int64_t count, DType dtype, std::mt19937& random) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    double any = static_cast<double>(random() % 5) + (dtype == DType::kU8 ? 0 : -3), low = lowest_of(dtype);
    double nan = is_float(dtype) ? std::numeric_limits<double>::quiet_NaN() : low;
    double choice[] = {low, random() % 4 ? low : any, random() % 3 ? low : random() % 2 ? nan : any, 1, any};
    values.push_back(choice[kind]);
  }
  return values;
}

TEST_P(MaxPoolIndices, name_the_first_largest_element) {
  auto [dtype, type] = GetParam();
  std::mt19937 random(3);
  constexpr int64_t kPlanes = 2;
  for (const PoolCase& c : pool_cases())
    for (int kind = 0; kind < 5; ++kind) {
      int64_t count = kPlanes;
      for (int64_t d : c.spatial) count *= d;
      std::vector<double> x = map_of(kind, count, dtype, random);
      ModelBuilder m = model_of(c, kPlanes, type);
      std::vector<int64_t> dims{1, kPlanes};
      dims.insert(dims.end(), c.spatial.begin(), c.spatial.end());
      std::vector<Tensor> got = run(m, {tensor_of(dtype, dims, x)});
      ASSERT_EQ(got.size(), 2u);
      Pooled expected = pool(c, kPlanes, x, lowest_of(dtype));
      std::string what = c.name + ", map " + std::to_string(kind);
      ASSERT_EQ(got[0].dims, expected.dims) << what;
      ASSERT_EQ(got[1].dims, expected.dims) << what;
      for (size_t k = 0; k < expected.values.size(); ++k) {
        double value = element_as_f64(got[0], static_cast<int64_t>(k));
        EXPECT_TRUE(value == expected.values[k] || (std::isnan(value) && std::isnan(expected.values[k])))
            << what << ": value " << k << " is " << value << ", expected " << expected.values[k];
        EXPECT_EQ(got[1].at<int64_t>(static_cast<int64_t>(k)), expected.indices[k])
            << what << ": index " << k;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(, MaxPoolIndices,
                         testing::Values(Element{DType::kF32, 1}, Element{DType::kF16, 10},
                                         Element{DType::kBF16, 16}, Element{DType::kF64, 11},
                                         Element{DType::kU8, 2}, Element{DType::kI8, 3}),
                         [](const auto& info) { return std::string(to_string(info.param.dtype)); });

TEST(MaxUnpool, puts_lowest_elements_back_where_they_were) {
  PoolCase c{"", {4}, {2}, {2}, {1}, {1, 1}};
  ModelBuilder m = model_of(c, 1, kFloat);
  m.output("z");
  m.ints("shape", {3}, {1, 1, 4});
  onnx::NodeProto& node = m.node("MaxUnpool", {"y", "i", "shape"}, {"z"});
  set_ints(node, "kernel_shape", {2});
  set_ints(node, "strides", {2});
  set_ints(node, "pads", {1, 1});
  float low = -std::numeric_limits<float>::infinity();
  std::vector<Tensor> got = run(m, {f32_tensor({1, 1, 4}, {low, 5, low, low})});
  ASSERT_EQ(got.size(), 3u);
  // Windows {0}, {1, 2} and {3}.
  EXPECT_EQ(got[1].at<int64_t>(0), 0);
  EXPECT_EQ(got[1].at<int64_t>(1), 1);
  EXPECT_EQ(got[1].at<int64_t>(2), 3);
  std::vector<float> expected{low, 5, 0, low};
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(got[2].at<float>(i), expected[static_cast<size_t>(i)]) << i;
}

TEST(MaxUnpool, ignores_windows_without_elements) {
  PoolCase c{"", {2}, {2}, {1}, {4}, {2, 4}};
  ModelBuilder m = model_of(c, 1, kFloat);
  m.output("z");
  m.ints("shape", {3}, {1, 1, 8});
  onnx::NodeProto& node = m.node("MaxUnpool", {"y", "i", "shape"}, {"z"});
  set_ints(node, "kernel_shape", {2});
  std::vector<Tensor> got = run(m, {f32_tensor({1, 1, 2}, {3, 4})});
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(element_as_f64(got[2], 0), 3);
  EXPECT_EQ(element_as_f64(got[2], 1), 4);
  for (int64_t i = 2; i < got[2].count(); ++i) EXPECT_EQ(element_as_f64(got[2], i), 0) << i;
}

// Elsewhere, too, the value that a maximum starts with is no element.
TEST(LowestValues, are_elements_like_others) {
  double low = -std::numeric_limits<double>::infinity();
  {
    ModelBuilder m(22);
    m.input("x", {1, 1, 2, 2}).input("rois", {1, 5}).output("y");
    set_ints(m.node("MaxRoiPool", {"x", "rois"}, {"y"}), "pooled_shape", {1, 1});
    std::vector<Tensor> y = run(m, {f32_tensor({1, 1, 2, 2}, std::vector<float>(4, static_cast<float>(low))),
                                    f32_tensor({1, 5}, {0, 0, 0, 1, 1})});
    EXPECT_EQ(element_as_f64(y.at(0), 0), low);
  }
  {
    ModelBuilder m(22);
    m.input("boxes", {1, 2, 4}).input("scores", {1, 1, 2}).output("y");
    m.ints("most", {1}, {2});
    m.node("NonMaxSuppression", {"boxes", "scores", "most"}, {"y"});
    std::vector<Tensor> y = run(m, {f32_tensor({1, 2, 4}, {0, 0, 1, 1, 2, 2, 3, 3}),
                                    f32_tensor({1, 1, 2}, {static_cast<float>(low), 1})});
    expect_values(y.at(0), {2, 3}, {0, 0, 1, 0, 0, 0});
  }
  for (const char* op : {"ArgMax", "Hardmax", "ReduceMax", "ReduceLogSumExp"}) {
    ModelBuilder m(22);
    m.input("x", {1, 3}).output("y");
    onnx::NodeProto& node = m.node(op, {"x"}, {"y"});
    if (std::string(op) == "ArgMax") set_int(node, "axis", 1);
    std::vector<Tensor> y = run(m, {f32_tensor({1, 3}, std::vector<float>(3, static_cast<float>(low)))});
    std::string name = op;
    EXPECT_EQ(element_as_f64(y.at(0), 0), name == "ArgMax" ? 0 : name == "Hardmax" ? 1 : low) << op;
  }
}

}  // namespace
}  // namespace quernel::onnx_test
