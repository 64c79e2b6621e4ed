// Session messages as plain types (proto/assay/v1/fleet_service.proto); grpc_fleet converts.
#ifndef ASSAY_AGENT_SESSION_MESSAGES_H_
#define ASSAY_AGENT_SESSION_MESSAGES_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "agent/cell/messages.h"
#include "common/doctor/doctor_report.h"
#include "common/fleet/inventory.h"

namespace assay {

struct Hello {
  uint32_t protocol = 0;
  std::string instance;
  NodeInventory inventory;
  std::vector<std::string> held_attempts;
  std::vector<std::string> spooled_attempts;
  bool draining = false;
  bool former_gangs_ended = false;
  bool answers_doctor = true;
  uint64_t ordinal = 0;  // of the Hellos of this instance, from 1
};

struct Heartbeat {
  uint64_t number = 0;
  std::vector<std::string> held_attempts;
  bool draining = false;
  WallTime sent_at{};
};

// A report as it lies in the spool: bytes of the wire's own form.
struct SpooledReport {
  std::string attempt;
  std::string bytes;
};

struct Leave {
  std::string reason;
};

struct DoctorAnswer {
  uint64_t number = 0;
  DoctorReport report;
  std::string error;  // one sentence where there is no report
};

using AgentMessage = std::variant<Hello, Heartbeat, GangReady, GangRefused, RanksJoined,
                                  GangProgress, SpooledReport, Leave, DoctorAnswer>;

struct Welcome {
  uint64_t session_epoch = 0;
  uint32_t protocol = 0;
  double heartbeat_seconds = 0;
  double lease_seconds = 0;
  double lifeline_seconds = 0;
  double kill_grace_seconds = 0;
  std::vector<std::string> unknown_attempts;
};

struct Refuse {
  std::string reason;
  std::string message;
  bool retry = true;
};

struct HeartbeatAck {
  uint64_t number = 0;
};

struct ReportAck {
  std::string attempt;
};

struct Drain {
  bool on = false;
};

struct DoctorQuestion {
  uint64_t number = 0;
};

}  // namespace assay

#endif  // ASSAY_AGENT_SESSION_MESSAGES_H_
