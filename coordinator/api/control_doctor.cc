// Doctor: the one call that an agent answers.
#include <utility>
#include <variant>

#include "common/net/grpc_options.h"
#include "common/wire/wire.h"
#include "coordinator/api/access.h"
#include "coordinator/api/control_service.h"
#include "coordinator/api/unary_call.h"

namespace assay {

grpc::ServerUnaryReactor* ControlService::Doctor(grpc::CallbackServerContext* context,
                                                 const v1::DoctorRequest* request,
                                                 v1::DoctorReply* response) {
  auto* call = new UnaryCall(*this);
  if (!Access(parts_.peers, *context, "doctor").Allow(Role::kView, call)) return call;
  parts_.loop.Call(
      [node = wire::CleanText(request->node(), wire::kMaxNameBytes)](ReplyToken token) -> Event {
        return event::AskDoctor{token, node};
      },
      [call, response](const Reply& reply) {
        if (const auto* body = std::get_if<DoctorReply>(&reply.body); body != nullptr) {
          wire::ToProto(body->report, response->mutable_report());
        }
        call->Finish(ToGrpcStatus(reply.status));
      });
  return call;
}

}  // namespace assay
