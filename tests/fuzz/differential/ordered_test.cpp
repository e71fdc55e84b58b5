// Scans, sorts and scatters of sizes that take several workgroups, ranges and vector tails; random graphs
// have small ones.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <utility>

#include "graph/interpret.h"
#include "graph/text.h"
#include "ordered_graphs.h"
#include "run_compiled.h"

namespace quernel::testing {
namespace {

void expect_same(const std::string& text,
                 const std::function<std::vector<Tensor>(const Graph& graph)>& inputs_for) {
  Expected<Graph> graph = parse_graph(text);
  ASSERT_TRUE(graph) << to_string(graph.errors()) << text;
  std::vector<Tensor> inputs = inputs_for(*graph);
  Expected<std::vector<Tensor>> want = interpret(*graph, inputs);
  ASSERT_TRUE(want) << to_string(want.errors());
  for (const char* target : {"native", "x86-64"})
    for (unsigned threads : {1u, 4u}) {
      CompileOptions options;
      options.targets = {target};
      Expected<std::vector<Tensor>> got = run_compiled(*graph, inputs, options, threads);
      ASSERT_TRUE(got) << to_string(got.errors()) << text;
      for (size_t i = 0; i < want->size(); ++i)
        EXPECT_EQ(difference((*got)[i], (*want)[i], 0, 0), "") << target << "\n" << text;
    }
}

// `n`: the value of the symbol of that name.
void expect_same(const std::string& text, int64_t largest_index = 0, int64_t n = 0) {
  expect_same(text, [&](const Graph& graph) { return inputs_of(graph, largest_index, n); });
}

TEST(Ordered, scans) {
  expect_same(
      "graph @g(%x: f64[3,2000,37]) {\n%y = scan_sum %x {1} acc f64 : f64[3,2000,37]\nreturn y = %y\n}");
  expect_same("graph @g(%x: f32[200000]) {\n%y = scan_max %x {0} reverse : f32[200000]\nreturn y = %y\n}");
  expect_same(
      "graph @g(%x: i16[900,130]) {\n%y = scan_prod %x {1} exclusive acc i32 : i16[900,130]\nreturn y = "
      "%y\n}");
  expect_same(
      "graph @g(%x: i32[50,60,70]) {\n%p = permute %x {2, 0, 1} : i32[70,50,60]\n%n = neg %p : "
      "i32[70,50,60]\n"
      "%y = scan_sum %n {0} acc i32 : i32[70,50,60]\nreturn y = %y\n}");
}

TEST(Ordered, sorts) {
  expect_same(
      "graph @g(%x: f32[50000]) {\n%y = argsort %x {0} : i64[50000]\n%z = argsort %x {0} descending : "
      "i64[7]\n"
      "return y = %y, z = %z\n}");
  expect_same(
      "graph @g(%x: f16[7,333,5]) {\n%y = argsort %x {1} descending : i64[7,333,5]\nreturn y = %y\n}");
  expect_same("graph @g(%x: u8[2,1000]) {\n%y = argsort %x {1} : i64[2,600]\nreturn y = %y\n}");
  expect_same(
      "graph @g(%x: f32[31,70]) {\n%n = neg %x : f32[31,70]\n%y = argsort %n {0} : i64[1,70]\nreturn y = "
      "%y\n}");
  expect_same("graph @g(%x: bool[1000]) {\n%y = argsort %x {0} descending : i64[1000]\nreturn y = %y\n}");
}

// Few of many, and many: vectors that end within a line, equal elements, NaN, trees with and without gaps in
// their last level.
TEST(Ordered, first_of_many) {
  for (auto [count, kept] :
       {std::pair{64, 1}, {2, 2}, {64, 16}, {65, 31}, {97, 3}, {1000, 250}, {1001, 1001}})
    for (const char* order : {"", " descending"}) {
      std::string n = std::to_string(count), k = std::to_string(kept);
      for (const char* dtype : {"f32", "i8", "bool"})
        expect_same("graph @g(%x: " + std::string(dtype) + "[3," + n + "]) {\n%y = argsort %x {1}" + order +
                    " : i64[3," + k + "]\nreturn y = %y\n}");
      expect_same("graph @g(%x: f32[" + n + ",5]) {\n%n = neg %x : f32[" + n + ",5]\n%y = argsort %n {0}" +
                  order + " : i64[" + k + ",5]\nreturn y = %y\n}");
    }
}

// In groups and blocks, of which threads share the elements; equal ones, and NaN.
TEST(Ordered, first_of_a_long_line) {
  for (const char* dtype : {"f32", "i64", "u8"})
    for (const char* order : {"", " descending"})
      expect_same("graph @g(%x: " + std::string(dtype) + "[300007]) {\n%y = argsort %x {0}" + order +
                      " : i64[50]\n%z = argsort %x {0}" + order + " : i64[10]\nreturn y = %y, z = %z\n}",
                  100000);
}

TEST(Ordered, first_of_every_dtype) {
  for (const char* order : {"", " descending"})
    for (const char* dtype : {"f64", "f32", "f16", "bf16", "i64", "u64", "i32", "u32", "i16", "u16", "u8"})
      expect_same("graph @g(%x: " + std::string(dtype) + "[2,99]) {\n%y = argsort %x {1}" + order +
                  " : i64[2,20]\nreturn y = %y\n}");
}

TEST(Ordered, first_of_a_line_of_free_size) {
  for (int64_t n : {20, 1003})
    for (const char* order : {"", " descending"})
      for (const char* dtype : {"f32", "i64"})
        expect_same("symbol n min=0\ngraph @g(%x: " + std::string(dtype) + "[2,n]) {\n%y = argsort %x {1}" +
                        order + " : i64[2,20]\nreturn y = %y\n}",
                    500, n);
}

// Zeros of both signs are equal, and so is every NaN.
TEST(Ordered, first_of_special_floats) {
  auto inputs_for = [](const Graph& graph) {
    const double kSpecial[] = {-0.0,      0.0, NAN,     INFINITY, 1, std::copysign(NAN, -1.0),
                               -INFINITY, -1,  0x1p-130};
    DType dtype = graph.dtype(graph.inputs[0]);
    std::vector<uint8_t> bytes(static_cast<size_t>(90 * element_size(dtype)));
    for (int64_t i = 0; i < 90; ++i) store_f64(dtype, bytes.data(), i, kSpecial[i * 7 % 9]);
    return std::vector<Tensor>{Tensor{dtype, {90}, Bytes::own(std::move(bytes))}};
  };
  for (const char* order : {"", " descending"})
    for (const char* kept : {"25", "90"})
      for (const char* dtype : {"f32", "f16", "bf16", "f64"})
        expect_same("graph @g(%x: " + std::string(dtype) + "[90]) {\n%y = argsort %x {0}" + order +
                        " : i64[" + kept + "]\nreturn y = %y\n}",
                    inputs_for);
}

TEST(Ordered, scatters) {
  for (std::string mode : {"set", "add", "min"}) {
    expect_same(
        "graph @g(%x: f64[300001], %i: i64[5000], %u: f64[5000]) {\n%y = scatter_elements %x, %i, %u {0} " +
            mode + " : f64[300001]\nreturn y = %y\n}",
        310000);
    expect_same(
        "graph @g(%x: i32[5003,61], %i: i64[20,30], %u: i32[20,30,61]) {\n%y = scatter_rows %x, %i, %u {0} " +
            mode + " : i32[5003,61]\nreturn y = %y\n}",
        5010);
    expect_same(
        "graph @g(%x: f32[40,301], %i: i64[33,70], %u: f32[33,70]) {\n%y = scatter_elements %x, %i, %u {1} " +
            mode + " : f32[40,301]\nreturn y = %y\n}",
        302);
    expect_same(
        "graph @g(%x: f32[70,301], %i: i64[9,290], %u: f32[9,290]) {\n%y = scatter_elements %x, %i, %u {0} " +
            mode + " : f32[70,301]\nreturn y = %y\n}",
        70);
    expect_same(
        "graph @g(%x: i64[600,500], %i: i64[999,2], %u: i64[999]) {\n%y = scatter_nd %x, %i, %u {0} " + mode +
            " : i64[600,500]\nreturn y = %y\n}",
        505);
    expect_same(
        "graph @g(%x: f32[6,50,9,33], %i: i64[6,70,1], %u: f32[6,70,9,33]) {\n%y = scatter_nd %x, %i, %u "
        "{1} " +
            mode + " : f32[6,50,9,33]\nreturn y = %y\n}",
        50);
  }
}

// Threads share the places or the columns, over a template in place, too.
TEST(Ordered, scatters_of_many_updates) {
  for (std::string mode : {"set", "add", "max"}) {
    auto expect_same = [&](const std::string& text, int64_t largest_index) {  // a NaN would fill all sums
      testing::expect_same(
          text, [&](const Graph& graph) { return inputs_of(graph, largest_index, 0, mode != "add"); });
    };
    expect_same(
        "graph @g(%x: f32[70001], %i: i64[140000], %u: f32[140000]) {\n%y = scatter_elements %x, %i, %u "
        "{0} " +
            mode + " : f32[70001]\nreturn y = %y\n}",
        71000);
    expect_same(
        "graph @g(%x: i64[51,70], %i: i64[140001,2], %u: i64[140001]) {\n%n = neg %x : i64[51,70]\n%c = "
        "contiguous "
        "%n : i64[51,70]\n%y = scatter_nd %c, %i, %u {0} " +
            mode + " : i64[51,70]\nreturn y = %y\n}",
        55);
    expect_same(
        "graph @g(%x: f32[100,201], %i: i64[2001], %u: f32[2001,201]) {\n%y = scatter_rows %x, %i, %u {0} " +
            mode + " : f32[100,201]\nreturn y = %y\n}",
        105);
    expect_same(
        "graph @g(%x: f32[2,30,130], %i: i64[2,4000,129], %u: f32[2,4000,129]) {\n%n = neg %x : "
        "f32[2,30,130]\n%c = "
        "contiguous %n : f32[2,30,130]\n%y = scatter_elements %c, %i, %u {1} " +
            mode + " : f32[2,30,130]\nreturn y = %y\n}",
        31);
  }
}

TEST(Ordered, sizes_known_at_run_time) {
  for (int64_t n : {1, 2, 3, 63, 1000}) {
    auto symbolic = [&](const std::string& text) { expect_same("symbol n min=1\n" + text, n, n); };
    symbolic("graph @g(%x: f64[n,37]) {\n%y = scan_sum %x {0} acc f64 : f64[n,37]\nreturn y = %y\n}");
    symbolic(
        "graph @g(%x: i32[5,n]) {\n%y = scan_sum %x {1} exclusive reverse acc i32 : i32[5,n]\nreturn y = "
        "%y\n}");
    symbolic(
        "graph @g(%x: f32[n]) {\n%y = argsort %x {0} : i64[n]\n%z = argsort %x {0} descending : "
        "i64[1]\nreturn y = %y, z = %z\n}");
    symbolic("graph @g(%x: f32[n,6,4]) {\n%y = argsort %x {1} descending : i64[n,3,4]\nreturn y = %y\n}");
    symbolic(
        "graph @g(%x: f32[n,40], %i: i64[7], %u: f32[7,40]) {\n%y = scatter_rows %x, %i, %u {0} add : "
        "f32[n,40]\nreturn y = %y\n}");
    symbolic(
        "graph @g(%x: f32[40,n], %i: i64[9,n], %u: f32[9,n]) {\n%y = scatter_elements %x, %i, %u {0} max : "
        "f32[40,n]\nreturn y = %y\n}");
    symbolic(
        "graph @g(%x: f32[n,n], %i: i64[n,2], %u: f32[n]) {\n%y = scatter_nd %x, %i, %u {0} set : "
        "f32[n,n]\nreturn y = %y\n}");
    symbolic(
        "graph @g(%x: f32[n,3]) {\n%y = cast %x : u4[n,3]\n%z = cast %y : i8[n,3]\nreturn y = %y, z = %z\n}");
  }
}

// Random bits are the same on every target, in vectors and their tails.
TEST(Ordered, random_bits) {
  expect_same(
      "graph @g(%x: u64[1001]) {\n%o = constant u64[] {1}\n%r = reshape %o : u64[1]\n%e = expand %r : "
      "u64[1001]\n"
      "%c = scan_sum %e {0} exclusive acc u64 : u64[1001]\n%y = threefry2x32 %x, %c : u64[1001]\nreturn y = "
      "%y\n}");
}

}  // namespace
}  // namespace quernel::testing
