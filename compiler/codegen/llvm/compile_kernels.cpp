#include "codegen/llvm/compile_kernels.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

#include "codegen/llvm/check_kernel.h"
#include "codegen/llvm/link_image.h"
#include "codegen/llvm/object_code.h"

namespace quernel::codegen {
namespace {

// A module costs as much as a small kernel, however many kernels are in it.
constexpr size_t kKernelsPerObject = 8;

// Where code is dear, one object: each has its own copy of the functions that its kernels call, which take flash.
size_t kernels_per_object(const Target& target, size_t kernels) {
  return target.code_is_dear() ? std::max<size_t>(kernels, 1) : kKernelsPerObject;
}

// In an image, which is stripped, symbols are for dumps only.
std::string symbol_of(size_t index, const MachineCodeOptions& options) {
  return (options.symbol_prefix.empty() ? kKernelSymbolPrefix : options.symbol_prefix) +
         std::to_string(index);
}

int thread_count(const MachineCodeOptions& options, size_t kernels) {
  int wanted = options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(wanted, 1, static_cast<int>(std::max<size_t>(kernels, 1)));
}

// The table's object first, then each different object of the prebuilt kernels.
std::vector<std::string> objects_before(const std::vector<PrebuiltKernel>& prebuilt) {
  std::vector<std::string> objects(1);
  for (const PrebuiltKernel& kernel : prebuilt)
    if (std::find(objects.begin(), objects.end(), kernel.object) == objects.end())
      objects.push_back(kernel.object);
  return objects;
}

// What the linker says of objects that are not ours.
Diagnostic cannot_link(const Diagnostics& errors) {
  const std::string& text = errors[0].message;
  return invalid_input("the kernels of custom ops cannot be linked: " + text.substr(0, text.find('\n')), {},
                       "compile them with -c -ffreestanding -fPIC");
}

}  // namespace

// One object per few kernels, linked in the kernels' order: the bytes do not depend on which thread compiled
// what.
Expected<Image> compile_kernels(const std::vector<loop::Kernel>& kernels, const Target& target,
                                const MachineCodeOptions& options,
                                const std::vector<PrebuiltKernel>& prebuilt) {
  QUERNEL_CHECK(check_prebuilt_kernels(prebuilt, target));
  Diagnostics errors;
  for (const loop::Kernel& kernel : kernels)
    if (Status status = check_kernel(kernel); !status)
      for (const Diagnostic& d : status.errors()) errors.push_back(d);
  if (!errors.empty()) return errors;

  CrashGuard crash_guard;
  size_t per_object = kernels_per_object(target, kernels.size());
  size_t objects_needed = (kernels.size() + per_object - 1) / per_object;
  std::vector<std::optional<Expected<ObjectCode>>> results(objects_needed);
  std::atomic<size_t> next{0};
  CodeUse use = options.symbol_prefix.empty() ? CodeUse::kImage : CodeUse::kStatic;
  auto work = [&] {
    auto compiler = Compiler::create(target, options.optimize, use);
    for (size_t i = next++; i < objects_needed; i = next++) {
      size_t first = i * per_object, count = std::min(per_object, kernels.size() - first);
      std::vector<std::string> symbols;
      for (size_t k = first; k < first + count; ++k) symbols.push_back(symbol_of(k, options));
      if (compiler)
        results[i].emplace(compiler->compile({&kernels[first], count}, symbols, options.dump_dir));
      else
        results[i].emplace(compiler.errors());
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < thread_count(options, objects_needed); ++i) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();

  Image image;
  std::vector<std::string> objects = objects_before(prebuilt), symbols;
  for (const PrebuiltKernel& kernel : prebuilt) {
    symbols.push_back(kernel.symbol);
    image.kernel_names.push_back(kernel.name);
    image.stack_bytes.push_back(0);
    image.scratch_bytes.push_back(0);
  }
  for (std::optional<Expected<ObjectCode>>& result : results) {
    if (!*result) {
      for (Diagnostic& d : result->take_errors()) errors.push_back(std::move(d));
      continue;
    }
    objects.push_back(std::move((*result)->bytes));
    auto append = [](std::vector<uint64_t>& to, const std::vector<uint64_t>& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(image.stack_bytes, (*result)->stack_bytes);
    append(image.scratch_bytes, (*result)->scratch_bytes);
  }
  for (size_t i = 0; i < kernels.size(); ++i) {
    symbols.push_back(symbol_of(i, options));
    image.kernel_names.push_back(kernels[i].name);
  }
  if (!errors.empty()) return errors;
  if (use == CodeUse::kStatic) {
    image.objects.assign(objects.begin() + 1, objects.end());
    image.symbols = std::move(symbols);
    return image;
  }
  QUERNEL_TRY(Compiler compiler, Compiler::create(target, options.optimize, use));
  QUERNEL_TRY(ObjectCode table, compiler.compile_table(symbols));
  objects[0] = std::move(table.bytes);
  Expected<std::vector<uint8_t>> elf = link_image(objects, kImageQuerySymbol);
  if (!elf) return prebuilt.empty() ? elf.take_errors() : Diagnostics{cannot_link(elf.errors())};
  image.code = std::move(*elf);
  return image;
}

}  // namespace quernel::codegen
