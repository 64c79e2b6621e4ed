// Lifeline: ends this process when the agent that started it is gone.
//
// The agent writes a byte every SECONDS/4. At end of file, or after SECONDS of silence, the thread
// here calls _exit(143): no destructor runs, since a hung CUDA call would block it for ever.
#ifndef ASSAY_RUNNERS_COMMON_LIFELINE_H_
#define ASSAY_RUNNERS_COMMON_LIFELINE_H_

#include <thread>

namespace assay {

class Lifeline {
 public:
  // Takes over `fd`. Throws BadInput where it is not open. `seconds` > 0.
  Lifeline(int fd, double seconds);
  // Stops the thread and closes the descriptor.
  ~Lifeline();
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;

 private:
  void Watch();

  const int fd_;
  const double seconds_;
  int stop_pipe_[2] = {-1, -1};
  std::thread thread_;
};

}  // namespace assay

#endif  // ASSAY_RUNNERS_COMMON_LIFELINE_H_
