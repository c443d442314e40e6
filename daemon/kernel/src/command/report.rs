//! Which commands say what has happened, so that they must reach the log sooner or later.

use loopd_proto::id::RequestId;

use super::{Command, LogLevel};

impl Command {
    /// Makes a warning, which is not stored, about a file that people wrote.
    pub fn file_warning(kind: &str, message: String) -> Self {
        Self::Log {
            level: LogLevel::Warning,
            kind: kind.to_owned(),
            message,
            url: None,
            tip: None,
            stored: false,
        }
    }

    /// Returns the request that the command answers, if it answers one.
    pub fn answered_request(&self) -> Option<&RequestId> {
        if let Self::AnswerPermission { request, .. }
        | Self::AnswerTool { request, .. }
        | Self::AnswerUserInput { request, .. }
        | Self::AnswerElicitation { request, .. } = self
        {
            Some(request)
        } else {
            None
        }
    }

    /// Returns whether the command says what has happened or what a person has answered, or lets a
    /// session go on whose client waits for that. Such a command cannot be refused because the log
    /// cannot be written at the moment: nobody would say it again. All other commands are requests, and their senders can ask again.
    pub fn is_report(&self) -> bool {
        match self {
            Self::Recover(_)
            | Self::TakeUp
            | Self::CloseCopied
            | Self::Abort(_)
            | Self::ClientsLeft
            | Self::GraceOver { .. }
            | Self::WaitOver { .. }
            | Self::MakeRoom(_)
            | Self::OutputsKept { .. }
            | Self::Summarised(_)
            | Self::AgentSpent(_)
            | Self::TimeUp
            | Self::Prepared(_)
            | Self::PrepareFailed { .. }
            | Self::ModelReplied(_)
            | Self::ModelFailed { .. }
            | Self::Guarded(_)
            | Self::GuardAbsent { .. }
            | Self::HooksAbsent { .. }
            | Self::GuardJoined(_)
            | Self::GuardLeft(_)
            | Self::HoldGuardFolders(_)
            | Self::LiftGuards(_)
            | Self::Assessed(_)
            | Self::AssessAgain(_)
            | Self::HooksAnswered { .. }
            | Self::StopAnswered(_)
            | Self::HooksNoted { .. }
            | Self::InstructionsFound { .. }
            | Self::ToolFinished { .. }
            | Self::AnswerPermission { .. }
            | Self::GuardDenied(..)
            | Self::SettlePermission(_)
            | Self::AnswerTool { .. }
            | Self::AnswerUserInput { .. }
            | Self::AnswerExitPlanMode { .. }
            | Self::ExitPlanModeFailed { .. }
            | Self::AnswerAutoModeSwitch { .. }
            | Self::AnswerElicitation { .. }
            | Self::CommandHandled { .. }
            | Self::CommandRan { .. }
            | Self::Grant(_)
            | Self::TaskProcess { .. }
            | Self::TaskEnded { .. }
            | Self::TaskAnswered { .. }
            | Self::TaskNoted { .. }
            | Self::TasksDelivered(_)
            | Self::UserCommandEnded { .. }
            | Self::WorkerNotStarted { .. }
            | Self::FilesRestored { .. }
            | Self::WithdrawPart(_)
            | Self::CalledBeside(..)
            | Self::Titled { .. }
            | Self::ShellWaits(_) => true,
            Self::Create(_)
            | Self::NarrowLike(_)
            | Self::PauseAutopilot(_)
            | Self::Resume(_)
            | Self::CheckGrant(_)
            | Self::GuardsChanged
            | Self::AdoptAsSubagent(_)
            | Self::Send(_)
            | Self::AskForPart(_)
            | Self::Suspend(_)
            | Self::Shutdown(_)
            | Self::EnqueueCommand(_)
            | Self::ClearQueue
            | Self::RemoveLastQueued
            | Self::MoveQueued { .. }
            | Self::EditQueued { .. }
            | Self::RemoveQueued(_)
            | Self::SteerQueued(_)
            | Self::WithdrawMessage { .. }
            | Self::Elicit { .. }
            | Self::SetName { .. }
            | Self::SetMode { .. }
            | Self::SetModel(_)
            | Self::SetReasoningEffort { .. }
            | Self::UpdateOptions(_)
            | Self::SwitchMcpServer(..)
            | Self::ChangePermissions(_)
            | Self::SelectAgent(_)
            | Self::PlanChanged(_)
            | Self::FileChanged(_)
            | Self::SetWorkingDirectory(_)
            | Self::RecordContext(_)
            | Self::SetSubagents(_)
            | Self::TaskStarted(_)
            | Self::TaskPromoted(_)
            | Self::TaskContinued { .. }
            | Self::RemoveTask(_)
            | Self::AnswerLimits { .. }
            | Self::UserCommandStarted { .. }
            | Self::WriteTodos(_)
            | Self::StoreTodos { .. }
            | Self::StartFleet(_)
            | Self::AdvanceFleet
            | Self::StopFleet
            | Self::SwitchSkill(_)
            | Self::SkillsLoaded(_)
            | Self::Rewind(_)
            | Self::Compact(_)
            | Self::ClearContext(_)
            | Self::StopCompaction(_)
            | Self::Log { .. } => false,
        }
    }
}
