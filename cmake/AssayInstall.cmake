# `cmake --install` makes a folder that can be moved, and that runs on a newer distribution: the
# shared libraries that the control plane links (gRPC, protobuf, abseil, ...) are copied to lib/, less
# those that belong to the system (C and C++ runtime), which newer systems serve compatibly.
#
# The LibTorch runner finds its framework where it was built against it (docs/architecture.md); a
# GPU node builds the runners beside its own stack.
install(CODE [[
  file(GLOB programs "${CMAKE_INSTALL_PREFIX}/bin/assay" "${CMAKE_INSTALL_PREFIX}/bin/assay-agent"
    "${CMAKE_INSTALL_PREFIX}/bin/assay-coordinator" "${CMAKE_INSTALL_PREFIX}/bin/assay-simulate")
  if(programs)
    file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${programs}
      RESOLVED_DEPENDENCIES_VAR resolved UNRESOLVED_DEPENDENCIES_VAR unresolved
      PRE_EXCLUDE_REGEXES "^ld-linux" "^libc\\.so" "^libm\\.so" "^libdl\\." "^libpthread\\."
        "^librt\\." "^libresolv\\." "^libstdc\\+\\+" "^libgcc_s" "^libasan" "^libubsan")
    if(unresolved)
      message(FATAL_ERROR "libraries not found: ${unresolved}")
    endif()
    foreach(library ${resolved})
      file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/lib" TYPE SHARED_LIBRARY
        FOLLOW_SYMLINK_CHAIN FILES ${library})
    endforeach()
  endif()
]])
