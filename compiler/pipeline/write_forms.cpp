#include "pipeline/write_forms.h"

#include <algorithm>
#include <optional>

#include "bundle/build_static_program.h"
#include "bundle/bundle_structure.h"
#include "bundle/write_bundle.h"
#include "bundle/write_static.h"
#include "codegen/c/print_program.h"
#include "codegen/llvm/static_archive.h"
#include "pipeline/compile_code.h"

namespace quernel {
namespace {

constexpr std::string_view kProducer = "quernel " QUERNEL_VERSION;

void set_scales(std::vector<bundle::Tensor>& tensors, const std::map<std::string, IntegerScale>& scales,
                ScaleRounding rounding) {
  for (bundle::Tensor& tensor : tensors)
    if (auto it = scales.find(tensor.name); it != scales.end()) {
      tensor.scale = it->second.scale;
      tensor.zero_point = static_cast<int32_t>(it->second.zero_point);
      tensor.rounding = rounding;
    }
}

bundle::BundleContents contents_of(const std::vector<bundle::CompiledVariant>& variants,
                                   const ModelFacts& facts) {
  bundle::BundleContents contents = bundle::bundle_from_schedule(variants, std::string(kProducer));
  contents.properties = facts.about.properties;
  for (const ModelAbout::Labels& labels : facts.about.labels)
    contents.properties.emplace_back("labels " + labels.file, labels.text);
  if (facts.rounding) contents.rounding = to_string(*facts.rounding);
  for (size_t e = 0; e < facts.sha256.size(); ++e) contents.entry_points[e].model_sha256 = facts.sha256[e];
  for (size_t e = 0; e < facts.multiply_adds.size(); ++e)
    contents.entry_points[e].multiply_adds = facts.multiply_adds[e];
  for (size_t e = 0; e < facts.scales.size(); ++e) {
    set_scales(contents.entry_points[e].inputs, facts.scales[e].inputs, facts.scales[e].rounding);
    set_scales(contents.entry_points[e].outputs, facts.scales[e].outputs, facts.scales[e].rounding);
  }
  return contents;
}

// The constants of a program as its printers read them: views. Returns what owns the packed ones.
std::vector<std::vector<std::byte>> pack_constants(bundle::BundleContents& contents) {
  std::vector<std::vector<std::byte>> packed;
  for (bundle::ConstantsSegment& segment : contents.constants)
    for (bundle::ConstantPiece& piece : segment.pieces) {
      if (!piece.produce) continue;
      std::vector<std::byte>& bytes = packed.emplace_back();
      bytes.reserve(piece.bytes);
      piece.produce(
          [&](std::span<const std::byte> part) { bytes.insert(bytes.end(), part.begin(), part.end()); });
      QUERNEL_ASSERT(bytes.size() == piece.bytes);
      piece.view = bytes;
      piece.produce = nullptr;
    }
  return packed;
}

// By kernel; what no item of a schedule calls has none.
std::vector<std::string> kernel_classes(const bundle::BundleContents& contents) {
  std::vector<std::string> classes(contents.variants[0].kernels.size());
  for (const bundle::EntryPoint& entry : contents.entry_points)
    for (const bundle::Item& item : entry.plans[0].items)
      if (item.kind == bundle::ItemKind::kDispatch && !item.on_companion)
        classes[item.kernel] = item.kernel_class;
  return classes;
}

std::vector<MemoryUse> memory_of(const codegen::StaticProgram& program) {
  std::vector<MemoryUse> memory;
  for (const codegen::StaticRegion& region : program.regions) memory.push_back({region.name, region.bytes});
  if (program.state_bytes != 0) memory.push_back({"state", program.state_bytes});
  return memory;
}

std::vector<StaticTensorReport> tensors_of(const std::vector<codegen::StaticTensor>& tensors) {
  std::vector<StaticTensorReport> result;
  for (const codegen::StaticTensor& t : tensors) {
    StaticTensorReport& to = result.emplace_back(
        StaticTensorReport{t.name, t.identifier, t.shape_identifier, t.dtype, {}, t.bytes});
    to.in_workspace = t.place.space == codegen::Space::kWorkspace;
    for (const codegen::Amount& dim : t.shape) to.shape.push_back(dim.expression < 0 ? dim.value : -1);
  }
  return result;
}

// Those that the first entry point calls.
std::vector<StaticKernelReport> kernels_of(const codegen::StaticProgram& program,
                                           const bundle::BundleContents& contents) {
  std::vector<StaticKernelReport> kernels(program.kernels.size());
  for (const bundle::Item& item : contents.entry_points[0].plans[0].items) {
    if (item.kind != bundle::ItemKind::kDispatch) continue;
    StaticKernelReport& kernel = kernels[item.kernel];
    if (kernel.calls++ == 0) {
      kernel.symbol = program.kernels[item.kernel].symbol;
      kernel.name = program.kernels[item.kernel].name;
      kernel.kernel_class = item.kernel_class;
      kernel.choice = item.choice;
    }
    kernel.multiply_adds += item.multiply_adds;
    for (const std::string& node : item.source_nodes)
      if (std::find(kernel.nodes.begin(), kernel.nodes.end(), node) == kernel.nodes.end())
        kernel.nodes.push_back(node);
  }
  std::erase_if(kernels, [](const StaticKernelReport& kernel) { return kernel.calls == 0; });
  return kernels;
}

// What a report says of a program in either form.
StaticReport static_report(const codegen::StaticProgram& program, const bundle::BundleContents& contents,
                           std::vector<std::string> files) {
  StaticReport report;
  report.files = std::move(files);
  report.memory = memory_of(program);
  report.inputs = tensors_of(program.entries[0].inputs);
  report.outputs = tensors_of(program.entries[0].outputs);
  report.kernels = kernels_of(program, contents);
  return report;
}

// What machine code for the same target has; the stack no less than the arrays in the C. Nothing where there
// is no such code.
std::optional<bundle::CodeFacts> estimate_facts(const codegen::StaticProgram& program,
                                                const bundle::CompiledVariant& variant,
                                                const codegen::CProgram& text,
                                                const CompileOptions& options) {
  if (variant.image.objects.empty() && !program.kernels.empty()) return std::nullopt;
  bool optimize = optimizes_code(options);
  Expected<codegen::StaticArchive> archive =
      codegen::static_archive(program, variant.image.objects, variant.target, optimize);
  if (!archive) return std::nullopt;
  return bundle::CodeFacts{archive->kernel_bytes + archive->overhead_bytes, archive->overhead_bytes,
                           std::max(archive->stack_bytes, text.array_bytes), true};
}

RamNeed need_of(const codegen::StaticProgram& program, uint64_t stack_bytes) {
  RamNeed need{program.state_bytes + stack_bytes, stack_bytes};
  for (const codegen::StaticRegion& region : program.regions) need.all += region.bytes;
  return need;
}

}  // namespace

Status write_bundle_file(const std::vector<bundle::CompiledVariant>& variants, const std::string& path,
                         const ModelFacts& facts, CompileReport& report) {
  bundle::BundleContents contents = contents_of(variants, facts);
  report.kernel_classes = kernel_classes(contents);
  QUERNEL_CHECK(bundle::check_counts(contents));
  QUERNEL_TRY(bundle::BundleSizes sizes, bundle::write_bundle(contents, path));
  report.file_bytes = sizes.file;
  report.code_bytes = sizes.code;
  report.constant_bytes = sizes.constants;
  return {};
}

Status write_static_form(const std::vector<bundle::CompiledVariant>& variants, const std::string& stem,
                         const CompileOptions& options, const ModelFacts& facts, CompileReport& report,
                         RamNeed& need) {
  const bundle::CompiledVariant& variant = variants[0];
  bundle::BundleContents contents = contents_of(variants, facts);
  const std::vector<std::vector<std::byte>> packed = pack_constants(contents);
  QUERNEL_TRY(codegen::StaticProgram program,
              bundle::build_static_program(contents, bundle::static_name(stem), variant.image.symbols));
  bool optimize = optimizes_code(options);
  QUERNEL_TRY(codegen::StaticArchive archive,
              codegen::static_archive(program, variant.image.objects, variant.target, optimize));
  need = need_of(program, archive.stack_bytes);
  QUERNEL_CHECK(bundle::check_memory(program, {archive.stack_bytes, false}, options.max_ram));
  QUERNEL_TRY(std::vector<std::string> files, bundle::write_static(program, archive, variant.target, stem));
  StaticReport& result = report.program.emplace(static_report(program, contents, std::move(files)));
  report.kernel_classes = kernel_classes(contents);
  report.file_bytes = archive.bytes.size();
  report.code_bytes = archive.kernel_bytes + archive.overhead_bytes;
  report.constant_bytes = program.constants_bytes;
  result.kernel_bytes = archive.kernel_bytes;
  result.overhead_bytes = archive.overhead_bytes;
  result.stack_bytes = archive.stack_bytes;
  result.helpers = archive.helpers;
  return {};
}

Status write_c_form(const std::vector<bundle::CompiledVariant>& variants,
                    const std::vector<loop::Kernel>& kernels, const std::string& stem,
                    const CompileOptions& options, const ModelFacts& facts, CompileReport& report,
                    RamNeed& need) {
  const bundle::CompiledVariant& variant = variants[0];
  bundle::BundleContents contents = contents_of(variants, facts);
  const std::vector<std::vector<std::byte>> packed = pack_constants(contents);
  QUERNEL_TRY(codegen::StaticProgram program,
              bundle::build_static_program(contents, bundle::static_name(stem), variant.image.symbols));
  QUERNEL_TRY(codegen::CProgram text,
              codegen::print_program(program, kernels, variant.target, bundle::static_name(stem) + ".h"));
  std::optional<bundle::CodeFacts> measured = estimate_facts(program, variant, text, options);
  uint64_t stack_bytes = measured ? measured->stack_bytes : text.array_bytes;
  need = need_of(program, stack_bytes);
  QUERNEL_CHECK(bundle::check_memory(program, {stack_bytes, true}, options.max_ram));
  QUERNEL_TRY(std::vector<std::string> files, bundle::write_c(program, text, measured, stem));
  StaticReport& result = report.program.emplace(static_report(program, contents, std::move(files)));
  report.kernel_classes = kernel_classes(contents);
  report.file_bytes = text.program.size() + text.weights.size() + text.memory.size();
  report.constant_bytes = program.constants_bytes;
  result.estimated = true;
  result.stack_bytes = stack_bytes;
  if (!measured) return {};
  report.code_bytes = measured->code_bytes;
  result.kernel_bytes = measured->code_bytes - measured->overhead_bytes;
  result.overhead_bytes = measured->overhead_bytes;
  return {};
}

}  // namespace quernel
