//! Log-in plugins of a kubeconfig: what went wrong with one, in words that leave its token out.

use kube::client::AuthError;
use kube::config::ExecConfig;

/// The longest that a plugin may complain.
const LONGEST: usize = 300;

/// What went wrong, when that was the plugin's; kube's own words show everything that a plugin wrote, tokens too.
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

/// What was said, on one line.
fn line(said: &str) -> String {
    let words: Vec<&str> = said.split_whitespace().collect();
    words.join(" ").chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{ExitStatus, Output};

    use super::*;

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
