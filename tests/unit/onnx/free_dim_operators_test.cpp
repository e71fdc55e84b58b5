// Windows, gathers, recurrences and attention of free sizes, 1 among them.
#include "free_dim_member.h"

namespace quernel::onnx_test {
namespace {

TEST(FreeDimOperators, resize_and_windows) {
  for (const char* coordinates : {"half_pixel", "align_corners", "pytorch_half_pixel", "asymmetric"})
    for (const char* mode : {"nearest", "linear", "cubic"}) {
      auto resize = [=](ModelBuilder& m) {
        m.node("Shape", {"like"}, {"sizes"});
        onnx::NodeProto& node = m.node("Resize", {"x", "", "", "sizes"}, {"y"});
        set_string(node, "mode", mode);
        set_string(node, "coordinate_transformation_mode", coordinates);
      };
      check_member({std::string(mode) + " " + coordinates,
                    17,
                    {{"x", {"1", "1", "n"}}, {"like", {"1", "1", "m"}}},
                    resize,
                    two_dims({{1, 1}, {1, 4}, {4, 1}, {3, 3}, {3, 5}})});
    }
  // Half of the image must not be empty.
  check_member({"pooled_and_resized",
                17,
                {{"x", {"1", "1", "n"}}},
                [](ModelBuilder& m) {
                  onnx::NodeProto& pool = m.node("MaxPool", {"x"}, {"half"});
                  set_ints(pool, "kernel_shape", {2});
                  set_ints(pool, "strides", {2});
                  m.node("Shape", {"x"}, {"sizes"});
                  set_string(m.node("Resize", {"half", "", "", "sizes"}, {"y"}), "mode", "linear");
                },
                one_dim({2, 3, 5}),
                one_dim({1})});
  for (bool ceil : {false, true})
    for (const char* op : {"MaxPool", "AveragePool"})
      check_member({std::string(op) + (ceil ? " ceil" : ""),
                    17,
                    {{"x", {"1", "1", "n"}}},
                    [=](ModelBuilder& m) {
                      onnx::NodeProto& pool = m.node(op, {"x"}, {"y"});
                      set_ints(pool, "kernel_shape", {3});
                      set_ints(pool, "strides", {2});
                      set_ints(pool, "pads", {1, 1});
                      set_int(pool, "ceil_mode", ceil);
                    },
                    kSmall});
  check_member({"conv_transpose",
                17,
                {{"x", {"n", "1", "m"}}},
                [](ModelBuilder& m) {
                  m.floats("w", {1, 2, 3}, {1, 2, 3, 4, 5, 6});
                  set_ints(m.node("ConvTranspose", {"x", "w"}, {"y"}), "strides", {2});
                },
                two_dims({{1, 1}, {1, 3}, {3, 1}, {2, 4}})});
  check_member({"grid_sample",
                20,
                {{"x", {"1", "1", "n", "m"}}, {"g", {"1", "2", "2", "2"}}},
                [](ModelBuilder& m) {
                  m.node("GridSample", {"x", "g"}, {"y"});
                },
                two_dims({{1, 1}, {1, 3}, {3, 1}, {3, 2}})});
}

TEST(FreeDimOperators, gathers_scatters_and_positions) {
  check_member({"gather",
                17,
                {{"x", {"n", "3"}}, {"i", {"m"}, kInt64}},
                [](ModelBuilder& m) {
                  m.node("Gather", {"x", "i"}, {"y"});
                },
                two_dims({{2, 1}, {3, 4}})});
  check_member({"gather_last",
                17,
                {{"x", {"n", "3"}}},
                [](ModelBuilder& m) {
                  m.ints("last", {}, {-1});
                  m.node("Gather", {"x", "last"}, {"y"});
                },
                kSmall});
  check_member({"scatter_nd",
                18,
                {{"x", {"n", "3"}}, {"i", {"1", "1"}, kInt64}, {"u", {"1", "3"}}},
                [](ModelBuilder& m) {
                  m.node("ScatterND", {"x", "i", "u"}, {"y"});
                },
                kSmall});
  check_member({"non_zero",
                17,
                {{"x", {"n", "m"}, kBool}},
                [](ModelBuilder& m) { m.node("NonZero", {"x"}, {"y"}); },
                two_dims({{1, 1}, {1, 4}, {4, 1}, {3, 2}})});
  check_member({"one_hot",
                17,
                {{"i", {"n"}, kInt64}, {"x", {"m"}}},
                [](ModelBuilder& m) {
                  m.floats("values", {2}, {0, 1});
                  m.node("Size", {"x"}, {"depth"});
                  m.node("OneHot", {"i", "depth", "values"}, {"y"});
                },
                two_dims({{1, 1}, {1, 3}, {3, 1}, {2, 4}})});
  check_member({"dft_of_a_given_length",
                17,
                {{"x", {"1", "n", "1"}}},
                [](ModelBuilder& m) {
                  m.ints("length", {}, {4});
                  m.node("DFT", {"x", "length"}, {"y"});
                },
                kSmall});
  check_member({"center_crop_pad",
                18,
                {{"x", {"n", "2"}}, {"like", {"m", "3"}}},
                [](ModelBuilder& m) {
                  m.node("Shape", {"like"}, {"shape"});
                  m.node("CenterCropPad", {"x", "shape"}, {"y"});
                },
                two_dims({{1, 1}, {1, 4}, {4, 1}, {5, 2}, {2, 7}, {3, 3}})});
  auto top = [](int64_t count) {
    return [count](ModelBuilder& m) {
      m.ints("k", {1}, {count});
      m.node("TopK", {"x", "k"}, {"y", "where"});
    };
  };
  check_member({"top_k", 17, {{"x", {"2", "n"}}}, top(3), one_dim({3, 5}), one_dim({1, 2})});
  check_member({"top_of_all",
                17,
                {{"x", {"2", "n"}}},
                [](ModelBuilder& m) {
                  m.node("Shape", {"x"}, {"shape"});
                  m.ints("last", {1}, {1});
                  m.node("Gather", {"shape", "last"}, {"n"});
                  m.ints("most", {1}, {3});
                  m.node("Min", {"n", "most"}, {"k"});
                  m.node("TopK", {"x", "k"}, {"y", "where"});
                },
                kSmall});
  check_member({"flatten",
                17,
                {{"x", {"n", "m", "2"}}},
                [](ModelBuilder& m) { set_int(m.node("Flatten", {"x"}, {"y"}), "axis", 2); },
                two_dims({{1, 1}, {1, 3}, {3, 1}})});
  check_member({"reverse_sequence",
                17,
                {{"x", {"n", "m"}}, {"lengths", {"m"}, kInt64}},
                [](ModelBuilder& m) {
                  m.node("ReverseSequence", {"x", "lengths"}, {"y"});
                },
                two_dims({{1, 1}, {1, 3}, {3, 1}, {3, 2}})});
  for (const char* op : {"ReduceMean", "ReduceMax", "Softmax", "LogSoftmax", "Hardmax"})
    check_member({op,
                  17,
                  {{"x", {"n", "m"}}},
                  [=](ModelBuilder& m) { m.node(op, {"x"}, {"y"}); },
                  two_dims({{1, 1}, {1, 3}, {3, 1}, {3, 2}})});
}

TEST(FreeDimOperators, recurrences) {
  for (const char* op : {"RNN", "GRU", "LSTM"}) {
    int64_t gates = op == std::string("RNN") ? 1 : op == std::string("GRU") ? 3 : 4;
    check_member({op,
                  17,
                  {{"x", {"n", "m", "2"}}},
                  [=](ModelBuilder& m) {
                    std::vector<float> w, r;
                    for (int64_t i = 0; i < gates * 6; ++i) w.push_back(static_cast<float>(i % 5) * 0.1f);
                    for (int64_t i = 0; i < gates * 9; ++i)
                      r.push_back(static_cast<float>(i % 7) * 0.1f - 0.2f);
                    m.floats("w", {1, gates * 3, 2}, w);
                    m.floats("r", {1, gates * 3, 3}, r);
                    set_int(m.node(op, {"x", "w", "r"}, {"y"}), "hidden_size", 3);
                  },
                  two_dims({{1, 1}, {1, 3}, {3, 1}, {2, 4}})});
  }
}

TEST(FreeDimOperators, attention) {
  auto attention = [](ModelBuilder& m) {
    onnx::NodeProto& node = m.node("Attention", {"q", "k", "k", "mask"}, {"y"});
    set_int(node, "q_num_heads", 2);
    set_int(node, "kv_num_heads", 1);
  };
  check_member({"lengths",
                23,
                {{"q", {"1", "n", "4"}}, {"k", {"1", "m", "2"}}, {"mask", {"n", "m"}, kBool}},
                attention,
                two_dims({{1, 1}, {1, 3}, {3, 1}, {2, 4}})});
  check_member({"mask_of_one_query",
                23,
                {{"q", {"1", "n", "4"}}, {"k", {"1", "m", "2"}}, {"mask", {"1", "m"}, kBool}},
                attention,
                two_dims({{1, 1}, {1, 3}, {3, 1}, {2, 4}})});
  auto rotary = [](ModelBuilder& m) {
    m.floats("cos", {8, 2}, std::vector<float>(16, 0.5f));
    std::vector<float> sines;
    for (int i = 0; i < 16; ++i) sines.push_back(static_cast<float>(i) / 16);
    m.floats("sin", {8, 2}, sines);
    m.node("RotaryEmbedding", {"x", "at", "cos", "sin"}, {"y"}).set_domain("com.microsoft");
    m.model.add_opset_import()->set_domain("com.microsoft");
    m.model.mutable_opset_import(1)->set_version(1);
  };
  check_member({"rotary_start",
                17,
                {{"x", {"1", "2", "n", "4"}}, {"at", {"m"}, kInt64}},
                rotary,
                two_dims({{1, 1}, {3, 1}}),
                two_dims({{3, 3}})});
  check_member({"rotary_positions",
                17,
                {{"x", {"m", "2", "n", "4"}}, {"at", {"m", "n"}, kInt64}},
                rotary,
                two_dims({{1, 1}, {3, 1}, {3, 2}})});
}

}  // namespace
}  // namespace quernel::onnx_test
