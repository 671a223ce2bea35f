"""``verify`` checks a log directory: each finding says what is wrong and what to do about it."""

from txnkafka.logdir.verify.report import VerifyReport, verify

__all__ = ["VerifyReport", "verify"]
