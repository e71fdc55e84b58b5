// examples/language_model: the model that its script builds, compiled into one bundle with the entry points
// prefill and decode over shared caches. The tokens that the example generates are those that an evaluation
// of the whole text, without any cache, finds likeliest: by the interpreter and, where it is installed, by
// ONNX Runtime.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "count_allocations.h"
#include "graph/interpret.h"
#include "language_model_commands.h"
#include "pipeline/pipeline.h"
#include "quernel/runtime.hpp"

namespace quernel {
namespace {

namespace fs = std::filesystem;

class LanguageModel : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    char path[] = "/tmp/quernel-language-model-XXXXXX";
    dir_ = mkdtemp(path);
    bool ok = false;
    std::string output =
        output_of("/usr/bin/python3 -B " EXAMPLE_FOLDER "/build_model.py " + dir_ + "/model.onnx", &ok);
    if (!ok && output.find("No module named") != std::string::npos) missing_ = output;
    if (!ok) return;
    CompileOptions options;
    options.states = {{"keys_*", "next_keys_*"}, {"values_*", "next_values_*"}};
    options.entry_points.resize(2);
    options.entry_points[0].name = "prefill";
    options.entry_points[0].dim_ranges["length"] = Symbol{"length", 1, 64, 1, false, {}};
    options.entry_points[1].name = "decode";
    options.entry_points[1].dims["length"] = 1;
    Expected<CompileReport> report = compile(dir_ + "/model.onnx", dir_ + "/model.qnl", options);
    if (!report) failure_ = text_of(report.errors());
  }
  static void TearDownTestSuite() { fs::remove_all(dir_); }

  void SetUp() override {
    if (!missing_.empty()) GTEST_SKIP() << "python3-onnx is not installed: " << missing_;
    ASSERT_EQ(failure_, "");
    ASSERT_TRUE(fs::exists(dir_ + "/model.qnl"));
  }

  // The whole text: the prompt's bytes and the tokens that the example adds.
  struct Text {
    Tokens all;
    size_t prompt = 0;
  };
  static Text generate(const std::string& arguments) {
    bool ok = false;
    std::string output = output_of(
        std::string(GENERATE) + " " + dir_ + "/model.qnl --tokenizer bytes --show-tokens " + arguments, &ok);
    EXPECT_TRUE(ok) << output;
    Text text{numbers_after(output, "prompt tokens:"), 0};
    text.prompt = text.all.size();
    Tokens added = numbers_after(output, "new tokens:");
    EXPECT_FALSE(added.empty()) << output;
    text.all.insert(text.all.end(), added.begin(), added.end());
    return text;
  }

  // The likeliest token after each but the last, by the interpreter from the whole text at once.
  static Tokens interpreted(const Tokens& text) {
    CompileOptions options;
    auto length = static_cast<int64_t>(text.size()) - 1;
    options.dims["length"] = length;
    Expected<Imported> model = import_model(dir_ + "/model.onnx", options);
    EXPECT_TRUE(model) << text_of(model.errors());
    std::vector<Tensor> inputs;
    for (ValueId v : model->graph.inputs) {
      const TensorType& type = model->graph.type(v);
      std::vector<int64_t> dims = static_dims(type.shape);
      int64_t count = *element_count(dims);
      std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(type.dtype, count)));
      for (int64_t i = 0; i < count && type.dtype == DType::kI64; ++i)
        store_i64(type.dtype, bytes.data(), i, inputs.empty() ? text[static_cast<size_t>(i)] : i);
      inputs.push_back({type.dtype, dims, Bytes::own(std::move(bytes))});
    }
    Expected<std::vector<Tensor>> outputs = interpret(model->graph, inputs);
    EXPECT_TRUE(outputs) << text_of(outputs.errors());
    const Tensor& logits = (*outputs)[0];
    Tokens best;
    for (int64_t i = 0, width = logits.dims[1]; i < length; ++i) {
      int64_t top = 0;
      for (int64_t j = 1; j < width; ++j)
        if (element_as_f64(logits, i * width + j) > element_as_f64(logits, i * width + top)) top = j;
      best.push_back(top);
    }
    return best;
  }

  static Tokens added(const Text& text) {
    return {text.all.begin() + static_cast<std::ptrdiff_t>(text.prompt), text.all.end()};
  }
  // The tokens that follow the prompt, of those after each token.
  static Tokens after_prompt(const Tokens& next, size_t prompt) {
    return {next.begin() + static_cast<std::ptrdiff_t>(prompt) - 1, next.end()};
  }

  inline static std::string dir_, failure_, missing_;
};

TEST_F(LanguageModel, tokens_are_those_of_a_full_evaluation) {
  Text text = generate("--tokens 40 --prompt \"The miller's wheel\"");
  EXPECT_EQ(text.all.size(), text.prompt + 40);
  EXPECT_EQ(added(text), after_prompt(interpreted(text.all), text.prompt));
}

TEST_F(LanguageModel, the_prompt_may_come_in_pieces_and_on_any_threads) {
  Text whole = generate("--tokens 24 --prompt 'one two three four'");
  for (const char* arguments : {"--chunk 1", "--chunk 7", "--threads 2", "--chunk 5 --threads 2"})
    EXPECT_EQ(generate(std::string("--tokens 24 --prompt 'one two three four' ") + arguments).all, whole.all)
        << arguments;
}

// A prompt of 100 tokens in pieces of 64 and 36, then up to the last position.
TEST_F(LanguageModel, every_position_up_to_the_last) {
  Text text = generate("--tokens 156 --prompt " + std::string(100, 'q'));
  ASSERT_EQ(text.all.size(), 256u);
  EXPECT_EQ(added(text), after_prompt(interpreted(text.all), text.prompt));
}

TEST_F(LanguageModel, tokens_are_those_of_onnx_runtime) {
  const char* given = getenv("QUERNEL_ORT_MODULE");
  std::string module = given ? given : ORT_MODULE;
  if (!fs::exists(module))
    GTEST_SKIP() << "onnxruntime-node is not installed in " << module << "; tests/bench/run.sh installs it";
  Text text = generate("--tokens 60 --prompt \"The miller's wheel\"");
  std::string command =
      "node " TEST_FOLDER "/language_model_onnxruntime.js " + module + " " + dir_ + "/model.onnx";
  for (size_t i = 0; i + 1 < text.all.size(); ++i) command += " " + std::to_string(text.all[i]);
  bool ok = false;
  std::string output = "next " + output_of(command, &ok);
  ASSERT_TRUE(ok) << output;
  EXPECT_EQ(added(text), after_prompt(numbers_after(output, "next "), text.prompt));
}

TEST_F(LanguageModel, nothing_is_allocated_per_token) {
  if (!kCounts) GTEST_SKIP() << "not with a sanitizer";
  qnl_error error = {};
  Bundle bundle;
  Device device;
  Session session;
  qnl_session_options options = {};
  options.entry_point = "decode";
  ASSERT_EQ(bundle.open((dir_ + "/model.qnl").c_str(), nullptr, &error), QNL_OK) << error.text;
  ASSERT_EQ(device.open_cpu(2, &error), QNL_OK) << error.text;
  ASSERT_EQ(session.create(bundle, device, &options, &error), QNL_OK) << error.text;
  counting = true;
  qnl_status status = QNL_OK;
  for (int64_t position = 0; position < 256 && status == QNL_OK; ++position) {
    int64_t token = position * 7 % 256;
    for (auto [name, value] : {std::pair("tokens", token), std::pair("positions", position)}) {
      qnl_tensor tensor = {name, QNL_I64, 1, {1}, sizeof value, &value};
      if (status == QNL_OK) status = session.set_input(tensor, &error);
    }
    if (status == QNL_OK) status = session.run(&error);
  }
  counting = false;
  EXPECT_EQ(status, QNL_OK) << error.text;
  EXPECT_EQ(allocations.load(), 0u);
}

}  // namespace
}  // namespace quernel
