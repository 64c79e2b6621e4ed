#include <gtest/gtest.h>
#include <openssl/crypto.h>
#include <unistd.h>

#include <cstdlib>

#include "common/net/address.h"
#include "common/net/grpc_options.h"

namespace assay {
namespace {

// A command that gave up in a handshake crashed at times: OpenSSL had cleaned up at exit while a
// thread of gRPC was in it.
TEST(GrpcOptionsDeathTest, OpenSslIsNotTakenFromGrpcsThreadsAtExit) {
  EXPECT_EXIT(
      {
        (void)MakeChannel(ParseAddress("127.0.0.1:1").value(), ChannelUse::kUser);
        OPENSSL_atexit([] { _exit(9); });
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace assay
