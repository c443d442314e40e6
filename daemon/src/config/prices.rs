//! What models cost: the tables `[prices."…"]` of `config.toml`.

use std::collections::BTreeMap;

use loopd_kernel::budget::Price;
use loopd_model::{offline, replay};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

/// The prices of models, by name.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Prices(BTreeMap<String, PriceSettings>);

/// The prices of one model, in US dollars per million tokens.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PriceSettings {
    /// What is sent.
    #[serde(deserialize_with = "amount")]
    input: f64,
    /// What is answered.
    #[serde(deserialize_with = "amount")]
    output: f64,
    /// What is read from a cache; as `input` when absent.
    #[serde(default, deserialize_with = "optional_amount")]
    cache_read: Option<f64>,
    /// What is written to a cache; as `input` when absent.
    #[serde(default, deserialize_with = "optional_amount")]
    cache_write: Option<f64>,
}

impl Prices {
    /// Returns the price of a model: by its whole name, or by its name without the provider's. The
    /// models that are built in cost nothing.
    pub fn of(&self, model: &str) -> Option<Price> {
        if model == offline::MODEL || model == replay::MODEL {
            return Some(Price::FREE);
        }
        let bare = model.split_once('/').map_or(model, |(_, bare)| bare);
        let price = self.0.get(model).or_else(|| self.0.get(bare))?;
        // A dollar per million tokens is a thousand billionths per token.
        let per_token = |per_million: f64| per_million * 1_000.0;
        Some(Price {
            input: per_token(price.input),
            output: per_token(price.output),
            cache_read: per_token(price.cache_read.unwrap_or(price.input)),
            cache_write: per_token(price.cache_write.unwrap_or(price.input)),
        })
    }
}

fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let amount = f64::deserialize(deserializer)?;
    if amount.is_finite() && amount >= 0.0 {
        Ok(amount)
    } else {
        Err(serde::de::Error::custom(
            "a price is a number from 0 on, in US dollars per million tokens",
        ))
    }
}

fn optional_amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    amount(deserializer).map(Some)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_model_has_the_price_of_its_name() {
        let prices: Prices = toml::from_str(
            "[\"big\"]\ninput = 3\noutput = 15.0\ncache_read = 0.3\n[\"work/big\"]\ninput = 1\noutput = 2",
        )
        .unwrap();
        let big = prices.of("big").unwrap();
        assert_eq!(
            big,
            Price {
                input: 3_000.0,
                output: 15_000.0,
                cache_read: 300.0,
                cache_write: 3_000.0
            }
        );
        assert_eq!(prices.of("home/big"), Some(big));
        assert_eq!(prices.of("work/big").map(|it| it.output), Some(2_000.0));
        assert_eq!(prices.of("small"), None);
        assert_eq!(prices.of("offline"), Some(Price::FREE));
        for wrong in [
            "input = 1",
            "input = -1\noutput = 1",
            "input = nan\noutput = 1",
            "input = 1\noutput = 1\nx = 1",
        ] {
            toml::from_str::<Prices>(&format!("[m]\n{wrong}")).unwrap_err();
        }
    }
}
