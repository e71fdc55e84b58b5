// The same as consumer.c, through the C++ wrapper, with the output bound to memory of the caller's own.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <quernel/runtime.hpp>
#include <vector>

namespace {

int fail(const char* what, const qnl_error& error) {
  fprintf(stderr, "%s: %s: %s\n", what, qnl_status_text(error.status), error.text);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  qnl_error error = {};
  quernel::Bundle bundle;
  quernel::Device device;
  quernel::Session session;
  if (bundle.open(argv[1], nullptr, &error) != QNL_OK) return fail("open", error);
  if (device.open_cpu(2, &error) != QNL_OK) return fail("device", error);
  if (session.create(bundle, device, nullptr, &error) != QNL_OK) return fail("session", error);

  qnl_tensor input = {}, output = {};
  if (session.tensor(QNL_INPUT, nullptr, &input, &error) != QNL_OK) return fail("input", error);
  std::memset(input.data, 0, input.bytes);
  if (session.tensor(QNL_OUTPUT, nullptr, &output, &error) != QNL_OK) return fail("output", error);
  std::vector<float> result(output.bytes / sizeof(float), -1.0f);
  output.data = result.data();
  if (session.bind_output(output, &error) != QNL_OK) return fail("bind", error);
  if (session.run(&error) != QNL_OK) return fail("run", error);

  float sum = 0;
  for (float score : result) sum += score;
  if (!(sum > 0.99f && sum < 1.01f)) {  // the model of this test ends in a softmax
    fprintf(stderr, "expected scores that sum to 1, found %g\n", static_cast<double>(sum));
    return 1;
  }
  printf("input %s\noutput %s\n", input.name, output.name);
  return 0;
}
