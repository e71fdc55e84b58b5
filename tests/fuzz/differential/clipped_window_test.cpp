// Depthwise convolutions, channels last, whose windows reach beyond the image, against the interpreter:
// steps, windows and borders of several kinds, rows of one tile and of many, channels that are no whole
// vectors, floats and bytes.
#include "on_host_targets.h"

namespace quernel::testing {
namespace {

struct Case {
  int64_t n, h, w, channels;  // of the output
  int64_t window[2], step[2], dilation[2];
  int64_t top, left, bottom, right;  // padding
  bool epilogue = false;
};

// `dtype`: of image and weights. `sum`: of the result.
std::string text_of(const Case& c, const std::string& dtype, const std::string& sum) {
  auto s = [](int64_t v) { return std::to_string(v); };
  auto shape = [&](const std::string& type, int64_t h, int64_t w) {
    return type + "[" + s(c.n) + "," + s(h) + "," + s(w) + "," + s(c.channels) + "]";
  };
  int64_t h = (c.h - 1) * c.step[0] + (c.window[0] - 1) * c.dilation[0] + 1;
  int64_t w = (c.w - 1) * c.step[1] + (c.window[1] - 1) * c.dilation[1] + 1;
  std::string out = shape(sum, c.h, c.w), values;
  for (int64_t i = 0; i < c.channels * c.window[0] * c.window[1]; ++i) {
    int64_t value = i * 7919 % 23 - 11;
    values += (i ? ", " : "") + (dtype == "f32" ? std::to_string(static_cast<double>(value) / 10) : s(value));
  }
  return "graph @g(%x: " + shape(dtype, h - c.top - c.bottom, w - c.left - c.right) + ", %r: " + out +
         ") {\n" + "  %p = pad %x [0:0, " + s(c.top) + ":" + s(c.bottom) + ", " + s(c.left) + ":" +
         s(c.right) + ", 0:0] fill 0 : " + shape(dtype, h, w) + "\n" +  //
         "  %w = constant " + dtype + "[" + s(c.channels) + "," + s(c.window[0]) + "," + s(c.window[1]) +
         "] {" + values + "}\n  %y = contract %p, %w axes(n: " + s(c.n) + ", y: " + s(c.h) +
         ", x: " + s(c.w) + ", c: " + s(c.channels) + " | i: " + s(c.window[0]) + ", j: " + s(c.window[1]) +
         ") a[n, " + s(c.step[0]) + "*y + " + s(c.dilation[0]) + "*i, " + s(c.step[1]) + "*x + " +
         s(c.dilation[1]) + "*j, c] b[c, i, j] out[n, y, x, c] acc " + sum + " : " + out + "\n" +
         (c.epilogue ? "  %z = add %y, %r : " + out + "\n  return z = %z\n}\n" : "  return y = %y\n}\n");
}

const Case kCases[] = {
    {1, 7, 7, 32, {3, 3}, {1, 1}, {1, 1}, 1, 1, 1, 1, true},
    {1, 14, 14, 40, {3, 3}, {1, 1}, {1, 1}, 1, 1, 1, 1},
    {2, 7, 7, 16, {7, 7}, {1, 1}, {1, 1}, 3, 3, 3, 3},
    {1, 28, 30, 17, {5, 5}, {1, 1}, {1, 1}, 2, 2, 2, 2, true},
    {1, 14, 14, 24, {3, 3}, {2, 2}, {1, 1}, 0, 0, 1, 1},
    {2, 9, 33, 33, {5, 5}, {2, 2}, {1, 1}, 2, 2, 1, 1, true},
    {1, 19, 20, 8, {3, 3}, {1, 1}, {2, 2}, 2, 2, 2, 2},
    {1, 33, 33, 16, {3, 3}, {1, 1}, {6, 6}, 6, 6, 6, 6},   // windows that see one element
    {1, 12, 40, 100, {1, 3}, {1, 1}, {1, 1}, 0, 1, 0, 1},  // one side of the image only
    {1, 12, 23, 16, {3, 1}, {1, 1}, {1, 1}, 1, 0, 1, 0},
    {1, 11, 23, 16, {3, 3}, {3, 2}, {1, 1}, 2, 0, 0, 1},
    {1, 4, 3, 48, {5, 5}, {1, 1}, {1, 1}, 2, 2, 2, 2},  // images smaller than windows
    {1, 2, 2, 16, {3, 3}, {1, 1}, {1, 1}, 1, 1, 1, 1},
    {1, 1, 20, 16, {3, 3}, {1, 1}, {1, 1}, 1, 1, 1, 1},  // one row
    {1, 20, 1, 16, {3, 3}, {1, 1}, {1, 1}, 1, 1, 1, 1},
    {1, 9, 9, 16, {3, 3}, {1, 1}, {1, 1}, 3, 3, 3, 3},     // windows that see nothing
    {1, 9, 50, 16, {3, 20}, {1, 1}, {1, 1}, 1, 10, 1, 9},  // a window too wide to be told apart
};

TEST(ClippedWindow, of_floats) {
  double worst = 0;
  for (const Case& c : kCases) worst = std::max(worst, error_on_host_targets(text_of(c, "f32", "f32"), 1e-6));
  std::printf("largest error, as a share of the largest result: %.2g\n", worst);
}

TEST(ClippedWindow, of_bytes) {
  for (const Case& c : kCases) error_on_host_targets(text_of(c, "i8", "i32"), 1e-9);
}

}  // namespace
}  // namespace quernel::testing
