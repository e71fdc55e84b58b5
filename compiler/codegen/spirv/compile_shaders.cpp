#include "codegen/spirv/compile_shaders.h"

#include <cstring>
#include <filesystem>

#include "codegen/llvm/check_kernel.h"
#include "codegen/spirv/shader_printer.h"
#include "codegen/spirv/spirv_module.h"
#include "schemas/kernel_abi.h"
#include "support/file.h"

namespace quernel::codegen {
namespace {

Status dump(const std::string& dir, const std::string& name, const std::string& glsl,
            const std::vector<uint32_t>& words) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (!write_file(dir + "/" + name + ".spvasm", disassemble(words)) ||
      !write_file(dir + "/" + name + ".comp", glsl))
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
      QUERNEL_CHECK(check_kernel(kernel, &target));
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
      entry.binding_count = static_cast<uint16_t>(kernel.buffers.size());
      entry.flags = kernel.counts_iterations ? QNL_SPIRV_COUNTS_ITERATIONS : 0;
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
