//! The table of the autopilot: from a situation to the tool, the next step, and the reason to stop.

use super::*;

/// A main agent in autopilot mode, whose run for the message `m` has ended, attended.
struct Case {
    mode: Mode,
    role: AgentRole,
    options: AutopilotOptions,
    progress: Autopilot,
    run: RunEnd,
    has_tool: bool,
    attended: bool,
}

fn case() -> Case {
    Case {
        mode: Mode::Autopilot,
        role: AgentRole::Main,
        options: AutopilotOptions::default(),
        progress: Autopilot {
            request: Some("m".into()),
            ..Autopilot::default()
        },
        run: RunEnd::Quiet,
        has_tool: true,
        attended: true,
    }
}

impl Case {
    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn said(self, outcome: CompletionOutcome) -> Self {
        self.with(|case| {
            case.progress.completion = Some(TaskComplete {
                success: Some(outcome == CompletionOutcome::Completed),
                outcome: Some(outcome),
                ..TaskComplete::default()
            });
        })
    }

    fn judged(&self) -> Judgement {
        Judgement::of(&Situation {
            mode: self.mode,
            role: self.role,
            options: self.options,
            progress: &self.progress,
            run: self.run,
            has_tool: self.has_tool,
            attended: self.attended,
        })
    }
}

fn stop(reason: StopReason) -> Continuation {
    Continuation::Stop(reason, StopDetail::None)
}

#[test]
fn the_tool_is_there_in_autopilot_mode_only() {
    for (mode, role, offers, takes) in [
        (Mode::Autopilot, AgentRole::Main, true, true),
        (Mode::Autopilot, AgentRole::Fork, true, false),
        (Mode::Autopilot, AgentRole::Subagent, false, false),
        (Mode::Interactive, AgentRole::Main, false, false),
        (Mode::Interactive, AgentRole::Fork, false, false),
        (Mode::Plan, AgentRole::Main, false, false),
    ] {
        let judged = case().with(|it| (it.mode, it.role) = (mode, role)).judged();
        assert_eq!(judged.offers_tool, offers, "{mode:?} {role:?}");
        assert_eq!(judged.takes_completion, takes, "{mode:?} {role:?}");
        assert!(
            takes || judged.next == Continuation::Nothing,
            "no nudge and no stop without the tool: {mode:?} {role:?}"
        );
    }
}

#[test]
fn what_follows_a_run() {
    use CompletionOutcome as O;
    use Continuation::{NoTool, Nothing, Nudge};
    let capped = |detail| Continuation::Stop(StopReason::CapReached, detail);
    let rows: Vec<(&str, Case, Continuation)> = vec![
        ("stopped by itself", case(), Nudge),
        ("runs", case().with(|it| it.run = RunEnd::No), Nothing),
        (
            "others wait or work",
            case().with(|it| it.run = RunEnd::Busy),
            Nothing,
        ),
        (
            "complete",
            case().said(O::Completed),
            stop(StopReason::TaskComplete),
        ),
        (
            "complete while agents work",
            case().said(O::Completed).with(|it| it.run = RunEnd::Busy),
            stop(StopReason::TaskComplete),
        ),
        (
            "blocked",
            case().said(O::Blocked),
            stop(StopReason::Blocked),
        ),
        (
            "a completion that does not count",
            case().said(O::Continue),
            Nudge,
        ),
        (
            "failed",
            case().with(|it| it.run = RunEnd::Failed),
            stop(StopReason::Error),
        ),
        (
            "a limit is reached",
            case().with(|it| it.run = RunEnd::Limited),
            Continuation::Stop(StopReason::Error, StopDetail::Limit),
        ),
        (
            "aborted",
            case().with(|it| it.run = RunEnd::Aborted),
            stop(StopReason::Aborted),
        ),
        (
            "rejected by a person",
            case().with(|it| it.run = RunEnd::Rejected),
            stop(StopReason::Rejected),
        ),
        (
            "nothing to go on with",
            case().with(|it| it.progress.request = None),
            Nothing,
        ),
        (
            "paused",
            case().with(|it| it.progress.paused = true),
            Nothing,
        ),
        (
            "paused, and complete",
            case()
                .said(O::Completed)
                .with(|it| it.progress.paused = true),
            stop(StopReason::TaskComplete),
        ),
        (
            "the app continues itself",
            case().with(|it| it.options.continuation_enabled = Some(false)),
            Nothing,
        ),
        (
            "the tool is filtered out",
            case().with(|it| it.has_tool = false),
            NoTool,
        ),
        (
            "nobody is attached",
            case().with(|it| it.attended = false),
            Nothing,
        ),
        (
            "nobody is attached, and the session goes on alone",
            case().with(|it| {
                it.attended = false;
                it.options.unattended = Some(true);
            }),
            Nudge,
        ),
        (
            "four of five",
            case().with(|it| it.progress.continues = 4),
            Nudge,
        ),
        (
            "five of five",
            case().with(|it| it.progress.continues = 5),
            capped(StopDetail::Continues(5)),
        ),
        (
            "a limit of the session",
            case().with(|it| {
                it.options.max_continues = Some(7);
                it.progress.continues = 5;
            }),
            Nudge,
        ),
        (
            "a limit of zero",
            case().with(|it| it.options.max_continues = Some(0)),
            capped(StopDetail::Continues(0)),
        ),
        (
            "two in vain",
            case().with(|it| it.progress.empty = 2),
            Nudge,
        ),
        (
            "three in vain",
            case().with(|it| {
                it.progress.continues = 3;
                it.progress.empty = 3;
            }),
            capped(StopDetail::Empty(3)),
        ),
    ];
    for (name, case, expected) in rows {
        assert_eq!(case.judged().next, expected, "{name}");
    }
}
