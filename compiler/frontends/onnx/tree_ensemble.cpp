// ai.onnx.ml's decision trees: all trees walk down one level at a time, by gathers.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
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
  std::vector<double> weights;  // per target, of a leaf; NaN where it has none
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

void add_weight(std::vector<double>& weights, int64_t targets, int64_t target, double weight) {
  weights.resize(static_cast<size_t>(targets), NAN);
  double& sum = weights[static_cast<size_t>(target)];
  sum = std::isnan(sum) ? weight : sum + weight;
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
  for (int64_t target : leaf_target) {
    if (target < 0 || target >= (1 << 20)) return n.invalid("expected weights of nodes that exist");
    forest.targets = std::max(forest.targets, target + 1);
  }
  for (size_t i = 0; i < weights->size(); ++i) {
    auto leaf = index.find({leaf_tree[i], leaf_node[i]});
    if (leaf == index.end()) return n.invalid("expected weights of nodes that exist");
    std::vector<double>& w = forest.nodes[static_cast<size_t>(leaf->second)].weights;
    add_weight(w, forest.targets, leaf_target[i], (*weights)[i]);
  }
  return forest;
}

// The nodes of TreeEnsemble: inner nodes and leaves in lists of their own; a leaf has one target.
Expected<Forest> read_split_forest(NodeImport& n) {
  auto list = [&](const char* name) { return n.attr_ints(name).value_or(std::vector<int64_t>()); };
  auto tensor = [&](const char* name) -> Expected<std::vector<double>> {
    const onnx::AttributeProto* a = n.attribute(name);
    std::vector<double> values;
    if (!a) return values;
    QUERNEL_TRY(Tensor t, read_tensor(a->t(), n.source, n.build.location()));
    for (int64_t i = 0; i < t.count(); ++i) values.push_back(element_as_f64(t, i));
    return values;
  };
  std::vector<int64_t> feature = list("nodes_featureids"), yes = list("nodes_truenodeids"),
                       no = list("nodes_falsenodeids"), yes_leaf = list("nodes_trueleafs"),
                       no_leaf = list("nodes_falseleafs"), missing = list("nodes_missing_value_tracks_true"),
                       target = list("leaf_targetids");
  QUERNEL_TRY(std::vector<double> split, tensor("nodes_splits"));
  QUERNEL_TRY(std::vector<double> mode, tensor("nodes_modes"));
  QUERNEL_TRY(std::vector<double> weight, tensor("leaf_weights"));
  QUERNEL_TRY(std::vector<double> members, tensor("membership_values"));
  n.ignore_attribute("nodes_hitrates");
  Forest forest;
  forest.roots = list("tree_roots");
  forest.targets = n.attr_int("n_targets", 1);
  int64_t inner = static_cast<int64_t>(feature.size()), leaves = static_cast<int64_t>(target.size());
  for (size_t size : {yes.size(), no.size(), yes_leaf.size(), no_leaf.size(), split.size(), mode.size()})
    if (size != feature.size()) return n.invalid("expected lists nodes_* of one length");
  if (weight.size() != target.size() || forest.targets < 1 || forest.targets > (1 << 20) || inner < 1)
    return n.invalid("expected nodes, and a weight and a target for each leaf");
  forest.nodes.resize(static_cast<size_t>(inner + leaves));
  for (int64_t i = 0; i < leaves; ++i) {
    if (target[i] < 0 || target[i] >= forest.targets) return n.invalid("expected targets below n_targets");
    Node& leaf = forest.nodes[static_cast<size_t>(inner + i)];
    leaf.when_true = leaf.when_false = inner + i;
    add_weight(leaf.weights, forest.targets, target[i], weight[i]);
  }
  static constexpr Branch kModes[] = {Branch::kLessOrEqual, Branch::kLess,  Branch::kGreaterOrEqual,
                                      Branch::kGreater,     Branch::kEqual, Branch::kNotEqual};
  auto member = members.begin();
  for (int64_t i = 0; i < inner; ++i) {
    Node node;
    node.feature = feature[i];
    node.threshold = split[i];
    node.missing_is_true = i < static_cast<int64_t>(missing.size()) && missing[i] != 0;
    for (auto [child, is_leaf] : {std::pair{yes[i], yes_leaf[i]}, {no[i], no_leaf[i]}})
      if (child < 0 || child >= (is_leaf ? leaves : inner)) return n.invalid("expected children that exist");
    node.when_true = yes[i] + (yes_leaf[i] ? inner : 0);
    node.when_false = no[i] + (no_leaf[i] ? inner : 0);
    if (!(mode[i] >= 0 && mode[i] <= 6)) return n.invalid("attribute 'nodes_modes': expected 0 to 6");
    node.branch = mode[i] == 6 ? Branch::kEqual : kModes[static_cast<size_t>(mode[i])];
    if (mode[i] == 6 && (member == members.end() || std::isnan(*member)))
      return n.invalid("attribute 'membership_values': expected members for each set");
    size_t at = static_cast<size_t>(i);
    // Membership is one comparison after the other, up to the NaN that ends the set.
    while (mode[i] == 6 && member != members.end() && !std::isnan(*member)) {
      node.threshold = *member++;
      bool last = member == members.end() || std::isnan(*member);
      Node step = node;
      if (!last) step.when_false = static_cast<int64_t>(forest.nodes.size());
      forest.nodes[at] = step;
      at = forest.nodes.size();
      if (!last) forest.nodes.emplace_back();
    }
    if (mode[i] == 6 && member != members.end()) ++member;
    if (mode[i] != 6) forest.nodes[at] = node;
  }
  for (int64_t& root : forest.roots) {
    if (root < 0 || root >= inner) return n.invalid("attribute 'tree_roots': expected nodes that exist");
    if (yes_leaf[root] && no_leaf[root] && yes[root] == no[root]) root = inner + yes[root];
  }
  if (forest.roots.empty()) return n.invalid("attribute 'tree_roots' is missing");
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
  if (n.rank(x) != 2) return n.invalid("expected rows of features [N,F], found " + to_string(n.shape(x)));
  if (!is_compute(n.dtype(x)))
    return n.refuse("computing in " + std::string(to_string(n.dtype(x))) + " is not supported",
                    "cast to a wider type before");
  QUERNEL_TRY(int64_t features, n.dim(x, 1));
  for (const Node& node : forest.nodes)
    if (node.branch != Branch::kLeaf && (node.feature < 0 || node.feature >= features))
      return n.invalid("expected features below " + std::to_string(features) + ", found " +
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
                                      {n.shape(x)[0], trees});
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
  constexpr int64_t kMaxTable = int64_t{1} << 26;
  if (forest.targets < 1 || forest.targets > kMaxTable / static_cast<int64_t>(forest.nodes.size()))
    return n.refuse("expected at most 2^26 weights, found " + std::to_string(forest.targets) +
                    " for each node");
  std::vector<uint8_t> data(forest.nodes.size() * static_cast<size_t>(forest.targets) *
                            static_cast<size_t>(element_size(dtype)));
  // A leaf that says nothing of a target adds nothing to a sum, and is no extreme.
  double absent = function == "MIN"   ? std::numeric_limits<float>::max()
                  : function == "MAX" ? std::numeric_limits<float>::lowest()
                                      : 0;
  for (int64_t i = 0; i < static_cast<int64_t>(forest.nodes.size()); ++i)
    for (int64_t t = 0; t < forest.targets; ++t) {
      const std::vector<double>& w = forest.nodes[static_cast<size_t>(i)].weights;
      bool has = t < static_cast<int64_t>(w.size()) && !std::isnan(w[static_cast<size_t>(t)]);
      store_f64(dtype, data.data(), i * forest.targets + t, has ? w[static_cast<size_t>(t)] : absent);
    }
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

Status import_tree_ensemble(NodeImport& n) {
  static const char* const kFunctions[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  int64_t function = n.attr_int("aggregate_function", 1), transform = n.attr_int("post_transform", 0);
  if (function < 0 || function > 3)
    return n.invalid("attribute 'aggregate_function': expected 0 to 3, found " + std::to_string(function));
  if (transform < 0 || transform > 2)
    return n.refuse("attribute 'post_transform': only 0 to 2 are supported, found " +
                    std::to_string(transform));
  QUERNEL_TRY(Forest forest, read_split_forest(n));
  ValueId x = as_features(n, n.in(0));
  QUERNEL_TRY(ValueId leaves, walk(n, forest, x));
  QUERNEL_TRY(ValueId y, aggregate(n, forest, leaves, kFunctions[function], n.dtype(x)));
  if (transform == 1) y = softmax(n, y, {1});
  if (transform == 2) y = sigmoid(n, y);
  return n.output(n.build.cast(y, n.dtype(n.in(0))));
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
  // Two classes may have weights for one of them only: the sum then stands against 0, or, where all weights
  // are positive and so a probability, against 1/2.
  int64_t classes = static_cast<int64_t>(labels->size());
  std::vector<bool> weighted(static_cast<size_t>(std::max(classes, forest.targets)), false);
  bool positive = true;
  for (const Node& node : forest.nodes)
    for (size_t t = 0; t < node.weights.size(); ++t) {
      if (std::isnan(node.weights[t])) continue;
      weighted[t] = true;
      positive = positive && node.weights[t] >= 0;
    }
  bool one_sided = classes == 2 && std::count(weighted.begin(), weighted.end(), true) == 1;
  if (forest.targets > classes)
    return n.invalid("expected weights of " + std::to_string(classes) + " classes");
  if (one_sided && transform == "SOFTMAX")
    return n.refuse("attribute 'post_transform': SOFTMAX of one class is not supported");
  forest.targets = classes;
  ValueId x = as_features(n, n.in(0));
  QUERNEL_TRY(ValueId leaves, walk(n, forest, x));
  QUERNEL_TRY(ValueId scores, aggregate(n, forest, leaves, "SUM", n.dtype(x)));
  QUERNEL_TRY(scores, add_base(n, scores));
  ValueId chosen;
  if (one_sided) {
    Dim rows = n.shape(scores)[0];
    int64_t column = weighted[0] ? 0 : 1;
    ValueId sum = n.build.slice(scores, {0, column}, {rows, column + 1});
    ValueId second = n.binary(BinaryOp::k_gt, sum, positive ? 0.5 : 0.0);
    chosen = n.build.cast(n.build.reshape(second, {rows}), DType::kI64);
    if (column == 0) {
      ValueId first = positive && transform == "NONE"
                          ? n.binary(BinaryOp::k_sub, n.scalar(n.dtype(sum), 1), sum)
                          : n.unary(UnaryOp::k_neg, sum);
      scores = n.build.cat({first, sum}, 1);
    }
  } else {
    chosen = n.build.reduce(OpKind::k_reduce_argmax, scores, {1}, false);
  }
  if (transform == "LOGISTIC") scores = sigmoid(n, scores);
  if (transform == "SOFTMAX") scores = softmax(n, scores, {1});
  ValueId label = n.build.take(n.build.constant(i64_tensor({classes}, *labels)), chosen, 0);
  return n.set_outputs({label, n.build.cast(scores, DType::kF32)});
}

}  // namespace quernel::onnx_import
