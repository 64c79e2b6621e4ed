// Wire: proto messages of proto/assay/v1 to plain types and back.
//
// What a peer sends is material, not truth: From* never fails, aborts or grows without bound. Text
// is scrubbed to UTF-8 (a broken byte becomes U+FFFD) and cut, lists are cut, an enum value out of
// range is "not known", a field of a record that this version does not know, or of another type, is
// dropped. What must be refused as a whole is for the caller to say. To* writes only valid UTF-8,
// since protobuf refuses to parse anything else.
//
// Thread rule: pure functions, any thread.
#ifndef ASSAY_COMMON_WIRE_WIRE_H_
#define ASSAY_COMMON_WIRE_WIRE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/v1/common.pb.h"
#include "assay/v1/control_service.pb.h"
#include "common/doctor/doctor_report.h"
#include "common/fleet/inventory.h"
#include "common/matrix/spec.h"
#include "common/results/outcome.h"
#include "common/results/record.h"

namespace assay::wire {

inline constexpr size_t kMaxNameBytes = 256;          // ids, names, axis words, UUIDs, versions
inline constexpr size_t kMaxSentenceBytes = 4 << 10;  // messages, warnings
inline constexpr size_t kMaxLogTailBytes = 16
                                           << 10;  // log tails keep their end, all else its start
inline constexpr size_t kMaxFieldTextBytes = 64 << 10;  // a text or list of a record (4,096 UUIDs)
inline constexpr size_t kMaxDevices = 1024;             // a node with MIG slices has at most 112
inline constexpr size_t kMaxStacks = 256;
inline constexpr size_t kMaxListItems = 1024;

// Valid UTF-8 of at most `limit` bytes; a text that was cut ends in " [cut]".
std::string CleanText(std::string_view text, size_t limit);
// The same, keeping the end.
std::string CleanTail(std::string_view text, size_t limit);

void ToProto(const Spec& spec, v1::Spec* out);
Spec FromProto(const v1::Spec& spec);  // numbers as they are: negative ones too, not-a-number as 0

void ToProto(const Device& device, v1::Device* out);
Device FromProto(const v1::Device& device);

void ToProto(const Stack& stack, v1::Stack* out);
Stack FromProto(const v1::Stack& stack);

void ToProto(const NodeInventory& inventory, v1::NodeInventory* out);
NodeInventory FromProto(const v1::NodeInventory& inventory);

void ToProto(const DoctorReport& report, v1::DoctorReport* out);
DoctorReport FromProto(const v1::DoctorReport& report);  // a state that is not known is kUnknown

v1::Outcome ToProto(Outcome outcome);
v1::Outcome ToProto(const std::optional<Outcome>& outcome);  // nullopt: OUTCOME_UNSPECIFIED
std::optional<Outcome> FromProto(v1::Outcome outcome);

// Known fields only, in the order of AllFields().
void ToProto(const Record& record, google::protobuf::RepeatedPtrField<v1::FieldValue>* out);
void ToProto(const Record& record, v1::Record* out);
// `dropped`, where given, receives the names (cut) of what was not taken over, at most 32 of them.
Record FromProto(const google::protobuf::RepeatedPtrField<v1::FieldValue>& fields,
                 std::vector<std::string>* dropped = nullptr);
Record FromProto(const v1::Record& record);

}  // namespace assay::wire

#endif  // ASSAY_COMMON_WIRE_WIRE_H_
