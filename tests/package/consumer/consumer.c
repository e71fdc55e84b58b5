/* Opens the bundle it is given, runs it once on the CPU with inputs of zero, and prints the names of its
 * tensors. */
#include <quernel/runtime.h>
#include <stdio.h>

static int fail(const char* what, const qnl_error* error) {
  fprintf(stderr, "%s: %s: %s\n", what, qnl_status_text(error->status), error->text);
  return 1;
}

int main(int argc, char** argv) {
  qnl_error error = {QNL_OK, ""};
  qnl_bundle* bundle = NULL;
  qnl_device* device = NULL;
  qnl_session* session = NULL;
  qnl_entry_info entry;
  qnl_tensor tensor;
  uint32_t i;
  if (argc != 2) return 64;
  if (qnl_runtime_version() != QNL_RUNTIME_VERSION) {
    fprintf(stderr, "header and library are of different versions\n");
    return 1;
  }
  if (qnl_bundle_open_file(argv[1], NULL, &bundle, &error) != QNL_OK) return fail("open", &error);
  if (qnl_device_open_cpu(NULL, &device, &error) != QNL_OK) return fail("device", &error);
  if (qnl_session_create(bundle, device, NULL, &session, &error) != QNL_OK) return fail("session", &error);
  if (qnl_bundle_get_entry(bundle, 0, &entry) != QNL_OK) return 1;
  for (i = 0; i < entry.input_count; i++) {
    uint64_t k;
    if (qnl_bundle_get_tensor(bundle, 0, QNL_INPUT, i, &tensor) != QNL_OK) return 1;
    if (qnl_session_get(session, QNL_INPUT, tensor.name, &tensor, &error) != QNL_OK)
      return fail("input", &error);
    for (k = 0; k < tensor.bytes; k++) ((unsigned char*)tensor.data)[k] = 0;
    printf("input %s\n", tensor.name);
  }
  if (qnl_session_run(session, &error) != QNL_OK) return fail("run", &error);
  for (i = 0; i < entry.output_count; i++) {
    if (qnl_bundle_get_tensor(bundle, 0, QNL_OUTPUT, i, &tensor) != QNL_OK) return 1;
    printf("output %s\n", tensor.name);
  }
  qnl_session_destroy(session);
  qnl_device_close(device);
  qnl_bundle_close(bundle);
  return 0;
}
