//! Messages that servers push: they enter the queue as messages of the server, if its entry allows that.

use loopd_mcp::PushedMessage;

use crate::session::actor::Actor;
use loopd_kernel::command::{Command, Send, SendPlace};

impl Actor {
    /// Queues a message of a server. Nobody waits for it: what cannot be queued is dropped and logged.
    pub(super) async fn take_pushed(&mut self, server: &str, message: PushedMessage) {
        let refused = if self.subagents.is_child() {
            Some("a sub-agent takes none")
        } else if self.clients.attachments().is_empty() {
            Some("nobody is attached to the session")
        } else {
            None
        };
        let done = if let Some(why) = refused {
            Err(why.to_owned())
        } else {
            let redaction = self.redaction();
            let send = Send {
                id: None,
                prompt: redaction.clean(&message.prompt(server)).into_owned(),
                display_prompt: Some(redaction.clean(&message.content).into_owned()),
                attachments: Vec::new(),
                agent_mode: None,
                required_tool: None,
                request_headers: std::collections::BTreeMap::new(),
                source: Some(format!("mcp-{server}")),
                place: SendPlace::Enqueue,
                sender: None,
                scope: None,
            };
            let queued = self.execute(Command::Send(send)).await;
            queued.map(|_| ()).map_err(|error| error.to_string())
        };
        if let Err(why) = done
            && let Some(server) = self.mcp.cell.server(server)
        {
            server.log.add(&format!("a message was dropped: {why}"));
        }
    }
}
