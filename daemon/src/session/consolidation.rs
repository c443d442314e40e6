//! Notes for later sessions, made of a session that has ended.
//!
//! The session ends first; whoever left it does not wait. The model is asked once, beside the
//! conversation, and what it answers goes to the context board. What that used is counted in the log of the
//! session. If the daemon ends meanwhile, there are no notes.

use std::path::Path;

use loopd_proto::event::fact::CallPurpose;
use loopd_proto::id::SessionId;
use loopd_proto::session::Mode;
use std::sync::Arc;

use super::actor::Actor;
use super::beside::{self, Prepared};
use super::registry::Sessions;
use crate::redaction::Redaction;
use crate::tool::context_board::{Board, consolidate};
use loopd_exec::keep_alive::KeepAliveGuard;
use loopd_kernel::command::{Command, LogLevel};
use loopd_kernel::texts::beside as texts;

/// The most tokens of an answer.
const OUTPUT: u64 = 4_096;

/// What is about to be made of a session.
pub(super) struct Consolidation {
    session: SessionId,
    call: Prepared,
    board: Board,
    redaction: Redaction,
    sessions: Arc<Sessions>,
    /// The daemon goes on for so long.
    _at_work: KeepAliveGuard,
}

impl Actor {
    /// Prepares the notes of a session that is about to end; `None` if there will be none: nobody wants
    /// them, or too little was said since the last ones.
    pub(super) async fn consolidation(&self) -> Option<Consolidation> {
        let settings = self.services.config.memory;
        let requests = self.state.totals.user_requests;
        let said = requests.saturating_sub(self.state.consolidated);
        let wants = settings.consolidate
            && self.state.options.enable_config_discovery == Some(true)
            && self.state.options.shares_notes()
            && self.state.mode != Mode::Plan
            && !self.subagents.is_child()
            && said >= settings.least_messages.max(1)
            && self.state.history.last_text().is_some();
        if !wants {
            return None;
        }
        let board = self.services.board(Path::new(&self.state.cwd));
        let reading = board.clone();
        let listed = tokio::task::spawn_blocking(move || reading.list(None)).await;
        let listed = match listed {
            Ok(Ok(listed)) => listed,
            Ok(Err(error)) => {
                tracing::warn!(session = %self.state.id, %error, "no notes are made of the session");
                return None;
            }
            Err(error) => {
                tracing::error!(session = %self.state.id, %error, "the context board could not be read");
                return None;
            }
        };
        let call = self.question_beside(texts::consolidation(&listed), OUTPUT)?;
        Some(Consolidation {
            session: self.state.id.clone(),
            call,
            board,
            redaction: self.redaction(),
            sessions: self.sessions.clone(),
            _at_work: self.services.keep_alive.work(),
        })
    }
}

impl Consolidation {
    /// Makes the notes, and records what that used and came to.
    pub(super) async fn run(self) {
        let Self {
            session,
            call,
            board,
            redaction,
            sessions,
            _at_work,
        } = self;
        let (said, used) = beside::make(call.call, call.budget).await;
        let noted = match said.and_then(beside::text) {
            Ok(said) => {
                let work = move || consolidate(&board, &redaction, &said);
                let work = tokio::task::spawn_blocking(work).await;
                work.unwrap_or_else(|error| Err(error.to_string()))
            }
            Err(why) => Err(why),
        };
        let (level, message) = match noted {
            Ok(noted) => (LogLevel::Info, noted),
            Err(why) => (
                LogLevel::Warning,
                format!("No notes for later sessions were made of this one: {why}"),
            ),
        };
        tracing::info!(%session, message, "a session was boiled down");
        let log = Command::Log {
            level,
            kind: "consolidation".to_owned(),
            message,
            url: None,
            tip: None,
            stored: true,
        };
        let used =
            used.map(|used| Command::CalledBeside(Box::new(used), CallPurpose::Consolidation));
        let handle = sessions.open(session.clone());
        for command in used.into_iter().chain([log]) {
            if let Err(error) = handle.command(command).await {
                tracing::warn!(%session, %error, "what the notes of a session used is not in its log");
            }
        }
        handle.stop_unless_used().await;
    }
}
