/* The runtime's C interface: open a bundle, create a session on a device, set inputs, run, read outputs.
 *
 * Memory: qnl_session_create allocates everything that a session needs. Later allocations have three causes.
 * A shape larger than the session's memory makes that memory grow, unless the caller supplied it
 * (qnl_session_reserve makes room ahead). Some functions say that they allocate. A Vulkan device allocates
 * for new bindings, for callbacks, for pipelines of new bindings and for hooks.
 *
 * Threads: any number of threads may use a bundle or a device at once. One thread at a time may use a
 * session. Any thread may call qnl_session_cancel and use the session's event. While a run is in flight,
 * every other use of the session except destroying it fails with QNL_RUN_IN_FLIGHT. Setting a trace or
 * profile hook is not synchronised with runs.
 *
 * Over 600 lines because it holds every function an application may call, and half of it is documentation. */
#ifndef QUERNEL_RUNTIME_H_
#define QUERNEL_RUNTIME_H_

#include <stddef.h>
#include <stdint.h>

#include "schemas/kernel_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* major << 16 | minor << 8 | patch. A bundle names the oldest version that can run it. */
#define QNL_RUNTIME_VERSION 0x000100u

#define QNL_MAX_RANK 8u
#define QNL_DEFAULT_ALIGNMENT 64u /* bytes, of every arena that the runtime allocates */

#if defined(__GNUC__) || defined(__clang__)
#define QNL_NODISCARD __attribute__((warn_unused_result))
#else
#define QNL_NODISCARD
#endif

/* ---- status */

/* Codes are banded: 1xx the caller's arguments, 2xx the system, 3xx the bundle file, 4xx no code for this
 * device, 5xx during a run. A value is never reused. */
typedef enum qnl_status {
  QNL_OK = 0,

  QNL_INVALID_ARGUMENT = 100,
  QNL_UNKNOWN_NAME = 101, /* no entry point, tensor, symbol or callback has that name */
  QNL_DTYPE_MISMATCH = 102,
  QNL_SHAPE_MISMATCH = 103,
  QNL_SIZE_MISMATCH = 104,    /* the byte count does not match dtype and shape */
  QNL_MISALIGNED = 105,       /* a bound pointer or a memory block is not aligned */
  QNL_OVERLAP = 106,          /* a bound output overlaps another bound tensor */
  QNL_MEMORY_TOO_SMALL = 107, /* memory that the caller supplied */
  QNL_INPUT_NOT_SET = 108,    /* also: a symbol has a value neither from an input's shape nor from a call */
  QNL_SYMBOL_OUT_OF_RANGE = 109, /* outside a symbol's range, or of a size computed from symbols */
  QNL_RUN_IN_FLIGHT = 110,       /* by the session, or by one that shares its state */

  QNL_FILE_NOT_FOUND = 200,
  QNL_FILE_UNREADABLE = 201,
  QNL_OUT_OF_MEMORY = 202,
  QNL_CODE_MEMORY_REFUSED = 203, /* the system refuses executable pages to this process */
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
  QNL_INVALID_BUNDLE = 310,  /* the hashes match, but the contents contradict themselves */

  QNL_NO_MATCHING_VARIANT = 400,
  QNL_MALFORMED_IMAGE = 401,
  QNL_KERNEL_ABI_MISMATCH = 402,
  QNL_CUSTOM_OP_MISSING = 403,  /* no function for one of the bundle's custom ops */
  QNL_CUSTOM_OP_MISMATCH = 404, /* its function has another signature or ABI version */

  QNL_KERNEL_FAILED = 500,
  QNL_CALLBACK_FAILED = 501,
  QNL_CALLBACK_MISSING = 502,
  QNL_DEVICE_FAULT = 503, /* sticky: an earlier fault made the device unusable */
  QNL_CANCELLED = 504
} qnl_status;

/* Returns the static text of a status; never NULL. */
const char* qnl_status_text(qnl_status status);

/* Detail of a failure: "subject: expected X, found Y". Every function with an `error` parameter accepts NULL.
 * It writes *error only when it fails, and always terminates the text. The text is empty in a runtime built
 * without texts (QUERNEL_ERROR_TEXTS=OFF). */
typedef struct qnl_error {
  qnl_status status;
  char text[508];
} qnl_error;

/* Returns the QNL_RUNTIME_VERSION of the library. */
uint32_t qnl_runtime_version(void);

/* Returns the bytes of `count` elements, packed types rounded up to whole bytes; 0 for an unknown dtype. */
uint64_t qnl_dtype_bytes(qnl_dtype dtype, uint64_t count);
/* Returns "f32", "i8", "bool"…; "?" for an unknown dtype. */
const char* qnl_dtype_name(qnl_dtype dtype);

/* ---- tensors */

/* A dense row-major tensor, or the description of one (data NULL). In a bundle's signature, a dim that
 * depends on symbols is -1, and bytes is then 0. */
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
  int verify_weights; /* non-zero: also check the hashes of constants and test values, which reads them all */
  void* memory;       /* for the bundle object, 64-byte aligned; NULL: the runtime allocates it */
  uint64_t memory_bytes; /* at least qnl_bundle_memory_bytes() */
} qnl_bundle_options;

/* Returns the size of the object that qnl_bundle_open_* places in options->memory. */
uint64_t qnl_bundle_memory_bytes(void);

/* Maps the file read-only and checks it: header, versions, features, hashes of structure and code, then every
 * index and range. Later calls need no such checks. Constants are only mapped. The file must not be modified
 * while the bundle is open (replace it by renaming). options may be NULL. On failure *bundle is NULL. */
QNL_NODISCARD qnl_status qnl_bundle_open_file(const char* path, const qnl_bundle_options* options,
                                              qnl_bundle** bundle, qnl_error* error);
/* As above, from memory. `data`: 64-byte aligned; the caller keeps it alive and unchanged until the bundle is
 * closed. */
QNL_NODISCARD qnl_status qnl_bundle_open_memory(const void* data, uint64_t bytes,
                                                const qnl_bundle_options* options, qnl_bundle** bundle,
                                                qnl_error* error);
/* Closes a bundle; all its sessions must have been destroyed. NULL is ignored. */
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
  uint64_t code_bytes; /* of all variants */
  uint32_t symbol_count;
} qnl_bundle_info;
void qnl_bundle_get_info(const qnl_bundle* bundle, qnl_bundle_info* info);

typedef struct qnl_entry_info {
  const char* name;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t state_count;
} qnl_entry_info;
/* Describes an entry point by index; QNL_INVALID_ARGUMENT past the end. */
QNL_NODISCARD qnl_status qnl_bundle_get_entry(const qnl_bundle* bundle, uint32_t entry, qnl_entry_info* info);
/* Describes tensor `index` of `role` in an entry point's signature, with data NULL. QNL_INVALID_ARGUMENT past
 * the end. */
QNL_NODISCARD qnl_status qnl_bundle_get_tensor(const qnl_bundle* bundle, uint32_t entry, qnl_tensor_role role,
                                               uint32_t index, qnl_tensor* tensor);

/* Writes the text of one dim of that tensor: "64", "batch", "(batch * 2)". The text is cut to `bytes` and
 * always terminated. */
QNL_NODISCARD qnl_status qnl_bundle_get_dim_text(const qnl_bundle* bundle, uint32_t entry,
                                                 qnl_tensor_role role, uint32_t index, uint32_t dim,
                                                 char* text, uint64_t bytes);

/* A symbol: a number that sizes depend on. It is a multiple of multiple_of, from min to max. */
typedef struct qnl_symbol_info {
  const char* name;
  int64_t min;
  int64_t max;
  int64_t multiple_of;
  int runtime; /* non-zero: computed during a run; zero: set by input shapes or qnl_session_set_symbol */
} qnl_symbol_info;
/* Describes a symbol by index; QNL_INVALID_ARGUMENT past the end. */
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

/* ---- test vectors: inputs and their expected outputs, in bundles compiled with --embed-tests */

typedef struct qnl_test_info {
  const char* name;
  uint32_t entry_point;
  uint32_t tensor_count; /* of inputs and outputs */
} qnl_test_info;
/* Describes a test vector by index; QNL_INVALID_ARGUMENT past the end. */
QNL_NODISCARD qnl_status qnl_bundle_get_test(const qnl_bundle* bundle, uint32_t test, qnl_test_info* info);

typedef struct qnl_test_tensor {
  qnl_tensor tensor;    /* data points into the bundle, read-only, 64-byte aligned */
  qnl_tensor_role role; /* input or output */
  /* The tolerance of an output of a float type: |found - expected| <= atol + rtol * |expected|. Unless
   * mean_atol is negative, the mean of |found - expected| is at most mean_atol. With top1, the largest value
   * of every row (last axis) is at the same index. Other outputs must be equal. */
  double rtol, atol, mean_atol;
  int top1;
} qnl_test_tensor;
/* Describes tensor `index` of a test vector; QNL_INVALID_ARGUMENT past the end. */
QNL_NODISCARD qnl_status qnl_bundle_get_test_tensor(const qnl_bundle* bundle, uint32_t test, uint32_t index,
                                                    qnl_test_tensor* tensor);

/* ---- devices */

typedef struct qnl_device qnl_device;

typedef struct qnl_cpu_options {
  /* 0 or 1: everything runs on the calling thread; N: also on N - 1 workers, at most 256 threads */
  uint32_t threads;
  uint64_t feature_mask; /* features to use, among those the CPU has; 0: all */
} qnl_cpu_options;

/* Opens the CPU that this process runs on. options may be NULL. Idle workers sleep. */
QNL_NODISCARD qnl_status qnl_device_open_cpu(const qnl_cpu_options* options, qnl_device** device,
                                             qnl_error* error);
/* Opens a device that accepts any variant, validates and counts launches, and computes nothing. */
QNL_NODISCARD qnl_status qnl_device_open_null(qnl_device** device, qnl_error* error);

/* Vulkan. Runtimes built with it define QUERNEL_WITH_VULKAN for the targets that link them. The loader
 * library and the driver are looked up when a device is opened. */
typedef struct qnl_vulkan_options {
  /* Which device: its index in qnl_vulkan_list, its type ("discrete", "integrated", "virtual", "cpu"), or a
   * part of its name in any case. NULL or "": the best one, in the order of these types. */
  const char* device;
  uint64_t feature_mask; /* features to use, among those the device has; 0: all */
  /* How long a submission may take before the device is given up (QNL_DEVICE_FAULT); 0: no limit. */
  uint64_t timeout_nanoseconds;
  /* File that keeps compiled pipelines between processes, at most 4000 characters; NULL: none. It is checked
   * when it is read, and written when the device is closed. A file of another device or driver is ignored. */
  const char* cache_path;
  /* 0: off. 1: Khronos' validation layer; opening fails where the layer is not installed. 2: also its
   * synchronisation validation, which checks the memory that descriptors name, not what kernels access. */
  int validation;
  /* For tests. Non-zero: treats the device as if it had separate memory that the process cannot access. */
  int copy_always;
  /* Receives the validation layer's warnings and errors; may be NULL. */
  void (*message)(void* user, const char* text);
  void* message_user;
  /* The companion CPU: it runs a part of the plans of targets like vulkan/x86-64-v3. An open CPU device,
   * which must outlive this one. NULL: the session skips such variants. */
  qnl_device* companion;
} qnl_vulkan_options;

/* Opens a Vulkan device. options may be NULL. QNL_NO_MATCHING_VARIANT without Vulkan 1.1, without a driver or
 * without such a device: the text says what to do, and the caller may use the CPU instead. */
QNL_NODISCARD qnl_status qnl_device_open_vulkan(const qnl_vulkan_options* options, qnl_device** device,
                                                qnl_error* error);

typedef struct qnl_vulkan_device_info {
  char name[256];
  const char* type; /* "discrete", "integrated", "virtual", "cpu" or "other" */
  uint32_t api_version, driver_version, vendor_id, device_id; /* as Vulkan reports them */
  uint64_t features;                                          /* QNL_SPIRV_* */
  int usable;                                                 /* non-zero: the device can be opened */
} qnl_vulkan_device_info;
/* Lists the machine's devices: writes at most `capacity` of them, and their number to *count. */
QNL_NODISCARD qnl_status qnl_vulkan_list(qnl_vulkan_device_info* devices, uint32_t capacity, uint32_t* count,
                                         qnl_error* error);

/* Closes a device; all its sessions must have been destroyed. NULL is ignored. */
void qnl_device_close(qnl_device* device);

typedef struct qnl_device_info {
  const char* name;     /* "cpu", "null", "vulkan:…" */
  qnl_arch arch;        /* QNL_ARCH_NONE: the device accepts every variant */
  uint64_t features;    /* QNL_<ARCH>_* bits that the device has and may use */
  uint32_t threads;     /* threads that run workgroups */
  uint64_t memory_used; /* bytes of arenas and code that sessions hold now */
  /* Limits; UINT64_MAX: unknown or none. The sizes of qnl_session_query must fit in them before a session is
   * created: workspace, state and io are one block each. */
  uint64_t memory_bytes;      /* memory for blocks and constants, used or not */
  uint64_t max_block_bytes;   /* the largest block */
  uint64_t max_binding_bytes; /* the largest tensor that every kernel can take; some take larger ones */
} qnl_device_info;
void qnl_device_get_info(const qnl_device* device, qnl_device_info* info);

typedef enum qnl_text_form { QNL_TEXT = 0, QNL_JSON = 1 } qnl_text_form; /* for people; one JSON object */

/* Writes a description of the device to `text`: name, features, memory and limits; for Vulkan also driver,
 * versions and counts of its work. The text is cut to `bytes` and always terminated. Returns the bytes of the
 * whole text with its terminating zero. text may be NULL to get only these. Unknown numbers are null in JSON.
 */
uint64_t qnl_device_describe(const qnl_device* device, qnl_text_form form, char* text, uint64_t bytes);

/* ---- custom ops: operators that the compiler does not know, computed by functions of the application. A
 * bundle lists their names, "domain::Operator", and signatures; qnl_session_options takes the functions. */

/* Version of qnl_custom_call, qnl_custom_fn and qnl_custom_op as declared here. */
#define QNL_CUSTOM_OP_ABI_VERSION 1u

/* The arguments of one call. Tensors are dense and row-major, with the signature's dtypes and ranks, this
 * run's shape and bytes, and no names. data is aligned to the element size. The function must not write
 * inputs. It must write every byte of the outputs, whose contents are undefined on entry. Inputs may overlap
 * one another; outputs overlap nothing. The runtime owns everything here, and it is valid during the call
 * only. */
typedef struct qnl_custom_call {
  const qnl_tensor* inputs;
  uint32_t input_count;
  const qnl_tensor* outputs;
  uint32_t output_count;
  /* The node's attributes, sorted by name, never NULL: "alpha=0.5;axes=[1,2];mode=\"linear\"". Values are
   * integers; floats, which have a '.', an exponent, or are inf, -inf or nan; strings with \" \\ and \xHH;
   * lists of these. quernel::CustomAttributes (custom_op.hpp) reads them. */
  const char* attributes;
  /* Room for an error text. A call that fails may write it, with a terminating zero. */
  char* message;
  uint64_t message_bytes;
} qnl_custom_call;

/* Computes the outputs from the inputs and attributes, and from nothing else: the compiler may merge equal
 * nodes and drop unused ones. The runtime calls it on the thread that runs the session. Returns 0, or a code
 * that ends the run with QNL_CALLBACK_FAILED and the message. */
typedef int32_t (*qnl_custom_fn)(void* user, const qnl_custom_call* call);

typedef struct qnl_custom_op {
  uint32_t abi_version; /* QNL_CUSTOM_OP_ABI_VERSION; the first field in every version */
  const char* name;     /* "domain::Operator" */
  /* dtype and rank of every input, then of every output: "f32[?,?],i64[?]->f32[?,?]" */
  const char* signature;
  qnl_custom_fn function;
  void* user; /* passed to the function */
} qnl_custom_op;

/* ---- sessions */

typedef struct qnl_session qnl_session;

/* A symbol's name and a value for it. */
typedef struct qnl_symbol_value {
  const char* name;
  int64_t value;
} qnl_symbol_value;
#define QNL_SYMBOL_UNSET INT64_MIN

/* Memory in four lifetimes, for the symbol values of qnl_session_options. In bytes, except variant. */
typedef struct qnl_requirements {
  uint32_t variant;         /* index of the variant picked for the device */
  uint32_t alignment;       /* of every block that the caller supplies: a power of two, at least 64 */
  uint64_t session_bytes;   /* session object, binding tables, recorded schedule, scratch of all threads */
  uint64_t workspace_bytes; /* undefined between runs: sessions that never run at once may share it */
  uint64_t state_bytes;     /* kept from run to run */
  uint64_t io_bytes;        /* slots of all inputs and outputs; 0 with io_bound_by_caller */
  /* For information: mapped from the bundle; a device that cannot use them in place holds one copy. */
  uint64_t constants_bytes;
  uint64_t code_bytes; /* for information: the variant's code in the bundle */
} qnl_requirements;

/* All zero is a good default: entry point 0, the runtime allocates everything. Memory pointers stay the
 * caller's and must outlive the session. Each block must have at least the size of qnl_requirements, else
 * QNL_MEMORY_TOO_SMALL. */
typedef struct qnl_session_options {
  const char* entry_point; /* NULL: the first one */
  void* session_memory;
  uint64_t session_memory_bytes;
  void* workspace_memory;
  uint64_t workspace_memory_bytes;
  void* state_memory;
  uint64_t state_memory_bytes;
  void* io_memory;
  uint64_t io_memory_bytes;
  /* Non-zero: inputs and outputs get no slots; the caller must bind every one before a run. */
  int io_bound_by_caller;
  /* Not NULL: the new session becomes a child of this one, on the same bundle and device; its entry point may
   * differ. It uses its parent's weights and code. A parent may be destroyed before its children. It cannot
   * be used afterwards, and its resources are released with the last child; memory that the caller supplied
   * for it must stay valid until then. */
  qnl_session* parent;
  /* Non-zero: the child uses its parent's states instead of its own. The two must not run at the same time:
   * QNL_RUN_IN_FLIGHT. Runs submitted to the same thread or queue follow one another. */
  int share_state;
  /* Symbol values to allocate memory for. A symbol not named here counts with its max if that is at most
   * 2^16, else with its min. */
  const qnl_symbol_value* symbols;
  uint32_t symbol_count;
  /* Functions of custom ops; entries that the entry point does not need are allowed. Creation fails with
   * QNL_CUSTOM_OP_MISSING without a function, and with QNL_CUSTOM_OP_MISMATCH for another signature or ABI
   * version. The array may be freed after creation; the functions and `user` must stay valid. */
  const qnl_custom_op* custom_ops;
  uint32_t custom_op_count;
} qnl_session_options;

/* Computes what qnl_session_create with the same arguments would need; allocates nothing. */
QNL_NODISCARD qnl_status qnl_session_query(const qnl_bundle* bundle, qnl_device* device,
                                           const qnl_session_options* options, qnl_requirements* requirements,
                                           qnl_error* error);
/* Picks the best variant for the device, loads its code, places all arenas and precomputes every binding.
 * bundle and device must outlive the session. State starts with its initial values. options may be NULL. */
QNL_NODISCARD qnl_status qnl_session_create(const qnl_bundle* bundle, qnl_device* device,
                                            const qnl_session_options* options, qnl_session** session,
                                            qnl_error* error);
/* Destroys a session. A submitted run in flight is cancelled and waited for first. NULL is ignored. */
void qnl_session_destroy(qnl_session* session);

/* Copies tensor->data into the input named tensor->name (NULL: the only input). Name, dtype, shape and bytes
 * must equal the signature's. A dim that is -1 there may have any value in the symbols' ranges. A bound input
 * keeps its binding: the copy goes to the bound memory. */
QNL_NODISCARD qnl_status qnl_session_set_input(qnl_session* session, const qnl_tensor* tensor,
                                               qnl_error* error);
/* Binds tensor->data as the input or output of that name, without a copy, from now on. It is checked as above
 * and must be aligned to the element size; the caller keeps it alive. data NULL returns to the session's own
 * slot; an input must then be set again. For an output of symbolic shape, symbolic dims are ignored and bytes
 * is the capacity; a run that needs more fails. Outputs must not overlap any other bound tensor; the next run
 * checks this. */
QNL_NODISCARD qnl_status qnl_session_bind(qnl_session* session, qnl_tensor_role role,
                                          const qnl_tensor* tensor, qnl_error* error);
/* Returns the tensor with its current memory in *tensor. name NULL: the only one of its role.
 *
 * Input: its slot, which the caller may fill in place; this counts as setting it. A symbolic shape is the one
 * given before, else the one computed from symbols set by name and by other inputs; QNL_INPUT_NOT_SET without
 * either. Output: the result and shape of the last run. State: its current value; data is NULL if the process
 * cannot access the device's memory (use qnl_session_save_state).
 *
 * data stays valid until the tensor is bound again, memory grows or the session is destroyed. */
QNL_NODISCARD qnl_status qnl_session_get(qnl_session* session, qnl_tensor_role role, const char* name,
                                         qnl_tensor* tensor, qnl_error* error);

/* ---- symbols. Before every run, input shapes set the values of symbols. The calls below set those that no
 * input shape sets. Conflicting inputs, values out of range and missing values are errors before anything
 * runs. */

/* Gives the input tensor->name the shape tensor->shape, to be filled in place afterwards (qnl_session_get).
 * dtype, bytes and data are ignored. If the shape changes, the contents become undefined. */
QNL_NODISCARD qnl_status qnl_session_set_shape(qnl_session* session, const qnl_tensor* tensor,
                                               qnl_error* error);
/* Sets a symbol by name, for all later runs; input shapes must then agree. QNL_SYMBOL_UNSET removes the
 * value. */
QNL_NODISCARD qnl_status qnl_session_set_symbol(qnl_session* session, const char* name, int64_t value,
                                                qnl_error* error);
/* Allocates memory for these values, as qnl_session_options::symbols does at creation; symbols not named keep
 * theirs. Runs within these values do not grow memory. Memory never shrinks. State is not touched. Inputs and
 * outputs keep their contents, but their addresses may change. */
QNL_NODISCARD qnl_status qnl_session_reserve(qnl_session* session, const qnl_symbol_value* symbols,
                                             uint32_t count, qnl_error* error);

/* Runs the entry point once and returns when its outputs are complete. Every input must have been set, bound
 * or got before; inputs keep their values between runs. After a failure, outputs and states are undefined. */
QNL_NODISCARD qnl_status qnl_session_run(qnl_session* session, qnl_error* error);

/* ---- asynchronous runs. A session has at most one run in flight; its event tells when it is over.
 *
 * A run is executed in one of three ways:
 *   - on the device's thread (qnl_device_start_thread), in the order of submissions;
 *   - else on the device's queue (Vulkan), if nothing in the plan needs the calling thread before its end (no
 *     loops, branches, numbers read or host callbacks). Any number of sessions may be queued there at once;
 *     they run in the order of submissions;
 *   - else on the calling thread, before qnl_session_submit returns. The CPU device needs a thread to run
 *     asynchronously. */

typedef struct qnl_event qnl_event;

typedef struct qnl_submit_options {
  /* Runs of other sessions, on any device, that must be over before this one begins: at most 8 events. If one
   * fails, this run does not begin and ends with its status. The sessions of these events must outlive this
   * run. Without a device thread, qnl_session_submit waits for the runs that are not on the same queue. */
  qnl_event* const* wait_for;
  uint32_t wait_for_count;
  /* Called once when the run is over, before its event is done. The caller is the thread that ran it, or one
   * that sees it complete (in qnl_event_wait or qnl_event_done). Must not use the session. May be NULL. */
  void (*callback)(void* user, qnl_status status);
  void* user;
} qnl_submit_options;

/* Starts a thread for the device, which runs everything submitted from now on and sleeps otherwise. It ends
 * when the device is closed. Allocates. Does nothing if the device has a thread already. */
QNL_NODISCARD qnl_status qnl_device_start_thread(qnl_device* device, qnl_error* error);

/* Submits a run. options may be NULL. Returns the errors found before the run begins; the event says how the
 * run ended. *event belongs to the session and stands for this run until the next one. event may be NULL. */
QNL_NODISCARD qnl_status qnl_session_submit(qnl_session* session, const qnl_submit_options* options,
                                            qnl_event** event, qnl_error* error);
/* Returns non-zero when the run is over or none has begun. */
int qnl_event_done(qnl_event* event);
/* Waits for the run, at most timeout_nanoseconds (~0: no limit). Returns how it ended: the status and error
 * of qnl_session_run, QNL_CANCELLED, or QNL_TIMEOUT if it is still running. */
QNL_NODISCARD qnl_status qnl_event_wait(qnl_event* event, uint64_t timeout_nanoseconds, qnl_error* error);
/* Cancels the run in flight: items that have not begun are skipped, the run ends with QNL_CANCELLED, and
 * outputs and states are undefined. Work already on a device's queue runs to its end. Does nothing if no run
 * is in flight. May be called from any thread, also during qnl_session_run. */
void qnl_session_cancel(qnl_session* session);

/* Sets all state to its initial values. */
QNL_NODISCARD qnl_status qnl_session_reset_state(qnl_session* session, qnl_error* error);
/* Copies all state out of or into a session. bytes must equal the state_bytes of its requirements. Restoring
 * into another session of the same bundle forks it. */
QNL_NODISCARD qnl_status qnl_session_save_state(qnl_session* session, void* data, uint64_t bytes,
                                                qnl_error* error);
QNL_NODISCARD qnl_status qnl_session_restore_state(qnl_session* session, const void* data, uint64_t bytes,
                                                   qnl_error* error);

/* Copies all state of one session into another of the same bundle, on the same or another device; this forks
 * it. On one device, separate device memory is copied without passing through the process. Between two
 * devices it may allocate up to 1 MiB while it copies. */
QNL_NODISCARD qnl_status qnl_session_copy_state(qnl_session* target, qnl_session* source, qnl_error* error);

/* A function that the schedule calls. `bindings`, `bytes`: the pointers and byte counts of the item's
 * bindings, in order. Returns 0, or a code that ends the run with QNL_CALLBACK_FAILED. */
typedef int32_t (*qnl_host_callback)(void* user, void* const* bindings, const uint64_t* bytes,
                                     uint32_t count);
/* Registers the function for every item with that callback name; QNL_UNKNOWN_NAME if the plan has none.
 * Custom ops are registered in qnl_session_options instead. */
QNL_NODISCARD qnl_status qnl_session_set_callback(qnl_session* session, const char* name,
                                                  qnl_host_callback callback, void* user, qnl_error* error);

typedef enum qnl_item_kind {
  QNL_ITEM_DISPATCH = 0,
  QNL_ITEM_COPY = 1,
  QNL_ITEM_SYNCHRONIZE = 2,
  QNL_ITEM_HOST_CALLBACK = 3,
  QNL_ITEM_READ_SYMBOL = 4,       /* sets a symbol to a computed number */
  QNL_ITEM_LOOP = 5,              /* repeats the items in its body */
  QNL_ITEM_BRANCH = 6,            /* runs one of two bodies */
  QNL_ITEM_COMPANION_DISPATCH = 7 /* a kernel on the companion CPU (qnl_vulkan_options::companion) */
} qnl_item_kind;

typedef struct qnl_item_info {
  qnl_item_kind kind;
  const char* name;        /* of the kernel or callback; "copy", "synchronize", "loop"… */
  const char* source_node; /* first model node that the item computes; "" if not recorded */
  uint64_t workgroups;     /* of the last run if symbolic */
  uint64_t flops;          /* so are flops and bytes, if the bundle says how they depend on symbols */
  uint64_t bytes_read;
  uint64_t bytes_written;
} qnl_item_info;

uint32_t qnl_session_item_count(const qnl_session* session);
/* Describes an item of the session's plan; QNL_INVALID_ARGUMENT past the end. */
QNL_NODISCARD qnl_status qnl_session_get_item(const qnl_session* session, uint32_t item, qnl_item_info* info);

/* Describes a session, as qnl_device_describe does a device. It lists where it runs, memory, recording,
 * symbols, inputs and outputs, arenas and their places, the kernels in use, items and their bindings. Must
 * not be called while a run is in flight. Allocates while it runs. */
uint64_t qnl_session_describe(const qnl_session* session, qnl_text_form form, char* text, uint64_t bytes);

/* Called after each execution of an item, with its time by the device's clock, or by the CPU's if the queue
 * has none. Not called for loops and branches, whose time is that of their items. Items run one after another
 * while a hook is set, and the first run after that may allocate. NULL removes the hook. */
typedef void (*qnl_profile_hook)(void* user, uint32_t item, uint64_t nanoseconds);
void qnl_session_set_profile(qnl_session* session, qnl_profile_hook hook, void* user);

/* ---- traces: everything a device does for its sessions, in real time */

typedef enum qnl_trace_kind {
  /* A run by the calling thread or the device's thread, without its checks; not one on a queue. */
  QNL_TRACE_RUN = 0,
  QNL_TRACE_ITEM = 1, /* an item of the session's plan */
  QNL_TRACE_SUBMIT = 2,
  QNL_TRACE_WAIT = 3,     /* waiting for submitted work */
  QNL_TRACE_UPLOAD = 4,   /* the process's memory copied to device memory: inputs, weights, state */
  QNL_TRACE_DOWNLOAD = 5, /* the reverse */
  QNL_TRACE_COPY = 6,     /* copies and fills within the device's memory that are not items */
  QNL_TRACE_RECORD = 7,   /* recording a command buffer */
  QNL_TRACE_DESCRIPTORS = 8,
  QNL_TRACE_PIPELINE = 9 /* compiled, or taken from the cache */
} qnl_trace_kind;

typedef struct qnl_trace_event {
  qnl_trace_kind kind;
  const qnl_session* session; /* NULL if it belongs to none */
  uint32_t item;              /* for QNL_TRACE_ITEM: index for qnl_session_get_item */
  int on_queue;               /* non-zero: executed by the device; zero: by the calling thread */
  uint64_t begin_nanoseconds, end_nanoseconds; /* CLOCK_MONOTONIC, or the port's clock */
  uint64_t bytes;                              /* of uploads, downloads and copies */
} qnl_trace_event;

/* Called when an event is over, on the thread that uses the device. One device never calls it from two
 * threads at once; its companion CPU is another device. The hook may describe items, and must use nothing
 * else of the device and its sessions. Times on the queue come from the device's clock. They are mapped to
 * the process's clock so that nothing begins before its submission or ends after its completion was seen. The
 * event is valid during the call only. */
typedef void (*qnl_trace_hook)(void* user, const qnl_trace_event* event);
/* Sets the hook for all sessions, from now on; NULL removes it. A companion CPU gets the same hook. Items run
 * one after another while a hook is set, as with qnl_session_set_profile. Must not be called while a run is
 * in flight. */
void qnl_device_set_trace(qnl_device* device, qnl_trace_hook hook, void* user);

/* ---- choosing a device: the Vulkan device if it can run the bundle, is right, and is faster than the CPU;
 * else the CPU. Right means: outputs match the bundle's test vectors, or without any the CPU's outputs for
 * random input. */

/* A value is never reused: the decision file stores them. */
typedef enum qnl_choice_reason {
  /* The Vulkan device is chosen. */
  QNL_CHOICE_FASTER = 1,    /* right and faster */
  QNL_CHOICE_ONLY = 2,      /* right on all test vectors; the CPU is not, or has no code in the bundle */
  QNL_CHOICE_UNCHECKED = 3, /* the bundle holds no test vectors, and the CPU cannot check it */
  /* The CPU is chosen. */
  QNL_CHOICE_NO_DEVICE = 10,  /* no driver, no such device, or no Vulkan in this runtime */
  QNL_CHOICE_NO_VARIANT = 11, /* the bundle holds no code that the device can run */
  QNL_CHOICE_NO_MEMORY = 12,  /* the bundle needs more memory than the device has */
  QNL_CHOICE_FAILED = 13,     /* it cannot create a session, or failed during a run */
  QNL_CHOICE_WRONG = 14,      /* its outputs differ from a test vector, or from the CPU's */
  QNL_CHOICE_SLOWER = 15,
  QNL_CHOICE_SOFTWARE = 16 /* the driver computes on the CPU, and nothing shows that it is fast */
} qnl_choice_reason;

/* All zero is a good default. */
typedef struct qnl_choice_options {
  const qnl_vulkan_options* vulkan; /* which device to try, and how; NULL: the best one */
  const qnl_cpu_options* cpu;       /* NULL: one thread */
  /* Options of the sessions to come: entry_point, symbols and custom ops are used. NULL: the defaults. */
  const qnl_session_options* session;
  /* File that keeps the decision, so that the next process need not measure again; at most 4000 characters;
   * NULL: none. It is used only if bundle, device, driver, runtime version, CPU, number of threads, entry
   * point and Vulkan options are the same; symbol values and custom ops do not count. Otherwise a new
   * measurement replaces the whole file. If it says the CPU and the installed drivers are the same, Vulkan is
   * not opened. A file that cannot be written is ignored. */
  const char* cache_path;
  int check_anew; /* non-zero: measure again, whatever the file says */
  /* Non-zero: takes the Vulkan device even if the decision is against it; choice->text then says why. If the
   * device cannot run the bundle at all, this is an error. */
  int force;
} qnl_choice_options;

typedef struct qnl_choice {
  qnl_choice_reason reason;
  int is_vulkan;                                /* non-zero: the Vulkan device was chosen */
  int is_cached;                                /* non-zero: the decision comes from the file */
  uint32_t test_count;                          /* number of test vectors compared */
  uint64_t vulkan_nanoseconds, cpu_nanoseconds; /* one run of all of them, medians added; 0: not timed */
  uint64_t key;                                 /* of the decision in its file; 0: it is not kept */
  uint64_t system_key;                          /* likewise, of what is known before a device is opened */
  char text[508];                               /* what was chosen and why, for people */
} qnl_choice;

/* Opens the device to run the bundle on. Without a decision in the file, both devices run the bundle's test
 * vectors (--embed-tests). Without test vectors, they run random input with typical values of symbols.
 * Results are compared, then both devices are timed. Fails only if neither device can run the bundle, or as
 * options->force says. options may be NULL. */
QNL_NODISCARD qnl_status qnl_device_choose(const qnl_bundle* bundle, const qnl_choice_options* options,
                                           qnl_device** device, qnl_choice* choice, qnl_error* error);
/* For a chosen Vulkan device that failed in use (QNL_DEVICE_FAULT): records in the decision file that the CPU
 * is to be chosen from now on, with this reason, and updates *choice accordingly. The program goes on with
 * qnl_device_open_cpu and a new session. */
void qnl_choice_give_up(const char* cache_path, qnl_choice* choice, const char* reason);

#ifdef __cplusplus
}
#endif

#endif /* QUERNEL_RUNTIME_H_ */
