//! `loopd.messages`: the log as messages with parts, a page at a time.
//!
//! A page is a fold of the whole log that keeps only its own messages. What happens later, such as
//! the end of a sub-agent, still changes them, so that a page is always what a client would have that
//! has followed all events.

use loopd_proto::id::Seq;
use loopd_proto::messages::{Message, Messages};
use loopd_proto::params::messages::{MessageOrder, MessagePage, MessagesParams};
use loopd_store::StoredEvent;
use serde_json::Value;

use super::event_log::Cursor;
use super::rewind::{LogMoment, LogView};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;

/// How many messages a page has if the caller does not say, and at most.
const USUAL: usize = 50;
const MOST: usize = 200;

/// The largest page, in bytes of its messages. A single message may be larger.
const LARGEST_PAGE: usize = 4 * 1024 * 1024;

pub(super) async fn list(
    context: Context,
    params: MessagesParams,
) -> Result<MessagePage, RpcError> {
    let session = context.session(&params.session_id)?;
    let dropped = params.dropped;
    let view = session.view(move |view| {
        let agent = view.state.subagent.as_ref().map(|own| own.agent_id());
        let through = view.state.compaction.replaced_through;
        let through = dropped.then(|| through.unwrap_or(Seq::START));
        (
            agent,
            Cursor::here(view),
            LogMoment::of(view.state),
            through,
        )
    });
    let (agent, here, moment, through) = view.await?;
    let log = LogView::at(context.app.services.store.as_ref(), &session, moment);
    let limit = params.limit.unwrap_or(USUAL).clamp(1, MOST);
    let own = agent.as_ref().map(ToString::to_string);
    let mut page = Page {
        messages: Messages::new(own),
        order: params.order,
        cursor: params.cursor,
        limit,
        found: false,
        through,
    };
    log.each_counted(|event| page.take(event)).await?;
    let (messages, next) = page.finish()?;
    Ok(MessagePage {
        messages,
        next,
        agent_id: agent,
        event_cursor: here.to_string(),
    })
}

/// A page that is being folded.
struct Page {
    messages: Messages,
    order: MessageOrder,
    /// The message that the page before ended with.
    cursor: Option<String>,
    limit: usize,
    /// Whether the message of the cursor was seen.
    found: bool,
    /// The last event whose message is listed, if not all are.
    through: Option<Seq>,
}

impl Page {
    fn take(&mut self, event: &StoredEvent) {
        let Ok(value) = serde_json::from_str::<Value>(&event.json) else {
            return;
        };
        if self.through.is_some_and(|through| event.seq > through) {
            self.messages.close();
        }
        self.messages.apply(&value);
        if self.messages.is_closed() {
            return;
        }
        let newest = self.messages.iter().next_back();
        let at_cursor = match (&self.cursor, newest) {
            (Some(cursor), Some(newest)) => newest.id == *cursor,
            _ => false,
        };
        match self.order {
            // The page is what comes before the cursor.
            MessageOrder::Newest => {
                if at_cursor && !self.found {
                    self.found = true;
                    self.messages.drop_newest();
                    self.messages.close();
                }
                self.messages.keep_newest(self.limit);
            }
            // The page is what comes after it.
            MessageOrder::Oldest => {
                if at_cursor && !self.found {
                    self.found = true;
                    self.messages.keep_newest(0);
                } else if self.cursor.is_some() && !self.found {
                    self.messages.keep_newest(1);
                } else if self.messages.iter().len() >= self.limit {
                    self.messages.close();
                }
            }
        }
    }

    /// Returns the messages, and the cursor of the next page.
    fn finish(self) -> Result<(Vec<Message>, Option<String>), RpcError> {
        if let Some(cursor) = &self.cursor
            && !self.found
        {
            return Err(RpcError::InvalidParams(format!(
                "cursor: there is no message {cursor} any more; list again without a cursor"
            )));
        }
        let messages = self.messages.stored();
        let mut size = 0;
        let mut fits = |message: &Message| {
            let text = serde_json::to_string(message).map_or(0, |text| text.len());
            size += text;
            size <= LARGEST_PAGE || size == text
        };
        let (kept, last, more) = match self.order {
            MessageOrder::Newest => {
                let mut kept: Vec<Message> = Vec::new();
                let mut rest = messages.into_iter().rev();
                let mut cut = false;
                for message in rest.by_ref() {
                    if !fits(&message) {
                        cut = true;
                        break;
                    }
                    kept.push(message);
                }
                kept.reverse();
                let last = kept.first().map(|message| message.id.clone());
                (kept, last, cut || self.messages.is_shortened())
            }
            MessageOrder::Oldest => {
                let count = messages.len();
                let kept: Vec<Message> = messages.into_iter().take_while(|it| fits(it)).collect();
                let last = kept.last().map(|message| message.id.clone());
                let cut = kept.len() < count;
                (kept, last, cut || self.messages.has_more())
            }
        };
        Ok((kept, last.filter(|_| more)))
    }
}
