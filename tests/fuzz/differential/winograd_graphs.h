// Convolutions of 3x3 windows marked for Winograd's algorithm: sizes with and without tails, borders of
// several kinds, epilogues, groups.
#pragma once

#include <cstdint>
#include <string>

namespace quernel::testing {

struct WinogradCase {
  int64_t n, h, w, channels, columns;  // of the output
  int64_t top, left, bottom, right;    // padding
  bool epilogue;
  int64_t groups = 1;  // channels and columns are those of one
};

inline std::string winograd_text(const WinogradCase& c, int tile) {
  auto s = [](int64_t v) { return std::to_string(v); };
  int64_t h = c.h + 2 - c.top - c.bottom, w = c.w + 2 - c.left - c.right;
  std::string padded =
      "f32[" + s(c.n) + "," + s(c.h + 2) + "," + s(c.w + 2) + "," + s(c.groups * c.channels) + "]";
  std::string out = "f32[" + s(c.n) + "," + s(c.h) + "," + s(c.w) + "," + s(c.groups * c.columns) + "]";
  std::string values;
  for (int64_t i = 0; i < 9 * c.channels * c.columns * c.groups; ++i)
    values += (i ? ", " : "") + std::to_string(static_cast<double>(i * 7919 % 23 - 11) / 10);
  std::string text = "graph @g(%x: f32[" + s(c.n) + "," + s(h) + "," + s(w) + "," + s(c.groups * c.channels) +
                     "], %r: " + out + ") {\n";
  text += "  %p = pad %x [0:0, " + s(c.top) + ":" + s(c.bottom) + ", " + s(c.left) + ":" + s(c.right) +
          ", 0:0] fill 0 : " + padded + "\n";
  text += "  %w = constant f32[" + s(c.groups * c.columns) + "," + s(c.channels) + ",3,3] {" + values + "}\n";
  text += "  %y = contract %p, %w axes(n: " + s(c.n) + ", h: " + s(c.h) + ", w: " + s(c.w) +
          ", g: " + s(c.groups) + ", o: " + s(c.columns) + " | c: " + s(c.channels) +
          ", i: 3, j: 3) a[n, h + i, w + j, " + s(c.channels) + "*g + c] b[" + s(c.columns) +
          "*g + o, c, i, j] out[n, h, w, " + s(c.columns) + "*g + o] acc f32 winograd " + s(tile) + " : " +
          out + "\n";
  if (!c.epilogue) return text + "  return y = %y\n}\n";
  return text + "  %s = add %y, %r : " + out + "\n  %z = abs %s : " + out + "\n  return y = %z, s = %s\n}\n";
}

inline const WinogradCase kWinogradCases[] = {
    {1, 8, 8, 16, 32, 1, 1, 1, 1, false}, {1, 7, 9, 5, 3, 1, 1, 1, 1, true},
    {2, 13, 6, 17, 33, 0, 0, 0, 0, true}, {1, 1, 1, 4, 8, 1, 1, 1, 1, false},
    {3, 5, 14, 20, 70, 2, 0, 0, 1, true}, {1, 30, 31, 8, 16, 1, 2, 3, 0, false},
    {1, 3, 50, 130, 6, 1, 1, 1, 1, true}, {1, 13, 13, 24, 48, 1, 1, 1, 1, true, 2},
    {2, 6, 9, 7, 5, 1, 0, 1, 2, true, 3},
};

}  // namespace quernel::testing
