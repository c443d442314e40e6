//! Saves the whole texts of results that are about to be shortened.

use loopd_proto::id::Seq;

use crate::session::actor::Actor;
use crate::session::work::Work;
use crate::tool::large_output;
use loopd_kernel::command::{Command, KeptOutput};
use loopd_kernel::history::Entry;
use loopd_kernel::prune::WholeText;
use loopd_kernel::state::TurnKey;

impl Actor {
    /// Saves results of the conversation to files, each to its own.
    pub(super) fn keep_outputs(&self, turn: TurnKey, results: &[Seq]) -> Work {
        let entries = self.state.history.stored().iter();
        let outputs: Vec<(Seq, String)> = entries
            .filter(|stored| results.contains(&stored.seq))
            .filter_map(|stored| match &stored.entry {
                Entry::Result { text, .. } => Some((stored.seq, text.clone())),
                Entry::User(_) | Entry::Assistant(_) | Entry::Image { .. } => None,
            })
            .collect();
        let scratch = self.services.scratch_folder(&self.state.id);
        let cancel = self.running.turn();
        let crashed = turn.clone();
        let unsaved: Vec<Seq> = outputs.iter().map(|(at, _)| *at).collect();
        Work::new(
            async move {
                let saved = async {
                    let mut kept = Vec::with_capacity(outputs.len());
                    for (at, text) in outputs {
                        let whole = match large_output::save(text.as_bytes(), &scratch).await {
                            Ok(path) => WholeText::File(path.to_string_lossy().into_owned()),
                            Err(error) => WholeText::Unsaved(error.to_string()),
                        };
                        kept.push(KeptOutput { at, whole });
                    }
                    kept
                };
                tokio::select! {
                    () = cancel.cancelled() => None,
                    kept = saved => Some(Command::OutputsKept { turn, kept }),
                }
            },
            move || {
                let why = "an error of the daemon, which its log names".to_owned();
                let kept = unsaved.into_iter().map(|at| KeptOutput {
                    at,
                    whole: WholeText::Unsaved(why.clone()),
                });
                Command::OutputsKept {
                    turn: crashed,
                    kept: kept.collect(),
                }
            },
        )
    }
}
