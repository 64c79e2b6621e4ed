#!/usr/bin/env python3
"""Makes .deps/reference: Python's torch, torchvision, timm and transformers on the CPU, for tests to
compare with.

The torch wheel is that of cmake/fetch_libtorch.py, from its wheel folder, so it is downloaded once.
Its Python extension is linked with every CUDA library, 2.5 GB that a CPU never calls. Instead of
them each gets a stub here: a small shared library with the same name and symbols whose functions
trap. 70 MiB of other wheels are downloaded (15 MiB of them timm and transformers, 16 MiB what these need),
and no weights. Needs gcc, readelf and nm. Prints the folder.
"""

import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import fetch_libtorch as libtorch

TORCHVISION = {"2.11.0": "0.26.0"}
PURE = ["numpy<3", "pillow", "filelock", "typing-extensions", "sympy", "networkx", "jinja2", "fsspec"]
# What importing the models needs; of what else they name, torch is the one above, and that is why they
# are installed without their dependencies.
MODELS = ["timm==1.0.31", "transformers==5.17.0"]
MODELS_NEED = ["huggingface-hub==1.5.0", "pyyaml", "regex", "safetensors", "tokenizers==0.23.1", "tqdm",
               "packaging", "typer"]
LINKED = ["libtorch_cuda.so", "libtorch_python.so", "libtorch_nvshmem.so", "libtorch_cuda_linalg.so"]


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def make_stubs(lib, folder):
    needed, symbols, versions = set(), set(), {}
    for path in (lib / name for name in LINKED):
        if not path.exists():
            continue
        needed |= set(re.findall(r"\(NEEDED\).*\[(.*?)\]", output("readelf", "-dW", str(path))))
        for line in output("nm", "-D", "--undefined-only", str(path)).splitlines():
            name, _, version = line.split()[-1].partition("@")
            symbols.add((name, version))
        # Which version names are asked of which library.
        for part in output("readelf", "-VW", str(path)).split("File: ")[1:]:
            file = part.split()[0]
            names = re.findall(r"Name: (\S+)\s+Flags", part)
            versions.setdefault(file, set()).update(names)
    folder.mkdir()
    for library in sorted(n for n in needed if re.match(r"lib(cu|nccl|nvshmem)", n)):
        if re.match(r"lib(cupti|cudart)\.", library):
            continue
        stem = library.split(".")[0].removeprefix("lib")
        prefix = "cuFile" if stem == "cufile" else stem
        asked = versions.get(library, set())
        mine = sorted(n for n, v in symbols if v in asked or (not v and n.startswith(prefix)))
        source, script = folder / "stub.c", folder / "stub.map"
        source.write_text("".join(f"void {n}(void) {{ __builtin_trap(); }}\n" for n in mine))
        script.write_text(f"{min(asked, default=library)} {{ *; }};\n")
        output("gcc", "-shared", "-fPIC", "-w", "-o", str(folder / library), str(source),
               f"-Wl,-soname,{library}", f"-Wl,--version-script,{script}")
        source.unlink()
        script.unlink()


def pip_install(site, *arguments):
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-cache-dir",
                    "--disable-pip-version-check", "--root-user-action=ignore", "--no-compile",
                    "--target", str(site), *arguments], check=True, stdout=sys.stderr)


def main():
    version = libtorch.DEFAULT_VERSION
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    target = libtorch.Target(libtorch.DEPS / "reference",
                             {"format": 2, "version": version, "python": tag, "models": MODELS})
    wheels = libtorch.Wheels(libtorch.DEPS / "wheels", libtorch.wheel_dir())

    def fill(folder):
        torch = wheels.get(f"torch=={version}", tag)
        site = folder / "site"
        libtorch.say("unpacking torch for Python")
        libtorch.unpack(torch, site, lambda name: "/include/" not in name)
        for requirement in libtorch.cuda_requirements(torch, wheels, cuda=False):
            libtorch.unpack(wheels.get(requirement), site, lambda name: ".so" in name)
        libtorch.unpack(wheels.get(f"torchvision=={TORCHVISION[version]}", tag), site,
                        lambda name: True)
        pip_install(site, *PURE, *MODELS_NEED)
        pip_install(site, "--no-deps", *MODELS)
        make_stubs(site / "torch" / "lib", folder / "stub")

    if not target.complete():
        if not shutil.which("gcc"):
            libtorch.fail("gcc is not there")
        target.make(fill)
    print(target.dest)


if __name__ == "__main__":
    main()
