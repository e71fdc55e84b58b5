// States and several entry points, from graph text through the compiler, a bundle and the runtime: every run
// is compared with the interpreter, which is given the states as inputs and returns them as outputs.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <map>
#include <numeric>

#include "graph/interpret.h"
#include "graph/text.h"
#include "pipeline/pipeline.h"
#include "quernel/runtime.hpp"
#include "run_compiled.h"

namespace quernel::testing {
namespace {

std::string text_of(const Diagnostics& errors) {
  std::string text;
  for (const Diagnostic& error : errors)
    text += error.message + (error.hint.empty() ? "" : "; " + error.hint) + "\n";
  return text;
}

Tensor floats(std::vector<int64_t> dims, std::vector<float> values) {
  const auto* data = reinterpret_cast<const uint8_t*>(values.data());
  return {DType::kF32, std::move(dims), Bytes::own({data, data + values.size() * sizeof(float)})};
}

Tensor integers(std::vector<int64_t> dims, std::vector<int64_t> values) {
  const auto* data = reinterpret_cast<const uint8_t*>(values.data());
  return {DType::kI64, std::move(dims), Bytes::own({data, data + values.size() * sizeof(int64_t)})};
}

Tensor ramp(std::vector<int64_t> dims, float start) {
  int64_t count = std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), start);
  return floats(std::move(dims), std::move(values));
}

// Graphs as the entry points of one bundle, and the values that their states should have now.
class Bench {
 public:
  Bench(const std::vector<std::string>& texts, unsigned threads) {
    for (const std::string& text : texts) {
      Expected<Graph> graph = parse_graph(text);
      if (!graph) throw std::runtime_error(text_of(graph.errors()));
      graphs_.push_back(std::move(*graph));
      for (const Graph::State& state : graphs_.back().states) {
        const Value& value = graphs_.back().values[graphs_.back().inputs[state.input]];
        Tensor zeros{value.type.dtype, static_dims(value.type.shape), {}};
        zeros.bytes =
            Bytes::own(std::vector<uint8_t>(static_cast<size_t>(byte_size(zeros.dtype, zeros.count()))));
        initial_[value.name] = state.initial.bytes.size() != 0 ? state.initial : zeros;
      }
    }
    states_ = initial_;
    char path[] = "/tmp/quernel-state-XXXXXX";
    int file = mkstemp(path);
    close(file);
    Expected<CompileReport> report = compile_graphs(graphs_, path, {});
    if (!report) throw std::runtime_error(text_of(report.errors()));
    check(bundle_.open(path, nullptr, &error_));
    unlink(path);
    check(device_.open_cpu(threads, &error_));
    for (const Graph& graph : graphs_) {
      qnl_session_options options = {};
      options.entry_point = graph.name.c_str();
      if (!sessions_.empty()) options.parent = sessions_[0].get(), options.share_state = 1;
      check(sessions_.emplace_back().create(bundle_, device_, &options, &error_));
    }
  }

  // Runs an entry point once and compares its outputs and all its states.
  void run(size_t entry, const std::map<std::string, Tensor>& inputs) {
    const Graph& graph = graphs_[entry];
    Session& session = sessions_[entry];
    std::vector<Tensor> values;
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      const std::string& name = graph.values[graph.inputs[i]].name;
      if (graph.state_of_input(i)) {
        values.push_back(states_.at(name));
        continue;
      }
      values.push_back(inputs.at(name));
      qnl_tensor tensor = view(name, values.back());
      check(session.set_input(tensor, &error_));
    }
    Expected<std::vector<Tensor>> expected = interpret(graph, values);
    ASSERT_TRUE(expected) << text_of(expected.errors());
    check(session.run(&error_));
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      const Graph::State* state = graph.state_of_output(i);
      const std::string& name = state ? graph.values[graph.inputs[state->input]].name : graph.outputs[i].name;
      EXPECT_EQ(difference(get(entry, state ? QNL_STATE : QNL_OUTPUT, name), (*expected)[i], 1e-5, 1e-6), "")
          << graph.name << ": " << name;
      if (state) states_[name] = (*expected)[i];
    }
  }

  uint64_t constants_bytes() const { return bundle_.info().constants_bytes; }

  void reset() {
    check(qnl_session_reset_state(sessions_[0].get(), &error_));
    states_ = initial_;
  }

  std::vector<uint8_t> save() {
    qnl_requirements needs = {};
    check(qnl_session_query(bundle_.get(), device_.get(), nullptr, &needs, &error_));
    std::vector<uint8_t> data(needs.state_bytes);
    check(qnl_session_save_state(sessions_[0].get(), data.data(), data.size(), &error_));
    saved_ = states_;
    return data;
  }
  void restore(const std::vector<uint8_t>& data) {
    check(qnl_session_restore_state(sessions_[0].get(), data.data(), data.size(), &error_));
    states_ = saved_;
  }

 private:
  void check(qnl_status status) {
    if (status != QNL_OK) throw std::runtime_error(error_.text);
  }
  static qnl_tensor view(const std::string& name, const Tensor& t) {
    qnl_tensor tensor = {};
    tensor.name = name.c_str();
    tensor.dtype = static_cast<qnl_dtype>(t.dtype);
    tensor.rank = static_cast<uint32_t>(t.dims.size());
    std::copy(t.dims.begin(), t.dims.end(), tensor.shape);
    tensor.bytes = t.bytes.size();
    tensor.data = const_cast<uint8_t*>(t.bytes.data());
    return tensor;
  }
  Tensor get(size_t entry, qnl_tensor_role role, const std::string& name) {
    qnl_tensor tensor = {};
    check(sessions_[entry].tensor(role, name.c_str(), &tensor, &error_));
    const auto* data = static_cast<const uint8_t*>(tensor.data);
    return {static_cast<DType>(tensor.dtype),
            {tensor.shape, tensor.shape + tensor.rank},
            Bytes::own({data, data + tensor.bytes})};
  }

  std::vector<Graph> graphs_;
  std::map<std::string, Tensor> initial_, states_, saved_;
  qnl_error error_ = {};
  Bundle bundle_;
  Device device_;
  std::vector<Session> sessions_;
};

class State : public ::testing::TestWithParam<unsigned> {
 protected:
  Bench bench(std::vector<std::string> texts) { return Bench(texts, GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Threads, State, ::testing::Values(1u, 2u),
                         [](const auto& info) { return std::to_string(info.param) + "_threads"; });

TEST_P(State, accumulates_from_an_initial_value_and_zeros) {
  Bench b = bench({R"(
graph @main(%x: f32[4], state %sum: f32[4] = {1, 2, 3, 4}, state %runs: i64[]) {
  %one = constant i64[] {1}
  %next = add %sum, %x : f32[4]
  %more = add %runs, %one : i64[]
  return y = %next, state %sum = %next, state %runs = %more
}
)"});
  for (int i = 0; i < 3; ++i) b.run(0, {{"x", ramp({4}, static_cast<float>(i))}});
  std::vector<uint8_t> saved = b.save();
  b.run(0, {{"x", ramp({4}, 9)}});
  b.restore(saved);
  b.run(0, {{"x", ramp({4}, 7)}});
  b.reset();
  b.run(0, {{"x", ramp({4}, 5)}});
}

// Rows are written into the state, whoever reads it afterwards sees them.
TEST_P(State, rows_are_written_in_place) {
  Bench b = bench({R"(
graph @main(%at: i64[2], %rows: f32[2,16], state %cache: f32[64,16]) {
  %next = scatter_rows %cache, %at, %rows {0} set : f32[64,16]
  %sum = reduce_sum %next {0} acc f32 : f32[16]
  return sum = %sum, state %cache = %next
}
)"});
  for (int i = 0; i < 5; ++i)
    b.run(0, {{"at", integers({2}, {2 * i, 63 - i})}, {"rows", ramp({2, 16}, static_cast<float>(i))}});
}

TEST_P(State, the_value_before_is_read_before_it_is_written) {
  Bench b = bench({R"(
graph @main(%x: f32[8], state %s: f32[8] = {1 ...}) {
  %next = mul %s, %x : f32[8]
  %before = flip %s {0} : f32[8]
  %total = reduce_sum %s {0} acc f32 : f32[]
  return before = %before, total = %total, state %s = %next
}
)"});
  for (int i = 0; i < 4; ++i) b.run(0, {{"x", ramp({8}, static_cast<float>(i) - 2)}});
}

TEST_P(State, next_values_that_read_other_elements_or_each_other) {
  Bench b = bench({R"(
graph @main(%x: f32[6], state %turned: f32[6] = {1, 2, 3, 4, 5, 6}, state %a: f32[6], state %b: f32[6] = {7 ...},
            state %delayed: f32[6], state %fixed: f32[6] = {3 ...}) {
  %flipped = flip %turned {0} : f32[6]
  %tail = slice %delayed [3:6] : f32[3]
  %head = slice %x [0:3] : f32[3]
  %shifted = cat %tail, %head {0} : f32[6]
  %both = add %a, %fixed : f32[6]
  return y = %both, state %turned = %flipped, state %a = %b, state %b = %a, state %delayed = %shifted,
         state %fixed = %fixed
}
)"});
  for (int i = 0; i < 5; ++i) b.run(0, {{"x", ramp({6}, static_cast<float>(10 * i))}});
}

TEST_P(State, several_writes_of_one_run) {
  Bench b = bench({R"(
graph @main(%i: i64[1], %j: i64[1], %x: f32[1,32], state %s: f32[16,32]) {
  %1 = scatter_rows %s, %i, %x {0} set : f32[16,32]
  %2 = scatter_rows %1, %j, %x {0} add : f32[16,32]
  %3 = neg %2 : f32[16,32]
  %old = reduce_max %s {0,1} : f32[]
  %between = reduce_sum %1 {0,1} acc f32 : f32[]
  return old = %old, between = %between, state %s = %3
}
)"});
  for (int i = 0; i < 4; ++i)
    b.run(0, {{"i", integers({1}, {i})}, {"j", integers({1}, {i / 2})}, {"x", ramp({1, 32}, 1)}});
}

// Two entry points with one cache: one takes any number of rows, one a single row.
TEST_P(State, entry_points_share_states) {
  Bench b = bench({R"(
symbol n min=1 max=32
graph @fill(%at: i64[n], %rows: f32[n,8], state %cache: f32[32,8]) {
  %next = scatter_rows %cache, %at, %rows {0} set : f32[32,8]
  return state %cache = %next
}
)",
                   R"(
graph @step(%at: i64[1], %row: f32[1,8], state %cache: f32[32,8], state %steps: i32[]) {
  %one = constant i32[] {1}
  %next = scatter_rows %cache, %at, %row {0} set : f32[32,8]
  %sum = reduce_sum %next {0} acc f32 : f32[8]
  %more = add %steps, %one : i32[]
  return sum = %sum, steps = %more, state %cache = %next, state %steps = %more
}
)"});
  b.run(0, {{"at", integers({3}, {0, 1, 2})}, {"rows", ramp({3, 8}, 1)}});
  b.run(1, {{"at", integers({1}, {3})}, {"row", ramp({1, 8}, 5)}});
  b.run(1, {{"at", integers({1}, {4})}, {"row", ramp({1, 8}, 6)}});
  b.run(0, {{"at", integers({2}, {5, 6})}, {"rows", ramp({2, 8}, -3)}});
  b.run(1, {{"at", integers({1}, {31})}, {"row", ramp({1, 8}, 7)}});
}

// x[rows, 24] times weights of several widths; `rows`: a number or "n".
std::string products(const std::string& name, const std::string& rows) {
  std::string text = rows == "n" ? "symbol n min=1 max=40\n" : "";
  text += "graph @" + name + "(%x: f32[" + rows + ",24]) {\n";
  std::string results;
  for (int width : {8, 16, 40, 48, 96, 128, 200}) {
    std::string w = std::to_string(width), data;
    for (int i = 0; i < 24 * width; ++i) data += (i ? ", " : "") + std::to_string(i * 37 % 15 - 7);
    text += "  %w" + w + " = constant f32[24," + w + "] {" + data + "}\n  %y" + w + " = contract %x, %w" + w +
            " axes(m: " + rows + ", n: " + w + " | k: 24) a[m, k] b[k, n] out[m, n] acc f32 : f32[" + rows +
            "," + w + "]\n";
    results += (results.empty() ? "y" : ", y") + w + " = %y" + w;
  }
  return text + "  return " + results + "\n}\n";
}

// Weights are packed once, whatever tiles the entry points like best.
TEST_P(State, entry_points_share_weights) {
  for (bool narrow_first : {false, true}) {
    std::vector<std::string> texts{products("many", "n"), products("one", "1"), products("three", "3")};
    if (narrow_first) std::swap(texts[0], texts[1]);
    Bench b = bench(texts);
    size_t many = narrow_first ? 1 : 0;
    for (int64_t rows : {1, 5, 40}) b.run(many, {{"x", ramp({rows, 24}, -20)}});
    b.run(1 - many, {{"x", ramp({1, 24}, 3)}});
    b.run(2, {{"x", ramp({3, 24}, 1)}});
    uint64_t weights = 24 * (8 + 16 + 40 + 48 + 96 + 128 + 200) * sizeof(float);
    EXPECT_GE(b.constants_bytes(), weights);
    EXPECT_LE(b.constants_bytes(), weights * 5 / 4);  // panels are filled up with zeros
  }
}

std::string refusal(const std::string& text, const std::vector<StatePair>& pairs,
                    const std::map<std::string, Tensor>& initial = {}) {
  Expected<Graph> graph = parse_graph(text);
  if (!graph) return text_of(graph.errors());
  Status status = make_states(*graph, pairs, initial);
  return status ? std::string() : text_of(status.errors());
}

constexpr const char* kPairs = R"(
symbol n min=1 max=9
graph @g(%x: f32[4], %past_0: f32[4], %past_1: f32[4], %free: f32[n]) {
  %a = neg %past_0 : f32[4]
  %b = neg %past_1 : f32[4]
  %c = neg %free : f32[n]
  %d = slice %x [0:2] : f32[2]
  return next_0 = %a, next_1 = %b, freed = %c, shorter = %d
}
)";

TEST(MakeStates, pairs_by_name_and_by_pattern) {
  Graph graph = *parse_graph(kPairs);
  ASSERT_TRUE(make_states(graph, {{"past_*", "next_*"}}, {{"past_1", ramp({4}, 1)}}));
  ASSERT_EQ(graph.states.size(), 2u);
  EXPECT_EQ(graph.states[1].input, 2u);
  EXPECT_EQ(graph.states[1].output, 1u);
  EXPECT_EQ(graph.states[0].initial.bytes.size(), 0u);
  EXPECT_EQ(graph.states[1].initial.bytes.size(), 16u);
}

TEST(MakeStates, refusals) {
  EXPECT_EQ(refusal(kPairs, {{"past", "next_0"}}),
            "state: expected the name of an input ('x', 'past_0', 'past_1', 'free'), found 'past'\n");
  EXPECT_EQ(refusal(kPairs, {{"past_0", "next_7"}}),
            "state 'past_0': expected the name of an output ('next_0', 'next_1', 'freed', 'shorter'), found "
            "'next_7'\n");
  EXPECT_EQ(refusal(kPairs, {{"past_0", "next_0"}, {"past_0", "next_1"}}),
            "state 'past_0' is given two outputs\n");
  EXPECT_EQ(refusal(kPairs, {{"past_*", "next_0"}}),
            "state 'past_1': output 'next_0' is already the next value of 'past_0'\n");
  EXPECT_EQ(refusal(kPairs, {{"x", "shorter"}}),
            "state 'x': expected output 'shorter' to be f32[4] like it, found f32[2]; "
            "a state keeps its size: fix free dims (--dim), and let the model write into a "
            "buffer of the largest size rather than append\n");
  EXPECT_EQ(refusal(kPairs, {{"free", "freed"}}),
            "state 'free': expected a shape without free dims, found f32[n]; fix them with --dim or "
            "--input-shape\n");
  EXPECT_EQ(refusal(kPairs, {{"past_0", "next_0"}}, {{"past_0", ramp({2}, 1)}}),
            "state 'past_0': expected an initial value of f32[4], found f32[2]\n");
}

std::string entry_refusal(const std::string& second) {
  std::vector<Graph> graphs;
  for (const std::string& text : {std::string(R"(
graph @one(state %s: f32[4] = {1 ...}) {
  %n = neg %s : f32[4]
  return state %s = %n
}
)"),
                                  second})
    graphs.push_back(*parse_graph(text));
  Expected<CompileReport> report = compile_graphs(graphs, "/tmp/quernel-state-refused.qnl", {});
  return report ? std::string() : text_of(report.errors());
}

TEST(MakeStates, entry_points_have_to_agree) {
  EXPECT_EQ(entry_refusal("graph @two(state %s: f32[5]) { return state %s = %s }"),
            "state 's': expected f32[4] as in entry point 'one', found f32[5] in 'two'\n");
  EXPECT_EQ(entry_refusal("graph @two(state %s: f32[4]) { return state %s = %s }"),
            "state 's': expected the same initial value in entry points 'one' and 'two'\n");
}

}  // namespace
}  // namespace quernel::testing
