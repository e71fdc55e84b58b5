#include "peak_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "bundle/write_bundle.h"
#include "codegen/llvm/compile_kernels.h"
#include "codegen/spirv/compile_shaders.h"
#include "loop/parse.h"
#include "pipeline/pipeline.h"

namespace quernel::tools {
namespace {

// What a lane of 32 bits computes in each step of a chain.
struct ChainStep {
  const char* name;
  const char* reads;   // how the factors are made of the input, whose bits are random on GPUs
  const char* a_type;  // of the factors
  const char* b_type;
  const char* sum_type;
  const char* expression;  // of the sum {sum} and the factors %a[m] and %b[m]
  const char* next_b;      // of %b[c], for the next step
  double work;             // operations of a lane
};

constexpr ChainStep kFloatStep = {"multiply_adds", "cast", "f32", "f32", "f32", "mulacc({sum}, %a[m], %b[m])",
                                  "%b[c]",         2};
// Words of four bytes. Factors change with every step, or targets that multiply and add by two instructions
// would multiply once.
constexpr ChainStep kMixedByteStep = {
    "byte_products", "bitcast", "u32", "i32", "i32", "dot(%a[m], %b[m], {sum})", "%b[c] + 1i32", 8};
constexpr ChainStep kSignedByteStep = {
    "byte_products", "bitcast", "i32", "i32", "i32", "dot(%a[m], %b[m], {sum})", "%b[c] + 1i32", 8};

// Independent chains of multiply-adds, as many as the latency of the pipes asks for.
PeakKernel chains_of(const ChainStep& step, const Target& target, int64_t groups, int steps) {
  int lanes = target.lanes(4), chains = std::min(12, target.vector_registers - 4);
  PeakKernel p;
  p.groups = groups;
  p.input = int64_t{lanes} * chains;
  p.output = p.groups * p.input;
  p.work = step.work * static_cast<double>(p.output) * steps;
  std::string sum = fmt::format("%acc[j * {} + m]", lanes);
  p.text = fmt::format(
      R"(kernel @{name} grid(wg: {groups}) {{
  buffer %x: f32[{size}] read binding 0
  buffer %y: f32[{outputs}] write binding 1
  alloc %acc: {sum_type}[{size}] register
  alloc %a: {a_type}[{lanes}] register
  alloc %b: {b_type}[{lanes}] register
  for f in vector({lanes}) {{
    %a[f] = {reads}({a_type}, %x[f])
    %b[f] = {reads}({b_type}, %x[f])
  }}
  for i in unrolled({chains}) {{
    for l in vector({lanes}) {{
      %acc[i * {lanes} + l] = cast({sum_type}, %x[i * {lanes} + l])
    }}
  }}
  for k in reduction({steps}) {{
    for j in unrolled({chains}) {{
      for m in vector({lanes}) {{
        {sum} = {next}
      }}
    }}
    for c in vector({lanes}) {{
      %b[c] = {next_b}
    }}
  }}
  for o in unrolled({chains}) {{
    for n in vector({lanes}) {{
      %y[wg * {size} + o * {lanes} + n] = cast(f32, %acc[o * {lanes} + n])
    }}
  }}
}}
)",
      fmt::arg("reads", step.reads), fmt::arg("name", step.name), fmt::arg("groups", p.groups),
      fmt::arg("size", p.input), fmt::arg("outputs", p.output), fmt::arg("a_type", step.a_type),
      fmt::arg("b_type", step.b_type), fmt::arg("sum_type", step.sum_type), fmt::arg("lanes", lanes),
      fmt::arg("chains", chains), fmt::arg("steps", steps), fmt::arg("sum", sum),
      fmt::arg("next_b", step.next_b),
      fmt::arg("next", fmt::format(fmt::runtime(step.expression), fmt::arg("sum", sum))));
  return p;
}

struct Code {
  codegen::Image image;
  uint64_t features = 0;  // that it requires beyond the target's
};

Expected<Code> compile(const std::vector<loop::Kernel>& kernels, const Target& target) {
  Code code;
  if (!target.is_gpu()) {
    QUERNEL_TRY(code.image, codegen::compile_kernels(kernels, target, {}));
    return code;
  }
  QUERNEL_TRY(codegen::ShaderImage shaders, codegen::compile_shaders(kernels, target, {}));
  code.features = shaders.features;
  code.image.code = std::move(shaders.table);
  code.image.kernel_names = std::move(shaders.kernel_names);
  code.image.scratch_bytes.resize(kernels.size());
  code.image.stack_bytes.resize(kernels.size());
  return code;
}

}  // namespace

PeakKernel multiply_adds(const Target& target, int64_t groups, int steps) {
  return chains_of(kFloatStep, target, groups, steps);
}

PeakKernel byte_products(const Target& target, int64_t groups, int steps) {
  return chains_of(target.has_dot(false, true) ? kMixedByteStep : kSignedByteStep, target, groups, steps);
}

PeakKernel matrix_products(const Target& target, DType dtype, int64_t groups, int times) {
  constexpr int kSide = Target::kMatrixSide;
  const int steps = target.matrix_steps(dtype), pitch = steps + 16 / element_size(dtype);
  PeakKernel p;
  p.groups = groups;
  p.input = kSide;
  p.output = groups * kSide * kSide;
  p.work = 2.0 * steps * static_cast<double>(p.output) * times;
  const DType sums = *loop::sums_of_matrices(dtype);
  p.text = fmt::format(
      R"(kernel @matrix_products grid(wg: {groups}) {{
  buffer %x: f32[{side}] read binding 0
  buffer %y: f32[{outputs}] write binding 1
  alloc %rows: {dtype}[{shared}] shared
  alloc %columns: {dtype}[{shared}] shared
  alloc %tile: {sums}[{results}] shared
  alloc %sums: {sums}[{results}] matrix
  for i in serial({steps}) {{
    for f in vector({side}) {{
      %rows[f * {pitch} + i] = cast({dtype}, %x[f] * {scale}f32)
      %columns[f * {pitch} + i] = cast({dtype}, %x[f] * {scale}f32)
    }}
  }}
  for k in reduction({times}) {{
    multiply_matrices({side}, {side}, {steps}) %sums += %rows[0, {pitch}, 1] * %columns[0, 1, {pitch}]
  }}
  store_matrix({side}, {side}) %tile[0, {side}, 1] = %sums
  for m in serial({side}) {{
    for n in vector({side}) {{
      %y[wg * {results} + m * {side} + n] = {stored}
    }}
  }}
}}
)",
      fmt::arg("groups", groups), fmt::arg("outputs", p.output), fmt::arg("side", kSide),
      fmt::arg("results", kSide * kSide), fmt::arg("shared", kSide * pitch), fmt::arg("pitch", pitch),
      fmt::arg("steps", steps), fmt::arg("times", times), fmt::arg("dtype", to_string(dtype)),
      fmt::arg("scale", is_byte(dtype) ? 100 : 1), fmt::arg("sums", to_string(sums)),
      fmt::arg("stored", fmt::format(fmt::runtime(sums == DType::kF32 ? "{0}" : "cast(f32, {0})"),
                                     fmt::format("%tile[m * {} + n]", kSide))));
  return p;
}

// Sums of `bytes`, a share for each workgroup, `sweeps` times over. A workgroup reads the halves of its share side by
// side, since hardware prefetchers follow two streams faster than one.
PeakKernel reads(const char* name, const Target& target, int64_t groups, int64_t bytes, int sweeps) {
  int lanes = target.lanes(4), chains = 8;
  int64_t step = int64_t{lanes} * chains, half = chains / 2,
          steps = std::max<int64_t>(1, bytes / 4 / groups / step);
  PeakKernel p;
  p.groups = groups;
  p.input = groups * steps * step;
  p.output = groups * step;
  p.work = 4.0 * static_cast<double>(p.input) * sweeps;
  p.counts_bytes = true;
  p.text = fmt::format(
      R"(kernel @{name} grid(wg: {groups}) {{
  buffer %x: f32[{inputs}] read binding 0
  buffer %y: f32[{outputs}] write binding 1
  alloc %acc: f32[{step}] register
  for i in unrolled({chains}) {{
    for l in vector({lanes}) {{
      %acc[i * {lanes} + l] = 0f32
    }}
  }}
  for s in reduction({sweeps}) {{
    for k in reduction({steps}) {{
      for h in unrolled(2) {{
        for j in unrolled({half}) {{
          for m in vector({lanes}) {{
            %acc[(h * {half} + j) * {lanes} + m] = %acc[(h * {half} + j) * {lanes} + m] + %x[((wg * 2 + h) * {steps} + k) * {half_step} + j * {lanes} + m]
          }}
        }}
      }}
    }}
  }}
  for o in unrolled({chains}) {{
    for n in vector({lanes}) {{
      %y[wg * {step} + o * {lanes} + n] = %acc[o * {lanes} + n]
    }}
  }}
}}
)",
      fmt::arg("name", name), fmt::arg("groups", groups), fmt::arg("inputs", p.input),
      fmt::arg("outputs", p.output), fmt::arg("lanes", lanes), fmt::arg("chains", chains),
      fmt::arg("half", half), fmt::arg("step", step), fmt::arg("half_step", step / 2),
      fmt::arg("steps", steps), fmt::arg("sweeps", sweeps));
  return p;
}

Status write_peak_kernels(const std::vector<PeakKernel>& peak_kernels, const Target& target,
                          const std::string& path) {
  std::vector<loop::Kernel> kernels;
  for (const PeakKernel& peak : peak_kernels) {
    QUERNEL_TRY(loop::Kernel kernel, loop::parse_kernel(peak.text));
    QUERNEL_CHECK(run_loop_passes({&kernel}, {}));
    kernels.push_back(std::move(kernel));
  }
  QUERNEL_TRY(Code code, compile(kernels, target));
  codegen::Image& image = code.image;
  bundle::BundleContents contents;
  contents.producer = "quernel " QUERNEL_VERSION;
  bundle::Variant& variant = contents.variants.emplace_back();
  variant.target = target.name;
  variant.arch = target.arch;
  variant.required_features = target.required_features | code.features;
  if (target.is_gpu()) variant.code_format = bundle::CodeFormat::kSpirv;
  variant.code.resize(image.code.size());
  std::memcpy(variant.code.data(), image.code.data(), image.code.size());
  for (size_t k = 0; k < peak_kernels.size(); ++k)
    variant.kernels.push_back(
        {image.kernel_names[k], image.scratch_bytes[k], static_cast<uint32_t>(image.stack_bytes[k])});
  for (size_t k = 0; k < peak_kernels.size(); ++k) {
    bundle::EntryPoint& entry = contents.entry_points.emplace_back();
    entry.name = image.kernel_names[k];
    bundle::Item item;
    item.kernel = static_cast<uint32_t>(k);
    item.workgroups = static_cast<uint64_t>(peak_kernels[k].groups);
    (peak_kernels[k].counts_bytes ? item.bytes_read : item.flops) =
        static_cast<uint64_t>(peak_kernels[k].work);
    for (bool write : {false, true}) {
      int64_t count = write ? peak_kernels[k].output : peak_kernels[k].input;
      bundle::Tensor tensor;
      tensor.name = write ? "y" : "x";
      tensor.shape = {count};
      tensor.bytes = static_cast<uint64_t>(count) * 4;
      tensor.arena = static_cast<uint32_t>(contents.arenas.size());
      bundle::Arena& arena = contents.arenas.emplace_back();
      arena.name = entry.name + "." + tensor.name;
      arena.kind = write ? bundle::ArenaKind::kOutput : bundle::ArenaKind::kInput;
      arena.bytes = tensor.bytes;
      item.bindings.push_back(
          {tensor.arena, write ? bundle::Access::kWrite : bundle::Access::kRead, 0, tensor.bytes});
      (write ? entry.outputs : entry.inputs).push_back(std::move(tensor));
    }
    entry.plans.push_back({0, {std::move(item)}, ""});
  }
  Expected<bundle::BundleSizes> written = bundle::write_bundle(contents, path);
  if (!written) return written.take_errors();
  return {};
}

}  // namespace quernel::tools
