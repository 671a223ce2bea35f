"""``Broker`` without clients: opening and closing a directory, and the errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from txnkafka import Broker, KafkaStorageError, LogDirError
from txnkafka.embedded.broker import _by_kafkas_names
from txnkafka.storage.formats.meta_properties import parse_meta_properties


def is_clean(data: Path) -> bool:
    return (data / ".kafka_cleanshutdown").exists()


def test_open_creates_a_directory_and_close_leaves_it_clean(tmp_path: Path) -> None:
    data = tmp_path / "new" / "data"
    broker = Broker.open(data)
    identity = parse_meta_properties((data / "meta.properties").read_bytes())
    assert (broker.path, broker.cluster_id, broker.address) == (str(data), identity.cluster_id, None)
    assert not is_clean(data)
    broker.close()
    broker.close()
    assert is_clean(data)
    with Broker.open(str(data)) as again:
        assert again.cluster_id == broker.cluster_id
    assert is_clean(data)


def test_repr_shows_path_cluster_and_state(tmp_path: Path) -> None:
    broker = Broker.open(tmp_path / "data")
    named = f"<Broker '{tmp_path}/data' cluster_id='{broker.cluster_id}'"
    assert repr(broker) == f"{named} open>"
    broker.close()
    assert repr(broker) == f"{named} closed>"


def test_a_closed_broker_does_not_serve(tmp_path: Path) -> None:
    with Broker.open(tmp_path / "data") as broker:
        pass
    with pytest.raises(KafkaStorageError, match=r"data is closed; reopen it with Broker\.open$"):
        broker.serve("127.0.0.1:0")


def test_an_error_in_the_block_still_closes(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Broker.open(tmp_path / "data"):
        raise ZeroDivisionError
    assert is_clean(tmp_path / "data")


def test_one_owner_in_a_process(tmp_path: Path) -> None:
    message = "another owner in this process: close its Broker"
    with Broker.open(tmp_path / "data"), pytest.raises(LogDirError, match=message):
        Broker.open(tmp_path / "data")
    Broker.open(tmp_path / "data").close()


def test_a_foreign_directory_is_refused_and_unchanged(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(LogDirError, match=r"contains foreign files.*thesis\.tex"):
        Broker.open(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["thesis.tex"]


def test_the_directory_of_another_node_is_refused(tmp_path: Path) -> None:
    Broker.open(tmp_path / "data", node_id=3).close()
    with pytest.raises(LogDirError, match=r"node\.id=3, not 4"):
        Broker.open(tmp_path / "data", node_id=4)
    Broker.open(tmp_path / "data").close()


def test_settings_have_kafkas_names_with_dots_or_underscores() -> None:
    given = {"num_partitions": 3, "log.retention.ms": -1, "auto_create_topics_enable": False}
    assert _by_kafkas_names({**given, "log_cleanup_policy": ["compact", "delete"]}) == {
        "num.partitions": "3",
        "log.retention.ms": "-1",
        "auto.create.topics.enable": "false",
        "log.cleanup.policy": "compact,delete",
    }
    with pytest.raises(ValueError, match=r"the setting num\.partitions is given twice"):
        _by_kafkas_names({"num_partitions": 3, "num.partitions": 3})
    with pytest.raises(TypeError, match="the setting num_partitions cannot be None"):
        _by_kafkas_names({"num_partitions": None})


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"num_partitions": 0}, r"num\.partitions"),
        ({"number_of_partitions": 1}, r"number\.of\.partitions"),
        ({"node_id": "one"}, r"node\.id must be a number"),
        ({"listeners": "SSL://127.0.0.1:0"}, "only PLAINTEXT is supported"),
        ({"metadata_log_dir": "/elsewhere"}, r"metadata\.log\.dir cannot be /elsewhere"),
        ({"durability": "none"}, "durability must be fsync or page_cache"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_written(
    tmp_path: Path, settings: dict[str, str], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        Broker.open(tmp_path / "data", **settings)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_all_wrong_settings_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no\.such\.setting.*; .*nor\.this"):
        Broker.open(tmp_path / "data", no_such_setting=0, nor_this=1)


@pytest.mark.parametrize("address", ["9092", "localhost", "127.0.0.1:99999", ":0"])
def test_a_wrong_address_is_refused(tmp_path: Path, address: str) -> None:
    with Broker.open(tmp_path / "data") as broker:
        with pytest.raises(ValueError, match=f"'{address}' is not HOST:PORT"):
            broker.serve(address)
        assert broker.address is None
