#include "codegen/spirv/compile_shaders.h"

#include <glslang/Public/ResourceLimits.h>
#include <glslang/Public/ShaderLang.h>
#include <glslang/SPIRV/GlslangToSpv.h>
#include <spirv-tools/libspirv.hpp>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "codegen/llvm/check_kernel.h"
#include "codegen/spirv/shader_printer.h"
#include "schemas/kernel_abi.h"

namespace quernel::codegen {
namespace {

constexpr spv_target_env kEnvironment = SPV_ENV_VULKAN_1_1;

// glslang's state is the process's.
class Glslang {
 public:
  Glslang() { glslang::InitializeProcess(); }
  ~Glslang() { glslang::FinalizeProcess(); }
  Glslang(const Glslang&) = delete;
  Glslang& operator=(const Glslang&) = delete;
};

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
  return words;
}

Status validate(const std::vector<uint32_t>& words, const std::string& name) {
  std::string log;
  spvtools::SpirvTools tools(kEnvironment);
  tools.SetMessageConsumer([&](spv_message_level_t, const char*, const spv_position_t&, const char* message) {
    log += (log.empty() ? "" : "; ") + std::string(message);
  });
  if (tools.Validate(words)) return {};
  return internal_error("kernel '" + name + "': the SPIR-V validator: " + log, {}, "codegen-spirv");
}

// What a module declares that it needs.
Expected<uint64_t> features_of(const std::vector<uint32_t>& words, const std::string& name) {
  constexpr uint32_t kCapability = 17, kHeaderWords = 5;
  uint64_t features = QNL_SPIRV_VULKAN_1_1;
  for (size_t at = kHeaderWords; at < words.size(); at += words[at] >> 16) {
    if ((words[at] & 0xffff) != kCapability) break;  // capabilities come first
    switch (words[at + 1]) {
      case 1:  // Shader
        break;
      case 9:
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
      case 4433:  // StorageBuffer16BitAccess
        features |= QNL_SPIRV_STORAGE_16;
        break;
      case 4448:  // StorageBuffer8BitAccess
        features |= QNL_SPIRV_STORAGE_8;
        break;
      default:
        return internal_error(
            "kernel '" + name + "': a module of capability " + std::to_string(words[at + 1]), {},
            "codegen-spirv");
    }
  }
  return features;
}

Status dump(const std::string& dir, const std::string& name, const std::string& glsl,
            const std::vector<uint32_t>& words) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  std::string assembly;
  spvtools::SpirvTools(kEnvironment)
      .Disassemble(words, &assembly,
                   SPV_BINARY_TO_TEXT_OPTION_FRIENDLY_NAMES | SPV_BINARY_TO_TEXT_OPTION_INDENT);
  std::ofstream(dir + "/" + name + ".spvasm") << assembly;
  if (!(std::ofstream(dir + "/" + name + ".comp") << glsl))
    return invalid_input("cannot write to the dump directory '" + dir + "'");
  return {};
}

}  // namespace

Expected<ShaderImage> compile_shaders(const std::vector<loop::Kernel>& kernels, const Target& target,
                                      const ShaderOptions& options) {
  ShaderImage image;
  std::vector<qnl_spirv_kernel> entries;
  std::vector<uint32_t> code;
  Diagnostics errors;
  auto first_word = (sizeof(qnl_spirv_table) + kernels.size() * sizeof(qnl_spirv_kernel)) / sizeof(uint32_t);
  for (const loop::Kernel& kernel : kernels) {
    auto compile = [&]() -> Status {
      QUERNEL_CHECK(check_kernel(kernel));
      QUERNEL_TRY(Shader shader, print_shader(kernel, target));
      if (shader.shared_bytes > target.workgroup_memory)
        return unsupported("kernel '" + kernel.name + "' needs " + std::to_string(shader.shared_bytes) +
                           " bytes of workgroup memory; target '" + target.name + "' has " +
                           std::to_string(target.workgroup_memory));
      Expected<std::vector<uint32_t>> words = compile_glsl(shader.text, kernel.name);
      if (!options.dump_dir.empty())
        QUERNEL_CHECK(
            dump(options.dump_dir, kernel.name, shader.text, words ? *words : std::vector<uint32_t>()));
      if (!words) return words.take_errors();
      QUERNEL_CHECK(validate(*words, kernel.name));
      QUERNEL_TRY(uint64_t features, features_of(*words, kernel.name));
      qnl_spirv_kernel& entry = entries.emplace_back();
      entry.code_offset = static_cast<uint32_t>((first_word + code.size()) * sizeof(uint32_t));
      entry.code_bytes = static_cast<uint32_t>(words->size() * sizeof(uint32_t));
      entry.local_size = static_cast<uint32_t>(shader.invocations);
      entry.shared_bytes = static_cast<uint32_t>(shader.shared_bytes);
      entry.binding_count = static_cast<uint32_t>(kernel.buffers.size());
      entry.symbol_count = static_cast<uint32_t>(kernel.symbols.size());
      entry.features = features;
      image.features |= features;
      code.insert(code.end(), words->begin(), words->end());
      return {};
    };
    if (Status status = compile(); !status)
      for (const Diagnostic& d : status.errors()) errors.push_back(d);
    image.kernel_names.push_back(kernel.name);
  }
  if (!errors.empty()) return errors;
  image.features |= QNL_SPIRV_VULKAN_1_1;
  qnl_spirv_table head = {QNL_SPIRV_MAGIC, QNL_SPIRV_ABI_VERSION, static_cast<uint32_t>(kernels.size()), 0};
  auto append = [&](const void* data, size_t bytes) {
    const auto* from = static_cast<const uint8_t*>(data);
    image.table.insert(image.table.end(), from, from + bytes);
  };
  append(&head, sizeof head);
  if (!entries.empty()) append(entries.data(), entries.size() * sizeof(qnl_spirv_kernel));
  if (!code.empty()) append(code.data(), code.size() * sizeof(uint32_t));
  return image;
}

}  // namespace quernel::codegen
