#include "cpu/image.h"

#include <elf.h>
#include <string.h>

#include "core/feature_names.h"
#include "platform/platform.h"

namespace quernel::runtime {
namespace {

#if UINTPTR_MAX > 0xFFFFFFFFu
using Ehdr = Elf64_Ehdr;
using Phdr = Elf64_Phdr;
using Dyn = Elf64_Dyn;
constexpr unsigned char kClass = ELFCLASS64;
#else
using Ehdr = Elf32_Ehdr;
using Phdr = Elf32_Phdr;
using Dyn = Elf32_Dyn;
constexpr unsigned char kClass = ELFCLASS32;
#endif
constexpr uint32_t kMaxProgramHeaders = 16;
constexpr uintptr_t kPageMask = 4095;
constexpr uint32_t kRiscvMachine = 243, kRiscvAttributes = 0x70000003;  // not in every <elf.h>, either
constexpr uint32_t kRelrTag = 36, kRelrSizeTag = 35;  // DT_RELR, DT_RELRSZ: not in every <elf.h>

uint32_t elf_machine(uint32_t arch) {
  switch (arch) {
    case QNL_ARCH_X86_64:
      return EM_X86_64;
    case QNL_ARCH_AARCH64:
      return EM_AARCH64;
    case QNL_ARCH_ARM:
      return EM_ARM;
    case QNL_ARCH_RISCV64:
      return kRiscvMachine;
    default:
      return EM_NONE;
  }
}

__attribute__((noinline, cold)) qnl_status malformed_untyped(qnl_error* error, uint32_t kinds,
                                                             const char* text, ...) {
  Failure failure(error, QNL_MALFORMED_IMAGE);
  failure.append("code image: ");
  va_list arguments;
  va_start(arguments, text);
  failure.append_list(kinds, text, arguments);
  va_end(arguments);
  return failure;
}

template <class... Arguments>
qnl_status malformed(qnl_error* error, Text<Arguments...> text, Arguments... arguments) {
  if constexpr (!kErrorTexts) return fail_status(error, QNL_MALFORMED_IMAGE);
  return malformed_untyped(error, argument_kinds<Arguments...>(), text.text, arguments...);
}

// What would need a dynamic linker.
const char* forbidden_tag(uint64_t tag) {
  switch (tag) {
    case DT_NEEDED:
      return "a needed library";
    case DT_REL:
    case DT_RELA:
    case DT_RELSZ:
    case DT_RELASZ:
    case kRelrTag:
    case kRelrSizeTag:
    case DT_JMPREL:
    case DT_PLTRELSZ:
    case DT_TEXTREL:
      return "relocations";
    case DT_INIT:
    case DT_FINI:
    case DT_INIT_ARRAY:
    case DT_FINI_ARRAY:
    case DT_PREINIT_ARRAY:
      return "initialisation functions";
    default:
      return nullptr;
  }
}

qnl_status verify_dynamic(const char* data, size_t bytes, const Phdr& header, qnl_error* error) {
  if (header.p_offset > bytes || header.p_filesz > bytes - header.p_offset)
    return malformed(error, "the dynamic section lies outside the file");
  for (size_t at = 0; at + sizeof(Dyn) <= header.p_filesz; at += sizeof(Dyn)) {
    Dyn entry;
    memcpy(&entry, data + header.p_offset + at, sizeof entry);
    if (entry.d_tag == DT_NULL) return QNL_OK;
    if (const char* what = forbidden_tag(static_cast<uint64_t>(entry.d_tag)))
      return malformed(error, "expected a self-contained image, found {}", what);
  }
  return malformed(error, "the dynamic section has no end");
}

qnl_status verify_load(const Phdr& header, size_t bytes, const Ehdr& ehdr, ImageLayout* layout,
                       qnl_error* error) {
  if (header.p_flags != (PF_R | PF_X))
    return malformed(error, "expected a segment that is readable and executable, found flags {}",
                     static_cast<uint32_t>(header.p_flags));
  if (header.p_offset != 0 || header.p_filesz == 0 || header.p_filesz > bytes ||
      header.p_memsz != header.p_filesz)
    return malformed(error,
                     "expected a segment that begins the file and ends inside it, without zero-filled data");
  if ((header.p_vaddr & kPageMask) != 0 || header.p_vaddr + header.p_filesz < header.p_vaddr)
    return malformed(error, "expected a page-aligned segment address");
  auto entry = static_cast<uintptr_t>(ehdr.e_entry) & ~uintptr_t{ehdr.e_machine == EM_ARM ? 1u : 0u};
  if (entry < header.p_vaddr + sizeof(Ehdr) || entry >= header.p_vaddr + header.p_filesz)
    return malformed(error, "the entry lies outside the segment");
  layout->segment_offset = header.p_offset;
  layout->segment_bytes = header.p_filesz;
  layout->entry = ehdr.e_entry - header.p_vaddr;
  return QNL_OK;
}

}  // namespace

qnl_status verify_image(const void* raw, uint64_t file_bytes, uint32_t arch, ImageLayout* layout,
                        qnl_error* error) {
  const char* data = static_cast<const char*>(raw);
  auto bytes = static_cast<size_t>(file_bytes);  // it is in memory
  Ehdr ehdr;
  if (bytes < sizeof ehdr) return malformed(error, "expected an ELF file, found {} bytes", file_bytes);
  memcpy(&ehdr, data, sizeof ehdr);
  if (memcmp(ehdr.e_ident, ELFMAG, SELFMAG) != 0 || ehdr.e_ident[EI_VERSION] != EV_CURRENT ||
      ehdr.e_ident[EI_CLASS] != kClass || ehdr.e_ident[EI_DATA] != ELFDATA2LSB || ehdr.e_type != ET_DYN)
    return malformed(error, "expected a little-endian ELF shared object of this word size");
  if (ehdr.e_machine != elf_machine(arch) || ehdr.e_machine == EM_NONE)
    return malformed(error, "expected ELF machine {} ({}), found {}", elf_machine(arch), arch_name(arch),
                     static_cast<uint32_t>(ehdr.e_machine));
  size_t headers = ehdr.e_phoff, header_bytes = ehdr.e_phnum * sizeof(Phdr);
  if (ehdr.e_phentsize != sizeof(Phdr) || ehdr.e_phnum == 0 || ehdr.e_phnum > kMaxProgramHeaders ||
      headers > bytes || header_bytes > bytes - headers)
    return malformed(error, "the program headers lie outside the file");
  uint32_t loads = 0;
  for (uint32_t i = 0; i < ehdr.e_phnum; ++i) {
    Phdr header;
    memcpy(&header, data + headers + i * sizeof header, sizeof header);
    qnl_status status = QNL_OK;
    switch (header.p_type) {
      case PT_LOAD:
        if (++loads > 1) return malformed(error, "expected one loadable segment, found more");
        status = verify_load(header, bytes, ehdr, layout, error);
        break;
      case PT_DYNAMIC:
        status = verify_dynamic(data, bytes, header, error);
        break;
      case PT_GNU_STACK:
        if ((header.p_flags & PF_X) != 0) status = malformed(error, "asks for an executable stack");
        break;
      case PT_NULL:
      case PT_NOTE:
      case PT_PHDR:
        break;
      case PT_INTERP:
        status = malformed(error, "asks for an interpreter");
        break;
      case PT_TLS:
        status = malformed(error, "has thread-local data");
        break;
      case kRiscvAttributes:  // the extensions that the code uses, as text; another thing on other machines
        if (ehdr.e_machine == kRiscvMachine) break;
        [[fallthrough]];
      default:
        status = malformed(error, "unknown program header {}", static_cast<uint32_t>(header.p_type));
        break;
    }
    if (status != QNL_OK) return status;
  }
  if (loads == 0) return malformed(error, "expected one loadable segment, found none");
  return QNL_OK;
}

qnl_status Image::load(const void* data, uint64_t bytes, uint32_t arch, uint32_t kernel_count,
                       qnl_error* error) {
  ImageLayout layout;
  if (qnl_status status = verify_image(data, bytes, arch, &layout, error); status != QNL_OK) return status;
  bytes_ = layout.segment_bytes;
  pages_ = static_cast<char*>(platform::allocate_pages(bytes_));
  if (pages_ == nullptr)
    return fail(error, QNL_OUT_OF_MEMORY, "code image: no memory for {} bytes", uint64_t{bytes_});
  memcpy(pages_, static_cast<const char*>(data) + layout.segment_offset, bytes_);
  qnl_status status = QNL_OK;
  if (!platform::make_executable(pages_, bytes_)) {
    status = fail(error, QNL_CODE_MEMORY_REFUSED,
                  "code image: the system does not let this process make pages executable");
  } else {
    status = query(layout.entry, kernel_count, error);
  }
  if (status != QNL_OK) unload();
  return status;
}

qnl_status Image::query(uintptr_t entry, uint32_t kernel_count, qnl_error* error) {
  auto function = reinterpret_cast<qnl_image_query_fn>(pages_ + entry);
  const qnl_image_table* table = function(QNL_KERNEL_ABI_VERSION);
  if (table == nullptr)
    return fail(error, QNL_KERNEL_ABI_MISMATCH, "code image: does not implement kernel ABI version {}",
                QNL_KERNEL_ABI_VERSION);
  uintptr_t begin = reinterpret_cast<uintptr_t>(pages_), end = begin + bytes_;
  auto at = reinterpret_cast<uintptr_t>(table);
  if (at < begin || at % alignof(qnl_image_table) != 0 || at > end || end - at < sizeof(qnl_image_table) ||
      (end - at - sizeof(qnl_image_table)) / sizeof(int32_t) < table->kernel_count)
    return malformed(error, "the kernel table lies outside the image");
  if (table->magic != QNL_IMAGE_MAGIC || table->abi_version != QNL_KERNEL_ABI_VERSION)
    return fail(error, QNL_KERNEL_ABI_MISMATCH, "code image: expected a kernel table of ABI version {}",
                QNL_KERNEL_ABI_VERSION);
  if (table->kernel_count != kernel_count)
    return malformed(error, "expected {} kernels, found {}", kernel_count, table->kernel_count);
  for (uint32_t k = 0; k < kernel_count; ++k) {
    uintptr_t address = at + static_cast<uintptr_t>(static_cast<intptr_t>(table->offsets[k]));
    if (address < begin || address >= end) return malformed(error, "kernel {} lies outside the image", k);
  }
  table_ = table;
  return QNL_OK;
}

void Image::unload() {
  platform::free_pages(pages_, bytes_);
  pages_ = nullptr;
  bytes_ = 0;
  table_ = nullptr;
}

qnl_kernel_fn Image::kernel(uint32_t index) const {
  const char* table = reinterpret_cast<const char*>(table_);
  return reinterpret_cast<qnl_kernel_fn>(const_cast<char*>(table + table_->offsets[index]));
}

}  // namespace quernel::runtime
