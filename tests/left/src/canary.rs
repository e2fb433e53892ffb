//! Secrets that tests give to services. Each stands nowhere else, and holds letters that a URL has to spell otherwise.

/// The password of every emulated BMC.
pub const BMC: &str = "canary bmc/9f3+Qx7";
/// In user data and config drives.
pub const USER_DATA: &str = "canary user-data/4c1+Wd2";
/// The password of whoever is in an htpasswd file.
pub const HTPASSWD: &str = "canary htpasswd/7e8+Kb5";
/// How the passwords of those begin whom the walk of the policy makes in a Keystone, that of the service itself among them.
pub const KEYSTONE: &str = "canary keystone/2a6+Mz9";
/// The password of a mail server.
pub const SMTP: &str = "canary smtp/5d0+Ty3";
/// What a webhook's receiver knows notices by.
pub const WEBHOOK: &str = "canary webhook/8c2+Vn4";
/// Typed at a machine's serial console.
pub const CONSOLE: &str = "canary console/6b7+Jp1";
/// For what tests plant to be found.
pub const PLANTED: &str = "canary planted/1b4+Hs8";

/// How every private key begins that is kept as PEM: what services make themselves is not chosen by a test.
pub const PRIVATE_KEY: &str = "PRIVATE KEY-----";

/// Those that are to be found nowhere.
pub const ALL: [&str; 9] =
    [BMC, USER_DATA, HTPASSWD, KEYSTONE, SMTP, WEBHOOK, CONSOLE, PLANTED, PRIVATE_KEY];
