//! Processors (DSP0268 `Processor`, `ComputerSystem.ProcessorSummary`).

use bmc::Result;
use hardware::Processor;
use serde_json::Value;

use crate::document::Document;
use crate::service::Service;

impl Service {
    /// Returns the listed sockets; the summary fills in values that the list lacks.
    pub(super) async fn processor(&self, system: &Value) -> Result<Processor> {
        let mut sockets = self.parts(system, "Processors").await?;
        // GPUs and FPGAs are in the same list as the processors.
        sockets.retain(|socket| matches!(socket.word("ProcessorType"), "" | "CPU"));
        Ok(processor(&sockets, system.at("ProcessorSummary")))
    }
}

fn processor(sockets: &[Value], summary: &Value) -> Processor {
    let threads = sockets.iter().filter_map(|socket| socket.count("TotalThreads"));
    let threads = Some(threads.fold(0, u64::saturating_add));
    let small = |count: u64| u32::try_from(count).ok().filter(|count| *count > 0);
    let listed = Some(sockets.len() as u64).filter(|count| *count > 0);
    Processor {
        sockets: listed.or_else(|| summary.count("Count")).and_then(small),
        threads: threads
            .filter(|threads| *threads > 0)
            .or_else(|| summary.count("LogicalProcessorCount"))
            .and_then(small),
        architecture: sockets.iter().find_map(architecture),
        model: sockets.iter().find_map(|s| s.text("Model")).or_else(|| summary.text("Model")),
    }
}

fn architecture(socket: &Value) -> Option<String> {
    let name = match (socket.word("InstructionSet"), socket.word("ProcessorArchitecture")) {
        ("x86-64", _) => "x86_64",
        ("x86", _) => "x86",
        ("ARM-A64", _) => "aarch64",
        ("PowerISA", _) => "ppc64le",
        ("RV64", _) => "riscv64",
        // Every x86 server of the last fifteen years has a 64-bit processor.
        (_, "x86") => "x86_64",
        (_, "ARM") => "aarch64",
        _ => return None,
    };
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(sockets: Value, summary: Value, want: Expect) {
        let found = processor(sockets.as_array().unwrap(), &summary);
        want.assert_eq(&format!(
            "{:?} {:?} {:?} {:?}",
            found.sockets, found.threads, found.architecture, found.model
        ));
    }

    #[test]
    fn sockets_are_counted_and_threads_added() {
        check(
            json!([{"TotalThreads": 32, "InstructionSet": "x86-64", "Model": "Xeon"}, {"TotalThreads": "32"}]),
            json!({"Count": 64}),
            expect![[r#"Some(2) Some(64) Some("x86_64") Some("Xeon")"#]],
        );
    }

    #[test]
    fn the_summary_fills_gaps_of_the_list() {
        check(
            json!([]),
            json!({"Count": 2, "LogicalProcessorCount": 48, "Model": "EPYC"}),
            expect![[r#"Some(2) Some(48) None Some("EPYC")"#]],
        );
        check(json!([{}]), json!(null), expect!["Some(1) None None None"]);
    }
}
