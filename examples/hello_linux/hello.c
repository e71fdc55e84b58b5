/* Recognises one picture with a compiled model, by the runtime's C interface.
 *
 *   hello_c BUNDLE */
#include <quernel/runtime.h>
#include <stdio.h>

#include "picture.h"

static int fail(const char* what, const qnl_error* error) {
  fprintf(stderr, "hello_c: %s: %s: %s\n", what, qnl_status_text(error->status), error->text);
  return 1;
}

int main(int argc, char** argv) {
  qnl_error error = {QNL_OK, ""};
  qnl_bundle* bundle = NULL;
  qnl_device* device = NULL;
  qnl_session* session = NULL;
  qnl_tensor image, scores;
  int i, best = 0;
  if (argc != 2) {
    fprintf(stderr, "usage: hello_c BUNDLE\n");
    return 64;
  }
  if (qnl_bundle_open_file(argv[1], NULL, &bundle, &error) != QNL_OK) return fail("open", &error);
  if (qnl_device_open_cpu(NULL, &device, &error) != QNL_OK) return fail("device", &error);
  if (qnl_session_create(bundle, device, NULL, &session, &error) != QNL_OK) return fail("session", &error);

  /* Filled and read where the session keeps them: nothing is copied. */
  if (qnl_session_get(session, QNL_INPUT, "image", &image, &error) != QNL_OK) return fail("image", &error);
  for (i = 0; i < kPixels; ++i) ((float*)image.data)[i] = (float)kPicture[i] / kBrightest;
  if (qnl_session_run(session, &error) != QNL_OK) return fail("run", &error);
  if (qnl_session_get(session, QNL_OUTPUT, "scores", &scores, &error) != QNL_OK)
    return fail("scores", &error);
  for (i = 1; i < kClasses; ++i)
    if (((const float*)scores.data)[i] > ((const float*)scores.data)[best]) best = i;
  printf("C: this is a %d\n", best);

  qnl_session_destroy(session);
  qnl_device_close(device);
  qnl_bundle_close(bundle);
  return 0;
}
