//! Signatures of signing requests (RFC 2986 §3): ECDSA on any curve with any digest, and RSA with
//! both paddings. A signature that cannot be checked is another error than a wrong signature.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA384_ASN1, ECDSA_P256_SHA512_ASN1, ECDSA_P384_SHA256_ASN1,
    ECDSA_P384_SHA384_ASN1, ECDSA_P384_SHA512_ASN1, ECDSA_P521_SHA256_ASN1, ECDSA_P521_SHA384_ASN1,
    ECDSA_P521_SHA512_ASN1, ED25519, EcdsaVerificationAlgorithm, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPssSaltLength,
    VerificationAlgorithm,
};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::oid_registry::{
    OID_EC_P256, OID_NIST_EC_P384, OID_NIST_EC_P521, OID_NIST_HASH_SHA256, OID_NIST_HASH_SHA384,
    OID_NIST_HASH_SHA512, OID_PKCS1_RSASSAPSS, OID_PKCS1_SHA256WITHRSA, OID_PKCS1_SHA384WITHRSA,
    OID_PKCS1_SHA512WITHRSA, OID_SIG_ECDSA_WITH_SHA256, OID_SIG_ECDSA_WITH_SHA384,
    OID_SIG_ECDSA_WITH_SHA512, OID_SIG_ED25519, Oid,
};
use x509_parser::signature_algorithm::RsaSsaPssParams;
use x509_parser::x509::AlgorithmIdentifier;

/// Reason why a request does not show that its sender has the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unproven {
    /// The signature is by another key, or of another request.
    Wrong,
    /// This CA does not check signatures of this sort.
    UnknownAlgorithm,
}

/// Checks that the holder of the key signed a request.
pub(super) fn check(request: &X509CertificationRequest<'_>) -> Result<(), Unproven> {
    let info = &request.certification_request_info;
    let key = &info.subject_pki;
    let algorithm = algorithm(&request.signature_algorithm, &key.algorithm)
        .ok_or(Unproven::UnknownAlgorithm)?;
    let (key, signature) = (&key.subject_public_key.data, &request.signature_value.data);
    algorithm.verify_sig(key, info.raw, signature).map_err(|_| Unproven::Wrong)
}

/// Returns the verification of a signature of this algorithm by a key of that algorithm.
fn algorithm(
    signature: &AlgorithmIdentifier<'_>,
    key: &AlgorithmIdentifier<'_>,
) -> Option<Box<dyn VerificationAlgorithm>> {
    let sort = &signature.algorithm;
    if *sort == OID_PKCS1_RSASSAPSS {
        return Some(Box::new(pss_parameters(signature)?));
    }
    if let Some(digest) = find(ECDSA_DIGESTS, sort) {
        let curve = key.parameters.as_ref()?.as_oid().ok()?;
        return Some(Box::new(on_curve(&curve, digest)?));
    }
    if *sort == OID_SIG_ED25519 {
        return Some(Box::new(ED25519));
    }
    Some(Box::new(match find(RSA_DIGESTS, sort)? {
        Digest::Sha256 => RSA_PKCS1_2048_8192_SHA256,
        Digest::Sha384 => RSA_PKCS1_2048_8192_SHA384,
        Digest::Sha512 => RSA_PKCS1_2048_8192_SHA512,
    }))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Digest {
    Sha256,
    Sha384,
    Sha512,
}

type Digests = [(Oid<'static>, Digest); 3];

const ECDSA_DIGESTS: Digests = [
    (OID_SIG_ECDSA_WITH_SHA256, Digest::Sha256),
    (OID_SIG_ECDSA_WITH_SHA384, Digest::Sha384),
    (OID_SIG_ECDSA_WITH_SHA512, Digest::Sha512),
];
const RSA_DIGESTS: Digests = [
    (OID_PKCS1_SHA256WITHRSA, Digest::Sha256),
    (OID_PKCS1_SHA384WITHRSA, Digest::Sha384),
    (OID_PKCS1_SHA512WITHRSA, Digest::Sha512),
];
const DIGESTS: Digests = [
    (OID_NIST_HASH_SHA256, Digest::Sha256),
    (OID_NIST_HASH_SHA384, Digest::Sha384),
    (OID_NIST_HASH_SHA512, Digest::Sha512),
];

fn find(digests: Digests, wanted: &Oid<'_>) -> Option<Digest> {
    digests.into_iter().find(|(sort, _)| sort == wanted).map(|(_, digest)| digest)
}

fn on_curve(curve: &Oid<'_>, digest: Digest) -> Option<EcdsaVerificationAlgorithm> {
    let [of_256, of_384, of_512] = if *curve == OID_EC_P256 {
        [ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA384_ASN1, ECDSA_P256_SHA512_ASN1]
    } else if *curve == OID_NIST_EC_P384 {
        [ECDSA_P384_SHA256_ASN1, ECDSA_P384_SHA384_ASN1, ECDSA_P384_SHA512_ASN1]
    } else if *curve == OID_NIST_EC_P521 {
        [ECDSA_P521_SHA256_ASN1, ECDSA_P521_SHA384_ASN1, ECDSA_P521_SHA512_ASN1]
    } else {
        return None;
    };
    Some(match digest {
        Digest::Sha256 => of_256,
        Digest::Sha384 => of_384,
        Digest::Sha512 => of_512,
    })
}

/// Returns the verification of RSA-PSS (RFC 4055 §3.1): salt of any length, and one digest for the message and its mask.
fn pss_parameters(signature: &AlgorithmIdentifier<'_>) -> Option<RsaParameters> {
    let parameters = RsaSsaPssParams::try_from(signature.parameters.as_ref()?).ok()?;
    let digest = find(DIGESTS, parameters.hash_algorithm_oid())?;
    let mask = parameters.mask_gen_algorithm().ok()?;
    if find(DIGESTS, &mask.hash) != Some(digest) || parameters.trailer_field() != 1 {
        return None;
    }
    let salt = RsaPssSaltLength::Custom(u16::try_from(parameters.salt_length()).ok()?);
    let algorithm = match digest {
        Digest::Sha256 => RSA_PSS_2048_8192_SHA256,
        Digest::Sha384 => RSA_PSS_2048_8192_SHA384,
        Digest::Sha512 => RSA_PSS_2048_8192_SHA512,
    };
    Some(algorithm.with_pss_salt_length(salt))
}
