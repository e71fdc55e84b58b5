#include "frontends/shared/error_sink.h"

#include <utility>

namespace quernel {

Reported ErrorSink::report(Diagnostic error) {
  errors_.push_back(std::move(error));
  return {};
}

Reported ErrorSink::report(Diagnostics errors) {
  if (errors.empty()) errors.push_back(internal_error("a failure without a diagnostic"));
  for (Diagnostic& error : errors) errors_.push_back(std::move(error));
  return {};
}

Reported ErrorSink::report_free_dims(const std::set<std::string>& dims,
                                     const std::map<std::string, std::string>& ranged, Diagnostic error) {
  free_dims_.insert(dims.begin(), dims.end());
  ranged_dims_.insert(ranged.begin(), ranged.end());
  free_dim_errors_.push_back(std::move(error));
  return {};
}

std::optional<Reported> ErrorSink::reported_since(const Mark& mark) const {
  if (errors_.size() == mark.errors && free_dim_errors_.size() == mark.free_dim_errors) return std::nullopt;
  return Reported{};
}

void ErrorSink::forget_since(Mark mark) {
  errors_.erase(errors_.begin() + static_cast<std::ptrdiff_t>(mark.errors), errors_.end());
  free_dim_errors_.erase(free_dim_errors_.begin() + static_cast<std::ptrdiff_t>(mark.free_dim_errors),
                         free_dim_errors_.end());
  free_dims_ = std::move(mark.free_dims);
  ranged_dims_ = std::move(mark.ranged_dims);
}

Diagnostics ErrorSink::take() {
  if (!free_dim_errors_.empty()) {
    const Diagnostic& first = free_dim_errors_.front();
    std::string names, options, ranges;
    for (const auto& [name, range] : ranged_dims_)
      if (!free_dims_.count(name)) ranges += (ranges.empty() ? "" : ", ") + range;
    std::set<std::string> all = free_dims_;
    for (const auto& [name, range] : ranged_dims_) all.insert(name);
    for (const std::string& name : all) names += (names.empty() ? "'" : ", '") + name + "'";
    for (const std::string& name : free_dims_)
      options += (options.empty() ? "--dim " : " --dim ") + name + "=N";
    std::string count = free_dim_errors_.size() == 1
                            ? ""
                            : " (and " + std::to_string(free_dim_errors_.size() - 1) + " more nodes)";
    std::string how = ranges.empty() ? " must be fixed" : " must be fixed or given a range";
    errors_.push_back(
        unsupported("free dims " + names + how + " for this node" + count + ": " + first.message, first.place,
                    "fix them with " + options + (options.empty() || ranges.empty() ? "" : ", ") + ranges));
    free_dim_errors_.clear();
  }
  return std::exchange(errors_, {});
}

}  // namespace quernel
