// Images as files: the ABI's segment rules, no relocations or undefined symbols, the same bytes every time,
// refusals.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "kernel_maker.h"
#include "run_image.h"

namespace quernel::test {
namespace {

using namespace loop;

// Kernels that tempt LLVM to call a library: fills, copies, transcendental functions, remainders,
// conversions.
std::vector<Kernel> tempting_kernels() {
  std::vector<Kernel> kernels;
  for (int lanes : {1, 16}) {
    KernelMaker fill("fill" + std::to_string(lanes));
    Buffer out = fill.output(DType::kI8, 4096);
    Var i = fill.var();
    fill.kernel.body = for_loop(
        i, const_index(4096 / lanes), AxisKind::kSerial,
        store(out, lanes_from(var_ref(i) * const_index(lanes), lanes), const_int(DType::kI8, 0, lanes)));
    kernels.push_back(fill.kernel);
    for (DType d : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
      std::string suffix = "_" + std::string(to_string(d)) + std::to_string(lanes);
      kernels.push_back(
          elementwise("copy" + suffix, {d}, d, 4096, lanes, [](const auto& in) { return in[0]; }));
      for (UnaryOp op : {UnaryOp::k_exp, UnaryOp::k_sin, UnaryOp::k_tanh, UnaryOp::k_floor, UnaryOp::k_round,
                         UnaryOp::k_sqrt, UnaryOp::k_log2})
        kernels.push_back(elementwise(std::string(to_string(op)) + suffix, {d}, d, 4096, lanes,
                                      [&](const auto& in) { return unary(op, in[0]); }));
      for (BinaryOp op : {BinaryOp::k_pow, BinaryOp::k_fmod, BinaryOp::k_max})
        kernels.push_back(elementwise(std::string(to_string(op)) + suffix, {d, d}, d, 4096, lanes,
                                      [&](const auto& in) { return binary(op, in[0], in[1]); }));
    }
  }
  return kernels;
}

template <class Header, class Segment, class Entry>
void expect_one_closed_segment(const std::vector<uint8_t>& elf, std::string_view target) {
  Header header;
  std::memcpy(&header, elf.data(), sizeof(header));
  EXPECT_EQ(header.e_type, ET_DYN);
  int loads = 0;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Segment segment;
    std::memcpy(&segment, elf.data() + header.e_phoff + i * sizeof(segment), sizeof(segment));
    EXPECT_NE(segment.p_type, static_cast<uint32_t>(PT_INTERP));
    EXPECT_NE(segment.p_type, static_cast<uint32_t>(PT_TLS));
    if (segment.p_type == PT_LOAD) {
      ++loads;
      EXPECT_EQ(segment.p_flags, static_cast<uint32_t>(PF_R | PF_X));
      EXPECT_EQ(segment.p_offset, 0u);
      EXPECT_EQ(segment.p_filesz, segment.p_memsz);
    }
    if (segment.p_type != PT_DYNAMIC) continue;
    for (size_t at = segment.p_offset; at < segment.p_offset + segment.p_filesz; at += sizeof(Entry)) {
      Entry entry;
      std::memcpy(&entry, elf.data() + at, sizeof(entry));
      for (int64_t tag : {DT_NEEDED, DT_REL, DT_RELA, DT_JMPREL, DT_INIT, DT_FINI, DT_INIT_ARRAY,
                          DT_FINI_ARRAY, DT_TEXTREL})
        EXPECT_NE(entry.d_tag, tag) << target;
    }
  }
  EXPECT_EQ(loads, 1) << target;
}

TEST(Image, keeps_the_kernel_abi) {
  for (std::string_view target : target_names()) {
    if (find_target(target)->bare_metal || find_target(target)->is_gpu()) continue;  // no images
    std::vector<Kernel> kernels = tempting_kernels();
    codegen::Image image = compile_or_fail(kernels, std::string(target));
    ASSERT_EQ(image.kernel_names.size(), kernels.size());
    EXPECT_EQ(image.stack_bytes.size(), kernels.size());
    EXPECT_EQ(image.scratch_bytes, std::vector<uint64_t>(kernels.size(), 0));
    ASSERT_GT(image.code.size(), static_cast<size_t>(EI_CLASS)) << target;
    if (image.code[EI_CLASS] == ELFCLASS64)
      expect_one_closed_segment<Elf64_Ehdr, Elf64_Phdr, Elf64_Dyn>(image.code, target);
    else
      expect_one_closed_segment<Elf32_Ehdr, Elf32_Phdr, Elf32_Dyn>(image.code, target);
  }
}

TEST(Image, table_answers_its_version_only) {
  codegen::Image image = compile_or_fail(
      {elementwise("copy", {DType::kF32}, DType::kF32, 16, 16, [](const auto& in) { return in[0]; })},
      "native");
  MappedImage mapped(image.code);  // which checks that another version is answered with null
  EXPECT_EQ(mapped.table()->magic, QNL_IMAGE_MAGIC);
  EXPECT_EQ(mapped.table()->abi_version, QNL_KERNEL_ABI_VERSION);
  EXPECT_EQ(mapped.table()->kernel_count, 1u);
}

TEST(Image, no_kernels_are_an_image_too) {
  codegen::Image image = compile_or_fail({}, "native");
  EXPECT_EQ(MappedImage(image.code).table()->kernel_count, 0u);
}

TEST(Image, same_input_same_bytes) {
  std::vector<Kernel> kernels = tempting_kernels();
  codegen::MachineCodeOptions one, two;
  one.threads = 1;
  two.threads = 2;
  codegen::Image first = compile_or_fail(kernels, "x86-64-v3", one);
  EXPECT_EQ(first.code, compile_or_fail(kernels, "x86-64-v3", one).code);
  EXPECT_EQ(first.code, compile_or_fail(kernels, "x86-64-v3", two).code);
}

TEST(Image, leaves_no_temporary_files) {
  std::string directory = testing::TempDir() + "codegen-test-XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  const char* previous = std::getenv("TMPDIR");
  std::string restored = previous ? previous : "";
  setenv("TMPDIR", directory.c_str(), 1);
  compile_or_fail({}, "native");
  if (previous)
    setenv("TMPDIR", restored.c_str(), 1);
  else
    unsetenv("TMPDIR");
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  std::filesystem::remove_all(directory);
}

TEST(Image, storage_only_types_are_refused_by_name) {
  KernelMaker m("packed");
  Buffer in = m.global(DType::kI4, 16), out = m.output(DType::kI8, 16);
  m.kernel.body = store(out, const_index(0), cast(DType::kI8, load(in, const_index(0))));
  auto image = codegen::compile_kernels({m.kernel}, *find_target("native"), {});
  ASSERT_FALSE(image);
  EXPECT_EQ(image.errors()[0].kind, DiagnosticKind::kUnsupported);
  EXPECT_NE(image.errors()[0].message.find("packed"), std::string::npos);
  EXPECT_NE(image.errors()[0].message.find("i4"), std::string::npos);
}

TEST(Image, large_private_buffers_are_refused) {
  KernelMaker m("wide");
  Buffer out = m.output(DType::kF32, 16);
  Buffer wide = std::make_shared<const loop::BufferNode>(
      loop::BufferNode{"wide", DType::kF32, 1 << 20, loop::Scope::kRegister, 0, loop::Access::kReadWrite});
  m.kernel.body = block({alloc(wide), store(out, const_index(0), load(wide, const_index(0)))});
  auto image = codegen::compile_kernels({m.kernel}, *find_target("native"), {});
  ASSERT_FALSE(image);
  EXPECT_EQ(image.errors()[0].kind, DiagnosticKind::kUnsupported);
  EXPECT_EQ(image.errors()[0].message,
            "kernel 'wide': shared and register buffers take 4194304 bytes, expected at most 1048576");
}

TEST(Image, large_shared_buffers_are_refused) {
  KernelMaker m("wide");
  Buffer out = m.output(DType::kF32, 16), wide = m.local(DType::kF32, 1 << 29, loop::Scope::kShared);
  m.kernel.body = block({alloc(wide), store(out, const_index(0), load(wide, const_index(0)))});
  auto image = codegen::compile_kernels({m.kernel}, *find_target("native"), {});
  ASSERT_FALSE(image);
  EXPECT_EQ(image.errors()[0].kind, DiagnosticKind::kUnsupported);
  EXPECT_EQ(image.errors()[0].message,
            "kernel 'wide': large shared buffers take 2147483648 bytes, expected at most 1073741824");
}

TEST(Image, unfinished_loops_are_internal_errors) {
  KernelMaker m("raw");
  Buffer out = m.output(DType::kF32, 16);
  Var i = m.var();
  m.kernel.body =
      for_loop(i, const_index(16), AxisKind::kVector, store(out, var_ref(i), const_float(DType::kF32, 0)));
  auto image = codegen::compile_kernels({m.kernel}, *find_target("native"), {});
  ASSERT_FALSE(image);
  EXPECT_EQ(image.errors()[0].kind, DiagnosticKind::kInternal);
}

// LLVM would abort the process ("64-bit code requested on a subtarget that doesn't support it"); the next
// works.
TEST(Image, aborts_of_llvm_are_diagnostics) {
  Target broken = *find_target("x86-64");
  broken.cpu = "i486";
  auto kernel = elementwise("copy", {DType::kF32}, DType::kF32, 16, 16, [](const auto& in) { return in[0]; });
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto image = codegen::compile_kernels({kernel, kernel}, broken, {});
    ASSERT_FALSE(image);
    EXPECT_EQ(image.errors()[0].kind, DiagnosticKind::kInternal);
    EXPECT_NE(image.errors()[0].message.find("64-bit"), std::string::npos) << image.errors()[0].message;
    EXPECT_FALSE(compile_or_fail({kernel}, "x86-64").code.empty());
  }
}

// Nothing from outside the image may be called.
TEST(Image, library_calls_are_link_errors) {
  Target broken = *find_target("x86-64");
  broken.has_f16 = true;  // not true: LLVM would call a library for it, which the linker refuses
  auto kernel = elementwise("half", {DType::kF16}, DType::kF32, 16, 16,
                            [](const auto& in) { return cast(DType::kF32, in[0]); });
  auto image = codegen::compile_kernels({kernel}, broken, {});
  ASSERT_FALSE(image);
  EXPECT_EQ(image.errors()[0].kind, DiagnosticKind::kInternal);
  EXPECT_FALSE(compile_or_fail({kernel}, "x86-64").code.empty());
}

}  // namespace
}  // namespace quernel::test
