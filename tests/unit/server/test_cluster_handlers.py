"""Answers to DescribeCluster."""

from __future__ import annotations

from tests.unit.server.wire_node import node, versions


@versions("DescribeCluster")
def test_describe_cluster(version: int) -> None:
    of = node()
    answer = of.ask("DescribeCluster", version, include_cluster_authorized_operations=True)
    ((broker,),) = (answer.brokers,)
    assert (broker.broker_id, broker.host, broker.port) == (1, "localhost", 9092)
    assert (answer.cluster_id, answer.controller_id) == (of.broker.cluster_id, 1)
    assert answer.cluster_authorized_operations == 8096
    if version >= 1:
        assert of.ask("DescribeCluster", version, endpoint_type=2).error_code == 114
        assert of.ask("DescribeCluster", version, endpoint_type=3).error_code == 115
