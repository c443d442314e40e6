//! Makes the table in which tokens are looked up, so that no process has to make it at run time.
//!
//! The table has a number for each slot: the position of a token in the vocabulary plus one, or zero.
//! A token is in the slot of its hash, or in the next free one.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a build script fails by panicking, and cargo tells it things by variables"
)]

use std::path::Path;

#[path = "src/tokens/slot.rs"]
mod slot;

use slot::{SLOTS, slot};

const VOCABULARY: &str = "src/tokens/vocabulary.bin";

fn main() {
    println!("cargo::rerun-if-changed={VOCABULARY}");
    println!("cargo::rerun-if-changed=src/tokens/slot.rs");
    println!("cargo::rerun-if-changed=build.rs");
    let vocabulary = std::fs::read(VOCABULARY).unwrap();
    let mut table = vec![0_u32; SLOTS];
    let mut at = 0;
    while at < vocabulary.len() {
        let start = at + 1;
        let end = start + usize::from(vocabulary[at]);
        let mut free = slot(&vocabulary[start..end]);
        while table[free] != 0 {
            free = (free + 1) % SLOTS;
        }
        table[free] = u32::try_from(at + 1).unwrap();
        at = end;
    }
    let bytes: Vec<u8> = table.iter().flat_map(|entry| entry.to_le_bytes()).collect();
    let folder = std::env::var("OUT_DIR").unwrap();
    std::fs::write(Path::new(&folder).join("token_slots.bin"), bytes).unwrap();
}
