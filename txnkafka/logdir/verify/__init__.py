"""``verify``: everything that is wrong with a directory, and what to do about it."""

from txnkafka.logdir.verify.report import VerifyReport, verify

__all__ = ["VerifyReport", "verify"]
