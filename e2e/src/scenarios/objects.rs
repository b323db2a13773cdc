//! The table of valid and invalid objects, as in the simulator's tests.

use anyhow::{Result, ensure};
use stowage_proof::objects::{self, Rules};
use stowage_testbed::environment::Environment;

pub(super) async fn play(environment: &Environment) -> Result<String> {
    let namespace = format!("{}-object-table", environment.prefix);
    environment.make_namespace(&namespace).await?;
    let outcomes = objects::play(&environment.client, Rules::Project, &namespace, &objects::cases()).await;
    let wrong =
        outcomes.iter().filter_map(|outcome| Some(format!("{}: {}", outcome.name, outcome.result.as_ref().err()?)));
    let wrong: Vec<String> = wrong.collect();
    ensure!(wrong.is_empty(), "{} of {} objects: {}", wrong.len(), outcomes.len(), wrong.join("; "));
    Ok(format!("{} objects answered as expected", outcomes.len()))
}
