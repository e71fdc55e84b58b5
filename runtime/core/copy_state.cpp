// Copies between arenas of any two devices, and of a session's state into another one. Only programs that ask
// for that link it.
#include <initializer_list>

#include "core/session.h"
#include "platform/platform.h"

namespace quernel::runtime {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{1} << 20;

// Neither has an address here: piece by piece through memory of the host.
qnl_status copy_by_way_of_host(Device* from, DeviceRange source, Device* to, DeviceRange target,
                               uint64_t bytes) {
  uint64_t piece = bytes < kPieceBytes ? bytes : kPieceBytes;
  void* memory = platform::allocate_pages(piece);
  if (memory == nullptr) return QNL_OUT_OF_MEMORY;
  qnl_status status = QNL_OK;
  for (uint64_t left = bytes; left > 0 && status == QNL_OK;) {
    uint64_t now = left < piece ? left : piece;
    status = from->table->read(from, source, memory, now);
    if (status == QNL_OK) status = to->table->write(to, target, memory, now);
    source.offset += now;
    target.offset += now;
    left -= now;
  }
  platform::free_pages(memory, piece);
  return status;
}

}  // namespace

qnl_status copy_between(Device* from, const DeviceRange& source, Device* to, const DeviceRange& target,
                        uint64_t bytes) {
  if (!inside(source, bytes) || !inside(target, bytes)) return QNL_INVALID_ARGUMENT;
  if (bytes == 0) return QNL_OK;
  if (from == to) return from->table->copy(from, source, target, bytes);
  if (const char* address = host_address(source); address != nullptr)
    return to->table->write(to, target, address, bytes);
  if (char* address = host_address(target); address != nullptr)
    return from->table->read(from, source, address, bytes);
  return copy_by_way_of_host(from, source, to, target, bytes);
}

}  // namespace quernel::runtime

qnl_status qnl_session_copy_state(qnl_session* target, qnl_session* source, qnl_error* error) {
  using namespace quernel::runtime;
  if (target == nullptr || source == nullptr || target->bundle != source->bundle)
    return fail(error, QNL_INVALID_ARGUMENT, "state: expected two sessions of one bundle");
  for (const qnl_session* s : {target, source})
    if (qnl_status idle = check_state_idle(s, error); idle != QNL_OK) return idle;
  // The block is laid out by the bundle alone, so it is the same on all devices.
  const DeviceRange from = {&state_arena(source), 0}, to = {&state_arena(target), 0};
  if (from.arena == to.arena) return QNL_OK;
  qnl_status status = copy_between(source->device, from, target->device, to, source->plan.state_bytes);
  return status == QNL_OK ? QNL_OK : fail(error, status, "state: cannot be copied");
}
