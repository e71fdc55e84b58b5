// Chains from one 8-bit integer to another, which become tables, against the interpreter: every byte, to the bit.
#include <gtest/gtest.h>

#include "on_host_targets.h"

namespace quernel::testing {
namespace {

// Swish of quantised numbers, then what `more` says of %q.
std::string swish(const std::string& from, const std::string& to, int64_t size, const std::string& more) {
  const std::string n = "[" + std::to_string(size) + "]", f = " : f32" + n + "\n";
  auto number = [&](const char* name, const char* value) {
    return std::string("  %") + name + " = constant f32" + n + " {" + value + " ...}\n";
  };
  return "graph @g(%x: " + from + n + ") {\n" + number("zero", "12") + number("scale", "0.0625") +
         number("step", "0.03125") + number("low", to == "i8" ? "-128" : "0") +
         number("high", to == "i8" ? "127" : "255") + "  %1 = cast %x" + f + "  %2 = sub %1, %zero" + f +
         "  %3 = mul %2, %scale" + f + "  %4 = tanh %3" + f + "  %5 = mul %3, %4" + f +
         "  %6 = div %5, %step" + f + "  %7 = round %6" + f + "  %8 = clamp %7, %low, %high" + f +
         "  %q = cast %8 : " + to + n + "\n" + more + "}\n";
}

Tensor all_bytes(DType dtype, int64_t size) {
  std::vector<uint8_t> bytes(static_cast<size_t>(size));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 7 + 3);
  return Tensor{dtype, {size}, Bytes::own(std::move(bytes))};
}

void expect_equal(const std::string& text, DType dtype, int64_t size, const std::string& target) {
  Expected<Graph> graph = parse_graph(text, "byte_table");
  ASSERT_TRUE(graph) << to_string(graph.errors()) << text;
  const std::vector<Tensor> inputs = {all_bytes(dtype, size)};
  Expected<std::vector<Tensor>> want = interpret(*graph, inputs);
  ASSERT_TRUE(want) << to_string(want.errors());
  CompileOptions options;
  options.targets = {target};
  Expected<std::vector<Tensor>> got = run_compiled(*graph, inputs, options, 1);
  ASSERT_TRUE(got) << to_string(got.errors());
  for (size_t i = 0; i < want->size(); ++i)
    EXPECT_EQ(difference((*got)[i], (*want)[i], 0, 0), "") << target << ", " << size << " elements";
}

TEST(ByteTable, every_byte_and_tails_of_vectors) {
  for (const std::string& target : host_targets())
    for (const char* from : {"i8", "u8"})
      for (const char* to : {"i8", "u8"})
        for (int64_t size : {1, 15, 16, 31, 33, 64, 256, 519})
          expect_equal(swish(from, to, size, "  return y = %q\n"), from[0] == 'i' ? DType::kI8 : DType::kU8,
                       size, target);
}

// The bytes are read as numbers again, beside the source: vectors of words look them up.
TEST(ByteTable, results_that_go_on_in_floats) {
  for (const std::string& target : host_targets())
    for (int64_t size : {7, 64, 300}) {
      const std::string f = " : f32[" + std::to_string(size) + "]\n";
      expect_equal(
          swish("i8", "i8", size, "  %9 = cast %q" + f + "  %10 = add %9, %1" + f + "  return y = %10\n"),
          DType::kI8, size, target);
    }
}

}  // namespace
}  // namespace quernel::testing
