# The program and what stands between its parts; included by coordinator/CMakeLists.txt.
assay_library(assay_coordinator_loop SOURCES state_loop.cc
  PUBLIC assay_clock assay_coordinator_state assay_sync Threads::Threads)
assay_library(assay_local_agent SOURCES local_agent.cc
  PUBLIC absl::status Threads::Threads
  PRIVATE assay_clock assay_log assay_net assay_status fmt::fmt)
assay_library(assay_coordinator_options SOURCES options.cc
  PUBLIC absl::statusor assay_net PRIVATE assay_config assay_status CLI11::CLI11)
assay_library(assay_coordinator_server SOURCES coordinator.cc
  PUBLIC assay_coordinator_api assay_coordinator_loop assay_coordinator_session
    assay_coordinator_state assay_coordinator_store assay_grpc_net
  PRIVATE assay_status fmt::fmt)
assay_program(assay-coordinator SOURCES main.cc
  PRIVATE assay_certs assay_coordinator_options assay_coordinator_server assay_coordinator_store
    assay_local_agent assay_log assay_net assay_status fmt::fmt)
