// Which free dims may be 0.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "frontends/import_options.h"

namespace quernel {

// Imports the model with free dims that begin at 1 where `never_empty` names their symbols, and at 0
// elsewhere, but for those that the options give a range. `unranged` receives the symbols of all others.
using ImportAttempt = std::function<Expected<ImportedModel>(const std::set<std::string>& never_empty,
                                                            std::set<std::string>& unranged)>;

// Free dims may be 0 where that costs nothing: where the model can be imported so, and no size that is known
// for at least 1 (the last one of n) depends on them then.
Expected<ImportedModel> import_with_empty_dims(const ImportAttempt& attempt);

}  // namespace quernel
