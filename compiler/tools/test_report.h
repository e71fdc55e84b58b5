// What `quernel test` says of its cases, wherever they ran: a line for each, then the counts; as JSON and
// JUnit XML where files are named.
#pragma once

#include <string>
#include <vector>

#include "json.h"
#include "verdicts.h"

namespace quernel::tools {

// {"verdict", "reason"}
Json verdict_json(const char* verdict, std::string reason);

// What quernel-run said of the bundles of a case.
struct RunsSummary {
  int tests = 0, failed = 0;
  bool unsupported = true;  // all that failed
  std::string first_failure, first_failed_test;
  double max_error = 0;
};
RunsSummary summarize(const Json::Array& runs);
// {"verdict", "reason", "runs"} of a case whose bundles all ran.
Json result_of_runs(Json::Array runs);

struct ReportOptions {
  std::vector<std::string> allowed;  // by --allow-unsupported
  bool per_kernel = false;
  std::string json, junit;  // files; empty: none
};

class TestReport {
 public:
  explicit TestReport(const ReportOptions& options) : options_(options), verdicts_(options.allowed) {}

  // Prints a case. `result`: as run_test_case returns it.
  void add(const std::string& name, Json result, const Json& seconds);
  // Prints the counts and writes the files. `on`: where the cases ran; `facts`: members of the JSON document.
  Status finish(const std::string& on, Json::Object facts);
  int exit_code() const { return verdicts_.exit_code(); }

 private:
  ReportOptions options_;
  Verdicts verdicts_;
  Json::Array results_;
};

}  // namespace quernel::tools
