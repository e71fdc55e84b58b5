// Recognises one picture with a compiled model, by the runtime's C++ interface.
//
//   hello_cpp BUNDLE
#include <algorithm>
#include <cstdio>
#include <quernel/runtime.hpp>

#include "picture.h"

namespace {

int fail(const char* what, const qnl_error& error) {
  fprintf(stderr, "hello_cpp: %s: %s: %s\n", what, qnl_status_text(error.status), error.text);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: hello_cpp BUNDLE\n");
    return 64;
  }
  qnl_error error = {};
  quernel::Bundle bundle;
  quernel::Device device;
  quernel::Session session;
  if (bundle.open(argv[1], nullptr, &error) != QNL_OK) return fail("open", error);
  if (device.open_cpu(1, &error) != QNL_OK) return fail("device", error);
  if (session.create(bundle, device, nullptr, &error) != QNL_OK) return fail("session", error);

  // Filled and read where the session keeps them: nothing is copied.
  qnl_tensor image = {}, scores = {};
  if (session.tensor(QNL_INPUT, "image", &image, &error) != QNL_OK) return fail("image", error);
  if (session.tensor(QNL_OUTPUT, "scores", &scores, &error) != QNL_OK) return fail("scores", error);
  std::transform(kPicture, kPicture + kPixels, static_cast<float*>(image.data), [](unsigned char pixel) {
    return static_cast<float>(pixel) / static_cast<float>(kBrightest);
  });
  if (session.run(&error) != QNL_OK) return fail("run", error);
  const float* first = static_cast<const float*>(scores.data);
  printf("C++: this is a %d\n", static_cast<int>(std::max_element(first, first + kClasses) - first));
  return 0;
}
