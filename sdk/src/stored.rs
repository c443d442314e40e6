//! Stored sessions: found, copied, deleted, and carried to another home.

use std::io;

use loopd_proto::event::todo::TodoList;
use loopd_proto::id::{EventId, SessionId};
use loopd_proto::method;
use loopd_proto::params::bundle::{
    ExportParams, ImportParams, ImportPartParams, ImportedSession, SearchParams, SearchResult,
};
use loopd_proto::params::session::{ForkParams, Forked};
use loopd_proto::params::settings::NameParams;
use loopd_proto::params::stored::{Freed, IdsParams, PruneParams, Pruned};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use ulid::Ulid;

use crate::{Client, Error, Session};

/// How many bytes of a bundle are sent at once.
const PART: usize = 1024 * 1024;

/// How a session is imported.
#[derive(Debug, Clone, Default)]
pub struct Import {
    /// Where the session works from now on; the directory of this client when absent.
    pub working_directory: Option<String>,
    /// Gives the session a new id, so that it can be beside the one it was exported from.
    pub new_id: bool,
}

impl Client {
    /// Finds sessions by what was said in them, and by their names and directories; at most `limit`.
    pub async fn search_sessions(
        &self,
        text: impl Into<String>,
        limit: usize,
    ) -> Result<SearchResult, Error> {
        let params = SearchParams {
            text: text.into(),
            limit: Some(limit),
        };
        self.call::<method::LoopdSessionsSearch>(&params).await
    }

    /// Makes a session from the history of another one: whole, or up to before an event.
    pub async fn fork(
        &self,
        id: impl Into<SessionId>,
        before: Option<EventId>,
        name: Option<String>,
    ) -> Result<Forked, Error> {
        let params = ForkParams {
            session_id: id.into(),
            to_event_id: before,
            name,
        };
        // At most once: each request makes a session.
        self.shared.call_once::<method::SessionsFork>(&params).await
    }

    /// Deletes sessions with their files and sub-agents; returns how many bytes each took. One that could
    /// not be deleted is not in the result.
    pub async fn delete_sessions(&self, ids: Vec<SessionId>) -> Result<Freed, Error> {
        let params = IdsParams { session_ids: ids };
        self.call::<method::SessionsBulkDelete>(&params).await
    }

    /// Deletes sessions that have not changed for some days, or says which these are.
    pub async fn prune_sessions(&self, params: PruneParams) -> Result<Pruned, Error> {
        self.call::<method::SessionsPruneOld>(&params).await
    }

    /// Writes a session as a bundle, which [`Client::import_session`] makes a session of in another home;
    /// returns what the bundle does not have, in words. It never has keys or tokens.
    ///
    /// ```no_run
    /// # async fn example(client: loopd_sdk::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut file = tokio::fs::File::create_new("work.jsonl").await?;
    /// let left_out = client.export_session("01a1e2b4", &mut file).await?;
    /// # Ok(()) }
    /// ```
    pub async fn export_session(
        &self,
        id: impl Into<SessionId>,
        to: &mut (impl AsyncWrite + Unpin),
    ) -> Result<Vec<String>, Error> {
        self.export(id.into(), false, to).await
    }

    /// Does the same without the session's own files, such as long outputs.
    pub async fn export_session_without_files(
        &self,
        id: impl Into<SessionId>,
        to: &mut (impl AsyncWrite + Unpin),
    ) -> Result<Vec<String>, Error> {
        self.export(id.into(), true, to).await
    }

    async fn export(
        &self,
        session_id: SessionId,
        without_files: bool,
        to: &mut (impl AsyncWrite + Unpin),
    ) -> Result<Vec<String>, Error> {
        let mut params = ExportParams {
            session_id,
            cursor: None,
            without_files,
        };
        loop {
            let page = self.call::<method::LoopdSessionsExport>(&params).await?;
            to.write_all(page.text.as_bytes()).await?;
            if page.next.is_none() {
                to.flush().await?;
                return Ok(page.left_out);
            }
            params.cursor = page.next;
        }
    }

    /// Makes a session of a bundle. A session that is there already is never overwritten, and nothing that was
    /// approved in the other home is approved here.
    pub async fn import_session(
        &self,
        from: &mut (impl AsyncRead + Unpin),
        import: Import,
    ) -> Result<ImportedSession, Error> {
        let upload = Ulid::generate().to_string();
        let mut offset = 0;
        let mut waiting = Vec::new();
        loop {
            let part = next_part(from, &mut waiting).await?;
            if part.is_empty() && offset > 0 {
                break;
            }
            let params = ImportPartParams {
                upload: upload.clone(),
                offset,
                text: part,
            };
            let taken = self.call::<method::LoopdSessionsImportPart>(&params);
            offset = taken.await?.bytes;
        }
        let params = ImportParams {
            upload,
            working_directory: import.working_directory,
            new_id: import.new_id,
        };
        // At most once: a second request would find the bundle used up.
        let shared = &self.shared;
        shared
            .call_once::<method::LoopdSessionsImport>(&params)
            .await
    }
}

/// Reads the next part of a text; empty at its end. The first part has the whole first line. `waiting` has what
/// was read and is not a whole character yet.
async fn next_part(
    from: &mut (impl AsyncRead + Unpin),
    waiting: &mut Vec<u8>,
) -> Result<String, Error> {
    let room = PART.saturating_sub(waiting.len());
    let mut limited = from.take(u64::try_from(room).unwrap_or(u64::MAX));
    limited.read_to_end(waiting).await?;
    let whole = match std::str::from_utf8(waiting) {
        Ok(_) => waiting.len(),
        // The end of the part is in the middle of a character.
        Err(error) if error.error_len().is_none() && waiting.len() == PART => error.valid_up_to(),
        Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error).into()),
    };
    let rest = waiting.split_off(whole);
    let part = std::mem::replace(waiting, rest);
    String::from_utf8(part)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error).into())
}

impl Session {
    /// Returns the todo list.
    pub async fn todos(&self) -> Result<TodoList, Error> {
        Ok(self.call::<method::LoopdTodos>(&self.of()).await?.list)
    }

    /// Names the session.
    pub async fn set_name(&self, name: impl Into<String>) -> Result<(), Error> {
        let params = NameParams {
            session_id: self.id().clone(),
            name: name.into(),
        };
        self.call::<method::NameSet>(&params).await
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_part_ends_between_characters() {
        let text = format!("{}ä{}", "a".repeat(PART - 1), "b".repeat(10));
        let (mut from, mut waiting) = (text.as_bytes(), Vec::new());
        let first = next_part(&mut from, &mut waiting).await.unwrap();
        assert_eq!(first.len(), PART - 1);
        let second = next_part(&mut from, &mut waiting).await.unwrap();
        assert_eq!(second, "äbbbbbbbbbb");
        assert_eq!(next_part(&mut from, &mut waiting).await.unwrap(), "");
        let mut from = &b"text \xff"[..];
        next_part(&mut from, &mut Vec::new()).await.unwrap_err();
    }
}
