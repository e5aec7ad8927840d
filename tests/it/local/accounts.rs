//! The report of `account show`.

use kubectl_acme::model::account_report::{
    AccountReport, AccountUser, ReportedAccount, ReportedKey,
};
use serde_json::json;

use crate::support::reports;

#[test]
fn the_page_of_reports_tells_every_field_and_its_type() {
    let text = || Some("x".to_owned());
    let whole = ReportedAccount {
        issuer: AccountUser { kind: "Issuer".into(), namespace: "web".into(), name: "le".into() },
        server: "x".into(),
        url: text(),
        status: text(),
        contact: Some(vec!["x".into()]),
        key: Some(ReportedKey {
            algorithm: "x".into(),
            thumbprint: "x".into(),
            secret: "x".into(),
            is_being_changed: true,
        }),
        external_account: text(),
        terms_of_service: text(),
        orders: Some(vec!["x".into()]),
        error: text(),
    };
    let bare = ReportedAccount {
        issuer: AccountUser { namespace: String::new(), ..whole.issuer.clone() },
        server: "x".into(),
        ..ReportedAccount::default()
    };
    let reports = [whole, bare].map(|account| json!(AccountReport::new(vec![account])));
    reports::is_told("AccountReport", &reports);
}
