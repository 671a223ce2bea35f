"""``txnkafka halves show`` on a broker: the explanation has the processes that run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.server.checkback.shop import UNKNOWN, Answers, message, opened
from txnkafka.checkback import TransactionMQProducer
from txnkafka.cli.main import main


def test_show_counts_resolvers_and_listeners(capsys: pytest.CaptureFixture[str]) -> None:
    with opened("embedded", transaction_check_max=1000) as shop:
        address = shop.broker.serve("127.0.0.1:0")

        def shown() -> dict[str, Any]:
            with pytest.raises(SystemExit) as left:
                main(["halves", "show", "a", "--bootstrap", address, "--format", "json"])
            assert not left.value.code
            (row,) = json.loads(capsys.readouterr().out)
            return {"verdict": row["verdict"], "texts": [line["text"] for line in row["explanation"]]}

        # a producer over the address does not start a resolver
        with TransactionMQProducer("shop", address, transaction_listener=Answers()) as producer:
            producer.send_message_in_transaction(message(transaction_id="a"), UNKNOWN)
            found = shown()
            assert found["verdict"] == "WAITS_FOR_RESOLVER"
            assert f"txnkafka resolve --bootstrap {address}" in found["texts"]
            assert "0 resolvers, 1 process of the group shop" in found["texts"]
            shop.producer("other", Answers())
            assert "1 resolver, 1 process of the group shop" in shown()["texts"]
        found = shown()
        assert found["verdict"] in ("WAITS_FOR_LISTENER", "WAITS_FOR_DECISION")  # by the age of the half
        assert "1 resolver, 0 processes of the group shop" in found["texts"]
