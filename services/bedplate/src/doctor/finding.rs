//! The findings of the doctor and their order: certain problems first, and among them those that explain others.

use serde_json::json;

use crate::output::{Answer, plain};

/// The checks, in the order in which one can explain the later ones: a service with an unreadable configuration does not answer, and a
/// service that does not answer boots no machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Check {
    /// The configuration files.
    Configuration,
    /// The programs that use the ports.
    Ports,
    /// The database and the version of its tables.
    Database,
    /// Whether the services answer.
    Services,
    /// Whether the clocks agree.
    Clocks,
    /// The cloud's catalogue, and the roles of clusterd's user.
    Cloud,
    /// Other DHCP servers.
    Dhcp,
    /// Whether the BMCs answer.
    Bmcs,
    /// Whether names are resolved.
    Dns,
    /// Whether the images match their checksums.
    Images,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// A certain problem.
    Fail,
    /// A problem, unless it is intended.
    Warn,
    /// The check did not run.
    Skipped,
    /// The check found nothing wrong.
    Ok,
}

/// The result of a check, with a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) check: Check,
    pub(crate) verdict: Verdict,
    /// A description of the result.
    pub(crate) what: String,
    /// The remedy; empty if the finding needs none.
    pub(crate) next: String,
}

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
    /// The verdict in the JSON output.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Verdict::Fail => "wrong",
            Verdict::Warn => "doubtful",
            Verdict::Skipped => "skipped",
            Verdict::Ok => "fine",
        }
    }

    /// The verdict in the output for people.
    fn label(self) -> &'static str {
        match self {
            Verdict::Fail => "FAIL",
            Verdict::Warn => "WARN",
            Verdict::Skipped => "SKIP",
            Verdict::Ok => "OK",
        }
    }
}

impl Findings {
    pub(crate) fn fail(&mut self, check: Check, what: impl Into<String>, next: impl Into<String>) {
        self.add(check, Verdict::Fail, what.into(), next.into());
    }

    pub(crate) fn warn(&mut self, check: Check, what: impl Into<String>, next: impl Into<String>) {
        self.add(check, Verdict::Warn, what.into(), next.into());
    }

    pub(crate) fn skipped(&mut self, check: Check, what: impl Into<String>) {
        self.add(check, Verdict::Skipped, what.into(), String::new());
    }

    pub(crate) fn ok(&mut self, check: Check, what: impl Into<String>) {
        self.add(check, Verdict::Ok, what.into(), String::new());
    }

    fn add(&mut self, check: Check, verdict: Verdict, what: String, next: String) {
        // Texts of machines, BMCs and servers on the segment are not trusted, so control characters are removed.
        self.0.push(Finding { check, verdict, what: plain(&what), next: plain(&next) });
    }

    /// The findings in the order of their checks' runs.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter()
    }

    /// All findings for people and programs, the likeliest cause first, and the number of problems.
    pub(crate) fn into_answer(mut self) -> (Answer, usize) {
        self.0.sort_by_key(|finding| (finding.verdict, finding.check));
        let wrong = self.0.iter().filter(|it| it.verdict == Verdict::Fail).count();
        let whole = self.0.iter().map(|it| {
            json!({"check": it.check.as_str(), "verdict": it.verdict.as_str(), "what": it.what, "next": it.next})
        });
        let whole = json!({"wrong": wrong, "findings": whole.collect::<Vec<_>>()});
        let mut lines = Vec::new();
        for it in &self.0 {
            lines.push(format!("{:4}  {:13}  {}", it.verdict.label(), it.check.as_str(), it.what));
            if !it.next.is_empty() {
                lines.push(format!("{:21}Hint: {}", "", it.next));
            }
        }
        (Answer::sentence(whole, lines.join("\n")), wrong)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::output::Format;

    #[test]
    fn causes_come_first_and_passed_checks_last() {
        let mut findings = Findings::default();
        findings.ok(Check::Clocks, "all clocks agree");
        findings.fail(Check::Bmcs, "r1u1 does not answer", "switch it on");
        findings.warn(Check::Clocks, "a BMC is late", "set it");
        findings.fail(Check::Database, "it is not there", "make it\u{1b}[2J");
        findings.skipped(Check::Dhcp, "it takes root");
        let (answer, wrong) = findings.into_answer();
        assert_eq!(wrong, 2);
        let want = expect![[r#"
            FAIL  database       it is not there
                                 Hint: make it [2J
            FAIL  bmcs           r1u1 does not answer
                                 Hint: switch it on
            WARN  clocks         a BMC is late
                                 Hint: set it
            SKIP  dhcp           it takes root
            OK    clocks         all clocks agree"#]];
        want.assert_eq(&answer.format(Format::Table).unwrap());
        let json: serde_json::Value =
            serde_json::from_str(&answer.format(Format::Json).unwrap()).unwrap();
        assert_eq!(json["findings"][0]["check"], "database");
        assert_eq!(json["findings"][0]["verdict"], "wrong");
    }
}
