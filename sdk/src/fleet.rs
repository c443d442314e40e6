//! Fleets: workers that carry out the todos of a session.

use loopd_proto::method;
use loopd_proto::params::fleet::{FleetStartParams, FleetStatus};

use crate::{Error, Session};

impl Session {
    /// Starts workers for the todos of the session; the model divides a prompt into todos first.
    /// [`Session::until_idle`] waits for their end.
    pub async fn start_fleet(&self, prompt: Option<String>) -> Result<(), Error> {
        let params = FleetStartParams {
            session_id: self.id().clone(),
            prompt,
            attachments: Vec::new(),
            wait: false,
            max_workers: None,
            agent_type: None,
            billable: None,
            limits: None,
        };
        // At most once: a second fleet would be refused, although the first one works.
        let shared = &self.client().shared;
        shared.call_once::<method::FleetStart>(&params).await?;
        Ok(())
    }

    /// Returns how far the fleet of the session is, and how the last one ended.
    pub async fn fleet(&self) -> Result<FleetStatus, Error> {
        self.call::<method::LoopdFleetStatus>(&self.of()).await
    }

    /// Stops the fleet and its workers; their todos wait again. Returns whether there was a fleet.
    pub async fn stop_fleet(&self) -> Result<bool, Error> {
        let stopped = self.call::<method::LoopdFleetStop>(&self.of()).await?;
        Ok(stopped.stopped)
    }
}
