// Loop and Scan. A short loop whose course is known is unrolled: its body is imported once per iteration.
// Others become loops of the graph; what these cannot say, sequences and values of changing size, is unrolled
// at length.
#include <algorithm>

#include "frontends/onnx/operators.h"
#include "graph/dim_values.h"
#include "graph/outline.h"

namespace quernel::onnx_import {
namespace {

using Values = std::vector<ValueId>;

constexpr int64_t kUnrolledNodes = 1000;          // of all iterations: a loop costs less beyond
constexpr int64_t kMostNodes = 1000000;           // of a loop that has to be unrolled
constexpr int64_t kUnlimited = int64_t{1} << 62;  // trip counts that exporters write for none

Expected<const onnx::GraphProto*> body_of(NodeImport& n) {
  const onnx::AttributeProto* a = n.attribute("body");
  if (!a || !a->has_g()) return n.invalid("expected a graph attribute body");
  return &a->g();
}

// Nodes of a body and of those in it.
int64_t node_count(const onnx::GraphProto& body) {
  int64_t count = body.node_size();
  for (const onnx::NodeProto& node : body.node())
    for (const onnx::AttributeProto& a : node.attribute())
      if (a.has_g()) count += node_count(a.g());
  return count;
}

bool is_short(int64_t trips, const onnx::GraphProto& body, int64_t limit = kUnrolledNodes) {
  return trips <= limit / std::max<int64_t>(node_count(body), 1);
}

std::string loop_name(NodeImport& n) {
  for (const std::string& output : n.proto.output())
    if (!output.empty()) return output + "_iteration";
  return "iteration";
}

// Element i of x along an axis, without that axis.
ValueId element(NodeImport& n, ValueId x, int64_t axis, const Dim& i) {
  Shape starts(n.shape(x).size(), Dim(0)), stops = n.shape(x), shape = stops;
  starts[static_cast<size_t>(axis)] = i;
  stops[static_cast<size_t>(axis)] = i + 1;
  shape.erase(shape.begin() + axis);
  return n.build.reshape(n.build.slice(x, starts, stops), shape);
}

// Values of one shape along a new axis.
Expected<ValueId> stack(NodeImport& n, Values elements, int64_t axis) {
  for (ValueId& e : elements) {
    if (is_collection(e))
      return n.refuse("expected tensors as scan outputs, found a sequence or an optional");
    Shape shape = n.shape(e);
    QUERNEL_TRY(int64_t place, n.axis(axis, static_cast<int>(shape.size()) + 1));
    shape.insert(shape.begin() + place, Dim(1));
    e = n.build.reshape(e, shape);
  }
  QUERNEL_TRY(axis, n.axis(axis, n.rank(elements[0])));
  ValueId stacked = n.build.cat(std::move(elements), axis);
  return stacked;
}

// No element at all along a new axis of what else has the shape of `example`.
Expected<ValueId> stack_of_none(NodeImport& n, ValueId example, int64_t axis) {
  if (is_collection(example))
    return n.refuse("expected tensors as scan outputs, found a sequence or an optional");
  Shape shape = n.shape(example);
  QUERNEL_TRY(axis, n.axis(axis, static_cast<int>(shape.size()) + 1));
  shape.insert(shape.begin() + axis, Dim(0));
  return n.full(n.dtype(example), shape, 0);
}

// ---- Loop

struct Loop {
  const onnx::GraphProto* body = nullptr;
  Values carried;
  size_t scans = 0;
  std::optional<int64_t> trips;  // where known
  std::optional<bool> goes_on;   // at first, where known
};

// A trip count or condition that is known: one element.
Expected<std::optional<int64_t>> known_scalar(NodeImport& n, ValueId v, const std::string& what) {
  if (is_collection(v)) return n.invalid("expected a tensor as the " + what);
  const Tensor* known = n.constant(v);
  if (known && known->count() != 1) return n.invalid("expected a " + what + " of one element");
  return known ? std::optional(element_as_i64(*known, 0)) : std::nullopt;
}

// The number of this iteration, in the rank that the body declares: a scalar, or one element.
ValueId iteration_input(NodeImport& n, const onnx::GraphProto& body, ValueId number) {
  bool vector = body.input_size() > 0 && body.input(0).type().tensor_type().shape().dim_size() == 1;
  return vector ? n.build.reshape(number, {1}) : number;
}

Values run_body(NodeImport& n, const Loop& loop, ValueId number, const Values& carried) {
  Values inputs{iteration_input(n, *loop.body, number),
                n.build.constant(make_tensor<uint8_t>(DType::kBool, {}, {1}))};
  inputs.insert(inputs.end(), carried.begin(), carried.end());
  return n.inline_body(*loop.body, inputs, number);
}

// Notes the inputs and free dims that a trip count or condition depends on.
void want_course(NodeImport& n, ValueId v) {
  n.want_value(v);
  std::vector<Symbol> symbols;
  if (std::optional<Shape> values = dim_values(n.build.graph(), v))
    for (const Dim& d : *values) d.collect_symbols(symbols);
  for (const Symbol& s : symbols) n.free_dims.insert(s.name);
}

// All results of a loop of known course; nothing where its course is not known or it has more nodes than
// `limit`.
Expected<std::optional<Values>> unroll(NodeImport& n, Loop& loop, int64_t limit) {
  std::optional<Values> nothing;
  // Either that says "none" makes the other irrelevant.
  bool never = loop.trips.value_or(1) <= 0 || !loop.goes_on.value_or(true);
  if (!never && ((n.has(0) && !loop.trips) || (n.has(1) && !loop.goes_on))) return nothing;
  int64_t trips = loop.trips.value_or(INT64_MAX), nodes = std::max<int64_t>(node_count(*loop.body), 1);
  bool goes_on = loop.goes_on.value_or(true), none = trips <= 0 || !goes_on;
  if (none) trips = loop.scans ? 1 : 0;  // without iterations, one tells the scan outputs' shapes
  Values carried = loop.carried;
  std::vector<Values> scanned(loop.scans);
  const int64_t before = *n.nodes_imported;
  for (int64_t i = 0; i < trips && (goes_on || none); ++i) {
    if (i > limit / nodes || *n.nodes_imported - before > limit) {
      n.long_bodies->insert(loop.body);
      return nothing;
    }
    Values results = run_body(n, loop, n.build.constant(i64_tensor({}, {i})), carried);
    auto scans = results.begin() + 1 + static_cast<int64_t>(carried.size());
    if (!none) carried.assign(results.begin() + 1, scans);
    for (Values& s : scanned) s.push_back(*scans++);
    // Without a condition to begin with, the body's is ignored.
    if (!n.has(1) || none || i + 1 >= trips) continue;
    QUERNEL_TRY(std::optional<int64_t> condition, known_scalar(n, results.front(), "condition"));
    if (!condition) return nothing;
    goes_on = *condition != 0;
  }
  for (Values& s : scanned) {
    QUERNEL_TRY(ValueId stacked, none ? stack_of_none(n, s[0], 0) : stack(n, s, 0));
    carried.push_back(stacked);
  }
  return std::optional(std::move(carried));
}

// The trip count as a dim: a number, one that follows from free dims, or one that the model computes.
Expected<Dim> trip_count(NodeImport& n, const Loop& loop) {
  if (loop.trips) return Dim(std::max<int64_t>(*loop.trips, 0));
  ValueId v = n.in(0);
  if (std::optional<Shape> values = dim_values(n.build.graph(), v); values && values->size() == 1)
    return (*values)[0];
  if (!(element_count(n.shape(v)) == Dim(1)) || is_float(n.dtype(v)))
    return n.invalid("expected a trip count of one integer, found " + to_string(n.build.graph().type(v)));
  ValueId count = n.binary(BinaryOp::k_max, n.build.cast(n.build.reshape(v, {}), DType::kI64), 0.0);
  return n.build.graph().add_symbol({loop_name(n) + "_count", 0, INT64_MAX, 1, true, {}}, count);
}

// All results of a loop that runs.
Expected<Values> run(NodeImport& n, Loop& loop) {
  if (std::any_of(loop.carried.begin(), loop.carried.end(), is_collection))
    return n.refuse(
        "a loop that carries a sequence or an optional needs a number of iterations that is known "
        "at compile time");
  LoopSpec spec{loop_name(n), loop.carried, {}, n.in(1)};
  if (n.has(0)) {
    QUERNEL_TRY(spec.count, trip_count(n, loop));
  }
  Status failed;
  auto step = [&](const Dim& iteration, const Values& carried) -> std::optional<LoopStep> {
    Values results = run_body(n, loop, n.number(DType::kI64, iteration), carried);
    auto scans = results.begin() + 1 + static_cast<int64_t>(carried.size());
    LoopStep made{{results.begin() + 1, scans}, {scans, results.end()}, results.front()};
    if (std::any_of(results.begin(), results.end(), is_collection))
      failed = n.refuse(
          "expected tensors as results of the body of a loop that runs, found a sequence or an optional");
    if (is_collection(made.condition) || !failed) return std::nullopt;
    const Tensor* known = n.constant(made.condition);
    if (known && known->count() == 1 && element_as_i64(*known, 0) != 0 && loop.goes_on.value_or(false))
      made.condition = kNoValue;
    if ((made.condition == kNoValue || !n.has(1)) && !spec.count) failed = n.refuse("this Loop never ends");
    return failed ? std::optional(std::move(made)) : std::nullopt;
  };
  std::optional<Values> results = build_loop(n.build, spec, step);
  QUERNEL_CHECK(failed);
  if (!results) return internal_error("a loop without results", n.build.location());
  return *std::move(results);
}

// ---- Scan

struct ScanAxis {
  int64_t axis = 0;
  bool reverse = false;
};

// The axes and directions of `count` scan inputs or outputs: zeros where not given.
Expected<std::vector<ScanAxis>> scan_axes(NodeImport& n, size_t count, const char* axes,
                                          const char* directions) {
  std::vector<ScanAxis> result(count);
  if (axes)
    if (std::optional<std::vector<int64_t>> given = n.attr_ints(axes)) {
      if (given->size() != count)
        return n.invalid("attribute '" + std::string(axes) + "': expected " + std::to_string(count) +
                         " values, found " + std::to_string(given->size()));
      for (size_t i = 0; i < count; ++i) result[i].axis = (*given)[i];
    }
  if (std::optional<std::vector<int64_t>> given = n.attr_ints(directions)) {
    if (given->size() != count)
      return n.invalid("attribute '" + std::string(directions) + "': expected " + std::to_string(count) +
                       " values, found " + std::to_string(given->size()));
    for (size_t i = 0; i < count; ++i) result[i].reverse = (*given)[i] != 0;
  }
  return result;
}

struct ScanSpec {
  const onnx::GraphProto* body = nullptr;
  std::vector<ScanAxis> inputs, outputs;
  Dim length = 0;  // of the scanned axes
  Dim steps = 0;   // at most length; outputs beyond are zeros
};

// Inputs of the body in step t.
Values scan_step(NodeImport& n, const ScanSpec& spec, const Values& states, const Values& sequences,
                 const Dim& t) {
  Values inputs = states;
  for (size_t i = 0; i < sequences.size(); ++i)
    inputs.push_back(
        element(n, sequences[i], spec.inputs[i].axis, spec.inputs[i].reverse ? spec.steps - 1 - t : t));
  return inputs;
}

// Final states, then scan outputs.
Expected<Values> unroll_scan(NodeImport& n, const ScanSpec& spec, const Values& initial,
                             const Values& sequences) {
  int64_t steps = spec.steps.value(), length = spec.length.value();
  Values states = initial;
  std::vector<Values> scanned(spec.outputs.size());
  // Without steps, one on zeros tells the shapes.
  for (int64_t t = 0; t < std::max<int64_t>(steps, 1); ++t) {
    Values inputs = states;
    if (steps) inputs = scan_step(n, spec, states, sequences, t);
    for (size_t i = 0; i < sequences.size() && !steps; ++i) {
      Shape shape = n.shape(sequences[i]);
      shape.erase(shape.begin() + spec.inputs[i].axis);
      inputs.push_back(n.full(n.dtype(sequences[i]), shape, 0));
    }
    Values results = n.inline_body(*spec.body, inputs, n.build.constant(i64_tensor({}, {t})));
    if (steps) states.assign(results.begin(), results.begin() + static_cast<int64_t>(states.size()));
    for (size_t i = 0; i < scanned.size(); ++i) scanned[i].push_back(results[states.size() + i]);
  }
  Values outputs = states;
  for (size_t i = 0; i < scanned.size(); ++i) {
    ValueId example = scanned[i][0];
    if (steps == 0) scanned[i].clear();
    if (spec.outputs[i].reverse) std::reverse(scanned[i].begin(), scanned[i].end());
    while (static_cast<int64_t>(scanned[i].size()) < length)
      scanned[i].push_back(n.full(n.dtype(example), n.shape(example), 0));
    QUERNEL_TRY(ValueId stacked, scanned[i].empty() ? stack_of_none(n, example, spec.outputs[i].axis)
                                                    : stack(n, scanned[i], spec.outputs[i].axis));
    outputs.push_back(stacked);
  }
  return outputs;
}

// A scan output, one step after the other, as the operator wants it.
Expected<ValueId> arrange(NodeImport& n, ValueId x, const ScanAxis& output, const ScanSpec& spec) {
  int rank = n.rank(x);
  if (output.reverse) x = n.build.flip(x, {0});
  if (!(spec.length == spec.steps)) {
    Shape before(static_cast<size_t>(rank), Dim(0)), after = before;
    after[0] = spec.length - spec.steps;
    x = n.build.pad(x, before, after);
  }
  QUERNEL_TRY(int64_t axis, n.axis(output.axis, rank));
  std::vector<int64_t> order;
  for (int64_t d = 1; d < rank; ++d) order.push_back(d);
  order.insert(order.begin() + axis, 0);
  return axis == 0 ? x : n.build.permute(x, order);
}

Expected<Values> run_scan(NodeImport& n, const ScanSpec& spec, const Values& initial,
                          const Values& sequences) {
  LoopSpec loop{loop_name(n), initial, spec.steps, kNoValue};
  auto step = [&](const Dim& t, const Values& states) -> std::optional<LoopStep> {
    Values inputs = scan_step(n, spec, states, sequences, t);
    ValueId number = n.number(DType::kI64, t);
    Values results = n.inline_body(*spec.body, inputs, number);
    auto scans = results.begin() + static_cast<int64_t>(states.size());
    return LoopStep{{results.begin(), scans}, {scans, results.end()}, kNoValue};
  };
  std::optional<Values> results = build_loop(n.build, loop, step);
  if (!results) return internal_error("a loop without results", n.build.location());
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    ValueId& scanned = (*results)[initial.size() + i];
    QUERNEL_TRY(scanned, arrange(n, scanned, spec.outputs[i], spec));
  }
  return *std::move(results);
}

// Unrolled where that is short; a loop that runs elsewhere, if it can.
Expected<Values> scan(NodeImport& n, const ScanSpec& spec, const Values& initial, const Values& sequences) {
  bool known = spec.steps.is_const() && spec.length.is_const();
  if (known && is_short(spec.steps.value(), *spec.body)) return unroll_scan(n, spec, initial, sequences);
  if (!known) return run_scan(n, spec, initial, sequences);
  std::optional<Values> results;
  bool ran = n.attempt([&] {
    Expected<Values> made = run_scan(n, spec, initial, sequences);
    if (made) results = std::move(*made);
    return results.has_value();
  });
  return ran ? *std::move(results) : unroll_scan(n, spec, initial, sequences);
}

// Reads the body and how operands divide into states and scan inputs, from operand `first` on.
Expected<ScanSpec> read_scan(NodeImport& n, int first, Values& states, Values& sequences) {
  ScanSpec spec;
  QUERNEL_TRY(spec.body, body_of(n));
  for (int i = first; i < n.input_count(); ++i)
    if (!n.has(i)) return n.invalid("expected input " + std::to_string(i) + ", found it missing");
  int64_t scanned = n.attr_int("num_scan_inputs", 0);
  if (scanned < 1 || scanned > n.input_count() - first)
    return n.invalid("attribute 'num_scan_inputs': expected 1 to " + std::to_string(n.input_count() - first) +
                     ", found " + std::to_string(scanned));
  const int64_t state_count = n.input_count() - first - scanned;
  if (spec.body->output_size() < state_count ||
      spec.body->output_size() != static_cast<int>(n.outputs.size()))
    return n.invalid("expected a body with as many outputs as the node, at least " +
                     std::to_string(state_count));
  auto begin = n.inputs.begin() + first;
  states.assign(begin, begin + state_count);
  sequences.assign(begin + state_count, n.inputs.end());
  return spec;
}

}  // namespace

// Trip count and condition, either of them optional, then what goes from iteration to iteration. The body
// gives a condition, the carried values and scan outputs, which are stacked.
Status import_loop(NodeImport& n) {
  Loop loop;
  QUERNEL_TRY(loop.body, body_of(n));
  loop.carried.assign(n.inputs.begin() + std::min(n.input_count(), 2), n.inputs.end());
  if (std::find(loop.carried.begin(), loop.carried.end(), kNoValue) != loop.carried.end())
    return n.invalid("expected every carried value, found one missing");
  int scans = loop.body->output_size() - 1 - static_cast<int>(loop.carried.size());
  if (scans < 0 || loop.body->output_size() - 1 != static_cast<int>(n.outputs.size()))
    return n.invalid("expected a body whose outputs are a condition and as many values as the node has, " +
                     std::to_string(loop.carried.size()) + " of them carried");
  loop.scans = static_cast<size_t>(scans);
  if (!n.has(0) && !n.has(1)) return n.refuse("a Loop without trip count and condition does not end");
  if (n.has(0)) {
    QUERNEL_TRY(loop.trips, known_scalar(n, n.in(0), "trip count"));
    if (loop.trips.value_or(0) >= kUnlimited) n.inputs[0] = kNoValue, loop.trips.reset();
  }
  if (n.has(1)) {
    QUERNEL_TRY(std::optional<int64_t> condition, known_scalar(n, n.in(1), "condition"));
    if (condition) loop.goes_on = *condition != 0;
  }
  std::optional<Values> results;
  auto unrolls = [&](int64_t limit) {
    return n.attempt([&] {
      Expected<std::optional<Values>> made = unroll(n, loop, limit);
      if (made) results = std::move(*made);
      return results.has_value();
    });
  };
  auto runs = [&] {
    return n.attempt([&] {
      Expected<Values> made = run(n, loop);
      if (made) results = std::move(*made);
      return results.has_value();
    });
  };
  bool none = (loop.trips && *loop.trips <= 0) || (loop.goes_on && !*loop.goes_on);
  // What is known to be too long is not tried again, which would take exponential time in nested loops.
  bool brief =
      none || ((!loop.trips || is_short(*loop.trips, *loop.body)) && !n.long_bodies->count(loop.body));
  bool possible = !loop.trips || is_short(*loop.trips, *loop.body, kMostNodes);
  int64_t most = loop.trips ? INT64_MAX : kMostNodes / 10;  // of a course that conditions tell
  if ((brief && unrolls(kUnrolledNodes)) || runs() || (possible && unrolls(most)))
    return n.set_outputs(std::move(*results));
  // Once more, for what is wrong with it; values that would decide its course are wanted.
  if (n.has(0) && !loop.trips) want_course(n, n.in(0));
  if (n.has(1) && !loop.goes_on) want_course(n, n.in(1));
  bool known = (!n.has(0) || loop.trips) && (!n.has(1) || loop.goes_on);
  if (known && possible) QUERNEL_CHECK(unroll(n, loop, most));
  QUERNEL_CHECK(run(n, loop));
  return internal_error("a loop that was imported at the second try only", n.build.location());
}

Status import_scan(NodeImport& n) {
  Values states, sequences;
  QUERNEL_TRY(ScanSpec spec, read_scan(n, 0, states, sequences));
  QUERNEL_TRY(spec.inputs, scan_axes(n, sequences.size(), "scan_input_axes", "scan_input_directions"));
  QUERNEL_TRY(spec.outputs,
              scan_axes(n, n.outputs.size() - states.size(), "scan_output_axes", "scan_output_directions"));
  for (size_t i = 0; i < sequences.size(); ++i) {
    QUERNEL_TRY(spec.inputs[i].axis, n.axis(spec.inputs[i].axis, n.rank(sequences[i])));
    Dim length = n.shape(sequences[i])[static_cast<size_t>(spec.inputs[i].axis)];
    if (i > 0 && !(length == spec.length)) {
      QUERNEL_CHECK(n.dim(length));
      QUERNEL_CHECK(n.dim(spec.length));
      return n.invalid("expected scan inputs of one length, found " + to_string(spec.length) + " and " +
                       to_string(length));
    }
    spec.length = spec.steps = length;
  }
  QUERNEL_TRY(Values outputs, scan(n, spec, states, sequences));
  return n.set_outputs(std::move(outputs));
}

// Opset 8: sequence lengths first; everything has a leading batch dim, and the next is scanned.
Status import_scan_8(NodeImport& n) {
  Values states, sequences;
  QUERNEL_TRY(ScanSpec spec, read_scan(n, 1, states, sequences));
  QUERNEL_TRY(spec.inputs, scan_axes(n, sequences.size(), nullptr, "directions"));
  spec.outputs.resize(n.outputs.size() - states.size());
  int64_t batch = 0;
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (n.rank(sequences[i]) < 2) return n.invalid("expected scan inputs of rank 2 or more");
    QUERNEL_TRY(int64_t own_batch, n.dim(sequences[i], 0));
    QUERNEL_TRY(int64_t length, n.dim(sequences[i], 1));
    if (i > 0 && (!(spec.length == Dim(length)) || own_batch != batch))
      return n.invalid("expected scan inputs of one batch size and length");
    spec.length = length;
    batch = own_batch;
  }
  for (ValueId state : states)
    if (n.rank(state) < 1 || n.shape(state)[0] != Dim(batch))
      return n.invalid("expected states of batch size " + std::to_string(batch));
  int64_t longest = spec.length.value();
  std::vector<int64_t> lengths(static_cast<size_t>(batch), longest);
  if (n.has(0)) {
    QUERNEL_TRY(lengths, n.ints_in(0, "sequence_lens"));
  }
  if (lengths.size() != static_cast<size_t>(batch) ||
      std::any_of(lengths.begin(), lengths.end(), [&](int64_t l) { return l < 0 || l > longest; }))
    return n.invalid("expected sequence_lens of " + std::to_string(batch) + " values from 0 to " +
                     std::to_string(longest));
  if (batch == 0) return n.refuse("a Scan over an empty batch is not supported");
  std::vector<Values> results(n.outputs.size());
  for (int64_t b = 0; b < batch; ++b) {
    spec.steps = lengths[static_cast<size_t>(b)];
    Values own_states, own_sequences;
    for (ValueId v : states) own_states.push_back(element(n, v, 0, b));
    for (ValueId v : sequences) own_sequences.push_back(element(n, v, 0, b));
    QUERNEL_TRY(Values outputs, scan(n, spec, own_states, own_sequences));
    for (size_t i = 0; i < results.size(); ++i) results[i].push_back(outputs[i]);
  }
  Values outputs;
  for (Values& r : results) {
    QUERNEL_TRY(ValueId stacked, stack(n, std::move(r), 0));
    outputs.push_back(stacked);
  }
  return n.set_outputs(std::move(outputs));
}

}  // namespace quernel::onnx_import
