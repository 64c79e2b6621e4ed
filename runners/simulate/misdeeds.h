// Misdeeds: what a behaviour does to the process itself, at the points of a cell where it does so.
#ifndef ASSAY_RUNNERS_SIMULATE_MISDEEDS_H_
#define ASSAY_RUNNERS_SIMULATE_MISDEEDS_H_

#include <cstdint>
#include <nlohmann/json.hpp>

#include "runners/common/record_writer.h"
#include "runners/simulate/behaviour.h"

namespace assay::simulate {

// Before the start barrier: ignored signals, a grandchild, a hang.
void BeforeJoin(const Behaviour& behaviour);

// In the measured window: crash, exit, hang, garbage, output, closed records, exception.
void WhileMeasuring(const Behaviour& behaviour, RecordWriter& records);

// Behind it: figures as a runner gives them that measures wrongly.
void Misreport(const Behaviour& behaviour, int64_t steps, nlohmann::json& fields);

}  // namespace assay::simulate

#endif  // ASSAY_RUNNERS_SIMULATE_MISDEEDS_H_
