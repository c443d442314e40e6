//! `context_board`: short notes that outlast a session, for the user or for one project. The agent that
//! boils down sessions adds and removes them; later sessions are shown them.

mod answer;
mod notes;

use loopd_kernel::policy::grant::Grant;
use loopd_proto::permission::PermissionRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{AssessContext, Need, Outcome, Tool, ToolContext};
pub(crate) use answer::consolidate;
pub use notes::{Board, BoardScope};

pub const CONTEXT_BOARD: &str = "context_board";

/// The tool `context_board`.
#[derive(Debug, Clone, Copy)]
pub(super) struct ContextBoard;

#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ContextBoardArgs {
    /// What to do.
    command: BoardCommand,
    /// Whose notes: `project` for what is true of this project, `user` for what is true of the user
    /// everywhere. Only `list` may leave it out, and lists both then.
    scope: Option<BoardScope>,
    /// For `add`: one fact, in one line of at most 500 characters.
    text: Option<String>,
    /// For `prune`: the numbers of the notes to remove, as `list` shows them.
    ids: Option<Vec<u64>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum BoardCommand {
    Add,
    Prune,
    List,
}

/// What the arguments ask for.
enum Wanted {
    Add(BoardScope, String),
    Prune(BoardScope, Vec<u64>),
    List(Option<BoardScope>),
}

impl ContextBoardArgs {
    /// Returns what is wanted; the error tells the model what is missing.
    fn wanted(&self) -> Result<Wanted, String> {
        let scope = self.scope.ok_or("`scope` is missing: `user` or `project`");
        match (self.command, &self.text, &self.ids) {
            (BoardCommand::List, None, None) => Ok(Wanted::List(self.scope)),
            (BoardCommand::Add, Some(text), None) => {
                notes::fits(text)?;
                Ok(Wanted::Add(scope?, text.clone()))
            }
            (BoardCommand::Prune, None, Some(ids)) if !ids.is_empty() => {
                Ok(Wanted::Prune(scope?, ids.clone()))
            }
            (BoardCommand::List, _, _) => Err("`list` takes only `scope`".to_owned()),
            (BoardCommand::Add, _, _) => Err("`add` takes `scope` and `text`".to_owned()),
            (BoardCommand::Prune, _, _) => {
                Err("`prune` takes `scope` and `ids`, with at least one number".to_owned())
            }
        }
    }
}

impl Tool for ContextBoard {
    type Args = ContextBoardArgs;
    const NAME: &'static str = CONTEXT_BOARD;
    const DESCRIPTION: &'static str = "The context board: short notes that later sessions are shown. `list` shows them with their numbers, \
                                       `add` adds one, `prune` removes some by their numbers. To change a note, add the new one and prune the old one.";

    async fn need(&self, args: &ContextBoardArgs, _context: &AssessContext) -> Need {
        match args.wanted() {
            Ok(Wanted::List(_)) => Need::Nothing,
            // All later sessions read a note, so that somebody has to be content with it.
            Ok(Wanted::Add(..) | Wanted::Prune(..)) => {
                Need::Permission(PermissionRequest::CustomTool {
                    tool_call_id: None,
                    tool_name: CONTEXT_BOARD.to_owned(),
                    tool_description: "Changes the notes that later sessions are shown".to_owned(),
                    args: Some(json!(args)),
                })
            }
            Err(why) => Need::Refused(Outcome::failure(why)),
        }
    }

    async fn run(&self, _: &Grant, args: ContextBoardArgs, context: &ToolContext) -> Outcome {
        let wanted = match args.wanted() {
            Ok(wanted) => wanted,
            Err(why) => return Outcome::failure(why),
        };
        let board = context.board.clone();
        let redaction = context.redaction.clone();
        let work = tokio::task::spawn_blocking(move || match wanted {
            Wanted::Add(scope, text) => board.add(scope, &redaction.clean(&text)),
            Wanted::Prune(scope, ids) => board.prune(scope, &ids),
            Wanted::List(scope) => board.list(scope),
        });
        match work.await {
            Ok(Ok(text)) => Outcome::success(text),
            Ok(Err(error)) => Outcome::failure(error.to_string()),
            Err(error) => {
                tracing::error!(%error, "the context board");
                Outcome::failure("The context board failed unexpectedly; nothing was changed.")
            }
        }
    }
}
