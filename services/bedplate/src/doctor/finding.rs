//! What was found, and in which order it is told: what is surely wrong first, and of that what would explain the rest.

use serde_json::json;

use crate::output::{Answer, plain};

/// What was looked at, in the order in which one explains those after it: a service that cannot read its configuration does not
/// answer, one that does not answer boots no machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Check {
    /// The configuration files.
    Configuration,
    /// Who has the ports.
    Ports,
    /// Whether the database is there, and is of this program's version.
    Database,
    /// Whether the services answer.
    Services,
    /// Whether clocks agree.
    Clocks,
    /// The cloud's catalogue, and what clusterd's user may.
    Cloud,
    /// Other DHCP servers.
    Dhcp,
    /// Whether BMCs answer.
    Bmcs,
    /// Whether names are found.
    Dns,
    /// Whether images are what their checksums say.
    Images,
}

/// How it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// It will not work so.
    Wrong,
    /// It may be meant so.
    Doubtful,
    /// It was not looked at.
    Skipped,
    /// It is as it should be.
    Fine,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) check: Check,
    pub(crate) verdict: Verdict,
    /// What is so.
    pub(crate) what: String,
    /// What to do; nothing where nothing is to be done.
    pub(crate) next: String,
}

/// All that was found.
#[derive(Default)]
pub(crate) struct Findings(Vec<Finding>);

impl Check {
    fn as_str(self) -> &'static str {
        match self {
            Check::Configuration => "configuration",
            Check::Ports => "ports",
            Check::Database => "database",
            Check::Services => "services",
            Check::Clocks => "clocks",
            Check::Cloud => "cloud",
            Check::Dhcp => "dhcp",
            Check::Bmcs => "bmcs",
            Check::Dns => "dns",
            Check::Images => "images",
        }
    }
}

impl Verdict {
    /// As it is told.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Verdict::Wrong => "wrong",
            Verdict::Doubtful => "doubtful",
            Verdict::Skipped => "skipped",
            Verdict::Fine => "fine",
        }
    }
}

impl Findings {
    pub(crate) fn wrong(&mut self, check: Check, what: impl Into<String>, next: impl Into<String>) {
        self.add(check, Verdict::Wrong, what.into(), next.into());
    }

    pub(crate) fn doubtful(
        &mut self,
        check: Check,
        what: impl Into<String>,
        next: impl Into<String>,
    ) {
        self.add(check, Verdict::Doubtful, what.into(), next.into());
    }

    pub(crate) fn skipped(&mut self, check: Check, what: impl Into<String>) {
        self.add(check, Verdict::Skipped, what.into(), String::new());
    }

    pub(crate) fn fine(&mut self, check: Check, what: impl Into<String>) {
        self.add(check, Verdict::Fine, what.into(), String::new());
    }

    fn add(&mut self, check: Check, verdict: Verdict, what: String, next: String) {
        // Machines, BMCs and servers on the segment are strangers.
        self.0.push(Finding { check, verdict, what: plain(&what), next: plain(&next) });
    }

    /// In the order in which they were found.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter()
    }

    /// All of it for people and programs, the likeliest cause first; and how many things are wrong.
    pub(crate) fn told(mut self) -> (Answer, usize) {
        self.0.sort_by_key(|finding| (finding.verdict, finding.check));
        let wrong = self.0.iter().filter(|it| it.verdict == Verdict::Wrong).count();
        let whole = self.0.iter().map(|it| {
            json!({"check": it.check.as_str(), "verdict": it.verdict.as_str(), "what": it.what, "next": it.next})
        });
        let whole = json!({"wrong": wrong, "findings": whole.collect::<Vec<_>>()});
        let mut lines = Vec::new();
        for it in &self.0 {
            lines.push(format!("{:8}  {:13}  {}", it.verdict.as_str(), it.check.as_str(), it.what));
            if !it.next.is_empty() {
                lines.push(format!("{:25}To go on: {}", "", it.next));
            }
        }
        (Answer::said(whole, lines.join("\n")), wrong)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::output::Format;

    #[test]
    fn what_explains_the_rest_is_told_first_and_what_is_fine_last() {
        let mut findings = Findings::default();
        findings.fine(Check::Clocks, "all clocks agree");
        findings.wrong(Check::Bmcs, "r1u1 does not answer", "switch it on");
        findings.doubtful(Check::Clocks, "a BMC is late", "set it");
        findings.wrong(Check::Database, "it is not there", "make it\u{1b}[2J");
        findings.skipped(Check::Dhcp, "it takes root");
        let (answer, wrong) = findings.told();
        assert_eq!(wrong, 2);
        let want = expect![[r#"
            wrong     database       it is not there
                                     To go on: make it [2J
            wrong     bmcs           r1u1 does not answer
                                     To go on: switch it on
            doubtful  clocks         a BMC is late
                                     To go on: set it
            skipped   dhcp           it takes root
            fine      clocks         all clocks agree"#]];
        want.assert_eq(&answer.written(Format::Table).unwrap());
        let json: serde_json::Value =
            serde_json::from_str(&answer.written(Format::Json).unwrap()).unwrap();
        assert_eq!(json["findings"][0]["check"], "database");
    }
}
