#include "state_file.h"

namespace quernel::run {
namespace {

using tensor_file::Error;

Error result(qnl_status status, const qnl_error& error) {
  if (status == QNL_OK) return std::nullopt;
  return std::string(qnl_status_text(status)) + ": " + error.text;
}

}  // namespace

Error load_state(const std::string& path, uint64_t bytes, Session* session) {
  std::vector<std::byte> state;
  if (Error message = tensor_file::read_file(path, &state)) return "--load-state: " + *message;
  if (state.size() != bytes)
    return "--load-state: expected " + std::to_string(bytes) + " bytes of states, found " +
           std::to_string(state.size()) + " in '" + path +
           "'; give a file that --save-state wrote for the same bundle, entry point and sizes";
  qnl_error error = {};
  return result(qnl_session_restore_state(session->get(), state.data(), bytes, &error), error);
}

Error save_state(const std::string& path, uint64_t bytes, Session* session) {
  std::vector<std::byte> state(bytes);
  qnl_error error = {};
  qnl_status status = qnl_session_save_state(session->get(), state.data(), bytes, &error);
  if (status != QNL_OK) return result(status, error);
  if (Error message = tensor_file::write_file(path, state.data(), state.size()))
    return "--save-state: " + *message;
  return std::nullopt;
}

}  // namespace quernel::run
