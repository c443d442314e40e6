//! A few numbers of one kind, and what is told of them.

use std::time::Duration;

/// Times or sizes of the same thing, in the order they were taken.
#[derive(Debug, Default, Clone)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    pub(crate) fn push_time(&mut self, time: Duration) {
        self.push(milliseconds(time));
    }

    pub(crate) fn extend(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Nothing measured is not a number.
    #[expect(
        clippy::cast_precision_loss,
        reason = "there are not that many samples"
    )]
    pub(crate) fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    pub(crate) fn median(&self) -> f64 {
        self.percentile(50)
    }

    /// The value that `percent` of the samples do not exceed; nothing measured is not a number.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (sorted.len() * percent).div_ceil(100).max(1) - 1;
        sorted.get(rank).copied().unwrap_or(f64::NAN)
    }
}

/// A time as a number of milliseconds.
pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
