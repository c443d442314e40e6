//! Finds the place in the log that a session is to go back to.

use std::sync::Arc;

use loopd_proto::event::rewind::{RewindMode, RewindTarget};
use loopd_proto::id::{EventId, RewindId, Seq, SessionId};
use loopd_store::{Store, StoredEvent, Visibility};

use crate::front::rpc::error::RpcError;
use crate::session::SessionHandle;
use loopd_kernel::command::SeenHistory;
use loopd_kernel::rewind::{HiddenRange, Rewinds, counts};
use loopd_kernel::state::State;

/// How many events are read at once.
const PAGE: usize = 1_000;

/// A place in the log.
#[derive(Debug)]
pub(super) struct Located {
    pub(super) target: RewindTarget,
    pub(super) seen: SeenHistory,
    /// The kind of the event at the target.
    pub(super) kind: Arc<str>,
    /// The rewind that is undone, and what it took back.
    pub(super) undoes: Option<(RewindId, RewindMode)>,
}

/// The log of a session at one moment.
pub(in crate::front::rpc::method) struct LogView<'a> {
    store: &'a dyn Store,
    id: SessionId,
    end: Seq,
    visible: u64,
    rewinds: Rewinds,
}

/// What a session knows of its log at one moment.
pub(in crate::front::rpc::method) struct LogMoment {
    end: Seq,
    visible: u64,
    rewinds: Rewinds,
}

impl LogMoment {
    pub(in crate::front::rpc::method) fn of(state: &State) -> Self {
        Self {
            end: state.seq,
            visible: state.visible,
            rewinds: state.rewinds.clone(),
        }
    }
}

impl<'a> LogView<'a> {
    pub(in crate::front::rpc::method) async fn of(
        store: &'a dyn Store,
        session: &SessionHandle,
    ) -> Result<Self, RpcError> {
        // When this is answered, everything decided before is committed.
        let moment = session.state(LogMoment::of).await?;
        Ok(Self::at(store, session, moment))
    }

    pub(in crate::front::rpc::method) fn at(
        store: &'a dyn Store,
        session: &SessionHandle,
        moment: LogMoment,
    ) -> Self {
        Self {
            store,
            id: session.id().clone(),
            end: moment.end,
            visible: moment.visible,
            rewinds: moment.rewinds,
        }
    }

    /// Shows each event in order until `look` returns false.
    async fn each(&self, mut look: impl FnMut(&StoredEvent) -> bool) -> Result<(), RpcError> {
        let mut after = Seq::START;
        while after < self.end {
            let page = self.store.read(&self.id, after, PAGE).await?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            after = last.seq;
            for event in page.iter().filter(|event| event.seq <= self.end) {
                if !look(event) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Shows each event that clients see and that counts.
    pub(in crate::front::rpc::method) async fn each_counted(
        &self,
        mut look: impl FnMut(&StoredEvent),
    ) -> Result<(), RpcError> {
        let hidden = self.rewinds.hidden();
        self.each(|event| {
            if is_counted(event, &hidden) {
                look(event);
            }
            true
        })
        .await
    }

    /// Finds an event that clients see and that counts.
    pub(super) async fn event(&self, wanted: &EventId) -> Result<Located, RpcError> {
        let hidden = self.rewinds.hidden();
        let (mut kept, mut tip, mut found) = (0, None, None);
        self.each(|event| {
            if !is_counted(event, &hidden) {
                return true;
            }
            if event.id == *wanted {
                found = Some((event.seq, event.kind.clone()));
                return false;
            }
            kept += 1;
            tip = Some(event.id.clone());
            true
        })
        .await?;
        let Some((position, kind)) = found else {
            return Err(RpcError::InvalidParams(format!(
                "eventId: the session has no event {wanted}; session.history.listRewindPoints lists where it can go back to"
            )));
        };
        Ok(Located {
            seen: self.seen(self.visible.saturating_sub(kept)),
            target: RewindTarget {
                event_id: wanted.clone(),
                position,
                tip,
                kept,
            },
            kind,
            undoes: None,
        })
    }

    /// Finds the place before the rewind that the next undo takes back.
    pub(super) async fn before_last_rewind(&self) -> Result<Located, RpcError> {
        let Some(last) = self.rewinds.undoable() else {
            return Err(RpcError::Failed(
                "there is no rewind to undo in this session".to_owned(),
            ));
        };
        let position = last.began;
        let (then, now) = (self.rewinds.hidden_before(position), self.rewinds.hidden());
        let (mut kept, mut tip) = (0, None);
        let (mut removed, mut first_removed, mut at) = (0, None, None);
        self.each(|event| {
            if event.seq < position {
                if is_counted(event, &then) {
                    kept += 1;
                    tip = Some(event.id.clone());
                }
                return true;
            }
            at.get_or_insert_with(|| (event.id.clone(), event.kind.clone()));
            if is_counted(event, &now) {
                removed += 1;
                first_removed.get_or_insert_with(|| event.id.clone());
            }
            true
        })
        .await?;
        let (own, kind) = at.unwrap_or_else(|| ("".into(), "".into()));
        Ok(Located {
            seen: self.seen(removed),
            target: RewindTarget {
                event_id: first_removed.unwrap_or(own),
                position,
                tip,
                kept,
            },
            kind,
            undoes: Some((last.id.clone(), last.mode)),
        })
    }

    fn seen(&self, removed: u64) -> SeenHistory {
        SeenHistory {
            rewinds: self.rewinds.count(),
            visible: self.visible,
            removed,
        }
    }
}

/// Returns whether clients see an event and it counts.
fn is_counted(event: &StoredEvent, hidden: &[HiddenRange]) -> bool {
    event.visible == Visibility::Public && counts(hidden, event.seq)
}
