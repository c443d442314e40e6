//! What only happens on a terminal: questions to a person, and a conversation.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};

use loopd_sdk::{Client, SessionConfig, Wait};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::home::Home;

/// How long a text may take to come; a loaded machine needs a fraction of it.
const LONGEST_WAIT: Timespec = Timespec {
    tv_sec: 60,
    tv_nsec: 0,
};

/// `loop` with a terminal of its own.
pub(crate) struct OnTerminal {
    child: Child,
    terminal: File,
    unread: Vec<u8>,
}

impl OnTerminal {
    pub(crate) fn start(command: Command) -> Self {
        Self::sized(command, 80, 24)
    }

    /// Starts it on a screen of this size.
    pub(crate) fn sized(mut command: Command, columns: u16, rows: u16) -> Self {
        let master: OwnedFd =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let screen = Winsize {
            ws_col: columns,
            ws_row: rows,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&master, screen).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let side = || {
            let mut options = File::options();
            options.read(true).write(true);
            options.open(name.to_str().unwrap()).unwrap()
        };
        let child = command
            .stdin(side())
            .stdout(side())
            .stderr(side())
            .spawn()
            .unwrap();
        // The sides that the command still holds would keep the terminal open for ever.
        drop(command);
        Self {
            child,
            terminal: master.into(),
            unread: Vec::new(),
        }
    }

    /// Reads up to the end of this text; what comes after it is for the next one who reads.
    pub(crate) fn read_until(&mut self, text: &str) -> String {
        let mut buffer = [0; 1024];
        loop {
            let shown = String::from_utf8_lossy(&self.unread).into_owned();
            if let Some(at) = shown.find(text) {
                let end = at + text.len();
                self.unread = shown.as_bytes()[end..].to_vec();
                return shown[..end].to_owned();
            }
            let mut readable = [PollFd::new(&self.terminal, PollFlags::IN)];
            let ready = retry_on_intr(|| poll(&mut readable, Some(&LONGEST_WAIT))).unwrap();
            assert!(ready > 0, "{text:?} did not come in time: {shown}");
            let more = self.terminal.read(&mut buffer).unwrap_or(0);
            assert!(more > 0, "{text:?} did not come: {shown}");
            self.unread.extend_from_slice(&buffer[..more]);
        }
    }

    pub(crate) fn types(&mut self, text: &str) {
        self.terminal.write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn child(&self) -> &Child {
        &self.child
    }

    /// Closes the terminal, and waits until the program has ended.
    pub(crate) fn hangs_up(mut self) {
        drop(self.terminal);
        self.child.wait().unwrap();
    }

    pub(crate) fn ends(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

#[test]
fn a_person_decides_about_permissions() {
    let home = Home::new();
    let mut yes = OnTerminal::start(home.command(&["run touch made"]));
    yes.read_until("run `touch made`");
    yes.read_until("[y/a/n] ");
    yes.types("what?\n");
    yes.read_until("that is no answer");
    yes.read_until("[y/a/n] ");
    yes.types("y\n");
    yes.read_until("Done.");
    assert_eq!(yes.ends(), Some(0));
    assert!(home.path("made").exists());
    let mut no = OnTerminal::start(home.command(&["run touch other"]));
    no.read_until("[y/a/n] ");
    no.types("n\n");
    assert_eq!(no.ends(), Some(0));
    assert!(!home.path("other").exists());
}

#[test]
fn a_conversation_goes_on_until_the_end_of_input() {
    let home = Home::new();
    let mut chat = OnTerminal::start(home.command(&[]));
    chat.read_until("> ");
    chat.types("run touch one\n");
    chat.read_until("[y/a/n] ");
    chat.types("a\n");
    chat.read_until("Done.");
    chat.read_until("> ");
    chat.types("run touch two\n");
    chat.read_until("Done.");
    chat.read_until("> ");
    chat.types("ask which colour?\n");
    chat.read_until("which colour?\u{1b}");
    chat.read_until("  > ");
    chat.types("blue\n");
    chat.read_until("blue");
    chat.read_until("Done.");
    chat.read_until("> ");
    chat.types("\u{4}");
    assert_eq!(chat.ends(), Some(0));
    assert!(home.path("two").exists(), "always holds for the session");
    assert_eq!(home.prints(&["sessions"]).lines().count(), 1);
}

#[test]
fn a_question_of_another_client_is_answered_by_who_attaches() {
    let home = Home::new();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let (session, mut turn) = runtime.block_on(async {
        let client = Client::connect(home.connect_options()).await.unwrap();
        let config = SessionConfig::new().leave_permissions_open();
        let session = client.create(config).await.unwrap();
        let turn = session.turn("run touch made", Wait::Session);
        (session, turn)
    });
    let attach = home.command(&["attach", session.id().as_str()]);
    let mut attach = OnTerminal::start(attach);
    let seen = attach.read_until("[y/a/n] ");
    assert!(seen.contains("> run touch made"), "{seen}");
    attach.types("y\n");
    let reply = runtime.block_on(async {
        while turn.next().await.is_some() {}
        turn.finish()
    });
    assert!(reply.unwrap().text.contains("Done."));
    attach.read_until("Done.");
    crate::home::interrupt(&attach.child);
    assert_eq!(attach.ends(), Some(0));
    assert!(home.path("made").exists());
}
