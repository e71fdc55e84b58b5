// Tables of SPIR-V modules: what is loaded, what is refused.
#include <cstring>
#include <functional>

#include "core/device.h"
#include "vulkan_fixture.h"

namespace quernel::test {
namespace {

using runtime::CommandFailure;
using runtime::DeviceArena;
using runtime::DeviceRange;
using runtime::KernelCode;
using runtime::KernelSet;

class VulkanKernels : public VulkanTest {
 protected:
  // Loads the table and records a dispatch of its first kernel, for which that is made.
  qnl_status load_and_record(const std::vector<std::byte>& code) {
    AlignedBytes bytes(code);
    error_ = {};
    const runtime::DeviceTable& table = *device()->table;
    KernelSet* kernels = nullptr;
    qnl_status status =
        table.load_kernels(device(), {bytes.data(), bytes.size(), QNL_ARCH_SPIRV, 1}, &kernels, &error_);
    if (status != QNL_OK) return status;
    runtime::Command command;
    command.kind = QNL_ITEM_DISPATCH;
    command.binding_count = command.symbol_count = 1;
    DeviceRange binding;
    uint64_t binding_bytes = 0;
    int64_t symbol = 0;
    command.symbols = &symbol;
    runtime::CommandList list = {&command, 1, &binding, &binding_bytes, 1};
    AlignedBytes memory(std::vector<std::byte>(table.record_bytes(device(), list)));
    runtime::Recording* recording = nullptr;
    status = table.record(device(), list, kernels, const_cast<void*>(memory.data()), &recording, &error_);
    if (status == QNL_OK) table.release(device(), recording);
    table.unload_kernels(device(), kernels);
    return status;
  }
  // What the table of one good kernel is refused with after this change.
  std::string refusal(const std::function<void(qnl_spirv_table*, qnl_spirv_kernel*)>& change) {
    std::vector<std::byte> code = good_;
    auto* table = reinterpret_cast<qnl_spirv_table*>(code.data());
    change(table, reinterpret_cast<qnl_spirv_kernel*>(table + 1));
    qnl_status status = load_and_record(code);
    if (status == QNL_OK) return "loaded";
    EXPECT_EQ(device()->table->memory_used(device()), 0u);
    return std::string(qnl_status_text(status)) + ": " + error_.text;
  }

  std::vector<std::byte> good_ = spirv_table("WORD(0, i) = SYMBOL(0);", 1, 1);
};

TEST_P(VulkanKernels, tables_that_are_wrong_are_refused) {
  using Table = qnl_spirv_table;
  using Kernel = qnl_spirv_kernel;
  ASSERT_EQ(load_and_record(good_), QNL_OK) << error_.text;
  EXPECT_EQ(refusal([](Table* t, Kernel*) { t->magic ^= 1; }),
            "malformed code image: kernels: expected a table of SPIR-V modules, found another magic");
  EXPECT_EQ(
      refusal([](Table* t, Kernel*) { t->abi_version = 99; }),
      "kernel ABI mismatch: kernels: expected SPIR-V ABI version 2 or 3, found 99; compile the model again");
  EXPECT_EQ(refusal([](Table* t, Kernel*) { t->kernel_count = 2; }),
            "malformed code image: kernels: expected a table of 1 modules, found 2");
  EXPECT_EQ(refusal([](Table* t, Kernel*) { t->reserved = 1; }),
            "malformed code image: kernels: expected 0 in the table's reserved word, found 1");
  const char* outside = "malformed code image: kernel 0: its module lies outside the code";
  EXPECT_EQ(refusal([](Table*, Kernel* k) { k->code_offset += 2; }), outside);
  EXPECT_EQ(refusal([](Table*, Kernel* k) { k->code_offset = 0; }), outside);
  EXPECT_EQ(refusal([](Table*, Kernel* k) { k->code_offset = 0xFFFFFFFC; }), outside);
  EXPECT_EQ(refusal([](Table*, Kernel* k) { k->code_bytes += 4; }), outside);
  EXPECT_EQ(refusal([](Table*, Kernel* k) { k->code_bytes -= 1; }), outside);
  EXPECT_EQ(refusal([](Table*, Kernel* k) { k->binding_count = 65; }),
            "malformed code image: kernel 0: expected at most 64 bindings, found 65");
  EXPECT_EQ(
      refusal([](Table*, Kernel* k) { k->flags = 2; }),
      "malformed code image: kernel 0: expected flags that this runtime knows, found 2; update the runtime");
  EXPECT_NE(refusal([](Table*, Kernel* k) {
              k->flags = QNL_SPIRV_COUNTS_ITERATIONS, k->symbol_count = 0;
            }).find("expected flags"),
            std::string::npos);
  EXPECT_EQ(refusal([](Table*, Kernel* k) { k->symbol_count = 257; }),
            "malformed code image: kernel 0: expected at most 256 symbols, found 257");
  EXPECT_NE(refusal([](Table*, Kernel* k) { k->features |= UINT64_C(1) << 60; }).find("bit-60"),
            std::string::npos);
  EXPECT_NE(refusal([](Table*, Kernel* k) {
              k->local_size = 100000;
            }).find("100000 invocations in a workgroup, the device at most"),
            std::string::npos);
  EXPECT_NE(refusal([](Table*, Kernel* k) { k->local_size = 0; }).find("0 invocations"), std::string::npos);
  EXPECT_NE(refusal([](Table*, Kernel* k) { k->local_size = 8; }).find("expected a local size of 8"),
            std::string::npos);
  EXPECT_NE(refusal([](Table*, Kernel* k) {
              k->shared_bytes = 1 << 24;
            }).find("bytes of shared memory, the device has"),
            std::string::npos);
}

// Every word of a module, changed in turn: what is not refused must not harm the loader; the driver is not
// asked.
TEST_P(VulkanKernels, modules_that_are_wrong_are_refused) {
  EXPECT_EQ(refusal([](auto*, auto* k) { k->code_bytes = 16; }),
            "malformed code image: kernel 0: expected a SPIR-V module");
  EXPECT_NE(refusal([](auto*, auto* k) { k->code_bytes -= 4; }).find("its SPIR-V ends within a function"),
            std::string::npos);
  EXPECT_NE(refusal([](auto*, auto* k) { k->code_bytes = 20; }).find("its SPIR-V ends within a function"),
            std::string::npos);
  auto word = [](qnl_spirv_table* t, qnl_spirv_kernel* k, uint32_t w) {
    return reinterpret_cast<uint32_t*>(reinterpret_cast<char*>(t) + k->code_offset) + w;
  };
  EXPECT_NE(
      refusal([&](auto* t, auto* k) { *word(t, k, 1) = 0x00010600; }).find("expected SPIR-V 1.3 or older"),
      std::string::npos);
  EXPECT_NE(refusal([&](auto* t, auto* k) {
              *word(t, k, 5) &= 0xFFFF;
            }).find("its SPIR-V ends within an instruction"),
            std::string::npos);
  // The first instruction is OpCapability Shader.
  EXPECT_NE(refusal([&](auto* t, auto* k) {
              *word(t, k, 6) = 5;
            }).find("capability 5 is none that kernels may have"),
            std::string::npos);
  EXPECT_NE(refusal([&](auto* t, auto* k) { *word(t, k, 6) = 11; }).find("capability 11 needs feature"),
            std::string::npos);
  for (uint32_t dot : {6018u, 6019u})  // DotProductInput4x8BitPacked, DotProduct
    EXPECT_NE(refusal([&](auto* t, auto* k) { *word(t, k, 6) = dot; }).find("needs feature dotprod"),
              std::string::npos);
  for (uint32_t subgroups : {61u, 63u})  // GroupNonUniform, its arithmetic
    EXPECT_NE(refusal([&](auto* t, auto* k) { *word(t, k, 6) = subgroups; }).find("needs feature subgroups"),
              std::string::npos);
  for (uint32_t f16 : {9u, 4466u, 4467u})  // Float16, SignedZeroInfNanPreserve, RoundingModeRTE
    EXPECT_NE(refusal([&](auto* t, auto* k) { *word(t, k, 6) = f16; }).find("needs feature float16"),
              std::string::npos);
  for (uint32_t bf16 : {5116u, 5118u})  // BFloat16TypeKHR, BFloat16CooperativeMatrixKHR
    EXPECT_NE(refusal([&](auto* t, auto* k) { *word(t, k, 6) = bf16; }).find("needs feature coopmat-bf16"),
              std::string::npos);
  EXPECT_NE(refusal([&](auto* t, auto* k) { *word(t, k, 6) = 6022; }).find("needs feature coopmat,"),
            std::string::npos);
}

// No capability says what matrices have.
TEST_P(VulkanKernels, matrices_of_integers_are_a_feature) {
  constexpr uint32_t kTypeInt = 21, kTypeMatrix = 4456;
  // What follows the first integer type becomes the type of a matrix of such integers, of `length` words.
  auto insert = [](qnl_spirv_table* t, qnl_spirv_kernel* k, uint32_t length) {
    auto* word = reinterpret_cast<uint32_t*>(reinterpret_cast<char*>(t) + k->code_offset) + 5;
    while ((*word & 0xFFFF) != kTypeInt) word += *word >> 16;
    const uint32_t type = word[1];
    word += *word >> 16;
    word[0] = length << 16 | kTypeMatrix;
    word[2] = type;
  };
  EXPECT_EQ(
      refusal([&](auto* t, auto* k) { insert(t, k, 7); }),
      "malformed code image: kernel 0: a matrix of integers needs feature coopmat-int8, which the table does "
      "not name");
  EXPECT_EQ(refusal([&](auto* t, auto* k) { insert(t, k, 6); }),
            "malformed code image: kernel 0: its SPIR-V is malformed");
}

TEST_P(VulkanKernels, the_entry_point_is_checked) {
  // The first instruction with this opcode.
  auto find = [](qnl_spirv_table* t, qnl_spirv_kernel* k, uint32_t opcode) {
    auto* word = reinterpret_cast<uint32_t*>(reinterpret_cast<char*>(t) + k->code_offset) + 5;
    while ((*word & 0xFFFF) != opcode) word += *word >> 16;
    return word;
  };
  EXPECT_EQ(refusal([&](auto* t, auto* k) { find(t, k, 17)[0] = 3 << 16 | 17; }),
            "malformed code image: kernel 0: its SPIR-V is malformed");
  EXPECT_EQ(refusal([&](auto* t, auto* k) { find(t, k, 15)[3] ^= 1; }),
            "malformed code image: kernel 0: expected one compute entry point 'main'");
  EXPECT_EQ(refusal([&](auto* t, auto* k) { find(t, k, 16)[2] = 18; }),
            "malformed code image: kernel 0: expected a compute entry point 'main' with a local size");
}

TEST_P(VulkanKernels, other_code_and_lost_devices_are_refused) {
  AlignedBytes bytes(good_);
  KernelSet* kernels = nullptr;
  const runtime::DeviceTable& table = *device()->table;
  KernelCode code = {bytes.data(), bytes.size(), QNL_ARCH_X86_64, 1};
  EXPECT_EQ(table.load_kernels(device(), code, &kernels, &error_), QNL_MALFORMED_IMAGE);
  EXPECT_STREQ(error_.text, "kernels: expected code for spirv, found x86-64");
  runtime::vulkan::inject_fault(device());
  code.arch = QNL_ARCH_SPIRV;
  EXPECT_EQ(table.load_kernels(device(), code, &kernels, &error_), QNL_DEVICE_FAULT);
  EXPECT_STREQ(error_.text, "kernels: the device is lost");
}

TEST_P(VulkanKernels, one_set_serves_all_that_load_the_same_code) {
  AlignedBytes bytes(good_);
  KernelCode code = {bytes.data(), bytes.size(), QNL_ARCH_SPIRV, 1};
  const runtime::DeviceTable& table = *device()->table;
  KernelSet *first = nullptr, *second = nullptr;
  ASSERT_EQ(table.load_kernels(device(), code, &first, nullptr), QNL_OK);
  ASSERT_EQ(table.load_kernels(device(), code, &second, nullptr), QNL_OK);
  EXPECT_EQ(first, second);
  table.unload_kernels(device(), first);
  EXPECT_GT(table.memory_used(device()), 0u);
  table.unload_kernels(device(), second);
  EXPECT_EQ(table.memory_used(device()), 0u);
}

// Parameters as push constants and, where they are many, in a uniform buffer; bindings in few and in many
// windows; more workgroups than fit one dimension.
TEST_P(VulkanKernels, parameters_and_bindings_of_any_number) {
  const runtime::DeviceTable& table = *device()->table;
  for (uint32_t bindings : {1u, 4u, 7u, 31u, 64u}) {
    for (uint32_t symbols : {1u, 3u, 20u}) {
      std::string body;
      for (uint32_t b = 0; b < bindings; ++b)
        body += "WORD(" + std::to_string(b) + ", l) = SYMBOL(" + std::to_string(b % symbols) +
                ") + SYMBOL_HIGH(" + std::to_string(b % symbols) + ") + " + std::to_string(b) + ";\n";
      AlignedBytes code(spirv_table(body, bindings, symbols));
      KernelSet* kernels = nullptr;
      ASSERT_EQ(
          table.load_kernels(device(), {code.data(), code.size(), QNL_ARCH_SPIRV, 1}, &kernels, &error_),
          QNL_OK)
          << error_.text;
      DeviceArena arena;
      ASSERT_EQ(table.allocate_arena(device(), bindings * 64 + 4, false, &arena), QNL_OK);
      std::vector<DeviceRange> ranges;
      std::vector<int64_t> values;
      for (uint32_t b = 0; b < bindings; ++b) ranges.push_back({&arena, b * uint64_t{64} + 4});
      for (uint32_t s = 0; s < symbols; ++s) values.push_back((int64_t{7} << 32) + 1000 * s);
      ASSERT_EQ(table.launch(device(), kernels, 0, 1, ranges.data(), bindings, values.data()), QNL_OK);
      std::vector<uint32_t> found(bindings * 16);
      ASSERT_EQ(table.read(device(), {&arena, 4}, found.data(), bindings * 64), QNL_OK);
      for (uint32_t i = 0; i < found.size(); ++i)
        ASSERT_EQ(found[i], 7 + 1000 * (i / 16 % symbols) + i / 16) << bindings << " " << symbols;
      table.free_arena(device(), &arena);
      table.unload_kernels(device(), kernels);
    }
  }
}

TEST_P(VulkanKernels, more_workgroups_than_one_dimension_has) {
  const runtime::DeviceTable& table = *device()->table;
  AlignedBytes code(spirv_table("if (l == 0) WORD(0, g) += g + 1;", 1, 0));
  KernelSet* kernels = nullptr;
  ASSERT_EQ(table.load_kernels(device(), {code.data(), code.size(), QNL_ARCH_SPIRV, 1}, &kernels, nullptr),
            QNL_OK);
  const uint32_t count = 65535 * 2 + 17;
  DeviceArena arena;
  ASSERT_EQ(table.allocate_arena(device(), uint64_t{count + 1} * 4, false, &arena), QNL_OK);
  DeviceRange range = {&arena, 0};
  ASSERT_EQ(table.launch(device(), kernels, 0, count, &range, 1, nullptr), QNL_OK);
  std::vector<uint32_t> found(count + 1);
  ASSERT_EQ(table.read(device(), range, found.data(), found.size() * 4), QNL_OK);
  for (uint32_t g = 0; g < count; ++g) ASSERT_EQ(found[g], g + 1);
  EXPECT_EQ(found[count], 0u) << "a workgroup too many";
  EXPECT_EQ(table.launch(device(), kernels, 0, uint64_t{1} << 33, &range, 1, nullptr), QNL_INVALID_ARGUMENT);
  EXPECT_EQ(table.launch(device(), kernels, 0, 0, &range, 1, nullptr), QNL_OK);
  table.free_arena(device(), &arena);
  table.unload_kernels(device(), kernels);
}

// Constants are uploaded while pipelines are made, or before the first submission: in pieces that take turns in the staging
// memory of a device that has its own.
TEST_P(VulkanKernels, constants_are_there_when_kernels_run) {
  const runtime::DeviceTable& table = *device()->table;
  AlignedBytes code(spirv_table("WORD(0, i) = WORD(1, i * 16u + 5u);", 2, 0));
  constexpr uint32_t kCount = 160 * 1024;  // of 10 MiB of words each 16th
  std::vector<std::byte> bytes(size_t{kCount} * 16 * 4);
  for (uint32_t i = 0; i < kCount * 16; ++i) {
    const uint32_t word = i * 2654435761u;
    std::memcpy(bytes.data() + size_t{i} * 4, &word, 4);
  }
  const AlignedBytes constants(bytes);
  const uint64_t uploads = counts().uploads;
  KernelSet* kernels = nullptr;
  ASSERT_EQ(table.load_kernels(device(), {code.data(), code.size(), QNL_ARCH_SPIRV, 1}, &kernels, nullptr),
            QNL_OK);
  for (int round = 0; round < 2; ++round) {  // the second one finds the pipeline
    DeviceArena words, results;
    ASSERT_EQ(table.wrap_arena(device(), constants.data(), bytes.size(), true, &words), QNL_OK);
    ASSERT_EQ(table.allocate_arena(device(), kCount * 4, false, &results), QNL_OK);
    const DeviceRange ranges[] = {{&results, 0}, {&words, 0}};
    // Others that the device has no memory for change nothing.
    DeviceArena none;
    runtime::vulkan::limit_memory(device(), ~0u, counts().allocated_bytes);
    if (GetParam()) {
      ASSERT_EQ(table.wrap_arena(device(), constants.data(), bytes.size() - 64, true, &none),
                QNL_OUT_OF_MEMORY);
    }
    runtime::vulkan::limit_memory(device(), 4096, ~uint64_t{0});
    ASSERT_EQ(table.launch(device(), kernels, 0, kCount / 16, ranges, 2, nullptr), QNL_OK);
    std::vector<uint32_t> found(kCount);
    ASSERT_EQ(table.read(device(), ranges[0], found.data(), kCount * 4), QNL_OK);
    for (uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(found[i], (i * 16 + 5) * 2654435761u) << i;
    table.free_arena(device(), &results);
    table.free_arena(device(), &words);
  }
  if (GetParam()) {
    EXPECT_EQ(counts().uploads - uploads, 2u);
  }
  table.unload_kernels(device(), kernels);
}

// Mesa's software driver ends all loops of an invocation after 65,535 iterations, without an error.
TEST_P(VulkanKernels, loops_that_the_driver_would_end_are_refused) {
  const runtime::DeviceTable& table = *device()->table;
  std::vector<std::byte> bytes = spirv_table(
      "uint x = 0; for (uint k = 0; k < SYMBOL(0); ++k) x += WORD(1, k & 1u);\nWORD(0, l) = x;", 2, 2);
  qnl_spirv_kernel kernel;
  std::memcpy(&kernel, bytes.data() + sizeof(qnl_spirv_table), sizeof kernel);
  kernel.flags = QNL_SPIRV_COUNTS_ITERATIONS;
  std::memcpy(bytes.data() + sizeof(qnl_spirv_table), &kernel, sizeof kernel);
  AlignedBytes code(bytes);
  KernelSet* kernels = nullptr;
  ASSERT_EQ(table.load_kernels(device(), {code.data(), code.size(), QNL_ARCH_SPIRV, 1}, &kernels, nullptr),
            QNL_OK);
  DeviceArena arena;
  ASSERT_EQ(table.allocate_arena(device(), 4096, false, &arena), QNL_OK);
  const uint32_t ones[2] = {1, 1};
  DeviceRange ranges[2] = {{&arena, 0}, {&arena, 2048}};
  ASSERT_EQ(table.write(device(), ranges[1], ones, sizeof ones), QNL_OK);
  qnl_device_info info;
  qnl_device_get_info(device(), &info);
  for (int64_t count : {60000, 65535, 65536, 70000}) {
    const int64_t symbols[2] = {count, count};
    qnl_status status = table.launch(device(), kernels, 0, 1, ranges, 2, symbols);
    const bool ends_loops = std::strstr(info.name, "llvmpipe") != nullptr && count > 65535;
    ASSERT_EQ(status, ends_loops ? QNL_SYMBOL_OUT_OF_RANGE : QNL_OK) << count;
    if (status != QNL_OK) continue;
    uint32_t found = 0;
    ASSERT_EQ(table.read(device(), ranges[0], &found, sizeof found), QNL_OK);
    EXPECT_EQ(found, count);
  }
  table.free_arena(device(), &arena);
  table.unload_kernels(device(), kernels);
}

// Binding 0 is split where the device's storage buffers are small, and not where they are not.
TEST_P(VulkanKernels, a_binding_in_several_windows) {
  const runtime::DeviceTable& table = *device()->table;
  const std::string declarations =
      "layout(constant_id = 64) const uint kSplit = 0;\nconst uint n = kSplit / 4;\n"
      "#define PLACE(k, j) windows[(kWindow0 + k) % 4].w[j]\n"
      "void add(uint j, uint x) {\n"
      "  if (n == 0 || j < n) PLACE(0, j) += x;\n"
      "  else if (j < 2 * n) PLACE(1, j - n) += x;\n"
      "  else if (j < 3 * n) PLACE(2, j - 2 * n) += x;\n"
      "  else PLACE(3, j - 3 * n) += x;\n}\n";
  AlignedBytes code(spirv_table("add(PARAMETER(1) / 4 + i, i + WORD(1, l));", 2, 0, 0, 16, 0, declarations));
  constexpr uint32_t kCount = 3072;  // elements, three windows of 4096 bytes
  for (uint32_t limit : {1u << 27, 4096u, 5000u, 3000u}) {
    runtime::vulkan::limit_windows(device(), limit);
    KernelSet* kernels = nullptr;  // pipelines are of a set
    ASSERT_EQ(table.load_kernels(device(), {code.data(), code.size(), QNL_ARCH_SPIRV, 1}, &kernels, &error_),
              QNL_OK)
        << error_.text;
    DeviceArena large, small;
    ASSERT_EQ(table.allocate_arena(device(), kCount * 4, false, &large), QNL_OK);
    ASSERT_EQ(table.allocate_arena(device(), 64, false, &small), QNL_OK);
    std::vector<uint32_t> found(kCount, 5), ones(16, 1);
    DeviceRange ranges[] = {{&large, 0}, {&small, 0}};
    ASSERT_EQ(table.write(device(), ranges[0], found.data(), kCount * 4), QNL_OK);
    ASSERT_EQ(table.write(device(), ranges[1], ones.data(), 64), QNL_OK);
    qnl_status status = table.launch(device(), kernels, 0, kCount / 16, ranges, 2, nullptr);
    if (limit == 3000) {
      EXPECT_EQ(status, QNL_INVALID_ARGUMENT) << "five windows of 2816 bytes, and the other binding";
    } else {
      ASSERT_EQ(status, QNL_OK);
      ASSERT_EQ(table.read(device(), ranges[0], found.data(), kCount * 4), QNL_OK);
      for (uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(found[i], 6 + i) << limit;
    }
    table.free_arena(device(), &large);
    table.free_arena(device(), &small);
    table.unload_kernels(device(), kernels);
  }
}

INSTANTIATE_TEST_SUITE_P(Memory, VulkanKernels, testing::Bool(), memory_name);

}  // namespace
}  // namespace quernel::test
