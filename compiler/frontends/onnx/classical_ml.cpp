// ai.onnx.ml's operators on rows of features, but for the trees.
#include <cmath>

#include "frontends/onnx/activation.h"
#include "frontends/onnx/matmul.h"
#include "frontends/onnx/operators.h"
#include "frontends/onnx/run_time_checks.h"

namespace quernel::onnx_import {
namespace {

constexpr int64_t kMaxOutputs = int64_t{1} << 31;  // so that products with the features do not overflow

ValueId float_features(NodeImport& n, ValueId x) { return n.build.cast(x, DType::kF32); }

ValueId row(NodeImport& n, const std::vector<double>& values) {
  std::vector<float> floats(values.begin(), values.end());
  return n.build.constant(f32_tensor({static_cast<int64_t>(floats.size())}, floats));
}

// x [N,F] times the transpose of the coefficients [outputs,F], plus the intercepts.
Expected<ValueId> linear(NodeImport& n, int64_t outputs) {
  std::optional<std::vector<double>> coefficients = n.attr_floats("coefficients"),
                                     intercepts = n.attr_floats("intercepts");
  ValueId x = float_features(n, n.in(0));
  if (n.rank(x) == 1) x = n.build.reshape(x, {1, n.shape(x)[0]});
  if (n.rank(x) != 2) return n.invalid("expected rows of features [N,F], found " + to_string(n.shape(x)));
  QUERNEL_TRY(int64_t features, n.dim(x, 1));
  if (outputs < 1 || outputs > kMaxOutputs || !coefficients ||
      static_cast<int64_t>(coefficients->size()) != outputs * features)
    return n.invalid("expected rows of features and " + std::to_string(outputs) + " coefficients for each");
  ValueId weights = n.reshape(row(n, *coefficients), {outputs, features});
  QUERNEL_TRY(ValueId y, matmul(n, x, n.build.permute(weights, {1, 0})));
  if (intercepts && !intercepts->empty()) y = n.binary(BinaryOp::k_add, y, row(n, *intercepts));
  return y;
}

}  // namespace

Status import_linear_regressor(NodeImport& n) {
  std::string transform = n.attr_string("post_transform", "NONE");
  if (transform != "NONE")
    return n.refuse("attribute 'post_transform': '" + transform + "' is not supported");
  QUERNEL_TRY(ValueId y, linear(n, n.attr_int("targets", 1)));
  return n.output(y);
}

Status import_linear_classifier(NodeImport& n) {
  std::optional<std::vector<int64_t>> labels = n.attr_ints("classlabels_ints");
  if (!labels || n.attribute("classlabels_strings"))
    return n.refuse("attribute 'classlabels_strings': only integer labels are supported");
  std::string transform = n.attr_string("post_transform", "NONE");
  n.ignore_attribute("multi_class");  // says how the model was trained
  if (transform != "NONE" && transform != "LOGISTIC" && transform != "SOFTMAX")
    return n.refuse("attribute 'post_transform': '" + transform + "' is not supported");
  int64_t classes = static_cast<int64_t>(labels->size());
  if (classes < 2) return n.refuse("expected two classes or more, found " + std::to_string(classes));
  std::optional<std::vector<double>> intercepts = n.attr_floats("intercepts");
  bool one_sided = classes == 2 && intercepts && intercepts->size() == 1;
  QUERNEL_TRY(ValueId scores, linear(n, one_sided ? 1 : classes));
  ValueId chosen;
  if (one_sided) {
    chosen = n.build.cast(n.build.reshape(n.binary(BinaryOp::k_gt, scores, 0.0), {n.shape(scores)[0]}),
                          DType::kI64);
    ValueId other = transform == "NONE" ? n.binary(BinaryOp::k_sub, n.scalar(DType::kF32, 1), scores)
                                        : n.unary(UnaryOp::k_neg, scores);
    scores = n.build.cat({other, scores}, 1);
  } else {
    chosen = n.build.reduce(OpKind::k_reduce_argmax, scores, {1}, false);
  }
  if (transform == "LOGISTIC") scores = sigmoid(n, scores);
  if (transform == "SOFTMAX") scores = softmax(n, scores, {1});
  return n.set_outputs({n.build.take(n.build.constant(i64_tensor({classes}, *labels)), chosen, 0), scores});
}

// The kernel of each row of x [N,F] with each support vector, times its coefficient, summed; without support
// vectors the coefficients are the features' own.
Status import_svm_regressor(NodeImport& n) {
  std::string kernel = n.attr_string("kernel_type", "LINEAR"),
              transform = n.attr_string("post_transform", "NONE");
  std::vector<double> parameters = n.attr_floats("kernel_params").value_or(std::vector<double>{0, 0, 0}),
                      coefficients = n.attr_floats("coefficients").value_or(std::vector<double>()),
                      rho = n.attr_floats("rho").value_or(std::vector<double>()),
                      vectors = n.attr_floats("support_vectors").value_or(std::vector<double>());
  int64_t supports = n.attr_int("n_supports", 0);
  bool one_class = n.attr_int("one_class", 0) != 0;
  if (transform != "NONE")
    return n.refuse("attribute 'post_transform': '" + transform + "' is not supported");
  ValueId x = float_features(n, n.in(0));
  if (n.rank(x) == 1) x = n.build.reshape(x, {1, n.shape(x)[0]});
  if (n.rank(x) != 2) return n.invalid("expected rows of features [N,F], found " + to_string(n.shape(x)));
  QUERNEL_TRY(int64_t features, n.dim(x, 1));
  bool linear = supports == 0;
  int64_t weights = linear ? features : supports;
  if (parameters.size() != 3 || supports < 0 || supports > kMaxOutputs || rho.size() != 1 ||
      static_cast<int64_t>(coefficients.size()) != weights ||
      (!linear && static_cast<int64_t>(vectors.size()) != supports * features))
    return n.invalid("expected rows of features, a coefficient for each support vector, and one rho");
  ValueId products = x;
  if (!linear) {
    ValueId support = n.reshape(row(n, vectors), {supports, features});
    QUERNEL_TRY(products, matmul(n, x, n.build.permute(support, {1, 0})));
    ValueId scaled =
        n.binary(BinaryOp::k_add, n.binary(BinaryOp::k_mul, products, parameters[0]), parameters[1]);
    if (kernel == "POLY") {
      products = n.binary(BinaryOp::k_pow, scaled, parameters[2]);
    } else if (kernel == "SIGMOID") {
      products = n.unary(UnaryOp::k_tanh, scaled);
    } else if (kernel == "RBF") {
      ValueId apart = n.binary(BinaryOp::k_sub, n.build.reshape(x, {n.shape(x)[0], 1, features}), support);
      ValueId square =
          n.build.reduce(OpKind::k_reduce_sum, n.binary(BinaryOp::k_mul, apart, apart), {2}, false);
      products = n.unary(UnaryOp::k_exp, n.binary(BinaryOp::k_mul, square, -parameters[0]));
    } else if (kernel != "LINEAR") {
      return n.invalid("attribute 'kernel_type': expected LINEAR, POLY, RBF or SIGMOID, found '" + kernel +
                       "'");
    }
  }
  QUERNEL_TRY(ValueId y, matmul(n, products, n.reshape(row(n, coefficients), {weights, 1})));
  y = n.binary(BinaryOp::k_add, y, rho[0]);
  if (one_class)
    y = n.build.where(n.binary(BinaryOp::k_gt, y, 0.0), n.scalar(DType::kF32, 1), n.scalar(DType::kF32, -1));
  return n.output(y);
}

// (x - offset) * scale
Status import_scaler(NodeImport& n) {
  std::vector<double> offset = n.attr_floats("offset").value_or(std::vector<double>{0}),
                      scale = n.attr_floats("scale").value_or(std::vector<double>{1});
  return n.output(n.binary(
      BinaryOp::k_mul, n.binary(BinaryOp::k_sub, float_features(n, n.in(0)), row(n, offset)), row(n, scale)));
}

// Rows divided by their largest magnitude, their sum of magnitudes, or their length; rows of zeros stay.
Status import_normalizer(NodeImport& n) {
  std::string norm = n.attr_string("norm", "MAX");
  ValueId x = float_features(n, n.in(0));
  if (n.rank(x) < 1) return n.invalid("expected rows of features, found a scalar");
  std::vector<int64_t> last{n.rank(x) - 1};
  ValueId divisor;
  if (norm == "MAX")
    divisor = n.build.reduce(OpKind::k_reduce_max, x, last, true);
  else if (norm == "L1")
    divisor = n.build.reduce(OpKind::k_reduce_sum, n.unary(UnaryOp::k_abs, x), last, true);
  else if (norm == "L2")
    divisor = n.unary(UnaryOp::k_sqrt,
                      n.build.reduce(OpKind::k_reduce_sum, n.binary(BinaryOp::k_mul, x, x), last, true));
  else
    return n.invalid("attribute 'norm': expected MAX, L1 or L2, found '" + norm + "'");
  divisor = n.build.where(n.binary(BinaryOp::k_eq, divisor, 0.0), n.scalar(DType::kF32, 1), divisor);
  return n.output(n.binary(BinaryOp::k_div, x, divisor));
}

Status import_binarizer(NodeImport& n) {
  ValueId above = n.binary(BinaryOp::k_gt, n.in(0), n.attr_float("threshold", 0));
  return n.output(n.build.cast(above, n.dtype(n.in(0))));
}

// Columns of the last dim.
Status import_array_feature_extractor(NodeImport& n) {
  ValueId x = n.in(0), index = n.in(1);
  if (n.rank(x) < 1) return n.invalid("expected rows of features, found a scalar");
  ValueId flat = n.build.reshape(index, {element_count(n.shape(index))});
  if (n.rank(x) == 1) x = n.build.reshape(x, {1, n.shape(x)[0]});
  QUERNEL_CHECK(check_indices(n, flat, n.shape(x).back()));
  return n.output(n.build.take(x, flat, n.rank(x) - 1));
}

Status import_feature_vectorizer(NodeImport& n) {
  n.ignore_attribute("inputdimensions");  // the operands' own
  std::vector<ValueId> parts;
  for (ValueId x : n.inputs) {
    ValueId part = float_features(n, x);
    if (n.rank(part) == 1) part = n.build.reshape(part, {1, n.shape(part)[0]});
    parts.push_back(part);
  }
  return n.output(n.build.cat(parts, 1));
}

// One value (by default NaN) replaced by another, which may differ by column.
Status import_imputer(NodeImport& n) {
  ValueId x = n.in(0), absent, filler;
  if (is_float(n.dtype(x))) {
    std::vector<double> values = n.attr_floats("imputed_value_floats").value_or(std::vector<double>());
    if (values.empty()) return n.invalid("attribute 'imputed_value_floats' is missing");
    double replaced = n.attr_float("replaced_value_float", 0);
    absent = std::isnan(replaced) ? n.unary(UnaryOp::k_is_nan, x) : n.binary(BinaryOp::k_eq, x, replaced);
    filler = n.build.cast(row(n, values), n.dtype(x));
  } else {
    std::vector<int64_t> values = n.attr_ints("imputed_value_int64s").value_or(std::vector<int64_t>());
    if (values.empty()) return n.invalid("attribute 'imputed_value_int64s' is missing");
    ValueId replaced = n.build.constant(i64_tensor({}, {n.attr_int("replaced_value_int64", 0)}));
    absent = n.binary(BinaryOp::k_eq, x, n.build.cast(replaced, n.dtype(x)));
    filler =
        n.build.cast(n.build.constant(i64_tensor({static_cast<int64_t>(values.size())}, values)), n.dtype(x));
  }
  return n.output(n.build.where(absent, filler, x));
}

namespace {

// A list attribute of numbers, under the first of its names that is there, as a constant of its own type.
Expected<std::optional<Tensor>> list_constant(NodeImport& n, const std::string& prefix) {
  if (auto ints = n.attr_ints((prefix + "_int64s").c_str()))
    return std::optional(i64_tensor({static_cast<int64_t>(ints->size())}, *ints));
  if (auto floats = n.attr_floats((prefix + "_floats").c_str()))
    return std::optional(
        f32_tensor({static_cast<int64_t>(floats->size())}, {floats->begin(), floats->end()}));
  const onnx::AttributeProto* tensor = n.attribute((prefix + "_tensor").c_str());
  if (!tensor) return std::optional<Tensor>();
  QUERNEL_TRY(Tensor read, read_tensor(tensor->t(), n.source, n.build.location()));
  return std::optional(std::move(read));
}

}  // namespace

// The value that stands beside the first equal key, or the default.
Status import_label_encoder(NodeImport& n) {
  for (const char* name : {"keys_strings", "values_strings"})
    if (n.attribute(name))
      return n.refuse(std::string("attribute '") + name + "': strings are not supported");
  QUERNEL_TRY(std::optional<Tensor> keys, list_constant(n, "keys"));
  QUERNEL_TRY(std::optional<Tensor> values, list_constant(n, "values"));
  if (!keys || !values || keys->count() < 1 || keys->count() != values->count() || keys->count() > (1 << 20))
    return n.invalid("expected as many keys as values");
  ValueId x = n.in(0);
  if (n.dtype(x) != keys->dtype)
    return n.invalid("expected an input of the keys' type " + std::string(to_string(keys->dtype)) +
                     ", found " + std::string(to_string(n.dtype(x))));
  ValueId fallback;
  n.ignore_attribute("default_string");
  if (const onnx::AttributeProto* given = n.attribute("default_tensor")) {
    QUERNEL_TRY(Tensor tensor, read_tensor(given->t(), n.source, n.build.location()));
    if (tensor.count() != 1) return n.invalid("attribute 'default_tensor': expected one value");
    fallback = n.build.reshape(n.build.constant(std::move(tensor)), {});
  } else if (is_float(values->dtype)) {
    fallback = n.scalar(values->dtype, n.attr_float("default_float", -0.0));
  } else {
    fallback =
        n.build.cast(n.build.constant(i64_tensor({}, {n.attr_int("default_int64", -1)})), values->dtype);
  }
  n.ignore_attribute(is_float(values->dtype) ? "default_int64" : "default_float");
  Shape column = n.shape(x);
  column.push_back(Dim(1));
  keys->dims = values->dims = {keys->count()};
  ValueId key = n.build.constant(std::move(*keys)), wide = n.build.reshape(x, column);
  ValueId equal = n.binary(BinaryOp::k_eq, wide, key);
  // NaN is a key like others.
  if (is_float(n.dtype(x)))
    equal = n.binary(
        BinaryOp::k_or, equal,
        n.binary(BinaryOp::k_and, n.unary(UnaryOp::k_is_nan, wide), n.unary(UnaryOp::k_is_nan, key)));
  std::vector<int64_t> last{static_cast<int64_t>(column.size()) - 1};
  ValueId found = n.build.reduce(OpKind::k_reduce_or, equal, last, false);
  ValueId which = n.build.reduce(OpKind::k_reduce_argmax, n.build.cast(equal, DType::kU8), last, false);
  ValueId value = n.build.take(n.build.constant(std::move(*values)), which, 0);
  return n.output(n.build.where(found, value, fallback));
}

// A new last dim with a one where the category is; without one for what is no category.
Status import_one_hot_encoder(NodeImport& n) {
  if (n.attribute("cats_strings")) return n.refuse("attribute 'cats_strings': strings are not supported");
  std::optional<std::vector<int64_t>> categories = n.attr_ints("cats_int64s");
  if (!categories || categories->empty()) return n.invalid("attribute 'cats_int64s' is missing");
  if (n.attr_int("zeros", 1) == 0)
    return n.refuse("attribute 'zeros': only 1 is supported, as a run cannot fail");
  Shape column = n.shape(n.in(0));
  column.push_back(Dim(1));
  ValueId x = n.build.cast(n.build.reshape(n.in(0), column), DType::kI64);
  ValueId all = n.build.constant(i64_tensor({static_cast<int64_t>(categories->size())}, *categories));
  return n.output(n.build.cast(n.binary(BinaryOp::k_eq, x, all), DType::kF32));
}

}  // namespace quernel::onnx_import
