#!/usr/bin/env python3
"""Fetches LibTorch from the `torch` wheel, and what it needs to load, into one folder.

  fetch_libtorch.py [DEST] [--version 2.11.0] [--cuda]   prints the folder for -DASSAY_LIBTORCH
  fetch_libtorch.py --plan [...]           prints what would be fetched, nothing where it is there
  fetch_libtorch.py --cuda-headers [DEST]  nvcc and CUDA's headers, to compile CUDA code anywhere
  fetch_libtorch.py --wheel-folder         prints where downloaded wheels are kept

Without --cuda only the CPU's libraries are unpacked and, beside the torch wheel, only the two small
CUDA wheels that libtorch_cpu.so is linked with (cupti and cudart). With --cuda the whole of LibTorch
and every CUDA wheel it needs, some 2.5 GB. DEST has torch/ and nvidia/ side by side, since the
libraries find each other by a path relative to their own.

Standard library and pip only. Safe to run again and twice at a time: a folder appears complete or
not at all. Wheels are kept beside the folders and may be deleted. Progress goes to standard error,
the one line that a script wants to standard output.
"""

import argparse
import fcntl
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEPS = ROOT / ".deps"
DEFAULT_VERSION = "2.11.0"
# nvcc 13 by parts, and the headers that c10/cuda and our own CUDA code include. cuBLAS, cuSPARSE and
# cuSOLVER (400 MB) are left out on purpose: no source of ours may include ATen/cuda/CUDAContext.h.
CUDA_HEADER_WHEELS = [
    "nvidia-cuda-nvcc==13.0.*",
    "nvidia-cuda-crt==13.0.*",
    "nvidia-nvvm==13.0.*",
    "nvidia-cuda-cccl==13.0.*",
    "nvidia-cuda-runtime==13.0.*",
]
CUDA_HEADERS_MIB = 100


def say(text):
    print(text, file=sys.stderr, flush=True)


def fail(text):
    say("fetch_libtorch.py: " + text)
    sys.exit(1)


def mib(path):
    return path.stat().st_size / 2**20


class Wheels:
    """Downloads wheels once and keeps them."""

    def __init__(self, folder, extra):
        self.folder = folder
        self.extra = extra

    def get(self, requirement, tag=""):
        """The wheel of a requirement "name==version"; `tag` ("cp311") where any Python's will not do."""
        name, _, version = requirement.partition("==")
        # `13.0.*` and `2.11.0` alike; a local version such as +cu130 may follow.
        pattern = f"{name.replace('-', '_')}-{version.removesuffix('.*')}[-+.]*.whl"
        for folder in filter(None, [self.extra, self.folder]):
            found = sorted(f for f in folder.glob(pattern) if tag in f.name)
            if found:
                return found[-1]
        self.folder.mkdir(parents=True, exist_ok=True)
        say(f"downloading {requirement}")
        partial = self.folder / f"partial-{os.getpid()}"
        shutil.rmtree(partial, ignore_errors=True)
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:",
                   "--disable-pip-version-check", "-q", "-d", str(partial), requirement]
        if subprocess.run(command, stdout=sys.stderr).returncode != 0:
            shutil.rmtree(partial, ignore_errors=True)
            fail(f"pip could not download {requirement}; its own message stands above. Behind a proxy "
                 "set HTTPS_PROXY, or fetch the wheel elsewhere and give its folder by --wheel-dir")
        wheel = next(partial.glob("*.whl"))
        kept = self.folder / wheel.name
        wheel.rename(kept)
        shutil.rmtree(partial, ignore_errors=True)
        say(f"  {kept.name}, {mib(kept):.1f} MiB")
        return kept


def requirements(wheel):
    """(name, extras, version, marker) of each pinned Requires-Dist of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        text = archive.read(name).decode("utf-8")
    for line in text.splitlines():
        m = re.match(r"Requires-Dist: ([\w.-]+)(?:\[([\w,.-]+)\])?\s*\(?==([\w.*]+)\)?\s*(?:;(.*))?$", line)
        if m:
            yield m[1], (m[2] or "").split(","), m[3], m[4] or ""


def cuda_requirements(torch_wheel, wheels, cuda):
    """The CUDA wheels that LibTorch needs: all of them, or those of the CPU library alone."""
    wanted = []
    for name, extras, version, _ in requirements(torch_wheel):
        if name == "cuda-toolkit":  # from 2.10 on one wheel without files names the others
            toolkit = wheels.get(f"{name}=={version}")
            for part, _, part_version, marker in requirements(toolkit):
                extra = re.search(r"extra == ['\"]([\w-]+)['\"]", marker)
                linux = "sys_platform" not in marker or "linux" in marker
                if extra and linux and extra[1] in (extras if cuda else ["cupti", "cudart"]):
                    wanted.append(f"{part}=={part_version}")
        elif re.fullmatch(r"nvidia-cuda-(cupti|runtime)(-cu\d+)?", name) or (
                cuda and name.startswith("nvidia-")):
            wanted.append(f"{name}=={version}")
    return sorted(set(wanted))


def belongs(name, cuda):
    """Whether a file of the torch wheel is part of LibTorch."""
    if re.match(r"torch/(include|share)/|torch/version\.py$|torch-[^/]*\.dist-info/", name):
        return True
    if not re.match(r"torch/lib/[^/]*\.so[^/]*$", name):
        return False
    base = name.rsplit("/", 1)[1]
    if "python" in base or base.startswith("libshm"):
        return False
    return cuda or not (re.search(r"cuda|nvrtc|nvshmem", base) or base == "libtorch.so")


def unpack(wheel, folder, keep):
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            if info.is_dir() or not keep(info.filename):
                continue
            path = pathlib.Path(archive.extract(info, folder))
            mode = info.external_attr >> 16
            if mode & 0o111:
                path.chmod(0o755)


def check_loadable(folder):
    """Every library that libtorch_cpu.so names must be in the folder or the system's own."""
    readelf = shutil.which("readelf")
    if not readelf:
        return
    text = subprocess.run([readelf, "-dW", str(folder / "torch/lib/libtorch_cpu.so")],
                          capture_output=True, text=True).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.*?)\]", text)
    there = {p.name for p in folder.rglob("*.so*")}
    system = re.compile(r"(ld-linux-x86-64|lib(c|m|rt|dl|gcc_s|pthread|stdc\+\+))\.so")
    missing = [n for n in needed if n not in there and not system.match(n)]
    if missing:
        fail(f"libtorch_cpu.so needs {', '.join(missing)}, which none of the fetched wheels has")


class Target:
    """One folder to make: where, of what, and how to say so."""

    def __init__(self, dest, stamp):
        self.dest = dest
        self.stamp = stamp

    def complete(self):
        try:
            return json.loads((self.dest / "fetched.json").read_text()) == self.stamp
        except (OSError, ValueError):
            return False

    def make(self, fill):
        self.dest.parent.mkdir(parents=True, exist_ok=True)
        with open(self.dest.parent / ".fetch.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self.complete():
                return
            partial = self.dest.with_name(self.dest.name + ".partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            fill(partial)
            (partial / "fetched.json").write_text(json.dumps(self.stamp))
            shutil.rmtree(self.dest, ignore_errors=True)
            partial.rename(self.dest)


def fetch_libtorch(options, wheels, target):
    def fill(folder):
        torch = wheels.get(f"torch=={options.version}")
        parts = [wheels.get(r) for r in cuda_requirements(torch, wheels, options.cuda)]
        say(f"unpacking LibTorch {options.version} into {target.dest}")
        unpack(torch, folder, lambda name: belongs(name, options.cuda))
        for part in parts:
            unpack(part, folder, lambda name: options.cuda or "/lib/" in name and ".so" in name)
        check_loadable(folder)

    target.make(fill)


def fetch_cuda_headers(wheels, target):
    def fill(folder):
        for requirement in CUDA_HEADER_WHEELS:
            unpack(wheels.get(requirement), folder, lambda name: not name.endswith(".a"))

    target.make(fill)


def wheel_dir():
    """A folder of wheels to look in before downloading, from the environment."""
    folder = os.environ.get("ASSAY_WHEEL_DIR")
    return pathlib.Path(folder) if folder else None


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dest", nargs="?", type=pathlib.Path)
    parser.add_argument("--version", default=DEFAULT_VERSION)
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--plan", action="store_true")
    parser.add_argument("--cuda-headers", action="store_true")
    parser.add_argument("--wheel-folder", action="store_true")
    parser.add_argument("--wheel-dir", type=pathlib.Path, default=wheel_dir(),
                        help="folder of wheels to look in before downloading (ASSAY_WHEEL_DIR)")
    options = parser.parse_args()
    wheels = Wheels(DEPS / "wheels", options.wheel_dir)
    if options.wheel_folder:
        print(wheels.folder)
        return
    if options.cuda_headers:
        dest = (options.dest or DEPS / "cuda-headers").absolute()
        target = Target(dest, {"format": 1, "wheels": CUDA_HEADER_WHEELS})
        line = f"fetch    nvcc and CUDA's headers, about {CUDA_HEADERS_MIB} MiB to download"
        result, fetch = dest / "nvidia" / "cu13", lambda: fetch_cuda_headers(wheels, target)
    else:
        name = f"libtorch-{options.version}" + ("-cuda" if options.cuda else "")
        dest = (options.dest or DEPS / name).absolute()
        target = Target(dest, {"format": 1, "version": options.version, "cuda": options.cuda})
        size = "some 2,500 MiB" if options.cuda else "about 520 MiB"
        line = f"fetch    LibTorch {options.version}, {size} to download"
        result, fetch = dest / "torch", lambda: fetch_libtorch(options, wheels, target)
    if options.plan:
        if not target.complete():
            print(line)
        return
    if not target.complete():
        fetch()
    print(result)


if __name__ == "__main__":
    main()
