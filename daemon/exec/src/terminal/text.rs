//! What a command wrote, as text: the terminal's reading of it in front, what can no longer change
//! behind it, and how far a reader has come. Shared by a run and its backend; never waits.

use super::emulator::Emulator;
use super::keys::CursorKeys;
use super::output::{
    Body, HEAD_CHARS, Saved, Screen, Shown, Store, TAIL_CHARS, WHOLE, decode, last_chars,
};

/// The output of one command.
#[derive(Debug)]
pub(super) struct Text {
    emulator: Emulator,
    store: Store,
    received: u64,
    /// The end of the final text that was read, and what was read of the rest.
    read_to: u64,
    read_open: String,
    read_screen: Option<Screen>,
}

impl Text {
    pub(super) fn new() -> Self {
        Self {
            emulator: Emulator::new(),
            store: Store::new(),
            received: 0,
            read_to: 0,
            read_open: String::new(),
            read_screen: None,
        }
    }

    /// Takes the next bytes of output and returns what the terminal answers to them.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.received += bytes.len() as u64;
        let answers = self.emulator.feed(bytes);
        let done = self.emulator.lines().take_done();
        self.store.push(&done);
        let open = self.emulator.lines().open_bytes() as u64;
        if self.store.total() + open > WHOLE as u64 {
            self.store.start_spooling();
        }
        answers
    }

    /// Makes all of the text final.
    pub(super) fn finish(&mut self) {
        self.emulator.lines().finish();
        let done = self.emulator.lines().take_done();
        self.store.push(&done);
        if self.store.total() > WHOLE as u64 {
            self.store.start_spooling();
        }
    }

    /// What the arrow keys have to send.
    pub(super) fn cursor_keys(&self) -> CursorKeys {
        self.emulator.cursor_keys()
    }

    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Takes what has to be written to the file next.
    pub(super) fn take_waiting(&mut self) -> Option<Vec<u8>> {
        self.store.take_waiting()
    }

    pub(super) fn set_saved(&mut self, saved: Saved) {
        self.store.set_saved(saved);
    }

    pub(super) fn shown(&self) -> Shown {
        Shown {
            body: self.body(0, 0, &self.open()),
            screen: self.screen(),
        }
    }

    pub(super) fn has_unread(&self) -> bool {
        self.read_to != self.store.total()
            || self.read_open != self.open()
            || self.read_screen != self.screen()
    }

    pub(super) fn unread(&mut self) -> Shown {
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
        Shown {
            body,
            screen: screen.filter(|_| news),
        }
    }

    /// The final text from a place on and the open text after the bytes to skip.
    fn body(&self, from: u64, skip: usize, open: &str) -> Body {
        let open = open.get(skip..).unwrap_or_default();
        let bytes = self.store.total() - from + open.len() as u64;
        if bytes <= WHOLE as u64
            && let Some(mut whole) = self.store.since(from)
        {
            whole.extend_from_slice(open.as_bytes());
            return Body::Whole(decode(&whole));
        }
        let mut head = self.store.first(from);
        if from + (HEAD_CHARS as u64) > self.store.total() {
            let room = HEAD_CHARS.saturating_sub(head.chars().count());
            head.extend(open.chars().take(room));
        }
        let mut tail = decode(&self.store.last(TAIL_CHARS * 4));
        tail.push_str(open);
        let tail = last_chars(tail.trim_end_matches('\n'), TAIL_CHARS);
        Body::Preview {
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

/// How many bytes at the beginning of a text were read before: whole lines, or all of what was read.
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
