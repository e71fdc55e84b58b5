// quernel tune: measures choices about a model's kernels, on the present machine or where --on says, and writes those that are
// faster than the estimated ones, as a file for `quernel compile --tuning`.
//
// Kernels are measured where they run, in the model: with its caches and its threads.
// Each round compiles the model with another choice for every kernel at once, a challenger, and runs it
// in turns with the model as estimated. Rounds follow one another until the budget is spent. What won is
// compiled together and has to win again.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "command.h"
#include "compile_flags.h"
#include "json.h"
#include "measured_bundle.h"
#include "pipeline/pipeline.h"
#include "print.h"
#include "scratch_dir.h"
#include "support/progress.h"
#include "timing.h"

namespace quernel::tools {
namespace {

using schedule::Choice;
using schedule::LoopChoice;
using schedule::Tiling;
using schedule::TunableKernel;

struct Options {
  std::string model, output;
  CompileFlags flags;
  std::vector<std::string> symbols;  // NAME=VALUE
  int threads = 1;
  DeviceFlags place;
  double budget = 60;
  bool json = false, quiet = false;
};

constexpr double kWorthwhile = 0.02;      // of the time, less is not worth a line in the file
constexpr double kLeastSeconds = 2e-6;    // loops that take less than a call should are left as estimated
constexpr double kWorthMeasuring = 1e-3;  // of the model's time: loops that take less are left as estimated
constexpr double kConfirmShare = 0.25;    // of the budget, for what won
constexpr int kBurst = 3;                 // runs in a row, after one that brings the weights near
constexpr int kFewestBursts = 5, kMostBursts = 200;
constexpr double kMeasureSeconds = 0.5;  // for a round, at least
constexpr double kMostConfirmSeconds = 10;
constexpr size_t kMostChoices = 8;  // by estimate, that are measured

// One kernel, and how far its search has come.
struct Search {
  std::string key;
  // Of an image that Winograd's algorithm may compute: another choice makes other kernels, so that the time
  // is that of the items of these nodes. Else it is that of the items with the key.
  bool algorithm = false;
  bool loops = false;   // a choice about loops
  bool shared = false;  // by several workgroups
  std::set<std::string> kernel_keys, nodes;
  std::string estimated;       // what it has without a choice
  std::vector<Choice> queue;   // still to be measured
  std::optional<Choice> best;  // measured faster than the estimated one
  double ratio = 1;            // of best's time to that one's
  double seconds = 0;          // of a run, as estimated
  bool varied = false;         // variations of the best have been queued
};

// Whether the two are about the same kernels: only one of them can be measured at a time.
bool exclude_each_other(const Search& a, const Search& b) {
  return a.kernel_keys.count(b.key) != 0 || b.kernel_keys.count(a.key) != 0;
}

// Time of a challenger as a share of the estimated one's, and how far it may be off.
struct Ratio {
  double value = 1, noise = 1;
  bool wins() const { return value < 1 - std::max(kWorthwhile, noise); }
};

double since(double start) { return now_seconds() - start; }

class Tuner {
 public:
  Tuner(const Options& options, CompileOptions compile_options, std::string scratch_dir)
      : options_(options), compile_(std::move(compile_options)), scratch_(std::move(scratch_dir)) {}

  Status run() {
    start_ = now_seconds();
    progress_ = std::make_unique<Progress>("tuning " + file_name(options_.model), !options_.quiet);
    QUERNEL_TRY(Target target, find_target(compile_.targets[0]));
    target_ = target.name;
    QUERNEL_TRY(place_, measuring_place(options_.place, options_.threads, target_, scratch_));
    QUERNEL_TRY(std::vector<TunableKernel> kernels, tunable_kernels(options_.model, compile_));
    QUERNEL_CHECK(compile_bundle("estimated.qnl", {}));
    QUERNEL_TRY(estimated_, place_->open(path("estimated.qnl"), "estimated.qnl", options_.symbols));
    begin_searches(kernels);
    QUERNEL_CHECK(drop_small_searches());
    QUERNEL_CHECK(measure_rounds());
    QUERNEL_CHECK(confirm());
    progress_->finish();
    seconds_ = since(start_);
    return {};
  }

  const std::string& target() const { return target_; }
  const std::vector<Search>& searches() const { return searches_; }
  int rounds() const { return rounds_; }
  double seconds() const { return seconds_; }
  double seconds_before() const { return before_; }
  double seconds_after() const { return after_; }

 private:
  using Choices = std::map<std::string, Choice>;  // by key

  std::string path(const std::string& name) const { return scratch_ + "/" + name; }

  Status compile_bundle(const std::string& name, const Choices& choices) {
    std::string text;
    for (const auto& [key, choice] : choices) text += target_ + " " + key + " = " + to_string(choice) + "\n";
    QUERNEL_CHECK(write_text_file(path("choices"), text));
    CompileOptions options = compile_;
    options.tuning_file = path("choices");
    Expected<CompileReport> report = compile(options_.model, path(name), options);
    if (!report) return report.take_errors();
    return {};
  }

  // What each kernel has by estimate, and what is to be tried; algorithms before tiles.
  void begin_searches(const std::vector<TunableKernel>& kernels) {
    for (const TunableKernel& kernel : kernels) {
      auto known = std::find_if(searches_.begin(), searches_.end(),
                                [&](const Search& search) { return search.key == kernel.key; });
      if (known == searches_.end()) {
        known = searches_.insert(searches_.end(), Search());
        known->key = kernel.key;
        const Tiling* tiling = std::get_if<Tiling>(&kernel.choices[0]);
        known->algorithm = tiling && tiling->winograd != 0;
        known->loops = !tiling;
      }
      if (kernel.kernel_key != kernel.key) known->estimated = to_string(Tiling());
      for (size_t i = 0; i < estimated_->items.size(); ++i) {
        if (estimated_->items[i].text.key != kernel.kernel_key) continue;
        known->nodes.insert(estimated_->items[i].node);
        known->shared = known->shared || estimated_->items[i].workgroups > 1;
        if (kernel.kernel_key == kernel.key) known->estimated = estimated_->items[i].text.choice;
      }
      if (kernel.kernel_key != kernel.key) known->kernel_keys.insert(kernel.kernel_key);
      if (known->queue.empty())
        for (const Choice& choice : kernel.choices)
          if (to_string(choice) != known->estimated && known->queue.size() < kMostChoices)
            known->queue.push_back(choice);
    }
    std::stable_sort(searches_.begin(), searches_.end(),
                     [](const Search& a, const Search& b) { return a.algorithm > b.algorithm; });
  }

  // Loops of little time: noise would choose.
  Status drop_small_searches() {
    std::vector<std::vector<double>> times(searches_.size());
    std::vector<double> totals;
    QUERNEL_TRY(std::vector<std::vector<double>> runs, estimated_->run(kBurst));
    for (const std::vector<double>& items : runs) {
      totals.push_back(std::accumulate(items.begin(), items.end(), 0.0));
      for (size_t s = 0; s < searches_.size(); ++s)
        times[s].push_back(time_of(searches_[s], *estimated_, items));
    }
    const double least = std::max(kLeastSeconds, kWorthMeasuring * median(totals));
    std::vector<Search> kept;
    for (size_t s = 0; s < searches_.size(); ++s)
      if (!searches_[s].loops || median(times[s]) >= least) kept.push_back(std::move(searches_[s]));
    searches_ = std::move(kept);
    return {};
  }

  // The searches with something to measure, none about the kernels of another.
  std::vector<size_t> next_challenges() {
    std::vector<size_t> chosen;
    for (size_t i = 0; i < searches_.size(); ++i) {
      Search& search = searches_[i];
      if (search.queue.empty()) queue_variations(search);
      bool free = std::none_of(chosen.begin(), chosen.end(),
                               [&](size_t j) { return exclude_each_other(search, searches_[j]); });
      if (free && !search.queue.empty()) chosen.push_back(i);
    }
    return chosen;
  }

  Status measure_rounds() {
    double round_seconds = 0;
    while (since(start_) + round_seconds < options_.budget * (1 - kConfirmShare)) {
      double begin = now_seconds();
      std::vector<size_t> challenges = next_challenges();
      if (challenges.empty()) break;
      Choices challengers;
      for (size_t i : challenges) challengers[searches_[i].key] = searches_[i].queue.front();
      ++rounds_;
      progress_->stage(fmt::format("round {}, {} kernels, {} faster so far, {:.0f} s of {:.0f} s", rounds_,
                                   challenges.size(), winners().size(), since(start_), options_.budget));
      QUERNEL_CHECK(compile_bundle("challenger.qnl", challengers));
      QUERNEL_TRY(std::vector<Ratio> ratios, compare("challenger.qnl", kMeasureSeconds));
      for (size_t i : challenges) {
        Search& search = searches_[i];
        if (ratios[i].wins() && ratios[i].value < search.ratio)
          search.best = search.queue.front(), search.ratio = ratios[i].value;
        search.queue.erase(search.queue.begin());
      }
      round_seconds = since(begin);
    }
    return {};
  }

  // After the tiles and axes, the order and the split of the best one.
  void queue_variations(Search& search) const {
    if (search.varied) return;
    search.varied = true;
    Expected<Choice> estimated = schedule::parse_choice(search.estimated);
    const Choice base = search.best ? *search.best : estimated ? *estimated : Choice(Tiling());
    if (const LoopChoice* loops = std::get_if<LoopChoice>(&base)) return queue_variations(*loops, search);
    const Tiling& tiling = std::get<Tiling>(base);
    if (tiling.rows == 0 || tiling.winograd != 0) return;
    Tiling other = tiling;
    other.order = tiling.order == schedule::TileOrder::kRows ? schedule::TileOrder::kColumns
                                                             : schedule::TileOrder::kRows;
    search.queue.push_back(other);
    for (int64_t work : {tiling.group_work * 4, tiling.group_work / 4}) {
      other = tiling;
      other.group_work = work;
      search.queue.push_back(other);
    }
  }
  void queue_variations(const LoopChoice& base, Search& search) const {
    auto add_work = [&](int64_t work) {
      LoopChoice other = base;
      other.group_work = work;
      search.queue.push_back(other);
    };
    if (search.shared) add_work(base.group_work * 4);
    if (search.shared || options_.threads > 1) add_work(base.group_work / 4);
    if (base.rows < 2) return;
    LoopChoice other = base;
    other.rows = base.rows / 2;
    search.queue.push_back(other);
  }

  // The better one of two about the same kernels.
  Choices winners() const {
    Choices choices;
    for (const Search& search : searches_) {
      bool beaten = std::any_of(searches_.begin(), searches_.end(), [&](const Search& other) {
        return other.best && exclude_each_other(search, other) && other.ratio < search.ratio;
      });
      if (search.best && !beaten) choices[search.key] = *search.best;
    }
    return choices;
  }

  // Of every search, the bundle's time to that of the estimated one, which run in turns.
  Expected<std::vector<Ratio>> compare(const std::string& name, double seconds) {
    QUERNEL_TRY(std::unique_ptr<MeasuredBundle> challenger, place_->open(path(name), name, options_.symbols));
    std::vector<std::vector<double>> ratios(searches_.size()), own(searches_.size());
    std::vector<double> totals[2];
    double begin = now_seconds();
    for (int burst = 0; burst < kMostBursts && (burst < kFewestBursts || since(begin) < seconds); ++burst) {
      std::vector<std::vector<double>> times[2];  // of a search in every run
      for (int side = 0; side < 2; ++side) {
        MeasuredBundle& bundle = side == 0 ? *estimated_ : *challenger;
        times[side].resize(searches_.size());
        QUERNEL_TRY(std::vector<std::vector<double>> runs, bundle.run(kBurst));
        for (const std::vector<double>& items : runs) {
          double total = 0;
          for (double t : items) total += t;
          totals[side].push_back(total);
          for (size_t s = 0; s < searches_.size(); ++s)
            times[side][s].push_back(time_of(searches_[s], bundle, items));
        }
      }
      for (size_t s = 0; s < searches_.size(); ++s) {
        double before = median(times[0][s]);
        own[s].push_back(before);
        double after = median(times[1][s]);  // 0: another choice has changed the kernel
        ratios[s].push_back(before > 0 && after > 0 ? after / before : 1);
      }
    }
    std::vector<Ratio> result;
    for (size_t s = 0; s < searches_.size(); ++s) {
      searches_[s].seconds = median(own[s]);
      result.push_back(ratio_of(ratios[s]));
    }
    before_ = median(totals[0]), after_ = median(totals[1]);
    return result;
  }

  static double time_of(const Search& search, const MeasuredBundle& bundle,
                        const std::vector<double>& items) {
    double sum = 0;
    for (size_t i = 0; i < items.size(); ++i)
      if (search.algorithm ? search.nodes.count(bundle.items[i].node) != 0
                           : bundle.items[i].text.key == search.key)
        sum += items[i];
    return sum;
  }

  // Twice the standard error of the median, by the median of the deviations from it.
  static Ratio ratio_of(const std::vector<double>& values) {
    Ratio ratio;
    ratio.value = median(values);
    std::vector<double> deviations;
    for (double v : values) deviations.push_back(std::abs(v - ratio.value));
    ratio.noise = 2 * 1.4826 * 1.2533 * median(deviations) / std::sqrt(static_cast<double>(values.size()));
    return ratio;
  }

  // The winners together; those that do not win again are dropped, until all do.
  Status confirm() {
    for (;;) {
      Choices choices = winners();
      for (Search& search : searches_)
        if (!choices.count(search.key)) search.best.reset();
      if (choices.empty()) return {};
      progress_->stage(fmt::format("{} that were faster, together", choices.size()));
      QUERNEL_CHECK(compile_bundle("tuned.qnl", choices));
      double left = options_.budget - since(start_);
      QUERNEL_TRY(std::vector<Ratio> ratios,
                  compare("tuned.qnl", std::clamp(left / 2, kMeasureSeconds, kMostConfirmSeconds)));
      bool all = true;
      for (size_t i = 0; i < searches_.size(); ++i) {
        Search& search = searches_[i];
        if (!search.best) continue;
        search.ratio = ratios[i].value;
        if (!ratios[i].wins()) search.best.reset(), all = false;
      }
      if (all) return {};
    }
  }

  const Options& options_;
  CompileOptions compile_;
  std::string scratch_, target_;
  std::unique_ptr<Progress> progress_;
  std::unique_ptr<MeasuringPlace> place_;
  std::unique_ptr<MeasuredBundle> estimated_;
  std::vector<Search> searches_;
  int rounds_ = 0;
  double start_ = 0, seconds_ = 0, before_ = 0, after_ = 0;
};

std::string file_text(const Options& options, const Tuner& tuner) {
  std::string text = fmt::format(
      "# Choices measured by `quernel tune`: of {}, {} thread{}, --on {}. Kernels without a line are as "
      "estimated.\n",
      file_name(options.model), options.threads, options.threads == 1 ? "" : "s", options.place.on);
  for (const Search& search : tuner.searches())
    if (search.best)
      text += fmt::format("{} {} = {}  # {} as {}, now {:.0f}%\n", tuner.target(), search.key,
                          to_string(*search.best), format_seconds(search.seconds), search.estimated,
                          100 * search.ratio);
  return text;
}

Json to_json(const Options& options, const Tuner& tuner) {
  Json::Array choices;
  for (const Search& search : tuner.searches())
    if (search.best)
      choices.push_back(Json::Object{{"key", search.key},
                                     {"estimated", search.estimated},
                                     {"choice", to_string(*search.best)},
                                     {"estimated_seconds", search.seconds},
                                     {"ratio", search.ratio}});
  return Json::Object{{"model", options.model},
                      {"output", options.output},
                      {"target", tuner.target()},
                      {"threads", options.threads},
                      {"kernels", tuner.searches().size()},
                      {"rounds", tuner.rounds()},
                      {"seconds", tuner.seconds()},
                      {"estimated_seconds", tuner.seconds_before()},
                      {"tuned_seconds", tuner.seconds_after()},
                      {"choices", std::move(choices)}};
}

void print_text(const Options& options, const Tuner& tuner) {
  size_t changed = 0;
  for (const Search& search : tuner.searches()) changed += search.best ? 1 : 0;
  print("{}: {} of {} kernels changed, {} rounds in {}\n", options.output, changed, tuner.searches().size(),
        tuner.rounds(), format_seconds(tuner.seconds()));
  for (const Search& search : tuner.searches())
    if (search.best)
      print("  {:>9} to {:>9}  {} instead of {}  {}\n", format_seconds(search.seconds),
            format_seconds(search.seconds * search.ratio), to_string(*search.best), search.estimated,
            search.key);
  if (changed > 0)
    print("  model     {} to {}, the sum of its kernels\n", format_seconds(tuner.seconds_before()),
          format_seconds(tuner.seconds_after()));
}

int run(const Options& options) {
  Expected<CompileOptions> compile_flags = compile_options(options.flags);
  if (!compile_flags) return fail(compile_flags.errors()), kUsage;
  if (compile_flags->targets.size() != 1)
    return usage_error("tune: expected one --target, found " + std::to_string(compile_flags->targets.size()));
  if (Status status = check_output(options.model, options.output); !status) return fail(status.errors());
  ScratchDir scratch;
  if (scratch.path().empty())
    return fail(invalid_input("cannot create a temporary directory; set TMPDIR to a writable place"));
  Tuner tuner(options, *compile_flags, scratch.path());
  if (Status status = tuner.run(); !status) return fail(status.errors());
  if (Status status = write_text_file(options.output, file_text(options, tuner)); !status)
    return fail(status.errors());
  if (options.json)
    fmt::print("{}", to_json(options, tuner).dump());
  else if (!options.quiet && options.output != "-")
    print_text(options, tuner);
  return kOk;
}

}  // namespace

Action define_tune(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("MODEL", options->model, "the model")->required();
  app.add_option("-o,--output", options->output,
                 "the file of choices to write, for `quernel compile --tuning`")
      ->required()
      ->type_name("FILE");
  app.add_option("--budget", options->budget, "about how long to measure (default: 60)")
      ->type_name("SECONDS")
      ->check(CLI::PositiveNumber);
  app.add_option("--threads", options->threads, "threads that run kernels (default: 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 256));
  app.add_option("--symbol", options->symbols, "the value of a free dim (default: the smallest)")
      ->type_name("NAME=N")
      ->allow_extra_args(false);
  add_device_flags(app, options->place);
  add_target_flags(app, options->flags);
  add_shape_flags(app, options->flags);
  add_model_flags(app, options->flags);
  add_choice_flags(app, options->flags);
  add_entry_flags(app, options->flags);
  app.add_flag("--json", options->json, "print one JSON object instead of text");
  app.add_flag("-q,--quiet", options->quiet, "print nothing but diagnostics");
  return [options] { return run(*options); };
}

}  // namespace quernel::tools
