// Reference data of a model as test vectors of a bundle: what files hold which tensors, what outputs may be
// off by.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bundle/bundle_contents.h"
#include "data_set.h"
#include "quernel/compiler.h"
#include "tolerance.h"

namespace quernel::tools {

// What beside a data set decides whether an output is right.
struct Expectations {
  std::optional<Json> tolerances;  // of tolerance.json
  std::set<std::string> random;    // outputs computed from random numbers: only their type is known
  std::set<std::string> fourier;   // outputs that a Fourier transform gives
  Precision precision;

  Tolerance of(const std::string& output, const tensor_file::HostTensor& expected) const;
};

// tolerance.json of a folder; nothing where there is none.
Expected<std::optional<Json>> read_tolerances(const std::string& dir);

// Whether data sets are consecutive runs, each from the states that the one before leaves.
bool is_sequence(const std::optional<Json>& tolerances);

// Gives each data set the signature that it calls, as tolerance.json says under "signatures", and takes out those of
// other signatures than `only`. Without such a list all call `only`. `only` empty: all stay.
Status set_signatures(std::vector<DataSet>& sets, const std::optional<Json>& tolerances,
                      const std::string& only);

// Gives the files of inputs the model's names.
void name_inputs(DataSet& set, const std::vector<std::string>& names);

// What a test vector gives values to, and the initial values of states by their names.
struct Signature {
  std::vector<bundle::Tensor> inputs, outputs;
  std::map<std::string, std::vector<std::byte>> states;
};
Signature signature_of(const bundle::BundleContents& contents, size_t entry_point);
Signature signature_of(const StaticReport& program);  // of the first entry point

// A data set as a test vector of an entry point, the first until the caller says another. `fixed`: values of inputs that are constants in it;
// theirs, and those of states, must be what the data set has. Errors name set, tensor and types.
Expected<bundle::TestVector> make_test_vector(const DataSet& set, const Signature& signature,
                                              const std::map<std::string, std::vector<std::byte>>& fixed,
                                              const Expectations& expectations);

// Stores the data sets of a folder in a bundle that was just compiled: `from` is written to `to` with them. Each is of
// the entry point that tolerance.json names under "signatures", else of the first. Those of other entry points than the
// bundle's are left out, with a note; none left is invalid input.
Status embed_tests(const std::string& dir, const std::string& model, const CompileOptions& options,
                   CompileReport& report, const std::string& from, const std::string& to);

// Writes the bundle `from` with these test vectors to `to`.
Status write_with_tests(const std::string& from, std::vector<bundle::TestVector> tests,
                        const std::string& to);

}  // namespace quernel::tools
