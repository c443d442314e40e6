//! The built-in model `replay`: answers from recorded conversations, and the means to record them.
//!
//! A recording is a YAML file, or a folder of them, named by `LOOPD_REPLAY`:
//!
//! ```yaml
//! conversations:
//!   - messages:
//!       - role: user
//!         content: What is in ${workdir}/a.txt?
//!       - role: assistant
//!         tool_calls:
//!           - id: toolcall_0
//!             type: function
//!             function: { name: view, arguments: '{"path":"${workdir}/a.txt"}' }
//!       - role: tool
//!         tool_call_id: toolcall_0
//!         content: 1. hello
//!       - role: assistant
//!         content: It says hello.
//! ```
//!
//! A request is answered by the first conversation of which its whole normalised message list is
//! the beginning (`replay/normal` says what is compared), with the assistant message that follows.
//! `replay/record` writes such files while another provider answers. Nothing here knows a network
//! or a key.

mod conversation;
mod normal;
mod record;

use std::path::{Path, PathBuf};

use futures::FutureExt;
use futures::future::BoxFuture;

use loopd_kernel::model::{AssistantTurn, Delivery, ModelInfo, ModelReply, ModelRequest, Usage};

use super::error::ProviderError;
use super::{DeltaSink, EndpointDescription, Provider, built_in};
use conversation::Recordings;
pub use record::{Recorder, RecordingLock};

/// The only model of this provider.
pub const MODEL: &str = "replay";

/// The provider of the model `replay`.
#[derive(Debug)]
pub struct ReplayModel {
    path: PathBuf,
    cwd: String,
}

impl ReplayModel {
    /// Takes the file or folder of recordings and the directory that stands for `${workdir}`.
    pub fn new(path: &Path, cwd: &str) -> Self {
        Self {
            path: path.to_path_buf(),
            cwd: cwd.to_owned(),
        }
    }

    async fn answer(&self, request: &ModelRequest) -> Result<AssistantTurn, ProviderError> {
        let path = self.path.clone();
        // A folder of recordings may take a while to read.
        let recordings = tokio::task::spawn_blocking(move || Recordings::read(&path))
            .await
            .map_err(|failure| {
                ProviderError::misconfigured(format!("the recordings were not read: {failure}"))
            })?
            .map_err(|error| ProviderError::misconfigured(error.to_string()))?;
        recordings
            .answer(request, &self.cwd)
            .map_err(|error| ProviderError::misconfigured(error.to_string()))
    }
}

impl Provider for ReplayModel {
    fn name(&self) -> &str {
        MODEL
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        sink: &'a mut dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelReply, ProviderError>> {
        async move {
            let turn = self.answer(request).await?;
            if request.delivery == Delivery::Streamed && !turn.text.is_empty() {
                sink.text(&turn.text);
            }
            Ok(built_in::reply(MODEL, request, turn, Usage::default()))
        }
        .boxed()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, ProviderError>> {
        let model = ModelInfo {
            vision: true,
            ..built_in::model_info(MODEL, "Replay (recorded conversations)")
        };
        futures::future::ready(Ok(vec![model])).boxed()
    }

    fn describe(&self) -> EndpointDescription {
        built_in::describe(MODEL)
    }
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]
mod tests;
