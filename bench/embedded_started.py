"""`python -m bench.embedded_started DIR` opens a broker in a new directory and commits a transaction of one
record; prints CPU and wall-clock seconds since its own first line as JSON, and ends when its input does."""

import time

WALL, CPU = time.perf_counter(), time.process_time()

import json  # noqa: E402  (the imports are measured)
import sys  # noqa: E402

from txnkafka import Broker  # noqa: E402

with Broker.open(sys.argv[1]) as broker, broker.producer(transactional_id="bench") as producer:
    with producer.transaction():
        producer.send("bench", b"%0100d" % 0)
    found = {"cpu": time.process_time() - CPU, "wall": time.perf_counter() - WALL}
    print(json.dumps(found), flush=True)
    sys.stdin.read()
