#include "command_line.h"

#include <stdlib.h>
#include <string.h>

namespace quernel::run {

using tensor_file::Error;

const char* const kUsage =
    "usage: quernel-run BUNDLE [options] [INPUT]\n"
    "  --entry NAME         entry point (default: the first)\n"
    "  --input NAME=SPEC    value of an input; NAME, which may have a '=', and the = behind it may be left "
    "out "
    "when\n"
    "                       there is only one, and INPUT is the same\n"
    "                       SPEC: FILE.npy, FILE.pb (ONNX TensorProto), raw:FILE, random:SEED (default: "
    "random:0),\n"
    "                       random:SEED:2x3x4 with a shape; without any --input all are random\n"
    "  --symbol NAME=VALUE  a size that the model leaves open, where no input's shape says it\n"
    "  --output NAME=FILE   store an output: .npy, .pb, anything else raw bytes\n"
    "  --load-state FILE    begin with the states that --save-state wrote\n"
    "  --save-state FILE    store the states after the run\n"
    "  --device D           cpu (default), vulkan, or auto (Vulkan where it is right and faster, else cpu);\n"
    "                       vulkan:D and auto:D with a number, a type or a part of a name\n"
    "  --threads N          threads that run kernels on the CPU (default 1)\n"
    "  --repeat N           run N times and report latency\n"
    "  --seconds S          begin no further run after that many seconds; with --test, of each test vector\n"
    "  --profile            also print the time of each item by the device's clock, transfers and "
    "submissions\n"
    "  --trace FILE         write what the host and the device do, for Perfetto or chrome://tracing\n"
    "                       (with either, items run one after another)\n"
    "  --validation         with Vulkan's validation layers; a message of theirs is a failure\n"
    "  --hide FEATURES      run as if a Vulkan device lacked these: subgroups,dotprod,float16,\n"
    "                       coopmat,coopmat-int8,coopmat-bf16\n"
    "  --describe           print what the device is, with --json as one object; no bundle is run\n"
    "  --pipeline-cache F   file that keeps compiled pipelines of a Vulkan device\n"
    "  --device-timeout S   seconds after which a Vulkan device that does not answer is given up\n"
    "  --choice F           file that keeps what auto has decided (default: BUNDLE.choice)\n"
    "  --choose-anew        auto decides anew\n"
    "  --verify-weights     also check the hashes of the weights\n"
    "  --test               run the test vectors that the bundle holds, and compare; several bundles run on "
    "one device\n"
    "  --record FILE        with --test: in a process of its own, and FILE says how that went and on what "
    "machine,\n"
    "                       as `quernel test --results` reads it from a kit\n"
    "  --timeout S          seconds after which that process is ended\n"
    "  --list               print what the bundle holds, run nothing\n"
    "  --json               print one JSON object instead of text\n"
    "  --version            print the runtime's version\n";

namespace {

// "NAME=VALUE" or "VALUE", split at the first '='; `choose` finds names that have one themselves.
Assignment split(const std::string& text) {
  size_t at = text.find('=');
  if (at == std::string::npos) return {"", text, text};
  return {text.substr(0, at), text.substr(at + 1), text};
}

bool parse_count(const char* text, uint32_t* count) {
  char* end = nullptr;
  unsigned long value = strtoul(text, &end, 10);
  if (*text < '0' || *text > '9' || *end != '\0' || value == 0 || value > 1000000) return false;
  *count = static_cast<uint32_t>(value);
  return true;
}

bool parse_seconds(const char* text, double* seconds) {
  char* end = nullptr;
  *seconds = strtod(text, &end);
  return end != text && *end == '\0' && *seconds > 0 && *seconds < 1e6;
}

bool parse_symbol(const char* text, std::vector<Assignment>* symbols) {
  const char* last = strrchr(text, '=');
  if (last == nullptr) return false;
  symbols->push_back({std::string(text, last), last + 1, text});
  const Assignment& symbol = symbols->back();
  return !symbol.name.empty() && !symbol.value.empty() && symbol.value.size() < 19 &&
         symbol.value.find_first_not_of("0123456789") == std::string::npos;
}

// Sets what the flag is for, from the value behind it. *known: whether there is such a flag.
Error set_value(const std::string& flag, const char* value, Options* options, bool* known) {
  const std::pair<const char*, std::string*> texts[] = {{"--entry", &options->entry},
                                                        {"--device", &options->device.device},
                                                        {"--trace", &options->trace},
                                                        {"--pipeline-cache", &options->device.pipeline_cache},
                                                        {"--choice", &options->device.choice_file},
                                                        {"--record", &options->record},
                                                        {"--load-state", &options->load_state},
                                                        {"--save-state", &options->save_state}};
  const std::pair<const char*, double*> seconds[] = {{"--device-timeout", &options->device.timeout_seconds},
                                                     {"--timeout", &options->timeout_seconds},
                                                     {"--seconds", &options->most_seconds}};
  *known = true;
  for (const auto& [name, text] : texts)
    if (flag == name) {
      if (value) *text = value;
      return std::nullopt;
    }
  for (const auto& [name, number] : seconds)
    if (flag == name) {
      if (!value || parse_seconds(value, number)) return std::nullopt;
      return flag + ": expected a number above 0, found '" + value + "'";
    }
  *known = flag == "--hide" || flag == "--input" || flag == "--output" || flag == "--symbol" ||
           flag == "--threads" || flag == "--repeat";
  if (!*known || !value) return std::nullopt;
  if (flag == "--hide")
    if (std::string message = read_features(value, &options->device.hidden); !message.empty())
      return "--hide: " + message;
  if (flag == "--input") options->inputs.push_back(split(value));
  if (flag == "--output") options->outputs.push_back(split(value));
  if (flag == "--symbol" && !parse_symbol(value, &options->symbols))
    return std::string("--symbol: expected NAME=NUMBER, found '") + value + "'";
  if (flag == "--threads" && !parse_count(value, &options->device.threads))
    return std::string("--threads: expected a number from 1 on, found '") + value + "'";
  if (flag == "--repeat" && !parse_count(value, &options->repeat))
    return std::string("--repeat: expected a number from 1 to 1000000, found '") + value + "'";
  return std::nullopt;
}

bool set_switch(const std::string& flag, Options* options) {
  const std::pair<const char*, bool*> switches[] = {
      {"--help", &options->help},       {"-h", &options->help},
      {"--list", &options->list},       {"--verify-weights", &options->verify_weights},
      {"--test", &options->test},       {"--validation", &options->device.validation},
      {"--json", &options->json},       {"--choose-anew", &options->device.choose_anew},
      {"--profile", &options->profile}, {"--describe", &options->describe},
      {"--version", &options->version}};
  for (const auto& [name, is_set] : switches)
    if (flag == name) return *is_set = true;
  return false;
}

}  // namespace

Error parse_options(int argc, char** argv, Options* options) {
  std::vector<const char*> positional;
  for (int i = 1; i < argc; ++i) {
    const char* name = argv[i];
    if (name[0] != '-') {
      positional.push_back(name);
      continue;
    }
    if (set_switch(name, options)) continue;
    bool known = false;
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (Error error = set_value(name, value, options, &known)) return error;
    if (!known) return "unknown option '" + std::string(name) + "'";
    if (!value) return std::string(name) + ": expected a value";
    ++i;
  }
  if (options->help || options->version) return std::nullopt;
  if (std::string message = check_device_name(options->device.device); !message.empty())
    return "--device: " + message;
  if (options->device.hidden != 0 && options->device.device == "cpu")
    return std::string("--hide: expected a Vulkan device (--device vulkan), found 'cpu'");
  if (options->describe)
    return positional.empty()
               ? std::nullopt
               : Error("--describe: expected no bundle, found '" + std::string(positional[0]) + "'");
  if (positional.empty()) return std::string("expected a bundle");
  if (options->test && options->profile)
    return std::string("--profile: not with --test, whose --json has the times of items");
  if (options->test && !(options->load_state + options->save_state).empty())
    return std::string(
        "--load-state, --save-state: not with --test, whose vectors begin with the first states");
  if (!options->record.empty() && !options->test) return std::string("--record: expected --test, too");
  if (options->record.empty() && options->timeout_seconds > 0)
    return std::string("--timeout: expected --record, too");
  options->bundle = positional[0];
  if (options->test && positional.size() > 1) {
    options->bundles.assign(positional.begin(), positional.end());
    if (!options->record.empty() || !options->trace.empty() || is_auto(options->device.device))
      return std::string(
          "several bundles: expected neither --record, --trace nor --device auto, which are for one");
    return std::nullopt;
  }
  if (positional.size() > 2) return std::string("unexpected argument '") + positional[2] + "'";
  if (positional.size() == 2) options->inputs.push_back(split(positional[1]));
  return std::nullopt;
}

}  // namespace quernel::run
