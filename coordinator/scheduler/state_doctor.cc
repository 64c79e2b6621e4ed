// Questions to agents about their nodes: handed on, and answered by the agent, by its silence or by
// the end of its session.
#include <fmt/format.h>

#include <algorithm>

#include "coordinator/scheduler/state_impl.h"

namespace assay {
namespace {

// Of one node. An agent answers all that wait with one report.
constexpr int kMostQuestions = 16;

}  // namespace

void CoordinatorState::Impl::On(const event::AskDoctor& e) {
  const Node* node = fleet_.Find(e.node);
  if (node == nullptr) {
    return Answer(e.token, NoSuchNode(e.node));
  }
  if (!node->Up()) {
    return Answer(e.token, absl::UnavailableError(fmt::format(
                               "the agent of {} is not connected; log in there and type "
                               "`assay doctor`",
                               e.node)));
  }
  if (!node->answers_doctor) {
    return Answer(e.token, absl::UnimplementedError(fmt::format(
                               "the agent of {} is version {}, which cannot check its node; "
                               "install a newer one there",
                               e.node, node->inventory.agent_version)));
  }
  const auto waiting = std::count_if(doctor_questions_.begin(), doctor_questions_.end(),
                                     [&](const auto& q) { return q.second.node == e.node; });
  if (waiting >= kMostQuestions) {
    return Answer(e.token, absl::ResourceExhaustedError(fmt::format(
                               "{} questions wait for the checks of {} already", waiting, e.node)));
  }
  const uint64_t number = ++last_doctor_question_;
  doctor_questions_[number] = {e.token, e.node, node->session, now_ + times_.doctor};
  Send(node->session, message::DoctorQuestion{number});
}

void CoordinatorState::Impl::On(const event::DoctorAnswer& e) {
  const auto found = doctor_questions_.find(e.number);
  if (found == doctor_questions_.end() || found->second.session != e.session) return;
  const DoctorQuestion question = std::move(found->second);
  doctor_questions_.erase(found);
  if (!e.error.empty()) {
    return Answer(question.token,
                  absl::InternalError(fmt::format("node {}: {}", question.node, e.error)));
  }
  DoctorReply reply{e.report};
  reply.report.node = question.node;
  Answer(question.token, absl::OkStatus(), std::move(reply));
}

void CoordinatorState::Impl::ReviewDoctorQuestions() {
  for (auto it = doctor_questions_.begin(); it != doctor_questions_.end();) {
    const DoctorQuestion& question = it->second;
    const Node* node = fleet_.Find(question.node);
    const bool gone = node == nullptr || node->session != question.session;
    if (!gone && now_ < question.until) {
      ++it;
      continue;
    }
    Answer(question.token,
           gone ? absl::UnavailableError(fmt::format(
                      "the agent of {} went away before it had checked its node", question.node))
                : absl::DeadlineExceededError(
                      fmt::format("the agent of {} did not answer within {:.0f} s", question.node,
                                  Seconds(times_.doctor))));
    it = doctor_questions_.erase(it);
  }
}

}  // namespace assay
