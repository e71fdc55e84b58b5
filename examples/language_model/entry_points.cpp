#include "entry_points.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>

namespace language_model {
namespace {

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

struct Range {
  int64_t least, most, multiple;
};

class Finder {
 public:
  Finder(const quernel::Bundle& bundle, uint32_t index, const qnl_entry_info& info)
      : bundle_(bundle), index_(index), info_(info) {
    entry_.name = info.name;
  }

  EntryPoint find() {
    for (uint32_t i = 0; i < info_.input_count; ++i) read_input(i, describe(QNL_INPUT, i));
    if (!entry_.ids) fail("expected an input of tokens, input_ids");
    for (uint32_t i = 0; i < info_.state_count; ++i) read_state(describe(QNL_STATE, i));
    if (!has_cache_) fail("keeps no keys and values; compile with --state 'past_key_values.*=present.*'");
    for (uint32_t i = 0; i < info_.output_count; ++i) read_output(describe(QNL_OUTPUT, i));
    if (entry_.logits.empty()) fail("expected the output logits");
    return entry_;
  }

 private:
  [[noreturn]] void fail(const std::string& text) const {
    throw std::runtime_error("entry point '" + entry_.name + "': " + text);
  }

  qnl_tensor describe(qnl_tensor_role role, uint32_t i) const {
    qnl_tensor tensor = {};
    if (qnl_bundle_get_tensor(bundle_.get(), index_, role, i, &tensor) != QNL_OK) fail("has no such tensor");
    return tensor;
  }

  // The values of the last dim: a number, or a symbol with its range.
  Range last_dim(uint32_t input, const qnl_tensor& tensor) const {
    const uint32_t last = tensor.rank - 1;
    if (tensor.shape[last] >= 0) return {tensor.shape[last], tensor.shape[last], 1};
    char text[128] = {};
    if (qnl_bundle_get_dim_text(bundle_.get(), index_, QNL_INPUT, input, last, text, sizeof text) == QNL_OK)
      for (uint32_t i = 0; i < bundle_.info().symbol_count; ++i) {
        qnl_symbol_info symbol = {};
        if (qnl_bundle_get_symbol(bundle_.get(), i, &symbol) == QNL_OK &&
            std::string_view(symbol.name) == text)
          return {symbol.min, symbol.max, std::max<int64_t>(symbol.multiple_of, 1)};
      }
    fail("input '" + std::string(tensor.name) + "': cannot tell its length from '" + text + "'");
  }

  void read_input(uint32_t i, const qnl_tensor& tensor) {
    const std::string name = tensor.name;
    const bool is_ids = is_one_of(name, {"input_ids", "ids", "tokens"}), is_mask = name == "attention_mask";
    if (!is_ids && !is_mask && !is_one_of(name, {"position_ids", "positions"})) {
      if (name.find("past") != std::string::npos)
        fail("input '" + name +
             "' is not kept from run to run; compile with --state 'past_key_values.*=present.*'");
      fail("input '" + name +
           "' is not one that this program fills: input_ids, attention_mask, position_ids");
    }
    if (tensor.dtype != QNL_I64 && tensor.dtype != QNL_I32)
      fail("input '" + name + "': expected i64 or i32, found " + qnl_dtype_name(tensor.dtype));
    if (tensor.rank < 1 || tensor.rank > 2 || (tensor.rank == 2 && tensor.shape[0] > 1))
      fail("input '" + name + "': expected one text, [length] or [1,length]");
    const Range range = last_dim(i, tensor);
    const Input input = {name, tensor.dtype, tensor.rank};
    if (is_ids) {
      entry_.ids = input;
      entry_.least = range.least, entry_.most = range.most, entry_.multiple = range.multiple;
    } else if (is_mask) {
      entry_.mask = input;
      if (range.least == range.most) entry_.total = range.most;
      entry_.capacity = std::min(entry_.capacity, range.most);
    } else {
      entry_.positions = input;
    }
  }

  // Keys and values have a row for each position: [1,heads,positions,size] or [positions,size].
  void read_state(const qnl_tensor& tensor) {
    const std::string_view name = tensor.name;
    const bool is_cache = name.find("key") != name.npos || name.find("value") != name.npos;
    if (!is_cache || tensor.rank < 2) return;
    has_cache_ = true;
    entry_.capacity = std::min(entry_.capacity, tensor.shape[tensor.rank - 2]);
  }

  void read_output(const qnl_tensor& tensor) {
    const std::string name = tensor.name;
    if (name != "logits" && info_.output_count > 1) return;
    if (tensor.dtype != QNL_F32 && tensor.dtype != QNL_F16 && tensor.dtype != QNL_BF16)
      fail("output '" + name + "': expected f32, f16 or bf16, found " + qnl_dtype_name(tensor.dtype));
    if (tensor.rank < 1 || tensor.shape[tensor.rank - 1] < 1)
      fail("output '" + name + "': expected as many logits as the vocabulary has tokens");
    entry_.logits = name;
    entry_.vocabulary = tensor.shape[tensor.rank - 1];
  }

  const quernel::Bundle& bundle_;
  uint32_t index_;
  qnl_entry_info info_;
  EntryPoint entry_;
  bool has_cache_ = false;
};

}  // namespace

EntryPoints find_entry_points(const quernel::Bundle& bundle) {
  std::optional<EntryPoint> decode, prompt;
  for (uint32_t i = 0; i < bundle.info().entry_point_count; ++i) {
    qnl_entry_info info = {};
    if (qnl_bundle_get_entry(bundle.get(), i, &info) != QNL_OK) continue;
    const EntryPoint entry = Finder(bundle, i, info).find();
    if (entry.least <= 1 && entry.multiple == 1 && (!decode || entry.most < decode->most)) decode = entry;
    if (!prompt || entry.most > prompt->most) prompt = entry;
  }
  if (!decode)
    throw std::runtime_error(
        "the bundle has no entry point that takes one token (--entry decode:sequence_length=1)");
  return {*decode, *prompt};
}

}  // namespace language_model
