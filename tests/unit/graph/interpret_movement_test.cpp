#include <gmock/gmock.h>

#include "graph_testing.h"
#include "random_graph/random_graph.h"

namespace quernel {
namespace {

using testing::ElementsAre;

const std::string kSix = "%x = constant f32[2,3] {1, 2, 3, 4, 5, 6}\n";

std::vector<double> of_six(const std::string& op) {
  return values(evaluate(kSix + "%y = " + op + "\nreturn y = %y"));
}

TEST(InterpretMovement, reshape_and_permute) {
  EXPECT_THAT(of_six("reshape %x : f32[3,2]"), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(of_six("permute %x {1, 0} : f32[3,2]"), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(values(evaluate("%x = constant i8[2,1,3] {1, 2, 3, 4, 5, 6}\n%y = permute %x {2, 0, 1} : "
                              "i8[3,2,1]\nreturn y = %y")),
              ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(InterpretMovement, pads_of_every_mode) {
  EXPECT_THAT(of_six("pad %x [0:0, 2:2] edge : f32[2,7]"),
              ElementsAre(1, 1, 1, 2, 3, 3, 3, 4, 4, 4, 5, 6, 6, 6));
  EXPECT_THAT(of_six("pad %x [0:0, 2:2] reflect : f32[2,7]"),
              ElementsAre(3, 2, 1, 2, 3, 2, 1, 6, 5, 4, 5, 6, 5, 4));
  EXPECT_THAT(of_six("pad %x [0:0, 2:2] wrap : f32[2,7]"),
              ElementsAre(2, 3, 1, 2, 3, 1, 2, 5, 6, 4, 5, 6, 4, 5));
  EXPECT_THAT(of_six("pad %x [1:0, 0:1] reflect : f32[3,4]"),
              ElementsAre(4, 5, 6, 5, 1, 2, 3, 2, 4, 5, 6, 5));
  EXPECT_THAT(values(evaluate("%x = constant f32[0] {}\n%y = pad %x [1:1] fill 7 : f32[2]\nreturn y = %y")),
              ElementsAre(7, 7));
}

TEST(InterpretMovement, packed_elements) {
  EXPECT_THAT(values(evaluate("%x = constant i4[3] {1, -2, 3}\n%y = flip %x {0} : i4[3]\nreturn y = %y")),
              ElementsAre(3, -2, 1));
  EXPECT_THAT(
      values(evaluate("%x = constant u4[1,3] {1, 2, 15}\n%y = cat %x, %x {1} : u4[1,6]\nreturn y = %y")),
      ElementsAre(1, 2, 15, 1, 2, 15));
}

// Found by fuzz_compile: tables by dim took 16 GB, for a result of no element.
TEST(InterpretMovement, a_huge_dim_beside_an_empty_one_takes_no_memory) {
  const std::string one = "%x = constant f32[1,1] {1}\n%y = expand %x : f32[0,1000000000000]\n";
  for (const char* op :
       {"neg %y : f32[0,1000000000000]", "flip %y {1} : f32[0,1000000000000]",
        "permute %y {1, 0} : f32[1000000000000,0]", "pad %y [0:0, 1:1] fill 0 : f32[0,1000000000002]",
        "slice %y [0:0, 0:999999999999] : f32[0,999999999999]"})
    EXPECT_EQ(evaluate(one + "%z = " + op + "\nreturn z = %z").count(), 0) << op;
}

// The interpreter implements movement from the ops' definitions; index_map_of must say the same.
TEST(InterpretMovement, agrees_with_index_maps) {
  int checked = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Graph graph = random_graph(seed);
    for (const Node& node : graph.nodes) {
      if (!is_movement(node.op) || (node.op == OpKind::k_pad && node.attributes.mode != PadMode::kConstant))
        continue;
      Graph single;
      ValueId x = single.add_input("x", graph.type(node.inputs[0]));
      Attributes view;
      view.shape = graph.shape(node.output);
      view.map = index_map_of(graph, node);
      view.fill = node.attributes.fill;
      Expected<ValueId> direct = single.add(node.op, {x}, node.attributes);
      Expected<ValueId> mapped = single.add(OpKind::k_view, {x}, view);
      ASSERT_TRUE(direct && mapped) << to_string(mapped.errors());
      single.outputs = {{"direct", *direct}, {"mapped", *mapped}};
      std::vector<Tensor> outputs = run(single, random_inputs(single, seed));
      ASSERT_EQ(outputs.size(), 2u);
      EXPECT_TRUE(same_tensor(outputs[0], outputs[1])) << print(single);
      ++checked;
    }
  }
  EXPECT_GT(checked, 300);
}

// ---- seed traps ----
TEST(SeedTraps, view_strided) {
  EXPECT_THAT(of_six("view %x [d1, 2*d0] : f32[2,2]"), ElementsAre(1, 4, 3, 6));
  EXPECT_THAT(
      values(evaluate(
          "%x = constant f32[5] {1, 2, 3, 4, 5}\n%y = view %x [2*d0 + d1] : f32[2,3]\nreturn y = %y")),
      ElementsAre(1, 2, 3, 3, 4, 5));
  EXPECT_THAT(of_six("view %x [(d0 floordiv 3), (d0 mod 3)] : f32[6]"), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(SeedTraps, view_masked) {
  EXPECT_THAT(values(evaluate("%x = constant i32[3] {1, 2, 3}\n%y = view %x [d0 + -1] if 0 <= d0 + -1 < 3 "
                              "fill -9 : i32[5]\nreturn y = %y")),
              ElementsAre(-9, 1, 2, 3, -9));
}

TEST(SeedTraps, index_gated) {
  EXPECT_THAT(of_six("view %x [d0, d1 + d2 + -1] if 0 <= d1 + d2 + -1 < 3, 1 <= d0 < 2 fill 0 : f32[2,2,2]"),
              ElementsAre(0, 0, 0, 0, 0, 4, 4, 5));
}

TEST(SeedTraps, reshape_noncontiguous) {
  EXPECT_THAT(
      values(evaluate(kSix + "%1 = permute %x {1, 0} : f32[3,2]\n%y = reshape %1 : f32[6]\nreturn y = %y")),
      ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(SeedTraps, permute_contiguous) {
  EXPECT_THAT(
      values(evaluate(kSix + "%1 = permute %x {1, 0} : f32[3,2]\n%y = add %1, %1 : f32[3,2]\nreturn y = %y")),
      ElementsAre(2, 8, 4, 10, 6, 12));
}

TEST(SeedTraps, contiguous_after_permute) {
  EXPECT_THAT(values(evaluate(
                  kSix + "%1 = permute %x {1, 0} : f32[3,2]\n%y = contiguous %1 : f32[3,2]\nreturn y = %y")),
              ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(SeedTraps, expand_read) {
  EXPECT_THAT(values(evaluate("%x = constant f32[1,2] {1, 2}\n%y = expand %x : f32[3,2]\nreturn y = %y")),
              ElementsAre(1, 2, 1, 2, 1, 2));
  EXPECT_THAT(values(evaluate("%x = constant f32[2,1] {1, 2}\n%y = expand %x : f32[2,3]\nreturn y = %y")),
              ElementsAre(1, 1, 1, 2, 2, 2));
}

TEST(SeedTraps, shrink_offset) {
  EXPECT_THAT(of_six("slice %x [1:2, 1:3] : f32[1,2]"), ElementsAre(5, 6));
  EXPECT_THAT(of_six("slice %x [0:2, 0:3:2] : f32[2,2]"), ElementsAre(1, 3, 4, 6));
  EXPECT_THAT(of_six("slice %x [0:2, 1:1] : f32[2,0]"), ElementsAre());
}

TEST(SeedTraps, flip_negative_stride) {
  EXPECT_THAT(of_six("flip %x {1} : f32[2,3]"), ElementsAre(3, 2, 1, 6, 5, 4));
  EXPECT_THAT(of_six("flip %x {0, 1} : f32[2,3]"), ElementsAre(6, 5, 4, 3, 2, 1));
}

TEST(SeedTraps, pad_fill) {
  EXPECT_THAT(
      of_six("pad %x [0:1, 1:0] fill -inf : f32[3,4]"),
      ElementsAre(-INFINITY, 1, 2, 3, -INFINITY, 4, 5, 6, -INFINITY, -INFINITY, -INFINITY, -INFINITY));
}

TEST(SeedTraps, cat_three_inputs) {
  std::string parts =
      "%a = constant f32[1,2] {1, 2}\n%b = constant f32[1,2] {3, 4}\n%c = constant f32[1,2] {5, 6}\n";
  EXPECT_THAT(values(evaluate(parts + "%y = cat %a, %b, %c {0} : f32[3,2]\nreturn y = %y")),
              ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(values(evaluate(parts + "%y = cat %a, %b, %c {1} : f32[1,6]\nreturn y = %y")),
              ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(
      values(evaluate(
          "%a = constant f32[2,1] {1, 2}\n%b = constant f32[2,2] {3, 4, 5, 6}\n%e = constant f32[2,0] {}\n"
          "%y = cat %a, %e, %b {1} : f32[2,3]\nreturn y = %y")),
      ElementsAre(1, 3, 4, 2, 5, 6));
}

}  // namespace
}  // namespace quernel
