//! Reads the OS_* variables of the OpenStack clients.

use super::settings::Settings;
use super::{CloudConfig, ConfigError};

impl CloudConfig {
    /// Returns the cloud that these variables describe: `OS_AUTH_URL`, `OS_USERNAME` and so on. Pass `std::env::vars()`.
    ///
    /// `OS_CLOUD` and `OS_CLIENT_CONFIG_FILE` are ignored: see [`CloudConfig::read`].
    pub fn from_environment(
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<CloudConfig, ConfigError> {
        let mut settings = Settings::default();
        for (name, value) in variables {
            if let Some(name) = name.strip_prefix("OS_") {
                settings.put(&name.to_ascii_lowercase(), Some(value));
            }
        }
        settings.config()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(variables: &str, want: Expect) {
        let variables = variables.split_whitespace().map(|variable| {
            let (name, value) = variable.split_once('=').unwrap();
            (name.to_owned(), value.to_owned())
        });
        let reported = match CloudConfig::from_environment(variables) {
            Ok(config) => format!("{:?} {:?} {:?}", config.auth, config.interface, config.tls),
            Err(error) => error.to_string(),
        };
        want.assert_eq(&reported);
    }

    #[test]
    fn a_password_in_a_project() {
        check(
            "OS_AUTH_URL=http://k:5000/v3 OS_USERNAME=u OS_PASSWORD=hunter2 OS_PROJECT_NAME=p
             OS_USER_DOMAIN_NAME=Default OS_PROJECT_DOMAIN_ID=default PATH=/bin",
            expect![[
                r#"Password { user: Named { name: "u", domain: Name("Default") }, password: SecretBox<str>([REDACTED]), scope: Project(Named { name: "p", domain: Id("default") }) } Public Verified { authorities: None }"#
            ]],
        );
    }

    #[test]
    fn an_application_credential() {
        check(
            "OS_AUTH_URL=https://k OS_APPLICATION_CREDENTIAL_ID=c OS_APPLICATION_CREDENTIAL_SECRET=s
             OS_INTERFACE=internalURL OS_CACERT=/ca.pem",
            expect![[
                r#"ApplicationCredential { credential: "c", user: None, secret: SecretBox<str>([REDACTED]) } Internal Verified { authorities: Some("/ca.pem") }"#
            ]],
        );
    }

    #[test]
    fn a_trust_and_no_verification() {
        check(
            "OS_AUTH_URL=https://k OS_USER_ID=u OS_PASSWORD=p OS_TRUST_ID=t OS_INSECURE=True",
            expect![[
                r#"Password { user: Id("u"), password: SecretBox<str>([REDACTED]), scope: Trust { id: "t" } } Public Unverified"#
            ]],
        );
    }

    #[test]
    fn a_missing_setting_is_named() {
        check("OS_USERNAME=u", expect!["auth_url is missing: set it to the URL of Keystone"]);
        check(
            "OS_AUTH_URL=http://k OS_USERNAME=u OS_PASSWORD=p",
            expect!["user_domain_name is missing: the user is given by name"],
        );
        check(
            "OS_AUTH_URL=http://k OS_USER_ID=u",
            expect!["password is missing: auth_type is password"],
        );
    }

    #[test]
    fn an_invalid_setting_is_named() {
        check(
            "OS_AUTH_URL=http://u:hunter2@k OS_USER_ID=u OS_PASSWORD=p",
            expect![[
                r#"auth_url is "(not shown)", which contains a user: set username and password instead"#
            ]],
        );
        check(
            "OS_AUTH_URL=file:///etc/passwd OS_USER_ID=u OS_PASSWORD=p",
            expect![[r#"auth_url is "file:///etc/passwd", which is neither http nor https"#]],
        );
        check(
            "OS_AUTH_URL=http://k OS_AUTH_TYPE=v3kerberos",
            expect![[
                r#"auth_type is "v3kerberos", which is not supported: use password, v3applicationcredential or token"#
            ]],
        );
    }
}
