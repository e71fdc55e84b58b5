// A compiled decoder with its caches: tokens in, the logits of the next token out.
#pragma once

#include <quernel/runtime.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "entry_points.h"

namespace language_model {

// Everything throws std::runtime_error with the reason.
class Model {
 public:
  // Requires a bundle whose caches are states (quernel compile --state). `chunk`: at most that many tokens at once;
  // 0: as many as the bundle takes.
  Model(const std::string& path, uint32_t threads, int64_t chunk);

  // The positions that the caches hold, and how many are filled.
  int64_t capacity() const { return capacity_; }
  int64_t position() const { return position_; }
  // How many tokens the model knows: logits of one position.
  int64_t vocabulary() const { return decode_.entry.vocabulary; }

  // Appends the tokens. Returns the logits behind the last one, which are valid until the next call. Requires one
  // token or more, and room for them.
  std::span<const float> append(std::span<const int32_t> tokens);

  // The caches as bytes. `restore_state` takes what `save_state` gave with the same bundle, and how many positions
  // were filled then.
  std::string save_state();
  void restore_state(std::string_view state, int64_t position);
  uint64_t state_bytes();
  // Tells bundles apart, by their code and weights.
  uint64_t bundle_hash() const { return bundle_hash_; }

 private:
  struct Part {
    EntryPoint entry;
    quernel::Session session;
  };
  void create(Part* part, qnl_session* parent);
  std::span<const float> last_row(const qnl_tensor& logits);
  std::span<const float> run(Part& part, std::span<const int32_t> tokens);
  void fill(Part& part, const Input& input, int64_t count, const std::function<int64_t(int64_t)>& value);

  uint64_t bundle_hash_ = 0;
  quernel::Bundle bundle_;
  quernel::Device device_;
  Part decode_, prompt_;
  bool is_one_part_ = false;  // decode_ takes prompts, too
  std::vector<float> logits_;
  int64_t capacity_ = 0, position_ = 0;
};

}  // namespace language_model
