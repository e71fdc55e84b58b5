#include "output_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "list_bundle.h"

namespace quernel::run {
namespace {

using tensor_file::HostTensor;

struct Summary {
  uint64_t count = 0, not_finite = 0, nans = 0;
  double min = NAN, max = NAN, mean = NAN;  // of what is finite; NaN where nothing is
};

// `value`: the i-th as a number.
template <class Value>
void summarize_values(Summary* s, const Value& value) {
  double sum = 0, min = INFINITY, max = -INFINITY;
  for (uint64_t i = 0; i < s->count; ++i) {
    double v = value(i);
    if (!std::isfinite(v)) {
      ++s->not_finite;
      s->nans += std::isnan(v);
      continue;
    }
    min = std::min(min, v);
    max = std::max(max, v);
    sum += v;
  }
  if (s->not_finite == s->count) return;
  s->min = min, s->max = max, s->mean = sum / static_cast<double>(s->count - s->not_finite);
}

Summary summarize(const HostTensor& tensor) {
  Summary s;
  s.count = tensor_file::element_count(tensor.shape).value_or(0);
  if (tensor.dtype == QNL_F32)  // most outputs: a loop without choices
    summarize_values(&s, [floats = reinterpret_cast<const float*>(tensor.bytes.data())](uint64_t i) {
      return static_cast<double>(floats[i]);
    });
  else
    summarize_values(&s, [&](uint64_t i) { return value_at(tensor, i); });
  return s;
}

// A single row of scores: [n] or [1,…,1,n] with n > 5, floating point.
bool is_score_row(const HostTensor& tensor, uint64_t count) {
  return !tensor.shape.empty() && count > 5 && static_cast<uint64_t>(tensor.shape.back()) == count &&
         (tensor.dtype == QNL_F32 || tensor.dtype == QNL_F16 || tensor.dtype == QNL_BF16 ||
          tensor.dtype == QNL_F64);
}

std::vector<uint64_t> top_5(const HostTensor& tensor, uint64_t count) {
  std::vector<uint64_t> best;
  while (best.size() < 5) {
    uint64_t pick = count;
    for (uint64_t i = 0; i < count; ++i) {
      bool taken = std::find(best.begin(), best.end(), i) != best.end();
      if (!taken && (pick == count || value_at(tensor, i) > value_at(tensor, pick))) pick = i;
    }
    best.push_back(pick);
  }
  return best;
}

}  // namespace

void print_output(const qnl_tensor& t, const HostTensor& tensor) {
  Summary s = summarize(tensor);
  printf("%s  %s  ", shown(t.name).c_str(), type_text(t).c_str());
  if (s.count == 0)
    printf("no elements");
  else if (s.not_finite == s.count)
    printf("nothing finite: %" PRIu64 " NaN, %" PRIu64 " infinite", s.nans, s.not_finite - s.nans);
  else
    printf("min %.6g  max %.6g  mean %.6g", s.min, s.max, s.mean);
  if (s.not_finite > 0 && s.not_finite < s.count)
    printf("  not finite: %" PRIu64 " (%" PRIu64 " NaN)", s.not_finite, s.nans);
  printf("\n  first:");
  for (uint64_t i = 0; i < s.count && i < 8; ++i) printf(" %.6g", value_at(tensor, i));
  printf("%s\n", s.count > 8 ? " …" : "");
  if (!is_score_row(tensor, s.count)) return;
  printf("  top 5:");
  for (uint64_t i : top_5(tensor, s.count)) printf(" %" PRIu64 " (%.6g)", i, value_at(tensor, i));
  printf("\n");
}

std::string json_output(const qnl_tensor& t, const HostTensor& tensor) {
  Summary s = summarize(tensor);
  std::string out = json_tensor(t);
  out.pop_back();
  out += ", \"min\": " + json_number(s.min) + ", \"max\": " + json_number(s.max) +
         ", \"mean\": " + json_number(s.mean) + ", \"not_finite\": " + std::to_string(s.not_finite) +
         ", \"first\": [";
  for (uint64_t i = 0; i < s.count && i < 8; ++i)
    out += (i == 0 ? "" : ", ") + json_number(value_at(tensor, i));
  out += "]";
  if (is_score_row(tensor, s.count)) {
    out += ", \"top_5\": [";
    for (uint64_t i : top_5(tensor, s.count)) out += (out.back() == '[' ? "" : ", ") + std::to_string(i);
    out += "]";
  }
  return out + "}";
}

}  // namespace quernel::run
