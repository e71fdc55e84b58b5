// The SPIR-V that kernels become: tables, features, where buffers live, barriers. That shaders compute what
// the loop IR means is for tests with a device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

#include "codegen/spirv/compile_shaders.h"
#include "codegen/spirv/distribution.h"
#include "codegen/spirv/shader_printer.h"
#include "codegen/spirv/spirv_module.h"
#include "loop/parse.h"
#include "loop/passes.h"
#include "schemas/kernel_abi.h"

namespace quernel::test {
namespace {

using codegen::Placement;
using testing::HasSubstr;
using testing::Not;

loop::Kernel kernel_of(const std::string& text) {
  Expected<loop::Kernel> kernel = loop::parse_kernel(text);
  EXPECT_TRUE(kernel) << (kernel ? "" : to_string(kernel.errors()));
  return std::move(*kernel);
}

Target vulkan() { return *find_target("vulkan"); }

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

std::string shader_of(const std::string& text, const char* target = "vulkan") {
  Expected<codegen::Shader> shader = codegen::print_shader(kernel_of(text), *find_target(target));
  EXPECT_TRUE(shader) << (shader ? "" : to_string(shader.errors()));
  return shader ? shader->text : std::string();
}

constexpr const char* kScale = R"(kernel @scale symbols($n) grid(wg0: 4) {
  buffer %x: f32[64] read binding 0
  buffer %y: f32[64] write binding 1
  %y[ramp(wg0 * 16, 1, 16)] = %x[ramp(wg0 * 16, 1, 16)] * splat(2f32, 16)
}
)";

TEST(Shaders, table_holds_modules_and_what_they_need) {
  loop::Kernel whole = kernel_of(R"(kernel @count {
  buffer %x: i64[4] write binding 0
  buffer %y: u8[4] read binding 1
  %x[0] = cast(i64, %y[0])
}
)");
  Expected<codegen::ShaderImage> image = codegen::compile_shaders({kernel_of(kScale), whole}, vulkan(), {});
  ASSERT_TRUE(image) << to_string(image.errors());
  const auto* table = reinterpret_cast<const qnl_spirv_table*>(image->table.data());
  ASSERT_GE(image->table.size(), sizeof *table + 2 * sizeof table->kernels[0]);
  EXPECT_EQ(table->magic, QNL_SPIRV_MAGIC);
  EXPECT_EQ(table->abi_version, QNL_SPIRV_ABI_VERSION);
  ASSERT_EQ(table->kernel_count, 2u);
  const qnl_spirv_kernel &scale = table->kernels[0], &count = table->kernels[1];
  EXPECT_EQ(scale.local_size, 16u);
  EXPECT_EQ(scale.binding_count, 2u);
  EXPECT_EQ(scale.symbol_count, 1u);
  EXPECT_EQ(scale.features, QNL_SPIRV_VULKAN_1_1);
  EXPECT_EQ(count.local_size, 1u);
  EXPECT_EQ(count.features, QNL_SPIRV_VULKAN_1_1 | QNL_SPIRV_INT64 | QNL_SPIRV_STORAGE_8);
  EXPECT_EQ(image->features, scale.features | count.features);
  EXPECT_EQ(count.code_offset, scale.code_offset + scale.code_bytes);
  EXPECT_EQ(count.code_offset + count.code_bytes, image->table.size());
  for (const qnl_spirv_kernel* kernel : {&scale, &count}) {
    uint32_t magic = 0;
    std::memcpy(&magic, image->table.data() + kernel->code_offset, sizeof magic);
    EXPECT_EQ(magic, 0x07230203u);
  }
  Expected<codegen::ShaderImage> again = codegen::compile_shaders({kernel_of(kScale), whole}, vulkan(), {});
  ASSERT_TRUE(again);
  EXPECT_EQ(again->table, image->table);
}

TEST(Shaders, too_much_workgroup_memory_is_refused) {
  Expected<codegen::ShaderImage> image = codegen::compile_shaders({kernel_of(R"(kernel @large {
  buffer %x: f32[8] read binding 0
  buffer %y: f32[8] write binding 1
  alloc %row: f32[8192] shared
  for i in serial(1024) {
    %row[ramp(i * 8, 1, 8)] = %x[ramp(0, 1, 8)]
  }
  for j in serial(1024) {
    %y[ramp(0, 1, 8)] = %row[ramp(j * 8, 1, 8)]
  }
}
)")},
                                                                  vulkan(), {});
  ASSERT_FALSE(image);
  EXPECT_THAT(to_string(image.errors()),
              HasSubstr("kernel 'large' needs 32768 bytes of workgroup memory; target 'vulkan' has 16384"));
}

TEST(Shaders, what_invocations_cannot_see_is_refused) {
  auto refused = [](const std::string& body) {
    std::string text = R"(kernel @lanes {
  buffer %x: f32[64] read binding 0
  buffer %b: u8[64] read binding 1
  buffer %y: f32[64] write binding 2
)" + body + "}\n";
    Expected<codegen::Shader> shader = codegen::print_shader(kernel_of(text), vulkan());
    return shader ? std::string("accepted") : to_string(shader.errors());
  };
  EXPECT_THAT(refused("  %y[ramp(0, 1, 8)] = interleave_lower(%x[ramp(0, 1, 8)], %x[ramp(8, 1, 8)])\n"),
              HasSubstr("kernel 'lanes' as a shader: lanes change places"));
  EXPECT_THAT(refused("  let words: i32x4 = dot_2x2(splat(1i32, 4), splat(1i32, 4), splat(1i32, 4))\n"
                      "  %y[ramp(0, 1, 4)] = cast(f32, words)\n"),
              HasSubstr("kernel 'lanes' as a shader: rows are multiplied by columns across lanes"));
  EXPECT_THAT(
      refused("  let bytes: u8x32 = %b[ramp(0, 1, 32)]\n  %y[ramp(0, 1, 8)] = bitcast(f32x8, bytes)\n"),
      HasSubstr("kernel 'lanes' as a shader: a variable of another lane"));
  EXPECT_THAT(refused("  alloc %r: u8[32] register\n  %r[ramp(0, 1, 32)] = %b[ramp(0, 1, 32)]\n"
                      "  %y[ramp(0, 1, 8)] = bitcast(f32x8, %r[ramp(0, 1, 32)])\n"),
              HasSubstr("kernel 'lanes' as a shader: a register of another lane"));
  EXPECT_THAT(refused("  if %x[ramp(0, 1, 8)] < splat(0f32, 8) {\n    %y[0] = 1f32\n  }\n"),
              HasSubstr("kernel 'lanes' as a shader: a branch that depends on a vector"));
  EXPECT_EQ(refused("  %y[ramp(0, 1, 8)] = bitcast(f32x8, %b[ramp(0, 1, 32)])\n"), "accepted");
}

TEST(Shaders, symbols_and_what_push_constants_cannot_hold_lie_in_a_uniform_buffer) {
  auto with_bindings = [](int count) {
    std::string text = "kernel @many {\n";
    for (int i = 0; i < count; ++i)
      text += "  buffer %y" + std::to_string(i) + ": f32[8] write binding " + std::to_string(i) + "\n";
    return text + "  %y0[0] = 0f32\n}\n";
  };
  // One word for the workgroups, one for each binding; 32 words fit.
  EXPECT_THAT(shader_of(with_bindings(31)), HasSubstr("push_constant"));
  EXPECT_THAT(shader_of(with_bindings(32)), Not(HasSubstr("push_constant")));
  EXPECT_THAT(shader_of(with_bindings(32)), HasSubstr("uvec4 words[9]"));
  std::string with_symbol =
      shader_of("kernel @one symbols($s) {\n  buffer %y: f32[8] write binding 0\n  %y[$s] = 0f32\n}\n");
  EXPECT_THAT(with_symbol, Not(HasSubstr("push_constant")));
  EXPECT_THAT(with_symbol, HasSubstr("uvec4 words[1]"));
}

TEST(Distribution, buffers_go_where_their_accesses_allow_it) {
  loop::Kernel kernel = kernel_of(R"(kernel @places {
  buffer %x: f32[64] read binding 0
  buffer %y: f32[64] write binding 1
  alloc %acc: f32[16] register
  alloc %offset: i64[1] register
  alloc %row: f32[64] shared
  %offset[0] = 3
  %acc[ramp(0, 1, 8)] = %x[ramp(0, 1, 8)]
  %acc[ramp(8, 1, 8)] = %x[ramp(8, 1, 8)]
  for i in serial(8) {
    %row[ramp(i * 8, 1, 8)] = %acc[ramp(0, 1, 8)]
  }
  %y[%offset[0]] = %row[7]
}
)");
  codegen::Distribution distribution = codegen::distribute(kernel);
  EXPECT_EQ(distribution.invocations, 8);
  std::map<std::string, Placement> places;
  for (const auto& [buffer, placement] : distribution.placements) places[buffer->name] = placement;
  EXPECT_EQ(places["acc"], Placement::kDistributed);
  EXPECT_EQ(places["offset"], Placement::kReplicated);
  EXPECT_EQ(places["row"], Placement::kShared);
}

TEST(Shaders, barriers_stand_between_writing_and_reading_other_lanes) {
  // Inside the loop the row is written before it is read, and read before it is written again.
  std::string text = shader_of(R"(kernel @turn {
  buffer %x: f32[64] read binding 0
  buffer %y: f32[64] write binding 1
  alloc %row: f32[8] shared
  for i in serial(8) {
    %row[ramp(0, 1, 8)] = %x[ramp(i * 8, 1, 8)]
    %y[ramp(i * 8, 1, 8)] = %row[ramp(7, -1, 8)]
  }
}
)");
  size_t loop = text.find("for (int i = 0"), write = text.find("row[lane]", loop);
  ASSERT_NE(loop, std::string::npos);
  ASSERT_NE(write, std::string::npos);
  size_t first = text.find("barrier();", loop), second = text.find("barrier();", write);
  EXPECT_LT(first, write) << text;
  ASSERT_NE(second, std::string::npos) << text;
  EXPECT_EQ(text.find("barrier();", second + 1), std::string::npos) << text;
}

// The vectors that are written and read begin at multiples of their length, so a lane meets only itself.
TEST(Shaders, what_a_lane_has_for_itself_needs_no_barrier) {
  auto barriers = [](const std::string& place) {
    return count(shader_of(R"(kernel @own {
  buffer %x: f32[64] read binding 0
  buffer %y: f32[64] write binding 1
  alloc %row: f32[72] shared
  for i in serial(8) {
    %row[ramp(i * 8, 1, 8)] = %x[ramp(i * 8, 1, 8)]
  }
  for j in serial(8) {
    %y[ramp(j * 8, 1, 8)] = %row[ramp()" +
                           place +
                           R"(, 1, 8)]
  }
}
)"),
                 "barrier();");
  };
  EXPECT_EQ(barriers("j * 8"), 0U);
  EXPECT_EQ(barriers("j * 8 + 8"), 0U);
  EXPECT_GT(barriers("j * 8 + 1"), 0U);
  EXPECT_GT(barriers("j * 4"), 0U);
}

TEST(Shaders, scalars_are_stored_by_one_invocation) {
  std::string text = shader_of(R"(kernel @sum {
  buffer %x: f32[8] read binding 0
  buffer %y: f32[1] write binding 1
  %y[0] = reduce_lanes(add, %x[ramp(0, 1, 8)])
}
)");
  EXPECT_THAT(text, HasSubstr("if (lane == 0) {"));
  // The fold is called by all of them.
  EXPECT_LT(text.rfind("fold_add_f32_8("), text.find("if (lane == 0)"));
}

TEST(Shaders, products_of_bytes_are_one_instruction_where_the_target_has_it) {
  loop::Kernel kernel = kernel_of(R"(kernel @dots {
  buffer %a: i32[8] read binding 0
  buffer %b: u32[8] read binding 1
  buffer %y: i32[8] write binding 2
  %y[ramp(0, 1, 8)] = dot(%b[ramp(0, 1, 8)], %a[ramp(0, 1, 8)], %a[ramp(0, 1, 8)])
}
)");
  Target target = *find_target("vulkan+dotprod");
  EXPECT_THAT(codegen::print_shader(kernel, target)->text, HasSubstr("qnl_dot_i32_u32(a(lane), b(lane))"))
      << "the signed one first";
  Expected<codegen::ShaderImage> by_instruction = codegen::compile_shaders({kernel}, target, {});
  ASSERT_TRUE(by_instruction) << to_string(by_instruction.errors());
  EXPECT_EQ(by_instruction->features, QNL_SPIRV_VULKAN_1_1 | QNL_SPIRV_DOTPROD);
  Expected<codegen::ShaderImage> without = codegen::compile_shaders({kernel}, vulkan(), {});
  ASSERT_TRUE(without) << to_string(without.errors());
  EXPECT_EQ(without->features, QNL_SPIRV_VULKAN_1_1);
}

// By the device's instructions but for denormals, in modules that say how the instructions round.
TEST(Shaders, halves_are_converted_by_instructions_where_the_target_has_them) {
  loop::Kernel kernel = kernel_of(R"(kernel @halves {
  buffer %x: f16[8] read binding 0
  buffer %z: f64[8] read binding 1
  buffer %y: f16[8] write binding 2
  %y[ramp(0, 1, 8)] = %x[ramp(0, 1, 8)] * %x[ramp(0, 1, 8)] + cast(f16, %z[ramp(0, 1, 8)])
}
)");
  Target target = *find_target("vulkan+float16");
  std::string text = codegen::print_shader(kernel, target)->text;
  EXPECT_THAT(text, HasSubstr("unpackFloat2x16("));
  EXPECT_THAT(text, HasSubstr("packFloat2x16(f16vec2("));
  Expected<codegen::ShaderImage> by_instruction = codegen::compile_shaders({kernel}, target, {});
  ASSERT_TRUE(by_instruction) << to_string(by_instruction.errors());
  uint64_t plain = QNL_SPIRV_VULKAN_1_1 | QNL_SPIRV_STORAGE_16 | QNL_SPIRV_FLOAT64;
  EXPECT_EQ(by_instruction->features, plain | QNL_SPIRV_FLOAT16);
  Expected<codegen::ShaderImage> without = codegen::compile_shaders({kernel}, vulkan(), {});
  ASSERT_TRUE(without) << to_string(without.errors());
  EXPECT_EQ(without->features, plain);

  Expected<std::vector<uint32_t>> words = codegen::compile_glsl(text, "halves");
  ASSERT_TRUE(words) << to_string(words.errors());
  std::string assembly = codegen::disassemble(*words);
  for (const char* mode :
       {"SignedZeroInfNanPreserve 16", "RoundingModeRTE 16", "RoundingModeRTE 32", "RoundingModeRTE 64"})
    EXPECT_THAT(assembly, HasSubstr(std::string("OpExecutionMode %main ") + mode));
}

// The module's matrix types have the shape that the device chooses, as specialisation constants.
TEST(Shaders, products_of_matrices_are_cooperative) {
  const loop::Kernel kernel = kernel_of(R"(kernel @matrices {
  buffer %x: f16[4096] read binding 0
  buffer %w: f16[4096] read binding 1
  buffer %y: f32[4096] write binding 2
  alloc %rows: f16[1152] shared
  alloc %tile: f32[4096] shared
  alloc %s: f32[4096] matrix
  for i in serial(4) {
    for j in serial(16) {
      %rows[ramp(j * 72, 1, 64)] = %x[ramp(i * 16 + j, 64, 64)]
    }
    multiply_matrices(64, 64, 16) %s += %rows[0, 1, 72] * %w[i * 1024, 64, 1]
  }
  store_matrix(64, 64) %tile[0, 64, 1] = %s
  for m in serial(64) {
    %y[ramp(m * 64, 1, 64)] = %tile[ramp(m * 64, 1, 64)]
  }
}
)");
  const Target target = *find_target("vulkan+coopmat");
  Expected<codegen::Shader> shader = codegen::print_shader(kernel, target);
  ASSERT_TRUE(shader) << to_string(shader.errors());
  EXPECT_EQ(shader->invocations, 64);
  EXPECT_EQ(shader->shared_bytes, 1152 * 2 + 4096 * 4);
  // Fetched rows are there before the product reads them, and are read before the next ones come.
  EXPECT_EQ(count(shader->text, "barrier();"), 3U) << shader->text;
  Expected<codegen::ShaderImage> image = codegen::compile_shaders({kernel}, target, {});
  ASSERT_TRUE(image) << to_string(image.errors());
  EXPECT_EQ(image->features, QNL_SPIRV_VULKAN_1_1 | QNL_SPIRV_STORAGE_16 | QNL_SPIRV_FLOAT16 |
                                 QNL_SPIRV_SUBGROUPS | QNL_SPIRV_COOPMAT);
  Expected<std::vector<uint32_t>> words = codegen::compile_glsl(shader->text, "matrices");
  ASSERT_TRUE(words) << to_string(words.errors());
  const std::string assembly = codegen::disassemble(*words);
  EXPECT_THAT(assembly, HasSubstr("OpTypeCooperativeMatrixNV %half %uint_3 %qnl_rows %qnl_steps"));
  EXPECT_THAT(assembly, HasSubstr("OpTypeCooperativeMatrixNV %half %uint_3 %qnl_steps %qnl_columns"));
  EXPECT_THAT(assembly, HasSubstr("OpTypeCooperativeMatrixNV %float %uint_3 %qnl_rows %qnl_columns"));
  EXPECT_THAT(assembly, HasSubstr("OpDecorate %qnl_rows SpecId 128"));
  std::map<uint32_t, int> ops;
  for (size_t at = 5; at < words->size(); at += (*words)[at] >> 16) ++ops[(*words)[at] & 0xffff];
  EXPECT_EQ(ops[4456], 3);  // OpTypeCooperativeMatrixKHR
  EXPECT_EQ(ops[4457], 2);  // OpCooperativeMatrixLoadKHR
  EXPECT_EQ(ops[4458], 1);
  EXPECT_EQ(ops[4459], 1);
  Expected<codegen::ShaderImage> without = codegen::compile_shaders({kernel}, vulkan(), {});
  ASSERT_FALSE(without);
  EXPECT_THAT(without.errors()[0].message,
              HasSubstr("products of matrices of f16 are for GPUs that have them"));
}

// A kernel that fetches rows of `a` by `steps` and multiplies them by `w`, all of `dtype`.
std::string matrices_of(const std::string& dtype, const std::string& sums, int steps) {
  auto n = [](int number) { return std::to_string(number); };
  const int pitch = steps + 16;
  return "kernel @matrices {\n  buffer %x: " + dtype + "[8192] read binding 0\n  buffer %w: " + dtype +
         "[8192] read binding 1\n  buffer %y: " + sums + "[4096] write binding 2\n  alloc %rows: " + dtype +
         "[" + n(64 * pitch) + "] shared\n  alloc %tile: " + sums + "[4096] shared\n  alloc %s: " + sums +
         "[4096] matrix\n  for j in serial(" + n(steps) + ") {\n    %rows[ramp(j, " + n(pitch) +
         ", 64)] = %x[ramp(j, " + n(steps) + ", 64)]\n  }\n  multiply_matrices(64, 64, " + n(steps) +
         ") %s += %rows[0, " + n(pitch) + ", 1] * %w[0, 1, " + n(steps) +
         "]\n  store_matrix(64, 64) %tile[0, 64, 1] = %s\n  for m in serial(64) {\n    %y[ramp(m * 64, 1, "
         "64)] "
         "= %tile[ramp(m * 64, 1, 64)]\n  }\n}\n";
}

// The operands of each instruction of that number, after the first word.
std::vector<std::vector<uint32_t>> instructions(const std::vector<uint32_t>& words, uint32_t op) {
  std::vector<std::vector<uint32_t>> result;
  for (size_t at = 5; at < words.size(); at += words[at] >> 16) {
    const auto begin = words.begin() + static_cast<ptrdiff_t>(at);
    if ((words[at] & 0xffff) == op)
      result.emplace_back(begin + 1, begin + static_cast<ptrdiff_t>(words[at] >> 16));
  }
  return result;
}

struct MatrixDtype {
  const char *dtype, *sums, *target;
  int steps;
  const char *a, *result;                // the types as SPIRV-Tools prints them
  std::vector<uint32_t> component, sum;  // OpTypeInt (21) or OpTypeFloat (22) and its operands
  size_t operands;                       // of OpCooperativeMatrixMulAddKHR
  uint32_t signs;                        // the last one, of integers
  uint64_t features;
};

TEST(Shaders, matrices_of_each_dtype) {
  constexpr uint32_t kTypeInt = 21, kTypeFloat = 22, kTypeMatrix = 4456, kLoad = 4457, kMultiplyAdd = 4459,
                     kCapability = 17;
  constexpr uint64_t kMatrices = QNL_SPIRV_VULKAN_1_1 | QNL_SPIRV_SUBGROUPS | QNL_SPIRV_COOPMAT,
                     kBytes = kMatrices | QNL_SPIRV_STORAGE_8 | QNL_SPIRV_INT8 | QNL_SPIRV_COOPMAT_INT8;
  const MatrixDtype dtypes[] = {
      {"f16",
       "f32",
       "vulkan+coopmat",
       16,
       "%half",
       "%float",
       {22, 16},
       {22, 32},
       5,
       0,
       kMatrices | QNL_SPIRV_STORAGE_16 | QNL_SPIRV_FLOAT16},
      {"i8", "i32", "vulkan+coopmat-int8", 32, "%char", "%int", {21, 8, 1}, {21, 32, 1}, 6, 15, kBytes},
      {"u8", "i32", "vulkan+coopmat-int8", 32, "%uchar", "%uint", {21, 8, 0}, {21, 32, 0}, 6, 0, kBytes},
      {"bf16",
       "f32",
       "vulkan+coopmat-bf16",
       16,
       "%half",
       "%float",
       {22, 16, 0},
       {22, 32},
       5,
       0,
       kMatrices | QNL_SPIRV_STORAGE_16 | QNL_SPIRV_INT16 | QNL_SPIRV_COOPMAT_BF16},
  };
  for (const MatrixDtype& d : dtypes) {
    SCOPED_TRACE(d.dtype);
    const loop::Kernel kernel = kernel_of(matrices_of(d.dtype, d.sums, d.steps));
    const Target target = *find_target(d.target);
    Expected<codegen::Shader> shader = codegen::print_shader(kernel, target);
    ASSERT_TRUE(shader) << to_string(shader.errors());
    const bool is_byte = d.steps == 32;
    EXPECT_EQ(shader->shared_bytes, 64 * (d.steps + 16) * (is_byte ? 1 : 2) + 4096 * 4);
    Expected<codegen::ShaderImage> image = codegen::compile_shaders({kernel}, target, {});
    ASSERT_TRUE(image) << to_string(image.errors());
    EXPECT_EQ(image->features, d.features);
    Expected<std::vector<uint32_t>> words = codegen::compile_glsl(shader->text, "matrices");
    ASSERT_TRUE(words) << to_string(words.errors());
    const std::string assembly = codegen::disassemble(*words), type = "OpTypeCooperativeMatrixNV ";
    EXPECT_THAT(assembly, HasSubstr(type + d.a + " %uint_3 %qnl_rows %qnl_steps"));
    EXPECT_THAT(assembly, HasSubstr(type + d.a + " %uint_3 %qnl_steps %qnl_columns"));
    EXPECT_THAT(assembly, HasSubstr(type + d.result + " %uint_3 %qnl_rows %qnl_columns"));
    std::map<uint32_t, std::vector<uint32_t>> numbers;  // types by id
    for (uint32_t op : {kTypeInt, kTypeFloat})
      for (const std::vector<uint32_t>& i : instructions(*words, op)) {
        std::vector<uint32_t> of_type = {op};
        of_type.insert(of_type.end(), i.begin() + 1, i.end());
        for (const auto& [id, known] : numbers) EXPECT_NE(known, of_type) << "a type is declared twice";
        numbers[i[0]] = of_type;
      }
    const std::vector<std::vector<uint32_t>> matrices = instructions(*words, kTypeMatrix);
    ASSERT_EQ(matrices.size(), 3U);
    for (const std::vector<uint32_t>& matrix : matrices) {
      const std::vector<uint32_t>& component = numbers.at(matrix[1]);
      EXPECT_TRUE(component == d.component || component == d.sum) << testing::PrintToString(component);
    }
    EXPECT_EQ(instructions(*words, kLoad).size(), 2U);
    const std::vector<std::vector<uint32_t>> products = instructions(*words, kMultiplyAdd);
    ASSERT_EQ(products.size(), 1U);
    ASSERT_EQ(products[0].size(), d.operands);
    if (is_byte) EXPECT_EQ(products[0].back(), d.signs);
    std::set<uint32_t> capabilities;
    for (const std::vector<uint32_t>& i : instructions(*words, kCapability)) capabilities.insert(i[0]);
    EXPECT_EQ(capabilities.contains(5118), std::string(d.dtype) == "bf16");
    // Each dtype is a feature.
    for (const char* other : {"vulkan", "vulkan+coopmat"}) {
      if (std::string(d.target) == other) continue;
      Expected<codegen::ShaderImage> without = codegen::compile_shaders({kernel}, *find_target(other), {});
      ASSERT_FALSE(without);
      EXPECT_THAT(without.errors()[0].message, HasSubstr("products of matrices of " + std::string(d.dtype) +
                                                         " are for GPUs that have them"));
    }
  }
}

TEST(Shaders, refuse_matrices_that_devices_cannot_share_out) {
  auto refusal = [](const std::string& weights, const std::string& shape, const std::string& strides) {
    const std::string text = "kernel @k {\n  buffer %w: f16[" + weights +
                             "] read binding 0\n  alloc %s: f32[4096] matrix\n  multiply_matrices(" + shape +
                             ") %s += %w[0, " + strides + "] * %w[0, 64, 1]\n}\n";
    Expected<codegen::Shader> shader = codegen::print_shader(kernel_of(text), *find_target("vulkan+coopmat"));
    return shader ? std::string() : shader.errors()[0].message;
  };
  EXPECT_EQ(refusal("4096", "64, 64, 16", "16, 1"), "");
  EXPECT_EQ(refusal("4096", "64, 64, 8", "8, 1"),
            "kernel 'k' as a shader: a product of matrices of 64 x 64 x 8");
  EXPECT_EQ(refusal("100000000", "64, 64, 16", "16, 1"),
            "kernel 'k' as a shader: a matrix in a binding of more than 128 MiB");
}

TEST(Shaders, refuse_matrices_of_two_dtypes) {
  const loop::Kernel kernel = kernel_of(R"(kernel @k {
  buffer %w: f16[4096] read binding 0
  buffer %x: i8[4096] read binding 1
  alloc %s: f32[4096] matrix
  alloc %t: i32[4096] matrix
  multiply_matrices(64, 64, 16) %s += %w[0, 16, 1] * %w[0, 64, 1]
  multiply_matrices(64, 64, 32) %t += %x[0, 32, 1] * %x[0, 64, 1]
}
)");
  Expected<codegen::Shader> shader = codegen::print_shader(kernel, *find_target("vulkan+coopmat-int8"));
  ASSERT_FALSE(shader);
  EXPECT_EQ(shader.errors()[0].message, "kernel 'k' as a shader: products of matrices of f16 and of i8");
}

constexpr const char* kSum = R"(kernel @sum {
  buffer %x: f32[64] read binding 0
  buffer %y: f32[2] write binding 1
  %y[0] = reduce_lanes(add, %x[ramp(0, 1, 64)])
  %y[1] = reduce_lanes(max, %x[ramp(0, 1, 48)])
}
)";

TEST(Shaders, subgroups_fold_their_own_lanes) {
  std::string text = shader_of(kSum, "vulkan+subgroups");
  EXPECT_THAT(text, HasSubstr("precise float folded = subgroupAdd(x);"));
  // Of integers: SPIR-V says of NaNs among floats nothing. Invocations beyond the vector have no say.
  EXPECT_THAT(text, HasSubstr("int folded = subgroupMax(int(gl_LocalInvocationIndex) < 48 ? "
                              "to_fold_max_f32_48(x) : (-0x7fffffff - 1));"));
  EXPECT_EQ(count(text, "barrier();"), 2U) << text;  // one each
  EXPECT_THAT(shader_of(kSum), Not(HasSubstr("subgroup")));

  for (const char* name : {"vulkan", "vulkan+subgroups"}) {
    Target target = *find_target(name);
    Expected<codegen::ShaderImage> image = codegen::compile_shaders({kernel_of(kSum)}, target, {});
    ASSERT_TRUE(image) << to_string(image.errors());
    EXPECT_EQ(image->features, target.required_features) << name;
  }
}

TEST(Shaders, what_subgroups_lack_is_folded_in_memory) {
  for (const char* dtype : {"i64", "u64", "f16"}) {
    std::string d = dtype;
    std::string text =
        shader_of("kernel @sum {\n  buffer %x: " + d + "[64] read binding 0\n  buffer %y: " + d +
                      "[1] write binding 1\n  %y[0] = reduce_lanes(add, %x[ramp(0, 1, 64)])\n}\n",
                  "vulkan+subgroups");
    EXPECT_THAT(text, Not(HasSubstr("subgroup"))) << d;
    EXPECT_THAT(text, HasSubstr("[lane + 32]")) << d;
  }
}

// Who reads what others wrote before a reduction has waited for them in it; not where it may not have run.
TEST(Shaders, reductions_are_barriers) {
  auto kernel = [](const std::string& before, const std::string& after) {
    return R"(kernel @turn symbols($n) {
  buffer %x: f32[64] read binding 0
  buffer %y: f32[64] write binding 1
  alloc %row: f32[64] shared
  %row[ramp(0, 1, 64)] = %x[ramp(0, 1, 64)]
  )" + before +
           R"(
    let sum: f32 = reduce_lanes(add, %x[ramp(0, 1, 64)])
    %y[0] = sum
  )" + after +
           R"(
  %y[ramp(0, 1, 64)] = %row[ramp(63, -1, 64)]
}
)";
  };
  for (const char* target : {"vulkan", "vulkan+subgroups"}) {
    auto in_main = [&](const std::string& text) {
      std::string all = shader_of(text, target);
      return count(all.substr(all.find("void main")), "barrier();");
    };
    EXPECT_EQ(in_main(kernel("", "")), 0U) << target;
    EXPECT_EQ(in_main(kernel("for i in serial(3) {", "}")), 0U) << target;
    EXPECT_EQ(in_main(kernel("for i in serial($n) {", "}")), 1U) << target;
    EXPECT_EQ(in_main(kernel("if $n > 3 {", "}")), 1U) << target;
  }
}

TEST(Shaders, addresses_need_no_64_bits) {
  std::string text = shader_of(R"(kernel @strided symbols($stride) grid(wg0: 4) {
  buffer %x: f32[?] read binding 0
  buffer %y: f32[64] write binding 1
  %y[ramp(wg0 * 16, 1, 16)] = %x[ramp(wg0 * $stride, 3, 16)]
}
)");
  EXPECT_THAT(text, Not(HasSubstr("int64_t(")));
}

}  // namespace
}  // namespace quernel::test
