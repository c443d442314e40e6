//! Names that a program makes of the words on its line: what is unpacked loses its ending, a backup
//! gets one, and the pieces of a file get numbers. The result may be a name that stands nowhere on
//! the line.

use std::collections::BTreeSet;

use super::runs::Runs;
use super::word::{Count, Word, base_name};

/// Programs that write a file whose name is another one without its ending, or with one.
#[rustfmt::skip]
const PACKING: &[&str] = &[
    "gzip", "gunzip", "pigz", "unpigz", "xz", "unxz", "lzma", "unlzma", "bzip2", "bunzip2", "pbzip2", "lbzip2", "zstd", "unzstd", "zstdmt",
    "lz4", "unlz4", "brotli", "compress", "uncompress", "lzop", "lzip", "plzip", "lunzip", "lrzip", "lrunzip", "gpg", "gpg2",
];

/// Programs that keep what they replace, under its name with an ending.
#[rustfmt::skip]
const KEEPING: &[&str] = &[
    "cp", "gcp", "mv", "gmv", "ln", "gln", "install", "ginstall", "patch", "sed", "gsed", "perl", "ruby", "rsync", "indent",
];

/// Programs that number the pieces of a file.
const SPLITTING: &[&str] = &["split", "gsplit", "csplit", "gcsplit"];

/// Programs that save a file under the last name in its address.
const DOWNLOADING: &[&str] = &["curl", "wget", "wget2", "aria2c", "axel"];

/// Options whose value is an ending, or a part of a name.
#[rustfmt::skip]
const ENDINGS: &[&str] = &[
    "--suffix", "--additional-suffix", "--suffix-format", "--in-place", "--prefix", "--basename-prefix", "--extension",
];
const ENDING_LETTERS: &str = "SziIfbBY";

/// How many pairs of a name and an ending are tried.
const MAX_PAIRS: usize = 2_000;

/// A name of which only the beginning is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Beginning {
    pub path: String,
    /// Whether anything may follow. Otherwise only letters and digits do.
    pub is_open: bool,
}

/// Returns the names that a program may make of its words, or `None` if there are too many.
pub(super) fn names(program: &str, arguments: &[Word]) -> Option<Vec<String>> {
    if DOWNLOADING.contains(&program) {
        let texts = arguments.iter().flat_map(Word::texts);
        let names = texts.filter(|text| text.contains('/')).map(downloaded);
        return Some(names.collect());
    }
    let packs = PACKING.contains(&program);
    if !packs && !KEEPING.contains(&program) {
        return Some(Vec::new());
    }
    let endings: BTreeSet<String> = endings(arguments).into_iter().collect();
    let pieces: BTreeSet<&str> = operands(arguments).flat_map(Word::texts).collect();
    if pieces.len().saturating_mul(endings.len()) > MAX_PAIRS {
        return None;
    }
    let mut names = Vec::new();
    for piece in pieces {
        if packs {
            names.extend(shortened(piece));
        }
        for ending in &endings {
            names.push(format!("{piece}{ending}"));
            names.extend(piece.strip_suffix(ending.as_str()).map(str::to_owned));
            // sed and perl put the name where the star is.
            if ending.contains('*') {
                let folder = piece.strip_suffix(base_name(piece)).unwrap_or_default();
                let name = ending.replace('*', base_name(piece));
                names.extend([format!("{folder}{name}"), name]);
            }
        }
    }
    Some(names)
}

/// Returns words with gaps for names that a program makes of its words, as far as they are known:
/// pieces of a file, and what is unpacked from files that a pattern matches.
pub(super) fn words(program: &str, arguments: &[Word]) -> Vec<Word> {
    let open = |word: &Word, end: usize| {
        let mut made = Word::literal(word.prefix().get(..end).unwrap_or_default());
        made.push_gap(Count::Several);
        made
    };
    let whole = |word: &Word| open(word, word.prefix().len());
    if SPLITTING.contains(&program) {
        let made = endings(arguments);
        let made = made.iter().map(|text| Word::literal(text));
        let made: Vec<Word> = made.map(|word| whole(&word)).collect();
        return operands(arguments).map(whole).chain(made).collect();
    }
    if PACKING.contains(&program) {
        let gaps = operands(arguments).filter(|word| word.is_computed());
        return gaps.map(whole).collect();
    }
    if DOWNLOADING.contains(&program) {
        // `b.#1` gets what the first braces of the address become.
        let numbered = arguments
            .iter()
            .filter_map(|word| Some((word, word.prefix().find('#')?)));
        let numbered = numbered.filter(|(word, _)| !word.prefix().contains("://"));
        let numbered: Vec<Word> = numbered.map(|(word, end)| open(word, end)).collect();
        // Braces and escapes in an address are read by the program.
        let is_computed = |word: &&Word| {
            let is_pattern = |text: &str| text.contains(['{', '[', '%']);
            word.prefix().contains('/')
                && (word.ending().is_none_or(is_pattern) || word.texts().any(is_pattern))
        };
        let is_saving = saves(program, arguments);
        let open_addresses = arguments
            .iter()
            .filter(|word| is_saving && is_computed(word));
        let unknown = open_addresses.map(|_| Word::anything());
        return numbered.into_iter().chain(unknown).collect();
    }
    Vec::new()
}

/// Whether a program saves what it downloads under the name that it has there.
fn saves(program: &str, arguments: &[Word]) -> bool {
    program != "curl"
        || arguments.iter().any(|word| {
            let text = word.prefix();
            text.starts_with("--remote")
                || (text.starts_with('-') && !text.starts_with("--") && text.contains('O'))
        })
}

/// Returns the name under which a program saves an address.
fn downloaded(address: &str) -> String {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    base_name(path).to_owned()
}

/// Returns the beginnings of names that a line may write to.
pub(crate) fn beginnings(text: &str) -> Vec<Beginning> {
    let mut all = PACKING.iter().chain(SPLITTING);
    if !all.any(|program| text.contains(program)) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for run in &Runs::of(text).programs {
        let Some((program, arguments)) = run.words.split_first() else {
            continue;
        };
        let name = program.text().map_or("", base_name);
        if SPLITTING.contains(&name) {
            let endings = endings(arguments);
            let is_open = !endings.is_empty();
            let given = operands(arguments).map(|word| word.prefix().to_owned());
            let made = endings.iter().filter_map(|it| it.split('%').next());
            let made: Vec<String> = made.map(str::to_owned).collect();
            let paths = given.chain(made);
            found.extend(paths.map(|path| Beginning { path, is_open }));
        } else if PACKING.contains(&name) {
            // A pattern may match a hidden file.
            let hidden = operands(arguments)
                .filter(|word| word.is_computed() && base_name(word.prefix()).starts_with('.'));
            found.extend(hidden.map(|word| Beginning {
                path: word.prefix().to_owned(),
                is_open: true,
            }));
        }
    }
    found.retain(|beginning| !base_name(&beginning.path).is_empty());
    found
}

/// Returns a name without what comes after a dot, a dash or a line in its last part.
fn shortened(path: &str) -> impl Iterator<Item = String> {
    let start = path.len() - base_name(path).len();
    let ends = path.match_indices(['.', '-', '_']);
    let ends = ends
        .map(|(place, _)| place)
        .filter(move |place| *place > start);
    ends.filter_map(|end| path.get(..end).map(str::to_owned))
}

/// Returns the words that are no options. Values of options are among them.
fn operands(arguments: &[Word]) -> impl Iterator<Item = &Word> {
    arguments
        .iter()
        .filter(|word| !word.prefix().starts_with('-'))
}

/// Returns the values of options that may be a part of a name.
fn endings(arguments: &[Word]) -> Vec<String> {
    let mut found = Vec::new();
    for (place, word) in arguments.iter().enumerate() {
        let text = word.prefix();
        let next = || {
            arguments
                .get(place + 1)
                .map(|next| next.prefix().to_owned())
        };
        if text.starts_with("--") {
            let (option, value) = match text.split_once('=') {
                Some((option, value)) => (option, Some(value.to_owned())),
                None => (text, None),
            };
            // Programs accept the beginning of an option for the whole option.
            let is_listed = ENDINGS.iter().any(|own| own.starts_with(option));
            if is_listed && option.len() > 2 {
                found.extend(value.or_else(next));
            }
        } else if let Some(letters) = text.strip_prefix('-') {
            for (at, letter) in letters.char_indices() {
                if ENDING_LETTERS.contains(letter) {
                    let attached = letters.get(at + letter.len_utf8()..).unwrap_or_default();
                    found.push(attached.to_owned());
                    found.extend(next().filter(|_| attached.is_empty()));
                }
            }
        }
    }
    found.retain(|ending| !ending.is_empty() && !ending.starts_with('-'));
    found
}
