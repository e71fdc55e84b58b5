// quernel-run: loads a bundle, runs one entry point on a device of this machine, prints or stores the
// outputs.
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <string>
#include <vector>

#include "command_line.h"
#include "describe_device.h"
#include "list_bundle.h"
#include "open_device.h"
#include "output_text.h"
#include "quernel/runtime.hpp"
#include "record_run.h"
#include "run_bundles.h"
#include "run_tests.h"
#include "runtime/choose/test_vectors.h"
#include "state_file.h"
#include "tensor_file.h"
#include "trace_file.h"

using namespace quernel::run;
using quernel::runtime::shape_symbols;
using quernel::tensor_file::element_count;
using quernel::tensor_file::Error;
using quernel::tensor_file::fill_random;
using quernel::tensor_file::has_own_shape;
using quernel::tensor_file::HostTensor;
using quernel::tensor_file::seed_of;
using quernel::tensor_file::to_host;

namespace {

int fail(const std::string& message) {
  fprintf(stderr, "quernel-run: %s\n", shown(message.c_str()).c_str());
  return 1;
}

int fail(const qnl_error& error) { return fail(error_text(error)); }

// The entry point's index; the bundle has it, because the session does.
uint32_t entry_index(const quernel::Bundle& bundle, const Options& options) {
  qnl_entry_info entry;
  for (uint32_t e = 0; qnl_bundle_get_entry(bundle.get(), e, &entry) == QNL_OK; ++e)
    if (options.entry == entry.name) return e;
  return 0;
}

// Finds the tensor an assignment means, the longest name that it begins with, and its value.
Error find_tensor(const std::vector<qnl_tensor>& tensors, const Assignment& assignment, const char* what,
                  size_t* index, std::string* value) {
  const std::string& text = assignment.text;
  size_t longest = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    size_t length = strlen(tensors[i].name);
    if (length + 1 <= longest || text.size() <= length || text[length] != '=' ||
        text.compare(0, length, tensors[i].name) != 0)
      continue;
    *index = i;
    longest = length + 1;
  }
  *value = longest > 0 ? text.substr(longest) : assignment.value;
  if (longest > 0) return std::nullopt;
  if (assignment.name.empty() && tensors.size() == 1) {
    *index = 0;
    return std::nullopt;
  }
  std::string names;
  for (size_t i = 0; i < tensors.size(); ++i) {
    names += std::string(i == 0 ? "" : ", ") + "'" + tensors[i].name + "'";
  }
  return std::string("unknown name: ") + what + " '" + assignment.name + "': expected one of " + names;
}

bool is_symbolic(const qnl_tensor& t) {
  for (uint32_t d = 0; d < t.rank; ++d)
    if (t.shape[d] < 0) return true;
  return false;
}

// An input on its way into the session.
struct Input {
  qnl_tensor signature;
  std::string specification = "random:0";
  HostTensor value;
  bool given = false;  // on the command line
  bool read = false;
};

Error read_input(Input* input, const qnl_tensor& shaped) {
  HostTensor expected;
  expected.name = shaped.name;
  expected.dtype = shaped.dtype;
  expected.shape.assign(shaped.shape, shaped.shape + shaped.rank);
  if (Error error = read_any(input->specification, expected, &input->value))
    return "input '" + expected.name + "': " + *error;
  input->read = true;
  return std::nullopt;
}

// All inputs are given, or none; then they are random numbers.
Error check_given(const std::vector<Input>& inputs) {
  auto is_given = [](const Input& input) { return input.given; };
  auto missing = std::find_if_not(inputs.begin(), inputs.end(), is_given);
  if (missing == inputs.end() || std::none_of(inputs.begin(), inputs.end(), is_given)) return std::nullopt;
  const std::string name = missing->signature.name;
  return "expected a value of every input, found none of '" + name + "': --input " + name +
         "=FILE, or --input " + name + "=random:0";
}

// Of a run that has succeeded.
void say_what_was_random(const std::vector<Input>& inputs) {
  if (inputs.empty() || inputs[0].given) return;
  fprintf(stderr, "quernel-run: note: the input%s random numbers: --input %s=FILE gives others\n",
          inputs.size() == 1 ? " is" : "s are", shown(inputs[0].signature.name).c_str());
}

// Finds what each input shall be, and reads those whose shapes may say how large the session has to be.
Error find_inputs(const Options& options, const std::vector<qnl_tensor>& signature,
                  std::vector<Input>* inputs) {
  for (const qnl_tensor& t : signature) {
    inputs->emplace_back();
    inputs->back().signature = t;
  }
  for (const Assignment& assignment : options.inputs) {
    size_t index = 0;
    std::string value;
    if (Error error = find_tensor(signature, assignment, "input", &index, &value)) return error;
    (*inputs)[index].specification = value;
    (*inputs)[index].given = true;
  }
  if (Error error = check_given(*inputs)) return error;
  for (Input& input : *inputs)
    if (is_symbolic(input.signature) && has_own_shape(input.specification))
      if (Error error = read_input(&input, input.signature)) return error;
  return std::nullopt;
}

// Values of symbols: those of the command line, and dims of the inputs read so far.
std::vector<qnl_symbol_value> find_symbols(const quernel::Bundle& bundle, uint32_t entry,
                                           const Options& options, const std::vector<Input>& inputs) {
  std::vector<qnl_symbol_value> values;
  for (const Assignment& symbol : options.symbols)
    values.push_back({symbol.name.c_str(), strtoll(symbol.value.c_str(), nullptr, 10)});
  // what is out of range is the session's to refuse, with the input's name
  auto count = static_cast<uint32_t>(values.size());
  values.resize(count + bundle.info().symbol_count);
  for (uint32_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].read)
      count = shape_symbols(bundle.get(), entry, i, inputs[i].value.shape.data(),
                            static_cast<uint32_t>(inputs[i].value.shape.size()), values.data(), count);
  values.resize(count);
  return values;
}

Error set_input(Input* input, quernel::Session* session, qnl_error* error) {
  qnl_tensor shaped = input->signature;
  std::optional<uint64_t> seed = input->read ? std::nullopt : seed_of(input->specification);
  if (!input->read && (seed || is_symbolic(shaped)) &&
      session->tensor(QNL_INPUT, shaped.name, &shaped, error) != QNL_OK)
    return std::string(qnl_status_text(error->status)) + ": " + error->text +
           (is_symbolic(input->signature) ? " (here: --symbol NAME=VALUE, or random:SEED:2x3x4 as the input)"
                                          : "");
  if (seed && shaped.data != nullptr) {  // its slot, in place: a first run waits for memory, too
    std::vector<int64_t> shape(shaped.shape, shaped.shape + shaped.rank);
    fill_random(*seed, shaped.dtype, element_count(shape).value_or(0), shaped.data);
    return std::nullopt;
  }
  if (!input->read)
    if (Error message = read_input(input, shaped)) return message;
  HostTensor& found = input->value;
  qnl_tensor tensor = {};
  tensor.name = input->signature.name;
  tensor.dtype = found.dtype;
  tensor.rank = static_cast<uint32_t>(found.shape.size());
  for (uint32_t d = 0; d < tensor.rank && d < QNL_MAX_RANK; ++d) tensor.shape[d] = found.shape[d];
  tensor.bytes = found.bytes.size();
  tensor.data = found.bytes.data();
  if (session->set_input(tensor, error) != QNL_OK)
    return std::string(qnl_status_text(error->status)) + ": " + error->text;
  found = HostTensor();
  return std::nullopt;
}

// Those with shapes of their own first: others may follow from them.
Error set_inputs(const Options& options, std::vector<Input>* inputs, quernel::Session* session,
                 qnl_error* error) {
  for (const Assignment& symbol : options.symbols)
    if (session->set_symbol(symbol.name.c_str(), strtoll(symbol.value.c_str(), nullptr, 10), error) != QNL_OK)
      return std::string(qnl_status_text(error->status)) + ": " + error->text;
  for (bool own_shape : {true, false})
    for (Input& input : *inputs)
      if ((input.read || !is_symbolic(input.signature)) == own_shape)
        if (Error message = set_input(&input, session, error)) return message;
  return std::nullopt;
}

const double kProgramStart = now_milliseconds();

// What was measured.
struct Figures {
  std::string device;  // a field for JSON, the device and how it was chosen
  const char* target;
  double load_milliseconds;   // from the file to a session that can run
  double first_milliseconds;  // from the program's start to its first results
  std::vector<double> times;  // of each run, milliseconds
  uint64_t peak_rss_bytes;    // before outputs are printed and stored
  qnl_requirements memory;
};

std::string json_device(const OpenedDevice& opened) {
  qnl_device_info info;
  qnl_device_get_info(opened.device.get(), &info);
  std::string text = "\"device\": " + json_string(info.name);
  if (!opened.chosen.empty()) text += ", \"choice\": " + json_string(opened.chosen.c_str());
  return text;
}

// Outputs, in the entry point's order, then the latency.
Error report(const Options& options, const std::vector<qnl_tensor>& outputs, quernel::Session* session,
             const Figures& figures, const TraceRecorder& recorder) {
  std::vector<std::string> files(outputs.size());
  for (const Assignment& assignment : options.outputs) {
    size_t index = 0;
    std::string value;
    if (Error error = find_tensor(outputs, assignment, "output", &index, &value)) return error;
    files[index] = value;
  }
  std::string json;
  for (size_t i = 0; i < outputs.size(); ++i) {
    qnl_tensor tensor;
    if (session->tensor(QNL_OUTPUT, outputs[i].name, &tensor) != QNL_OK)
      return std::string("output disappeared");
    HostTensor host = to_host(tensor);
    if (!files[i].empty())
      if (Error error = write_any(files[i], host)) return "output '" + host.name + "': " + *error;
    if (options.json) {
      json += (json.empty() ? "" : ", ") + json_output(tensor, host);
    } else {
      print_output(tensor, host);
    }
  }
  std::vector<double> times = figures.times;
  std::sort(times.begin(), times.end());
  double median = times[times.size() / 2];
  if (options.json) {
    std::string median_text = json_number(median), min_text = json_number(times[0]);
    printf(
        "{%s, \"target\": %s, \"threads\": %u, \"repeat\": %u, \"load_ms\": %s, "
        "\"first_result_ms\": %s, "
        "\"latency_ms\": {\"median\": %s, \"min\": %s}, \"median_ms\": %s, \"min_ms\": %s, "
        "\"peak_rss_bytes\": %" PRIu64 ", \"memory\": %s, \"outputs\": [%s]%s}\n",
        figures.device.c_str(), json_string(figures.target).c_str(), options.device.threads,
        static_cast<uint32_t>(times.size()), json_number(figures.load_milliseconds).c_str(),
        json_number(figures.first_milliseconds).c_str(), median_text.c_str(), min_text.c_str(),
        median_text.c_str(), min_text.c_str(), figures.peak_rss_bytes, json_memory(figures.memory).c_str(),
        json.c_str(), options.profile ? recorder.json_profile().c_str() : "");
    return std::nullopt;
  }
  if (options.repeat > 1) {
    printf("first result %.1f ms after the program's start\n", figures.first_milliseconds);
    printf("latency over %zu runs: median %.4f ms, min %.4f ms (%u thread%s, %s)\n", times.size(), median,
           times[0], options.device.threads, options.device.threads == 1 ? "" : "s", figures.target);
  }
  if (options.profile) recorder.print_profile();
  return std::nullopt;
}

Error write_trace(const Options& options, TraceRecorder* recorder) {
  recorder->stop();
  return options.trace.empty() ? std::nullopt : recorder->write(options.trace);
}

// What is on its way through the program.
struct Run {
  const Options& options;
  const quernel::Bundle& bundle;
  double begin_load;
  qnl_error error = {};
  // Of a run without --test.
  std::vector<Input> inputs = {};
  std::vector<qnl_symbol_value> symbols = {};
  qnl_session_options session = {};
};

constexpr int kRuntimeFailed = -1;  // instead of an exit status: Run::error says why

TestOptions test_options(const Options& options) {
  TestOptions tests;
  tests.bundle = options.bundle;
  tests.threads = options.device.threads;
  tests.repeat = options.repeat;
  tests.seconds = options.most_seconds;
  tests.json = options.json;
  return tests;
}

int run_tests_on(const OpenedDevice& opened, TraceRecorder* recorder, Run* r) {
  const Options& options = r->options;
  TestOptions tests = test_options(options);
  tests.device = json_bundle(options.bundle) + json_device(opened);
  tests.stops_at_fault = is_auto(options.device.device);
  int code = run_tests(r->bundle, opened.device, tests, &r->error);
  if (Error message = write_trace(options, recorder)) return fail(*message);
  return r->error.status == QNL_OK ? code : kRuntimeFailed;
}

int run_once_on(const OpenedDevice& opened, TraceRecorder* recorder, Run* r) {
  const Options& options = r->options;
  const quernel::Bundle& bundle = r->bundle;
  const quernel::Device& device = opened.device;
  quernel::Session session;
  if (session.create(bundle, device, &r->session, &r->error) != QNL_OK) return kRuntimeFailed;
  Figures figures = {};
  figures.device = json_device(opened);
  figures.load_milliseconds = now_milliseconds() - r->begin_load;
  qnl_requirements& requirements = figures.memory;
  if (qnl_session_query(bundle.get(), device.get(), &r->session, &requirements, &r->error) != QNL_OK)
    return kRuntimeFailed;
  qnl_variant_info variant;
  if (qnl_bundle_get_variant(bundle.get(), requirements.variant, &variant) != QNL_OK)
    return fail("no such variant");
  figures.target = variant.target;
  const std::vector<qnl_tensor> states = tensors_of(bundle, entry_index(bundle, options), QNL_STATE);
  if (!options.load_state.empty())
    if (Error message = load_state(options.load_state, states, requirements.state_bytes, &session))
      return fail(*message);

  recorder->begin_profile();
  if (Error message = set_inputs(options, &r->inputs, &session, &r->error))
    return r->error.status == QNL_DEVICE_FAULT ? kRuntimeFailed : fail(*message);
  double first = now_milliseconds();
  for (uint32_t i = 0; i < options.repeat; ++i) {
    if (i > 0 && options.most_seconds > 0 && now_milliseconds() - first > options.most_seconds * 1e3) break;
    double begin = now_milliseconds();
    if (session.run(&r->error) != QNL_OK) return kRuntimeFailed;
    double end = now_milliseconds();
    if (i == 0) figures.first_milliseconds = end - kProgramStart;
    figures.times.push_back(end - begin);
  }
  figures.peak_rss_bytes = peak_rss_bytes();
  if (Error message = write_trace(options, recorder)) return fail(*message);
  if (!options.save_state.empty())
    if (Error message = save_state(options.save_state, states, requirements.state_bytes, &session))
      return fail(*message);
  if (Error message = report(options, tensors_of(bundle, entry_index(bundle, options), QNL_OUTPUT), &session,
                             figures, *recorder))
    return fail(*message);
  say_what_was_random(r->inputs);
  fflush(stdout);  // before memory is given back, which takes a while; `run` checks
  return 0;
}

// What the session is to be; inputs that say how large are read for it.
Error find_session(Run* r) {
  const Options& options = r->options;
  if (!options.entry.empty()) r->session.entry_point = options.entry.c_str();
  uint32_t entry = entry_index(r->bundle, options);
  double begin = now_milliseconds();
  r->inputs.clear();
  if (Error message = find_inputs(options, tensors_of(r->bundle, entry, QNL_INPUT), &r->inputs))
    return message;
  r->symbols = find_symbols(r->bundle, entry, options, r->inputs);
  r->session.symbols = r->symbols.data();
  r->session.symbol_count = static_cast<uint32_t>(r->symbols.size());
  r->begin_load += now_milliseconds() - begin;  // inputs are not part of loading
  return std::nullopt;
}

int run_on(const DeviceChoice& choice, Run* r) {
  const Options& options = r->options;
  OpenedDevice opened;
  if (!options.test)
    if (Error message = find_session(r)) return fail(*message);
  if (opened.open(choice, r->bundle, options.bundle, &r->session, &r->error) != QNL_OK) return fail(r->error);
  if (!opened.chosen.empty()) fprintf(stderr, "quernel-run: device: %s\n", opened.chosen.c_str());
  TraceRecorder recorder;
  if (!options.trace.empty() || options.profile) recorder.start(opened.device);
  int code = options.test ? run_tests_on(opened, &recorder, r) : run_once_on(opened, &recorder, r);
  if (code == kRuntimeFailed && opened.give_up(r->error)) {
    fprintf(stderr, "quernel-run: device: %s\n", opened.chosen.c_str());
    DeviceChoice cpu = choice;
    cpu.device = "cpu";
    r->error = {};
    return run_on(cpu, r);
  }
  if (code == kRuntimeFailed) return fail(r->error);
  return opened.messages.empty() ? code : fail(opened.messages);
}

int run(const Options& options) {
  if (options.describe) return describe_device(options.device, options.json);
  if (!options.bundles.empty())
    return run_bundles({options.bundles, options.device, options.verify_weights, test_options(options)});
  qnl_error error;
  double begin_load = now_milliseconds();
  quernel::Bundle bundle;
  qnl_bundle_options bundle_options = {};
  bundle_options.verify_weights = options.verify_weights;
  qnl_status status = bundle.open(options.bundle.c_str(), &bundle_options, &error);
  if ((status == QNL_FILE_NOT_FOUND || status == QNL_FILE_UNREADABLE) && error.text[0] != '\0')
    return fail(error.text);  // it has the path
  if (status != QNL_OK) return fail("'" + options.bundle + "': " + error_text(error));
  if (options.list) {
    options.json ? list_json(bundle) : list_text(bundle);
    return 0;
  }
  Run r = {options, bundle, begin_load};
  return run_on(options.device, &r);
}

int run_command_line(int argc, char** argv) {
  Options options;
  if (Error error = parse_options(argc, argv, &options)) {
    fprintf(stderr, "quernel-run: %s\nquernel-run --help lists the options\n", shown(error->c_str()).c_str());
    return 2;
  }
  if (options.help) {
    fputs(kUsage, stdout);
    return 0;
  }
  if (options.version) {
    uint32_t version = qnl_runtime_version();
    printf("quernel-run %u.%u.%u\n", version >> 16, version >> 8 & 255, version & 255);
    return 0;
  }
  if (options.record.empty()) return run(options);
  options.json = true;
  std::string name = options.bundle.substr(options.bundle.rfind('/') + 1);
  return record_run({options.record, name, options.timeout_seconds}, [&] { return run(options); });
}

// A file that is opened later must not take the place of a standard stream that the caller has closed.
void keep_standard_streams() {
  for (int fd = 0; fd < 3; ++fd)
    if (fcntl(fd, F_GETFD) < 0) (void)!open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

}  // namespace

int main(int argc, char** argv) {
  keep_standard_streams();
  signal(SIGXFSZ, SIG_IGN);  // writing fails instead, and cleans up
  int code = run_command_line(argc, argv);
  if (fflush(stdout) == 0 && ferror(stdout) == 0) return code;
  return code == 0 ? fail("standard output cannot be written") : code;
}
