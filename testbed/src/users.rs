//! Who talks to the API server: each has a name in the audit log of their own.

/// A client of the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// The harness, when it prepares, looks and cleans up.
    Admin,
    /// The operator under test.
    Operator,
    /// The gateway.
    Gateway,
    /// Those who make claims and use their Secrets.
    Tenant,
    /// The controller manager.
    ControllerManager,
}

impl User {
    /// Every user.
    pub const ALL: [Self; 5] = [Self::Admin, Self::Operator, Self::Gateway, Self::Tenant, Self::ControllerManager];

    /// The name in the audit log, and that of the context in the kubeconfig.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Operator => "operator",
            Self::Gateway => "gateway",
            Self::Tenant => "tenant",
            Self::ControllerManager => "system:kube-controller-manager",
        }
    }

    /// Operator, gateway and tenants have the rights that spec §3.8 gives them and those that they
    /// are installed with; all others may do everything.
    pub const fn group(self) -> &'static str {
        match self {
            Self::Operator => OPERATORS,
            Self::Gateway => GATEWAYS,
            Self::Tenant => TENANTS,
            Self::Admin | Self::ControllerManager => "system:masters",
        }
    }
}

/// The group of the operator. Its rights are the user's own.
const OPERATORS: &str = "stowage:operators";
/// The same of the gateway.
const GATEWAYS: &str = "stowage:gateways";
/// The group of all tenants.
pub const TENANTS: &str = "stowage:tenants";
