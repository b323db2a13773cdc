//! Evaluation of a policy's CEL expressions for one request, by the `cel` crate through kube.

use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, ValidatingAdmissionPolicySpec, Validation, Variable,
};
use kube::core::cel::KubeCelExt as _;
use kube::core::cel::cel::objects::{Key, Map};
use kube::core::cel::cel::{self, Context};
use serde_json::Value;

use crate::asked::Asked;

/// A compiled expression.
pub(super) struct Program(cel::Program);

impl Program {
    /// # Errors
    /// Returns the compiler's message.
    pub(super) fn compile(text: &str) -> Result<Self, String> {
        cel::Program::compile(text).map(Self).map_err(|error| error.to_string())
    }
}

/// A validation that is false or could not be evaluated.
pub(super) struct Failed {
    pub(super) message: String,
    pub(super) reason: Option<String>,
    /// True if the validation could not be evaluated.
    pub(super) is_error: bool,
}

impl Failed {
    fn error(message: String) -> Self {
        Self { message, reason: None, is_error: true }
    }
}

/// The variables that expressions can use.
pub(super) struct Evaluation(Context<'static>);

impl Evaluation {
    /// Creates the context. `request` is the variable of that name.
    pub(super) fn new(asked: &Asked<'_>, request: &Value, params: Option<&Value>, namespace: Option<&Value>) -> Self {
        let mut context = Context::default().with_all();
        let null = Value::Null;
        let mut tell = |name: &str, value: &Value| context.add_variable_from_value(name, seen(value));
        tell("object", asked.object.unwrap_or(&null));
        tell("oldObject", asked.old.unwrap_or(&null));
        tell("request", request);
        tell("params", params.unwrap_or(&null));
        tell("namespaceObject", namespace.unwrap_or(&null));
        Self(context)
    }

    /// Returns the failed validations of a policy; none if one of its match conditions is false.
    pub(super) fn failures(mut self, spec: &ValidatingAdmissionPolicySpec) -> Vec<Failed> {
        match self.conditions(spec.match_conditions.as_deref().unwrap_or_default()) {
            Ok(true) => {}
            Ok(false) => return Vec::new(),
            Err(why) => return vec![Failed::error(why)],
        }
        self.add_variables(spec.variables.as_deref().unwrap_or_default());
        spec.validations.iter().flatten().filter_map(|validation| self.judge(validation)).collect()
    }

    /// Returns true if all conditions are true. A false one takes precedence over one that can't be
    /// evaluated.
    pub(super) fn conditions(&self, conditions: &[MatchCondition]) -> Result<bool, String> {
        let results: Vec<_> = conditions.iter().map(|condition| self.holds(&condition.expression)).collect();
        if results.contains(&Ok(false)) {
            return Ok(false);
        }
        results.into_iter().try_for_each(|result| result.map(drop)).map(|()| true)
    }

    /// Adds the variables. Each can use those before it. A variable that can't be evaluated is left
    /// out, so only expressions that use it fail.
    fn add_variables(&mut self, variables: &[Variable]) {
        let mut known: HashMap<Key, cel::Value> = HashMap::new();
        for variable in variables {
            self.0.add_variable_from_value("variables", map(known.clone()));
            if let Ok(value) = self.value(&variable.expression) {
                known.insert(variable.name.clone().into(), value);
            }
        }
        self.0.add_variable_from_value("variables", map(known));
    }

    fn judge(&self, validation: &Validation) -> Option<Failed> {
        match self.holds(&validation.expression) {
            Ok(true) => None,
            Ok(false) => {
                Some(Failed { message: self.message(validation), reason: validation.reason.clone(), is_error: false })
            }
            Err(why) => Some(Failed::error(why)),
        }
    }

    /// Returns the value of the message expression if it is one line of text, else the static
    /// message.
    fn message(&self, validation: &Validation) -> String {
        let given = validation.message_expression.as_deref().and_then(|text| self.value(text).ok());
        let given = match given {
            Some(cel::Value::String(text)) => Some(text.trim().to_owned()),
            _ => None,
        };
        let plain = validation.message.as_deref().map(|text| text.trim().to_owned());
        given
            .filter(|text| !text.is_empty() && !text.contains('\n'))
            .or(plain.filter(|text| !text.is_empty()))
            .unwrap_or_else(|| format!("failed expression: {}", validation.expression.trim()))
    }

    fn holds(&self, text: &str) -> Result<bool, String> {
        match self.value(text)? {
            cel::Value::Bool(holds) => Ok(holds),
            _ => Err(format!("expression '{text}' resulted in error: it gives no bool")),
        }
    }

    fn value(&self, text: &str) -> Result<cel::Value, String> {
        let Program(program) = Program::compile(text).map_err(|why| format!("compilation error: {why}"))?;
        program.execute(&self.0).map_err(|error| format!("expression '{text}' resulted in error: {error}"))
    }
}

fn map(entries: HashMap<Key, cel::Value>) -> cel::Value {
    cel::Value::Map(Map { map: Arc::new(entries) })
}

/// Converts a JSON value for CEL. Whole numbers become `int`, as in untyped objects.
fn seen(value: &Value) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(value) => cel::Value::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => cel::Value::Int(whole),
            (None, real) => cel::Value::Float(real.unwrap_or(f64::NAN)),
        },
        Value::String(text) => cel::Value::String(Arc::new(text.clone())),
        Value::Array(items) => cel::Value::List(Arc::new(items.iter().map(seen).collect())),
        Value::Object(fields) => map(fields.iter().map(|(name, field)| (name.clone().into(), seen(field))).collect()),
    }
}
