"""The tests of each row of the failure matrix: what may die, fail or be repeated around a message that is
checked back.

     1-2    the half: not sent, or its acknowledgement is lost
     3-10   the local transaction and its decision
    11-16   the owner of the half, and the broker
    17-23   two processes with one id; checks and parked halves
    24-29   topics, the disk, compaction, the clock, another owner, the decision table
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

ROOT = Path(__file__).parents[3]
_MATRIX: Final = "tests/server/checkback/test_decision_matrix.py"
_HERE: Final = "tests/server/checkback/test_failure_matrix.py"
_OWNERS: Final = "tests/unit/checkback/test_resolver_failures.py"
_CONFORMANCE: Final = "tests/server/checkback/test_conformance.py"
_SCHEDULE: Final = "tests/unit/coordinator/half/test_check_schedule.py"
_NEXT_OWNER: Final = f"{_OWNERS}::test_an_owner_dies_and_the_next_one_finishes_its_work"
ROWS: Final = {
    1: (f"{_HERE}::test_row_01_service_dies_and_its_half_never_reached_the_broker",),
    2: (f"{_HERE}::test_row_02_acknowledgement_of_the_half_is_lost",),
    3: (f"{_MATRIX}::test_rows_03_04_06_service_dies",),
    4: (f"{_MATRIX}::test_rows_03_04_06_service_dies",),
    5: (f"{_MATRIX}::test_row_05_reply_of_the_commit_is_lost",),
    6: (f"{_MATRIX}::test_rows_03_04_06_service_dies",),
    7: (f"{_MATRIX}::test_row_07_reply_of_the_decision_is_lost",),
    8: (f"{_MATRIX}::test_row_08_check_during_a_slow_local_transaction",),
    9: (f"{_MATRIX}::test_row_09_fenced_local_transaction_cannot_commit",),
    10: (f"{_HERE}::test_row_10_commits_race_with_checks_that_roll_back",),
    11: (_NEXT_OWNER,),
    12: (_NEXT_OWNER, f"{_OWNERS}::test_real_records_without_end_are_never_visible_and_moved_again"),
    13: (_NEXT_OWNER,),
    14: ("tests/crash/test_decided.py::test_a_power_cut_in_the_start_that_writes_the_markers",),
    15: (f"{_OWNERS}::test_an_owner_that_was_fenced_during_a_move_writes_nothing",),
    16: (f"{_HERE}::test_row_16_broker_is_killed_and_its_logs_have_torn_tails",),
    17: (f"{_MATRIX}::test_row_17_two_instances_send_the_same_id",),
    18: (f"{_OWNERS}::test_a_resolver_that_starts_again_repeats_a_check_with_the_same_number",),
    19: (f"{_HERE}::test_row_19_checks_that_raise_hang_or_return_none",),
    20: (f"{_CONFORMANCE}::test_20_and_21_checks_wait_for_a_listener_and_count_from_then_on",),
    21: (f"{_CONFORMANCE}::test_15_the_last_check_has_time_to_answer",),
    22: (f"{_OWNERS}::test_a_parked_copy_and_its_end_are_in_one_transaction",),
    23: (
        f"{_CONFORMANCE}::test_17_a_parked_message_cannot_be_committed",
        f"{_CONFORMANCE}::test_18_a_resumed_message_is_checked_from_the_beginning",
    ),
    24: (f"{_OWNERS}::test_a_half_of_a_deleted_topic_is_parked_and_its_neighbours_are_moved",),
    25: (
        f"{_HERE}::test_row_25_disk_is_full_at_the_half",
        f"{_HERE}::test_row_25_disk_is_full_at_the_decision",
        f"{_HERE}::test_row_25_disk_is_full_at_the_move",
    ),
    26: ("tests/unit/checkback/test_resolver_restart.py::test_every_state_survives_compaction",),
    27: (
        f"{_HERE}::test_row_27_clock_jumps",
        f"{_SCHEDULE}::test_after_a_jump_a_new_owner_checks_early_but_never_late",
    ),
    28: (f"{_OWNERS}::test_two_resolvers_divide_the_partitions_and_one_takes_over",),
    29: (f"{_MATRIX}::test_row_29_purge_keeps_what_a_check_may_need",),
}


def test_every_row_has_its_test() -> None:
    assert list(ROWS) == list(range(1, 30))
    for names in ROWS.values():
        for name in names:
            path, _, function = name.partition("::")
            tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
            assert function in {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}, name
