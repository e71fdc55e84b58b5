// Loop and Scan: the body is imported once per iteration, so the number of iterations must be known.
#include <algorithm>

#include "frontends/onnx/operators.h"
#include "graph/dim_values.h"

namespace quernel::onnx_import {
namespace {

using Values = std::vector<ValueId>;

Expected<const onnx::GraphProto*> body_of(NodeImport& n) {
  const onnx::AttributeProto* a = n.attribute("body");
  if (!a || !a->has_g()) return n.invalid("expected a graph attribute body");
  return &a->g();
}

// Element i of x along an axis, without that axis.
ValueId element(NodeImport& n, ValueId x, int64_t axis, int64_t i) {
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
  QUERNEL_CHECK(n.build.status());
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

Diagnostic unknown_count(NodeImport& n, ValueId v, const std::string& what, const std::string& name) {
  n.want_value(v);
  if (std::optional<Shape> values = dim_values(n.build.graph(), v))
    for (const Dim& d : *values) {
      std::vector<Symbol> symbols;
      d.collect_symbols(symbols);
      for (const Symbol& s : symbols) n.free_dims.insert(s.name);
    }
  return n.refuse(
      "Loop is supported only where its number of iterations is known at compile time, found computed " +
          what + " '" + name + "'",
      "fix the inputs it depends on, or export the model without control flow");
}

// A trip count or condition: one element that is known.
Expected<int64_t> known_scalar(NodeImport& n, ValueId v, const std::string& what, const std::string& name) {
  if (is_collection(v)) return n.invalid("expected a tensor as the " + what);
  const Tensor* known = n.constant(v);
  if (!known) return unknown_count(n, v, what, name);
  if (known->count() != 1) return n.invalid("expected a " + what + " of one element");
  return element_as_i64(*known, 0);
}

// The number of this iteration, in the rank that the body declares: a scalar, or one element.
ValueId iteration_number(NodeImport& n, const onnx::GraphProto& body, int64_t i) {
  std::vector<int64_t> dims;
  if (body.input_size() > 0 && body.input(0).type().tensor_type().shape().dim_size() == 1) dims = {1};
  return n.build.constant(i64_tensor(dims, {i}));
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
  int64_t length = 0;  // of the scanned axes
  int64_t steps = 0;   // at most length; outputs beyond are zeros
};

// Final states, then scan outputs; nullopt after a failure in the body, which has been reported.
Expected<std::optional<Values>> scan(NodeImport& n, const ScanSpec& spec, const Values& initial,
                                     const Values& sequences) {
  Values states = initial;
  std::vector<Values> scanned(spec.outputs.size());
  // Without steps, one on zeros tells the shapes.
  for (int64_t t = 0; t < std::max<int64_t>(spec.steps, 1); ++t) {
    Values inputs = states;
    for (size_t i = 0; i < sequences.size(); ++i) {
      int64_t at = spec.inputs[i].reverse ? spec.steps - 1 - t : t;
      Shape shape = n.shape(sequences[i]);
      shape.erase(shape.begin() + spec.inputs[i].axis);
      inputs.push_back(spec.steps ? element(n, sequences[i], spec.inputs[i].axis, at)
                                  : n.full(n.dtype(sequences[i]), shape, 0));
    }
    QUERNEL_CHECK(n.build.status());
    std::optional<Values> results = n.inline_body(*spec.body, inputs);
    if (!results) return std::optional<Values>();
    if (spec.steps) states.assign(results->begin(), results->begin() + static_cast<int64_t>(states.size()));
    for (size_t i = 0; i < scanned.size(); ++i) scanned[i].push_back((*results)[states.size() + i]);
  }
  Values outputs = states;
  for (size_t i = 0; i < scanned.size(); ++i) {
    ValueId example = scanned[i][0];
    if (spec.steps == 0) scanned[i].clear();
    if (spec.outputs[i].reverse) std::reverse(scanned[i].begin(), scanned[i].end());
    while (static_cast<int64_t>(scanned[i].size()) < spec.length)
      scanned[i].push_back(n.full(n.dtype(example), n.shape(example), 0));
    QUERNEL_TRY(ValueId stacked, scanned[i].empty() ? stack_of_none(n, example, spec.outputs[i].axis)
                                                    : stack(n, scanned[i], spec.outputs[i].axis));
    outputs.push_back(stacked);
  }
  return std::optional<Values>(std::move(outputs));
}

// Reads the body and how operands divide into states and scan inputs, from operand `first` on.
Expected<ScanSpec> read_scan(NodeImport& n, int first, Values& states, Values& sequences) {
  ScanSpec spec;
  QUERNEL_TRY(spec.body, body_of(n));
  for (int i = first; i < n.input_count(); ++i)
    if (!n.has(i)) return n.invalid("expected input " + std::to_string(i) + ", found it missing");
  int64_t scanned = n.attr_int("num_scan_inputs", 0);
  int64_t state_count = n.input_count() - first - scanned;
  if (scanned < 1 || state_count < 0)
    return n.invalid("attribute 'num_scan_inputs': expected 1 to " + std::to_string(n.input_count() - first) +
                     ", found " + std::to_string(scanned));
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
  QUERNEL_TRY(const onnx::GraphProto* body, body_of(n));
  Values carried(n.inputs.begin() + std::min(n.input_count(), 2), n.inputs.end());
  if (std::find(carried.begin(), carried.end(), kNoValue) != carried.end())
    return n.invalid("expected every carried value, found one missing");
  int scan_count = body->output_size() - 1 - static_cast<int>(carried.size());
  if (scan_count < 0 || body->output_size() - 1 != static_cast<int>(n.outputs.size()))
    return n.invalid("expected a body whose outputs are a condition and as many values as the node has, " +
                     std::to_string(carried.size()) + " of them carried");
  if (!n.has(0) && !n.has(1)) return n.refuse("a Loop without trip count and condition does not end");
  int64_t trips = INT64_MAX;
  bool goes_on = true;
  if (n.has(0)) {
    QUERNEL_TRY(trips, known_scalar(n, n.in(0), "trip count", n.proto.input(0)));
  }
  if (n.has(1)) {
    QUERNEL_TRY(int64_t condition, known_scalar(n, n.in(1), "condition", n.proto.input(1)));
    goes_on = condition != 0;
  }
  ValueId yes = n.build.constant(make_tensor<uint8_t>(DType::kBool, {}, {1}));
  std::vector<Values> scanned(static_cast<size_t>(scan_count));
  bool none = trips <= 0 || !goes_on;
  if (none) trips = scan_count ? 1 : 0;  // without iterations, one tells the scan outputs' shapes
  for (int64_t i = 0; i < trips && (goes_on || none); ++i) {
    Values inputs{iteration_number(n, *body, i), yes};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    QUERNEL_CHECK(n.build.status());
    std::optional<Values> results = n.inline_body(*body, inputs);
    if (!results) return {};
    auto scans = results->begin() + 1 + static_cast<int64_t>(carried.size());
    if (!none) carried.assign(results->begin() + 1, scans);
    for (Values& s : scanned) s.push_back(*scans++);
    // Without a condition to begin with, the body's is ignored.
    if (!n.has(1) || none || i + 1 >= trips) continue;
    QUERNEL_TRY(int64_t condition, known_scalar(n, results->front(), "condition", body->output(0).name()));
    goes_on = condition != 0;
  }
  for (Values& s : scanned) {
    QUERNEL_TRY(ValueId stacked, none ? stack_of_none(n, s[0], 0) : stack(n, s, 0));
    carried.push_back(stacked);
  }
  return n.set_outputs(std::move(carried));
}

Status import_scan(NodeImport& n) {
  Values states, sequences;
  QUERNEL_TRY(ScanSpec spec, read_scan(n, 0, states, sequences));
  QUERNEL_TRY(spec.inputs, scan_axes(n, sequences.size(), "scan_input_axes", "scan_input_directions"));
  QUERNEL_TRY(spec.outputs,
              scan_axes(n, n.outputs.size() - states.size(), "scan_output_axes", "scan_output_directions"));
  for (size_t i = 0; i < sequences.size(); ++i) {
    QUERNEL_TRY(spec.inputs[i].axis, n.axis(spec.inputs[i].axis, n.rank(sequences[i])));
    QUERNEL_TRY(int64_t length, n.dim(sequences[i], spec.inputs[i].axis));
    if (i > 0 && length != spec.length)
      return n.invalid("expected scan inputs of one length, found " + std::to_string(spec.length) + " and " +
                       std::to_string(length));
    spec.length = spec.steps = length;
  }
  QUERNEL_TRY(std::optional<Values> outputs, scan(n, spec, states, sequences));
  return outputs ? n.set_outputs(std::move(*outputs)) : Status();
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
    if (i > 0 && (length != spec.length || own_batch != batch))
      return n.invalid("expected scan inputs of one batch size and length");
    spec.length = length;
    batch = own_batch;
  }
  for (ValueId state : states)
    if (n.rank(state) < 1 || n.shape(state)[0] != Dim(batch))
      return n.invalid("expected states of batch size " + std::to_string(batch));
  std::vector<int64_t> lengths(static_cast<size_t>(batch), spec.length);
  if (n.has(0)) {
    QUERNEL_TRY(lengths, n.ints_in(0, "sequence_lens"));
  }
  if (lengths.size() != static_cast<size_t>(batch) ||
      std::any_of(lengths.begin(), lengths.end(), [&](int64_t l) { return l < 0 || l > spec.length; }))
    return n.invalid("expected sequence_lens of " + std::to_string(batch) + " values from 0 to " +
                     std::to_string(spec.length));
  if (batch == 0) return n.refuse("a Scan over an empty batch is not supported");
  std::vector<Values> results(n.outputs.size());
  for (int64_t b = 0; b < batch; ++b) {
    spec.steps = lengths[static_cast<size_t>(b)];
    Values own_states, own_sequences;
    for (ValueId v : states) own_states.push_back(element(n, v, 0, b));
    for (ValueId v : sequences) own_sequences.push_back(element(n, v, 0, b));
    QUERNEL_TRY(std::optional<Values> outputs, scan(n, spec, own_states, own_sequences));
    if (!outputs) return {};
    for (size_t i = 0; i < results.size(); ++i) results[i].push_back((*outputs)[i]);
  }
  Values outputs;
  for (Values& r : results) {
    QUERNEL_TRY(ValueId stacked, stack(n, std::move(r), 0));
    outputs.push_back(stacked);
  }
  return n.set_outputs(std::move(outputs));
}

}  // namespace quernel::onnx_import
