//! Users of the API server, each with a separate name in the audit log.

/// A user of the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// The harness, for preparation, checks and clean-up.
    Admin,
    /// The operator under test.
    Operator,
    /// The gateway.
    Gateway,
    /// Tenants, who create claims and use their Secrets.
    Tenant,
    /// The controller manager.
    ControllerManager,
}

impl User {
    /// Every user.
    pub const ALL: [Self; 5] = [Self::Admin, Self::Operator, Self::Gateway, Self::Tenant, Self::ControllerManager];

    /// Returns the name in the audit log, which is also that of the kubeconfig's context.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Operator => "operator",
            Self::Gateway => "gateway",
            Self::Tenant => "tenant",
            Self::ControllerManager => "system:kube-controller-manager",
        }
    }

    /// Returns the user's group. Operator, gateway and tenants have the rights of spec §3.8 and of
    /// their manifests; all others may do everything.
    pub const fn group(self) -> &'static str {
        match self {
            Self::Operator => OPERATORS,
            Self::Gateway => GATEWAYS,
            Self::Tenant => TENANTS,
            Self::Admin | Self::ControllerManager => "system:masters",
        }
    }
}

/// The operator's group. Rights are bound to the user, not to this group.
const OPERATORS: &str = "stowage:operators";
/// The gateway's group. Rights are bound to the user, not to this group.
const GATEWAYS: &str = "stowage:gateways";
/// The group of all tenants.
pub const TENANTS: &str = "stowage:tenants";
