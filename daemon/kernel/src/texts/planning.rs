//! What models and people read about plan mode.

use loopd_proto::event::task::TaskWork;
use loopd_proto::session::Mode;

use crate::policy::planning::Planning;
use crate::tasks::Task;

/// Says what plan mode is, to whom it binds, and how it ends.
pub fn plan_mode(planning: Planning) -> &'static str {
    match planning {
        Planning::No => "",
        Planning::Mode => {
            "The session is in plan mode: nothing is changed until the user approves a plan. Read, search and run commands that only look. When the plan is ready, call exit_plan_mode if you have this tool; else write the plan as your answer. Only the user ends plan mode."
        }
        Planning::Parent => {
            "The session that you work for is in plan mode: nothing is changed until the user approves a plan. Read, search and run commands that only look, and report what should be changed. Plan mode ends in that session, with exit_plan_mode or by the user."
        }
        Planning::Agent => {
            "This agent only plans: it changes nothing. Read, search and run commands that only look, and say what should be changed. Another agent has to make the changes."
        }
    }
}

/// The result of a call that plan mode refuses.
pub fn refused_while_planning(planning: Planning, tool: &str) -> String {
    format!(
        "{tool} was not run, because it writes. {}",
        plan_mode(planning)
    )
}

/// The result of a call that was permitted, and whose turn came after plan mode had begun.
pub(crate) fn plan_began_meanwhile(planning: Planning, tool: &str) -> String {
    format!(
        "{tool} was not run: plan mode began while it waited for its turn. {}",
        plan_mode(planning)
    )
}

/// Names the work that goes on when plan mode begins. `shells` are those that are open: what their commands
/// have left in the background is not known.
pub(crate) fn still_running<'a>(
    tasks: impl Iterator<Item = &'a Task>,
    foreground: impl Iterator<Item = &'a str>,
    shells: &[&str],
) -> Option<String> {
    let mut commands: Vec<String> = foreground.map(|command| format!("`{command}`")).collect();
    let (mut agents, mut others) = (Vec::new(), Vec::new());
    for task in tasks {
        match &task.work {
            TaskWork::Shell(shell) => commands.push(format!("{} (`{}`)", task.id, shell.command)),
            TaskWork::Agent(_) => agents.push(task.id.to_string()),
            TaskWork::External(_) => others.push(task.id.to_string()),
        }
    }
    let mut parts = Vec::new();
    if !commands.is_empty() {
        parts.push(format!(
            "Plan mode begins, but commands that were started before go on and may change something: {}. Stop them, or wait for their end.",
            commands.join(", ")
        ));
    }
    if !shells.is_empty() {
        parts.push(format!(
            "What earlier commands may have left in the background with `&` goes on, too, in these shells: {}.",
            shells.join(", ")
        ));
    }
    if !agents.is_empty() {
        parts.push(format!(
            "Agents at work begin nothing from now on that changes anything, but commands that they have started before, which are not named here, go on and may change something: {}.",
            agents.join(", ")
        ));
    }
    if !others.is_empty() {
        parts.push(format!(
            "Tasks on MCP servers go on and may change something: {}.",
            others.join(", ")
        ));
    }
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// The answer to a call that would end plan mode where there is none, or by somebody else.
pub(crate) fn not_in_plan_mode(planning: Planning) -> String {
    match plan_mode(planning) {
        "" => "The session is not in plan mode, so there is nothing to leave. Go on.".to_owned(),
        text => format!("Nobody was asked. {text}"),
    }
}

/// What follows an approved plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlanNext {
    /// The model carries it out, in this mode.
    Begin(Mode),
    /// A fleet carries out the todos of the session.
    Fleet,
    /// Nothing begins yet.
    Wait,
}

/// The result of a plan that a person approved. Recorded conversations contain the first two
/// sentences of each kind, and the whole text for the interactive mode.
pub(crate) fn plan_approved(
    next: PlanNext,
    feedback: Option<&str>,
    edited: Option<&str>,
) -> String {
    let text = match next {
        PlanNext::Wait => {
            "Do not begin with the changes: the user decides when the work starts. End your turn."
        }
        PlanNext::Fleet if edited.is_some() => {
            "You are now in autopilot mode, and a fleet carries the plan out: when your turn has ended, every todo of this session whose dependencies are done is given to a worker of its own. The user has changed the plan, so bring the todos in line with it now, with the tool sql, begin none of them yourself, and end your turn. You are told when the fleet has ended."
        }
        PlanNext::Fleet => {
            "You are now in autopilot mode, and a fleet carries the plan out: when your turn has ended, every todo of this session whose dependencies are done is given to a worker of its own. Begin none of them yourself, and end your turn now. You are told when the fleet has ended."
        }
        PlanNext::Begin(Mode::Interactive | Mode::Plan) => {
            "You are now in interactive mode. Start implementing the plan now, in this same response. Approving the plan is your go-signal, so do not stop to ask whether to proceed or wait for another message."
        }
        PlanNext::Begin(Mode::Autopilot) => {
            "You are now in autopilot mode. Carry the plan out to its end, and decide by yourself what it leaves open."
        }
    };
    let edited = edited.map(edited_plan).unwrap_or_default();
    // Recorded conversations fix the whole text for the interactive mode: a person is there to say it.
    let feedback = match next {
        PlanNext::Begin(Mode::Interactive | Mode::Plan) => String::new(),
        PlanNext::Wait | PlanNext::Fleet | PlanNext::Begin(Mode::Autopilot) => {
            said_by_user(feedback)
        }
    };
    format!("Plan approved! Exited plan mode.\n\n{text}{feedback}{edited}")
}

/// The result of a plan that a person did not approve.
pub(crate) fn plan_rejected(feedback: Option<&str>, edited: Option<&str>) -> String {
    let feedback = said_by_user(feedback);
    let edited = edited.map(edited_plan).unwrap_or_default();
    format!(
        "The plan was not approved, and the session is still in plan mode. Change the plan and ask again with exit_plan_mode.{feedback}{edited}"
    )
}

/// What a person said about a plan; empty if that is nothing.
fn said_by_user(feedback: Option<&str>) -> String {
    let feedback = feedback.map(str::trim).filter(|said| !said.is_empty());
    feedback.map_or_else(String::new, |said| format!(" The user says: {said}"))
}

/// Tells people that an answer to a plan could not be used.
pub(crate) fn plan_answer_failed(why: &str) -> String {
    format!(
        "An app's answer about the plan could not be used, so the session stays in plan mode: {why}"
    )
}

/// The result of a plan about which an answer came that could not be used.
pub(crate) fn plan_not_answered(why: &str) -> String {
    format!(
        "The user's answer about the plan could not be read: {why}. The session is still in plan mode. Tell the user, and end your turn."
    )
}

/// The result of a plan whose question was open when somebody ended plan mode.
pub(crate) fn plan_mode_ended(mode: Mode) -> String {
    let mode = match mode {
        Mode::Interactive | Mode::Plan => "interactive",
        Mode::Autopilot => "autopilot",
    };
    format!(
        "The user ended plan mode without an answer to the plan. The session is in {mode} mode now. Nobody has approved the plan: say so, and begin with it only if the user has asked for that."
    )
}

/// The result of a plan whose question was open when the user approved another plan.
pub(crate) const OTHER_PLAN_APPROVED: &str = "The user has approved the plan of another call of exit_plan_mode, and plan mode has ended. Nobody has answered this one, so it is not approved.";

fn edited_plan(plan: &str) -> String {
    format!("\n\nThe user edited the plan. This is the plan now:\n\n{plan}")
}
