"""``verify`` checks a log directory: each finding has the fault and its remedy."""

from txnkafka.logdir.verify.report import VerifyReport, verify

__all__ = ["VerifyReport", "verify"]
