//! Compares deny rules that have an argument with what a line runs, at every depth.

use super::Quotes;
use super::coverage;
use super::options::{Extent, Options, Role, Style};
use super::rule::{Rule, pattern};
use super::runs::{Arguments, Certainty, ProgramRun, Runs};
use super::table::{self, Line};
use super::word::{Word, base_name};

const SYNONYMS: &str = include_str!("tables/synonyms.txt");
const SUBCOMMANDS: &str = include_str!("tables/subcommands.txt");

/// How many words are tried as the beginning of a command. With more words, the rule may match.
const MAX_STARTS: usize = 100;

/// Whether a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hit {
    No,
    Possible,
    Certain,
}

/// Compares a rule with everything that a line may run.
pub(super) fn hit(rule: &Rule, runs: &Runs) -> Hit {
    let mut best = if runs.anything {
        Hit::Possible
    } else {
        Hit::No
    };
    for run in &runs.programs {
        let mut hit = hits_run(rule, run);
        if run.certainty == Certainty::Possible {
            hit = hit.min(Hit::Possible);
        }
        best = best.max(hit);
        if best == Hit::Certain {
            break;
        }
    }
    best
}

/// Compares a rule with the words of a text, from the first word that names its program.
pub(super) fn is_mentioned(rule: &Rule, words: &[String]) -> bool {
    let Some(first) = words
        .iter()
        .position(|word| is_program(&rule.program, word))
    else {
        return false;
    };
    let rest: Vec<Word> = words
        .iter()
        .skip(first + 1)
        .map(|word| Word::literal(word))
        .collect();
    arguments(rule, &rest, Position::Anywhere) == Hit::Certain
}

fn is_program(rule: &str, word: &str) -> bool {
    rule == word || (!rule.contains('/') && base_name(word) == rule)
}

fn hits_run(rule: &Rule, run: &ProgramRun) -> Hit {
    let Some((program, rest)) = run.words.split_first() else {
        return Hit::No;
    };
    let mut best = hits_program(rule, program);
    if best != Hit::No {
        best = if program.may_be_several() {
            Hit::Possible
        } else {
            best.min(arguments(rule, rest, Position::Subcommand))
        };
    }
    // `/usr/lib/git-core/git-push` runs `git push`.
    if let Some(subcommand) = program
        .text()
        .and_then(|text| base_name(text).strip_prefix(rule.program.as_str()))
        .and_then(|after| after.strip_prefix('-'))
    {
        let split: Vec<Word> = std::iter::once(Word::literal(subcommand))
            .chain(rest.iter().cloned())
            .collect();
        best = best.max(arguments(rule, &split, Position::Subcommand));
    }
    if best == Hit::Certain {
        return best;
    }
    let also = match run.arguments {
        Arguments::Data => false,
        Arguments::Copied => rest
            .iter()
            .filter_map(Word::text)
            .any(|text| text.contains('/') && base_name(text) == base_name(&rule.program)),
        Arguments::Code if rest.iter().any(|word| is_mentioned_in(rule, word)) => true,
        Arguments::MayRun | Arguments::Code => {
            let names = |word: &Word| {
                word.text().map_or_else(
                    || is_pieced(rule, word),
                    |text| is_program(&rule.program, text),
                )
            };
            let mut starts = (0..rest.len()).filter(|start| rest.get(*start).is_some_and(names));
            starts.by_ref().take(MAX_STARTS).any(|start| {
                let after = rest.get(start + 1..).unwrap_or_default();
                arguments(rule, after, Position::Subcommand) != Hit::No
            }) || starts.next().is_some()
        }
    };
    best.max(if also { Hit::Possible } else { Hit::No })
}

/// Whether a word has pieces of the program's name with something computed between them: `r${x}m`.
fn is_pieced(rule: &Rule, word: &Word) -> bool {
    word.texts().any(|piece| !piece.is_empty())
        && !word.prefix().contains('/')
        && word.may_name(base_name(&rule.program))
}

fn hits_program(rule: &Rule, word: &Word) -> Hit {
    let Some(text) = word.text() else {
        return if word.may_name(base_name(&rule.program)) {
            Hit::Possible
        } else {
            Hit::No
        };
    };
    if is_program(&rule.program, text) {
        return Hit::Certain;
    }
    // The word is another path to a program of this name, or its case differs, which some file
    // systems ignore.
    if base_name(text).eq_ignore_ascii_case(base_name(&rule.program)) {
        return Hit::Possible;
    }
    Hit::No
}

/// Where the first word of a rule has to be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    /// It is the subcommand, if the program is known to have one.
    Subcommand,
    Anywhere,
}

/// Compares the words of a rule with arguments.
fn arguments(rule: &Rule, words: &[Word], position: Position) -> Hit {
    let program = base_name(&rule.program);
    let Some((first, others)) = rule.words.split_first() else {
        return Hit::Certain;
    };
    if position == Position::Subcommand
        && !first.starts_with('-')
        && let Some(found) = subcommand(program, words)
    {
        let (word, rest) = match found {
            Found::At(word, rest) => (word, rest),
            Found::Nothing => return Hit::No,
            Found::Unclear => return unclear(program, first, others, words),
        };
        let hit = same_subcommand(program, first, word);
        if hit == Hit::No {
            return Hit::No;
        }
        return hit.min(listed(&format!("{program} {first}"), others, rest));
    }
    let command = match others.first() {
        _ if first.starts_with('-') => program.to_owned(),
        _ => format!("{program} {first}"),
    };
    listed(&command, &rule.words, words)
}

/// Compares a rule with arguments whose subcommand is not known: every word may be the subcommand.
fn unclear(program: &str, first: &str, others: &[String], words: &[Word]) -> Hit {
    let mut best = Hit::No;
    for (place, word) in words.iter().enumerate() {
        if place >= MAX_STARTS {
            return best.max(Hit::Possible);
        }
        let hit = same_subcommand(program, first, word);
        let rest = words.get(place + 1..).unwrap_or_default();
        let rest = listed(&format!("{program} {first}"), others, rest);
        best = best.max(hit.min(rest));
    }
    // Settings before the subcommand can turn any word into another command.
    if program == "git" {
        best.max(Hit::Possible)
    } else {
        best
    }
}

/// Whether a text in another language mentions what a rule denies.
fn is_mentioned_in(rule: &Rule, word: &Word) -> bool {
    word.texts().any(|text| {
        // socat takes `exec:rm x`.
        let text = text.replace(':', " ");
        let mut ways = [Quotes::Joined, Quotes::Parting].into_iter();
        ways.any(|quotes| is_mentioned(rule, &super::words(&text, quotes)))
    })
}

enum Found<'w> {
    At(&'w Word, &'w [Word]),
    Nothing,
    /// Unknown or computed words come before the subcommand.
    Unclear,
}

/// Finds the subcommand of a program that is known to have one.
fn subcommand<'w>(program: &str, words: &'w [Word]) -> Option<Found<'w>> {
    let list = coverage::options_before_subcommand(program).or_else(|| {
        table::lines(SUBCOMMANDS)
            .find(|line| line.is_for(program))
            .map(|line| line.listed)
    })?;
    let options = Options {
        list,
        style: Style::Letters,
    };
    let roles = options.walk(words, Extent::Options);
    if roles.contains(&Role::Unknown) || roles.contains(&Role::Computed) {
        return Some(Found::Unclear);
    }
    let Some(mut start) = roles.iter().position(|role| *role == Role::Operand) else {
        return Some(Found::Nothing);
    };
    let is_group = |word: &Word| {
        let group = word.text().unwrap_or_default();
        (matches!(program, "docker" | "podman")
            && matches!(group, "container" | "image" | "builder"))
            || (program == "cargo" && group.starts_with('+'))
    };
    if words.get(start).is_some_and(is_group) {
        start += 1;
    }
    let rest = words.get(start..).unwrap_or_default();
    Some(match rest.split_first() {
        Some((word, rest)) => Found::At(word, rest),
        None => Found::Nothing,
    })
}

/// Compares a subcommand with that of a rule, under any of its names.
fn same_subcommand(program: &str, rule: &str, word: &Word) -> Hit {
    let Some(text) = word.text() else {
        return if word.may_be(rule) || word.may_be_several() {
            Hit::Possible
        } else {
            Hit::No
        };
    };
    // npm accepts the beginning of a name for the whole name.
    let is_short = matches!(program, "npm" | "pnpm") && text.len() > 2 && rule.starts_with(text);
    if pattern(rule).may_be(text) || is_short || is_synonym(program, rule, text) {
        return Hit::Certain;
    }
    // These push as well, among other things.
    let pushes = matches!(text, "subtree" | "lfs" | "svn");
    if program == "git" && rule == "push" && pushes {
        return Hit::Possible;
    }
    // A word that is no command of git may be an alias for one.
    if program == "git" && !coverage::is_git_command(text) {
        return Hit::Possible;
    }
    Hit::No
}

/// Compares the words of a rule with arguments. Options match anywhere, other words in order.
fn listed(command: &str, rule: &[String], words: &[Word]) -> Hit {
    let (options, operands): (Vec<&String>, Vec<&String>) = rule
        .iter()
        .partition(|word| word.len() > 1 && word.starts_with('-'));
    let mut hit = in_order(&operands, words);
    for option in options {
        hit = hit.min(has_option(command, option, words));
    }
    hit
}

fn in_order(rule: &[&String], words: &[Word]) -> Hit {
    let patterns: Vec<Word> = rule.iter().map(|word| pattern(word)).collect();
    let mut wanted = patterns.iter().peekable();
    for text in words.iter().filter_map(Word::text) {
        if wanted.peek().is_some_and(|pattern| pattern.may_be(text)) {
            wanted.next();
        }
    }
    if wanted.peek().is_none() {
        return Hit::Certain;
    }
    let mut wanted = rule.iter().zip(&patterns).peekable();
    for word in words {
        while let Some((text, pattern)) = wanted.peek() {
            let fits = match word.text() {
                Some(own) => pattern.may_be(own),
                None => pattern.is_computed() || word.may_be(text),
            };
            if !fits {
                break;
            }
            wanted.next();
            if !word.may_be_several() {
                break;
            }
        }
    }
    if wanted.peek().is_none() {
        Hit::Possible
    } else {
        Hit::No
    }
}

/// Whether arguments contain an option of a rule, in any spelling.
fn has_option(command: &str, option: &str, words: &[Word]) -> Hit {
    let has = |test: &dyn Fn(&str) -> bool| words.iter().filter_map(Word::text).any(test);
    let value_follows = |name: &str, value: &str| {
        words.windows(2).any(|pair| {
            matches!(pair, [one, two] if one.text() == Some(name) && two.text() == Some(value))
        })
    };
    let found = if option.starts_with("--") {
        has(&|text| is_long(option, text))
            || option
                .split_once('=')
                .is_some_and(|(name, value)| value_follows(name, value))
            || spellings(command, option).any(|other| has(&|text| is_spelled(other, text)))
    } else {
        has(&|text| text == option)
            || option.chars().skip(1).all(|letter| {
                let short = format!("-{letter}");
                has(&|text| is_spelled(&short, text))
                    || spellings(command, &short).any(|other| has(&|text| is_spelled(other, text)))
            })
    };
    if found {
        Hit::Certain
    } else if words
        .iter()
        .any(|word| word.is_computed() && word.may_be_option())
    {
        Hit::Possible
    } else {
        Hit::No
    }
}

/// Whether an argument is this option: `--forc` for `--force`, `-xf` for `-f`, `+main` for `+*`.
fn is_spelled(option: &str, text: &str) -> bool {
    if let Some(start) = option.strip_suffix('*') {
        return text.starts_with(start);
    }
    if option.starts_with("--") {
        return is_long(option, text);
    }
    let letter = option.strip_prefix('-').unwrap_or(option);
    text == option
        || (text.starts_with('-')
            && !text.starts_with("--")
            && letter.chars().count() == 1
            && text.contains(letter))
}

/// Whether an argument is a long option, in full or shortened as far as programs accept it.
fn is_long(option: &str, text: &str) -> bool {
    let Some(text_name) = text.split('=').next().filter(|name| name.len() > 2) else {
        return false;
    };
    match option.split_once('=') {
        Some((name, value)) => {
            name.starts_with(text_name) && text.split_once('=').is_some_and(|(_, own)| own == value)
        }
        None => text_name.starts_with("--") && option.starts_with(text_name),
    }
}

/// Returns other spellings of an option or subcommand.
fn spellings<'c>(command: &'c str, own: &str) -> impl Iterator<Item = &'static str> + use<'c> {
    let own = own.to_owned();
    table::lines(SYNONYMS)
        .filter(move |line| is_about(line, command))
        .flat_map(|line| line.listed.split(';'))
        .filter(move |group| group.split_ascii_whitespace().any(|word| word == own))
        .flat_map(str::split_ascii_whitespace)
}

/// Whether a line of synonyms applies to a command: `rm`, or `git push`.
fn is_about(line: &Line, command: &str) -> bool {
    let program = command.split(' ').next().unwrap_or(command);
    if line.names.starts_with("git ") {
        let mut pairs = line.names.split_ascii_whitespace();
        while let (Some(one), Some(two)) = (pairs.next(), pairs.next()) {
            if command.split_once(' ') == Some((one, two)) {
                return true;
            }
        }
        return false;
    }
    line.is_for(program)
}

fn is_synonym(program: &str, one: &str, other: &str) -> bool {
    spellings(program, one).any(|spelling| spelling == other)
}
