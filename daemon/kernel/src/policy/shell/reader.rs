//! Reads a command line into its simple commands, at every depth: lists, pipelines, groups, loops,
//! functions, substitutions and here-documents.
//!
//! The reader is conservative, because a parse tree is no proof of what bash runs. It may find
//! commands that bash would not run. If it cannot read something with certainty, it sets
//! [`Script::doubt`]. `reader/simple.rs` reads one simple command, `reader/words.rs` its words, and
//! `reader/cursor.rs` is the position in the text. `runs` finds out what the commands run. All of
//! this is pure.

mod cursor;
mod simple;
mod words;

use self::cursor::Cursor;
use super::word::Word;

/// How deep commands may be nested before the reader gives up.
const MAX_DEPTH: usize = 40;

/// How often text that looks like an arithmetic expression may turn out not to be one.
const MAX_ATTEMPTS: usize = 16;

/// Variables that hold one word unless a command changes them. The change is judged as a command of
/// its own.
pub(crate) const IS_ONE_WORD: &[&str] = &[
    "CARGO_HOME",
    "GOPATH",
    "HOME",
    "HOSTNAME",
    "LOGNAME",
    "OLDPWD",
    "PWD",
    "TMPDIR",
    "USER",
];

/// Variables of bash that hold numbers. What is assigned to them is evaluated as an expression, which
/// may run commands.
pub(crate) const IS_NUMBER: &[&str] = &[
    "BASHPID",
    "BASH_SUBSHELL",
    "COLUMNS",
    "COMP_CWORD",
    "COMP_POINT",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "EUID",
    "HISTCMD",
    "HISTFILESIZE",
    "HISTSIZE",
    "LINENO",
    "LINES",
    "OPTIND",
    "PPID",
    "RANDOM",
    "SECONDS",
    "SHLVL",
    "SRANDOM",
    "TMOUT",
    "UID",
];

/// The contents of a text.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub commands: Vec<Simple>,
    /// The words of arrays.
    pub listed: Vec<Word>,
    /// Files that redirections write to.
    pub written: Vec<Word>,
    /// Files that redirections read from.
    pub opened: Vec<Word>,
    /// Whether part of the text could not be read. Then the text may run anything.
    pub doubt: bool,
    /// Whether the text calculates with variables. Their values are read as expressions, and an
    /// expression may run commands.
    pub calculates: bool,
    /// Whether the text defines a function, or names a variable other than by an assignment: that
    /// of a loop, a coprocess or a redirection.
    pub defines: bool,
    attempts: usize,
}

/// A command that contains no other command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Simple {
    pub assignments: Vec<Assignment>,
    pub words: Vec<Word>,
    pub input: Input,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Assignment {
    pub name: String,
    pub value: Word,
}

/// Where a command reads its input from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Input {
    /// A pipe, a terminal, or the input of the surrounding command.
    #[default]
    Unknown,
    File(Word),
    /// Text in the script itself.
    Text(Word),
}

/// Says that the text cannot be read with certainty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Doubt;

type Read<T = ()> = Result<T, Doubt>;

impl Script {
    /// Reads a text.
    pub(crate) fn read(text: &str) -> Self {
        let mut script = Self::default();
        Reader::new(text, &mut script, 0).whole();
        script
    }
}

/// What ends a list of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The end of the text.
    Text,
    /// `)`.
    Parenthesis,
    /// `;;` or `esac`.
    Clause,
}

/// How a list ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Here,
    /// The list ended with `esac`.
    Case,
}

/// A here-document whose text begins after the line.
struct Pending {
    delimiter: String,
    strips_tabs: bool,
    expands: bool,
    /// The command that reads the here-document.
    owner: Option<usize>,
}

struct Reader<'t, 's> {
    cursor: Cursor<'t>,
    script: &'s mut Script,
    pending: Vec<Pending>,
    depth: usize,
}

impl<'t, 's> Reader<'t, 's> {
    fn new(text: &'t str, script: &'s mut Script, depth: usize) -> Self {
        Self {
            cursor: Cursor::new(text),
            script,
            pending: Vec::new(),
            depth,
        }
    }

    fn whole(mut self) {
        let read = self.list(End::Text);
        if read.is_err() || !self.pending.is_empty() {
            self.script.doubt = true;
        }
    }

    /// Reads a nested text, such as the text between backquotes.
    fn nested(&mut self, text: &str) {
        if self.depth >= MAX_DEPTH {
            self.script.doubt = true;
            return;
        }
        Reader::new(text, self.script, self.depth + 1).whole();
    }

    /// Reads commands up to the end.
    fn list(&mut self, end: End) -> Read<Ended> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Doubt);
        }
        loop {
            self.space()?;
            if self.cursor.peek().is_none() {
                self.depth -= 1;
                return if end == End::Text {
                    Ok(Ended::Here)
                } else {
                    Err(Doubt)
                };
            }
            if self.cursor.eat(")") {
                self.depth -= 1;
                return if end == End::Parenthesis {
                    Ok(Ended::Here)
                } else {
                    Err(Doubt)
                };
            }
            if end == End::Clause && self.cursor.bare() == "esac" {
                self.cursor.eat("esac");
                self.depth -= 1;
                return Ok(Ended::Case);
            }
            if [";;&", ";;", ";&"].iter().any(|mark| self.cursor.eat(mark)) {
                self.depth -= 1;
                return if end == End::Clause {
                    Ok(Ended::Here)
                } else {
                    Err(Doubt)
                };
            }
            if ["&&", "||", "|&", "|", ";"]
                .iter()
                .any(|mark| self.cursor.eat(mark))
            {
                continue;
            }
            if !self.cursor.rest().starts_with("&>") && self.cursor.eat("&") {
                continue;
            }
            self.command()?;
        }
    }

    /// Skips blanks, comments and line ends.
    fn space(&mut self) -> Read {
        loop {
            self.cursor.skip_blanks();
            match self.cursor.peek() {
                Some('\n') => {
                    self.cursor.bump();
                    self.here_documents();
                }
                Some('#') => self.cursor.skip_line(),
                _ => return Ok(()),
            }
        }
    }

    /// Reads one command, or the beginning or end of a compound one.
    fn command(&mut self) -> Read {
        if self.cursor.rest().starts_with("((") {
            let before = self.cursor;
            self.cursor.eat("((");
            if self.arithmetic()? {
                return Ok(());
            }
            self.cursor = before;
        }
        if self.cursor.eat("(") {
            return self.list(End::Parenthesis).map(|_| ());
        }
        let bare = self.cursor.bare();
        match bare {
            "if" | "then" | "else" | "elif" | "fi" | "while" | "until" | "do" | "done" | "{"
            | "}" | "!" => {
                self.cursor.eat(bare);
                Ok(())
            }
            "time" => {
                self.cursor.eat(bare);
                self.cursor.skip_blanks();
                if self.cursor.bare() == "-p" {
                    self.cursor.eat("-p");
                }
                Ok(())
            }
            "coproc" => {
                self.cursor.eat(bare);
                self.script.defines = true;
                self.coproc_name();
                Ok(())
            }
            "for" | "select" => {
                self.cursor.eat(bare);
                self.script.defines = true;
                self.loop_head()
            }
            "case" => {
                self.cursor.eat(bare);
                self.case()
            }
            "function" => {
                self.cursor.eat(bare);
                self.script.defines = true;
                self.cursor.skip_blanks();
                self.word()?;
                self.cursor.skip_blanks();
                self.empty_parentheses();
                Ok(())
            }
            "[[" => {
                self.cursor.eat(bare);
                self.condition()
            }
            "esac" => Err(Doubt),
            _ => self.simple(),
        }
    }

    /// Takes the name of a coprocess, which only a compound command can have.
    fn coproc_name(&mut self) {
        self.cursor.skip_blanks();
        let before = self.cursor;
        let name = self.cursor.bare();
        self.cursor.eat(name);
        self.cursor.skip_blanks();
        let openers = ["{", "if", "while", "until", "for", "case", "select", "[["];
        let is_compound = openers.contains(&self.cursor.bare()) || self.cursor.peek() == Some('(');
        if openers.contains(&name) || name.is_empty() || !is_compound {
            self.cursor = before;
        }
    }

    /// Reads `NAME in WORDS` or `(( ; ; ))`. The `do` is read as the next command.
    fn loop_head(&mut self) -> Read {
        self.cursor.skip_blanks();
        if self.cursor.eat("((") {
            return if self.arithmetic()? {
                Ok(())
            } else {
                Err(Doubt)
            };
        }
        let name = self.word()?;
        // What is assigned to a variable for numbers is evaluated.
        let is_for_words = |name: &str| !name.is_empty() && !IS_NUMBER.contains(&name);
        if !name.text().is_some_and(is_for_words) {
            return Err(Doubt);
        }
        self.space()?;
        if self.cursor.bare() != "in" {
            return Ok(());
        }
        self.cursor.eat("in");
        loop {
            self.cursor.skip_blanks();
            match self.cursor.peek() {
                None | Some('\n' | ';' | '#') => return Ok(()),
                Some(_) if self.cursor.at_word() => {
                    self.word()?;
                }
                Some(_) => return Err(Doubt),
            }
        }
    }

    fn case(&mut self) -> Read {
        self.cursor.skip_blanks();
        self.word()?;
        self.space()?;
        if self.cursor.bare() != "in" {
            return Err(Doubt);
        }
        self.cursor.eat("in");
        loop {
            self.space()?;
            if self.cursor.bare() == "esac" {
                self.cursor.eat("esac");
                return Ok(());
            }
            self.cursor.eat("(");
            loop {
                self.cursor.skip_blanks();
                if self.cursor.eat(")") {
                    break;
                }
                if !self.cursor.eat("|") {
                    if !self.cursor.at_word() {
                        return Err(Doubt);
                    }
                    self.word()?;
                }
            }
            if self.list(End::Clause)? == Ended::Case {
                return Ok(());
            }
        }
    }

    /// Reads `[[ … ]]`, which runs nothing but the substitutions in it.
    fn condition(&mut self) -> Read {
        let mut words = vec![Word::literal("[[")];
        loop {
            self.space()?;
            if self.cursor.bare() == "]]" {
                self.cursor.eat("]]");
                break;
            }
            if self.cursor.at_word() {
                words.push(self.word()?);
            } else if self.cursor.bump().is_none() {
                return Err(Doubt);
            }
        }
        self.script.calculates = true;
        self.script.commands.push(Simple {
            words,
            ..Simple::default()
        });
        Ok(())
    }

    /// Takes the `()` after the name of a function.
    fn empty_parentheses(&mut self) -> bool {
        let before = self.cursor;
        if self.cursor.eat("(") {
            self.cursor.skip_blanks();
            if self.cursor.eat(")") {
                return true;
            }
        }
        self.cursor = before;
        false
    }
}

#[cfg(test)]
mod tests;
