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
    (r".*tflite_generated\.h$", ("compiler/frontends/tflite/", "tests/"), "nothing after the importer knows TensorFlow Lite"),
    (r"flatbuffers/|.*bundle_generated\.h$", ("compiler/bundle/", "compiler/frontends/tflite/", "runtime/core/bundle_reader", "schemas/bundle_tables.h", "tests/"),
     "the bundle is written in one place and read in one place"),
    (r"vulkan/",                      ("runtime/vulkan/", "tests/unit/vulkan/"), "Vulkan is a layer on top of the core"),
    (r"CLI/",                         ("compiler/tools/",), "command lines are the tools' business"),
    (r"(iostream|fstream|sstream|thread|mutex|condition_variable|future|filesystem|stdexcept|regex)$",
     ("compiler/", "runtime/cpu/", "runtime/platform/", "runtime/vulkan/", "runtime/tools/", "tests/", "examples/"),
     "the runtime's core needs no files, threads or exceptions"),
]

# Names of the standard library: the header that declares them. Sources include it themselves or by headers of the project,
# although precompiled headers (QUERNEL_PRECOMPILE_HEADERS) would let them compile without.
STANDARD_NAMES = {
    "algorithm": r"std::(sort|stable_sort|any_of|all_of|none_of|find_if|max_element|min_element|reverse|rotate|count_if|"
                 r"lower_bound|upper_bound|unique|transform|is_sorted|clamp|fill_n|remove_if)\(",
    "array":     r"std::array<",
    "cmath":     r"std::(sqrt|exp|log|log2|pow|ldexp|frexp|floor|ceil|round|isnan|isinf|isfinite|fmod|nearbyint)\(",
    "cstring":   r"std::(memcpy|memset|memcmp|memmove|strlen|strcmp|strncmp|strchr)\(",
    "functional": r"std::function<",
    "limits":    r"std::numeric_limits<",
    "map":       r"std::(multi)?map<",
    "numeric":   r"std::(accumulate|iota|gcd|lcm)\(",
    "optional":  r"std::(optional<|nullopt)",
    "set":       r"std::(multi)?set<",
    "unordered_map": r"std::unordered_map<",
}

# What lowering may ask a target, and why: everything else is decided in the schedule, printed with it, and data. Nor may
# lowering hand a target to a function of the schedule that decides.
LOWERING = "compiler/lower/"
LOWERING_ASKS = {
    "lanes":                "elements of a vector",
    "has_masks":            "whether the tail of a vector is one vector with a mask",
    "lanes_are_invocations": "whether lanes see each other's registers, and may follow separate ways",
}

# Folders that explain themselves in a README.md as soon as they hold a file.
DOCUMENTED = [
    ".", "compiler", "compiler/support", "compiler/frontends", "compiler/graph", "compiler/ops", "compiler/schedule",
    "compiler/schedule/plans", "compiler/lower", "compiler/loop", "compiler/pipeline", "compiler/targets", "compiler/codegen",
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

# The behaviour that a test of GoogleTest holds is its name.
TEST = r"(?:TYPED_)?TEST(?:_P|_F)?\(\s*\w+,\s*(\w+)\)"
TEST_NAME = r"[a-z0-9]+(_[a-z0-9]+)*"

# Paths that exist on somebody's machine only.
MACHINE_PATH = r"(?<![\w.])/(home|root|Users|mnt|media|work|workspace)/[\w.]"


def headers(folder, names):
    return [f"{folder}/{name}.h" for name in names.split()]


# Headers whose comments, like every README.md, use the words of the field.
PROSE_HEADERS = [
    "compiler/codegen/static_program.h", "compiler/graph/ir.h", "compiler/graph/passes/passes.h",
    "compiler/include/quernel/compiler.h", "compiler/schedule/target_passes/target_passes.h",
    "compiler/targets/target.h", "runtime/include/quernel/custom_op.hpp", "runtime/include/quernel/runtime.h",
    "runtime/include/quernel/runtime.hpp", "runtime/null/null_device.h", "schemas/bundle.fbs",
    *headers("compiler/bundle", """
        build_static_program bundle_contents bundle_from_schedule bundle_structure c_identifiers custom_kernels
        model_header read_bundle strip_variants write_bundle write_static"""),
    *headers("compiler/codegen/c", "kernel_printer prelude print_kernels print_program program_printer"),
    *headers("compiler/codegen/llvm", """
        check_kernel compile_kernels elementary_functions emitted_text expand_instructions function_printer
        instruction_set kernel_emitter link_image math_builder object_code optimize prebuilt_kernel
        print_function program_emitter stack_use static_archive"""),
    *headers("compiler/codegen/spirv", "compile_shaders distribution glsl_prelude shader_printer spirv_module"),
    *headers("compiler/codegen/text", "c_like_printer glsl_float if_text language"),
    *headers("compiler/loop", """
        evaluate_scalar fold index_ranges interpret interval ir parse parser passes print rewrite verify"""),
    *headers("compiler/loop/passes", "affine simplify_expr"),
    *headers("compiler/lower", """
        block_sums contract_lowering evaluate lane_reduction loop_nest lower_item register_tile
        selection_heap shared_rows staged_image store_tile transpose_tiles winograd_transforms words"""),
    *headers("compiler/schedule", """
        choice_words choices custom_call group_reads in_place kernel_limits packings print_schedule schedule selection
        split_limits steps storage tunable_kernels verify_schedule"""),
    *headers("compiler/schedule/attention", "attention_block row_softmax"),
    *headers("compiler/schedule/contraction", """
        contraction_plan contraction_text image_layout operand_access pack_operand plan_contraction plan_walk
        sliding_windows tile_estimates tile_loops tile_walk tiling"""),
    *headers("compiler/schedule/plans", "access_walk axes loop_choice loop_key loop_options loop_plan operand_indices plan_loops rows_plan scatter_plan work_plan"),
    *headers("compiler/schedule/winograd", "expand_winograd winograd_plan winograd_weights"),
    *headers("runtime/choose", "choice_file compare_devices compare_tensors test_vectors"),
    *headers("runtime/core", """
        bundle bundle_reader bundle_reader_bodies bundle_reader_shape bundle_reader_verify custom_op
        describe device expression failure feature_names lock page_words session signature submission trace"""),
    *headers("runtime/cpu", "cpu_features image sharing_choice thread_pool"),
    *headers("runtime/platform", "file library platform"),
    *headers("runtime/tools", """
        list_bundle open_device output_text record_run run_tests tensor_file tensor_file_compare trace_file"""),
    *headers("runtime/vulkan", """
        spirv_module vulkan_api vulkan_blocks vulkan_counts vulkan_device vulkan_features vulkan_record
        vulkan_windows"""),
    *headers("schemas", "bundle_hash bundle_tables kernel_abi printable utf8"),
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
