//! Starts a cluster for manual experiments: prints its environment variables, and stops it at the end of
//! stdin or when this process ends.

use qontract_testkit::cluster::{Binaries, Error, TestCluster};
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut stderr = io::stderr();
    match Binaries::from_environment().and_then(|binaries| run(&binaries)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(stderr, "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(binaries: &Binaries) -> Result<(), Error> {
    let cluster = TestCluster::launch(binaries)?;
    let mut text = String::new();
    let variables: BTreeMap<_, _> = binaries.variables().into_iter().chain(cluster.api.variables()).collect();
    for (name, value) in variables {
        text.push_str(&format!("export {name}='{}'\n", value.display()));
    }
    text.push_str(&format!("export KUBECONFIG='{}'\n", cluster.api.kubeconfig.display()));
    let mut stdout = io::stdout();
    // The cluster is stopped if stdout has no reader, or at the end of stdin.
    if stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_ok() {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
    }
    Ok(())
}
