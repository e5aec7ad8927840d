//! Keys drawn from a seed: ECDSA P-256 whose number the lots give.

use async_trait::async_trait;
use kubectl_acme::acme::{KeyError, KeyMaker, PrivateKey};
use kubectl_acme::model::KeyAlgorithm;

use super::rng::Lots;

/// Makes keys, none of which is secret.
#[derive(Debug)]
pub(crate) struct SeededKeys(pub(crate) Lots);

impl SeededKeys {
    /// ECPrivateKey (RFC 5915 §3) with the name of the curve and without the public half.
    fn draw(&self) -> Vec<u8> {
        let mut number = [0; 32];
        self.0.with(|lots| lots.fill(&mut number));
        // Below the order of the curve, and not zero.
        (number[0], number[31]) = (number[0] & 0x7f, number[31] | 1);
        let mut der = vec![0x30, 0x31, 0x02, 0x01, 0x01, 0x04, 0x20];
        der.extend(number);
        der.extend([0xa0, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07]);
        der
    }
}

#[async_trait]
impl KeyMaker for SeededKeys {
    async fn make(&self, _: KeyAlgorithm) -> Result<PrivateKey, KeyError> {
        PrivateKey::from_der(&self.draw())
    }
}
