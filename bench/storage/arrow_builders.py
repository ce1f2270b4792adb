"""CPU time to build an Arrow IPC stream from Python lists, for each installed builder.

Run: pip install pyarrow nanoarrow arro3-core arro3-io && python bench/storage/arrow_builders.py
"""

import importlib
import io
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

ROWS = 20_000
RUNS = 7


def make_columns() -> tuple[list[list[str]], list[list[int]], list[list[float | None]]]:
    rng = random.Random(1)
    texts = [[f"/p/{rng.randrange(1000)}" for _ in range(ROWS)] for _ in range(10)]
    texts += [[""] * ROWS for _ in range(20)]
    timestamps = [[rng.randrange(10**12) for _ in range(ROWS)] for _ in range(3)]
    numbers: list[list[float | None]] = [
        [None if rng.random() < 0.5 else rng.random() for _ in range(ROWS)] for _ in range(10)
    ]
    return texts, timestamps, numbers


def with_arro3() -> Callable[[], int]:
    core: Any = importlib.import_module("arro3.core")
    ipc: Any = importlib.import_module("arro3.io")
    texts, timestamps, numbers = make_columns()

    def build() -> int:
        arrays = [core.Array(column, core.DataType.string()) for column in texts]
        arrays += [core.Array(column, core.DataType.int64()) for column in timestamps]
        arrays += [core.Array(column, core.DataType.float64()) for column in numbers]
        fields = [core.Field(str(index), array.type) for index, array in enumerate(arrays)]
        out = io.BytesIO()
        ipc.write_ipc_stream(core.RecordBatch.from_arrays(arrays, schema=core.Schema(fields)), out)
        return out.tell()

    return build


def with_pyarrow() -> Callable[[], int]:
    pa: Any = importlib.import_module("pyarrow")
    texts, timestamps, numbers = make_columns()

    def build() -> int:
        arrays = [pa.array(column, pa.string()) for column in texts]
        arrays += [pa.array(column, pa.int64()) for column in timestamps]
        arrays += [pa.array(column, pa.float64()) for column in numbers]
        batch = pa.RecordBatch.from_arrays(arrays, names=[str(i) for i in range(len(arrays))])
        out = pa.BufferOutputStream()
        with pa.ipc.new_stream(out, batch.schema) as writer:
            writer.write_batch(batch)
        return int(out.tell())

    return build


def main() -> None:
    for name, prepare in (("arro3", with_arro3), ("pyarrow", with_pyarrow)):
        try:
            build = prepare()
        except ImportError:
            print(f"{name:8} not installed")
            continue
        seconds: list[float] = []
        for _ in range(RUNS):
            started = time.process_time()
            build()
            seconds.append(time.process_time() - started)
        print(f"{name:8} {statistics.median(seconds) / ROWS * 1e6:.2f} µs a row of 43 columns")


if __name__ == "__main__":
    main()
