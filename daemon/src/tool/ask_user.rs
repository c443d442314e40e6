//! The tool `ask_user`, as the model sees it. The session asks the user, and the answer is the
//! result, so `run` is never called.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use loopd_kernel::policy::grant::Grant;
use loopd_kernel::tool_call::UserQuestion;

use super::{AssessContext, Need, Outcome, Tool, ToolContext, texts};

pub const ASK_USER: &str = "ask_user";

/// The tool `ask_user`.
#[derive(Debug, Clone, Copy)]
pub struct AskUser;

/// The arguments of `ask_user`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AskUserArgs {
    /// The question, complete in itself: the user may not have followed the work.
    pub question: String,
    /// Answers to choose from, best first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choices: Option<Vec<String>>,
    /// Whether the user may also answer in their own words; yes unless set to false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_freeform: Option<bool>,
}

impl Tool for AskUser {
    type Args = AskUserArgs;
    const NAME: &'static str = ASK_USER;
    const DESCRIPTION: &'static str = "Asks the user one question and waits for the answer.\n\
        - Use it when a decision belongs to the user and cannot be found out with the other tools.\n\
        - Ask one thing at a time; offer choices where the sensible answers are known.\n\
        - Do not use it to report progress or to ask whether to go on.";

    async fn need(&self, args: &AskUserArgs, _context: &AssessContext) -> Need {
        Need::Answer(UserQuestion {
            text: args.question.clone(),
            choices: args.choices.clone(),
            allow_freeform: args.allow_freeform.unwrap_or(true),
        })
    }

    async fn run(&self, _grant: &Grant, _args: AskUserArgs, _context: &ToolContext) -> Outcome {
        Outcome::failure(texts::NO_CLIENT_TO_ASK)
    }
}
