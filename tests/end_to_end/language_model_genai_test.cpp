// examples/language_model with models of ONNX Runtime GenAI's form, which llama2c_to_onnx.py makes of random checkpoints:
// the logits are the checkpoint's, the tokens those of ONNX Runtime, conversations go on where they were kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "language_model_commands.h"
#include "model.h"
#include "pipeline/pipeline.h"
#include "read_file.h"

namespace quernel {
namespace {

namespace fs = std::filesystem;
using language_model::Model;
using ::testing::HasSubstr;
using Row = std::vector<float>;

constexpr int64_t kPositions = 256;
const std::string kPython = "/usr/bin/python3 -B ";
const std::string kCheckpoint = kPython + TEST_FOLDER "/llama2c_checkpoint.py ";
const std::string kConverter = kPython + EXAMPLE_FOLDER "/llama2c_to_onnx.py ";

// What went wrong; empty if nothing did.
std::string run(const std::string& command) {
  bool ok = false;
  std::string output = output_of(command, &ok);
  return ok ? "" : output.empty() ? command : output;
}

CompileOptions decoder_options() {
  CompileOptions options;
  options.states = {{"past_key_values.*", "present.*"}};
  options.entry_points.resize(2);
  options.entry_points[0].name = "prefill";
  options.entry_points[0].dim_ranges["sequence_length"] = Symbol{"sequence_length", 1, 16, 1, false, {}};
  options.entry_points[1].name = "decode";
  options.entry_points[1].dims["sequence_length"] = 1;
  return options;
}

// With free sizes: a batch of one, caches of kPositions.
CompileOptions free_options() {
  CompileOptions options = decoder_options();
  for (EntryPointOptions& entry : options.entry_points) {
    entry.dims["batch_size"] = 1;
    entry.dims["past_sequence_length"] = entry.dims["total_sequence_length"] = kPositions;
  }
  return options;
}

std::string compiled(const std::string& model, const std::string& bundle, const CompileOptions& options) {
  Expected<CompileReport> report = compile(model, bundle, options);
  return report ? "" : text_of(report.errors());
}

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

int64_t best_of(std::span<const float> logits) {
  return std::max_element(logits.begin(), logits.end()) - logits.begin();
}

class GenaiModel : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    char path[] = "/tmp/quernel-genai-model-XXXXXX";
    dir_ = mkdtemp(path);
    failure_ = run(kCheckpoint + dir_ + " --unshared --positions 256 --vocabulary 500");
    if (failure_.find("No module named") != std::string::npos) missing_ = failure_;
    if (failure_.empty())
      failure_ = run(kConverter + dir_ + "/model.bin " + dir_ + "/free.onnx --bits 4 --free");
    if (failure_.find("No module named") != std::string::npos) missing_ = failure_;
    if (failure_.empty()) failure_ = compiled(dir_ + "/free.onnx", dir_ + "/free.qnl", free_options());
  }
  static void TearDownTestSuite() { fs::remove_all(dir_); }

  void SetUp() override {
    if (!missing_.empty()) GTEST_SKIP() << "python3-onnx is not installed: " << missing_;
    ASSERT_EQ(failure_, "");
  }

  // What generate prints for that bundle; `ok` as told.
  static std::string generate(const std::string& bundle, const std::string& arguments, bool succeeds = true) {
    bool ok = false;
    std::string output = output_of(std::string(GENERATE) + " " + dir_ + "/" + bundle + " --tokenizer " +
                                       dir_ + "/tokenizer.bin --show-tokens " + arguments,
                                   &ok);
    EXPECT_EQ(ok, succeeds) << output;
    return output;
  }
  static Tokens new_tokens(const std::string& output) { return numbers_after(output, "new tokens:"); }

  inline static std::string dir_, failure_, missing_;
};

// Compares the logits behind every token, given one by one and all at once, with the rows of logits.txt.
void expect_logits(const std::string& bundle, const std::vector<int32_t>& tokens, const std::string& rows,
                   double tolerance) {
  Model steps(bundle, 1, 0), whole(bundle, 2, 0), pieces(bundle, 1, 3);
  const size_t width = static_cast<size_t>(steps.vocabulary());
  std::ifstream file(rows);
  for (size_t t = 0; t < tokens.size(); ++t) {
    std::vector<double> expected(width);
    for (double& value : expected) file >> value;
    ASSERT_TRUE(file);
    const auto [least, most] = std::minmax_element(expected.begin(), expected.end());
    auto expect = [&](std::span<const float> found) {
      ASSERT_EQ(found.size(), width);
      double worst = 0;
      for (size_t i = 0; i < width; ++i) worst = std::max(worst, std::abs(found[i] - expected[i]));
      EXPECT_LE(worst, tolerance * (*most - *least)) << "token " << t;
    };
    expect(steps.append(std::span(tokens).subspan(t, 1)));
    if (t + 1 < tokens.size()) continue;
    expect(whole.append(tokens));
    expect(pieces.append(tokens));
  }
}

TEST_F(GenaiModel, logits_are_those_of_the_checkpoint) {
  const std::string folder = dir_ + "/logits";
  fs::create_directory(folder);
  std::vector<int32_t> tokens;
  std::string list;
  for (int32_t i = 0; i < 40; ++i) {
    tokens.push_back(i * i * 7 % 320);
    list += " " + std::to_string(tokens.back());
  }
  for (const char* kind : {"", " --unshared"}) {
    ASSERT_EQ(run(kCheckpoint + folder + list + kind), "");
    ASSERT_EQ(run(kConverter + folder + "/model.bin " + folder + "/model.onnx"), "");
    ASSERT_EQ(compiled(folder + "/model.onnx", folder + "/model.qnl", decoder_options()), "");
    expect_logits(folder + "/model.qnl", tokens, folder + "/logits.txt", 1e-5);
  }
  // 8 bits, in blocks that the 160 elements of a sum do not fill; 4 bits.
  for (auto [bits, tolerance] : {std::pair("8 --block 64", 0.012), std::pair("4", 0.2)}) {
    ASSERT_EQ(run(kConverter + folder + "/model.bin " + folder + "/model.onnx --bits " + bits), "");
    ASSERT_EQ(compiled(folder + "/model.onnx", folder + "/model.qnl", decoder_options()), "");
    expect_logits(folder + "/model.qnl", tokens, folder + "/logits.txt", tolerance);
  }
}

// Where ONNX Runtime's two best logits are nearly equal, another token may be the best; the comparison goes on
// from ONNX Runtime's.
TEST_F(GenaiModel, greedy_tokens_are_those_of_onnx_runtime) {
  const char* given = getenv("QUERNEL_ORT_MODULE");
  std::string module = given ? given : ORT_MODULE;
  if (!fs::exists(module))
    GTEST_SKIP() << "onnxruntime-node is not installed in " << module << "; tests/bench/run.sh installs it";
  const std::vector<int32_t> prompt = {1,  290, 259, 287, 292, 7,  255, 300, 41,
                                       42, 43,  44,  45,  46,  47, 48,  49,  50};
  std::string command = "CACHE_SHAPE='[2,2,16]' node " TEST_FOLDER "/language_model_greedy.js " + module +
                        " " + dir_ + "/free.onnx 200";
  for (int32_t token : prompt) command += " " + std::to_string(token);
  bool ok = false;
  std::istringstream output(output_of(command, &ok));
  ASSERT_TRUE(ok) << output.str();
  Model model(dir_ + "/free.qnl", 1, 0);
  std::span<const float> logits = model.append(prompt);
  int steps = 0, ties = 0;
  int32_t token = 0;
  for (double gap = 0; output >> token >> gap; ++steps) {
    if (best_of(logits) != token) {
      ++ties;
      EXPECT_LE(gap, 1e-3) << "step " << steps << ": " << best_of(logits) << " instead of " << token;
    }
    logits = model.append(std::span(&token, 1));
  }
  EXPECT_EQ(steps, 200);
  EXPECT_LE(ties, 4);
}

TEST_F(GenaiModel, the_mask_may_be_as_long_as_the_text) {
  CompileOptions options = free_options();
  for (EntryPointOptions& entry : options.entry_points) {
    entry.dims.erase("total_sequence_length");
    entry.dim_ranges["total_sequence_length"] = Symbol{"total_sequence_length", 1, kPositions, 1, false, {}};
  }
  ASSERT_EQ(compiled(dir_ + "/free.onnx", dir_ + "/exact.qnl", options), "");
  const std::string arguments = "--prompt 'the thing' --tokens 60";
  EXPECT_EQ(new_tokens(generate("exact.qnl", arguments)), new_tokens(generate("free.qnl", arguments)));
}

// One entry point for prompts and single tokens; and one that takes only even numbers of tokens, at least 4.
TEST_F(GenaiModel, other_entry_points) {
  CompileOptions options = free_options();
  options.entry_points.resize(1);
  ASSERT_EQ(compiled(dir_ + "/free.onnx", dir_ + "/one.qnl", options), "");
  options = free_options();
  options.entry_points[0].dim_ranges["sequence_length"] = Symbol{"sequence_length", 4, 8, 2, false, {}};
  ASSERT_EQ(compiled(dir_ + "/free.onnx", dir_ + "/even.qnl", options), "");
  const std::string arguments = "--prompt 'a longer text of words' --tokens 30";
  const Tokens expected = new_tokens(generate("free.qnl", arguments));
  EXPECT_EQ(expected.size(), 30u);
  EXPECT_EQ(new_tokens(generate("one.qnl", arguments)), expected);
  EXPECT_EQ(new_tokens(generate("even.qnl", arguments)), expected);
}

TEST_F(GenaiModel, a_kept_conversation_goes_on_with_the_same_tokens) {
  const std::string file = dir_ + "/kept", save = " --save-state " + file,
                    restore = " --restore-state " + file;
  for (const char* how : {"", " --temperature 1.5 --top-k 100 --top-p 0.95 --seed 11"}) {
    const std::string start = std::string("--prompt 'the thing'") + how;
    const Tokens whole = new_tokens(generate("free.qnl", start + " --tokens 50"));
    Tokens parts = new_tokens(generate("free.qnl", start + " --tokens 20" + save));
    // The seed is the conversation's: only the first command names it.
    const std::string again = std::string(how).substr(0, std::string(how).find(" --seed"));
    for (int i = 0; i < 2; ++i) {
      const Tokens part = new_tokens(generate("free.qnl", again + " --tokens 15" + restore + save));
      parts.insert(parts.end(), part.begin(), part.end());
    }
    EXPECT_EQ(parts, whole);
  }
}

// A prompt in two runs is the prompt in one: the first run only reads its part.
TEST_F(GenaiModel, a_prompt_may_follow_a_kept_conversation) {
  const std::string file = dir_ + "/parts";
  const Tokens whole = new_tokens(generate("free.qnl", "--prompt 'xyz' --tokens 10"));
  generate("free.qnl", "--prompt 'x' --tokens 0 --save-state " + file);
  EXPECT_EQ(new_tokens(generate("free.qnl", "--prompt 'yz' --tokens 10 --restore-state " + file)), whole);
}

TEST_F(GenaiModel, conversations_that_do_not_fit) {
  const std::string file = dir_ + "/conversation";
  generate("free.qnl", "--prompt 'the' --tokens 5 --save-state " + file);
  const std::string kept = language_model::read_file(file);
  auto restored = [&](const std::string& contents, const char* bundle = "free.qnl") {
    language_model::write_file(file, contents);
    return generate(bundle, "--restore-state " + file, false);
  };
  EXPECT_THAT(restored(kept.substr(0, kept.size() - 1)),
              HasSubstr("the conversation is damaged or cut short"));
  EXPECT_THAT(restored("text"), HasSubstr("expected a conversation that --save-state wrote"));
  std::string more = kept;
  more.replace(more.find("filled "), 8, "filled 9");
  EXPECT_THAT(restored(more), HasSubstr("damaged or cut short"));
  std::string unknown = kept;
  unknown[kept.find('\n') + 3] = 1;  // the first token becomes one above 2^16
  EXPECT_THAT(restored(unknown), HasSubstr("damaged or cut short"));
  CompileOptions options = free_options();
  for (EntryPointOptions& entry : options.entry_points)
    entry.dims["past_sequence_length"] = entry.dims["total_sequence_length"] = 64;
  ASSERT_EQ(compiled(dir_ + "/free.onnx", dir_ + "/short.qnl", options), "");
  EXPECT_THAT(restored(kept, "short.qnl"), HasSubstr("was kept with another bundle"));
}

TEST_F(GenaiModel, the_context_ends) {
  std::string output = generate("free.qnl", "--prompt '" + std::string(300, 'q') + "'", false);
  EXPECT_THAT(output, HasSubstr("302 tokens, but the caches hold 256 positions; give a shorter prompt"));
  output = generate("free.qnl", "--prompt " + std::string(250, 'q') + " --tokens 100 --end-token 100000");
  EXPECT_THAT(output, HasSubstr("the context is full: the caches hold 256 positions"));
  EXPECT_EQ(new_tokens(output).size(), 5u);  // of which the last is not in the caches
  EXPECT_THAT(error_of([] { Model(dir_ + "/free.qnl", 1, 0).append({}); }),
              HasSubstr("expected 1 to 256 tokens, found 0"));
}

TEST_F(GenaiModel, the_text_ends_at_end_tokens_and_stop_strings) {
  const Tokens tokens =
      new_tokens(generate("free.qnl", "--prompt 'the thing' --tokens 12 --end-token 100000"));
  ASSERT_EQ(tokens.size(), 12u);
  const Tokens ended =
      new_tokens(generate("free.qnl", "--prompt 'the thing' --end-token " + std::to_string(tokens[6])));
  EXPECT_EQ(ended, Tokens(tokens.begin(), std::find(tokens.begin(), tokens.end(), tokens[6]) + 1));
  // Tokens from 295 on are the words piece0, piece1…; 4 of them in a row are found in any random text.
  const std::string piece =
      "piece" +
      std::to_string(*std::find_if(tokens.begin(), tokens.end(), [](int64_t t) { return t >= 300; }) - 296);
  const std::string text = generate("free.qnl", "--prompt 'the thing' --tokens 12 --end-token 100000 --echo");
  EXPECT_EQ(text.substr(0, 9), "the thing");
  ASSERT_THAT(text, HasSubstr(piece));
  const std::string stopped =
      generate("free.qnl", "--prompt 'the thing' --tokens 12 --end-token 100000 --echo --stop " + piece);
  EXPECT_EQ(stopped.substr(0, stopped.find('\n')), text.substr(0, text.find(piece)));
}

TEST_F(GenaiModel, what_is_no_bundle_of_a_decoder) {
  language_model::write_file(dir_ + "/model.gguf", "GGUF" + std::string(60, '\0'));
  EXPECT_THAT(generate("model.gguf", "", false),
              HasSubstr("is a GGUF file, which has weights without a graph. Export"));
  EXPECT_THAT(generate("free.onnx", "", false), HasSubstr("is a model; compile it first"));
  EXPECT_THAT(generate("none.qnl", "", false), HasSubstr("none.qnl"));
  EXPECT_THAT(generate("free.qnl", "--prompt x --tokenizer bytes --restore-state " + dir_ + "/none", false),
              HasSubstr("No such file"));
  EXPECT_THAT(generate("free.qnl", "--tokenizer bytes", false), HasSubstr("expected a prompt"));
  auto graph = [](const std::string& text, const CompileOptions& options = {}) {
    language_model::write_file(dir_ + "/g.qg", text);
    EXPECT_EQ(compiled(dir_ + "/g.qg", dir_ + "/g.qnl", options), "") << text;
    return generate("g.qnl", "--prompt x", false);
  };
  CompileOptions stateful;
  stateful.states = {{"keys", "next"}};
  EXPECT_THAT(
      graph("graph @g(%past_key: f32[2]) {\n  %y = exp %past_key : f32[2]\n  return logits = %y\n}\n"),
      HasSubstr("input 'past_key' is not kept from run to run; compile with --state"));
  EXPECT_THAT(graph("graph @g(%image: f32[2]) {\n  %y = exp %image : f32[2]\n  return logits = %y\n}\n"),
              HasSubstr("input 'image' is not one that this program fills"));
  EXPECT_THAT(graph("graph @g(%tokens: f32[2]) {\n  %y = exp %tokens : f32[2]\n  return logits = %y\n}\n"),
              HasSubstr("input 'tokens': expected i64 or i32, found f32"));
  EXPECT_THAT(
      graph("graph @g(%tokens: i64[2,2]) {\n  %y = neg %tokens : i64[2,2]\n  return logits = %y\n}\n"),
      HasSubstr("expected one text, [length] or [1,length]"));
  EXPECT_THAT(graph("graph @g(%tokens: i64[1]) {\n  %y = neg %tokens : i64[1]\n  return logits = %y\n}\n"),
              HasSubstr("keeps no keys and values; compile with --state"));
  const std::string next = "  %next = exp %keys : f32[8,2]\n";
  EXPECT_THAT(
      graph("graph @g(%keys: f32[8,2]) {\n" + next + "  return logits = %next, next = %next\n}\n", stateful),
      HasSubstr("expected an input of tokens, input_ids"));
  const std::string begin =
      "graph @g(%tokens: i64[1], %keys: f32[8,2]) {\n" + next + "  %y = neg %tokens : i64[1]\n";
  EXPECT_THAT(graph(begin + "  return logits = %y, next = %next\n}\n", stateful),
              HasSubstr("output 'logits': expected f32, f16 or bf16, found i64"));
  EXPECT_THAT(graph(begin + "  return a = %y, b = %y, next = %next\n}\n", stateful),
              HasSubstr("expected the output logits"));
}

TEST_F(GenaiModel, logits_may_be_narrow) {
  for (const char* dtype : {"f32", "f16", "bf16"}) {
    std::string text =
        "graph @g(%tokens: i64[1], %keys: f32[8,2]) {\n  %next = exp %keys : f32[8,2]\n"
        "  %t = cast %tokens : T[1]\n  %shift = expand %t : T[4]\n  %c = constant T[4] {1, -2.5, "
        "5.9604645e-08, 61440}\n"
        "  %y = add %c, %shift : T[4]\n  return logits = %y, next = %next\n}\n";
    for (size_t at; (at = text.find("T[")) != std::string::npos;) text.replace(at, 1, dtype);
    language_model::write_file(dir_ + "/n.qg", text);
    CompileOptions options;
    options.states = {{"keys", "next"}};
    ASSERT_EQ(compiled(dir_ + "/n.qg", dir_ + "/n.qnl", options), "");
    Model model(dir_ + "/n.qnl", 1, 0);
    EXPECT_EQ(model.capacity(), 8);
    const int32_t tokens[] = {0, 3};
    EXPECT_THAT(model.append(std::span(tokens, 1)), ::testing::ElementsAre(1, -2.5, 5.9604645e-08f, 61440))
        << dtype;
    EXPECT_THAT(model.append(std::span(tokens + 1, 1)).first(2), ::testing::ElementsAre(4, 0.5)) << dtype;
  }
}

TEST_F(GenaiModel, what_is_no_checkpoint) {
  const std::string checkpoint = language_model::read_file(dir_ + "/model.bin");
  auto converted = [&](const std::string& contents, const std::string& arguments = "") {
    language_model::write_file(dir_ + "/bad.bin", contents);
    return run(kConverter + dir_ + "/bad.bin " + dir_ + "/bad.onnx " + arguments);
  };
  EXPECT_EQ(converted(checkpoint), "");
  EXPECT_THAT(converted(checkpoint.substr(0, checkpoint.size() - 4)),
              HasSubstr("bytes as its header says, found"));
  EXPECT_THAT(converted("24ka" + std::string("\1\0\0\0", 4) + checkpoint),
              HasSubstr("a checkpoint of version 1; export it with --version 0"));
  EXPECT_THAT(converted("short"), HasSubstr("not a checkpoint of llama2.c"));
  EXPECT_THAT(converted(checkpoint, "--positions 257"),
              HasSubstr("--positions: expected 1 to 256, found 257"));
  EXPECT_THAT(converted(checkpoint, "--bits 3"), HasSubstr("--bits"));
}

}  // namespace
}  // namespace quernel
