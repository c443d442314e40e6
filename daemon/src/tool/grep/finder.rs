//! Goes through the files of one search and prints what matches, the way ripgrep would. Runs on a
//! blocking thread; asks its token before every read, so it can be stopped in the middle of a file.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use loopd_proto::visible::visible;
use tokio_util::sync::CancellationToken;

use super::OutputMode;
use crate::tool::disk::DiskError;
use crate::tool::walk::{self, Answer, Labels, Selection};
use crate::tool::{disk, texts};

/// The longest line, and with `multiline` the largest file, that is searched.
const MAX_HEAP: usize = 16 * 1024 * 1024;

/// How many characters of a matching line are printed.
const MAX_LINE: usize = 500;

/// One search with everything it needs.
pub(super) struct Finder {
    pub(super) matcher: RegexMatcher,
    pub(super) root: PathBuf,
    pub(super) selection: Selection,
    pub(super) labels: Labels,
    pub(super) mode: OutputMode,
    pub(super) numbers: LineNumbers,
    pub(super) before: usize,
    pub(super) after: usize,
    pub(super) span: Span,
    pub(super) most: usize,
}

/// Whether lines are printed with their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineNumbers {
    Shown,
    Hidden,
}

/// Whether a match may cross a line break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Span {
    OneLine,
    Lines,
}

/// What a search found.
pub(super) struct Found {
    pub(super) answer: Answer,
    /// Say which files were not searched.
    pub(super) notes: Vec<String>,
}

impl Finder {
    pub(super) fn run(&self, stop: &CancellationToken) -> Found {
        let mut searcher = self.searcher();
        let mut answer = Answer::new(self.most);
        let mut failures = Failures::default();
        for file in walk::files(&self.root, self.selection.clone()) {
            if stop.is_cancelled() {
                break;
            }
            let label = self.labels.label(&file);
            match self.search(&mut searcher, &file, &label, &mut answer, stop) {
                Ok(()) => {}
                Err(_) if stop.is_cancelled() => break,
                Err(error) => failures.add(&label, &error),
            }
        }
        Found {
            answer,
            notes: failures
                .note()
                .into_iter()
                .chain(self.selection.closed_notes(&self.root))
                .collect(),
        }
    }

    fn searcher(&self) -> Searcher {
        let mut builder = SearcherBuilder::new();
        builder
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(MAX_HEAP))
            .line_number(true)
            .multi_line(self.span == Span::Lines);
        if self.mode == OutputMode::Content {
            builder
                .before_context(self.before)
                .after_context(self.after);
        }
        builder.build()
    }

    fn search(
        &self,
        searcher: &mut Searcher,
        file: &Path,
        label: &str,
        answer: &mut Answer,
        stop: &CancellationToken,
    ) -> io::Result<()> {
        let (mut file, _) = match disk::open(file) {
            // The file was removed or replaced by a link since the walk.
            Err(DiskError::Changed) => return Ok(()),
            Err(DiskError::Io(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened.map_err(io::Error::other)?,
        };
        let start = disk::sniff(&mut file).map_err(io::Error::other)?;
        if disk::is_binary(&start) {
            return Ok(());
        }
        let source = start.as_slice().chain(Stoppable { file, stop });
        let mut hits = Hits {
            label,
            numbers: self.numbers,
            mode: self.mode,
            groups: if self.before + self.after > 0 {
                Groups::Parted
            } else {
                Groups::Joined
            },
            answer,
            printed: false,
            matches: 0,
        };
        searcher.search_reader(&self.matcher, source, &mut hits)?;
        match (self.mode, hits.matches) {
            (_, 0) | (OutputMode::Content, _) => {}
            (OutputMode::FilesWithMatches, _) => answer.add(label),
            (OutputMode::Count, matches) => answer.add(&format!("{label}:{matches}")),
        }
        Ok(())
    }
}

/// Whether groups of lines are separated by a line of dashes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Groups {
    Parted,
    Joined,
}

/// Collects the matches of one file.
struct Hits<'a> {
    label: &'a str,
    numbers: LineNumbers,
    mode: OutputMode,
    groups: Groups,
    answer: &'a mut Answer,
    printed: bool,
    matches: u64,
}

impl Hits<'_> {
    fn print(&mut self, mark: char, number: Option<u64>, line: &[u8]) {
        if !self.printed && self.groups == Groups::Parted {
            self.answer.add_break("--");
        }
        self.printed = true;
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = String::from_utf8_lossy(line);
        let text = texts::clipped(&visible(&text), line.len() as u64, MAX_LINE);
        let label = self.label;
        let line = match (self.numbers, number) {
            (LineNumbers::Shown, Some(number)) => format!("{label}{mark}{number}{mark}{text}"),
            _ => format!("{label}{mark}{text}"),
        };
        self.answer.add(&line);
    }
}

impl Sink for Hits<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.matches += 1;
        match self.mode {
            OutputMode::FilesWithMatches => return Ok(false),
            OutputMode::Count => return Ok(true),
            OutputMode::Content => {}
        }
        let mut number = found.line_number();
        for line in found.lines() {
            self.print(':', number, line);
            number = number.map(|number| number + 1);
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        self.print('-', line.line_number(), line.bytes());
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.answer.add_break("--");
        Ok(true)
    }
}

/// A file whose reads fail once the search is stopped.
struct Stoppable<'a> {
    file: File,
    stop: &'a CancellationToken,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_cancelled() {
            return Err(io::Error::other("the search was stopped"));
        }
        self.file.read(buffer)
    }
}

/// Files that could not be searched.
#[derive(Default)]
struct Failures {
    count: usize,
    first: Option<String>,
}

impl Failures {
    fn add(&mut self, label: &str, error: &io::Error) {
        self.count += 1;
        self.first
            .get_or_insert_with(|| format!("{label}: {error}"));
    }

    fn note(self) -> Option<String> {
        let first = self.first?;
        Some(match self.count {
            1 => format!("[One file could not be searched: {first}.]"),
            count => format!("[{count} files could not be searched, the first: {first}.]"),
        })
    }
}
