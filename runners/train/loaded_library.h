// Which library this process really loaded: what a version that was compiled in cannot tell.
#ifndef ASSAY_RUNNERS_TRAIN_LOADED_LIBRARY_H_
#define ASSAY_RUNNERS_TRAIN_LOADED_LIBRARY_H_

#include <string>
#include <string_view>

namespace assay::train {

// The GNU build id (the linker's hash of the library's contents, as `readelf -n` and `file` print
// it) in lower-case hexadecimal, of the loaded library whose file is called `file` ("libc10.so").
// Empty where no such library is loaded or it has none. Any thread.
std::string BuildIdOf(std::string_view file);

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_LOADED_LIBRARY_H_
