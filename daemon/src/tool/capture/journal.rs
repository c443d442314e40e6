//! The record of what tools changed, a line each, in the order in which it happened. The contents are
//! in `objects`; the log of the session says which turns there were.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use loopd_proto::id::{RewindId, Seq, ToolCallId};

use super::state::{FileState, NotCaptured};
use crate::tool::disk::{self, DiskError};

/// The longest line that is read back.
const LONGEST_LINE: u64 = 64 * 1024 * 1024;

/// Who changed files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Source {
    Tool(ToolCallId),
    /// Commands, and tools and hooks that run outside: found by comparing the workspace.
    Commands,
    Rewind(RewindId),
}

/// One path that was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Change {
    pub(super) path: PathBuf,
    pub(super) before: FileState,
    pub(super) after: FileState,
    /// Lines of text.
    #[serde(default)]
    pub(super) added: u64,
    #[serde(default)]
    pub(super) removed: u64,
}

/// A path that was changed and whose earlier content is not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Missed {
    pub(super) path: PathBuf,
    pub(super) why: NotCaptured,
}

/// What was changed at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The position in the log of the user message, or of the rewind, that it belongs to.
    pub(super) turn: Seq,
    pub(super) by: Source,
    pub(super) changes: Vec<Change>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) missed: Vec<Missed>,
    /// The plan that this record carries out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) plan: Option<String>,
}

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Line {
    /// Changes are recorded from this position of the log on.
    Begins(Seq),
    /// A tool is about to write these paths.
    Plans {
        plan: String,
        turn: Seq,
        paths: Vec<PathBuf>,
    },
    /// A tool has not written what it had planned.
    Void(String),
    Changed(Record),
}

/// What a tool was about to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OpenPlan {
    plan: String,
    turn: Seq,
    paths: Vec<PathBuf>,
}

/// All that was recorded.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    /// The position from which on changes are recorded; `None` if nothing was recorded yet.
    pub(super) begins: Option<Seq>,
    pub(super) records: Vec<Record>,
    /// The plans that were neither carried out nor given up.
    pub(super) open: Vec<OpenPlan>,
}

impl Recorded {
    /// Returns the records, and what tools were writing when a daemon ended. No tool may be writing
    /// now.
    pub(super) fn with_interrupted(mut self) -> Vec<Record> {
        for open in self.open {
            let missed = open.paths.into_iter().map(|path| Missed {
                path,
                why: NotCaptured::Interrupted,
            });
            self.records.push(Record {
                turn: open.turn,
                by: Source::Commands,
                changes: Vec::new(),
                missed: missed.collect(),
                plan: None,
            });
        }
        self.records
    }
}

/// The file.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    /// Open once something was appended.
    file: Option<File>,
}

impl Journal {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    pub(super) fn begins(&mut self, turn: Seq) -> io::Result<()> {
        self.append(&Line::Begins(turn))
    }

    /// Records what a tool is about to write; returns the name of the plan.
    pub(super) fn plans(&mut self, turn: Seq, paths: &[PathBuf]) -> io::Result<String> {
        let plan = ulid::Ulid::generate().to_string();
        self.append(&Line::Plans {
            plan: plan.clone(),
            turn,
            paths: paths.to_vec(),
        })?;
        Ok(plan)
    }

    pub(super) fn void(&mut self, plan: String) -> io::Result<()> {
        self.append(&Line::Void(plan))
    }

    pub(super) fn changed(&mut self, record: Record) -> io::Result<()> {
        self.append(&Line::Changed(record))
    }

    /// Writes the file anew with these records, the first of which belongs to `begins`, and with what
    /// tools are writing now.
    pub(super) fn keep_only(
        &mut self,
        begins: Seq,
        records: &[Record],
        open: &[OpenPlan],
    ) -> Result<(), DiskError> {
        let mut text = line(&Line::Begins(begins))?;
        for OpenPlan { plan, turn, paths } in open.iter().cloned() {
            text.extend(line(&Line::Plans { plan, turn, paths })?);
        }
        for record in records {
            text.extend(line(&Line::Changed(record.clone()))?);
        }
        self.file = None;
        disk::put_own(&self.path, &text)?;
        Ok(())
    }

    /// Returns how many bytes the file has.
    pub(super) fn bytes(&self) -> u64 {
        self.path.metadata().map_or(0, |metadata| metadata.len())
    }

    fn append(&mut self, line: &Line) -> io::Result<()> {
        let text = self::line(line)?;
        let file = match &mut self.file {
            Some(file) => file,
            empty => empty.insert(open(&self.path)?),
        };
        // One write, so that a crash cuts at most the last line.
        file.write_all(&text)
    }

    /// Reads all records. A line that a crash cut off is left out.
    pub(super) fn read(&self) -> io::Result<Recorded> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Recorded::default()),
            Err(error) => return Err(error),
        };
        let mut recorded = Recorded::default();
        let mut open: BTreeMap<String, (Seq, Vec<PathBuf>)> = BTreeMap::new();
        let mut reader = BufReader::new(file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = (&mut reader)
                .take(LONGEST_LINE)
                .read_until(b'\n', &mut line)?;
            if read == 0 {
                break;
            }
            match serde_json::from_slice(&line) {
                Ok(Line::Begins(turn)) => recorded.begins = Some(turn),
                Ok(Line::Plans { plan, turn, paths }) => {
                    open.insert(plan, (turn, paths));
                }
                Ok(Line::Void(plan)) => {
                    open.remove(&plan);
                }
                Ok(Line::Changed(record)) => {
                    if let Some(plan) = &record.plan {
                        open.remove(plan);
                    }
                    recorded.records.push(record);
                }
                Err(error) => tracing::debug!(%error, "a record of changed files was cut off"),
            }
        }
        let open = open.into_iter();
        recorded.open = open
            .map(|(plan, (turn, paths))| OpenPlan { plan, turn, paths })
            .collect();
        Ok(recorded)
    }
}

fn line(line: &Line) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    Ok(text)
}

/// Opens the file to add to it. A line that a crash cut off is ended first.
fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
    }
    let mut options = OpenOptions::new();
    options.create(true).append(true).read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    if file.metadata()?.len() > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}
