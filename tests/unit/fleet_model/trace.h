// Trace: a line for each thing that happens in a world, where ASSAY_TRACE is set: to read a failing
// schedule by.
#ifndef ASSAY_TESTS_UNIT_FLEET_MODEL_TRACE_H_
#define ASSAY_TESTS_UNIT_FLEET_MODEL_TRACE_H_

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <typeinfo>
#include <variant>

#include "common/clock/clock.h"

namespace assay::model {

inline bool Tracing() {
  static const bool tracing = std::getenv("ASSAY_TRACE") != nullptr;
  return tracing;
}

// "N5assay5event9GangReadyE 000..5": the type as the compiler spells it, and the attempt's number.
template <typename Variant>
void Trace(BootTime now, uint64_t session, const Variant& what) {
  if (!Tracing()) return;
  std::visit(
      [&](const auto& each) {
        uint64_t of = session;
        if constexpr (requires { each.session; }) of = each.session;
        std::string attempt;
        if constexpr (requires { each.attempt; }) attempt = each.attempt;
        if constexpr (requires { each.held_attempts; }) {
          for (const std::string& held : each.held_attempts) attempt += held + " held ";
        }
        fmt::print("{:9.3f} s  session {:3}  {} {}\n",
                   std::chrono::duration<double>(now.time_since_epoch()).count(), of,
                   typeid(each).name(), attempt);
      },
      what);
}
inline void Trace(BootTime now, const std::string& text) {
  if (!Tracing()) return;
  fmt::print("{:9.3f} s  {}\n", std::chrono::duration<double>(now.time_since_epoch()).count(),
             text);
}

}  // namespace assay::model

#endif  // ASSAY_TESTS_UNIT_FLEET_MODEL_TRACE_H_
