#include "support/onnx_choices.h"

#include <algorithm>
#include <string>

namespace quernel {
namespace {

constexpr NamedChoice kOnnxRuntime[] = {
    {"align-corners", &OnnxChoices::align_corners},   {"casts", &OnnxChoices::wrapped_casts},
    {"empty-sequence", &OnnxChoices::empty_sequence}, {"lstm-clip", &OnnxChoices::lstm_clip},
    {"zero-scale", &OnnxChoices::zero_scale},
};

Diagnostic unknown_choice(std::string_view found) {
  std::string names;
  for (const NamedChoice& c : kOnnxRuntime) names += (names.empty() ? "" : ", ") + std::string(c.name);
  return invalid_input("expected onnxruntime, or onnxruntime: and names of choices (" + names +
                       ") with commas between, found '" + std::string(found) + "'");
}

}  // namespace

std::span<const NamedChoice> onnxruntime_choices() { return kOnnxRuntime; }

Status choose_like(std::string_view text, OnnxChoices& choices) {
  size_t colon = std::min(text.find(':'), text.size());
  if (text.substr(0, colon) != "onnxruntime") return unknown_choice(text);
  if (colon == text.size())
    for (const NamedChoice& c : kOnnxRuntime) choices.*c.choice = true;
  for (size_t begin = colon; begin < text.size();) {
    size_t end = std::min(text.find(',', begin + 1), text.size());
    std::string_view name = text.substr(begin + 1, end - begin - 1);
    const auto* known = std::find_if(std::begin(kOnnxRuntime), std::end(kOnnxRuntime),
                                     [&](const NamedChoice& c) { return c.name == name; });
    if (known == std::end(kOnnxRuntime)) return unknown_choice(text);
    choices.*known->choice = true;
    begin = end;
  }
  return {};
}

}  // namespace quernel
