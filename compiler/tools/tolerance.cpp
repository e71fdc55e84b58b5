#include "tolerance.h"

#include <algorithm>

#include "quernel/runtime.h"
#include "targets/target.h"

namespace quernel::tools {
namespace {

using tensor_file::HostTensor;
using tensor_file::is_float;
using tensor_file::largest_of;

// Shares of an output's largest element that it may be off by with weights in f16 and bf16, whose elements
// are rounded by up to 2^-12 and 2^-9 of themselves, and with operands in bf16, too; a little more than what
// the most sensitive networks were measured to need (tools/README.md).
constexpr double kF16Share = 5e-2, kBF16Share = 1e-1, kBF16OperandsShare = 1.5e-1;
// The same with weights of 8 bits, whose largest share was 43 %, of one pixel of a network that finds text (32 % before
// windows were quantised, too; the next largest is 26 %), and of 4 bits: two of 42 networks were off by more.
constexpr double kI8Share = 5e-1, kI4Share = 1;
// The same with activations of 8 bits, and where a row of them has one scale: with weights of 8 bits in blocks of 32 the
// largest share was 62 %, of the network that finds text, whose share with a scale for each block was 32 %.
constexpr double kI8ActivationsShare = 1e-1, kI8RowsShare = 7.5e-1;

}  // namespace

Tolerance tolerance_of(const Json* file, const std::string& output, qnl_dtype dtype) {
  Tolerance result;
  if (dtype == QNL_F16 || dtype == QNL_BF16) result.rtol = 1e-2, result.atol = 1e-3;
  if (file == nullptr) return result;
  const Json* outputs = file->find("outputs");
  const Json* own = outputs == nullptr ? nullptr : outputs->find(output);
  for (const Json* level : {static_cast<const Json*>(file), own}) {
    if (level == nullptr) continue;
    auto read = [&](const char* name) {
      return level->find(name) == nullptr ? std::nullopt : level->find(name)->number();
    };
    if (std::optional<double> rtol = read("rtol")) result.rtol = *rtol;
    if (std::optional<double> atol = read("atol")) result.atol = *atol;
    if (std::optional<double> mean = read("mean_atol")) result.mean_atol = *mean;
    if (std::optional<double> share = read("max_share")) result.max_share = *share;
    if (const Json* top1 = level->find("top1")) result.top1 = top1->is_true();
  }
  return result;
}

Tolerance fourier_tolerance_of(const Json* file, const std::string& output, const HostTensor& expected) {
  Tolerance result = tolerance_of(file, output, expected.dtype);
  if (file != nullptr || !is_float(expected.dtype)) return result;
  result.atol = std::max(result.atol, 1e-6 * largest_of(expected));
  return result;
}

Precision precision_of(const CompileOptions& options, std::optional<double> share) {
  Precision result{options.precision};
  for (const std::string& name : options.targets)
    if (Expected<Target> target = find_target(name)) result.operands |= target->multiplies(options.precision);
  if (options.weights.bits != 0) {
    result.weights = options.weights.bits == 8 ? DType::kI8 : DType::kI4;
    result.share = options.weights.bits == 8 ? kI8Share : kI4Share;
  } else if (options.precision != DType::kF32) {
    const bool is_bf16 = options.precision == DType::kBF16;
    result.share = !is_bf16 ? kF16Share : result.operands ? kBF16OperandsShare : kBF16Share;
  }
  if (options.activations == DType::kI8) {
    result.activations = true;
    result.share = std::max(result.share, options.scale_per_row ? kI8RowsShare : kI8ActivationsShare);
  }
  if (share) result.share = *share;
  return result;
}

std::string to_string(const Precision& precision) {
  std::string text;
  if (precision.weights != DType::kF32)
    text =
        std::string(to_string(precision.weights)) + " weights" + (precision.operands ? " and operands" : "");
  if (precision.activations) text += std::string(text.empty() ? "" : ", ") + "i8 activations";
  return text;
}

Tolerance precision_tolerance_of(const Tolerance& tolerance, const Precision& precision,
                                 const HostTensor& expected) {
  Tolerance result = tolerance;
  if (!precision.rounds() || !is_float(expected.dtype)) return result;
  result.atol = std::max(result.atol, precision.share * largest_of(expected));
  result.mean_atol.reset();
  return result;
}

}  // namespace quernel::tools
