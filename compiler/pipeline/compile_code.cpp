#include "pipeline/compile_code.h"

#include "codegen/llvm/check_kernel.h"
#include "codegen/llvm/compile_kernels.h"
#include "codegen/spirv/compile_shaders.h"
#include "pipeline/lower_variant.h"
#include "pipeline/reproducer.h"
#include "targets/forms.h"

namespace quernel {
namespace {

// Generates machine code. An internal error writes the kernels as a golden test.
Expected<codegen::Image> compile_machine_code(const std::vector<loop::Kernel>& kernels, const Target& target,
                                              const CompileOptions& options,
                                              const codegen::MachineCodeOptions& codegen_options,
                                              const std::vector<codegen::PrebuiltKernel>& prebuilt) {
  codegen::Image image;
  QUERNEL_CHECK(with_reproducer(
      options.dump_dir, "codegen", [&] { return code_reproducer(kernels, "llvm", target.name); },
      [&]() -> Status {
        QUERNEL_TRY(image, codegen::compile_kernels(kernels, target, codegen_options, prebuilt));
        return {};
      }));
  return image;
}

// The C form's code is printed when the whole program is known. Kernels that machine code cannot be made of
// have no objects.
Expected<CompiledCode> prepare_c(Lowered lowered, const codegen::MachineCodeOptions& codegen_options) {
  if (!lowered.prebuilt.empty())
    return unsupported("custom op '" + lowered.prebuilt[0].name +
                           "': a precompiled kernel is machine code, C cannot hold it",
                       {},
                       has_only_c(lowered.variant.target)
                           ? "name the machine's target, and compile with --emit=static"
                           : "compile with --emit=static");
  codegen::Image& image = lowered.variant.image;
  if (!has_only_c(lowered.variant.target)) {
    if (Expected<codegen::Image> compiled =
            codegen::compile_kernels(lowered.own.kernels, lowered.variant.target, codegen_options)) {
      image = std::move(*compiled);
      return CompiledCode{std::move(lowered.variant), std::move(lowered.own.kernels), {}};
    }
  }
  for (size_t k = 0; k < lowered.own.kernels.size(); ++k) {
    image.kernel_names.push_back(lowered.own.kernels[k].name);
    image.symbols.push_back(codegen_options.symbol_prefix + std::to_string(k));
    image.scratch_bytes.push_back(codegen::scratch_bytes(lowered.own.kernels[k]));
    image.stack_bytes.push_back(0);
  }
  return CompiledCode{std::move(lowered.variant), std::move(lowered.own.kernels), {}};
}

Status compile_for_gpu(Lowered& lowered, const CompileOptions& options) {
  Target& target = lowered.variant.target;
  codegen::ShaderOptions shader_options;
  if (!options.dump_dir.empty()) shader_options.dump_dir = options.dump_dir + "/" + target.name;
  codegen::ShaderImage shaders;
  QUERNEL_CHECK(with_reproducer(
      options.dump_dir, "codegen", [&] { return code_reproducer(lowered.own.kernels, "glsl", target.name); },
      [&]() -> Status {
        QUERNEL_TRY(shaders, codegen::compile_shaders(lowered.own.kernels, target, shader_options));
        return {};
      }));
  target.required_features |= shaders.features;
  codegen::Image& image = lowered.variant.image;
  image.code = std::move(shaders.table);
  image.kernel_names = std::move(shaders.kernel_names);
  image.scratch_bytes.resize(image.kernel_names.size());
  image.stack_bytes.resize(image.kernel_names.size());
  return {};
}

Expected<CompiledCode> generate_code(Lowered lowered, const Target& target, const CompileOptions& options,
                                     const std::string& symbol_prefix) {
  if (options.on_stage) options.on_stage("code generation");
  codegen::MachineCodeOptions codegen_options;
  codegen_options.threads = options.threads;
  codegen_options.symbol_prefix = symbol_prefix;
  codegen_options.optimize = optimizes_code(options);
  if (options.emit == Emit::kC) return prepare_c(std::move(lowered), codegen_options);
  if (!options.dump_dir.empty()) codegen_options.dump_dir = options.dump_dir + "/" + target.name;
  if (!target.is_gpu()) {
    QUERNEL_TRY(lowered.variant.image, compile_machine_code(lowered.own.kernels, target, options,
                                                            codegen_options, lowered.prebuilt));
    return CompiledCode{std::move(lowered.variant), {}, {}};
  }
  QUERNEL_CHECK(compile_for_gpu(lowered, options));
  if (lowered.companion.kernels.empty()) {
    lowered.variant.target.companion = nullptr;  // which nothing asks for
  } else {
    QUERNEL_TRY(
        lowered.variant.companion_image,
        compile_machine_code(lowered.companion.kernels, *target.companion, options, codegen_options, {}));
  }
  return CompiledCode{std::move(lowered.variant), {}, {}};
}

}  // namespace

Expected<CompiledCode> compile_code(const std::vector<Graph>& graphs, const Target& target,
                                    const CompileOptions& options, schedule::Choices* choices,
                                    const std::string& symbol_prefix) {
  QUERNEL_ASSERT(options.stop_after.empty());
  QUERNEL_TRY(Lowered lowered, lower_variant(graphs, target, options, choices));
  std::vector<std::string> notes = std::move(lowered.notes);
  QUERNEL_TRY(CompiledCode code, generate_code(std::move(lowered), target, options, symbol_prefix));
  code.notes = std::move(notes);
  return code;
}

}  // namespace quernel
