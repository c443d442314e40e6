//! Writes down what another provider answers, in the form that `replay` reads.
//!
//! A conversation that goes on replaces its own beginning in the file, so that each is there once.
//! A recording that cannot be written fails the call: a recording with gaps could not be replayed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;

use crate::error::ProviderError;
use crate::{DeltaSink, EndpointDescription, Provider};
use loopd_kernel::model::{ModelInfo, ModelMessage, ModelReply, ModelRequest};

use super::conversation::{
    self, LARGEST_FILE, RecordedConversation, RecordedMessage, RecordingFile,
};
use super::normal;

/// Lets one conversation at a time into the files; shared by all recorders of the daemon.
pub type RecordingLock = Arc<Mutex<()>>;

/// A provider whose conversations are written down.
pub struct Recorder {
    provider: Arc<dyn Provider>,
    path: PathBuf,
    cwd: String,
    lock: RecordingLock,
}

impl Recorder {
    pub fn new(provider: Arc<dyn Provider>, path: &Path, cwd: &str, lock: RecordingLock) -> Self {
        Self {
            provider,
            path: path.to_path_buf(),
            cwd: cwd.to_owned(),
            lock,
        }
    }

    async fn record(
        &self,
        request: &ModelRequest,
        reply: &ModelReply,
    ) -> Result<(), ProviderError> {
        let mut messages = request.messages.clone();
        messages.push(ModelMessage::Assistant(reply.turn.clone()));
        let messages = normal::of_request(&messages, &self.cwd);
        let (path, lock) = (self.path.clone(), self.lock.clone());
        tokio::task::spawn_blocking(move || {
            let _alone = lock.lock();
            add(&path, messages)
        })
        .await
        .map_err(|failure| ProviderError::misconfigured(format!("the conversation was not recorded: {failure}")))?
        .map_err(|detail| {
            ProviderError::misconfigured(format!(
                "the conversation could not be recorded at {}: {detail}; correct LOOPD_REPLAY_RECORD",
                self.path.display()
            ))
        })
    }
}

impl Provider for Recorder {
    fn name(&self) -> &str {
        self.provider.name()
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        sink: &'a mut dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelReply, ProviderError>> {
        async move {
            let reply = self.provider.call(request, sink).await?;
            self.record(request, &reply).await?;
            Ok(reply)
        }
        .boxed()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, ProviderError>> {
        self.provider.models()
    }

    fn describe(&self) -> EndpointDescription {
        self.provider.describe()
    }
}

/// Adds a conversation to a file, in the place of its own beginning.
fn add(path: &Path, messages: Vec<RecordedMessage>) -> Result<(), String> {
    let mut file = match conversation::read_file(path) {
        Ok(file) => file,
        Err(conversation::RecordingError::Unreadable { source, .. })
            if source.kind() == std::io::ErrorKind::NotFound =>
        {
            RecordingFile::default()
        }
        Err(error) => return Err(error.to_string()),
    };
    let beginning = file
        .conversations
        .iter_mut()
        .find(|known| messages.starts_with(&known.messages));
    match beginning {
        Some(known) => known.messages = messages,
        None => file.conversations.push(RecordedConversation { messages }),
    }
    let text = serde_norway::to_string(&file).map_err(|failure| failure.to_string())?;
    if text.len() as u64 > LARGEST_FILE {
        return Err(format!(
            "the file would be larger than {LARGEST_FILE} bytes"
        ));
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    };
    // Written beside and moved into place: a crash leaves the old file or the new one.
    let mut fresh =
        tempfile::NamedTempFile::new_in(folder).map_err(|failure| failure.to_string())?;
    fresh
        .write_all(text.as_bytes())
        .and_then(|()| fresh.as_file().sync_all())
        .map_err(|failure| failure.to_string())?;
    fresh.persist(path).map_err(|failure| failure.to_string())?;
    Ok(())
}
