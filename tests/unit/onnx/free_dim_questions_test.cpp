// Shapes and movement that ask a free dim whether it is 1, 0, or the same as another.
#include "free_dim_member.h"
#include "frontends/shared/solve_dims.h"

namespace quernel::onnx_test {
namespace {

// The dims of x as scalars x0, x1, … and single elements x0v, x1v, ….
void dims_of(ModelBuilder& m, const std::string& x, int rank) {
  m.node("Shape", {x}, {x + "_shape"});
  for (int i = 0; i < rank; ++i) {
    std::string name = x + std::to_string(i);
    m.ints(name + "_at", {}, {i});
    m.node("Gather", {x + "_shape", name + "_at"}, {name});
    m.ints(name + "_to", {1}, {1});
    m.node("Reshape", {name, name + "_to"}, {name + "v"});
  }
}

// Found by fuzz_compile: as many values as there are integers.
TEST(FreeDimQuestions, symbols_without_an_upper_end_are_sampled) {
  for (int64_t least : {int64_t{0}, int64_t{1}, INT64_MAX - 2, INT64_MAX}) {
    Dim n = Dim::symbol(Symbol{"n", least, INT64_MAX, 4, false, {}});
    EXPECT_FALSE(equal_on_samples(floordiv(n, 2), floordiv(n, 3) + 1)) << least;
  }
  Dim n = Dim::symbol(Symbol{"n", 0, INT64_MAX, 1, false, {}});
  EXPECT_TRUE(equal_on_samples(floordiv(n * 6, 4), floordiv(n * 3, 2)));
}

TEST(FreeDimQuestions, squeeze) {
  auto squeeze = [](ModelBuilder& m) { m.node("Squeeze", {"x"}, {"y"}); };
  check_member({"batch", 17, {{"x", {"n", "5", "1", "1"}}}, squeeze, {}});
  check_member({"spatial", 11, {{"x", {"1", "n", "5", "m"}}}, squeeze, {}});
  check_member({"axis",
                17,
                {{"x", {"n", "1", "3"}}},
                [](ModelBuilder& m) {
                  m.ints("axes", {1}, {1});
                  m.node("Squeeze", {"x", "axes"}, {"y"});
                },
                kSmall});
  check_member({"axis_of_free_dim",
                17,
                {{"x", {"n", "3"}}},
                [](ModelBuilder& m) {
                  m.ints("axes", {1}, {0});
                  m.node("Squeeze", {"x", "axes"}, {"y"});
                },
                one_dim({1}),
                one_dim({2, 3})});
}

TEST(FreeDimQuestions, squeeze_with_a_range_or_a_number) {
  ModelBuilder m;
  m.input("x", {-1, 5, 1}, kFloat, {"batch"}).output("y");
  m.node("Squeeze", {"x"}, {"y"});
  std::string errors = to_string(m.import().errors());
  expect_contains(errors, "expected to know whether a dim is 1, found free dim batch");
  expect_contains(errors, "free dims 'batch' must be fixed or given a range");
  expect_contains(errors, "--dim batch=1 or --dim batch=2..64");
  ImportOptions range, one, even;
  range.dim_ranges["batch"] = Symbol{"batch", 2, 64, 1, false, {}};
  expect_values(run(m, {f32_tensor({2, 5, 1}, std::vector<float>(10, 3))}, range).at(0), {2, 5},
                std::vector<double>(10, 3));
  one.dims["batch"] = 1;
  expect_values(run(m, {f32_tensor({1, 5, 1}, std::vector<float>(5, 3))}, one).at(0), {5},
                std::vector<double>(5, 3));
  even.dim_ranges["batch"] = Symbol{"batch", 2, 64, 2, false, {}};
  EXPECT_TRUE(m.import(even));
}

TEST(FreeDimQuestions, advice_names_the_dims_that_are_needed_and_the_range_that_does) {
  // A length from 10 to 19 holds one whole block of 10.
  ModelBuilder m;
  m.input("x", {-1, -1}, kFloat, {"batch", "length"}).output("y");
  dims_of(m, "x", 2);
  m.ints("ten", {1}, {10});
  m.ints("axes", {1}, {1});
  m.ints("one", {1}, {1});
  m.node("Div", {"x1v", "ten"}, {"blocks"});
  set_int(m.node("Concat", {"x0v", "blocks"}, {"shape"}), "axis", 0);
  m.floats("zero", {1, 1}, {0});
  m.node("Expand", {"zero", "shape"}, {"zeros"});
  m.node("Squeeze", {"zeros", "axes"}, {"y"});
  std::string errors = to_string(m.import().errors());
  expect_contains(errors, "free dims 'length' must be fixed or given a range");
  expect_contains(errors, "--dim length=N or --dim length=10..19");
  ImportOptions range;
  range.dim_ranges["length"] = Symbol{"length", 10, 19, 1, false, {}};
  EXPECT_TRUE(m.import(range)) << to_string(m.import(range).errors());
}

TEST(FreeDimQuestions, broadcasting) {
  auto binary = [](const std::string& op) {
    return [op](ModelBuilder& m) { m.node(op, {"x", "z"}, {"y"}); };
  };
  for (const char* op : {"Add", "Mul", "Less", "Max", "PRelu"}) {
    std::string name = op;
    check_member({name + "_with_1", 17, {{"x", {"n", "3"}}, {"z", {"1", "3"}}}, binary(op), kSmall});
    check_member({name + "_with_number", 17, {{"x", {"n", "3"}}, {"z", {"5", "3"}}}, binary(op), {}});
    check_member({name + "_with_other",
                  17,
                  {{"x", {"n", "3"}}, {"z", {"m", "3"}}},
                  binary(op),
                  two_dims({{1, 1}, {3, 3}}),
                  two_dims({{1, 3}, {3, 1}, {2, 3}})});
  }
  check_member({"where",
                17,
                {{"c", {"n", "1"}, kBool}, {"x", {"m", "3"}}, {"z", {"1", "3"}}},
                [](ModelBuilder& m) {
                  m.node("Where", {"c", "x", "z"}, {"y"});
                },
                two_dims({{1, 1}, {4, 4}}),
                two_dims({{1, 4}, {4, 1}})});
  check_member({"matmul_batch",
                17,
                {{"x", {"n", "2", "3"}}, {"z", {"m", "3", "2"}}},
                binary("MatMul"),
                two_dims({{1, 1}, {3, 3}}),
                two_dims({{1, 3}, {3, 1}})});
  check_member({"matmul_inner",
                17,
                {{"x", {"2", "n"}}, {"z", {"m", "2"}}},
                binary("MatMul"),
                two_dims({{1, 1}, {3, 3}}),
                two_dims({{1, 3}, {3, 1}})});
  check_member({"gemm_addend",
                17,
                {{"x", {"n", "3"}}, {"z", {"3", "2"}}, {"c", {"m", "2"}}},
                [](ModelBuilder& m) {
                  m.node("Gemm", {"x", "z", "c"}, {"y"});
                },
                {}});
  check_member({"einsum",
                17,
                {{"x", {"n", "3"}}, {"z", {"m", "3"}}},
                [](ModelBuilder& m) {
                  set_string(m.node("Einsum", {"x", "z"}, {"y"}), "equation", "ij,ij->i");
                },
                two_dims({{1, 1}, {3, 3}}),
                two_dims({{1, 3}, {3, 1}})});
  check_member({"concat",
                17,
                {{"x", {"n", "3"}}, {"z", {"m", "2"}}},
                [](ModelBuilder& m) {
                  set_int(m.node("Concat", {"x", "z"}, {"y"}), "axis", 1);
                },
                two_dims({{1, 1}, {3, 3}}),
                two_dims({{1, 3}, {3, 1}})});
  check_member({"batch_normalization",
                17,
                {{"x", {"2", "n", "3"}}, {"s", {"m"}}},
                [](ModelBuilder& m) {
                  m.node("BatchNormalization", {"x", "s", "s", "s", "s"}, {"y"});
                },
                two_dims({{1, 1}, {3, 3}}),
                two_dims({{1, 3}, {3, 1}})});
  check_member({"layer_normalization",
                17,
                {{"x", {"n", "3"}}, {"s", {"m"}}},
                [](ModelBuilder& m) {
                  m.node("LayerNormalization", {"x", "s"}, {"y"});
                },
                {}});
}

TEST(FreeDimQuestions, expand_and_tile) {
  auto expand = [](ModelBuilder& m) {
    m.node("Shape", {"like"}, {"shape"});
    m.node("Expand", {"x", "shape"}, {"y"});
  };
  check_member({"of_1", 17, {{"x", {"1", "3"}}, {"like", {"n", "3"}}}, expand, kSmall});
  check_member({"of_free",
                17,
                {{"x", {"m", "3"}}, {"like", {"n", "3"}}},
                expand,
                two_dims({{1, 1}, {3, 3}}),
                two_dims({{1, 3}, {3, 1}})});
  check_member({"to_number",
                17,
                {{"x", {"n", "3"}}},
                [](ModelBuilder& m) {
                  m.ints("shape", {2}, {4, 3});
                  m.node("Expand", {"x", "shape"}, {"y"});
                },
                {}});
  check_member({"to_ones",
                17,
                {{"x", {"n", "3"}}},
                [](ModelBuilder& m) {
                  m.ints("shape", {3}, {2, 1, 1});
                  m.node("Expand", {"x", "shape"}, {"y"});
                },
                kSmall});
  check_member({"tile",
                17,
                {{"x", {"n", "3"}}, {"like", {"m", "1"}}},
                [](ModelBuilder& m) {
                  m.node("Shape", {"like"}, {"repeats"});
                  m.node("Tile", {"x", "repeats"}, {"y"});
                },
                two_dims({{1, 1}, {1, 3}, {3, 1}, {2, 2}})});
}

TEST(FreeDimQuestions, reshape) {
  auto to = [](std::vector<int64_t> shape) {
    return [shape](ModelBuilder& m) {
      m.ints("shape", {static_cast<int64_t>(shape.size())}, shape);
      m.node("Reshape", {"x", "shape"}, {"y"});
    };
  };
  check_member({"to_numbers", 17, {{"x", {"n", "3"}}}, to({2, 3}), one_dim({2}), one_dim({1, 3})});
  check_member({"to_multiple", 17, {{"x", {"n", "3"}}}, to({2, 6}), one_dim({4}), one_dim({1, 2, 3})});
  check_member({"to_halves", 17, {{"x", {"n", "3"}}}, to({-1, 6}), one_dim({2, 4, 6}), one_dim({1, 3, 5})});
  check_member({"of_two", 17, {{"x", {"n", "m"}}}, to({6}), {}, {}});
  check_member({"zero_copies", 17, {{"x", {"n", "4"}}}, to({0, 2, 2}), kSmall});
  check_member({"minus_one", 17, {{"x", {"n", "m", "4"}}}, to({-1, 4}), two_dims({{1, 1}, {3, 2}})});
  check_member({"of_two_halves",
                17,
                {{"x", {"n", "m"}}},
                [](ModelBuilder& m) {
                  dims_of(m, "x", 2);
                  m.ints("rest", {1}, {-1});
                  m.ints("two", {1}, {2});
                  m.node("Div", {"x0v", "two"}, {"rows"});
                  m.node("Div", {"x1v", "two"}, {"columns"});
                  set_int(m.node("Concat", {"rest", "rows", "two", "columns", "two"}, {"shape"}), "axis", 0);
                  m.node("Reshape", {"x", "shape"}, {"y"});
                },
                two_dims({{2, 2}, {4, 2}, {6, 8}}),
                two_dims({{1, 2}, {2, 3}, {3, 5}})});
  check_member({"by_another_shape",
                17,
                {{"x", {"n", "4"}}, {"like", {"m", "2"}}},
                [](ModelBuilder& m) {
                  m.node("Shape", {"like"}, {"shape"});
                  m.node("Reshape", {"x", "shape"}, {"y"});
                },
                two_dims({{1, 2}, {3, 6}}),
                two_dims({{1, 1}, {2, 3}})});
  // Padded to a multiple of 4, then split: true for every n, though hard to show.
  check_member({"windows",
                17,
                {{"x", {"n"}}},
                [](ModelBuilder& m) {
                  dims_of(m, "x", 1);
                  m.ints("four", {1}, {4});
                  m.ints("zero", {1}, {0});
                  m.node("Mod", {"x0v", "four"}, {"rest"});
                  m.node("Sub", {"four", "rest"}, {"missing"});
                  m.node("Mod", {"missing", "four"}, {"after"});
                  set_int(m.node("Concat", {"zero", "after"}, {"pads"}), "axis", 0);
                  m.node("Pad", {"x", "pads"}, {"padded"});
                  m.ints("rows", {2}, {-1, 4});
                  m.node("Reshape", {"padded", "rows"}, {"y"});
                },
                kSmall});
}

// Halves rounded up and quarters doubled: equal for multiples of 4, and for sizes between, which are given
// up.
TEST(FreeDimQuestions, rounded_sizes_that_broadcast_for_whole_multiples) {
  ModelBuilder m;
  m.input("x", {1, 1, -1}, kFloat, {"", "", "n"}).output("y");
  for (auto [name, stride] : {std::pair{"half", 2}, {"quarter", 4}}) {
    onnx::NodeProto& pool = m.node("MaxPool", {"x"}, {name});
    set_ints(pool, "kernel_shape", {1});
    set_ints(pool, "strides", {stride});
  }
  m.floats("scales", {3}, {1, 1, 2});
  onnx::NodeProto& resize = m.node("Resize", {"quarter", "", "scales"}, {"grown"});
  set_string(resize, "mode", "nearest");
  m.node("Add", {"half", "grown"}, {"y"});
  Expected<ImportedModel> imported = m.import();
  ASSERT_TRUE(imported) << to_string(imported.errors());
  ASSERT_FALSE(imported->notes.empty());
  EXPECT_EQ(imported->notes[0], "free dim 'n' must be a multiple of 4");
}

TEST(FreeDimQuestions, slice) {
  // Bounds n - 3, which count from the end where they are negative.
  auto slice = [](bool start, int64_t step) {
    return [start, step](ModelBuilder& m) {
      dims_of(m, "x", 1);
      m.ints("three", {1}, {3});
      m.node("Sub", {"x0v", "three"}, {"bound"});
      m.ints("zero", {1}, {step > 0 ? 0 : INT64_MIN});
      m.ints("most", {1}, {INT64_MAX});
      m.ints("axes", {1}, {0});
      m.ints("steps", {1}, {step});
      std::string low = step > 0 ? "zero" : "most", high = step > 0 ? "most" : "zero";
      m.node("Slice", {"x", start ? "bound" : low, start ? high : "bound", "axes", "steps"}, {"y"});
    };
  };
  for (int64_t step : {1, 2, -1}) {
    check_member({"start_step_" + std::to_string(step), 17, {{"x", {"n"}}}, slice(true, step), kSmall});
    check_member({"end_step_" + std::to_string(step), 17, {{"x", {"n"}}}, slice(false, step), kSmall});
  }
}

TEST(FreeDimQuestions, split) {
  auto sizes = [](std::vector<int64_t> sizes) {
    return [sizes](ModelBuilder& m) {
      m.ints("sizes", {static_cast<int64_t>(sizes.size())}, sizes);
      std::vector<std::string> parts{"y"};
      for (size_t i = 1; i < sizes.size(); ++i) parts.push_back("p" + std::to_string(i));
      m.node("Split", {"x", "sizes"}, parts);
    };
  };
  check_member({"sizes", 17, {{"x", {"n", "2"}}}, sizes({2, 3}), one_dim({5}), one_dim({1, 4, 6})});
  for (int last : {0, 1}) {
    auto equal = [last](ModelBuilder& m) {
      onnx::NodeProto& node = m.node("Split", {"x"}, {last ? "p" : "y", last ? "y" : "p"});
      if (m.model.opset_import(0).version() >= 18) set_int(node, "num_outputs", 2);
    };
    check_member({"equal", 17, {{"x", {"n", "2"}}}, equal, one_dim({2, 4, 6}), one_dim({1, 3})});
    check_member({"unequal", 18, {{"x", {"n", "2"}}}, equal, kSmall});
  }
  check_member({"four_parts",
                18,
                {{"x", {"n", "2"}}},
                [](ModelBuilder& m) {
                  set_int(m.node("Split", {"x"}, {"a", "b", "y", "c"}), "num_outputs", 4);
                },
                one_dim({3, 4, 7, 8})});
}

TEST(FreeDimQuestions, blocks) {
  auto blocks = [](const std::string& op) {
    return [op](ModelBuilder& m) { set_int(m.node(op, {"x"}, {"y"}), "blocksize", 2); };
  };
  check_member({"space_to_depth",
                17,
                {{"x", {"1", "1", "n", "4"}}},
                blocks("SpaceToDepth"),
                one_dim({2, 4}),
                one_dim({1, 3})});
  check_member({"depth_to_space", 17, {{"x", {"n", "4", "1", "2"}}}, blocks("DepthToSpace"), kSmall});
}

TEST(FreeDimQuestions, sizes_that_are_computed_and_compared) {
  // Equal(dim, 1), and what depends on it.
  auto equal_one = [](ModelBuilder& m) {
    dims_of(m, "x", 2);
    m.ints("one", {}, {1});
    m.node("Equal", {"x0", "one"}, {"is_one"});
  };
  check_member({"where",
                17,
                {{"x", {"n", "3"}}},
                [=](ModelBuilder& m) {
                  equal_one(m);
                  m.floats("a", {}, {2});
                  m.floats("b", {}, {-1});
                  m.node("Where", {"is_one", "a", "b"}, {"factor"});
                  m.node("Mul", {"x", "factor"}, {"y"});
                },
                kSmall});
  check_member({"size_times_x",
                17,
                {{"x", {"n", "3"}}},
                [](ModelBuilder& m) {
                  m.node("Size", {"x"}, {"size"});
                  set_int(m.node("Cast", {"size"}, {"factor"}), "to", kFloat);
                  m.node("Mul", {"x", "factor"}, {"y"});
                },
                kSmall});
  auto branches = [=](bool squeezes) {
    return [=](ModelBuilder& m) {
      equal_one(m);
      m.ints("axis", {1}, {0});
      onnx::NodeProto& node = m.node("If", {"is_one"}, {"y"});
      onnx::GraphProto &yes = set_graph(node, "then_branch"), &no = set_graph(node, "else_branch");
      for (onnx::GraphProto* branch : {&yes, &no}) {
        branch->set_name("branch");
        bool is_yes = branch == &yes;
        onnx::NodeProto& inner = *branch->add_node();
        inner.set_op_type(is_yes ? (squeezes ? "Squeeze" : "Neg") : "Identity");
        inner.add_input("x");
        if (is_yes && squeezes) inner.add_input("axis");
        inner.add_output(is_yes ? "t" : "e");
        branch->add_output()->set_name(is_yes ? "t" : "e");
      }
    };
  };
  check_member({"branches_of_one_type", 17, {{"x", {"n", "3"}}}, branches(false), kSmall});
  check_member({"branches_of_two_ranks", 17, {{"x", {"n", "3"}}}, branches(true), {}});
}

}  // namespace
}  // namespace quernel::onnx_test
