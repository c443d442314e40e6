//! What the model of a session reads, and what it does not read any more.

use loopd_proto::method;
use loopd_proto::params::context::Attribution;
use loopd_proto::params::messages::{MessageOrder, MessagePage, MessagesParams};

use crate::{Error, Session};

impl Session {
    /// Returns what takes how much of the context; `None` if nothing was sent to a model yet.
    pub async fn context(&self) -> Result<Option<Attribution>, Error> {
        let of = self.of();
        let result = self.call::<method::MetadataContextAttribution>(&of).await?;
        Ok(result.context_attribution)
    }

    /// Lists the messages in whose place the model reads a summary, the oldest first. `cursor` is the
    /// `next` of the page before.
    pub async fn dropped_messages(&self, cursor: Option<String>) -> Result<MessagePage, Error> {
        let params = MessagesParams {
            session_id: self.id().clone(),
            order: MessageOrder::Oldest,
            limit: None,
            cursor,
            dropped: true,
        };
        self.call::<method::LoopdMessages>(&params).await
    }
}
