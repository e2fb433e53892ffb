//! Prints the table of results, each row as soon as it is measured.

use std::io::{self, Write};
use std::process::ExitCode;

use crate::load::LoadResult;

/// Remembers whether any printed row had errors or missed its budget.
pub(crate) struct Report {
    wrong: bool,
    missed: bool,
}

/// One measurement. Fields that are `None` are not printed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row<'a> {
    pub(crate) phase: &'a str,
    pub(crate) count: Option<usize>,
    pub(crate) at_once: Option<usize>,
    pub(crate) seconds: Option<f64>,
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    pub(crate) cpu_seconds: Option<f64>,
    pub(crate) resident_mib: Option<f64>,
    /// The peak memory, in MiB.
    pub(crate) peak_mib: Option<f64>,
    /// The number of error answers, or of nodes that did not reach the state.
    pub(crate) errors: usize,
    pub(crate) retries: usize,
    /// How many times as much another implementation needs.
    pub(crate) ratio: Option<f64>,
    pub(crate) budget: Option<Budget>,
    /// Whether a missed budget fails the run.
    pub(crate) is_binding: bool,
}

/// The limit that a row must reach.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Budget {
    PerSecond(f64),
    Seconds(f64),
    /// At least the first, and at most the second number of seconds.
    SecondsWithin(f64, f64),
    ResidentMib(f64),
    PeakMib(f64),
    P99Ms(f64),
    /// CPU time per second, in percent of one processor.
    CpuPercent(f64),
    Ratio(f64),
}

impl Row<'_> {
    /// A row without any figure.
    pub(crate) fn named(phase: &str) -> Row<'_> {
        Row { phase, ..Row::default() }
    }

    /// A row for many requests.
    pub(crate) fn of_load<'a>(phase: &'a str, clients: usize, load: &LoadResult) -> Row<'a> {
        Row {
            phase,
            count: Some(load.took.len()),
            at_once: Some(clients),
            seconds: Some(load.seconds),
            p50_ms: load.quantile(0.5),
            p99_ms: load.quantile(0.99),
            errors: load.errors,
            retries: load.retries,
            ..Row::default()
        }
    }

    fn per_second(&self) -> Option<f64> {
        Some(self.count? as f64 / self.seconds?)
    }

    fn cpu_percent(&self) -> Option<f64> {
        Some(100.0 * self.cpu_seconds? / self.seconds?)
    }

    /// The budget as text, and whether it was met.
    fn verdict(&self) -> String {
        match self.judged() {
            None => String::new(),
            Some((words, true)) => format!("{words} hit"),
            Some((words, false)) => format!("{words} MISS"),
        }
    }

    fn judged(&self) -> Option<(String, bool)> {
        let (words, met) = match self.budget? {
            Budget::PerSecond(least) => {
                (format!(">= {least} /s"), self.per_second().map(|got| got >= least))
            }
            Budget::P99Ms(most) => {
                (format!("p99 <= {most} ms"), self.p99_ms.map(|got| got <= most))
            }
            Budget::CpuPercent(most) => {
                let percent = self.cpu_percent();
                (format!("<= {most} % of a processor"), percent.map(|got| got <= most))
            }
            Budget::Ratio(least) => {
                (format!(">= {least} times"), self.ratio.map(|got| got >= least))
            }
            Budget::Seconds(most) => (format!("<= {most} s"), self.seconds.map(|got| got <= most)),
            Budget::SecondsWithin(least, most) => {
                let met = self.seconds.map(|got| (least..=most).contains(&got));
                (format!("{least:.0} to {most:.0} s"), met)
            }
            Budget::ResidentMib(most) => {
                (format!("<= {most} MiB"), self.resident_mib.map(|got| got <= most))
            }
            Budget::PeakMib(most) => {
                (format!("<= {most} MiB at most"), self.peak_mib.map(|got| got <= most))
            }
        };
        Some((words, met.unwrap_or(false) && self.errors == 0))
    }

    fn is_missed(&self) -> bool {
        self.is_binding && self.judged().is_some_and(|(_, met)| !met)
    }

    fn cells(&self) -> String {
        let cell = |value: Option<f64>, digits: usize, width: usize| match value {
            Some(value) => format!(" {value:>width$.digits$}"),
            None => format!(" {:>width$}", "-"),
        };
        if let Some(ratio) = self.ratio {
            return format!("{:28} {ratio:>7.1}  {}", self.phase, self.verdict());
        }
        let whole = |value: Option<usize>, width| cell(value.map(|value| value as f64), 0, width);
        [
            format!("{:28}", self.phase),
            whole(self.count, 7),
            whole(self.at_once, 7),
            cell(self.seconds, 3, 9),
            cell(self.per_second(), 1, 10),
            cell(self.p50_ms, 2, 8),
            cell(self.p99_ms, 2, 8),
            cell(self.cpu_seconds, 2, 7),
            cell(self.resident_mib, 1, 7),
            cell(self.peak_mib, 1, 8),
            whole(Some(self.errors), 6),
            whole(Some(self.retries), 7),
            format!("  {}", self.verdict()),
        ]
        .concat()
    }
}

impl Report {
    pub(crate) fn begin() -> anyhow::Result<Report> {
        print(&format!(
            "{:28} {:>7} {:>7} {:>9} {:>10} {:>8} {:>8} {:>7} {:>7} {:>8} {:>6} {:>7}  budget",
            "phase",
            "n",
            "at once",
            "seconds",
            "per second",
            "p50 ms",
            "p99 ms",
            "CPU s",
            "RSS MiB",
            "peak MiB",
            "errors",
            "retries"
        ))?;
        Ok(Report { wrong: false, missed: false })
    }

    pub(crate) fn row(&mut self, row: &Row) -> anyhow::Result<()> {
        self.wrong |= row.errors > 0;
        self.missed |= row.is_missed();
        print(row.cells().trim_end())
    }

    /// Prints a sentence below a row.
    pub(crate) fn note(&mut self, text: &str) -> anyhow::Result<()> {
        print(&format!("    {text}"))
    }

    /// The exit code: success if there were no errors and no binding budget was missed.
    pub(crate) fn end(self) -> anyhow::Result<ExitCode> {
        if self.wrong {
            print("There were errors: the figures of rows with errors mean nothing.")?;
            return Ok(ExitCode::FAILURE);
        }
        if self.missed {
            print("A required budget was missed.")?;
            return Ok(ExitCode::FAILURE);
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn print(line: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush().map_err(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(row: &Row, want: &str) {
        assert_eq!(row.verdict(), want);
    }

    #[test]
    fn a_budget_is_met_or_missed() {
        let row = Row { count: Some(300), seconds: Some(2.0), ..Row::default() };
        check(&Row { budget: Some(Budget::PerSecond(150.0)), ..row.clone() }, ">= 150 /s hit");
        check(&Row { budget: Some(Budget::PerSecond(151.0)), ..row.clone() }, ">= 151 /s MISS");
        check(&Row { budget: Some(Budget::Seconds(2.5)), ..row.clone() }, "<= 2.5 s hit");
        let budget = Some(Budget::SecondsWithin(1.8, 2.2));
        check(&Row { budget, ..row.clone() }, "2 to 2 s hit");
        check(&Row { budget, seconds: Some(2.3), ..row.clone() }, "2 to 2 s MISS");
        check(
            &Row { ratio: Some(9.0), budget: Some(Budget::Ratio(9.0)), ..row.clone() },
            ">= 9 times hit",
        );
        check(
            &Row { ratio: Some(8.9), budget: Some(Budget::Ratio(9.0)), ..row.clone() },
            ">= 9 times MISS",
        );
        check(&Row { budget: Some(Budget::ResidentMib(40.0)), ..row }, "<= 40 MiB MISS");
    }

    #[test]
    fn only_a_budget_that_binds_is_missed() {
        let row = Row { peak_mib: Some(2.0), is_binding: true, ..Row::default() };
        assert!(!row.is_missed());
        assert!(!Row { budget: Some(Budget::PeakMib(2.0)), ..row.clone() }.is_missed());
        let over = Row { budget: Some(Budget::PeakMib(1.0)), ..row };
        assert!(over.is_missed());
        assert!(!Row { is_binding: false, ..over }.is_missed());
    }

    #[test]
    fn no_budget_is_met_with_errors() {
        let row = Row { seconds: Some(1.0), errors: 1, ..Row::default() };
        check(&Row { budget: Some(Budget::Seconds(2.0)), ..row }, "<= 2 s MISS");
    }
}
