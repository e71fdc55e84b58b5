// Concatenations of constants: their elements, and that equal ones are shared.
#include "graph/passes/joined_tensor.h"

#include <gtest/gtest.h>

#include "graph/passes/constant_operand.h"

namespace quernel {
namespace {

// Elements of 4 bits that count up from `first`.
Tensor nibbles(std::vector<int64_t> dims, int64_t first) {
  Tensor tensor{DType::kU4, std::move(dims), {}};
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(tensor.dtype, tensor.count())));
  for (int64_t i = 0; i < tensor.count(); ++i) store_i64(tensor.dtype, bytes.data(), i, (first + i) % 16);
  tensor.bytes = Bytes::own(std::move(bytes));
  return tensor;
}

void expect_cat(const std::vector<Tensor>& parts, size_t dim) {
  Attributes attributes;
  attributes.ints = {static_cast<int64_t>(dim)};
  const Tensor want = *evaluate_node(OpKind::k_cat, parts, attributes);
  const Expected<Tensor> joined = joined_tensor(parts, dim);
  ASSERT_TRUE(joined) << to_string(joined.errors());
  EXPECT_EQ(joined->dims, want.dims);
  ASSERT_EQ(joined->count(), want.count());
  for (int64_t i = 0; i < want.count(); ++i)
    EXPECT_EQ(element_as_i64(*joined, i), element_as_i64(want, i)) << "element " << i << " along " << dim;
}

TEST(JoinedTensor, is_the_cat_of_its_parts) {
  expect_cat({nibbles({3, 4}, 0), nibbles({2, 4}, 5)}, 0);
  expect_cat({nibbles({3, 4}, 0), nibbles({3, 2}, 5)}, 1);
  expect_cat({nibbles({3, 5}, 1), nibbles({3, 2}, 7)}, 1);  // lines end within a byte
  expect_cat({nibbles({1, 3}, 1), nibbles({2, 3}, 7)}, 0);
  expect_cat({nibbles({0, 4}, 0), nibbles({2, 4}, 5)}, 0);
}

TEST(JoinedTensor, is_shared_while_it_is_in_use) {
  const std::vector<Tensor> parts{nibbles({3, 4}, 0), nibbles({2, 4}, 5)};
  const Tensor first = *joined_tensor(parts, 0);
  EXPECT_EQ(joined_tensor(parts, 0)->bytes.data(), first.bytes.data());
  // Other parts, another order, other bytes.
  EXPECT_NE(joined_tensor({parts[0]}, 0)->bytes.data(), first.bytes.data());
  EXPECT_NE(joined_tensor({parts[1], parts[0]}, 0)->bytes.data(), first.bytes.data());
  EXPECT_NE(joined_tensor({nibbles({3, 4}, 0), parts[1]}, 0)->bytes.data(), first.bytes.data());
}

}  // namespace
}  // namespace quernel
