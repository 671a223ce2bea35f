from __future__ import annotations
from txnkafka.testing.simulation.history import History
def anomalies(history: History) -> list[str]:
    return []
