#include "state_file.h"

#include <string.h>

namespace quernel::run {
namespace {

using tensor_file::Error;

Error result(qnl_status status, const qnl_error& error) {
  if (status == QNL_OK) return std::nullopt;
  return std::string(qnl_status_text(status)) + ": " + error.text;
}

// "quernel states 8\nmemory f32[1,2]\n\n"; a dim without a fixed size is '?'.
std::string header_of(const std::vector<qnl_tensor>& states, uint64_t bytes) {
  std::string text = "quernel states " + std::to_string(bytes) + "\n";
  for (const qnl_tensor& state : states) {
    text += std::string(state.name) + " " + qnl_dtype_name(state.dtype) + "[";
    for (uint32_t d = 0; d < state.rank; ++d)
      text += (d == 0 ? "" : ",") + (state.shape[d] < 0 ? "?" : std::to_string(state.shape[d]));
    text += "]\n";
  }
  return text + "\n";
}

}  // namespace

Error load_state(const std::string& path, const std::vector<qnl_tensor>& states, uint64_t bytes,
                 Session* session) {
  std::vector<std::byte> file;
  if (Error message = tensor_file::read_file(path, &file)) return "--load-state: " + *message;
  const std::string header = header_of(states, bytes);
  if (file.size() != header.size() + bytes || memcmp(file.data(), header.data(), header.size()) != 0)
    return "--load-state: expected the " + std::to_string(states.size()) + " states of this entry point, " +
           std::to_string(bytes) + " bytes, found something else in '" + path +
           "'; give a file that --save-state wrote for the same bundle, entry point and sizes";
  qnl_error error = {};
  return result(qnl_session_restore_state(session->get(), file.data() + header.size(), bytes, &error), error);
}

Error save_state(const std::string& path, const std::vector<qnl_tensor>& states, uint64_t bytes,
                 Session* session) {
  const std::string header = header_of(states, bytes);
  std::vector<std::byte> file(header.size() + bytes);
  memcpy(file.data(), header.data(), header.size());
  qnl_error error = {};
  qnl_status status = qnl_session_save_state(session->get(), file.data() + header.size(), bytes, &error);
  if (status != QNL_OK) return result(status, error);
  if (Error message = tensor_file::write_file(path, file.data(), file.size()))
    return "--save-state: " + *message;
  return std::nullopt;
}

}  // namespace quernel::run
