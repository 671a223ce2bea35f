"""``cat --follow``: prints records appended to a growing directory, each exactly once.

Every round reopens the directory and continues each partition from the checkpoint of the last plan, so that
only new headers are scanned. Progress is kept as offsets: after a truncation below the last printed record,
printing continues at the end of the log.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from txnkafka.cli.cat_partition import COULD_NOT, FINDINGS, Printer
from txnkafka.cli.read_options import where
from txnkafka.errors import CorruptRecordError, DecodeError, FileChangedError, KafkaError, LogDirError
from txnkafka.logdir import CannotResumeError, PartitionView, resumable_plan
from txnkafka.logdir.requested import located
from txnkafka.shown import offset_range

if TYPE_CHECKING:
    from txnkafka.cli.output import Messages
    from txnkafka.logdir import Finding, LogDir, PlanCheckpoint, ResumablePlan
    from txnkafka.model import TopicPartition

POLL_SECONDS = 0.5
PATIENCE = 10  # rounds
INTERRUPTED = 130  # 128 + SIGINT, the shells' convention


@dataclass
class Followed:
    """Progress in one partition. ``files`` is its file listing in the last round (None: that round did not
    finish), ``unchanged`` the number of rounds with the same listing."""

    topic_id: str | None
    next_offset: int | None = None
    checkpoint: PlanCheckpoint | None = None
    files: object = None
    unchanged: int = 0
    ended: bool = False


class Follower:
    """Prints the partitions selected by ``chosen`` in the directory opened by ``reopen``."""

    def __init__(
        self,
        reopen: Callable[[], LogDir],
        chosen: Callable[[LogDir], list[TopicPartition]],
        printer: Printer,
        messages: Messages,
    ) -> None:
        self._reopen = reopen
        self._chosen = chosen
        self._printer = printer
        self._messages = messages
        self._followed: dict[TopicPartition, Followed] = {}
        self._said: set[str] = set()
        self._is_first_round = True

    def run(self, log_dir: LogDir) -> int:
        """Print until Ctrl-C, or until enough records are printed; return the exit status."""
        chosen = self._chosen(log_dir)  # a partition missing at the start is an error
        try:
            while True:
                for topic_partition in chosen:
                    self._advance(log_dir, topic_partition)
                self._is_first_round = False
                sys.stdout.flush()
                if self._printer.is_full:
                    return self._printer.status
                time.sleep(POLL_SECONDS)
                try:
                    log_dir = self._reopen()
                    chosen = self._chosen(log_dir)
                except KafkaError as error:
                    chosen = []
                    self._fail(COULD_NOT, str(error))
        except KeyboardInterrupt:
            return INTERRUPTED

    def _advance(self, log_dir: LogDir, topic_partition: TopicPartition) -> None:
        if self._printer.is_full:
            return
        try:
            with closing(log_dir.partition(*topic_partition)) as view:
                followed = self._state(view)
                segments = [(each.base_offset, each.size) for each in view.files.segments]
                files = segments, view.source.log_start_offset, view.source.high_watermark
                if files == followed.files:
                    self._wait(view, followed)
                elif not followed.ended:
                    followed.files, followed.unchanged = None, 0
                    self._print(view, followed)
                    followed.files = files
        except FileChangedError:
            pass  # the next round replans this partition
        except KafkaError as error:
            self._fail(COULD_NOT, str(error))

    def _wait(self, view: PartitionView, followed: Followed) -> None:
        """Report the findings at the log end, unless a batch is still being written there."""
        followed.unchanged += 1
        if followed.unchanged == PATIENCE:
            for finding in view.findings:
                self._report(finding)

    def _state(self, view: PartitionView) -> Followed:
        followed = self._followed.get(view.topic_partition)
        if followed is None and self._is_first_round:
            followed = self._followed[view.topic_partition] = Followed(view.topic_id)
            self._printer.say_where_it_ends(view)
        elif followed is None or followed.topic_id != view.topic_id:
            if followed is not None:
                self._note(f"{view.topic_partition} was recreated: printing restarts at its beginning")
            followed = Followed(view.topic_id, next_offset=0)
        self._followed[view.topic_partition] = followed
        return followed

    def _print(self, view: PartitionView, followed: Followed) -> None:
        view, plan = self._plan(view, followed)
        if plan is None:
            return
        followed.checkpoint = None  # until the whole plan is printed
        for finding in self._printer.shown(plan.findings):
            if finding.severity == "error":
                self._report(finding)
        try:
            with closing(view):
                for next_offset in self._printer.print_units(view, plan.units):
                    followed.next_offset = next_offset
        except CorruptRecordError as error:
            if error.offset is None:  # the file has changed: read it again
                raise
            followed.ended = True
            self._fail(FINDINGS, f"{where(error)}; --on-corrupt skip reads on after it")
            return
        except DecodeError as error:
            followed.ended = True
            self._fail(FINDINGS, f"{error}; --decode-errors raw prints it as it is")
            return
        except LogDirError:
            raise
        except KafkaError:  # within a chunk
            followed.ended = True
            raise
        followed.checkpoint, followed.next_offset = plan.checkpoint, plan.checkpoint.next_offset

    def _plan(self, view: PartitionView, followed: Followed) -> tuple[PartitionView, ResumablePlan | None]:
        """Plan the new records; return None while no record is at or after the start time."""
        request = self._printer.request
        if followed.checkpoint is not None:
            resumed = PartitionView(view.source, followed.checkpoint)
            try:
                return resumed, resumable_plan(resumed, replace(request, start_offset=None, start_time=None))
            except CannotResumeError:
                resumed.close()
        if followed.next_offset is not None:
            start = self._where_to_go_on(view, followed.next_offset)
            request = replace(request, start_offset=start, start_time=None)
        by_offsets = located(view, request)
        return view, None if by_offsets is None else resumable_plan(view, by_offsets)

    def _where_to_go_on(self, view: PartitionView, next_offset: int) -> int:
        name, start, end = view.topic_partition, view.log_start_offset, view.log_end_offset
        if next_offset > end:
            self._note(f"{name}: the log was truncated, and ends at {end}: printing continues there")
        elif next_offset < start:
            self._note(f"{name}: deleted before it was printed: {offset_range(next_offset, start - 1)}")
        return max(start, min(next_offset, end))

    def _report(self, finding: Finding) -> None:
        """Report a finding unless it was reported before."""
        if str(finding) not in self._said:
            self._said.add(str(finding))
            self._printer.report(finding)

    def _fail(self, status: int, text: str) -> None:
        """Report an error unless it was reported before."""
        if text not in self._said:
            self._said.add(text)
            self._printer.fail(status, text)

    def _note(self, text: str) -> None:
        sys.stdout.flush()
        self._messages.note(text)
