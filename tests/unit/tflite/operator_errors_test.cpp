// What importers of operators refuse, each with its own words.
#include <gtest/gtest.h>

#include "model_builder.h"

namespace quernel::tflite_test {
namespace {

using Builder = flatbuffers::FlatBufferBuilder;

struct Refusal {
  const char* text;
  std::function<void(ModelBuilder&)> build;
};

void expect_refusals(const std::vector<Refusal>& refusals) {
  for (const Refusal& refusal : refusals) {
    ModelBuilder m;
    refusal.build(m);
    EXPECT_NE(m.errors().find(refusal.text), std::string::npos) << refusal.text << "\n" << m.errors();
  }
}

// One operator on x and further operands, with a float result.
void add_node(ModelBuilder& m, Op op, std::vector<int32_t> dims, std::vector<int32_t> operands,
              int results = 1) {
  int x = m.input("x", std::move(dims));
  operands.insert(operands.begin(), x);
  std::vector<int32_t> out;
  for (int i = 0; i < results; ++i) out.push_back(m.output("y" + std::to_string(i), {1}));
  m.node(op, operands, out);
}

TEST(TfliteRefusals, complex_values) {
  expect_refusals({
      {"expected a complex operand, found [4]", [](ModelBuilder& m) { add_node(m, Op::REAL, {4}, {}); }},
      {"expected two sizes, found 1",
       [](ModelBuilder& m) {
         int x = m.input("x", {2, 4}), s = m.ints("s", {4}), c = m.tensor("c", {2, 3}, Type::COMPLEX64);
         int y = m.output("y", {2, 3});
         m.node(Op::RFFT2D, {x, s}, {c});
         m.node(Op::REAL, {c}, {y});
       }},
      {"complex tensors are not supported by this operator; take their real and imaginary parts (REAL, IMAG) "
       "before it",
       [](ModelBuilder& m) {
         int x = m.input("x", {2, 4}), s = m.ints("s", {2, 4}), c = m.tensor("c", {2, 3}, Type::COMPLEX64);
         int y = m.output("y", {2, 3});
         m.node(Op::RFFT2D, {x, s}, {c});
         m.node(Op::ABS, {c}, {y});
       }},
  });
}

// A subgraph's parameter is declared complex and gets a real scalar.
TEST(TfliteRefusals, parameters_that_get_other_values_than_declared) {
  ModelBuilder m, part;
  int c = m.input("c", {}, Type::BOOL), x = m.input("x", {}), y = m.output("y", {});
  int from = part.input("from", {}, Type::COMPLEX64), to = part.output("to", {});
  part.node(Op::REAL, {from}, {to});
  m.second = &part;
  m.node<tflite::IfOptions>(Op::IF, {c, x}, {y}, [](Builder& f) { return tflite::CreateIfOptions(f, 1, 1); });
  EXPECT_NE(m.errors().find("expected a complex operand 0, found real values"), std::string::npos)
      << m.errors();
}

TEST(TfliteRefusals, operands_and_results_that_are_missing) {
  expect_refusals({
      {"expected result 1, found 1 results",
       [](ModelBuilder& m) {
         int k = m.constant<int32_t>("k", {}, Type::INT32, {2});
         add_node(m, Op::TOPK_V2, {4}, {k});
       }},
      {"expected matrices to be multiplied, found [4]",
       [](ModelBuilder& m) {
         int x = m.input("x", {1, 4}), w = m.floats("w", {4}, {1, 2, 3, 4}), b = m.floats("b", {1}, {0});
         int h = m.tensor("h", {1, 1});
         m.extras[h] = [](Builder&) {
           ModelBuilder::Extra extra;
           extra.is_variable = true;
           return extra;
         };
         m.node(Op::RNN, {x, w, w, b, h}, {m.output("y", {1, 1})});
       }},
  });
}

TEST(TfliteRefusals, sizes_and_ranks_beyond_what_is_declared) {
  expect_refusals({
      {"expected values with dim 0, whose indices have scales, found []",
       [](ModelBuilder& m) {
         int x = m.input("x", {});
         m.node(Op::QUANTIZE, {x}, {m.output("y", {3}, Type::INT8, {{1, 2, 3}, {0, 0, 0}, 0})});
       }},
      {"expected at most 2^22 windows along a dim, found 8388608",
       [](ModelBuilder& m) {
         int x = m.input("x", {1, 1 << 23, 1, 1});
         m.node<tflite::Pool2DOptions>(
             Op::AVERAGE_POOL_2D, {x}, {m.output("y", {1, 1 << 23, 1, 1})},
             [](Builder& f) { return tflite::CreatePool2DOptions(f, tflite::Padding::SAME, 1, 1, 3, 3); });
       }},
      {"expected the depth to be at least 0, found -1",
       [](ModelBuilder& m) {
         int x = m.input("x", {4}, Type::INT32), d = m.constant<int32_t>("d", {}, Type::INT32, {-1});
         int on = m.floats("on", {}, {1}), off = m.floats("off", {}, {0});
         m.node(Op::ONE_HOT, {x, d, on, off}, {m.output("y", {4, 1})});
       }},
      {"expected the count to be at least 0, found -2",
       [](ModelBuilder& m) {
         int x = m.input("x", {4}), k = m.constant<int32_t>("k", {}, Type::INT32, {-2});
         m.node(Op::TOPK_V2, {x, k}, {m.output("y", {1}), m.output("i", {1}, Type::INT32)});
       }},
      {"expected at least 1 inputs, found input 1 missing",
       [](ModelBuilder& m) {
         add_node(m, Op::CONCATENATION, {4}, {-1, m.floats("c", {4}, {1, 2, 3, 4})});
       }},
      {"tensor 1 of subgraph 0: scales of blocks",
       [](ModelBuilder& m) {
         int x = m.input("x", {1, 4});
         int w = m.constant("w", {1, 4}, Type::INT8, std::vector<int8_t>{1, 2, 3, 4});
         m.extras[w] = [](Builder& b) {
           ModelBuilder::Extra extra;
           extra.quantization = tflite::CreateQuantizationParameters(
               b, 0, 0, 0, 0, tflite::QuantizationDetails::BlockwiseQuantization,
               tflite::CreateBlockwiseQuantization(b, 77, 0, 4).Union());
           return extra;
         };
         m.node(Op::FULLY_CONNECTED, {x, w}, {m.output("y", {1, 1})});
       }},
  });
}

TEST(TfliteRefusals, products_of_many_integers) {
  expect_refusals({{"expected 1 to 256 elements to be multiplied, found 300", [](ModelBuilder& m) {
                      int x = m.input("x", {300}, Type::INT8, {{0.5}, {0}}), a = m.ints("a", {0});
                      m.node(Op::REDUCE_PROD, {x, a}, {m.output("y", {}, Type::INT8, {{0.5}, {0}})});
                    }}});
}

TEST(TfliteRefusals, movement) {
  expect_refusals({
      {"expected at most one dim of -1 in the new shape, found [-1,-1]",
       [](ModelBuilder& m) {
         int s = m.ints("s", {-1, -1});
         add_node(m, Op::RESHAPE, {4}, {s});
       }},
      {"expected the elements of the new shape [3] to be 4, found 3",
       [](ModelBuilder& m) {
         int s = m.ints("s", {3});
         add_node(m, Op::RESHAPE, {4}, {s});
       }},
      {"expected blocks of at least 1 for dims of [4,1,1], found [0]",
       [](ModelBuilder& m) {
         int b = m.ints("b", {0}), c = m.constant<int32_t>("c", {1, 2}, Type::INT32, {0, 0});
         add_node(m, Op::BATCH_TO_SPACE_ND, {4, 1, 1}, {b, c});
       }},
      {"expected an order of all dims of [2,3], found 1",
       [](ModelBuilder& m) {
         int p = m.ints("p", {0});
         add_node(m, Op::TRANSPOSE, {2, 3}, {p});
       }},
      {"expected a size for each result, found 1",
       [](ModelBuilder& m) {
         int x = m.input("x", {4}), s = m.ints("s", {4}), a = m.ints("a", {0});
         int y = m.output("y", {2}), z = m.output("z", {2});
         m.node<tflite::SplitVOptions>(Op::SPLIT_V, {x, s, a}, {y, z},
                                       [](Builder& f) { return tflite::CreateSplitVOptions(f, 2); });
       }},
      {"expected a number of copies for each dim of [4], found 2",
       [](ModelBuilder& m) {
         int c = m.ints("c", {1, 1});
         add_node(m, Op::TILE, {4}, {c});
       }},
      {"expected one fill value of f32, found i32[1]",
       [](ModelBuilder& m) {
         int p = m.constant<int32_t>("p", {1, 2}, Type::INT32, {1, 1}), v = m.ints("v", {1});
         add_node(m, Op::PADV2, {4}, {p, v});
       }},
      {"a fill value of more than 53 bits is not supported",
       [](ModelBuilder& m) {
         int x = m.input("x", {4}, Type::INT64), y = m.output("y", {6}, Type::INT64);
         int p = m.constant<int32_t>("p", {1, 2}, Type::INT32, {1, 1});
         int v = m.constant<int64_t>("v", {1}, Type::INT64, {(int64_t{1} << 53) + 1});
         m.node(Op::PADV2, {x, p, v}, {y});
       }},
      {"expected padding of at most 4 elements, found 5",
       [](ModelBuilder& m) {
         int x = m.input("x", {4}), y = m.output("y", {9});
         int p = m.constant<int32_t>("p", {1, 2}, Type::INT32, {5, 0});
         m.node<tflite::MirrorPadOptions>(Op::MIRROR_PAD, {x, p}, {y}, [](Builder& f) {
           return tflite::CreateMirrorPadOptions(f, tflite::MirrorPadMode::SYMMETRIC);
         });
       }},
      {"expected the padding of at least 0, found -1",
       [](ModelBuilder& m) {
         int p = m.constant<int32_t>("p", {1, 2}, Type::INT32, {-1, 1});
         add_node(m, Op::PAD, {4}, {p});
       }},
  });
}

TEST(TfliteRefusals, slices) {
  expect_refusals({
      {"expected an index and a size for each dim of [4], found 2 and 1",
       [](ModelBuilder& m) {
         int b = m.ints("b", {0, 0}), s = m.ints("s", {1});
         add_node(m, Op::SLICE, {4}, {b, s});
       }},
      {"expected a size to be at least 0, found -2",
       [](ModelBuilder& m) {
         int b = m.ints("b", {0}), s = m.ints("s", {-2});
         add_node(m, Op::SLICE, {4}, {b, s});
       }},
      {"expected strides other than 0",
       [](ModelBuilder& m) {
         int b = m.ints("b", {0}), e = m.ints("e", {1}), s = m.ints("s", {0});
         add_node(m, Op::STRIDED_SLICE, {4}, {b, e, s});
       }},
      {"expected as many last indices and strides as first indices, found 1 and 1",
       [](ModelBuilder& m) {
         int b = m.ints("b", {0, 0}), e = m.ints("e", {1}), s = m.ints("s", {1});
         add_node(m, Op::STRIDED_SLICE, {4}, {b, e, s});
       }},
      {"expected entries for dims of [4], found 2",
       [](ModelBuilder& m) {
         int b = m.ints("b", {0, 0}), e = m.ints("e", {1, 1}), s = m.ints("s", {1, 1});
         add_node(m, Op::STRIDED_SLICE, {4}, {b, e, s});
       }},
  });
}

TEST(TfliteRefusals, places) {
  expect_refusals({
      {"expected one count, found 2",
       [](ModelBuilder& m) {
         int k = m.ints("k", {1, 1});
         add_node(m, Op::TOPK_V2, {4}, {k}, 2);
       }},
      {"expected one number of segments, found 2",
       [](ModelBuilder& m) {
         int i = m.ints("i", {0, 0}), c = m.ints("c", {1, 1});
         add_node(m, Op::UNSORTED_SEGMENT_SUM, {2}, {i, c});
       }},
      {"expected one depth, found 2",
       [](ModelBuilder& m) {
         int x = m.input("x", {2}, Type::INT32), y = m.output("y", {2, 2}), d = m.ints("d", {2, 2});
         int one = m.floats("one", {}, {1}), zero = m.floats("zero", {}, {0});
         m.node(Op::ONE_HOT, {x, d, one, zero}, {y});
       }},
      {"expected a number of results of at least 1, found 0",
       [](ModelBuilder& m) {
         int boxes = m.input("boxes", {2, 4}), scores = m.input("scores", {2}), most = m.ints("most", {0});
         int limit = m.floats("limit", {}, {0.5}), y = m.output("y", {1}, Type::INT32),
             z = m.output("z", {}, Type::INT32);
         m.node(Op::NON_MAX_SUPPRESSION_V4, {boxes, scores, most, limit, limit}, {y, z});
       }},
      {"expected a step that leads from the start to the limit, found 0",
       [](ModelBuilder& m) {
         int zero = m.floats("zero", {}, {0}), limit = m.floats("limit", {}, {5}), y = m.output("y", {1});
         m.node(Op::RANGE, {zero, limit, zero}, {y});
       }},
      {"expected a new size of two dims of at least 1, found [0,2]",
       [](ModelBuilder& m) {
         int s = m.ints("s", {0, 2});
         add_node(m, Op::RESIZE_BILINEAR, {1, 2, 2, 1}, {s});
       }},
  });
}

TEST(TfliteRefusals, windows) {
  expect_refusals({
      {"expected a window with sizes, strides and dilations of at least 1, found 0",
       [](ModelBuilder& m) {
         add_node(m, Op::MAX_POOL_2D, {1, 2, 2, 1}, {});
       }},
      {"expected weights for the channels of [1,2,2,3], found [1,1,1,2]",
       [](ModelBuilder& m) {
         int x = m.input("x", {1, 2, 2, 3}), y = m.output("y", {1, 2, 2, 1}),
             w = m.floats("w", {1, 1, 1, 2}, {1, 2});
         m.node<tflite::Conv2DOptions>(Op::CONV_2D, {x, w}, {y}, [](Builder& f) {
           return tflite::CreateConv2DOptions(f, tflite::Padding::SAME, 1, 1);
         });
       }},
      {"expected a bias of [1], found [2]",
       [](ModelBuilder& m) {
         int x = m.input("x", {1, 2, 2, 1}), y = m.output("y", {1, 2, 2, 1});
         int w = m.floats("w", {1, 1, 1, 1}, {1}), b = m.floats("b", {2}, {1, 2});
         m.node<tflite::Conv2DOptions>(Op::CONV_2D, {x, w, b}, {y}, [](Builder& f) {
           return tflite::CreateConv2DOptions(f, tflite::Padding::SAME, 1, 1);
         });
       }},
      {"expected a result's size that the operand can have, found [-9,1]",
       [](ModelBuilder& m) {
         int x = m.input("x", {1, 1, 1, 1}), y = m.output("y", {1, 1, 1, 1});
         int s = m.ints("s", {1, -9, 1, 1}), w = m.floats("w", {1, 1, 1, 1}, {1});
         m.node<tflite::TransposeConvOptions>(Op::TRANSPOSE_CONV, {s, w, x}, {y}, [](Builder& f) {
           return tflite::CreateTransposeConvOptions(f, tflite::Padding::SAME, 1, 1);
         });
       }},
  });
}

// x of int8, weights and a result that are quantized so.
void add_dense(ModelBuilder& m, Type type, const Quant& x_quant, Type weight_type, const Quant& w_quant,
               const Quant& y_quant) {
  int x = m.input("x", {1, 2}, type, x_quant), y = m.output("y", {1, 2}, type, y_quant);
  int w = m.constant<int8_t>("w", {2, 2}, weight_type, {1, 2, 3, 4}, w_quant);
  m.node(Op::FULLY_CONNECTED, {x, w}, {y});
}

TEST(TfliteRefusals, quantized) {
  const Quant one{{1}, {0}};
  expect_refusals({
      {"expected weights of at least one input, found [2,0]",
       [](ModelBuilder& m) {
         int x = m.input("x", {1, 0}), w = m.input("w", {2, 0}), y = m.output("y", {1, 2});
         m.node(Op::FULLY_CONNECTED, {x, w}, {y});
       }},
      {"expected a weight scale for each output channel",
       [=](ModelBuilder& m) {
         add_dense(m, Type::INT8, one, Type::INT8, {{1, 1}, {0, 0}, 1}, one);
       }},
      {"expected a weight scale for each output channel",
       [=](ModelBuilder& m) {
         int x = m.input("x", {1, 1, 1, 2}, Type::INT8, one),
             y = m.output("y", {1, 1, 1, 2}, Type::INT8, one);
         int w = m.constant<int8_t>("w", {2, 1, 1, 2}, Type::INT8, {1, 2, 3, 4}, {{1, 1}, {0, 0}, 3});
         m.node<tflite::Conv2DOptions>(Op::CONV_2D, {x, w}, {y}, [](Builder& f) {
           return tflite::CreateConv2DOptions(f, tflite::Padding::SAME, 1, 1);
         });
       }},
      {"operand 0: expected integers with one scale",
       [=](ModelBuilder& m) {
         add_dense(m, Type::INT8, {{1, 1}, {0, 0}, 1}, Type::INT8, one, one);
       }},
      {"result 0: expected integers with one scale",
       [=](ModelBuilder& m) {
         add_dense(m, Type::INT8, one, Type::INT8, one, {{1, 1}, {0, 0}, 1});
       }},
      {"expected zero points of 0 for int16",
       [=](ModelBuilder& m) {
         add_dense(m, Type::INT16, {{1}, {3}}, Type::INT8, one, one);
       }},
      {"expected a result with a scale of one over an integer up to 2^16, found 0.3",
       [=](ModelBuilder& m) {
         int x = m.input("x", {1, 2}, Type::INT8, one), y = m.output("y", {1, 2}, Type::INT8, {{0.3f}, {0}});
         m.node(Op::SOFTMAX, {x}, {y});
       }},
      {"expected the result to have the larger scale of both operands, as they are powers of two, found "
       "0.500000 for "
       "0.125000 and 0.250000",
       [](ModelBuilder& m) {
         int a = m.input("a", {2}, Type::INT16, {{0.125f}, {0}}),
             b = m.input("b", {2}, Type::INT16, {{0.25f}, {0}});
         m.node(Op::ADD, {a, b}, {m.output("y", {2}, Type::INT16, {{0.5f}, {0}})});
       }},
  });
}

TEST(TfliteRefusals, subgraphs) {
  expect_refusals({
      {"expected the number of a subgraph, found 7",
       [](ModelBuilder& m) {
         int x = m.input("x", {1}), y = m.output("y", {1});
         m.node<tflite::CallOptions>(Op::CALL, {x}, {y},
                                     [](Builder& f) { return tflite::CreateCallOptions(f, 7); });
       }},
      {"subgraphs nested more than 32 deep; convert the model with less nesting",
       [](ModelBuilder& m) {
         int x = m.input("x", {1}), y = m.output("y", {1});
         m.node<tflite::CallOptions>(Op::CALL, {x}, {y},
                                     [](Builder& f) { return tflite::CreateCallOptions(f, 0); });
       }},
      {"expected 2 operands for subgraph 0, found 1",
       [](ModelBuilder& m) {
         int x = m.input("x", {1}), y = m.output("y", {1});
         m.input("other", {1});
         m.node<tflite::CallOptions>(Op::CALL, {x}, {y},
                                     [](Builder& f) { return tflite::CreateCallOptions(f, 0); });
       }},
      {"an auxiliary input is not supported",
       [](ModelBuilder& m) {
         int x = m.input("x", {1, 1, 1}), y = m.output("y", {1, 1, 1}), z = m.output("z", {1, 1, 1});
         std::vector<int32_t> operands(10, x);
         m.node(Op::BIDIRECTIONAL_SEQUENCE_RNN, operands, {y, z});
       }},
  });
}

TEST(TfliteRefusals, conditions_have_one_result) {
  ModelBuilder m, condition;
  int x = m.input("x", {1}), y = m.output("y", {1});
  m.node<tflite::WhileOptions>(Op::WHILE, {x}, {y},
                               [](Builder& f) { return tflite::CreateWhileOptions(f, 1, 1); });
  condition.outputs = {condition.input("operand", {1}), 0};
  m.second = &condition;
  EXPECT_NE(m.errors().find("expected 1 results of subgraph"), std::string::npos) << m.errors();
}

TEST(TfliteRefusals, nested_subgraphs_are_bounded) {
  ModelBuilder m;
  int x = m.input("x", {1}), y = m.output("y", {1});
  for (int i = 0; i < 40; ++i)
    m.node<tflite::CallOptions>(Op::CALL, {x}, {y},
                                [](Builder& f) { return tflite::CreateCallOptions(f, 0); });
  std::string text = m.errors();
  EXPECT_EQ(text.find("nested more than"), text.rfind("nested more than")) << text;
  ModelBuilder many;
  x = many.input("x", {1}), y = many.output("y", {1});
  ModelBuilder callee;
  int operand = callee.input("operand", {1}), result = callee.output("result", {1});
  for (int i = 0; i < 9; ++i) callee.node(Op::NEG, {operand}, {result});
  many.second = &callee;
  for (int i = 0; i < 20000; ++i)
    many.node<tflite::CallOptions>(Op::CALL, {x}, {y},
                                   [](Builder& f) { return tflite::CreateCallOptions(f, 1); });
  EXPECT_NE(many.errors().find("operators after subgraphs are inlined; lift the limit with --allow-large"),
            std::string::npos);
}

TEST(TfliteRefusals, variables) {
  ModelBuilder m;
  int x = m.input("x", {2}), y = m.output("y", {1}), handle = m.tensor("handle", {}, Type::RESOURCE);
  m.node<tflite::VarHandleOptions>(Op::VAR_HANDLE, {}, {handle}, [](Builder& f) {
    return tflite::CreateVarHandleOptions(f, 0, f.CreateString("v"));
  });
  m.node(Op::READ_VARIABLE, {handle}, {y});
  m.node(Op::ASSIGN_VARIABLE, {handle, x}, {});
  EXPECT_NE(m.errors().find("found f32[1] and f32[2]; convert the model with a fixed batch size"),
            std::string::npos)
      << m.errors();
  // The variable's first value is what the variable holds.
  ModelBuilder once, start;
  once.outputs = {once.input("x", {1})};
  once.node<tflite::CallOnceOptions>(Op::CALL_ONCE, {}, {},
                                     [](Builder& f) { return tflite::CreateCallOnceOptions(f, 1); });
  handle = start.tensor("handle", {}, Type::RESOURCE);
  int computed = start.tensor("computed", {1});
  start.node<tflite::VarHandleOptions>(Op::VAR_HANDLE, {}, {handle}, [](Builder& f) {
    return tflite::CreateVarHandleOptions(f, 0, f.CreateString("v"));
  });
  start.node(Op::READ_VARIABLE, {handle}, {computed});
  start.node(Op::ASSIGN_VARIABLE, {handle, computed}, {});
  once.second = &start;
  EXPECT_NE(once.errors().find("expected a first value that is known at compile time, found a computed one"),
            std::string::npos)
      << once.errors();
}

TEST(TfliteOperators, without_results_are_refused) {
  ModelBuilder m;
  Quant q{{1}, {0}};
  int x = m.input("x", {1, 1}, Type::INT8, q), w = m.constant<int8_t>("w", {1, 1}, Type::INT8, {1}, q);
  m.node(Op::FULLY_CONNECTED, {x, w}, {});
  EXPECT_NE(m.errors().find("expected at least one result, found none"), std::string::npos) << m.errors();
}

}  // namespace
}  // namespace quernel::tflite_test
