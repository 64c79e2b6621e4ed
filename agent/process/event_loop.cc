#include "agent/process/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <array>
#include <cerrno>

#include "common/status/status.h"

namespace assay {
namespace {

constexpr uint64_t kTimerKey = 0;
constexpr uint64_t kMailboxKey = ~uint64_t{0};

absl::Status Add(int epoll, int fd, uint32_t events, uint64_t key) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
    return ErrnoStatus(errno, "cannot watch a descriptor with epoll");
  }
  return absl::OkStatus();
}

void Drain(int fd) {
  uint64_t count;
  while (::read(fd, &count, sizeof count) == sizeof count) {
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<EventLoop>> EventLoop::Create() {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return ErrnoStatus(errno, "cannot create an epoll descriptor");
  UniqueFd timer(::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!timer) return ErrnoStatus(errno, "cannot create a timer descriptor");
  UniqueFd mailbox(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!mailbox) return ErrnoStatus(errno, "cannot create an event descriptor");
  ASSAY_RETURN_IF_ERROR(Add(epoll.get(), timer.get(), EPOLLIN, kTimerKey));
  ASSAY_RETURN_IF_ERROR(Add(epoll.get(), mailbox.get(), EPOLLIN, kMailboxKey));
  return std::unique_ptr<EventLoop>(
      new EventLoop(std::move(epoll), std::move(timer), std::move(mailbox)));
}

EventLoop::EventLoop(UniqueFd epoll, UniqueFd timer, UniqueFd mailbox)
    : epoll_(std::move(epoll)), timer_(std::move(timer)), mailbox_(std::move(mailbox)) {}

EventLoop::~EventLoop() = default;

absl::Status EventLoop::Watch(int fd, uint32_t epoll_events, FdCallback callback) {
  Unwatch(fd);
  const uint64_t id = next_id_++;
  ASSAY_RETURN_IF_ERROR(Add(epoll_.get(), fd, epoll_events, id));
  watched_[id] = {fd, std::make_shared<FdCallback>(std::move(callback))};
  id_of_fd_[fd] = id;
  return absl::OkStatus();
}

void EventLoop::Unwatch(int fd) {
  const auto found = id_of_fd_.find(fd);
  if (found == id_of_fd_.end()) return;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  watched_.erase(found->second);
  id_of_fd_.erase(found);
}

EventLoop::TimerId EventLoop::RunAt(BootTime when, std::function<void()> callback) {
  const TimerId timer{when, next_id_++};
  timers_.emplace(timer, std::move(callback));
  return timer;
}

void EventLoop::Cancel(const TimerId& timer) { timers_.erase(timer); }

void EventLoop::Post(std::function<void()> callback) {
  {
    MutexLock lock(mutex_);
    posted_.push_back(std::move(callback));
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(mailbox_.get(), &one, sizeof one);
}

void EventLoop::Stop() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(mailbox_.get(), &one, sizeof one);
}

void EventLoop::Run() {
  for (;;) {
    {
      MutexLock lock(mutex_);
      if (stop_) {
        stop_ = false;
        return;
      }
    }
    RunOnce();
  }
}

bool EventLoop::RunUntil(const std::function<bool()>& done, BootTime deadline) {
  bool late = false;
  const TimerId timer = RunAt(deadline, [&late] { late = true; });
  while (!done() && !late) RunOnce();
  Cancel(timer);
  return done();
}

void EventLoop::RunOnce() {
  ArmTimer();
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), -1);
  for (int i = 0; i < count; ++i) {
    const uint64_t key = events[i].data.u64;
    if (key == kTimerKey) {
      Drain(timer_.get());
      armed_for_.reset();
    } else if (key == kMailboxKey) {
      Drain(mailbox_.get());
    } else if (const auto found = watched_.find(key); found != watched_.end()) {
      // A copy, since the callback may unwatch itself.
      const std::shared_ptr<FdCallback> callback = found->second.second;
      (*callback)(events[i].events);
    }
  }
  RunTimers();
  RunMailbox();
}

void EventLoop::RunTimers() {
  const BootTime now = BootClock::now();
  while (!timers_.empty() && timers_.begin()->first.first <= now) {
    const std::function<void()> callback = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    callback();
  }
}

void EventLoop::RunMailbox() {
  std::vector<std::function<void()>> posted;
  {
    MutexLock lock(mutex_);
    posted.swap(posted_);
  }
  for (const auto& callback : posted) callback();
}

void EventLoop::ArmTimer() {
  std::optional<BootTime> next;
  if (!timers_.empty()) next = timers_.begin()->first.first;
  if (next == armed_for_) return;
  armed_for_ = next;
  itimerspec spec{};
  if (next) {
    // Zero would disarm the timer; a point that passed long ago fires at once.
    const int64_t ns = std::max<int64_t>(next->time_since_epoch().count(), 1);
    spec.it_value.tv_sec = ns / 1'000'000'000;
    spec.it_value.tv_nsec = ns % 1'000'000'000;
  }
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

}  // namespace assay
