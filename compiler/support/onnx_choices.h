// What an importer does where ONNX leaves a choice, or where another runtime's choice differs from Quernel's;
// ops/CHOICES.md has the table.
#pragma once

#include <span>
#include <string_view>

#include "support/expected.h"

namespace quernel {

struct OnnxChoices {
  // As ONNX Runtime does; each says what is done where it is set.
  bool align_corners = false;   // Resize: the last element is aligned with the last one, at any scale
  bool zero_scale = false;      // DynamicQuantizeLinear of zeros: a scale of 1
  bool empty_sequence = false;  // RNN, GRU, LSTM: a row of length 0 has the final state 0
  bool lstm_clip = false;       // LSTM: the cell's value is not clipped
  bool wrapped_casts =
      false;  // Cast of floats to signed integers and those of 8 and 16 bits: as x86 converts
  // Indices that are computed while the model runs: one that is out of range ends the run, with an error that
  // names node and index. Else gathers clamp it, and scatters ignore the update.
  bool checked = false;
};

// The choices that `--like onnxruntime` sets, by the names that select some of them.
struct NamedChoice {
  std::string_view name;
  bool OnnxChoices::*choice;
};
std::span<const NamedChoice> onnxruntime_choices();

// Sets what "onnxruntime", or "onnxruntime:align-corners,casts" for some of them, asks for.
Status choose_like(std::string_view text, OnnxChoices& choices);

}  // namespace quernel
