#include "runners/train/loaded_library.h"

#include <elf.h>
#include <link.h>

#include <cstring>

namespace assay::train {
namespace {

struct Search {
  std::string_view file;
  std::string id;
};

size_t Padded(size_t bytes) { return (bytes + 3) & ~size_t{3}; }

// The build id among the notes of one segment, which the loader has mapped; empty if it is not.
std::string IdInNotes(const char* notes, size_t size) {
  static constexpr char kDigits[] = "0123456789abcdef";
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof note);
    const size_t name = sizeof note;
    const size_t content = name + Padded(note.n_namesz);
    const size_t next = content + Padded(note.n_descsz);
    if (next > size) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(notes + name, "GNU", 4) == 0) {
      std::string id;
      for (size_t i = 0; i < note.n_descsz; ++i) {
        const auto byte = static_cast<unsigned char>(notes[content + i]);
        id += kDigits[byte >> 4];
        id += kDigits[byte & 15];
      }
      return id;
    }
    notes += next;
    size -= next;
  }
  return "";
}

int Look(dl_phdr_info* info, size_t, void* context) {
  auto& search = *static_cast<Search*>(context);
  const std::string_view path = info->dlpi_name ? info->dlpi_name : "";
  // The program itself has no path here.
  if (path.empty() || path.substr(path.rfind('/') + 1) != search.file) return 0;
  for (ElfW(Half) i = 0; i < info->dlpi_phnum && search.id.empty(); ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    search.id = IdInNotes(reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr),
                          segment.p_memsz);
  }
  return 1;
}

}  // namespace

std::string BuildIdOf(std::string_view file) {
  Search search{file, ""};
  dl_iterate_phdr(&Look, &search);
  return search.id;
}

}  // namespace assay::train
