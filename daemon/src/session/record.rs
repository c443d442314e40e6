//! What the list of sessions says about a session, and who is told when that changes.

use crate::client::{Lifecycle, LifecycleMetadata};

use super::actor::Actor;

impl Actor {
    pub(super) fn refresh_record(&mut self) {
        let state = &self.state;
        let name = state.name.as_ref();
        self.record.created_ms = state.created.0;
        self.record.modified_ms = self.services.clock.now().0;
        self.record.summary = name.map(|name| name.text.clone());
        // Only a name by the user counts; a derived one is the beginning of the first message.
        self.record.name = name
            .filter(|name| name.by_user)
            .map(|name| name.text.clone());
        self.record.cwd = Some(state.cwd.clone());
        self.record.git_root.clone_from(&state.context.git_root);
        self.record.repository.clone_from(&state.context.repository);
        self.record.branch.clone_from(&state.context.branch);
        self.record
            .client_name
            .clone_from(&state.options.client_name);
        if let Some(subagent) = &state.subagent {
            self.record.parent = Some(subagent.parent.clone());
            self.record.agent = Some(subagent.task.to_string());
        }
    }

    pub(super) fn announce_update(&self) {
        // Clients know the sessions that they opened. They know sub-agents from their events.
        if let Some(launch) = self.clients.launch()
            && self.state.subagent.is_none()
        {
            launch.announce(&Lifecycle {
                kind: "session.updated",
                session_id: &self.state.id,
                metadata: Some(self.lifecycle_metadata()),
            });
        }
    }

    fn lifecycle_metadata(&self) -> LifecycleMetadata {
        LifecycleMetadata {
            start_time: self.state.created,
            modified_time: loopd_proto::time::Timestamp(self.record.modified_ms),
            summary: self.record.summary.clone(),
        }
    }
}
