//! The output of a command as text: the emulator holds the rows that may still change, the store
//! holds the final text. Also tracks what was read. A run and its backend share it; it never
//! blocks.

use super::emulator::Emulator;
use super::keys::CursorKeys;
use super::output::{
    CommandOutput, FinalText, HEAD_CHARS, OutputBody, SavedOutput, Screen, TAIL_CHARS, WHOLE,
    decode, last_chars,
};

/// The output of one command.
#[derive(Debug)]
pub(super) struct CommandText {
    emulator: Emulator,
    store: FinalText,
    received: u64,
    /// How much of the final text was read, and the changeable text as it was read.
    read_to: u64,
    read_open: String,
    read_screen: Option<Screen>,
}

impl CommandText {
    pub(super) fn new() -> Self {
        Self {
            emulator: Emulator::new(),
            store: FinalText::new(),
            received: 0,
            read_to: 0,
            read_open: String::new(),
            read_screen: None,
        }
    }

    /// Adds the next bytes of output and returns the replies of the terminal.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.received += bytes.len() as u64;
        let answers = self.emulator.feed(bytes);
        let done = self.emulator.lines().take_done();
        self.store.push(&done);
        let open = self.emulator.lines().open_bytes() as u64;
        if self.store.total() + open > WHOLE as u64 {
            self.store.start_file();
        }
        answers
    }

    /// Makes all of the text final.
    pub(super) fn finish(&mut self) {
        self.emulator.lines().finish();
        let done = self.emulator.lines().take_done();
        self.store.push(&done);
        if self.store.total() > WHOLE as u64 {
            self.store.start_file();
        }
    }

    /// The mode of the arrow keys.
    pub(super) fn cursor_keys(&self) -> CursorKeys {
        self.emulator.cursor_keys()
    }

    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Takes the bytes that must be written to the file next.
    pub(super) fn take_waiting(&mut self) -> Option<Vec<u8>> {
        self.store.take_waiting()
    }

    pub(super) fn set_saved(&mut self, saved: SavedOutput) {
        self.store.set_saved(saved);
    }

    pub(super) fn shown(&self) -> CommandOutput {
        CommandOutput {
            body: self.body(0, 0, &self.open()),
            screen: self.screen(),
        }
    }

    pub(super) fn has_unread(&self) -> bool {
        self.read_to != self.store.total()
            || self.read_open != self.open()
            || self.read_screen != self.screen()
    }

    pub(super) fn unread(&mut self) -> CommandOutput {
        let open = self.open();
        let screen = self.screen();
        let body = match self.store.since(self.read_to) {
            Some(fresh) => {
                let mut whole = decode(&fresh);
                whole.push_str(&open);
                let known = known(&self.read_open, &whole);
                if known >= fresh.len() {
                    let skip = known - fresh.len();
                    self.body(self.store.total(), skip, &open)
                } else {
                    self.body(self.read_to + known as u64, 0, &open)
                }
            }
            None => self.body(self.read_to, 0, &open),
        };
        self.read_to = self.store.total();
        self.read_open = open;
        let news = self.read_screen != screen;
        self.read_screen.clone_from(&screen);
        CommandOutput {
            body,
            screen: screen.filter(|_| news),
        }
    }

    /// Joins the final text from an offset and the changeable text without its first `skip` bytes.
    fn body(&self, from: u64, skip: usize, open: &str) -> OutputBody {
        let open = open.get(skip..).unwrap_or_default();
        let bytes = self.store.total() - from + open.len() as u64;
        if bytes <= WHOLE as u64
            && let Some(mut whole) = self.store.since(from)
        {
            whole.extend_from_slice(open.as_bytes());
            return OutputBody::Whole(decode(&whole));
        }
        let mut head = self.store.first(from);
        if from + (HEAD_CHARS as u64) > self.store.total() {
            let room = HEAD_CHARS.saturating_sub(head.chars().count());
            head.extend(open.chars().take(room));
        }
        let mut tail = decode(&self.store.last(TAIL_CHARS * 4));
        tail.push_str(open);
        let tail = last_chars(tail.trim_end_matches('\n'), TAIL_CHARS);
        OutputBody::Preview {
            head,
            tail,
            bytes,
            saved: self.store.saved().clone(),
        }
    }

    fn open(&self) -> String {
        self.emulator.open()
    }

    fn screen(&self) -> Option<Screen> {
        self.emulator.screen()
    }
}

/// How many bytes at the beginning of `text` were read before: all of `read`, or equal whole lines.
fn known(read: &str, text: &str) -> usize {
    if text.starts_with(read) {
        return read.len();
    }
    let mut same = 0;
    for (one, other) in read.split_inclusive('\n').zip(text.split_inclusive('\n')) {
        if one != other {
            break;
        }
        same += one.len();
    }
    same
}
