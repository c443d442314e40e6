//! Logins at servers on the network, by OAuth 2.1: who gives tokens for a server, how this program makes
//! itself known there, what a person visits, and how tokens are renewed.
//!
//! Nothing here stores anything or opens a connection by itself: requests go through an [`HttpPort`],
//! and who keeps a [`Login`] decides where. Types with secrets have no `Debug`.
//!
//! [`HttpPort`]: crate::port::HttpPort

mod address;
mod assertion;
mod challenge;
mod client;
mod discover;
mod login;
mod program;
mod token;
mod web;

pub use self::address::checked as checked_address;
pub use self::challenge::Challenge;
pub use self::client::{Client, ClientAuth, ClientOrigin};
pub use self::login::{Callback, Login, LoginRequest, PendingLogin, begin, renew};
pub use self::program::log_in_as_program;
pub use self::token::Tokens;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};

/// Why a login or a new token could not be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OauthError {
    /// The network or a server is out of order. Everything that is known stays valid.
    #[error("{0}")]
    Passing(String),
    /// The authorization server refused, with an error of the protocol.
    #[error("the authorization server refused it: {code}{}", said(why))]
    Refused { code: String, why: String },
    /// What a server says about its login cannot be used.
    #[error("{0}")]
    Unusable(String),
}

fn said(why: &str) -> String {
    if why.is_empty() {
        String::new()
    } else {
        format!(" ({why})")
    }
}

/// Returns 256 random bits as text.
fn random() -> Result<String, OauthError> {
    let mut bytes = [0_u8; 32];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| OauthError::Passing("the system gives no random numbers".to_owned()))?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}
