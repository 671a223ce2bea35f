"""Compared with Apache Kafka itself, which is started for it."""

import pytest

pytest.register_assert_rewrite("tests.conformance.twins")  # so that it says what differs
