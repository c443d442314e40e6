//! Statements that a program signs about itself (RFC 7523), so that no secret is sent.

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    RSA_PKCS1_SHA256, RsaKeyPair,
};
use serde_json::json;

use super::{OauthError, random};

/// What kind of statement it is.
pub(super) const KIND: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// How long a statement counts, in seconds.
const COUNTS_FOR: u64 = 300;

/// Returns the statement of a program for an authorization server.
pub(super) fn about_program(
    key: &str,
    client: &str,
    issuer: &str,
    now_ms: u64,
) -> Result<String, OauthError> {
    let key = Key::read(key)?;
    let now = now_ms / 1_000;
    let head = json!({"alg": key.algorithm(), "typ": "JWT"});
    let claims = json!({"iss": client, "sub": client, "aud": issuer, "jti": random()?,
                        "iat": now, "nbf": now, "exp": now + COUNTS_FOR});
    let encoded = |part: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(part);
    let mut statement = encoded(head.to_string().as_bytes());
    statement.push('.');
    statement += &encoded(claims.to_string().as_bytes());
    let signature = key.sign(statement.as_bytes())?;
    statement.push('.');
    Ok(statement + &encoded(&signature))
}

/// A private key of one of the kinds that are known.
enum Key {
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa(Box<RsaKeyPair>),
}

impl Key {
    /// Reads a key in PEM, as PKCS #8. Nothing of it is ever in an error.
    fn read(pem: &str) -> Result<Self, OauthError> {
        let unusable = || {
            OauthError::Unusable(
                "the private key of the program cannot be used: an unencrypted P-256, P-384, Ed25519 or RSA \
                 key in PEM (BEGIN PRIVATE KEY) is expected"
                    .to_owned(),
            )
        };
        // Variables of environments are written in one line.
        let pem = pem.replace("\\n", "\n");
        let body = pem.split_once("-----BEGIN PRIVATE KEY-----");
        let body = body.and_then(|(_, rest)| rest.split_once("-----END PRIVATE KEY-----"));
        let (body, _) = body.ok_or_else(unusable)?;
        let body: String = body.split_whitespace().collect();
        let key = BASE64_STANDARD.decode(body).map_err(|_| unusable())?;
        let random = SystemRandom::new();
        if let Ok(key) = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key, &random) {
            return Ok(Self::P256(key));
        }
        if let Ok(key) = EcdsaKeyPair::from_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, &key, &random) {
            return Ok(Self::P384(key));
        }
        if let Ok(key) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&key) {
            return Ok(Self::Ed25519(key));
        }
        let key = RsaKeyPair::from_pkcs8(&key).map_err(|_| unusable())?;
        Ok(Self::Rsa(Box::new(key)))
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::P256(_) => "ES256",
            Self::P384(_) => "ES384",
            Self::Ed25519(_) => "EdDSA",
            Self::Rsa(_) => "RS256",
        }
    }

    fn sign(&self, text: &[u8]) -> Result<Vec<u8>, OauthError> {
        let failed = |_| OauthError::Passing("the system gives no random numbers".to_owned());
        let random = SystemRandom::new();
        match self {
            Self::P256(key) | Self::P384(key) => {
                let signature = key.sign(&random, text).map_err(failed)?;
                Ok(signature.as_ref().to_vec())
            }
            Self::Ed25519(key) => Ok(key.sign(text).as_ref().to_vec()),
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, text, &mut signature)
                    .map_err(failed)?;
                Ok(signature)
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::expect_used, reason = "a failed step fails the test")]
mod tests {
    use ring::signature::{ECDSA_P256_SHA256_FIXED, KeyPair as _, UnparsedPublicKey};
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_statement_names_the_program_and_the_server_and_is_signed() {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
        let encoded = BASE64_STANDARD.encode(key.as_ref());
        let pem = format!("-----BEGIN PRIVATE KEY-----\\n{encoded}\n-----END PRIVATE KEY-----\n");
        let said = about_program(&pem, "me", "https://a.example", 10_000).expect("a statement");
        let parts: Vec<&str> = said.split('.').collect();
        let [head, claims, signature] = parts.as_slice() else {
            return assert_eq!(parts.len(), 3);
        };
        let read = |part: &str| -> Value {
            let bytes = BASE64_URL_SAFE_NO_PAD.decode(part).expect("base64");
            serde_json::from_slice(&bytes).expect("JSON")
        };
        assert_eq!(read(head), json!({"alg": "ES256", "typ": "JWT"}));
        let claims = (read(claims), claims);
        assert_eq!(claims.0.get("iss"), Some(&json!("me")));
        assert_eq!(claims.0.get("sub"), Some(&json!("me")));
        assert_eq!(claims.0.get("aud"), Some(&json!("https://a.example")));
        assert_eq!(claims.0.get("exp"), Some(&json!(310)));
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref(), &random).expect("a key");
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, pair.public_key().as_ref());
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).expect("base64");
        let text = format!("{head}.{}", claims.1);
        public
            .verify(text.as_bytes(), &signature)
            .expect("the signature is right");
    }

    #[test]
    fn a_key_that_cannot_be_used_is_not_repeated() {
        for key in [
            "secret",
            "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----",
        ] {
            let error = about_program(key, "me", "https://a.example", 0).expect_err("no key");
            let error = error.to_string();
            assert!(
                error.contains("cannot be used") && !error.contains("c2Vj"),
                "{error}"
            );
        }
    }
}
