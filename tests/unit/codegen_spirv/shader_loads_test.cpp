// What invocations load at once, and products of halves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/spirv/compile_shaders.h"
#include "codegen/spirv/shader_printer.h"
#include "loop/parse.h"
#include "schemas/kernel_abi.h"

namespace quernel::test {
namespace {

using testing::HasSubstr;
using testing::Not;

// The shader of a kernel that compiles to a valid module.
std::string shader_of(const std::string& text, const char* target = "vulkan") {
  Expected<loop::Kernel> kernel = loop::parse_kernel(text);
  EXPECT_TRUE(kernel) << (kernel ? "" : to_string(kernel.errors()));
  Expected<codegen::ShaderImage> image = codegen::compile_shaders({*kernel}, *find_target(target), {});
  EXPECT_TRUE(image) << to_string(image.errors());
  Expected<codegen::Shader> shader = codegen::print_shader(*kernel, *find_target(target));
  EXPECT_TRUE(shader) << (shader ? "" : to_string(shader.errors()));
  return shader ? shader->text : std::string();
}

// Two stores of elements of %x at `first` and `second`, per lane.
std::string two_loads(const std::string& buffer, const std::string& first, const std::string& second) {
  return "kernel @two grid(wg0: 4) {\n  buffer " + buffer +
         " binding 0 aligned\n  buffer %y: f32[1024] write binding 1\n"
         "  for i in serial(8) {\n    %y[ramp(i * 16, 1, 8)] = %x[" +
         first + "]\n    %y[ramp(i * 16 + 8, 1, 8)] = %x[" + second + "]\n  }\n}\n";
}

TEST(ShaderLoads, neighbours_of_a_lane_are_loaded_at_once) {
  const std::string text = shader_of(
      two_loads("%x: f32[1024] read", "ramp(wg0 * 64 + i * 32, 4, 8)", "ramp(wg0 * 64 + i * 32 + 3, 4, 8)"));
  EXPECT_THAT(
      text, HasSubstr("vec4 t0 = several_vec4[window_0].at[(first_0 + uint(((wg0 * 64) + (i * 32)))) / 4u + "
                      "uint(lane)];"));
  EXPECT_THAT(text, HasSubstr("t0.x"));
  EXPECT_THAT(text, HasSubstr("t0.w"));
  EXPECT_THAT(text, Not(HasSubstr("t1.")));
}

TEST(ShaderLoads, pairs_and_halves) {
  EXPECT_THAT(shader_of(two_loads("%x: f32[1024] read", "ramp(wg0 * 2, 2, 8)", "ramp(wg0 * 2 + 1, 2, 8)")),
              HasSubstr("vec2 t0 = several_vec2"));
  const std::string halves = R"(kernel @halves {
  buffer %x: f16[64] read binding 0 aligned
  buffer %y: f32[32] write binding 1
  %y[ramp(0, 1, 8)] = cast(f32, %x[ramp(0, 4, 8)])
  %y[ramp(8, 1, 8)] = cast(f32, %x[ramp(3, 4, 8)])
}
)";
  const std::string text = shader_of(halves);
  EXPECT_THAT(text, HasSubstr("uvec2 t0 = several_uvec2[window_0]"));
  EXPECT_THAT(text, HasSubstr("(t0.x & 65535u)"));
  EXPECT_THAT(text, HasSubstr("(t0.y >> 16u)"));
}

// All invocations read the same one.
TEST(ShaderLoads, neighbours_of_a_row_are_loaded_at_once) {
  const std::string rows = R"(kernel @rows grid(wg0: 4) {
  buffer %x: f32[64] read binding 0 aligned
  buffer %y: f32[64] write binding 1
  alloc %rows: i64[2] register
  %rows[0] = wg0 * 16
  %rows[1] = wg0
  for i in serial(4) {
    %y[ramp(i * 8, 1, 8)] = broadcast(%x[%rows[0] + i * 4], 8) + broadcast(%x[%rows[0] + i * 4 + 1], 8)
    %y[ramp(i * 8 + 32, 1, 8)] = broadcast(%x[%rows[1] + i * 4], 8) + broadcast(%x[%rows[1] + i * 4 + 1], 8)
  }
}
)";
  const std::string of_rows = shader_of(rows);
  EXPECT_THAT(of_rows, HasSubstr("t0.x"));
  EXPECT_THAT(of_rows, HasSubstr("t0.y"));
  // The second row may begin anywhere.
  EXPECT_THAT(of_rows, HasSubstr("x(((rows[1] + (i * 4)) + 1))"));
}

TEST(ShaderLoads, others_stay_alone) {
  const std::string at = "ramp(wg0 * 64, 4, 8)", next = "ramp(wg0 * 64 + 1, 4, 8)";
  auto wide = [](std::string text) {
    return shader_of(std::move(text)).find("several_") != std::string::npos;
  };
  EXPECT_TRUE(wide(two_loads("%x: f32[1024] read", at, next)));
  // one of four, another four, places that are no multiples, a buffer that ends within four, and one that is written
  EXPECT_FALSE(wide(two_loads("%x: f32[1024] read", at, at)));
  EXPECT_FALSE(wide(two_loads("%x: f32[1024] read", at, "ramp(wg0 * 64 + 5, 4, 8)")));
  EXPECT_FALSE(wide(two_loads("%x: f32[1024] read", "ramp(wg0 * 6, 4, 8)", "ramp(wg0 * 6 + 1, 4, 8)")));
  EXPECT_FALSE(wide(two_loads("%x: f32[1023] read", at, next)));
  EXPECT_FALSE(wide(two_loads("%x: f32[1024] readwrite", at, next)));
  std::string anywhere = two_loads("%x: f32[1024] read", at, next);
  anywhere.erase(anywhere.find(" aligned"), 8);
  EXPECT_FALSE(wide(anywhere));
}

// What a block has loaded is not known in the next one.
TEST(ShaderLoads, blocks_load_for_themselves) {
  const std::string text = shader_of(R"(kernel @blocks grid(wg0: 4) {
  buffer %x: f32[1024] read binding 0 aligned
  buffer %y: f32[1024] write binding 1
  if wg0 < 2 {
    %y[ramp(0, 1, 8)] = %x[ramp(wg0 * 64, 4, 8)] + %x[ramp(wg0 * 64 + 1, 4, 8)]
  } else {
    %y[ramp(8, 1, 8)] = %x[ramp(wg0 * 64 + 2, 4, 8)]
  }
  for i in serial(4) {
    %y[ramp(i * 8 + 16, 1, 8)] = %x[ramp(wg0 * 64 + 3, 4, 8)]
  }
}
)");
  size_t loads = 0;
  for (size_t at = text.find("= several_vec4["); at != std::string::npos;
       at = text.find("= several_vec4[", at + 1))
    ++loads;
  EXPECT_EQ(loads, 3u) << text;
}

TEST(ShaderLoads, halves_are_multiplied_and_added_as_halves) {
  const std::string kernel = R"(kernel @halves {
  buffer %x: f16[64] read binding 0 aligned
  buffer %y: f32[32] write binding 1
  alloc %acc: f16[8] register
  %acc[ramp(0, 1, 8)] = splat(0f16, 8)
  for i in serial(4) {
    %acc[ramp(0, 1, 8)] = mulacc(%x[ramp(i * 8, 1, 8)], broadcast(%x[i], 8), %acc[ramp(0, 1, 8)])
  }
  %y[ramp(0, 1, 8)] = cast(f32, %acc[ramp(0, 1, 8)])
}
)";
  const std::string text = shader_of(kernel, "vulkan+f16sums");
  EXPECT_THAT(text, HasSubstr("float16_t acc[1];"));
  EXPECT_THAT(text, HasSubstr("fma(unpackFloat2x16("));
  EXPECT_THAT(text, HasSubstr(", acc[0])"));
  EXPECT_THAT(shader_of(kernel), Not(HasSubstr("float16_t")));
}

}  // namespace
}  // namespace quernel::test
