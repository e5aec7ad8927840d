//! Small parts that several resources share.

use std::fmt;
use std::time::Duration as StdDuration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::key::{Key, Kind};
use super::names::ObjectName;

/// Fields that this program does not know, kept so that a round trip loses nothing.
pub type Other = serde_json::Map<String, serde_json::Value>;

/// A moment as the API server writes it: RFC 3339, UTC, whole seconds, `Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(Timestamp);

impl Time {
    /// Cuts a moment to the whole second before it.
    pub fn new(at: Timestamp) -> Self {
        Self(Timestamp::from_second(at.as_second()).unwrap_or(at))
    }

    /// Returns the moment.
    pub fn timestamp(self) -> Timestamp {
        self.0
    }
}

impl From<Timestamp> for Time {
    fn from(at: Timestamp) -> Self {
        Self::new(at)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0}", self.0)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse::<Timestamp>().map(Self).map_err(serde::de::Error::custom)
    }
}

/// A length of time in Go's form (`2160h0m0s`), as Kubernetes writes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration(pub SignedDuration);

impl Duration {
    /// Makes a duration of whole seconds.
    pub const fn from_secs(seconds: i64) -> Self {
        Self(SignedDuration::from_secs(seconds))
    }

    /// Parses any form that Go's `time.ParseDuration` takes: `1h30m`, `10s`, `1.5h`, `300ms`, `0`.
    pub fn parse(text: &str) -> Option<Self> {
        let (sign, rest) = match text.strip_prefix('-') {
            Some(rest) => (-1.0, rest),
            None => (1.0, text.strip_prefix('+').unwrap_or(text)),
        };
        if rest == "0" {
            return Some(Self::default());
        }
        if rest.is_empty() {
            return None;
        }
        let (mut total, mut rest) = (0.0_f64, rest);
        while !rest.is_empty() {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
            let number: f64 = rest[..end].parse().ok()?;
            rest = &rest[end..];
            let end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
            let unit = match &rest[..end] {
                "h" => 3600.0,
                "m" => 60.0,
                "s" => 1.0,
                "ms" => 1e-3,
                "us" | "µs" | "μs" => 1e-6,
                "ns" => 1e-9,
                _ => return None,
            };
            total += number * unit;
            rest = &rest[end..];
        }
        SignedDuration::try_from_secs_f64(sign * total).ok().map(Self)
    }

    /// Converts to the standard library's type; negative durations become zero.
    pub fn unsigned(self) -> StdDuration {
        StdDuration::try_from(self.0).unwrap_or_default()
    }
}

impl fmt::Display for Duration {
    /// Writes Go's form: `1h0m0s`, `1m30s`, `10s`, `1.5s`, `0s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_negative() {
            f.write_str("-")?;
        }
        let length = self.0.unsigned_abs();
        let (seconds, nanos) = (length.as_secs(), length.subsec_nanos());
        if seconds == 0 && nanos > 0 {
            return if nanos >= 1_000_000 {
                write!(f, "{}ms", f64::from(nanos) / 1e6)
            } else {
                write!(f, "{}µs", f64::from(nanos) / 1e3)
            };
        }
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        if hours > 0 {
            write!(f, "{hours}h{minutes}m")?;
        } else if minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        if nanos == 0 {
            write!(f, "{seconds}s")
        } else {
            let fraction = format!("{nanos:09}");
            write!(f, "{seconds}.{}s", fraction.trim_end_matches('0'))
        }
    }
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            serde::de::Error::custom(format!("\"{text}\" is not a duration such as 2160h or 90m"))
        })
    }
}

/// Bytes that stand as base64 in JSON and YAML.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Blob(pub Vec<u8>);

impl Blob {
    /// Reports whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blob({} bytes)", self.0.len())
    }
}

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut text = String::deserialize(deserializer)?;
        if text.bytes().any(|byte| byte.is_ascii_whitespace()) {
            text.retain(|letter| !letter.is_ascii_whitespace());
        }
        STANDARD.decode(text).map(Self).map_err(serde::de::Error::custom)
    }
}

/// Reference to the issuer that signs; an empty kind means `Issuer`, an empty group `cert-manager.io`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct IssuerRef {
    /// Name of the issuer.
    pub name: String,
    /// `Issuer` or `ClusterIssuer`; absent means `Issuer`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// API group; absent means `cert-manager.io`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
}

impl IssuerRef {
    /// Reports whether the reference is to a ClusterIssuer.
    pub fn is_cluster(&self) -> bool {
        self.kind == "ClusterIssuer"
    }

    /// Returns the kind with its default.
    pub fn effective_kind(&self) -> &str {
        if self.kind.is_empty() { "Issuer" } else { &self.kind }
    }

    /// Returns the key of the issuer that a reference in the given namespace means; `None` if its kind is not known
    /// here. As in cert-manager, the group does not matter.
    pub fn key(&self, namespace: &str) -> Option<Key> {
        let (kind, namespace) = match self.effective_kind() {
            "Issuer" => (Kind::Issuer, namespace),
            "ClusterIssuer" => (Kind::ClusterIssuer, ""),
            _ => return None,
        };
        Some(Key::new(kind, ObjectName::new(namespace, &self.name)))
    }

    /// Returns the namespace of the issuer's Secrets, for a reference in the given namespace.
    pub fn secret_namespace<'a>(&self, namespace: &'a str, cluster_namespace: &'a str) -> &'a str {
        if self.is_cluster() { cluster_namespace } else { namespace }
    }

    /// Returns the group with its default.
    pub fn effective_group(&self) -> &str {
        if self.group.is_empty() { "cert-manager.io" } else { &self.group }
    }
}

/// One key of a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SecretKeySelector {
    /// Name of the Secret.
    #[serde(default)]
    pub name: String,
    /// Key in the Secret's data.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
}

/// Value of a condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// No status has been reported.
    #[default]
    Unknown,
}

/// One condition of a status (Kubernetes API conventions).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Type of the condition, such as `Ready`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether the condition holds.
    pub status: ConditionStatus,
    /// Reason in one word, for machines.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Message for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Time of the last change of `status`; other changes do not move it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// Generation the condition was computed from; absent on CertificateRequests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// Finds a condition by type.
pub fn condition<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|c| c.kind == kind)
}

/// Reports whether the condition of the given type is True.
pub fn is_true(conditions: &[Condition], kind: &str) -> bool {
    condition(conditions, kind).is_some_and(|c| c.status == ConditionStatus::True)
}

/// Sets a condition; its transition time moves only when the status changes.
pub fn set_condition(conditions: &mut Vec<Condition>, mut new: Condition, now: Timestamp) {
    new.last_transition_time = Some(now.into());
    let Some(old) = conditions.iter_mut().find(|c| c.kind == new.kind) else {
        conditions.push(new);
        return;
    };
    if old.status == new.status {
        new.last_transition_time = old.last_transition_time;
    }
    *old = new;
}

/// Reports whether a value is false, for `skip_serializing_if`.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_and_write_as_go_does() {
        for (text, expected) in [
            ("2160h", "2160h0m0s"),
            ("90m", "1h30m0s"),
            ("1.5h", "1h30m0s"),
            ("0", "0s"),
            ("10s", "10s"),
            ("1m", "1m0s"),
            ("300ms", "300ms"),
            ("1.5s", "1.5s"),
            ("-1h", "-1h0m0s"),
        ] {
            assert_eq!(Duration::parse(text).map(|d| d.to_string()).as_deref(), Some(expected));
        }
        for text in ["", "h", "10", "1d", "ten", "-"] {
            assert_eq!(Duration::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_transition_time_moves_with_the_status_only() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let ready = |status, reason: &str| Condition {
            kind: "Ready".into(),
            status,
            reason: reason.into(),
            ..Condition::default()
        };
        let mut conditions = Vec::new();
        set_condition(&mut conditions, ready(ConditionStatus::False, "Pending"), at(1));
        set_condition(&mut conditions, ready(ConditionStatus::False, "Failed"), at(2));
        assert_eq!(conditions[0].last_transition_time, Some(at(1).into()));
        assert_eq!(conditions[0].reason, "Failed");
        set_condition(&mut conditions, ready(ConditionStatus::True, "Issued"), at(3));
        assert_eq!(conditions[0].last_transition_time, Some(at(3).into()));
    }

    #[test]
    fn a_time_is_written_in_whole_seconds() {
        let at: Timestamp = "2026-11-21T04:30:25.987Z".parse().unwrap();
        assert_eq!(Time::new(at).to_string(), "2026-11-21T04:30:25Z");
    }

    #[test]
    fn a_reference_means_an_issuer_of_ours_or_nothing() {
        let check = |kind: &str, expected: Option<(Kind, &str)>, secrets: &str| {
            let reference = IssuerRef {
                name: "acme".to_owned(),
                kind: kind.to_owned(),
                ..IssuerRef::default()
            };
            let expected = expected.map(|(kind, at)| Key::new(kind, ObjectName::new(at, "acme")));
            assert_eq!(reference.key("web"), expected, "{kind}");
            assert_eq!(reference.secret_namespace("web", "cert-manager"), secrets, "{kind}");
        };
        check("", Some((Kind::Issuer, "web")), "web");
        check("Issuer", Some((Kind::Issuer, "web")), "web");
        check("ClusterIssuer", Some((Kind::ClusterIssuer, "")), "cert-manager");
        check("AWSPCAIssuer", None, "web");
        check("Certificate", None, "web");
    }
}
