"""The public bug reports of shared/facts/bug_cases.md, and the tests that hold for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class BugCase:
    """number: in that file. holds: what must, in our words. tests: node ids of pytest."""

    number: int
    holds: str
    tests: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.number < 1 or not self.holds or not self.tests:
            raise ValueError(f"a case has a number, words and at least one test, got {self}")


def _case(number: int, holds: str, *tests: str) -> BugCase:
    return BugCase(number, holds, tests)


_CASES = (
    _case(
        1,
        "A killed sweep leaves no trial running; its point is tried again.",
        "tests/sweep/test_resume.py::test_a_running_trial_is_closed_with_its_reason_and_its_point_is_tried_again",
        "tests/bug_cases/test_stops.py::test_a_polite_end_leaves_a_report_and_nothing_running",
        "tests/bug_cases/test_stops.py::test_a_rude_end_loses_no_result",
        "tests/integration/test_sweep.py::test_kill_9_loses_nothing_and_leaves_nothing",
    ),
    _case(
        2,
        "The budget counts all finished trials of a study, over resumes.",
        "tests/sweep/test_loop.py::test_the_budget_counts_finished_trials_over_resumes",
        "tests/integration/test_sweep.py::test_kill_9_loses_nothing_and_leaves_nothing",
    ),
    _case(
        4,
        "Sweeps that start together lose no trial to the database; numbers are unique.",
        "tests/bug_cases/test_starts_and_locks.py::test_sweeps_that_share_a_database_lose_no_trial",
        "tests/bug_cases/test_starts_and_locks.py::test_sweeps_that_make_a_shared_database_together",
        "tests/bug_cases/test_starts_and_locks.py::test_of_starts_in_one_second_one_runs_and_the_others_are_refused",
        "tests/study/test_study_copy.py::test_a_lock_is_waited_for",
        "tests/sweep/test_loop.py::test_several_trials_at_once_are_different_points",
    ),
    _case(
        6,
        "A dashboard that holds the database costs the sweep nothing.",
        "tests/study/test_study_copy.py::test_a_lock_is_waited_for",
        "tests/study/test_storage.py::test_another_programs_lock_is_waited_for",
    ),
    _case(
        10,
        "What a killed sweep leaves of its lock keeps nobody from starting.",
        "tests/bug_cases/test_starts_and_locks.py::test_a_sweep_killed_with_its_lock_does_not_keep_the_next_from_starting",
        "tests/bug_cases/test_starts_and_locks.py::test_a_file_system_without_locks_keeps_none_either",
        "tests/bug_cases/test_starts_and_locks.py::test_a_number_of_a_process_that_is_given_again_holds_nothing",
        "tests/bug_cases/test_starts_and_locks.py::test_a_sweep_killed_under_another_host_name_holds_nothing",
        "tests/bug_cases/test_starts_and_locks.py::test_a_killed_sweep_that_nobody_reaps_holds_nothing",
        "tests/study/test_lock.py::test_a_killed_sweep_holds_nothing",
    ),
    _case(
        11,
        "A changed space is refused with old and new choices and what to type; nothing is written.",
        "tests/bug_cases/test_changed_space.py::test_it_is_refused_with_both_values_and_what_to_type",
        "tests/bug_cases/test_changed_space.py::test_what_it_says_to_type_carries_the_results_over",
    ),
    _case(
        13,
        "No point is a trial twice; a used-up space ends the sweep with a message.",
        "tests/bug_cases/test_launches.py::test_twelve_points_are_twelve_trials_whatever_the_budget",
        "tests/search/test_samplers.py::test_the_whole_space_without_a_repeat",
    ),
    _case(
        14,
        "What is no fault of the point is tried again, so often; out of memory is not.",
        "tests/bug_cases/test_launches.py::test_a_port_that_is_taken_once_costs_a_retry_and_no_point",
        "tests/bug_cases/test_launches.py::test_a_port_that_stays_taken_is_tried_as_often_as_is_said",
        "tests/bug_cases/test_launches.py::test_out_of_memory_is_tried_once",
        "tests/sweep/test_loop.py::test_a_failing_point_is_not_tried_again",
    ),
    _case(
        15,
        "A study that begins out of memory, without a number, goes on.",
        "tests/bug_cases/test_launches.py::test_memory_runs_out_first_and_without_a_number",
        "tests/sweep/test_loop.py::test_first_trials_without_memory_do_not_end_the_study",
    ),
    _case(
        17,
        "Nothing feasible is exit code 3, a table of causes, and no best.yaml.",
        "tests/bug_cases/test_nothing_feasible.py::test_it_is_exit_code_3_with_the_causes_and_no_best",
        "tests/integration/test_sweep.py::test_nothing_feasible_is_exit_code_3_with_the_causes",
    ),
    _case(
        18,
        "A time that is no number, or not above 0, is a failure with its reason.",
        "tests/bug_cases/test_printed_numbers.py::test_a_time_that_is_none_measures_nothing",
        "tests/bug_cases/test_printed_numbers.py::test_the_reason_says_where_the_printed_time_is_seen",
        "tests/bug_cases/test_printed_numbers.py::test_a_sweep_goes_on_over_it_and_exports_another",
        "tests/measure/test_judge.py::test_no_time_is_a_failure",
    ),
    _case(
        19,
        "A study may lie in a folder of any name.",
        "tests/study/test_study_copy.py::test_any_folder_will_do",
        "tests/integration/test_sweep.py::test_the_study_folder_is_that_of_the_contract",
        "tests/bug_cases/test_launches.py::test_one_crash_ends_one_trial",
    ),
    _case(
        23,
        "Trials without memory, first or last, do not cost the best of the others.",
        "tests/bug_cases/test_launches.py::test_memory_runs_out_first_and_without_a_number",
        "tests/bug_cases/test_launches.py::test_memory_runs_out_last",
    ),
    _case(
        24,
        "A value with = arrives in the ranks as it was written.",
        "tests/bug_cases/test_overrides.py::test_a_value_of_the_users_file_arrives_as_it_is",
        "tests/bug_cases/test_overrides.py::test_a_command_on_the_command_line_is_taken_as_typed",
        "tests/bug_cases/test_overrides.py::test_a_variable_on_the_command_line_is_taken_as_typed",
        "tests/contract/launcher/test_ray_ranks.py::test_words_and_variables_arrive_unchanged",
    ),
    _case(
        25,
        "A value with commas and colons is one value.",
        "tests/bug_cases/test_overrides.py::test_a_value_of_the_users_file_arrives_as_it_is",
        "tests/bug_cases/test_overrides.py::test_a_variable_on_the_command_line_is_taken_as_typed",
        "tests/bug_cases/test_overrides.py::test_a_quoted_variable_on_the_command_line",
        "tests/contract/launcher/test_ray_ranks.py::test_words_and_variables_arrive_unchanged",
    ),
    _case(
        28,
        "So is one with a bar, a percent sign or an at sign.",
        "tests/bug_cases/test_overrides.py::test_a_value_of_the_users_file_arrives_as_it_is",
        "tests/bug_cases/test_overrides.py::test_a_variable_on_the_command_line",
        "tests/config/test_compose.py::test_names_are_taken_as_typed",
    ),
    _case(
        30,
        "The texts on and off stay texts, whoever reads the export.",
        "tests/bug_cases/test_overrides.py::test_choices_keep_their_types_on_every_way",
        "tests/export/test_best_yaml.py::test_values_keep_their_types_for_every_reader",
    ),
    _case(
        31,
        "1e-4 stays a number for every reader, and one that a program takes.",
        "tests/bug_cases/test_overrides.py::test_choices_keep_their_types_on_every_way",
        "tests/bug_cases/test_overrides.py::test_a_number_on_the_command_line_is_one_for_the_program",
        "tests/export/test_best_yaml.py::test_any_number_and_any_text_like_a_number",
    ),
    _case(
        32,
        "A choice may be a list, over a resume too.",
        "tests/bug_cases/test_overrides.py::test_choices_keep_their_types_on_every_way",
        "tests/search/test_samplers.py::test_values_of_any_type_survive_optuna",
    ),
    _case(
        35,
        "A trial that fails is one trial; all others run.",
        "tests/bug_cases/test_launches.py::test_one_crash_ends_one_trial",
        "tests/contract/launcher/test_launcher_contract.py::test_a_failure_leaves_the_next_trial_alone",
    ),
    _case(
        36,
        "Two sweeps never share a folder.",
        "tests/bug_cases/test_starts_and_locks.py::test_of_starts_in_one_second_one_runs_and_the_others_are_refused",
        "tests/integration/test_sweep.py::test_ctrl_c_stops_and_the_same_command_goes_on",
    ),
    _case(
        37,
        "Values that refer to others are resolved before Ray is told.",
        "tests/bug_cases/test_overrides.py::test_a_value_in_the_environment_is_found",
        "tests/bug_cases/test_overrides.py::test_a_value_that_is_not_there_is_named",
    ),
    _case(
        40,
        "By default one trial has the devices to itself.",
        "tests/bug_cases/test_launches.py::test_by_default_trials_never_share_the_devices",
        "tests/bug_cases/test_launches.py::test_a_host_of_8_devices_holds_one_trial_of_8",
        "tests/launch/test_capacity.py::test_against_a_search",
    ),
    _case(
        43,
        "Ranks have the user's environment, also on a cpu, and nothing of Ray's.",
        "tests/contract/launcher/test_ray_ranks.py::test_ray_adds_nothing_to_a_ranks_environment",
        "tests/contract/launcher/test_ray_ranks.py::test_words_and_variables_arrive_unchanged",
    ),
    _case(
        44,
        "A taken port leads to another one, or to a retry, never to a bad point.",
        "tests/launch/test_port_lease.py::test_a_port_with_a_listener_is_not_leased",
        "tests/launch/test_rank_environment.py::test_the_trials_own_meeting_place_wins",
        "tests/measure/failures/test_exits.py::test_a_taken_port_is_not_the_points_fault_and_hides_no_error",
        "tests/bug_cases/test_launches.py::test_a_port_that_is_taken_once_costs_a_retry_and_no_point",
    ),
    _case(
        45,
        "Output of any size and kind blocks no rank, and fills neither memory nor disk.",
        "tests/bug_cases/test_output.py::test_a_flood_of_every_kind_ends_well",
        "tests/bug_cases/test_output.py::test_zero_bytes_for_ever_are_no_progress",
        "tests/launch/test_rank_output.py::test_a_flood_without_newlines",
    ),
    _case(
        46,
        "When a rank dies the others are ended, and the next trial begins.",
        "tests/bug_cases/test_ranks.py::test_a_dead_rank_is_not_waited_for_however_long_deadlines_are",
        "tests/launch/test_supervisor_ends.py::test_a_dead_rank_ends_sleeping_peers",
        "tests/launch/test_supervisor_ends.py::test_deadlines",
        "tests/contract/launcher/test_launcher_contract.py::test_a_failure_leaves_the_next_trial_alone",
    ),
    _case(
        49,
        "Launcher arguments, environment and working directory reach every trial.",
        "tests/launch/trainers/test_command_trainer.py::test_a_trial_runs_the_command_with_a_copy_of_the_file",
        "tests/launch/test_supervised_programs.py::test_one_process_a_node_is_told_of_all_its_ranks",
        "tests/launch/test_setup_environment.py::test_what_scripts_export_in_their_order",
    ),
    _case(
        51,
        "A sweep's memory does not grow with its trials; a trial costs it little.",
        "tests/bug_cases/test_bounded.py::test_many_trials_take_little_memory_and_little_time",
    ),
    _case(
        52,
        "A resumed sweep searches as one that was never interrupted.",
        "tests/bug_cases/test_stops.py::test_the_search_goes_on_as_if_it_had_never_stopped",
        "tests/bug_cases/test_stops.py::test_a_fault_in_the_users_sampler_costs_no_result",
        "tests/sweep/test_resume.py::test_the_end_is_that_of_an_unbroken_run",
        "tests/search/test_samplers.py::test_an_interrupted_trial_changes_nothing",
    ),
    _case(
        56,
        "A machine that slows down widens the interval, and is reported.",
        "tests/bug_cases/test_printed_numbers.py::test_a_step_change_in_the_middle_lies_within_the_interval",
        "tests/measure/test_timing.py::test_one_slow_step_changes_nothing",
        "tests/certify/test_drift.py::test_a_drift_beyond_the_noise_is_taken_out_and_named",
        "tests/sweep/test_believable.py::test_a_drifting_machine_does_not_change_the_winner_and_is_named",
    ),
    _case(
        61,
        "What all ranks print counts once; retries of the allocator are shown.",
        "tests/bug_cases/test_printed_numbers.py::test_what_all_ranks_print_counts_once",
        "tests/bug_cases/test_printed_numbers.py::test_retries_of_the_allocator_are_shown",
        "tests/measure/logs/test_shared_logs.py::test_a_step_that_all_ranks_print_counts_once",
    ),
    _case(
        63,
        "Steps whose gradient or loss is no number are never scored.",
        "tests/bug_cases/test_printed_numbers.py::test_a_gradient_that_is_no_number_and_no_loss_is_no_measurement",
        "tests/measure/test_judge.py::test_a_step_short_of_its_work_never_counts",
        "tests/measure/test_judge.py::test_a_run_that_mostly_falls_short_is_a_failure_with_the_cause",
    ),
    _case(
        64,
        "Warm-up is left out; a run of two iterations is refused.",
        "tests/bug_cases/test_printed_numbers.py::test_a_slow_first_iteration_does_not_show",
        "tests/bug_cases/test_printed_numbers.py::test_two_iterations_are_refused",
        "tests/measure/test_warmup.py::test_real_runs_lose_at_least_what_mindspeed_mm_itself_drops",
    ),
    _case(
        65,
        "Older results with times or peaks that cannot be are never the best.",
        "tests/bug_cases/test_judging.py::test_a_failed_row_of_an_older_table_is_never_the_best",
        "tests/bug_cases/test_judging.py::test_a_peak_that_cannot_be_is_not_within_the_limit",
        "tests/bug_cases/test_hands_on_the_study.py::test_a_result_that_was_edited_into_nonsense_is_named",
        "tests/replay/test_table.py::test_times_that_cannot_be_are_failures_and_said_once",
    ),
    _case(
        66,
        "No share of a peak is derived from a constant; what a program prints of it is not read.",
        "tests/bug_cases/test_printed_numbers.py::test_shares_that_a_program_prints_are_not_believed",
        "tests/bug_cases/test_printed_numbers.py::test_no_share_of_the_peak_is_derived",
        "tests/measure/test_judge.py::test_phases_that_overlap_still_add_up",
    ),
    _case(
        67,
        "The user's default is measured first, and kept where nothing beats it.",
        "tests/bug_cases/test_judging.py::test_a_default_that_is_the_optimum_is_measured_first_and_kept",
        "tests/bug_cases/test_judging.py::test_a_default_that_does_not_run_is_no_reason_to_stop",
        "tests/certify/test_winner.py::test_a_baseline_that_is_the_fastest_is_exported",
    ),
    _case(
        69,
        "Layouts that the trainer refuses are left out, or fail with its own words.",
        "tests/launch/trainers/mindspeed/test_megatron_rules.py::test_what_fails_or_does_other_work_is_not",
        "tests/launch/trainers/mindspeed/test_fsdp2_rules.py::test_a_rule_and_its_border",
        "tests/bug_cases/test_judging.py::test_the_trainers_own_message_is_shown",
    ),
    _case(
        70,
        "No point that the user has excluded is ever launched.",
        "tests/bug_cases/test_launches.py::test_what_the_user_has_excluded_is_never_launched",
        "tests/sweep/test_loop.py::test_a_used_up_space_ends_the_sweep_with_the_true_best",
    ),
)  # fmt: skip

CASES: Mapping[int, BugCase] = MappingProxyType({case.number: case for case in _CASES})
"""By number."""
