#!/usr/bin/env python3
"""Writes the figures that assay-simulate needs of catalog/cards.yaml and workloads.yaml as C++, since
runners link no YAML library.

  generate_catalog.py CARDS WORKLOADS HEADER
"""

import json
import sys

import yaml


def number(value):
    return repr(float(value)) if value is not None else "0"


def strings(values):
    return "{" + ", ".join(json.dumps(str(v)) for v in values) + "}"


def card(entry):
    major, minor = (str(entry.get("cc", "0.0")).split(".") + ["0"])[:2]
    keys = ("memory_gib", "bandwidth_gb_per_second", "fp32_tflops", "tf32_tflops",
            "fp16_acc32_tflops", "bf16_tflops", "tdp_watts")
    figures = ", ".join(number(entry.get(key)) for key in keys)
    return f"    {{{json.dumps(entry['name'])}, {int(major)}, {int(minor)}, {figures}}},"


def workload(entry):
    flops = entry["flops_per_sample"]
    lines = [f"    {{{json.dumps(entry['name'])}, {json.dumps(entry['sample_unit'])}, "
             f"{json.dumps(entry.get('image', ''))}, {int(entry['parameters'])},",
             f"     {number(flops['train'])}, {number(flops['infer'])},",
             f"     {strings(entry['layouts'])},", "     {"]
    for precision, modes in entry["memory"].items():
        for mode, (fixed, per_sample) in modes.items():
            lines.append(f"         {{{json.dumps(precision)}, {json.dumps(mode)}, "
                         f"{number(fixed)}, {number(per_sample)}}},")
    lines.append("     }},")
    return "\n".join(lines)


def main():
    cards_path, workloads_path, header_path = sys.argv[1:]
    with open(cards_path, encoding="utf-8") as file:
        cards = yaml.safe_load(file)["cards"]
    with open(workloads_path, encoding="utf-8") as file:
        catalog = yaml.safe_load(file)
    # A ceiling is no training: the simulator has none.
    modes = [mode for mode in catalog["modes"] if mode != "peak"]
    trained = [entry for entry in catalog["workloads"] if entry["modes"] != ["peak"]]
    lines = [
        "// Generated from catalog/cards.yaml and workloads.yaml by generate_catalog.py; do not edit.",
        "#ifndef ASSAY_SIMULATE_CATALOG_GEN_H_",
        "#define ASSAY_SIMULATE_CATALOG_GEN_H_",
        "",
        '#include "runners/simulate/catalog.h"',
        "",
        "namespace assay::simulate::generated {",
        "",
        "// NOLINTBEGIN: figures as the catalogue spells them",
        "inline const std::vector<CardFigures> kCards = {",
        *[card(entry) for entry in cards],
        "};",
        "",
        "inline const std::vector<WorkloadFigures> kWorkloads = {",
        *[workload(entry) for entry in trained],
        "};",
        "",
        f"inline const std::vector<std::string> kModes = {strings(modes)};",
        f"inline const std::vector<std::string> kLanes = {strings(catalog['lanes'])};",
        f"inline const std::vector<std::string> kLayouts = {strings(catalog['layouts'])};",
        "inline const std::vector<std::string> kPrecisions = "
        + strings(p["name"] for p in catalog["precisions"]) + ";",
        "// NOLINTEND",
        "",
        "}  // namespace assay::simulate::generated",
        "",
        "#endif  // ASSAY_SIMULATE_CATALOG_GEN_H_",
        "",
    ]
    with open(header_path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


if __name__ == "__main__":
    main()
