#include "test_spirv.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "codegen/spirv/spirv_module.h"
#include "quernel/runtime.h"
#include "test_bundle.h"

static bool driver_was_used = false;
// Drivers keep memory when they are unloaded: leaks are looked for in processes that use none. Asked by the
// leak sanitizer.
extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() { return driver_was_used ? 1 : 0; }

namespace quernel::test {
namespace {

struct Source {
  std::string body;
  uint32_t bindings = 0, symbols = 0;
  uint64_t features = 0;
  uint32_t local_size = 16, shared_bytes = 0;
  std::string declarations;
  uint16_t flags = 0;
};

// What the contract of kernel_abi.h says, as macros: WORD(b, i) is word i of binding b, SYMBOL(s) the low
// word of a symbol.
std::string glsl(const Source& source) {
  uint32_t words = 1 + source.bindings + 2 * source.symbols;
  std::string text =
      "#version 450\n" +
      std::string(source.features & QNL_SPIRV_INT64 ? "#extension GL_ARB_gpu_shader_int64 : require\n" : "");
  text += "layout(local_size_x = " + std::to_string(source.local_size) + ") in;\n";
  for (uint32_t b = 0; b < source.bindings; ++b)
    text +=
        "layout(constant_id = " + std::to_string(b) + ") const uint kWindow" + std::to_string(b) + " = 0;\n";
  text += "layout(set = 0, binding = 0) buffer Window { uint w[]; } windows[4];\n";
  if (qnl_spirv_uses_push(source.bindings, source.symbols)) {
    text += "layout(push_constant) uniform Parameters { uint p[" + std::to_string(words) + "]; };\n";
    text += "#define PARAMETER(i) p[i]\n";
  } else {
    text += "layout(set = 0, binding = 1) uniform Parameters { uvec4 p[" + std::to_string((words + 3) / 4) +
            "]; };\n#define PARAMETER(i) p[(i) / 4][(i) % 4]\n";
  }
  text += "#define WORD(b, i) windows[kWindow##b].w[PARAMETER(1 + b) / 4 + (i)]\n";
  text += "#define FLOAT(b, i) uintBitsToFloat(WORD(b, i))\n";
  text += "#define SYMBOL(s) PARAMETER(" + std::to_string(1 + source.bindings) + " + 2 * (s))\n";
  text += "#define SYMBOL_HIGH(s) PARAMETER(" + std::to_string(2 + source.bindings) + " + 2 * (s))\n";
  text += "uint workgroup() { return gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x; }\n";
  text += source.declarations;
  text += "void main() {\n  uint g = workgroup(), l = gl_LocalInvocationID.x, i = g * 16 + l;\n";
  return text + "  if (g >= PARAMETER(0)) return;\n" + source.body + "\n}\n";
}

std::vector<uint32_t> compile(const Source& source) {
  Expected<std::vector<uint32_t>> words = codegen::compile_glsl(glsl(source), "of a test");
  if (words) return *words;
  std::fprintf(stderr, "%s\n%s\n", glsl(source).c_str(), to_string(words.errors()).c_str());
  std::abort();
}

std::vector<std::byte> table(const std::vector<Source>& sources) {
  std::vector<qnl_spirv_kernel> kernels;
  std::vector<uint32_t> code;
  const auto count = static_cast<uint32_t>(sources.size());
  const uint64_t begin = sizeof(qnl_spirv_table) + count * sizeof(qnl_spirv_kernel);
  for (const Source& source : sources) {
    std::vector<uint32_t> words = compile(source);
    kernels.push_back({static_cast<uint32_t>(begin + code.size() * 4),
                       static_cast<uint32_t>(words.size() * 4), source.local_size, source.shared_bytes,
                       static_cast<uint16_t>(source.bindings), source.flags, source.symbols,
                       source.features});
    code.insert(code.end(), words.begin(), words.end());
  }
  qnl_spirv_table header = {QNL_SPIRV_MAGIC, QNL_SPIRV_ABI_VERSION, count, 0};
  std::vector<std::byte> bytes(begin + code.size() * 4);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, kernels.data(), kernels.size() * sizeof kernels[0]);
  std::memcpy(bytes.data() + begin, code.data(), code.size() * 4);
  return bytes;
}

}  // namespace

const std::vector<std::byte>& test_spirv() {
  static const std::vector<std::byte> bytes = table({
      {"WORD(2, i) = floatBitsToUint(FLOAT(0, i) + FLOAT(1, i));", 3},
      {"WORD(2, i) = floatBitsToUint(FLOAT(0, i) * FLOAT(1, 0) + FLOAT(1, 1));", 3},
      {"WORD(1, i) = floatBitsToUint(FLOAT(1, i) + FLOAT(0, i));", 2},
      {"", 2},
      {"if (l == 0) WORD(0, g) += 1;", 1},
      {"if (i < SYMBOL(1)) WORD(1, i) = floatBitsToUint(FLOAT(0, i) + float(int(SYMBOL(0))));", 2, 2},
      {"if (i == 0) { WORD(0, 2 * SYMBOL(0)) = SYMBOL(1); WORD(0, 2 * SYMBOL(0) + 1) = SYMBOL_HIGH(1); }", 1,
       2},
      {"if (i == 0) {\n"
       "  int64_t sum = packInt2x32(ivec2(WORD(0, 0), WORD(0, 1))) + int64_t(int(SYMBOL(0)));\n"
       "  ivec2 halves = unpackInt2x32(sum);\n"
       "  WORD(0, 0) = uint(halves.x); WORD(0, 1) = uint(halves.y);\n"
       "  bool less = sum < packInt2x32(ivec2(WORD(1, 0), WORD(1, 1)));\n"
       "  WORD(2, 0) = (WORD(2, 0) & 0xFFFFFF00u) | (less ? 1u : 0u);\n"
       "}",
       3, 1, QNL_SPIRV_INT64},
  });
  return bytes;
}

std::vector<std::byte> spirv_table(const std::string& body, uint32_t bindings, uint32_t symbols,
                                   uint64_t features, uint32_t local_size, uint32_t shared_bytes,
                                   const std::string& declarations) {
  return table({{body, bindings, symbols, features, local_size, shared_bytes, declarations}});
}

bundle::BundleContents with_vulkan(bundle::BundleContents contents) {
  bundle::Variant variant;
  variant.target = "vulkan";
  variant.arch = QNL_ARCH_SPIRV;
  variant.required_features = QNL_SPIRV_VULKAN_1_1 | QNL_SPIRV_INT64;
  variant.code_format = bundle::CodeFormat::kSpirv;
  variant.code = test_spirv();
  for (const bundle::Kernel& kernel : contents.variants[0].kernels) variant.kernels.push_back({kernel.name});
  const auto index = static_cast<uint32_t>(contents.variants.size());
  contents.variants.push_back(variant);
  for (bundle::EntryPoint& entry : contents.entry_points) {
    entry.plans.push_back(entry.plans[0]);
    entry.plans.back().variant = index;
  }
  return contents;
}

std::string why_no_vulkan() {
  driver_was_used = true;
  const char* lavapipe = "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json";
  if (access(lavapipe, R_OK) == 0) setenv("VK_ICD_FILENAMES", lavapipe, 0);
  qnl_device* device = nullptr;
  qnl_vulkan_options options = {};
  options.validation = 1;
  qnl_error error = {};
  if (qnl_device_open_vulkan(&options, &device, &error) != QNL_OK)
    return std::string(error.text) + " (toolchains/install_debian.sh --vulkan has what is needed)";
  qnl_device_close(device);
  return "";
}

}  // namespace quernel::test
