// The image loader takes exactly the form that kernel_abi.h describes and refuses everything else without
// running it.
#include "cpu/image.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>

#include "cpu/cpu_features.h"
#include "test_bundle.h"

namespace quernel::test {
namespace {

using runtime::Image;
using runtime::ImageLayout;

Elf64_Ehdr& header(std::vector<std::byte>& image) { return *reinterpret_cast<Elf64_Ehdr*>(image.data()); }
Elf64_Phdr* program_header(std::vector<std::byte>& image, uint32_t type) {
  auto* headers = reinterpret_cast<Elf64_Phdr*>(image.data() + header(image).e_phoff);
  for (int i = 0; i < header(image).e_phnum; ++i)
    if (headers[i].p_type == type) return &headers[i];
  return nullptr;
}

struct Verified {
  qnl_status status;
  std::string text;
};

Verified verify(const std::vector<std::byte>& image) {
  ImageLayout layout;
  qnl_error error = {};
  qnl_status status = verify_image(image.data(), image.size(), runtime::host_arch(), &layout, &error);
  return {status, error.text};
}

// The text of a malformed image, after the prefix that all have.
std::string said(const Verified& verified) {
  EXPECT_EQ(verified.status, QNL_MALFORMED_IMAGE);
  const std::string prefix = "code image: ";
  EXPECT_EQ(verified.text.rfind(prefix, 0), 0u) << verified.text;
  return verified.text.substr(std::min(prefix.size(), verified.text.size()));
}

template <class Change>
Verified verify_changed(Change change) {
  std::vector<std::byte> image = test_image();
  change(image);
  return verify(image);
}

TEST(Image, loads_and_runs) {
  std::vector<std::byte> bytes = test_image();
  Image image;
  qnl_error error = {};
  ASSERT_EQ(image.load(bytes.data(), bytes.size(), runtime::host_arch(), kKernelCount, &error), QNL_OK)
      << error.text;
  float a[16], b[16], out[16];
  for (int i = 0; i < 16; ++i) a[i] = static_cast<float>(i), b[i] = 100;
  void* bindings[] = {a, b, out};
  qnl_kernel_args args = {bindings, nullptr, nullptr};
  EXPECT_EQ(image.kernel(kAdd)(&args, 0, 1), QNL_KERNEL_OK);
  EXPECT_EQ(out[15], 115.0f);
  image.unload();
}

TEST(Image, wrong_kernel_count_is_refused) {
  std::vector<std::byte> bytes = test_image();
  Image image;
  qnl_error error = {};
  EXPECT_EQ(image.load(bytes.data(), bytes.size(), runtime::host_arch(), kKernelCount + 1, &error),
            QNL_MALFORMED_IMAGE);
  EXPECT_STREQ(error.text, "code image: expected 9 kernels, found 8");
}

TEST(Image, other_abi_version_is_refused) {
  std::vector<std::byte> bytes = test_image();
  // The table begins with magic, then its version; a table of another version is not used.
  const uint32_t table[] = {QNL_IMAGE_MAGIC, 1, kKernelCount};
  auto* at = static_cast<char*>(memmem(bytes.data(), bytes.size(), table, sizeof table));
  ASSERT_NE(at, nullptr);
  uint32_t version = 2;
  std::memcpy(at + 4, &version, 4);
  Image image;
  qnl_error error = {};
  auto load = [&] {
    return image.load(bytes.data(), bytes.size(), runtime::host_arch(), kKernelCount, &error);
  };
  EXPECT_EQ(load(), QNL_KERNEL_ABI_MISMATCH);
  EXPECT_STREQ(error.text, "code image: expected a kernel table of ABI version 1");
  version = 1;
  std::memcpy(at + 4, &version, 4);
  int32_t outside = 1 << 30;
  std::memcpy(at + 16 + 4 * kScale, &outside, 4);
  EXPECT_EQ(load(), QNL_MALFORMED_IMAGE);
  EXPECT_STREQ(error.text, "code image: kernel 1 lies outside the image");
  std::memcpy(at + 16 + 4 * kScale, &version, 4);  // inside again
  uint32_t count = 1 << 30;
  std::memcpy(at + 8, &count, 4);
  EXPECT_EQ(load(), QNL_MALFORMED_IMAGE);
  EXPECT_STREQ(error.text, "code image: the kernel table lies outside the image");
}

// The query function returns null instead of a table.
TEST(Image, abi_that_is_not_implemented) {
  if (runtime::host_arch() != QNL_ARCH_X86_64) GTEST_SKIP() << "the patch is x86-64 code";
  std::vector<std::byte> bytes = test_image();
  const unsigned char return_null[] = {0x31, 0xC0, 0xC3};  // xor eax, eax; ret
  uint64_t at = header(bytes).e_entry - program_header(bytes, PT_LOAD)->p_vaddr;
  ASSERT_LT(at + sizeof return_null, bytes.size());
  std::memcpy(bytes.data() + at, return_null, sizeof return_null);
  Image image;
  qnl_error error = {};
  EXPECT_EQ(image.load(bytes.data(), bytes.size(), runtime::host_arch(), kKernelCount, &error),
            QNL_KERNEL_ABI_MISMATCH);
  EXPECT_STREQ(error.text, "code image: does not implement kernel ABI version 1");
}

TEST(Image, every_truncation_is_refused) {
  std::vector<std::byte> image = test_image();
  uint64_t needed = program_header(image, PT_LOAD)->p_filesz;
  for (size_t length = 0; length < needed; ++length) {
    std::vector<std::byte> cut(image.begin(), image.begin() + static_cast<long>(length));
    ASSERT_EQ(verify(cut).status, QNL_MALFORMED_IMAGE) << length;
  }
}

TEST(Image, elf_header_is_checked) {
  EXPECT_EQ(said(verify({})), "expected an ELF file, found 0 bytes");
  auto refused = [](auto change) { return said(verify_changed([&](auto& i) { change(header(i)); })); };
  const std::string shared = "expected a little-endian ELF shared object of this word size";
  EXPECT_EQ(refused([](Elf64_Ehdr& h) { h.e_ident[0] = 0; }), shared);
  EXPECT_EQ(refused([](Elf64_Ehdr& h) { h.e_ident[EI_CLASS] = ELFCLASS32; }), shared);
  EXPECT_EQ(refused([](Elf64_Ehdr& h) { h.e_ident[EI_DATA] = ELFDATA2MSB; }), shared);
  EXPECT_EQ(refused([](Elf64_Ehdr& h) { h.e_type = ET_EXEC; }), shared);
  std::string machine = refused([](Elf64_Ehdr& h) { h.e_machine = EM_SPARC; });
  EXPECT_EQ(machine.rfind("expected ELF machine ", 0), 0u) << machine;
  EXPECT_NE(machine.find("), found 2"), std::string::npos) << machine;
  const std::string outside = "the program headers lie outside the file";
  EXPECT_EQ(refused([](Elf64_Ehdr& h) { h.e_phoff = ~UINT64_C(0) - 10; }), outside);
  EXPECT_EQ(refused([](Elf64_Ehdr& h) { h.e_phnum = 0; }), outside);
  EXPECT_EQ(refused([](Elf64_Ehdr& h) { h.e_phnum = 0xFFFF; }), outside);
  EXPECT_EQ(refused([](Elf64_Ehdr& h) { h.e_phentsize = 8; }), outside);
  EXPECT_EQ(refused([](Elf64_Ehdr& h) { h.e_entry = 0; }), "the entry lies outside the segment");
  EXPECT_EQ(refused([](Elf64_Ehdr& h) { h.e_entry = UINT64_C(1) << 40; }),
            "the entry lies outside the segment");
}

TEST(Image, segments_are_checked) {
  auto load = [](auto change) {
    return said(verify_changed([&](auto& i) { change(*program_header(i, PT_LOAD)); }));
  };
  const std::string flags = "expected a segment that is readable and executable, found flags ";
  EXPECT_EQ(load([](Elf64_Phdr& p) { p.p_flags |= PF_W; }), flags + "7") << "writable and executable";
  EXPECT_EQ(load([](Elf64_Phdr& p) { p.p_flags = PF_R; }), flags + "4");
  const std::string place =
      "expected a segment that begins the file and ends inside it, without zero-filled data";
  EXPECT_EQ(load([](Elf64_Phdr& p) { p.p_offset = 8; }), place);
  EXPECT_EQ(load([](Elf64_Phdr& p) { p.p_filesz = ~UINT64_C(0); }), place);
  EXPECT_EQ(load([](Elf64_Phdr& p) { p.p_memsz += 4096; }), place) << ".bss";
  EXPECT_EQ(load([](Elf64_Phdr& p) { p.p_vaddr = 8; }), "expected a page-aligned segment address");
  EXPECT_EQ(load([](Elf64_Phdr& p) { p.p_vaddr = ~UINT64_C(0) & ~UINT64_C(4095); }),
            "the entry lies outside the segment");
  EXPECT_EQ(load([](Elf64_Phdr& p) { p.p_type = PT_NULL; }), "expected one loadable segment, found none");
  auto dynamic = [](uint32_t type) {
    return said(verify_changed([&](auto& i) { program_header(i, PT_DYNAMIC)->p_type = type; }));
  };
  EXPECT_EQ(dynamic(PT_INTERP), "asks for an interpreter");
  EXPECT_EQ(dynamic(PT_TLS), "has thread-local data");
  EXPECT_EQ(dynamic(PT_LOAD), "expected one loadable segment, found more");
  EXPECT_EQ(dynamic(PT_GNU_RELRO), "unknown program header 1685382482");
  EXPECT_EQ(said(verify_changed([](auto& i) {
              Elf64_Phdr* stack = program_header(i, PT_DYNAMIC);
              stack->p_type = PT_GNU_STACK;
              stack->p_flags = PF_R | PF_X;
            })),
            "asks for an executable stack");
}

TEST(Image, dynamic_section_is_checked) {
  auto with_tag = [](uint64_t tag) {
    return said(verify_changed([&](auto& i) {
      auto* first = reinterpret_cast<Elf64_Dyn*>(i.data() + program_header(i, PT_DYNAMIC)->p_offset);
      first->d_tag = static_cast<int64_t>(tag);
    }));
  };
  const std::string wanted = "expected a self-contained image, found ";
  EXPECT_EQ(with_tag(DT_NEEDED), wanted + "a needed library");
  for (uint64_t tag : {DT_REL, DT_RELA, 36, DT_JMPREL, DT_TEXTREL})
    EXPECT_EQ(with_tag(tag), wanted + "relocations") << tag;
  for (uint64_t tag : {DT_INIT, DT_FINI, DT_INIT_ARRAY, DT_FINI_ARRAY, DT_PREINIT_ARRAY})
    EXPECT_EQ(with_tag(tag), wanted + "initialisation functions") << tag;
  EXPECT_EQ(said(verify_changed([](auto& i) { program_header(i, PT_DYNAMIC)->p_offset = ~UINT64_C(0) - 8; })),
            "the dynamic section lies outside the file");
  EXPECT_EQ(said(verify_changed([](auto& i) { program_header(i, PT_DYNAMIC)->p_filesz = 16; })),
            "the dynamic section has no end");
}

}  // namespace
}  // namespace quernel::test
