"""The rules of the source tree, as data. lint.py reads them; a rule that is wrong is changed here, and nowhere else."""

# What the top level holds, besides files whose name begins with a dot.
TOP_LEVEL = {"CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md",
             "compiler", "runtime", "schemas", "toolchains", "tests", "examples"}

# folder or file: what its files may include besides themselves. What a listed folder may include is
# included: lower may include graph, so it may include support.
LAYERS = {
    "schemas":              (),
    "compiler/support":     ("schemas",),                                 # how names are shown
    "compiler/include":     ("compiler/graph",),                        # compile options hold tensors
    "compiler/ops/ops.def": (),                                         # the table of ops; ops/ itself is code over IRs
    "compiler/graph":       ("compiler/support", "compiler/ops/ops.def"),
    "compiler/targets":     ("compiler/support", "schemas"),            # architectures and features are the schema's
    "compiler/loop":        ("compiler/support", "compiler/targets"),
    "compiler/ops":         ("compiler/graph", "compiler/loop"),
    "compiler/frontends":   ("compiler/graph",),
    "compiler/schedule":    ("compiler/graph", "compiler/targets"),
    "compiler/lower":       ("compiler/graph", "compiler/schedule", "compiler/loop", "compiler/ops"),
    "compiler/codegen/static_program": ("compiler/support",),
    "compiler/codegen/text": ("compiler/loop",),
    "compiler/codegen/llvm": ("compiler/codegen/text", "compiler/codegen/static_program", "compiler/targets", "schemas"),
    "compiler/codegen/c":    ("compiler/codegen/llvm",),
    "compiler/codegen/spirv": ("compiler/codegen/llvm",),
    "compiler/codegen":     ("compiler/codegen/c", "compiler/codegen/spirv"),
    "compiler/bundle":      ("compiler/schedule", "compiler/codegen", "schemas"),
    "compiler/pipeline":    ("compiler/include", "compiler/frontends", "compiler/lower", "compiler/bundle"),
    # the one place that may link the runtime, to verify and time what was compiled
    "compiler/tools":       ("compiler/pipeline", "runtime/include", "runtime/tools/tensor_file"),
    # shows arenas, bindings and plans, which the C interface does not tell
    "compiler/tools/list_contents.cpp": ("compiler/tools", "runtime/core"),
    "compiler/tools/opened_bundle.cpp": ("compiler/tools", "runtime/core"),
    "compiler/tools/timing.cpp": ("compiler/tools", "runtime/core"),
    "runtime/include":      ("schemas",),
    "runtime/platform":     ("runtime/include",),
    "runtime/core":         ("runtime/platform",),
    "runtime/cpu":          ("runtime/core",),
    "runtime/vulkan":       ("runtime/core",),
    "runtime/null":         ("runtime/core",),
    # devices by the C interface only
    "runtime/choose":       ("runtime/core", "runtime/choose/compare_tensors"),
    "runtime/choose/compare_tensors": ("runtime/include",),
    "runtime/tools/tensor_file": ("runtime/include", "runtime/platform", "runtime/choose/compare_tensors"),
    "runtime/tools":        ("runtime/tools/tensor_file", "runtime/choose", "runtime/cpu", "runtime/vulkan",
                             "runtime/null"),
    "tests":                ("compiler/tools", "runtime/tools"),
    "examples":             (),                                           # built against the installed packages
}

# include path (regular expression): who may include it, and why nobody else.
LIBRARIES = [
    (r"(llvm|lld|llvm-c)/",           ("compiler/codegen/llvm/",), "LLVM stays behind codegen/llvm"),
    (r"(glslang|spirv-tools|SPIRV)/", ("compiler/codegen/spirv/", "tests/unit/vulkan/test_spirv"), "SPIR-V tools stay behind codegen/spirv"),
    (r"(onnx|google/protobuf)/|.*\.pb\.h$", ("compiler/frontends/onnx/", "tests/"),
     "nothing after the importer knows ONNX"),
    (r"flatbuffers/|.*bundle_generated\.h$", ("compiler/bundle/", "runtime/core/bundle_reader", "schemas/bundle_tables.h", "tests/"),
     "the bundle is written in one place and read in one place"),
    (r"vulkan/",                      ("runtime/vulkan/", "tests/unit/vulkan/"), "Vulkan is a layer on top of the core"),
    (r"CLI/",                         ("compiler/tools/",), "command lines are the tools' business"),
    (r"(iostream|fstream|sstream|thread|mutex|condition_variable|future|filesystem|stdexcept|regex)$",
     ("compiler/", "runtime/cpu/", "runtime/platform/", "runtime/vulkan/", "runtime/tools/", "tests/", "examples/"),
     "the runtime's core needs no files, threads or exceptions"),
]

# Folders that explain themselves in a README.md as soon as they hold a file.
DOCUMENTED = [
    ".", "compiler", "compiler/support", "compiler/frontends", "compiler/graph", "compiler/ops", "compiler/schedule",
    "compiler/lower", "compiler/loop", "compiler/pipeline", "compiler/targets", "compiler/codegen",
    "compiler/codegen/text", "compiler/codegen/llvm", "compiler/codegen/c", "compiler/codegen/spirv", "compiler/bundle", "compiler/tools",
    "runtime", "runtime/platform", "runtime/core", "runtime/cpu", "runtime/vulkan", "runtime/null",
    "runtime/choose", "runtime/tools", "schemas", "toolchains", "examples", "examples/digits",
    "tests", "tests/golden", "tests/error", "tests/unit", "tests/conformance", "tests/end_to_end", "tests/package",
    "tests/fuzz", "tests/bench", "tests/lint",
]

# The list of features, and the README whose table has a row for each that --target takes.
FEATURES = "schemas/features.def"
FEATURE_TABLE = "compiler/targets/README.md"

# Lines in a source file: above the first figure it says at its top why it is long, above the second it is split.
LONG_FILE = 600
TOO_LONG_FILE = 1000
REASON_WITHIN = 30                                                       # lines from the top
REASON = r"\blines\b.*\bbecause\b|\bone file\b.*\bbecause\b|\blong because\b"
SOURCE_SUFFIXES = (".cpp", ".h", ".hpp", ".c", ".fbs", ".def", ".cmake", ".py", ".sh", "CMakeLists.txt")

# Paths that exist on somebody's machine only.
MACHINE_PATH = r"(?<![\w.])/(home|root|Users|mnt|media|work|workspace)/[\w.]"

# Headers that outsiders read. Their comments, and every README.md, use the words of the field.
PROSE_HEADERS = [
    "runtime/include/quernel/runtime.h", "runtime/include/quernel/runtime.hpp", "runtime/core/device.h",
    "schemas/kernel_abi.h", "compiler/include/quernel/compiler.h", "compiler/graph/ir.h", "compiler/graph/passes/passes.h",
    "compiler/loop/ir.h", "compiler/lower/loop_nest.h", "compiler/lower/evaluate.h", "compiler/targets/target.h",
    "compiler/schedule/schedule.h", "compiler/schedule/steps.h", "compiler/schedule/contraction/contraction_plan.h",
    "compiler/schedule/contraction/tiling.h", "compiler/schedule/target_passes/target_passes.h",
    "compiler/schedule/winograd/winograd_plan.h",
]

# private word (regular expression): the word of the field. A blank matches line ends, too.
PRIVATE_WORDS = [
    (r"\bturned tiles?\b|\bturn(s|ed|ing)? round\b",         '"transposed" or "reversed"'),
    (r"\brest of (the )?columns\b|\b(rows|columns) (that|which) are left\b", '"tail tile" or "remainder"'),
    (r"\bstaged images?\b",                                  '"im2row buffer"'),
    (r"(?<![Bb]oundary-)\bclipped windows?\b",                  '"boundary-clipped windows"'),
    (r"\bputs? (\w+ )?together\b|\bputting together\b",      '"packed", "gathered" or "combined"'),
    (r"\b(nearest|nearer|near|first-level|second-level) caches?\b", '"L1" or "L2"'),
    (r"\bworkgroup's memory\b|(?<!shared )\bmemory of (a|the|its) workgroup\b", '"shared memory"'),
    (r"\b(made|making) ready\b",                             '"prepared"'),
    (r"\blies? in place\b|\bas (it lies|they lie)\b",        '"in place"'),
    (r"\b(processor|CPU) beside (it|the|a|an|that)\b",       '"companion CPU"'),
    (r"\bproducts? of (packed )?bytes\b",                    '"int8 dot products"'),
    (r"\banew\b",                                            '"again", "rewritten" or "reassociated"'),
    (r"\bstraight stretch(es)?\b|\bstretch(es)? of\b",       '"segment"'),
    (r"\bby trial\b",                                        '"policy"'),
    (r"\bgives? (a|no) token\b",                             '"multi-result"'),
    (r"\b([Ii]n|on) firmware\b|\bfirmware targets?\b",       '"bare metal"'),
    (r"\b[Ii]n place of\b",                                  '"instead of"'),
    (r"\bthe present (?!keys?\b|values?\b|of\b|is\b|and\b|or\b|in\b|as\b)[a-z]+", '"current"'),
    (r"(?<![Ii]nstead )\bof (its|their) own(?= ?[^\w ]| (and|as|at|but|by|for|from|if|in|is|of|on|or|per|so|that|to|when|where|which|with)\b|$)",
     '"separate", or "its own" before the noun'),
    (r", for (it|they|these|those) (is|are|has|have|can|would)\b", '"because"'),
    (r"(?:^|(?<=[.!?:] ))Of (?!course)",                      'the noun before its "of"'),
]
