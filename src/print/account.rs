//! Sheets of accounts, with the facts that an Issuer and its CA give about an account.

use super::escape::escape;
use super::tabs;
use crate::model::account_report::ReportedAccount;
use crate::model::text::shortened;

/// Most characters of a value.
const MAX_VALUE_CHARS: usize = 500;

/// Renders accounts, each on a sheet of its own.
pub fn sheets(accounts: &[ReportedAccount]) -> String {
    let sheets: Vec<String> = accounts.iter().map(|account| tabs::align(&rows(account))).collect();
    sheets.join("\n\n")
}

fn rows(account: &ReportedAccount) -> String {
    let user = &account.issuer;
    let place =
        if user.namespace.is_empty() { String::new() } else { format!("{}/", user.namespace) };
    let mut rows = vec![
        (user.kind.as_str(), format!("{place}{}", user.name)),
        ("Server", account.server.clone()),
        ("Account", account.url.clone().unwrap_or_else(|| "<none>".to_owned())),
    ];
    rows.extend(account.status.clone().map(|status| ("Status", status)));
    rows.extend(account.contact.as_ref().map(|contact| ("Contact", join_contacts(contact))));
    if let Some(key) = &account.key {
        rows.push(("Key", format!("{}, thumbprint {}", key.algorithm, key.thumbprint)));
        rows.push(("Secret", key.secret.clone()));
        if key.is_being_changed {
            rows.push(("New Key", "in the Secret, to replace the present key".to_owned()));
        }
    }
    rows.extend(account.external_account.clone().map(|id| ("External Account", id)));
    rows.extend(account.terms_of_service.clone().map(|url| ("Terms of Service", url)));
    rows.extend(account.orders.as_ref().map(|orders| ("Orders", orders.len().to_string())));
    rows.extend(account.error.clone().map(|why| ("CA", why)));
    let row = |(label, value): (&str, String)| {
        let value =
            escape(&shortened(&value, MAX_VALUE_CHARS)).replace('\n', "\\n").replace('\t', "\\t");
        format!("{label}:\t{value}\n")
    };
    rows.into_iter().map(row).collect()
}

fn join_contacts(contact: &[String]) -> String {
    if contact.is_empty() { "<none>".to_owned() } else { contact.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::account_report::{AccountUser, ReportedKey};

    #[test]
    fn what_is_not_known_has_no_line_and_no_answer_can_begin_one() {
        let issuer =
            AccountUser { kind: "Issuer".into(), namespace: "web".into(), name: "le".into() };
        let account = ReportedAccount {
            issuer,
            server: "https://ca.example/dir".into(),
            contact: Some(Vec::new()),
            key: Some(ReportedKey {
                algorithm: "RSA 2048".into(),
                thumbprint: "abc".into(),
                secret: "web/le-account".into(),
                is_being_changed: false,
            }),
            error: Some("503\nStatus:\tvalid".into()),
            ..ReportedAccount::default()
        };
        assert_eq!(
            sheets(&[account]),
            "Issuer:   web/le\n\
             Server:   https://ca.example/dir\n\
             Account:  <none>\n\
             Contact:  <none>\n\
             Key:      RSA 2048, thumbprint abc\n\
             Secret:   web/le-account\n\
             CA:       503\\nStatus:\\tvalid\n"
        );
    }
}
