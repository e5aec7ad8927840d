//! What has to hold when everything has been quiet for long.

use jiff::{SignedDuration, Timestamp};
use kubectl_acme::acme::PrivateKey;
use kubectl_acme::model::common::{condition, is_true};
use kubectl_acme::model::{
    Certificate, CertificateRequest, Challenge, ConditionStatus, Issuer, Kind, Metadata, Order,
    Secret, State, Time,
};
use kubectl_acme::reconcile::facts::annotation::NEXT_PRIVATE_KEY;
use serde_json::Value;

use super::super::answers::{FOREIGN, place};
use super::super::plan::{CaFault, Fault, RENEWALS, Setting};
use super::super::world::World;
use super::Holds;

/// What has to hold when everything has been quiet for long.
pub(crate) fn at_the_end(world: &World) -> Holds {
    answers_are_gone(world)?;
    others_have_theirs(world)?;
    all_has_ended(world)?;
    leftovers_are_gone(world)?;
    for certificate in world.typed::<Certificate>(Kind::Certificate) {
        issued_or_explained(world, &certificate)?;
        if !is_renewed(world, &certificate) {
            return Err(format!("end: {} was not renewed", certificate.name()));
        }
    }
    Ok(())
}

/// What is younger than this may be at work. Where certificates are renewed all the time and that takes its time, there may be no
/// moment in which nobody works: after some hours without one, it is enough that nothing is at work for long.
fn young(world: &World) -> Option<Timestamp> {
    let hours = |hours| SignedDuration::from_hours(hours);
    let calm = hours(6).as_millis() + i128::from(world.setting.calm) * 1000;
    let is_late = world.setting.minutes_good.is_some() && i128::from(world.elapsed()) > calm;
    is_late.then(|| world.now() - hours(3))
}

/// Whether something made or begun then may be at work.
fn is_young(world: &World, since: Option<Time>) -> bool {
    young(world).zip(since).is_some_and(|(young, since)| since.timestamp() > young)
}

/// No answer of ours is left, but of a Challenge that is at work or waits for its Issuer.
fn answers_are_gone(world: &World) -> Holds {
    let at_work: Vec<Challenge> = if young(world).is_some() || issuer_is_refused(world) {
        world.typed(Kind::Challenge)
    } else {
        Vec::new()
    };
    let is_at_work = |at: &str, text: &str| {
        let mut all = at_work.iter();
        all.any(|it| it.spec.key == text && place(it, world.setting.by_record) == at)
    };
    let answers = world.answers.lock();
    match answers.left().find(|(at, text)| !is_at_work(at, text)) {
        Some((at, text)) => Err(format!("answers: {text} at {at} is left behind")),
        None => Ok(()),
    }
}

/// Nothing of others was taken away.
fn others_have_theirs(world: &World) -> Holds {
    match world.answers.lock().taken() {
        Some(place) => Err(format!("answers: the text {FOREIGN} is gone from {place}")),
        None => Ok(()),
    }
}

/// The CA has refused the account for good, which the Issuer says until somebody changes it: a true reason.
fn issuer_is_refused(world: &World) -> bool {
    let was_refused = world.faults.iter().any(|fault| {
        let Fault::Ca { point, what: CaFault::Says { status, .. }, .. } = fault else {
            return false;
        };
        // A directory that is not there is taken for the wrong URL.
        match point.as_str() {
            "ca newAccount" | "ca newNonce" => (400..=404).contains(status),
            "ca directory" => *status == 404,
            _ => false,
        }
    });
    was_refused
        && world.typed::<Issuer>(Kind::Issuer).iter().any(|issuer| {
            let ready = condition(&issuer.status.conditions, "Ready");
            ready.is_some_and(|ready| ready.message.contains("no, says the plan"))
        })
}

/// To some process every certificate has expired when it is issued, which its Certificate says: a true reason.
fn is_ahead(world: &World) -> bool {
    let Setting { processes, minutes_good, skews, .. } = &world.setting;
    let ahead = |place: usize| {
        let jumps = world.faults.iter().map(|fault| match fault {
            // Within a process the time goes on when the clock is set back, up to a minute.
            Fault::Clock { place: whose, by, .. } if *whose == place && !(-60..0).contains(by) => {
                *by
            }
            _ => 0,
        });
        jumps.sum::<i64>() + skews[place]
    };
    let seconds = minutes_good.map_or(i64::MAX, |minutes| minutes.cast_signed() * 60);
    (0..*processes).any(|place| ahead(place) >= seconds)
}

/// Every object has ended in a state that is final.
fn all_has_ended(world: &World) -> Holds {
    if issuer_is_refused(world) {
        return Ok(());
    }
    let is_young = |metadata: &Metadata| is_young(world, metadata.creation_timestamp);
    for challenge in world.typed::<Challenge>(Kind::Challenge) {
        let has_ended = challenge.metadata.finalizers.is_empty() && challenge.has_ended();
        if !has_ended && !is_young(&challenge.metadata) {
            return Err(format!("end: Challenge {} has not ended", challenge.name()));
        }
    }
    for order in world.typed::<Order>(Kind::Order) {
        if !order.has_ended() && !is_young(&order.metadata) {
            return Err(format!(
                "end: Order {} has not ended: {:?}",
                order.name(),
                order.status.state
            ));
        }
    }
    for request in world.typed::<CertificateRequest>(Kind::CertificateRequest) {
        let ready = condition(&request.status.conditions, "Ready");
        let has_ended =
            ready.is_some_and(|ready| ready.reason == "Issued" || ready.reason == "Failed");
        if !has_ended && !is_young(&request.metadata) {
            return Err(format!("end: CertificateRequest {} has not ended", request.name()));
        }
    }
    Ok(())
}

/// Nothing is left that nobody needs: keys of tries that have ended, requests beyond the history, Challenges of Orders that are good.
fn leftovers_are_gone(world: &World) -> Holds {
    if issuer_is_refused(world) {
        return Ok(());
    }
    let certificates: Vec<Certificate> = world.typed(Kind::Certificate);
    for secret in world.typed::<Secret>(Kind::Secret) {
        let Metadata { name, labels, .. } = &secret.metadata;
        let is_key_of_try = labels.contains_key(NEXT_PRIVATE_KEY);
        let is_needed = |it: &Certificate| it.status.next_private_key_secret_name == *name;
        if is_key_of_try
            && !certificates.iter().any(is_needed)
            && !is_young(world, secret.metadata.creation_timestamp)
        {
            return Err(format!("left over: Secret {name}"));
        }
    }
    let requests: Vec<CertificateRequest> = world.typed(Kind::CertificateRequest);
    for certificate in &certificates {
        let is_its = |it: &&CertificateRequest| {
            it.metadata.controller().is_some_and(|owner| owner.uid == certificate.metadata.uid)
                && !is_young(world, it.metadata.creation_timestamp)
        };
        let count = requests.iter().filter(is_its).count();
        // That of a try that has failed stays beside that of the certificate before, until the next one.
        if count > 1 + usize::from(certificate.status.last_failure_time.is_some()) {
            return Err(format!("left over: {count} requests of {}", certificate.name()));
        }
    }
    let orders: Vec<Order> = world.typed(Kind::Order);
    for challenge in world.typed::<Challenge>(Kind::Challenge) {
        let owner = challenge.metadata.controller().map(|owner| owner.uid.clone());
        let order = orders.iter().find(|order| Some(&order.metadata.uid) == owner.as_ref());
        // Those of one that has failed stay, for whoever wants to know why.
        if order.is_none_or(|order| order.status.state == Some(State::Valid))
            && !is_young(world, challenge.metadata.creation_timestamp)
        {
            return Err(format!("left over: Challenge {}", challenge.name()));
        }
    }
    Ok(())
}

/// Every Certificate was renewed as often as it had to be.
fn is_renewed(world: &World, certificate: &Certificate) -> bool {
    let times = certificate.status.revision.unwrap_or(0) - 1;
    world.setting.minutes_good.is_none()
        || times >= RENEWALS
        || issuer_is_refused(world)
        || is_ahead(world)
}

/// Every Certificate is issued, for the names that it asks for and with the key beside it.
fn issued_or_explained(world: &World, certificate: &Certificate) -> Holds {
    let name = certificate.name();
    if issuer_is_refused(world) || is_ahead(world) {
        return Ok(());
    }
    let issuing = condition(&certificate.status.conditions, "Issuing");
    let issuing = issuing.filter(|it| it.status == ConditionStatus::True);
    if is_young(world, issuing.and_then(|it| it.last_transition_time)) {
        return Ok(());
    }
    if !is_true(&certificate.status.conditions, "Ready") {
        return Err(format!("end: Certificate {name} is not issued: {}", why(certificate)));
    }
    if issuing.is_some() {
        return Err(format!("end: Certificate {name} is still being issued"));
    }
    let secrets = world.typed::<Secret>(Kind::Secret);
    let secret = secrets.iter().find(|secret| secret.metadata.name == certificate.spec.secret_name);
    let Some(secret) = secret else {
        return Err(format!("end: the Secret of {name} is not there"));
    };
    let part = |key: &str| secret.data.get(key).map(|blob| blob.0.clone()).unwrap_or_default();
    let key =
        PrivateKey::from_pem(&part("tls.key")).map_err(|error| format!("end: {name}: {error}"))?;
    let pem = pem::parse(part("tls.crt")).map_err(|error| format!("end: {name}: {error}"))?;
    let (_, leaf) =
        x509_parser::parse_x509_certificate(pem.contents()).map_err(|e| e.to_string())?;
    if leaf.public_key().raw != key.public_key() {
        return Err(format!("end: the Secret of {name} has the certificate of another key"));
    }
    let served =
        leaf.subject_alternative_name().ok().flatten().map(|names| names.value.general_names.len());
    if served != Some(certificate.spec.dns_names.len()) {
        return Err(format!("end: the certificate of {name} is not for its names"));
    }
    Ok(())
}

fn why(certificate: &Certificate) -> String {
    let conditions = certificate.status.conditions.iter();
    conditions.map(|c| format!("{} {}", c.reason, c.message)).collect::<Vec<_>>().join("; ")
}

/// Whether nothing is left to do.
pub(crate) fn is_done(world: &World) -> bool {
    let certificates: Vec<Certificate> = world.typed(Kind::Certificate);
    // What is asked most often before it holds comes first, and keys are read last.
    certificates.iter().all(|certificate| is_renewed(world, certificate))
        && answers_are_gone(world).is_ok()
        && all_has_ended(world).is_ok()
        && leftovers_are_gone(world).is_ok()
        && certificates.iter().all(|certificate| issued_or_explained(world, certificate).is_ok())
}

/// For the timeline of a run that has not ended: what stands where.
pub(crate) fn remains(world: &World) -> Vec<String> {
    let mut lines = Vec::new();
    for kind in
        [Kind::Issuer, Kind::Certificate, Kind::CertificateRequest, Kind::Order, Kind::Challenge]
    {
        for record in world.peek_all(kind) {
            let status = &record.object["status"];
            let mut status = status.clone();
            if let Value::Object(fields) = &mut status {
                fields.retain(|name, _| {
                    !matches!(name.as_str(), "certificate" | "authorizations" | "ca")
                });
            }
            let line: String = status.to_string().chars().take(900).collect();
            lines.push(format!("{} {line}", record.key));
        }
    }
    let challenges: Vec<Challenge> = world.typed(Kind::Challenge);
    lines.extend(challenges.iter().map(|c| format!("at {}", place(c, world.setting.by_record))));
    lines
}
