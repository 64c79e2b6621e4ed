// Messages of the Fleet service to events of the state machine, and its actions to messages.
// Thread rule: pure functions, any thread. What does not fit is cut or dropped (common/wire).
#ifndef ASSAY_COORDINATOR_SESSION_MESSAGE_CODEC_H_
#define ASSAY_COORDINATOR_SESSION_MESSAGE_CODEC_H_

#include <optional>
#include <string>

#include "assay/v1/fleet_service.pb.h"
#include "coordinator/cell/actions.h"
#include "coordinator/cell/events.h"

namespace assay {

// nullopt for a message without a body that this version knows.
std::optional<Event> EventOf(SessionHandle session, const std::string& peer,
                             const v1::AgentMessage& message);

v1::CoordinatorMessage MessageOf(const CoordinatorMessage& message);

}  // namespace assay

#endif  // ASSAY_COORDINATOR_SESSION_MESSAGE_CODEC_H_
