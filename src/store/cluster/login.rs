//! Log-in plugins of a kubeconfig: descriptions of their errors that leave the token out.

use std::cell::Cell;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use http::HeaderValue;
use kube::client::AuthError;
use kube::config::{AuthInfo, ExecConfig};

/// Most characters of a plugin's message.
const MAX_MESSAGE_CHARS: usize = 300;

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs a function whose panic the caller reports, so that the panic itself prints nothing.
pub(super) fn without_a_word<T>(make: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_QUIET.get() {
                usual(info);
            }
        }));
    });
    IS_QUIET.set(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(make));
    IS_QUIET.set(false);
    outcome.unwrap_or_else(|panic| panic::resume_unwind(panic))
}

/// Removes blanks and line ends around a token, as kubectl does for a token in a file. kube keeps blanks and line ends,
/// and no header can hold them.
pub(super) fn tidy_token(login: &mut AuthInfo, user: &str) -> Result<(), String> {
    if let Some(given) = token_of(login) {
        if HeaderValue::try_from(given.trim()).is_err() {
            let why = format!(
                "the token of {user} has a line end or another character in it that no token has"
            );
            return Err(why);
        }
        if given.trim() != given {
            login.token = Some(given.trim().to_owned().into());
        }
        return Ok(());
    }
    let Some(path) = &login.token_file else { return Ok(()) };
    // kube reports a file that cannot be read, and reads the other files anew, since some change every hour.
    let Ok(given) = fs::read_to_string(path) else { return Ok(()) };
    if HeaderValue::try_from(given.trim()).is_err() {
        let why = format!(
            "{path}, the token of {user}, has a line end or another character in it that no token has"
        );
        return Err(why);
    }
    if given.trim() != given {
        login.token = Some(given.trim().to_owned().into());
    }
    Ok(())
}

/// Returns the token that stands in the kubeconfig itself; its type shows the token only when it is serialized.
fn token_of(login: &AuthInfo) -> Option<String> {
    let mut written = serde_json::to_value(login).ok()?;
    serde_json::from_value(written.get_mut("token")?.take()).ok()
}

/// Describes the fault of a plugin's token that cannot be used.
pub(super) fn unusable_token(plugin: Option<&ExecConfig>) -> String {
    let name = plugin.and_then(|plugin| plugin.command.as_deref()).unwrap_or_default();
    format!(
        "log-in plugin {name} gives a token with a line end or another character in it that no token has"
    )
}

/// Describes an error of a plugin; `None` for other errors. kube's message shows all that a plugin wrote, tokens too.
pub(super) fn plugin_fault(error: &AuthError, plugin: Option<&ExecConfig>) -> Option<String> {
    let name = plugin.and_then(|plugin| plugin.command.as_deref()).unwrap_or_default();
    let name = format!("log-in plugin {name}");
    let name = name.trim_end();
    Some(match error {
        AuthError::AuthExecStart(why) => {
            let advice = plugin.and_then(|plugin| plugin.install_hint.as_deref());
            let advice = advice.map(|advice| format!("; {}", line(advice))).unwrap_or_default();
            format!("cannot start {name}: {why}{advice}")
        }
        AuthError::AuthExecRun { out, .. } => {
            let said = String::from_utf8_lossy(&out.stderr);
            let said = match line(&said) {
                said if said.is_empty() => String::new(),
                said => format!(": {said}"),
            };
            format!("{name} ended with {}{said}", out.status)
        }
        AuthError::AuthExecParse(_) | AuthError::ExecPluginFailed => {
            format!("{name} did not print an ExecCredential")
        }
        _ => return None,
    })
}

/// Joins a message to one line, and shortens it.
fn line(said: &str) -> String {
    let words: Vec<&str> = said.split_whitespace().collect();
    words.join(" ").chars().take(MAX_MESSAGE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{ExitStatus, Output};

    use super::*;

    fn login(yaml: &str) -> AuthInfo {
        serde_yaml::from_str(yaml).unwrap()
    }

    #[test]
    fn a_token_is_taken_without_the_line_end_behind_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        for (text, expected) in [("abc", None), ("abc\n", Some("abc")), (" abc\r\n", Some("abc"))] {
            fs::write(&path, text).unwrap();
            let mut in_file = login(&format!("{{tokenFile: '{}'}}", path.display()));
            tidy_token(&mut in_file, "ann").unwrap();
            assert_eq!(
                token_of(&in_file).as_deref(),
                expected,
                "kube reads what needs no help: {text:?}"
            );
            let mut inline = login("{}");
            inline.token = Some(text.to_owned().into());
            tidy_token(&mut inline, "ann").unwrap();
            assert_eq!(token_of(&inline).as_deref(), Some("abc"));
        }
        fs::write(&path, "abc\ndef").unwrap();
        let mut in_file = login(&format!("{{tokenFile: '{}'}}", path.display()));
        let said = tidy_token(&mut in_file, "ann").unwrap_err();
        assert!(said.contains("line end") && !said.contains("abc"), "{said}");
        let mut inline = login("{token: \"abc\\ndef\"}");
        let said = tidy_token(&mut inline, "ann").unwrap_err();
        assert!(said.contains("the token of ann") && !said.contains("abc"), "{said}");
    }

    #[test]
    fn a_plugin_that_fails_is_quoted_without_what_it_printed() {
        let (stdout, stderr) = (b"token-of-ann".to_vec(), b"session has ended:\nlog in\n".to_vec());
        let status = ExitStatus::from_raw(3 << 8);
        let out = Box::new(Output { status, stdout, stderr });
        let error = AuthError::AuthExecRun { cmd: "aws --secret".into(), out };
        let plugin =
            ExecConfig { command: Some("aws".into()), ..serde_yaml::from_str("{}").unwrap() };
        assert_eq!(
            plugin_fault(&error, Some(&plugin)).unwrap(),
            "log-in plugin aws ended with exit status: 3: session has ended: log in"
        );
        let refreshed = plugin_fault(&AuthError::ExecPluginFailed, None).unwrap();
        assert_eq!(refreshed, "log-in plugin did not print an ExecCredential");
    }
}
