# quernel_add_model(NAME name MODEL file [TARGET target...] [EMIT bundle|static|c] [OPTIONS argument...])
#
# Compiles a model when the project is built, again when the model or the compiler changes. It runs the host's `quernel`
# and no program of the target, so that it works in cross builds, too.
#
#   NAME     the CMake target that is made, and the stem of the files, which go to the current binary directory
#   MODEL    the .onnx file, relative to the current source directory
#   TARGET   what `quernel targets` lists; several in a bundle only. Default: QUERNEL_TARGET, which the toolchain files of
#            Quernel set, else native, which is for builds that do not cross-compile
#   EMIT     bundle: NAME.qnl; its path is the property QUERNEL_BUNDLE of the target NAME
#            static, c: a library NAME to link, with the header NAME.h. Default on bare metal: static, else bundle
#   OPTIONS  further arguments of `quernel compile`
#
# The compiler is the program QUERNEL_PROGRAM: set it where `quernel` is neither on the path nor installed beside this
# package.
function(quernel_add_model)
  cmake_parse_arguments(PARSE_ARGV 0 model "" "NAME;MODEL;EMIT" "TARGET;OPTIONS")
  foreach(needed NAME MODEL)
    if(NOT model_${needed})
      message(FATAL_ERROR "quernel_add_model: expected ${needed}")
    endif()
  endforeach()
  if(model_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "quernel_add_model: unknown argument '${model_UNPARSED_ARGUMENTS}'; "
      "expected NAME, MODEL, TARGET, EMIT and OPTIONS")
  endif()
  if(NOT model_EMIT)
    set(model_EMIT bundle)
    if(CMAKE_SYSTEM_NAME STREQUAL Generic)
      set(model_EMIT static)
    endif()
  endif()
  if(NOT model_EMIT MATCHES "^(bundle|static|c)$")
    message(FATAL_ERROR "quernel_add_model: EMIT: expected bundle, static or c, found '${model_EMIT}'")
  endif()
  if(NOT model_TARGET)
    if(QUERNEL_TARGET)
      set(model_TARGET ${QUERNEL_TARGET})
    elseif(CMAKE_CROSSCOMPILING)
      message(FATAL_ERROR "quernel_add_model: a cross build needs TARGET; `quernel targets` lists them")
    else()
      set(model_TARGET native)
    endif()
  endif()
  find_program(QUERNEL_PROGRAM quernel HINTS "${QuernelRuntime_DIR}/../../../bin" NO_CMAKE_FIND_ROOT_PATH
    DOC "Quernel's compiler, for the machine that builds")
  if(NOT QUERNEL_PROGRAM)
    message(FATAL_ERROR "quernel_add_model: no program quernel: set QUERNEL_PROGRAM to its path on this machine")
  endif()

  get_filename_component(source "${model_MODEL}" ABSOLUTE)
  set(stem "${CMAKE_CURRENT_BINARY_DIR}/${model_NAME}")
  set(arguments ${source} --quiet ${model_OPTIONS})
  foreach(target ${model_TARGET})
    list(APPEND arguments --target ${target})
  endforeach()
  if(model_EMIT STREQUAL bundle)
    set(files ${stem}.qnl)
    list(APPEND arguments -o ${stem}.qnl)
  elseif(model_EMIT STREQUAL static)
    set(files ${stem}.a ${stem}.h)
    list(APPEND arguments --emit static -o ${stem})
  else()
    set(files ${stem}.c ${stem}_weights.c ${stem}_memory.c ${stem}.h)
    list(APPEND arguments --emit c -o ${stem})
  endif()
  add_custom_command(OUTPUT ${files} COMMAND ${QUERNEL_PROGRAM} compile ${arguments}
    DEPENDS ${source} ${QUERNEL_PROGRAM} COMMENT "Compiling ${model_MODEL} for ${model_TARGET}" VERBATIM)

  if(model_EMIT STREQUAL bundle)
    add_custom_target(${model_NAME} ALL DEPENDS ${files})
    set_target_properties(${model_NAME} PROPERTIES QUERNEL_BUNDLE ${stem}.qnl)
  elseif(model_EMIT STREQUAL static)
    add_custom_target(${model_NAME}_files DEPENDS ${files})
    add_library(${model_NAME} STATIC IMPORTED GLOBAL)
    set_target_properties(${model_NAME} PROPERTIES
      IMPORTED_LOCATION ${stem}.a INTERFACE_INCLUDE_DIRECTORIES ${CMAKE_CURRENT_BINARY_DIR})
    add_dependencies(${model_NAME} ${model_NAME}_files)
  else()
    add_library(${model_NAME} STATIC ${files})
    target_include_directories(${model_NAME} PUBLIC ${CMAKE_CURRENT_BINARY_DIR})
    # The bits of the other forms; no calls of a C library for loops.
    target_compile_options(${model_NAME} PRIVATE
      $<$<C_COMPILER_ID:GNU,Clang>:-ffp-contract=off> $<$<C_COMPILER_ID:GNU>:-fno-tree-loop-distribute-patterns>)
  endif()
endfunction()
