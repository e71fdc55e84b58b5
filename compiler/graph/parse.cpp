// Parser of the graph's text form (graph/text.h). Every statement is read by TextReader, which keeps the
// first failure. Over 600 lines because one grammar is read in one place.
#include <charconv>
#include <limits>
#include <unordered_map>
#include <utility>

#include "graph/control.h"
#include "graph/interpret_parts.h"
#include "graph/parse_type.h"
#include "graph/print_parts.h"
#include "graph/text.h"
#include "support/text_reader.h"

namespace quernel {
namespace {

constexpr int kMaxDepth = 256;                   // of parentheses
constexpr int64_t kMaxBytes = int64_t{1} << 31;  // of one constant
constexpr size_t kNotAssigned = std::numeric_limits<size_t>::max();

int digit(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

class GraphParser {
 public:
  GraphParser(std::string_view text, const std::string& file)
      : in_(text, file), types_(in_, [this](const std::string& name) { return find_symbol(name); }) {}

  Expected<Graph> parse() {
    while (in_.accept_word("symbol")) parse_symbol();
    in_.expect_word("graph");
    in_.expect("@");
    graph_.name = in_.name("a graph name");
    parse_body();
    if (in_.ok() && !in_.at_end()) in_.fail_expected("the end of the text");
    if (!in_.ok()) return in_.take_error();
    return std::move(graph_);
  }

 private:
  // Inputs, nodes and outputs of graph_.
  void parse_body() {
    parse_inputs();
    in_.expect("{");
    while (in_.ok() && !in_.accept_word("return")) {
      if (in_.accept_word("bind"))
        parse_bind();
      else
        parse_node();
    }
    parse_outputs();
  }

  // The body of a loop or branch: a graph of its own, with the same symbols.
  Graph parse_inner(const char* name) {
    constexpr int kMaxNesting = 32;
    if (++nesting_ > kMaxNesting)
      in_.fail("expected bodies at most " + std::to_string(kMaxNesting) + " deep");
    Graph outer = std::exchange(graph_, Graph());
    auto outer_ids = std::exchange(ids_, {});
    graph_.name = name;
    graph_.symbols = outer.symbols;
    if (in_.ok()) parse_body();
    ids_ = std::move(outer_ids);
    --nesting_;
    return std::exchange(graph_, std::move(outer));
  }

  // "carry 1 for i below n while go do (…) {…}" "if go then (…) {…} else (…) {…}"
  // and "do (…) {…}".
  void parse_control(OpKind op, Attributes& a) {
    auto control = std::make_shared<Control>();
    if (op == OpKind::k_branch) {
      in_.expect_word("if");
      control->condition = types_.dim();
      in_.expect_word("then");
      control->bodies.push_back(parse_inner("then"));
      in_.expect_word("else");
      control->bodies.push_back(parse_inner("else"));
    } else if (op == OpKind::k_on_companion) {
      in_.expect_word("do");
      control->bodies.push_back(parse_inner("body"));
    } else {
      in_.expect_word("carry");
      int64_t carried = in_.integer("how many values are carried");
      if (carried < 0 || carried > INT32_MAX) in_.fail("expected at least 0 carried values");
      control->carried = static_cast<int>(carried);
      in_.expect_word("for");
      control->symbol = types_.symbol_name();
      if (in_.accept_word("below")) control->count = types_.dim();
      if (in_.accept_word("while")) control->condition = types_.dim();
      in_.expect_word("do");
      control->bodies.push_back(parse_inner("body"));
    }
    a.control = std::move(control);
  }

  // ---- declarations ----
  Dim find_symbol(const std::string& name) {
    if (const Symbol* s = graph_.find_symbol(name)) return Dim::symbol(*s);
    in_.fail("symbol '" + name + "' is not declared",
             "declare it before the graph: symbol " + name + " min=1");
    return 0;
  }

  void parse_symbol() {
    Symbol s;
    s.name = types_.symbol_name();
    while (in_.ok()) {
      if (in_.accept_word("runtime")) {
        s.runtime = true;
        continue;
      }
      if (in_.accept_word("bound")) {
        in_.expect("=");
        s.bound = {types_.dim()};
        continue;
      }
      int64_t* field = in_.accept_word("min")           ? &s.min
                       : in_.accept_word("max")         ? &s.max
                       : in_.accept_word("multiple_of") ? &s.multiple_of
                                                        : nullptr;
      if (!field) break;
      in_.expect("=");
      *field = in_.integer("a bound");
    }
    if (s.min < 0 || s.max < s.min || s.multiple_of < 1)
      in_.fail("expected 0 <= min <= max and multiple_of >= 1 for symbol '" + s.name + "'");
    for (const Symbol& other : graph_.symbols)
      if (other.name == s.name) in_.fail("symbol '" + s.name + "' is declared twice");
    graph_.symbols.push_back(std::move(s));
  }

  void parse_inputs() {
    in_.expect("(");
    while (in_.ok() && !in_.accept(")")) {
      if (!graph_.inputs.empty()) in_.expect(",");
      bool is_state = in_.accept_word("state");
      std::string name = new_value_name();
      in_.expect(":");
      TensorType type = types_.type();
      if (!in_.ok()) return;
      define(name, graph_.add_input(name, type, in_.location()));
      if (!is_state) continue;
      Graph::State& state = graph_.states.emplace_back();
      state.input = graph_.inputs.size() - 1;
      state.output = kNotAssigned;
      if (in_.accept("=")) state.initial = parse_data(type);
    }
  }

  // The output that is the state's next value.
  void parse_next_state() {
    in_.expect("%");
    std::string name = in_.name("the name of a state");
    if (!in_.ok()) return;
    for (Graph::State& state : graph_.states) {
      if (graph_.values[graph_.inputs[state.input]].name != name) continue;
      if (state.output != kNotAssigned) in_.fail("state '%" + name + "' is given two values");
      state.output = graph_.outputs.size();
      in_.expect("=");
      graph_.outputs.push_back({name, parse_value()});
      return;
    }
    in_.fail("expected the name of a state, found '%" + name + "'");
  }

  void parse_outputs() {
    while (in_.ok() && !in_.accept("}")) {
      if (!graph_.outputs.empty()) in_.expect(",");
      std::string name = in_.name("an output name");
      if (name == "state" && !in_.accept("=")) {
        parse_next_state();
        continue;
      }
      if (name != "state") in_.expect("=");
      ValueId value = parse_value();
      for (const Graph::Output& other : graph_.outputs)
        if (in_.ok() && other.name == name) in_.fail("output '" + name + "' is returned twice");
      graph_.outputs.push_back({std::move(name), value});
    }
    for (const Graph::State& state : graph_.states)
      if (in_.ok() && state.output == kNotAssigned)
        in_.fail("expected a next value of state '%" + graph_.values[graph_.inputs[state.input]].name +
                 "' to be returned");
  }

  // ---- values ----
  std::string new_value_name() {
    in_.expect("%");
    std::string name = in_.name("a value name");
    if (in_.ok() && ids_.contains(name)) in_.fail("value '%" + name + "' is defined twice");
    return name;
  }
  void define(const std::string& name, ValueId id) { ids_.emplace(name, id); }

  ValueId parse_value() {
    in_.expect("%");
    std::string name = in_.name("a value name");
    if (!in_.ok()) return kNoValue;
    auto it = ids_.find(name);
    if (it != ids_.end()) return it->second;
    in_.fail("value '%" + name + "' is not defined before this line");
    return kNoValue;
  }

  // ---- index expressions ----
  IndexExpr parse_expr(const std::vector<std::string>* names, int depth) {
    IndexExpr sum = parse_term(names, depth);
    while (in_.ok()) {
      if (in_.accept("+"))
        sum = sum + parse_term(names, depth);
      else if (in_.accept("-"))
        sum = sum + parse_term(names, depth) * -1;
      else
        break;
    }
    return sum;
  }

  // A number, or a dim in braces.
  Dim parse_factor(const char* what) {
    if (!in_.accept("{")) return in_.integer(what);
    Dim d = types_.dim();
    in_.expect("}");
    return d;
  }

  IndexExpr parse_term(const std::vector<std::string>* names, int depth) {
    if (depth > kMaxDepth) in_.fail("expected parentheses at most " + std::to_string(kMaxDepth) + " deep");
    if (!in_.ok()) return 0;
    if (in_.accept("(")) {
      IndexExpr e = parse_expr(names, depth + 1);
      bool is_div = in_.accept_word("floordiv"), is_mod = !is_div && in_.accept_word("mod");
      if (is_div || is_mod) {
        Dim divisor = parse_factor("a divisor");
        if (always_lt(divisor, 1)) in_.fail("expected a divisor of at least 1, found " + to_string(divisor));
        if (in_.ok()) e = is_div ? floordiv(e, divisor) : floormod(e, divisor);
      }
      in_.expect(")");
      return e;
    }
    if (in_.peek_word().empty()) {
      Dim value = parse_factor("an index expression");
      return in_.accept("*") ? parse_term(names, depth + 1) * value : IndexExpr(value);
    }
    std::string axis = in_.word("an axis");
    if (names) {
      for (size_t i = 0; i < names->size(); ++i)
        if ((*names)[i] == axis) return IndexExpr::axis(static_cast<int>(i));
    } else if (axis.size() > 1 && axis.size() < 6 && axis[0] == 'd' &&
               axis.find_first_not_of("0123456789", 1) == std::string::npos) {
      return IndexExpr::axis(std::stoi(axis.substr(1)));
    }
    in_.fail("axis '" + axis + "' is not known");
    return 0;
  }

  std::vector<IndexExpr> parse_exprs(const std::vector<std::string>* names) {
    std::vector<IndexExpr> exprs;
    in_.expect("[");
    while (in_.ok() && !in_.accept("]")) {
      if (!exprs.empty()) in_.expect(",");
      exprs.push_back(parse_expr(names, 0));
    }
    return exprs;
  }

  // ---- attributes ----
  // "\"demo::Scale\" \"alpha=0.5\" gives f32[4], i64[n]".
  void parse_custom(Attributes& a) {
    auto custom = std::make_shared<CustomOp>();
    custom->name = in_.quoted();
    custom->attributes = in_.quoted();
    in_.expect_word("gives");
    do custom->results.push_back(types_.type());
    while (in_.ok() && in_.accept(","));
    a.custom = std::move(custom);
  }

  std::vector<int64_t> parse_ints() {
    std::vector<int64_t> values;
    in_.expect("{");
    while (in_.ok() && !in_.accept("}")) {
      if (!values.empty()) in_.expect(",");
      values.push_back(in_.integer("an integer"));
    }
    return values;
  }

  double parse_fill() {
    std::optional<double> value = parse_f64(in_.number("a number"));
    if (in_.ok() && !value) in_.fail("expected a number as the fill");
    return value.value_or(0);
  }

  // "[start:stop:step, …]" of slices, "[before:after, …]" of pads.
  void parse_ranges(Attributes& a, bool steps) {
    in_.expect("[");
    while (in_.ok() && !in_.accept("]")) {
      if (!a.starts.empty()) in_.expect(",");
      a.starts.push_back(types_.dim());
      in_.expect(":");
      a.stops.push_back(types_.dim());
      if (steps) a.steps.push_back(in_.accept(":") ? in_.integer("a step") : 1);
    }
  }

  void parse_pad(Attributes& a) {
    parse_ranges(a, false);
    if (in_.accept_word("edge"))
      a.mode = PadMode::kEdge;
    else if (in_.accept_word("reflect"))
      a.mode = PadMode::kReflect;
    else if (in_.accept_word("wrap"))
      a.mode = PadMode::kWrap;
    else if (in_.accept_word("fill"))
      a.fill = parse_fill();
    else
      in_.fail_expected("fill, edge, reflect or wrap");
  }

  void parse_view(Attributes& a) {
    a.map.indices = parse_exprs(nullptr);
    if (in_.accept_word("if")) {
      do {
        Dim lo = types_.dim();
        in_.expect("<=");
        IndexExpr expr = parse_expr(nullptr, 0);
        in_.expect("<");
        a.map.guards.push_back({expr, lo, types_.dim()});
      } while (in_.ok() && in_.accept(","));
      in_.expect_word("fill");
      a.fill = parse_fill();
    }
  }

  void parse_axes(Contraction& c, std::vector<std::string>& names, bool reduction, const char* stop) {
    for (bool first = true; in_.ok() && !in_.accept(stop); first = false) {
      if (!first) in_.expect(",");
      std::string name = in_.word("an axis name");
      in_.expect(":");
      for (const std::string& other : names)
        if (other == name) in_.fail("axis '" + name + "' is defined twice");
      c.axes.push_back({name, types_.dim(), reduction});
      names.push_back(name);
    }
  }

  void parse_contraction(Contraction& c) {
    std::vector<std::string> names;
    in_.expect_word("axes");
    in_.expect("(");
    parse_axes(c, names, false, "|");
    parse_axes(c, names, true, ")");
    in_.expect_word("a");
    c.a = parse_exprs(&names);
    in_.expect_word("b");
    c.b = parse_exprs(&names);
    in_.expect_word("out");
    c.out = parse_exprs(&names);
    in_.expect_word("acc");
    c.accumulator = types_.dtype();
    c.unrounded = in_.accept_word("unrounded");
    if (in_.accept_word("winograd")) c.winograd = static_cast<int>(in_.integer("2 or 4"));
  }

  void parse_reduce(OpKind op, Attributes& a) {
    a.ints = parse_ints();
    a.keepdims = in_.accept_word("keepdims");
    a.select_last = in_.accept_word("last");
    bool accumulates = op == OpKind::k_reduce_sum || op == OpKind::k_reduce_prod;
    if (accumulates && in_.expect_word("acc")) a.accumulator = types_.dtype();
  }

  void parse_scan(OpKind op, Attributes& a) {
    a.ints = parse_ints();
    a.exclusive = in_.accept_word("exclusive");
    a.reverse = in_.accept_word("reverse");
    bool accumulates = op == OpKind::k_scan_sum || op == OpKind::k_scan_prod;
    if (accumulates && in_.expect_word("acc")) a.accumulator = types_.dtype();
  }

  void parse_scatter(Attributes& a) {
    a.ints = parse_ints();
    if (in_.accept_word("add"))
      a.scatter = ScatterMode::kAdd;
    else if (in_.accept_word("mul"))
      a.scatter = ScatterMode::kMul;
    else if (in_.accept_word("max"))
      a.scatter = ScatterMode::kMax;
    else if (in_.accept_word("min"))
      a.scatter = ScatterMode::kMin;
    else if (!in_.accept_word("set"))
      in_.fail_expected("set, add, mul, max or min");
    a.unique = in_.accept_word("unique");
  }

  void parse_attributes(OpKind op, Attributes& a) {
    switch (op) {
      case OpKind::k_permute:
      case OpKind::k_flip:
      case OpKind::k_cat:
      case OpKind::k_take:
      case OpKind::k_gather_elements:
      case OpKind::k_gather_nd:
      case OpKind::k_winograd_input:
      case OpKind::k_winograd_output:
      case OpKind::k_dequantize:
      case OpKind::k_dequantize_rows:
      case OpKind::k_result:
        a.ints = parse_ints();
        return;
      case OpKind::k_slice:
        return parse_ranges(a, true);
      case OpKind::k_pad:
        return parse_pad(a);
      case OpKind::k_view:
        return parse_view(a);
      case OpKind::k_contract:
        return parse_contraction(a.contraction);
      case OpKind::k_argsort:
        a.ints = parse_ints();
        a.descending = in_.accept_word("descending");
        return;
      default:
        if (is_reduce(op)) parse_reduce(op, a);
        if (is_scan(op)) parse_scan(op, a);
        if (is_scatter(op)) parse_scatter(a);
    }
  }

  // ---- constants ----
  bool parse_element(DType dtype, uint8_t* data, int64_t i) {
    if (dtype == DType::kBool && !in_.peek_word().empty()) {
      std::string word = in_.word("true or false");
      if (word != "true" && word != "false") return false;
      store_i64(dtype, data, i, word == "true");
      return true;
    }
    std::string_view token = in_.number("an element");
    if (is_float(dtype)) {
      if (token.starts_with("bits(0x")) return parse_bits(token.substr(7), dtype, data, i);
      std::optional<double> value =
          dtype == DType::kF32 ? std::optional<double>(parse_f32(token)) : parse_f64(token);
      if (value) interpreter::store(dtype, data, i, 1, &*value);
      return value.has_value();
    }
    int64_t value = 0;
    const char *first = token.data(), *last = first + token.size();
    auto [end, error] = std::from_chars(first, last, value);
    if (dtype == DType::kU64 && error == std::errc::result_out_of_range) {
      uint64_t wide = 0;
      auto [wide_end, wide_error] = std::from_chars(first, last, wide);
      end = wide_end, error = wide_error, value = static_cast<int64_t>(wide);
    } else if (dtype == DType::kU64 ? value < 0 : interpreter::wrap_to(dtype, value) != value) {
      return false;
    }
    if (error != std::errc() || end != last) return false;
    store_i64(dtype, data, i, value);
    return true;
  }

  bool parse_bits(std::string_view text, DType dtype, uint8_t* data, int64_t i) {
    uint64_t bits = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits, 16);
    if (error != std::errc() || end != text.data() + text.size() - 1) return false;
    std::memcpy(data + i * element_size(dtype), &bits, element_size(dtype));
    return true;
  }

  void parse_element_list(const TensorType& type, int64_t count, std::vector<uint8_t>& bytes) {
    Location place = in_.location();
    int64_t n = 0;
    while (in_.ok() && !in_.accept("}")) {
      if (n > 0) {
        if (n == 1 && in_.accept("...")) {
          in_.expect("}");
          splat(type.dtype, count, bytes);
          return;
        }
        in_.expect(",");
      }
      if (n == count) in_.fail("expected " + std::to_string(count) + " elements, found more");
      if (in_.ok() && !parse_element(type.dtype, bytes.data(), n))
        in_.fail("expected a value of " + std::string(to_string(type.dtype)));
      ++n;
    }
    if (in_.ok() && n != count)
      in_.fail(invalid_input("expected " + std::to_string(count) + " elements, found " + std::to_string(n),
                             place, "{x ...} repeats one element"));
  }

  static void splat(DType dtype, int64_t count, std::vector<uint8_t>& bytes) {
    if (is_packed(dtype)) {
      Tensor one{dtype, {1}, Bytes::own({bytes.at(0)})};
      for (int64_t i = 1; i < count; ++i) store_i64(dtype, bytes.data(), i, element_as_i64(one, 0));
      return;
    }
    size_t size = static_cast<size_t>(element_size(dtype));
    for (size_t i = size; i < bytes.size(); ++i) bytes[i] = bytes[i - size];
  }

  void parse_hex(std::vector<uint8_t>& bytes) {
    Location place = in_.location();
    std::string_view text = in_.until('>', "the bytes");
    size_t n = 0;
    int high = -1;
    for (char c : text) {
      if (c == ' ' || c == '\n' || c == '\r' || c == '\t') continue;
      int value = digit(c);
      if (value < 0)
        return in_.fail(
            invalid_input("expected hexadecimal digits, found '" + std::string(1, c) + "'", place));
      if (high < 0) {
        high = value;
        continue;
      }
      if (n == bytes.size())
        return in_.fail(
            invalid_input("expected " + std::to_string(bytes.size()) + " bytes, found more", place));
      bytes[n++] = static_cast<uint8_t>(high * 16 + value);
      high = -1;
    }
    if (in_.ok() && (n != bytes.size() || high >= 0))
      in_.fail(invalid_input(
          "expected " + std::to_string(bytes.size()) + " bytes, found " + std::to_string(n), place));
  }

  Tensor parse_data(const TensorType& type) {
    if (in_.ok() && !is_static(type.shape))
      in_.fail("expected a static shape for a constant, found " + to_string(type));
    if (!in_.ok()) return {};
    std::vector<int64_t> dims = static_dims(type.shape);
    std::optional<int64_t> count = element_count(dims);
    if (!count || *count > kMaxBytes / element_size(type.dtype)) {
      in_.fail("expected a constant of at most " + std::to_string(kMaxBytes) + " bytes, found " +
               to_string(type));
      return {};
    }
    // A splat of nothing still reads its one element.
    std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(type.dtype, *count)));
    if (in_.accept("<"))
      parse_hex(bytes);
    else if (in_.expect("{"))
      parse_element_list(type, *count, bytes);
    return {type.dtype, std::move(dims), Bytes::own(std::move(bytes))};
  }

  // "bind n = %count": the run-time symbol n takes its value from %count.
  void parse_bind() {
    std::string name = types_.symbol_name();
    in_.expect("=");
    ValueId value = parse_value();
    if (!in_.ok()) return;
    const Symbol* symbol = graph_.find_symbol(name);
    if (!symbol || !symbol->runtime)
      return in_.fail("expected a symbol declared as runtime, found '" + name + "'");
    if (graph_.symbol_source(name) != kNoValue) return in_.fail("symbol '" + name + "' is bound twice");
    if (is_float(graph_.dtype(value)) || graph_.rank(value) != 0)
      return in_.fail("expected an integer or bool scalar, found " + to_string(graph_.type(value)));
    graph_.symbol_sources.push_back({name, value});
  }

  // ---- nodes ----
  void parse_operands(std::vector<ValueId>& operands) {
    do operands.push_back(parse_value());
    while (in_.ok() && in_.accept(","));
  }

  void parse_node() {
    Location location = in_.location();
    std::string name = new_value_name();
    in_.expect("=");
    std::string op_name = in_.word("an op");
    std::optional<OpKind> op = parse_op_kind(op_name);
    if (in_.ok() && !op) in_.fail("expected an op of the core set, found '" + op_name + "'");
    if (!in_.ok()) return;
    Attributes attributes;
    std::vector<ValueId> operands;
    TensorType type;
    if (*op == OpKind::k_constant) {
      attributes.tensor = parse_data(types_.type());
      type = {attributes.tensor.dtype, make_shape(attributes.tensor.dims)};
    } else if (*op == OpKind::k_dims) {
      in_.expect("[");
      while (in_.ok() && !in_.accept("]")) {
        if (!attributes.shape.empty()) in_.expect(",");
        attributes.shape.push_back(types_.dim());
      }
      in_.expect(":");
      type = types_.type();
    } else if (is_control(*op)) {
      if (in_.peek_word().empty()) parse_operands(operands);
      parse_control(*op, attributes);
      type = token_type();
    } else if (*op == OpKind::k_custom) {
      if (!in_.next_is_quote()) parse_operands(operands);
      parse_custom(attributes);
      type = token_type();
    } else {
      parse_operands(operands);
      parse_attributes(*op, attributes);
      in_.expect(":");
      type = types_.type();
      attributes.dtype = type.dtype;
      if (*op == OpKind::k_result) attributes.shape = type.shape;
      if (*op == OpKind::k_reshape || *op == OpKind::k_expand || *op == OpKind::k_view)
        attributes.shape = type.shape;
      // How many positions an argsort gives stands in its type only.
      size_t axis = attributes.ints.empty() ? type.shape.size() : static_cast<size_t>(attributes.ints[0]);
      if (*op == OpKind::k_argsort && axis < type.shape.size()) attributes.shape = {type.shape[axis]};
    }
    if (!in_.ok()) return;
    Expected<ValueId> value = graph_.add(*op, std::move(operands), std::move(attributes), location, name);
    if (!value) {
      Diagnostic d = value.take_errors().front();
      d.place = location;
      return in_.fail(std::move(d));
    }
    if (graph_.type(*value) != type) {
      Diagnostic d = invalid_input(
          op_name + ": expected result " + to_string(graph_.type(*value)) + ", found " + to_string(type),
          location);
      return in_.fail(std::move(d));
    }
    define(name, *value);
  }

  TextReader in_;
  TypeParser types_;
  Graph graph_;
  std::unordered_map<std::string, ValueId> ids_;
  int nesting_ = 0;
};

}  // namespace

Expected<Graph> parse_graph(std::string_view text, const std::string& file) {
  return GraphParser(text, file).parse();
}

}  // namespace quernel
