// Signatures: names by which a program calls a model's subgraphs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frontends/tflite/read_model.h"

namespace quernel::tflite_import {

// Checks that every signature names a subgraph and tensors that are there. Requires checked subgraphs.
Status check_signatures(const tflite::Model& model, const Location& place);

// Returns the keys of a model's signatures, in the file's order.
std::vector<std::string> signature_keys(const ModelFile& file);

// Returns a note for who imports the first subgraph of a model that has other entry points, too.
std::optional<std::string> note_of_signatures(const ModelFile& file);

// Returns the number of the subgraph that a signature calls; of an empty name 0. A model with fewer than two signatures
// has one entry point, which any name names. Invalid input: several, and none of this name.
Expected<size_t> entry_subgraph(const ModelFile& file, const std::string& signature);

}  // namespace quernel::tflite_import
