//! A control plane and a store that are the harness' own, so that all that is asked of either can be read afterwards, and
//! disturbed on its way.

use std::time::Duration;

use stowage_sim::serve::S3Request;

use crate::audit::{self, AuditLog};
use crate::control_plane::{ControlPlane, Programs, User};
use crate::judge;
use crate::simulated::Simulated;
use crate::way::Way;

/// What a worker plays its scenarios on, one after the other. Dropping it leaves nothing behind.
pub(crate) struct Rig {
    pub(crate) plane: ControlPlane,
    pub(crate) simulated: Simulated,
    pub(crate) way: Way,
    audit: AuditLog,
    /// Number of the first request to the store that belongs to the present scenario.
    first_request: usize,
}

impl Rig {
    /// Starts all.
    pub(crate) async fn start(programs: &Programs, patience: Duration) -> Result<Self, String> {
        let simulated = Simulated::start().await?;
        let plane = ControlPlane::start(programs, patience).await?;
        let way = Way::start(&plane, &simulated.endpoint()).await?;
        let audit = AuditLog::new(plane.audit_log());
        Ok(Self { plane, simulated, way, audit, first_request: 0 })
    }

    /// A scenario begins: what was before is not its doing.
    pub(crate) fn begin(&mut self) -> Result<(), String> {
        self.audit.begin_here()?;
        self.first_request += self.store_requests()?.len();
        Ok(())
    }

    /// The operator's requests to the API server in this scenario.
    pub(crate) fn operator_requests(&self) -> Result<Vec<audit::Request>, String> {
        self.audit.requests(User::Operator.name())
    }

    /// All requests to the store in this scenario.
    pub(crate) fn store_requests(&self) -> Result<Vec<S3Request>, String> {
        self.simulated.requests(self.first_request)
    }

    /// The operator's requests to the store in this scenario that changed something, if they had success.
    pub(crate) fn operator_changes(&self) -> Result<Vec<S3Request>, String> {
        let operator = &self.simulated.operator.id;
        let changes = self.store_requests()?.into_iter().filter(|request| judge::changes(request, operator));
        Ok(changes.collect())
    }

    /// The lines of the audit log in this scenario.
    pub(crate) fn audit_lines(&self) -> Result<Vec<String>, String> {
        self.audit.lines()
    }

    /// Judges the scenario by what was asked of API server and store.
    pub(crate) fn judge(&mut self) -> Result<(), String> {
        self.plane.check()?;
        let asked = self.operator_requests()?;
        judge::requests(&asked)?;
        judge::answers(&self.way.calls(0))?;
        judge::store(&self.way.endpoint(), &self.operator_changes()?, &asked)
    }
}
