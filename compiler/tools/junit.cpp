#include "junit.h"

#include <fmt/format.h>

#include "schemas/printable.h"

namespace quernel::tools {
namespace {

// Text of an attribute or element.
std::string escaped(std::string_view text) {
  std::string out;
  for (char c : printable_lines(text)) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string test_case(const std::string& on, const std::string& name, double seconds,
                      const std::string& child) {
  std::string begin = fmt::format("  <testcase classname=\"{}\" name=\"{}\" time=\"{:.6f}\"", escaped(on),
                                  escaped(name), seconds);
  return begin + (child.empty() ? "/>\n" : ">" + child + "</testcase>\n");
}

// Why a test vector failed; empty: it passed.
std::string failure_of(const Json& test) {
  if (test.at("passed").is_true()) return "";
  if (const std::string& error = test.at("error").text(); !error.empty()) return error;
  for (const Json& output : test.at("outputs").array())
    if (const std::string& message = output.at("message").text(); !message.empty())
      return fmt::format("output '{}': {}", output.at("name").text(), message);
  return "failed";
}

}  // namespace

std::string junit_text(const std::string& on, const Json::Array& results) {
  int tests = 0, failures = 0, skipped = 0;
  std::string cases;
  for (const Json& result : results) {
    const std::string& verdict = result.at("verdict").text();
    const std::string& reason = result.at("reason").text();
    const std::string& name = result.at("name").text();
    const Json* runs = result.find("runs");
    if (runs == nullptr || verdict == "UNSUPPORTED") {
      bool failed = verdict == "FAIL";
      ++tests;
      (failed ? failures : skipped)++;
      cases +=
          test_case(on, name, result.at("seconds").number().value_or(0),
                    fmt::format("<{} message=\"{}\"/>", failed ? "failure" : "skipped", escaped(reason)));
      continue;
    }
    for (const Json& run : runs->array())
      for (const Json& test : run.at("tests").array()) {
        std::string failure = failure_of(test);
        ++tests;
        failures += failure.empty() ? 0 : 1;
        cases += test_case(on, name + "/" + test.at("name").text(),
                           test.at("median_ms").number().value_or(0) * 1e-3,
                           failure.empty() ? "" : fmt::format("<failure message=\"{}\"/>", escaped(failure)));
      }
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuite name=\"quernel test\" tests=\"{}\" failures=\"{}\" errors=\"0\" "
      "skipped=\"{}\">\n{}</testsuite>\n",
      tests, failures, skipped, cases);
}

}  // namespace quernel::tools
