//! The rows of the result, as text for people and as JSON for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// What a row has to reach.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    AtMost(f64),
    AtLeast(f64),
    /// Told for its own sake.
    None,
}

/// One figure.
#[derive(Debug)]
pub(crate) struct Row {
    what: String,
    unit: &'static str,
    measured: f64,
    /// The least that any runtime would need on this machine, and what that is.
    floor: Option<(f64, &'static str)>,
    target: Target,
}

impl Row {
    pub(crate) fn new(what: impl Into<String>, unit: &'static str, measured: f64) -> Self {
        Self {
            what: what.into(),
            unit,
            measured,
            floor: None,
            target: Target::None,
        }
    }

    pub(crate) fn floor(mut self, floor: f64, of: &'static str) -> Self {
        self.floor = Some((floor, of));
        self
    }

    pub(crate) fn at_most(mut self, limit: f64) -> Self {
        self.target = Target::AtMost(limit);
        self
    }

    pub(crate) fn at_least(mut self, limit: f64) -> Self {
        self.target = Target::AtLeast(limit);
        self
    }

    /// Whether the target is reached; `None` without a target.
    fn met(&self) -> Option<bool> {
        match self.target {
            Target::AtMost(limit) => Some(self.measured <= limit),
            Target::AtLeast(limit) => Some(self.measured >= limit),
            Target::None => None,
        }
    }

    fn ratio(&self) -> Option<f64> {
        let (floor, _) = self.floor?;
        Some(match self.target {
            Target::AtLeast(_) => floor / self.measured,
            Target::AtMost(_) | Target::None => self.measured / floor,
        })
    }

    fn cells(&self) -> [String; 6] {
        let (sign, limit) = match self.target {
            Target::AtMost(limit) => ("≤ ", Some(limit)),
            Target::AtLeast(limit) => ("≥ ", Some(limit)),
            Target::None => ("", None),
        };
        [
            format!("{}, {}", self.what, self.unit),
            number(self.measured),
            self.floor.map_or_else(String::new, |(floor, of)| {
                format!("{} ({of})", number(floor))
            }),
            self.ratio()
                .map_or_else(String::new, |ratio| format!("{ratio:.1}")),
            limit.map_or_else(String::new, |limit| format!("{sign}{}", number(limit))),
            match self.met() {
                Some(true) => "yes".to_owned(),
                Some(false) => "NO".to_owned(),
                None => String::new(),
            },
        ]
    }

    fn json(&self) -> Value {
        let target = match self.target {
            Target::AtMost(limit) => json!({"atMost": limit}),
            Target::AtLeast(limit) => json!({"atLeast": limit}),
            Target::None => Value::Null,
        };
        json!({
            "what": self.what,
            "unit": self.unit,
            "measured": self.measured,
            "floor": self.floor.map(|(floor, of)| json!({"value": floor, "of": of})),
            "ratio": self.ratio(),
            "target": target,
            "met": self.met(),
        })
    }
}

/// Enough digits to compare, and no more.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

const HEADER: [&str; 6] = ["what", "measured", "floor", "ratio", "target", "met"];

/// The rows as a table.
pub(crate) fn text(rows: &[Row]) -> String {
    let cells: Vec<[String; 6]> = std::iter::once(HEADER.map(str::to_owned))
        .chain(rows.iter().map(Row::cells))
        .collect();
    let mut widths = [0_usize; 6];
    for line in &cells {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    for (index, line) in cells.iter().enumerate() {
        for (column, (cell, width)) in line.iter().zip(widths).enumerate() {
            let bar = if column == 0 { "| " } else { " | " };
            write!(out, "{bar}{cell:<width$}").ok();
        }
        out.push_str(" |\n");
        if index == 0 {
            let rules: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
            writeln!(out, "|{}|", rules.join("|")).ok();
        }
    }
    out
}

/// The rows as one JSON document.
pub(crate) fn json(rows: &[Row]) -> Value {
    Value::Array(rows.iter().map(Row::json).collect())
}
