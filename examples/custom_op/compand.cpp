// Runs a compiled model whose operator example.audio::Compand is a function of this program.
//
//   compand BUNDLE [FRAMES [SAMPLE...]]
//
// FRAMES frames (2) of 8 samples: those given, then zeros; without any, a saw-tooth. Prints the codes and the
// loudness of each frame, and how often the function was called: never, where the bundle has a kernel for it.
// Exits with 2 when something fails.
#include <quernel/custom_op.hpp>
#include <quernel/runtime.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <vector>

#include "compand.h"

namespace {

constexpr int64_t kSamples = 8;

// The operator. `user` counts the calls.
int32_t compand(void* user, const qnl_custom_call* call) {
  ++*static_cast<int*>(user);
  quernel::CustomAttributes attributes(call->attributes);
  float knee = 0;
  int64_t levels = 256;
  attributes.get("knee", &knee);
  attributes.get("levels", &levels);
  if (levels < 2 || levels > 256) {
    std::snprintf(call->message, call->message_bytes, "levels: expected 2 to 256, found %lld",
                  static_cast<long long>(levels));
    return 1;
  }
  const qnl_tensor& x = call->inputs[0];
  const int64_t frames = x.shape[0], samples = x.shape[1];
  for (int64_t f = 0; f < frames; ++f) {
    const float* frame = static_cast<const float*>(x.data) + f * samples;
    uint8_t* code = static_cast<uint8_t*>(call->outputs[0].data) + f * samples;
    const float peak = compand_peak(frame, samples);
    static_cast<float*>(call->outputs[1].data)[f] = peak;
    for (int64_t i = 0; i < samples; ++i) code[i] = compand_code(frame[i], peak, knee, levels);
  }
  return 0;
}

void require(qnl_status status, const qnl_error& error) {
  if (status != QNL_OK) throw std::runtime_error(error.text);
}

void run(int count, char** arguments) {
  int calls = 0;
  const qnl_custom_op op = {QNL_CUSTOM_OP_ABI_VERSION, "example.audio::Compand",
                            "f32[?,?] -> u8[?,?], f32[?]", compand, &calls};
  qnl_session_options options = {};
  options.custom_ops = &op;
  options.custom_op_count = 1;
  qnl_error error = {};
  quernel::Bundle bundle;
  quernel::Device device;
  quernel::Session session;
  require(bundle.open(arguments[1], nullptr, &error), error);
  require(device.open_cpu(1, &error), error);
  require(session.create(bundle, device, &options, &error), error);

  const int64_t frames = count > 2 ? std::atoll(arguments[2]) : 2;
  std::vector<float> signal(static_cast<size_t>(frames * kSamples));
  for (size_t i = 0; i < signal.size(); ++i) {
    if (count <= 3) signal[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50) / 64;
    if (static_cast<int>(i) + 3 < count) signal[i] = std::strtof(arguments[i + 3], nullptr);
  }
  qnl_tensor input = {};
  input.name = "signal";
  input.dtype = QNL_F32;
  input.rank = 2;
  input.shape[0] = frames;
  input.shape[1] = kSamples;
  input.bytes = signal.size() * sizeof(float);
  input.data = signal.data();
  require(session.set_input(input, &error), error);
  require(session.run(&error), error);

  qnl_tensor code = {}, loudness = {};
  require(session.tensor(QNL_OUTPUT, "code", &code, &error), error);
  require(session.tensor(QNL_OUTPUT, "loudness", &loudness, &error), error);
  for (int64_t f = 0; f < frames; ++f) {
    std::printf("frame %lld: codes", static_cast<long long>(f));
    for (int64_t i = 0; i < kSamples; ++i)
      std::printf(" %d", static_cast<const uint8_t*>(code.data)[f * kSamples + i]);
    std::printf(", loudness %.6g\n", static_cast<double>(static_cast<const float*>(loudness.data)[f]));
  }
  std::printf("the function was called %d times\n", calls);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: compand BUNDLE [FRAMES [SAMPLE...]]\n");
    return 2;
  }
  try {
    run(count, arguments);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "compand: %s\n", e.what());
    return 2;
  }
}
