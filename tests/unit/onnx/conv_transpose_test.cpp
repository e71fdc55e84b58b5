// ConvTranspose of many strides, kernels, dilations, pads and groups, interpreted, and compared with its
// definition: every input is spread over the outputs that its window reaches.
#include "run_model.h"

namespace quernel::onnx_test {
namespace {

struct Spatial {
  int64_t size, kernel, stride, dilation, before, after, extra;
  int64_t out() const { return (size - 1) * stride + (kernel - 1) * dilation + 1 + extra - before - after; }
};

constexpr int64_t kGroups = 2, kIn = 2, kOut = 3;  // channels of a group

std::vector<float> whole_numbers(int64_t count, int64_t seed) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>((i * 7 + seed * 5) % 11 - 5));
  return values;
}

// x [1,G*CG,Y,X], w [G*CG,OG,KY,KX]; the bias of channel o is o.
std::vector<double> spread(const std::vector<float>& x, const std::vector<float>& w, const Spatial& y_dim,
                           const Spatial& x_dim) {
  std::vector<double> result;
  int64_t rows = y_dim.out(), columns = x_dim.out();
  for (int64_t o = 0; o < kGroups * kOut; ++o) result.insert(result.end(), rows * columns, o);
  for (int64_t c = 0; c < kGroups * kIn; ++c)
    for (int64_t o = 0; o < kOut; ++o)
      for (int64_t i = 0; i < y_dim.size; ++i)
        for (int64_t j = 0; j < x_dim.size; ++j)
          for (int64_t ky = 0; ky < y_dim.kernel; ++ky)
            for (int64_t kx = 0; kx < x_dim.kernel; ++kx) {
              int64_t row = i * y_dim.stride + ky * y_dim.dilation - y_dim.before;
              int64_t column = j * x_dim.stride + kx * x_dim.dilation - x_dim.before;
              if (row < 0 || row >= rows || column < 0 || column >= columns) continue;
              double weight = w[((c * kOut + o) * y_dim.kernel + ky) * x_dim.kernel + kx];
              result[((c / kIn * kOut + o) * rows + row) * columns + column] +=
                  weight * x[(c * y_dim.size + i) * x_dim.size + j];
            }
  return result;
}

void expect_spread(const Spatial& y_dim, const Spatial& x_dim) {
  SCOPED_TRACE(testing::Message() << "y " << testing::PrintToString(y_dim.size) << ", kernel " << x_dim.kernel
                                  << ", stride " << x_dim.stride << ", dilation " << x_dim.dilation
                                  << ", pads " << x_dim.before << " " << x_dim.after << ", extra "
                                  << x_dim.extra);
  std::vector<int64_t> x_dims{1, kGroups * kIn, y_dim.size, x_dim.size};
  std::vector<float> x = whole_numbers(kGroups * kIn * y_dim.size * x_dim.size, 1),
                     w = whole_numbers(kGroups * kIn * kOut * y_dim.kernel * x_dim.kernel, 2), bias;
  for (int64_t o = 0; o < kGroups * kOut; ++o) bias.push_back(static_cast<float>(o));
  ModelBuilder m;
  m.input("x", x_dims).output("y");
  m.floats("w", {kGroups * kIn, kOut, y_dim.kernel, x_dim.kernel}, w);
  m.floats("b", {kGroups * kOut}, bias);
  auto& node = m.node("ConvTranspose", {"x", "w", "b"}, {"y"});
  set_int(node, "group", kGroups);
  set_ints(node, "strides", {y_dim.stride, x_dim.stride});
  set_ints(node, "dilations", {y_dim.dilation, x_dim.dilation});
  set_ints(node, "pads", {y_dim.before, x_dim.before, y_dim.after, x_dim.after});
  set_ints(node, "output_padding", {y_dim.extra, x_dim.extra});
  std::vector<Tensor> y = run(m, {f32_tensor(x_dims, x)});
  ASSERT_EQ(y.size(), 1u);
  expect_values(y[0], {1, kGroups * kOut, y_dim.out(), x_dim.out()}, spread(x, w, y_dim, x_dim), 0);
}

TEST(ConvTranspose, windows_and_strides) {
  int cases = 0;
  for (int64_t kernel = 1; kernel <= 5; ++kernel)
    for (int64_t stride = 1; stride <= 4; ++stride)
      for (int64_t dilation = 1; dilation <= 3; ++dilation)
        for (int64_t before = 0; before <= 3; ++before) {
          Spatial x_dim{3, kernel, stride, dilation, before, (before + kernel) % 2, (kernel + dilation) % 2};
          if (x_dim.out() < 1) continue;
          // The other dim: a kernel with a remainder, and padding that crops a whole stride.
          expect_spread({2, 3, 2, 1, before % 3, 0, 0}, x_dim);
          ++cases;
        }
  EXPECT_GT(cases, 200);
}

TEST(ConvTranspose, weights_that_reach_few_places) {
  expect_spread({2, 2, 5, 2, 1, 0, 2}, {3, 3, 6, 4, 2, 1, 1});
  expect_spread({1, 1, 3, 1, 0, 0, 0}, {2, 1, 4, 1, 3, 0, 0});
  expect_spread({2, 5, 11, 2, 3, 0, 0}, {3, 19, 9, 1, 4, 3, 1});
  expect_spread({2, 4, 6, 3, 1, 2, 0}, {3, 17, 16, 1, 8, 0, 0});
  expect_spread({1, 2, 1000000, 1, 1, 0, 0}, {2, 2, 3000, 1, 5, 2900, 0});
  expect_spread({4, 16, 8, 1, 4, 4, 0}, {1, 7, 2, 1, 3, 3, 1});
}

// How much is cropped before the first output follows from the size, which is free.
TEST(ConvTranspose, output_shape_of_a_free_size) {
  for (const char* pad : {"SAME_UPPER", "SAME_LOWER"})
    for (int64_t size : {4, 5, 6}) {
      ModelBuilder m;
      m.input("x", {1, 1, -1}, kFloat, {"", "", "n"}).output("y");
      std::vector<float> w{1, 2, 4};
      m.floats("w", {1, 1, 3}, w);
      auto& node = m.node("ConvTranspose", {"x", "w"}, {"y"});
      set_ints(node, "strides", {2});
      set_ints(node, "output_shape", {7});
      set_string(node, "auto_pad", pad);
      std::vector<float> x = whole_numbers(size, 3);
      int64_t total = (size - 1) * 2 + 3 - 7;
      int64_t before = std::string(pad) == "SAME_UPPER" ? total / 2 : total - total / 2;
      std::vector<double> expected(7, 0.0);
      for (int64_t i = 0; i < size; ++i)
        for (int64_t k = 0; k < 3; ++k)
          if (int64_t o = i * 2 + k - before; o >= 0 && o < 7) expected[o] += w[k] * x[i];
      SCOPED_TRACE(testing::Message() << pad << " of " << size);
      expect_values(run(m, {f32_tensor({1, 1, size}, x)}).at(0), {1, 1, 7}, expected, 0);
    }
}

}  // namespace
}  // namespace quernel::onnx_test
