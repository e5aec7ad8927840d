//! Configuration of the CA from the flags of `ca`.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::rand;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use zeroize::Zeroizing;

use super::flags::{CaArgs, IssuanceArgs, ServerBehaviourArgs};
use crate::ca::behaviour::RequestedBehaviour;
use crate::ca::records::Records;
use crate::ca::{Caa, Config, MacKey, Profile, RecordAccount};
use crate::context::failure::Failure;
use crate::fetch::Fetcher;
use crate::hints::invocation;
use crate::model::{DnsName, Identifier};

/// Builds the configuration from the flags; makes the fetcher look in the given DNS records first.
pub(super) fn config(args: &CaArgs, fetcher: &mut Fetcher) -> Result<Config, Failure> {
    let records = Arc::new(Records::before(Arc::clone(&fetcher.resolver)));
    for text in &args.record {
        records.add(text).map_err(|why| unusable("record", text, &why))?;
    }
    fetcher.resolver = records.clone();
    let base = if args.temper.strict { Config::strict() } else { Config::default() };
    let mut config = Config {
        listen: args.listen,
        management: args.management,
        records: Some(records),
        always_valid: args.always_valid,
        ..base
    };
    if let Some(address) = args.management.filter(|address| !address.ip().is_loopback()) {
        let why = "the management server has no password, so it may listen on loopback only";
        return Err(unusable("management", &address, &why)
            .hint(format!("--management 127.0.0.1:{}", address.port())));
    }
    for text in &args.name {
        config.names.push(Identifier::parse(text).map_err(|why| unusable("name", text, &why))?);
    }
    issuance(&args.issuance, &mut config)?;
    temper(&args.temper, &mut config)?;
    Ok(config)
}

fn issuance(args: &IssuanceArgs, config: &mut Config) -> Result<(), Failure> {
    for text in &args.eab {
        let (key_id, file) = pair("eab", text, "KEYID=FILE")?;
        config.external_accounts.insert(key_id.to_owned(), mac_key(text, file)?);
    }
    config.external_account_required = !args.eab.is_empty();
    for text in &args.block {
        config.blocked.push(DnsName::parse(text).map_err(|why| unusable("block", text, &why))?);
    }
    let mut profiles = Vec::new();
    for text in &args.profile {
        let (name, lifetime) = pair("profile", text, "NAME=LIFETIME")?;
        let lifetime = crate::context::flags::duration(lifetime)
            .map_err(|why| unusable("profile", text, &why))?;
        profiles.push(Profile::lasting(name, positive("profile", text, lifetime)?));
    }
    if !profiles.is_empty() {
        config.profiles = profiles;
    }
    if let (Some(lifetime), Some(first)) = (args.lifetime, config.profiles.first_mut()) {
        *first = Profile::lasting(&first.name, positive("lifetime", &lifetime, lifetime)?);
    }
    config.order_lifetime = positive("order-lifetime", &args.order_lifetime, args.order_lifetime)?;
    let lifetime = args.authorization_lifetime;
    config.authorization_lifetime = positive("authorization-lifetime", &lifetime, lifetime)?;
    config.caa = (!args.caa_identity.is_empty())
        .then(|| Caa { identities: args.caa_identity.clone(), account: RecordAccount::Own });
    config.revocation = args.revocation.sources();
    Ok(())
}

fn temper(args: &ServerBehaviourArgs, config: &mut Config) -> Result<(), Failure> {
    if let Some(delay) = args.finalize_delay {
        config.finalize_delay = Some(delay.0.unsigned_abs()).filter(|delay| !delay.is_zero());
    }
    config.validation_delay = args.validation_delay.0.unsigned_abs();
    if let Some(percent) = args.reuse {
        config.reuse_percent = percent;
    }
    if let Some(percent) = args.refuse_nonces {
        config.refuse_nonces_percent = percent;
    }
    config.retry_after = args.retry_after.or(config.retry_after);
    config.seed = match args.seed {
        Some(seed) => seed,
        None => draw_seed()?,
    };
    Ok(())
}

/// Parses the behaviours of `--behave`.
pub(super) fn behaviours(texts: &[String]) -> Result<Vec<RequestedBehaviour>, Failure> {
    let parsed = texts.iter().map(|text| {
        RequestedBehaviour::parse(text).map_err(|why| {
            unusable("behave", text, &why)
                .hint(format!("list the behaviours: {} ca --behaviours", invocation::program()))
        })
    });
    parsed.collect()
}

/// Draws a seed that is short enough to be typed.
fn draw_seed() -> Result<u64, Failure> {
    let mut octets = [0; 4];
    rand::fill(&mut octets)
        .map_err(|_| Failure::usage("cannot draw a seed").hint("give one with --seed NUMBER"))?;
    Ok(u64::from(u32::from_le_bytes(octets)))
}

/// Reads the HMAC key from a file; no message shows the key.
fn mac_key(flag: &str, file: &str) -> Result<MacKey, Failure> {
    let text = fs::read_to_string(file).map_err(|why| unusable("eab", &flag, &why))?;
    let text = Zeroizing::new(text);
    // Some CAs give the key with padding.
    let octets = BASE64_URL_SAFE_NO_PAD.decode(text.trim().trim_end_matches('='));
    let octets = octets.ok().filter(|octets| !octets.is_empty());
    octets.map(MacKey::new).ok_or_else(|| {
        unusable("eab", &flag, &"the file does not hold a key in base64url")
            .hint("put only the HMAC key in the file, as the CA shows the key")
    })
}

fn pair<'a>(flag: &str, text: &'a str, form: &str) -> Result<(&'a str, &'a str), Failure> {
    let parts = text.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty());
    parts.ok_or_else(|| unusable(flag, &text, &format!("write {form}")))
}

fn positive(
    flag: &str,
    text: &dyn std::fmt::Display,
    duration: crate::model::Duration,
) -> Result<Duration, Failure> {
    let duration = duration.0.unsigned_abs();
    if duration < Duration::from_secs(1) {
        return Err(unusable(flag, text, &"give at least one second"));
    }
    Ok(duration)
}

fn unusable(flag: &str, text: &dyn std::fmt::Display, why: &dyn std::fmt::Display) -> Failure {
    Failure::usage(format!("cannot use --{flag} {text}: {why}"))
}
