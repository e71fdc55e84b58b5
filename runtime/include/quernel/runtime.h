/* The runtime's C interface: open a bundle, create a session on a device, set inputs, run, read outputs.
 * Nothing is allocated after qnl_session_create has returned, with one exception: a shape larger than memory
 * was made for makes the session's memory grow, where the caller has not supplied it (qnl_session_reserve).
 *
 * Threads: a bundle and a device may be used from any number of threads at once. A session is used from one
 * thread at a time, but for qnl_session_cancel and its event, which any thread may use; while a run of it is
 * in flight everything else but destroying it is refused with QNL_RUN_IN_FLIGHT. Setting a trace or profile
 * hook is not synchronised with runs.
 *
 * Over 600 lines because all that an application may call is here, and half of it is text. */
#ifndef QUERNEL_RUNTIME_H_
#define QUERNEL_RUNTIME_H_

#include <stddef.h>
#include <stdint.h>

#include "schemas/kernel_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* major << 16 | minor << 8 | patch. A bundle says which is the oldest that can run it. */
#define QNL_RUNTIME_VERSION 0x000100u

#define QNL_MAX_RANK 8u
#define QNL_DEFAULT_ALIGNMENT 64u /* of every arena that the runtime allocates */

#if defined(__GNUC__) || defined(__clang__)
#define QNL_NODISCARD __attribute__((warn_unused_result))
#else
#define QNL_NODISCARD
#endif

/* ---- status */

/* Codes are banded: 1xx the caller's arguments, 2xx the system, 3xx the bundle file, 4xx no code for this
 * device, 5xx while running. A value is never reused. */
typedef enum qnl_status {
  QNL_OK = 0,

  QNL_INVALID_ARGUMENT = 100,
  QNL_UNKNOWN_NAME = 101, /* no entry point, tensor or callback of that name */
  QNL_DTYPE_MISMATCH = 102,
  QNL_SHAPE_MISMATCH = 103,
  QNL_SIZE_MISMATCH = 104,       /* byte count does not follow from dtype and shape */
  QNL_MISALIGNED = 105,          /* a bound pointer is not aligned to its element size */
  QNL_OVERLAP = 106,             /* a bound output overlaps another bound tensor */
  QNL_MEMORY_TOO_SMALL = 107,    /* memory supplied by the caller */
  QNL_INPUT_NOT_SET = 108,       /* also: a symbol that no input's shape and no call has given a value */
  QNL_SYMBOL_OUT_OF_RANGE = 109, /* of a symbol's range, or a size that follows from symbols */
  QNL_RUN_IN_FLIGHT = 110,       /* of the session, or of one that shares its state */

  QNL_FILE_NOT_FOUND = 200,
  QNL_FILE_UNREADABLE = 201,
  QNL_OUT_OF_MEMORY = 202,
  QNL_CODE_MEMORY_REFUSED = 203, /* the system does not let this process create executable pages */
  QNL_THREAD_FAILED = 204,
  QNL_TIMEOUT = 205,

  QNL_NOT_A_BUNDLE = 300,
  QNL_WRONG_BYTE_ORDER = 301,
  QNL_TRUNCATED = 302,
  QNL_CORRUPT_HEADER = 303,
  QNL_CORRUPT_STRUCTURE = 304,
  QNL_CORRUPT_CODE = 305,
  QNL_CORRUPT_CONSTANTS = 306,
  QNL_NEWER_SCHEMA = 307,
  QNL_NEWER_RUNTIME_NEEDED = 308,
  QNL_UNKNOWN_FEATURE = 309, /* the bundle needs something that this runtime does not know or implement */
  QNL_INVALID_BUNDLE = 310,  /* hashes are right, but the contents contradict themselves */

  QNL_NO_MATCHING_VARIANT = 400,
  QNL_MALFORMED_IMAGE = 401,
  QNL_KERNEL_ABI_MISMATCH = 402,
  QNL_CUSTOM_OP_MISSING = 403,  /* no function for a custom op of the bundle */
  QNL_CUSTOM_OP_MISMATCH = 404, /* one of another signature or calling convention */

  QNL_KERNEL_FAILED = 500,
  QNL_CALLBACK_FAILED = 501,
  QNL_CALLBACK_MISSING = 502,
  QNL_DEVICE_FAULT = 503, /* sticky: an earlier fault made the device unusable */
  QNL_CANCELLED = 504
} qnl_status;

/* Static text of a status, never NULL. */
const char* qnl_status_text(qnl_status status);

/* Detail of a failure: "subject: expected X, found Y". Every function that takes one accepts NULL, writes it
 * only when it fails, and always terminates the text, which is empty in a runtime that was built without
 * texts (QUERNEL_ERROR_TEXTS=OFF). */
typedef struct qnl_error {
  qnl_status status;
  char text[508];
} qnl_error;

/* QNL_RUNTIME_VERSION of the library. */
uint32_t qnl_runtime_version(void);

/* Bytes of `count` elements, packed types rounded up; 0 for an unknown dtype. */
uint64_t qnl_dtype_bytes(qnl_dtype dtype, uint64_t count);
/* "f32", "i8", "bool"…; "?" for an unknown dtype. */
const char* qnl_dtype_name(qnl_dtype dtype);

/* ---- tensors */

/* A dense row-major tensor, or the description of one (data NULL). In the signature of a bundle a dim is -1,
 * and bytes is 0, where it depends on symbols. */
typedef struct qnl_tensor {
  const char* name; /* owned by the bundle when the runtime fills it in */
  qnl_dtype dtype;
  uint32_t rank;
  int64_t shape[QNL_MAX_RANK];
  uint64_t bytes;
  void* data;
} qnl_tensor;

typedef enum qnl_tensor_role { QNL_INPUT = 0, QNL_OUTPUT = 1, QNL_STATE = 2 } qnl_tensor_role;

/* ---- bundle */

typedef struct qnl_bundle qnl_bundle;

typedef struct qnl_bundle_options {
  int verify_weights;    /* non-zero: also check the hashes of constants, which reads all of them */
  void* memory;          /* for the bundle object; NULL: allocated. 64-byte aligned */
  uint64_t memory_bytes; /* at least qnl_bundle_memory_bytes() */
} qnl_bundle_options;

/* Size of the object that qnl_bundle_open_* places in options->memory. */
uint64_t qnl_bundle_memory_bytes(void);

/* Maps the file read-only and checks it: header, versions, features, hashes of structure and code, then every
 * index and range, so that nothing needs checking later. Constants are only mapped. The file must not be
 * modified while the bundle is open (replace it by renaming). options may be NULL. On failure *bundle is
 * NULL. */
QNL_NODISCARD qnl_status qnl_bundle_open_file(const char* path, const qnl_bundle_options* options,
                                              qnl_bundle** bundle, qnl_error* error);
/* As above, from memory that the caller keeps alive and unchanged until the bundle is closed; 64-byte
 * aligned. */
QNL_NODISCARD qnl_status qnl_bundle_open_memory(const void* data, uint64_t bytes,
                                                const qnl_bundle_options* options, qnl_bundle** bundle,
                                                qnl_error* error);
/* Closes a bundle whose sessions are all destroyed. NULL is ignored. */
void qnl_bundle_close(qnl_bundle* bundle);

/* Checks the hashes of all constants and test values. */
QNL_NODISCARD qnl_status qnl_bundle_verify_weights(const qnl_bundle* bundle, qnl_error* error);

typedef struct qnl_bundle_info {
  const char* producer;
  uint32_t schema_version;
  uint32_t entry_point_count;
  uint32_t variant_count;
  uint64_t file_bytes;
  uint64_t constants_bytes;
  uint64_t code_bytes; /* all variants */
  uint32_t symbol_count;
} qnl_bundle_info;
void qnl_bundle_get_info(const qnl_bundle* bundle, qnl_bundle_info* info);

typedef struct qnl_entry_info {
  const char* name;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t state_count;
} qnl_entry_info;
/* Entry point by index; QNL_INVALID_ARGUMENT past the end. */
QNL_NODISCARD qnl_status qnl_bundle_get_entry(const qnl_bundle* bundle, uint32_t entry, qnl_entry_info* info);
/* Signature of an entry point: tensor `index` of `role`, data NULL. QNL_INVALID_ARGUMENT past the end. */
QNL_NODISCARD qnl_status qnl_bundle_get_tensor(const qnl_bundle* bundle, uint32_t entry, qnl_tensor_role role,
                                               uint32_t index, qnl_tensor* tensor);

/* Text of a dim of that tensor: "64", "batch", "(batch * 2)"; cut to fit `bytes`, always terminated. */
QNL_NODISCARD qnl_status qnl_bundle_get_dim_text(const qnl_bundle* bundle, uint32_t entry,
                                                 qnl_tensor_role role, uint32_t index, uint32_t dim,
                                                 char* text, uint64_t bytes);

/* A number that sizes depend on: a multiple of multiple_of from min to max. */
typedef struct qnl_symbol_info {
  const char* name;
  int64_t min;
  int64_t max;
  int64_t multiple_of;
  int runtime; /* non-zero: computed during a run; zero: given by input shapes or qnl_session_set_symbol */
} qnl_symbol_info;
/* Symbol by index; QNL_INVALID_ARGUMENT past the end. */
QNL_NODISCARD qnl_status qnl_bundle_get_symbol(const qnl_bundle* bundle, uint32_t symbol,
                                               qnl_symbol_info* info);

typedef struct qnl_variant_info {
  const char* target;
  qnl_arch arch;
  uint64_t required_features;
  uint32_t kernel_count;
  uint64_t code_bytes;
} qnl_variant_info;
QNL_NODISCARD qnl_status qnl_bundle_get_variant(const qnl_bundle* bundle, uint32_t variant,
                                                qnl_variant_info* info);

/* ---- test vectors: inputs and the outputs expected for them, in bundles made with --embed-tests */

typedef struct qnl_test_info {
  const char* name;
  uint32_t entry_point;
  uint32_t tensor_count; /* inputs and outputs */
} qnl_test_info;
/* Test vector by index; QNL_INVALID_ARGUMENT past the end. */
QNL_NODISCARD qnl_status qnl_bundle_get_test(const qnl_bundle* bundle, uint32_t test, qnl_test_info* info);

typedef struct qnl_test_tensor {
  qnl_tensor tensor;    /* its data lies in the bundle and must not be written; aligned to 64 bytes */
  qnl_tensor_role role; /* input or output */
  /* Of outputs of float types: |found - expected| <= atol + rtol * |expected|; the mean of |found - expected|
   * is at most mean_atol, unless that is negative; with top1, the largest value of every row (last axis) is
   * in the same place. Other outputs are equal. */
  double rtol, atol, mean_atol;
  int top1;
} qnl_test_tensor;
/* Tensor `index` of a test vector; QNL_INVALID_ARGUMENT past the end. */
QNL_NODISCARD qnl_status qnl_bundle_get_test_tensor(const qnl_bundle* bundle, uint32_t test, uint32_t index,
                                                    qnl_test_tensor* tensor);

/* ---- devices */

typedef struct qnl_device qnl_device;

typedef struct qnl_cpu_options {
  uint32_t threads; /* 0 or 1: everything on the calling thread; N: N - 1 workers beside it, at most 256 */
  uint64_t feature_mask; /* features to use of those that the CPU has; 0: all */
} qnl_cpu_options;

/* The CPU this process runs on. options may be NULL. Workers sleep when there is nothing to do. */
QNL_NODISCARD qnl_status qnl_device_open_cpu(const qnl_cpu_options* options, qnl_device** device,
                                             qnl_error* error);
/* A device that accepts any variant, validates and counts launches, and computes nothing. */
QNL_NODISCARD qnl_status qnl_device_open_null(qnl_device** device, qnl_error* error);

/* Vulkan, in runtimes that are built with it: those define QUERNEL_WITH_VULKAN for what links them. The
 * loader library and the driver are found when a device is opened. */
typedef struct qnl_vulkan_options {
  /* Which device: its number as qnl_vulkan_list counts, its type ("discrete", "integrated", "virtual",
   * "cpu"), or a part of its name in any case. NULL or "": the best one, in the order of these types. */
  const char* device;
  uint64_t feature_mask; /* features to use of those that the device has; 0: all */
  /* How long a submission may take before the device is given up (QNL_DEVICE_FAULT); 0: for ever. */
  uint64_t timeout_nanoseconds;
  /* File that keeps compiled pipelines from one process to the next: checked when it is read, written when
   * the device is closed, ignored where it is of another device or driver. NULL: none. */
  const char* cache_path;
  /* 0: without; 1: with Khronos' validation layer, an error where it is not installed; 2: also with its
   * validation of synchronisation, which goes by the memory that descriptors name and not by what kernels
   * touch of it. */
  int validation;
  int copy_always; /* non-zero: as if the device had separate memory that the process cannot reach; for
                      tests */
  /* Gets the validation layer's warnings and errors; may be NULL. */
  void (*message)(void* user, const char* text);
  void* message_user;
  /* The processor for plans that run partly on each (targets like vulkan/x86-64-v3): an open CPU device,
   * which must outlive this one. NULL: such variants are passed over. */
  qnl_device* host;
} qnl_vulkan_options;

/* options may be NULL. QNL_NO_MATCHING_VARIANT, with what to do in the text, where there is no Vulkan 1.1, no
 * driver or no such device: a caller may then go on with the CPU. */
QNL_NODISCARD qnl_status qnl_device_open_vulkan(const qnl_vulkan_options* options, qnl_device** device,
                                                qnl_error* error);

typedef struct qnl_vulkan_device_info {
  char name[256];
  const char* type; /* "discrete", "integrated", "virtual", "cpu" or "other" */
  uint32_t api_version, driver_version, vendor_id, device_id; /* as Vulkan says them */
  uint64_t features;                                          /* QNL_SPIRV_* */
  int usable;                                                 /* non-zero: it can be opened */
} qnl_vulkan_device_info;
/* The machine's devices: at most `capacity` of them, and in *count how many there are. */
QNL_NODISCARD qnl_status qnl_vulkan_list(qnl_vulkan_device_info* devices, uint32_t capacity, uint32_t* count,
                                         qnl_error* error);

/* Closes a device whose sessions are all destroyed. NULL is ignored. */
void qnl_device_close(qnl_device* device);

typedef struct qnl_device_info {
  const char* name;     /* "cpu", "null"… */
  qnl_arch arch;        /* QNL_ARCH_NONE: accepts every variant */
  uint64_t features;    /* QNL_<ARCH>_* bits it has and may use */
  uint32_t threads;     /* that run workgroups */
  uint64_t memory_used; /* bytes of arenas and code that its sessions hold now */
  /* UINT64_MAX: not known, or without limit. What qnl_session_query says has to fit before anything is made:
   * workspace, state and io are a block each. */
  uint64_t memory_bytes;      /* that there is for blocks and constants, used or not */
  uint64_t max_block_bytes;   /* the largest block */
  uint64_t max_binding_bytes; /* the largest tensor that any kernel can be given; some take larger ones */
} qnl_device_info;
void qnl_device_get_info(const qnl_device* device, qnl_device_info* info);

typedef enum qnl_text_form { QNL_TEXT = 0, QNL_JSON = 1 } qnl_text_form; /* for people; one JSON object */

/* Writes what the device is and has (name, features, memory, limits; of Vulkan driver, versions and what it
 * has done) to `text`, cut to `bytes` and always terminated, and returns the bytes that it takes in all, with
 * the terminating zero. text may be NULL to get those. Numbers that are not known are null in JSON. */
uint64_t qnl_device_describe(const qnl_device* device, qnl_text_form form, char* text, uint64_t bytes);

/* ---- custom ops: operators that the compiler does not know, computed by functions of the application. A
 * bundle names them, "domain::Operator", with their signatures; qnl_session_options has the functions. */

/* Version of qnl_custom_call, qnl_custom_fn and qnl_custom_op as they are here. */
#define QNL_CUSTOM_OP_ABI_VERSION 1u

/* What one call gets. Tensors are dense and row-major, of the signature's dtypes and ranks, with data, shape
 * and bytes of this run and without names; data is aligned to the element size. Inputs must not be written;
 * outputs must be, every byte: their contents are undefined on entry. Inputs may overlap one another, outputs
 * overlap nothing. Everything is the runtime's and valid during the call only. */
typedef struct qnl_custom_call {
  const qnl_tensor* inputs;
  uint32_t input_count;
  const qnl_tensor* outputs;
  uint32_t output_count;
  /* The node's attributes, ascending by name: "alpha=0.5;axes=[1,2];mode=\"linear\"", never NULL. Integers;
   * floats, which have a '.', an exponent, or are inf, -inf or nan; strings with \" \\ and \xHH; lists of
   * these. quernel::CustomAttributes (custom_op.hpp) reads them. */
  const char* attributes;
  /* Room for what went wrong, to be written with a terminating zero by a call that fails. */
  char* message;
  uint64_t message_bytes;
} qnl_custom_call;

/* Computes the outputs from the inputs and attributes, and from nothing else: equal nodes of a model may be
 * computed once, unused ones not at all. Called on the thread that runs the session. Returns 0, or a
 * code that ends the run with QNL_CALLBACK_FAILED and the message. */
typedef int32_t (*qnl_custom_fn)(void* user, const qnl_custom_call* call);

typedef struct qnl_custom_op {
  uint32_t abi_version; /* QNL_CUSTOM_OP_ABI_VERSION; the first field in every version */
  const char* name;     /* "domain::Operator" */
  /* dtype and rank of every input, then of every output: "f32[?,?],i64[?]->f32[?,?]" */
  const char* signature;
  qnl_custom_fn function;
  void* user; /* handed to the function */
} qnl_custom_op;

/* ---- sessions */

typedef struct qnl_session qnl_session;

/* A value for the symbol of that name. */
typedef struct qnl_symbol_value {
  const char* name;
  int64_t value;
} qnl_symbol_value;
#define QNL_SYMBOL_UNSET INT64_MIN

/* Memory in four lifetimes, for the symbols' values of qnl_session_options. */
typedef struct qnl_requirements {
  uint32_t variant;         /* the one that is picked for the device */
  uint32_t alignment;       /* of every block that the caller supplies: at least 64, a power of two */
  uint64_t session_bytes;   /* session object, binding tables, recorded schedule, scratch of all threads */
  uint64_t workspace_bytes; /* meaningless between runs: sessions that never run at once may share it */
  uint64_t state_bytes;     /* kept from run to run */
  uint64_t io_bytes;        /* slots of all inputs and outputs; not needed for those that the caller binds */
  uint64_t constants_bytes; /* mapped from the bundle, never copied; for information */
  uint64_t code_bytes;      /* pages for the image, allocated by the device; for information */
} qnl_requirements;

/* All zero is a good default: entry point 0, everything allocated by the runtime. Pointers to memory stay the
 * caller's and must outlive the session; each needs the size of qnl_requirements, else QNL_MEMORY_TOO_SMALL.
 */
typedef struct qnl_session_options {
  const char* entry_point; /* NULL: the first */
  void* session_memory;
  uint64_t session_memory_bytes;
  void* workspace_memory;
  uint64_t workspace_memory_bytes;
  void* state_memory;
  uint64_t state_memory_bytes;
  void* io_memory;
  uint64_t io_memory_bytes;
  /* Non-zero: no slots are allocated for inputs and outputs; every one must be bound before a run. */
  int io_bound_by_caller;
  /* Not NULL: the new session is a child of this one, of the same bundle and device, another entry point,
   * say. It uses its parent's weights and code. A parent may be destroyed before its children: it cannot be
   * used any more then, and what it holds goes with the last of them; memory that the caller gave it has to
   * stay until then. */
  qnl_session* parent;
  /* Non-zero: the child uses its parent's states instead of its own. The two do not run at the same time
   * then: QNL_RUN_IN_FLIGHT. Submitted to the same thread or queue they run one after another. */
  int share_state;
  /* Values of symbols to make memory for. A symbol that is not named counts with its max where that is at
   * most 2^16, else with its min. */
  const qnl_symbol_value* symbols;
  uint32_t symbol_count;
  /* Functions of custom ops; more than the entry point needs is fine. Creation fails with
   * QNL_CUSTOM_OP_MISSING or QNL_CUSTOM_OP_MISMATCH where one is missing or of another signature. The array
   * may go after creation; what the functions and `user` point to may not. */
  const qnl_custom_op* custom_ops;
  uint32_t custom_op_count;
} qnl_session_options;

/* What qnl_session_create with the same arguments would need; allocates nothing. */
QNL_NODISCARD qnl_status qnl_session_query(const qnl_bundle* bundle, qnl_device* device,
                                           const qnl_session_options* options, qnl_requirements* requirements,
                                           qnl_error* error);
/* Picks the best variant for the device, loads its code, places all arenas and precomputes every binding.
 * bundle and device must outlive the session. State starts with its initial values. options may be NULL. */
QNL_NODISCARD qnl_status qnl_session_create(const qnl_bundle* bundle, qnl_device* device,
                                            const qnl_session_options* options, qnl_session** session,
                                            qnl_error* error);
/* A run in flight is cancelled and waited for. NULL is ignored. */
void qnl_session_destroy(qnl_session* session);

/* Copies tensor->data into the input named tensor->name (NULL: the only input). Name, dtype, shape and bytes
 * must be exactly those of the signature; where that has -1, any dim that the symbols' ranges allow. An input
 * bound before is copied into its bound memory. */
QNL_NODISCARD qnl_status qnl_session_set_input(qnl_session* session, const qnl_tensor* tensor,
                                               qnl_error* error);
/* Uses tensor->data itself, without a copy, as the input or output of that name from now on; checked as
 * above, aligned to the element size; kept alive by the caller. data NULL returns to the session's own slot.
 * For an output of symbolic shape, symbolic dims are ignored and bytes is the capacity; a run that needs more
 * fails. Outputs must not overlap any other bound tensor; this is checked by the next run. */
QNL_NODISCARD qnl_status qnl_session_bind(qnl_session* session, qnl_tensor_role role,
                                          const qnl_tensor* tensor, qnl_error* error);
/* The tensor with its current memory: for an output the result of the last run, for an input its slot, which
 * may be filled in place; for a state its current value, or no data
 * on a device whose memory the process does not reach (qnl_session_save_state). name NULL: the only one of
 * its role. data stays valid until it is bound again, memory grows or the session is destroyed. Filling an
 * input's slot counts as setting it. An input of symbolic shape has the shape that it was given, else the one
 * that follows from symbols set by name and by other inputs; an output that of the last run.
 * QNL_INPUT_NOT_SET when there is none yet. */
QNL_NODISCARD qnl_status qnl_session_get(qnl_session* session, qnl_tensor_role role, const char* name,
                                         qnl_tensor* tensor, qnl_error* error);

/* ---- symbols. Every run takes the values of symbols from the shapes of the inputs, and from these calls for
 * those that no input's shape gives. Inputs that disagree, values out of range and missing ones are errors
 * before anything runs. */

/* Gives the input tensor->name the shape tensor->shape, to be filled in place afterwards (qnl_session_get);
 * dtype, bytes and data are not looked at. Its contents are undefined when that changes its shape. */
QNL_NODISCARD qnl_status qnl_session_set_shape(qnl_session* session, const qnl_tensor* tensor,
                                               qnl_error* error);
/* Sets a symbol by name, for all runs to come; input shapes then have to agree. QNL_SYMBOL_UNSET takes it
 * back. */
QNL_NODISCARD qnl_status qnl_session_set_symbol(qnl_session* session, const char* name, int64_t value,
                                                qnl_error* error);
/* Makes memory for these values, as qnl_session_options::symbols does at creation; symbols that are not named
 * keep theirs. Runs within it do not allocate. Memory never shrinks. State is not touched; inputs and outputs
 * keep their values, but their addresses change. */
QNL_NODISCARD qnl_status qnl_session_reserve(qnl_session* session, const qnl_symbol_value* symbols,
                                             uint32_t count, qnl_error* error);

/* Runs the entry point once and returns when its outputs are complete. Every input must have been set, bound
 * or got once; inputs keep their values between runs. After a failure the outputs and states are undefined.
 */
QNL_NODISCARD qnl_status qnl_session_run(qnl_session* session, qnl_error* error);

/* ---- asynchronous runs. A session has one run in flight at most; its event says when that is over. Nothing
 * here allocates, except qnl_device_start_thread.
 *
 * Where a run happens: on a device's own thread, if it has been given one, in the order of submissions. Else,
 * on a device with a queue (Vulkan), a plan that needs no host before its end (no loops and branches, no
 * numbers read, no host callbacks) is put on the queue, and any number of sessions may be there at once, to
 * run in the order of submissions. Else the calling thread runs it before qnl_session_submit returns: on the
 * CPU nothing is asynchronous without a thread. */

typedef struct qnl_event qnl_event;

typedef struct qnl_submit_options {
  /* Runs of other sessions, of any device, that have to be over before this one begins: at most 8 events. If
   * one fails this run does not begin and ends with its status. Sessions behind them must outlive this run.
   * Where no thread is there to do it, qnl_session_submit waits for those that are not on the same queue. */
  qnl_event* const* wait_for;
  uint32_t wait_for_count;
  /* Called once when the run is over, before its event is done, by the thread that ran it or that finds it
   * complete (in qnl_event_wait and qnl_event_done); must not use the session. May be NULL. */
  void (*callback)(void* user, qnl_status status);
  void* user;
} qnl_submit_options;

/* Gives the device a separate thread, which runs what is submitted from now on and sleeps otherwise. It
 * ends when the device is closed. Does nothing where the device has one. */
QNL_NODISCARD qnl_status qnl_device_start_thread(qnl_device* device, qnl_error* error);

/* Submits a run. options may be NULL. Errors are those found before the run begins; how the run ended its
 * event says. *event is the session's, of this run until the next one; event may be NULL. */
QNL_NODISCARD qnl_status qnl_session_submit(qnl_session* session, const qnl_submit_options* options,
                                            qnl_event** event, qnl_error* error);
/* Non-zero when the run is over, or none has begun. */
int qnl_event_done(qnl_event* event);
/* Waits for the run, at most that long (~0: for ever), and returns how it ended: the status and error that
 * qnl_session_run would have given, QNL_CANCELLED, or QNL_TIMEOUT while it goes on. */
QNL_NODISCARD qnl_status qnl_event_wait(qnl_event* event, uint64_t timeout_nanoseconds, qnl_error* error);
/* Items of the run in flight that have not begun do not begin; it then ends with QNL_CANCELLED, and outputs
 * and states are undefined. What is on a device's queue already runs to its end. Does nothing when no run is
 * in flight. From any thread, also during qnl_session_run. */
void qnl_session_cancel(qnl_session* session);

/* Sets all state to its initial values. */
QNL_NODISCARD qnl_status qnl_session_reset_state(qnl_session* session, qnl_error* error);
/* Copies all state out of or into a session; bytes must be the state_bytes of its requirements. Restoring
 * into another session of the same bundle forks it. */
QNL_NODISCARD qnl_status qnl_session_save_state(qnl_session* session, void* data, uint64_t bytes,
                                                qnl_error* error);
QNL_NODISCARD qnl_status qnl_session_restore_state(qnl_session* session, const void* data, uint64_t bytes,
                                                   qnl_error* error);

/* Copies all state of one session into another of the same bundle, on any two devices, and so forks it. On
 * one device the copy stays there: nothing of it passes through memory of the process where the device has
 * its own. */
QNL_NODISCARD qnl_status qnl_session_copy_state(qnl_session* target, qnl_session* source, qnl_error* error);

/* A function the schedule calls: pointers to the item's bindings, in order, and their byte counts. Returns 0,
 * or a code that ends the run with QNL_CALLBACK_FAILED. */
typedef int32_t (*qnl_host_callback)(void* user, void* const* bindings, const uint64_t* bytes,
                                     uint32_t count);
/* Registers the function for every item with that callback name; QNL_UNKNOWN_NAME if the plan has none.
 * Custom ops get theirs through qnl_session_options. */
QNL_NODISCARD qnl_status qnl_session_set_callback(qnl_session* session, const char* name,
                                                  qnl_host_callback callback, void* user, qnl_error* error);

typedef enum qnl_item_kind {
  QNL_ITEM_DISPATCH = 0,
  QNL_ITEM_COPY = 1,
  QNL_ITEM_SYNCHRONIZE = 2,
  QNL_ITEM_HOST_CALLBACK = 3,
  QNL_ITEM_READ_SYMBOL = 4, /* sets a symbol to a number that was computed */
  QNL_ITEM_LOOP = 5,        /* runs the items in its body again and again */
  QNL_ITEM_BRANCH = 6       /* runs one of two bodies */
} qnl_item_kind;

typedef struct qnl_item_info {
  qnl_item_kind kind;
  const char* name;        /* kernel or callback name; "copy", "synchronize", "loop"… */
  const char* source_node; /* first model node it computes, "" when not recorded */
  uint64_t workgroups;     /* of the last run when symbolic */
  uint64_t flops;          /* these, too, where the bundle says how they follow from symbols */
  uint64_t bytes_read;
  uint64_t bytes_written;
} qnl_item_info;

uint32_t qnl_session_item_count(const qnl_session* session);
/* Item of the session's plan; QNL_INVALID_ARGUMENT past the end. */
QNL_NODISCARD qnl_status qnl_session_get_item(const qnl_session* session, uint32_t item, qnl_item_info* info);

/* As qnl_device_describe, of a session: where it runs, memory, recording, symbols, inputs and outputs, arenas
 * with their places, the kernels that it uses, items with their bindings. Not while a run is in flight. */
uint64_t qnl_session_describe(const qnl_session* session, qnl_text_form form, char* text, uint64_t bytes);

/* Called after each execution of an item with the time it took on the device, by the device's own clock; not
 * of loops and branches, whose time is that of the items in them. Items run one after another while it is
 * set, and the first run after that may allocate; NULL turns it off. */
typedef void (*qnl_profile_hook)(void* user, uint32_t item, uint64_t nanoseconds);
void qnl_session_set_profile(qnl_session* session, qnl_profile_hook hook, void* user);

/* ---- traces: everything a device does for its sessions, as it happens */

typedef enum qnl_trace_kind {
  QNL_TRACE_RUN = 0,  /* qnl_session_run, from call to return */
  QNL_TRACE_ITEM = 1, /* an item of the session's plan */
  QNL_TRACE_SUBMIT = 2,
  QNL_TRACE_WAIT = 3,     /* for what was submitted */
  QNL_TRACE_UPLOAD = 4,   /* memory of the process copied to where items read it: inputs, weights, state */
  QNL_TRACE_DOWNLOAD = 5, /* the other way */
  QNL_TRACE_COPY = 6,     /* within the device's memory, and filling it; not items */
  QNL_TRACE_RECORD = 7,   /* a command buffer */
  QNL_TRACE_DESCRIPTORS = 8,
  QNL_TRACE_PIPELINE = 9 /* made, or taken from the cache */
} qnl_trace_kind;

typedef struct qnl_trace_event {
  qnl_trace_kind kind;
  const qnl_session* session;                  /* NULL where it belongs to none */
  uint32_t item;                               /* of QNL_TRACE_ITEM: for qnl_session_get_item */
  int on_queue;                                /* non-zero: the device did it; zero: the calling thread */
  uint64_t begin_nanoseconds, end_nanoseconds; /* of CLOCK_MONOTONIC, or what the port has in its place */
  uint64_t bytes;                              /* of uploads, downloads and copies */
} qnl_trace_event;

/* Called when an event is over, on the thread that uses the device, never from two at once; it may describe
 * items, and use nothing else of the device and its sessions. Times on the
 * queue are the device's own, put on the host's clock so that nothing begins before it was submitted or ends
 * after it was seen complete. The event is valid during the call. */
typedef void (*qnl_trace_hook)(void* user, const qnl_trace_event* event);
/* Sets the hook for all sessions, from now on; NULL turns it off. Items run one after another while it is set, as with
 * qnl_session_set_profile. Not while a run is in flight. */
void qnl_device_set_trace(qnl_device* device, qnl_trace_hook hook, void* user);

/* ---- choosing a device: the Vulkan device where it can run the bundle, is right and faster than the CPU;
 * else the CPU. Right is what the bundle's test vectors expect, or without any what the CPU computes of
 * random input. */

/* A value is never reused: the decision's file holds them. */
typedef enum qnl_choice_reason {
  /* Vulkan */
  QNL_CHOICE_FASTER = 1,    /* right, and faster */
  QNL_CHOICE_ONLY = 2,      /* right on all test vectors; the CPU is not, or has no code in the bundle */
  QNL_CHOICE_UNCHECKED = 3, /* the bundle holds no test vectors, and the CPU cannot be asked */
  /* the CPU */
  QNL_CHOICE_NO_DEVICE = 10,  /* no driver, no such device, or no Vulkan in this runtime */
  QNL_CHOICE_NO_VARIANT = 11, /* no code in the bundle that the device can run */
  QNL_CHOICE_NO_MEMORY = 12,  /* the bundle needs more memory than the device has */
  QNL_CHOICE_FAILED = 13,     /* it cannot make a session, or failed while it ran */
  QNL_CHOICE_WRONG = 14,      /* it computes something else than a test vector, or the CPU, says */
  QNL_CHOICE_SLOWER = 15,
  QNL_CHOICE_SOFTWARE = 16 /* the driver computes on the CPU, and nothing says that it is fast */
} qnl_choice_reason;

/* All zero is a good default. */
typedef struct qnl_choice_options {
  const qnl_vulkan_options* vulkan; /* which device to try, and how; NULL: the best one */
  const qnl_cpu_options* cpu;       /* NULL: one thread */
  /* What the sessions will be: of this, entry_point, symbols and custom ops count. NULL: the defaults. */
  const qnl_session_options* session;
  /* File that keeps the decision, so that the next process need not try again: looked at only where bundle,
   * device, driver, runtime, CPU, its threads and the options are those of then, replaced as a whole where
   * not. Where it says the CPU and no driver has been installed since, Vulkan is not opened. One that cannot
   * be written is done without. NULL: none. At most 4000 characters. */
  const char* cache_path;
  int check_anew; /* non-zero: whatever the file says */
  int force;      /* non-zero: the Vulkan device even where the decision is against it, which choice->text
                     says; what keeps it from running the bundle at all is an error then */
} qnl_choice_options;

typedef struct qnl_choice {
  qnl_choice_reason reason;
  int is_vulkan;                                /* non-zero: the device is the Vulkan device */
  int is_cached;                                /* non-zero: the file said so */
  uint32_t test_count;                          /* test vectors that were compared */
  uint64_t vulkan_nanoseconds, cpu_nanoseconds; /* of a run of all of them, medians added up; 0: not timed */
  uint64_t key;                                 /* of the decision in its file; 0: it is not kept */
  uint64_t system_key;                          /* the same, of what is known before a device is opened */
  char text[508];                               /* what was chosen and why, for people */
} qnl_choice;

/* Opens the device to run the bundle on. Where the file says nothing, both devices run the bundle's test
 * vectors (--embed-tests), or random input with typical values of symbols where it holds none: results are
 * compared, then both are timed. An error only where neither device can run the bundle. options may be
 * NULL. */
QNL_NODISCARD qnl_status qnl_device_choose(const qnl_bundle* bundle, const qnl_choice_options* options,
                                           qnl_device** device, qnl_choice* choice, qnl_error* error);
/* For a chosen Vulkan device that has failed in use (QNL_DEVICE_FAULT): writes to the decision's file that
 * the CPU is to be chosen from now on, with this reason, and makes *choice say so. The program goes on with
 * qnl_device_open_cpu and a new session. */
void qnl_choice_give_up(const char* cache_path, qnl_choice* choice, const char* reason);

#ifdef __cplusplus
}
#endif

#endif /* QUERNEL_RUNTIME_H_ */
