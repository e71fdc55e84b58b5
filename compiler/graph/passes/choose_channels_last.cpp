// Channels-last for the whole graph. Every value may exist in its own order ("plain") and in one permuted
// order; an op that can run on permuted operands does, so that permutes appear only where the two worlds
// meet.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "graph/passes/passes.h"
#include "graph/quantized.h"
#include "graph/rewrite.h"

namespace quernel {
namespace {

constexpr int64_t kFewChannels = 4;
constexpr int64_t kFewestColumns = 16;  // of an image of one channel: fewer stay channels-first

using Order = std::vector<int64_t>;  // permuted dim j is plain dim order[j]

Order channels_last(int rank) {
  Order order{0};
  for (int i = 2; i < rank; ++i) order.push_back(i);
  order.push_back(1);
  return order;
}

template <class T>
std::vector<T> reorder(const std::vector<T>& values, const Order& order) {
  std::vector<T> result;
  for (int64_t i : order) result.push_back(values[i]);
  return result;
}

std::vector<int64_t> map_axes(const std::vector<int64_t>& axes, const Order& order) {
  std::vector<int64_t> result;
  for (int64_t axis : axes) result.push_back(std::find(order.begin(), order.end(), axis) - order.begin());
  return result;
}

// A convolution as ONNX has it: channels in dim 1, reduced or grouped there; further dims slide with the
// output's. Groups have weights of their own: dim 1 of a channels-last convolution, along which a window slides, has not.
bool is_convolution(const Graph& graph, const Node& node, const StagedImages& images) {
  const Contraction& c = node.attributes.contraction;
  size_t rank = c.out.size();
  if (rank < 3 || c.a.size() != rank || !is_constant_operand(graph, node.inputs[1])) return false;
  auto uses = [&](const IndexExpr& e, bool reduction) {
    for (size_t i = 0; i < c.axes.size(); ++i)
      if (c.axes[i].reduction == reduction && !(c.axes[i].extent == Dim(1)) &&
          uses_axis(e, static_cast<int>(i)))
        return true;
    return false;
  };
  for (size_t i = 0; i < c.axes.size(); ++i) {
    int axis = static_cast<int>(i);
    if (c.axes[i].reduction || c.axes[i].extent == Dim(1)) continue;
    for (size_t d = 0; d < rank; ++d)
      if (d != 1 && uses_axis(c.a[d], axis) != uses_axis(c.out[d], axis)) return false;
    if (!uses_axis(c.a[1], axis)) continue;
    bool is_group =
        std::any_of(c.b.begin(), c.b.end(), [&](const IndexExpr& e) { return uses_axis(e, axis); });
    if (!is_group || !uses_axis(c.out[1], axis)) return false;
  }
  bool reduces_channels = uses(c.a[1], true), grouped = false, slides = false;
  for (size_t i = 0; i < c.axes.size(); ++i)
    if (!c.axes[i].reduction && uses_axis(c.a[1], static_cast<int>(i))) grouped = true;
  for (size_t d = 2; d < rank; ++d) slides |= uses(c.a[d], true) || uses(c.a[d], false);
  // Images of one channel are multiplied along the window, for vectors of output channels. Firmware, whose
  // memory borders of many channels would fill, keeps floats in order.
  bool worthwhile = images.largest_step > 1 && always_le(kFewestColumns, graph.shape(node.output)[1]);
  bool one_channel = uses(c.out[1], false) && (is_byte(graph.dtype(node.inputs[0])) || worthwhile);
  return slides && (reduces_channels || grouped || one_channel);
}

// A window over a tensor: result dim i < rank slides along input dim i, further dims are the window's.
bool is_window(const Graph& graph, const Node& node) {
  size_t in = graph.shape(node.inputs[0]).size(), out = graph.shape(node.output).size();
  if (out <= in || !node.attributes.map.guards.empty()) return false;
  for (size_t d = 0; d < in; ++d)
    for (size_t i = 0; i < in; ++i)
      if (i != d && uses_axis(node.attributes.map.indices[d], static_cast<int>(i))) return false;
  return true;
}

// A reshape that makes one dim of all that channels have: [n, c, h, w] -> [n, c, h * w].
bool merges_images(const Graph& graph, const Node& node) {
  if (node.op != OpKind::k_reshape) return false;
  const Shape &in = graph.shape(node.inputs[0]), &out = graph.shape(node.output);
  return in.size() > 3 && out.size() == 3 && out[0] == in[0] && out[1] == in[1];
}

// Whether the rows of all channels that a row of results needs may be put together in scratch.
bool has_few_channels(const Graph& graph, const Node& node, const StagedImages& images) {
  const Shape &x = graph.shape(node.inputs[0]), &w = graph.shape(node.inputs[1]);
  if (x.size() != 4 || !always_le(x[1], kFewChannels) || !x[3].is_const()) return false;
  constexpr int64_t kBeside = 64;  // what lies around a row: padding, and what lines are aligned by
  Dim bytes = x[1] * w[2] * (x[3] + kBeside) * element_size(graph.dtype(node.inputs[0]));
  return images.largest_step > 1 && always_le(bytes, images.most_bytes);
}

// Whether a convolution reads and writes elements as fast with channels first: a matrix product of whole
// images (windows of one position), or one whose images are put together in scratch, which slides over each
// channel by itself or over few.
bool runs_as_fast_as_it_stands(const Graph& graph, const Node& node, const StagedImages& images) {
  const Contraction& c = node.attributes.contraction;
  int axes = static_cast<int>(c.axes.size());
  bool windows = false, mixes_channels = false;
  for (int i = 0; i < axes; ++i) {
    if (!c.axes[i].reduction || c.axes[i].extent == Dim(1)) continue;
    for (size_t d = 0; d < c.a.size(); ++d) (d == 1 ? mixes_channels : windows) |= uses_axis(c.a[d], i);
  }
  // Kernels widen vectors of columns of quantised weights, so that results of a position lie together.
  if (mixes_channels && !graph.constant(node.inputs[1])) return false;
  // Four channels of bytes are multiplied at a time where they lie together.
  if (!windows)
    return images.fewest_dot_columns == 0 || !mixes_channels || !is_byte(graph.dtype(node.inputs[0])) ||
           !always_le(images.fewest_dot_columns, graph.shape(node.inputs[1])[0]);
  std::optional<AffineForm> last = as_affine(c.a.back(), axes);
  if (!last || (mixes_channels && !has_few_channels(graph, node, images))) return false;
  Dim step = 1;
  for (int i = 0; i < axes; ++i) {
    const Dim& coefficient = last->coefficients[i];
    if (c.axes[i].reduction || coefficient == Dim(0)) continue;
    if (!always_le(1, coefficient)) return false;
    step = max(step, coefficient);
  }
  if (!(step == Dim(1)) || mixes_channels) {  // rows of known length, all results or one for each channel
    if (!always_le(step, images.largest_step)) return false;
    for (int i = 0; i < axes; ++i) {
      if (!c.axes[i].extent.is_const()) return false;
      bool many = !c.axes[i].reduction && !(c.axes[i].extent == Dim(1));
      if (many && uses_axis(c.out[1], i) && uses_axis(c.a[1], i) == mixes_channels) return false;
    }
  }
  return mixes_channels || always_le(graph.shape(node.inputs[1])[1], 1);
}

class ChannelsLast {
 public:
  ChannelsLast(const Graph& graph, const StagedImages& images)
      : old_(graph), images_(images), permuted_(graph.values.size()), alone_(convolutions_alone()) {}

  ValueId rule(Rewriter& r, const Node& node) {
    Form form;
    if (!run_permuted(r, node, form)) {
      for (ValueId v : node.inputs) plain(r, v);
      return kNoValue;
    }
    if (form.value == kNoValue) return kNoValue;  // the builder holds the failure
    permuted_[node.output] = form;
    // The plain form, made of a permute that nobody may use; dead ones fall away in the next rewrite.
    return r.build.permute(form.value, inverse(form.order));
  }

 private:
  struct Form {
    ValueId value = kNoValue;
    Order order;
  };

  static Order inverse(const Order& order) {
    Order result(order.size());
    for (size_t i = 0; i < order.size(); ++i) result[order[i]] = static_cast<int64_t>(i);
    return result;
  }

  ValueId plain(Rewriter& r, ValueId v) { return r(v); }
  bool is_permuted(ValueId v) const { return permuted_[v].value != kNoValue; }
  ValueId in_order(Rewriter& r, ValueId v, const Order& order) {
    if (is_permuted(v) && permuted_[v].order == order) return permuted_[v].value;
    return r.build.permute(r(v), order);
  }

  // Whether a convolution takes its operand as it comes: one of few channels, such as an image, that is not
  // permuted yet would be read once to be permuted and once by the convolution, which reads elements in any
  // order as fast.
  bool reads_plain(const Node& node) const {
    const Contraction& c = node.attributes.contraction;
    ValueId x = node.inputs[0];
    while (const Node* pad = old_.def(x)) {
      if (pad->op != OpKind::k_pad) break;
      x = pad->inputs[0];
    }
    if (is_permuted(node.inputs[0]) || is_permuted(x) || !always_le(old_.shape(x)[1], kFewChannels))
      return false;
    for (size_t i = 0; i < c.axes.size(); ++i)
      if (!c.axes[i].reduction && !(c.axes[i].extent == Dim(1)) && uses_axis(c.a[1], static_cast<int>(i)))
        return false;  // grouped: the operand is read in vectors
    return true;
  }

  // The results of convolutions that do not need another order and have nothing to share it with: neither
  // convolutions nor windows, nor permutes that would cancel. Both permutes would be for one kernel.
  std::set<ValueId> convolutions_alone() const {
    // Values that may run permuted together have one leader; kNoValue: stays plain.
    std::vector<ValueId> leader(old_.values.size(), kNoValue);
    std::map<ValueId, int> members;  // of leaders: convolutions, windows and permutes
    auto find = [&](ValueId v) {
      while (leader[v] != v) v = leader[v];
      return v;
    };
    auto join = [&](ValueId v, ValueId with) {
      if (leader[with] == kNoValue) return;
      ValueId one = find(v), other = find(with);
      if (one == other) return;
      leader[other] = one;
      members[one] += members[other];
    };
    auto without_pads = [&](ValueId v) {
      for (const Node* pad = old_.def(v); pad && pad->op == OpKind::k_pad; pad = old_.def(v))
        v = pad->inputs[0];
      return v;
    };
    std::map<ValueId, std::vector<ValueId>> readers;  // of values: convolutions
    for (const Node& node : old_.nodes) {
      bool convolves = node.op == OpKind::k_contract && is_convolution(old_, node, images_);
      bool follows = !convolves && follows_operands(node) &&
                     std::any_of(node.inputs.begin(), node.inputs.end(),
                                 [&](ValueId v) { return leader[v] != kNoValue; });
      if (node.op == OpKind::k_permute && leader[node.inputs[0]] != kNoValue) ++members[find(node.inputs[0])];
      if (!convolves && !follows) continue;
      leader[node.output] = node.output;
      members[node.output] = convolves || node.op == OpKind::k_view ? 1 : 0;
      for (ValueId v : node.inputs) join(node.output, v);
      if (!convolves) continue;
      ValueId x = without_pads(node.inputs[0]);
      if (const Node* made = old_.def(x); made && made->op == OpKind::k_permute) ++members[find(node.output)];
      // Convolutions of one operand share its permuted form.
      std::vector<ValueId>& others = readers[x];
      for (ValueId other : others) join(node.output, other);
      others.push_back(node.output);
    }
    std::set<ValueId> alone;
    for (const Node& node : old_.nodes)
      if (node.op == OpKind::k_contract && is_convolution(old_, node, images_) &&
          members[find(node.output)] == 1 && runs_as_fast_as_it_stands(old_, node, images_))
        alone.insert(node.output);
    return alone;
  }

  // Ops that run permuted where an operand is.
  bool follows_operands(const Node& node) const {
    switch (node.op) {
      case OpKind::k_cat:
      case OpKind::k_slice:
      case OpKind::k_pad:
      case OpKind::k_flip:
      case OpKind::k_expand:
        return true;
      case OpKind::k_view:
        return is_window(old_, node);
      case OpKind::k_take:
        return old_.rank(node.inputs[1]) == 1;
      case OpKind::k_reshape:
        return merges_images(old_, node);
      default:
        return is_elementwise(node.op) || is_reduce(node.op);
    }
  }

  bool run_permuted(Rewriter& r, const Node& node, Form& form) {
    const Attributes& a = node.attributes;
    ValueId x = node.inputs.empty() ? kNoValue : node.inputs[0];
    if (node.op == OpKind::k_contract) {
      if (!is_convolution(old_, node, images_) || alone_.contains(node.output)) return false;
      form.order = channels_last(old_.rank(node.output));
      Contraction c = a.contraction;
      c.out = reorder(c.out, form.order);
      if (reads_plain(node)) {
        form.value = r.build.contract(plain(r, x), plain(r, node.inputs[1]), std::move(c));
        return true;
      }
      c.a = reorder(c.a, form.order);
      move_channels_last(c);
      form.value = r.build.contract(in_order(r, x, form.order), plain(r, node.inputs[1]), std::move(c));
      return true;
    }
    // Every other op follows its first permuted operand.
    auto lead =
        std::find_if(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return is_permuted(v); });
    if (lead == node.inputs.end() || !follows_operands(node)) return false;
    form.order = permuted_[*lead].order;
    Attributes attributes = a;
    if (is_elementwise(node.op)) {
      std::vector<ValueId> inputs;
      for (ValueId v : node.inputs) inputs.push_back(in_order(r, v, form.order));
      form.value = r.build.add(node.op, std::move(inputs), std::move(attributes));
      return true;
    }
    if (node.op == OpKind::k_cat) {
      attributes.ints = map_axes(a.ints, form.order);
      std::vector<ValueId> inputs;
      for (ValueId v : node.inputs) inputs.push_back(in_order(r, v, form.order));
      form.value = r.build.add(node.op, std::move(inputs), std::move(attributes));
      return true;
    }
    if (lead != node.inputs.begin()) return false;
    ValueId value = permuted_[x].value;
    switch (node.op) {
      case OpKind::k_slice:
      case OpKind::k_pad:
        attributes.starts = reorder(a.starts, form.order);
        attributes.stops = reorder(a.stops, form.order);
        if (node.op == OpKind::k_slice) attributes.steps = reorder(a.steps, form.order);
        break;
      case OpKind::k_flip:
        attributes.ints = map_axes(a.ints, form.order);
        break;
      case OpKind::k_expand:
        attributes.shape = reorder(a.shape, form.order);
        break;
      case OpKind::k_view: {
        // Result dims in the operand's order, the window's dims after them.
        Order result = form.order;
        for (int64_t d = static_cast<int64_t>(result.size()); d < old_.rank(node.output); ++d)
          result.push_back(d);
        Order position = inverse(result);
        std::vector<IndexExpr> renamed;
        for (int64_t p : position) renamed.push_back(IndexExpr::axis(static_cast<int>(p)));
        attributes.shape = reorder(a.shape, result);
        attributes.map.indices.clear();
        for (int64_t d : form.order) attributes.map.indices.push_back(substitute(a.map.indices[d], renamed));
        form.order = result;
        break;
      }
      case OpKind::k_reshape:
        if (form.order != channels_last(old_.rank(x))) return false;
        form.order = channels_last(old_.rank(node.output));
        form.value = r.build.reshape(value, reorder(old_.shape(node.output), form.order));
        return true;
      case OpKind::k_take:
        attributes.ints = map_axes(a.ints, form.order);
        form.value = r.build.add(node.op, {value, plain(r, node.inputs[1])}, std::move(attributes));
        return true;
      default: {  // reductions
        attributes.ints = map_axes(a.ints, form.order);
        std::sort(attributes.ints.begin(), attributes.ints.end());
        if (!a.keepdims) {
          Order result;
          for (int64_t d : form.order) {
            if (std::binary_search(a.ints.begin(), a.ints.end(), d)) continue;
            result.push_back(d - (std::lower_bound(a.ints.begin(), a.ints.end(), d) - a.ints.begin()));
          }
          form.order = result;
        }
        break;
      }
    }
    form.value = r.build.add(node.op, {value}, std::move(attributes));
    return true;
  }

  // Reduction axes in the order of the permuted operand, so that the innermost walks channels, which are
  // contiguous now.
  static void move_channels_last(Contraction& c) {
    size_t first = 0;
    while (first < c.axes.size() && !c.axes[first].reduction) ++first;
    std::vector<int> order(c.axes.size());
    std::iota(order.begin(), order.end(), 0);
    auto depth = [&](int axis) {
      for (size_t d = 0; d < c.a.size(); ++d)
        if (uses_axis(c.a[d], axis)) return d;
      return size_t{0};
    };
    std::stable_sort(order.begin() + first, order.end(), [&](int x, int y) { return depth(x) < depth(y); });
    std::vector<IndexExpr> renamed(c.axes.size());
    std::vector<Contraction::Axis> axes;
    for (size_t i = 0; i < order.size(); ++i) {
      renamed[order[i]] = IndexExpr::axis(static_cast<int>(i));
      axes.push_back(c.axes[order[i]]);
    }
    c.axes = std::move(axes);
    for (std::vector<IndexExpr>* map : {&c.a, &c.b, &c.out})
      for (IndexExpr& e : *map) e = substitute(e, renamed);
  }

  const Graph& old_;
  const StagedImages& images_;
  std::vector<Form> permuted_;
  std::set<ValueId> alone_;
};

}  // namespace

Expected<Graph> choose_channels_last(const Graph& graph, const StagedImages& images) {
  if (!std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& n) {
        return n.op == OpKind::k_contract && is_convolution(graph, n, images);
      }))
    return graph;
  ChannelsLast state(graph, images);
  QUERNEL_TRY(Graph result,
              rewrite(graph, [&](Rewriter& r, const Node& node) { return state.rule(r, node); }));
  // Drop the plain forms that nobody used.
  return rewrite(result, [](Rewriter&, const Node&) { return kNoValue; });
}

}  // namespace quernel
