#!/usr/bin/env python3
"""A runner of Assay's cells in Python with PyTorch: lane eager, and lane compile by torch.compile.

    runner.py --cell FILE|- [--records fd:N|FILE|-] [--lifeline fd:N,SECONDS]
    runner.py --stack-info | --list | --describe MODEL | --version

docs/runner-protocol.md says what each of them owes; README.md how an operator installs this.
"""

import importlib.metadata
import json
import os
import signal
import sys
import time
import traceback

import measure
import workload
from protocol import (BAD_INPUT, BadInput, Options, Records, Unsupported, read_cell, watch_lifeline)

NAME, VERSION = "assay-pytorch", "1.0"
OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "cudnn_status_alloc_failed",
                 "invalid buffer size", "storage size calculation overflowed", "cublas_status_alloc_failed")


def stack_info():
    import torch
    gpu = torch.cuda.is_available()
    return {"runner": NAME, "protocol": 1,
            "versions": {"runner": VERSION, "torch": torch.__version__, "cuda": torch.version.cuda,
                         "cudnn": str(torch.backends.cudnn.version()) if gpu else None,
                         "python": sys.version.split()[0]},
            "models": workload.models(), "modes": ["train", "infer"], "precisions": workload.PRECISIONS,
            "lanes": workload.LANES, "layouts": workload.LAYOUTS,
            "arch_list": torch.cuda.get_arch_list() if gpu else [],
            "device_kinds": ["cpu", "gpu", "mig"] if gpu else ["cpu"], "max_world_size": 1,
            "simulated": False}


def describe(name):
    if name not in workload.models():
        raise BadInput(f"unknown model '{name}': --list names the models")
    import torch
    with torch.device("meta"):
        model = workload.Workload.build(name)
    height, width = workload.MODELS[name][2]
    return {"model": name, "parameters": sum(p.numel() for p in model.parameters()),
            "flops_per_sample": None, "sample_unit": "img", "image": f"{height}x{width}"}


def run_cell(cell, records, start):
    """The fields of an ok result; raises for every other."""
    workload.refuse(cell)
    fields = {"world_size": 1, "method_version": 1, "seed": cell["seed"], "unit": "img/s",
              "runner_version": VERSION}
    spawned = cell.get("spawned_at_boot_ns") or 0
    if 0 < start - spawned < 86400e9 and spawned:
        fields["process_start_seconds"] = (start - spawned) / 1e9
    records.phase("load")
    begin = time.monotonic()
    import torch
    fields["library_load_seconds"] = time.monotonic() - begin
    fields["libtorch_version"] = torch.__version__.split("+")[0]
    fields["cuda_version"] = torch.version.cuda
    records.phase("setup")
    begin = time.monotonic()
    work = workload.Workload(torch, cell)
    timeline = work.timeline()
    timeline.synchronize()
    fields.update(work.math(), parameters=work.parameters, threads=torch.get_num_threads(),
                  data_batches=work.batches, device_setup_seconds=time.monotonic() - begin)
    if work.cuda:
        fields["cudnn_version"] = str(torch.backends.cudnn.version())
    records.joined()
    spec = cell["spec"]
    fields.update(measure.measure(work.step, timeline, spec["stop"], spec["batch"], records))
    more, finite = work.outcome()
    fields.update(more)
    return fields, finite


def is_out_of_memory(error):
    if isinstance(error, MemoryError):
        return True
    text = str(error).lower()
    return any(sign in text for sign in OUT_OF_MEMORY)


def cell_command(options, start):
    # Before the cell is read: what hangs in that must leave too.
    if options.lifeline is not None:
        watch_lifeline(*options.lifeline)
    cell = read_cell(options.value)
    records = Records(options.records)
    records.hello(NAME, VERSION, cell["device"]["uuid"])
    try:
        fields, finite = run_cell(cell, records, start)
    except Unsupported as error:
        return records.result("unsupported", {}, error.reason, str(error))
    except BrokenPipeError:
        raise
    except Exception as error:  # whatever it was, there is a result
        traceback.print_exc()
        if is_out_of_memory(error):
            return records.result("mem_limit", {}, "out_of_memory", str(error))
        return records.result("fail", {}, "runner_error", f"{type(error).__name__}: {error}")
    if not finite:
        return records.result("fail", fields, "non_finite_loss", "the output of the last step is not finite")
    return records.result("ok", fields)


def main(words, start):
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    options = Options(words)
    if options.action == "--cell":
        return cell_command(options, start)
    if options.action == "--stack-info":
        print(json.dumps(stack_info()))
    elif options.action == "--list":
        print("\n".join(workload.models()))
    elif options.action == "--describe":
        print(json.dumps(describe(options.value)))
    else:
        print(NAME, VERSION, "torch", importlib.metadata.version("torch"))
    return 0


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:], time.clock_gettime_ns(time.CLOCK_BOOTTIME))
    except BadInput as error:
        print(f"{NAME}: {error}", file=sys.stderr)
        code = BAD_INPUT
    except BrokenPipeError:
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # no thread of the framework keeps a process whose result is out
