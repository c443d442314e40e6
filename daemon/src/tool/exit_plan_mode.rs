//! The tool `exit_plan_mode`, as the model sees it. The session asks the user, and the answer is the
//! result, so `run` is never called.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use loopd_kernel::policy::grant::Grant;
use loopd_kernel::tool_call::PlanProposal;
use loopd_proto::event::ask::PlanAction;

use super::{AssessContext, Need, Outcome, Tool, ToolContext, texts};

pub const EXIT_PLAN_MODE: &str = "exit_plan_mode";

/// The longest plan, in bytes.
const LONGEST_PLAN: u64 = 1024 * 1024;

/// The tool `exit_plan_mode`.
#[derive(Debug, Clone, Copy)]
pub struct ExitPlanMode;

/// The arguments of `exit_plan_mode`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExitPlanModeArgs {
    /// The plan in a few sentences.
    pub summary: String,
    /// The plan in full, as Markdown. It becomes the plan of the session. Without it the user is
    /// asked about the plan that the session has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// What the user may choose: autopilot (you carry the plan out alone), autopilot_fleet (several
    /// agents carry out the todos of the plan at the same time; only if the plan is written as todos),
    /// interactive (you carry it out and the user takes part), exit_only (nothing begins).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actions: Option<Vec<PlanAction>>,
    /// What you recommend; interactive by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommended_action: Option<PlanAction>,
}

impl Tool for ExitPlanMode {
    type Args = ExitPlanModeArgs;
    const NAME: &'static str = EXIT_PLAN_MODE;
    const DESCRIPTION: &'static str = "Shows the user the plan and asks whether plan mode may end and the work begin.\n\
        - Call it once the plan is complete: what will be changed, where, in which order, and how one sees that it worked.\n\
        - If the user does not approve, change the plan as they say and call it again.";

    async fn need(&self, args: &ExitPlanModeArgs, context: &AssessContext) -> Need {
        let given = args.plan.as_ref();
        let given = given.filter(|plan| !plan.trim().is_empty()).cloned();
        let length = given.as_ref().map_or(0, String::len);
        if u64::try_from(length).is_ok_and(|length| length > LONGEST_PLAN) {
            return Need::Refused(Outcome::failure(format!(
                "The plan has {length} bytes, more than the limit of {LONGEST_PLAN}. Make it shorter."
            )));
        }
        let is_new = given.is_some();
        let plan = match given {
            Some(plan) => plan,
            None => read_plan(&context.plan_file).await.unwrap_or_default(),
        };
        Need::Approval(PlanProposal {
            summary: args.summary.clone(),
            content: plan,
            is_new,
            actions: args.actions.clone().unwrap_or_default(),
            recommended: args.recommended_action,
        })
    }

    async fn run(&self, _grant: &Grant, _args: ExitPlanModeArgs, _: &ToolContext) -> Outcome {
        Outcome::failure(texts::NO_CLIENT_TO_ASK)
    }
}

/// Reads the plan of a session; `None` if there is none that can be read.
pub(crate) async fn read_plan(file: &Path) -> Option<String> {
    let facts = tokio::fs::symlink_metadata(file).await.ok()?;
    if !facts.is_file() || facts.len() > LONGEST_PLAN {
        return None;
    }
    tokio::fs::read_to_string(file).await.ok()
}
