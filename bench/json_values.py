"""What decoding one JSON value costs, by what its fields hold: `python -m bench.json_values`.

The reader of Arrow takes most runs as they are; the lines below the first are what it refuses.
"""

from __future__ import annotations

import json
import sys
import time

import pyarrow as pa

from moldau.spark.formats import decoder_of

SCHEMA = "id BIGINT, name STRING, at TIMESTAMP, amount DOUBLE"
RECORDS = 50_000
ROUNDS = 3
KINDS = (
    "microseconds",
    "nanoseconds",
    "numbers in the text field",
    "a number in one text field of ten",
    "one record of a hundred that does not fit",
)


def values(kind: str) -> pa.BinaryArray:
    made = []
    for number in range(RECORDS):
        digits = f"{number:06d}789" if kind == "nanoseconds" else f"{number:06d}"
        has_number = kind.startswith("numbers") or (kind.startswith("a number") and number % 10 == 0)
        fits = not kind.startswith("one record") or number % 100
        record = {
            "id": number,
            "name": number if has_number else f"n{number}",
            "at": f"2026-01-31T12:00:{number % 60:02d}.{digits}Z",
            "amount": number * 0.5 if fits else "many",
        }
        made.append(json.dumps(record).encode())
    return pa.array(made, pa.binary())


def main() -> None:
    decoder = decoder_of("json", {"valueSchema": SCHEMA}, side="value")
    for kind in KINDS:
        column, best_s = values(kind), float("inf")
        for _ in range(ROUNDS):
            began_s = time.process_time()
            decoder.decode(column)
            best_s = min(best_s, time.process_time() - began_s)
        sys.stdout.write(f"| {kind} | {best_s / RECORDS * 1e6:.1f} |\n")


if __name__ == "__main__":
    main()
