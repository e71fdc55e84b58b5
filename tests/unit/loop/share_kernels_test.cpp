// Kernels that differ in sizes only share code: merged ones compute what each has computed, from their arguments.
#include "loop/share_kernels.h"

#include <gtest/gtest.h>

#include <string>

#include "run_kernel.h"

namespace quernel::loop {
namespace {

Kernel fill(int rows, int columns, const std::string& more = "", const char* value = "3i8") {
  const std::string r = std::to_string(rows), c = std::to_string(columns);
  return parsed("kernel @fill {\n  buffer %x: i8[" + std::to_string(rows * columns) +
                "] read binding 0\n  buffer %y: i8[" + std::to_string(rows * columns * 2) +
                "] write binding 1\n  for i in serial(" + r + ") {\n    for j in serial(" + c +
                ") {\n      %y[i * " + std::to_string(2 * columns) + " + j] = max(%x[i * " + c + " + j], " +
                value + ")\n      %y[i * " + std::to_string(2 * columns) + " + j + " + c + "] = " + value +
                "\n    }\n  }\n" + more + "}\n");
}

// Shares, checks that each kernel computes what it has computed, and returns how many kernels are left.
size_t shared(const std::vector<Kernel>& kernels, std::vector<SharedKernel>* calls = nullptr) {
  std::vector<Kernel> left = kernels;
  const std::vector<SharedKernel> result = share_kernels(left);
  EXPECT_EQ(result.size(), kernels.size());
  for (size_t k = 0; k < kernels.size(); ++k) {
    const Kernel& kernel = left[static_cast<size_t>(result[k].kernel)];
    Status valid = verify(kernel);
    EXPECT_TRUE(valid) << (valid ? "" : quernel::to_string(valid.errors()));
    std::string error;
    const Bytes before = seeded_buffers(kernels[k], static_cast<uint32_t>(k));
    const Bytes expected = run(kernels[k], before, &error);
    EXPECT_EQ(error, "");
    EXPECT_EQ(run(kernel, before, &error, result[k].arguments), expected) << to_string(kernel);
    EXPECT_EQ(error, "");
  }
  if (calls) *calls = result;
  return left.size();
}

TEST(ShareKernels, sizes_become_arguments) {
  std::vector<SharedKernel> calls;
  EXPECT_EQ(shared({fill(4, 6), fill(3, 8), fill(9, 2)}, &calls), 1u);
  // 2 * columns, and the columns themselves, are multiples of one argument.
  EXPECT_EQ(calls[0].arguments, (std::vector<int64_t>{4, 6}));
  EXPECT_EQ(calls[1].arguments, (std::vector<int64_t>{3, 8}));
  EXPECT_EQ(calls[2].arguments, (std::vector<int64_t>{9, 2}));
}

TEST(ShareKernels, equal_sizes_stay_constants) {
  std::vector<SharedKernel> calls;
  EXPECT_EQ(shared({fill(4, 6), fill(3, 6)}, &calls), 1u);
  EXPECT_EQ(calls[1].arguments, (std::vector<int64_t>{3}));
}

TEST(ShareKernels, what_differs_in_more_than_sizes_stays_apart) {
  EXPECT_EQ(shared({fill(4, 6), fill(3, 8, "", "4i8")}), 2u);
  EXPECT_EQ(shared({fill(4, 6), fill(3, 8, "  %y[0] = 1i8\n")}), 2u);
}

TEST(ShareKernels, few_instructions_are_not_worth_their_arguments) {
  auto small = [](int at) {
    return parsed("kernel @small {\n  buffer %y: i8[16] write binding 0\n  %y[" + std::to_string(at) +
                  "] = 1i8\n}\n");
  };
  EXPECT_EQ(shared({small(3), small(4)}), 2u);
}

// A row of `columns` at a time of an image that is `pitch` wide, `steps` products each of two neighbours at a distance.
Kernel sums(int rows, int columns, int pitch, int steps, int distance = 1) {
  auto n = [](int number) { return std::to_string(number); };
  return parsed("kernel @sums {\n  buffer %x: i8[" + n(rows * steps + distance) +
                "] read binding 0\n  buffer %y: i32[" + n(rows * pitch) +
                "] write binding 1\n  for i in serial(" + n(rows) +
                ") {\n    alloc %sum: i32[1] register\n    %sum[0] = 0i32\n    for k in reduction(" +
                n(steps) + ") {\n      %sum[0] = cast(i32, %x[i * " + n(steps) +
                " + k]) * 3i32 + %sum[0]\n      %sum[0] = cast(i32, %x[i * " + n(steps) + " + k + " +
                n(distance) + "]) * 5i32 + %sum[0]\n    }\n    %y[idiv(i, " + n(columns) + ") * " + n(pitch) +
                " + fmod(i, " + n(columns) + ")] = %sum[0]\n  }\n}\n");
}

TEST(ShareKernels, accumulating_loops_keep_their_distances_but_not_their_numbers_of_steps) {
  EXPECT_EQ(shared({sums(8, 4, 6, 12), sums(9, 3, 7, 12)}), 1u);
  EXPECT_EQ(shared({sums(8, 4, 6, 12), sums(9, 3, 7, 8)}), 1u);
  EXPECT_EQ(shared({sums(8, 4, 6, 12, 1), sums(9, 3, 7, 8, 2)}), 2u);
}

TEST(ShareKernels, loops_may_run_forwards_or_backwards) {
  auto copy = [](int columns, const std::string& row) {
    const std::string c = std::to_string(columns);
    return parsed("kernel @copy {\n  buffer %x: i8[" + std::to_string(4 * columns) +
                  "] read binding 0\n  buffer %y: i8[" + std::to_string(4 * columns) +
                  "] write binding 1\n  for i in serial(4) {\n    for j in serial(" + c + ") {\n      %y[" +
                  row + " + j] = max(%x[" + row + " + j], 3i8)\n      %y[" + row +
                  "] = 7i8\n    }\n  }\n}\n");
  };
  std::vector<SharedKernel> calls;
  EXPECT_EQ(
      shared({copy(6, "i * 6"), copy(8, "24 - i * 8"), copy(5, "i * 5"), copy(10, "30 - i * 10")}, &calls),
      1u);
  EXPECT_EQ(calls[1].arguments, (std::vector<int64_t>{8, -8, 24}));
}

TEST(ShareKernels, arguments_fit_16_bits) {
  auto far = [](int distance) {
    const std::string d = std::to_string(distance);
    return parsed(
        "kernel @far {\n  buffer %y: i8[400000] write binding 0\n  for i in serial(4) {\n    %y[i * " + d +
        "] = 1i8\n    %y[i * " + d + " + 1] = 2i8\n    %y[i * " + d + " + 2] = 3i8\n    %y[i * " + d +
        " + 3] = 4i8\n  }\n}\n");
  };
  EXPECT_EQ(shared({far(60000), far(65535)}), 1u);
  EXPECT_EQ(shared({far(60000), far(65536)}), 2u);
}

TEST(ShareKernels, unrolled_sums_keep_their_constants) {
  auto unrolled = [](int apart) {
    const std::string d = std::to_string(apart);
    return parsed(
        "kernel @unrolled {\n  buffer %x: i8[64] read binding 0\n  buffer %y: i32[8] write binding 1\n"
        "  for i in serial(8) {\n    alloc %sum: i32[1] register\n    %sum[0] = cast(i32, %x[i])\n"
        "    %sum[0] = cast(i32, %x[i + " +
        d +
        "]) * 3i32 + %sum[0]\n"
        "    %sum[0] = cast(i32, %x[i + 2 * " +
        d + "]) * 5i32 + %sum[0]\n    %y[i] = %sum[0]\n  }\n}\n");
  };
  EXPECT_EQ(shared({unrolled(8), unrolled(16)}), 2u);
}

TEST(ShareKernels, kernels_of_many_workgroups_or_with_symbols_stay_apart) {
  auto grid = [](int n) {
    return parsed("kernel @g grid(g: " + std::to_string(n) +
                  ") {\n  buffer %y: i8[64] write binding 0\n  for i in serial(4) {\n    %y[g * 4 + i] = "
                  "1i8\n  }\n}\n");
  };
  std::vector<Kernel> kernels{grid(3), grid(4)};
  share_kernels(kernels);
  EXPECT_EQ(kernels.size(), 2u);
}

TEST(ShareKernels, a_shared_buffer_overlaps_if_one_does_and_has_no_size) {
  std::vector<Kernel> kernels{fill(4, 6), fill(3, 9)};
  std::string text = to_string(kernels[1]);
  for (const char* binding : {"binding 0", "binding 1"})
    text.insert(text.find(binding) + std::string(binding).size(), " overlapping");
  kernels[1] = parsed(text);
  share_kernels(kernels);
  ASSERT_EQ(kernels.size(), 1u);
  for (const Buffer& buffer : kernels[0].buffers) {
    EXPECT_TRUE(buffer->overlaps);
    EXPECT_EQ(buffer->size, kUnknownSize);
  }
}

}  // namespace
}  // namespace quernel::loop
