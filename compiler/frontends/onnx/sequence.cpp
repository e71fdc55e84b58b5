// Operators on sequences and optionals: resolved here, they leave no op behind but the tensors' slices and
// concatenations.
#include "frontends/onnx/sequence.h"

#include "frontends/onnx/operators.h"

namespace quernel::onnx_import {
namespace {

// The elements of operand i, a sequence.
Expected<std::vector<ValueId>> elements_of(NodeImport& n, int i) {
  ValueId v = n.in(i);
  if (!is_collection(v) || n.collections->at(v).is_optional)
    return n.invalid("expected operand " + std::to_string(i) + " to be a sequence");
  return n.collections->at(v).elements;
}

Status check_tensor(NodeImport& n, int i) {
  if (!is_collection(n.in(i))) return {};
  return n.invalid("expected operand " + std::to_string(i) +
                   " to be a tensor, found a sequence or an optional");
}

Status output_sequence(NodeImport& n, std::vector<ValueId> elements) {
  return n.output(n.collections->add({false, std::move(elements)}));
}

// A position that is operand i, counted from the end when negative, among `count` ones; the last when absent.
Expected<int64_t> position(NodeImport& n, int i, int64_t count) {
  if (!n.has(i)) return count - 1;
  QUERNEL_CHECK(check_tensor(n, i));
  QUERNEL_TRY(int64_t value, n.int_in(i, "position"));
  if (value < -count || value >= count)
    return n.invalid("expected a position in a sequence of " + std::to_string(count) + ", found " +
                     std::to_string(value));
  return value < 0 ? value + count : value;
}

}  // namespace

Status import_sequence_construct(NodeImport& n) {
  for (int i = 0; i < n.input_count(); ++i) QUERNEL_CHECK(check_tensor(n, i));
  return output_sequence(n, n.inputs);
}

Status import_sequence_empty(NodeImport& n) {
  n.ignore_attribute("dtype");  // elements bring their own
  return output_sequence(n, {});
}

Status import_sequence_at(NodeImport& n) {
  QUERNEL_TRY(std::vector<ValueId> elements, elements_of(n, 0));
  QUERNEL_TRY(int64_t i, position(n, 1, static_cast<int64_t>(elements.size())));
  return n.output(elements[static_cast<size_t>(i)]);
}

Status import_sequence_insert(NodeImport& n) {
  QUERNEL_TRY(std::vector<ValueId> elements, elements_of(n, 0));
  QUERNEL_CHECK(check_tensor(n, 1));
  int64_t count = static_cast<int64_t>(elements.size()), at = count;
  if (n.has(2)) {
    QUERNEL_CHECK(check_tensor(n, 2));
    QUERNEL_TRY(at, n.int_in(2, "position"));
    if (at < -count || at > count)
      return n.invalid("expected a position in a sequence of " + std::to_string(count) + ", found " +
                       std::to_string(at));
    if (at < 0) at += count;
  }
  elements.insert(elements.begin() + at, n.in(1));
  return output_sequence(n, std::move(elements));
}

Status import_sequence_erase(NodeImport& n) {
  QUERNEL_TRY(std::vector<ValueId> elements, elements_of(n, 0));
  QUERNEL_TRY(int64_t i, position(n, 1, static_cast<int64_t>(elements.size())));
  if (elements.empty()) return n.invalid("expected a sequence with elements");
  elements.erase(elements.begin() + i);
  return output_sequence(n, std::move(elements));
}

Status import_sequence_length(NodeImport& n) {
  QUERNEL_TRY(std::vector<ValueId> elements, elements_of(n, 0));
  return n.output(n.build.constant(i64_tensor({}, {static_cast<int64_t>(elements.size())})));
}

// Parts of the given sizes, or of one size (the last may be smaller), or single elements without their dim.
Status import_split_to_sequence(NodeImport& n) {
  constexpr int64_t kMaxParts = 1 << 16;
  ValueId x = n.in(0);
  for (int i = 0; i < n.input_count(); ++i) QUERNEL_CHECK(check_tensor(n, i));
  QUERNEL_TRY(int64_t axis, n.axis(n.attr_int("axis", 0), n.rank(x)));
  bool keep = n.attr_int("keepdims", 1) != 0 || n.has(1);
  QUERNEL_TRY(int64_t size, n.dim(x, axis));
  std::vector<int64_t> parts;
  if (n.has(1) && n.rank(n.in(1)) == 1) {
    QUERNEL_TRY(parts, n.ints_in(1, "split"));
  } else {
    int64_t part = 1;
    if (n.has(1)) {
      QUERNEL_TRY(part, n.int_in(1, "split"));
    }
    if (part < 1 || size / part > kMaxParts)
      return n.refuse("expected at most 2^16 parts of at least one element");
    for (int64_t start = 0; start < size; start += part) parts.push_back(std::min(part, size - start));
  }
  Shape starts(n.shape(x).size(), Dim(0)), stops = n.shape(x);
  std::vector<ValueId> elements;
  int64_t start = 0;
  for (int64_t part : parts) {
    if (part < 0 || part > size - start)
      return n.invalid("expected sizes that add up to " + std::to_string(size));
    starts[axis] = start;
    stops[axis] = start += part;
    ValueId element = n.build.slice(x, starts, stops);
    if (!keep) {
      Shape shape = n.shape(x);
      shape.erase(shape.begin() + axis);
      element = n.build.reshape(element, shape);
    }
    elements.push_back(element);
  }
  if (start != size) return n.invalid("expected sizes that add up to " + std::to_string(size));
  return output_sequence(n, std::move(elements));
}

Status import_concat_from_sequence(NodeImport& n) {
  QUERNEL_TRY(std::vector<ValueId> elements, elements_of(n, 0));
  if (elements.empty()) return n.invalid("expected a sequence with elements");
  bool new_axis = n.attr_int("new_axis", 0) != 0;
  if (!n.attribute("axis")) return n.invalid("attribute 'axis' is missing");
  QUERNEL_TRY(int64_t axis, n.axis(n.attr_int("axis", 0), n.rank(elements[0]) + (new_axis ? 1 : 0)));
  if (new_axis)
    for (ValueId& element : elements) {
      Shape shape = n.shape(element);
      if (static_cast<int64_t>(shape.size()) < axis) return n.invalid("expected elements of one rank");
      shape.insert(shape.begin() + axis, Dim(1));
      element = n.build.reshape(element, shape);
    }
  return n.output(n.build.cat(elements, axis));
}

// ---- optionals

Status import_optional(NodeImport& n) {
  n.ignore_attribute("type");  // of the element, which brings its own
  return n.output(n.collections->add({true, n.inputs}));
}

Status import_optional_has_element(NodeImport& n) {
  bool has = n.has(0);
  if (has && is_collection(n.in(0)) && n.collections->at(n.in(0)).is_optional)
    has = !n.collections->at(n.in(0)).elements.empty();
  Tensor answer = make_tensor<uint8_t>(DType::kBool, {}, {static_cast<uint8_t>(has)});
  return n.output(n.build.constant(std::move(answer)));
}

// A tensor or a sequence stands for an optional that holds it.
Status import_optional_get_element(NodeImport& n) {
  if (!is_collection(n.in(0)) || !n.collections->at(n.in(0)).is_optional) return n.output(n.in(0));
  const std::vector<ValueId>& elements = n.collections->at(n.in(0)).elements;
  if (elements.empty()) return n.invalid("expected an optional with an element");
  return n.output(elements[0]);
}

}  // namespace quernel::onnx_import
