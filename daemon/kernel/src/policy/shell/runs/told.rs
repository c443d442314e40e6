//! Programs that are told in a language of their own what to open and what to run: by a text in the
//! line, by their input, or by an option whose value is a program. What such a text does is not
//! known.

use crate::policy::shell::compiler;
use crate::policy::shell::reader::Input;
use crate::policy::shell::word::Word;

/// Programs that read their text from their input if they name no file.
#[rustfmt::skip]
const TOLD_BY_INPUT: &[&str] = &[
    "openssl", "cpp", "groff", "nroff", "troff", "gtroff", "gnroff", "soelim", "gsoelim", "tbl", "pic", "eqn", "refer", "grap", "mandoc", "m4", "gm4", "dc",
    "tex", "latex", "pdflatex", "xelatex", "lualatex", "asy", "mpost", "psql", "mysql", "mariadb", "sqlite3", "duckdb", "gp", "maxima",
    "octave", "swipl", "gs", "ghostscript", "xargs", "sftp", "as", "gas", "nasm",
];

/// Options of these that make them run or open what their text says.
const TOLD_BY_OPTION: &[(&[&str], &[&str])] = &[
    (&["groff", "troff", "gtroff", "pic", "nroff"], &["-U"]),
    (&["curl"], &["-K", "--config"]),
    (&["wget"], &["-e", "--execute", "--use-askpass"]),
    (&["zip"], &["-TT", "--unzip-command"]),
    (&["gdb", "lldb"], &["-ex", "-x"]),
];

/// Whether a program is told what to do by a text that is not understood.
pub(super) fn is_told(name: &str, arguments: &[Word], input: &Input) -> bool {
    let by_input = match input {
        // `xargs` gets words, and a terminal tells nothing.
        Input::Text(_) => {
            name != "xargs" && TOLD_BY_INPUT.contains(&name) && reads_input(arguments)
        }
        Input::Unknown | Input::File(_) => {
            is_typesetter(name) && reads_input(arguments) && !arguments.iter().any(is_question)
        }
    };
    // What is compiled may be put together of files that it names.
    let compiles_input = (compiler::is_compiler(name) || matches!(name, "as" | "gas" | "nasm"))
        && arguments
            .iter()
            .any(|word| word.text() == Some("-") || word.prefix().contains("/dev/"));
    let by_option = TOLD_BY_OPTION
        .iter()
        .filter(|(programs, _)| programs.contains(&name))
        .any(|(_, options)| arguments.iter().any(|word| is_one_of(word, options)));
    by_input || by_option || compiles_input || runs_by_mark(name, arguments)
}

/// Whether a program names another one after a mark: `strace -o '!tee x'`.
fn runs_by_mark(name: &str, arguments: &[Word]) -> bool {
    matches!(name, "strace" | "ltrace")
        && arguments.iter().any(|word| {
            let text = word.prefix();
            text.starts_with(['!', '|'])
                || text.contains("-o!")
                || text.contains("-o|")
                || text.contains("=!")
                || text.contains("=|")
        })
}

fn is_typesetter(name: &str) -> bool {
    matches!(
        name,
        "groff"
            | "nroff"
            | "troff"
            | "gtroff"
            | "gnroff"
            | "soelim"
            | "gsoelim"
            | "m4"
            | "gm4"
            | "cpp"
    )
}

/// Whether a program names no file, or the input.
fn reads_input(arguments: &[Word]) -> bool {
    let is_file = |word: &Word| {
        let text = word.prefix();
        (!text.starts_with('-') && !text.contains("/dev/")) && word.text() != Some("-")
    };
    !arguments.iter().any(is_file) || arguments.iter().any(|word| word.text() == Some("-"))
}

fn is_question(word: &Word) -> bool {
    matches!(word.text(), Some("--version" | "--help" | "-v" | "-h"))
}

/// Whether a word is one of these options, in full, with its value attached, or among other letters.
fn is_one_of(word: &Word, options: &[&str]) -> bool {
    let text = word.prefix();
    options.iter().any(|option| {
        if option.starts_with("--") {
            let given = text.split('=').next().unwrap_or_default();
            return given.len() > 4 && option.starts_with(given);
        }
        let letters = option.strip_prefix('-').unwrap_or(option);
        text.starts_with('-') && !text.starts_with("--") && text.contains(letters)
    })
}

/// Whether `sed -f` or `awk -f` takes its program from the input.
pub(super) fn is_program_from_input(arguments: &[Word]) -> bool {
    let mut before = "";
    arguments.iter().any(|word| {
        let text = word.prefix();
        let names_file = |option: &str| {
            option.starts_with("--fi")
                || (option.ends_with('f') && option.starts_with('-') && !option.starts_with("--"))
        };
        let is_input = (text == "-" && names_file(before))
            || (text.ends_with("f-") && text.starts_with('-'))
            || (text.starts_with("--fi") && text.ends_with("=-"))
            || text.contains("/dev/");
        before = text;
        is_input
    })
}
