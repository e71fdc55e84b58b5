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

template <class Change>
Verified verify_changed(Change change) {
  std::vector<std::byte> image = test_image();
  change(image);
  return verify(image);
}

TEST(Image, LoadsAndRuns) {
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

TEST(Image, WrongKernelCountIsRefused) {
  std::vector<std::byte> bytes = test_image();
  Image image;
  qnl_error error = {};
  EXPECT_EQ(image.load(bytes.data(), bytes.size(), runtime::host_arch(), kKernelCount + 1, &error),
            QNL_MALFORMED_IMAGE);
}

TEST(Image, OtherAbiVersionIsRefused) {
  std::vector<std::byte> bytes = test_image();
  // The table begins with magic, then its version; a table of another version is not used.
  const uint32_t table[] = {QNL_IMAGE_MAGIC, 1, kKernelCount};
  auto* at = static_cast<char*>(memmem(bytes.data(), bytes.size(), table, sizeof table));
  ASSERT_NE(at, nullptr);
  uint32_t version = 2;
  std::memcpy(at + 4, &version, 4);
  Image image;
  EXPECT_EQ(image.load(bytes.data(), bytes.size(), runtime::host_arch(), kKernelCount, nullptr),
            QNL_KERNEL_ABI_MISMATCH);
  version = 1;
  std::memcpy(at + 4, &version, 4);
  int32_t outside = 1 << 30;
  std::memcpy(at + 16 + 4 * kScale, &outside, 4);
  EXPECT_EQ(image.load(bytes.data(), bytes.size(), runtime::host_arch(), kKernelCount, nullptr),
            QNL_MALFORMED_IMAGE);
}

TEST(Image, EveryTruncationIsRefused) {
  std::vector<std::byte> image = test_image();
  uint64_t needed = program_header(image, PT_LOAD)->p_filesz;
  for (size_t length = 0; length < needed; ++length) {
    std::vector<std::byte> cut(image.begin(), image.begin() + static_cast<long>(length));
    ASSERT_EQ(verify(cut).status, QNL_MALFORMED_IMAGE) << length;
  }
}

TEST(Image, ElfHeaderIsChecked) {
  auto refused = [](auto change) { return verify_changed([&](auto& i) { change(header(i)); }).status; };
  EXPECT_EQ(refused([](Elf64_Ehdr& h) { h.e_ident[0] = 0; }), QNL_MALFORMED_IMAGE);
  EXPECT_EQ(refused([](Elf64_Ehdr& h) { h.e_ident[EI_CLASS] = ELFCLASS32; }), QNL_MALFORMED_IMAGE);
  EXPECT_EQ(refused([](Elf64_Ehdr& h) { h.e_ident[EI_DATA] = ELFDATA2MSB; }), QNL_MALFORMED_IMAGE);
  EXPECT_EQ(refused([](Elf64_Ehdr& h) { h.e_type = ET_EXEC; }), QNL_MALFORMED_IMAGE);
  EXPECT_EQ(refused([](Elf64_Ehdr& h) { h.e_machine = EM_SPARC; }), QNL_MALFORMED_IMAGE);
  EXPECT_EQ(refused([](Elf64_Ehdr& h) { h.e_phoff = ~UINT64_C(0) - 10; }), QNL_MALFORMED_IMAGE);
  EXPECT_EQ(refused([](Elf64_Ehdr& h) { h.e_phnum = 0; }), QNL_MALFORMED_IMAGE);
  EXPECT_EQ(refused([](Elf64_Ehdr& h) { h.e_phnum = 0xFFFF; }), QNL_MALFORMED_IMAGE);
  EXPECT_EQ(refused([](Elf64_Ehdr& h) { h.e_phentsize = 8; }), QNL_MALFORMED_IMAGE);
  EXPECT_EQ(refused([](Elf64_Ehdr& h) { h.e_entry = 0; }), QNL_MALFORMED_IMAGE);
  EXPECT_EQ(refused([](Elf64_Ehdr& h) { h.e_entry = UINT64_C(1) << 40; }), QNL_MALFORMED_IMAGE);
}

TEST(Image, SegmentsAreChecked) {
  auto load = [](auto change) {
    return verify_changed([&](auto& i) { change(*program_header(i, PT_LOAD)); }).status;
  };
  EXPECT_EQ(load([](Elf64_Phdr& p) { p.p_flags |= PF_W; }), QNL_MALFORMED_IMAGE) << "writable and executable";
  EXPECT_EQ(load([](Elf64_Phdr& p) { p.p_flags = PF_R; }), QNL_MALFORMED_IMAGE);
  EXPECT_EQ(load([](Elf64_Phdr& p) { p.p_offset = 8; }), QNL_MALFORMED_IMAGE);
  EXPECT_EQ(load([](Elf64_Phdr& p) { p.p_filesz = ~UINT64_C(0); }), QNL_MALFORMED_IMAGE);
  EXPECT_EQ(load([](Elf64_Phdr& p) { p.p_memsz += 4096; }), QNL_MALFORMED_IMAGE) << ".bss";
  EXPECT_EQ(load([](Elf64_Phdr& p) { p.p_vaddr = 8; }), QNL_MALFORMED_IMAGE);
  EXPECT_EQ(load([](Elf64_Phdr& p) { p.p_vaddr = ~UINT64_C(0) & ~UINT64_C(4095); }), QNL_MALFORMED_IMAGE);
  EXPECT_EQ(load([](Elf64_Phdr& p) { p.p_type = PT_NULL; }), QNL_MALFORMED_IMAGE) << "nothing to load";
  auto dynamic = [](uint32_t type) {
    return verify_changed([&](auto& i) { program_header(i, PT_DYNAMIC)->p_type = type; });
  };
  EXPECT_NE(dynamic(PT_INTERP).text.find("interpreter"), std::string::npos);
  EXPECT_NE(dynamic(PT_TLS).text.find("thread-local"), std::string::npos);
  EXPECT_NE(dynamic(PT_LOAD).text.find("found more"), std::string::npos);
  EXPECT_NE(dynamic(PT_GNU_RELRO).text.find("unknown program header"), std::string::npos);
  EXPECT_EQ(verify_changed([](auto& i) {
              program_header(i, PT_DYNAMIC)->p_type = PT_GNU_STACK;
              header(i);
              for (auto* p = program_header(i, PT_GNU_STACK); p != nullptr; p = nullptr)
                p->p_flags = PF_R | PF_X;
            }).status,
            QNL_MALFORMED_IMAGE);
}

TEST(Image, DynamicSectionIsChecked) {
  auto with_tag = [](uint64_t tag) {
    return verify_changed([&](auto& i) {
      auto* first = reinterpret_cast<Elf64_Dyn*>(i.data() + program_header(i, PT_DYNAMIC)->p_offset);
      first->d_tag = static_cast<int64_t>(tag);
    });
  };
  EXPECT_NE(with_tag(DT_NEEDED).text.find("library"), std::string::npos);
  for (uint64_t tag : {DT_REL, DT_RELA, 36, DT_JMPREL, DT_TEXTREL})
    EXPECT_NE(with_tag(tag).text.find("relocations"), std::string::npos) << tag;
  for (uint64_t tag : {DT_INIT, DT_FINI, DT_INIT_ARRAY, DT_FINI_ARRAY, DT_PREINIT_ARRAY})
    EXPECT_NE(with_tag(tag).text.find("initialisation"), std::string::npos) << tag;
  EXPECT_EQ(
      verify_changed([](auto& i) { program_header(i, PT_DYNAMIC)->p_offset = ~UINT64_C(0) - 8; }).status,
      QNL_MALFORMED_IMAGE);
  EXPECT_EQ(verify_changed([](auto& i) { program_header(i, PT_DYNAMIC)->p_filesz = 16; }).status,
            QNL_MALFORMED_IMAGE)
      << "no terminator";
}

}  // namespace
}  // namespace quernel::test
