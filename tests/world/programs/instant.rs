//! Orders one certificate with instant-acme: instant DIRECTORY ROOT WEBROOT NAME...

use std::{env, error::Error, fs};

use instant_acme::{
    Account, AuthorizationStatus, ChallengeType, Identifier, NewAccount, NewOrder, RetryPolicy,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [directory, root, webroot, names @ ..] = words.as_slice() else {
        return Err("words are missing".into());
    };
    let new =
        NewAccount { contact: &[], terms_of_service_agreed: true, only_return_existing: false };
    let (account, _) =
        Account::builder_with_root(root)?.create(&new, directory.clone(), None).await?;
    let identifiers: Vec<Identifier> = names.iter().cloned().map(Identifier::Dns).collect();
    let mut order = account.new_order(&NewOrder::new(&identifiers)).await?;
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        if authorization.status == AuthorizationStatus::Valid {
            continue;
        }
        let mut challenge =
            authorization.challenge(ChallengeType::Http01).ok_or("there is no http-01")?;
        let answer = challenge.key_authorization();
        fs::write(
            format!("{webroot}/.well-known/acme-challenge/{}", challenge.token),
            answer.as_str(),
        )?;
        challenge.set_ready().await?;
    }
    order.poll_ready(&RetryPolicy::default()).await?;
    order.finalize().await?;
    let chain = order.poll_certificate(&RetryPolicy::default()).await?;
    fs::write("certificate.pem", chain)?;
    Ok(())
}
