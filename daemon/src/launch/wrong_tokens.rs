//! Slows down guesses of a connection token: each wrong one makes the next answer wait longer.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// How long the first wrong token waits for its answer; each further one waits twice as long.
const FIRST_DELAY: Duration = Duration::from_millis(50);
/// The longest wait.
const LONGEST_DELAY: Duration = Duration::from_secs(1);
/// Wrong tokens are forgotten when none came for this long.
const FORGET_AFTER: Duration = Duration::from_secs(60);

/// The wrong tokens that the clients of a launch have shown, whichever connection they came by.
#[derive(Debug, Default)]
pub struct WrongTokens {
    last: Mutex<Option<(Instant, Duration)>>,
}

impl WrongTokens {
    /// Counts a wrong token and returns how long its answer has to wait.
    pub fn next_delay(&self) -> Duration {
        let now = Instant::now();
        let mut last = self.last.lock();
        let delay = match *last {
            Some((at, delay)) if now.duration_since(at) < FORGET_AFTER => {
                (delay * 2).min(LONGEST_DELAY)
            }
            Some(_) | None => FIRST_DELAY,
        };
        *last = Some((now, delay));
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn answers_to_wrong_tokens_wait_longer_up_to_a_limit_and_the_count_is_forgotten() {
        let tokens = WrongTokens::default();
        let delays: Vec<u128> = (0..7).map(|_| tokens.next_delay().as_millis()).collect();
        assert_eq!(delays, [50, 100, 200, 400, 800, 1000, 1000]);
        tokio::time::advance(FORGET_AFTER).await;
        assert_eq!(tokens.next_delay(), FIRST_DELAY);
    }
}
