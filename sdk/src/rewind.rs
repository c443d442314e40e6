//! Going back to an earlier point of a session.

use loopd_proto::event::rewind::RewindMode;
use loopd_proto::id::EventId;
use loopd_proto::method;
use loopd_proto::params::rewind::{LoopdRewindParams, LoopdRewound, OnConflict, RewindPoints};

use crate::{Error, Session};

/// What to take back, and how.
#[derive(Debug, Clone, Default)]
pub struct Rewind {
    /// The user message to go back to; without it the last rewind is undone.
    pub to: Option<EventId>,
    /// Conversation and files when absent, or what the undone rewind took back.
    pub mode: Option<RewindMode>,
    pub on_conflict: OnConflict,
    /// Only says what would be done.
    pub dry_run: bool,
}

impl Session {
    /// Lists the user messages that the session can go back to.
    pub async fn rewind_points(&self) -> Result<RewindPoints, Error> {
        let of = self.of();
        self.call::<method::HistoryListRewindPoints>(&of).await
    }

    /// Goes back, undoes the last rewind, or says what that would do.
    pub async fn rewind(&self, rewind: Rewind) -> Result<LoopdRewound, Error> {
        let params = LoopdRewindParams {
            session_id: self.id().clone(),
            event_id: rewind.to,
            mode: rewind.mode,
            on_conflict: rewind.on_conflict,
            dry_run: rewind.dry_run,
        };
        self.call::<method::LoopdRewind>(&params).await
    }
}
