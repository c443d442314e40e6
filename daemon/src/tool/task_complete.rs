//! The tool `task_complete`, as the model sees it: in autopilot mode it says that the task is done, or
//! that it cannot go on. The kernel decides whether that counts, and ends the loop.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use loopd_kernel::autopilot::TASK_COMPLETE;
use loopd_kernel::policy::grant::Grant;

use super::{AssessContext, Need, Outcome, Tool, ToolContext};

/// The longest text that the tool takes, in bytes.
const LONGEST: usize = 16 * 1024;

/// The tool `task_complete`.
#[derive(Debug, Clone, Copy)]
pub(super) struct TaskComplete;

/// The arguments of `task_complete`.
///
/// Members that say how the task ended are not ignored: models know them from other tools and from the
/// event `session.task_complete`. The schema does not name them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskCompleteArgs {
    /// What you have done and how you checked it, for the user who has not followed the work.
    summary: String,
    /// Only if you cannot go on: what you need, and from whom. The task then ends as blocked, not as
    /// complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blocked: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    success: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    outcome: Option<String>,
}

/// The only outcome that says no more than the call itself.
const COMPLETED: &str = "completed";
/// The outcome that says what `blocked` says.
const BLOCKED: &str = "blocked";

impl Tool for TaskComplete {
    type Args = TaskCompleteArgs;
    const NAME: &'static str = TASK_COMPLETE;
    const DESCRIPTION: &'static str = "Marks the whole task of the user as complete and ends your work on it.\n\
        - Call it when everything that was asked for is done and checked, and only then: not while steps remain, an error is unsolved or you are unsure.\n\
        - Make it your last call. If another call of the same message fails, the task is not complete.\n\
        - If you cannot go on without something that only the user can give, say in `blocked` what you need. Try other ways first.";

    async fn need(&self, args: &TaskCompleteArgs, _context: &AssessContext) -> Need {
        match refusal(args) {
            Some(why) => Need::Refused(Outcome::failure(why)),
            None => Need::Nothing,
        }
    }

    async fn run(&self, _grant: &Grant, args: TaskCompleteArgs, _context: &ToolContext) -> Outcome {
        Outcome::success(match args.blocked {
            Some(_) => "The task is marked as blocked.",
            None => "The task is marked as complete.",
        })
    }
}

/// Returns why the arguments cannot be taken.
fn refusal(args: &TaskCompleteArgs) -> Option<String> {
    let blocked = args.blocked.as_deref();
    let contradicts = |said: &str| {
        Some(format!(
            "{said} contradicts the call. The task is not marked as complete: go on with it; or, if you cannot, call \
             task_complete again and say in `blocked` what you need."
        ))
    };
    if args.success == Some(false) && blocked.is_none() {
        return contradicts("`success: false`");
    }
    match args.outcome.as_deref() {
        None => {}
        Some(COMPLETED) if blocked.is_none() => {}
        Some(BLOCKED) if blocked.is_some() => {}
        Some(outcome) => return contradicts(&format!("`outcome: {outcome:?}`")),
    }
    for (name, text) in [
        ("summary", Some(args.summary.as_str())),
        ("blocked", blocked),
    ] {
        let Some(text) = text else {
            continue;
        };
        if text.trim().is_empty() {
            return Some(format!(
                "`{name}` is empty. The task is not marked as complete: call task_complete again, and say it in words."
            ));
        }
        if text.len() > LONGEST {
            return Some(format!(
                "`{name}` has {} bytes, more than the limit of {LONGEST}. Make it shorter and call task_complete again.",
                text.len()
            ));
        }
    }
    None
}
