"""Strategies as they are kept beside what was measured by them: whoever reads an answer needs the very integers."""

from typing import Any

import numpy as np

from confide.workload.strategy.dense import DenseLine
from confide.workload.strategy.each_cell import IdentityLine
from confide.workload.strategy.helmert import HelmertLine
from confide.workload.strategy.hierarchy import TreeLine
from confide.workload.strategy.line import LineStrategy
from confide.workload.strategy.toeplitz import ToeplitzLine
from confide.workload.strategy.wavelet import WaveletLine


def spelled_line(line: LineStrategy, arrays: list[bytes]) -> dict[str, Any]:
    """A strategy in plain words; the integers of a dense one go to `arrays`."""
    match line:
        case IdentityLine(size):
            return {"kind": "identity", "size": size}
        case HelmertLine(size):
            return {"kind": "helmert", "size": size}
        case ToeplitzLine(size, bits):
            return {"kind": "toeplitz", "size": size, "bits": bits}
        case TreeLine(size, branching, weights):
            return {"kind": "tree", "size": size, "branching": branching, "weights": weights}
        case WaveletLine(size, weights):
            return {"kind": "wavelet", "size": size, "weights": weights}
        case DenseLine(name, matrix, centred):
            begin = sum(map(len, arrays))
            small = matrix.astype("<i2") if int(np.abs(matrix).max(initial=0)) < 2**15 else matrix.astype("<i4")
            arrays.append(small.tobytes())
            facts = {"kind": "dense", "name": name, "centred": centred, "begin": begin, "type": small.dtype.str}
            return facts | {"rows": matrix.shape[0], "size": matrix.shape[1]}
    raise TypeError(f"there is no spelling of a {type(line).__name__}")


def read_line(own: dict[str, Any], arrays: memoryview) -> LineStrategy:
    match own["kind"]:
        case "identity":
            return IdentityLine(own["size"])
        case "helmert":
            return HelmertLine(own["size"])
        case "toeplitz":
            return ToeplitzLine(own["size"], own["bits"])
        case "tree":
            return TreeLine(own["size"], own["branching"], tuple(own["weights"]))
        case "wavelet":
            return WaveletLine(own["size"], tuple(own["weights"]))
        case "dense":
            kind = np.dtype(own["type"])
            length = kind.itemsize * own["rows"] * own["size"]
            matrix = np.frombuffer(arrays[own["begin"] : own["begin"] + length], dtype=kind)
            return DenseLine(own["name"], matrix.reshape(own["rows"], own["size"]).astype(np.int32), own["centred"])
    raise ValueError(f"there is no strategy of the kind {own['kind']!r}")
