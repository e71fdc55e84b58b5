// Operators on free sizes, and those that find the size of their result: interpreted, and compared with
// ONNX's own formulas and with plain search, written here once more.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "run_model.h"

namespace quernel::onnx_test {
namespace {

struct ResizeCase {
  std::string mode = "linear", coordinates = "half_pixel", nearest = "round_prefer_floor";
  bool antialias = false, exclude_outside = false;
  double extrapolation = -3, start = 0.2, end = 0.9;
};

double position(const ResizeCase& r, double x, double in, double out, double scale) {
  if (r.coordinates == "asymmetric") return x / scale;
  if (r.coordinates == "align_corners") return out == 1 ? 0 : x * (in - 1) / (scale * in - 1);
  if (r.coordinates == "pytorch_half_pixel") return out > 1 ? (x + 0.5) / scale - 0.5 : 0;
  if (r.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / scale;
  if (r.coordinates == "half_pixel_symmetric")
    return in / 2 * (1 - out / (scale * in)) + (x + 0.5) / scale - 0.5;
  if (r.coordinates == "tf_crop_and_resize")
    return out > 1 ? r.start * (in - 1) + x * (r.end - r.start) * (in - 1) / (out - 1)
                   : 0.5 * (r.start + r.end) * (in - 1);
  return (x + 0.5) / scale - 0.5;
}

double weight(const ResizeCase& r, double d) {
  d = std::fabs(d);
  if (r.mode == "linear") return std::max(0.0, 1 - d);
  const double a = -0.75;
  if (d <= 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
  return d < 2 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a : 0;
}

// One element of the result of one axis: of all elements, far ones included, the weighted sum.
double resized(const ResizeCase& r, const std::vector<float>& x, double at, double out, double scale) {
  double in = static_cast<double>(x.size()), p = position(r, at, in, out, scale);
  if (r.coordinates == "tf_crop_and_resize" && (p < 0 || p > in - 1)) return r.extrapolation;
  auto value = [&](double i) { return x[static_cast<size_t>(std::clamp(i, 0.0, in - 1))]; };
  if (r.mode == "nearest") {
    if (r.nearest == "floor") return value(std::floor(p));
    if (r.nearest == "ceil") return value(std::ceil(p));
    double low = std::floor(p), half = p - low;
    bool up = half > 0.5 || (half == 0.5 && r.nearest == "round_prefer_ceil");
    return value(up ? low + 1 : low);
  }
  double stretch = r.antialias ? std::max(1.0, 1 / scale) : 1, sum = 0, total = 0;
  for (double i = -40; i < in + 40; ++i) {
    if (r.exclude_outside && (i < 0 || i >= in)) continue;
    double w = weight(r, (i - p) / stretch);
    sum += w * value(i);
    total += w;
  }
  return r.antialias || r.exclude_outside ? sum / total : sum;
}

void check_resize(const ResizeCase& r, int64_t in, double scale, int64_t size) {
  SCOPED_TRACE(r.mode + " " + r.coordinates + " " + r.nearest + (r.antialias ? " antialias" : "") +
               (r.exclude_outside ? " exclude_outside " : " ") + std::to_string(in) + " " +
               std::to_string(scale) + " " + std::to_string(size));
  ModelBuilder m(19);
  m.input("x", {-1}, kFloat, {"n"}).input("like", {-1}, kFloat, {"m"}).output("y");
  m.floats("roi", {2}, {static_cast<float>(r.start), static_cast<float>(r.end)});
  m.floats("scales", {1}, {static_cast<float>(scale)});
  m.node("Shape", {"like"}, {"sizes"});
  std::vector<std::string> operands{"x", "roi", "scales"};
  if (size > 0) operands = {"x", "roi", "", "sizes"};
  onnx::NodeProto& node = m.node("Resize", operands, {"y"});
  set_string(node, "mode", r.mode);
  set_string(node, "coordinate_transformation_mode", r.coordinates);
  set_string(node, "nearest_mode", r.nearest);
  set_float(node, "extrapolation_value", static_cast<float>(r.extrapolation));
  set_int(node, "antialias", r.antialias);
  set_int(node, "exclude_outside", r.exclude_outside);
  std::vector<float> x(static_cast<size_t>(in));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(std::sin(3.0 * static_cast<double>(i)) * 4);
  int64_t out = size > 0 ? size : static_cast<int64_t>(std::floor(static_cast<double>(in) * scale));
  if (size > 0) scale = static_cast<double>(size) / static_cast<double>(in);
  std::vector<Tensor> y = run(
      m,
      {f32_tensor({in}, x), f32_tensor({std::max<int64_t>(size, 1)},
                                       std::vector<float>(static_cast<size_t>(std::max<int64_t>(size, 1))))});
  std::vector<double> expected;
  for (int64_t o = 0; o < out; ++o)
    expected.push_back(resized(r, x, static_cast<double>(o), static_cast<double>(out), scale));
  ASSERT_EQ(y.size(), 1u);
  expect_values(y[0], {out}, expected, 1e-4);
}

TEST(FreeSizes, resize_follows_the_formulas_in_all_modes) {
  for (const char* coordinates : {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                  "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"})
    for (const char* mode : {"nearest", "linear", "cubic"})
      for (int form = 0; form < (std::string(mode) == "nearest" ? 1 : 4); ++form) {
        ResizeCase r{mode, coordinates};
        r.start = 0.25, r.end = 1.5;
        r.antialias = form & 1, r.exclude_outside = form & 2;
        for (double scale : {2.0, 0.75, 0.3125, 1.5}) check_resize(r, 7, scale, 0);
        for (int64_t size : {1, 3, 7, 11}) check_resize(r, 7, 0, size);
      }
}

TEST(FreeSizes, resize_rounds_to_the_nearest_as_asked) {
  for (const char* nearest : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})
    for (const char* coordinates : {"half_pixel", "asymmetric", "align_corners"})
      for (double scale : {2.0, 3.0, 0.5, 0.625}) {
        ResizeCase r{"nearest", coordinates, nearest};
        check_resize(r, 6, scale, 0);
        check_resize(r, 6, 0, static_cast<int64_t>(6 * scale));
      }
}

TEST(FreeSizes, resize_keeps_the_aspect_ratio) {
  for (auto [policy, height, width] : {std::tuple{"not_larger", 3, 6}, {"not_smaller", 5, 10}}) {
    ModelBuilder m(19);
    m.input("x", {-1, -1}, kFloat, {"h", "w"}).input("like", {-1, -1}, kFloat, {"a", "b"}).output("y");
    m.node("Shape", {"like"}, {"sizes"});
    onnx::NodeProto& node = m.node("Resize", {"x", "", "", "sizes"}, {"y"});
    set_string(node, "mode", "nearest");
    set_string(node, "coordinate_transformation_mode", "asymmetric");
    set_string(node, "nearest_mode", "floor");
    set_string(node, "keep_aspect_ratio_policy", policy);
    std::vector<Tensor> y =
        run(m, {f32_tensor({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7}), f32_tensor({3, 10}, std::vector<float>(30))});
    std::vector<double> expected;
    double scale = height / 2.0;
    for (int i = 0; i < height; ++i)
      for (int j = 0; j < width; ++j) expected.push_back(4 * std::floor(i / scale) + std::floor(j / scale));
    ASSERT_EQ(y.size(), 1u);
    expect_values(y[0], {height, width}, expected);
  }
}

TEST(FreeSizes, one_hot_of_a_free_depth) {
  ModelBuilder m;
  m.input("i", {-1}, kInt64, {"n"}).input("x", {-1}, kFloat, {"depth"}).output("y");
  m.floats("values", {2}, {0, 2});
  m.node("Shape", {"x"}, {"depth_of_x"});
  m.node("OneHot", {"i", "depth_of_x", "values"}, {"y"});
  expect_values(run(m, {i64_tensor({3}, {1, -1, 5}), f32_tensor({3}, {0, 0, 0})}).at(0), {3, 3},
                {0, 2, 0, 0, 0, 2, 0, 0, 0});
}

void expect_note(const ModelBuilder& m, const std::string& note) {
  Expected<ImportedModel> imported = m.import();
  ASSERT_TRUE(imported) << to_string(imported.errors());
  ASSERT_EQ(imported->notes.size(), 1u);
  EXPECT_EQ(imported->notes[0], note);
}

// Two strided steps down and up again meet the size they came from only where it is a multiple of 4.
TEST(FreeSizes, halves_that_are_doubled_again_need_whole_multiples) {
  ModelBuilder m;
  m.input("x", {1, 1, -1}, kFloat, {"", "", "n"}).output("y");
  m.floats("scales", {3}, {1, 1, 2});
  std::string down = "x", up;
  for (const char* name : {"a", "b"}) {
    onnx::NodeProto& pool = m.node("MaxPool", {down}, {name});
    set_ints(pool, "kernel_shape", {3});
    set_ints(pool, "strides", {2});
    set_ints(pool, "pads", {1, 1});
    down = name;
  }
  for (const char* name : {"c", "d"}) {
    onnx::NodeProto& resize = m.node("Resize", {down, "", "scales"}, {name});
    set_string(resize, "mode", "nearest");
    set_string(resize, "coordinate_transformation_mode", "asymmetric");
    set_string(resize, "nearest_mode", "floor");
    down = name;
  }
  set_int(m.node("Concat", {"x", "d"}, {"y"}), "axis", 1);
  expect_note(m, "free dim 'n' must be a multiple of 4");
  // Maxima of three around 0, 2, …: 2 4 6 8; of those 4 8.
  expect_values(run(m, {f32_tensor({1, 1, 8}, {1, 2, 3, 4, 5, 6, 7, 8})}).at(0), {1, 2, 8},
                {1, 2, 3, 4, 5, 6, 7, 8, 4, 4, 4, 4, 8, 8, 8, 8});
}

TEST(FreeSizes, a_dim_may_have_to_be_the_sum_of_others) {
  ModelBuilder m;
  m.input("mask", {-1}, kFloat, {"total"}).input("past", {-1}, kFloat, {"p"}).input("x", {-1}, kFloat, {"s"});
  m.output("y");
  set_int(m.node("Concat", {"past", "x"}, {"all"}), "axis", 0);
  m.node("Mul", {"all", "mask"}, {"y"});
  expect_note(m, "free dims '(p + s)' and 'total' must be equal");
  expect_values(run(m, {f32_tensor({3}, {0, 1, 2}), f32_tensor({2}, {3, 4}), f32_tensor({1}, {5})}).at(0),
                {3}, {0, 4, 10});
}

TEST(FreeSizes, a_dim_may_have_to_be_a_number) {
  ModelBuilder m;
  m.input("x", {-1, 2}, kFloat, {"n"}).input("y", {2, 1}).output("z");
  set_int(m.node("Concat", {"x", "y"}, {"z"}), "axis", 1);
  expect_note(m, "free dim 'n' must be 2");
  expect_values(run(m, {f32_tensor({2, 2}, {1, 2, 3, 4}), f32_tensor({2, 1}, {5, 6})}).at(0), {2, 3},
                {1, 2, 5, 3, 4, 6});
}

// The image element at (i, j), or 0 outside.
double pixel(const std::vector<float>& image, int height, int width, double i, double j) {
  if (i < 0 || j < 0 || i > height - 1 || j > width - 1) return 0;
  return image[static_cast<size_t>(i * width + j)];
}
double between(const std::vector<float>& image, int height, int width, double i, double j) {
  double sum = 0, y = std::floor(i), x = std::floor(j);
  for (double a : {y, y + 1})
    for (double b : {x, x + 1})
      sum += pixel(image, height, width, a, b) * (1 - std::fabs(i - a)) * (1 - std::fabs(j - b));
  return sum;
}

TEST(FreeSizes, grid_sample_reads_between_elements) {
  const int height = 3, width = 4;
  std::vector<float> image, grid{-1, -1, 0.3f, 0.1f, 1, 0.9f, -0.2f, 0.6f, 1.4f, 0, 0, -1.2f};
  for (int i = 0; i < height * width; ++i) image.push_back(static_cast<float>(i * i % 7));
  for (bool corners : {false, true}) {
    ModelBuilder m(20);
    m.input("x", {-1, 1, -1, -1}, kFloat, {"n", "", "h", "w"});
    m.input("g", {-1, -1, -1, 2}, kFloat, {"n", "a", "b", ""}).output("y");
    set_int(m.node("GridSample", {"x", "g"}, {"y"}), "align_corners", corners);
    std::vector<double> expected;
    for (size_t p = 0; p < grid.size(); p += 2) {
      double j = corners ? (grid[p] + 1) / 2 * (width - 1) : ((grid[p] + 1) * width - 1) / 2;
      double i = corners ? (grid[p + 1] + 1) / 2 * (height - 1) : ((grid[p + 1] + 1) * height - 1) / 2;
      expected.push_back(between(image, height, width, i, j));
    }
    expect_values(run(m, {f32_tensor({1, 1, height, width}, image), f32_tensor({1, 3, 2, 2}, grid)}).at(0),
                  {1, 1, 3, 2}, expected);
  }
}

TEST(FreeSizes, roi_align_of_any_number_of_regions) {
  const int height = 5, width = 4;
  std::vector<float> image;
  for (int i = 0; i < 2 * height * width; ++i) image.push_back(static_cast<float>(i * 5 % 11));
  ModelBuilder m;
  m.input("x", {-1, 1, -1, -1}, kFloat, {"n", "", "h", "w"}).input("rois", {-1, 4}, kFloat, {"r", ""});
  m.input("batch", {-1}, kInt64, {"r"}).output("y");
  onnx::NodeProto& node = m.node("RoiAlign", {"x", "rois", "batch"}, {"y"});
  set_int(node, "sampling_ratio", 1);
  set_int(node, "output_height", 2);
  std::vector<float> rois{0.5f, 0.5f, 2.5f, 3.5f, 1, 1, 3, 2, 0.25f, 2, 1.75f, 4};
  std::vector<double> expected;
  for (int r = 0; r < 3; ++r) {
    std::vector<float> of(image.begin() + r % 2 * height * width,
                          image.begin() + (r % 2 + 1) * height * width);
    double x0 = rois[4 * r], y0 = rois[4 * r + 1], x1 = rois[4 * r + 2], y1 = rois[4 * r + 3];
    for (double bin : {0.25, 0.75})
      expected.push_back(between(of, height, width, y0 - 0.5 + (y1 - y0) * bin, x0 - 0.5 + (x1 - x0) * 0.5));
  }
  expect_values(
      run(m, {f32_tensor({2, 1, height, width}, image), f32_tensor({3, 4}, rois), i64_tensor({3}, {0, 1, 0})})
          .at(0),
      {3, 1, 2, 1}, expected);
}

TEST(FreeSizes, short_transforms_of_a_free_signal) {
  ModelBuilder m;
  m.input("x", {-1, -1}, kFloat, {"n", "l"}).output("y");
  m.ints("step", {}, {2});
  m.ints("length", {}, {4});
  m.node("STFT", {"x", "step", "", "length"}, {"y"});
  std::vector<float> x{1, 3, -2, 0, 5, 4, 1, 2, 7};
  std::vector<double> expected;
  for (int frame = 0; frame < 3; ++frame)
    for (int k = 0; k < 3; ++k) {
      double real = 0, imaginary = 0;
      for (int t = 0; t < 4; ++t) {
        double angle = -2 * std::acos(-1.0) * k * t / 4;
        real += x[static_cast<size_t>(2 * frame + t)] * std::cos(angle);
        imaginary += x[static_cast<size_t>(2 * frame + t)] * std::sin(angle);
      }
      expected.insert(expected.end(), {real, imaginary});
    }
  expect_values(run(m, {f32_tensor({1, 9}, x)}).at(0), {1, 3, 3, 2}, expected);
}

TEST(FreeSizes, reverse_sequence_and_eye_like) {
  ModelBuilder m;
  m.input("x", {-1, -1}, kFloat, {"t", "b"}).input("lengths", {-1}, kInt64, {"b"}).output("y").output("e");
  m.node("ReverseSequence", {"x", "lengths"}, {"y"});
  set_int(m.node("EyeLike", {"x"}, {"e"}), "k", -1);
  std::vector<Tensor> y = run(m, {f32_tensor({3, 2}, {1, 2, 3, 4, 5, 6}), i64_tensor({2}, {3, 2})});
  expect_values(y.at(0), {3, 2}, {5, 4, 3, 2, 1, 6});
  expect_values(y.at(1), {3, 2}, {0, 0, 1, 0, 0, 1});
}

// Rows of `x`, [rows,columns], are looked for among those seen.
void check_unique(int64_t rows, int64_t columns, const std::vector<double>& x, int type, DType dtype,
                  bool sorted, bool by_axis) {
  ModelBuilder m;
  m.input("x", {-1, columns}, type, {"n", ""}).output("y").output("first").output("inverse").output("counts");
  onnx::NodeProto& node = m.node("Unique", {"x"}, {"y", "first", "inverse", "counts"});
  set_int(node, "sorted", sorted);
  if (by_axis) set_int(node, "axis", 0);
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(dtype, rows * columns)));
  for (size_t i = 0; i < x.size(); ++i)
    if (is_float(dtype))
      store_f64(dtype, bytes.data(), static_cast<int64_t>(i), x[i]);
    else
      store_i64(dtype, bytes.data(), static_cast<int64_t>(i), static_cast<int64_t>(x[i]));
  Tensor tensor{dtype, {rows, columns}, Bytes::own(std::move(bytes))};
  int64_t items = by_axis ? rows : rows * columns, width = by_axis ? columns : 1;
  // NaN sorts behind all and equals itself.
  auto less = [](double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; };
  auto before = [&](int64_t a, int64_t b) {
    return std::lexicographical_compare(x.begin() + a * width, x.begin() + (a + 1) * width,
                                        x.begin() + b * width, x.begin() + (b + 1) * width, less);
  };
  std::vector<int64_t> first;
  for (int64_t i = 0; i < items; ++i)
    if (std::none_of(first.begin(), first.end(), [&](int64_t f) { return !before(f, i) && !before(i, f); }))
      first.push_back(i);
  if (sorted) std::sort(first.begin(), first.end(), before);
  std::vector<double> inverse, counts(first.size()), values, firsts(first.begin(), first.end());
  for (int64_t i = 0; i < items; ++i)
    for (size_t k = 0; k < first.size(); ++k)
      if (!before(first[k], i) && !before(i, first[k])) {
        inverse.push_back(static_cast<double>(k));
        counts[k] += 1;
      }
  for (int64_t f : first) values.insert(values.end(), x.begin() + f * width, x.begin() + (f + 1) * width);
  std::vector<Tensor> y = run(m, {tensor});
  ASSERT_EQ(y.size(), 4u);
  int64_t count = static_cast<int64_t>(first.size());
  EXPECT_EQ(y[0].dims, (by_axis ? std::vector<int64_t>{count, columns} : std::vector<int64_t>{count}));
  ASSERT_EQ(y[0].count(), static_cast<int64_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    double found = element_as_f64(y[0], static_cast<int64_t>(i));
    EXPECT_TRUE(found == values[i] || (std::isnan(found) && std::isnan(values[i]))) << i;
  }
  expect_values(y[1], {count}, firsts);
  expect_values(y[2], {items}, inverse);
  expect_values(y[3], {count}, counts);
}

TEST(FreeSizes, unique_finds_what_a_search_finds) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  uint64_t state = 1;
  for (int64_t columns : {1, 2, 3, 5, 8})
    for (int64_t rows : {1, 4, 9})
      for (auto [type, dtype, distinct] : {std::tuple{kFloat, DType::kF32, 4},
                                           {kInt64, DType::kI64, 3},
                                           {10, DType::kF16, 3},
                                           {3, DType::kI8, 3},
                                           {2, DType::kU8, 2},
                                           {kBool, DType::kBool, 2},
                                           {11, DType::kF64, 4},
                                           {13, DType::kU64, 3}}) {
        std::vector<double> x;
        for (int64_t i = 0; i < rows * columns; ++i) {
          state = state * 6364136223846793005u + 1442695040888963407u;
          double value = static_cast<double>((state >> 40) % static_cast<uint64_t>(distinct));
          x.push_back(distinct == 4 && value == 3 ? nan : value);
        }
        for (bool sorted : {false, true})
          for (bool by_axis : {false, true}) check_unique(rows, columns, x, type, dtype, sorted, by_axis);
      }
}

}  // namespace
}  // namespace quernel::onnx_test
