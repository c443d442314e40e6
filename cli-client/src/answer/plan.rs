//! Shows a plan on the terminal and asks what follows.

use std::fmt::Write as _;

use loopd_sdk::proto::visible::for_person;
use loopd_sdk::{ExitPlanMode, PlanAction, PlanProposed};

use crate::terminal::{Style, Terminal};

/// Asks until the answer is clear. Every other text says what should be changed.
pub(super) async fn decide(terminal: &Terminal, plan: &PlanProposed) -> ExitPlanMode {
    let question = question(terminal, plan);
    loop {
        let Some(line) = terminal.ask(&question, "  > ").await else {
            // The question stays open for another client or a later one.
            return terminal.left_unanswered().await;
        };
        let line = line.trim();
        match read(line, plan) {
            Choice::Follow(action) => {
                return ExitPlanMode {
                    approved: true,
                    selected_action: Some(action),
                    ..ExitPlanMode::default()
                };
            }
            Choice::Change(feedback) => {
                return ExitPlanMode {
                    feedback: Some(feedback),
                    ..ExitPlanMode::default()
                };
            }
            Choice::No => {
                let what = "  What should be changed?\n";
                let Some(feedback) = terminal.ask(what, "  > ").await else {
                    return terminal.left_unanswered().await;
                };
                let feedback = feedback.trim();
                return ExitPlanMode {
                    feedback: (!feedback.is_empty()).then(|| feedback.to_owned()),
                    ..ExitPlanMode::default()
                };
            }
            Choice::Unclear => {}
        }
    }
}

/// What a typed line chooses.
#[derive(Debug, PartialEq, Eq)]
enum Choice {
    Follow(PlanAction),
    No,
    /// The plan is not approved, and this should be changed.
    Change(String),
    Unclear,
}

fn read(line: &str, plan: &PlanProposed) -> Choice {
    let number = line.parse::<usize>().ok();
    let numbered = number.and_then(|number| plan.actions.get(number.checked_sub(1)?));
    let lower = line.to_lowercase();
    let named = plan.actions.iter().find(|action| name(**action) == lower);
    if let Some(action) = numbered.or(named) {
        return Choice::Follow(*action);
    }
    match lower.as_str() {
        "y" | "yes" => Choice::Follow(plan.recommended_action),
        "n" | "no" => Choice::No,
        "" => Choice::Unclear,
        _ if number.is_some() => Choice::Unclear,
        _ => Choice::Change(line.to_owned()),
    }
}

fn question(terminal: &Terminal, plan: &PlanProposed) -> String {
    let mark = terminal.styled(Style::Bold, "?");
    let summary = terminal.styled(Style::Bold, &for_person(&plan.summary));
    let mut text = format!("{mark} The plan is ready: {summary}\n");
    for line in for_person(&plan.plan_content).lines() {
        text.push_str(&terminal.styled(Style::Dim, &format!("  {line}\n")));
    }
    for (number, action) in plan.actions.iter().enumerate() {
        let mark = if *action == plan.recommended_action {
            " (recommended)"
        } else {
            ""
        };
        // Writing to a string cannot fail.
        writeln!(text, "  {}. {}{mark}", number + 1, explain(*action)).ok();
    }
    text.push_str("  no, or what should be changed: plan mode goes on\n");
    text
}

fn name(action: PlanAction) -> &'static str {
    match action {
        PlanAction::ExitOnly => "exit_only",
        PlanAction::Interactive => "interactive",
        PlanAction::Autopilot => "autopilot",
        PlanAction::AutopilotFleet => "autopilot_fleet",
    }
}

fn explain(action: PlanAction) -> &'static str {
    match action {
        PlanAction::ExitOnly => "exit_only: leave plan mode, begin nothing",
        PlanAction::Interactive => "interactive: carry it out, and ask me as usual",
        PlanAction::Autopilot => "autopilot: carry it out to the end",
        PlanAction::AutopilotFleet => "autopilot_fleet: carry it out with several agents",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> PlanProposed {
        let plan = serde_json::json!({"sessionId": "s", "summary": "Short", "planContent": "Long",
            "actions": ["autopilot", "interactive"], "recommendedAction": "interactive"});
        serde_json::from_value(plan).unwrap_or_else(|error| unreachable!("{error}"))
    }

    #[test]
    fn a_line_chooses_an_action_or_says_what_should_be_changed() {
        let change = |text: &str| Choice::Change(text.to_owned());
        let table = [
            ("1", Choice::Follow(PlanAction::Autopilot)),
            ("2", Choice::Follow(PlanAction::Interactive)),
            ("3", Choice::Unclear),
            ("0", Choice::Unclear),
            ("", Choice::Unclear),
            ("y", Choice::Follow(PlanAction::Interactive)),
            ("Autopilot", Choice::Follow(PlanAction::Autopilot)),
            ("exit_only", change("exit_only")),
            ("no", Choice::No),
            ("smaller steps", change("smaller steps")),
        ];
        for (line, expected) in table {
            assert_eq!(read(line, &plan()), expected, "{line:?}");
        }
    }
}
