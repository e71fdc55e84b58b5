// Maps whose loops are not over the result's dims as they are, against the interpreter: borders that padding
// mirrors or repeats, axes of repetitions.
#include <array>

#include "on_host_targets.h"

namespace quernel::testing {
namespace {

std::string padded(const std::string& mode, int64_t h, int64_t w, std::array<int64_t, 4> pads) {
  auto s = [](int64_t v) { return std::to_string(v); };
  std::string out = "f32[2," + s(h + pads[0] + pads[2]) + "," + s(w + pads[1] + pads[3]) + "]";
  return "graph @g(%x: f32[2," + s(h) + "," + s(w) + "], %r: " + out + ") {\n  %e = exp %x : f32[2," + s(h) +
         "," + s(w) + "]\n  %p = pad %e [0:0, " + s(pads[0]) + ":" + s(pads[2]) + ", " + s(pads[1]) + ":" +
         s(pads[3]) + "] " + mode + " : " + out + "\n  %y = mul %p, %r : " + out + "\n  return y = %y\n}\n";
}

TEST(Map, borders_that_padding_mirrors_or_repeats) {
  for (const char* mode : {"reflect", "edge"})
    for (auto [h, w] : {std::pair<int64_t, int64_t>{5, 40}, {4, 4}, {7, 16}, {6, 17}, {4, 9000}})
      for (std::array<int64_t, 4> pads :
           {std::array<int64_t, 4>{0, 1, 0, 1}, {2, 3, 1, 0}, {3, 0, 3, 2}, {1, 0, 2, 0}})
        error_on_host_targets(padded(mode, h, w, pads), 1e-6);
}

TEST(Map, axes_of_repetitions) {
  for (int64_t width : {8, 15, 16, 20, 64})
    for (int64_t times : {2, 5}) {
      std::string w = std::to_string(width), n = std::to_string(times), all = std::to_string(width * times);
      error_on_host_targets("graph @g(%x: f32[3," + w + "], %r: f32[3," + all +
                                "]) {\n  %v = view %x [d0, d2] : f32[3," + n + "," + w +
                                "]\n  %f = reshape %v : f32[3," + all + "]\n  %y = add %f, %r : f32[3," +
                                all + "]\n  return y = %y\n}\n",
                            1e-6);
      error_on_host_targets("graph @g(%x: f32[3," + n + "]) {\n  %v = view %x [d0, d1] : f32[3," + n + "," +
                                w + "]\n  %f = reshape %v : f32[3," + all + "]\n  %y = exp %f : f32[3," +
                                all + "]\n  return y = %y\n}\n",
                            1e-6);
    }
}

// Tiles that are turned round: shorter ones for short axes; what is computed on the way is little, or much.
TEST(Map, operands_that_lie_along_another_axis) {
  for (auto [h, w] : {std::pair<int64_t, int64_t>{40, 3}, {5, 40}, {40, 12}, {12, 33}, {16, 32}, {20, 56}}) {
    std::string in = "f32[2," + std::to_string(h) + "," + std::to_string(w) + "]",
                out = "f32[2," + std::to_string(w) + "," + std::to_string(h) + "]";
    for (const char* function : {"neg", "exp", "erf"}) {
      std::string begin =
          "graph @g(%x: " + in + ", %r: " + out + ") {\n  %t = view %x [d0, d2, d1] : " + out + "\n";
      error_on_host_targets(begin + "  return y = %t\n}\n", 1e-30);
      error_on_host_targets(begin + "  %f = " + function + " %t : " + out + "\n  %m = mul %f, %r : " + out +
                                "\n  %y = add %m, %t : " + out + "\n  return y = %y\n}\n",
                            1e-6);
    }
  }
}

}  // namespace
}  // namespace quernel::testing
