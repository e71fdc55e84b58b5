#include "kit_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "child_process.h"
#include "command.h"
#include "schemas/bundle_hash.h"
#include "tensor_file.h"
#include "test_report.h"

namespace quernel::tools {
namespace {

// A line of a record: {"check": "0123456789abcdef", "result": RESULT}
constexpr std::string_view kCheck = "{\"check\": \"", kResult = "\", \"result\": ";
constexpr size_t kDigits = 16;
constexpr int kResultsVersion = 1;  // as kit/run.sh writes it

Diagnostic damaged(const std::string& file, int line, const std::string& what) {
  return invalid_input("the results are damaged: " + what, {.file = file, .line = line},
                       "bring the file back as run.sh wrote it");
}

Expected<std::string> text_of(const std::string& path) {
  std::vector<std::byte> bytes;
  if (tensor_file::Error error = tensor_file::read_file(path, &bytes))
    return invalid_input(*error, {.file = path});
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// What quernel-run wrote on this line; null on a line that is no record.
Expected<Json> read_record(std::string_view line, const std::string& file, int number) {
  if (!line.starts_with(kCheck)) return Json();
  size_t begin = kCheck.size() + kDigits + kResult.size();
  if (line.size() < begin + 3 || line.substr(kCheck.size() + kDigits, kResult.size()) != kResult ||
      line.back() != '}')
    return damaged(file, number, "expected a record of quernel-run");
  std::string_view result = line.substr(begin, line.size() - begin - 1);
  if (fmt::format("{:016x}", qnl_hash(result.data(), result.size())) != line.substr(kCheck.size(), kDigits))
    return damaged(file, number, "a record is not what its hash says");
  return parse_json(result, file);
}

Status read_records(const std::string& text, const std::string& file, std::map<std::string, Json>* records) {
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    QUERNEL_TRY(Json record, read_record(line, file, ++number));
    if (!record.is_object()) continue;
    std::string bundle = record.at("bundle").text();
    if (!records->emplace(bundle, std::move(record)).second)
      return damaged(file, number, fmt::format("'{}' is there twice", bundle));
  }
  return {};
}

// Of the kit's bundles, each of which has one record at most.
Status check_bundles(const KitResults& results, const std::string& file) {
  size_t known = 0;
  for (const Json& kit_case : results.kit.contents.at("cases").array())
    if (const Json* bundles = kit_case.find("bundles"))
      for (const Json& bundle : bundles->array()) known += results.records.count(bundle.at("file").text());
  if (known != results.records.size())
    return damaged(file, 0, "expected records of the kit's bundles, found one of another");
  return {};
}

Status check_kit(const Kit& found, const std::string& file, const std::string& folder) {
  std::error_code error;
  std::string own = folder;
  if (own.empty()) {
    own = std::filesystem::absolute(file, error).parent_path().string();
    if (!std::filesystem::exists(own + "/kit.json", error)) return {};
  }
  std::string path = own + "/kit.json";
  QUERNEL_TRY(std::string text, text_of(path));
  QUERNEL_TRY(Json document, parse_json(text, path));
  QUERNEL_TRY(Kit kit, read_kit(document, path));
  if (kit.id != found.id)
    return invalid_input(fmt::format("expected results of kit {}, which is in '{}', found those of kit {}",
                                     kit.id, own, found.id),
                         {.file = file}, "name the kit that they are of with --kit");
  return {};
}

std::string machine_line(const Json& record) {
  const Json& machine = record.at("machine");
  std::string name = machine.find("board") != nullptr ? machine.at("board").text() + ", " : "";
  if (!machine.at("processor").text().empty()) name += machine.at("processor").text() + ", ";
  std::string device = record.at("output").at("device").text();
  return fmt::format("{}{} {} {}, {:g} core{}, {}{}{}, quernel-run {}, {}", name, machine.at("system").text(),
                     machine.at("release").text(), machine.at("architecture").text(),
                     machine.at("cores").number().value_or(0), machine.at("cores").number() == 1 ? "" : "s",
                     format_bytes(static_cast<uint64_t>(machine.at("memory_bytes").number().value_or(0))),
                     device.empty() ? "" : ", ", device, record.at("runner").text(),
                     machine.at("time").text());
}

// What quernel-run said of one bundle, or why it did not.
Expected<Json> run_of(const Json& record) {
  const Json& output = record.at("output");
  if (output.is_object() && !output.at("tests").array().empty()) return output;
  ProcessResult done;
  done.command = "quernel-run";
  done.started = true;
  done.exit_code = static_cast<int>(record.at("exit_code").number().value_or(-1));
  done.signal = static_cast<int>(record.at("signal").number().value_or(0));
  done.timed_out = record.at("timed_out").is_true();
  done.timeout_seconds = record.at("timeout_seconds").number().value_or(0);
  done.last_words = record.at("last_words").text();
  return invalid_input(done.failure());
}

}  // namespace

Expected<KitResults> read_kit_results(const std::string& file, const std::string& kit) {
  QUERNEL_TRY(std::string text, text_of(file));
  Expected<Json> document = parse_json(text, file);
  if (!document) return damaged(file, document.errors()[0].place.line, document.errors()[0].message);
  if (document->at("quernel_results").number() != kResultsVersion)
    return invalid_input(
        fmt::format("expected results of a kit, of version {}, found another document", kResultsVersion),
        {.file = file});
  KitResults results;
  QUERNEL_TRY(results.kit, read_kit(document->at("kit"), file));
  QUERNEL_CHECK(check_kit(results.kit, file, kit));
  QUERNEL_CHECK(read_records(text, file, &results.records));
  if (results.records.size() != document->at("results").array().size())
    return damaged(file, 0, "expected every record on a line of its own");
  QUERNEL_CHECK(check_bundles(results, file));
  if (!results.records.empty()) {
    const Json& first = results.records.begin()->second;
    results.machine = machine_line(first);
    results.machine_facts = first.at("machine");
  }
  return results;
}

Json result_of_kit_case(const KitResults& results, const Json& kit_case, double* seconds) {
  *seconds = 0;
  if (kit_case.find("bundles") == nullptr)
    return verdict_json(kit_case.at("verdict").text().c_str(), kit_case.at("reason").text());
  Json::Array runs;
  for (const Json& bundle : kit_case.at("bundles").array()) {
    auto record = results.records.find(bundle.at("file").text());
    if (record == results.records.end())
      return verdict_json("FAIL", fmt::format("{} was not run there", bundle.at("file").text()));
    *seconds += record->second.at("seconds").number().value_or(0);
    Expected<Json> run = run_of(record->second);
    if (!run) return verdict_json("FAIL", one_line(run.errors()[0]));
    runs.push_back(std::move(*run));
  }
  return result_of_runs(std::move(runs));
}

}  // namespace quernel::tools
