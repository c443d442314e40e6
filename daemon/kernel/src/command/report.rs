//! Which commands say what has happened, so that they must reach the log sooner or later.

use super::Command;

impl Command {
    /// Returns whether the command says what has happened or what a person has answered. Such a
    /// command cannot be refused because the log cannot be written at the moment: nobody would say it
    /// again. All other commands are requests, and their senders can ask again.
    pub fn is_report(&self) -> bool {
        matches!(
            self,
            Self::Recover(_)
                | Self::CloseCopied
                | Self::Abort(_)
                | Self::ClientsLeft
                | Self::GraceOver { .. }
                | Self::Prepared(_)
                | Self::PrepareFailed { .. }
                | Self::ModelReplied(_)
                | Self::ModelFailed { .. }
                | Self::Assessed(_)
                | Self::ToolFinished { .. }
                | Self::AnswerPermission { .. }
                | Self::AnswerTool { .. }
                | Self::AnswerUserInput { .. }
                | Self::AnswerExitPlanMode { .. }
                | Self::AnswerAutoModeSwitch { .. }
                | Self::AnswerElicitation { .. }
                | Self::CommandHandled { .. }
                | Self::Grant(_)
                | Self::TaskProcess { .. }
                | Self::TaskEnded { .. }
                | Self::TaskAnswered { .. }
                | Self::TaskNoted { .. }
                | Self::TasksDelivered(_)
                | Self::UserCommandEnded { .. }
                | Self::ShellWaits(_)
        )
    }
}
