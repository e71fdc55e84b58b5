// Convolutions, channels first, whose kernels put images together in scratch, against the interpreter: those
// that slide over each channel by itself and those of few channels; steps, windows and borders of several
// kinds, rows shorter and longer than vectors.
#include "on_host_targets.h"

namespace quernel::testing {
namespace {

struct Case {
  int64_t n, channels, h, w;  // of the output
  int64_t window[2], step[2], dilation[2];
  int64_t top, left, bottom, right;  // padding
  bool epilogue = false;
  int64_t seen = 0;    // input channels of a group; 0: each channel has its own
  int64_t groups = 1;  // of those that see several channels
};

std::string text_of(const Case& c) {
  auto s = [](int64_t v) { return std::to_string(v); };
  auto shape = [&](int64_t channels, int64_t h, int64_t w) {
    return "f32[" + s(c.n) + "," + s(channels) + "," + s(h) + "," + s(w) + "]";
  };
  bool depthwise = c.seen == 0;
  int64_t h = (c.h - 1) * c.step[0] + (c.window[0] - 1) * c.dilation[0] + 1;
  int64_t w = (c.w - 1) * c.step[1] + (c.window[1] - 1) * c.dilation[1] + 1;
  int64_t in = depthwise ? c.channels : c.groups * c.seen, of_group = c.channels / c.groups;
  std::string image = shape(in, h - c.top - c.bottom, w - c.left - c.right),
              out = shape(c.channels, c.h, c.w);
  std::string weights = s(c.channels) + (depthwise ? "" : "," + s(c.seen)), values;
  for (int64_t i = 0; i < c.channels * std::max<int64_t>(c.seen, 1) * c.window[0] * c.window[1]; ++i)
    values += (i ? ", " : "") + std::to_string(static_cast<double>(i * 7919 % 23 - 11) / 10);
  std::string outputs = depthwise ? "c: " + s(c.channels) : "g: " + s(c.groups) + ", o: " + s(of_group);
  std::string reduced = depthwise ? "" : "c: " + s(c.seen) + ", ";
  std::string channel = depthwise ? "c" : s(of_group) + "*g + o";
  return "graph @g(%x: " + image + ", %r: " + out + ") {\n" +  //
         "  %p = pad %x [0:0, 0:0, " + s(c.top) + ":" + s(c.bottom) + ", " + s(c.left) + ":" + s(c.right) +
         "] fill 0 : " + shape(in, h, w) + "\n" +  //
         "  %w = constant f32[" + weights + "," + s(c.window[0]) + "," + s(c.window[1]) + "] {" + values +
         "}\n" + "  %y = contract %p, %w axes(n: " + s(c.n) + ", " + outputs + ", y: " + s(c.h) +
         ", x: " + s(c.w) + " | " + reduced + "i: " + s(c.window[0]) + ", j: " + s(c.window[1]) + ") a[n, " +
         (depthwise ? "c" : s(c.seen) + "*g + c") + ", " + s(c.step[0]) + "*y + " + s(c.dilation[0]) +
         "*i, " + s(c.step[1]) + "*x + " + s(c.dilation[1]) + "*j] b[" + channel + (depthwise ? "" : ", c") +
         ", i, j] out[n, " + channel + ", y, x] acc f32 : " + out + "\n" +
         (c.epilogue ? "  %z = add %y, %r : " + out + "\n  return z = %z\n}\n" : "  return y = %y\n}\n");
}

TEST(StagedImage, of_one_channel) {
  const Case cases[] = {
      {1, 5, 7, 7, {3, 3}, {1, 1}, {1, 1}, 1, 1, 1, 1, true},
      {1, 3, 14, 14, {3, 3}, {2, 2}, {1, 1}, 1, 1, 1, 1},
      {2, 4, 28, 28, {3, 3}, {2, 2}, {1, 1}, 0, 0, 1, 1, true},
      {1, 3, 56, 61, {3, 3}, {2, 2}, {1, 1}, 1, 1, 1, 1},
      {2, 3, 30, 100, {3, 3}, {1, 1}, {1, 1}, 1, 1, 1, 1},
      {1, 3, 9, 33, {5, 5}, {2, 2}, {1, 1}, 2, 2, 2, 2, true},
      {1, 2, 19, 20, {5, 5}, {1, 1}, {2, 2}, 4, 4, 4, 4},
      {3, 2, 6, 5, {3, 3}, {2, 2}, {2, 2}, 2, 2, 2, 2},
      {1, 3, 11, 17, {7, 7}, {3, 3}, {1, 1}, 3, 3, 3, 3},
      {1, 2, 5, 21, {3, 3}, {4, 4}, {1, 1}, 0, 0, 0, 0},
      {1, 2, 5, 21, {3, 3}, {5, 5}, {1, 1}, 1, 1, 1, 1},
      {1, 2, 12, 40, {1, 3}, {1, 2}, {1, 1}, 0, 1, 0, 1},
      {1, 2, 12, 23, {3, 1}, {2, 3}, {1, 1}, 1, 0, 1, 0},
      {1, 2, 8, 1, {3, 3}, {1, 1}, {1, 1}, 1, 1, 1, 1},
      {1, 2, 8, 2, {3, 3}, {2, 1}, {1, 1}, 1, 1, 1, 1},
      {1, 2, 3, 9, {9, 9}, {1, 1}, {1, 1}, 5, 4, 5, 4},
      {1, 1, 3, 40, {3, 3}, {1, 1}, {1, 1}, 1, 19, 1, 18},
      {4, 3, 2, 12, {3, 3}, {2, 2}, {3, 3}, 3, 3, 3, 3, true},
  };
  double worst = 0;
  for (const Case& c : cases) worst = std::max(worst, error_on_host_targets(text_of(c), 1e-6));
  std::printf("largest error, as a share of the largest result: %.2g\n", worst);
}

TEST(StagedImage, of_few_channels) {
  const Case cases[] = {
      {1, 20, 28, 28, {7, 7}, {2, 2}, {1, 1}, 3, 3, 3, 3, true, 3},
      {1, 5, 14, 30, {3, 3}, {2, 2}, {1, 1}, 1, 1, 1, 1, false, 3},
      {2, 8, 9, 17, {3, 3}, {1, 1}, {1, 1}, 1, 1, 1, 1, true, 1},
      {1, 33, 6, 112, {3, 3}, {2, 2}, {1, 1}, 0, 0, 1, 1, true, 3},
      {1, 7, 5, 13, {5, 5}, {1, 3}, {1, 2}, 2, 4, 2, 4, false, 4},
      {3, 4, 12, 49, {11, 11}, {4, 4}, {1, 1}, 2, 2, 2, 2, false, 2},
      {1, 12, 7, 26, {3, 3}, {1, 1}, {2, 2}, 2, 2, 2, 2, true, 2, 3},
      {2, 12, 4, 9, {1, 3}, {1, 2}, {1, 1}, 0, 1, 0, 1, false, 2, 2},
      {1, 16, 3, 8, {3, 1}, {2, 2}, {1, 1}, 1, 0, 1, 0, false, 3},
      {1, 2, 40, 5, {3, 3}, {2, 2}, {1, 1}, 1, 1, 1, 1, false, 4},
      {1, 6, 3, 40, {1, 20}, {1, 2}, {1, 1}, 0, 10, 0, 9, false, 2},
      {1, 1, 9, 33, {3, 3}, {2, 2}, {1, 1}, 1, 1, 1, 1, false, 3},
  };
  double worst = 0;
  for (const Case& c : cases) worst = std::max(worst, error_on_host_targets(text_of(c), 1e-6));
  std::printf("largest error, as a share of the largest result: %.2g\n", worst);
}

}  // namespace
}  // namespace quernel::testing
