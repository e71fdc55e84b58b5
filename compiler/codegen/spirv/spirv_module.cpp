#include "codegen/spirv/spirv_module.h"

#include <glslang/Public/ResourceLimits.h>
#include <glslang/Public/ShaderLang.h>
#include <glslang/SPIRV/GlslangToSpv.h>
#include <spirv-tools/libspirv.hpp>

#include "codegen/spirv/cooperative_matrix.h"
#include "schemas/kernel_abi.h"

namespace quernel::codegen {
namespace {

constexpr spv_target_env kEnvironment = SPV_ENV_VULKAN_1_1;
constexpr size_t kHeaderWords = 5;

// glslang's state is the process's.
class Glslang {
 public:
  Glslang() { glslang::InitializeProcess(); }
  ~Glslang() { glslang::FinalizeProcess(); }
  Glslang(const Glslang&) = delete;
  Glslang& operator=(const Glslang&) = delete;
};

// Some devices have one rounding mode for floats of all widths, which a module then has to agree about.
// glslang keeps one width of a mode: behind RoundingModeRTE of 16 bits come the other widths of the module.
void round_all_widths(std::vector<uint32_t>& words) {
  constexpr uint32_t kExecutionMode = 16, kRoundingModeRTE = 4462, kCapability = 17, kFloat64 = 10;
  bool has_f64 = false;
  for (size_t at = kHeaderWords, length = 0; at < words.size(); at += length) {
    length = words[at] >> 16;
    uint32_t op = words[at] & 0xffff;
    has_f64 |= op == kCapability && words[at + 1] == kFloat64;
    if (op != kExecutionMode || words[at + 2] != kRoundingModeRTE) continue;
    std::vector<uint32_t> mode(words.begin() + static_cast<ptrdiff_t>(at),
                               words.begin() + static_cast<ptrdiff_t>(at + length));
    for (uint32_t width : has_f64 ? std::vector<uint32_t>{32, 64} : std::vector<uint32_t>{32}) {
      mode.back() = width;
      at += length;
      words.insert(words.begin() + static_cast<ptrdiff_t>(at), mode.begin(), mode.end());
    }
    return;
  }
}

}  // namespace

Expected<std::vector<uint32_t>> compile_glsl(const std::string& text, const std::string& name) {
  static Glslang process;
  const char* source = text.c_str();
  glslang::TShader shader(EShLangCompute);
  shader.setStrings(&source, 1);
  shader.setEnvInput(glslang::EShSourceGlsl, EShLangCompute, glslang::EShClientVulkan, 100);
  shader.setEnvClient(glslang::EShClientVulkan, glslang::EShTargetVulkan_1_1);
  shader.setEnvTarget(glslang::EShTargetSpv, glslang::EShTargetSpv_1_3);
  auto messages = static_cast<EShMessages>(EShMsgSpvRules | EShMsgVulkanRules);
  auto refused = [&](const std::string& log) {
    return internal_error("kernel '" + name + "': glslang: " + log, {}, "codegen-spirv");
  };
  if (!shader.parse(GetDefaultResources(), 450, false, messages)) return refused(shader.getInfoLog());
  glslang::TProgram program;
  program.addShader(&shader);
  if (!program.link(messages)) return refused(program.getInfoLog());
  std::vector<uint32_t> words;
  glslang::SpvOptions options;
  options.disableOptimizer = true;
  glslang::GlslangToSpv(*program.getIntermediate(EShLangCompute), words, &options);
  round_all_widths(words);
  complete_matrix_types(words);
  return words;
}

Status validate(const std::vector<uint32_t>& words, const std::string& name) {
  std::string log;
  spvtools::SpirvTools tools(kEnvironment);
  tools.SetMessageConsumer([&](spv_message_level_t, const char*, const spv_position_t&, const char* message) {
    log += (log.empty() ? "" : "; ") + std::string(message);
  });
  if (tools.Validate(in_terms_of_nv(words))) return {};
  return internal_error("kernel '" + name + "': the SPIR-V validator: " + log, {}, "codegen-spirv");
}

// What a module declares that it needs.
Expected<uint64_t> features_of(const std::vector<uint32_t>& words, const std::string& name) {
  constexpr uint32_t kCapability = 17;
  uint64_t features = QNL_SPIRV_VULKAN_1_1;
  for (size_t at = kHeaderWords; at < words.size(); at += words[at] >> 16) {
    if ((words[at] & 0xffff) != kCapability) break;  // capabilities come first
    switch (words[at + 1]) {
      case 1:  // Shader
        break;
      case 9:     // Float16
      case 4466:  // SignedZeroInfNanPreserve
      case 4467:  // RoundingModeRTE
        features |= QNL_SPIRV_FLOAT16;
        break;
      case 10:
        features |= QNL_SPIRV_FLOAT64;
        break;
      case 11:
        features |= QNL_SPIRV_INT64;
        break;
      case 22:
        features |= QNL_SPIRV_INT16;
        break;
      case 39:
        features |= QNL_SPIRV_INT8;
        break;
      case 61:  // GroupNonUniform
      case 63:  // GroupNonUniformArithmetic
        features |= QNL_SPIRV_SUBGROUPS;
        break;
      case 4433:  // StorageBuffer16BitAccess
        features |= QNL_SPIRV_STORAGE_16;
        break;
      case 4448:  // StorageBuffer8BitAccess
        features |= QNL_SPIRV_STORAGE_8;
        break;
      case 5345:  // VulkanMemoryModel
      case 6022:  // CooperativeMatrixKHR
        features |= QNL_SPIRV_COOPMAT;
        break;
      case 5116:  // BFloat16TypeKHR
      case 5118:  // BFloat16CooperativeMatrixKHR
        features |= QNL_SPIRV_COOPMAT_BF16;
        break;
      case 6018:  // DotProductInput4x8BitPacked
      case 6019:  // DotProduct
        features |= QNL_SPIRV_DOTPROD;
        break;
      default:
        return internal_error(
            "kernel '" + name + "': a module of capability " + std::to_string(words[at + 1]), {},
            "codegen-spirv");
    }
  }
  if ((features & QNL_SPIRV_COOPMAT) != 0 && has_integer_matrices(words)) features |= QNL_SPIRV_COOPMAT_INT8;
  return features;
}

std::string disassemble(const std::vector<uint32_t>& words) {
  std::string assembly;
  spvtools::SpirvTools(kEnvironment)
      .Disassemble(in_terms_of_nv(words), &assembly,
                   SPV_BINARY_TO_TEXT_OPTION_FRIENDLY_NAMES | SPV_BINARY_TO_TEXT_OPTION_INDENT);
  return assembly;
}

}  // namespace quernel::codegen
