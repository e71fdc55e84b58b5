// The entry points of a bundle that run a decoder.
#pragma once

#include <quernel/runtime.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace language_model {

// An input of integers, [length] or [1,length].
struct Input {
  std::string name;
  qnl_dtype dtype;  // i64 or i32
  uint32_t rank;
};

// What an entry point takes. Its inputs are known by the names that exporters give them.
struct EntryPoint {
  std::string name;
  std::optional<Input> ids, positions;
  std::optional<Input> mask;     // 1 for each position up to the last token
  std::optional<int64_t> total;  // the mask's length, where it is fixed
  std::string logits;            // f32, f16 or bf16; the last row is for the last token
  int64_t vocabulary = 0;        // logits of a row
  int64_t least = 1, most = 1;   // tokens at once
  int64_t multiple = 1;          // of which their number is a multiple
  int64_t capacity = INT64_MAX;  // positions that the caches and the mask hold
};

// The entry point that takes one token, and the one that takes the most; the same one where it is all there is.
struct EntryPoints {
  EntryPoint decode, prompt;
};

// Throws std::runtime_error, with what to compile otherwise, if the bundle is no decoder that keeps its caches.
EntryPoints find_entry_points(const quernel::Bundle& bundle);

}  // namespace language_model
