//! The figures, one file for each kind.

pub(crate) mod crowd;
pub(crate) mod hooks;
pub(crate) mod long;
pub(crate) mod restart;
pub(crate) mod shell;
pub(crate) mod start;
pub(crate) mod stream;
pub(crate) mod turn;

use std::path::PathBuf;

use crate::floor::Floors;
use crate::mock::Mock;

/// How thorough a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    Full,
    Quick,
    /// Everything once, to see that it works.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "only a test is so easily content")
    )]
    Smoke,
}

impl Effort {
    /// As many as are wanted, or a few.
    pub(crate) fn rounds(self, full: usize) -> usize {
        match self {
            Self::Full => full,
            Self::Quick => full.div_ceil(5),
            Self::Smoke => 1,
        }
    }
}

/// What every measurement needs.
pub(crate) struct Bench {
    pub(crate) program: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) mock: Mock,
    pub(crate) floors: Floors,
    pub(crate) effort: Effort,
}
