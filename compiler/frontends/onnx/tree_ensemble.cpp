// ai.onnx.ml's decision trees: all trees walk down one level at a time, by gathers.
#include <algorithm>
#include <functional>
#include <map>

#include "frontends/onnx/activation.h"
#include "frontends/onnx/operators.h"

namespace quernel::onnx_import {
namespace {

enum class Branch { kLessOrEqual, kLess, kGreaterOrEqual, kGreater, kEqual, kNotEqual, kLeaf };

struct Node {
  Branch branch = Branch::kLeaf;
  int64_t feature = 0, when_true = 0, when_false = 0;
  double threshold = 0;
  bool missing_is_true = false;
  std::vector<double> weights;  // per target, of a leaf
};

struct Forest {
  std::vector<Node> nodes;
  std::vector<int64_t> roots;
  int64_t targets = 1;
};

std::optional<Branch> branch_named(const std::string& name) {
  static const std::map<std::string, Branch> kNames{{"BRANCH_LEQ", Branch::kLessOrEqual},
                                                    {"BRANCH_LT", Branch::kLess},
                                                    {"BRANCH_GTE", Branch::kGreaterOrEqual},
                                                    {"BRANCH_GT", Branch::kGreater},
                                                    {"BRANCH_EQ", Branch::kEqual},
                                                    {"BRANCH_NEQ", Branch::kNotEqual},
                                                    {"LEAF", Branch::kLeaf}};
  auto it = kNames.find(name);
  return it == kNames.end() ? std::nullopt : std::optional(it->second);
}

// Numbers of an attribute that is a list of floats, or a tensor under the same name with "_as_tensor".
Expected<std::optional<std::vector<double>>> numbers(NodeImport& n, const std::string& name) {
  if (auto floats = n.attr_floats(name.c_str())) return floats;
  const onnx::AttributeProto* a = n.attribute((name + "_as_tensor").c_str());
  if (!a) return std::optional<std::vector<double>>();
  QUERNEL_TRY(Tensor tensor, read_tensor(a->t(), n.source, n.build.location()));
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.count(); ++i) values.push_back(element_as_f64(tensor, i));
  return std::optional(std::move(values));
}

// Levels from the roots to the deepest leaf; a problem if the nodes form no trees.
Expected<int64_t> depth_of(NodeImport& n, const Forest& forest) {
  int64_t depth = 0;
  size_t seen = 0;
  std::vector<int64_t> level = forest.roots;
  while (!level.empty()) {
    std::vector<int64_t> next;
    for (int64_t i : level)
      if (forest.nodes[static_cast<size_t>(i)].branch != Branch::kLeaf) {
        next.push_back(forest.nodes[static_cast<size_t>(i)].when_true);
        next.push_back(forest.nodes[static_cast<size_t>(i)].when_false);
      }
    seen += level.size();
    if (seen > 4 * forest.nodes.size() + 4) return n.invalid("expected nodes that form trees, found a cycle");
    if (!next.empty()) ++depth;
    level = std::move(next);
  }
  return depth;
}

// The old operators' nodes, as parallel lists.
Expected<Forest> read_forest(NodeImport& n, const std::string& leaf_prefix) {
  auto list = [&](const std::string& name) {
    return n.attr_ints(name.c_str()).value_or(std::vector<int64_t>());
  };
  std::vector<int64_t> tree = list("nodes_treeids"), id = list("nodes_nodeids"),
                       feature = list("nodes_featureids"), yes = list("nodes_truenodeids"),
                       no = list("nodes_falsenodeids"), missing = list("nodes_missing_value_tracks_true");
  const onnx::AttributeProto* modes = n.attribute("nodes_modes");
  QUERNEL_TRY(std::optional<std::vector<double>> values, numbers(n, "nodes_values"));
  n.ignore_attribute("nodes_hitrates");  // statistics
  n.ignore_attribute("nodes_hitrates_as_tensor");
  size_t count = tree.size();
  if (count == 0 || !modes || !values || id.size() != count || feature.size() != count ||
      yes.size() != count || no.size() != count || values->size() != count ||
      modes->strings_size() != static_cast<int>(count))
    return n.invalid("expected lists nodes_* of one length");
  Forest forest;
  std::map<std::pair<int64_t, int64_t>, int64_t> index;
  for (size_t i = 0; i < count; ++i) index[{tree[i], id[i]}] = static_cast<int64_t>(i);
  std::vector<bool> is_child(count, false);
  for (size_t i = 0; i < count; ++i) {
    Node node;
    std::optional<Branch> branch = branch_named(modes->strings(static_cast<int>(i)));
    if (!branch)
      return n.refuse("attribute 'nodes_modes': '" + modes->strings(static_cast<int>(i)) +
                      "' is not supported");
    node.branch = *branch;
    node.feature = feature[i];
    node.threshold = (*values)[i];
    node.missing_is_true = i < missing.size() && missing[i] != 0;
    node.when_true = node.when_false = static_cast<int64_t>(i);
    if (node.branch != Branch::kLeaf) {
      auto t = index.find({tree[i], yes[i]}), f = index.find({tree[i], no[i]});
      if (t == index.end() || f == index.end())
        return n.invalid("expected children among the nodes of a tree");
      node.when_true = t->second;
      node.when_false = f->second;
      is_child[static_cast<size_t>(t->second)] = is_child[static_cast<size_t>(f->second)] = true;
    }
    forest.nodes.push_back(std::move(node));
  }
  for (size_t i = 0; i < count; ++i)
    if (!is_child[i]) forest.roots.push_back(static_cast<int64_t>(i));
  std::vector<int64_t> leaf_tree = list(leaf_prefix + "_treeids"), leaf_node = list(leaf_prefix + "_nodeids"),
                       leaf_target = list(leaf_prefix + "_ids");
  QUERNEL_TRY(std::optional<std::vector<double>> weights, numbers(n, leaf_prefix + "_weights"));
  if (!weights || leaf_tree.size() != weights->size() || leaf_node.size() != weights->size() ||
      leaf_target.size() != weights->size())
    return n.invalid("expected lists " + leaf_prefix + "_* of one length");
  for (int64_t target : leaf_target) forest.targets = std::max(forest.targets, target + 1);
  for (size_t i = 0; i < weights->size(); ++i) {
    auto leaf = index.find({leaf_tree[i], leaf_node[i]});
    if (leaf == index.end() || leaf_target[i] < 0 || forest.targets > (1 << 20))
      return n.invalid("expected weights of nodes that exist");
    std::vector<double>& w = forest.nodes[static_cast<size_t>(leaf->second)].weights;
    w.resize(static_cast<size_t>(forest.targets));
    w[static_cast<size_t>(leaf_target[i])] += (*weights)[i];
  }
  return forest;
}

Tensor table(DType dtype, const Forest& forest, const std::function<double(const Node&)>& column) {
  std::vector<uint8_t> data(static_cast<size_t>(byte_size(dtype, static_cast<int64_t>(forest.nodes.size()))));
  for (size_t i = 0; i < forest.nodes.size(); ++i) {
    double value = column(forest.nodes[i]);
    if (is_float(dtype))
      store_f64(dtype, data.data(), static_cast<int64_t>(i), value);
    else
      store_i64(dtype, data.data(), static_cast<int64_t>(i), static_cast<int64_t>(value));
  }
  return {dtype, {static_cast<int64_t>(forest.nodes.size())}, Bytes::own(std::move(data))};
}

// The leaf that each row reaches in each tree, as node numbers [N,T].
Expected<ValueId> walk(NodeImport& n, const Forest& forest, ValueId x) {
  QUERNEL_TRY(std::vector<int64_t> dims, n.dims(x));
  if (dims.size() != 2) return n.invalid("expected rows of features [N,F], found " + to_string(n.shape(x)));
  for (const Node& node : forest.nodes)
    if (node.branch != Branch::kLeaf && (node.feature < 0 || node.feature >= dims[1]))
      return n.invalid("expected features below " + std::to_string(dims[1]) + ", found " +
                       std::to_string(node.feature));
  QUERNEL_TRY(int64_t depth, depth_of(n, forest));
  if (depth > 256) return n.refuse("trees of more than 256 levels are not supported");
  int64_t trees = static_cast<int64_t>(forest.roots.size());
  auto column = [&](DType dtype, const std::function<double(const Node&)>& f) {
    return n.build.constant(table(dtype, forest, f));
  };
  ValueId feature = column(DType::kI32, [](const Node&v) { return static_cast<double>(v.feature); }),
          yes = column(DType::kI32, [](const Node&v) { return static_cast<double>(v.when_true); }),
          no = column(DType::kI32, [](const Node&v) { return static_cast<double>(v.when_false); }),
          threshold = column(n.dtype(x), [](const Node&v) { return v.threshold; }),
          missing = column(DType::kBool, [](const Node&v) { return v.missing_is_true ? 1.0 : 0.0; });
  bool any_missing =
      std::any_of(forest.nodes.begin(), forest.nodes.end(), [](const Node& v) { return v.missing_is_true; });
  std::vector<int32_t> roots(forest.roots.begin(), forest.roots.end());
  ValueId here = n.build.broadcast_to(n.build.constant(make_tensor<int32_t>(DType::kI32, {trees}, roots)),
                                      make_shape({dims[0], trees}));
  // The comparisons that occur; where several do, each node chooses its own.
  const std::pair<Branch, BinaryOp> kComparisons[] = {
      {Branch::kLessOrEqual, BinaryOp::k_le},    {Branch::kLess, BinaryOp::k_lt},
      {Branch::kGreaterOrEqual, BinaryOp::k_ge}, {Branch::kGreater, BinaryOp::k_gt},
      {Branch::kEqual, BinaryOp::k_eq},          {Branch::kNotEqual, BinaryOp::k_ne}};
  std::vector<std::pair<BinaryOp, ValueId>> used;
  for (auto [branch, op] : kComparisons)
    if (std::any_of(forest.nodes.begin(), forest.nodes.end(),
                    [b = branch](const Node& v) { return v.branch == b; }))
      used.emplace_back(
          op, column(DType::kBool, [b = branch](const Node& v) { return v.branch == b ? 1.0 : 0.0; }));
  for (int64_t level = 0; level < depth; ++level) {
    Attributes along_row;
    along_row.ints = {1};
    ValueId value =
        n.build.add(OpKind::k_gather_elements, {x, n.build.take(feature, here, 0)}, std::move(along_row));
    ValueId limit = n.build.take(threshold, here, 0), goes = kNoValue;
    for (auto [op, selected] : used) {
      ValueId outcome = n.binary(op, value, limit);
      goes = goes == kNoValue ? outcome : n.build.where(n.build.take(selected, here, 0), outcome, goes);
    }
    if (any_missing && is_float(n.dtype(x)))
      goes = n.build.where(n.unary(UnaryOp::k_is_nan, value), n.build.take(missing, here, 0), goes);
    here = n.build.where(goes, n.build.take(yes, here, 0), n.build.take(no, here, 0));
  }
  return here;
}

// Sums (or averages, or extremes) of the reached leaves' weights [N,targets].
Expected<ValueId> aggregate(NodeImport& n, const Forest& forest, ValueId leaves, const std::string& function,
                            DType dtype) {
  std::vector<uint8_t> data(forest.nodes.size() * static_cast<size_t>(forest.targets) *
                            static_cast<size_t>(element_size(dtype)));
  for (size_t i = 0; i < forest.nodes.size(); ++i)
    for (size_t t = 0; t < forest.nodes[i].weights.size(); ++t)
      store_f64(dtype, data.data(), static_cast<int64_t>(i) * forest.targets + static_cast<int64_t>(t),
                forest.nodes[i].weights[t]);
  ValueId weights = n.build.constant(
      {dtype, {static_cast<int64_t>(forest.nodes.size()), forest.targets}, Bytes::own(std::move(data))});
  ValueId reached = n.build.take(weights, leaves, 0);  // [N,T,targets]
  if (function == "SUM") return n.build.reduce(OpKind::k_reduce_sum, reached, {1}, false);
  if (function == "AVERAGE") return n.mean(reached, {1}, false);
  if (function == "MIN") return n.build.reduce(OpKind::k_reduce_min, reached, {1}, false);
  if (function == "MAX") return n.build.reduce(OpKind::k_reduce_max, reached, {1}, false);
  return n.invalid("attribute 'aggregate_function': expected SUM, AVERAGE, MIN or MAX, found '" + function +
                   "'");
}

ValueId as_features(NodeImport& n, ValueId x) {
  return is_float(n.dtype(x)) ? n.widen(x) : n.build.cast(x, DType::kF32);
}

Expected<ValueId> add_base(NodeImport& n, ValueId scores) {
  QUERNEL_TRY(std::optional<std::vector<double>> base, numbers(n, "base_values"));
  if (!base || base->empty()) return scores;
  std::vector<float> values(base->begin(), base->end());
  ValueId constant = n.build.constant(f32_tensor({static_cast<int64_t>(values.size())}, values));
  return n.binary(BinaryOp::k_add, scores, n.build.cast(constant, n.dtype(scores)));
}

}  // namespace

Status import_tree_ensemble_regressor(NodeImport& n) {
  QUERNEL_TRY(Forest forest, read_forest(n, "target"));
  forest.targets = std::max(forest.targets, n.attr_int("n_targets", 1));
  std::string transform = n.attr_string("post_transform", "NONE");
  if (transform != "NONE")
    return n.refuse("attribute 'post_transform': '" + transform + "' is not supported");
  ValueId x = as_features(n, n.in(0));
  QUERNEL_TRY(ValueId leaves, walk(n, forest, x));
  QUERNEL_TRY(ValueId y,
              aggregate(n, forest, leaves, n.attr_string("aggregate_function", "SUM"), n.dtype(x)));
  QUERNEL_TRY(y, add_base(n, y));
  return n.output(n.build.cast(y, DType::kF32));
}

// Labels are integers; scores are per class, also of two classes with weights for one.
Status import_tree_ensemble_classifier(NodeImport& n) {
  QUERNEL_TRY(Forest forest, read_forest(n, "class"));
  std::optional<std::vector<int64_t>> labels = n.attr_ints("classlabels_int64s");
  if (n.attribute("classlabels_strings") && !labels)
    return n.refuse("attribute 'classlabels_strings': only integer labels are supported");
  if (!labels || labels->empty()) return n.invalid("attribute 'classlabels_int64s' is missing");
  std::string transform = n.attr_string("post_transform", "NONE");
  if (transform != "NONE" && transform != "LOGISTIC" && transform != "SOFTMAX")
    return n.refuse("attribute 'post_transform': '" + transform + "' is not supported");
  int64_t classes = static_cast<int64_t>(labels->size());
  bool one_sided = classes == 2 && forest.targets == 1;
  if (!one_sided) {
    if (forest.targets > classes)
      return n.invalid("expected weights of " + std::to_string(classes) + " classes");
    forest.targets = classes;
  }
  ValueId x = as_features(n, n.in(0));
  QUERNEL_TRY(ValueId leaves, walk(n, forest, x));
  QUERNEL_TRY(ValueId scores, aggregate(n, forest, leaves, "SUM", n.dtype(x)));
  QUERNEL_TRY(scores, add_base(n, scores));
  ValueId chosen;
  if (one_sided) {
    // The weights are of the second class; without a transform they are its probability.
    QUERNEL_CHECK(n.build.status());
    bool probability = transform == "NONE";
    double limit = probability ? 0.5 : 0;
    chosen = n.build.cast(n.build.reshape(n.binary(BinaryOp::k_gt, scores, limit), {n.shape(scores)[0]}),
                          DType::kI64);
    ValueId first = probability ? n.binary(BinaryOp::k_sub, n.scalar(n.dtype(scores), 1), scores)
                                : n.unary(UnaryOp::k_neg, scores);
    scores = n.build.cat({first, scores}, 1);
  } else {
    chosen = n.build.reduce(OpKind::k_reduce_argmax, scores, {1}, false);
  }
  if (transform == "LOGISTIC") scores = sigmoid(n, scores);
  if (transform == "SOFTMAX") scores = softmax(n, scores, {1});
  ValueId label = n.build.take(n.build.constant(i64_tensor({classes}, *labels)), chosen, 0);
  return n.set_outputs({label, n.build.cast(scores, DType::kF32)});
}

}  // namespace quernel::onnx_import
