// Custom operators: those of a known meaning, those that the user has described, and those that are refused.
#include <flatbuffers/flexbuffers.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "frontends/tflite/flexbuffer.h"
#include "graph/print_parts.h"
#include "model_builder.h"

namespace quernel::tflite_test {
namespace {

using tflite_import::read_flexbuffer_map;

std::vector<uint8_t> flex_map(const std::function<void(flexbuffers::Builder&)>& entries) {
  flexbuffers::Builder b;
  b.Map([&] { entries(b); });
  b.Finish();
  return b.GetBuffer();
}

ImportOptions described(const std::string& text) {
  Expected<std::vector<CustomOpDescription>> ops = parse_custom_ops(text, "ops.op");
  ImportOptions options;
  if (!ops) {
    ADD_FAILURE() << to_string(ops.errors());
    return options;
  }
  options.custom_ops = *std::move(ops);
  return options;
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nwithout: " << part;
}

// ---- options

TEST(Flexbuffers, entries_have_their_kinds) {
  std::vector<uint8_t> bytes = flex_map([](flexbuffers::Builder& b) {
    b.Int("int", -300);
    b.UInt("uint", 70000);
    b.Bool("bool", true);
    b.Float("float", 0.5f);
    b.Double("double", 0.1);
    b.String("string", "a b");
    b.IndirectInt("far", 5);
    b.TypedVector("ints", [&] {
      b.Int(1);
      b.Int(-2);
    });
    b.Vector("strings", [&] {
      b.String("p");
      b.String("q");
    });
  });
  std::optional<AttributeValues> map = read_flexbuffer_map(bytes);
  ASSERT_TRUE(map);
  EXPECT_EQ(custom_attributes_text(*map),
            "bool=1;double=0.1;far=5;float=0.5;int=-300;ints=[1,-2];string=\"a "
            "b\";strings=[\"p\",\"q\"];uint=70000");
}

TEST(Flexbuffers, damaged_maps_are_no_maps) {
  std::vector<uint8_t> bytes = flex_map([](flexbuffers::Builder& b) {
    b.String("name", "text");
    b.Int("number", 100000);
  });
  ASSERT_TRUE(read_flexbuffer_map(bytes));
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(read_flexbuffer_map(std::span(bytes).first(size))) << "of " << size << " bytes";
  flexbuffers::Builder vector;
  vector.Vector([&] { vector.Int(1); });
  vector.Finish();
  EXPECT_FALSE(read_flexbuffer_map(vector.GetBuffer()));
}

TEST(Flexbuffers, lists_that_share_elements_have_a_bound) {
  flexbuffers::Builder b;
  b.Map([&] {
    std::vector<int8_t> many(200);
    b.Key("a");
    size_t start = b.StartVector();
    for (int8_t value : many) b.Int(value);
    b.EndVector(start, true, false);
    flexbuffers::Builder::Value shared = b.LastValue();
    for (int i = 0; i < 100; ++i) b.ReuseValue(("k" + std::to_string(i)).c_str(), shared);
  });
  b.Finish();
  EXPECT_FALSE(read_flexbuffer_map(b.GetBuffer()));
}

// ---- TFLite_Detection_PostProcess

struct DetectionOptions {
  bool regular = false;
  int most = 3, most_classes = 1, most_per_class = 100;
  float scale = 1;
  std::string unknown;
};

std::vector<uint8_t> detection_options(const DetectionOptions& o) {
  return flex_map([&](flexbuffers::Builder& b) {
    b.Int("max_detections", o.most);
    b.Int("max_classes_per_detection", o.most_classes);
    b.Int("detections_per_class", o.most_per_class);
    b.Bool("use_regular_nms", o.regular);
    b.Int("num_classes", 2);
    b.Float("nms_score_threshold", 0.15f);
    b.Float("nms_iou_threshold", 0.5f);
    for (const char* name : {"y_scale", "x_scale", "h_scale", "w_scale"}) b.Float(name, o.scale);
    if (!o.unknown.empty()) b.Int(o.unknown.c_str(), 1);
  });
}

// Four boxes of height and width 1, the first two and the last two near each other; two classes behind a background.
std::vector<Tensor> detect(const DetectionOptions& o,
                           const std::vector<float>& offsets = std::vector<float>(16),
                           std::string* errors = nullptr) {
  ModelBuilder m;
  int boxes = m.input("boxes", {1, 4, 4}), scores = m.input("scores", {1, 4, 3});
  int anchors = m.floats("anchors", {4, 4}, {0.5, 0.5, 1, 1, 0.5, 0.6f, 1, 1, 0.5, 3, 1, 1, 0.5, 3.1f, 1, 1});
  int all = o.most * o.most_classes;
  int places = m.output("places", {1, all, 4}), classes = m.output("classes", {1, all}),
      found = m.output("found", {1, all}), count = m.output("count", {1});
  m.custom_node("TFLite_Detection_PostProcess", {boxes, scores, anchors}, {places, classes, found, count},
                detection_options(o));
  if (errors) {
    *errors = m.errors();
    return {};
  }
  return m.run({f32_tensor({1, 4, 4}, offsets),
                f32_tensor({1, 4, 3}, {0, 0.9f, 0.2f, 0, 0.8f, 0.7f, 1, 0.1f, 0.6f, 1, 0.05f, 0.3f})});
}

TEST(DetectionPostprocess, a_box_is_taken_for_its_best_class) {
  std::vector<Tensor> results = detect({});
  ASSERT_EQ(results.size(), 4u);
  expect_values(results, {1, 3, 4}, {0, 0, 1, 1, 0, 2.5, 1, 3.5, 0, 0, 0, 0});
  expect_values({results[1]}, {1, 3}, {0, 1, 0});
  expect_values({results[2]}, {1, 3}, {0.9, 0.6, 0});
  expect_values({results[3]}, {1}, {2});
}

TEST(DetectionPostprocess, a_box_may_name_several_classes) {
  DetectionOptions options;
  options.most_classes = 3;
  std::vector<Tensor> results = detect(options);
  ASSERT_EQ(results.size(), 4u);
  expect_values({results[1]}, {1, 9}, {0, 1, 0, 1, 0, 0, 0, 0, 0});
  expect_values({results[2]}, {1, 9}, {0.9, 0.2, 0, 0.6, 0.1, 0, 0, 0, 0});
  expect_values({results[3]}, {1}, {2});
}

TEST(DetectionPostprocess, regular_suppression_is_by_class) {
  DetectionOptions options;
  options.regular = true;
  std::vector<Tensor> results = detect(options);
  ASSERT_EQ(results.size(), 4u);
  expect_values(results, {1, 3, 4}, {0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, 2.5, 1, 3.5});
  expect_values({results[1]}, {1, 3}, {0, 1, 1});
  expect_values({results[2]}, {1, 3}, {0.9, 0.7, 0.6});
  expect_values({results[3]}, {1}, {3});
  options.most_per_class = 1;
  results = detect(options);
  expect_values({results[2]}, {1, 3}, {0.9, 0.7, 0});
  expect_values({results[3]}, {1}, {2});
}

TEST(DetectionPostprocess, boxes_are_offsets_to_anchors) {
  std::vector<float> offsets(16);
  offsets[0] = 5;
  offsets[1] = -5;
  offsets[2] = 10 * std::log(2.0f);
  DetectionOptions options;
  options.scale = 10;
  std::vector<Tensor> results = detect(options, offsets);
  ASSERT_EQ(results.size(), 4u);
  // The centre moves by half a box, the height doubles; then the second box overlaps too little.
  expect_values(results, {1, 3, 4}, {0, -0.5, 2, 0.5, 0, 0.1, 1, 1.1, 0, 2.5, 1, 3.5});
}

TEST(DetectionPostprocess, options_are_checked) {
  auto errors = [](const DetectionOptions& options) {
    std::string text;
    detect(options, {}, &text);
    return text;
  };
  DetectionOptions options;
  options.unknown = "newer";
  expect_contains(errors(options),
                  "option 'newer' is not known; the option may change the result, so it is not ignored");
  options = {};
  options.most_per_class = 0;
  expect_contains(errors(options), "option 'detections_per_class': expected a whole number from 1");
  options = {};
  options.scale = 0;
  expect_contains(errors(options), "option 'y_scale': expected a number above 0");
}

TEST(DetectionPostprocess, operands_are_checked) {
  auto errors = [](std::vector<int32_t> boxes, std::vector<int32_t> scores, std::vector<int32_t> anchors,
                   bool with_options = true) {
    ModelBuilder m;
    int b = m.input("boxes", boxes), s = m.input("scores", scores), a = m.input("anchors", anchors);
    std::vector<int32_t> results;
    for (const char* name : {"places", "classes", "found", "count"}) results.push_back(m.output(name, {1}));
    m.custom_node("TFLite_Detection_PostProcess", {b, s, a}, results,
                  with_options ? detection_options({}) : std::vector<uint8_t>{1, 2, 3});
    return m.errors();
  };
  expect_contains(errors({1, 4, 4}, {1, 4, 3}, {4, 4}, false),
                  "expected options in a FlexBuffers map, found other bytes");
  expect_contains(errors({2, 4, 4}, {1, 4, 3}, {4, 4}), "expected boxes [1,count,4], found [2,4,4]");
  expect_contains(errors({1, 4, 4}, {1, 4, 4}, {4, 4}),
                  "expected scores [1,4,2], or one more for the background, found [1,4,4]");
  expect_contains(errors({1, 4, 4}, {1, 4, 3}, {5, 4}), "expected anchors [4,4], found [5,4]");
}

// ---- Convolution2DTransposeBias

std::vector<uint8_t> words(std::vector<int32_t> values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(int32_t));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST(Convolution2dTransposeBias, elements_spread_over_the_result) {
  auto run = [](int32_t padding, int32_t columns) {
    ModelBuilder m;
    int x = m.input("x", {1, 1, 2, 1}), y = m.output("y", {1, 1, columns, 1});
    int w = m.floats("w", {1, 1, 3, 1}, {1, 10, 100}), b = m.floats("b", {1}, {0.5});
    m.custom_node("Convolution2DTransposeBias", {x, w, b}, {y}, words({padding, 2, 1, 0, 0}));
    return m.run({f32_tensor({1, 1, 2, 1}, {1, 2})});
  };
  expect_values(run(2, 5), {1, 1, 5, 1}, {1.5, 10.5, 102.5, 20.5, 200.5});
  expect_values(run(1, 4), {1, 1, 4, 1}, {1.5, 10.5, 102.5, 20.5});
}

TEST(Convolution2dTransposeBias, options_are_checked) {
  auto errors = [](std::vector<int32_t> options) {
    ModelBuilder m;
    int x = m.input("x", {1, 1, 2, 1}), y = m.output("y", {1, 1, 5, 1});
    int w = m.floats("w", {1, 1, 3, 1}, {1, 10, 100}), b = m.floats("b", {1}, {0.5});
    m.custom_node("Convolution2DTransposeBias", {x, w, b}, {y}, words(std::move(options)));
    return m.errors();
  };
  expect_contains(errors({1, 2}), "expected options of at least 12 bytes, found 8");
  expect_contains(errors({0, 1, 1}), "option 'padding': expected 1 or 2, found 0");
  expect_contains(errors({1, 0, 1}), "stride");
}

// ---- described operators

std::string custom_text(const ImportedModel& model) {
  for (const Node& node : model.graph.nodes)
    if (node.op == OpKind::k_custom) return attributes_text(node);
  return {};
}

TEST(TfliteCustomOps, options_become_attributes) {
  auto import = [](std::vector<uint8_t> bytes) {
    ModelBuilder m;
    int x = m.input("x", {3, 4}), y = m.output("y", {4});
    m.custom_node("Sum", {x}, {y}, std::move(bytes));
    Expected<ImportedModel> model = m.import(described("op \"Sum\" (x: f32[r, n]) -> (y: f32[n])"));
    return model ? custom_text(*model) : to_string(model.errors());
  };
  expect_contains(import(flex_map([](flexbuffers::Builder& b) {
                    b.Float("gain", 2);
                    b.Int("axis", 0);
                  })),
                  "axis=0;gain=2.0");
  expect_contains(import({7, 0, 255}), "custom_options=[7,0,255]");
  EXPECT_EQ(import({}).find('='), import({}).find("results=")) << import({});
}

TEST(TfliteCustomOps, a_description_precedes_an_importer) {
  ModelBuilder m;
  int x = m.input("x", {2}), y = m.output("y", {2});
  m.custom_node("Convolution2DTransposeBias", {x}, {y});
  Expected<ImportedModel> model =
      m.import(described("op \"Convolution2DTransposeBias\" (x: f32[n]) -> (y: f32[n])\n"
                         "op \"Other\" (x: f32[n]) -> (y: f32[n])"));
  ASSERT_TRUE(model) << to_string(model.errors());
  EXPECT_NE(custom_text(*model), "");
  EXPECT_EQ(model->notes, std::vector<std::string>{
                              "custom op 'Other' is described, but no custom operator of the model is one"});
}

TEST(TfliteCustomOps, results_are_checked) {
  auto errors = [](const std::string& text) {
    ModelBuilder m;
    int x = m.input("x", {2}), y = m.output("y", {2});
    m.custom_node("My", {x}, {y});
    return m.errors(described(text));
  };
  expect_contains(errors("op \"My\" (x: f32[n]) -> (y: i8[n])"), "result 0: the file says f32");
  expect_contains(errors("op \"My\" (x: f32[n], w: f32[n]) -> (y: f32[n])"), "found input 1 missing");
  expect_contains(errors("op \"My\" (x: i8[n]) -> (y: f32[n])"), "expected i8[n], found f32[2]");
}

TEST(TfliteCustomOps, refusals_say_the_way_out) {
  auto errors = [](const std::string& name) {
    ModelBuilder m;
    int x = m.input("x", {2}), y = m.output("y", {2});
    m.custom_node(name, {x}, {y}, {1, 2, 3});
    return m.errors();
  };
  expect_contains(errors("My"),
                  "node 'y' (My): custom operator My is not supported; describe it with --custom-op");
  expect_contains(errors("FlexErf"), "operator Erf of TensorFlow is not supported");
  for (const char* name : {"TfLiteXNNPackDelegate", "TfLiteGpuDelegateV2", "edgetpu-custom-op", "ethos-u"})
    expect_contains(errors(name),
                    std::string(name) +
                        " is a part of the model that a delegate has compiled for its own device, not an "
                        "operator; give the model as it was");
}

}  // namespace
}  // namespace quernel::tflite_test
