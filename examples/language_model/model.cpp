#include "model.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace language_model {
namespace {

void require(qnl_status status, const qnl_error& error) {
  if (status != QNL_OK) throw std::runtime_error(std::string(qnl_status_text(status)) + ": " + error.text);
}

// Returns the hash in the bundle's header, which covers those of all its parts. Refuses what people take for a bundle.
uint64_t read_bundle_hash(const std::string& path) {
  unsigned char header[64] = {};
  if (FILE* file = std::fopen(path.c_str(), "rb")) {
    const size_t read = std::fread(header, 1, sizeof header, file);
    std::fclose(file);
    if (read >= 4 && std::memcmp(header, "GGUF", 4) == 0)
      throw std::runtime_error(path +
                               " is a GGUF file, which has weights without a graph. Export the model that it "
                               "was made from to ONNX, "
                               "with ONNX Runtime GenAI (python3 -m onnxruntime_genai.models.builder -m NAME "
                               "-o FOLDER -p int4 -e cpu), "
                               "then compile FOLDER/model.onnx with quernel compile");
  }
  if (path.ends_with(".onnx"))
    throw std::runtime_error(path + " is a model; compile it first: quernel compile " + path +
                             " -o model.qnl --state "
                             "'past_key_values.*=present.*' --entry …, as README.md says");
  uint64_t hash = 0;
  std::memcpy(&hash, header + 56, sizeof hash);
  return hash;
}

float float_of_f16(uint16_t half) {
  const uint32_t sign = uint32_t{half} >> 15 << 31, exponent = half >> 10 & 31, mantissa = half & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  // The exponent's bias of 15 to that of 127, also of numbers without a leading one.
  return std::bit_cast<float>(sign | exponent << 23 | mantissa << 13) * 0x1p112f;
}

}  // namespace

Model::Model(const std::string& path, uint32_t threads, int64_t chunk) {
  qnl_error error = {};
  bundle_hash_ = read_bundle_hash(path);
  require(bundle_.open(path.c_str(), nullptr, &error), error);
  require(device_.open_cpu(threads, &error), error);
  EntryPoints entries = find_entry_points(bundle_);
  decode_.entry = entries.decode;
  prompt_.entry = entries.prompt;
  is_one_part_ = decode_.entry.name == prompt_.entry.name;
  capacity_ = std::min(decode_.entry.capacity, prompt_.entry.capacity);
  if (chunk > 0)
    for (Part* part : {&decode_, &prompt_})
      part->entry.most = std::max(part->entry.least, std::min(part->entry.most, chunk));
  create(&decode_, nullptr);
  if (!is_one_part_) create(&prompt_, decode_.session.get());
}

void Model::create(Part* part, qnl_session* parent) {
  qnl_session_options options = {};
  options.entry_point = part->entry.name.c_str();
  options.parent = parent;
  options.share_state = parent != nullptr ? 1 : 0;
  qnl_error error = {};
  require(part->session.create(bundle_, device_, &options, &error), error);
}

// Prompts in the largest pieces that the entry point takes; what is left over, token by token.
std::span<const float> Model::append(std::span<const int32_t> tokens) {
  const auto room = static_cast<size_t>(capacity_ - position_);
  if (tokens.empty() || tokens.size() > room)
    throw std::runtime_error("expected 1 to " + std::to_string(room) + " tokens, found " +
                             std::to_string(tokens.size()));
  std::span<const float> logits;
  while (!tokens.empty()) {
    Part& large = is_one_part_ ? decode_ : prompt_;
    auto count = std::min(static_cast<int64_t>(tokens.size()), large.entry.most);
    count -= count % large.entry.multiple;
    const bool fits = count > 1 && count >= large.entry.least;
    const auto taken = tokens.first(fits ? static_cast<size_t>(count) : 1);
    logits = run(fits ? large : decode_, taken);
    tokens = tokens.subspan(taken.size());
  }
  return logits;
}

std::span<const float> Model::run(Part& part, std::span<const int32_t> tokens) {
  const auto count = static_cast<int64_t>(tokens.size());
  const int64_t filled = position_ + count;
  fill(part, *part.entry.ids, count, [&](int64_t i) { return tokens[static_cast<size_t>(i)]; });
  if (part.entry.positions)
    fill(part, *part.entry.positions, count, [&](int64_t i) { return position_ + i; });
  if (part.entry.mask)
    fill(part, *part.entry.mask, part.entry.total.value_or(filled),
         [&](int64_t i) { return i < filled ? 1 : 0; });
  qnl_error error = {};
  require(part.session.run(&error), error);
  position_ = filled;
  qnl_tensor logits = {};
  require(part.session.tensor(QNL_OUTPUT, part.entry.logits.c_str(), &logits, &error), error);
  return last_row(logits);
}

// In the session's memory where they are f32, else in logits_.
std::span<const float> Model::last_row(const qnl_tensor& logits) {
  const auto width = static_cast<size_t>(logits.shape[logits.rank - 1]);
  const uint64_t bytes = qnl_dtype_bytes(logits.dtype, width);
  const char* row = static_cast<const char*>(logits.data) + (logits.bytes - bytes);
  if (logits.dtype == QNL_F32) return {reinterpret_cast<const float*>(row), width};
  const auto* halves = reinterpret_cast<const uint16_t*>(row);
  logits_.resize(width);
  for (size_t i = 0; i < width; ++i)
    logits_[i] =
        logits.dtype == QNL_F16 ? float_of_f16(halves[i]) : std::bit_cast<float>(uint32_t{halves[i]} << 16);
  return logits_;
}

// Fills the input's own memory; nothing is copied.
void Model::fill(Part& part, const Input& input, int64_t count,
                 const std::function<int64_t(int64_t)>& value) {
  qnl_error error = {};
  qnl_tensor tensor = {};
  tensor.name = input.name.c_str();
  tensor.rank = input.rank;
  tensor.shape[0] = 1;
  tensor.shape[input.rank - 1] = count;
  require(part.session.set_shape(tensor, &error), error);
  require(part.session.tensor(QNL_INPUT, input.name.c_str(), &tensor, &error), error);
  for (int64_t i = 0; i < count; ++i) {
    if (input.dtype == QNL_I64) {
      static_cast<int64_t*>(tensor.data)[i] = value(i);
    } else {
      static_cast<int32_t*>(tensor.data)[i] = static_cast<int32_t>(value(i));
    }
  }
}

std::string Model::save_state() {
  qnl_error error = {};
  std::string state(state_bytes(), '\0');
  require(qnl_session_save_state(decode_.session.get(), state.data(), state.size(), &error), error);
  return state;
}

void Model::restore_state(std::string_view state, int64_t position) {
  qnl_error error = {};
  require(qnl_session_restore_state(decode_.session.get(), state.data(), state.size(), &error), error);
  position_ = position;
}

uint64_t Model::state_bytes() {
  qnl_session_options options = {};
  options.entry_point = decode_.entry.name.c_str();
  qnl_requirements needs = {};
  qnl_error error = {};
  require(qnl_session_query(bundle_.get(), device_.get(), &options, &needs, &error), error);
  return needs.state_bytes;
}

}  // namespace language_model
